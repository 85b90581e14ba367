//! F11: the receive buffer overruns. What the kernel drops is in our account, to the packet.
//!
//! The daemon is stopped and continued again and again (SIGSTOP) under datagrams from several senders, with the
//! smallest receive buffer there is. Each datagram is one record; the oracle reads what came out at the other end.

use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use crate::endpoint::Endpoint;
use crate::finding::{Bench, End, Finding};
use crate::oracle::{Form, write_record};
use crate::support::{Builder, Daemon, udp};

const SENDERS: u64 = 4;
const ROUNDS: u64 = 10;

/// Packets between two pauses of a sender: about what the buffer holds, so that some get through and some do not.
const BURST: u64 = 16;
const PAUSE: Duration = Duration::from_micros(500);

fn send(to: SocketAddr, ids: Range<u64>) -> u64 {
    let socket = udp(to);
    let mut packet = Vec::new();
    let mut sent = 0;
    for id in ids {
        packet.clear();
        write_record(&mut packet, id);
        sent += u64::from(socket.send(&packet).is_ok());
        if id % BURST == 0 {
            std::thread::sleep(PAUSE);
        }
    }
    sent
}

pub(crate) fn run(bench: &Bench) -> End {
    let packets: u64 = bench.pick(40_000, 4_000_000);
    let endpoint = Endpoint::new(Form::Line);
    let toml = format!(
        "[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\"]\nreceive_buffer = \"4KiB\"\n\
         [outputs.copy]\ntype = \"tcp\"\nfrom = [\"app\"]\nto = [\"{}\"]\n",
        endpoint.to()
    );
    let mut daemon = Builder::native(&toml).start();
    let to = daemon.at("app", "udp");
    let each = packets / ROUNDS / SENDERS;
    let mut random = bench.random();
    let mut finding = Finding::default();
    for round in 0..ROUNDS {
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| {
                let first = (round * SENDERS + sender) * each;
                std::thread::spawn(move || send(to, first..first + each))
            })
            .collect();
        for _stop in 0..3 {
            daemon.signal("STOP");
            std::thread::sleep(Duration::from_millis(random.below(20) as u64));
            daemon.signal("CONT");
            std::thread::sleep(Duration::from_millis(random.below(5) as u64));
        }
        for sender in senders {
            finding.sent += sender.join().expect("no sender panics");
        }
        bench.say(|| format!("{} of {packets} packets", finding.sent));
    }
    let sent = finding.sent;
    let settled = bench.wait("the account", Duration::from_secs(30), || {
        let row = daemon.source("app");
        let (packets, dropped) = (Daemon::number(&row, "packets"), Daemon::number(&row, "kernel_dropped"));
        (packets + dropped >= sent && endpoint.oracle.arrived() >= packets).then_some(())
    });
    let row = daemon.source("app");
    let (read, dropped) = (Daemon::number(&row, "packets"), Daemon::number(&row, "kernel_dropped"));
    finding.add(&endpoint.oracle.count());
    finding.named = dropped;
    finding.done = format!("{SENDERS} senders, 8 KiB of buffer");
    let missing = sent - finding.arrived;
    finding.figure(format!("kernel_dropped {dropped}, sent minus arrived {missing}"));
    finding.promise(settled.is_some() && dropped == missing, || {
        format!("{sent} sent, {read} read, {missing} missing, but kernel_dropped is {dropped}")
    });
    finding.promise(dropped > 0, || "the buffer was never full: this run shows nothing".into());
    finding.promise_exact();
    daemon.assert_sums_hold();
    daemon.stop();
    End::Ran(finding)
}

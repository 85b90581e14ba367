//! F4: the disk of a queue is full, and then there is room again.
//!
//! The queue is on a small tmpfs of its own (in a mount namespace, where the case starts itself once more), half of
//! which is somebody else's. The endpoint is away until the disk is full; a TCP client waits, which costs it nothing,
//! and datagrams, which cannot wait, are counted. The daemon is killed on the full disk and must start again. Then
//! somebody frees his half, and the endpoint comes back.

use std::path::Path;
use std::time::Duration;

use crate::endpoint::Endpoint;
use crate::finding::{Bench, End, Finding};
use crate::load::Client;
use crate::oracle::{Form, write_record};
use crate::small_disk;
use crate::support::{Builder, Daemon, udp};

/// Datagrams on the full disk, and as many when there is room again.
const PACKETS: u64 = 10_000;

const PATIENCE: Duration = Duration::from_secs(20);

/// Records per MiB of disk, roughly: more than fit.
const RECORDS_PER_MIB: u64 = 100_000;

/// Records that wait in sockets' buffers and in the exchange before a client is made to wait, and more.
const IN_BUFFERS: u64 = 800_000;

pub(crate) fn run(bench: &Bench) -> End {
    let mebibytes = bench.pick(4, 64);
    small_disk::run(bench, "F4", mebibytes, |disk| on_disk(bench, disk, mebibytes))
}

fn config(disk: &Path, endpoint: &Endpoint, packets: &Endpoint) -> String {
    format!(
        "data_dir = \"{}\"\nstop_timeout = \"10s\"\n\
         [sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [sources.packets]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\"]\n\
         [outputs.copy]\ntype = \"tcp\"\nfrom = [\"app\"]\nto = [\"{}\"]\nmin_retry_delay = \"50ms\"\nmax_retry_delay = \"200ms\"\n\
         queue = {{ kind = \"disk\", max_bytes = \"1GiB\", when_full = \"block\" }}\n\
         [outputs.cannot_wait]\ntype = \"tcp\"\nfrom = [\"packets\"]\nto = [\"{}\"]\nmin_retry_delay = \"50ms\"\nmax_retry_delay = \"200ms\"\n\
         queue = {{ kind = \"disk\", max_bytes = \"1GiB\", when_full = \"block\" }}\n",
        disk.join("data").display(),
        endpoint.to(),
        packets.to()
    )
}

fn copies(daemon: &Daemon, output: &str) -> u64 {
    Daemon::number(&daemon.output(output), "copies")
}

/// Datagrams, in the daemon's own time; says how many.
fn send_packets(bench: &Bench, daemon: &Daemon, first: u64, count: u64) {
    let socket = udp(daemon.at("packets", "udp"));
    let had = Daemon::number(&daemon.source("packets"), "packets");
    let mut packet = Vec::new();
    for at in 0..count {
        packet.clear();
        write_record(&mut packet, first + at);
        socket.send(&packet).expect("loopback takes it");
        if at % 100 == 99 {
            let read = || (Daemon::number(&daemon.source("packets"), "packets") > had + at).then_some(());
            let _read = bench.wait("the packets to be read", PATIENCE, read);
        }
    }
}

fn on_disk(bench: &Bench, disk: &Path, mebibytes: u64) -> Finding {
    let ballast = disk.join("somebody-elses");
    std::fs::write(&ballast, vec![0; (mebibytes << 20) as usize / 2]).expect("the disk has room");
    let (mut endpoint, mut packets) = (Endpoint::new(Form::Line), Endpoint::new(Form::Line));
    endpoint.go_away();
    packets.go_away();
    let mut daemon = Builder::native(&config(disk, &endpoint, &packets)).start();
    let mut finding = Finding::default();

    // Full, by a client that waits.
    let mut client = Client::new(daemon.at("app", "tcp"), 0);
    let sender = std::thread::spawn(move || {
        client.send_at_once(mebibytes * RECORDS_PER_MIB + IN_BUFFERS);
        client
    });
    let errors = |daemon: &Daemon| Daemon::number(&daemon.output("copy"), "disk/write_errors");
    let full = bench.wait("the disk to be full", PATIENCE, || (errors(&daemon) > 0).then_some(()));
    finding.promise(full.is_some(), || "the disk was never full: this run shows nothing".into());
    let taken_when_full = copies(&daemon, "copy");
    let waits = !sender.is_finished();
    finding.promise(waits, || "the client was not made to wait".into());
    finding.promise(Daemon::number(&daemon.output("copy"), "dropped") == 0, || {
        "a client that can wait lost records".into()
    });
    // Those that cannot wait are counted.
    send_packets(bench, &daemon, 0, PACKETS);
    let dropped = |daemon: &Daemon| Daemon::number(&daemon.output("cannot_wait"), "dropped");

    // Room, and an endpoint.
    std::fs::remove_file(&ballast).expect("it is ours");
    let more = bench
        .wait("the queue to go on", PATIENCE, || (copies(&daemon, "copy") > taken_when_full).then_some(()));
    finding.promise(more.is_some(), || "the queue took nothing when there was room again".into());
    endpoint.come_back();
    packets.come_back();
    let Some(client) =
        bench.wait("the client", PATIENCE, || sender.is_finished().then_some(())).map(|()| sender.join())
    else {
        finding.promise(false, || "the client still waits although there is room and an endpoint".into());
        return finding;
    };
    let sent = client.expect("it only sends").next;
    send_packets(bench, &daemon, PACKETS, PACKETS);
    let empty = || {
        let row = [daemon.output("copy"), daemon.output("cannot_wait")];
        let waiting: u64 = row.iter().map(|row| Daemon::number(row, "queued")).sum();
        (waiting == 0 && endpoint.oracle.arrived() >= sent).then_some(())
    };
    let drained = bench.wait("the queues to drain", PATIENCE, empty);
    finding.promise(drained.is_some(), || format!("{} of {sent} arrived", endpoint.oracle.arrived()));
    finding.sent = sent + 2 * PACKETS;
    finding.named = dropped(&daemon) + Daemon::number(&daemon.source("packets"), "kernel_dropped");
    let rest = 2 * PACKETS - finding.named.min(2 * PACKETS);
    let _read = bench
        .wait("the packets", Duration::from_secs(10), || (packets.oracle.arrived() >= rest).then_some(()));
    finding.add(&endpoint.oracle.count());
    finding.add(&packets.oracle.count());
    finding.done = format!("{mebibytes} MiB disk, full and freed");
    finding.figure(format!(
        "full after {taken_when_full} records; {} writes failed; of {} packets, which cannot wait, {} were dropped",
        errors(&daemon),
        2 * PACKETS,
        finding.named
    ));
    finding.promise_exact();
    daemon.assert_sums_hold();
    restart_when_full(bench, &mut finding, &mut daemon, &mut endpoint, disk, sent);
    daemon.stop();
    finding
}

/// The daemon is killed on a full disk, starts again on it, and what it had taken arrives.
fn restart_when_full(
    bench: &Bench,
    finding: &mut Finding,
    daemon: &mut Daemon,
    endpoint: &mut Endpoint,
    disk: &Path,
    first: u64,
) {
    endpoint.go_away();
    let had = copies(daemon, "copy");
    let mut client = Client::new(daemon.at("app", "tcp"), first);
    client.send_at_once(1_000);
    let taken = bench.wait("the records", PATIENCE, || (copies(daemon, "copy") == had + 1_000).then_some(()));
    // To the last byte.
    let _full = std::fs::write(disk.join("somebody-elses"), vec![0; 1 << 30]);
    daemon.signal("KILL");
    daemon.wait_exit();
    endpoint.come_back();
    daemon.start_again();
    let all =
        bench.wait("the records", PATIENCE, || (endpoint.oracle.arrived() >= first + 1_000).then_some(()));
    finding.promise(taken.is_some() && all.is_some(), || {
        "what was taken is not there after a restart on a full disk".into()
    });
    finding.figure("killed on the full disk: started again on it, all 1000 records arrived");
    finding.sent += 1_000;
    finding.arrived += endpoint.oracle.arrived().saturating_sub(first);
    // What is counted as more than sent arrived twice: the disk had no room for what had become of it.
    std::fs::remove_file(disk.join("somebody-elses")).expect("it is ours");
}

//! F13: hot restarts, one after the other, under load over TCP and UDP, with many series in the open window.
//!
//! The senders never connect again: their sockets go from process to process. What the kernel drops while nobody reads is
//! counted; the figure is how long that is, for the operator who sizes the receive buffer.

use std::fmt::Write;

use crate::f9::{Ends, Load, account, base};
use crate::finding::{Bench, End, median};
use crate::load::Client;
use crate::support::{Builder, Daemon, wait_for};

/// Lines of the load between two restarts.
const LINES_BETWEEN: u64 = 5_000;

/// Milliseconds in which nobody read, as the new process logs.
fn pause_ms(daemon: &Daemon) -> f64 {
    wait_for("the pause to be logged", || {
        let text = daemon.stderr();
        let logged = text.split("nothing was read for ").nth(1)?;
        logged.split(' ').next()?.parse().ok()
    })
}

pub(crate) fn run(bench: &Bench) -> End {
    let (rounds, series) = bench.pick((2, 1_000), (20, 100_000));
    let ends = Ends::new();
    let mut daemon = Builder::native(&base(&ends, "10s", "64MiB")).start();
    let mut client = Client::new(daemon.at("numbers", "tcp"), 0);
    let mut lines = String::new();
    for number in 0..series {
        writeln!(lines, "app.some.service.endpoint{number}.requests:1|c").expect("a text takes everything");
    }
    client.write(lines.as_bytes());
    daemon.wait_source("numbers", "aggregated", series);
    let load = Load::start(&daemon, &ends);
    let lines_sent = || load.sent.load(std::sync::atomic::Ordering::SeqCst);
    let mut pauses_ms = Vec::new();
    let mut broken = Vec::new();
    for round in 0..rounds {
        let until = lines_sent() + LINES_BETWEEN;
        wait_for("some load", || (lines_sent() >= until).then_some(()));
        let mut new = daemon.successor();
        new.wait_ready();
        let status = daemon.wait_exit();
        if !status.success() {
            broken.push(format!("restart {round}: the old process ended with {status}"));
        }
        pauses_ms.push(pause_ms(&new));
        daemon = new;
        bench.say(|| format!("{round} of {rounds} restarts"));
    }
    let sent = load.stop();
    let mut finding = account(bench, &daemon, &ends, sent);
    finding.broken.extend(broken);
    let accepted =
        ["lines", "numbers"].map(|source| Daemon::number(&daemon.source(source), "connections_accepted"));
    finding.promise(accepted == [1, 2], || format!("connections were made anew: {accepted:?} were accepted"));
    finding.done = format!("{rounds} hot restarts with {series} series");
    let longest = pauses_ms.iter().copied().fold(0.0, f64::max);
    finding.figure(format!("nobody read for {} ms (median), {longest} ms at most", median(pauses_ms)));
    daemon.stop();
    End::Ran(finding)
}

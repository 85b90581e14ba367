//! SIGTERM: the open window is delivered, losses are logged, and the next start goes on where this one ended.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use crate::support::{Builder, FakeGraphite, udp, wait_for};

fn config(to: &str, window: &str, more: &str) -> String {
    format!(
        "{more}\n[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\", \"tcp://127.0.0.1:0\"]\n\
         [transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"{window}\"\n\
         [outputs.carbon]\ntype = \"graphite\"\nfrom = [\"stats\"]\nto = [\"{to}\"]\n\
         min_retry_delay = \"50ms\"\nmax_retry_delay = \"200ms\"\n"
    )
}

#[test]
fn sigterm_in_mid_window_delivers_the_part() {
    let graphite = FakeGraphite::new();
    let mut daemon = Builder::native(&config(&graphite.to(), "1h", "")).start();
    udp(daemon.at("app", "udp")).send(b"hits:5|c").expect("it is there");
    let mut stream = TcpStream::connect(daemon.at("app", "tcp")).expect("it listens");
    stream.write_all(b"hits:50|c\nhits:500|c").expect("it reads");
    daemon.wait_source("app", "aggregated", 2);
    daemon.stop();
    assert_eq!(graphite.total("stats_counts.hits"), 55.0, "the rest of the last line may be on the way");
    let logged = daemon.stderr();
    assert!(logged.contains("stopped") && logged.contains("tail_lost"), "{logged}");
}

#[test]
fn what_was_sent_just_before_sigterm_counts() {
    let graphite = FakeGraphite::new();
    let mut daemon = Builder::native(&config(&graphite.to(), "1h", "")).start();
    let socket = udp(daemon.at("app", "udp"));
    let mut stream = TcpStream::connect(daemon.at("app", "tcp")).expect("it listens");
    stream.write_all(b"hits:1|c\n").expect("it reads");
    daemon.wait_source("app", "aggregated", 1);
    daemon.signal("STOP");
    for _ in 0..100 {
        socket.send(b"hits:1|c").expect("the buffer has room");
        stream.write_all(b"hits:1|c\n").expect("the buffer has room");
    }
    let mut late =
        TcpStream::connect(stream.peer_addr().expect("it is connected")).expect("the kernel accepts");
    late.write_all(b"hits:1000|c\n").expect("the buffer has room");
    daemon.signal("TERM");
    daemon.signal("CONT");
    assert!(daemon.wait_exit().success(), "{}", daemon.stderr());
    assert_eq!(graphite.total("stats_counts.hits"), 1201.0, "{}", daemon.stderr());
}

#[test]
fn sigterm_with_a_dead_graphite_ends_in_time_and_says_what_was_lost() {
    let dead = crate::support::nobody();
    let config = config(&format!("tcp://{dead}"), "1h", "stop_timeout = \"1s\"");
    let mut daemon = Builder::native(&config).start();
    udp(daemon.at("app", "udp")).send(b"hits:5|c").expect("it is there");
    daemon.wait_source("app", "aggregated", 1);
    daemon.stop();
    let logged = daemon.stderr();
    let lost = logged
        .lines()
        .find(|line| line.contains("output `carbon`") && line.contains("not delivered before the stop"));
    assert!(lost.is_some(), "{logged}");
}

#[test]
fn sigterm_with_a_graphite_that_hangs_ends_in_time() {
    let graphite = FakeGraphite::new();
    graphite.behave(crate::support::Manner::Hang);
    let mut daemon = Builder::native(&config(&graphite.to(), "1h", "stop_timeout = \"1s\"")).start();
    let packets = (0..1000).map(|at| {
        (0..30)
            .map(|n| format!("some.rather.long.name.of.a.series.{}:1|c\n", at * 30 + n))
            .collect::<String>()
    });
    crate::support::traffic::send_all(&udp(daemon.at("app", "udp")), packets);
    daemon.wait_source("app", "aggregated", 30_000);
    daemon.stop();
    daemon.wait_logged("not delivered before the stop");
}

#[test]
fn sigterm_under_fire_ends_without_a_mistake() {
    let graphite = FakeGraphite::new();
    let mut daemon = Builder::native(&config(&graphite.to(), "1s", "stop_timeout = \"2s\"")).start();
    let over = Arc::new(AtomicBool::new(false));
    let (to, tcp) = (daemon.at("app", "udp"), daemon.at("app", "tcp"));
    let ended = Arc::clone(&over);
    let datagrams = std::thread::spawn(move || {
        let socket = udp(to);
        while !ended.load(SeqCst) {
            // Refused once the daemon has ended.
            let _sent = socket.send(b"hits:1|c\ntime:3|ms");
        }
    });
    let ended = Arc::clone(&over);
    let lines = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(tcp).expect("it listens");
        let lines = b"hits:1|c\n".repeat(1000);
        while !ended.load(SeqCst) && stream.write_all(&lines).is_ok() {}
    });
    wait_for("a flush", || (graphite.total("stats_counts.hits") > 0.0).then_some(()));
    daemon.stop();
    over.store(true, SeqCst);
    datagrams.join().and(lines.join()).expect("senders only stop");
    let logged = daemon.stderr();
    assert!(!logged.contains("ERROR"), "{logged}");
}

/// The first second of a window of `window_s` seconds that has most of its time before it.
fn wait_for_early_in_a_slot(window_s: u64) {
    wait_for("an early moment of a slot", || {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        (now.as_millis() as u64 % (window_s * 1000) < 500).then_some(())
    });
}

#[test]
fn a_restart_leaves_no_gap_and_no_double_slot() {
    let graphite = FakeGraphite::new();
    let mut daemon = Builder::native(&config(&graphite.to(), "3s", "")).start();
    wait_for_early_in_a_slot(3);
    let mut sent = 0.0;
    for round in 1..=4 {
        let hits = 10_u32.pow(round);
        udp(daemon.at("app", "udp")).send(format!("hits:{hits}|c").as_bytes()).expect("it is there");
        daemon.wait_source("app", "aggregated", 1);
        sent += f64::from(hits);
        daemon.stop();
        assert_eq!(graphite.total("stats_counts.hits"), sent, "round {round}");
        daemon.start_again();
    }
    udp(daemon.at("app", "udp")).send(b"hits:1|c").expect("it is there");
    let before = graphite.of("stats_counts.hits").len();
    wait_for("a whole window", || (graphite.of("stats_counts.hits").len() > before).then_some(()));
    daemon.stop();
    assert_eq!(graphite.total("stats_counts.hits"), sent + 1.0);
    let labels: Vec<u64> =
        graphite.of("stats_counts.statsd.packets_received").iter().map(|point| point.time_s).collect();
    assert!(labels.iter().all(|label| label % 3 == 0), "on the grid: {labels:?}");
    assert!(labels.windows(2).all(|pair| pair[0] < pair[1]), "no slot twice: {labels:?}");
    assert!(labels.windows(2).all(|pair| pair[1] - pair[0] == 3), "no gap: {labels:?}");
}

#[test]
fn sigint_is_as_good_as_sigterm() {
    let graphite = FakeGraphite::new();
    let mut daemon = Builder::native(&config(&graphite.to(), "1h", "")).start();
    udp(daemon.at("app", "udp")).send(b"hits:5|c").expect("it is there");
    daemon.wait_source("app", "aggregated", 1);
    daemon.signal("INT");
    assert!(daemon.wait_exit().success());
    assert_eq!(graphite.total("stats_counts.hits"), 5.0);
}

/// A pipe that nobody reads, in the place of a file: opening it to write waits for ever, as a disk that hangs does.
#[cfg(unix)]
fn hanging(path: &std::path::Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.is_ok_and(|status| status.success()), "there is mkfifo");
}

#[cfg(unix)]
#[test]
fn sigterm_delivers_the_last_window_and_ends_in_time_while_the_data_directory_hangs() {
    let graphite = FakeGraphite::new();
    let mut daemon = Builder::native(&config(&graphite.to(), "1h", "stop_timeout = \"2s\"")).start();
    hanging(&daemon.folder.path().join("staunch-data/last-flush.new"));
    udp(daemon.at("app", "udp")).send(b"hits:5|c").expect("it is there");
    daemon.wait_source("app", "aggregated", 1);
    daemon.stop();
    assert_eq!(graphite.total("stats_counts.hits"), 5.0);
    assert!(
        daemon.stderr().contains("the handover note for the next start was not written in time"),
        "{}",
        daemon.stderr()
    );
}

#[test]
fn a_second_sigterm_ends_at_once_and_says_what_is_lost() {
    let dead = crate::support::nobody();
    let mut daemon = Builder::native(&config(&format!("tcp://{dead}"), "1h", "")).start();
    udp(daemon.at("app", "udp")).send(b"hits:5|c").expect("it is there");
    daemon.wait_source("app", "aggregated", 1);
    daemon.signal("TERM");
    wait_for("the last flush", || {
        (crate::support::Daemon::number(&daemon.output("carbon"), "queued") > 0).then_some(())
    });
    // The first one may come twice.
    std::thread::sleep(Duration::from_millis(300));
    daemon.signal("TERM");
    assert_eq!(daemon.wait_exit().code(), Some(1));
    let log = daemon.stderr();
    let line = log.lines().find(|line| line.contains("caught SIGTERM again")).unwrap_or_default();
    assert!(
        line.contains("records queued in memory are lost") && line.contains("records of output `carbon`"),
        "{log}"
    );
}

/// The daemon's main thread writes this report.
#[cfg(unix)]
#[test]
fn a_stop_that_something_keeps_for_ever_is_ended() {
    let graphite = FakeGraphite::new();
    let toml = config(&graphite.to(), "1h", "stop_timeout = \"100ms\"")
        .replace("window = \"1h\"", "window = \"1h\"\nkey_flush = { interval = \"100ms\", log = \"busy\" }");
    let builder = Builder::native(&toml);
    hanging(&builder.folder().join("busy"));
    let mut daemon = builder.spawn();
    wait_for("the daemon to run", || (!daemon.stderr().is_empty()).then_some(()));
    // Longer than until the first report.
    std::thread::sleep(Duration::from_secs(3));
    daemon.signal("TERM");
    assert_eq!(daemon.wait_exit().code(), Some(1));
    daemon.wait_logged("the stop did not finish");
}

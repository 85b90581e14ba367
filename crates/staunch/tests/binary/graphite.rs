//! Graphite that refuses, hangs, resets and comes back: every flush arrives once and in order, the others never wait.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::support::{Builder, Daemon, FakeGraphite, Manner, Point, udp, wait_for};

/// Two Graphites behind one aggregation of short windows.
fn config(sick: &FakeGraphite, healthy: &FakeGraphite, more: &str) -> String {
    let output = |name: &str, fake: &FakeGraphite, more: &str| {
        format!(
            "[outputs.{name}]\ntype = \"graphite\"\nfrom = [\"stats\"]\nto = [\"{}\"]\n\
             min_retry_delay = \"50ms\"\nmax_retry_delay = \"200ms\"\nwrite_timeout = \"1s\"\n{more}",
            fake.to()
        )
    };
    format!(
        "[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\"]\n\
         [transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"1s\"\n{}{}",
        output("sick", sick, more),
        output("healthy", healthy, "")
    )
}

/// One count a flush: the point that every flush has.
const EACH: &str = "stats_counts.statsd.packets_received";

fn labels(points: &[Point]) -> Vec<u64> {
    points.iter().map(|point| point.time_s).collect()
}

/// Every label once and in order, without a gap. On a machine that stood still a slot may be skipped; the healthy
/// output then skips it as well.
#[track_caller]
fn assert_each_once_in_order(sick: &FakeGraphite, healthy: &FakeGraphite) {
    let (seen, want) = (labels(&sick.of(EACH)), labels(&healthy.of(EACH)));
    assert!(want.windows(2).all(|pair| pair[0] < pair[1]), "{want:?}");
    assert_eq!(seen, want);
}

fn wait_flushes(fake: &FakeGraphite, more: usize) {
    let before = fake.of(EACH).len();
    wait_for("flushes", || (fake.of(EACH).len() >= before + more).then_some(()));
}

/// An outage of some flushes; ends with both outputs at rest and the daemon stopped.
fn outage(
    begin: impl FnOnce(&mut FakeGraphite),
    end: impl FnOnce(&mut FakeGraphite),
) -> (FakeGraphite, Daemon) {
    let (mut sick, healthy) = (FakeGraphite::new(), FakeGraphite::new());
    let mut daemon = Builder::native(&config(&sick, &healthy, "")).start();
    let socket = udp(daemon.at("app", "udp"));
    socket.send(b"hits:1|c").expect("it is there");
    wait_flushes(&sick, 1);
    begin(&mut sick);
    socket.send(b"hits:10|c").expect("it is there");
    wait_flushes(&healthy, 4);
    assert_eq!(Daemon::number(&daemon.output("healthy"), "errors"), 0);
    wait_for("flushes to wait", || (Daemon::number(&daemon.output("sick"), "queued") > 0).then_some(()));
    end(&mut sick);
    wait_for("all of them", || {
        (labels(&sick.of(EACH)).last() >= labels(&healthy.of(EACH)).last()).then_some(())
    });
    socket.send(b"hits:100|c").expect("it is there");
    daemon.wait_source("app", "aggregated", 3);
    daemon.assert_sums_hold();
    daemon.stop();
    assert_each_once_in_order(&sick, &healthy);
    assert_eq!((sick.total("stats_counts.hits"), healthy.total("stats_counts.hits")), (111.0, 111.0));
    (sick, daemon)
}

#[test]
fn graphite_that_refuses_gets_every_flush_after_its_return() {
    let (_, daemon) = outage(FakeGraphite::refuse, FakeGraphite::come_back);
    let logged = daemon.stderr();
    assert_eq!(logged.matches("output `sick`: ").count(), 3, "up, down, back:\n{logged}");
    assert!(logged.contains("is down (") && logged.contains("is back after "), "{logged}");
}

#[test]
fn graphite_that_hangs_gets_every_flush_after_its_return() {
    // What it has not read it has all the same; only what did not fit into the buffers waits. Few points fit, so this
    // one goes away while it hangs: what its kernel took and it never read is lost with it, as with any protocol
    // that has no replies, so nothing but order and the other output is asserted.
    let (mut sick, healthy) = (FakeGraphite::new(), FakeGraphite::new());
    let mut daemon = Builder::native(&config(&sick, &healthy, "")).start();
    wait_flushes(&sick, 1);
    sick.behave(Manner::Hang);
    wait_flushes(&healthy, 3);
    assert_eq!(Daemon::number(&daemon.output("healthy"), "errors"), 0);
    sick.behave(Manner::Accept);
    wait_for("all of them", || {
        (labels(&sick.of(EACH)).last() >= labels(&healthy.of(EACH)).last()).then_some(())
    });
    daemon.assert_sums_hold();
    daemon.stop();
    assert_each_once_in_order(&sick, &healthy);
    sick.refuse();
}

#[test]
fn a_large_flush_into_a_graphite_that_hangs_delays_nobody() {
    let (sick, healthy) = (FakeGraphite::new(), FakeGraphite::new());
    let mut daemon = Builder::native(&config(&sick, &healthy, "")).start();
    let socket = udp(daemon.at("app", "udp"));
    wait_flushes(&sick, 1);
    sick.behave(Manner::Hang);
    // More with each flush than two sockets' buffers have left: 15,000 series of two lines.
    let packets = (0..500).map(|at| {
        (0..30)
            .map(|n| format!("some.rather.long.name.of.a.series.{}:1|c\n", at * 30 + n))
            .collect::<String>()
    });
    let sent = crate::support::traffic::send_all(&socket, packets);
    assert_eq!(sent, 500);
    daemon.wait_source("app", "aggregated", 15_000);
    wait_for("the endpoint to be down", || (daemon.output("sick")["state"] == "down").then_some(()));
    wait_flushes(&healthy, 3);
    assert!(Daemon::number(&daemon.output("sick"), "queued") > 0, "all this time it took nothing");
    sick.behave(Manner::Accept);
    wait_for("all of them", || (Daemon::number(&daemon.output("sick"), "queued") == 0).then_some(()));
    daemon.stop();
    daemon_delivered_all(&sick, &healthy);
}

/// Nothing is missing; what was on the way when a connection broke may come twice. The fake reads connections that hung
/// side by side, so that one may be read behind its successor.
#[track_caller]
fn daemon_delivered_all(sick: &FakeGraphite, healthy: &FakeGraphite) {
    let seen: BTreeSet<u64> = labels(&sick.of(EACH)).into_iter().collect();
    assert_eq!(Vec::from_iter(seen), labels(&healthy.of(EACH)));
}

#[test]
fn graphite_that_resets_in_mid_flush_loses_nothing() {
    let (sick, healthy) = (FakeGraphite::new(), FakeGraphite::new());
    let mut daemon = Builder::native(&config(&sick, &healthy, "")).start();
    let socket = udp(daemon.at("app", "udp"));
    sick.behave(Manner::ResetAfter(700));
    for round in 0..4 {
        socket.send(format!("hits:{}|c", 10_u32.pow(round)).as_bytes()).expect("it is there");
        wait_flushes(&healthy, 1);
    }
    sick.behave(Manner::Accept);
    wait_for("all of them", || {
        (labels(&sick.of(EACH)).last() >= labels(&healthy.of(EACH)).last()).then_some(())
    });
    daemon.assert_sums_hold();
    daemon.stop();
    assert!(sick.connections() > 1, "it did reset");
    // A reset throws away what the peer's kernel had taken and its process not read; that counts as delivered.
    let seen = labels(&sick.of(EACH));
    assert!(seen.windows(2).all(|pair| pair[0] <= pair[1]), "the order stays: {seen:?}");
    assert_eq!(healthy.total("stats_counts.hits"), 1111.0);
}

#[test]
fn graphite_that_closes_in_mid_flush_gets_the_rest_on_a_new_connection() {
    let (sick, healthy) = (FakeGraphite::new(), FakeGraphite::new());
    let mut daemon = Builder::native(&config(&sick, &healthy, "")).start();
    wait_flushes(&sick, 1);
    sick.behave(Manner::CloseAfter(300));
    wait_flushes(&healthy, 3);
    sick.behave(Manner::Accept);
    wait_flushes(&sick, 1);
    daemon.assert_sums_hold();
    daemon.stop();
    assert!(sick.connections() > 1, "it did close");
}

#[test]
fn a_full_queue_drops_the_oldest_and_counts_each() {
    let (mut sick, healthy) = (FakeGraphite::new(), FakeGraphite::new());
    let queue = "queue = { max_bytes = \"256KiB\", when_full = \"drop_oldest\" }\n";
    let mut daemon = Builder::native(&config(&sick, &healthy, queue)).start();
    let socket = udp(daemon.at("app", "udp"));
    wait_flushes(&sick, 1);
    sick.refuse();
    let packets =
        (0..100).map(|at| (0..20).map(|n| format!("series.{}:1|c\n", at * 20 + n)).collect::<String>());
    crate::support::traffic::send_all(&socket, packets);
    wait_flushes(&healthy, 3);
    wait_for("something to be dropped", || {
        (Daemon::number(&daemon.output("sick"), "losses/dropped/queue_full") > 0).then_some(())
    });
    sick.come_back();
    wait_for("the queue to be empty", || (daemon.output("sick")["state"] == "up").then_some(()));
    wait_flushes(&sick, 1);
    std::thread::sleep(Duration::from_millis(100));
    daemon.assert_sums_hold();
    let row = daemon.output("sick");
    daemon.stop();
    let (dropped, delivered) = (Daemon::number(&row, "dropped"), Daemon::number(&row, "delivered"));
    assert_eq!(dropped, Daemon::number(&row, "losses/dropped/queue_full"), "{row}");
    // What both outputs were given is the same; what the sick one did not get is what was dropped, point by point.
    let last = labels(&sick.of(EACH)).last().copied().expect("a flush");
    let count =
        |fake: &FakeGraphite| fake.points().iter().filter(|point| point.time_s <= last).count() as u64;
    assert_eq!(count(&healthy) - count(&sick), dropped, "delivered {delivered}");
    let logged = daemon.stderr();
    assert_eq!(logged.matches("lost as `queue_full` (").count(), 1, "logged once, then counted:\n{logged}");
    let last_words = format!("output `sick`: {dropped} records lost as `queue_full` since the start");
    assert!(logged.contains(&last_words), "{last_words}:\n{logged}");
}

/// A flush of many series over several connections, with an outage in the middle: all of it once for each label, and the
/// points of each series in order whatever connection they took.
#[test]
fn several_connections_share_a_queue_and_keep_the_order_of_each_series() {
    for kind in ["memory", "disk"] {
        let (mut sick, healthy) = (FakeGraphite::new(), FakeGraphite::new());
        let more = format!("connections = 4\nqueue = {{ kind = \"{kind}\" }}\n");
        let folder = tempfile::tempdir().expect("a folder");
        let config = format!("data_dir = {:?}\n{}", folder.path(), config(&sick, &healthy, &more));
        let mut daemon = Builder::native(&config).start();
        let socket = udp(daemon.at("app", "udp"));
        let send = |value: u32| {
            for packet in 0..20 {
                let lines: Vec<String> =
                    (0..10).map(|line| format!("of.{}:{value}|c", packet * 10 + line)).collect();
                socket.send(lines.join("\n").as_bytes()).expect("it is there");
            }
        };
        send(1);
        wait_flushes(&sick, 1);
        assert_eq!(sick.connections(), 4, "{kind}");
        sick.refuse();
        send(10);
        wait_flushes(&healthy, 2);
        sick.come_back();
        send(100);
        daemon.wait_source("app", "aggregated", 600);
        // What waits on disk for an endpoint that has just come back would stay there at a stop.
        wait_for("all connections to be back", || {
            let points = sick.points();
            let counts = points.iter().filter(|point| point.name.starts_with("stats_counts.of."));
            (counts.map(|point| point.value).sum::<f64>() == 200.0 * 111.0).then_some(())
        });
        daemon.assert_sums_hold();
        daemon.stop();
        let by_series = |fake: &FakeGraphite| {
            let mut series: BTreeMap<String, Vec<(u64, u64)>> = BTreeMap::new();
            for point in fake.points().into_iter().filter(|point| point.name.starts_with("stats_counts.of."))
            {
                series.entry(point.name).or_default().push((point.time_s, point.value as u64));
            }
            series
        };
        assert_eq!(by_series(&sick), by_series(&healthy), "{kind}");
    }
}

#[test]
fn a_reload_changes_the_number_of_connections_to_a_queue_on_disk() {
    let (sick, healthy) = (FakeGraphite::new(), FakeGraphite::new());
    let folder = tempfile::tempdir().expect("a folder");
    let with = |connections: usize| {
        let more = format!("connections = {connections}\nqueue = {{ kind = \"disk\" }}\n");
        format!("data_dir = {:?}\n{}", folder.path(), config(&sick, &healthy, &more))
    };
    let mut daemon = Builder::native(&with(1)).start();
    for (connections, in_all) in [(1, 1), (4, 5), (2, 7)] {
        if in_all > 1 {
            daemon.reload(&with(connections), "done");
        }
        wait_for("so many connections", || (sick.connections() == in_all).then_some(()));
    }
    daemon.stop();
}

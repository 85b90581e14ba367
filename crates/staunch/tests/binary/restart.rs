//! What outlives `kill -9` and SIGTERM: the open window, gauges, idle series, and no window twice.

use std::path::PathBuf;

use serde_json::Value;

use crate::support::{Builder, Daemon, FakeGraphite, udp, wait_for};

fn config(graphite: &FakeGraphite, window: &str, more: &str) -> String {
    format!(
        "[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\"]\n\
         [transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"{window}\"\n\
         checkpoint = \"100ms\"\n{more}\n\
         [outputs.carbon]\ntype = \"graphite\"\nfrom = [\"stats\"]\nto = [\"{}\"]\n\
         min_retry_delay = \"50ms\"\nmax_retry_delay = \"200ms\"\n",
        graphite.to()
    )
}

impl Daemon {
    /// Figures of the checkpoints of `stats`.
    fn checkpoint(&self) -> Value {
        let page = self.json("/api/v1/accounts");
        let rows = page["checkpoints"].as_array().expect("a list");
        rows.iter().find(|row| row["transform"] == "stats").expect("it has checkpoints").clone()
    }

    /// Waits until a checkpoint has been written that holds everything that was aggregated before the call: the second
    /// one to be finished from now on was begun after it.
    #[track_caller]
    fn wait_checkpoint(&self, socket: &std::net::UdpSocket) {
        let written = || self.checkpoint()["written"].as_u64().expect("a number");
        let before = written();
        wait_for("a checkpoint", || {
            // One that would hold nothing new is not written.
            socket.send(b"tick:1|g").expect("it is there");
            (written() >= before + 2).then_some(())
        });
    }

    fn kill_and_start_again(&mut self) {
        self.signal("KILL");
        self.wait_exit();
        self.start_again();
    }

    fn state_files(&self) -> Vec<PathBuf> {
        let folder = self.folder.path().join("staunch-data/state");
        let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
            .expect("it is there")
            .map(|entry| entry.expect("readable").path())
            .collect();
        paths.sort();
        paths
    }
}

const TRAFFIC: &[u8] = b"hits:1|c\nhits:2|c|@0.5\nload:70|g\nusers:a|s\nusers:b|s\ntime:5|ms\ntime:7|ms|@0.5";

#[test]
fn kill_9_takes_at_most_what_came_after_the_last_checkpoint() {
    let graphite = FakeGraphite::new();
    let mut daemon = Builder::native(&config(&graphite, "1h", "")).start();
    let mut socket = udp(daemon.at("app", "udp"));
    for _round in 0..3 {
        socket.send(TRAFFIC).expect("it is there");
        daemon.wait_source("app", "aggregated", 7);
        daemon.wait_checkpoint(&socket);
        daemon.kill_and_start_again();
        daemon.wait_logged("series of `stats` from");
        assert!(daemon.checkpoint()["restored_series"].as_u64().is_some_and(|series| series >= 4));
        socket = udp(daemon.at("app", "udp"));
    }
    socket.send(b"load:+7|g").expect("it is there");
    daemon.wait_source("app", "aggregated", 1);
    daemon.stop();
    let last = |name: &str| graphite.of(name).last().map(|point| point.value);
    assert_eq!(last("stats_counts.hits"), Some(15.0), "exactly, with weights");
    assert_eq!(graphite.of("stats_counts.hits").len(), 1, "in one window");
    assert_eq!(last("stats.gauges.load"), Some(77.0));
    assert_eq!(last("stats.sets.users.count"), Some(2.0));
    assert_eq!(last("stats.timers.time.sum"), Some(3.0 * 5.0 + 3.0 * 2.0 * 7.0));
    assert_eq!(last("stats.timers.time.count"), Some(9.0));
}

#[test]
fn a_window_that_was_flushed_is_not_counted_again_and_gauges_stay() {
    let graphite = FakeGraphite::new();
    let mut daemon = Builder::native(&config(&graphite, "1s", "")).start();
    let mut sent = 0.0;
    for _round in 1..=2 {
        let socket = udp(daemon.at("app", "udp"));
        socket.send(b"hits:10|c\nload:5|g").expect("it is there");
        sent += 10.0;
        daemon.wait_source("app", "aggregated", 2);
        daemon.wait_checkpoint(&socket);
        wait_for("the flush", || (graphite.total("stats_counts.hits") >= sent).then_some(()));
        let label = graphite
            .of("stats_counts.hits")
            .iter()
            .rfind(|point| point.value > 0.0)
            .map(|point| point.time_s);
        let number = daemon.folder.path().join("staunch-data/last-flush");
        wait_for("its label", || {
            let text = std::fs::read_to_string(&number).ok()?;
            let found: u64 = text.split_once('/')?.0.parse().ok()?;
            (Some(found) >= label).then_some(())
        });
        daemon.kill_and_start_again();
        daemon.wait_logged("series of `stats` from");
    }
    udp(daemon.at("app", "udp")).send(b"load:+1|g").expect("it is there");
    daemon.wait_source("app", "aggregated", 1);
    daemon.stop();
    assert_eq!(graphite.total("stats_counts.hits"), sent, "{}", daemon.stderr());
    assert_eq!(graphite.of("stats.gauges.load").last().map(|point| point.value), Some(6.0));
}

/// The slot of a grid of 2 s that is now.
fn slot() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    now.as_secs() / 2
}

/// A point that every flush has.
const EACH: &str = "stats_counts.statsd.packets_received";

/// Sends 10 hits, and kills the daemon when they are in a checkpoint. Gives the label of their window; none when that
/// ended too soon, as it may on a busy machine.
fn killed_in_mid_window(daemon: &mut Daemon, graphite: &FakeGraphite) -> Option<u64> {
    let begun = slot();
    // Not by the clock alone: the daemon may come to close its window after that, and what comes before it has is part of it.
    let is_flushed = || graphite.of(EACH).iter().any(|point| point.time_s >= 2 * (begun + 1));
    wait_for("the window before to be flushed", || is_flushed().then_some(()));
    let socket = udp(daemon.at("app", "udp"));
    socket.send(b"hits:10|c\nload:5|g").expect("it is there");
    daemon.wait_source("app", "aggregated", 2);
    daemon.wait_checkpoint(&socket);
    daemon.signal("KILL");
    daemon.wait_exit();
    (slot() == begun + 1).then_some(2 * (begun + 2))
}

#[test]
fn a_window_that_ended_while_no_daemon_ran_is_emitted_under_its_own_label() {
    let (graphite, mut daemon, label) = std::iter::repeat_with(|| {
        let graphite = FakeGraphite::new();
        let mut daemon = Builder::native(&config(&graphite, "2s", "")).start();
        let label = killed_in_mid_window(&mut daemon, &graphite)?;
        Some((graphite, daemon, label))
    })
    .find_map(|killed| killed)
    .expect("some time the machine has time");
    wait_for("the window to have ended", || (2 * slot() >= label).then_some(()));
    daemon.start_again();
    udp(daemon.at("app", "udp")).send(b"hits:7|c\nload:+1|g").expect("it is there");
    daemon.wait_source("app", "aggregated", 2);
    daemon.stop();
    daemon.wait_logged(&format!("is flushed now, labelled {label}"));
    let points = |name: &str| -> Vec<(u64, f64)> {
        graphite.of(name).iter().map(|point| (point.time_s, point.value)).collect()
    };
    let hits = points("stats_counts.hits");
    assert!(hits.contains(&(label, 10.0)), "{label}: {hits:?}");
    assert_eq!(hits.iter().map(|(_, value)| value).sum::<f64>(), 17.0, "{hits:?}");
    assert!(points("stats.gauges.load").contains(&(label, 5.0)));
    assert_eq!(points("stats.gauges.load").last().map(|(_, value)| *value), Some(6.0));
}

#[test]
fn after_sigterm_gauges_and_idle_series_go_on() {
    let graphite = FakeGraphite::new();
    let mut daemon = Builder::native(&config(&graphite, "1h", "")).start();
    udp(daemon.at("app", "udp")).send(TRAFFIC).expect("it is there");
    daemon.wait_source("app", "aggregated", 7);
    daemon.stop();
    let files = daemon.state_files();
    assert!(files.iter().all(|path| path.extension().is_some_and(|it| it == "checkpoint")), "{files:?}");
    daemon.start_again();
    udp(daemon.at("app", "udp")).send(b"load:+7|g").expect("it is there");
    daemon.wait_source("app", "aggregated", 1);
    daemon.stop();
    let values = |name: &str| graphite.of(name).iter().map(|point| point.value).collect::<Vec<_>>();
    assert_eq!(values("stats_counts.hits"), [5.0, 0.0], "nothing twice");
    assert_eq!(values("stats.gauges.load"), [70.0, 77.0]);
    assert_eq!(values("stats.timers.time.count"), [3.0, 0.0]);
}

#[test]
fn damaged_checkpoints_are_logged_and_never_fatal() {
    let graphite = FakeGraphite::new();
    let mut daemon = Builder::native(&config(&graphite, "1h", "")).start();
    let socket = udp(daemon.at("app", "udp"));
    socket.send(TRAFFIC).expect("it is there");
    daemon.wait_source("app", "aggregated", 7);
    daemon.wait_checkpoint(&socket);
    daemon.wait_checkpoint(&socket);
    daemon.signal("KILL");
    daemon.wait_exit();
    let files = daemon.state_files();
    let whole: Vec<_> =
        files.iter().filter(|path| path.extension().is_some_and(|it| it == "checkpoint")).collect();
    assert_eq!(whole.len(), 2, "two generations: {files:?}");
    // A bit in a series of each; then one that is cut, and one that is none of ours.
    for path in &whole {
        let mut bytes = std::fs::read(path).expect("readable");
        bytes[150] ^= 1;
        std::fs::write(path, bytes).expect("writable");
    }
    daemon.start_again();
    daemon.wait_logged("are damaged and were left out");
    assert!(daemon.checkpoint()["restored_damaged"].as_u64().is_some_and(|damaged| damaged > 0));
    daemon.signal("KILL");
    daemon.wait_exit();
    std::fs::write(whole[0], "hello").expect("writable");
    std::fs::write(whole[1], b"STNAGG\r\n\x01\0\0\0").expect("writable");
    daemon.start_again();
    daemon.wait_logged_times("cannot use the checkpoint", 2);
    assert_eq!(daemon.checkpoint()["unreadable"], 2);
    let socket = udp(daemon.at("app", "udp"));
    socket.send(b"hits:4|c").expect("it is there");
    daemon.wait_source("app", "aggregated", 1);
    daemon.wait_checkpoint(&socket);
    daemon.stop();
    assert_eq!(graphite.total("stats_counts.hits"), 4.0);
}

#[test]
fn checkpoints_that_cannot_be_written_change_nothing_else_and_off_leaves_nothing() {
    let graphite = FakeGraphite::new();
    let builder = Builder::native(&config(&graphite, "1h", ""));
    std::fs::create_dir(builder.folder().join("staunch-data")).expect("a folder");
    let state = builder.folder().join("staunch-data/state");
    std::fs::write(&state, "no folder").expect("a file in its place");
    let mut daemon = builder.start();
    let socket = udp(daemon.at("app", "udp"));
    socket.send(b"hits:4|c").expect("it is there");
    wait_for("three failures", || {
        socket.send(b"tick:1|g").expect("it is there");
        (daemon.checkpoint()["failed"].as_u64()? >= 3).then_some(())
    });
    daemon.wait_logged_times("cannot write a checkpoint", 1);
    std::fs::remove_file(&state).expect("it was there");
    daemon.wait_checkpoint(&socket);
    wait_for("a word of it", || daemon.stderr().contains("can be written again").then_some(()));
    daemon.reload(&config(&graphite, "1h", "").replace("\"100ms\"", "\"off\""), "done");
    wait_for("the files to go", || daemon.state_files().is_empty().then_some(()));
    let none = || daemon.json("/api/v1/accounts")["checkpoints"] == serde_json::json!([]);
    wait_for("the account to have none", || none().then_some(()));
    daemon.stop();
    assert_eq!(graphite.total("stats_counts.hits"), 4.0);
    assert!(daemon.state_files().is_empty());
}

#[test]
fn a_data_directory_that_another_has_means_no_checkpoints_and_no_more() {
    let graphite = FakeGraphite::new();
    let mut first = Builder::native(&config(&graphite, "1h", "")).start();
    let data_dir = first.folder.path().join("staunch-data");
    let toml = format!("data_dir = {data_dir:?}\n{}", config(&graphite, "1h", ""));
    let mut second = Builder::native(&toml).start();
    second.wait_logged("there are no checkpoints");
    assert_eq!(second.json("/api/v1/accounts")["checkpoints"], serde_json::json!([]));
    udp(second.at("app", "udp")).send(b"hits:4|c").expect("it is there");
    second.wait_source("app", "aggregated", 1);
    second.stop();
    assert_eq!(graphite.total("stats_counts.hits"), 4.0);
    assert!(!data_dir.join("last-flush").exists(), "the one that has the directory leaves its own");
    first.stop();
    assert!(data_dir.join("last-flush").exists());
}

#[test]
fn labels_are_noted_beside_the_checkpoints_that_a_reload_has_begun() {
    let graphite = FakeGraphite::new();
    let elsewhere = tempfile::tempdir().expect("a folder");
    let toml = config(&graphite, "1s", "");
    let mut daemon = Builder::native(&toml.replace("\"100ms\"", "\"off\"")).start();
    daemon.reload(&format!("data_dir = {:?}\n{toml}", elsewhere.path()), "done");
    let noted = || std::fs::read_to_string(elsewhere.path().join("last-flush")).ok();
    let text = wait_for("a label", noted);
    assert!(text.lines().any(|line| line.ends_with(" stats")), "{text}");
    wait_for("a checkpoint beside it", || elsewhere.path().join("state").is_dir().then_some(()));
    daemon.stop();
}

#[test]
fn an_aggregation_that_gets_an_earlier_name_back_uses_no_label_again() {
    for (more, hot) in [("off", false), ("100ms", false), ("off", true), ("100ms", true)] {
        let graphite = FakeGraphite::new();
        let with = |name: &str| {
            let config = config(&graphite, "1h", "").replace("100ms\"\n\n", &format!("{more}\"\n\n"));
            config
                .replace("transforms.stats", &format!("transforms.{name}"))
                .replace("\"stats\"", &format!("\"{name}\""))
        };
        let mut daemon = Builder::native(&with("first")).start();
        for (number, next) in [(1, Some("second")), (2, Some("first")), (3, Some("second")), (4, None)] {
            udp(daemon.at("app", "udp")).send(b"hits:1|c").expect("it is there");
            daemon.wait_source("app", "aggregated", if hot { number as u64 } else { 1 });
            match next {
                Some(name) if hot => {
                    daemon.rewrite(&with(name));
                    let mut successor = daemon.successor();
                    successor.wait_ready();
                    assert!(daemon.wait_exit().success(), "{}", daemon.stderr());
                    daemon = successor;
                }
                Some(name) => {
                    daemon.stop();
                    daemon.rewrite(&with(name));
                    daemon.start_again();
                }
                None => daemon.stop(),
            }
            wait_for("the last window", || (graphite.of("stats_counts.hits").len() == number).then_some(()));
        }
        let points = graphite.of("stats_counts.hits");
        let labels: Vec<u64> = points.iter().map(|point| point.time_s).collect();
        assert!(labels.is_sorted_by(|one, next| one < next), "checkpoint {more}, hot {hot}: {labels:?}");
        assert!(points.iter().all(|point| point.value == 1.0), "{points:?}");
    }
}

//! Hot restarts that come to nothing: the old process goes on with everything, as if nobody had asked. And what a hot
//! restart that succeeds ends: it is named.

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;

use crate::acks::Client;
use crate::disk_queue::SmallDisk;
use crate::support::{Builder, Daemon, FakeGraphite, http, udp, wait_for};

/// A pipe that nobody reads: opening it to write waits for ever, so that an output to it does not stop.
struct Pipe {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Pipe {
    fn new() -> Pipe {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&path).status().expect("there is mkfifo").success());
        Pipe { _folder: folder, path }
    }

    /// An output to it, beside the others of `toml`.
    fn with(&self, toml: &str, from: &str) -> String {
        let path = self.path.display();
        format!("{toml}[outputs.stuck]\ntype = \"graphite_file\"\nfrom = [\"{from}\"]\npath = \"{path}\"\n")
    }

    /// Somebody reads it from now on.
    fn read(&self) {
        let path = self.path.clone();
        // It ends with the last writer, or with the tests.
        std::thread::spawn(move || File::open(path).and_then(|mut pipe| pipe.read_to_end(&mut Vec::new())));
    }
}

fn config(to: &str, stats: &str, checkpoint: &str) -> String {
    format!(
        "stop_timeout = \"2s\"\n\
         [sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\", \"tcp://127.0.0.1:0\"]\n\
         [transforms.{stats}]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"1h\"\ncheckpoint = \"{checkpoint}\"\n\
         [outputs.carbon]\ntype = \"graphite\"\nfrom = [\"{stats}\"]\nto = [\"{to}\"]\n"
    )
}

/// A successor that is refused, for this reason.
#[track_caller]
fn refused(daemon: &Daemon, why: &str) {
    let mut new = daemon.successor();
    let status = new.wait_exit();
    assert!(
        !status.success() && new.stderr().contains(why),
        "{status}: {}\n{}",
        new.stderr(),
        daemon.stderr()
    );
    wait_for("the old one to go on", || daemon.stderr().contains("; continuing").then_some(()));
}

#[test]
fn checkpoints_go_on_with_all_that_came_before() {
    let (graphite, pipe) = (FakeGraphite::new(), Pipe::new());
    let mut daemon = Builder::native(&pipe.with(&config(&graphite.to(), "stats", "3s"), "stats")).start();
    let socket = udp(daemon.at("app", "udp"));
    let written =
        |daemon: &Daemon| Daemon::number(&daemon.json("/api/v1/accounts")["checkpoints"][0], "written");
    socket.send(b"a:5|c").expect("it has the port");
    daemon.wait_source("app", "aggregated", 1);
    let before = written(&daemon);
    wait_for("a checkpoint", || (written(&daemon) > before).then_some(()));
    socket.send(b"b:100|c").expect("it has the port");
    daemon.wait_source("app", "aggregated", 2);
    let before = written(&daemon);
    refused(&daemon, "did not stop in time");
    wait_for("a checkpoint of what came before it", || (written(&daemon) > before).then_some(()));
    daemon.signal("KILL");
    daemon.wait_exit();
    daemon.start_again();
    pipe.read();
    daemon.stop();
    assert_eq!(graphite.total("stats_counts.b"), 100.0, "{}", daemon.stderr());
}

#[test]
fn connections_of_places_that_the_successor_lacks_go_on() {
    let (graphite, pipe) = (FakeGraphite::new(), Pipe::new());
    let kept = config(&graphite.to(), "stats", "off");
    let gone = "[sources.gone]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
                [outputs.copies]\ntype = \"tcp\"\nfrom = [\"gone\"]\nto = [\"tcp://127.0.0.1:9\"]\n";
    let mut daemon = Builder::native(&pipe.with(&format!("{kept}{gone}"), "stats")).start();
    let mut stream = TcpStream::connect(daemon.at("gone", "tcp")).expect("it listens");
    stream.write_all(b"hits:1|c\nhits:").expect("it reads");
    daemon.wait_source("gone", "received", 1);
    daemon.rewrite(&pipe.with(&kept, "stats"));
    refused(&daemon, "did not stop in time");
    stream.write_all(b"1|c\n").expect("its connection goes on");
    daemon.wait_source("gone", "received", 2);
    let row = daemon.source("gone");
    assert_eq!(Daemon::number(&row, "routed"), 2, "{row}");
    pipe.read();
    daemon.stop();
}

#[test]
fn aggregations_that_the_successor_lacks_go_on_in_their_window() {
    let (graphite, pipe) = (FakeGraphite::new(), Pipe::new());
    let mut daemon = Builder::native(&pipe.with(&config(&graphite.to(), "stats", "off"), "stats")).start();
    let socket = udp(daemon.at("app", "udp"));
    socket.send(b"hits:1|c").expect("it has the port");
    daemon.wait_source("app", "aggregated", 1);
    daemon.rewrite(&pipe.with(&config(&graphite.to(), "renamed", "off"), "renamed"));
    refused(&daemon, "did not stop in time");
    socket.send(b"hits:1|c").expect("it has the port");
    daemon.wait_source("app", "aggregated", 2);
    pipe.read();
    daemon.stop();
    let points: Vec<f64> = graphite.of("stats_counts.hits").iter().map(|point| point.value).collect();
    assert_eq!(points, [2.0], "{}", daemon.stderr());
}

#[test]
fn what_only_the_old_one_had_is_flushed_when_the_successor_goes_on() {
    for queue in ["memory", "disk"] {
        let graphite = FakeGraphite::new();
        let with = |stats| {
            let queue = format!("queue = {{ kind = \"{queue}\" }}\n");
            config(&graphite.to(), stats, "off") + &queue
        };
        let mut daemon = Builder::native(&with("stats")).start();
        let socket = udp(daemon.at("app", "udp"));
        socket.send(b"hits:1|c").expect("it has the port");
        daemon.wait_source("app", "aggregated", 1);
        daemon.rewrite(&with("renamed"));
        let mut new = daemon.successor();
        new.wait_ready();
        assert!(daemon.wait_exit().success(), "{}", daemon.stderr());
        wait_for("the last flush", || (graphite.total("stats_counts.hits") == 1.0).then_some(()));
        new.assert_sums_hold();
        new.stop();
    }
}

#[test]
fn records_of_outputs_that_the_successor_lacks_are_named_when_they_are_lost() {
    let (graphite, mut away) = (FakeGraphite::new(), FakeGraphite::new());
    away.refuse();
    let output = |name: &str, to: &str| {
        format!("[outputs.{name}]\ntype = \"tcp\"\nfrom = [\"app\"]\nto = [\"{to}\"]\n")
    };
    let kept =
        "stop_timeout = \"500ms\"\n[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n"
            .to_owned()
            + &output("kept", &graphite.to());
    let mut daemon = Builder::native(&(kept.clone() + &output("gone", &away.to()))).start();
    let mut stream = TcpStream::connect(daemon.at("app", "tcp")).expect("it listens");
    stream.write_all(&b"hits:1|c\n".repeat(1000)).expect("it reads");
    daemon.wait_output("gone", "queued", 1000);
    daemon.wait_output("kept", "delivered", 1000);
    daemon.rewrite(&kept);
    let mut new = daemon.successor();
    new.wait_ready();
    assert!(daemon.wait_exit().success(), "{}", daemon.stderr());
    let log = daemon.stderr();
    assert!(log.contains("output `gone`: 1000 records lost as `stopped`"), "{log}");
    assert!(!log.contains("output `kept`: 1"), "{log}");
    new.stop();
}

#[test]
fn a_note_that_the_disk_does_not_take_refuses_the_successor() {
    let graphite = FakeGraphite::new();
    let toml = config(&graphite.to(), "stats", "1s").replace("1h", "300ms");
    let mut daemon = Builder::native(&toml).start();
    let folder = daemon.folder.path().join("staunch-data");
    wait_for("the first note", || folder.join("last-flush").exists().then_some(()));
    let half = folder.join("last-flush.new");
    wait_for("a moment between two notes", || {
        Command::new("mkfifo").arg(&half).status().is_ok_and(|made| made.success()).then_some(())
    });
    refused(&daemon, "too busy to record the last flush");
    let socket = udp(daemon.at("app", "udp"));
    socket.send(b"hits:1|c").expect("it has the port");
    daemon.wait_source("app", "aggregated", 1);
    // The disk is well again.
    let mut reader = File::open(&half).expect("somebody writes to it");
    std::fs::remove_file(&half).expect("it was there");
    std::thread::spawn(move || reader.read_to_end(&mut Vec::new()));
    let mut new = daemon.successor();
    new.wait_ready();
    assert!(daemon.wait_exit().success(), "{}", daemon.stderr());
    new.stop();
    assert_eq!(graphite.total("stats_counts.hits"), 1.0, "{}", new.stderr());
}

#[test]
fn a_queue_on_disk_that_cannot_be_opened_refuses_the_successor() {
    let mut graphite = FakeGraphite::new();
    graphite.refuse();
    let toml = format!(
        "stop_timeout = \"2s\"\n\
         [sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\nack_when = \"safe\"\n\
         [outputs.copy]\ntype = \"tcp\"\nfrom = [\"app\"]\nto = [\"{}\"]\nmin_retry_delay = \"20ms\"\n\
         max_retry_delay = \"100ms\"\nqueue = {{ kind = \"disk\" }}\n",
        graphite.to()
    );
    let mut daemon = Builder::native(&toml).start();
    let mut client = Client::connect(daemon.at("app", "tcp"));
    client.send("a:1|c\n");
    client.wait_reply("ack 1");
    let queues = daemon.folder.path().join("staunch-data/queues");
    std::fs::rename(queues.join("copy"), queues.join("elsewhere")).expect("it is there");
    std::fs::write(queues.join("copy"), "").expect("the folder is ours");
    refused(&daemon, "the queue of output `copy` cannot be handed over");
    assert_eq!(Daemon::number(&daemon.output("copy"), "copies"), 1, "{}", daemon.output("copy"));
    std::fs::remove_file(queues.join("copy")).expect("it was there");
    std::fs::rename(queues.join("elsewhere"), queues.join("copy")).expect("it is there");
    client.send("b:1|c\n");
    client.wait_reply("ack 2");
    graphite.come_back();
    daemon.wait_output("copy", "delivered", 2);
    daemon.stop();
}

#[test]
fn a_queue_whose_folder_is_away_is_not_handed_over() {
    let toml = format!(
        "[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\nack_when = \"safe\"\n\
         [outputs.copy]\ntype = \"tcp\"\nfrom = [\"app\"]\nto = [\"tcp://{}\"]\nqueue = {{ kind = \"disk\" }}\n",
        crate::support::nobody()
    );
    let mut daemon = Builder::native(&toml).start();
    let mut client = Client::connect(daemon.at("app", "tcp"));
    client.send("a:1|c\nb:1|c\n");
    client.wait_reply("ack 2");
    let queues = daemon.folder.path().join("staunch-data/queues");
    let away = daemon.folder.path().join("away");
    std::fs::rename(&queues, &away).expect("it is there");
    refused(&daemon, "the queue of output `copy` cannot be handed over");
    std::fs::rename(&away, &queues).expect("it is there");
    let mut new = daemon.successor();
    new.wait_ready();
    assert!(daemon.wait_exit().success(), "{}", daemon.stderr());
    new.wait_output("copy", "queued", 2);
    new.stop();
}

#[test]
fn a_queue_whose_files_are_deleted_is_not_handed_over_until_its_records_are_delivered() {
    let mut graphite = FakeGraphite::new();
    graphite.refuse();
    let toml = format!(
        "[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\nack_when = \"safe\"\n\
         [outputs.copy]\ntype = \"tcp\"\nfrom = [\"app\"]\nto = [\"{}\"]\nmin_retry_delay = \"20ms\"\n\
         max_retry_delay = \"100ms\"\nqueue = {{ kind = \"disk\" }}\n",
        graphite.to()
    );
    let mut daemon = Builder::native(&toml).start();
    let mut client = Client::connect(daemon.at("app", "tcp"));
    client.send("a:1|c\nb:1|c\n");
    client.wait_reply("ack 2");
    let folder = daemon.folder.path().join("staunch-data/queues/copy");
    for file in std::fs::read_dir(&folder).expect("it is there") {
        std::fs::remove_file(file.expect("a name").path()).expect("it is ours");
    }
    // No look since then: the hot restart looks by itself.
    refused(&daemon, "the file or its folder was deleted");
    graphite.come_back();
    daemon.wait_output("copy", "delivered", 2);
    let mut new = daemon.successor();
    new.wait_ready();
    assert!(daemon.wait_exit().success(), "{}", daemon.stderr());
    new.stop();
    assert_eq!(graphite.bytes(), b"a:1|c\nb:1|c\n");
}

#[test]
fn while_connections_wait_for_room_on_a_full_disk_nothing_is_handed_over() {
    let builder = Builder::bare();
    let data = builder.folder().join("disk");
    let Some(_disk) = SmallDisk::mount(&data, 2) else {
        crate::support::skip("hot_restart_refused", "nothing can be mounted here");
        return;
    };
    let mut graphite = FakeGraphite::new();
    graphite.refuse();
    let toml = format!(
        "data_dir = {:?}\n[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [outputs.copy]\ntype = \"tcp\"\nfrom = [\"app\"]\nto = [\"{}\"]\nmin_retry_delay = \"20ms\"\n\
         max_retry_delay = \"100ms\"\nqueue = {{ kind = \"disk\", when_full = \"block\" }}\n",
        data.display().to_string(),
        graphite.to()
    );
    let mut daemon = Builder::native(&toml).start();
    let lines = 300_000;
    let mut stream = TcpStream::connect(daemon.at("app", "tcp")).expect("it listens");
    let sender = std::thread::spawn(move || {
        stream.write_all(&b"hits:1|c\n".repeat(lines)).expect("it is read in the end");
        stream
    });
    wait_for("the disk to be full", || daemon.stderr().contains("no space left").then_some(()));
    // As the case may be: nothing can be written at all, or not as much as a connection has sent.
    refused(&daemon, "the disk");
    graphite.come_back();
    let _stream = sender.join().expect("it sends all");
    daemon.wait_output("copy", "delivered", lines as u64);
    let mut new = daemon.successor();
    new.wait_ready();
    assert!(daemon.wait_exit().success(), "{}", daemon.stderr());
    new.assert_sums_hold();
    assert_eq!(Daemon::number(&new.output("copy"), "dropped"), 0);
    new.stop();
}

/// A source that calls lines safe, and outputs with queues on disk.
fn on_disk(outputs: &[&str], to: &str) -> String {
    let mut toml =
        "[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\nack_when = \"safe\"\n"
            .to_owned();
    for name in outputs {
        toml += &format!(
            "[outputs.{name}]\ntype = \"tcp\"\nfrom = [\"app\"]\nto = [\"{to}\"]\nmin_retry_delay = \"20ms\"\n\
             max_retry_delay = \"100ms\"\nqueue = {{ kind = \"disk\" }}\n"
        );
    }
    toml
}

#[test]
fn a_successor_that_cannot_open_a_queue_on_disk_says_so_and_the_old_one_goes_on() {
    let mut graphite = FakeGraphite::new();
    graphite.refuse();
    let mut daemon = Builder::native(&on_disk(&["copy"], &graphite.to())).start();
    let mut client = Client::connect(daemon.at("app", "tcp"));
    client.send("a:1|c\n");
    client.wait_reply("ack 1");
    let data = daemon.folder.path().join("staunch-data");
    let (known, folder) = (data.join("known-queues"), data.join("queues/more"));
    let names = std::fs::read_to_string(&known).expect("it has the queue that there is");
    daemon.rewrite(&on_disk(&["copy", "more"], &graphite.to()));

    std::fs::write(&known, format!("{names}more\n")).expect("the folder is ours");
    refused(&daemon, "it was moved, or its file system is not mounted");
    std::fs::remove_file(&known).and_then(|()| std::fs::create_dir(&known)).expect("the folder is ours");
    refused(&daemon, "cannot open the queue on disk of output `more`");
    std::fs::remove_dir(&known).and_then(|()| std::fs::write(&known, &names)).expect("the folder is ours");
    // What the disk fails to read may be readable at the next look: only a start without `--hot-restart` passes it over.
    std::fs::create_dir(&folder).expect("the folder is ours");
    let segment = folder.join("0000000000000001.segment");
    assert!(Command::new("mkfifo").arg(&segment).status().expect("there is mkfifo").success());
    refused(&daemon, "not a regular file");
    daemon.wait_logged_times("failed: cannot open the queue on disk of output `more`", 3);

    client.send("b:1|c\n");
    client.wait_reply("ack 2");
    std::fs::remove_file(&segment).expect("it was there");
    let mut new = daemon.successor();
    new.wait_ready();
    assert!(daemon.wait_exit().success(), "{}", daemon.stderr());
    client.send("c:1|c\n");
    client.wait_reply("ack 3");
    graphite.come_back();
    new.wait_output("copy", "delivered", 3);
    new.wait_output("more", "delivered", 1);
    new.assert_sums_hold();
    new.stop();
}

#[test]
fn changes_of_queues_are_refused_until_the_successor_has_them() {
    let mut graphite = FakeGraphite::new();
    graphite.refuse();
    let patient = "hot_restart_timeout = \"1m\"\n";
    let mut daemon = Builder::native(&format!("{patient}{}", on_disk(&["copy"], &graphite.to()))).start();
    let mut client = Client::connect(daemon.at("app", "tcp"));
    client.send("a:1|c\n");
    client.wait_reply("ack 1");
    // The successor waits for it after everything was handed to it, and before it has any queue.
    let known = daemon.folder.path().join("staunch-data/known-queues");
    std::fs::remove_file(&known).expect("it is there");
    assert!(Command::new("mkfifo").arg(&known).status().expect("there is mkfifo").success());
    let at = crate::support::nobody();
    let both = on_disk(&["copy", "more"], &graphite.to());
    daemon.rewrite(&format!("{patient}{both}[http]\nlisten = \"{at}\"\n"));
    let mut new = daemon.successor();
    wait_for("the successor to answer", || {
        assert!(new.is_alive(), "{}", new.stderr());
        http::get(at, "/healthz")
    });
    let block = r#"{"encoding":"packets","copies":1,"packets":[[0,5]],"bytes":"b:1|c"}"#;
    let replay = || http::post(at, "/api/v1/queues/copy/replay", "application/x-ndjson", block);
    let clear = || http::post(at, "/api/v1/queues/copy/drop", "application/json", "{}");
    for answer in [replay(), clear()] {
        let answer = answer.expect("it answers");
        assert_eq!(answer.status, 503, "{}", answer.body);
        assert!(answer.body.contains("not open yet"), "{}", answer.body);
    }
    // It reads that there was no queue, and finds a file at the next look.
    let nothing = std::fs::OpenOptions::new().write(true).open(&known).expect("the successor reads it");
    std::fs::remove_file(&known).and_then(|()| std::fs::write(&known, "")).expect("the folder is ours");
    drop(nothing);
    new.wait_ready();
    assert!(daemon.wait_exit().success(), "{}", daemon.stderr());
    assert_eq!(replay().map(|answer| answer.status), Some(200));
    new.wait_output("copy", "queued", 2);
    graphite.come_back();
    new.wait_output("copy", "delivered", 2);
    new.assert_sums_hold();
    new.stop();
}

//! X1: files are deleted and replaced under a running daemon: its config, an output's file, a socket's path, the folder of a
//! queue with records in it, the lock of its data directory. It lives, counts, and says what it lost.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::finding::{End, Finding};
use crate::scene::Scene;
use crate::support::bench::Bench;
use crate::support::{Builder, Daemon};

const GROWS_MAX: u64 = 64 << 20;

const RECORDS: u64 = 10_000;

pub(crate) fn run(bench: &Bench) -> End {
    let toml = "[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\", \"unix://path\"]\n\
         [transforms.counts]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"1s\"\n\
         [outputs.counted]\ntype = \"graphite_file\"\nfrom = [\"counts\"]\nmax_files = 1\n\
         [outputs.copy]\ntype = \"tcp\"\nfrom = [\"app\"]\nto = [\"tcp://127.0.0.1:9\"]\nmax_retry_delay = \"1s\"\n\
         queue = { kind = \"disk\" }\n";
    let mut scene = Scene::start(bench, toml, GROWS_MAX);
    let mut client = TcpStream::connect(scene.daemon.at("app", "tcp")).expect("it listens");
    let mut send = |scene: &Scene<'_>, sent: u64| {
        client.write_all(&b"some.name:1|c\n".repeat(RECORDS as usize)).expect("it reads");
        scene
            .wait("the records", || (Daemon::number(&scene.source("app")?, "received") == sent).then_some(()))
    };
    send(&scene, RECORDS);
    // Each is gone; some get something else in their place.
    let config = scene.path("staunch.toml");
    let text = std::fs::read(&config).expect("it is ours");
    std::fs::remove_file(&config).expect("it is ours");
    scene.daemon.signal("HUP");
    let _socket = std::fs::remove_file(scene.path("path"));
    std::fs::write(scene.path("path"), "something else").expect("the folder is ours");
    let _file = std::fs::remove_dir_all(scene.path("staunch-data/counted"));
    let queue = std::fs::remove_dir_all(scene.path("staunch-data/queues"));
    scene.finding.promise(queue.is_ok(), || "there is no folder of queues: this run shows nothing".into());
    let more = send(&scene, 2 * RECORDS);
    scene.finding.promise(more.is_some(), || "no records are taken after files were deleted".into());
    scene.attack(Vec::new(), bench.pick(2.0, 5.0)).end();
    std::fs::write(&config, text).expect("the folder is ours");
    scene.daemon.signal("HUP");
    std::thread::sleep(Duration::from_millis(500));
    let row = scene
        .accounts()
        .and_then(|page| page["outputs"].as_array()?.iter().find(|row| row["name"] == "copy").cloned());
    let number = |path: &str| row.as_ref().map_or(0, |row| Daemon::number(row, path));
    scene.finding.figure(format!(
        "of {} records {} are queued, {} dropped with a reason; {} write errors",
        2 * RECORDS,
        number("queued"),
        number("dropped"),
        number("disk/write_errors")
    ));
    let beside = second(&scene.daemon);
    scene.finding.promise(!beside, || {
        "a second daemon starts in the same data directory when the lock's file is gone".into()
    });
    queue_gone(&mut scene.finding);
    End::Ran(scene.end("files deleted and replaced"))
}

/// Somebody deletes the folder of a queue, the daemon is stopped and started: what was queued is there, or somebody said
/// that it is lost.
fn queue_gone(finding: &mut Finding) {
    let toml = "[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [outputs.copy]\ntype = \"tcp\"\nfrom = [\"app\"]\nto = [\"tcp://127.0.0.1:9\"]\nmax_retry_delay = \"1s\"\n\
         queue = { kind = \"disk\" }\n";
    let mut daemon = Builder::native(toml).start();
    let mut client = TcpStream::connect(daemon.at("app", "tcp")).expect("it listens");
    client.write_all(&b"some.name:1|c\n".repeat(RECORDS as usize)).expect("it reads");
    daemon.wait_output("copy", "queued", RECORDS);
    std::fs::remove_dir_all(daemon.folder.path().join("staunch-data/queues")).expect("it is there");
    client.write_all(b"some.name:1|c\n").expect("it reads");
    daemon.wait_output("copy", "copies", RECORDS + 1);
    drop(client);
    daemon.signal("TERM");
    daemon.wait_exit();
    let said = daemon.stderr();
    let lost = format!("{} records lost as `deleted`", RECORDS + 1);
    let named = said.contains(&lost) && said.contains("staunch-data/queues/copy");
    daemon.start_again();
    let there = Daemon::number(&daemon.output("copy"), "queued");
    // Here nothing but the lock is in the way of another one.
    let beside = second(&daemon);
    finding.promise(!beside, || "a second daemon starts where only the lock's file is gone".into());
    finding.promise(there == RECORDS + 1 || named, || {
        format!("the folder of a queue was deleted: {there} of {} records are there after a restart, and nothing was said", RECORDS + 1)
    });
}

/// The lock's file is deleted, and another daemon starts in the same folder; true when it lives.
fn second(daemon: &Daemon) -> bool {
    let lock = daemon.folder.path().join("staunch-data/lock");
    std::fs::remove_file(lock).expect("it is there");
    let mut other = daemon.beside();
    // One that may not start waits for the lock, or ends.
    let until = Instant::now() + Duration::from_secs(3);
    while Instant::now() < until && other.is_alive() {
        if other.stderr().contains("/api/v1/") {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

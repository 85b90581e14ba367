//! Files that are deleted under a running daemon: its queue on disk, and the lock of its data directory.

use std::net::{TcpListener, TcpStream};
use std::process::Command;

use crate::support::{Builder, Daemon, nobody, wait_for};

fn config(to: &str) -> String {
    format!(
        "[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [outputs.copy]\ntype = \"tcp\"\nfrom = [\"app\"]\nto = [\"tcp://{to}\"]\nmax_retry_delay = \"1s\"\n\
         queue = {{ kind = \"disk\" }}\n"
    )
}

fn send(daemon: &Daemon, lines: usize, sum: u64) {
    use std::io::Write;
    let mut client = TcpStream::connect(daemon.at("app", "tcp")).expect("it listens");
    client.write_all(&b"some.name:1|c\n".repeat(lines)).expect("it reads");
    daemon.wait_output("copy", "copies", sum);
}

/// Nothing is appended after the deletion: the daemon finds out by itself.
#[test]
fn a_deleted_queue_is_logged_within_seconds_and_its_records_are_lost_at_the_stop() {
    let mut daemon = Builder::native(&config(&nobody().to_string())).start();
    send(&daemon, 100, 100);
    let queue = daemon.folder.path().join("staunch-data/queues/copy");
    std::fs::remove_dir_all(queue.parent().expect("it has one")).expect("it is there");
    let line = "with 100 records queued";
    daemon.wait_logged_times(line, 1);
    let disk = daemon.output("copy")["disk"].clone();
    assert_eq!(disk["missing"], "the file or its folder was deleted", "{disk}");
    assert_eq!(disk["records_missing"], 100, "{disk}");
    let ask = |args: &[&str]| {
        let out =
            Command::new(env!("CARGO_BIN_EXE_staunch")).args(args).current_dir(daemon.folder.path()).output();
        let out = out.expect("it runs");
        (String::from_utf8_lossy(&out.stderr).into_owned(), String::from_utf8_lossy(&out.stdout).into_owned())
    };
    for verb in ["ls", "check"] {
        let (logged, _) = ask(&["queue", verb]);
        assert!(logged.contains("copy: 100 copies in missing files"), "{verb}: {logged}");
    }
    let (_, top) = ask(&["top", "--json", "--once", "--api", &daemon.http().to_string()]);
    let top: serde_json::Value = serde_json::from_str(&top).expect("JSON");
    let disk = &top["outputs"][0]["disk"];
    assert_eq!(disk["state"], "failing", "{top}");
    let trouble = disk["trouble"].as_str().expect("a text");
    assert!(trouble.starts_with("100 records in missing files"), "{trouble}");
    assert!(daemon.get("/metrics").body.contains("staunch_queue_records_missing{output=\"copy\"} 100"));
    // What comes now goes into a new folder, and is there after the next start.
    send(&daemon, 10, 110);
    wait_for("a new folder", || queue.is_dir().then_some(()));
    daemon.signal("TERM");
    daemon.wait_exit();
    let said = daemon.stderr();
    assert!(said.contains("output `copy`: 100 records lost as `deleted`"), "{said}");
    assert!(said.contains("10 records queued on disk for the next start"), "{said}");
    daemon.start_again();
    daemon.wait_output("copy", "queued", 10);
    let dropped = Daemon::number(&daemon.output("copy"), "dropped");
    assert_eq!(dropped, 0, "each has one outcome");
    daemon.stop();
}

#[test]
fn what_is_open_is_delivered_when_the_endpoint_comes() {
    let to = nobody().to_string();
    let mut daemon = Builder::native(&config(&to)).start();
    send(&daemon, 100, 100);
    std::fs::remove_dir_all(daemon.folder.path().join("staunch-data/queues")).expect("it is there");
    wait_for("a word about it", || daemon.stderr().contains("with 100 records queued").then_some(()));
    let _endpoint = TcpListener::bind(&to).expect("the port is free");
    daemon.wait_output("copy", "delivered", 100);
    daemon.stop();
    assert!(!daemon.stderr().contains("lost as `deleted`"), "{}", daemon.stderr());
}

#[test]
fn a_folder_that_is_moved_away_and_back_loses_nothing() {
    let mut daemon = Builder::native(&config(&nobody().to_string())).start();
    send(&daemon, 100, 100);
    let queues = daemon.folder.path().join("staunch-data/queues");
    let away = daemon.folder.path().join("away");
    std::fs::rename(&queues, &away).expect("it is there");
    wait_for("a word about it", || daemon.stderr().contains("Mount it or move it back").then_some(()));
    std::fs::rename(&away, &queues).expect("it is there");
    wait_for("another word", || daemon.stderr().contains("is available again").then_some(()));
    assert!(daemon.output("copy")["disk"]["missing"].is_null());
    daemon.signal("TERM");
    daemon.wait_exit();
    daemon.start_again();
    daemon.wait_output("copy", "queued", 100);
    daemon.stop();
}

#[test]
fn a_data_directory_whose_lock_file_is_deleted_still_has_one_daemon() {
    let mut daemon = Builder::native(&config(&nobody().to_string())).start();
    std::fs::remove_file(daemon.folder.path().join("staunch-data/lock")).expect("it is there");
    let mut other = daemon.beside();
    other.wait_exit();
    other.wait_logged("is in use by another daemon");
    daemon.stop();
}

#[test]
fn a_pipe_is_no_log_file_and_no_pid_file_of_a_relay() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("there is mkfifo").success());
    let file = folder.path().join("relay.conf");
    std::fs::write(&file, "cluster c forward 127.0.0.1:1;\nmatch * send to c;\n").expect("written");
    for (flag, what) in [("-l", "log file"), ("-P", "pidfile")] {
        let mut relay = Command::new(env!("CARGO_BIN_EXE_staunch"));
        relay.args(["relay", "-f"]).arg(&file).arg(flag).arg(&pipe);
        let output = relay.output().expect("it starts, and ends");
        let said =
            String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert!(!output.status.success() && said.contains(what) && said.contains("pipe"), "{flag}: {said}");
    }
}

/// `/tmp` was cleaned up: clients find the listeners again, and those that are connected notice nothing.
#[test]
fn a_socket_file_that_was_deleted_is_made_again() {
    use std::io::Write;
    use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
    const NAMES: [&str; 3] = ["lines.sock", "packets.sock", "frames.sock"];
    let mut daemon = Builder::native(
        "[sources.app]\ntype = \"statsd\"\n\
         listen = [\"unix://lines.sock\", \"unixgram://packets.sock\", \"unix-frames://frames.sock\"]\n\
         [transforms.all]\ntype = \"aggregate\"\nfrom = [\"app\"]\n",
    )
    .start();
    let folder = daemon.folder.path().to_owned();
    let path = |name: &str| folder.join(name);
    let frame = |stream: &mut UnixStream| {
        stream.write_all(b"\x05\0\0\0a:1|c").expect("it reads");
    };
    let lines = |stream: &mut UnixStream| stream.write_all(b"a:1|c\n").expect("it reads");
    let mut before = UnixStream::connect(path(NAMES[0])).expect("it listens");
    let mut framed_before = UnixStream::connect(path(NAMES[2])).expect("it listens");
    lines(&mut before);
    frame(&mut framed_before);
    daemon.wait_source("app", "received", 2);
    for round in 0..2 {
        for name in NAMES {
            std::fs::remove_file(path(name)).expect("it is there");
        }
        for name in NAMES {
            wait_for("the file", || path(name).exists().then_some(()));
        }
        let mut after = wait_for("a listener", || UnixStream::connect(path(NAMES[0])).ok());
        lines(&mut after);
        let mut framed = wait_for("a listener", || UnixStream::connect(path(NAMES[2])).ok());
        frame(&mut framed);
        let packets = UnixDatagram::unbound().expect("a socket");
        wait_for("a socket", || packets.send_to(b"a:1|c", path(NAMES[1])).ok());
        lines(&mut before);
        frame(&mut framed_before);
        daemon.wait_source("app", "received", 2 + 5 * (round + 1));
    }
    daemon.wait_logged_times("was deleted or replaced; it is created again", 6);
    // Another program has taken the place: it keeps it.
    std::fs::remove_file(path(NAMES[0])).expect("it is there");
    // Unless we were first.
    let other = UnixListener::bind(path(NAMES[0]));
    if other.is_ok() {
        wait_for("a word about it", || daemon.stderr().contains("clients cannot connect").then_some(()));
        lines(&mut before);
        daemon.wait_source("app", "received", 13);
    }
    daemon.signal("TERM");
    assert!(daemon.wait_exit().success(), "{}", daemon.stderr());
    assert_eq!(NAMES.map(|name| path(name).exists()), [other.is_ok(), false, false]);
}

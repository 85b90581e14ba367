//! `staunch queue` on a stopped and on a running daemon: ids are counted on both sides of every change.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::daemon::STAUNCH;
use crate::support::pty::Terminal;
use crate::support::{Builder, Daemon, FakeGraphite, PATIENCE, wait_for};

/// An endpoint that refuses.
fn away() -> FakeGraphite {
    let mut endpoint = FakeGraphite::new();
    endpoint.refuse();
    endpoint
}

/// Graphite lines, of aggregates that none come to while a test runs; and packets of a connection.
fn config(endpoint: &FakeGraphite) -> String {
    let to = endpoint.to();
    format!(
        "[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"10m\"\n\
         [outputs.carbon]\ntype = \"graphite\"\nfrom = [\"stats\"]\nto = [\"{to}\"]\nmin_retry_delay = \"20ms\"\nmax_retry_delay = \"100ms\"\n\
         queue = {{ kind = \"disk\" }}\n\
         [outputs.copy]\ntype = \"tcp\"\nfrom = [\"app\"]\nto = [\"{to}\"]\nmin_retry_delay = \"20ms\"\nmax_retry_delay = \"100ms\"\n\
         queue = {{ kind = \"disk\" }}\n"
    )
}

/// `staunch queue …` in the daemon's folder.
fn queue(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(STAUNCH);
    command.arg("queue").args(args).args(["--config", "staunch.toml"]).current_dir(folder);
    command.env_remove("STAUNCH_LOG").stdin(Stdio::null()).output().expect("the binary starts")
}

#[track_caller]
fn good(output: &Output) -> String {
    assert!(output.status.success(), "{}: {}", output.status, stderr(output));
    String::from_utf8(output.stdout.clone()).expect("a text")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Lines of Graphite with these ids.
fn lines(ids: std::ops::Range<u64>) -> String {
    ids.map(|id| format!("id.{id} 1 1500000000\n")).collect()
}

/// The ids in lines, in order; other lines are of the daemon itself.
fn ids(text: &str) -> Vec<u64> {
    let id = |line: &str| line.strip_prefix("id.")?.split([' ', ':']).next()?.parse().ok();
    text.lines().filter_map(id).collect()
}

fn row(folder: &Path, name: &str) -> Value {
    let document: Value = serde_json::from_str(&good(&queue(folder, &["ls", "--json"]))).expect("JSON");
    let rows = document["queues"].as_array().expect("a list");
    rows.iter().find(|row| row["name"] == name).expect("a row of that name").clone()
}

fn segment(folder: &Path, name: &str) -> PathBuf {
    let entries = fs::read_dir(folder.join("staunch-data/queues").join(name)).expect("a folder");
    let files = entries.map(|entry| entry.expect("readable").path());
    files
        .filter(|path| path.extension().is_some_and(|ending| ending == "segment"))
        .min()
        .expect("one segment")
}

#[track_caller]
fn send(daemon: &Daemon, ids: std::ops::Range<u64>) {
    let mut stream = TcpStream::connect(daemon.at("app", "tcp")).expect("it listens");
    let had = Daemon::number(&daemon.output("copy"), "copies");
    let count = ids.end - ids.start;
    let lines: String = ids.map(|id| format!("id.{id}:1|c\n")).collect();
    stream.write_all(lines.as_bytes()).expect("it reads");
    daemon.wait_output("copy", "copies", had + count);
}

#[test]
fn what_is_exported_and_put_back_is_delivered_once() {
    let mut endpoint = away();
    let mut daemon = Builder::native(&config(&endpoint)).start();
    let folder = daemon.folder.path().to_owned();
    fs::write(folder.join("some.txt"), lines(0..3000)).expect("written");
    // To a daemon that runs: accounted like everything else, and safe.
    let logged = stderr(&queue(&folder, &["replay", "carbon", "--from", "some.txt"]));
    assert!(logged.contains("3000 copies appended"), "{logged}");
    daemon.wait_output("carbon", "copies", 3000);
    daemon.assert_sums_hold();
    let carbon = row(&folder, "carbon");
    assert_eq!((&carbon["state"], &carbon["copies_queued"]), (&"in_use".into(), &3000.into()));
    assert_eq!(ids(&good(&queue(&folder, &["export", "carbon"]))), (0..3000).collect::<Vec<_>>());
    daemon.stop();
    // Without one: exported, dropped, put back, and more behind it.
    let exported = good(&queue(&folder, &["export", "carbon"]));
    assert_eq!(ids(&exported), (0..3000).collect::<Vec<_>>());
    fs::write(folder.join("all.txt"), &exported).expect("written");
    assert!(queue(&folder, &["drop", "carbon", "--yes"]).status.success());
    assert_eq!(row(&folder, "carbon")["copies_queued"], 0);
    assert_eq!(row(&folder, "carbon")["state"], "stopped");
    assert!(queue(&folder, &["replay", "carbon", "--from", "all.txt"]).status.success());
    fs::write(folder.join("more.txt"), lines(3000..3100)).expect("written");
    assert!(queue(&folder, &["replay", "carbon", "--from", "more.txt"]).status.success());
    daemon.start_again();
    assert!(!daemon.stderr().contains("is lost"), "{}", daemon.stderr());
    endpoint.come_back();
    daemon.wait_output("carbon", "queued", 0);
    daemon.assert_sums_hold();
    assert_eq!(ids(&String::from_utf8_lossy(&endpoint.bytes())), (0..3100).collect::<Vec<_>>());
}

#[test]
fn packets_keep_their_borders_as_json_and_are_not_mixed_with_lines() {
    let mut endpoint = away();
    let mut daemon = Builder::native(&config(&endpoint)).start();
    let folder = daemon.folder.path().to_owned();
    send(&daemon, 0..500);
    let refused = queue(&folder, &["export", "copy"]);
    assert_eq!((refused.status.code(), refused.stdout.len()), (Some(2), 0));
    assert!(stderr(&refused).contains("--json"), "{}", stderr(&refused));
    wait_for("the disk to have all", || (row(&folder, "copy")["copies_queued"] == 500).then_some(()));
    let exported = good(&queue(&folder, &["export", "copy", "--json"]));
    fs::write(folder.join("copy.json"), &exported).expect("written");
    fs::write(folder.join("lines.txt"), lines(0..1)).expect("written");
    // Neither queue is to send blocks as JSON as if they were lines.
    for name in ["copy", "carbon"] {
        let wrong = queue(&folder, &["replay", name, "--from", "copy.json"]);
        assert_eq!(wrong.status.code(), Some(2), "{}", stderr(&wrong));
        assert!(stderr(&wrong).contains("copy.json, line 1: it is a block as JSON\n  hint: add --json"));
    }
    assert_eq!(row(&folder, "carbon")["copies_queued"], 0);
    // Lines are none that this output could send, with a daemon and without.
    let wrong = queue(&folder, &["replay", "copy", "--from", "lines.txt"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("the output takes packets"), "{}", stderr(&wrong));
    let dropped = good(&queue(&folder, &["drop", "copy", "--yes", "--json"]));
    let dropped: Value = serde_json::from_str(&dropped).expect("JSON");
    assert_eq!(dropped["dropped"]["copies"], 500, "{dropped}");
    daemon.wait_output("copy", "losses/dropped/by_operator", 500);
    daemon.wait_output("copy", "queued", 0);
    daemon.assert_sums_hold();
    assert!(queue(&folder, &["replay", "copy", "--from", "copy.json", "--json"]).status.success());
    daemon.stop();
    assert!(queue(&folder, &["replay", "copy", "--from", "lines.txt"]).status.code() == Some(2));
    let again = good(&queue(&folder, &["export", "copy", "--json"]));
    let bytes = |text: &str| -> String {
        let row = |line: &str| serde_json::from_str::<Value>(line).expect("JSON")["bytes"].clone();
        text.lines().map(|line| row(line).as_str().expect("a text").to_owned()).collect()
    };
    assert_eq!(bytes(&again), bytes(&exported));
    daemon.start_again();
    endpoint.come_back();
    daemon.wait_output("copy", "queued", 0);
    assert_eq!(ids(&String::from_utf8_lossy(&endpoint.bytes())), (0..500).collect::<Vec<_>>());
}

#[test]
fn a_full_queue_takes_no_more_and_drops_nothing_for_it() {
    let endpoint = away();
    let small = "kind = \"disk\", max_bytes = \"300KiB\", when_full = \"drop_oldest\"";
    let toml = config(&endpoint).replacen("kind = \"disk\"", small, 1);
    let mut daemon = Builder::native(&toml).start();
    let folder = daemon.folder.path().to_owned();
    fs::write(folder.join("some.txt"), lines(0..20_000)).expect("written");
    let output = queue(&folder, &["replay", "carbon", "--from", "some.txt"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let taken = Daemon::number(&daemon.output("carbon"), "queued");
    assert!((1..20_000).contains(&taken), "{taken}");
    let logged = stderr(&output);
    assert!(logged.contains(&format!("after its first {taken} copies")), "{logged}");
    assert_eq!(Daemon::number(&daemon.output("carbon"), "dropped"), 0);
    daemon.assert_sums_hold();
    assert_eq!(ids(&good(&queue(&folder, &["export", "carbon"]))), (0..taken).collect::<Vec<_>>());
    daemon.stop();
    let output = queue(&folder, &["replay", "carbon", "--from", "some.txt"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("the queue is full"), "{}", stderr(&output));
}

#[test]
fn only_what_is_old_enough_is_dropped() {
    let endpoint = away();
    let mut daemon = Builder::native(&config(&endpoint)).start();
    let folder = daemon.folder.path().to_owned();
    send(&daemon, 0..50);
    let logged = |output: &Output| stderr(output);
    let young = queue(&folder, &["drop", "copy", "--older-than", "1h", "--yes"]);
    assert!(logged(&young).contains("0 copies of `copy` dropped"), "{}", logged(&young));
    // Nobody is there to be asked.
    let unasked = queue(&folder, &["drop", "copy"]);
    assert_eq!(unasked.status.code(), Some(2));
    assert!(
        logged(&unasked).contains("50 copies") && logged(&unasked).contains("--yes"),
        "{}",
        logged(&unasked)
    );
    daemon.stop();
    // On a terminal somebody is.
    for (answer, code) in [("n\r", 1), ("\r", 1), ("y\r", 0)] {
        let data = folder.join("staunch-data").display().to_string();
        let mut terminal =
            Terminal::start(&["queue", "drop", "copy", "--older-than", "1h", "--data-dir", &data], &[]);
        terminal.wait_rows("the question", |rows| rows.iter().any(|row| row.contains("[y/N]")));
        terminal.press(answer);
        assert_eq!(terminal.wait_restored().0.code(), Some(code), "{answer:?}");
    }
    let young = queue(&folder, &["drop", "copy", "--older-than", "1h", "--yes"]);
    assert!(
        logged(&young).contains("0 copies of `copy` dropped") && logged(&young).contains("50 still queued")
    );
    let all = queue(&folder, &["drop", "copy", "--older-than", "0s", "--yes"]);
    assert!(logged(&all).contains("50 copies of `copy` dropped"), "{}", logged(&all));
    daemon.start_again();
    assert_eq!(Daemon::number(&daemon.output("copy"), "queued"), 0);
}

#[test]
fn a_flipped_bit_is_found_and_what_it_cost_comes_back_from_the_quarantine() {
    let mut endpoint = away();
    let mut daemon = Builder::native(&config(&endpoint)).start();
    let folder = daemon.folder.path().to_owned();
    fs::write(folder.join("some.txt"), lines(0..10_000)).expect("written");
    assert!(queue(&folder, &["replay", "carbon", "--from", "some.txt"]).status.success());
    daemon.stop();
    let sound = queue(&folder, &["check"]);
    assert!(good(&sound).contains("carbon: sound"), "{}", good(&sound));
    // The last byte but one of the first block's header: only its own checksum is wrong then.
    let path = segment(&folder, "carbon");
    let mut bytes = fs::read(&path).expect("readable");
    bytes[80 + 94] ^= 4;
    fs::write(&path, &bytes).expect("writable");
    let damaged = queue(&folder, &["check", "carbon"]);
    assert_eq!(damaged.status.code(), Some(1));
    let text = String::from_utf8_lossy(&damaged.stdout);
    assert!(text.starts_with("carbon: damaged\n") && text.contains("in total 1 damaged range"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let document: Value =
        serde_json::from_slice(&queue(&folder, &["check", "carbon", "--json"]).stdout).expect("JSON");
    let report = &document["queues"][0];
    assert_eq!(
        (&report["sound"], &report["damage"][0]["ranges"][0]["kind"]),
        (&false.into(), &"not_a_record".into())
    );
    let lost = report["copies_lost"].as_u64().expect("a number");
    assert!((1..10_000).contains(&lost), "{report}");
    let left = ids(&good(&queue(&folder, &["export", "carbon"])));
    assert_eq!(left, (lost..10_000).collect::<Vec<_>>());
    // The daemon passes it, counts it, and quarantines it.
    daemon.start_again();
    endpoint.come_back();
    daemon.wait_output("carbon", "queued", 0);
    daemon.wait_output("carbon", "losses/dropped/damaged", lost);
    let quarantined = good(&queue(&folder, &["export", "carbon", "--quarantine"]));
    assert_eq!(ids(&quarantined), (0..lost).collect::<Vec<_>>());
    let logged = stderr(&queue(&folder, &["replay", "carbon", "--quarantine"]));
    assert!(logged.contains(&format!("{lost} copies appended")), "{logged}");
    daemon.wait_output("carbon", "queued", 0);
    let mut came = ids(&String::from_utf8_lossy(&endpoint.bytes()));
    came.sort_unstable();
    assert_eq!(came, (0..10_000).collect::<Vec<_>>());
    assert_eq!(row(&folder, "carbon")["quarantined"], 1);
    assert!(queue(&folder, &["drop", "carbon", "--quarantine", "--yes"]).status.success());
    assert_eq!(row(&folder, "carbon")["quarantined"], 0);
    daemon.assert_sums_hold();
}

#[test]
fn a_segment_that_somebody_renamed_is_named_and_nothing_in_it_is_lost() {
    let endpoint = away();
    let mut daemon = Builder::native(&config(&endpoint)).start();
    let folder = daemon.folder.path().to_owned();
    fs::write(folder.join("some.txt"), lines(0..1000)).expect("written");
    assert!(queue(&folder, &["replay", "carbon", "--from", "some.txt"]).status.success());
    daemon.stop();
    let path = segment(&folder, "carbon");
    let own = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
    fs::rename(&path, path.with_file_name("0000000000000099.segment")).expect("moved");
    let why = format!("its header is that of {own}");
    let text = format!("0000000000000099.segment: {why}");
    let check = queue(&folder, &["check", "carbon"]);
    let logged = String::from_utf8_lossy(&check.stdout).into_owned();
    assert!(check.status.code() == Some(1) && logged.contains(&why), "{logged}");
    let listed = stderr(&queue(&folder, &["ls"]));
    assert!(listed.contains(&format!("carbon: {text}")), "{listed}");
    daemon.start_again();
    wait_for("a word about it", || daemon.stderr().contains(&text).then_some(()));
    // And the daemon's own figures, which the stop has flushed.
    let damaged = || Daemon::number(&daemon.output("carbon"), "losses/dropped/damaged");
    wait_for("what is missing to be counted", || (damaged() >= 1000).then_some(()));
    let quarantined = good(&queue(&folder, &["export", "carbon", "--quarantine"]));
    assert_eq!(ids(&quarantined), (0..1000).collect::<Vec<_>>());
    daemon.assert_sums_hold();
}

#[test]
fn pipes_sockets_and_directories_among_the_files_of_a_queue_are_passed_over() {
    let endpoint = away();
    let mut daemon = Builder::native(&config(&endpoint)).start();
    let folder = daemon.folder.path().to_owned();
    fs::write(folder.join("some.txt"), lines(0..1000)).expect("written");
    good(&queue(&folder, &["replay", "carbon", "--from", "some.txt"]));
    daemon.stop();
    let queue_folder = folder.join("staunch-data/queues/carbon");
    let _none = fs::remove_file(queue_folder.join("cursor-0"));
    for name in ["cursor-0", "0000000000000099.segment"] {
        let made = Command::new("mkfifo").arg(queue_folder.join(name)).status();
        assert!(made.is_ok_and(|status| status.success()), "there is mkfifo");
    }
    let _socket = std::os::unix::net::UnixListener::bind(queue_folder.join("0000000000000098.segment"));
    // The number that the next process would take.
    let numbers = fs::read_dir(&queue_folder).expect("it is there").filter_map(|entry| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        let number = u64::from_str_radix(name.strip_suffix(".segment")?, 16).ok()?;
        (number < 0x98).then_some(number)
    });
    let directory = queue_folder.join(format!("{:016x}.segment", numbers.max().unwrap_or(0) + 1));
    fs::create_dir(&directory).expect("made");
    let check = queue(&folder, &["check", "carbon"]);
    let logged = String::from_utf8_lossy(&check.stdout).into_owned();
    assert!(check.status.code() == Some(1) && logged.contains("2 segments cannot be opened"), "{logged}");
    assert_eq!(ids(&good(&queue(&folder, &["export", "carbon"]))), (0..1000).collect::<Vec<_>>());
    assert!(row(&folder, "carbon")["copies_queued"].as_u64().is_some_and(|copies| copies >= 1000));
    daemon.start_again();
    for name in ["0000000000000098.segment", "0000000000000099.segment"] {
        assert!(!queue_folder.join(name).exists(), "{name} was quarantined");
    }
    assert!(directory.exists(), "a directory is nothing of the queue");
    fs::write(folder.join("more.txt"), lines(1000..1010)).expect("written");
    good(&queue(&folder, &["replay", "carbon", "--from", "more.txt"]));
    assert!(!daemon.stderr().contains("disk failed"), "{}", daemon.stderr());
    let waits = Daemon::number(&daemon.output("carbon"), "queued");
    assert!(waits >= 1000, "{waits}");
    daemon.assert_sums_hold();
}

#[test]
fn an_export_into_a_pipe_that_closes_is_no_error() {
    let endpoint = away();
    let mut daemon = Builder::native(&config(&endpoint)).start();
    let folder = daemon.folder.path().to_owned();
    fs::write(folder.join("some.txt"), lines(0..100_000)).expect("written");
    assert!(queue(&folder, &["replay", "carbon", "--from", "some.txt"]).status.success());
    let mut export = Command::new(STAUNCH)
        .args(["queue", "export", "carbon", "--data-dir", "staunch-data"])
        .current_dir(&folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut first = String::new();
    let mut reader = BufReader::new(export.stdout.take().expect("it is piped"));
    reader.read_line(&mut first).expect("a line");
    assert_eq!(first, "id.0 1 1500000000\n");
    drop(reader);
    let ended = export.wait_with_output().expect("it ends");
    assert!(ended.status.success() && ended.stderr.is_empty(), "{}", stderr(&ended));
    daemon.stop();
}

#[test]
fn mistakes_are_reported_with_a_hint() {
    let endpoint = away();
    let builder = Builder::native(&config(&endpoint));
    let folder = builder.folder().to_owned();
    let check = |args: &[&str], words: &[&str]| {
        let output = queue(&folder, args);
        let logged = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {logged}");
        assert!(words.iter().all(|word| logged.contains(word)), "{args:?}: {logged}");
    };
    check(&["ls"], &["there is no data directory", "--data-dir"]);
    let mut daemon = builder.start();
    check(&["check", "carbn"], &["did you mean `carbon`?"]);
    check(
        &["check", "staunch-data/queues/carbon"],
        &["is a folder", "`carbon` with --data-dir staunch-data"],
    );
    check(&["check", "./staunch.toml"], &["is a file, and no queue", "--data-dir DIR"]);
    check(&["drop", "nothing", "--yes"], &["there are: carbon, copy"]);
    check(&["replay", "carbon", "--from", "missing.txt"], &["cannot read missing.txt"]);
    fs::write(folder.join("bad.json"), "{\"form\":\"lines\"}\n").expect("written");
    check(&["replay", "carbon", "--from", "bad.json", "--json"], &["bad.json, line 1", "copies"]);
    daemon.stop();
    // A queue that an output will have can be filled before its first start.
    fs::remove_dir_all(folder.join("staunch-data/queues/carbon")).expect("it is there");
    fs::write(folder.join("some.txt"), lines(0..5)).expect("written");
    check(&["export", "carbon"], &["there are: copy"]);
    assert!(queue(&folder, &["replay", "carbon", "--from", "some.txt"]).status.success());
    assert_eq!(ids(&good(&queue(&folder, &["export", "carbon"]))), [0, 1, 2, 3, 4]);
    // An output that is gone leaves an orphan.
    let toml = config(&endpoint);
    let rest = &toml[..toml.find("[outputs.copy]").expect("it is there")];
    daemon.rewrite(rest);
    assert_eq!(
        (&row(&folder, "copy")["state"], &row(&folder, "carbon")["state"]),
        (&"orphan".into(), &"stopped".into())
    );
}

#[test]
fn a_daemon_without_http_is_not_written_beside() {
    let endpoint = away();
    let toml = format!("{}\n[http]\nenabled = false\n", config(&endpoint));
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("staunch.toml"), toml).expect("written");
    let mut child = Command::new(STAUNCH)
        .args(["run", "staunch.toml"])
        .current_dir(folder.path())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    let lock = folder.path().join("staunch-data/lock");
    wait_for("its lock", || fs::read_to_string(&lock).ok().filter(|text| text.contains("process")));
    wait_for("its queue", || folder.path().join("staunch-data/queues/copy").is_dir().then_some(()));
    let output = queue(folder.path(), &["drop", "copy", "--yes"]);
    let logged = stderr(&output);
    // Killed before anything is asserted, so that nothing is left behind.
    child.kill().expect("it runs");
    child.wait().expect("it is our child");
    assert_eq!(output.status.code(), Some(2), "{logged}");
    assert!(
        logged.contains("its HTTP API is off") && logged.contains(&format!("pid {}", child.id())),
        "{logged}"
    );
}

/// The status of a POST with these headers.
fn post(daemon: &Daemon, path: &str, headers: &str, body: &str) -> u16 {
    let len = body.len();
    let head = format!("POST {path} HTTP/1.1\r\n{headers}Content-Length: {len}\r\nConnection: close\r\n");
    asked(daemon, &format!("{head}\r\n{body}"))
}

fn asked(daemon: &Daemon, request: &str) -> u16 {
    let mut stream = TcpStream::connect(daemon.http()).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut head = [0; 12];
    stream.read_exact(&mut head).expect("an answer");
    let head = String::from_utf8_lossy(&head).into_owned();
    head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
}

#[test]
fn no_web_page_can_change_a_queue() {
    let endpoint = away();
    let daemon = Builder::native(&config(&endpoint)).start();
    send(&daemon, 0..10);
    let host = format!("Host: {}\r\n", daemon.http());
    let json = "Content-Type: application/json\r\n";
    let drop = "/api/v1/queues/copy/drop";
    for (headers, status) in [
        (format!("{host}Content-Type: text/plain\r\n"), 403),
        (host.clone(), 403),
        (format!("{host}{json}Origin: http://evil.example\r\n"), 403),
        (format!("Host: evil.example\r\n{json}"), 421),
        (format!("{host}Content-Type: application/octet-stream\r\n"), 415),
    ] {
        assert_eq!(post(&daemon, drop, &headers, "{}"), status, "{headers}");
    }
    let good = format!("{host}{json}");
    assert_eq!(post(&daemon, "/api/v1/queues/nothing/drop", &good, "{}"), 404);
    assert_eq!(post(&daemon, drop, &good, "{\"everything\":true}"), 400);
    assert_eq!(Daemon::number(&daemon.output("copy"), "queued"), 10);
    assert_eq!(post(&daemon, drop, &good, "{}"), 200);
    daemon.wait_output("copy", "queued", 0);
    let queues = daemon.json("/api/v1/queues");
    let row = queues["queues"].as_array().and_then(|rows| rows.iter().find(|row| row["name"] == "copy"));
    assert_eq!(row.expect("a row")["kind"], "disk");
}

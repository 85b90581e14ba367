//! Acknowledgements to clients (docs/acks.md).

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use crate::support::{Builder, Daemon, FakeGraphite, Manner, PATIENCE, udp, wait_for};

/// A client: sends, and reads the acknowledgements.
pub(crate) struct Client {
    stream: TcpStream,
    replies: BufReader<TcpStream>,
}

impl Client {
    pub(crate) fn connect(at: SocketAddr) -> Client {
        let stream = TcpStream::connect(at).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out can be set");
        let replies = BufReader::new(stream.try_clone().expect("a descriptor is free"));
        Client { stream, replies }
    }

    pub(crate) fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).expect("it reads");
    }

    /// Nothing more is sent.
    pub(crate) fn end(&self) {
        self.stream.shutdown(Shutdown::Write).expect("it is open");
    }

    /// The next reply, without its LF; empty at the end.
    #[track_caller]
    pub(crate) fn reply(&mut self) -> String {
        let mut line = String::new();
        self.replies.read_line(&mut line).expect("a reply or the end");
        line.trim_end().to_owned()
    }

    /// Replies until one of `want` comes.
    #[track_caller]
    pub(crate) fn wait_reply(&mut self, want: &str) {
        loop {
            let reply = self.reply();
            if reply == want {
                return;
            }
            assert!(reply.starts_with("ack "), "{reply:?} while waiting for {want:?}");
        }
    }
}

fn config(when: &str, to: &str, more: &str) -> String {
    format!(
        "[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\", \"udp://127.0.0.1:0\"]\n\
         ack_when = \"{when}\"\n\
         [outputs.store]\ntype = \"tcp\"\nfrom = [\"app\"]\nto = [\"{to}\"]\n\
         min_retry_delay = \"20ms\"\nmax_retry_delay = \"100ms\"\n{more}\n"
    )
}

fn acks(daemon: &Daemon, path: &str) -> u64 {
    Daemon::number(&daemon.source("app"), &format!("acks/{path}"))
}

#[test]
fn accepted_lines_are_acknowledged_with_aggregates_too() {
    let toml = "[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\nack_when = \"accepted\"\n\
                [transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"1h\"\nmax_series = 3\n\
                [outputs.points]\ntype = \"graphite_file\"\nfrom = [\"stats\"]\npath = \"points\"\n";
    let mut daemon = Builder::native(toml).start();
    let mut client = Client::connect(daemon.at("app", "tcp"));
    client.send("a:1|c\nb:");
    assert_eq!(client.reply(), "ack 1");
    client.send("1|c\nnonsense\n\na:1|c");
    assert_eq!(client.reply(), "ack 4 rejected 1");
    client.end();
    assert_eq!(client.reply(), "ack 5 rejected 1");
    assert_eq!(client.reply(), "", "everything is answered");
    let mut client = Client::connect(daemon.at("app", "tcp"));
    client.send("a:1|c\n");
    assert_eq!(client.reply(), "ack 1");
    client.send("c:1|c\nd:1|c\n");
    assert_eq!(client.reply(), "err 1 dropped", "a fourth series is one too many");
    assert_eq!(client.reply(), "");
    drop(client);
    daemon.wait_source("app", "acks/lines_unacked", 0);
    assert_eq!((acks(&daemon, "lines_acked"), acks(&daemon, "failed/dropped")), (6, 1));
    daemon.assert_sums_hold();
    daemon.stop();
}

#[test]
fn delivered_waits_for_the_endpoint_and_goes_on_after_a_reload() {
    let mut graphite = FakeGraphite::new();
    graphite.refuse();
    let toml = config("delivered", &graphite.to(), "");
    let mut daemon = Builder::native(&toml).start();
    let mut early = Client::connect(daemon.at("app", "tcp"));
    let mut late = Client::connect(daemon.at("app", "tcp"));
    early.send("early:1|c\nearly:2|c\n");
    daemon.wait_source("app", "routed", 2);
    late.send("late:1|c\n");
    late.end();
    daemon.wait_source("app", "acks/lines_unacked", 3);
    daemon.reload(&toml.replace("delivered", "accepted"), "done");
    assert_eq!(acks(&daemon, "lines_acked"), 0);
    let mut newest = Client::connect(daemon.at("app", "tcp"));
    newest.send("newest:1|c\n");
    assert_eq!(newest.reply(), "ack 1", "accepted is all that is asked for now");
    graphite.come_back();
    early.wait_reply("ack 2");
    late.wait_reply("ack 1");
    assert_eq!(late.reply(), "");
    let stored = graphite.bytes();
    assert_eq!(String::from_utf8_lossy(&stored), "early:1|c\nearly:2|c\nlate:1|c\nnewest:1|c\n");
    daemon.wait_source("app", "acks/lines_unacked", 0);
    daemon.stop();
}

#[test]
fn a_reload_that_gives_a_queue_another_endpoint_answers_who_waited_for_it() {
    let (mut away, graphite) = (FakeGraphite::new(), FakeGraphite::new());
    away.refuse();
    let toml = |to: &str| config("delivered", to, "queue = { kind = \"disk\" }");
    let mut daemon = Builder::native(&toml(&away.to())).start();
    let mut client = Client::connect(daemon.at("app", "tcp"));
    client.send("a:1|c\nb:1|c\n");
    daemon.wait_source("app", "routed", 2);
    daemon.reload(&toml(&graphite.to()), "done");
    client.wait_reply("ack 2");
    assert_eq!(String::from_utf8_lossy(&graphite.bytes()), "a:1|c\nb:1|c\n");
    daemon.stop();
}

#[test]
fn a_reload_that_takes_the_ground_from_a_promise_ends_who_had_it() {
    let graphite = FakeGraphite::new();
    let toml = config("safe", &graphite.to(), "queue = { kind = \"disk\" }");
    let aggregated = "[transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"1h\"\n\
                      [outputs.points]\ntype = \"graphite_file\"\nfrom = [\"stats\"]\npath = \"points\"\n";
    let mut daemon = Builder::native(&toml).start();
    let mut client = Client::connect(daemon.at("app", "tcp"));
    client.send("a:1|c\n");
    assert_eq!(client.reply(), "ack 1");
    daemon.reload(&(toml.replace("\"safe\"", "\"accepted\"") + aggregated), "done");
    client.send("a:1|c\n");
    assert_eq!(client.reply(), "err 1 reloaded", "an aggregate is in memory");
    let mut client = Client::connect(daemon.at("app", "tcp"));
    client.send("a:1|c\n");
    assert_eq!(client.reply(), "ack 1");
    daemon.stop();
}

#[test]
fn a_reload_after_which_a_source_takes_messages_ends_who_sends_lines() {
    let graphite = FakeGraphite::new();
    let source = "[sources.app]\nlisten = [\"tcp://127.0.0.1:0\"]\n";
    let lines = format!(
        "{source}type = \"statsd\"\nack_when = \"accepted\"\n\
         [outputs.store]\ntype = \"tcp\"\nfrom = [\"app\"]\nto = [\"{}\"]\n",
        graphite.to()
    );
    let messages = format!(
        "{source}type = \"graphite\"\nencoding = \"pickle\"\n\
         [outputs.points]\ntype = \"graphite_file\"\nfrom = [\"app\"]\n"
    );
    let mut daemon = Builder::native(&lines).start();
    let mut client = Client::connect(daemon.at("app", "tcp"));
    client.send("a:1|c\n");
    assert_eq!(client.reply(), "ack 1");
    daemon.reload(&messages, "done");
    client.send("a:1|c\n");
    assert_eq!(client.reply(), "err 1 reloaded");
    daemon.stop();
}

#[test]
fn what_was_acknowledged_as_safe_is_delivered_after_a_kill() {
    let mut graphite = FakeGraphite::new();
    graphite.refuse();
    let toml = config("safe", &graphite.to(), "queue = { kind = \"disk\", sync_window = \"5ms\" }");
    let mut daemon = Builder::native(&toml).start();
    let mut client = Client::connect(daemon.at("app", "tcp"));
    let (mut sent, mut acked) = (0, 0);
    for _ in 0..40 {
        let lines: String = (sent..sent + 25).map(|number| format!("line.{number}:1|c\n")).collect();
        client.send(&lines);
        sent += 25;
        if sent % 100 == 0 {
            let reply = client.reply();
            acked = reply.strip_prefix("ack ").and_then(|count| count.parse().ok()).expect("an ack");
        }
    }
    assert!(acked > 0 && acked <= sent, "the endpoint is down all the time");
    daemon.signal("KILL");
    daemon.wait_exit();
    graphite.come_back();
    daemon.start_again();
    wait_for("everything that was acknowledged", || {
        let stored = graphite.bytes();
        let stored: BTreeSet<&[u8]> = stored.split(|byte| *byte == b'\n').collect();
        (0..acked).all(|number| stored.contains(format!("line.{number}:1|c").as_bytes())).then_some(())
    });
    // The client sends the rest again, and gets the acknowledgements as before.
    let mut again = Client::connect(daemon.at("app", "tcp"));
    let rest: String = (acked..sent).map(|number| format!("line.{number}:1|c\n")).collect();
    again.send(&rest);
    // All of it may have been acknowledged: nothing is sent again then, and nobody answers.
    if acked < sent {
        again.wait_reply(&format!("ack {}", sent - acked));
    }
    daemon.stop();
    let stored = graphite.bytes();
    let stored: BTreeSet<&[u8]> = stored.split(|byte| *byte == b'\n').collect();
    assert_eq!(stored.len(), sent + 1, "each line, and what is behind the last LF");
}

#[test]
fn a_copy_that_is_dropped_ends_every_connection_that_waits_for_its_output() {
    let mut graphite = FakeGraphite::new();
    graphite.refuse();
    let more = "queue = { max_records = 2, when_full = \"drop_oldest\" }";
    let mut daemon = Builder::native(&config("delivered", &graphite.to(), more)).start();
    let mut client = Client::connect(daemon.at("app", "tcp"));
    client.send("a:1|c\n");
    daemon.wait_source("app", "acks/lines_unacked", 1);
    daemon.wait_source("app", "routed", 1);
    let socket = udp(daemon.at("app", "udp"));
    for _ in 0..3 {
        socket.send(b"b:1|c").expect("it is there");
    }
    assert_eq!(client.reply(), "err 0 dropped");
    assert_eq!(client.reply(), "");
    graphite.come_back();
    daemon.wait_output("store", "queued", 0);
    // It connects again and sends from the first line on that was not acknowledged.
    let mut again = Client::connect(daemon.at("app", "tcp"));
    again.send("a:1|c\n");
    again.wait_reply("ack 1");
    assert_eq!(acks(&daemon, "failed/dropped"), 1);
    daemon.assert_sums_hold();
    daemon.stop();
}

#[test]
fn sigterm_answers_what_it_can_and_says_what_it_cannot() {
    let graphite = FakeGraphite::new();
    graphite.behave(Manner::Hang);
    for (ends_well, last) in [(true, "ack 1"), (false, "err 0 stopped")] {
        let toml = config("delivered", &graphite.to(), "");
        let stop = if ends_well { "stop_timeout = \"50s\"\n" } else { "stop_timeout = \"500ms\"\n" };
        // An endpoint whose kernel takes what nobody reads would count as one that has it.
        let away = "tcp://127.0.0.1:9";
        let toml = if ends_well { toml } else { toml.replace(&graphite.to(), away) };
        let mut daemon = Builder::native(&format!("{stop}{toml}")).start();
        let mut client = Client::connect(daemon.at("app", "tcp"));
        daemon.signal("STOP");
        client.send("a:1|c\n");
        daemon.signal("TERM");
        daemon.signal("CONT");
        assert_eq!(client.reply(), last);
        assert_eq!(client.reply(), "");
        assert!(daemon.wait_exit().success(), "{}", daemon.stderr());
    }
}

#[test]
fn frames_and_unix_sockets_are_answered() {
    let graphite = FakeGraphite::new();
    let toml = config("accepted", &graphite.to(), "").replace(
        "\"tcp://127.0.0.1:0\", ",
        "\"tcp://127.0.0.1:0\", \"unix://lines\", \"unix-frames://frames\", ",
    );
    let mut daemon = Builder::native(&toml.replace("ack_when", "max_line_bytes = \"64B\"\nack_when")).start();
    let reply = |stream: &UnixStream| {
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out can be set");
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).expect("a reply");
        line
    };
    let connect = |name: &str| UnixStream::connect(daemon.folder.path().join(name)).expect("it listens");
    let mut lines = connect("lines");
    lines.write_all(b"a:1|c\nb:1|c\n").expect("it reads");
    assert_eq!(reply(&lines), "ack 2\n");
    let mut frames = connect("frames");
    frames.write_all(b"\x05\0\0\0a:1|c\x0b\0\0\0b:1|c\nc:1|c").expect("it reads");
    assert_eq!(reply(&frames), "ack 2\n", "frames are counted, not lines");
    frames.write_all(b"\xff\0\0\0").expect("it reads");
    assert_eq!(reply(&frames), "err 2 bad_frame\n");
    assert_eq!(acks(&daemon, "failed/bad_frame"), 1);
    assert_eq!(Daemon::number(&daemon.source("app"), "connections_broken"), 1);
    daemon.stop();
}

#[test]
fn a_client_that_reads_no_replies_is_cut_off_and_costs_nothing() {
    let graphite = FakeGraphite::new();
    let toml = config("accepted", &graphite.to(), "")
        .replacen("\"tcp://", "\"unix://lines\", \"tcp://", 1)
        .replace("ack_when", "idle_timeout = \"200ms\"\nack_when");
    let mut daemon = Builder::native(&toml).start();
    let silent = Client::connect(daemon.at("app", "tcp"));
    let mut silent_too = Client::connect(daemon.at("app", "tcp"));
    silent_too.send("a:1|c\n");
    assert_eq!((silent_too.reply(), silent_too.reply()), ("ack 1".into(), "err 1 idle_timeout".into()));
    daemon.wait_source("app", "acks/failed/idle_timeout", 2);
    drop(silent);
    // Lines without end, and nobody reads: the daemon stops reading when it cannot answer.
    let mut deaf = UnixStream::connect(daemon.folder.path().join("lines")).expect("it listens");
    let sender = std::thread::spawn(move || while deaf.write_all(b"a:1|c\n").is_ok() {});
    wait_for("the end of the deaf client", || (acks(&daemon, "failed/unread") == 1).then_some(()));
    sender.join().expect("it has only written");
    daemon.wait_source("app", "acks/lines_unacked", 0);
    daemon.stop();
}

#[test]
fn the_client_of_the_docs_sends_everything_and_ends() {
    let page = include_str!("../../../../docs/acks.md");
    let script = page.split("```python\n").nth(1).and_then(|rest| rest.split("```").next());
    let script = script.expect("the page has a client in Python");
    assert!(script.lines().count() <= 30, "a client is short");
    let graphite = FakeGraphite::new();
    let mut daemon = Builder::native(&config("delivered", &graphite.to(), "")).start();
    let at = daemon.at("app", "tcp");
    let client = Command::new("python3")
        .args(["-c", &script.replace("8125", &at.port().to_string())])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut client) = client else {
        crate::support::skip("acks", "there is no python3");
        return;
    };
    let mut lines = client.stdin.take().expect("it is piped");
    for number in 0..2500 {
        writeln!(lines, "line.{number}:1|c").expect("it reads");
    }
    drop(lines);
    let ended = client.wait_with_output().expect("it is our child");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    daemon.wait_source("app", "acks/lines_acked", 2500);
    daemon.stop();
    let stored = graphite.bytes();
    let stored: BTreeSet<&[u8]> = stored.split(|byte| *byte == b'\n').collect();
    assert!((0..2500).all(|number| stored.contains(format!("line.{number}:1|c").as_bytes())));
}

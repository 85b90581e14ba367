//! `staunch relay` as a daemon among others: its log, its pid file, its signals, and the way into the background.

use std::fs;
use std::path::Path;

use crate::support::{Builder, FakeGraphite, wait_for};

/// A relay to an endpoint that is not there.
fn conf(port: u16) -> String {
    let listen = free_port();
    format!(
        "listen type linemode 127.0.0.1:{listen} proto tcp;\ncluster a forward 127.0.0.1:{port};\nmatch * send to a;\n"
    )
}

/// A port that nobody listens at: a relay.conf has no word for any free one.
pub(crate) fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it is bound").port()
}

/// Waits for a line of the log that ends so, and gives it.
#[track_caller]
fn wait_line(log: &Path, end: &str) -> String {
    wait_for(&format!("a line that ends in {end:?}"), || {
        let text = fs::read_to_string(log).ok()?;
        text.lines().find(|line| line.ends_with(end)).map(str::to_owned)
    })
}

#[test]
fn the_log_has_the_originals_form_and_words() {
    let port = free_port();
    let builder = Builder::relay(&conf(port)).args(&["-l", "relay.log", "-P", "relay.pid"]);
    let mut daemon = builder.spawn();
    let at = |name: &str| daemon.folder.path().join(name);
    let (log, moved, pid) = (at("relay.log"), at("old.log"), at("relay.pid"));
    let line = wait_line(&log, "startup sequence complete");
    let (stamp, text) = line.split_at(22);
    assert_eq!(text, "(MSG) startup sequence complete");
    let shape: String = stamp.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(shape, "[0000-00-00 00:00:00] ");
    let text = fs::read_to_string(&log).expect("it is there");
    assert!(text.contains("] (MSG) starting carbon-c-relay v"), "{text}");
    assert!(text.contains(&format!(", pid={}\n", daemon.pid())), "{text}");
    assert!(text.contains("] (MSG) listening on tcp4 127.0.0.1 port "), "{text}");
    assert_eq!(fs::read_to_string(&pid).ok(), Some(format!("{}\n", daemon.pid())));
    wait_line(&log, &format!("(ERR) failed to connect() to 127.0.0.1:{port}: Connection refused"));
    // The file is moved away, as logrotate does it.
    fs::rename(&log, &moved).expect("same folder");
    daemon.signal("HUP");
    wait_line(&moved, "(MSG) caught SIGHUP");
    daemon.signal("USR1");
    wait_line(&log, "(MSG) caught SIGUSR1");
    daemon.signal("TERM");
    assert_eq!(daemon.wait_exit().code(), Some(0));
    wait_line(&log, "(MSG) caught SIGTERM");
    let text = fs::read_to_string(&log).expect("it is there");
    assert!(
        text.lines().last().is_some_and(|line| line.contains("(MSG) stopped carbon-c-relay v")),
        "{text}"
    );
    assert!(!pid.exists(), "it goes with the daemon");
    assert_eq!(daemon.stderr(), "", "all of it is in the file");
}

#[test]
fn among_errors_stands_what_the_original_calls_one() {
    let graphite = FakeGraphite::new();
    let to = graphite.to().rsplit(':').next().expect("a port").to_owned();
    let log_of = |flags: &[&str]| {
        let port = free_port();
        let conf = format!(
            "listen type linemode 127.0.0.1:{port} proto tcp;\ncluster a forward 127.0.0.1:{to};\n\
             aggregate ^a every 1 seconds expire after 2 seconds compute sum write to s;\nmatch * send to a;\n"
        );
        let mut daemon = Builder::relay(&conf).args(&["-l", "relay.log"]).args(flags).spawn();
        let log = daemon.folder.path().join("relay.log");
        wait_line(&log, "startup sequence complete");
        let mut client = std::net::TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        std::io::Write::write_all(&mut client, b"nothing\na.b 1\n").expect("it reads");
        wait_for("the line", || graphite.bytes().ends_with(b"a.b 1\n").then_some(()));
        wait_line(&log, "Further ones are only counted.");
        daemon.signal("TERM");
        assert_eq!(daemon.wait_exit().code(), Some(0));
        fs::read_to_string(&log).expect("it is there")
    };
    let text = log_of(&["-d"]);
    assert!(text.contains("(MSG) source `lines`: a line was rejected"), "{text}");
    assert!(text.contains("(ERR) aggregator: dropping incorrect metric: a.b 1\n"), "{text}");
    let text = log_of(&[]);
    assert!(!text.contains("incorrect metric"), "only with -d: {text}");
}

#[test]
fn a_second_signal_ends_at_once() {
    let mut daemon = Builder::relay(&conf(free_port())).start();
    let mut client = std::net::TcpStream::connect(daemon.at("lines", "tcp")).expect("it listens");
    std::io::Write::write_all(&mut client, b"a 1 2\n").expect("it reads");
    daemon.wait_source("lines", "routed", 1);
    // What waits for the endpoint keeps it from stopping.
    daemon.signal("TERM");
    wait_for("the stop to begin", || daemon.stdout().contains("shutting down...").then_some(()));
    daemon.signal("INT");
    assert_eq!(daemon.wait_exit().code(), Some(1));
    assert!(daemon.stderr().contains("caught SIGINT again"), "{}", daemon.stderr());
}

#[cfg(target_os = "linux")]
#[test]
fn in_the_background_it_is_up_when_its_starter_ends() {
    let graphite = FakeGraphite::new();
    let port = graphite.to().rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    let builder = Builder::relay(&conf(port)).args(&["-l", "relay.log", "-P", "relay.pid", "-D"]);
    let mut starter = builder.spawn();
    assert_eq!(starter.wait_exit().code(), Some(0));
    let log = starter.folder.path().join("relay.log");
    let pid = starter.folder.path().join("relay.pid");
    let text = fs::read_to_string(&log).expect("it is there");
    assert!(text.contains("startup sequence complete"), "{text}");
    let process = fs::read_to_string(&pid).expect("it is there").trim().to_owned();
    let ended = std::process::Command::new("kill").args(["-TERM", &process]).status();
    assert!(ended.expect("there is a kill").success());
    wait_for("the pid file to go", || (!pid.exists()).then_some(()));
    wait_line(&log, "(MSG) shutting down...");
    // What cannot start says so, and its starter does not end well.
    let (code, said) = Builder::relay("cluster a forward 127.0.0.1:1; match x send to b;")
        .args(&["-l", "relay.log", "-D"])
        .run_to_end();
    assert!(code == 1 && !said.is_empty(), "{code}: {said}");
}

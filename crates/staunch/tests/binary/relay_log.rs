//! `staunch relay` as a daemon among others: its log, its pid file, its signals, and the way into the background.

use std::fs;
use std::path::Path;

use crate::support::{Builder, FakeGraphite, wait_for, wait_until_equal};

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
    let mut graphite = FakeGraphite::new();
    let port = graphite.at().port();
    graphite.refuse();
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
    graphite.come_back();
    let listens = text.split(" port ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
    let listens = std::net::SocketAddr::from(([127, 0, 0, 1], listens.expect("it prints its port")));
    let mut client = std::net::TcpStream::connect(listens).expect("it listens");
    std::io::Write::write_all(&mut client, b"a 1 2\nbad\n").expect("it reads");
    wait_for("the line to arrive", || (graphite.bytes() == b"a 1 2\n").then_some(()));
    daemon.signal("TERM");
    assert_eq!(daemon.wait_exit().code(), Some(0));
    wait_line(&log, "(MSG) caught SIGTERM");
    let text = fs::read_to_string(&log).expect("it is there");
    assert!(
        text.lines().last().is_some_and(|line| line.contains("(MSG) stopped carbon-c-relay v")),
        "{text}"
    );
    for end in [
        "(MSG) stopped worker 1".to_owned(),
        format!("(MSG) closed listener for tcp {listens}"),
        "(MSG) stopped servers".to_owned(),
        "(MSG) from lines: 2 lines: 1 routed, 1 lost as no_value".to_owned(),
        "(MSG) to all endpoints: 1 copies: 1 delivered".to_owned(),
    ] {
        assert!(text.lines().any(|line| line.ends_with(&end)), "{end}: {text}");
    }
    assert!(!pid.exists(), "it goes with the daemon");
    assert_eq!(daemon.stderr(), "", "all of it is in the file");
}

/// Lines without their times.
fn untimed(text: &str) -> String {
    let lines = text.lines().map(|line| match line.split_at_checked(22) {
        Some((stamp, rest)) if stamp.starts_with("[2") && stamp.ends_with("] ") => rest,
        _ => line,
    });
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_refused_configuration_is_logged_in_the_originals_words_and_in_ours() {
    let wrong = "cluster a forward 127.0.0.1:1;\nmatch x send to b;\nmatch y send to c;\n";
    let original = "relay.conf:2:16: unknown cluster\nmatch x send to b;\n                ^\n\
                    failed to read configuration 'relay.conf'\n";
    for more in [&[][..], &["-l", "relay.log"]] {
        let mut daemon = Builder::relay(wrong).args(more).spawn();
        assert_eq!(daemon.wait_exit().code(), Some(1));
        let said = untimed(&daemon.stderr());
        assert!(said.ends_with(original), "{said}");
        assert!(said.contains("relay.conf:3:") && said.contains("2 errors"), "ours has all of them: {said}");
        let log = fs::read_to_string(daemon.folder.path().join("relay.log")).unwrap_or_default();
        let errors: String = untimed(&log)
            .lines()
            .filter_map(|line| line.strip_prefix("(ERR) "))
            .fold(String::new(), |all, line| all + line + "\n");
        assert_eq!(errors, if more.is_empty() { "" } else { original }, "{log}");
    }
}

#[test]
fn a_reload_logs_what_has_changed_or_why_it_is_refused() {
    let text = conf(free_port());
    let mut daemon = Builder::relay(&text).start();
    let old_port =
        text.split("forward 127.0.0.1:").nth(1).and_then(|rest| rest.split(';').next()).expect("a port");
    let changed = text.replace("match *", "match ^b\n    send to blackhole;\nmatch *");
    let said = |from: &str| {
        wait_for(from, || {
            let (_, rest) =
                daemon.stdout().split_once(from).map(|(head, rest)| (head.len(), rest.to_owned()))?;
            rest.contains("SIGHUP handler complete").then(|| untimed(&rest))
        })
    };
    daemon.reload(&changed, "done");
    let diff = "reloading config from 'relay.conf'\n--- in force\n+++ read anew\n\
                @@ -13,6 +13,10 @@\n         127.0.0.1:PORT\n     ;\n \n\
                +match ^b\n+    send to blackhole\n+    stop\n+    ;\n match *\n     send to a\n     ;\n";
    let text_of = said("caught SIGHUP\n");
    assert!(text_of.starts_with(&diff.replace("PORT", old_port)), "{text_of}");
    daemon.reload(&format!("{changed}match x send to nowhere;\n"), "refused");
    wait_for("the original's words", || {
        let said = untimed(&daemon.stderr());
        let line = changed.lines().count() + 1;
        let want = format!(
            "relay.conf:{line}:16: unknown cluster\nmatch x send to nowhere;\n                ^^^^^^^\n\
             failed to read configuration 'relay.conf', aborting reload\nreload refused, nothing changed:\n"
        );
        said.contains(&want).then_some(())
    });
    daemon.wait_logged("hint: ");
    // What was refused never was in force: nothing has changed since.
    daemon.reload(&changed, "done");
    wait_for("no changes", || daemon.stdout().contains("no config changes found").then_some(()));
    assert_eq!(daemon.stdout().matches("+match ^b").count(), 1);
    daemon.stop();
}

#[test]
fn a_start_that_fails_leaves_the_pid_file_of_the_one_that_runs() {
    let mut daemon = Builder::relay(&conf(free_port())).args(&["-P", "relay.pid"]).start();
    let pid = daemon.folder.path().join("relay.pid");
    let own = format!("{}\n", daemon.pid());
    wait_until_equal("the pid file", &own, || fs::read_to_string(&pid).unwrap_or_default());
    let mut second = daemon.beside();
    assert_eq!(second.wait_exit().code(), Some(2), "its port is taken: {}", second.stderr());
    assert_eq!(fs::read_to_string(&pid).ok(), Some(own));
    daemon.stop();
    assert!(!pid.exists());
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
    assert!(text.contains("(MSG) source `lines`: a line from 127.0.0.1:"), "{text}");
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
    daemon.wait_logged("caught SIGINT again");
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
    let first = fs::read_to_string(&pid).expect("it is there").trim().to_owned();
    // Another one takes over, in the background as well.
    let mut starter = starter.successor();
    assert_eq!(starter.wait_exit().code(), Some(0), "{}", starter.stderr());
    let process = fs::read_to_string(&pid).expect("it is there").trim().to_owned();
    assert_ne!(process, first);
    wait_line(&log, "(MSG) stopped: the new process continues");
    assert_eq!(fs::read_to_string(&pid).ok(), Some(format!("{process}\n")), "the first one leaves it");
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

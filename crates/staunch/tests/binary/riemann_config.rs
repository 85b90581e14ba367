//! `staunch riemann FILE`: a config with its streams, index, queries, expiry and points to Graphite; reloads; mistakes.

use std::io::Write;
use std::net::TcpStream;

use model::{EventRef, EventTime, EventsBuilder, NumberRef, TextField};
use wire::riemann::{self, Limits};

use crate::riemann::{connect, framed, reply};
use crate::support::daemon::STAUNCH;
use crate::support::{Builder, Daemon, FakeGraphite, wait_for};

/// A config with servers on free ports, and these streams.
pub(crate) fn config(streams: &str) -> String {
    format!(
        "(tcp-server {{:port 0}})\n(udp-server {{:port 0}})\n(instrumentation {{:enabled? false}})\n{streams}\n"
    )
}

/// A message with an event without a time, and perhaps a query.
pub(crate) fn message(service: &str, metric: i64, ttl_s: f32, query: Option<&str>) -> Vec<u8> {
    let mut events = EventsBuilder::default();
    let mut event = events.event();
    event.plain_text(TextField::Host, "web1");
    event.plain_text(TextField::Service, service);
    event.metric(NumberRef::I64(metric));
    event.ttl_s(ttl_s);
    event.finish();
    let mut out = Vec::new();
    riemann::request(query, events.view().iter(), &mut out);
    framed(&out)
}

fn query(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    riemann::request(Some(text), std::iter::empty(), &mut out);
    framed(&out)
}

/// The services and metrics in the reply to a query, sorted; or the error.
fn answer(client: &mut TcpStream) -> Result<Vec<String>, String> {
    let reply = reply(client);
    let mut events = EventsBuilder::default();
    let message = riemann::decode(&reply, EventTime::Seconds(0), Limits::default(), &mut events);
    let message = message.expect("a reply is a message");
    if message.ok != Some(true) {
        return Err(message.error.map(|error| error.to_string()).unwrap_or_default());
    }
    let shown = |event: EventRef<'_>| {
        let metric = match event.metric() {
            Some(NumberRef::I64(metric)) => metric.to_string(),
            other => format!("{other:?}"),
        };
        format!("{} {metric}", event.service().unwrap_or_default())
    };
    let mut all: Vec<String> = events.view().iter().map(shown).collect();
    all.sort();
    Ok(all)
}

pub(crate) fn ask(client: &mut TcpStream, text: &str) -> Result<Vec<String>, String> {
    client.write_all(&query(text)).expect("it reads");
    answer(client)
}

fn start(streams: &str) -> (Daemon, TcpStream) {
    let daemon = Builder::riemann(&config(streams)).start();
    let client = connect(daemon.at("riemann", "tcp"));
    (daemon, client)
}

#[test]
fn a_query_finds_all_events_that_its_client_sent_before_it() {
    let (mut daemon, mut client) = start("(streams (index))");
    // Many messages and a query in one write: the query is the last one.
    let many: Vec<u8> =
        (0..500).flat_map(|number| message(&format!("s{number}"), number, 60.0, None)).collect();
    client.write_all(&[many, query("metric >= 498")].concat()).expect("it reads");
    for _ in 0..500 {
        assert_eq!(reply(&mut client), riemann::OK_REPLY);
    }
    assert_eq!(answer(&mut client), Ok(vec!["s498 498".to_owned(), "s499 499".to_owned()]));
    // Events and a query in one message.
    client.write_all(&message("last", 7, 60.0, Some("service = \"last\""))).expect("it reads");
    assert_eq!(answer(&mut client), Ok(vec!["last 7".to_owned()]));
    let error = ask(&mut client, "oh no").expect_err("it is no query");
    assert!(error.starts_with("mismatched input 'no' expecting"), "{error}");
    assert_eq!(ask(&mut client, "false"), Ok(Vec::new()), "the connection goes on");
    daemon.wait_source("riemann", "aggregated", 501);
    daemon.assert_sums_hold();
    daemon.stop();
}

#[test]
fn events_expire_and_go_through_the_streams_again() {
    let (mut daemon, mut client) = start(
        "(periodically-expire 1) (streams (index) (expired (fn [e] (println \"gone:\" (:service e)))))",
    );
    client.write_all(&message("short", 1, 0.5, None)).expect("it reads");
    assert_eq!(reply(&mut client), riemann::OK_REPLY);
    daemon.wait_logged("gone: short");
    assert_eq!(ask(&mut client, "true"), Ok(Vec::new()));
    daemon.stop();
}

#[test]
fn points_of_a_stream_reach_graphite_and_are_in_the_account_of_its_output() {
    let graphite = FakeGraphite::new();
    let port = graphite.at().port();
    let (mut daemon, mut client) = start(&format!(
        "(def to-graphite (graphite {{:host \"127.0.0.1\" :port {port} :path (fn [e] (str \"riemann.\" (:service e)))}}))
         (streams (where (service #\"^cpu\") to-graphite))"
    ));
    for (service, metric) in [("cpu", 3), ("mem", 4), ("cpu2", 5)] {
        client.write_all(&message(service, metric, 60.0, None)).expect("it reads");
        assert_eq!(reply(&mut client), riemann::OK_REPLY);
    }
    wait_for("two points", || (graphite.points().len() == 2).then_some(()));
    assert_eq!((graphite.total("riemann.cpu"), graphite.total("riemann.cpu2")), (3.0, 5.0));
    daemon.wait_output(&format!("streams/127.0.0.1:{port}"), "delivered", 2);
    daemon.assert_sums_hold();
    daemon.stop();
}

#[test]
fn a_stream_that_throws_harms_neither_the_others_nor_its_client() {
    let (mut daemon, mut client) = start(
        "(streams (fn [e] (throw (Exception. \"broken\"))))\n(streams (index) (fn [e] (loop [] (recur))))",
    );
    for number in 0..20 {
        client.write_all(&message(&format!("s{number}"), 1, 60.0, None)).expect("it reads");
        assert_eq!(reply(&mut client), riemann::OK_REPLY);
    }
    assert_eq!(ask(&mut client, "true").map(|found| found.len()), Ok(20));
    daemon.wait_logged("riemann.config:4");
    daemon.wait_logged("too many steps");
    daemon.assert_sums_hold();
    daemon.stop();
}

#[test]
fn a_reload_keeps_the_index_and_a_broken_config_changes_nothing() {
    let (mut daemon, mut client) = start("(streams (index))");
    client.write_all(&message("kept", 1, 60.0, None)).expect("it reads");
    assert_eq!(reply(&mut client), riemann::OK_REPLY);
    let file = daemon.file.clone().expect("it has a config");
    let write = |streams: &str| std::fs::write(&file, config(streams)).expect("it can be written");
    daemon.hang_up("refused", || write("(streams (indx))"));
    assert_eq!(ask(&mut client, "true"), Ok(vec!["kept 1".to_owned()]));
    daemon.hang_up("done", || write("(let [i (index)] (streams (with :service \"renamed\" i)))"));
    client.write_all(&message("new", 2, 60.0, None)).expect("the connection goes on");
    assert_eq!(reply(&mut client), riemann::OK_REPLY);
    assert_eq!(ask(&mut client, "true"), Ok(vec!["kept 1".to_owned(), "renamed 2".to_owned()]));
    daemon.assert_sums_hold();
    daemon.stop();
}

#[test]
fn a_config_that_cannot_be_loaded_ends_with_its_mistakes_and_exit_code_1() {
    let (code, said) =
        Builder::riemann("(tcp-server)\n(streams (wher (service \"x\") prn))\n(streams (raet 5))")
            .run_to_end();
    assert_eq!(code, 1, "{said}");
    for part in ["riemann.config:2:11", "`where`", "riemann.config:3:11", "`rate`", "R001", "2 errors"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn the_tests_of_a_config_are_run_and_reported() {
    let config = "(tcp-server) (streams (index) (where (> metric 1) (tap :high)))
        (tests (deftest high (is (= 1 (count (:high (inject! [{:metric 1 :time 1} {:metric 2 :time 2}])))))
                             (is (= EXPECTED (:metric (first (:high (inject! []))))))))";
    for (expected, code) in [("2", 0), ("3", 1)] {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("riemann.config");
        std::fs::write(&file, config.replace("EXPECTED", expected)).expect("a file");
        let junit = folder.path().join("report.xml");
        let ran = std::process::Command::new(STAUNCH)
            .args(["riemann", "test"])
            .arg(&file)
            .arg("--junit")
            .arg(&junit)
            .output()
            .expect("it runs");
        let out = String::from_utf8_lossy(&ran.stdout);
        assert_eq!(ran.status.code(), Some(code), "{out}");
        assert!(out.contains("Ran 1 tests containing 2 assertions."), "{out}");
        assert_eq!(out.contains("actual: (not (= 3 2))"), code == 1, "{out}");
        let xml = std::fs::read_to_string(&junit).expect("the report");
        assert!(xml.contains("<testcase name=\"high\" classname=\"riemann.config-test\">"), "{xml}");
    }
}

/// Runs the command in a folder with these files. The exit code, standard output and standard error.
fn replay(files: &[(&str, &[u8])], args: &str) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("it can be written");
    }
    let mut command = std::process::Command::new(STAUNCH);
    command.args(["riemann", "replay"]).args(args.split(' ')).current_dir(folder.path());
    let output = command.output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it is UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn recorded_events_show_what_a_config_would_have_done_and_what_another_one_would_not() {
    let config = |over: f64, window: u32| {
        format!(
            "(instrumentation {{:enabled? false}})\n(streams (where (> metric {over}) (staunch/output \"alerts\"))\n\
             (fixed-time-window {window} (smap count (fn [n] (warn \"in a window:\" n)))))"
        )
    };
    let line = |time: i64, metric: f64| {
        format!("{{\"host\":\"h\",\"metric\":{metric},\"time\":{time},\"x\":\"y\"}}\n")
    };
    let lines: String = (0..4).map(|at| line(1_700_000_000 + at * 10, at as f64 / 4.0)).collect();
    let (one, other) = (config(0.4, 30), config(0.6, 30));
    let files = [("a", one.as_bytes()), ("b", other.as_bytes()), ("events", lines.as_bytes())];
    let (code, out, err) = replay(&files, "a --from events --seconds-after 60");
    let event = |second: u32, metric: f64| {
        format!(
            "2023-11-14T22:13:{second}.000Z  alerts  {{\"host\":\"h\",\"service\":null,\"state\":null,\"description\":null,\
             \"metric\":{metric},\"tags\":null,\"time\":\"2023-11-14T22:13:{second}.000Z\",\"ttl\":null,\"x\":\"y\"}}\n"
        )
    };
    let window = "2023-11-14T22:13:50.000Z  log warn  in a window: 3\n";
    assert_eq!((code, &*out), (Some(0), &*[&event(40, 0.5), &event(50, 0.75), window].concat()), "{err}");
    assert!(err.contains("4 events: 3 actions; exceptions: 0"), "{err}");
    let (code, out, err) = replay(&files, "b --against a --from events");
    assert_eq!((code, out), (Some(1), format!("- {}", event(40, 0.5))), "{err}");
    let (code, out, err) = replay(&files, "a --against a --from events");
    assert_eq!((code, &*out), (Some(0), ""), "{err}");
    assert!(err.contains("no difference"), "{err}");
    // Messages of clients give the same as lines.
    let message = |at: i64| {
        let mut events = EventsBuilder::default();
        let mut event = events.event();
        event.metric(NumberRef::I64(at));
        event.time(EventTime::Seconds(at));
        event.finish();
        let mut out = Vec::new();
        riemann::request(None, events.view().iter(), &mut out);
        framed(&out)
    };
    let messages: Vec<u8> = (0..3).flat_map(message).collect();
    let (code, out, err) = replay(&[("a", one.as_bytes()), ("events", &messages)], "a --from events --json");
    assert_eq!(code, Some(0), "{err}");
    let actions: Vec<serde_json::Value> =
        out.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
    assert_eq!(actions.len(), 2, "{out}");
    assert_eq!((&actions[1]["output"], &actions[1]["action"]["metric"]), (&"alerts".into(), &2.into()));
}

#[test]
fn recorded_events_that_cannot_be_read_are_an_error_with_their_place() {
    let config = b"(streams prn)";
    let table: [(&[u8], &str); 8] = [
        (b"{\"time\":1}\n{\"time\":\n", "events: line 2"),
        (b"[1]", "events: line 1: an event must be an object"),
        (b"\n{\"time\":1,\"metric\":\"z\"}", "events: line 2: `metric` must be a number"),
        (b"{\"time\":1}\n{\"service\":\"a\"}\n", "events: line 2: an event has no time"),
        (b"{\"time\":\"yesterday\"}", "events: line 1: Invalid format: \"yesterday\""),
        (b"\x00\x00\x00\x05abc", "events: message 1"),
        (b"\x00\x00\x00\x03\xff\xff\xff", "events: message 1: it is no message of Riemann's"),
        (b"", "events has no events"),
    ];
    for (events, says) in table {
        let (code, _, err) = replay(&[("a", config), ("events", events)], "a --from events");
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains(says), "{says}: {err}");
    }
}

#[test]
fn an_event_file_and_events_of_subscribers_are_replayed_as_they_were() {
    let config = "(streams (where (= (:region event) \"eu\") (fn [e] (warn (:service e) (:alert_type e)))))";
    let mut events = EventsBuilder::default();
    for (region, second) in [("eu", 0), ("us", 1), ("eu", 2)] {
        let mut event = events.event();
        event.plain_text(TextField::Service, region);
        event.time(EventTime::Seconds(1_700_000_000 + second));
        event.text_attribute("region", region).expect("it is within the limits");
        event.text_attribute(model::event::attribute::ALERT_TYPE, "error").expect("it is within the limits");
        event.finish();
    }
    let (mut file, mut sent) = (Vec::new(), Vec::new());
    for event in events.view().iter() {
        wire::report::event_json_line(event, &mut file);
        riemann::json::encode(event, riemann::json::Absent::Null, &mut sent);
        sent.push(b'\n');
    }
    let want = "2023-11-14T22:13:20.000Z  log warn  eu error\n2023-11-14T22:13:22.000Z  log warn  eu error\n";
    for events in [&file[..], &sent] {
        let (code, out, err) = replay(&[("a", config.as_bytes()), ("events", events)], "a --from events");
        assert_eq!((code, &*out), (Some(0), want), "{err}");
    }
    // The same from standard input.
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a"), config).expect("it can be written");
    let mut command = std::process::Command::new(STAUNCH);
    command.args(["riemann", "replay", "a", "--from", "-"]).current_dir(folder.path());
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.stderr(std::process::Stdio::piped()).spawn().expect("it runs");
    child.stdin.take().expect("a pipe").write_all(&file).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stdout), want);
}

#[test]
fn a_replay_counts_all_exceptions_and_compares_without_places_and_shows_no_secrets() {
    let event = b"{\"time\":1700000000,\"service\":\"s\"}\n";
    let throws =
        "(streams (where true (fn [e] (throw (Exception. \"x\")))) (fn [e] (throw (Exception. \"y\"))))";
    let moved = format!("\n\n{throws}");
    let files = [("a", throws.as_bytes()), ("b", moved.as_bytes()), ("events", event)];
    let (code, out, err) = replay(&files, "a --from events");
    assert_eq!((code, out.lines().count()), (Some(0), 2), "{out}");
    assert!(err.contains("2 actions; exceptions: 2"), "{err}");
    let (code, out, err) = replay(&files, "b --against a --from events");
    assert_eq!((code, &*out), (Some(0), ""), "{err}");
    let sends = "(def email (mailer {:host \"127.0.0.1\" :pass \"p\" :user \"u\"}))
        (def pd (pagerduty {:service-key \"s3cret\" :version :v2}))
        (streams (email \"a@b\") (:trigger pd))";
    let (code, out, err) = replay(&[("a", sends.as_bytes()), ("events", event)], "a --from events");
    assert_eq!(code, Some(0), "{err}");
    let (mail, post) = out.split_once('\n').expect("two lines");
    assert!(mail.starts_with("2023-11-14T22:13:20.000Z  streams/127.0.0.1:25  {\"to\":\"a@b\",\"from\":\"riemann\",\"subject\":\"s\""), "{mail}");
    assert!(mail.contains("\"body\":\"At Tue Nov 14 22:13:20 UTC 2023\\n"), "{mail}");
    let begin = "2023-11-14T22:13:20.000Z  streams/events.pagerduty.com:443  {\"body\":{\"routing_key\":\"***\",\"event_action\":\"trigger\"";
    assert!(post.starts_with(begin), "{post}");
    assert!(!out.contains("s3cret"), "{out}");
}

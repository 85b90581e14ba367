//! `staunch riemann FILE`: a config with its streams, index, queries, expiry and points to Graphite; reloads; mistakes.

use std::io::Write;
use std::net::TcpStream;

use model::{EventRef, EventTime, EventsBuilder, NumberRef, TextField};
use wire::riemann::{self, Limits};

use crate::riemann::{connect, framed, reply};
use crate::support::daemon::STAUNCH;
use crate::support::{Builder, Daemon, FakeGraphite, wait_for};

/// A config with servers on free ports, and these streams.
fn config(streams: &str) -> String {
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

fn ask(client: &mut TcpStream, text: &str) -> Result<Vec<String>, String> {
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

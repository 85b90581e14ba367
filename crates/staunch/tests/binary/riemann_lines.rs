//! `graphite-server` and `opentsdb-server` of a Riemann config: their lines are events, perhaps changed by a function of the config.

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};

use serde_json::json;

use crate::support::daemon::STAUNCH;
use crate::support::{Builder, Daemon, PATIENCE};

/// A config with both servers, whose streams log what they get.
const CONFIG: &str = "(graphite-server {:port 0 :tags true})
(graphite-server {:port 0 :protocol :udp :parser-fn (fn [e] (case (:service e) \"drop\" nil \"throw\" (/ 1 0) (assoc e :host \"parsed\")))})
(opentsdb-server {:host \"127.0.0.2\" :port 0})
(instrumentation {:enabled? false})
(streams (fn [e] (println \"event:\" (pr-str (:host e) (:service e) (:metric e) (:time e) (:description e) (:dc e) (:cpu e)))))
";

fn send(daemon: &Daemon, source: &str, lines: &str) -> TcpStream {
    let mut stream = TcpStream::connect(daemon.at(source, "tcp")).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream.write_all(lines.as_bytes()).expect("it reads");
    stream
}

#[test]
fn lines_of_graphite_are_events_whose_tags_are_fields() {
    let mut daemon = Builder::riemann(CONFIG).start();
    let stream = send(
        &daemon,
        "riemann-graphite-tcp-0",
        "load;host=web1;dc=a 0.5 1700000000\r\nno value\nb 1 nan\nc 2 5\n",
    );
    daemon.wait_logged("event: \"web1\" \"load\" 0.5 1700000000 nil \"a\" nil");
    daemon.wait_logged("event: nil \"c\" 2.0 5 nil nil nil");
    drop(stream);
    let source = daemon.source("riemann-graphite-tcp-0");
    let rejected = &source["losses"]["rejected"];
    assert_eq!((&rejected["no_timestamp"], &rejected["bad_timestamp"]), (&json!(1), &json!(1)), "{source}");
    daemon.assert_sums_hold();
    daemon.stop();
}

#[test]
fn a_parser_function_changes_or_drops_the_events_of_its_server_only() {
    let mut daemon = Builder::riemann(CONFIG).start();
    let client = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    let lines = b"a 1 5\ndrop 2 5\nthrow 3 5\nb;dc=x 4 5\n";
    client.send_to(lines, daemon.at("riemann-graphite-udp-0", "udp")).expect("it listens");
    daemon.wait_logged("event: \"parsed\" \"a\" 1.0 5 nil nil nil");
    daemon.wait_logged("event: \"parsed\" \"b;dc=x\" 4.0 5 nil nil nil");
    daemon.wait_logged("a :parser-fn (");
    let stream = send(&daemon, "riemann-graphite-tcp-0", "drop 6 5\n");
    daemon.wait_logged("event: nil \"drop\" 6.0 5 nil nil nil");
    drop(stream);
    assert!(!daemon.stderr().contains("\"drop\" 2.0"), "{}", daemon.stderr());
    daemon.wait_source("riemann-graphite-udp-0", "aggregated", 4);
    daemon.assert_sums_hold();
    daemon.stop();
}

#[test]
fn lines_of_opentsdb_are_events_and_a_bad_one_does_not_end_their_connection() {
    let mut daemon = Builder::riemann(CONFIG).start();
    let mut stream =
        send(&daemon, "riemann-opentsdb-0", "version\nput bad\nput sys.cpu 5 3.5 host=h cpu=0 service=z\n");
    let mut reply = [0; 45];
    stream.read_exact(&mut reply).expect("it replies");
    assert_eq!(reply, *b"net.opentsdb\nBuilt on ... (riemann-opentsdb)\n");
    daemon.wait_logged("event: \"h\" \"sys.cpu cpu=0 service=z\" 3.5 5 \"sys.cpu\" nil \"0\"");
    daemon.wait_source("riemann-opentsdb-0", "losses/rejected/no_timestamp", 1);
    daemon.assert_sums_hold();
    daemon.stop();
}

#[test]
fn servers_of_a_config_are_sources_of_an_imported_one() {
    let config = "(ws-server {:port 7001 :allowed-origins [\"http://Dash.example:4567\"]})
        (sse-server {:headers {\"Access-Control-Allow-Origin\" \"*\" \"X-A\" \"b\"}})
        (graphite-server {:protocol :udp :tags true}) (opentsdb-server) (streams prn)";
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("riemann.config");
    std::fs::write(&file, config).expect("a file");
    let ran =
        std::process::Command::new(STAUNCH).args(["import", "riemann"]).arg(&file).output().expect("it runs");
    let (out, said) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    for part in [
        "[sources.riemann-ws-7001]",
        "listen = [\"tcp://127.0.0.1:7001\"]",
        "allowed_origins = [\"http://dash.example:4567\"]",
        "[sources.riemann-sse-5558]",
        "allowed_origins = [\"*\"]",
        "[sources.riemann-graphite-udp-2003]",
        "encoding = \"graphite\"",
        "tags = true",
        "[sources.riemann-opentsdb-4242]",
        "encoding = \"opentsdb\"",
    ] {
        assert!(out.contains(part), "{part}:\n{out}\n{said}");
    }
    assert!(said.contains("the header X-A is not sent"), "{said}");
}

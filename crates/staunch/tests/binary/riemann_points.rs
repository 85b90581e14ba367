//! A Riemann config in a native config, fed by sources of other protocols: aggregates of StatsD, lines of Graphite and of OpenTSDB. Riemann's
//! clients and dashboards ask for all of it.

use std::io::Write;
use std::net::{TcpStream, UdpSocket};

use serde_json::{Value, json};

use crate::riemann::connect;
use crate::riemann_config::ask;
use crate::riemann_subscribers::Socket;
use crate::support::{Builder, Daemon, FakeGraphite, wait_for};

const STREAMS: &str = "(def carbon (graphite {:host \"127.0.0.1\" :port GRAPHITE}))
(periodically-expire 3600)
(let [index (index)]
  (streams
    (default :ttl 3600 index)
    (where (service #\"^stats_counts\") (with :service \"seen\" carbon))))
";

/// The whole house: each source feeds the streams, and two of them another node too.
fn start(graphite: &FakeGraphite) -> Daemon {
    let streams = STREAMS.replace("GRAPHITE", &graphite.at().port().to_string());
    let builder = Builder::native(
        "[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\"]\n\
         [sources.lines]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [sources.tsdb]\ntype = \"opentsdb\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [sources.clients]\ntype = \"riemann\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [sources.dashboards]\ntype = \"riemann\"\nencoding = \"http\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"1s\"\nself_counters = \"none\"\n\
         [transforms.rules]\ntype = \"streams\"\nfile = \"riemann.config\"\n\
         from = [\"stats\", \"lines\", \"tsdb\", \"clients\", \"dashboards\"]\n\
         [outputs.archive]\ntype = \"graphite_file\"\nfrom = [\"stats\", \"lines\"]\npath = \"archive\"\n",
    );
    std::fs::write(builder.folder().join("riemann.config"), streams).expect("it can be written");
    builder.start()
}

fn send(daemon: &Daemon, source: &str, lines: &str) {
    let mut stream = TcpStream::connect(daemon.at(source, "tcp")).expect("it listens");
    stream.write_all(lines.as_bytes()).expect("it reads");
}

/// The account of the edge from a node to the streams.
fn edge(daemon: &Daemon, from: &str) -> Value {
    let page = daemon.json("/api/v1/accounts");
    let transforms = page["transforms"].as_array().expect("a list");
    let rules = transforms.iter().find(|row| row["name"] == "rules").expect("it is there");
    let edges = rules["edges"].as_array().expect("a list");
    edges.iter().find(|edge| edge["from"] == from).expect("it feeds them").clone()
}

#[test]
fn points_of_every_protocol_are_in_the_index_and_have_a_row_for_each_edge() {
    let graphite = FakeGraphite::new();
    let mut daemon = start(&graphite);
    let udp = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    udp.send_to(b"hits:3|c\nqueue:7|g", daemon.at("app", "udp")).expect("it listens");
    send(&daemon, "lines", "servers.load;dc=eu;host=web1 0.5 1700000000\n");
    send(&daemon, "tsdb", "put sys.cpu 1700000000 42 host=db1 cpu=0\n");
    let mut client = connect(daemon.at("clients", "tcp"));
    let mut found = |query: &str, number: usize| {
        wait_for(query, || {
            let events = ask(&mut client, query).expect("a right query");
            (events.len() == number).then_some(())
        });
    };
    found("service = \"stats_counts.hits\"", 1);
    found("service = \"stats.gauges.queue\" and metric = 7.0", 1);
    found("host = \"web1\" and service = \"servers.load\" and metric = 0.5", 1);
    found("host = \"db1\" and service = \"sys.cpu\" and metric > 41 and metric < 43", 1);
    let mut dashboard = Socket::open(daemon.at("dashboards", "tcp"), "/index?query=host+%3D+%22web1%22");
    let event: Value = serde_json::from_str(&dashboard.read().expect("an event")).expect("JSON");
    assert_eq!((&event["dc"], &event["time"]), (&json!("eu"), &json!("2023-11-14T22:13:20.000Z")), "{event}");
    wait_for("a point of the streams", || (graphite.total("seen") >= 3.0).then_some(()));
    let lines = edge(&daemon, "lines");
    assert_eq!((&lines["received"], &lines["aggregated"]), (&json!(1), &json!(1)), "{lines}");
    assert_eq!(edge(&daemon, "tsdb")["aggregated"], 1);
    assert!(Daemon::number(&edge(&daemon, "stats"), "aggregated") >= 2);
    let metrics = daemon.get("/metrics").body;
    let metric = "staunch_transform_records_total{transform=\"rules\",from=\"lines\",outcome=\"aggregated\",reason=\"\"} 1";
    assert!(metrics.contains(metric), "{metrics}");
    daemon.assert_sums_hold();
    daemon.stop();
    let archive = std::fs::read_to_string(daemon.folder.path().join("archive")).expect("a file");
    assert!(archive.contains("servers.load;dc=eu;host=web1 0.5 1700000000\n"), "{archive}");
    assert!(archive.contains("stats_counts.hits 3 "), "{archive}");
}

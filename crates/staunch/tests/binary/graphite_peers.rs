//! Queries to other nodes: Staunch, nodes that speak carbonapi's protocol, and nodes that are away.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::support::http::get;
use crate::support::{Builder, Daemon, nobody};

/// The time of the last points: a few seconds ago.
fn last() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() / 10 * 10 - 20
}

fn config(folder: &Path, name: &str, more: &str) -> String {
    format!(
        "data_dir = \"{}\"\n[sources.lines]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [outputs.store]\ntype = \"whisper\"\nfrom = [\"lines\"]\npath = \"{}\"\n\
         {more}",
        folder.join(format!("{name}-data")).display(),
        folder.join(format!("{name}-whisper")).display()
    )
}

fn with_peers(peers: &[String]) -> String {
    let all: Vec<String> = peers.iter().map(|peer| format!("\"{peer}\"")).collect();
    format!("[graphite_api]\npeers = [{}]\npeer_timeout = \"2s\"\n", all.join(", "))
}

fn url(at: SocketAddr) -> String {
    format!("http://{at}")
}

fn send(daemon: &Daemon, lines: &str) {
    let had = Daemon::number(&daemon.output("store"), "copies");
    let mut stream = TcpStream::connect(daemon.at("lines", "tcp")).expect("it listens");
    stream.write_all(lines.as_bytes()).expect("it reads");
    daemon.wait_output("store", "copies", had + lines.lines().count() as u64);
}

fn render(target: &str, at: u64) -> String {
    format!("/render?target={target}&from={}&until={at}&now={}&format=json", at - 30, at + 10)
}

fn missing(daemon: &Daemon, path: &str) -> Option<String> {
    let answer = get(daemon.http(), path).expect("it answers");
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.head.lines().find_map(|line| line.strip_prefix("x-staunch-missing: ")).map(str::to_owned)
}

fn column(rows: &Value, name: &str) -> Vec<String> {
    let rows = rows.as_array().expect("a list");
    rows.iter().map(|row| row[name].as_str().expect("a text").to_owned()).collect()
}

#[test]
fn every_node_of_a_group_gives_the_same_answer() {
    let (folder, at) = (tempfile::tempdir().expect("a folder"), last());
    let mut first = Builder::native(&config(folder.path(), "a", "")).start();
    send(&first, &format!("web.a 1 {}\nweb.both 1 {}\nt;k=v;host=a 1 {at}\n", at - 10, at - 10));
    let peers = with_peers(&[url(first.http())]);
    let mut second = Builder::native(&config(folder.path(), "b", &peers)).start();
    send(&second, &format!("web.b 2 {at}\nweb.both 2 {at}\nt;k=v;host=b 2 {at}\nw;k=z 1 {at}\n"));
    // Each asks the other, and no circle is without end.
    first.reload(&config(folder.path(), "a", &with_peers(&[url(second.http())])), "done");
    let both: Value = json!({
        "target": "web.both",
        "tags": {"name": "web.both"},
        "datapoints": [[null, at - 20], [1.0, at - 10], [2.0, at]],
    });
    for daemon in [&first, &second] {
        let all = daemon.json(&render("web.*", at));
        let names: Vec<&str> =
            all.as_array().expect("a list").iter().filter_map(|one| one["target"].as_str()).collect();
        assert_eq!(names, ["web.a", "web.b", "web.both"]);
        assert_eq!(all[2], both);
        let sum = daemon.json(&render("sumSeries(web.*)", at));
        assert_eq!(sum[0]["datapoints"], json!([[null, at - 20], [2.0, at - 10], [4.0, at]]));
        let found = daemon.json("/metrics/find?query=web.*&format=completer");
        let paths: Vec<&str> = found["metrics"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|one| one["path"].as_str())
            .collect();
        assert_eq!(paths, ["web.a", "web.b", "web.both"]);
        for (path, want) in [
            ("/metrics/expand?query=web.*", json!({"results": ["web.a", "web.b", "web.both"]})),
            ("/tags/findSeries?expr=k=v", json!(["t;host=a;k=v", "t;host=b;k=v"])),
            ("/tags/autoComplete/tags", json!(["host", "k", "name"])),
            ("/tags/autoComplete/values?tag=host&expr=k=v", json!(["a", "b"])),
            ("/tags/autoComplete/values?tag=k&limit=1", json!(["v"])),
            ("/metrics/index.json", json!(["web.a", "web.b", "web.both"])),
            ("/tags/none", json!(null)),
        ] {
            assert_eq!(daemon.json(path), want, "{path}");
        }
        assert_eq!(column(&daemon.json("/tags"), "tag"), ["host", "k", "name"]);
        let of_k = daemon.json("/tags/k")["values"].clone();
        assert_eq!(column(&of_k, "value"), ["v", "z"]);
        assert_eq!((&of_k[0]["count"], &of_k[1]["count"]), (&json!(2), &json!(1)));
        let tagged = daemon.json(&render("seriesByTag('k=v')", at));
        assert_eq!(tagged.as_array().expect("a list").len(), 2);
        assert_eq!(missing(daemon, &render("web.*", at)), None);
    }
    // A node asked by a node answers for itself.
    let alone = second.json(&format!("{}&local=1", render("web.*", at)));
    assert_eq!(alone.as_array().expect("a list").len(), 2);
    let metrics = first.get("/metrics").body;
    let row = |result: &str| {
        let start = format!(
            "staunch_graphite_peer_requests_total{{peer=\"{}\",result=\"{result}\"}} ",
            url(second.http())
        );
        let row = metrics.lines().find_map(|line| line.strip_prefix(&start)).expect("a row");
        row.parse::<u64>().expect("a number")
    };
    assert!(row("answered") >= 8, "{metrics}");
    assert_eq!(row("failed"), 0);
    first.stop();
    second.stop();
}

#[test]
fn a_node_that_is_away_is_named_and_the_rest_is_answered() {
    let (folder, at) = (tempfile::tempdir().expect("a folder"), last());
    // One refuses connections, one accepts them and is silent.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (refused, silent_url) = (url(nobody()), url(silent.local_addr().expect("it has one")));
    let more = with_peers(&[refused.clone(), silent_url.clone()]).replace("\"2s\"", "\"200ms\"");
    let mut daemon = Builder::native(&config(folder.path(), "a", &more)).start();
    send(&daemon, &format!("web.a 1 {at}\n"));
    let cached = format!("{}&cacheTimeout=60", render("web.a", at));
    for path in [cached.as_str(), &cached, "/metrics/find?query=web.*", "/tags/autoComplete/tags"] {
        let named = missing(&daemon, path).expect("both are away");
        assert!(named.contains(&refused) && named.contains(&silent_url), "{named}");
        assert!(named.contains("refused"), "{named}");
    }
    assert_eq!(daemon.json(&cached)[0]["datapoints"][2], json!([1.0, at]));
    // Such an answer is not kept: the points that come now are in the next one.
    send(&daemon, &format!("web.a 2 {}\n", at - 10));
    assert_eq!(daemon.json(&cached)[0]["datapoints"][1], json!([2.0, at - 10]));
    daemon.stop();
    // Without a store and without an answer, there is nothing to give.
    let only = format!(
        "[sources.s]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\"]\n[transforms.a]\ntype = \"aggregate\"\nfrom = [\"s\"]\n[outputs.o]\ntype = \"console\"\nfrom = [\"a\"]\n{more}"
    );
    let mut daemon = Builder::native(&only).start();
    let answer = daemon.get(&render("web.a", at));
    assert_eq!(answer.status, 502, "{}", answer.body);
    assert!(answer.body.contains(&refused), "{}", answer.body);
    daemon.stop();
}

/// A node that knows carbonapi's second protocol only, as go-carbon does: one series `far.x`, or nothing.
fn carbonserver(listener: TcpListener, at: u64) {
    for stream in listener.incoming().map_while(Result::ok) {
        std::thread::spawn(move || serve(stream, at));
    }
}

fn serve(mut stream: TcpStream, at: u64) {
    loop {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read(&mut byte) {
                Ok(1) => head.push(byte[0]),
                _ => return,
            }
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let (status, body) = if !head.contains("format=carbonapi_v2_pb") {
            ("400 Bad Request", b"unsupported format".to_vec())
        } else if !head.contains("far") {
            ("404 Not Found", b"no metrics".to_vec())
        } else if head.starts_with("GET /metrics/find/?") {
            ("200 OK", b"\x0a\x05far.*\x12\x09\x0a\x05far.x\x10\x01".to_vec())
        } else if head.starts_with("GET /render/?") {
            ("200 OK", far_x(at))
        } else {
            // As Go's server does for paths without their slash.
            ("301 Moved Permanently", Vec::new())
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/x-protobuf\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        if stream.write_all(&[head.as_bytes(), &body].concat()).is_err() {
            return;
        }
    }
}

/// Three values from 20 s before `at` on, of which the second is absent.
fn far_x(at: u64) -> Vec<u8> {
    let varint = |mut number: u64| {
        let mut bytes = Vec::new();
        while number > 127 {
            bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
        bytes
    };
    let mut one = b"\x0a\x05far.x".to_vec();
    for (field, number) in [(0x10, at - 20), (0x18, at + 10), (0x20, 10)] {
        one.push(field);
        one.extend(varint(number));
    }
    one.extend([0x2a, 24]);
    [5.0_f64, 0.0, 7.0].iter().for_each(|value| one.extend(value.to_le_bytes()));
    one.extend([0x32, 3, 0, 1, 0]);
    [vec![0x0a, one.len() as u8], one].concat()
}

#[test]
fn a_node_with_carbonapis_protocol_is_asked_in_it() {
    let (folder, at) = (tempfile::tempdir().expect("a folder"), last());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let peer = url(listener.local_addr().expect("it has one"));
    std::thread::spawn(move || carbonserver(listener, at));
    let mut daemon = Builder::native(&config(folder.path(), "a", &with_peers(&[peer]))).start();
    send(&daemon, &format!("near.x 1 {at}\n"));
    // What it does not know, it has not.
    assert_eq!(daemon.json(&render("near.x", at)).as_array().map(Vec::len), Some(1));
    let all = daemon.json(&render("{near,far}.x", at));
    assert_eq!(all[0]["target"], "far.x");
    assert_eq!(all[0]["datapoints"], json!([[5.0, at - 20], [null, at - 10], [7.0, at]]));
    assert_eq!(all[1]["target"], "near.x");
    let found = daemon.json("/metrics/expand?query=far.*");
    assert_eq!(found, json!({"results": ["far.x"]}));
    assert_eq!(missing(&daemon, &render("near.x", at)), None);
    daemon.stop();
}

//! CarbonLink: what graphite-web asks for about points that are not in their files yet.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::support::{Builder, Daemon, nobody, wait_for};

/// A daemon with a store, and the address of its CarbonLink.
fn start(tree: &Path, more: &str) -> (Daemon, SocketAddr) {
    let at = nobody();
    let config = format!(
        "[sources.lines]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [outputs.store]\ntype = \"whisper\"\nfrom = [\"lines\"]\npath = \"{}\"\n\
         schemas = [{{ pattern = \"\", retentions = \"10s:1h\" }}]\n{more}\n\
         [carbonlink]\nlisten = \"{at}\"\nmax_connections = 4\n",
        tree.display()
    );
    (Builder::native(&config).start(), at)
}

fn send(daemon: &Daemon, lines: &str) {
    let had = Daemon::number(&daemon.output("store"), "copies");
    let mut stream = TcpStream::connect(daemon.at("lines", "tcp")).expect("it listens");
    stream.write_all(lines.as_bytes()).expect("it reads");
    daemon.wait_output("store", "copies", had + lines.lines().count() as u64);
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() as i64
}

/// A dict of texts as Python's protocol 2 pickles it.
fn request(pairs: &[(&str, &str)]) -> Vec<u8> {
    let mut pickle = b"\x80\x02}".to_vec();
    for (key, value) in pairs {
        for text in [key, value] {
            pickle.push(b'X');
            pickle.extend((text.len() as u32).to_le_bytes());
            pickle.extend(text.as_bytes());
        }
        pickle.push(b's');
    }
    pickle.push(b'.');
    frame(&pickle)
}

fn frame(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u32).to_be_bytes()[..], message].concat()
}

fn ask(stream: &mut TcpStream, request: &[u8]) -> Vec<u8> {
    stream.write_all(request).expect("it reads");
    let mut len = [0; 4];
    stream.read_exact(&mut len).expect("a reply");
    let mut reply = vec![0; u32::from_be_bytes(len) as usize];
    stream.read_exact(&mut reply).expect("a whole reply");
    reply
}

fn connect(at: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(at).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("not zero");
    stream
}

/// The reply with one point, as carbon-cache writes it, without the names of memo entries.
fn points(points: &[(i64, f64)]) -> Vec<u8> {
    let mut pickle = b"\x80\x02}X\x0a\0\0\0datapoints](".to_vec();
    for (time, value) in points {
        for number in [*time as f64, *value] {
            pickle.push(b'G');
            pickle.extend(number.to_be_bytes());
        }
        pickle.push(b'\x86');
    }
    pickle.extend(b"es.");
    pickle
}

fn has(reply: &[u8], text: &str) -> bool {
    reply.windows(text.len()).any(|part| part == text.as_bytes())
}

#[test]
fn points_in_memory_and_metadata_are_answered_on_one_connection() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut daemon, at) = start(&folder.path().join("whisper"), "");
    let time = now();
    send(&daemon, &format!("a.b 1 {time}\na.b 2 {time}\na.b 3 {}\nt;y=2;x=1 4 {time}\n", time - 10));
    let mut stream = connect(at);
    let query = |name| request(&[("type", "cache-query"), ("metric", name)]);
    wait_for("the points to be in memory", || {
        (ask(&mut stream, &query("t;x=1;y=2")) == points(&[(time, 4.0)])).then_some(())
    });
    let want = points(&[(time - 10, 3.0), (time, 2.0)]);
    assert_eq!(ask(&mut stream, &query("a.b")), want, "the last of two points with one time");
    assert_eq!(ask(&mut stream, &query("t;y=2;x=1")), points(&[(time, 4.0)]), "in any order of tags");
    for name in ["unknown", "", "../../etc/passwd", "t;=;"] {
        assert_eq!(ask(&mut stream, &query(name)), points(&[]), "{name}");
    }
    let bulk = b"(dVtype\nVcache-query-bulk\nsVmetrics\n(lVa.b\naVa.b\naVnone\naVa.b\nas.";
    let reply = ask(&mut stream, &frame(bulk));
    let times = reply.windows(3).filter(|part| part == b"a.b").count();
    assert_eq!(times, 1, "however often a name is asked for");
    assert!(has(&reply, "datapointsByMetric") && has(&reply, "a.b") && has(&reply, "none"), "{reply:?}");
    let metadata = |kind, name, value: &[(&str, &str)]| {
        let first = [("type", kind), ("metric", name), ("key", "aggregationMethod")];
        request(&[&first[..], value].concat())
    };
    let reply = ask(&mut stream, &metadata("get-metadata", "a.b", &[]));
    assert!(has(&reply, "value") && has(&reply, "average"), "of the rules, while there is no file");
    let reply = ask(&mut stream, &metadata("set-metadata", "a.b", &[("value", "max")]));
    assert!(has(&reply, "error") && has(&reply, "there is no file of a.b"), "{reply:?}");
    let reply = ask(&mut stream, &request(&[("type", "nonsense")]));
    assert!(has(&reply, "Invalid request type \"nonsense\""));
    let metrics = daemon.get("/metrics").body;
    for line in [
        "staunch_carbonlink_connections_open 1",
        "staunch_carbonlink_requests_total{kind=\"cache_query_bulk\"} 1",
        "staunch_carbonlink_requests_total{kind=\"bad\"} 1",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}\n{metrics}");
    }
    daemon.stop();
}

#[test]
fn the_method_of_a_file_is_read_and_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let tree = folder.path().join("whisper");
    let (mut daemon, at) = start(&tree, "write_after = \"1s\"");
    send(&daemon, &format!("a.b 1 {}\n", now()));
    wait_for("the file", || tree.join("a/b.wsp").exists().then_some(()));
    let mut stream = connect(at);
    let of = |kind: &'static str| vec![("type", kind), ("metric", "a.b"), ("key", "aggregationMethod")];
    let set = |value| [of("set-metadata"), vec![("value", value)]].concat();
    let reply = ask(&mut stream, &request(&set("max")));
    assert!(has(&reply, "old_value") && has(&reply, "average") && has(&reply, "max"), "{reply:?}");
    let reply = ask(&mut stream, &request(&of("get-metadata")));
    assert!(has(&reply, "value") && has(&reply, "max"), "{reply:?}");
    let reply = ask(&mut stream, &request(&set("no-such")));
    assert!(has(&reply, "error") && has(&reply, "no aggregation method"), "{reply:?}");
    let header = std::fs::read(tree.join("a/b.wsp")).expect("a file");
    assert_eq!(header[..4], [0, 0, 0, 4], "max");
    daemon.stop();
}

#[test]
fn clients_that_send_nonsense_or_nothing_harm_nobody() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut daemon, at) = start(&folder.path().join("whisper"), "");
    let query = request(&[("type", "cache-query"), ("metric", "a")]);
    for bad in [
        frame(b"cos\nsystem\n(Vtrue\ntR."),
        u32::MAX.to_be_bytes().to_vec(),
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        frame(b""),
    ] {
        let mut stream = connect(at);
        stream.write_all(&bad).expect("it reads");
        let mut rest = Vec::new();
        // Closed or reset, without a reply.
        let _reset = stream.read_to_end(&mut rest);
        assert_eq!(rest, b"");
    }
    // Each announces 64 MiB and sends nothing: further clients take their places after a second.
    let idle: Vec<TcpStream> = (0..4)
        .map(|_| {
            let mut stream = connect(at);
            stream.write_all(&(64_u32 << 20).to_be_bytes()).expect("it reads");
            stream
        })
        .collect();
    wait_for("a place", || {
        let mut stream = connect(at);
        stream.write_all(&query).ok()?;
        let mut len = [0; 4];
        stream.read_exact(&mut len).ok()
    });
    drop(idle);
    daemon.stop();
}

#[test]
#[cfg(target_os = "linux")]
fn a_hot_restart_keeps_the_port() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut daemon, at) = start(&folder.path().join("whisper"), "");
    let mut successor = daemon.successor();
    successor.wait_ready();
    assert!(daemon.wait_exit().success(), "{}", daemon.stderr());
    let mut stream = connect(at);
    let reply = ask(&mut stream, &request(&[("type", "cache-query"), ("metric", "a")]));
    assert_eq!(reply, points(&[]));
    successor.stop();
}

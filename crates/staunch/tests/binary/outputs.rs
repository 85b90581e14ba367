//! What leaves: Graphite as text and pickle, documents, files, and packets repeated byte for byte.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};

use serde_json::Value;

use crate::support::traffic::send_all;
use crate::support::{Builder, Daemon, FakeGraphite, PATIENCE, Random, udp, wait_for};

const SOURCE: &str =
    "[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\", \"tcp://127.0.0.1:0\"]\n";

const STATS: &str = "[transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"1h\"\n";

#[test]
fn text_pickle_console_and_file_get_the_same_flush() {
    let (lines, pickle) = (FakeGraphite::new(), FakeGraphite::new());
    let toml = format!(
        "{SOURCE}{STATS}\
         [outputs.lines]\ntype = \"graphite\"\nfrom = [\"stats\"]\nto = [\"{}\"]\n\
         [outputs.pickle]\ntype = \"graphite\"\nencoding = \"pickle\"\nfrom = [\"stats\"]\nto = [\"{}\"]\n\
         [outputs.console]\ntype = \"console\"\nfrom = [\"stats\"]\n\
         [outputs.file]\ntype = \"graphite_file\"\nfrom = [\"stats\"]\npath = \"points\"\n",
        lines.to(),
        pickle.to()
    );
    let mut daemon = Builder::native(&toml).start();
    udp(daemon.at("app", "udp")).send(b"hits:3|c\nload:7|g\ntime:5|ms\nusers:9|s").expect("it is there");
    daemon.wait_source("app", "aggregated", 4);
    daemon.stop();

    let second = lines.of("stats_counts.hits")[0].time_s;
    let want = [("stats_counts.hits", 3.0), ("stats.gauges.load", 7.0), ("stats.timers.time.mean", 5.0)];
    for (name, value) in want {
        assert_eq!(lines.of(name).iter().map(|point| point.value).collect::<Vec<_>>(), [value], "{name}");
    }
    let file = std::fs::read_to_string(daemon.folder.path().join("points")).expect("it is written");
    let mine = |line: &&str| !line.contains(".statsd.");
    let mut in_file: Vec<&str> = file.lines().filter(mine).collect();
    let text = String::from_utf8(lines.bytes()).expect("lines are text");
    let mut on_the_wire: Vec<&str> = text.lines().filter(mine).collect();
    in_file.sort_unstable();
    on_the_wire.sort_unstable();
    assert_eq!(in_file, on_the_wire);

    let frames = pickle.bytes();
    let len = u32::from_be_bytes([frames[0], frames[1], frames[2], frames[3]]) as usize;
    let frame = String::from_utf8_lossy(&frames[4..4 + len]).into_owned();
    assert!(frame.starts_with("(l") && frame.ends_with('.'), "{frame}");
    assert!(frame.contains("stats_counts.hits") && frame.contains(&second.to_string()), "{frame}");

    let document = daemon.stdout();
    let json = &document[document.find('{').expect("a document")..];
    let json: Value = serde_json::from_str(json).expect("node's members as JSON");
    assert_eq!((&json["counters"]["hits"], &json["gauges"]["load"]), (&Value::from(3), &Value::from(7)));
}

/// Packets of every sort: bad ones, empty lines, noise, and the longest one.
fn packets() -> Vec<Vec<u8>> {
    let mut random = Random::new(7);
    let mut packets: Vec<Vec<u8>> =
        (0..300).map(|_| random.bytes(600)).filter(|bytes| !bytes.is_empty()).collect();
    packets.push(vec![b'x'; 65_507]);
    packets.push(b"hits:1|c\n".to_vec());
    packets
}

#[test]
fn the_udp_repeater_sends_packets_on_byte_for_byte() {
    let endpoint = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    endpoint.set_read_timeout(Some(PATIENCE)).expect("a time-out can be set");
    let at = endpoint.local_addr().expect("it is bound");
    let toml = format!("{SOURCE}[outputs.copy]\ntype = \"udp\"\nfrom = [\"app\"]\nto = [\"udp://{at}\"]\n");
    let mut daemon = Builder::native(&toml).start();
    let socket = udp(daemon.at("app", "udp"));
    let mut buffer = vec![0; 70_000];
    let packets = packets();
    for packet in &packets {
        socket.send(packet).expect("it is there");
        let len = endpoint.recv(&mut buffer).expect("the copy comes");
        assert!(buffer[..len] == packet[..], "{:?} became {:?}", packet, &buffer[..len]);
    }
    let count = packets.len() as u64;
    daemon.wait_source("app", "routed", count);
    daemon.wait_output("copy", "delivered", count);
    daemon.assert_sums_hold();
    daemon.stop();
}

#[test]
fn the_tcp_repeater_sends_packets_on_with_a_line_feed_behind_each() {
    let endpoint = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let at = endpoint.local_addr().expect("it is bound");
    let toml = format!("{SOURCE}[outputs.copy]\ntype = \"tcp\"\nfrom = [\"app\"]\nto = [\"tcp://{at}\"]\n");
    let mut daemon = Builder::native(&toml).start();
    let packets = packets();
    let mut want = Vec::new();
    for packet in &packets {
        want.extend_from_slice(packet);
        if packet.last() != Some(&b'\n') {
            want.push(b'\n');
        }
    }
    let (mut stream, _) = endpoint.accept().expect("it connects");
    let reader = std::thread::spawn(move || {
        let mut got = Vec::new();
        stream.read_to_end(&mut got).map(|_| got)
    });
    send_all(&udp(daemon.at("app", "udp")), &packets);
    daemon.wait_output("copy", "delivered", packets.len() as u64);
    daemon.assert_sums_hold();
    daemon.stop();
    let got = reader.join().expect("it read").expect("an orderly end");
    assert!(got == want, "{} bytes instead of {}", got.len(), want.len());
}

#[test]
fn one_dead_endpoint_among_five_costs_the_other_four_nothing() {
    let endpoints: Vec<UdpSocket> =
        (0..4).map(|_| UdpSocket::bind("127.0.0.1:0").expect("a free port")).collect();
    // What does not come from its peer is refused there, and nobody else gets the port.
    let refuses = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    refuses.connect(endpoints[0].local_addr().expect("it is bound")).expect("a loopback address");
    let dead = refuses.local_addr().expect("it is bound");
    let mut to: Vec<String> = endpoints
        .iter()
        .map(|socket| format!("udp://{}", socket.local_addr().expect("it is bound")))
        .collect();
    to.insert(2, format!("udp://{dead}"));
    // Nobody brings the dead one back: a stop need not wait for it.
    let outputs = format!("[outputs.copy]\ntype = \"udp\"\nfrom = [\"app\"]\nto = {to:?}\n");
    let toml = format!("stop_timeout = \"100ms\"\n{SOURCE}{outputs}");
    let mut daemon = Builder::native(&toml).start();
    for socket in &endpoints {
        socket.set_read_timeout(Some(PATIENCE)).expect("a time-out can be set");
    }
    let socket = udp(daemon.at("app", "udp"));
    let mut buffer = [0; 100];
    // As many at a time as the endpoints' own buffers hold: what they drop is not what is tested.
    for first in (0..2000).step_by(100) {
        send_all(&socket, (first..first + 100).map(|n| format!("n{n}:1|c")));
        for endpoint in &endpoints {
            for n in first..first + 100 {
                let len = endpoint.recv(&mut buffer).expect("every packet comes");
                assert_eq!(buffer[..len], *format!("n{n}:1|c").as_bytes());
            }
        }
    }
    daemon.wait_source("app", "routed", 2000);
    daemon.assert_sums_hold();
    let down = daemon.output(&format!("copy/{dead}"));
    assert_eq!(down["copies"], 2000);
    daemon.stop();
}

#[test]
fn a_file_that_cannot_be_written_is_logged_and_tried_again() {
    let toml = format!(
        "{SOURCE}[transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"1s\"\n\
         [outputs.file]\ntype = \"graphite_file\"\nfrom = [\"stats\"]\npath = \"folder/points\"\n"
    );
    let builder = Builder::native(&toml);
    let folder = builder.folder().join("folder");
    std::fs::write(&folder, "in the way").expect("it can be written");
    let mut daemon = builder.start();
    udp(daemon.at("app", "udp")).send(b"hits:3|c").expect("it is there");
    wait_for("the file to be missed", || daemon.stderr().contains("folder/points is down").then_some(()));
    wait_for("points to wait", || (Daemon::number(&daemon.output("file"), "queued") > 0).then_some(()));
    std::fs::remove_file(&folder).expect("it was there");
    wait_for("the points", || {
        let text = std::fs::read_to_string(folder.join("points")).ok()?;
        text.contains("stats_counts.hits 3 ").then_some(())
    });
    daemon.assert_sums_hold();
    daemon.stop();
    let text = std::fs::read_to_string(folder.join("points")).expect("it is there");
    assert_eq!(text.matches("stats_counts.hits 3 ").count(), 1);
}

#[test]
fn what_graphite_says_is_no_reason_to_stop() {
    let endpoint = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let to = endpoint.local_addr().expect("it is bound");
    let toml = format!(
        "{SOURCE}{STATS}[outputs.carbon]\ntype = \"graphite\"\nfrom = [\"stats\"]\nto = [\"tcp://{to}\"]\n"
    );
    let mut daemon = Builder::native(&toml).start();
    let (mut stream, _): (TcpStream, _) = endpoint.accept().expect("it connects");
    std::io::Write::write_all(&mut stream, &[b'?'; 10_000]).expect("it is read");
    udp(daemon.at("app", "udp")).send(b"hits:3|c").expect("it is there");
    daemon.wait_source("app", "aggregated", 1);
    daemon.stop();
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("lines are text");
    assert!(text.contains("stats_counts.hits 3 "), "{text}");
}

#[test]
fn lines_for_a_file_that_cannot_be_opened_wait_and_are_written_once() {
    let toml = "[sources.points]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
                [outputs.file]\ntype = \"graphite_file\"\nfrom = [\"points\"]\npath = \"results/points\"\n";
    let builder = Builder::native(toml);
    let folder = builder.folder().join("results");
    let path = folder.join("points");
    std::fs::write(&folder, "no folder").expect("the folder is ours");
    let mut daemon = builder.start();
    let mut stream = TcpStream::connect(daemon.at("points", "tcp")).expect("it listens");
    let mut send = |lines: std::ops::Range<u64>| {
        let text: String = lines.map(|number| format!("a.{number} 1 1700000000\n")).collect();
        stream.write_all(text.as_bytes()).expect("it is read");
    };
    let wait_for_row = |daemon: &Daemon, delivered: u64, queued: u64| {
        daemon.wait_output("file", "copies", delivered + queued);
        daemon.wait_output("file", "delivered", delivered);
        daemon.wait_output("file", "queued", queued);
        daemon.assert_sums_hold();
    };
    let is_down = |daemon: &Daemon| {
        wait_for("the file to be down", || (daemon.output("file")["state"] == "down").then_some(()));
    };
    send(0..100);
    is_down(&daemon);
    wait_for_row(&daemon, 0, 100);
    std::fs::remove_file(&folder).expect("it was there");
    wait_for_row(&daemon, 100, 0);

    let moved = daemon.folder.path().join("moved");
    std::fs::rename(&path, &moved).and_then(|()| std::fs::create_dir(&path)).expect("the folder is ours");
    std::fs::remove_file(&moved).expect("it was there");
    send(100..200);
    is_down(&daemon);
    wait_for_row(&daemon, 100, 100);
    std::fs::remove_dir(&path).expect("it is empty");
    wait_for_row(&daemon, 200, 0);

    std::fs::remove_dir_all(&folder).and_then(|()| std::fs::write(&folder, "")).expect("the folder is ours");
    send(200..300);
    is_down(&daemon);
    wait_for_row(&daemon, 200, 100);
    std::fs::remove_file(&folder).expect("it was there");
    wait_for_row(&daemon, 300, 0);
    daemon.stop();
    let text = std::fs::read_to_string(&path).expect("it was written");
    let want: String = (200..300).map(|number| format!("a.{number} 1 1700000000\n")).collect();
    assert_eq!(text, want, "what came before is in files that were removed");
}

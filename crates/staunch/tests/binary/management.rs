//! The StatsD management port: what clients that exist rely on, byte for byte.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use crate::support::traffic::send_all;
use crate::support::{Builder, Daemon, PATIENCE, udp, wait_for};

fn start(management: &str) -> Daemon {
    let toml = format!(
        "[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\"]\n\
         [transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"1h\"\nself_counters = \"none\"\n\
         [outputs.file]\ntype = \"graphite_file\"\nfrom = [\"stats\"]\n\
         [management]\nlisten = \"127.0.0.1:0\"\n{management}"
    );
    Builder::native(&toml).start()
}

struct Client {
    stream: TcpStream,
}

impl Client {
    fn new(daemon: &Daemon) -> Client {
        let stream = TcpStream::connect(daemon.management()).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out can be set");
        Client { stream }
    }

    fn say(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).expect("it reads");
    }

    /// Reads until the answer ends so.
    #[track_caller]
    fn hear(&mut self, end: &str) -> String {
        let mut heard = Vec::new();
        while !heard.ends_with(end.as_bytes()) {
            let mut byte = [0];
            let read = self.stream.read(&mut byte);
            let so_far = String::from_utf8_lossy(&heard);
            assert!(read.is_ok_and(|len| len == 1), "`{so_far}` does not end in `{end}`");
            heard.push(byte[0]);
        }
        String::from_utf8(heard).expect("replies are text")
    }

    #[track_caller]
    fn ask(&mut self, command: &str, end: &str) -> String {
        self.say(&format!("{command}\n"));
        self.hear(end)
    }
}

const END: &str = "END\n\n";

/// With a native config nobody compares replies with those of the original: `help` has all commands, `config` the config.
#[test]
fn a_native_config_is_shown_and_help_has_every_command() {
    let mut daemon = start("");
    let mut client = Client::new(&daemon);
    let help = client.ask("help", "quit\n\n");
    assert!(help.contains("sets, ") && help.contains(", targets, drops, quit"), "{help}");
    let config = client.ask("config", "[sources.app]\ntype = \"statsd\"\n");
    assert!(config.starts_with('\n'), "{config}");
    daemon.stop();
}

#[test]
fn a_transcript_of_commands() {
    let mut daemon =
        start("config = { flushInterval = \"10000\", \"graphite > legacyNamespace\" = \"true\" }\n");
    udp(daemon.at("app", "udp"))
        .send(b"a.b:1|c\na.c:2|c\nab:3|c\nodd name:4|c\nt:5|ms\nt:6|ms\ng:7|g\nu:x|s\nbad")
        .expect("it is there");
    daemon.wait_source("app", "received", 9);
    let mut client = Client::new(&daemon);

    let help = client.ask("help", "quit\n\n");
    assert!(
        help.starts_with(
            "Commands: stats, counters, timers, gauges, delcounters, deltimers, delgauges, health, config"
        ),
        "{help}"
    );
    let stats = client.ask("stats", END);
    assert!(stats.starts_with("uptime: ") && stats.contains("messages.bad_lines_seen: 1\n"), "{stats}");
    assert!(stats.contains("messages.last_msg_seen: "), "{stats}");
    let counters = client.ask("counters", END);
    for entry in ["'a.b': 1", "'a.c': 2", "'ab': 3", "'odd_name': 4"] {
        let is_entry = |line: &str| line.trim_matches([' ', ',', '{', '}']) == entry;
        assert!(counters.lines().any(is_entry), "{entry}: {counters}");
    }
    let json = client.ask("counters json", END);
    let json: serde_json::Value = serde_json::from_str(json.trim_end_matches(END)).expect("for machines");
    assert_eq!(json["odd_name"], 4, "{json}");
    assert!(client.ask("timers", END).contains("'t': [ 5, 6 ]"));
    assert!(client.ask("gauges", END).contains("'g': 7"));
    assert!(client.ask("sets", END).contains("'u':"));

    let deleted = client.ask("delcounters a.* nobody *", END);
    let mut lines: Vec<&str> = deleted.lines().collect();
    lines[..2].sort_unstable();
    assert_eq!(
        lines,
        ["deleted: a.b", "deleted: a.c", "metric nobody not found", "metric * not found", "END", ""]
    );
    assert_eq!(client.ask("deltimers t", END), "deleted: t\nEND\n\n");
    assert_eq!(client.ask("delgauges g", END), "deleted: g\nEND\n\n");
    assert_eq!(client.ask("delsets u", END), "deleted: u\nEND\n\n");
    let counters = client.ask("counters", END);
    assert!(!counters.contains("a.b") && counters.contains("'ab': 3"), "{counters}");

    let config = client.ask("config", "legacyNamespace: true\n");
    assert!(config.starts_with('\n') && config.contains("flushInterval: 10000\n"), "{config}");
    for command in ["", "Stats", "nonsense"] {
        assert_eq!(client.ask(command, "\n"), "ERROR\n", "{command:?}");
    }
    let targets = client.ask("targets", END);
    assert!(targets.contains("file"), "{targets}");
    let drops = client.ask("drops", END);
    assert!(drops.contains("app") && drops.contains("no_type") && drops.contains("kernel"), "{drops}");
    client.say("quit\n");
    assert_eq!(client.stream.read(&mut [0]).expect("an orderly end"), 0);
    daemon.stop();
}

#[test]
fn thirty_thousand_names_are_one_pass_over_the_series() {
    let mut daemon = start("");
    let source = udp(daemon.at("app", "udp"));
    let packets = (0..200).map(|packet| {
        (0..100)
            .map(|line| format!("series.number{}:1|c", packet * 100 + line))
            .collect::<Vec<_>>()
            .join("\n")
    });
    send_all(&source, packets);
    daemon.wait_source("app", "aggregated", 20_000);
    let mut client = Client::new(&daemon);
    client.say(&format!("delcounters series.number7 {}series.number1.*\n", "a ".repeat(30_000)));
    let mut heard = Vec::new();
    while !heard.ends_with(END.as_bytes()) {
        let mut piece = [0; 65_536];
        let len = client.stream.read(&mut piece).expect("it answers");
        assert!(len > 0, "it answers to the end");
        heard.extend_from_slice(&piece[..len]);
    }
    let heard = String::from_utf8(heard).expect("replies are text");
    assert!(heard.starts_with("deleted: series.number7\nmetric a not found\n"), "{}", &heard[..200]);
    assert_eq!(heard.matches("metric a not found\n").count(), 30_000);
    assert!(heard.ends_with("metric series.number1.* not found\nEND\n\n"));
    daemon.stop();
}

#[test]
fn commands_are_lines_whatever_the_segments() {
    let mut daemon = start("");
    let mut client = Client::new(&daemon);
    client.stream.set_nodelay(true).expect("a TCP socket");
    client.say("health\r\nhealth\n");
    assert_eq!(client.hear("up\nhealth: up\n"), "health: up\nhealth: up\n", "two commands in one segment");
    for piece in ["hea", "lth", "\n"] {
        client.say(piece);
    }
    assert_eq!(client.hear("\n"), "health: up\n", "one command in three segments");
    client.say("health");
    assert_eq!(client.hear("\n"), "health: up\n", "without LF, after a silence");
    let mut other = Client::new(&daemon);
    assert_eq!(other.ask("health", "\n"), "health: up\n", "several clients");
    let mut brief = Client::new(&daemon);
    brief.say("health");
    brief.stream.shutdown(std::net::Shutdown::Write).expect("a TCP socket");
    assert_eq!(brief.hear("\n"), "health: up\n", "the last command may be the end");
    daemon.stop();
}

#[test]
fn health_down_takes_readiness_away() {
    let mut daemon = start("");
    let mut client = Client::new(&daemon);
    assert_eq!(client.ask("health DOWN", "\n"), "health: down\n");
    assert_eq!((daemon.get("/ready").status, daemon.get("/healthz").status), (503, 200));
    assert_eq!(client.ask("health sideways", "\n"), "health: down\n");
    assert_eq!(client.ask("health up", "\n"), "health: up\n");
    assert_eq!(daemon.get("/ready").status, 200);
    daemon.stop();
}

#[test]
fn read_only_refuses_what_deletes() {
    let mut daemon = start("read_only = true\n");
    udp(daemon.at("app", "udp")).send(b"a:1|c").expect("it is there");
    daemon.wait_source("app", "aggregated", 1);
    let mut client = Client::new(&daemon);
    for command in ["delcounters a", "deltimers a", "delgauges a", "delsets a"] {
        assert_eq!(client.ask(command, "\n"), "ERROR: read only\n", "{command}");
    }
    assert!(client.ask("counters", END).contains("'a': 1"));
    for command in ["health down", "health up", "health DOWN"] {
        assert_eq!(client.ask(command, "\n"), "ERROR: read only\n", "{command}");
    }
    assert_eq!(client.ask("nonsense", "\n"), "ERROR\n");
    assert!(!client.ask("help", "\n\n").contains("del"), "what is refused is not offered");
    assert_eq!(client.ask("health", "\n"), "health: up\n");
    assert_eq!(daemon.get("/ready").status, 200);
    daemon.stop();
}

/// How many clients ended so.
fn ended(daemon: &Daemon, reason: &str) -> u64 {
    daemon.json("/api/v1/accounts")["management"]["ended"][reason].as_u64().unwrap_or(0)
}

#[test]
fn a_request_of_a_browser_runs_no_command() {
    let mut daemon = start("");
    udp(daemon.at("app", "udp")).send(b"a:1|c").expect("it is there");
    daemon.wait_source("app", "aggregated", 1);
    let post = b"POST / HTTP/1.1\r\nHost: 127.0.0.1:8126\r\n\r\nhealth down\ndelcounters a\n";
    for pieces in [post.len(), 1] {
        let mut client = Client::new(&daemon);
        client.stream.set_nodelay(true).expect("a TCP socket");
        for piece in post.chunks(pieces) {
            if client.stream.write_all(piece).is_err() {
                break;
            }
        }
        let mut answer = Vec::new();
        // Closed, perhaps by a reset: what it sent was not read.
        let _reset = client.stream.read_to_end(&mut answer);
        assert!(!String::from_utf8_lossy(&answer).contains("health"), "{}", answer.escape_ascii());
    }
    wait_for("two of them", || (ended(&daemon, "http_request") == 2).then_some(()));
    let mut client = Client::new(&daemon);
    assert_eq!(client.ask("health", "\n"), "health: up\n");
    assert!(client.ask("counters", END).contains("'a': 1"));
    daemon.stop();
}

#[test]
fn clients_that_do_not_read_hold_a_piece_and_give_way() {
    let mut daemon = start("max_connections = 8\nmax_connections_per_peer = 8\n");
    let socket = udp(daemon.at("app", "udp"));
    // Some megabytes of answer: more than two sockets hold.
    let name = "n".repeat(1_000);
    let mut sent: u64 = 0;
    for batch in 0..20 {
        let packet: String = (0..50).map(|n| format!("{name}.{}:1|c\n", batch * 50 + n)).collect();
        socket.send(packet.as_bytes()).expect("it is there");
        sent += 50;
        daemon.wait_source("app", "aggregated", sent);
    }
    let mut all = Client::new(&daemon);
    all.say("counters\nquit\n");
    let mut dump = String::new();
    all.stream.read_to_string(&mut dump).expect("an orderly end");
    assert!(dump.matches(&name).count() as u64 == sent && dump.ends_with(END));
    drop(all);
    wait_for("its end", || (ended(&daemon, "orderly") == 1).then_some(()));
    let deaf: Vec<Client> = (0..8)
        .map(|_| {
            let mut client = Client::new(&daemon);
            client.say(&"counters\n".repeat(30));
            client
        })
        .collect();
    wait_for("all of them", || {
        (daemon.json("/api/v1/accounts")["management"]["accepted"].as_u64() == Some(9)).then_some(())
    });
    // They only wait; one of them gives its place as soon as it has done so for a moment.
    wait_for("an answer", || {
        let mut client = Client::new(&daemon);
        client.say("health\n");
        let mut answer = String::new();
        client.stream.shutdown(std::net::Shutdown::Write).ok()?;
        client.stream.read_to_string(&mut answer).ok()?;
        (answer == "health: up\n").then_some(())
    });
    assert!(ended(&daemon, "replaced") >= 1);
    drop(deaf);
    daemon.stop();
}

/// Sends commands again and again, of whose answers each has one `E`, and reads the answers, until it is over.
fn dump(mut stream: TcpStream, commands: &str, answers: &AtomicU64, over: &AtomicBool) {
    let mut buffer = vec![0; 64 << 10];
    while !over.load(SeqCst) && stream.write_all(commands.as_bytes()).is_ok() {
        let mut left = commands.lines().count();
        while left > 0 {
            let Ok(len @ 1..) = stream.read(&mut buffer) else { return };
            let ends = buffer[..len].iter().filter(|byte| **byte == b'E').count();
            answers.fetch_add(ends as u64, SeqCst);
            left = left.saturating_sub(ends);
        }
    }
}

#[test]
fn clients_that_dump_all_the_time_keep_nobody_from_the_metrics() {
    let daemon = start("");
    udp(daemon.at("app", "udp")).send(b"a:1|c\nb:1|c").expect("it is there");
    daemon.wait_source("app", "aggregated", 2);
    let (over, answers) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let clients: Vec<_> = (0..100)
        .map(|_| {
            let stream = TcpStream::connect(daemon.management()).expect("it listens");
            let (over, answers) = (Arc::clone(&over), Arc::clone(&answers));
            std::thread::spawn(move || dump(stream, &"counters\n".repeat(100), &answers, &over))
        })
        .collect();
    wait_for("all of them to be at it", || (answers.load(SeqCst) >= 6_000).then_some(()));
    let statuses: Vec<u16> = (0..50).map(|_| daemon.get("/metrics").status).collect();
    over.store(true, SeqCst);
    drop(daemon);
    clients.into_iter().for_each(|client| client.join().expect("it only reads"));
    assert_eq!(statuses, [200; 50]);
}

#[test]
fn two_peers_that_dump_all_the_time_have_no_more_than_their_share() {
    let daemon = start("max_connections = 8\nmax_connections_per_peer = 4\n");
    udp(daemon.at("app", "udp")).send(b"a:1|c\nb:1|c").expect("it is there");
    daemon.wait_source("app", "aggregated", 2);
    let (over, answers) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let clients: Vec<_> = [2, 2, 2, 2, 3, 3, 3, 3]
        .into_iter()
        .map(|last| {
            let stream = connect_from([127, 0, 0, last], daemon.management());
            let (over, answers) = (Arc::clone(&over), Arc::clone(&answers));
            std::thread::spawn(move || dump(stream, &"counters\n".repeat(100), &answers, &over))
        })
        .collect();
    wait_for("all of them to be at it", || (answers.load(SeqCst) >= 2_400).then_some(()));
    let mut others = [Client::new(&daemon), Client::new(&daemon)];
    for client in &mut others {
        assert_eq!(client.ask("health", "\n"), "health: up\n");
    }
    wait_for("two of theirs to be closed", || {
        (ended(&daemon, "preempted") + ended(&daemon, "replaced") == 2).then_some(())
    });
    over.store(true, SeqCst);
    drop(daemon);
    clients.into_iter().for_each(|client| client.join().expect("it only reads"));
}

fn connect_from(from: [u8; 4], to: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a descriptor is free");
    socket.bind(&SocketAddr::from((from, 0)).into()).expect("it is on loopback");
    socket.connect(&to.into()).expect("it listens");
    socket.into()
}

#[test]
fn long_series_are_dumped_whole() {
    let mut daemon = start("");
    let socket = udp(daemon.at("app", "udp"));
    let mut sent = 0;
    for batch in 0..10 {
        let values: String = (0..1_000).map(|n| format!("t:{}|ms\n", batch * 1_000 + n)).collect();
        let members: String = (0..100).map(|n| format!("u:m{}|s\n", batch * 100 + n)).collect();
        for packet in [values, members] {
            socket.send(packet.as_bytes()).expect("it is there");
            sent += packet.lines().count() as u64;
            daemon.wait_source("app", "aggregated", sent);
        }
    }
    socket.send(b"v:1|ms\n").expect("it is there");
    daemon.wait_source("app", "aggregated", sent + 1);
    let mut client = Client::new(&daemon);
    let mut json = |command: &str| -> serde_json::Value {
        serde_json::from_str(client.ask(command, END).trim_end_matches(END)).expect("for machines")
    };
    let timers = json("timers json");
    let want: Vec<u64> = (0..10_000).collect();
    assert_eq!(timers["t"], serde_json::json!(want));
    assert_eq!(timers["v"], serde_json::json!([1]));
    let want: Vec<String> = (0..1_000).map(|n| format!("m{n}")).collect();
    assert_eq!(json("sets json")["u"], serde_json::json!(want));
    daemon.stop();
}

#[test]
fn noise_and_silence_do_not_harm_the_port() {
    let mut daemon = start("");
    let mut noisy = Client::new(&daemon);
    let mut random = crate::support::Random::new(3);
    for _ in 0..50 {
        let noise = random.bytes(5000);
        if noisy.stream.write_all(&noise).is_err() {
            break;
        }
        // Replies are read along, or both sides would wait for each other.
        noisy.stream.set_read_timeout(Some(Duration::from_millis(1))).expect("a time-out can be set");
        let mut replies = vec![0; 100_000];
        match noisy.stream.read(&mut replies) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => assert!(matches!(
                error.kind(),
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::ConnectionReset
            )),
        }
    }
    let silent: Vec<Client> = (0..50).map(|_| Client::new(&daemon)).collect();
    assert_eq!(Client::new(&daemon).ask("health", "\n"), "health: up\n");
    drop(silent);
    daemon.stop();
}

#[test]
fn the_proxys_port_says_what_the_proxys_says() {
    let toml = "[sources.clients]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\"]\n\
        [outputs.nodes]\ntype = \"udp\"\nfrom = [\"clients\"]\n\
        to = [\"udp://127.0.0.1:9\", \"udp://127.0.0.2:9\"]\nsharding = \"statsd-node\"\nlabels = [\"a:9\", \"b:9\"]\n\
        [management]\nlisten = \"127.0.0.1:0\"\nreplies = \"proxy\"\nconfig = { port = \"8125\" }\n";
    let daemon = Builder::native(toml).start();
    let mut client = Client::new(&daemon);
    assert_eq!(client.ask("help", "\n\n"), "Commands: config, health, status, quit\n\n");
    let status = client.ask("status", "b:9 \n");
    assert!(status.starts_with("uptime: ") && status.ends_with("\nnodes: a:9 b:9 \n"), "{status:?}");
    assert_eq!(client.ask("health", "\n"), "health: up\n");
    assert_eq!(client.ask("config", "8125\n"), "\nport: 8125\n");
    // Of series it knows nothing: those are the nodes'.
    assert_eq!(client.ask("counters", "\n"), "ERROR\n");
    assert!(client.ask("targets", END).contains("nodes/127.0.0.1:9"));
    client.say("quit\n");
    assert_eq!(client.stream.read(&mut [0]).ok(), Some(0), "it closes");
}

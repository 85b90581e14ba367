//! Clients of `ws-server` as riemann-dash is one (spec riemann §6.2), and thousands of subscribers at once, half of which never read.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::process::Command;

use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::riemann::{connect, reply};
use crate::riemann_config::message;
use crate::riemann_subscribers::{Socket, config, send, start};
use crate::support::{Builder, Daemon, wait_for};

/// The address of a view: all of its punctuation is encoded, as a page encodes it.
fn view(query: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    let query: String = query.bytes().map(encode).collect();
    format!("/index?subscribe=true&query={query}")
}

/// What a view shows: the latest event of each service, and none of those that have expired.
#[derive(Default)]
struct Shown(std::collections::BTreeMap<String, i64>);

impl Shown {
    /// Reads events until it shows this.
    fn until(&mut self, socket: &mut Socket, want: &[(&str, i64)]) {
        let want: Vec<(String, i64)> =
            want.iter().map(|(service, metric)| ((*service).to_owned(), *metric)).collect();
        while self.0.clone().into_iter().collect::<Vec<_>>() != want {
            let text = socket.read().expect("an event");
            let event: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
            let service = event["service"].as_str().expect("a service").to_owned();
            let _before = match event["state"].as_str() {
                Some("expired") => self.0.remove(&service),
                _ => self.0.insert(service, event["metric"].as_i64().unwrap_or(-1)),
            };
        }
    }
}

/// A page of riemann-dash on this machine opens a socket for a view.
fn dash(at: SocketAddr, query: &str) -> Socket {
    let origin = "Origin: http://localhost:4567\r\nUser-Agent: Mozilla/5.0\r\n";
    Socket::with_headers(TcpStream::connect(at).expect("it listens"), &view(query), origin)
}

#[test]
fn a_dashboard_shows_the_index_drops_what_expires_and_connects_again_after_a_restart() {
    let (mut daemon, mut client, at) = start("(periodically-expire 1) (streams (index))");
    send(&mut client, "cpu", 1);
    send(&mut client, "disk", 2);
    let mut cpu = dash(at, "service = \"cpu\" and not state = \"critical\"");
    let mut all = dash(at, "(service =~ \"cpu%\" or service =~ \"d%k\") and host != nil");
    let mut nothing = dash(at, "tagged \"no one\" and metric > 1e3");
    let (mut of_cpu, mut of_all) = (Shown::default(), Shown::default());
    of_cpu.until(&mut cpu, &[("cpu", 1)]);
    of_all.until(&mut all, &[("cpu", 1), ("disk", 2)]);
    send(&mut client, "cpu", 5);
    of_cpu.until(&mut cpu, &[("cpu", 5)]);
    of_all.until(&mut all, &[("cpu", 5), ("disk", 2)]);
    // The reaper publishes what it removes.
    client.write_all(&message("disk", 3, 0.5, None)).expect("it reads");
    assert_eq!(reply(&mut client), wire::riemann::OK_REPLY);
    of_all.until(&mut all, &[("cpu", 5)]);
    daemon.signal("TERM");
    assert_eq!(nothing.read().map_err(|(code, _)| code), Err(CloseCode::Away), "it had no event");
    assert!(daemon.wait_exit().success());
    // It tries again every few seconds; the index is still there.
    daemon.start_again();
    let (mut cpu, mut of_cpu) =
        (dash(daemon.at("riemann-ws-0", "tcp"), "service = \"cpu\""), Shown::default());
    of_cpu.until(&mut cpu, &[("cpu", 5)]);
    daemon.stop();
}

/// Raises the number of descriptors of this process as far as the system lets it; how many it has.
fn files_max() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap_or_default();
    let mut words = line.split_whitespace().filter_map(|word| word.parse::<usize>().ok());
    let (soft, hard) = (words.next().unwrap_or(1024), words.next().unwrap_or(1024));
    let process = std::process::id().to_string();
    let raised =
        Command::new("prlimit").args(["--pid", &process, &format!("--nofile={hard}:{hard}")]).status();
    if raised.is_ok_and(|status| status.success()) { hard } else { soft }
}

/// Memory of a process, in MiB.
fn memory_mib(daemon: &Daemon) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).expect("a number") / 1024
}

#[test]
fn thousands_of_subscribers_of_which_half_never_read_cost_little_and_the_others_get_every_event() {
    const SMALL: i64 = 20;
    const BIG: i64 = 1_000;
    // Other tests of this process have some descriptors too.
    let each = 1_000.min((files_max() / 2).saturating_sub(200) / 2);
    // Each big event is 10 KB; there are 15 after each small one.
    let streams = format!(
        "(def filling (apply str (repeat 1000 \"0123456789\")))
         (streams (publish \"c\"))
         (let [big (with :description filling (publish \"c\"))]
           (streams (smapcat (fn [e] (repeat 15 (assoc e :metric {BIG}))) big)))"
    );
    let mut daemon = Builder::riemann(&config(&streams)).start();
    let (mut client, at) = (connect(daemon.at("riemann", "tcp")), daemon.at("riemann-ws-0", "tcp"));
    let subscribe = |query: &str| {
        let socket =
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
        socket.set_recv_buffer_size(16 * 1024).expect("a socket");
        socket.connect(&at.into()).expect("it listens");
        Socket::with_headers(socket.into(), &format!("/pubsub/c?query={query}"), "")
    };
    let sleepers: Vec<Socket> = (0..each).map(|_| subscribe("true")).collect();
    let mut readers: Vec<Socket> = (0..each).map(|_| subscribe("metric+%3C+1000")).collect();
    let open = format!("staunch_streams_subscribers{{transform=\"streams\"}} {}", 2 * each);
    wait_for("all of them", || daemon.get("/metrics").body.contains(&open).then_some(()));
    let before_mib = memory_mib(&daemon);
    for number in 0..SMALL {
        send(&mut client, "a", number);
        for reader in &mut readers {
            assert_eq!(reader.event(), ("a".into(), number));
        }
    }
    // Each sleeper has 3 MB to read, all of them 3 GB.
    let grown_mib = memory_mib(&daemon).saturating_sub(before_mib);
    assert!(grown_mib < 64, "{grown_mib} MiB more for {each} sleepers");
    let metrics = daemon.get("/metrics").body;
    let too_long = metrics.lines().find(|line| line.starts_with("staunch_streams_published_too_long_total"));
    assert!(too_long.is_some_and(|line| line.ends_with(" 0")), "{too_long:?}");
    drop(sleepers);
    let open = format!("staunch_streams_subscribers{{transform=\"streams\"}} {each}");
    wait_for("the sleepers have gone", || daemon.get("/metrics").body.contains(&open).then_some(()));
    daemon.assert_sums_hold();
    daemon.stop();
}

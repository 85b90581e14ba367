//! Sources of Graphite points: by every socket, through queues in memory and on disk, to several carbons.

use std::io::Write;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use crate::support::{Builder, Daemon, FakeGraphite, udp, wait_for};

fn config(source: &str, endpoints: &[&FakeGraphite], queue: &str) -> String {
    let to: Vec<String> = endpoints.iter().map(|endpoint| endpoint.to()).collect();
    format!(
        "[sources.in]\ntype = \"graphite\"\n{source}\n\
         [outputs.carbon]\ntype = \"graphite\"\nfrom = [\"in\"]\nto = {to:?}\nmin_retry_delay = \"20ms\"\n\
         max_retry_delay = \"100ms\"\nqueue = {{ kind = \"{queue}\" }}\n"
    )
}

/// Waits until the endpoint has all of `lines`, and nothing else.
#[track_caller]
fn assert_came(endpoint: &FakeGraphite, mut lines: Vec<String>) {
    let sorted = || {
        let text = String::from_utf8_lossy(&endpoint.bytes()).into_owned();
        let mut came: Vec<String> = text.lines().map(str::to_owned).collect();
        came.sort();
        came
    };
    lines.sort();
    wait_for("as many lines as were sent", || (sorted().len() >= lines.len()).then_some(()));
    assert_eq!(sorted(), lines);
}

#[test]
fn points_come_by_every_socket_and_go_on_as_they_are() {
    let graphite = FakeGraphite::new();
    let listen = "listen = [\"udp://127.0.0.1:0\", \"tcp://127.0.0.1:0\", \"unix://points.sock\"]";
    let mut daemon = Builder::native(&config(listen, &[&graphite], "memory")).start();
    let datagram = "by.udp.one 1.50 1700000000\nby.udp.two -.5 1.7e9";
    udp(daemon.at("in", "udp")).send(datagram.as_bytes()).expect("it is there");
    let mut tcp = TcpStream::connect(daemon.at("in", "tcp")).expect("it listens");
    tcp.write_all(b"by.tcp.one 1 1700000000\nno.value\nby.tcp;b=2;a=1 2 1700000000\n..cut.")
        .expect("it reads");
    tcp.write_all(b".off 3 1700000000\nhalf 3 17000").expect("it reads");
    drop(tcp);
    let socket = daemon.folder.path().join("points.sock");
    let mut unix = UnixStream::connect(socket).expect("it listens");
    unix.write_all(b"by.unix.one 4 1700000000\n").expect("it reads");
    daemon.wait_source("in", "routed", 6);
    daemon.wait_source("in", "losses/rejected/tail_lost", 1);
    daemon.wait_source("in", "losses/rejected/no_value", 1);
    let want = [
        "by.udp.one 1.50 1700000000",
        "by.udp.two -.5 1.7e9",
        "by.tcp.one 1 1700000000",
        "by.tcp;a=1;b=2 2 1700000000",
        "cut.off 3 1700000000",
        "by.unix.one 4 1700000000",
    ];
    assert_came(&graphite, want.map(str::to_owned).to_vec());
    daemon.wait_output("carbon", "delivered", 6);
    daemon.assert_sums_hold();
    daemon.stop();
}

#[test]
fn a_carbon_that_is_away_holds_up_no_other_and_gets_its_points_after_a_kill() {
    let near = FakeGraphite::new();
    let mut far = FakeGraphite::new();
    far.refuse();
    let source = "listen = [\"tcp://127.0.0.1:0\"]\ncompatibility = \"c-relay\"";
    let mut daemon = Builder::native(&config(source, &[&near, &far], "disk")).start();
    let far_name = format!("carbon/{}", far.to().trim_start_matches("tcp://"));
    let lines: Vec<String> =
        (0..5_000).map(|n| format!("servers.web{}.requests {n} 1700000000", n % 97)).collect();
    let mut stream = TcpStream::connect(daemon.at("in", "tcp")).expect("it listens");
    stream.write_all((lines.join("\n") + "\n").as_bytes()).expect("it reads");
    assert_came(&near, lines.clone());
    daemon.wait_output(&far_name, "queued", 5_000);
    daemon.assert_sums_hold();
    daemon.signal("KILL");
    assert!(!daemon.wait_exit().success());
    daemon.start_again();
    far.come_back();
    daemon.wait_output(&far_name, "delivered", 5_000);
    // In order, for each series and so for all: there is one connection.
    assert_eq!(String::from_utf8_lossy(&far.bytes()), lines.join("\n") + "\n");
    daemon.assert_sums_hold();
    daemon.stop();
}

#[test]
fn pickled_points_go_on_as_lines_and_bad_messages_cost_only_themselves() {
    let graphite = FakeGraphite::new();
    let source = "listen = [\"tcp://127.0.0.1:0\"]\nencoding = \"pickle\"";
    let mut daemon = Builder::native(&config(source, &[&graphite], "memory")).start();
    let mut stream = TcpStream::connect(daemon.at("in", "tcp")).expect("it listens");
    let frame = |body: &[u8]| [&(body.len() as u32).to_be_bytes()[..], body].concat();
    let runs = frame(b"cos\nsystem\n(S'true'\ntR.");
    let points = frame(b"(l(S'a.b'\n(I1700000000\nF1.5\ntta(S'c'\n(I1700000000\nNtta.");
    stream.write_all(&[runs, points].concat()).expect("it reads");
    daemon.wait_source("in", "routed", 1);
    assert_came(&graphite, vec!["a.b 1.5 1700000000".to_owned()]);
    // Two gibibytes are announced, and nothing is held for them.
    stream.write_all(&0x8000_0000_u32.to_be_bytes()).expect("it reads");
    daemon.wait_source("in", "losses/rejected/bad_frame", 1);
    daemon.wait_source("in", "losses/rejected/bad_message", 1);
    daemon.wait_source("in", "losses/rejected/bad_element", 1);
    daemon.assert_sums_hold();
    wait_for("the word of the limit", || daemon.stderr().contains("max_message_bytes").then_some(()));
    daemon.stop();
}

/// The log message of the first bad line of each kind.
#[test]
fn the_first_bad_line_of_a_kind_is_quoted() {
    let graphite = FakeGraphite::new();
    let source = "listen = [\"tcp://127.0.0.1:0\"]";
    let mut daemon = Builder::native(&config(source, &[&graphite], "memory")).start();
    let mut stream = TcpStream::connect(daemon.at("in", "tcp")).expect("it listens");
    stream.write_all(b"spaced name 1 1700000000\nanother bad name 1 1700000000\n").expect("it reads");
    daemon.wait_source("in", "losses/rejected/too_many_fields", 2);
    let logged = wait_for("the complaint", || {
        let logged: Vec<String> = Daemon::stderr(&daemon)
            .lines()
            .filter(|line| line.contains("name 1 17"))
            .map(str::to_owned)
            .collect();
        (!logged.is_empty()).then_some(logged)
    });
    assert!(logged.len() == 1 && logged[0].contains("spaced name 1 1700000000"), "{logged:?}");
    daemon.stop();
}

//! OpenTSDB: `put` lines in, as points for carbon, and out, to a TSD that complains.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use crate::support::{Builder, FakeGraphite, wait_for};

#[test]
fn put_lines_reach_carbon_and_version_is_answered() {
    let graphite = FakeGraphite::new();
    let config = format!(
        "[sources.in]\ntype = \"opentsdb\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [outputs.carbon]\ntype = \"graphite\"\nfrom = [\"in\"]\nto = [\"{}\"]\n",
        graphite.to()
    );
    let mut daemon = Builder::native(&config).start();
    let mut client = TcpStream::connect(daemon.at("in", "tcp")).expect("it listens");
    client.write_all(b"put sys.cpu 1700000000 42.5 host=web01 cpu=0\nversion\nput bad\n").expect("it reads");
    let mut reply = [0; 45];
    client.read_exact(&mut reply).expect("it replies");
    assert_eq!(reply, *b"net.opentsdb\nBuilt on ... (riemann-opentsdb)\n");
    // The connection stays open, also after a bad line.
    client.write_all(b"put sys.cpu 1700000001000 43\n").expect("it reads");
    daemon.wait_source("in", "routed", 2);
    daemon.wait_source("in", "losses/rejected/no_timestamp", 1);
    let want = "sys.cpu;cpu=0;host=web01 42.5 1700000000\nsys.cpu 43 1700000001\n";
    wait_for("both points", || (graphite.bytes() == want.as_bytes()).then_some(()));
    daemon.assert_sums_hold();
    daemon.stop();
}

#[test]
fn answers_of_a_tsd_are_counted_and_logged() {
    let tsd = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let config = format!(
        "[sources.in]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [outputs.tsd]\ntype = \"opentsdb\"\nfrom = [\"in\"]\nto = [\"tcp://{}\"]\n",
        tsd.local_addr().expect("it is bound")
    );
    let mut daemon = Builder::native(&config).start();
    let mut client = TcpStream::connect(daemon.at("in", "tcp")).expect("it listens");
    client.write_all(b"sys.cpu;host=web01 42.5 1700000000\nload 1 1700000000\n").expect("it reads");
    let (mut connection, _) = tsd.accept().expect("the output connects");
    let want = b"put sys.cpu 1700000000 42.5 host=web01\nput load 1700000000 1 source=staunch\n";
    let mut lines = vec![0; want.len()];
    connection.read_exact(&mut lines).expect("both lines come");
    assert_eq!(lines, want);
    connection.write_all(b"put: illegal argument: x\nput: illegal argument: y\n").expect("it reads");
    daemon.wait_output("tsd", "answer_lines", 2);
    daemon.wait_output("tsd", "delivered", 2);
    daemon.assert_sums_hold();
    daemon.stop();
    let log = daemon.stderr();
    assert_eq!(log.matches("output `tsd`: the endpoint answers").count(), 1, "{log}");
}

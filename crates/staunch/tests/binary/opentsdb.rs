//! OpenTSDB: `put` lines in, as points for carbon.

use std::io::{Read, Write};
use std::net::TcpStream;

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

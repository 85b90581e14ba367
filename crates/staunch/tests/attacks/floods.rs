//! A12: floods that need much time and little else: gzip members with nothing in them, and lines of one byte on a thousand
//! connections; beside them a client of another source that waits for an acknowledgement before each line.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::attacker::{Manner, Target};
use crate::finding::End;
use crate::payloads;
use crate::scene::{Attack, Scene};
use crate::support::bench::Bench;

const GROWS_MAX: u64 = 128 << 20;

/// Longest wait of the honest client for one acknowledgement, when it gives up.
const ACK_MAX: Duration = Duration::from_secs(30);

/// Sends a line and waits for its acknowledgement, until it is over; gives what each took.
fn honest(at: SocketAddr, over: Arc<AtomicBool>) -> JoinHandle<Vec<Duration>> {
    std::thread::spawn(move || {
        let mut took = Vec::new();
        let mut stream = TcpStream::connect(at).expect("it listens");
        stream.set_read_timeout(Some(ACK_MAX)).expect("it is a socket");
        let mut replies = BufReader::new(stream.try_clone().expect("a descriptor is free"));
        let mut ack = String::new();
        while !over.load(SeqCst) {
            let since = Instant::now();
            if stream.write_all(b"honest:1|c\n").is_err() || replies.read_line(&mut ack).is_err() {
                took.push(ACK_MAX);
                break;
            }
            took.push(since.elapsed());
            std::thread::sleep(Duration::from_millis(5));
        }
        took.sort_unstable();
        took
    })
}

pub(crate) fn run(bench: &Bench) -> End {
    let toml = "[sources.packed]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\ntransport = \"gzip\"\n\
         [sources.lines]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [sources.honest]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\nack_when = \"accepted\"\n\
         [transforms.hole]\ntype = \"relay\"\nfrom = [\"packed\", \"lines\"]\nrules = [{ to = \"blackhole\" }]\n\
         [transforms.counts]\ntype = \"aggregate\"\nfrom = [\"honest\"]\nwindow = \"1h\"\n\
         [outputs.counted]\ntype = \"graphite_file\"\nfrom = [\"counts\"]\nmax_files = 1\n";
    let mut scene = Scene::start(bench, toml, GROWS_MAX);
    let Target::Tcp(at) = scene.tcp("honest") else { unreachable!("it is TCP") };
    let floods = [
        ("empty members", "packed", payloads::empty_members(60_000), bench.pick(20, 200)),
        ("lines of one byte", "lines", b"x\n".repeat(50_000), bench.pick(50, 1_000)),
    ];
    for (what, source, payload, connections) in floods {
        let over = Arc::new(AtomicBool::new(false));
        let waits = honest(at, Arc::clone(&over));
        let flood = Attack::new(scene.tcp(source), Manner::Flood, payload).on(connections);
        let held = scene.attack(vec![flood], bench.pick(1.5, 12.0));
        over.store(true, SeqCst);
        let took = waits.join().unwrap_or_default();
        held.end();
        let (median, most) = (took.get(took.len() / 2).copied(), took.last().copied());
        let (median, most) = (median.unwrap_or(ACK_MAX), most.unwrap_or(ACK_MAX));
        scene.finding.figure(format!(
            "{what} on {connections} connections: an acknowledgement takes {} ms, at most {} ms",
            median.as_millis(),
            most.as_millis()
        ));
        let bound = Duration::from_secs(bench.pick(5, 1));
        scene.finding.promise(median <= bound && most <= 3 * bound, || {
            let (median, most) = (median.as_millis(), most.as_millis());
            format!(
                "{what}: another source's client waits {median} ms for its acknowledgement, at most {most} ms"
            )
        });
    }
    End::Ran(scene.end("floods that cost time"))
}

//! A4: somebody takes all descriptors while a queue on disk is being delivered.
//!
//! The endpoint is connected and silent until the queue has several files; then idle HTTP connections take every
//! descriptor that the limit leaves, and the endpoint reads. Every record must arrive, and none is damaged.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use crate::attacker::{Manner, Target};
use crate::finding::End;
use crate::scene::{Attack, Scene};
use crate::support::Daemon;
use crate::support::bench::Bench;

/// Descriptors that the daemon may have.
const FILES: u64 = 80;

/// Bytes of a record: so long that several files are filled quickly.
const RECORD_BYTES: usize = 1_000;

const GROWS_MAX: u64 = 128 << 20;

/// Reads from one connection after another when it may; counts lines.
fn endpoint() -> (String, Arc<AtomicBool>, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let to = format!("tcp://{}", listener.local_addr().expect("it is bound"));
    let (may, lines) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (goes_on, counted) = (Arc::clone(&may), Arc::clone(&lines));
    // It ends with the bench: nothing waits for it.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (goes_on, counted) = (Arc::clone(&goes_on), Arc::clone(&counted));
            std::thread::spawn(move || count(stream, &goes_on, &counted));
        }
    });
    (to, may, lines)
}

fn count(mut stream: TcpStream, may: &AtomicBool, lines: &AtomicU64) {
    let mut buffer = vec![0; 256 * 1024];
    loop {
        while !may.load(SeqCst) {
            std::thread::sleep(Duration::from_millis(5));
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(len) => {
                let ends = buffer[..len].iter().filter(|byte| **byte == b'\n').count();
                lines.fetch_add(ends as u64, SeqCst);
            }
        }
    }
}

pub(crate) fn run(bench: &Bench) -> End {
    let records: u64 = bench.pick(160_000, 1_000_000);
    let (to, may, arrived) = endpoint();
    let toml = format!(
        "[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [outputs.copy]\ntype = \"tcp\"\nfrom = [\"app\"]\nto = [\"{to}\"]\nmin_retry_delay = \"50ms\"\nmax_retry_delay = \"200ms\"\n\
         write_timeout = \"1h\"\nqueue = {{ kind = \"disk\", max_bytes = \"4GiB\" }}\n"
    );
    let mut scene = Scene::start(bench, &toml, GROWS_MAX);
    let mut record = vec![b'r'; RECORD_BYTES - 6];
    record.extend_from_slice(b":1|c\n");
    // Sent by the bench itself: filling the queue is no attack.
    let mut client = TcpStream::connect(scene.daemon.at("app", "tcp")).expect("it listens");
    let block = record.repeat(1_000);
    for _ in 0..records / 1_000 {
        std::io::Write::write_all(&mut client, &block).expect("it reads");
    }
    let copies = |scene: &Scene<'_>| Daemon::number(&scene.daemon.output("copy"), "copies");
    let filled = scene.wait("the queue", || (copies(&scene) == records).then_some(()));
    assert!(filled.is_some(), "the queue does not fill");
    let limited = Command::new("prlimit")
        .args(["--pid", &scene.daemon.pid().to_string(), &format!("--nofile={FILES}:{FILES}")])
        .status();
    if !limited.is_ok_and(|status| status.success()) {
        return End::Skipped("there is no prlimit (Debian: `apt install util-linux`)".into());
    }
    let idle = Attack::new(Target::Tcp(scene.http), Manner::Silent, "").on(100);
    let held = scene.attack(vec![idle.clone()], 1.0);
    may.store(true, SeqCst);
    let more = scene.attack(vec![idle], bench.pick(3.0, 20.0));
    let taken = (more.end(), held.end()).0.connected;
    let drained = scene.wait("the queue to drain", || {
        let row = scene.accounts()?["outputs"].as_array()?.iter().find(|row| row["name"] == "copy")?.clone();
        (Daemon::number(&row, "queued") == 0).then_some(row)
    });
    // Delivered is what its kernel has; the endpoint may have yet to read it.
    let read =
        scene.wait("the endpoint to read", || Some(arrived.load(SeqCst)).filter(|read| *read >= records));
    let arrived = read.unwrap_or_else(|| arrived.load(SeqCst));
    let damaged = drained.as_ref().map_or(0, |row| Daemon::number(row, "losses/dropped/damaged"));
    let dropped = drained.as_ref().map_or(0, |row| Daemon::number(row, "dropped"));
    scene.finding.figure(format!("{arrived} of {records} records arrived, {damaged} counted as damaged"));
    scene.finding.figure(format!("limit of {FILES} descriptors, {taken} idle connections"));
    scene.finding.promise(drained.is_some(), || "the queue did not drain".into());
    scene.finding.promise(dropped == 0 && arrived >= records, || {
        format!("{dropped} good records were dropped, {damaged} of them as damaged; {arrived} of {records} arrived")
    });
    let quarantine = std::fs::read_dir(scene.path("staunch-data/queues/copy/quarantine"));
    let quarantined = quarantine.map_or(0, |entries| entries.count());
    scene.finding.promise(quarantined == 0, || format!("{quarantined} intact files were quarantined"));
    End::Ran(scene.end("all descriptors taken"))
}

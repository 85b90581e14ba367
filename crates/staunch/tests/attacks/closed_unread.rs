//! A7: a unix endpoint that takes what its kernel takes, and closes without having read it.
//!
//! The client asks for `ack_when = "delivered"`. A line that is acknowledged must have been read.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::finding::End;
use crate::scene::Scene;
use crate::support::bench::Bench;

const GROWS_MAX: u64 = 64 << 20;

/// Lines of a round, after which the endpoint closes.
const LINES: u64 = 1_000;

/// Time in which what is written is in the kernel's buffer.
const IN_BUFFER: Duration = Duration::from_millis(300);

/// Ids of lines that were read.
type Ids = Arc<Mutex<BTreeSet<u64>>>;

/// Closes so many connections unread, and reads all that come after.
fn endpoint(path: &Path, unread: usize) -> Ids {
    let listener = UnixListener::bind(path).expect("a new folder");
    let read = Ids::default();
    let into = Arc::clone(&read);
    // It ends with the bench: nothing waits for it.
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            if number < unread {
                std::thread::sleep(IN_BUFFER);
                continue;
            }
            let into = Arc::clone(&into);
            std::thread::spawn(move || {
                let mut lines = BufReader::new(stream);
                let mut line = String::new();
                while lines.read_line(&mut line).is_ok_and(|len| len > 0) {
                    let id: Option<u64> =
                        line.strip_prefix("id_").and_then(|rest| rest.split(':').next()?.parse().ok());
                    into.lock().expect("no reader panics").extend(id);
                    line.clear();
                }
            });
        }
    });
    read
}

pub(crate) fn run(bench: &Bench) -> End {
    let rounds = bench.pick(2, 20);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("endpoint");
    let read = endpoint(&path, rounds);
    let toml = format!(
        "[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\nack_when = \"delivered\"\n\
         [outputs.copy]\ntype = \"unix\"\nfrom = [\"app\"]\nto = [\"unix://{}\"]\nmin_retry_delay = \"20ms\"\nmax_retry_delay = \"50ms\"\n",
        path.display()
    );
    let mut scene = Scene::start(bench, &toml, GROWS_MAX);
    let mut acked = 0;
    let mut acked_unread = 0;
    for round in 0..rounds as u64 {
        let mut client = TcpStream::connect(scene.daemon.at("app", "tcp")).expect("it listens");
        client.set_read_timeout(Some(Duration::from_millis(500))).expect("a time-out can be set");
        let mut lines = Vec::new();
        for id in round * LINES..(round + 1) * LINES {
            writeln!(lines, "id_{id}:1|c").expect("memory takes it");
        }
        client.write_all(&lines).expect("it reads");
        let held = scene.attack(Vec::new(), 2.0 * IN_BUFFER.as_secs_f64());
        held.end();
        let mut replies = [0; 4096];
        let len = client.read(&mut replies).unwrap_or(0);
        let replies = String::from_utf8_lossy(&replies[..len]).into_owned();
        let last = replies
            .lines()
            .filter_map(|line| line.strip_prefix("ack ")?.parse::<u64>().ok())
            .max()
            .unwrap_or(0);
        let ids = read.lock().expect("no reader panics").clone();
        acked_unread += (round * LINES..round * LINES + last).filter(|id| !ids.contains(id)).count();
        acked += last;
    }
    scene.finding.figure(format!(
        "{acked} of {} lines acknowledged, {acked_unread} of them read by nobody",
        rounds as u64 * LINES
    ));
    scene.finding.promise(acked_unread == 0, || {
        format!("{acked_unread} lines were acknowledged as delivered, and nobody has read them")
    });
    End::Ran(scene.end("endpoint closes unread"))
}

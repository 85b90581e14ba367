//! F8: bits of a queue's files flip while the daemon is down, and files lose their end or are gone.
//!
//! In each round records come while the endpoint is away, the daemon is killed or stopped, some bits of its segments
//! are flipped, and it starts again with the endpoint there. After some of the stops its last segment is cut short or
//! removed instead. What is whole arrives, what is not is counted, both together are what was taken, without exception.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::endpoint::Endpoint;
use crate::finding::{Bench, End, Finding};
use crate::load::Client;
use crate::oracle::Form;
use crate::support::{Builder, Daemon, Random};

/// Longest wait for a queue to drain.
const PATIENCE: Duration = Duration::from_secs(60);

/// Most bytes that the damage of one bit may cost: a block.
const BLOCK_BYTES: u64 = 128 << 10;

/// A record of ours has at least so many.
const RECORD_BYTES_MIN: u64 = 9;

/// The segments of the one queue.
fn segments(daemon: &Daemon) -> Vec<PathBuf> {
    let folder = daemon.folder.path().join("staunch-data/queues/copy");
    let entries = fs::read_dir(folder).expect("the queue has a folder").flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|ending| ending == "segment")).collect()
}

/// What is done to the files in one round.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Harm {
    Flips,
    /// The last segment loses its end, at some byte.
    Cut,
    /// The last segment is gone.
    Gone,
}

/// After a kill only flips: what was not noted yet, some milliseconds of it, is in the file and nowhere else.
fn harm_of(round: u64) -> Harm {
    match round % 8 {
        1 => Harm::Cut,
        3 => Harm::Gone,
        _ => Harm::Flips,
    }
}

/// Gives the bytes that are gone.
fn shorten(files: &[PathBuf], harm: Harm, random: &mut Random) -> u64 {
    let last = files.iter().max().expect("there are segments");
    let size = fs::metadata(last).expect("it is there").len();
    if harm == Harm::Gone {
        fs::remove_file(last).expect("it is ours");
        return size;
    }
    let left = random.below(size as usize) as u64;
    let file = fs::OpenOptions::new().write(true).open(last).expect("it can be written");
    file.set_len(left).expect("it can be cut");
    size - left
}

fn flip_a_bit(path: &Path, random: &mut Random) {
    let mut bytes = fs::read(path).expect("it can be read");
    if bytes.is_empty() {
        return;
    }
    let at = random.below(bytes.len());
    bytes[at] ^= 1 << random.below(8);
    fs::write(path, bytes).expect("it can be written");
}

pub(crate) fn run(bench: &Bench) -> End {
    let (rounds, records, flips) = bench.pick((4, 20_000, 3), (100, 200_000, 10));
    let mut endpoint = Endpoint::new(Form::Line);
    let toml = format!(
        "stop_timeout = \"5s\"\n[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [outputs.copy]\ntype = \"tcp\"\nfrom = [\"app\"]\nto = [\"{}\"]\nmin_retry_delay = \"20ms\"\nmax_retry_delay = \"100ms\"\n\
         queue = {{ kind = \"disk\" }}\n",
        endpoint.to()
    );
    endpoint.go_away();
    let mut daemon = Builder::native(&toml).start();
    let mut random = bench.random();
    let (mut finding, mut next, mut quarantined) = (Finding::default(), 0, 0);
    let (mut flipped, mut shortened) = (0, 0);
    for round in 0..rounds {
        let mut client = Client::new(daemon.at("app", "tcp"), next);
        client.send_at_once(records);
        next = client.next;
        drop(client);
        daemon.wait_output("copy", "copies", records);
        daemon.signal(if round % 2 == 0 { "KILL" } else { "TERM" });
        daemon.wait_exit();
        let files = segments(&daemon);
        let most = match harm_of(round) {
            Harm::Flips => {
                for _ in 0..flips {
                    flip_a_bit(&files[random.below(files.len())], &mut random);
                    flipped += 1;
                }
                flips * BLOCK_BYTES / RECORD_BYTES_MIN
            }
            harm => {
                shortened += 1;
                (shorten(&files, harm, &mut random) + BLOCK_BYTES) / RECORD_BYTES_MIN
            }
        };
        endpoint.come_back();
        daemon.start_again();
        let empty = bench.wait("the queue to drain", PATIENCE, || {
            (Daemon::number(&daemon.output("copy"), "queued") == 0).then_some(())
        });
        finding.promise(empty.is_some(), || "a queue did not drain after it was damaged".into());
        let row = daemon.output("copy");
        let damaged = Daemon::number(&row, "losses/dropped/damaged");
        finding.named += damaged;
        quarantined += Daemon::number(&row, "disk/quarantined_bytes");
        finding.promise(damaged <= most, || {
            format!("round {round} cost {damaged} records: more than the blocks that were hit")
        });
        let there = || (endpoint.oracle.arrived() + finding.named >= next).then_some(());
        let _all = bench.wait("the endpoint to read", Duration::from_secs(10), there);
        daemon.assert_sums_hold();
        endpoint.go_away();
        bench.say(|| format!("round {round} of {rounds}, {flipped} bits flipped"));
        // The next round begins with a fresh account, and with nothing that was delivered and not noted.
        daemon.stop();
        daemon.start_again();
    }
    finding.sent = next;
    finding.add(&endpoint.oracle.count());
    finding.done = format!("{flipped} bits, {shortened} files cut short or gone, {rounds} restarts");
    let (damaged, share) = (finding.named, finding.named as f64 * 100.0 / next as f64);
    finding.figure(format!(
        "{damaged} records ({share:.1} %) dropped as damaged, {quarantined} bytes quarantined"
    ));
    finding.promise(damaged > 0, || "no bit hit a record: this run shows nothing".into());
    finding.promise_exact();
    daemon.stop();
    End::Ran(finding)
}

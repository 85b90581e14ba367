//! The part of `staunch bench queue` that starts a daemon with a full queue. It measures the time from exec to the
//! first acknowledged line, and to `/ready`.
//!
//! The queue is filled once, by the daemon's own code, and restored before each start. It has three states: after a
//! normal stop; with the last write cut off, as after a kill, in a segment of the smallest blocks, which take longest
//! to scan; and damaged, without a cursor. Each is started with and without the files in the system's cache.
//! Not here: how fast a queue accepts records (`queue`), whether it returns the right ones (`tests/faults`).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use deliver::queue::Block;
use model::SECOND_NS;

use super::{DaemonQueue, Wrap, block, broken, open};
use crate::contestant::process::Process;
use crate::contestant::server::free_tcp_port;
use crate::ground::Talk;
use crate::report::{Check, Row, ScenarioReport, figure};
use crate::rounds::rounds;
use crate::{BenchError, failed};
use sys::clock::Clock;
use sys::data_dir;

/// The promised time with 10 GB.
const FIRST_LINE_MS_MAX: f64 = 200.0;

/// Bytes of a segment of the usual size.
const SEGMENT_BYTES: u64 = 64 << 20;

/// Disk space needed in addition to the queue, for the daemon's own segment and its quarantine.
const SPARE_BYTES: u64 = 500_000_000;

/// Longest wait for a daemon.
const START_WAIT_NS: u64 = 60 * SECOND_NS;

/// The interval between two connection attempts.
const LOOK_EVERY: Duration = Duration::from_micros(200);

/// Bytes cut off the last segment: more than its trailer, and less than the trailer and the last record.
const CUT_BYTES: u64 = 150;

const OUTPUT: &str = "store";

/// The state in which the daemon finds its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Stopped,
    Killed,
    Damaged,
}

impl State {
    fn who(self) -> &'static str {
        match self {
            State::Stopped => "stopped",
            State::Killed => "killed",
            State::Damaged => "damaged",
        }
    }
}

/// Whether the system has the queue's files in its cache.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cache {
    Cold,
    Warm,
}

/// One start, in milliseconds from before the exec.
#[derive(Clone, Copy, Debug)]
struct Times {
    first_line_ms: f64,
    ready_ms: f64,
    /// Megabytes read by then. `None` where the system does not count them.
    read: Option<f64>,
}

/// Starts daemons with a queue of `bytes` bytes. Without enough disk space, it only warns.
///
/// # Errors
/// When the folder cannot be written, or a daemon does not start.
pub(crate) fn measure(
    (bytes, runs): (u64, u64),
    folder: &Path,
    wrap: Wrap<'_>,
    talk: Talk<'_>,
) -> Result<Result<ScenarioReport, String>, BenchError> {
    let room = sys::free_space_at(folder).map_err(failed("ask for the room on the disk"))?;
    if room < bytes.saturating_add(SPARE_BYTES) {
        return Ok(Err(format!(
            "start: left out: it needs {} GB of room on the disk, and there are {}; see --start-gigabytes",
            figure((bytes + SPARE_BYTES) as f64 / 1e9),
            figure(room as f64 / 1e9)
        )));
    }
    let folder = fs::canonicalize(folder).map_err(failed("find its folder"))?.join("start");
    let place = data_dir::queues_dir(&folder.join("data")).join(data_dir::queue_folder(OUTPUT));
    talk(&format!("start: fills a queue with {} GB", figure(bytes as f64 / 1e9)));
    let records = fill(&place, bytes, wrap)?;
    let (mut rows, mut slowest) = (Vec::new(), 0.0_f64);
    for state in [State::Stopped, State::Killed, State::Damaged] {
        harm(&place, state).map_err(failed("change the queue's files"))?;
        let before = Snapshot::of(&place).map_err(failed("read the queue's files"))?;
        let name = format!("start: {}", state.who());
        let times = rounds(talk, &name, runs, &[Cache::Cold, Cache::Warm], |cache, _round| {
            if *cache == Cache::Cold {
                forget(&place).map_err(failed("drop files from the cache"))?;
            }
            let times = start(&folder)?;
            before.put_back(&place).map_err(failed("put the queue's files back"))?;
            Ok(times)
        })?;
        let more = rows_of(state, &times[0], &times[1]);
        let first_lines = more.iter().filter(|row| row.what.ends_with("first line"));
        slowest = first_lines.map(Row::median).fold(slowest, f64::max);
        rows.extend(more);
    }
    let what = format!(
        "from exec to the first line acknowledged, and to /ready, with {} GB on disk: {} records",
        figure(bytes as f64 / 1e9),
        figure(records as f64)
    );
    let checks =
        vec![Check::at_most("ms to the first line, the slowest of these:", slowest, FIRST_LINE_MS_MAX)];
    Ok(Ok(ScenarioReport { name: "start", what, rows, checks }))
}

fn rows_of(state: State, cold: &[Times], warm: &[Times]) -> Vec<Row> {
    let row = |what, unit, times: &[Times], which: fn(&Times) -> Option<f64>| {
        let runs: Vec<f64> = times.iter().filter_map(which).collect();
        (!runs.is_empty()).then_some(Row { who: state.who(), what, unit, runs })
    };
    let rows = [
        row("cold, first line", "ms", cold, |times| Some(times.first_line_ms)),
        row("cold, ready", "ms", cold, |times| Some(times.ready_ms)),
        row("cold, read by then", "MB", cold, |times| times.read),
        row("warm, first line", "ms", warm, |times| Some(times.first_line_ms)),
        row("warm, ready", "ms", warm, |times| Some(times.ready_ms)),
    ];
    rows.into_iter().flatten().collect()
}

/// Fills the queue in `place`; the last segment has blocks of one record. Returns the number of records.
fn fill(place: &Path, bytes: u64, wrap: Wrap<'_>) -> Result<u64, BenchError> {
    let small = Block::lines(vec![b'x'; 99].into_iter().chain([b'\n']).collect(), 1, 0);
    // Less than a segment with its headers, and less than the rest.
    let smalls = (SEGMENT_BYTES * 7 / 8).min(bytes / 4) / 200;
    let block = block();
    let blocks = bytes.saturating_sub(smalls * 200) / block.bytes.len() as u64;
    // Opening a queue begins a segment.
    append(&*open(place, 10, wrap)?, &block, blocks)?;
    append(&*open(place, 10, wrap)?, &small, smalls)?;
    Ok(blocks * u64::from(block.copies) + smalls)
}

fn append(queue: &dyn DaemonQueue, block: &Block, times: u64) -> Result<(), BenchError> {
    let mut unsynced = 0;
    for left in (0..times).rev() {
        if !queue.append(block.clone(), Clock::now()) {
            return Err(broken("a block was not taken: look at the room on the disk"));
        }
        unsynced += block.bytes.len() as u64;
        if unsynced >= SEGMENT_BYTES || left == 0 {
            unsynced = 0;
            queue.sync();
        }
    }
    Ok(())
}

/// The segments, oldest first.
fn segments(place: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(place)?.collect::<io::Result<Vec<_>>>()?;
    let paths = entries.into_iter().map(|entry| entry.path());
    let mut segments: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|ending| ending == "segment")).collect();
    segments.sort_unstable();
    Ok(segments)
}

fn harm(place: &Path, state: State) -> io::Result<()> {
    let segments = segments(place)?;
    let writable = |path: &Path| OpenOptions::new().read(true).write(true).open(path);
    match state {
        State::Stopped => {}
        State::Killed => {
            let last = writable(segments.last().ok_or(io::ErrorKind::NotFound)?)?;
            last.set_len(last.metadata()?.len().saturating_sub(CUT_BYTES))?;
        }
        State::Damaged => {
            for (at, path) in segments.iter().enumerate() {
                let file = writable(path)?;
                let middle = file.metadata()?.len() / 3;
                // Every fourth segment also loses its header.
                for byte in [Some(middle), (at % 4 == 0).then_some(9)].into_iter().flatten() {
                    let mut was = [0];
                    file.read_exact_at(&mut was, byte)?;
                    file.write_all_at(&[was[0] ^ 1], byte)?;
                }
            }
            for name in
                ["cursor-0", "cursor-1"].map(|name| place.join(name)).iter().filter(|name| name.exists())
            {
                fs::write(name, [7; 9000])?;
            }
        }
    }
    Ok(())
}

/// The parts of a queue that a starting daemon may change: the cursor and the list of files.
struct Snapshot {
    names: Vec<PathBuf>,
    small: Vec<(PathBuf, Vec<u8>)>,
}

impl Snapshot {
    fn of(place: &Path) -> io::Result<Snapshot> {
        let entries = fs::read_dir(place)?.collect::<io::Result<Vec<_>>>()?;
        let names: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
        let small = names.iter().filter(|path| path.extension().is_none());
        let small = small.map(|path| Ok((path.clone(), fs::read(path)?))).collect::<io::Result<_>>()?;
        Ok(Snapshot { names, small })
    }

    fn put_back(&self, place: &Path) -> io::Result<()> {
        for entry in fs::read_dir(place)? {
            let path = entry?.path();
            if !self.names.contains(&path) {
                fs::remove_file(path)?;
            }
        }
        self.small.iter().try_for_each(|(path, bytes)| fs::write(path, bytes))
    }
}

/// Writes the files to disk and removes them from the system's cache, where the system can.
fn forget(place: &Path) -> io::Result<()> {
    for entry in fs::read_dir(place)? {
        let file = File::open(entry?.path())?;
        file.sync_all()?;
        sys::drop_from_cache(&file)?;
    }
    Ok(())
}

/// Starts a daemon on the data directory in `folder`, without its endpoint, and kills it once it is ready.
fn start(folder: &Path) -> Result<Times, BenchError> {
    let free = || free_tcp_port().map_err(failed("find a free port"));
    let (source, http, away) = (free()?, free()?, free()?);
    let config = format!(
        "data_dir = {:?}\nhttp = {{ listen = \"{http}\" }}\n[sources.app]\ntype = \"statsd\"\n\
         listen = [\"tcp://{source}\"]\nack_when = \"accepted\"\n[outputs.{OUTPUT}]\ntype = \"tcp\"\nfrom = [\"app\"]\n\
         to = [\"tcp://{away}\"]\nqueue = {{ kind = \"disk\", max_bytes = \"1000GiB\" }}\n",
        folder.join("data")
    );
    let (path, log) = (folder.join("staunch.toml"), folder.join("log"));
    fs::write(&path, config).map_err(failed("write a config file"))?;
    let binary = std::env::current_exe().map_err(failed("find its own binary"))?;
    let mut command = Command::new(binary);
    command.arg("run").arg(&path).current_dir(folder);
    let start_ns = Clock::mono_ns();
    let daemon = Process::spawn("staunch", command, None, log)?;
    let passed_ms = || (Clock::mono_ns() - start_ns) as f64 / 1e6;
    let (first_line_ms, ready_ms) = thread::scope(|threads| {
        let ready = threads.spawn(|| until(start_ns, || is_ready(http)).map(|()| passed_ms()));
        let line = until(start_ns, || is_acknowledged(source)).map(|()| passed_ms());
        (line, ready.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let read = bytes_read(daemon.id()).map(|bytes| bytes as f64 / 1e6);
    match (first_line_ms, ready_ms) {
        (Ok(first_line_ms), Ok(ready_ms)) => Ok(Times { first_line_ms, ready_ms, read }),
        (Err(error), _) | (_, Err(error)) => Err(daemon.not_ready(error.to_string())),
    }
}

/// Retries until `done` succeeds or the time is up.
fn until(start_ns: u64, mut done: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    loop {
        match done() {
            Ok(()) => return Ok(()),
            Err(error) if Clock::mono_ns() - start_ns > START_WAIT_NS => return Err(error),
            Err(_) => thread::sleep(LOOK_EVERY),
        }
    }
}

fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let connection = TcpStream::connect(to)?;
    connection.set_read_timeout(Some(Duration::from_nanos(START_WAIT_NS)))?;
    Ok(connection)
}

/// Sends one line and waits for the reply that it is queued.
fn is_acknowledged(source: SocketAddr) -> io::Result<()> {
    let mut connection = connect(source)?;
    connection.write_all(b"bench.start:1|c\n")?;
    let mut answer = [0; 6];
    connection.read_exact(&mut answer)?;
    if &answer == b"ack 1\n" { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
}

fn is_ready(http: SocketAddr) -> io::Result<()> {
    let mut connection = connect(http)?;
    connection.write_all(b"GET /ready HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let mut answer = [0; 12];
    connection.read_exact(&mut answer)?;
    if answer.ends_with(b" 200") { Ok(()) } else { Err(io::ErrorKind::NotConnected.into()) }
}

/// Bytes that a process has read so far, cached or not.
fn bytes_read(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("rchar: "))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::test_queue::wrap;
    use super::*;

    #[test]
    fn a_queue_is_filled_damaged_and_restored() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("queue");
        let records = fill(&place, 400_000, &wrap).expect("there is room");
        let waiting = || open(&place, 10, &wrap).expect("it opens").copies_queued();
        assert_eq!((waiting(), segments(&place).expect("it lists").len()), (records, 2));
        harm(&place, State::Killed).expect("it can be written");
        let before = Snapshot::of(&place).expect("it can be read");
        assert_eq!(waiting(), records, "the cut record is known by its header");
        harm(&place, State::Damaged).expect("it can be written");
        before.put_back(&place).expect("it can be written");
        assert_eq!(waiting(), records);
        forget(&place).expect("it can be synced");
        assert!(bytes_read(std::process::id()).is_none_or(|bytes| bytes > 0));
    }
}

//! Log lines of a daemon, to stderr, stdout or a file, even if their reader is slow or missing.
//!
//! Path: any thread, including those of records -> [`to_stderr`], [`to_stdout`], [`to_file`] -> a queue of at most
//! [`QUEUE_BYTES_MAX`] -> a separate thread, the only one that writes, and so the only one that waits for a reader.
//! Without room in the queue, a text is dropped and counted; the log shows their number where they are missing, and
//! [`dropped`] returns the total. [`finish`] waits briefly for queued texts: at the end of the process, and at a panic
//! ([`log_panics`]). Not here: output of commands that end by themselves (`talk`), the format of a log
//! (`carbon_c_relay::log`).

use std::backtrace::{Backtrace, BacktraceStatus};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

use sys::clock::Clock;
use sys::{self, Writable};

/// A queue of this size accepts no further text. The last accepted one may have any length, so that banners and
/// configurations are written completely.
const QUEUE_BYTES_MAX: usize = 1 << 20;

/// Bytes of one write: a pipe with any room accepts this many without blocking (PIPE_BUF). Short texts are joined up to
/// about that size.
const WRITE_BYTES: usize = 4096;

/// Longest wait for a reader at the end of the process, and at a panic.
const FINISH_MAX: Duration = Duration::from_secs(1);

/// Interval between two attempts of a thread whose reader is slow.
const LOOK_NS: u64 = model::SECOND_NS;

/// Dropped texts, of all streams.
static DROPPED: AtomicU64 = AtomicU64::new(0);

static STDERR: LogStream = LogStream::new("log stderr");
static STDOUT: LogStream = LogStream::new("log stdout");
static FILE: LogStream = LogStream::new("log file");

/// Writes whole lines to stderr, or drops them. It never waits for the reader.
pub(crate) fn to_stderr(text: &[u8]) {
    STDERR.push(Target::Stderr, text);
}

/// The log consists of JSON objects.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// From now on, texts for people are log messages, because the log's readers expect only JSON.
pub(crate) fn set_json() {
    IS_JSON.store(true, Relaxed);
}

/// Writes a text for people to stderr: the banner, or diagnostics. In a JSON log it is one message.
pub(crate) fn notice(text: &str) {
    if !IS_JSON.load(Relaxed) {
        to_stderr(text.as_bytes());
    } else if !text.is_empty() {
        tracing::info!("{}", text.trim_end());
    }
}

/// Writes whole lines to stdout, or drops them. It never waits for the reader.
pub(crate) fn to_stdout(text: &[u8]) {
    // If both are one pipe (`2>&1`), their lines stay in order.
    let stream = if is_same_place() { &STDERR } else { &STDOUT };
    stream.push(Target::Stdout, text);
}

/// Writes whole lines to a file, or drops them. It never waits for the disk.
pub(crate) fn to_file(file: &Arc<File>, text: &[u8]) {
    FILE.push(Target::File(Arc::clone(file)), text);
}

/// Texts dropped since the start, because the log was not read.
pub(crate) fn dropped() -> u64 {
    DROPPED.load(Relaxed)
}

/// Writes the last message of an ending process to stderr.
pub(crate) fn last_words(text: &str) {
    if STDERR.lock().runs {
        to_stderr(text.as_bytes());
    } else {
        // Only commands that end by themselves: their readers may be slow.
        client::stdio::say(text);
    }
}

/// Waits until everything is written, for at most [`FINISH_MAX`].
pub(crate) fn finish() {
    let until_ns = Clock::mono_ns() + FINISH_MAX.as_nanos() as u64;
    [&STDERR, &STDOUT, &FILE].into_iter().for_each(|stream| stream.finish(until_ns));
}

/// From now on, panic messages are logged in order, without long delays.
pub(crate) fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("<unnamed>");
        let trace = Backtrace::capture();
        let trace = match trace.status() {
            BacktraceStatus::Captured => format!("stack backtrace:\n{trace}"),
            BacktraceStatus::Disabled => {
                "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n".to_owned()
            }
            _ => String::new(),
        };
        to_stderr(format!("\nthread '{name}' {panic}\n{trace}").as_bytes());
        // The process may end at once.
        finish();
    }));
}

/// The destination of a text.
#[derive(Clone, Debug)]
enum Target {
    Stderr,
    Stdout,
    /// The log of `staunch relay -l`. When it is reopened, earlier texts still go to the old file.
    File(Arc<File>),
}

/// Consecutive texts with one target.
#[derive(Debug)]
struct Texts {
    target: Target,
    bytes: Vec<u8>,
}

/// A queue with its thread.
#[derive(Debug)]
struct LogStream {
    name: &'static str,
    state: Mutex<State>,
    /// There is text to write.
    filled: Condvar,
    /// Everything is written.
    emptied: Condvar,
}

#[derive(Debug)]
struct State {
    texts: VecDeque<Texts>,
    /// Bytes in `texts`, and those being written.
    bytes: usize,
    /// Texts dropped after the last one of the queue.
    dropped: u64,
    /// The target of the last text.
    last: Target,
    /// The thread is running.
    runs: bool,
}

impl State {
    fn push(&mut self, target: Target, text: &[u8]) {
        self.last = target;
        if self.bytes >= QUEUE_BYTES_MAX {
            self.dropped += 1;
            DROPPED.fetch_add(1, Relaxed);
            return;
        }
        self.note_dropped();
        self.append(text);
    }

    /// Logs how many were dropped.
    fn note_dropped(&mut self) {
        match std::mem::take(&mut self.dropped) {
            0 => {}
            lines => self.append(
                format!("staunch: {lines} log messages were dropped here: the log was not read\n").as_bytes(),
            ),
        }
    }

    fn append(&mut self, text: &[u8]) {
        self.bytes += text.len();
        if let Some(last) = self.texts.back_mut()
            && last.bytes.len() + text.len() <= WRITE_BYTES
            && last.target.is(&self.last)
        {
            return last.bytes.extend_from_slice(text);
        }
        self.texts.push_back(Texts { target: self.last.clone(), bytes: text.to_vec() });
    }

    fn is_empty(&self) -> bool {
        self.bytes == 0 && self.dropped == 0
    }
}

impl LogStream {
    const fn new(name: &'static str) -> LogStream {
        let state = State { texts: VecDeque::new(), bytes: 0, dropped: 0, last: Target::Stderr, runs: false };
        LogStream { name, state: Mutex::new(state), filled: Condvar::new(), emptied: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&'static self, target: Target, text: &[u8]) {
        let mut state = self.lock();
        state.push(target, text);
        if !state.runs {
            let thread = std::thread::Builder::new().name(self.name.into());
            state.runs = thread.spawn(|| self.write_for_ever()).is_ok();
        }
        if !state.runs {
            // No thread could be started: the part that fits is written now, the rest with the next text.
            write_now(&mut state, 0);
        }
        self.filled.notify_one();
    }

    fn write_for_ever(&self) {
        loop {
            let empty = |state: &mut State| state.texts.is_empty() && state.dropped == 0;
            let mut state =
                self.filled.wait_while(self.lock(), empty).unwrap_or_else(PoisonError::into_inner);
            if state.texts.is_empty() {
                state.note_dropped();
            }
            let Some(texts) = state.texts.pop_front() else { continue };
            drop(state);
            let mut rest = texts.bytes.as_slice();
            while !rest.is_empty() {
                let written = texts.target.write_some(rest, LOOK_NS);
                rest = &rest[written..];
            }
            let mut state = self.lock();
            state.bytes -= texts.bytes.len();
            if state.is_empty() {
                self.emptied.notify_all();
            }
        }
    }

    fn finish(&self, until_ns: u64) {
        let mut state = self.lock();
        if !state.runs {
            return write_now(&mut state, until_ns);
        }
        let left = Duration::from_nanos(until_ns.saturating_sub(Clock::mono_ns()));
        drop(self.emptied.wait_timeout_while(state, left, |state| !state.is_empty()));
    }
}

/// Writes what fits before `until_ns` (monotonic), without the thread.
fn write_now(state: &mut State, until_ns: u64) {
    loop {
        if state.texts.is_empty() {
            state.note_dropped();
        }
        let Some(texts) = state.texts.front_mut() else { return };
        let written = texts.target.write_some(&texts.bytes, until_ns.saturating_sub(Clock::mono_ns()));
        texts.bytes.drain(..written);
        state.bytes -= written;
        if written == 0 {
            return;
        }
        if state.texts.front().is_some_and(|texts| texts.bytes.is_empty()) {
            state.texts.pop_front();
        }
    }
}

impl Target {
    fn is(&self, other: &Target) -> bool {
        match (self, other) {
            (Target::Stderr, Target::Stderr) | (Target::Stdout, Target::Stdout) => true,
            (Target::File(file), Target::File(other)) => Arc::ptr_eq(file, other),
            _ => false,
        }
    }

    /// Waits for room. Returns how many bytes of `text` are done: 0 at the timeout.
    fn write_some(&self, text: &[u8], wait_ns: u64) -> usize {
        let piece = &text[..text.len().min(WRITE_BYTES)];
        match self {
            Target::Stderr => write_piece(&io::stderr(), piece, wait_ns, |piece| io::stderr().write(piece)),
            Target::Stdout => write_piece(&io::stdout(), piece, wait_ns, |piece| {
                Unbuffered(io::stdout().lock()).write(piece)
            }),
            Target::File(file) => write_piece(&**file, piece, wait_ns, |piece| (&**file).write(piece)),
        }
    }
}

/// A closed stream accepts and discards everything.
fn write_piece(
    to: &impl Writable,
    piece: &[u8],
    wait_ns: u64,
    write: impl FnOnce(&[u8]) -> io::Result<usize>,
) -> usize {
    if !sys::wait_writable(to, wait_ns) {
        return 0;
    }
    match write(piece) {
        Ok(written) if written > 0 => written,
        // With WouldBlock: another process with the same pipe made it non-blocking and filled it.
        Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => 0,
        // The reader has ended, or the disk is full: the text cannot be written.
        Ok(_) | Err(_) => piece.len(),
    }
}

/// Whether stdout and stderr are one file.
#[cfg(unix)]
fn is_same_place() -> bool {
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;
    static SAME: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    let place = |stream: std::os::fd::BorrowedFd<'_>| {
        let found = File::from(stream.try_clone_to_owned().ok()?).metadata().ok()?;
        Some((found.dev(), found.ino()))
    };
    *SAME.get_or_init(|| {
        let stdout = place(io::stdout().as_fd());
        stdout.is_some() && stdout == place(io::stderr().as_fd())
    })
}

/// Whether stdout and stderr are one file: unknown on this system.
#[cfg(windows)]
fn is_same_place() -> bool {
    false
}

/// Log lines on stderr. It never fails and never waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stderr;

impl Write for Stderr {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        to_stderr(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Stderr {
    type Writer = Stderr;

    fn make_writer(&self) -> Stderr {
        Stderr
    }
}

/// Stdout without its buffer: written bytes are sent at once.
#[derive(Debug)]
struct Unbuffered(io::StdoutLock<'static>);

impl Write for Unbuffered {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The buffer is empty before, and also afterwards unless the write failed; these bytes are then lost.
        self.0.write_all(bytes)?;
        self.0.flush()?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Read;

    use super::*;

    fn pipe() -> (File, Target) {
        let (from, to) = io::pipe().expect("a pipe of our own");
        let file = |fd: std::os::fd::OwnedFd| File::from(fd);
        (file(from.into()), Target::File(Arc::new(file(to.into()))))
    }

    /// A stream with a thread that runs until the end of the process, like those of the program.
    fn stream() -> &'static LogStream {
        Box::leak(Box::new(LogStream::new("log test")))
    }

    fn in_time() -> u64 {
        Clock::mono_ns() + 30 * model::SECOND_NS
    }

    #[test]
    fn a_slow_reader_blocks_no_writer_and_every_line_is_accounted_for() {
        const LINES: usize = 4_000;
        let (mut from, to) = pipe();
        let log = stream();
        let hurry = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let in_a_hurry = Arc::clone(&hurry);
        let reader = std::thread::spawn(move || {
            let (mut heard, mut page) = (Vec::new(), vec![0; 4096]);
            while !heard.ends_with(b"the last one\n") {
                let len = from.read(&mut page).expect("a pipe");
                heard.extend_from_slice(&page[..len]);
                if !in_a_hurry.load(Relaxed) {
                    std::thread::sleep(Duration::from_millis(40));
                }
            }
            String::from_utf8(heard).expect("a text")
        });
        let line = [&[b'x'; 999][..], b"\n"].concat();
        for _ in 0..LINES {
            log.push(to.clone(), &line);
        }
        hurry.store(true, Relaxed);
        log.finish(in_time());
        log.push(to, b"the last one\n");
        let heard = reader.join().expect("no panic");
        let dropped = heard.lines().filter_map(|line| {
            let count = line.strip_prefix("staunch: ")?.split(' ').next()?;
            assert!(line.ends_with(" log messages were dropped here: the log was not read"), "{line}");
            count.parse::<usize>().ok()
        });
        let dropped: usize = dropped.sum();
        let written = heard.lines().filter(|line| line.len() == 999).count();
        assert!(dropped > 0 && written * 1_000 >= QUEUE_BYTES_MAX, "{dropped} {written}");
        assert_eq!(written + dropped, LINES);
    }

    #[test]
    fn a_reader_that_has_ended_is_no_error() {
        let (from, to) = pipe();
        drop(from);
        let log = stream();
        log.push(to, b"nobody hears it\n");
        log.finish(in_time());
        assert!(log.lock().is_empty());
    }

    #[test]
    fn texts_without_a_thread_are_written_as_far_as_there_is_room() {
        let (mut from, to) = pipe();
        let mut state = State { last: to.clone(), ..LogStream::new("").state.into_inner().expect("unused") };
        let line = [&[b'x'; 9_999][..], b"\n"].concat();
        for _ in 0..20 {
            state.push(to.clone(), &line);
            write_now(&mut state, 0);
        }
        let left = state.bytes;
        assert!(left > 0 && left < 20 * line.len(), "{left}");
        let reader = std::thread::spawn(move || {
            let mut heard = Vec::new();
            from.read_to_end(&mut heard).map(|_len| heard)
        });
        write_now(&mut state, in_time());
        assert!(state.is_empty());
        drop((state, to));
        assert_eq!(reader.join().expect("no panic").expect("a pipe"), line.repeat(20));
    }

    #[test]
    fn a_long_text_arrives_whole_and_in_order() {
        let (mut from, to) = pipe();
        let text = b"a line of many\n".repeat(200_000);
        let log = stream();
        let reader = std::thread::spawn(move || {
            let mut heard = Vec::new();
            from.read_to_end(&mut heard).map(|_len| heard)
        });
        log.push(to.clone(), b"first\n");
        log.push(to, &text);
        log.finish(in_time());
        // The stream itself keeps the last target.
        log.lock().last = Target::Stderr;
        let heard = reader.join().expect("no panic").expect("it is read");
        assert!(heard == [b"first\n", &text[..]].concat());
    }

    #[test]
    fn a_panic_message_comes_after_earlier_log_lines() {
        const PART: &str = "STAUNCH_TEST_OF_PANICS";
        if std::env::var_os(PART).is_some() {
            log_panics();
            to_stderr(b"logged before\n");
            // At once, even with other queued texts.
            let thread = std::thread::Builder::new().name("doomed".into()).spawn(|| panic!("on purpose"));
            let _panicked = thread.expect("a thread").join();
            std::process::abort();
        }
        let own = std::env::current_exe().expect("it runs");
        let name = "log_stream::tests::a_panic_message_comes_after_earlier_log_lines";
        let run = std::process::Command::new(own)
            .args(["--exact", name, "--nocapture"])
            .env(PART, "1")
            .env_remove("RUST_BACKTRACE")
            .output();
        let heard = String::from_utf8_lossy(&run.expect("it runs again").stderr).into_owned();
        let (_, panic) = heard.split_once("logged before\n\nthread 'doomed' panicked at ").expect(&heard);
        assert!(panic.contains(":\non purpose\nnote: run with"), "{heard}");
    }
}

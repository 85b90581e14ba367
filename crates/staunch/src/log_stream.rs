//! Log lines to stderr or stdout of a daemon, where nobody may read them, or only slowly.
//!
//! Every thread writes log lines, that of the records too. A pipe that nobody reads is full after 64 KiB, and a write to
//! it then sleeps for ever; one whose reader has ended fails. Neither may stop the daemon: a line that finds no room
//! within [`WAIT_MAX`] is dropped, and the next line that finds room says how many were.
//! Not here: what verbs print that end by themselves (`talk`), files of the log (`cli::relay::log`).

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

use crate::clock::Clock;
use crate::sys::{self, Writable};

/// Longest wait for room, for one text. None while the stream has not taken anything since the last wait.
const WAIT_MAX: Duration = Duration::from_millis(50);

/// Bytes of one write: a pipe that has room at all takes so many without a wait (PIPE_BUF).
const WRITE_BYTES: usize = 4096;

/// A stream of the process that log lines go to.
#[derive(Debug)]
struct LogStream(Mutex<State>);

/// The log on stderr.
static STDERR: LogStream = LogStream::new();

/// The log on stdout.
static STDOUT: LogStream = LogStream::new();

#[derive(Debug)]
struct State {
    /// Texts that found no room since the last one that did.
    dropped: u64,
    /// The last text found no room in time.
    stalled: bool,
    /// The last text was cut off within a line.
    within_line: bool,
}

impl LogStream {
    const fn new() -> LogStream {
        LogStream(Mutex::new(State { dropped: 0, stalled: false, within_line: false }))
    }

    /// Writes a text of whole lines to `stream`, which is always the same one, or drops it.
    fn write<S: Writable + Write>(&self, mut stream: S, text: &[u8]) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = if state.stalled { Duration::ZERO } else { WAIT_MAX };
        let until_ns = Clock::mono_ns() + wait.as_nanos() as u64;
        let note = match state.dropped {
            0 => String::new(),
            lines => format!("staunch: {lines} log messages were dropped here: the log was not read\n"),
        };
        let end_of_line: &[u8] = if state.within_line { b"\n" } else { b"" };
        for (at, part) in [end_of_line, note.as_bytes(), text].into_iter().enumerate() {
            for piece in part.chunks(WRITE_BYTES) {
                if !write_piece(&mut stream, piece, until_ns) {
                    state.stalled = true;
                    state.dropped += 1;
                    return;
                }
                state.within_line = piece.last() != Some(&b'\n');
            }
            if at == 1 {
                state.dropped = 0;
            }
        }
        state.stalled = false;
    }
}

/// False when there was no room before `until_ns` (monotonic). A stream that takes nothing any more has room for all.
fn write_piece<S: Writable + Write>(stream: &mut S, mut piece: &[u8], until_ns: u64) -> bool {
    while !piece.is_empty() {
        if !sys::wait_writable(stream, until_ns.saturating_sub(Clock::mono_ns())) {
            return false;
        }
        match stream.write(piece) {
            Ok(written) if written > 0 => piece = &piece[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Somebody else who has the same pipe made it non-blocking, and was quicker.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && Clock::mono_ns() < until_ns => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
            // The reader has ended, or the disk is full: nobody is left to say it to.
            Ok(_) | Err(_) => return true,
        }
    }
    true
}

/// Writes whole lines to stderr, or drops them.
pub(crate) fn to_stderr(text: &[u8]) {
    STDERR.write(io::stderr().lock(), text);
}

/// Writes whole lines to stdout, or drops them.
pub(crate) fn to_stdout(text: &[u8]) {
    STDOUT.write(Unbuffered(io::stdout().lock()), text);
}

/// Log lines on stderr. It never fails and never waits for long.
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

/// Stdout without its buffer: what was written has left.
#[derive(Debug)]
struct Unbuffered(io::StdoutLock<'static>);

impl Write for Unbuffered {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The buffer is empty before, and after it unless the write failed: then these bytes are gone.
        self.0.write_all(bytes)?;
        self.0.flush()?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(unix)]
impl std::os::fd::AsFd for Unbuffered {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::File;
    use std::io::Read;

    use super::*;

    fn pipe() -> (File, File) {
        let (from, to) = io::pipe().expect("a pipe of our own");
        let file = |fd: std::os::fd::OwnedFd| File::from(fd);
        (file(from.into()), file(to.into()))
    }

    #[test]
    fn messages_are_dropped_and_counted_while_nobody_reads() {
        let (mut from, to) = pipe();
        let log = LogStream::new();
        let line = [&[b'x'; 9_999][..], b"\n"].concat();
        for _ in 0..100 {
            log.write(&to, &line);
        }
        let mut heard = vec![0; 1 << 20];
        let len = from.read(&mut heard).expect("what was written");
        assert!(len >= 10_000 && len < 100 * line.len(), "{len}");
        let written = heard[..len].iter().filter(|byte| **byte == b'\n').count() as u64;
        log.write(&to, b"a last one\n");
        drop(to);
        let mut rest = String::new();
        from.read_to_string(&mut rest).expect("a text");
        let dropped = 100 - written;
        let want =
            format!("staunch: {dropped} log messages were dropped here: the log was not read\na last one\n");
        let cut = heard[len - 1] != b'\n';
        assert_eq!(rest, format!("{}{want}", if cut { "\n" } else { "" }));
    }

    #[test]
    fn a_reader_that_has_ended_is_no_error() {
        let (from, to) = pipe();
        drop(from);
        let log = LogStream::new();
        log.write(&to, b"nobody hears it\n");
        let state = log.0.lock().expect("nobody panicked");
        assert!(!state.stalled && state.dropped == 0, "{state:?}");
    }

    #[test]
    fn a_long_text_arrives_whole_when_it_is_read() {
        let (mut from, to) = pipe();
        let text = b"a line of many\n".repeat(20_000);
        let reader = std::thread::spawn(move || {
            let mut heard = Vec::new();
            from.read_to_end(&mut heard).map(|_len| heard)
        });
        let log = LogStream::new();
        // On a busy machine its reader may be late more than once: what arrives begins as the text does.
        log.write(&to, &text);
        drop(to);
        let heard = reader.join().expect("no panic").expect("it is read");
        assert!(heard.len() >= 65_536 && text.starts_with(&heard));
    }
}

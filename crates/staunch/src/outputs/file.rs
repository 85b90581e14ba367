//! One file (or standard output): opens, appends and rotates for its sender. Runs on its own thread.
//!
//! Not here: the data and the time of rotation (`deliver::file`).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use deliver::file::{FileAction, FileSender, RotationStep, rotation};
use deliver::plan::FilePlan;

use crate::daemon::outlet::{Outlet, Seen};
use crate::outputs::progress::{end, publish, worked};
use crate::outputs::telling::Teller;
use sys::clock::Clock;
use sys::{self, Writable, links};

/// Longest sleep. A stop also wakes the thread, so this only covers unforeseen cases.
const NAP: Duration = Duration::from_secs(1);

/// Bytes of one write to a standard stream: a pipe with any room accepts this many without blocking (PIPE_BUF).
const PIECE_BYTES: usize = 4096;

/// The destination of the bytes.
#[derive(Clone, Debug)]
pub enum Place {
    /// A file, which is created with its folders.
    File(PathBuf),
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// An open destination.
enum Open {
    File {
        file: File,
        /// It had a name when it was opened, so a missing name means that it was deleted.
        has_name: bool,
    },
    Stdout,
    Stderr,
}

/// Drives the sender of one file until its outlet stops.
pub fn run(place: &Place, plan: FilePlan, outlet: &Arc<Outlet>, seed: u64) {
    let mut sender = FileSender::new(plan, Arc::clone(&outlet.account), seed);
    let shown = match place {
        Place::File(path) => path.display().to_string(),
        Place::Stdout => "standard output".into(),
        Place::Stderr => "standard error".into(),
    };
    let mut teller = Teller::new(shown);
    let mut open = None;
    while !sender.stopped() {
        let since_ns = Clock::mono_ns();
        let stop = outlet.is_stopping();
        if stop {
            sender.begin_stop(outlet.deadline_ns(0));
        }
        if outlet.take_reopen() {
            sender.reopen();
        }
        let (rest, error) = step(&mut sender, outlet, place, plan, &mut open);
        teller.look(outlet, sender.state(), |_failure| error.as_ref().map(io::Error::to_string));
        while let Some(change) = sender.take_state_change() {
            teller.tell(outlet, change);
        }
        publish_held(outlet, &sender);
        worked(outlet, since_ns);
        // A sender that has just ended always returns `Idle`.
        if let Some((records, pause)) = rest.filter(|_| !sender.stopped()) {
            outlet.wait(Seen { records, stop }, pause.min(NAP));
        }
    }
    sender.finish_stop(&mut *outlet.queue(), Clock::now());
    end(outlet, 0, sender.state());
}

/// Also called before steps that may block forever: blocks held by the sender are in no queue, and blocks that it
/// returned are.
fn publish_held(outlet: &Outlet, sender: &FileSender) {
    publish(outlet, 0, sender.waiting_copies(), sender.queued_bytes(), sender.state());
}

/// Does the sender's action. Returns how long to rest, if at all, and whether it rests with records queued.
fn step(
    sender: &mut FileSender,
    outlet: &Outlet,
    place: &Place,
    plan: FilePlan,
    open: &mut Option<Open>,
) -> (Option<(bool, Duration)>, Option<io::Error>) {
    let now = Clock::now();
    let action = sender.poll(&mut *outlet.queue(), now);
    let done = match action {
        FileAction::Open => {
            publish_held(outlet, sender);
            open_place(place).map(|(opened, size, ended)| {
                *open = Some(opened);
                sender.on_opened(size, ended, Clock::now());
            })
        }
        FileAction::Write(_) => {
            publish_held(outlet, sender);
            write(sender, open)
        }
        FileAction::Rotate => {
            publish_held(outlet, sender);
            *open = None;
            rotate(place, plan.files_max).map(|()| sender.on_rotated())
        }
        FileAction::Close => {
            *open = None;
            Ok(())
        }
        FileAction::WaitUntil(at_ns) => {
            return (Some((true, Duration::from_nanos(at_ns.saturating_sub(now.mono_ns)))), None);
        }
        FileAction::Idle => return (Some((false, NAP)), None),
    };
    let error = done.err();
    if let Some(error) = &error {
        outlet.errors.count(error);
        *open = None;
        sender.on_error(Clock::now());
    }
    (None, error)
}

/// Appends the sender's bytes.
fn write(sender: &mut FileSender, open: &mut Option<Open>) -> io::Result<()> {
    let (Some(to), Some(bytes)) = (open.as_mut(), sender.to_write()) else {
        return Err(io::ErrorKind::NotConnected.into());
    };
    let written = to.append(bytes)?;
    if to.is_deleted() {
        *open = None;
        sender.on_deleted();
    } else {
        sender.on_written(written, Clock::now());
    }
    Ok(())
}

impl Open {
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match self {
            Open::File { file, .. } => file.write(bytes),
            Open::Stdout => append_to(&io::stdout(), bytes, |piece| {
                let mut stdout = io::stdout().lock();
                stdout.write_all(piece).and_then(|()| stdout.flush())
            }),
            Open::Stderr => append_to(&io::stderr(), bytes, |piece| io::stderr().lock().write_all(piece)),
        };
        match written {
            Ok(0) if !bytes.is_empty() => Err(io::ErrorKind::WriteZero.into()),
            written => written,
        }
    }

    /// True when the file is no longer at its path: it was deleted, or replaced.
    fn is_deleted(&self) -> bool {
        let Open::File { file, has_name: true } = self else { return false };
        file.metadata().is_ok_and(|found| links(&found) == 0)
    }
}

/// Writes to a standard stream: all bytes, or fewer when nobody reads it for [`NAP`]. Its lock is only held while it
/// has room, because the log may use the same stream.
fn append_to(
    stream: &impl Writable,
    bytes: &[u8],
    mut write: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<usize> {
    let mut taken = 0;
    while taken < bytes.len() {
        if !sys::wait_writable(stream, NAP.as_nanos() as u64) {
            return if taken > 0 { Ok(taken) } else { Err(io::Error::other("nobody reads it")) };
        }
        let rest = &bytes[taken..];
        let piece = &rest[..rest.len().min(PIECE_BYTES)];
        // Whole lines if possible, because log lines may come in between.
        let piece = &piece[..memchr::memrchr(b'\n', piece).map_or(piece.len(), |at| at + 1)];
        // A closed reader is not an error: the bytes count as written.
        taken += unless_closed(write(piece), piece.len())?;
    }
    Ok(taken)
}

fn unless_closed(done: io::Result<()>, bytes: usize) -> io::Result<usize> {
    match done {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(bytes),
    }
}

/// Returns its size, and whether its last line is complete.
fn open_place(place: &Place) -> io::Result<(Open, u64, bool)> {
    match place {
        Place::Stdout => Ok((Open::Stdout, 0, true)),
        Place::Stderr => Ok((Open::Stderr, 0, true)),
        Place::File(path) => {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            let file = OpenOptions::new().append(true).create(true).open(path)?;
            let found = file.metadata()?;
            // A file that cannot be read counts as complete.
            let ended = !found.is_file() || ends_with_newline(path).unwrap_or(true);
            Ok((Open::File { file, has_name: links(&found) > 0 }, found.len(), ended))
        }
    }
}

/// True for an empty file, too.
fn ends_with_newline(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    if number == 0 {
        return path.to_owned();
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

fn rotate(place: &Place, files_max: u32) -> io::Result<()> {
    let Place::File(path) = place else { return Ok(()) };
    let steps: Vec<RotationStep> = rotation(files_max, |number| numbered(path, number).exists()).collect();
    for step in steps {
        match step {
            RotationStep::Remove(number) => fs::remove_file(numbered(path, number))?,
            RotationStep::Rename(from, to) => fs::rename(numbered(path, from), numbered(path, to))?,
        }
    }
    Ok(())
}

#[test]
fn an_incomplete_last_line_is_detected() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (text, want) in [("", true), ("a\n", true), ("a", false), ("a\nb", false), ("\n", true)] {
        let path = folder.path().join("points");
        fs::write(&path, text).expect("a file");
        assert_eq!(ends_with_newline(&path).ok(), Some(want), "{text:?}");
        let place = Place::File(path);
        let (_open, size, ended) = open_place(&place).expect("it can be opened");
        assert_eq!((size, ended), (text.len() as u64, want), "{text:?}");
    }
}

/// An open pipe without a reader.
#[cfg(unix)]
#[test]
fn a_blocked_write_is_part_of_the_account() {
    use deliver::queue::{Block, Queue};
    use model::Now;

    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.is_ok_and(|status| status.success()), "there is mkfifo");
    let mut reader = OpenOptions::new().read(true).write(true).open(&path).expect("a pipe");
    let outlet = Arc::new(Outlet::new("pipe", deliver::plan::QueueLimits::default(), &Arc::default()));
    let plan = FilePlan::default();
    let thread = {
        let (outlet, place) = (Arc::clone(&outlet), Place::File(path));
        std::thread::spawn(move || run(&place, plan, &outlet, 1))
    };
    // One block larger than a pipe's buffer, and a second one.
    let lines = 50_000;
    outlet.append(Block::lines(b"a 1 1\n".repeat(lines), lines as u32, 0), Now::default());
    let waits = |what: &str, see: &dyn Fn() -> bool| {
        let seen = (0..3000).any(|_| {
            see() || {
                std::thread::sleep(Duration::from_millis(10));
                false
            }
        });
        assert!(seen, "{what}: {:?}", outlet.sum());
    };
    waits("the thread to take the block", &|| outlet.queue().copies() == 0);
    outlet.append(Block::lines(b"a 1 1\n".to_vec(), 1, 0), Now::default());
    waits("the account to hold", &|| outlet.sum().holds());
    assert_eq!((outlet.sum().copies, outlet.sum().queued), (lines as u64 + 1, lines as u64 + 1));
    // It ends when the pipe is read.
    outlet.stop(u64::MAX);
    let mut text = vec![0; (lines + 1) * 6];
    reader.read_exact(&mut text).expect("it is all written");
    thread.join().expect("it only ends");
    assert_eq!((outlet.sum().delivered, outlet.sum().queued), (lines as u64 + 1, 0));
}

/// A pipe that was renamed in the middle of a block and replaced by one without a reader.
#[cfg(unix)]
#[test]
fn a_block_returned_to_the_queue_counts_once_while_opening_blocks() {
    use deliver::queue::{Block, Queue};
    use model::Now;

    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("pipe");
    let make = || {
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.is_ok_and(|status| status.success()), "there is mkfifo");
    };
    let waits = |what: &str, see: &dyn Fn() -> bool| {
        let seen = (0..3000).any(|_| {
            see() || {
                std::thread::sleep(Duration::from_millis(10));
                false
            }
        });
        assert!(seen, "{what}");
    };
    make();
    let outlet = Arc::new(Outlet::new("pipe", deliver::plan::QueueLimits::default(), &Arc::default()));
    let thread = {
        let (outlet, place) = (Arc::clone(&outlet), Place::File(path.clone()));
        std::thread::spawn(move || run(&place, FilePlan::default(), &outlet, 1))
    };
    // A pipe's buffer ends with a whole line.
    let (lines, line) = (50_000, b"a 1 123\n");
    let reader = File::open(&path).expect("a pipe");
    outlet.append(Block::lines(line.repeat(lines), lines as u32, 0), Now::default());
    waits("the thread to take the block", &|| outlet.queue().copies() == 0);
    fs::rename(&path, folder.path().join("moved")).expect("it is there");
    make();
    outlet.reopen();
    drop(reader);
    waits("the rest to go back to the queue", &|| outlet.queue().copies() > 0);
    waits("the account to hold while opening hangs", &|| outlet.sum().holds());
    assert_eq!(outlet.sum().queued, outlet.queue().copies());
    outlet.stop(u64::MAX);
    let rest = outlet.queue().copies() as usize;
    let mut text = vec![0; rest * line.len()];
    File::open(&path).and_then(|mut reader| reader.read_exact(&mut text)).expect("it is all written");
    thread.join().expect("it only ends");
    assert_eq!((outlet.sum().delivered, outlet.sum().queued), (lines as u64, 0));
}

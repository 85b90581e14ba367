//! The sender of one file: what to write, when to rotate, when to retry. Also for the console, which is an unlimited
//! file that the binary has open already.
//!
//! Path of a packet: `queue::pop` -> **`FileSender::poll`** returns `Write` -> the binary writes -> `on_written`
//! -> settled as delivered.
//!
//! How the binary uses it: call `poll` and perform the action. Report the result of `Open` by `on_opened` (size of
//! the file, opened for appending, and whether its last line ends in LF; a console has size 0 and a complete line),
//! that of `Write` by `on_written`, that of `Rotate` by `on_rotated` after the renames of [`rotation`]. Report a
//! failure of any of them by `on_error`; the file then counts as closed. When the file turns out to be deleted after
//! a write, report `on_deleted` instead of `on_written`.
//!
//! A record (line or frame) never spans two files, and no file grows past `max_file_bytes` unless one record alone is
//! larger. If another process died and left an incomplete last line, the sender writes an LF first, so that the line
//! does not merge with the next one. After an error all records stay queued, within the queue's limits, until a
//! retry.
//!
//! Not here: files, renames, sync. Delivered means: the write call succeeded.
//! Invariant: the account is balanced with `queue.copies() + sender.waiting_copies()` between any two calls.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use model::{CopyOutcome, Now, OutputAccount};

use crate::endpoint::{EndpointState, Failure, Health, StateChange};
use crate::pause::{Backoff, earliest};
use crate::plan::FilePlan;
use crate::queue::{Entry, Queue};

/// The next action for the binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAction<'a> {
    /// Open the file for appending, create it if needed; report by `on_opened` or `on_error`.
    Open,
    /// Append this; report by `on_written` (a part is fine) or `on_error`.
    Write(&'a [u8]),
    /// Close the file and do the renames of [`rotation`]; report by `on_rotated` or `on_error`.
    Rotate,
    /// Close the file. For the sender it is closed already.
    Close,
    /// Nothing to do before this time (monotonic nanoseconds), unless something happens.
    WaitUntil(u64),
    /// Nothing to do until something happens.
    Idle,
}

/// One step of a rotation. Number 0 is the current file, `n` the file with the suffix `.n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RotationStep {
    /// Delete this file: it is the oldest.
    Remove(u32),
    /// Rename the first to the second, which does not exist.
    Rename(u32, u32),
}

/// The steps that make file 0 free and keep at most `max_files` rotated files: every file up to the first free number
/// moves up by one. `exists` says whether a numbered file exists.
pub fn rotation(files_max: u32, mut exists: impl FnMut(u32) -> bool) -> impl Iterator<Item = RotationStep> {
    let free = (1..=files_max).find(|number| !exists(*number));
    let last = free.unwrap_or(files_max);
    let remove = free.is_none().then_some(RotationStep::Remove(files_max));
    remove.into_iter().chain((0..last).rev().map(|number| RotationStep::Rename(number, number + 1)))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Closed { retry_ns: u64 },
    Open { size: u64 },
    Stopped,
}

/// See the module's header.
#[derive(Debug)]
pub struct FileSender {
    plan: FilePlan,
    account: Arc<OutputAccount>,
    backoff: Backoff,
    health: Health,
    phase: Phase,
    /// The block being written, and how many of its bytes are written.
    held: Option<(Entry, usize)>,
    /// Size of the file when it was closed in the middle of a record.
    cut_at: Option<u64>,
    /// The file ends with an incomplete line of another process.
    incomplete_line: bool,
    /// Open although there is nothing to write: at start, to detect errors early.
    eager: bool,
    /// Close it at the next record boundary and open it again.
    reopens: bool,
    stop_ns: Option<u64>,
}

impl FileSender {
    /// A sender whose file is not open yet. The seed decides only the jitter of its pauses.
    pub fn new(plan: FilePlan, account: Arc<OutputAccount>, seed: u64) -> FileSender {
        FileSender {
            plan,
            account,
            backoff: Backoff::new(plan.retry_min_ms, plan.retry_max_ms, seed),
            health: Health::new(),
            phase: Phase::Closed { retry_ns: 0 },
            held: None,
            cut_at: None,
            incomplete_line: false,
            eager: !plan.close_when_idle,
            reopens: false,
            stop_ns: None,
        }
    }

    /// Sets other limits and pauses, after a reload.
    pub fn set_plan(&mut self, plan: FilePlan) {
        self.plan = plan;
        self.backoff.set_bounds(plan.retry_min_ms, plan.retry_max_ms);
    }

    /// The file may have been renamed: from the next record on, write to the file that has the name then.
    pub fn reopen(&mut self) {
        self.reopens = matches!(self.phase, Phase::Open { .. });
    }

    /// The next action. `queue` must be the same at each call.
    pub fn poll(&mut self, queue: &mut impl Queue, now: Now) -> FileAction<'_> {
        queue.expire(now);
        if !matches!(self.phase, Phase::Open { .. }) {
            return self.poll_closed(queue, now);
        }
        if self.stop_ns.is_some_and(|stop_ns| now.mono_ns >= stop_ns) {
            self.stop(now);
            return FileAction::Close;
        }
        let between_records = self.held.as_ref().is_none_or(|(entry, written)| *written == entry.settled);
        if self.reopens && between_records {
            self.reopens = false;
            self.eager = true;
            self.phase = Phase::Closed { retry_ns: 0 };
            return FileAction::Close;
        }
        self.take_next(queue, now);
        if self.held.is_none() {
            return self.when_idle(now);
        }
        self.to_write().map_or(FileAction::Rotate, FileAction::Write)
    }

    /// The bytes of the last [`FileAction::Write`]; none when the file has no room for them.
    pub fn to_write(&self) -> Option<&[u8]> {
        let (Phase::Open { size }, Some((entry, written))) = (self.phase, &self.held) else { return None };
        let end = self.end_of_write(entry, *written, size + u64::from(self.incomplete_line))?;
        Some(if self.incomplete_line { b"\n" } else { &entry.block().bytes[*written..end] })
    }

    /// The file is open and everything is written.
    fn when_idle(&mut self, now: Now) -> FileAction<'static> {
        if self.stop_ns.is_some() {
            self.stop(now);
        } else if self.plan.close_when_idle {
            self.phase = Phase::Closed { retry_ns: 0 };
        } else {
            return FileAction::Idle;
        }
        FileAction::Close
    }

    fn poll_closed(&mut self, queue: &mut impl Queue, now: Now) -> FileAction<'static> {
        let Phase::Closed { retry_ns } = self.phase else { return FileAction::Idle };
        // A block that was not cut inside a record may be dropped like any other meanwhile.
        if let Some((entry, _)) = self.held.take_if(|(entry, written)| entry.settled == *written) {
            queue.put_back(entry);
            queue.expire(now);
        }
        let nothing_queued = queue.is_empty() && self.held.is_none();
        if self.stop_ns.is_some_and(|stop_ns| nothing_queued || now.mono_ns >= stop_ns) {
            self.stop(now);
            return FileAction::Idle;
        }
        if nothing_queued && !self.eager {
            return FileAction::Idle;
        }
        if now.mono_ns < retry_ns {
            return FileAction::WaitUntil(earliest(retry_ns, [self.stop_ns, queue.expires_ns()]));
        }
        FileAction::Open
    }

    /// Where the next write ends: at a record boundary, within the file's limit. None when the file has no room for the
    /// next record.
    fn end_of_write(&self, entry: &Entry, written: usize, size: u64) -> Option<usize> {
        let block = entry.block();
        if written > entry.settled {
            return Some(block.boundary_after(entry.settled));
        }
        if self.plan.file_bytes_max == 0 {
            return Some(block.bytes.len());
        }
        let room = usize::try_from(self.plan.file_bytes_max.saturating_sub(size)).unwrap_or(usize::MAX);
        let end = block.boundary_before(written, written.saturating_add(room));
        match (end > written, size) {
            (true, _) => Some(end),
            (false, 0) => Some(block.boundary_after(written)),
            (false, _) => None,
        }
    }

    /// The file is open for appending and has `size` bytes. `ended`: its last byte ends a line.
    pub fn on_opened(&mut self, size: u64, ended: bool, now: Now) {
        if !matches!(self.phase, Phase::Closed { .. }) {
            return;
        }
        self.phase = Phase::Open { size };
        (self.eager, self.reopens) = (false, false);
        self.account.connects.fetch_add(1, Relaxed);
        let same_file = self.cut_at.take() == Some(size);
        if !same_file && let Some((entry, written)) = &mut self.held {
            // Not the file with the first part of the record: write the record from its start.
            *written = entry.settled;
        }
        let same_record = self.held.as_ref().is_some_and(|(entry, written)| *written > entry.settled);
        self.incomplete_line = !ended && !same_record;
        if self.health.state().attempts == 0 {
            self.health.succeed(0, now);
        }
    }

    /// The first `bytes` bytes of the last `Write` are in the file.
    pub fn on_written(&mut self, bytes: usize, now: Now) {
        let (Phase::Open { size }, Some((entry, written))) = (&mut self.phase, &mut self.held) else {
            return;
        };
        if self.incomplete_line {
            self.incomplete_line = bytes == 0;
            *size += bytes as u64;
            return;
        }
        let len = entry.block().bytes.len();
        debug_assert!(bytes <= len - *written, "{bytes} bytes written of {}", len - *written);
        let bytes = bytes.min(len - *written);
        if bytes == 0 {
            return;
        }
        *written += bytes;
        *size += bytes as u64;
        entry.delivered_up_to(*written);
        if *written == len {
            self.held = None;
        }
        self.backoff.reset();
        self.health.succeed(0, now);
    }

    /// The file was renamed.
    pub fn on_rotated(&mut self) {
        if matches!(self.phase, Phase::Open { .. }) {
            self.phase = Phase::Closed { retry_ns: 0 };
        }
    }

    /// The file was deleted or replaced before the last `Write` was known to be in it: the bytes cannot be read any
    /// more. It is closed.
    pub fn on_deleted(&mut self) {
        let Phase::Open { size } = self.phase else { return };
        self.cut_at = Some(size);
        self.phase = Phase::Closed { retry_ns: 0 };
    }

    /// Opening, writing or rotating failed, and the file is closed.
    pub fn on_error(&mut self, now: Now) {
        let failure = match self.phase {
            Phase::Closed { .. } => Failure::OpenFailed,
            Phase::Open { size } => {
                self.cut_at = Some(size);
                Failure::WriteFailed
            }
            Phase::Stopped => return,
        };
        self.account.errors.fetch_add(1, Relaxed);
        self.health.fail(failure, now);
        self.phase = Phase::Closed { retry_ns: now.mono_ns.saturating_add(self.backoff.fail()) };
    }

    /// From now on: write queued records until `deadline_ns` (monotonic), then close. When [`Self::stopped`] is true,
    /// call [`Self::finish_stop`].
    pub fn begin_stop(&mut self, deadline_ns: u64) {
        self.stop_ns = Some(deadline_ns);
    }

    /// True when the sender has stopped.
    pub fn stopped(&self) -> bool {
        self.phase == Phase::Stopped
    }

    /// Stops now. Unwritten records go back to the queue, which keeps them for the next run or drops them
    /// (`stopped`): see [`Queue::on_sender_stopped`].
    pub fn finish_stop(&mut self, queue: &mut impl Queue, now: Now) {
        if let Some((entry, _)) = self.held.take() {
            queue.put_back(entry);
        }
        queue.on_sender_stopped();
        self.stop(now);
    }

    /// Copies in the sender.
    pub fn waiting_copies(&self) -> u64 {
        self.held.as_ref().map_or(0, |(entry, _)| entry.copies())
    }

    /// Memory in use by the sender.
    pub fn queued_bytes(&self) -> u64 {
        self.held.as_ref().map_or(0, |(entry, _)| entry.memory_bytes())
    }

    /// When the block in the sender was created. It is older than anything in the queue.
    pub fn oldest_ns(&self) -> Option<u64> {
        self.held.as_ref().map(|(entry, _)| entry.block().at_ns)
    }

    /// State of the file.
    pub fn state(&self) -> EndpointState {
        self.health.state()
    }

    /// The next state change to log. Take and log them after each poll.
    pub fn take_state_change(&mut self) -> Option<StateChange> {
        self.health.take_state_change()
    }

    fn take_next(&mut self, queue: &mut impl Queue, now: Now) {
        while self.held.is_none() {
            let Some(entry) = queue.pop(now) else { return };
            if entry.settled >= entry.block().bytes.len() {
                entry.settle(CopyOutcome::Delivered);
                continue;
            }
            let written = entry.settled;
            self.held = Some((entry, written));
        }
    }

    fn stop(&mut self, now: Now) {
        self.phase = Phase::Stopped;
        self.health.stop(now);
    }
}

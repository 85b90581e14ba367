//! Writes points to files, looks at the files that are there, syncs the tree, and settles blocks.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use deliver::Failure;
use graphite::store::{ATTEMPTS_MAX, Rules, Walk, WriteError, Writer};
use model::{DiskError, SECOND_NS};
use pipeline::storing::Settling;

use super::example_log::ExampleLog;
use super::opening;
use super::running::{Running, report};
use super::saved_names::SavedNames;
use super::upkeep::Upkeep;
use super::writer_lock::WriterLock;
use crate::daemon::shared::stores::BadFiles;
use crate::outputs::telling::Teller;
use sys::clock::Clock;

/// Longest time between two syncs of the tree; with a shorter `write_after` it is that.
const SYNC_EVERY_NS: u64 = 10 * SECOND_NS;

/// Time between two looks at the files of rules.
const RULES_EVERY_NS: u64 = 60 * SECOND_NS;

/// Time between two words on what is still to write at the end.
const PROGRESS_EVERY_NS: u64 = 5 * SECOND_NS;

/// Pause without work.
const NAP: Duration = Duration::from_millis(50);

/// Pause after a disk error.
const ERROR_PAUSE: Duration = Duration::from_millis(500);

/// Files that are written before other work is looked at.
const JOBS: usize = 256;

/// Time between two tries of files that were unusable.
const TRY_AGAIN_EVERY_NS: u64 = 600 * SECOND_NS;

struct Writing<'a, 'r> {
    running: &'a Running<'r>,
    teller: MutexGuard<'a, Teller>,
    writer: Writer,
    walk: Option<Walk>,
    names: SavedNames,
    lock: WriterLock,
    upkeep: Upkeep,
    /// The last error of the saved names was logged.
    names_fail: bool,
    synced_ns: u64,
    rules_ns: u64,
    settling: Settling,
    is_failing: bool,
    /// When unusable files were tried again.
    tried_again_ns: u64,
    examples: ExampleLog,
    /// When the last word on progress at the end was said.
    said_ns: Option<u64>,
}

/// Runs until the store ends.
pub(super) fn run(running: &Running<'_>, names: SavedNames, lock: WriterLock, teller: &Mutex<Teller>) {
    let now_ns = Clock::mono_ns();
    let sync_every_ns = SYNC_EVERY_NS.min(running.plan.write_after_ms.saturating_mul(1_000_000));
    let mut writing = Writing {
        running,
        teller: teller.lock().unwrap_or_else(PoisonError::into_inner),
        writer: Writer::default(),
        walk: Some(Walk::default()),
        names,
        lock,
        upkeep: Upkeep::new(running.plan),
        names_fail: false,
        synced_ns: now_ns,
        rules_ns: now_ns,
        settling: Settling::default(),
        is_failing: false,
        tried_again_ns: now_ns,
        examples: ExampleLog::default(),
        said_ns: None,
    };
    let begun = writing.names.begin(&running.open.store);
    writing.saved(begun);
    loop {
        let ends = running.ends.load(Relaxed);
        let drains = running.open.drains.load(Relaxed) > 0;
        running.open.store.drain(ends || drains);
        let late = ends && Clock::mono_ns() >= running.outlet.deadline_ns(0);
        let wrote = !late && writing.may_write() && writing.write();
        let walked = !ends && (writing.walk() || writing.save_names() || writing.upkeep());
        let now_ns = Clock::mono_ns();
        // Who waits for the points to be in their files does not wait for the next sync.
        if now_ns.saturating_sub(writing.synced_ns) >= sync_every_ns || (drains && !wrote) {
            writing.sync();
        }
        if running.sync_failed.load(Relaxed) && !running.outlet.is_stopping() {
            running.ends.store(true, Relaxed);
            running.has_written.store(true, Relaxed);
            return;
        }
        if now_ns.saturating_sub(writing.rules_ns) >= RULES_EVERY_NS {
            writing.read_rules();
        }
        if now_ns.saturating_sub(writing.tried_again_ns) >= TRY_AGAIN_EVERY_NS {
            writing.try_again(now_ns);
        }
        if ends && !wrote {
            writing.sync();
            break;
        }
        if ends {
            writing.say_progress(now_ns);
        }
        if !wrote && !walked {
            std::thread::sleep(NAP);
        }
    }
    let (left, series) = running.open.store.pending();
    if left > 0 {
        let name = &running.outlet.name;
        tracing::warn!(
            "output `{name}`: {left} points of {series} series are not in their files yet; they stay in its queue on disk, and \
             the next start writes them"
        );
    }
    running.has_written.store(true, Relaxed);
}

impl Writing<'_, '_> {
    /// A word on what is still to write at the end, every few seconds.
    fn say_progress(&mut self, now_ns: u64) {
        if now_ns.saturating_sub(*self.said_ns.get_or_insert(now_ns)) >= PROGRESS_EVERY_NS {
            let (points, series) = self.running.open.store.pending();
            let name = &self.running.outlet.name;
            tracing::info!(
                "output `{name}`: {points} points of {series} series are still to be written to files"
            );
            self.said_ns = Some(now_ns);
        }
    }

    /// False while the file system of the tree is read-only. Queries are answered meanwhile, also from points in memory.
    fn may_write(&mut self) -> bool {
        let folder = &self.running.plan.path;
        match self.lock.try_again(folder, Clock::mono_ns()) {
            None => {}
            Some(Ok(())) => {
                self.running.open.may_write.store(true, Relaxed);
                self.is_failing = false;
                self.works_again();
            }
            Some(Err(error)) => {
                self.is_failing = true;
                let words = format!("{}: {error}; queries are answered, and points wait", folder.display());
                self.running.failed(Failure::WriteFailed, &words, &mut self.teller);
            }
        }
        self.lock.is_held()
    }

    /// Writes some series. False when none is due.
    fn write(&mut self) -> bool {
        let open = self.running.open;
        let now = Clock::now();
        let at = now.unix_seconds();
        let mut wrote = false;
        for _ in 0..JOBS {
            let Some(job) = open.store.next(at) else { break };
            let began_ns = Clock::mono_ns();
            let done = open.store.write(job, &open.tree, &mut self.writer, at);
            open.figures.write_ns.fetch_add(Clock::mono_ns() - began_ns, Relaxed);
            open.figures.updates.fetch_add(u64::from(done.error.is_none() && !done.waits), Relaxed);
            open.figures.creates.fetch_add(u64::from(done.created_bytes > 0), Relaxed);
            open.figures.created_bytes.fetch_add(done.created_bytes, Relaxed);
            open.figures.points.fetch_add(done.written.written, Relaxed);
            open.figures.propagated.fetch_add(done.written.propagated, Relaxed);
            match done.error {
                None => {
                    wrote |= !done.waits;
                    if self.is_failing {
                        self.is_failing = false;
                        self.works_again();
                    }
                }
                Some((path, error)) => {
                    self.failed(&path, error);
                    if matches!(error, WriteError::Disk(_)) {
                        return false;
                    }
                }
            }
        }
        wrote
    }

    fn failed(&mut self, path: &str, error: WriteError) {
        let name = &self.running.outlet.name;
        self.running.open.figures.errors.fetch_add(1, Relaxed);
        match error {
            WriteError::Unusable(error) => {
                if self.bad_files().add(path, error.to_string()) {
                    tracing::warn!(
                        "output `{name}`: {path}: {error}; the file is left alone, and points of its series are dropped as \
                         `unusable_file`"
                    );
                }
            }
            WriteError::File(error) => {
                if self.bad_files().add(path, error.to_string()) {
                    tracing::warn!(
                        "output `{name}`: {path}: {error}; its points wait, and it is tried again {} times; other files are written",
                        ATTEMPTS_MAX - 1
                    );
                }
            }
            WriteError::Disk(error) => {
                self.is_failing = true;
                let words = format!("{path}: {error}");
                self.running.failed(Failure::WriteFailed, &words, &mut self.teller);
                std::thread::sleep(ERROR_PAUSE);
            }
        }
    }

    fn bad_files(&self) -> MutexGuard<'_, BadFiles> {
        self.running.open.bad_files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks again at files that were unusable: somebody may have mended them.
    fn try_again(&mut self, now_ns: u64) {
        self.tried_again_ns = now_ns;
        let BadFiles { count, named } = std::mem::take(&mut *self.bad_files());
        let more = count - named.len() as u64;
        if more > 0 {
            let name = &self.running.outlet.name;
            tracing::warn!("output `{name}`: {more} more files could not be written in the last ten minutes");
        }
        self.running.open.store.forget_unusable();
    }

    fn works_again(&mut self) {
        let mut sender = self.running.sender();
        sender.on_written(Clock::now());
        report(&mut sender, self.running.outlet, &mut self.teller, None);
    }

    /// Looks at some folders. False when all have been looked at.
    fn walk(&mut self) -> bool {
        let Some(walk) = &mut self.walk else { return false };
        let open = self.running.open;
        let more = walk.step(&open.store, &open.tree);
        let report = walk.report().clone();
        if !more {
            log_walk(&self.running.outlet.name, &report);
            self.walk = None;
        }
        *open.walk.lock().unwrap_or_else(PoisonError::into_inner) = (report, !more);
        more
    }

    /// Writes some of a snapshot of the names. False when none is due.
    fn save_names(&mut self) -> bool {
        let store = &self.running.open.store;
        if self.names.is_long() {
            let begun = self.names.begin(store);
            self.saved(begun);
        }
        match self.names.step(store) {
            Ok(more) => more,
            Err(error) => {
                self.saved(Err(error));
                false
            }
        }
    }

    /// Some of the slow work, once the files are known. None while the disk fails.
    fn upkeep(&mut self) -> bool {
        let at = Clock::now().unix_seconds();
        self.walk.is_none() && !self.is_failing && self.upkeep.step(self.running.open, at)
    }

    /// Logs the first of several errors. Without saved names, a start has to look at all files, and does not know the names of tagged
    /// series before points of them come.
    fn saved(&mut self, result: Result<(), DiskError>) {
        match result {
            Ok(()) => self.names_fail = false,
            Err(error) => {
                if !std::mem::replace(&mut self.names_fail, true) {
                    let name = &self.running.outlet.name;
                    tracing::warn!("output `{name}`: the names of its series cannot be saved: {error}");
                }
            }
        }
    }

    /// Syncs the tree, and settles the blocks whose points were in their files before.
    fn sync(&mut self) {
        self.synced_ns = Clock::mono_ns();
        self.examples.log(&self.running.outlet.name, &self.running.open.store, self.synced_ns);
        let changes = self.names.save_changes(&self.running.open.store);
        self.saved(changes);
        let open = self.running.open;
        let synced = self.settling.sync(&open.store, &open.tree);
        open.figures.syncs.fetch_add(u64::from(synced != Ok(false)), Relaxed);
        match synced {
            Ok(false) => return,
            Ok(true) => self.settling.settle(&mut self.running.sender()),
            Err(error) => return self.sync_failed(error),
        }
        self.running.publish();
        self.running.outlet.changed();
        self.running.outlet.progressed();
    }

    fn sync_failed(&mut self, error: DiskError) {
        let open = self.running.open;
        open.figures.errors.fetch_add(1, Relaxed);
        self.is_failing = true;
        let root = open.tree.root().display();
        // With another folder in its place nothing was synced, and nothing is lost: it is waited for.
        let (lost, more) = match error {
            DiskError::Away => (false, ""),
            _ => (true, "; points since the last one are written again from the queue"),
        };
        let words = format!("sync of {root}: {error}{more}");
        self.running.failed(Failure::WriteFailed, &words, &mut self.teller);
        self.running.sync_failed.store(lost, Relaxed);
    }

    /// Reads the files of rules again. Mistakes are logged, and the old rules stay.
    fn read_rules(&mut self) {
        self.rules_ns = Clock::mono_ns();
        let plan = self.running.plan;
        if plan.schemas_file.is_none() && plan.aggregations_file.is_none() {
            return;
        }
        match opening::rules(plan) {
            Ok(Rules { schemas, aggregations }) => {
                if self.running.open.store.set_rules(Rules { schemas, aggregations }) {
                    self.upkeep.rules_differ();
                }
            }
            Err(error) => {
                let name = &self.running.outlet.name;
                tracing::warn!("output `{name}`: {error}; the rules that were read before stay in force");
            }
        }
    }
}

fn log_walk(name: &str, report: &graphite::store::WalkReport) {
    let counted = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let (files, folders) = (counted(report.files, "whisper file"), counted(report.folders, "folder"));
    tracing::info!("output `{name}`: {files} in {folders}");
    if let Some((folder, error)) = &report.last_error {
        let shown = if folder.is_empty() { "the folder itself" } else { folder };
        tracing::warn!(
            "output `{name}`: {} folders could not be listed, the last one is {shown}: {error}",
            report.failed
        );
    }
}

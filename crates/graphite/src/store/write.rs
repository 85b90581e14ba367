//! Which series is written next, and writing all of its points to its file.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use model::{DiskError, FileTree, TreeFile as _};

use super::kept::{self, Kept};
use super::new_file::MaybeNew;
use super::part::{Due, FileState};
use super::{PARTS, Refusal, Store, locked};
use crate::whisper::names::path_of;
use crate::whisper::{FileError, Header, Point, Scratch, UpdateOptions, WhisperFile, Written, lock_in};

/// A series that is due. Its points stay in memory, and readable, until it is written.
#[must_use = "a job has to be written, or its series is never written again"]
#[derive(Debug)]
pub struct Job {
    part: usize,
    due: Due,
}

/// Memory of a thread that writes.
#[derive(Debug, Default)]
pub struct Writer {
    name: Vec<u8>,
    points: Vec<Point>,
    scratch: Scratch,
    /// What is known of the file of the job.
    kept: Option<Box<Kept>>,
}

/// Why a file was not written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WriteError {
    /// It is damaged, none of whisper, or cannot be opened: it was left alone, and the points were refused.
    Unusable(FileError),
    /// The disk failed or is short of something. The points stay, and are tried again.
    Disk(DiskError),
    /// This file alone cannot be opened or written. The points stay, and are tried again; other files are written meanwhile. After
    /// [`ATTEMPTS_MAX`](super::ATTEMPTS_MAX) attempts it is `Unusable`.
    File(DiskError),
}

/// Created and removed at once, to see whether anything can be written.
const PROBE_FILE: &str = ".staunch-probe";

/// Whether an error is about one file only: a folder, a pipe or a foreign mode in its place.
fn is_of_one_file<T: FileTree>(error: DiskError, tree: &T) -> bool {
    match error {
        DiskError::NotAFile | DiskError::Exists => true,
        DiskError::Denied => {
            // What an earlier process left.
            let _not_there = tree.remove(PROBE_FILE);
            let created = tree.create(PROBE_FILE).is_ok();
            created && tree.remove(PROBE_FILE).is_ok()
        }
        DiskError::NotFound
        | DiskError::Full
        | DiskError::Short
        | DiskError::Scarce { .. }
        | DiskError::Away
        | DiskError::Deleted
        | DiskError::Io { .. } => false,
    }
}

/// What a job did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WriteReport {
    /// Points of the job.
    pub points: u64,
    /// Where they went.
    pub written: Written,
    /// Size of the file, if it was created.
    pub created_bytes: u64,
    /// The limit of new files is reached: the series waits.
    pub waits: bool,
    /// The path and what went wrong.
    pub error: Option<(String, WriteError)>,
}

impl Store {
    /// The series that is written next, if one is due: it has points that are old enough, or memory is short, or the store is drained.
    pub fn next(&self, now: i64) -> Option<Job> {
        let short = self.is_short();
        // Points must not wait for a limit in time when there is no memory for more.
        if !short && !locked(&self.updates).take(now) {
            return None;
        }
        let at_once = short || self.draining.load(Relaxed);
        let before =
            if at_once { i64::MAX } else { now.saturating_sub(i64::from(self.options.write_after_s)) };
        let may_create = short || {
            let mut creates = locked(&self.creates);
            let may = creates.take(now);
            if may {
                // Only a look: `write` takes the token.
                creates.give_back();
            }
            may
        };
        let first = self.turn.fetch_add(1, Relaxed);
        let found = (0..PARTS).map(|at| first.wrapping_add(at) % PARTS).find_map(|part| {
            let due = locked(&self.parts[part]).take(before, now, may_create)?;
            Some(Job { part, due })
        });
        if found.is_none() && !short {
            locked(&self.updates).give_back();
        }
        found
    }

    /// True above three quarters of the memory of points: they are written at once, also above the limits of updates and new files.
    pub fn is_short(&self) -> bool {
        self.points_bytes() / 3 >= self.options.points_bytes_max / 4
    }

    /// Writes a series to its file, which is created if there is none.
    pub fn write<T: FileTree>(&self, job: Job, tree: &T, writer: &mut Writer, now: i64) -> WriteReport {
        let Job { part, due } = job;
        let known;
        {
            let mut part = locked(&self.parts[part]);
            known = part.of(due.series).file;
            writer.kept = part.of(due.series).kept.take();
            writer.name.clear();
            writer.name.extend_from_slice(part.name(due.series));
            let points = part.points_of_job(due).iter();
            writer.points.clear();
            writer.points.extend(points.map(|one| Point { time: i64::from(one.time), value: one.value() }));
        }
        let mut report = WriteReport { points: writer.points.len() as u64, ..WriteReport::default() };
        let done = self.write_file(tree, writer, &mut report, (now, known));
        let of_one_file = matches!(&done, Err((_, FileError::Disk(error))) if is_of_one_file(*error, tree));
        let mut part = locked(&self.parts[part]);
        let freed = match done {
            Ok(Some(header)) => {
                part.of(due.series).covered = self.covered(&header);
                part.keep(due.series, writer.kept.take());
                part.done(due, FileState::Exists)
            }
            Ok(None) => {
                report.waits = true;
                part.wait_for_create(due);
                0
            }
            Err((path, FileError::Disk(error))) if of_one_file && due.is_last_attempt() => {
                report.error = Some((path, WriteError::Unusable(FileError::Disk(error))));
                self.refuse(Refusal::UnusableFile, report.points);
                part.done(due, FileState::Unusable)
            }
            Err((path, FileError::Disk(error))) => {
                let what = if of_one_file { WriteError::File(error) } else { WriteError::Disk(error) };
                report.error = Some((path, what));
                part.failed(due, now);
                0
            }
            Err((path, error)) => {
                report.error = Some((path, WriteError::Unusable(error)));
                self.refuse(Refusal::UnusableFile, report.points);
                part.done(due, FileState::Unusable)
            }
        };
        drop(part);
        self.points_bytes.fetch_sub(freed, Relaxed);
        // Their times are not known here: the file has only counted them.
        for (why, points) in
            [(Refusal::TooOld, report.written.too_old), (Refusal::InFuture, report.written.in_future)]
        {
            self.refuse(why, points);
            self.note_refused(why, points, &writer.name, None, now);
        }
        report
    }

    /// None: there is no file, and none may be created now.
    fn write_file<T: FileTree>(
        &self,
        tree: &T,
        writer: &mut Writer,
        report: &mut WriteReport,
        (now, known): (i64, FileState),
    ) -> Result<Option<Arc<Header>>, (String, FileError)> {
        let located = path_of(&writer.name, self.options.names).expect("names without a path are refused");
        let path = located.path;
        // A file that has to be created is not looked for before. With a limit on new files it is: one that is there does not wait.
        let creates =
            known == FileState::New && located.other.is_none() && self.options.creates_per_minute_max == 0;
        let opened = match if creates { Err(DiskError::NotFound) } else { tree.open(&path) } {
            Err(DiskError::NotFound) => match &located.other {
                Some(other) if tree.exists(other) == Ok(true) => {
                    tree.rename(other, &path).and_then(|()| tree.open(&path))
                }
                _ => Err(DiskError::NotFound),
            },
            opened => opened,
        };
        let mut is_new = false;
        let space = self.options.space;
        let wanted_header = || self.header_of_new(&writer.name);
        let file = match opened {
            // The lock comes first: another program that has it may change the header, or replace the file.
            Ok(file) => {
                let file = if self.options.lock { lock_in(tree, &path, file) } else { Ok(file) };
                let file = file.map_err(FileError::Disk);
                file.and_then(|file| {
                    kept::open(file, &mut writer.kept, (space, self.options.lock), wanted_header)
                })
            }
            Err(DiskError::NotFound) => {
                writer.kept = None;
                if !self.is_short() && !locked(&self.creates).take(now) {
                    return Ok(None);
                }
                let header = wanted_header().expect("checked rules give valid headers");
                let created = self.create_file(tree, &path, &header);
                if creates && matches!(created, Err(DiskError::Exists)) {
                    return self.write_file(tree, writer, report, (now, FileState::Unknown));
                }
                is_new = created.is_ok();
                report.created_bytes = if is_new { header.file_bytes() } else { 0 };
                created.map_err(FileError::Disk)
            }
            Err(error) => Err(FileError::Disk(error)),
        };
        let updated = file.and_then(|mut file| {
            // After a sync that failed, nobody knows whether the header of a file that was new then is on the disk.
            if known != FileState::Exists && !is_new {
                file.rewrite_header()?;
            }
            let options = self.write_options();
            report.written = file.update_many(&mut writer.points, now, &options, &mut writer.scratch)?;
            // A first write is often the only one for long.
            let is_known = known == FileState::Exists;
            writer.kept = if is_known { Kept::of(&file, writer.kept.take()) } else { None };
            Ok(Arc::clone(file.header()))
        });
        updated.map(Some).map_err(|error| (path, error))
    }

    /// How points in memory are written. Those of the future were refused as they came: should the clock have been set back since, these
    /// are none.
    pub(super) fn write_options(&self) -> UpdateOptions {
        UpdateOptions { accept_future: true, ..self.options.update }
    }

    fn create_file<T: FileTree>(
        &self,
        tree: &T,
        path: &str,
        header: &Arc<Header>,
    ) -> Result<WhisperFile<MaybeNew<T::File>>, DiskError> {
        let file = tree.create(path)?;
        // Another program that waits for the lock may write before it is ours.
        let file = if self.options.lock { MaybeNew::known(file) } else { MaybeNew::new(file) };
        let file = WhisperFile::create(file, header, self.options.space).inspect_err(|_| {
            // The first error is the one to report. What is left is an empty or short file, which `Damage` names.
            let _ = tree.remove(path);
        })?;
        if self.options.lock {
            file.file().lock()?;
        }
        Ok(file)
    }
}

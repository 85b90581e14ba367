//! The names of a store on disk, so that a start knows them before it has looked at all files, and at all: the path of a tagged series has
//! only the hash of its name.
//!
//! Files of a folder in the data directory: `snapshot-N` is complete, `snapshot-N.new` is being written, `journal-N` has the changes since
//! snapshot N began. A start reads the newest complete snapshot and all journals from its number on.
//! Not here: their format (`graphite::catalog::saved`).

use std::io;
use std::path::PathBuf;

use graphite::catalog::saved::{Reader, Snapshot};
use graphite::catalog::{Catalog, CatalogLimits};
use graphite::store::Store;
use model::{DiskError, FileTree as _, TreeFile as _};
use sys::tree::{RealFile, Tree};

/// A new snapshot is written when the journal has more bytes than this and than the last snapshot.
const JOURNAL_BYTES_MIN: u64 = 4 << 20;

/// Bytes that are read at a time.
const READ_BYTES: usize = 1 << 20;

/// Pieces of a snapshot that are written before other work is looked at.
const PIECES: usize = 16;

/// Where names that are not saved come from.
const COME_BACK: &str = "names come back with their files, those of tagged series with their next points";

/// The names on disk.
#[derive(Debug)]
pub(super) struct SavedNames {
    folder: Tree,
    generation: u64,
    /// The snapshot that is being written, and its file.
    snapshot: Option<(Snapshot, RealFile, u64)>,
    journal: Option<(RealFile, u64)>,
    snapshot_bytes: u64,
    buffer: Vec<u8>,
    /// Something could not be written: the next call of [`SavedNames::save_changes`] begins a new generation, with all names.
    has_failed: bool,
}

impl SavedNames {
    /// Reads what is saved in a folder, which is created if it is missing. Damage costs names, and is logged.
    pub(super) fn open(
        folder: PathBuf,
        limits: CatalogLimits,
        seed: u64,
        name: &str,
    ) -> io::Result<(SavedNames, Catalog)> {
        let folder = Tree::open(folder)?;
        let failed = |error: DiskError| io::Error::other(format!("{}: {error}", folder.root().display()));
        let files = Files::of(&folder).map_err(failed)?;
        let mut reader = Reader::new(limits, seed);
        for file in files.to_read() {
            reader.begin();
            if let Err(error) = read(&folder, &file, &mut reader) {
                tracing::warn!(
                    "output `{name}`: {file} cannot be read ({error}); its names come back with their files"
                );
            }
            let report = reader.end();
            if report.damages > 0 {
                let places = report.damages;
                tracing::warn!("output `{name}`: {file} is damaged in {places} places; {COME_BACK}");
            }
        }
        let generation = files.newest();
        let saved = SavedNames {
            folder,
            generation,
            snapshot: None,
            journal: None,
            snapshot_bytes: 0,
            buffer: Vec::new(),
            has_failed: false,
        };
        Ok((saved, reader.finish()))
    }

    /// Begins a new generation.
    pub(super) fn begin(&mut self, store: &Store) -> Result<(), DiskError> {
        let generation = self.generation + 1;
        // Left from a start that failed.
        for name in [format!("snapshot-{generation}.new"), format!("journal-{generation}")] {
            match self.folder.remove(&name) {
                Ok(()) | Err(DiskError::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        let snapshot = self.folder.create(&format!("snapshot-{generation}.new"))?;
        let journal = self.folder.create(&format!("journal-{generation}"))?;
        if !self.has_failed {
            self.append_changes(store)?;
        }
        self.has_failed = false;
        self.generation = generation;
        self.journal = Some((journal, 0));
        self.snapshot = Some((store.begin_saving(generation), snapshot, 0));
        Ok(())
    }

    /// Writes some of a snapshot. False when none is being written.
    pub(super) fn step(&mut self, store: &Store) -> Result<bool, DiskError> {
        if self.snapshot.is_none() {
            return Ok(false);
        }
        let written = self.write_pieces(store);
        if written.is_err() {
            // The names of these pieces are in no file.
            (self.snapshot, self.has_failed) = (None, true);
        }
        written.map(|()| true)
    }

    fn write_pieces(&mut self, store: &Store) -> Result<(), DiskError> {
        let Some((snapshot, file, at)) = &mut self.snapshot else { return Ok(()) };
        self.buffer.clear();
        let mut more = true;
        for _ in 0..PIECES {
            more = snapshot.next(&store.catalog(), &mut self.buffer);
            if !more {
                break;
            }
        }
        file.write_at(*at, &self.buffer)?;
        *at += self.buffer.len() as u64;
        if !more {
            file.sync()?;
            self.snapshot_bytes = *at;
            self.snapshot = None;
            let name = format!("snapshot-{}", self.generation);
            self.folder.rename(&format!("{name}.new"), &name)?;
            self.folder.sync_folder("")?;
            self.remove_older()?;
        }
        Ok(())
    }

    /// Appends the changes of names, and syncs them. After an error it begins anew, with all names.
    pub(super) fn save_changes(&mut self, store: &Store) -> Result<(), DiskError> {
        if self.has_failed {
            return self.begin(store);
        }
        let appended = self.append_changes(store);
        if appended.is_err() {
            // These changes are in no file.
            (self.snapshot, self.has_failed) = (None, true);
        }
        appended
    }

    fn append_changes(&mut self, store: &Store) -> Result<(), DiskError> {
        let Some((file, at)) = &mut self.journal else { return Ok(()) };
        self.buffer.clear();
        store.take_changes(&mut self.buffer);
        if self.buffer.is_empty() {
            return Ok(());
        }
        file.write_at(*at, &self.buffer)?;
        file.sync()?;
        *at += self.buffer.len() as u64;
        Ok(())
    }

    /// Whether the journal is long enough for a new snapshot.
    pub(super) fn is_long(&self) -> bool {
        let journal = self.journal.as_ref().map_or(0, |(_, bytes)| *bytes);
        self.snapshot.is_none() && journal > JOURNAL_BYTES_MIN.max(self.snapshot_bytes)
    }

    fn remove_older(&self) -> Result<(), DiskError> {
        let files = Files::of(&self.folder)?;
        for name in files.older_than(self.generation) {
            self.folder.remove(&name)?;
        }
        Ok(())
    }
}

fn read(folder: &Tree, name: &str, reader: &mut Reader) -> Result<(), DiskError> {
    let file = match folder.open_to_read(name) {
        Err(DiskError::NotFound) => return Ok(()),
        file => file?,
    };
    let (mut at, bytes) = (0, file.size()?);
    let mut buffer = vec![0; READ_BYTES];
    while at < bytes {
        let part = &mut buffer[..READ_BYTES.min((bytes - at) as usize)];
        file.read_at(at, part)?;
        reader.push(part);
        at += part.len() as u64;
    }
    Ok(())
}

/// The numbers of the files in the folder.
#[derive(Debug, Default)]
struct Files {
    snapshots: Vec<u64>,
    unfinished: Vec<u64>,
    journals: Vec<u64>,
}

impl Files {
    fn of(folder: &Tree) -> Result<Files, DiskError> {
        let mut files = Files::default();
        folder.list("", &mut |name, _kind| {
            let number = |text: &str| text.parse::<u64>().ok();
            if let Some(number) = name.strip_prefix("journal-").and_then(number) {
                files.journals.push(number);
            } else if let Some(rest) = name.strip_prefix("snapshot-") {
                match rest.strip_suffix(".new") {
                    Some(rest) => files.unfinished.extend(number(rest)),
                    None => files.snapshots.extend(number(rest)),
                }
            }
            true
        })?;
        files.journals.sort_unstable();
        Ok(files)
    }

    /// The newest snapshot, and the journals since it began.
    fn to_read(&self) -> Vec<String> {
        let newest = self.snapshots.iter().copied().max();
        let journals = self.journals.iter().filter(|number| newest.is_none_or(|newest| **number >= newest));
        let journals = journals.map(|number| format!("journal-{number}"));
        newest.map(|newest| format!("snapshot-{newest}")).into_iter().chain(journals).collect()
    }

    fn newest(&self) -> u64 {
        self.snapshots.iter().chain(&self.unfinished).chain(&self.journals).copied().max().unwrap_or(0)
    }

    fn older_than(&self, generation: u64) -> Vec<String> {
        let older = |numbers: &[u64]| {
            numbers.iter().copied().filter(|number| *number < generation).collect::<Vec<_>>()
        };
        let snapshots = older(&self.snapshots).into_iter().map(|number| format!("snapshot-{number}"));
        let unfinished = older(&self.unfinished).into_iter().map(|number| format!("snapshot-{number}.new"));
        let journals = older(&self.journals).into_iter().map(|number| format!("journal-{number}"));
        snapshots.chain(unfinished).chain(journals).collect()
    }
}

#[cfg(test)]
mod tests {
    use graphite::catalog::Wanted;
    use graphite::query::Selector;
    use graphite::store::{Reader as StoreReader, Rules, StoreOptions};
    use graphite::whisper::Point;
    use graphite::whisper::rules::{Aggregations, Schemas};

    use super::*;

    fn opened(folder: &std::path::Path) -> (SavedNames, Store) {
        let options = StoreOptions::default();
        let (saved, catalog) =
            SavedNames::open(folder.to_owned(), options.catalog_limits(), 1, "store").expect("it opens");
        let schemas = Schemas::new(Vec::new()).expect("none");
        let rules = Rules { schemas, aggregations: Aggregations::new(Vec::new()).expect("none") };
        (saved, Store::with_names(options, rules, 1, catalog))
    }

    fn names(store: &Store, folder: &std::path::Path) -> Vec<String> {
        let tree = Tree::open(folder.join("tree")).expect("made");
        let mut reader = StoreReader::new(store, &tree, 0, || Ok(()));
        let found = reader.find(&Selector::Tags(vec!["a=~.".into()]), Wanted::Leaves, 100).expect("few");
        found.by_path().iter().map(|node| String::from_utf8_lossy(node.path).into_owned()).collect()
    }

    fn push(store: &Store, name: &str) {
        store.push(name.as_bytes(), Point { time: 1_700_000_000, value: 1.0 }, 0, 1_700_000_000);
    }

    #[test]
    fn names_are_there_again_after_a_kill_at_any_point_of_a_snapshot() {
        let held = tempfile::tempdir().expect("a folder");
        let folder = held.path().join("catalog");
        let mut want = Vec::new();
        for run in 0..6 {
            let (mut saved, store) = opened(&folder);
            assert_eq!(names(&store, held.path()), want, "run {run}");
            let mut add = |saved: &mut SavedNames, name: String| {
                push(&store, &name);
                saved.save_changes(&store).expect("written");
                want.push(name);
            };
            saved.begin(&store).expect("made");
            add(&mut saved, format!("m{run};a=1"));
            if run % 3 != 0 {
                // Not finished before the process ends.
                while saved.step(&store).expect("written") && run % 3 == 2 {}
            }
            add(&mut saved, format!("n{run};a=2"));
            want.sort();
        }
        let files = Files::of(&Tree::open(folder).expect("it is there")).expect("it lists");
        assert_eq!((files.snapshots.len(), files.journals.len()), (1, 1), "{files:?}");
    }

    #[test]
    fn names_that_could_not_be_written_are_saved_with_the_next_generation() {
        let held = tempfile::tempdir().expect("a folder");
        let folder = held.path().join("catalog");
        let read_only =
            |saved: &SavedNames, name: String| (saved.folder.open_to_read(&name).expect("it is there"), 0);
        for fails_in_snapshot in [false, true] {
            let (mut saved, store) = opened(&folder);
            saved.begin(&store).expect("made");
            push(&store, &format!("m{fails_in_snapshot};a=1"));
            if fails_in_snapshot {
                let file = saved.folder.open_to_read(&format!("snapshot-{}.new", saved.generation));
                saved.snapshot.as_mut().expect("begun").1 = file.expect("it is there");
                saved.save_changes(&store).expect("written");
                assert!(saved.step(&store).is_err());
            } else {
                saved.journal = Some(read_only(&saved, format!("journal-{}", saved.generation)));
                assert!(saved.save_changes(&store).is_err());
            }
            assert_eq!(saved.step(&store), Ok(false), "what is incomplete never looks complete");
            push(&store, &format!("n{fails_in_snapshot};a=1"));
            saved.save_changes(&store).expect("a new generation");
            while saved.step(&store).expect("written") {}
        }
        let (_, store) = opened(&folder);
        assert_eq!(names(&store, held.path()), ["mfalse;a=1", "mtrue;a=1", "nfalse;a=1", "ntrue;a=1"]);
    }
}

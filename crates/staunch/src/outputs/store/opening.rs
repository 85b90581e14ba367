//! Opens the folder of a store, with its rules.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;

use config::plan::WhisperPlan;
use graphite::store::{Rules, Store, StoreOptions};
use graphite::whisper::UpdateOptions;
use graphite::whisper::names::NameOptions;
use sys::tree::Tree;

use super::saved_names::SavedNames;
use super::writer_lock::WriterLock;

/// In a folder that Staunch created, or that was empty: only there are files removed because of `max_bytes`.
const MARKER_FILE: &str = ".staunch-store";

/// An open folder.
pub(super) struct Opened {
    pub(super) store: Store,
    pub(super) tree: Tree,
    pub(super) names: SavedNames,
    pub(super) lock: WriterLock,
}

/// Opens the folder of a plan, and reads the names that were saved in `names`. `output` is named in the log.
pub(super) fn open(plan: &WhisperPlan, names: &Path, output: &str) -> io::Result<Opened> {
    let rules = rules(plan)?;
    let is_new = is_empty(&plan.path)?;
    let tree = Tree::open(plan.path.clone())?;
    mark(plan, is_new)?;
    let lock = WriterLock::take(plan)?;
    let (options, seed) = (options(plan), sys::random_seed());
    let (names, catalog) = SavedNames::open(names.to_owned(), options.catalog_limits(), seed, output)?;
    Ok(Opened { store: Store::with_names(options, rules, seed, catalog), tree, names, lock })
}

/// True when the folder does not exist, or has nothing in it.
fn is_empty(folder: &Path) -> io::Result<bool> {
    match std::fs::read_dir(folder) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

/// Marks a new folder. With `max_bytes`, other folders are refused: their files could be anything.
fn mark(plan: &WhisperPlan, is_new: bool) -> io::Result<()> {
    let marker = plan.path.join(MARKER_FILE);
    if is_new {
        let text = "Staunch created this folder. `max_bytes` of its output may remove whisper files in it.\n";
        return std::fs::write(marker, text);
    }
    if plan.files_bytes_max > 0 && !marker.is_file() {
        let message = "`max_bytes` would remove files of this folder, and Staunch did not create it: remove the option, or give \
                       the output a new folder";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    Ok(())
}

/// The rules of a plan, with those of its files.
pub(super) fn rules(plan: &WhisperPlan) -> io::Result<Rules> {
    let invalid = |error: String| io::Error::new(io::ErrorKind::InvalidInput, error);
    let schemas = match &plan.schemas_file {
        Some(path) => of_file(path, import::carbon::storage_schemas)?,
        None => Vec::new(),
    };
    let aggregations = match &plan.aggregations_file {
        Some(path) => of_file(path, import::carbon::storage_aggregations)?,
        None => Vec::new(),
    };
    let schemas = plan.schemas(schemas).map_err(invalid)?;
    Ok(Rules { schemas, aggregations: plan.aggregations(aggregations).map_err(invalid)? })
}

/// Most bytes of a file of rules.
const RULES_BYTES_MAX: u64 = 16 << 20;

type Read<T> = (Option<Vec<T>>, Vec<config::diagnostic::Diagnostic>);

fn of_file<T>(path: &Path, read: fn(&str) -> Read<T>) -> io::Result<Vec<T>> {
    let shown = path.display();
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{shown}: {error}"));
    let file = sys::open_at_once(OpenOptions::new().read(true), path).map_err(named)?;
    let about = file.metadata().map_err(named)?;
    if !about.is_file() || about.len() > RULES_BYTES_MAX {
        let message = format!("{shown}: not a file of at most {} MiB", RULES_BYTES_MAX >> 20);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let text = io::read_to_string(io::Read::take(file, RULES_BYTES_MAX)).map_err(named)?;
    let (rules, diagnostics) = read(&text);
    let first = diagnostics.iter().find(|found| found.severity == config::diagnostic::Severity::Error);
    rules.ok_or_else(|| {
        let why = first.map_or("it has mistakes", |first| &*first.message);
        io::Error::new(io::ErrorKind::InvalidInput, format!("{shown}: {why}"))
    })
}

fn options(plan: &WhisperPlan) -> StoreOptions {
    let seconds = |ms: u64| u32::try_from(ms / 1000).unwrap_or(u32::MAX);
    StoreOptions {
        write_after_s: seconds(plan.write_after_ms),
        points_bytes_max: plan.points_bytes_max,
        series_max: plan.series_max,
        names_bytes_max: usize::try_from(plan.names_bytes_max).unwrap_or(usize::MAX),
        updates_per_second_max: plan.updates_per_second_max,
        creates_per_minute_max: plan.creates_per_minute_max,
        space: plan.new_files,
        lock: plan.lock,
        names: NameOptions { readable_tagged: !plan.hash_tagged_names },
        update: UpdateOptions {
            first_duplicate: plan.compat.first_duplicate,
            accept_future: plan.compat.accept_future,
            max_future: plan.future_max_ms.map(seconds),
        },
    }
}

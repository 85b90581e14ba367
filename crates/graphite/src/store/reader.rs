//! Series for queries: names by glob or tags, and for each the values of its file with the points in memory.
//!
//! Points in memory are copied before the file is read: a point that is written in between is seen twice, and not never.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use model::{DiskError, FileTree};

use super::Store;
use super::overlay::Overlay;
use crate::catalog::{
    Expressions, Found, NameGlob, Progress, Search, SearchError, SearchLimits, TagSearch, Wanted,
};
use crate::query::{self, Ask, Fetch, FetchError, Range, Room, Selector, Stop};
use crate::series_of_file;
use crate::whisper::names::path_of;
use crate::whisper::{self, FetchRange, FileError, Header, Opened, Point, Scratch, WhisperFile};

/// Steps of a search between two locks of the catalog: about a millisecond.
pub const SEARCH_STEPS: u64 = 20_000;

/// Most steps of a search: some ten seconds.
const SEARCH_STEPS_MAX: u64 = 100_000_000;

/// Reads a store for one request.
#[derive(Debug)]
pub struct Reader<'s, T, G> {
    store: &'s Store,
    tree: &'s T,
    now: i64,
    /// Whether to go on.
    goes_on: G,
    /// Files that could not be read, with the reason; the first few.
    pub notes: Vec<(String, FileError)>,
}

/// Why a series was not read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NotRead {
    /// Its file cannot be read.
    File(FileError),
    /// The request has to end.
    Stopped(Stop),
}

impl From<FileError> for NotRead {
    fn from(error: FileError) -> NotRead {
        NotRead::File(error)
    }
}

impl fmt::Display for NotRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotRead::File(error) => error.fmt(f),
            NotRead::Stopped(stop) => stop.fmt(f),
        }
    }
}

impl std::error::Error for NotRead {}

/// Most notes of one request.
const NOTES_MAX: usize = 20;

impl<'s, T: FileTree, G: FnMut() -> Result<(), Stop>> Reader<'s, T, G> {
    /// A reader. `now` in Unix seconds; `goes_on` is asked about each millisecond.
    pub fn new(store: &'s Store, tree: &'s T, now: i64, goes_on: G) -> Reader<'s, T, G> {
        Reader { store, tree, now, goes_on, notes: Vec::new() }
    }

    /// The names that a selector finds.
    ///
    /// # Errors
    /// It is invalid, or a limit is reached.
    pub fn find(
        &mut self,
        selector: &Selector,
        wanted: Wanted,
        results_max: usize,
    ) -> Result<Found, FetchError> {
        let limits = SearchLimits { results_max, steps_max: SEARCH_STEPS_MAX };
        let failed = |error: SearchError| FetchError::Limit(error.to_string());
        match selector {
            Selector::Glob(path) => {
                let glob =
                    NameGlob::new(path.as_bytes()).map_err(|bad| FetchError::Invalid(bad.to_string()))?;
                let mut search = Search::new(glob, wanted, limits);
                while search.step(&self.store.catalog(), SEARCH_STEPS).map_err(failed)? == Progress::More {
                    (self.goes_on)().map_err(FetchError::Stopped)?;
                }
                Ok(search.finish())
            }
            Selector::Tags(texts) => {
                let expressions = Expressions::parse(texts.iter().map(|text| text.as_bytes()));
                let expressions = expressions.map_err(|bad| FetchError::Invalid(bad.to_string()))?;
                let mut search = TagSearch::new(expressions, crate::catalog::Completion::Series, limits);
                while search.step(&self.store.catalog(), SEARCH_STEPS).map_err(failed)? == Progress::More {
                    (self.goes_on)().map_err(FetchError::Stopped)?;
                }
                Ok(search.finish())
            }
        }
    }

    /// The values of one series. None when it has neither a file nor points, or nothing in the range.
    ///
    /// # Errors
    /// Its file cannot be read, or the request has to end.
    pub fn fetch_series(&mut self, name: &[u8], range: Range) -> Result<Option<whisper::Fetched>, NotRead> {
        let points = self.store.all_points_in_memory(name);
        let file = self.open(name)?;
        let header = match &file {
            Some(file) => Arc::clone(file.header()),
            None if points.is_empty() => return Ok(None),
            None => match self.store.header_of_new(name) {
                Some(header) => header,
                None => return Ok(None),
            },
        };
        let Ok(Some(wanted)) = header.range(range.from, range.until, self.now) else { return Ok(None) };
        if points.is_empty()
            && let Some(file) = &file
        {
            return Ok(Some(fetched(file.fetch_range(wanted))?));
        }
        // With the first of several points, the way of writing says which one counts.
        if wanted.archive == 0 && !self.store.options.update.first_duplicate {
            let values = match &file {
                Some(file) => fetched(file.fetch_range(wanted))?.values,
                None => vec![None; wanted.points() as usize],
            };
            return Ok(Some(self.with_points(values, wanted, &header, &points)));
        }
        self.as_written(file.as_ref(), &header, wanted, points).map(Some)
    }

    /// Values of the finest archive with the points in memory. Those that are too old for it are in coarser ones only.
    fn with_points(
        &self,
        mut values: Vec<Option<f64>>,
        range: FetchRange,
        header: &Header,
        points: &[Point],
    ) -> whisper::Fetched {
        let FetchRange { start, end, step, .. } = range;
        let oldest = self.now - header.archives()[0].retention();
        for point in points.iter().filter(|point| point.time >= oldest) {
            let interval = point.time - point.time.rem_euclid(i64::from(step));
            if (start..end).contains(&interval) {
                values[((interval - start) / i64::from(step)) as usize] = Some(point.value);
            }
        }
        whisper::Fetched { start, end, step, values }
    }

    /// Values of a coarser archive, as they are once the points are written. Work for each point in memory: it can be stopped.
    fn as_written(
        &mut self,
        file: Option<&WhisperFile<T::File>>,
        header: &Arc<Header>,
        range: FetchRange,
        mut points: Vec<Point>,
    ) -> Result<whisper::Fetched, NotRead> {
        (self.goes_on)().map_err(NotRead::Stopped)?;
        let (stopped, now, update) = (Cell::new(None), self.now, self.store.write_options());
        let over = Overlay::new(file.map(WhisperFile::file), &mut self.goes_on, &stopped);
        let values = || {
            let mut over = match file {
                Some(_) => WhisperFile::open(over)?,
                None => WhisperFile::create(over, header, whisper::Space::Sparse)?,
            };
            over.update_many(&mut points, now, &update, &mut Scratch::default())?;
            fetched(over.fetch_range(range))
        };
        let values: Result<whisper::Fetched, FileError> = values();
        match stopped.get() {
            Some(stop) => Err(NotRead::Stopped(stop)),
            None => values.map_err(NotRead::File),
        }
    }

    /// The header of a series' file; of one that is only in memory, that which its file will get. None for an unknown series.
    ///
    /// # Errors
    /// Its file cannot be read.
    pub fn header(&self, name: &[u8]) -> Result<Option<Arc<Header>>, FileError> {
        match self.open(name)? {
            Some(file) => Ok(Some(Arc::clone(file.header()))),
            None if self.store.all_points_in_memory(name).is_empty() => Ok(None),
            None => Ok(self.store.header_of_new(name)),
        }
    }

    fn open(&self, name: &[u8]) -> Result<Option<WhisperFile<T::File>>, FileError> {
        let Ok(located) = path_of(name, self.store.options.names) else { return Ok(None) };
        for path in located.paths() {
            match self.tree.open_to_read(path) {
                Ok(file) => {
                    match WhisperFile::open_unless_unfinished(file, || self.store.header_of_new(name))? {
                        Opened::Whole(file) => return Ok(Some(file)),
                        // It is created again with its next points.
                        Opened::Unfinished { .. } => {}
                    }
                }
                Err(DiskError::NotFound) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    fn note(&mut self, name: &[u8], error: FileError) {
        if self.notes.len() < NOTES_MAX {
            self.notes.push((String::from_utf8_lossy(name).into_owned(), error));
        }
    }
}

/// The range comes from the header of the file: it has one archive more or less only if the file was replaced just now.
fn fetched(result: Result<whisper::Fetched, whisper::FetchError>) -> Result<whisper::Fetched, FileError> {
    result.map_err(|error| match error {
        whisper::FetchError::File(error) => error,
        whisper::FetchError::Range(_) => FileError::Disk(DiskError::Away),
    })
}

impl<T: FileTree, G: FnMut() -> Result<(), Stop>> Fetch for Reader<'_, T, G> {
    fn fetch(&mut self, asks: &[Ask], room: Room) -> Result<Vec<Vec<query::Fetched>>, FetchError> {
        let (mut series, mut points) = (room.series, room.points);
        let mut answers = Vec::with_capacity(asks.len());
        for ask in asks {
            let found = self.find(&ask.selector, Wanted::Leaves, series)?;
            let mut answer = Vec::new();
            for node in found.by_path() {
                (self.goes_on)().map_err(FetchError::Stopped)?;
                match self.fetch_series(node.path, ask.range) {
                    Ok(Some(fetched)) => {
                        let more = |left: &usize| left.checked_sub(fetched.values.len().max(1));
                        points = more(&points).ok_or_else(|| {
                            FetchError::Limit(
                                "the series have more points than a request may fetch".to_owned(),
                            )
                        })?;
                        let name = String::from_utf8_lossy(node.path).into_owned();
                        answer.push(series_of_file(name, fetched));
                    }
                    Ok(None) => {}
                    Err(NotRead::File(error)) => self.note(node.path, error),
                    Err(NotRead::Stopped(stop)) => return Err(FetchError::Stopped(stop)),
                }
            }
            series = series.saturating_sub(answer.len());
            answers.push(answer);
        }
        Ok(answers)
    }

    fn keep_going(&mut self) -> Result<(), Stop> {
        (self.goes_on)()
    }
}

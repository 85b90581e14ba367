//! The files of a config, and whatever else it asked of the world while it was loaded: recorded once, where files are read.
//!
//! The record says whether a config has changed, and it can be evaluated again without files.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::language::host::{Host, Level};

/// Lines of the log that are kept until they are taken, at most.
pub const LINES_MAX: usize = 1_000;
/// Longest line of the log, in bytes.
pub const LINE_BYTES_MAX: usize = 16 * 1024;
/// Most bytes of all files of a config.
pub const FILES_BYTES_MAX: usize = 64 << 20;

/// The answers to what a config asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// The name of its main file.
    pub main: String,
    /// Texts by paths, as the config names them; or why there is none.
    pub texts: BTreeMap<String, Result<String, String>>,
    /// Files below folders; None for what is no folder.
    pub folders: BTreeMap<String, Result<Option<Vec<String>>, String>>,
    /// Environment variables.
    pub environment: BTreeMap<String, Option<String>>,
    /// The name of the machine.
    pub host_name: String,
}

/// Reads what a config asks for.
pub trait Reader: Send {
    /// The text of a file, by its path relative to the config's folder.
    ///
    /// # Errors
    /// Why there is none.
    fn read_file(&mut self, path: &str) -> Result<String, String>;

    /// See [`Host::files_below`].
    ///
    /// # Errors
    /// Why they are not known.
    fn files_below(&mut self, path: &str) -> Result<Option<Vec<String>>, String>;

    /// An environment variable.
    fn environment(&mut self, name: &str) -> Option<String>;

    /// The name of the machine.
    fn host_name(&mut self) -> String;
}

/// A host that answers from a record. What it has no answer for is asked of a reader, if there is one, and recorded.
pub struct Recorded {
    files: Arc<Mutex<Files>>,
    reader: Option<Box<dyn Reader>>,
    bytes_left: usize,
    random: u64,
    lines: Vec<(Level, String)>,
    lines_lost: u64,
}

impl std::fmt::Debug for Recorded {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Recorded").field("lines", &self.lines.len()).finish_non_exhaustive()
    }
}

impl Recorded {
    /// A host that has only what was recorded.
    pub fn new(files: Files, seed: u64) -> Recorded {
        Recorded {
            files: Arc::new(Mutex::new(files)),
            reader: None,
            bytes_left: FILES_BYTES_MAX,
            random: seed,
            lines: Vec::new(),
            lines_lost: 0,
        }
    }

    /// A host that records what a reader answers, until the config is loaded. The record can be taken then.
    pub fn recording(main: &str, mut reader: Box<dyn Reader>, seed: u64) -> (Recorded, Arc<Mutex<Files>>) {
        let files = Files { main: main.to_owned(), host_name: reader.host_name(), ..Files::default() };
        let recorded = Recorded { reader: Some(reader), ..Recorded::new(files, seed) };
        let files = Arc::clone(&recorded.files);
        (recorded, files)
    }

    fn read(&mut self, path: &str) -> Result<String, String> {
        let Some(reader) = &mut self.reader else {
            return Err("it was not there when the config was loaded".to_owned());
        };
        let text = reader.read_file(path)?;
        let left = self.bytes_left.checked_sub(text.len());
        self.bytes_left =
            left.ok_or_else(|| format!("the files of a config can have {FILES_BYTES_MAX} bytes"))?;
        Ok(text)
    }
}

fn locked(files: &Mutex<Files>) -> std::sync::MutexGuard<'_, Files> {
    files.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Host for Recorded {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn read_file(&mut self, path: &str) -> Result<String, String> {
        if let Some(known) = locked(&self.files).texts.get(path) {
            return known.clone();
        }
        let text = self.read(path);
        locked(&self.files).texts.insert(path.to_owned(), text.clone());
        text
    }

    fn files_below(&mut self, path: &str) -> Result<Option<Vec<String>>, String> {
        if let Some(known) = locked(&self.files).folders.get(path) {
            return known.clone();
        }
        let files = match &mut self.reader {
            Some(reader) => reader.files_below(path),
            None => Ok(None),
        };
        locked(&self.files).folders.insert(path.to_owned(), files.clone());
        files
    }

    fn environment(&mut self, name: &str) -> Option<String> {
        if let Some(known) = locked(&self.files).environment.get(name) {
            return known.clone();
        }
        let value = self.reader.as_mut().and_then(|reader| reader.environment(name));
        locked(&self.files).environment.insert(name.to_owned(), value.clone());
        value
    }

    fn host_name(&self) -> String {
        locked(&self.files).host_name.clone()
    }

    /// SplitMix64: a config draws lots, it keeps no secrets.
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn print(&mut self, text: &str) {
        self.log(Level::Info, text.trim_end_matches('\n'));
    }

    fn log(&mut self, level: Level, text: &str) {
        if self.lines.len() == LINES_MAX {
            self.lines_lost += 1;
            return;
        }
        let end = text.floor_char_boundary(text.len().min(LINE_BYTES_MAX));
        self.lines.push((level, text[..end].to_owned()));
    }

    fn close_files(&mut self) {
        self.reader = None;
    }

    fn take_lines(&mut self) -> (Vec<(Level, String)>, u64) {
        (std::mem::take(&mut self.lines), std::mem::take(&mut self.lines_lost))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct One;

    impl Reader for One {
        fn read_file(&mut self, path: &str) -> Result<String, String> {
            if path == "a" { Ok("text".to_owned()) } else { Err("no such file".to_owned()) }
        }

        fn files_below(&mut self, path: &str) -> Result<Option<Vec<String>>, String> {
            Ok((path == "d").then(|| vec!["d/a".to_owned()]))
        }

        fn environment(&mut self, name: &str) -> Option<String> {
            (name == "HOME").then(|| "/".to_owned())
        }

        fn host_name(&mut self) -> String {
            "here".to_owned()
        }
    }

    fn answers(host: &mut Recorded) -> String {
        let texts = ["a", "b"].map(|path| host.read_file(path));
        let folders = ["d", "e"].map(|path| host.files_below(path));
        let environment = ["HOME", "NONE"].map(|name| host.environment(name));
        format!("{texts:?} {folders:?} {environment:?} {}", host.host_name())
    }

    #[test]
    fn a_record_answers_as_the_reader_did() {
        let (mut recording, files) = Recorded::recording("a", Box::new(One), 1);
        let first = answers(&mut recording);
        recording.close_files();
        assert!(recording.read_file("c").is_err_and(|why| why.contains("loaded")));
        assert_eq!(answers(&mut recording), first);
        let mut replayed = Recorded::new(locked(&files).clone(), 1);
        assert_eq!(answers(&mut replayed), first);
        assert!(replayed.read_file("c").is_err(), "nothing is read that was not read before");
    }

    #[test]
    fn lines_of_the_log_past_the_limit_are_counted() {
        let mut host = Recorded::new(Files::default(), 0);
        (0..LINES_MAX + 2).for_each(|_| host.log(Level::Warn, "é".repeat(LINE_BYTES_MAX).as_str()));
        let (lines, lost) = host.take_lines();
        assert_eq!((lines.len(), lost), (LINES_MAX, 2));
        assert!(lines[0].1.len() <= LINE_BYTES_MAX);
        assert_eq!(host.take_lines(), (Vec::new(), 0));
    }
}

//! What a config may ask of the world outside. Whatever is not here it cannot do.

use std::any::Any;

/// How important a line of the log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Details of single steps.
    Trace,
    /// For engineers who look for a mistake.
    Debug,
    /// What happens normally.
    Info,
    /// What should be looked at.
    Warn,
    /// What failed.
    Error,
    /// What ended everything.
    Fatal,
}

/// The world around a config.
pub trait Host: Send {
    /// The host as what it is, for natives that were made for it.
    fn as_any(&mut self) -> &mut dyn Any;

    /// The text of a file, by its path relative to the config's folder; the error says why there is none.
    ///
    /// # Errors
    /// If the file cannot be read, or is outside of what the config may read.
    fn read_file(&mut self, path: &str) -> Result<String, String>;

    /// The *.clj and *.config files below a folder of the config's folder, also in folders of it, sorted; None if the path is no
    /// folder.
    ///
    /// # Errors
    /// If the folder cannot be read, or is outside of what the config may read.
    fn files_below(&mut self, path: &str) -> Result<Option<Vec<String>>, String> {
        let _ = path;
        Ok(None)
    }

    /// An environment variable.
    fn environment(&mut self, name: &str) -> Option<String>;

    /// The name of this machine.
    fn host_name(&self) -> String;

    /// A random number.
    fn random(&mut self) -> u64;

    /// Takes what the config prints: texts of any length, with their own line ends.
    fn print(&mut self, text: &str);

    /// Takes a line for the log.
    fn log(&mut self, level: Level, text: &str);

    /// The config is loaded: nothing more will be read for it.
    fn close_files(&mut self) {}

    /// The lines of the log since the last call, if the host keeps them, and how many more there were.
    fn take_lines(&mut self) -> (Vec<(Level, String)>, u64) {
        (Vec::new(), 0)
    }
}

/// A host that offers nothing, for tests and for trying expressions; it keeps what is printed and logged.
#[derive(Debug, Default)]
pub struct Nowhere {
    /// What was printed, and lines of the log.
    pub printed: String,
    random: u64,
}

impl Host for Nowhere {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn read_file(&mut self, _: &str) -> Result<String, String> {
        Err("there are no files here".to_owned())
    }

    fn environment(&mut self, _: &str) -> Option<String> {
        None
    }

    fn host_name(&self) -> String {
        "localhost".to_owned()
    }

    fn random(&mut self) -> u64 {
        // A linear congruence: enough for a host without a world.
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.random ^ (self.random >> 29)
    }

    fn print(&mut self, text: &str) {
        self.printed.push_str(text);
    }

    fn log(&mut self, level: Level, text: &str) {
        self.printed.push_str(&format!("{level:?}: {text}\n"));
    }
}

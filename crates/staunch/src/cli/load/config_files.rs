//! The files of a native config: from the command line, from folders, and from `include`.
//!
//! Path of a name: [`gather`] -> a folder becomes its files -> each text is read -> its `include` adds more names. Not
//! here: the contents (`config::check_files`), and configs of other programs, which are one file each. Limits:
//! [`FILES_MAX`] files, and `CONFIG_BYTES_MAX` for all texts together.

use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use config::diagnostic::{Code, Diagnostic, Source};
use config::{File, Format, Variables};

use super::{CONFIG_BYTES_MAX, read};
use crate::cli::kind::FileKind;
use crate::daemon::reload::change::WatchedFile;

/// Most files of one config.
const FILES_MAX: usize = 256;

/// Endings of file names that are read in a folder.
const ENDINGS: [&str; 4] = ["toml", "yaml", "yml", "json"];

/// A file with its text.
#[derive(Debug)]
pub(crate) struct Text {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) format: Format,
}

impl Text {
    pub(crate) fn file(&self) -> File<'_> {
        File { source: Source { name: &self.name, text: &self.text }, format: self.format }
    }
}

/// The files of a config, in the order of their names on the command line.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub(crate) texts: Vec<Text>,
    /// Errors in `include`, each with the index of its file and its place there.
    pub(crate) mistakes: Vec<(usize, Diagnostic)>,
    /// Files and folders whose changes affect the config.
    pub(crate) watched: Vec<WatchedFile>,
}

/// Reads all files of a config.
///
/// # Errors
/// When a file of the command line cannot be read, or is another program's. Errors in `include` are in the result.
pub(crate) fn gather(files: &[PathBuf], variables: &dyn Variables) -> anyhow::Result<Gathered> {
    let mut gatherer = Gatherer { variables, seen: HashSet::new(), bytes: 0, gathered: Gathered::default() };
    for path in files {
        let is_empty = gatherer.add(path)? == 0;
        if is_empty && path.is_dir() {
            anyhow::bail!("there is no file *.toml, *.yaml, *.yml or *.json in {}", path.display());
        }
    }
    Ok(gatherer.gathered)
}

struct Gatherer<'a> {
    variables: &'a dyn Variables,
    /// Files that have been read: a file that is named twice is read once.
    seen: HashSet<PathBuf>,
    bytes: usize,
    gathered: Gathered,
}

impl Gatherer<'_> {
    /// Adds a file, or the files of a folder. Returns their number. Each level of an `include` adds a file, so
    /// [`FILES_MAX`] also limits the depth.
    fn add(&mut self, path: &Path) -> anyhow::Result<usize> {
        if !path.is_dir() {
            self.add_file(path)?;
            return Ok(1);
        }
        self.gathered.watched.push(WatchedFile::now(path.to_owned()));
        let files = files_of(path)?;
        for file in &files {
            // Opening a pipe without a writer would block forever.
            let shown = file.display();
            anyhow::ensure!(
                !super::is_special(file),
                "{shown} is a pipe, a socket or a device, and a folder of configs has files"
            );
            self.add_file(file)?;
        }
        Ok(files.len())
    }

    /// A pipe is only read when the command line names it.
    fn add_included(&mut self, path: &Path) -> anyhow::Result<usize> {
        anyhow::ensure!(!super::is_special(path), "{} is a pipe, a socket or a device", path.display());
        self.add(path)
    }

    fn add_file(&mut self, path: &Path) -> anyhow::Result<()> {
        let is_new = self.seen.insert(std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()));
        if !is_new {
            return Ok(());
        }
        anyhow::ensure!(self.gathered.texts.len() < FILES_MAX, "a config has at most {FILES_MAX} files");
        let watched = WatchedFile::now(path.to_owned());
        let (name, text) = read(path)?;
        if let Some(instead) = FileKind::of(path, &text).instead_of_native(&name, &text) {
            anyhow::bail!("{instead}");
        }
        self.bytes += text.len();
        anyhow::ensure!(
            self.bytes as u64 <= CONFIG_BYTES_MAX,
            "the files of a config have at most {CONFIG_BYTES_MAX} bytes together, and {name} is one too many"
        );
        let (at, format) = (self.gathered.texts.len(), Format::of(&name, &text));
        self.gathered.texts.push(Text { name, text, format });
        self.gathered.watched.push(watched);
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        for (included, place) in config::includes(self.gathered.texts[at].file(), self.variables) {
            if let Err(error) = self.add_included(&folder.join(included)) {
                let mistake = Diagnostic::error(Code::BadValue, "this file cannot be included");
                self.gathered.mistakes.push((at, mistake.at(place).label(format!("{error:#}"))));
            }
        }
        Ok(())
    }
}

/// The config files of a folder, in order of names, without hidden ones such as those of editors.
fn files_of(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let read = || format!("cannot read {}", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(read)? {
        let path = entry.with_context(read)?.path();
        let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if !is_hidden && ENDINGS.contains(&&*ending.to_ascii_lowercase()) && !path.is_dir() {
            files.push(path);
        }
        anyhow::ensure!(
            files.len() <= FILES_MAX,
            "{} has more than {FILES_MAX} config files",
            folder.display()
        );
    }
    files.sort();
    Ok(files)
}

/// The environment of this process, and files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfProcess;

impl Variables for OfProcess {
    fn environment(&self, name: &str) -> Result<Option<String>, String> {
        match std::env::var(name) {
            Ok(value) => Ok(Some(value)),
            Err(std::env::VarError::NotPresent) => Ok(None),
            Err(std::env::VarError::NotUnicode(_)) => Err("it is not UTF-8 text".to_owned()),
        }
    }

    fn file(&self, path: &str) -> Result<String, String> {
        let most = config::VALUE_BYTES_MAX as u64 + 1;
        let file = Path::new(path);
        if super::is_special(file) {
            return Err("it is a pipe or a device".to_owned());
        }
        let mut bytes = Vec::new();
        let read = std::fs::File::open(file).and_then(|opened| opened.take(most).read_to_end(&mut bytes));
        read.map_err(|error| error.to_string())?;
        String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use config::NoVariables;

    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
            std::fs::write(path, text).expect("a file");
        }
        folder
    }

    fn names(folder: &tempfile::TempDir, given: &[&str]) -> Result<Vec<String>, String> {
        let given: Vec<PathBuf> = given.iter().map(|name| folder.path().join(name)).collect();
        let gathered = gather(&given, &NoVariables).map_err(|error| format!("{error:#}"))?;
        let short = |name: &str| {
            let root = format!("{}/", folder.path().display());
            name.strip_prefix(&root).unwrap_or(name).to_owned()
        };
        let mut names: Vec<String> = gathered.texts.iter().map(|text| short(&text.name)).collect();
        names.extend(gathered.mistakes.iter().map(|(file, mistake)| format!("{file}: {}", mistake.label)));
        Ok(names)
    }

    #[test]
    fn files_of_a_folder_are_read_in_order_of_names() {
        let folder = folder(&[
            ("conf.d/20.toml", ""),
            ("conf.d/10.yaml", ""),
            ("conf.d/.hidden.toml", ""),
            ("conf.d/README.md", ""),
            ("conf.d/more/30.toml", ""),
            ("a.toml", "include = [\"conf.d\"]"),
            ("empty/x.txt", ""),
        ]);
        let found = names(&folder, &["a.toml"]);
        assert_eq!(found, Ok(vec!["a.toml".into(), "conf.d/10.yaml".into(), "conf.d/20.toml".into()]));
        assert_eq!(
            names(&folder, &["conf.d", "a.toml"]).map(|names| names.len()),
            Ok(3),
            "each is read once"
        );
        assert!(names(&folder, &["empty"]).is_err_and(|error| error.contains("no file *.toml")));
    }

    #[test]
    fn an_included_file_that_is_missing_is_a_mistake_with_a_place() {
        let folder = folder(&[
            ("a.toml", "include = [\"b.toml\", \"a.toml\"]"),
            ("c.toml", "include = \"c.conf\""),
            ("c.conf", "cluster c forward a;"),
        ]);
        let found = names(&folder, &["a.toml"]).expect("it is read");
        assert!(found.len() == 2 && found[1].starts_with("0: cannot read"), "{found:?}");
        let found = names(&folder, &["c.toml"]).expect("it is read");
        assert!(found.len() == 2 && found[1].contains("carbon-c-relay"), "{found:?}");
        assert!(names(&folder, &["none.toml"]).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_in_a_folder_or_an_include_is_a_mistake_and_is_not_opened() {
        let folder = folder(&[
            ("a.toml", "include = \"conf.d\""),
            ("b.toml", "include = \"conf.d/x.toml\""),
            ("conf.d/a.toml", ""),
        ]);
        let made = std::process::Command::new("mkfifo").arg(folder.path().join("conf.d/x.toml")).status();
        assert!(made.is_ok_and(|status| status.success()), "there is mkfifo");
        for file in ["a.toml", "b.toml"] {
            let found = names(&folder, &[file]).expect("the file itself is read");
            assert!(found.last().is_some_and(|last| last.contains("is a pipe")), "{found:?}");
        }
        assert!(names(&folder, &["conf.d"]).is_err_and(|error| error.contains("is a pipe")));
    }

    #[test]
    fn a_config_has_a_limit_of_files() {
        let files: Vec<(String, &str)> = (0..FILES_MAX).map(|n| (format!("{n}.toml"), "")).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (&**name, *text)).collect();
        let folder = folder(&files);
        assert_eq!(names(&folder, &[""]).map(|names| names.len()), Ok(FILES_MAX));
        std::fs::write(folder.path().join("one-more.toml"), "").expect("a file");
        assert!(names(&folder, &[""]).is_err_and(|error| error.contains("256")));
    }

    #[test]
    fn variables_come_from_the_environment_and_from_files() {
        let folder = folder(&[("word", "s3cr3t\n")]);
        let path = folder.path().join("word").display().to_string();
        assert_eq!(OfProcess.file(&path).as_deref(), Ok("s3cr3t\n"));
        assert!(OfProcess.file("/dev/zero").is_err() && OfProcess.file("/none").is_err());
        assert!(OfProcess.environment("PATH").is_ok_and(|path| path.is_some()));
        assert_eq!(OfProcess.environment("STAUNCH_TEST_NOT_SET"), Ok(None));
    }
}

//! Reads files and the files that they include: each `include` is replaced by the statements of its file.
//!
//! The caller reads files and expands patterns; nothing here touches a disk. Depth, number and size of files are
//! limited, and a file that includes itself, directly or not, is an error with its place.

use super::mistakes::{FileText, Mistakes};
use super::syntax::{Statement, StatementKind, Word};
use super::{lexer, parser};
use config::diagnostic::Code;

/// Most files of one configuration.
pub const FILES_MAX: usize = 10_000;
/// Deepest `include` in an `include`.
pub const INCLUDE_DEPTH_MAX: usize = 32;
/// Most text of all files together, in bytes.
pub const TEXT_BYTES_MAX: usize = 64 << 20;

/// Access to files.
pub struct Files<'a> {
    /// The bytes of a file, or the system's error message.
    pub read: &'a dyn Fn(&str) -> Result<Vec<u8>, String>,
    /// Files that match a pattern (`*`, `?`, `[…]`), sorted as by the shell. Called for patterns only.
    pub matching: &'a dyn Fn(&str) -> Vec<String>,
}

/// Reads a file and all that it includes.
pub(super) fn statements(
    name: &str,
    files: &Files<'_>,
    mistakes: &mut Mistakes,
) -> (Vec<Statement>, Vec<FileText>) {
    let mut reader =
        Reader { files, texts: Vec::new(), open: Vec::new(), bytes: 0, statements: Vec::new(), mistakes };
    let names = if is_pattern(name) { (files.matching)(name) } else { vec![name.to_owned()] };
    if names.is_empty() {
        reader.texts.push(FileText { name: name.to_owned(), text: String::new() });
        reader.mistakes.whole(Code::IncludeUnread, format!("no file fits `{name}`")).hint("check the path");
    }
    for name in &names {
        if let Err(why) = reader.file(name) {
            reader.texts.push(FileText { name: name.clone(), text: String::new() });
            reader.mistakes.file = reader.texts.len() - 1;
            let message = format!("`{name}` cannot be read: {why}");
            let report = reader.mistakes.whole(Code::IncludeUnread, message);
            let report = report.hint("check the path and the rights of the user that runs this");
            report.upstream(format!("unable to open file '{name}': {why}"));
        }
    }
    (reader.statements, reader.texts)
}

struct Reader<'a, 'm> {
    files: &'a Files<'a>,
    texts: Vec<FileText>,
    /// Names of the files being read, the outermost first.
    open: Vec<String>,
    bytes: usize,
    statements: Vec<Statement>,
    mistakes: &'m mut Mistakes,
}

impl Reader<'_, '_> {
    /// Reads one file.
    ///
    /// # Errors
    /// The error message of the system or ours.
    fn file(&mut self, name: &str) -> Result<(), String> {
        let bytes = (self.files.read)(name)?;
        self.bytes += bytes.len();
        if self.bytes > TEXT_BYTES_MAX || self.texts.len() == FILES_MAX {
            return Err(format!(
                "all files together have at most {TEXT_BYTES_MAX} bytes, and are {FILES_MAX}"
            ));
        }
        // Comments may have other encodings; the lexer rejects them everywhere else.
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let file = self.texts.len();
        self.mistakes.file = file;
        let tokens = lexer::tokens(&text, self.mistakes);
        let statements = parser::statements(&text, &tokens, self.mistakes);
        self.texts.push(FileText { name: name.to_owned(), text });
        self.open.push(name.to_owned());
        for statement in statements {
            match statement.kind {
                StatementKind::Include(path) => self.include(&path),
                _ => self.statements.push(statement),
            }
        }
        self.open.pop();
        Ok(())
    }

    fn include(&mut self, path: &Word) {
        let names =
            if is_pattern(&path.text) { (self.files.matching)(&path.text) } else { vec![path.text.clone()] };
        if names.is_empty() {
            let message = format!("no file fits `{}`", path.text);
            self.mistakes.warning(Code::ImportNoEffect, path.span, message).label("includes nothing");
        }
        for name in names {
            let refused = if self.open.contains(&name) {
                Some(format!("`{name}` includes itself: {} -> {name}", self.open.join(" -> ")))
            } else if self.open.len() > INCLUDE_DEPTH_MAX {
                Some(format!("files include each other more than {INCLUDE_DEPTH_MAX} deep"))
            } else {
                self.file(&name).err().map(|why| format!("`{name}` cannot be read: {why}"))
            };
            if let Some(message) = refused {
                let report = self.mistakes.error(Code::IncludeUnread, path.span, message);
                let report = report.label("included here").upstream(format!("unable to open file '{name}'"));
                report.hint("paths are relative to the directory that the daemon is started in");
            }
        }
    }
}

/// Whether a path is a pattern.
fn is_pattern(path: &str) -> bool {
    path.contains(['*', '?', '['])
}

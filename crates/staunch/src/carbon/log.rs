//! The log of a daemon of carbon: in the background a file, in the foreground stderr, both in our format.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::OnceLock;

use anyhow::Context;
use client::stdio::wants_colour;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::carbon_c_relay::log_targets::ORIGINAL;
use crate::log_file::LogFile;
use crate::log_stream;

/// The file of the process.
static FILE: OnceLock<LogFile> = OnceLock::new();

/// Opens the log and makes it the log of the process. Without a file it is stderr.
///
/// # Errors
/// When the file cannot be opened or its folder not be created.
pub(super) fn start(file: Option<&Path>, level: &str) -> anyhow::Result<()> {
    if let Some(file) = file {
        if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        }
        let file = LogFile::open(file)?;
        // Once in the life of a process.
        let _again = FILE.set(file);
    }
    let filter = EnvFilter::try_from_env("STAUNCH_LOG").unwrap_or_else(|_unset| EnvFilter::new(level));
    let filter = match format!("{ORIGINAL}=off").parse() {
        Ok(directive) => filter.add_directive(directive),
        Err(_) => filter,
    };
    let colour = file.is_none() && wants_colour(std::io::stderr().is_terminal());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(Lines)
        .with_ansi(colour)
        .with_target(false)
        .init();
    Ok(())
}

/// Opens the file again, because another program may have renamed it.
pub(super) fn reopen() {
    if let Some(Err(error)) = FILE.get().map(LogFile::reopen) {
        tracing::error!("{error:#}");
    }
}

/// The destination of lines.
struct Lines;

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Lines;

    fn make_writer(&'a self) -> Lines {
        Lines
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match FILE.get() {
            Some(file) => file.write(bytes),
            None => log_stream::to_stderr(bytes),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

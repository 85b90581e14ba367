//! The options of whisper's scripts.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use client::args::{StoreDeleteArgs, StoreDrainArgs, StoreRenameArgs};
use graphite::query::time::{Clock, parse_time};
use jiff::tz::TimeZone;

use super::files::now;

/// `staunch whisper`
///
/// Look at, change and repair whisper files.
///
/// Each command is one of the scripts of Python's whisper library, with its options and output; a link named whisper-info.py or similar
/// is that command. Commands that change files also take a folder, and refuse one that a running daemon writes to.
#[derive(Clone, Debug, Args)]
pub(crate) struct WhisperArgs {
    /// The command.
    #[command(subcommand)]
    pub(super) verb: Verb,
}

/// The commands.
#[derive(Clone, Debug, Subcommand)]
pub(super) enum Verb {
    /// Create a file, or estimate the size of files.
    Create(Create),
    /// Show the header of a file, or of all files of a folder.
    Info(Info),
    /// Show the values of a time range.
    Fetch(Fetch),
    /// Show the header and every slot of all archives.
    Dump(Dump),
    /// Write points: TIME:VALUE, N for now.
    Update(Update),
    /// Give a file, or all of a folder, other archives.
    Resize(Resize),
    /// Copy points into a file with the same archives.
    Merge(Merge),
    /// Copy points only where the other file has none.
    Fill(Fill),
    /// Show the points that differ between two files.
    Diff(Diff),
    /// Change how points are aggregated.
    #[command(alias = "set-aggregation-method")]
    SetAggregation(SetAggregation),
    /// Change the xFilesFactor.
    #[command(alias = "set-xfilesfactor")]
    SetXff(SetXff),
    /// Delete series of a running daemon, with their files.
    Delete(StoreDeleteArgs),
    /// Rename a series, or all of a branch, of a running daemon.
    Rename(StoreRenameArgs),
    /// Have a running daemon write all points to their files.
    Drain(StoreDrainArgs),
}

/// `staunch whisper create`
#[derive(Clone, Debug, Args)]
pub(super) struct Create {
    /// File and archives, or with --estimate archives only: 60:1440, 15m:8, 1h:7d.
    #[arg(required = true, value_name = "PATH STEP:LENGTH")]
    pub(super) words: Vec<String>,
    /// Least share of known points for a coarser one.
    #[arg(long = "xFilesFactor", value_name = "FACTOR", default_value_t = 0.5)]
    pub(super) x_files_factor: f32,
    /// How points become a coarser one.
    #[arg(long = "aggregationMethod", value_name = "METHOD", default_value = "average")]
    pub(super) method: String,
    /// Replace an existing file.
    #[arg(long)]
    pub(super) overwrite: bool,
    /// Create nothing, show sizes.
    #[arg(long)]
    pub(super) estimate: bool,
    /// Take blocks of the disk when points are written.
    #[arg(long, conflicts_with = "fallocate")]
    pub(super) sparse: bool,
    /// Let the file system reserve the space.
    #[arg(long)]
    pub(super) fallocate: bool,
}

/// `staunch whisper info`
#[derive(Clone, Debug, Args)]
pub(super) struct Info {
    /// A file or a folder.
    pub(super) path: PathBuf,
    /// Only this field, such as maxRetention.
    pub(super) field: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

/// How times are printed.
#[derive(Clone, Debug, Args)]
pub(super) struct Times {
    /// Show times for people, in the zone of this machine.
    #[arg(long)]
    pub(super) pretty: bool,
    /// Form of times with --pretty, as in strftime(3).
    #[arg(short = 't', long = "time-format", value_name = "FORM")]
    pub(super) form: Option<String>,
}

/// Values that are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Drop {
    /// Zeros.
    Zeroes,
    /// What is not known.
    Nulls,
    /// Both.
    Empty,
}

/// `staunch whisper fetch`
#[derive(Clone, Debug, Args)]
pub(super) struct Fetch {
    /// The file.
    pub(super) path: PathBuf,
    /// Begin: Unix seconds, or as in /render, such as -1h [default: 24 hours ago].
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = time)]
    pub(super) from: Option<i64>,
    /// End [default: now].
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = time)]
    pub(super) until: Option<i64>,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
    /// Times.
    #[command(flatten)]
    pub(super) times: Times,
    /// Leave out: zeroes, nulls, or empty for both.
    #[arg(long, value_name = "WHAT")]
    pub(super) drop: Option<Drop>,
}

/// `staunch whisper dump`
#[derive(Clone, Debug, Args)]
pub(super) struct Dump {
    /// The file.
    pub(super) path: PathBuf,
    /// Times.
    #[command(flatten)]
    pub(super) times: Times,
    /// Only TIME:VALUE, as `update` reads it.
    #[arg(short, long)]
    pub(super) raw: bool,
}

/// `staunch whisper update`
#[derive(Clone, Debug, Args)]
pub(super) struct Update {
    /// The file.
    pub(super) path: PathBuf,
    /// Points, TIME:VALUE; without any they are read from stdin, one on each line.
    #[arg(value_name = "TIME:VALUE", allow_hyphen_values = true)]
    pub(super) points: Vec<String>,
}

/// `staunch whisper resize`
#[derive(Clone, Debug, Args)]
pub(super) struct Resize {
    /// A file or a folder.
    pub(super) path: PathBuf,
    /// The archives: 60:1440, 15m:8, 1h:7d.
    #[arg(required = true, value_name = "STEP:LENGTH")]
    pub(super) archives: Vec<String>,
    /// Another xFilesFactor.
    #[arg(long = "xFilesFactor", value_name = "FACTOR")]
    pub(super) x_files_factor: Option<f32>,
    /// Another method.
    #[arg(long = "aggregationMethod", value_name = "METHOD")]
    pub(super) method: Option<String>,
    /// Accepted; nothing is asked.
    #[arg(long, hide = true)]
    pub(super) force: bool,
    /// Write here, and leave the file as it is.
    #[arg(long, value_name = "FILE")]
    pub(super) newfile: Option<PathBuf>,
    /// Keep no FILE.bak.
    #[arg(long)]
    pub(super) nobackup: bool,
    /// Aggregate old points to the new steps.
    #[arg(long)]
    pub(super) aggregate: bool,
}

/// `staunch whisper merge`
#[derive(Clone, Debug, Args)]
pub(super) struct Merge {
    /// A file or a folder.
    pub(super) source: PathBuf,
    /// The file or folder that gets the points.
    pub(super) target: PathBuf,
    /// Begin, in Unix seconds.
    #[arg(long, value_name = "TIME")]
    pub(super) from: Option<i64>,
    /// End, in Unix seconds.
    #[arg(long, value_name = "TIME")]
    pub(super) until: Option<i64>,
}

/// `staunch whisper fill`
#[derive(Clone, Debug, Args)]
pub(super) struct Fill {
    /// A file or a folder.
    pub(super) source: PathBuf,
    /// The file or folder that gets the points.
    pub(super) target: PathBuf,
    /// Accepted; files are always locked.
    #[arg(long)]
    pub(super) lock: bool,
}

/// `staunch whisper diff`
#[derive(Clone, Debug, Args)]
pub(super) struct Diff {
    /// The first file.
    pub(super) left: PathBuf,
    /// The second file.
    pub(super) right: PathBuf,
    /// Only the numbers of points.
    #[arg(long)]
    pub(super) summary: bool,
    /// Only times at which both files have a value.
    #[arg(long)]
    pub(super) ignore_empty: bool,
    /// Columns without padding.
    #[arg(long)]
    pub(super) columns: bool,
    /// No headings.
    #[arg(long)]
    pub(super) no_headers: bool,
    /// End, in Unix seconds.
    #[arg(long, value_name = "TIME")]
    pub(super) until: Option<i64>,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

/// `staunch whisper set-aggregation`
#[derive(Clone, Debug, Args)]
pub(super) struct SetAggregation {
    /// A file or a folder.
    pub(super) path: PathBuf,
    /// average, sum, last, max, min, avg_zero, absmax or absmin.
    pub(super) method: String,
    /// Another xFilesFactor.
    #[arg(value_name = "XFILESFACTOR")]
    pub(super) x_files_factor: Option<f32>,
}

/// `staunch whisper set-xff`
#[derive(Clone, Debug, Args)]
pub(super) struct SetXff {
    /// A file or a folder.
    pub(super) path: PathBuf,
    /// From 0 to 1.
    #[arg(value_name = "XFILESFACTOR")]
    pub(super) x_files_factor: f32,
}

/// A time as Unix seconds: a number is one, everything else is read as /render reads it, in the zone of this machine.
fn time(text: &str) -> Result<i64, String> {
    time_at(text, &Clock { now: now(), zone: &TimeZone::system() })
}

fn time_at(text: &str, clock: &Clock<'_>) -> Result<i64, String> {
    // Before the forms of /render, where eight digits may be a date.
    text.parse().or_else(|_| parse_time(text, clock).map_err(|error| error.to_string()))
}

#[test]
fn times_are_unix_seconds_or_forms_of_render() {
    let clock = Clock { now: 1_700_000_000, zone: &TimeZone::UTC };
    for (text, want) in [
        ("1699990000", Some(1_699_990_000)),
        ("20231114", Some(20_231_114)),
        ("-5", Some(-5)),
        ("-1h", Some(1_699_996_400)),
        ("now", Some(1_700_000_000)),
        ("00:00_20231114", Some(1_699_920_000)),
        ("yesteryear", None),
    ] {
        assert_eq!(time_at(text, &clock).ok(), want, "{text}");
    }
}

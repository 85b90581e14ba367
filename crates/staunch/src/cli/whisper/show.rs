//! `info`, `fetch` and `dump`.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;
use graphite::query::numbers::{general, repr};
use graphite::whisper::Archive;
use graphite::whisper::tools::{Info as About, info as info_of};

use super::args::{Drop, Dump, Fetch, Info};
use super::files::{Deed, Outcome, each, now, to_read};
use super::python::{exact, fixed, optional, time};
use crate::cli::MISTAKES;
use client::stdio;

/// `staunch whisper info`
pub(super) fn info(args: &Info) -> anyhow::Result<ExitCode> {
    if args.path.is_dir() {
        return each(&args.path, Deed::Shows, |file| {
            stdio::data(row(file, &info_of(&to_read(&args.path.join(file))?)?).as_bytes())?;
            Ok(Outcome::Done)
        });
    }
    let about = info_of(&to_read(&args.path)?)?;
    let out = match &args.field {
        Some(name) => match field(&about, name) {
            Some(value) => value + "\n",
            None => {
                let known = FIELDS.join(",");
                stdio::data(format!("Unknown field \"{name}\". Valid fields are {known}\n").as_bytes())?;
                return Ok(ExitCode::from(MISTAKES));
            }
        },
        None if args.json => as_json(&about),
        None => as_text(&about),
    };
    stdio::data(out.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// The fields of a header, in the script's order.
const FIELDS: [&str; 5] = ["aggregationMethod", "maxRetention", "xFilesFactor", "archives", "fileSize"];

/// A line for a file of a folder.
fn row(file: &Path, about: &About) -> String {
    let header = &about.header;
    let archives: Vec<String> =
        header.archives().iter().map(|one| format!("{}:{}", one.step, one.points)).collect();
    let (method, factor) = (header.method.name(), general(f64::from(header.x_files_factor)));
    format!("{} {method} {factor} {} {}\n", file.display(), archives.join(","), about.bytes)
}

/// One field as Python prints it.
fn field(about: &About, name: &str) -> Option<String> {
    let header = &about.header;
    Some(match name {
        "aggregationMethod" => header.method.name().to_owned(),
        "maxRetention" => header.retention().to_string(),
        "xFilesFactor" => repr(f64::from(header.x_files_factor)),
        "fileSize" => about.bytes.to_string(),
        "archives" => {
            let one = |archive: &Archive| {
                let members = members(archive).map(|(name, value)| format!("'{name}': {value}"));
                format!("{{{}}}", members.join(", "))
            };
            format!("[{}]", header.archives().iter().map(one).collect::<Vec<_>>().join(", "))
        }
        _ => return None,
    })
}

/// The members of an archive, in the script's order.
fn members(archive: &Archive) -> [(&'static str, u64); 5] {
    [
        ("offset", u64::from(archive.offset)),
        ("secondsPerPoint", u64::from(archive.step)),
        ("points", u64::from(archive.points)),
        ("retention", archive.retention().unsigned_abs()),
        ("size", archive.bytes()),
    ]
}

fn as_json(about: &About) -> String {
    let one = |archive: &Archive| {
        let members = members(archive).map(|(name, value)| format!("      \"{name}\": {value}"));
        format!("    {{\n{}\n    }}", members.join(",\n"))
    };
    let archives: Vec<String> = about.header.archives().iter().map(one).collect();
    let rows = FIELDS.map(|name| {
        let value = match name {
            "archives" => format!("[\n{}\n  ]", archives.join(",\n")),
            "aggregationMethod" => format!("\"{}\"", about.header.method.name()),
            _ => field(about, name).unwrap_or_default(),
        };
        format!("  \"{name}\": {value}")
    });
    format!("{{\n{}\n}}\n", rows.join(",\n"))
}

fn as_text(about: &About) -> String {
    let mut out = String::new();
    for name in FIELDS.iter().filter(|name| **name != "archives") {
        let _ = writeln!(out, "{name}: {}", field(about, name).unwrap_or_default());
    }
    out.push('\n');
    for (number, archive) in about.header.archives().iter().enumerate() {
        let _ = writeln!(out, "Archive {number}");
        for (name, value) in members(archive) {
            let _ = writeln!(out, "{name}: {value}");
        }
        out.push('\n');
    }
    out
}

/// Most points of a range: some gigabytes of text.
const FETCHED_POINTS_MAX: u64 = 50_000_000;

/// `staunch whisper fetch`
pub(super) fn fetch(args: &Fetch) -> anyhow::Result<ExitCode> {
    let now = now();
    let file = to_read(&args.path)?;
    let (from, until) = (args.from.unwrap_or(now - 86_400), args.until.unwrap_or(now));
    let range = file.header().range(from, until, now).map_err(|error| named(&args.path, error))?;
    let Some(range) = range else { bail!("No data in selected timerange") };
    if range.points() > FETCHED_POINTS_MAX {
        let points = range.points();
        bail!(
            "the range has {points} points, and at most {FETCHED_POINTS_MAX} are fetched: narrow it with --from and --until"
        );
    }
    let fetched = file.fetch_range(range).map_err(|error| named(&args.path, error))?;
    let keeps = |value: &Option<f64>| match args.drop {
        None => true,
        Some(Drop::Zeroes) => *value != Some(0.0),
        Some(Drop::Nulls) => value.is_some(),
        Some(Drop::Empty) => value.is_some_and(|value| value != 0.0),
    };
    let times = (fetched.start..).step_by(fetched.step as usize);
    let kept = times.zip(&fetched.values).filter(|(_, value)| keeps(value));
    let mut out = String::new();
    if args.json {
        let values: Vec<String> = kept.map(|(_, value)| optional(*value).replace("None", "null")).collect();
        let (start, end, step) = (fetched.start, fetched.end, fetched.step);
        let values = values.join(", ");
        let _ = write!(
            out,
            "{{\n    \"start\" : {start},\n    \"end\" : {end},\n    \"step\" : {step},\n    \"values\" : [{values}]\n  }}\n"
        );
    } else {
        for (at, value) in kept {
            let value = value.map_or_else(|| "None".to_owned(), fixed);
            let _ = writeln!(out, "{}\t{value}", time(at, &args.times)?);
        }
    }
    stdio::data(out.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn named(path: &Path, error: impl std::fmt::Display) -> anyhow::Error {
    anyhow::anyhow!("{}: {error}", path.display())
}

/// Text is printed when there is so much of it: a file may have gigabytes.
const PRINTED_BYTES: usize = 1 << 20;

/// False when nobody reads any more.
fn push_slot(args: &Dump, (slot, at, value): (u32, u32, f64), out: &mut String) -> anyhow::Result<bool> {
    let shown = time(i64::from(at), &args.times)?;
    let _ = match args.raw {
        true => writeln!(out, "{shown}:{}", exact(value)),
        false => writeln!(out, "{slot}: {shown}, {:>10}", exact(value)),
    };
    if out.len() >= PRINTED_BYTES {
        return Ok(stdio::data(std::mem::take(out).as_bytes())?);
    }
    Ok(true)
}

/// `staunch whisper dump`
pub(super) fn dump(args: &Dump) -> anyhow::Result<ExitCode> {
    let file = to_read(&args.path)?;
    let header = file.header();
    let mut out = String::new();
    if !args.raw {
        let _ = write!(
            out,
            "Meta data:\n  aggregation method: {}\n  max retention: {}\n  xFilesFactor: {}\n\n",
            header.method.name(),
            header.retention(),
            general(f64::from(header.x_files_factor))
        );
        for (number, one) in header.archives().iter().enumerate() {
            let _ = write!(
                out,
                "Archive {number} info:\n  offset: {}\n  seconds per point: {}\n  points: {}\n  retention: {}\n  size: {}\n\n",
                one.offset,
                one.step,
                one.points,
                one.retention(),
                one.bytes()
            );
        }
    }
    for number in 0..header.archives().len() {
        if !args.raw {
            let _ = writeln!(out, "Archive {number} data:");
        }
        let mut done = Ok(true);
        let slots = file.each_slot(number, |slot, at, value| {
            done = push_slot(args, (slot, at, value), &mut out);
            matches!(done, Ok(true))
        });
        slots.map_err(|error| named(&args.path, error))?;
        let is_read = done? && stdio::data(std::mem::take(&mut out).as_bytes())?;
        if !is_read {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}

//! Whisper calls on real files, as commanded on standard input; used by `compat/whisper.py`.
//!
//! `create PATH SPACE METHOD FACTOR STEP:POINTS,…`   SPACE: zeros, sparse, allocate
//! `update PATH NOW TIME VALUE`                      values are the 16 hexadecimal digits of a double
//! `many PATH NOW MODE TIME=VALUE,…`                 MODE: original or ours
//! `fetch PATH NOW FROM UNTIL [STEP]`
//! `merge SOURCE TARGET NOW FROM UNTIL`              `-` for a time that is not given
//! `diff LEFT RIGHT NOW UNTIL both|any`
//! `method PATH METHOD`, `factor PATH FACTOR`
//! `resize PATH NOW METHOD FACTOR STEP:POINTS,…`
//! `fill SOURCE TARGET NOW FROM UNTIL`
//! `retention TEXT`, `path NAME`
//! `pattern NAME REGEX`                              1 or 0: whether the expression is found in the name
//!
//! Each command has one line of answer: `ok`, with results if there are any, or `error` with the reason.
#![allow(clippy::print_stdout, reason = "an example prints to its user")]

mod files;

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, BufRead, Write as _};
use std::sync::Arc;

use files::{Files, RealFile};
use graphite::whisper::rules::Patterns;
use graphite::whisper::tools::{self, DiffOptions, Migration};
use graphite::whisper::{
    AggregationMethod, Fetched, Header, Layout, Point, Scratch, Space, UpdateOptions, WhisperFile, Written,
    create_in, names, parse_retention, parse_retentions,
};
use model::FileTree as _;

type Answer = Result<String, Box<dyn std::error::Error>>;

/// The words of a command, taken one after the other.
struct Words<'w> {
    words: VecDeque<&'w str>,
}

impl<'w> Words<'w> {
    fn next(&mut self) -> Result<&'w str, String> {
        self.words.pop_front().ok_or_else(|| "a word is missing".to_owned())
    }

    fn time(&mut self) -> Result<i64, Box<dyn std::error::Error>> {
        Ok(self.next()?.parse()?)
    }

    fn optional_time(&mut self) -> Result<Option<i64>, Box<dyn std::error::Error>> {
        let word = self.next()?;
        Ok(if word == "-" { None } else { Some(word.parse()?) })
    }

    fn value(&mut self) -> Result<f64, Box<dyn std::error::Error>> {
        value(self.next()?)
    }

    fn method(&mut self) -> Result<AggregationMethod, Box<dyn std::error::Error>> {
        Ok(AggregationMethod::of_name(self.next()?).ok_or("no such method")?)
    }

    fn header(&mut self) -> Result<Arc<Header>, Box<dyn std::error::Error>> {
        let (method, factor) = (self.method()?, self.next()?.parse()?);
        let layout = Layout::new(&parse_retentions(self.next()?)?)?;
        Ok(Arc::new(Header::new(&layout, method, factor)?))
    }

    fn open(&mut self) -> Result<WhisperFile<RealFile>, Box<dyn std::error::Error>> {
        Ok(WhisperFile::open(Files::here().open(self.next()?)?)?)
    }
}

fn value(digits: &str) -> Result<f64, Box<dyn std::error::Error>> {
    Ok(f64::from_bits(u64::from_str_radix(digits, 16)?))
}

fn shown(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{:016x}", value.to_bits()))
}

fn counts(written: Written) -> String {
    let Written { written, duplicate, same_slot, too_old, in_future, .. } = written;
    format!("{written} {duplicate} {same_slot} {too_old} {in_future}")
}

fn fetched(found: Option<Fetched>) -> String {
    let Some(Fetched { start, end, step, values }) = found else { return "none".to_owned() };
    let mut text = format!("{start} {end} {step}");
    for value in values {
        let _ = write!(text, " {}", shown(value));
    }
    text
}

fn changes(command: &str, words: &mut Words<'_>) -> Answer {
    let scratch = &mut Scratch::default();
    Ok(match command {
        "create" => {
            let (path, space) = (words.next()?, words.next()?);
            let space = match space {
                "sparse" => Space::Sparse,
                "allocate" => Space::Allocate,
                _ => Space::Zeros,
            };
            create_in(&Files::here(), path, &words.header()?, space)?;
            String::new()
        }
        "update" => {
            let (mut file, now) = (words.open()?, words.time()?);
            let point = Point { time: words.time()?, value: words.value()? };
            file.update(point, now, scratch).map(counts)?
        }
        "many" => {
            let (mut file, now) = (words.open()?, words.time()?);
            let options =
                if words.next()? == "original" { UpdateOptions::ORIGINAL } else { UpdateOptions::default() };
            let mut points = Vec::new();
            for pair in words.next()?.split(',').filter(|pair| !pair.is_empty()) {
                let (time, digits) = pair.split_once('=').ok_or("a point without `=`")?;
                points.push(Point { time: time.parse()?, value: value(digits)? });
            }
            file.update_many(&mut points, now, &options, scratch).map(counts)?
        }
        "merge" | "fill" => {
            let (source, mut target, now) = (words.open()?, words.open()?, words.time()?);
            let (from, until) = (words.optional_time()?, words.optional_time()?);
            if command == "merge" {
                tools::merge(&source, &mut target, from, until, now, scratch).map(counts)?
            } else {
                let (from, until) = (from.unwrap_or(0), until.unwrap_or(now));
                tools::fill(&source, &mut target, from, until, now, scratch).map(counts)?
            }
        }
        "method" => words.open()?.set_method(words.method()?)?.to_string(),
        "factor" => {
            let before = words.open()?.set_x_files_factor(words.next()?.parse()?)?;
            before.ok_or("not between 0 and 1")?.to_string()
        }
        "resize" => {
            let (path, now) = (words.next()?, words.time()?);
            let header = words.header()?;
            tools::resize_in(&Files::here(), path, &header, Space::Zeros, Migration::Copy, now).map(counts)?
        }
        _ => return Err(format!("no command {command:?}").into()),
    })
}

fn answer(line: &str) -> Answer {
    let mut words = Words { words: line.split(' ').collect() };
    let command = words.next()?;
    Ok(match command {
        "fetch" => {
            let (file, now) = (words.open()?, words.time()?);
            let (from, until) = (words.time()?, words.time()?);
            match words.next() {
                Ok(step) => fetched(file.fetch_step(step.parse()?, from, until, now)?),
                Err(_) => fetched(file.fetch(from, until, now)?),
            }
        }
        "diff" => {
            let (left, right, now) = (words.open()?, words.open()?, words.time()?);
            let until = words.optional_time()?;
            let options = DiffOptions { ignore_empty: words.next()? == "both", until };
            let mut text = String::new();
            for archive in tools::diff(&left, &right, options, now)? {
                let _ = write!(text, "{}:", archive.compared);
                for found in archive.differences {
                    let _ = write!(text, "{}={}={},", found.time, shown(found.left), shown(found.right));
                }
                text.push(' ');
            }
            text.trim_end().to_owned()
        }
        "retention" => parse_retention(line.trim_start_matches("retention "))?.to_string(),
        "pattern" => {
            let (name, pattern) = (words.next()?, line.splitn(3, ' ').nth(2).unwrap_or_default());
            let found = Patterns::new([pattern].into_iter())?.first_in(name.as_bytes());
            u8::from(found.is_some()).to_string()
        }
        "path" => names::path_of(line.trim_start_matches("path ").as_bytes(), Default::default())?.path,
        _ => changes(command, &mut words)?,
    })
}

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        match answer(&line?) {
            Ok(text) => writeln!(out, "ok {text}")?,
            Err(error) => writeln!(out, "error {error}")?,
        }
        out.flush()?;
    }
    Ok(())
}

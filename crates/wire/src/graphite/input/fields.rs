//! Splits a line into its three fields, as carbon, go-carbon and the strict mode do (spec graphite §1.1, §1.1.1,
//! §1.1.3).
//!
//! Not here: carbon-c-relay mode, which does not parse fields (`relay`); validating the name (`name`).

use memchr::memchr2;
use model::Reject;

use super::name;
use super::number::{self, Number};
use super::options::{Compatibility, Options};
use super::parsed::Parts;

/// The fields of a line. `None` as time: the field is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fields<'a> {
    name: &'a [u8],
    value: &'a [u8],
    time: Option<&'a [u8]>,
}

/// Appends `line` in its final form without LF: name, sorted tags, value and time as text, separated by one space.
pub(super) fn read(options: &Options, line: &[u8], now_s: u64, out: &mut Vec<u8>) -> Result<Parts, Reject> {
    let fields = match options.compatibility {
        Compatibility::GoCarbon => split_go(line)?,
        Compatibility::Carbon => {
            let text = std::str::from_utf8(line).map_err(|_| Reject::NotUtf8)?;
            three(text.split(is_python_blank).filter(|field| !field.is_empty()).map(str::as_bytes))?
        }
        Compatibility::Strict | Compatibility::CRelay => {
            std::str::from_utf8(line).map_err(|_| Reject::NotUtf8)?;
            three(Blanks(line))?
        }
    };
    check_value(options.compatibility, fields.value)?;
    let time = match fields.time {
        Some(time) => read_time(options.compatibility, time)?,
        None if options.missing_time_is_now => Time::Now,
        None => return Err(Reject::NoTimestamp),
    };
    let parts = name::write(options, fields.name, out)?;
    out.push(b' ');
    out.extend_from_slice(fields.value);
    out.push(b' ');
    match time {
        Time::AsSent(text) => out.extend_from_slice(text),
        Time::Now => out.extend_from_slice(itoa::Buffer::new().format(now_s).as_bytes()),
    }
    Ok(parts)
}

/// Iterates over the texts between runs of spaces and tabs.
struct Blanks<'a>(&'a [u8]);

impl<'a> Iterator for Blanks<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        while let [b' ' | b'\t', rest @ ..] = self.0 {
            self.0 = rest;
        }
        let (field, rest) = self.0.split_at(memchr2(b' ', b'\t', self.0).unwrap_or(self.0.len()));
        self.0 = rest;
        (!field.is_empty()).then_some(field)
    }
}

/// White space of Python's `split`.
fn is_python_blank(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

fn three<'a>(mut fields: impl Iterator<Item = &'a [u8]>) -> Result<Fields<'a>, Reject> {
    let name = fields.next().ok_or(Reject::NoName)?;
    let value = fields.next().ok_or(Reject::NoValue)?;
    let time = fields.next();
    if fields.next().is_some() { Err(Reject::TooManyFields) } else { Ok(Fields { name, value, time }) }
}

/// Exactly one space between fields: a second one makes an empty field.
fn split_go(line: &[u8]) -> Result<Fields<'_>, Reject> {
    let mut fields = line.splitn(3, |byte| *byte == b' ');
    let name = fields.next().unwrap_or_default();
    let value = fields.next().unwrap_or_default();
    let time = fields.next();
    if name.is_empty() {
        Err(Reject::NoName)
    } else if value.is_empty() {
        Err(Reject::NoValue)
    } else if time.is_some_and(|time| time.contains(&b' ')) {
        Err(Reject::TooManyFields)
    } else {
        Ok(Fields { name, value, time })
    }
}

/// Carbon and go-carbon store infinities. By default we reject them: they break every later computation on the series.
fn check_value(compatibility: Compatibility, text: &[u8]) -> Result<(), Reject> {
    if number::is_plain(text) {
        return Ok(());
    }
    match (number::read(text).ok_or(Reject::BadValue)?, compatibility) {
        (Number::Finite(_), _) | (Number::Infinite, Compatibility::Carbon | Compatibility::GoCarbon) => {
            Ok(())
        }
        // Infinite in Python, an error in Go.
        (Number::Overflow, Compatibility::Carbon) => Ok(()),
        _ => Err(Reject::NonFinite),
    }
}

enum Time<'a> {
    AsSent(&'a [u8]),
    Now,
}

/// Parses a time in Unix seconds. A value that truncates to -1 means now, except in go-carbon.
fn read_time(compatibility: Compatibility, text: &[u8]) -> Result<Time<'_>, Reject> {
    if number::is_plain(text) {
        return Ok(Time::AsSent(text));
    }
    let Some(Number::Finite(time)) = number::read(text) else { return Err(Reject::BadTimestamp) };
    match compatibility {
        Compatibility::GoCarbon => Ok(Time::AsSent(text)),
        _ if time.trunc() == -1.0 => Ok(Time::Now),
        Compatibility::Strict if time < 0.0 => Err(Reject::BadTimestamp),
        _ => Ok(Time::AsSent(text)),
    }
}

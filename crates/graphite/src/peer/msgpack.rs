//! Answers in msgpack: lists of maps (spec graphite §6.3, §6.6).

use std::fmt;

use rmp_serde::Deserializer;
use serde::Deserialize;
use serde::de::{Error, SeqAccess, Visitor};

use super::{BadAnswer, charge, fetched, malformed};
use crate::query::{Fetched, Room};

/// Most values of one series: more than any request may have.
const VALUES_MAX: usize = 50_000_000;

/// Deepest nesting of an answer: what we do not read is skipped by recursion.
const DEPTH_MAX: usize = 16;

/// One series. What else a node gives about it (its expression, its consolidation) follows from the request.
#[derive(Deserialize)]
struct Row {
    name: String,
    start: i64,
    step: i64,
    values: Values,
}

#[derive(Deserialize)]
struct PathRow {
    path: String,
    is_leaf: bool,
}

/// Values; NaN for those that are not known.
struct Values(Vec<f64>);

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Values, D::Error> {
        from.deserialize_seq(ValuesVisitor)
    }
}

struct ValuesVisitor;

impl<'de> Visitor<'de> for ValuesVisitor {
    type Value = Values;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a list of numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Values, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element::<Option<f64>>()? {
            if values.len() >= VALUES_MAX {
                return Err(A::Error::custom("a series has too many values"));
            }
            values.push(value.unwrap_or(f64::NAN));
        }
        Ok(Values(values))
    }
}

/// Rows of an answer, one after the other.
fn rows<R: for<'de> Deserialize<'de>>(
    answer: &[u8],
    mut row: impl FnMut(R) -> Result<(), BadAnswer>,
) -> Result<(), BadAnswer> {
    let mut rest = answer;
    let count = rmp::decode::read_array_len(&mut rest).map_err(malformed)?;
    let mut rows = Deserializer::new(rest);
    rows.set_max_depth(DEPTH_MAX);
    for _ in 0..count {
        row(R::deserialize(&mut rows).map_err(malformed)?)?;
    }
    Ok(())
}

pub(super) fn series(answer: &[u8], mut room: Room) -> Result<Vec<Fetched>, BadAnswer> {
    let mut all = Vec::new();
    rows(answer, |row: Row| {
        charge(&mut room, row.values.0.len())?;
        all.extend(fetched(row.name, (row.start, row.step), row.values.0)?);
        Ok(())
    })?;
    Ok(all)
}

pub(super) fn paths(
    answer: &[u8],
    mut push: impl FnMut(String, bool) -> Result<(), BadAnswer>,
) -> Result<(), BadAnswer> {
    rows(answer, |row: PathRow| push(row.path, row.is_leaf))
}

//! Answers in msgpack: lists of maps (spec graphite §6.3, §6.6).

use rmp::Marker;
use rmp::decode;

use super::received::{BadAnswer, charge, fetched, malformed};
use crate::query::{Fetched, Room};

/// Most values of one series: more than any request may have.
const VALUES_MAX: u32 = 50_000_000;

/// What is left of an answer.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], BadAnswer> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(|| malformed("it is cut off"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn list(&mut self) -> Result<u32, BadAnswer> {
        decode::read_array_len(&mut self.0).map_err(malformed)
    }

    fn text(&mut self) -> Result<&'a str, BadAnswer> {
        let length = decode::read_str_len(&mut self.0).map_err(malformed)?;
        std::str::from_utf8(self.take(length as usize)?).map_err(malformed)
    }

    fn whole(&mut self) -> Result<i64, BadAnswer> {
        decode::read_int(&mut self.0).map_err(malformed)
    }

    fn flag(&mut self) -> Result<bool, BadAnswer> {
        decode::read_bool(&mut self.0).map_err(malformed)
    }

    /// A float or an integer; NaN for none.
    fn value(&mut self) -> Result<f64, BadAnswer> {
        let marker = self.0.first().map(|byte| Marker::from_u8(*byte));
        match marker {
            Some(Marker::Null) => decode::read_nil(&mut self.0).map(|()| f64::NAN).map_err(malformed),
            Some(Marker::F64) => decode::read_f64(&mut self.0).map_err(malformed),
            Some(Marker::F32) => decode::read_f32(&mut self.0).map(f64::from).map_err(malformed),
            Some(Marker::U64) => decode::read_u64(&mut self.0).map(|whole| whole as f64).map_err(malformed),
            _ => self.whole().map(|whole| whole as f64),
        }
    }

    /// Passes over anything. Without recursion: nesting costs no memory, and each element is at least one byte.
    fn skip(&mut self) -> Result<(), BadAnswer> {
        let mut left = 1_u64;
        while left > 0 {
            left -= 1;
            let marker = decode::read_marker(&mut self.0).map_err(|error| malformed(error.0))?;
            let (bytes, inner) = match marker {
                Marker::FixPos(_) | Marker::FixNeg(_) | Marker::Null | Marker::True | Marker::False => (0, 0),
                Marker::Reserved => return Err(malformed("it has a reserved byte")),
                Marker::U8 | Marker::I8 => (1, 0),
                Marker::U16 | Marker::I16 => (2, 0),
                Marker::U32 | Marker::I32 | Marker::F32 => (4, 0),
                Marker::U64 | Marker::I64 | Marker::F64 => (8, 0),
                Marker::FixExt1 => (2, 0),
                Marker::FixExt2 => (3, 0),
                Marker::FixExt4 => (5, 0),
                Marker::FixExt8 => (9, 0),
                Marker::FixExt16 => (17, 0),
                Marker::FixStr(length) => (u64::from(length), 0),
                Marker::Str8 | Marker::Bin8 => (self.length(1)?, 0),
                Marker::Str16 | Marker::Bin16 => (self.length(2)?, 0),
                Marker::Str32 | Marker::Bin32 => (self.length(4)?, 0),
                Marker::Ext8 => (self.length(1)? + 1, 0),
                Marker::Ext16 => (self.length(2)? + 1, 0),
                Marker::Ext32 => (self.length(4)? + 1, 0),
                Marker::FixArray(count) => (0, u64::from(count)),
                Marker::Array16 => (0, self.length(2)?),
                Marker::Array32 => (0, self.length(4)?),
                Marker::FixMap(count) => (0, 2 * u64::from(count)),
                Marker::Map16 => (0, 2 * self.length(2)?),
                Marker::Map32 => (0, 2 * self.length(4)?),
            };
            self.take(usize::try_from(bytes).map_err(malformed)?)?;
            left = left.saturating_add(inner);
        }
        Ok(())
    }

    /// A length of so many bytes.
    fn length(&mut self, bytes: usize) -> Result<u64, BadAnswer> {
        Ok(self.take(bytes)?.iter().fold(0, |length, byte| length << 8 | u64::from(*byte)))
    }

    /// Calls `of` for each key of a map, which reads its value or leaves it.
    fn map(
        &mut self,
        mut of: impl FnMut(&str, &mut Rest<'a>) -> Result<bool, BadAnswer>,
    ) -> Result<(), BadAnswer> {
        for _ in 0..decode::read_map_len(&mut self.0).map_err(malformed)? {
            let key = self.text()?;
            if !of(key, self)? {
                self.skip()?;
            }
        }
        Ok(())
    }
}

fn missing(key: &str) -> BadAnswer {
    malformed(format_args!("an element has no `{key}`"))
}

/// The series. What else a node gives about them (expression, consolidation) follows from the request.
pub(super) fn series(answer: &[u8], mut room: Room) -> Result<Vec<Fetched>, BadAnswer> {
    let mut rest = Rest(answer);
    let mut all = Vec::new();
    for _ in 0..rest.list()? {
        let (mut name, mut start, mut step, mut values) = (None, None, None, None);
        rest.map(|key, rest| {
            match key {
                "name" => name = Some(rest.text()?.to_owned()),
                "start" => start = Some(rest.whole()?),
                "step" => step = Some(rest.whole()?),
                "values" => values = Some(values_of(rest)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let values = values.ok_or_else(|| missing("values"))?;
        charge(&mut room, values.len())?;
        let times = (start.ok_or_else(|| missing("start"))?, step.ok_or_else(|| missing("step"))?);
        all.extend(fetched(name.ok_or_else(|| missing("name"))?, times, values)?);
    }
    Ok(all)
}

fn values_of(rest: &mut Rest<'_>) -> Result<Vec<f64>, BadAnswer> {
    let count = rest.list()?;
    if count > VALUES_MAX {
        return Err(BadAnswer::TooManyPoints);
    }
    // Each takes at least a byte.
    let mut values = Vec::with_capacity((count as usize).min(rest.0.len()));
    for _ in 0..count {
        values.push(rest.value()?);
    }
    Ok(values)
}

pub(super) fn paths(
    answer: &[u8],
    mut push: impl FnMut(String, bool) -> Result<(), BadAnswer>,
) -> Result<(), BadAnswer> {
    let mut rest = Rest(answer);
    for _ in 0..rest.list()? {
        let (mut path, mut is_leaf) = (None, None);
        rest.map(|key, rest| {
            match key {
                "path" => path = Some(rest.text()?.to_owned()),
                "is_leaf" => is_leaf = Some(rest.flag()?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        push(path.ok_or_else(|| missing("path"))?, is_leaf.ok_or_else(|| missing("is_leaf"))?)?;
    }
    Ok(())
}

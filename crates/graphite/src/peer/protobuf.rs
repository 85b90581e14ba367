//! Answers in carbonapi's second protocol (spec graphite §6.3).
//!
//! Lists of messages are taken apart message by message, so that many empty ones take no memory.

use prost::Message;
use prost::bytes::Buf;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use super::received::{BadAnswer, charge, fetched, malformed};
use crate::answer::protobuf::{GlobMatch, Series2};
use crate::query::{Fetched, Room};

/// Calls `each` with the bytes of every message of a field.
fn messages(
    mut bytes: &[u8],
    field: u32,
    mut each: impl FnMut(&[u8]) -> Result<(), BadAnswer>,
) -> Result<(), BadAnswer> {
    while bytes.has_remaining() {
        let (tag, kind) = decode_key(&mut bytes).map_err(malformed)?;
        if tag != field || kind != WireType::LengthDelimited {
            skip_field(kind, tag, &mut bytes, DecodeContext::default()).map_err(malformed)?;
            continue;
        }
        let length = decode_varint(&mut bytes).map_err(malformed)?;
        let length = usize::try_from(length).ok().filter(|length| *length <= bytes.len());
        let Some(length) = length else { return Err(malformed("a message is cut off")) };
        let (message, rest) = bytes.split_at(length);
        each(message)?;
        bytes = rest;
    }
    Ok(())
}

pub(super) fn series(answer: &[u8], mut room: Room) -> Result<Vec<Fetched>, BadAnswer> {
    let mut all = Vec::new();
    messages(answer, 1, |message| {
        let row = Series2::decode(message).map_err(malformed)?;
        charge(&mut room, row.values.len())?;
        let mut values = row.values;
        for (value, _) in values.iter_mut().zip(row.is_absent).filter(|(_, is_absent)| *is_absent) {
            *value = f64::NAN;
        }
        all.extend(fetched(row.name, (row.start_time.into(), row.step_time.into()), values)?);
        Ok(())
    })?;
    Ok(all)
}

pub(super) fn paths(
    answer: &[u8],
    mut push: impl FnMut(String, bool) -> Result<(), BadAnswer>,
) -> Result<(), BadAnswer> {
    messages(answer, 2, |message| {
        let row = GlobMatch::decode(message).map_err(malformed)?;
        push(row.path, row.is_leaf)
    })
}

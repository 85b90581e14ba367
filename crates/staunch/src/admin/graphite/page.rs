//! Answers of graphite-web's API: content types, and JSON in a call of a function (`jsonp`).

use super::parameters::{Parameters, bad};
use crate::admin::refusal::Refusal;

/// An answer: its type and its bytes.
pub(super) type Page = (&'static str, Vec<u8>);

pub(super) const JSON: &str = "application/json";
pub(super) const PICKLE: &str = "application/pickle";
pub(super) const MSGPACK: &str = "application/x-msgpack";
pub(super) const PROTOBUF: &str = "application/x-protobuf";
pub(super) const TEXT: &str = "text/plain; charset=utf-8";
pub(super) const CSV: &str = "text/csv; charset=utf-8";
pub(super) const SVG: &str = "image/svg+xml";
pub(super) const PNG: &str = "image/png";
pub(super) const SCRIPT: &str = "text/javascript; charset=utf-8";

/// JSON, or a call of the function that the client names.
pub(super) fn wrapped(parameters: &Parameters, json: Vec<u8>) -> Result<Page, Refusal> {
    let Some(name) = parameters.get("jsonp").filter(|name| !name.is_empty()) else { return Ok((JSON, json)) };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.');
    if name.len() > 100 || !name.bytes().all(is_name) {
        return Err(bad("`jsonp` is the name of a function: letters, digits, `_`, `$` and `.`"));
    }
    Ok((SCRIPT, [name.as_bytes(), b"(", &json, b")"].concat()))
}

//! Origins of web pages in options, as browsers send them.

use crate::diagnostic::{Code, Diagnostic, Place};

/// Whether a text is the origin of a page: scheme, host, and perhaps a port.
pub(super) fn is_origin(text: &str) -> bool {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    rest.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(is_plain))
}

/// The mistake of an origin that is none.
pub(super) fn not_an_origin(origin: &str, place: Place) -> Diagnostic {
    let mistake =
        Diagnostic::error(Code::BadValue, format!("`{origin}` in `allowed_origins` is not an origin"));
    mistake.at(place).label("http://HOST or https://HOST, with a port if it is not the usual one")
}

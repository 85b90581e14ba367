//! What `-v` and the first line of a log say: the original's name and version, whose language and manners these are, and
//! our own.

/// The version of carbon-c-relay whose behaviour this is.
pub(crate) const ORIGINAL: &str = "3.9";

/// `carbon-c-relay v3.9 (staunch 0.1.0)`
pub(crate) fn name() -> String {
    format!("carbon-c-relay v{ORIGINAL} (staunch {})", env!("CARGO_PKG_VERSION"))
}

/// What `-v` prints. Scripts look for the words behind `enabled support for`.
pub(crate) fn lines() -> String {
    format!(
        "{}\nenabled support for: gzip lz4 snappy ssl\nregular expressions library: regex (linear time)\n",
        name()
    )
}

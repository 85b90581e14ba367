//! The output of `-v` and the first line of a log: the name and version of the original that is emulated, and our own.

/// The emulated version of carbon-c-relay.
pub(crate) const ORIGINAL: &str = "3.9";

/// `carbon-c-relay v3.9 (staunch 0.1.0)`
pub(crate) fn name() -> String {
    format!("carbon-c-relay v{ORIGINAL} (staunch {})", env!("CARGO_PKG_VERSION"))
}

/// The output of `-v`. Scripts search for the text after `enabled support for`.
pub(crate) fn lines() -> String {
    format!(
        "{}\nenabled support for: gzip lz4 snappy ssl\nregular expressions library: regex (linear time)\n",
        name()
    )
}

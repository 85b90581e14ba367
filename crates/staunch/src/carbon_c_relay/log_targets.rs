//! Targets of log lines that carbon-c-relay's compatibility mode handles differently from the native log.
//!
//! Not here: writing log lines (`log_stream`, `carbon_c_relay::log`).

/// Target of log lines with an original's text: they appear only in the log of the compatibility mode.
pub const ORIGINAL: &str = "in_the_originals_words";

/// The same for the original's debug mode. It begins with [`ORIGINAL`], so that a filter that excludes one also
/// excludes the other.
pub const ORIGINAL_DEBUG: &str = "in_the_originals_words_for_debugging";

/// Target of warnings without an equivalent in the original that are not our failures: its log must not show them as
/// errors, which scripts search for.
pub const NOT_AN_ERROR: &str = "staunch::not_an_error";

/// Target of our equivalents of original lines, which such a log omits.
pub const OURS: &str = "in_our_words";

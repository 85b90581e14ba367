//! Targets of log lines that carbon-c-relay's compatibility mode treats in another way than the native log.
//!
//! Not here: who writes log lines where (`log_stream`, `carbon_c_relay::log`).

/// Target of log lines in an original's own words: they are in the log of the compatibility mode, and in no other.
pub const ORIGINAL: &str = "in_the_originals_words";

/// The same, for what the original says only in its debug mode. It begins with [`ORIGINAL`], so that a filter
/// that leaves that out leaves this out too.
pub const ORIGINAL_DEBUG: &str = "in_the_originals_words_for_debugging";

/// Target of warnings that an original has no word for and that are no failure of ours: in its log they do not stand among
/// errors, which scripts look for.
pub const NOT_AN_ERROR: &str = "staunch::not_an_error";

/// Target of the lines that say the same in ours, and that such a log does without.
pub const OURS: &str = "in_our_words";

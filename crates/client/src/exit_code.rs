//! Exit codes of the program, beside 0 for success.

/// Exit code for mistakes in what was given.
pub const MISTAKES: u8 = 1;

/// Exit code for what could not be done.
pub const FAILED: u8 = 2;

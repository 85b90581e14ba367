//! Limits of a query. Each is an error when the query is parsed or compiled, except for those of a search.

/// Longest text of a query, in bytes.
pub const QUERY_BYTES_MAX: usize = 64 << 10;

/// Deepest nesting of parentheses and `not`, and of a tree.
pub const DEPTH_MAX: usize = 128;

/// Maximum number of regular expressions (`~=`) in a query. A compiled one may take hundreds of kilobytes.
pub const PATTERNS_MAX: usize = 16;

/// Longest regular expression, in bytes.
pub const PATTERN_BYTES_MAX: usize = 4 << 10;

/// Maximum digits of an integer with the suffix `N`.
pub const DIGITS_MAX: usize = 1_000;

/// Maximum backtracking steps of one search with an expression that needs backtracking.
pub const BACKTRACKING_STEPS_MAX: usize = 5_000;

/// Longest text that is searched with an expression that needs backtracking: each step may scan the rest of it.
pub const BACKTRACKING_BYTES_MAX: usize = 1_024;

/// Longest text that is searched with any expression.
pub const SEARCHED_BYTES_MAX: usize = 64 << 10;

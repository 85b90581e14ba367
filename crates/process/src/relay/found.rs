//! What a search in a name gives: a match with its groups, or that it gave up.

/// A search came to a limit, so that the result is unknown; it counts as no match. Only backtracking and searches
/// for all matches have limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GaveUp;

/// A match and its groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Start and end of the whole match.
    pub(super) span: (usize, usize),
    /// Start and end of group 1 and following; None for a group that took no part.
    pub(super) groups: Vec<Option<(usize, usize)>>,
}

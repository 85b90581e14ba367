//! A finding of a rule.

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Breach {
    pub(super) path: String,
    /// 1 for the whole file.
    pub(super) line: usize,
    pub(super) rule: &'static str,
    pub(super) reason: String,
}

impl Breach {
    pub(super) fn new(path: &str, line: usize, rule: &'static str, reason: impl Into<String>) -> Breach {
        Breach { path: path.to_owned(), line, rule, reason: reason.into() }
    }
}

/// `path:line` of each breach, for tests.
#[cfg(test)]
pub(super) fn places(breaches: &[Breach]) -> Vec<String> {
    breaches.iter().map(|breach| format!("{}:{}", breach.path, breach.line)).collect()
}

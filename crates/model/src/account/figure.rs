//! Figures of an account by their names, and on the way to another process.

/// One reason with its count, for reports: (family such as `dropped`, word such as `series_max`, count).
pub type Losses = Vec<(&'static str, &'static str, u64)>;

/// One named figure of an account, for the process that continues the account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Family (`dropped`, …), or the name of a figure that has no reasons.
    pub family: String,
    /// Reason; empty for none.
    pub reason: String,
    /// The count.
    pub count: u64,
    /// Bytes of those copies; 0 where bytes are not counted.
    pub bytes: u64,
}

impl Figure {
    /// A count under its name.
    pub fn new(family: &str, reason: &str, count: u64, bytes: u64) -> Figure {
        Figure { family: family.to_owned(), reason: reason.to_owned(), count, bytes }
    }
}

/// Figures with their names: (family, reason, the figure).
pub(super) type Named<'a, T> = Vec<(&'static str, &'static str, &'a T)>;

pub(super) fn find<'a, T>(named: &Named<'a, T>, wanted: &Figure) -> Option<&'a T> {
    let found = named.iter().find(|known| known.0 == wanted.family && known.1 == wanted.reason)?;
    Some(found.2)
}

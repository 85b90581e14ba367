//! The first bad line of a source and reason, for the log; later ones are only counted.
//!
//! Not here: the counts (`intake`), the log (`staunch`).

use model::{Reject, SourceAccount, Span};

/// Longest piece of a bad line that a complaint quotes, in bytes.
const QUOTED_BYTES_MAX: usize = 200;

/// The first bad line of a kind, for one message; later ones are only counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// Name of the source.
    pub source: String,
    /// Why it was refused.
    pub reason: Reject,
    /// The line, or its beginning, with everything unprintable escaped.
    pub line: String,
}

/// Notes the complaint of what a parser found first.
pub(crate) fn note_complaint(
    name: &str,
    bytes: &[u8],
    first_reject: Option<(Reject, Span)>,
    account: &SourceAccount,
    complaints: &mut Vec<Complaint>,
) {
    let Some((reason, line)) = first_reject else { return };
    complain(name, account, reason, complaints, || {
        let line = line.of(bytes);
        line[..line.len().min(QUOTED_BYTES_MAX)].escape_ascii().to_string()
    });
}

/// Notes a complaint, if it is the source's first for this reason: at most one for each, so few wait at any time.
pub(crate) fn complain(
    source: &str,
    account: &SourceAccount,
    reason: Reject,
    complaints: &mut Vec<Complaint>,
    line: impl FnOnce() -> String,
) {
    if account.first_complaint(reason) {
        complaints.push(Complaint { source: source.to_owned(), reason, line: line() });
    }
}

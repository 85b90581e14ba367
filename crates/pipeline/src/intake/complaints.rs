//! The first bad line of a source and reason, for the log; later ones are only counted.
//!
//! Not here: the counts (`intake`), the log (`staunch`).

use model::limits::QUOTED_BYTES_MAX;
use model::{Reject, SourceAccount, Span};

/// The first bad line of a kind, for one message; later ones are only counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// Name of the source.
    pub source: String,
    /// Why it was refused.
    pub reason: Reject,
    /// The line, or its beginning, with everything unprintable escaped; or another description of the input.
    pub line: String,
    /// Where the line starts in the bytes of a call that had several packets.
    pub at: Option<u32>,
}

/// The beginning of bytes from outside, with everything unprintable escaped, for the log.
pub(crate) fn quote(bytes: &[u8]) -> String {
    let shown = bytes[..bytes.len().min(QUOTED_BYTES_MAX)].escape_ascii();
    format!("{shown}{}", if bytes.len() > QUOTED_BYTES_MAX { "..." } else { "" })
}

/// Notes the complaint about the first bad line that a parser has found.
pub(crate) fn note_complaint(
    name: &str,
    bytes: &[u8],
    first_reject: Option<(Reject, Span)>,
    account: &SourceAccount,
    complaints: &mut Complaints,
) {
    let Some((reason, line)) = first_reject else { return };
    complain(name, account, reason, complaints, Some(line.at), || quote(line.of(bytes)));
}

/// Complaints that nobody has taken yet.
#[derive(Debug, Default)]
pub(crate) struct Complaints {
    /// The source's first of a reason: at most one each, so only a few ever wait.
    pub(crate) for_the_log: Vec<Complaint>,
    /// Whether this intake's own first one is kept for its client.
    pub(crate) keeps_first: bool,
    /// The intake's own first one, if it is kept.
    pub(crate) first: Option<Complaint>,
}

/// Notes a complaint if it is the source's first for this reason, or the intake's first, if that is kept.
pub(crate) fn complain(
    source: &str,
    account: &SourceAccount,
    reason: Reject,
    complaints: &mut Complaints,
    at: Option<u32>,
    line: impl FnOnce() -> String,
) {
    let is_new = account.first_complaint(reason);
    let is_first = complaints.keeps_first && complaints.first.is_none();
    if !is_new && !is_first {
        return;
    }
    let complaint = Complaint { source: source.to_owned(), reason, line: line(), at };
    if is_first {
        complaints.first = Some(complaint.clone());
    }
    if is_new {
        complaints.for_the_log.push(complaint);
    }
}

#[test]
fn what_is_quoted_is_short_and_harmless() {
    let long = [b'x'; QUOTED_BYTES_MAX + 1];
    for (bytes, shown) in [
        (&b"a:1|c"[..], "a:1|c".to_owned()),
        (b"", String::new()),
        (b"\x1b[31mred\x07\r\n\0", r"\x1b[31mred\x07\r\n\x00".to_owned()),
        ("é\u{202e}".as_bytes(), r"\xc3\xa9\xe2\x80\xae".to_owned()),
        (&long[1..], "x".repeat(QUOTED_BYTES_MAX)),
        (&long, "x".repeat(QUOTED_BYTES_MAX) + "..."),
    ] {
        assert_eq!(quote(bytes), shown);
    }
}

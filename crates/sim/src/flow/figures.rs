//! The words and numbers of accounts: the operands of `outcomes` and `copies`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use model::{Losses, OutputAccount, OutputSum, RecordAccount, RecordSum, SourceAccount};

/// One number of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) word: String,
    pub(crate) number: u64,
    /// An outcome: with `exactly`, it must be 0 unless it is named.
    pub(crate) outcome: bool,
}

fn line(word: impl Into<String>, number: u64, outcome: bool) -> Line {
    Line { word: word.into(), number, outcome }
}

/// The parts of a sum, and the loss reasons above 0.
fn outcomes(parts: [(&'static str, u64); 8], losses: Losses) -> impl Iterator<Item = Line> {
    let reasons =
        losses.into_iter().map(|(family, word, number)| line(format!("{family}.{word}"), number, true));
    parts.into_iter().map(|(word, number)| line(word, number, true)).chain(reasons)
}

/// All figures of a source.
pub(crate) fn of_source(account: &SourceAccount, sum: RecordSum) -> Vec<Line> {
    let mut lines = vec![line("received", sum.received, false)];
    lines.extend(outcomes(sum.parts(), account.losses()));
    let read = |number: &AtomicU64| number.load(Relaxed);
    let rest = [
        ("packets", &account.packets),
        ("packets_empty", &account.packets_empty),
        ("packets_truncated", &account.packets_truncated),
        ("bytes", &account.bytes),
        ("lines", &account.lines),
        ("connections_accepted", &account.connections_accepted),
        ("connections_refused", &account.connections_refused),
        ("connections_refused_per_peer", &account.connections_refused_per_peer),
        ("connections_replaced", &account.connections_replaced),
        ("connections_broken", &account.connections_broken),
        ("handshakes_failed", &account.handshakes_failed),
        ("connections_open", &account.connections_open),
        ("glued_tag_fields", &account.glued_tag_fields),
        ("event_fields_ignored", &account.event_fields_ignored),
        ("lines_acked", &account.lines_acked),
    ];
    lines.extend(rest.map(|(word, number)| line(word, read(number), false)));
    lines
}

/// All figures of an edge into a transform.
pub(crate) fn of_edge(account: &RecordAccount) -> Vec<Line> {
    let sum = account.sum(0);
    let mut lines = vec![line("received", sum.received, false)];
    lines.extend(outcomes(sum.parts(), account.losses()));
    lines
}

/// All figures of an output.
pub(crate) fn of_output(account: &OutputAccount, sum: OutputSum) -> Vec<Line> {
    let mut lines = vec![line("copies", sum.copies, false)];
    lines.extend(outcomes(sum.parts(), account.losses()));
    let read = |number: &AtomicU64| number.load(Relaxed);
    let rest = [
        ("connects", read(&account.connects)),
        ("errors", read(&account.errors)),
        ("resent", read(&account.resent)),
        ("in_doubt", read(&account.in_doubt)),
        ("in_doubt_bytes", read(&account.in_doubt_bytes)),
        ("tags_left_out", read(&account.tags_left_out)),
        ("bytes_routed", account.bytes_routed()),
        ("bytes_delivered", account.bytes_delivered()),
    ];
    lines.extend(rest.map(|(word, number)| line(word, number, false)));
    lines
}

/// Words of sources, for the parser.
pub(crate) fn source_words() -> Vec<String> {
    words(of_source(&SourceAccount::default(), RecordSum::default()))
}

/// Words of outputs, for the parser.
pub(crate) fn output_words() -> Vec<String> {
    words(of_output(&OutputAccount::default(), OutputSum::default()))
}

fn words(lines: Vec<Line>) -> Vec<String> {
    lines.into_iter().map(|line| line.word).collect()
}

#[test]
fn words_are_distinct() {
    for mut words in [source_words(), output_words()] {
        let all = words.len();
        words.sort();
        words.dedup();
        assert_eq!(words.len(), all);
    }
}

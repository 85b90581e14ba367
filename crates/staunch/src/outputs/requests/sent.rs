//! What a request came to, for all protocols.

use deliver::endpoint::Failure;
use deliver::request::Answer;

/// Bytes of an answer that a log line shows.
const SHOWN_BYTES: usize = 200;

/// What a request came to.
pub struct Sent {
    /// How many of the offered records it had.
    pub records: u32,
    /// The answer.
    pub answer: Answer,
    /// Whether an attempt before that of the answer may have arrived as well.
    pub is_doubled: bool,
    /// For people: what the endpoint said, or what failed.
    pub words: Option<String>,
}

impl Sent {
    /// It was never sent, or not answered.
    pub(super) fn failed(records: usize, why: Failure, in_doubt: bool, words: Option<String>) -> Sent {
        let answer = Answer::Failed { why, retry_after_ms: None, in_doubt };
        Sent { records: number(records), answer, is_doubled: false, words }
    }
}

/// A request has few records (`max_batch_events`).
pub(super) fn number(records: usize) -> u32 {
    u32::try_from(records).unwrap_or(u32::MAX)
}

/// What an endpoint said, for a log line.
pub(super) fn quoted(said: &[u8]) -> String {
    let said = &said[..said.len().min(SHOWN_BYTES)];
    String::from_utf8_lossy(said).trim().escape_debug().collect()
}

//! Replies to a client: `ack N`, and at the end possibly `err N REASON` ([docs/acks.md](../../../docs/acks.md)).
//!
//! Path of a line: counted by [`Replies::received`], covered by [`Replies::mark`], and when its mark is met,
//! acknowledged by [`Replies::write`]. Not here: whether it is met (`acks`), and the socket.

use model::{AckMark, AckWhen, ConnectionId};

use crate::acks::answer::Answer;

/// Counts of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Replies {
    connection: ConnectionId,
    when: AckWhen,
    /// Lines received: everything that ends in LF, and a last one that counts without. Frames where there are frames.
    lines: u64,
    /// Records that the intake rejected.
    rejected: u64,
    /// Lines up to the last mark.
    marked: u64,
    marks: u64,
    /// Lines up to the last reply.
    acked: u64,
    ended: bool,
}

/// Acknowledgements that a client has received, from this process and earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckProgress {
    /// When a line is acknowledged on its connection.
    pub when: AckWhen,
    /// Lines received.
    pub lines: u64,
    /// Records in them that the intake rejected.
    pub rejected: u64,
    /// Lines, from its first, that were acknowledged. The others wait for their condition.
    pub acked: u64,
}

impl Replies {
    pub(crate) fn new(connection: ConnectionId, when: AckWhen) -> Replies {
        Replies::going_on(connection, AckProgress { when, lines: 0, rejected: 0, acked: 0 })
    }

    /// All waiting lines share one mark: see `Acks::go_on`.
    pub(crate) fn going_on(connection: ConnectionId, progress: AckProgress) -> Replies {
        let AckProgress { when, lines, rejected, acked } = progress;
        let marks = u64::from(acked < lines);
        Replies { connection, when, lines, rejected, marked: lines, marks, acked, ended: false }
    }

    /// None after an end, or while a line has come that no mark covers.
    pub(crate) fn progress(&self) -> Option<AckProgress> {
        let Replies { when, lines, rejected, acked, .. } = *self;
        (self.marked == lines && !self.ended).then_some(AckProgress { when, lines, rejected, acked })
    }

    /// More lines have come, and this many records in them were rejected.
    pub(crate) fn received(&mut self, lines: u64, rejected: u64) {
        self.lines += lines;
        self.rejected += rejected;
    }

    /// A mark after everything that has come, if a line has come since the last one.
    pub(crate) fn mark(&mut self) -> Option<AckMark> {
        if self.lines == self.marked {
            return None;
        }
        self.marked = self.lines;
        self.marks += 1;
        Some(AckMark {
            connection: self.connection,
            up_to: self.lines,
            rejected: self.rejected,
            when: self.when,
        })
    }

    /// Appends `ack N`, followed by `rejected R` if the intake has rejected something, if `answer` covers more than the
    /// last reply; then `err N REASON` if it is the end. Returns the number of newly acknowledged lines.
    pub(crate) fn write(&mut self, answer: &Answer, out: &mut Vec<u8>) -> u64 {
        if self.ended {
            return 0;
        }
        debug_assert!(answer.up_to <= self.marked, "only what was received is acknowledged");
        let new = answer.up_to.saturating_sub(self.acked);
        if new > 0 {
            self.acked = answer.up_to;
            out.extend_from_slice(format!("ack {}", answer.up_to).as_bytes());
            if answer.rejected > 0 {
                out.extend_from_slice(format!(" rejected {}", answer.rejected).as_bytes());
            }
            out.push(b'\n');
        }
        if let Some(why) = answer.failed {
            self.ended = true;
            out.extend_from_slice(format!("err {} {}\n", self.acked, why.word()).as_bytes());
        }
        new
    }

    pub(crate) fn marks_unanswered(&self, answer: &Answer) -> u64 {
        self.marks.saturating_sub(answer.marks)
    }

    pub(crate) fn lines_unanswered(&self) -> u64 {
        self.lines - self.acked
    }
}

#[cfg(test)]
mod tests {
    use model::Unacked;

    use super::*;

    #[test]
    fn a_reply_has_the_new_count_and_none_follows_the_end() {
        let mut replies = Replies::new(ConnectionId(7), AckWhen::Safe);
        assert_eq!(replies.mark(), None);
        replies.received(3, 0);
        let mark =
            |up_to, rejected| AckMark { connection: ConnectionId(7), up_to, rejected, when: AckWhen::Safe };
        assert_eq!((replies.mark(), replies.mark()), (Some(mark(3, 0)), None));
        replies.received(0, 1);
        assert_eq!(replies.mark(), None, "a line that is too long has not ended yet");
        replies.received(2, 0);
        assert_eq!(replies.mark(), Some(mark(5, 1)));
        let answer = |up_to, rejected, marks| Answer { up_to, rejected, marks, failed: None };
        let failed = Answer { failed: Some(Unacked::Dropped), ..answer(5, 1, 2) };
        let table = [
            (answer(0, 0, 0), "", 0, 2, 5),
            (answer(3, 0, 1), "ack 3\n", 3, 1, 2),
            (answer(3, 0, 1), "", 0, 1, 2),
            (failed, "ack 5 rejected 1\nerr 5 dropped\n", 2, 0, 0),
            (failed, "", 0, 0, 0),
        ];
        for (answer, want, new, marks, lines) in table {
            let mut out = Vec::new();
            assert_eq!(replies.write(&answer, &mut out), new, "{answer:?}");
            assert_eq!(String::from_utf8_lossy(&out), want, "{answer:?}");
            assert_eq!(
                (replies.marks_unanswered(&answer), replies.lines_unanswered()),
                (marks, lines),
                "{answer:?}"
            );
        }
    }

    #[test]
    fn another_process_continues_the_counts_of_a_client() {
        let when = AckWhen::Delivered;
        let answer = |up_to, marks| Answer { up_to, rejected: 1, marks, failed: None };
        for all in [true, false] {
            let mut replies = Replies::new(ConnectionId(7), when);
            replies.received(3, 1);
            assert_eq!(replies.progress(), None, "no mark names them");
            assert!(replies.mark().is_some());
            let mut out = Vec::new();
            replies.write(&answer(if all { 3 } else { 2 }, 1), &mut out);
            let progress = replies.progress().expect("a mark names everything");
            assert_eq!(progress, AckProgress { when, lines: 3, rejected: 1, acked: if all { 3 } else { 2 } });
            let mut other = Replies::going_on(ConnectionId(0), progress);
            let waits = u64::from(!all);
            assert_eq!((other.mark(), other.marks_unanswered(&answer(0, 0))), (None, waits));
            assert_eq!(other.write(&answer(0, 0), &mut out), 0);
            other.received(2, 0);
            let mark = AckMark { connection: ConnectionId(0), up_to: 5, rejected: 1, when };
            assert_eq!((other.mark(), other.marks_unanswered(&answer(0, 0))), (Some(mark), waits + 1));
            assert_eq!(other.write(&answer(5, waits + 1), &mut out), 5 - progress.acked);
            let first = progress.acked;
            assert_eq!(String::from_utf8_lossy(&out), format!("ack {first} rejected 1\nack 5 rejected 1\n"));
        }
    }
}

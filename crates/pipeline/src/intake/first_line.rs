//! Detects a connection of lines that starts with something else: see `wire::first_line`, which reads the bytes.
//!
//! Path of a read: `Intake::stream` -> **[`Beginning::lines_of`]** -> the framer. The intake rejects what is detected.
//! Invariant: nothing after the beginning of a foreign protocol is read as lines, however often the connection is read.

use model::Reject;
use wire::first_line::{FirstLine, Opening};

/// What is known about the beginning of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Beginning {
    /// Lines so far, or nothing.
    Asked(FirstLine),
    /// Lines, or a protocol with frames, which is not checked.
    Known,
    /// Something other than lines: nothing more of it is read.
    Foreign,
}

impl Beginning {
    /// For a connection of lines that has not been read yet.
    pub(crate) fn of_lines() -> Beginning {
        Beginning::Asked(FirstLine::default())
    }

    /// The part of `bytes` that may be lines: empty once the connection has turned out to carry something else.
    ///
    /// # Errors
    /// Once, when it does: the reason, and a description of what it carries.
    pub(crate) fn lines_of<'b>(&mut self, bytes: &'b [u8]) -> Result<&'b [u8], (Reject, &'static str)> {
        let opening = match self {
            Beginning::Asked(first_line) => first_line.push(bytes),
            Beginning::Known => return Ok(bytes),
            Beginning::Foreign => return Ok(&[]),
        };
        let found = match opening {
            Opening::Undecided => return Ok(bytes),
            Opening::Lines => {
                *self = Beginning::Known;
                return Ok(bytes);
            }
            Opening::Foreign(foreign) => foreign.reason(),
        };
        *self = Beginning::Foreign;
        Err(found)
    }

    /// Continues, as new, with the bytes that another process read of the unfinished line: it may be the first one, of
    /// which nothing was read as a line yet.
    pub(crate) fn go_on_with(&mut self, unfinished: &[u8]) {
        if let Beginning::Asked(first_line) = self {
            first_line.push(unfinished);
        }
    }

    /// True while it is undecided.
    pub(crate) fn is_open(self) -> bool {
        matches!(self, Beginning::Asked(_))
    }

    /// True when it began with something other than lines.
    pub(crate) fn is_foreign(self) -> bool {
        matches!(self, Beginning::Foreign)
    }
}

#[cfg(test)]
mod tests {
    use model::{Now, Outcome, Reject, SourceId};

    use crate::intake::tests::first_source;
    use crate::{Broken, Scratch};

    #[test]
    fn a_request_is_one_bad_record_wherever_the_reads_cut_and_its_body_is_none() {
        let statsd = "
        [sources.s]
        type = \"statsd\"
        listen = [\"tcp://127.0.0.1:0\"]
        max_line_bytes = \"64B\"
        [transforms.t]
        type = \"aggregate\"
        from = [\"s\"]
        [outputs.o]
        type = \"console\"
        from = [\"t\"]
    ";
        let graphite = |compatibility: &str| {
            format!(
                "[sources.s]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\nmax_line_bytes = \"64B\"\n\
             compatibility = \"{compatibility}\"\n\
             [outputs.o]\ntype = \"graphite\"\nfrom = [\"s\"]\nto = [\"tcp://127.0.0.1:9\"]\n"
            )
        };
        // A target that makes the line longer than the limit changes nothing.
        let request = format!("POST /{} HTTP/1.1\r\nHost: a\r\n\r\na:1|c\na 1 1700000000\n", "x".repeat(100));
        let now = Now::default();
        let mut scratch = Scratch::default();
        for text in [statsd.to_owned(), graphite("strict"), graphite("c-relay")] {
            for (step, read_on) in [(1, false), (7, true), (40, true), (4096, true)] {
                let (accounts, maker) = first_source(&text);
                let mut intake = maker.make();
                let mut records = 0;
                for read in request.as_bytes().chunks(step) {
                    // A stop reads the remaining input even after a connection is broken.
                    if intake.is_broken() && !read_on {
                        break;
                    }
                    let batch = intake.stream(read, now, &mut scratch);
                    records += batch.records();
                    batch.settle(Outcome::Filtered);
                    intake.settle_too_long();
                }
                intake.close(true, now, &mut scratch).settle(Outcome::Filtered);
                assert_eq!(intake.broken(), Some(Broken::Rejected(Reject::HttpRequest)), "{text}");
                assert!(intake.is_foreign() && records == 0, "{text}");
                let account = accounts.source(SourceId(0));
                assert_eq!(account.rejected(Reject::HttpRequest), 1, "reads of {step} bytes");
                let sum = account.sum(0);
                assert!(sum.holds() && sum.received == 1, "reads of {step} bytes: {sum:?}");
            }
            let (accounts, maker) = first_source(&text);
            let mut intake = maker.make();
            intake.stream(b"GET 1 1700000000\nGET / HTTP/1.1\n", now, &mut scratch).settle(Outcome::Filtered);
            assert!(!intake.is_broken());
            assert_eq!(accounts.source(SourceId(0)).rejected(Reject::HttpRequest), 0);
        }
    }

    #[test]
    fn a_first_line_that_is_too_long_and_never_ends_is_counted_once() {
        let text = "
        [sources.s]
        type = \"statsd\"
        listen = [\"tcp://127.0.0.1:0\"]
        max_line_bytes = \"64B\"
        [outputs.o]
        type = \"tcp\"
        from = [\"s\"]
        to = [\"tcp://127.0.0.1:9\"]
    ";
        let (now, mut scratch) = (Now::default(), Scratch::default());
        let begin = format!("GET /{}", "x".repeat(100));
        for hands_over in [false, true] {
            let (accounts, maker) = first_source(text);
            let mut intake = maker.make();
            let too_long = || accounts.source(SourceId(0)).rejected(Reject::LineTooLong);
            for read in begin.as_bytes().chunks(7) {
                intake.stream(read, now, &mut scratch).settle(Outcome::Filtered);
                intake.settle_too_long();
            }
            assert_eq!(too_long(), 0, "it may still be a request");
            if hands_over {
                assert!(intake.unfinished().is_some_and(|unfinished| unfinished.discarding));
            }
            intake.close(true, now, &mut scratch).settle(Outcome::Filtered);
            assert_eq!(too_long(), 1);
            assert!(accounts.source(SourceId(0)).sum(0).received == 1);
        }
    }

    #[test]
    fn a_first_line_that_another_process_began_to_read_is_still_the_first() {
        let text = "
        [sources.s]
        type = \"statsd\"
        listen = [\"tcp://127.0.0.1:0\"]
        [outputs.o]
        type = \"tcp\"
        from = [\"s\"]
        to = [\"tcp://127.0.0.1:9\"]
    ";
        let (_, maker) = first_source(text);
        let now = Now::default();
        let mut scratch = Scratch::default();
        for (begun, foreign) in
            [("GET / HT", true), ("", true), ("a:1|c\nGET / HT", true), ("GET /:1|c", false)]
        {
            let mut before = maker.make();
            before.stream(begun.as_bytes(), now, &mut scratch).settle(Outcome::Filtered);
            let unfinished = before.unfinished().expect("it can be gone on with");
            let mut after = maker.make().going_on(&unfinished, None);
            let rest = if begun.is_empty() { "GET / HTTP/1.1\n" } else { "TP/1.1\n" };
            after.stream(rest.as_bytes(), now, &mut scratch).settle(Outcome::Filtered);
            assert_eq!(after.is_foreign(), foreign, "{begun:?}");
        }
    }
}

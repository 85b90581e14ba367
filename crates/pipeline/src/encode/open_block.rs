//! A block under construction, and the count of points that never come into one.

use model::{CopyOutcome, Dropped, Now, OutputAccount};
use wire::graphite::{Encoded, pickle_frame};
use wire::report::Documented;

use crate::encode::line_prefix::PrefixText;

/// A block under construction.
#[derive(Debug, Default)]
pub(crate) struct OpenBlock {
    pub(crate) bytes: Vec<u8>,
    pub(super) copies: u32,
    pub(super) frames: Vec<(u32, u32)>,
    /// Points of the unfinished pickle frame, and their number.
    pub(super) points: Vec<u8>,
    pub(super) count: u32,
}

impl OpenBlock {
    /// Copies in its frames and lines.
    pub(crate) fn copies(&self) -> u32 {
        self.copies
    }

    /// The bytes after the last frame become one, of `copies` copies.
    pub(crate) fn end_frame(&mut self, copies: u32) {
        self.copies += copies;
        self.frames.push((self.bytes.len() as u32, copies));
    }

    /// Each line from `begin` on becomes a frame.
    pub(super) fn end_line_frames(&mut self, begin: usize) {
        let ends = memchr::memchr_iter(b'\n', &self.bytes[begin..]).map(|at| (begin + at + 1) as u32);
        let before = self.frames.len();
        self.frames.extend(ends.map(|end| (end, 1)));
        self.copies += (self.frames.len() - before) as u32;
    }

    /// Writes the text before our own lines, for those from `begin` on.
    pub(super) fn lead_lines(&mut self, begin: usize, prefix_text: &mut Option<PrefixText>, now: Now) {
        let Some(prefix_text) = prefix_text else { return };
        let lines = self.bytes.split_off(begin);
        prefix_text.own_lines(&lines, now, &mut self.bytes);
    }

    /// Removes lines from `begin` on that are too long.
    #[cold]
    pub(super) fn drop_long_lines(&mut self, begin: usize, line_bytes_max: u32, account: &OutputAccount) {
        let lines = self.bytes.split_off(begin);
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            if line.len() - 1 <= line_bytes_max as usize {
                self.bytes.extend_from_slice(line);
            } else {
                self.copies -= 1;
                drop_points(account, Dropped::TooBig, 1);
            }
        }
    }

    /// The collected points become a pickle frame.
    pub(super) fn close_pickle(&mut self) {
        if self.count > 0 {
            pickle_frame(&self.points, &mut self.bytes);
            self.points.clear();
            let copies = std::mem::take(&mut self.count);
            self.end_frame(copies);
        }
    }

    /// A document's series are its copies; a document without series is still sent, as one copy.
    pub(super) fn document(&mut self, documented: Documented, account: &OutputAccount) {
        if !self.bytes.is_empty() {
            self.end_frame(u32::try_from(documented.series).unwrap_or(u32::MAX).max(1));
        }
        drop_points(account, Dropped::TooBig, documented.left_out);
    }
}

/// Counts the points that an encoder left out.
pub(super) fn count_lost(account: &OutputAccount, encoded: Encoded) {
    drop_points(account, Dropped::NonFinitePoint, u64::from(encoded.non_finite));
    drop_points(account, Dropped::UnsafeName, u64::from(encoded.unsafe_names));
}

/// Counts points that were never written: they are copies that were routed and dropped at once.
pub(super) fn drop_points(account: &OutputAccount, reason: Dropped, points: u64) {
    if points > 0 {
        account.pass(CopyOutcome::Dropped(reason), points, 0);
    }
}

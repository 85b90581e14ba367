//! Points and aggregates as `put` lines of OpenTSDB.
//!
//! Path of a series: `OutputEncoder` -> **[`Puts`]** -> `wire::opentsdb::put_line` -> the open block.

use model::{Dropped, FlushInfo, Flushed, OutputAccount};
use wire::graphite::{Encoder, OwnFigures};
use wire::opentsdb::{Parts, PutReject, put_line, put_lines};

use crate::encode::open_block::{OpenBlock, count_lost, drop_points};

/// What one output writes.
#[derive(Debug)]
pub(crate) struct Puts {
    encoder: Encoder,
    default_tag: Vec<u8>,
    /// Lines of Graphite, before they are rewritten; empty between two calls.
    lines: Vec<u8>,
}

impl Puts {
    pub(crate) fn new(encoder: Encoder, default_tag: &str) -> Puts {
        Puts { encoder, default_tag: default_tag.as_bytes().to_vec(), lines: Vec::new() }
    }

    /// Bytes that a line may have more than the point's own.
    pub(crate) fn more_bytes(&self) -> u64 {
        ("put  \n".len() + self.default_tag.len()) as u64
    }

    /// One point. True when it was written.
    pub(crate) fn point(&self, point: Parts<'_>, account: &OutputAccount, open: &mut OpenBlock) -> bool {
        let written = put_line(point, &self.default_tag, &mut open.bytes);
        written.map_err(|why| drop_points(account, reason(why), 1)).is_ok()
    }

    /// One series of a flush.
    pub(crate) fn flushed(
        &mut self,
        info: &FlushInfo,
        flushed: &Flushed<'_>,
        account: &OutputAccount,
        open: &mut OpenBlock,
    ) {
        count_lost(account, self.encoder.lines(info, flushed, &mut self.lines));
        self.write(account, open);
    }

    /// The daemon's figures about a flush.
    pub(crate) fn own_lines(&mut self, own: &OwnFigures, account: &OutputAccount, open: &mut OpenBlock) {
        count_lost(account, self.encoder.own_lines(own, &mut self.lines));
        self.write(account, open);
    }

    fn write(&mut self, account: &OutputAccount, open: &mut OpenBlock) {
        let lost = |why| drop_points(account, reason(why), 1);
        open.copies += put_lines(&self.lines, &self.default_tag, &mut open.bytes, lost);
        self.lines.clear();
    }
}

fn reason(why: PutReject) -> Dropped {
    match why {
        PutReject::NotANumber => Dropped::NotANumber,
        PutReject::UnsafeName => Dropped::UnsafeName,
        PutReject::TooBig => Dropped::TooBig,
    }
}

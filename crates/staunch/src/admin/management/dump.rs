//! Dumps of all series of a kind, slice by slice: copied on the shard's thread, written before the next slice is
//! requested.
//!
//! Not here: the text (`wire::management::Dump`), slices and their limits (`Shard::dump`).
//! Invariant: a client holds one slice and one piece of it as text. A long timer or set spans several of both.

use model::{Kind, PeerKey};
use pipeline::{DumpCursor, Held};
use tokio::io::AsyncWrite;
use wire::management::Dump;

use super::ClientEnd;
use super::reply::Reply;
use crate::daemon::shared::Shared;

/// Values of a timer in one piece of text.
const PIECE_VALUES: usize = 4_096;

/// Bytes of a set's members in one piece of text.
const PIECE_BYTES: usize = 32 * 1024;

/// Writes all series of a kind to `peer`.
///
/// # Errors
/// When the client has closed the connection, or does not read.
pub(super) async fn write<W: AsyncWrite + Unpin>(
    shared: &Shared,
    peer: PeerKey,
    kind: Kind,
    json: bool,
    reply: &mut Reply<'_, W>,
) -> Result<(), ClientEnd> {
    let mut dump = Dump::begin(json, &mut reply.made);
    let mut list = List::default();
    let mut cursor = Some(DumpCursor::default());
    while let Some(from) = cursor {
        // Requested again for each slice, so that a client that does not read blocks nobody.
        let mut asking = shared.shard.ask_in_line(peer).await;
        // The shard is missing only while the daemon stops.
        let Ok(slice) = asking.call(move |worker| worker.turn.shard.dump(kind, from)).await else { break };
        drop(asking);
        reply.begin_slice();
        for row in slice.rows {
            // Another series may have replaced it meanwhile.
            if !(row.goes_on && list.is_of(&row.name)) {
                list.end(&mut dump, &mut reply.made);
            }
            match row.held {
                Held::Number(value) => dump.number(&row.name, value, &mut reply.made),
                Held::Numbers(values) => {
                    list.begin(row.name, &mut dump, &mut reply.made);
                    for piece in values.chunks(PIECE_VALUES) {
                        piece.iter().for_each(|value| dump.list_number(*value, &mut reply.made));
                        reply.go_on().await?;
                    }
                }
                Held::Members(members) => {
                    list.begin(row.name, &mut dump, &mut reply.made);
                    for piece in members.chunks(PIECE_BYTES) {
                        list.members(piece, &mut dump, &mut reply.made);
                        reply.go_on().await?;
                    }
                }
            }
            reply.go_on().await?;
        }
        cursor = slice.next;
    }
    list.end(&mut dump, &mut reply.made);
    dump.end(&mut reply.made);
    Ok(())
}

/// The timer or set that is being written.
#[derive(Debug, Default)]
struct List {
    /// `None` when there is none.
    name: Option<Vec<u8>>,
    /// The incomplete member; `None` before the first one.
    member: Option<Vec<u8>>,
}

impl List {
    fn is_of(&self, name: &[u8]) -> bool {
        self.name.as_deref() == Some(name)
    }

    /// Begins the list of `name`, unless it continues.
    fn begin(&mut self, name: Vec<u8>, dump: &mut Dump, out: &mut Vec<u8>) {
        if !self.is_of(&name) {
            dump.list_begin(&name, out);
            self.name = Some(name);
        }
    }

    /// Adds bytes of members, separated by line feeds. A member may span several calls.
    fn members(&mut self, bytes: &[u8], dump: &mut Dump, out: &mut Vec<u8>) {
        for (at, part) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if at > 0
                && let Some(whole) = self.member.take()
            {
                dump.list_text(&whole, out);
            }
            self.member.get_or_insert_default().extend_from_slice(part);
        }
    }

    fn end(&mut self, dump: &mut Dump, out: &mut Vec<u8>) {
        if let Some(last) = self.member.take() {
            dump.list_text(&last, out);
        }
        if self.name.take().is_some() {
            dump.list_end(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_do_not_depend_on_where_pieces_end() {
        let members = b"one\n\ntwo\nthree".as_slice();
        let whole = written(members, members.len());
        assert!(whole.contains("'two'"), "{whole}");
        for piece in 1..members.len() {
            assert_eq!(written(members, piece), whole, "pieces of {piece}");
        }
    }

    #[test]
    fn a_set_without_members_is_an_empty_list() {
        assert_eq!(written(b"", 1), "{ 'a': [],\n  'b': [ 'x' ] }\nEND\n\n".replace("[ 'x' ]", &just("x")));
    }

    fn just(member: &str) -> String {
        let all = written(member.as_bytes(), 1);
        let from = all.find("'b': ").expect("it is there") + 5;
        all[from..].split(" }\n").next().expect("it ends").to_owned()
    }

    /// Series `a` with `members` in pieces, and `b` with `x`.
    fn written(members: &[u8], piece: usize) -> String {
        let mut out = Vec::new();
        let mut dump = Dump::begin(false, &mut out);
        let mut list = List::default();
        for (name, members) in [(b"a", members), (b"b", b"x".as_slice())] {
            list.begin(name.to_vec(), &mut dump, &mut out);
            members.chunks(piece).for_each(|piece| list.members(piece, &mut dump, &mut out));
            list.end(&mut dump, &mut out);
        }
        dump.end(&mut out);
        String::from_utf8(out).expect("it is text")
    }
}

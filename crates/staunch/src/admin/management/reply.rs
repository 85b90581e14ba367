//! An answer on its way to a client: made in pieces, each written before the next is made.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::ClientEnd;
use crate::admission::Seat;
use sys::clock::Clock;

/// A piece that is as long as this is written.
const PIECE_BYTES: usize = 32 * 1024;

/// A client that reads nothing of its answer for so long is closed.
const WRITE_STALL_MAX: Duration = Duration::from_secs(10);

/// One answer.
pub(super) struct Reply<'a, W> {
    to: &'a mut W,
    seat: &'a Seat,
    /// Made, and not written.
    pub(super) made: Vec<u8>,
    stall_max: Duration,
}

impl<'a, W: AsyncWrite + Unpin> Reply<'a, W> {
    pub(super) fn new(to: &'a mut W, seat: &'a Seat) -> Reply<'a, W> {
        Reply { to, seat, made: Vec::new(), stall_max: WRITE_STALL_MAX }
    }

    /// Writes what is made, once it is long enough.
    ///
    /// # Errors
    /// When the client is gone, or reads nothing.
    pub(super) async fn go_on(&mut self) -> Result<(), ClientEnd> {
        if self.made.len() >= PIECE_BYTES { self.finish().await } else { Ok(()) }
    }

    /// Writes what is made.
    ///
    /// # Errors
    /// As [`Self::go_on`].
    pub(super) async fn finish(&mut self) -> Result<(), ClientEnd> {
        let mut written = 0;
        while written < self.made.len() {
            self.seat.wait_begins(Clock::mono_ns());
            let wrote = tokio::time::timeout(self.stall_max, self.to.write(&self.made[written..])).await;
            self.seat.wait_ends();
            written += match wrote {
                Err(_elapsed) => return Err(ClientEnd::Unread),
                Ok(Ok(len)) if len > 0 => len,
                Ok(failed) => {
                    let why = failed.err().unwrap_or_else(|| io::ErrorKind::WriteZero.into());
                    tracing::debug!("management client: {why}");
                    return Err(ClientEnd::Broken);
                }
            };
        }
        self.made.clear();
        self.made.shrink_to(2 * PIECE_BYTES);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::AsyncReadExt;

    use super::*;
    use crate::admission::{Admission, Leave};
    use model::PeerKey;

    fn run<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(future)
    }

    #[test]
    fn a_piece_is_written_at_its_length_and_the_rest_at_the_end() {
        run(async {
            let seat = Arc::new(Admission::default()).admit_anyway(PeerKey::Local);
            let (mut near, mut far) = tokio::io::duplex(3 * PIECE_BYTES);
            let mut reply = Reply::new(&mut near, &seat);
            reply.made.resize(PIECE_BYTES - 1, b'x');
            reply.go_on().await.expect("nothing is written");
            assert_eq!(reply.made.len(), PIECE_BYTES - 1);
            reply.made.push(b'y');
            reply.go_on().await.expect("there is room");
            assert!(reply.made.is_empty());
            reply.made.push(b'z');
            reply.finish().await.expect("there is room");
            drop(near);
            let mut got = Vec::new();
            far.read_to_end(&mut got).await.expect("memory");
            assert_eq!((got.len(), &got[got.len() - 2..]), (PIECE_BYTES + 1, &b"yz"[..]));
        });
    }

    #[test]
    fn who_does_not_read_is_closed_and_may_be_replaced() {
        run(async {
            let places = Arc::new(Admission::default());
            let seat = places.admit_anyway(PeerKey::Local);
            let (mut near, _far) = tokio::io::duplex(10);
            let mut reply = Reply::new(&mut near, &seat);
            reply.stall_max = Duration::from_millis(1);
            reply.made.resize(11, b'x');
            assert_eq!(reply.finish().await, Err(ClientEnd::Unread));
            reply.stall_max = WRITE_STALL_MAX;
            let limits = crate::admission::Limits { all: 1, per_peer: 1 };
            let replace = async {
                let now_ns = Clock::mono_ns() + 10;
                places.admit_or_replace(PeerKey::Local, limits, now_ns, 1).expect("it only waits");
                seat.asked_to_leave().await
            };
            tokio::select! {
                biased;
                written = reply.finish() => panic!("nobody reads: {written:?}"),
                leave = replace => assert_eq!(leave, Leave::Replaced),
            }
            drop(_far);
            assert_eq!(reply.finish().await, Err(ClientEnd::Broken));
        });
    }
}

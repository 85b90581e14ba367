//! A reply to a client: built in pieces, each written before the next one is built.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::ClientEnd;
use crate::admission::ConnectionSlot;
use sys::clock::Clock;

/// A piece of this length is written.
const PIECE_BYTES: usize = 32 * 1024;

/// Timeout for a client that reads nothing of its reply.
const WRITE_STALL_MAX: Duration = Duration::from_secs(10);

/// Timeout for reading a whole reply, or one slice of a dump.
const READING_MAX: Duration = Duration::from_secs(60);

/// One reply.
pub(super) struct Reply<'a, W> {
    to: &'a mut W,
    slot: &'a ConnectionSlot,
    /// Built but not written.
    pub(super) made: Vec<u8>,
    stall_max: Duration,
    reading_max: Duration,
    /// The time spent waiting for the client.
    waited: Duration,
}

impl<'a, W: AsyncWrite + Unpin> Reply<'a, W> {
    pub(super) fn new(to: &'a mut W, slot: &'a ConnectionSlot) -> Reply<'a, W> {
        Reply {
            to,
            slot,
            made: Vec::new(),
            stall_max: WRITE_STALL_MAX,
            reading_max: READING_MAX,
            waited: Duration::ZERO,
        }
    }

    /// Begins a slice of an unlimited reply, which has its own timeout.
    pub(super) fn begin_slice(&mut self) {
        self.waited = Duration::ZERO;
    }

    /// Writes the built text once it is long enough.
    ///
    /// # Errors
    /// When the client has closed the connection, reads nothing, or reads too slowly.
    pub(super) async fn go_on(&mut self) -> Result<(), ClientEnd> {
        if self.made.len() >= PIECE_BYTES { self.finish().await } else { Ok(()) }
    }

    /// Writes the built text.
    ///
    /// # Errors
    /// As [`Self::go_on`].
    pub(super) async fn finish(&mut self) -> Result<(), ClientEnd> {
        let mut written = 0;
        while written < self.made.len() {
            let begun_ns = Clock::mono_ns();
            let left = self.reading_max.saturating_sub(self.waited);
            self.slot.wait_begins(begun_ns);
            let write = self.to.write(&self.made[written..]);
            let wrote = tokio::time::timeout(self.stall_max.min(left), write).await;
            self.slot.wait_ends();
            self.waited += Duration::from_nanos(Clock::mono_ns() - begun_ns);
            written += match wrote {
                Err(_elapsed) if left < self.stall_max => return Err(ClientEnd::Slow),
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
            let slot = Arc::new(Admission::default()).admit_anyway(PeerKey::Local);
            let (mut near, mut far) = tokio::io::duplex(3 * PIECE_BYTES);
            let mut reply = Reply::new(&mut near, &slot);
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
    fn a_client_that_reads_slowly_is_closed_at_the_total_timeout() {
        run(async {
            let slot = Arc::new(Admission::default()).admit_anyway(PeerKey::Local);
            let (mut near, mut far) = tokio::io::duplex(1);
            let mut reply = Reply::new(&mut near, &slot);
            reply.reading_max = Duration::from_millis(20);
            reply.stall_max = Duration::from_secs(3600);
            let reads = async {
                while far.read(&mut [0; 1]).await.is_ok_and(|len| len > 0) {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            let writes = async {
                loop {
                    reply.made.resize(PIECE_BYTES, b'x');
                    if let Err(end) = reply.go_on().await {
                        return end;
                    }
                }
            };
            tokio::select! {
                end = writes => assert_eq!(end, ClientEnd::Slow),
                () = reads => panic!("the other end is there"),
            }
            // A slice of a dump has its own timeout.
            reply.begin_slice();
            assert_eq!(reply.waited, Duration::ZERO);
        });
    }

    #[test]
    fn a_client_that_does_not_read_is_closed_and_may_be_replaced() {
        run(async {
            let places = Arc::new(Admission::default());
            let slot = places.admit_anyway(PeerKey::Local);
            let (mut near, _far) = tokio::io::duplex(10);
            let mut reply = Reply::new(&mut near, &slot);
            reply.stall_max = Duration::from_millis(1);
            reply.made.resize(11, b'x');
            assert_eq!(reply.finish().await, Err(ClientEnd::Unread));
            reply.stall_max = WRITE_STALL_MAX;
            let limits = crate::admission::Limits { all: 1, per_peer: 1 };
            let replace = async {
                let now_ns = Clock::mono_ns() + 10;
                places.admit_or_replace(PeerKey::Local, limits, now_ns, 1).expect("it only waits");
                slot.asked_to_leave().await
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

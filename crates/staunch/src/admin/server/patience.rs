//! A stream with timeouts for writes: for clients that do not read, and for those that read a byte now and then.

use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// A stream whose writes must progress.
#[derive(Debug)]
pub(crate) struct Patient<S> {
    stream: S,
    patience: Duration,
    /// The deadline for progress of a pending write.
    until: Pin<Box<Sleep>>,
    waits: bool,
    /// Longest time from a write that had to wait to the flush after it. What the writer buffers is smaller than an answer and may be read
    /// byte by byte, each in time.
    behind_max: Duration,
    /// That deadline, while the peer is behind.
    behind_until: Option<Pin<Box<Sleep>>>,
}

/// The peer has read something now and then, but not all in time: the cause of an error of [`Patient`].
#[derive(Debug)]
pub(crate) struct TooSlow(Duration);

impl fmt::Display for TooSlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the peer did not read all within {} s", self.0.as_secs())
    }
}

impl std::error::Error for TooSlow {}

impl<S> Patient<S> {
    /// A stream with this write timeout.
    pub(crate) fn new(stream: S, patience: Duration) -> Patient<S> {
        Patient {
            stream,
            patience,
            until: Box::pin(tokio::time::sleep(patience)),
            waits: false,
            behind_max: Duration::MAX,
            behind_until: None,
        }
    }

    /// The same, and what was written must be read within `behind_max`.
    pub(crate) fn with_end(stream: S, patience: Duration, behind_max: Duration) -> Patient<S> {
        Patient { behind_max, ..Patient::new(stream, patience) }
    }

    /// The result of a write, with the timeout as an error.
    fn judged<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waits = false;
            return written;
        }
        if !std::mem::replace(&mut self.waits, true) {
            self.until.set(tokio::time::sleep(self.patience));
        }
        let behind_max = self.behind_max;
        let behind = self.behind_until.get_or_insert_with(|| Box::pin(tokio::time::sleep(behind_max)));
        if behind.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, TooSlow(behind_max))));
        }
        ready!(self.until.as_mut().poll(cx));
        let why = format!("the peer read nothing for {} s", self.patience.as_secs());
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, why)))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, from);
        self.judged(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, from);
        self.judged(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        if flushed.is_ready() {
            self.behind_until = None;
        }
        self.judged(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.judged(cx, shut)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn a_peer_that_reads_nothing_times_out_and_one_that_reads_slowly_does_not() {
        let (ours, mut theirs) = tokio::io::duplex(4);
        let mut ours = Patient::new(ours, Duration::from_secs(3600));
        ours.write_all(b"1234").await.expect("there is room");
        let reader = async {
            for _ in 0..4 {
                theirs.read_exact(&mut [0; 1]).await.expect("it is there");
            }
        };
        let (written, ()) = tokio::join!(ours.write_all(b"5678"), reader);
        written.expect("it got on all the time");
        ours.patience = Duration::from_millis(1);
        let error = ours.write_all(b"9").await.expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_peer_that_reads_a_byte_now_and_then_has_a_time_for_all() {
        let (ours, mut theirs) = tokio::io::duplex(4);
        let hour = Duration::from_secs(3600);
        let mut ours = Patient::with_end(ours, hour, hour);
        let reader = async {
            while theirs.read(&mut [0; 1]).await.is_ok_and(|len| len > 0) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let writer = async {
            // The time begins with a write that waits, and ends with a flush.
            ours.write_all(b"12345678").await.expect("in time");
            assert!(ours.behind_until.is_some());
            ours.flush().await.expect("in time");
            assert!(ours.behind_until.is_none());
            ours.behind_max = Duration::from_millis(20);
            let error = ours.write_all(&[b'9'; 1000]).await.expect_err("it takes a second");
            drop(ours);
            error
        };
        let (error, ()) = tokio::join!(writer, reader);
        assert!(error.get_ref().is_some_and(|cause| cause.is::<TooSlow>()), "{error}");
    }
}

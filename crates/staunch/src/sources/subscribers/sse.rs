//! The body of an answer that is server-sent events (spec riemann §6.3): what the index has, then what comes later.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame};
use pipeline::{IndexQuery, Received, Subscriber};
use tokio::time::{Sleep, sleep};

use super::connection::{Begun, PIECE_BYTES, PING_EVERY};
use crate::daemon::shared::snapshots::Room;

/// A comment: clients ignore it.
const COMMENT: &[u8] = b":\n\n";

/// See the file's header.
pub(super) struct Sse {
    found: Option<(IndexQuery, Room)>,
    later: Option<Subscriber>,
    messages: Vec<Arc<str>>,
    /// When a silent client gets a comment.
    comment: Pin<Box<Sleep>>,
}

impl Sse {
    pub(super) fn new(Begun { found, later }: Begun) -> Sse {
        Sse { found, later, messages: Vec::new(), comment: Box::pin(sleep(PING_EVERY)) }
    }

    /// The next events of the index.
    fn of_index(&mut self) -> Option<Vec<u8>> {
        let (query, _) = self.found.as_mut()?;
        let (mut out, mut json) = (Vec::new(), Vec::new());
        while out.len() < PIECE_BYTES {
            json.clear();
            if !query.next_json(&mut json) {
                self.found = None;
                break;
            }
            event(&json, &mut out);
        }
        (!out.is_empty()).then_some(out)
    }
}

/// Appends an event.
fn event(json: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(json);
    out.extend_from_slice(b"\n\n");
}

impl Body for Sse {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = |bytes: Vec<u8>| Poll::Ready(Some(Ok(Frame::data(bytes.into()))));
        if let Some(found) = self.of_index() {
            return frame(found);
        }
        let Sse { later, messages, comment, .. } = &mut *self;
        let Some(later) = later else { return Poll::Ready(None) };
        match later.poll(cx, PIECE_BYTES, messages) {
            Poll::Ready(Received::Messages) => {
                let mut out = Vec::new();
                messages.drain(..).for_each(|message| event(message.as_bytes(), &mut out));
                comment.set(sleep(PING_EVERY));
                frame(out)
            }
            // The client connects again, and gets the whole index.
            Poll::Ready(Received::Lost(_) | Received::TooSlow | Received::Closed) => Poll::Ready(None),
            Poll::Pending => match comment.as_mut().poll(cx) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(()) => {
                    comment.set(sleep(PING_EVERY));
                    frame(COMMENT.to_vec())
                }
            },
        }
    }
}

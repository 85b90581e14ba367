//! Bodies of requests and responses, with limits.
//!
//! A request body is read only after its head was accepted (`guard`). Few requests are read at a time, each with a
//! timeout, and a body counts until its work is done. Responses count against a limit for all of them, and those of one
//! client against half of the memory that others leave. They are copied to the socket in pieces, so that a slow reader
//! holds the document only until nearly all of it is in the kernel. A response whose size depends on outside names
//! (`series`) counts before it is built.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body as _, Bytes, Frame, SizeHint};
use model::PeerKey;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::refusal::Refusal;

/// Most bodies that are read or processed at once.
const BODIES_MAX: usize = 4;

/// Timeout for a whole body.
const BODY_TIME_MAX: Duration = Duration::from_secs(60);

/// Timeout for the next bytes of a body.
const BODY_PATIENCE: Duration = Duration::from_secs(10);

/// Most bytes of all responses in progress.
const ANSWERS_BYTES_MAX: usize = 64 << 20;

/// Most bytes of the responses of one client among them, while no other client has any.
const PEER_ANSWERS_BYTES_MAX: usize = ANSWERS_BYTES_MAX / 2;

/// Value of `Retry-After` at a limit, in seconds.
const RETRY_AFTER_S: &str = "1";

/// Bytes of a response that are passed to the connection at a time.
const PIECE_BYTES: usize = 16 * 1024;

/// The limits of bodies and responses, for all connections together.
#[derive(Debug)]
pub(super) struct Bodies {
    read: Arc<Semaphore>,
    time_max: Duration,
    patience: Duration,
    answers: Arc<Answers>,
}

/// A complete request body. It counts as being read until it is dropped.
#[derive(Debug)]
pub(super) struct Whole {
    bytes: Vec<u8>,
    _one: OwnedSemaphorePermit,
}

impl Deref for Whole {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Default for Bodies {
    fn default() -> Bodies {
        Bodies {
            read: Arc::new(Semaphore::new(BODIES_MAX)),
            time_max: BODY_TIME_MAX,
            patience: BODY_PATIENCE,
            answers: Arc::default(),
        }
    }
}

impl Bodies {
    /// Reads a body of at most `bytes_max`.
    ///
    /// # Errors
    /// A status and a sentence. Nothing is read when its declared length is over the limit.
    pub(super) async fn read(&self, body: Body, bytes_max: usize) -> Result<Whole, Refusal> {
        let too_long =
            || (StatusCode::PAYLOAD_TOO_LARGE, format!("the body is longer than {bytes_max} bytes"));
        if body.size_hint().lower() > bytes_max as u64 {
            return Err(too_long());
        }
        let one = Arc::clone(&self.read).try_acquire_owned().map_err(|_full| {
            let why = format!("{BODIES_MAX} request bodies are being processed: retry later");
            (StatusCode::SERVICE_UNAVAILABLE, why)
        })?;
        let late = |_late| (StatusCode::REQUEST_TIMEOUT, "the body came too slowly".to_owned());
        let whole = async {
            let mut limited = std::pin::pin!(Limited::new(body, bytes_max));
            let mut bytes = Vec::new();
            loop {
                let frame = tokio::time::timeout(self.patience, limited.frame()).await.map_err(late)?;
                match frame {
                    None => return Ok(bytes),
                    Some(Ok(frame)) => bytes.extend(frame.into_data().iter().flatten()),
                    Some(Err(error)) if error.is::<LengthLimitError>() => return Err(too_long()),
                    Some(Err(error)) => {
                        return Err((StatusCode::BAD_REQUEST, format!("the body is incomplete: {error}")));
                    }
                }
            }
        };
        let bytes = tokio::time::timeout(self.time_max, whole).await.map_err(late)??;
        Ok(Whole { bytes, _one: one })
    }

    /// A document as JSON for `peer`, or an error.
    pub(super) fn answer<T: Serialize>(&self, peer: PeerKey, done: Result<T, Refusal>) -> Response {
        match done {
            Ok(document) => match serde_json::to_vec(&document) {
                Ok(bytes) => self.bytes(peer, "application/json", bytes),
                Err(error) => refused(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
            },
            Err((status, why)) => refused(status, &why),
        }
    }

    /// A response of that type for `peer`, if there is room for it.
    pub(super) fn bytes(&self, peer: PeerKey, kind: &'static str, bytes: impl Into<Bytes>) -> Response {
        let bytes = bytes.into();
        match self.answers.room(peer, bytes.len()) {
            Ok(room) => answer(kind, bytes, room),
            Err(why) => refused(StatusCode::SERVICE_UNAVAILABLE, why),
        }
    }

    /// Reserves memory for building a response for `peer`.
    ///
    /// # Errors
    /// A status and a sentence when there is not enough.
    pub(super) fn reserve(&self, peer: PeerKey, bytes: usize) -> Result<Room, Refusal> {
        self.answers.room(peer, bytes).map_err(|why| (StatusCode::SERVICE_UNAVAILABLE, why.to_owned()))
    }

    /// A JSON response that was built in `room`, which shrinks to the response's size.
    pub(super) fn made(&self, mut room: Room, mut json: Vec<u8>) -> Response {
        json.shrink_to_fit();
        match room.resize(json.len()) {
            Ok(()) => answer("application/json", json.into(), room),
            Err((status, why)) => refused(status, &why),
        }
    }
}

fn answer(kind: &'static str, bytes: Bytes, room: Room) -> Response {
    let mut answer = Body::new(Pieces { bytes, _room: room }).into_response();
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

/// The bytes of responses that are sent or built.
#[derive(Debug, Default)]
struct Answers(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    all: usize,
    of_peer: BTreeMap<PeerKey, usize>,
}

/// The memory of a response, until it is dropped.
#[derive(Debug)]
pub(super) struct Room {
    answers: Arc<Answers>,
    peer: PeerKey,
    of_all: usize,
    of_peer: usize,
}

impl Answers {
    /// Memory for a response, or an error. A response over the total limit must be alone; one over the client's limit
    /// must be the client's only one.
    fn room(self: &Arc<Answers>, peer: PeerKey, bytes: usize) -> Result<Room, &'static str> {
        let (of_all, of_peer) = self.lock().take(peer, bytes)?;
        Ok(Room { answers: Arc::clone(self), peer, of_all, of_peer })
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// How much a response of this size counts in total and for its peer.
    fn take(&mut self, peer: PeerKey, bytes: usize) -> Result<(usize, usize), &'static str> {
        let (of_all, of_peer) = (bytes.min(ANSWERS_BYTES_MAX), bytes.min(PEER_ANSWERS_BYTES_MAX));
        let held_of_peer = self.of_peer.get(&peer).copied().unwrap_or(0);
        if held_of_peer + of_peer > PEER_ANSWERS_BYTES_MAX {
            return Err("this client has too many unread responses: retry later");
        }
        // Regardless of the number of clients, each leaves room for the next.
        let of_others: usize =
            self.of_peer.iter().filter(|(other, _)| **other != peer).map(|(_, has)| has).sum();
        let left = ANSWERS_BYTES_MAX.saturating_sub(of_others);
        if self.all + of_all > ANSWERS_BYTES_MAX || (of_others > 0 && held_of_peer + of_peer > left / 2) {
            return Err("too many unread responses: retry later");
        }
        self.all += of_all;
        self.of_peer.insert(peer, held_of_peer + of_peer);
        Ok((of_all, of_peer))
    }

    fn give_back(&mut self, peer: PeerKey, (of_all, of_peer): (usize, usize)) {
        self.all -= of_all;
        if let Some(bytes) = self.of_peer.get_mut(&peer) {
            *bytes -= of_peer;
            if *bytes == 0 {
                self.of_peer.remove(&peer);
            }
        }
    }
}

impl Room {
    /// Changes its size.
    ///
    /// # Errors
    /// A status and a sentence when there is not enough; the size is unchanged then. Shrinking never fails.
    pub(super) fn resize(&mut self, bytes: usize) -> Result<(), Refusal> {
        let mut held = self.answers.lock();
        let before = (self.of_all, self.of_peer);
        // A smaller size is always granted, even when the limits have become lower because of other clients.
        if bytes <= self.of_peer {
            held.give_back(self.peer, (self.of_all - bytes, self.of_peer - bytes));
            (self.of_all, self.of_peer) = (bytes, bytes);
            return Ok(());
        }
        held.give_back(self.peer, before);
        match held.take(self.peer, bytes) {
            Ok(now) => {
                (self.of_all, self.of_peer) = now;
                Ok(())
            }
            Err(why) => {
                held.all += before.0;
                *held.of_peer.entry(self.peer).or_insert(0) += before.1;
                Err((StatusCode::SERVICE_UNAVAILABLE, why.to_owned()))
            }
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.answers.lock().give_back(self.peer, (self.of_all, self.of_peer));
    }
}

/// A rejection with a sentence. A limit is soon free again, so 503 has a `Retry-After`.
pub(super) fn refused(status: StatusCode, why: &str) -> Response {
    let mut refusal = (status, format!("{why}\n")).into_response();
    if status == StatusCode::SERVICE_UNAVAILABLE {
        refusal.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_S));
    }
    refusal
}

/// A response that is sent in pieces.
struct Pieces {
    bytes: Bytes,
    _room: Room,
}

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let length = self.bytes.len().min(PIECE_BYTES);
        let piece = self.bytes.split_to(length);
        Poll::Ready((!piece.is_empty()).then_some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn bodies_are_read_up_to_the_limit_and_few_at_a_time() {
        let bodies = Bodies::default();
        let read = async |len: usize| bodies.read(Body::from(vec![b'a'; len]), 100).await;
        assert_eq!(read(100).await.expect("at the bound").len(), 100);
        assert_eq!(read(101).await.expect_err("past it").0, StatusCode::PAYLOAD_TOO_LARGE);
        // A body without a declared length.
        let frames = futures_of(vec![60, 41]);
        assert_eq!(bodies.read(frames, 100).await.expect_err("past it").0, StatusCode::PAYLOAD_TOO_LARGE);
        let most = [read(1).await, read(2).await, read(3).await, read(4).await];
        assert_eq!(most.len(), BODIES_MAX);
        assert_eq!(read(1).await.expect_err("none is done with").0, StatusCode::SERVICE_UNAVAILABLE);
        drop(most);
        let _others = bodies.read.acquire_many(BODIES_MAX as u32).await.expect("it is open");
        assert_eq!(read(1).await.expect_err("no turn").0, StatusCode::SERVICE_UNAVAILABLE);
    }

    /// A body in frames of these lengths.
    fn futures_of(lens: Vec<usize>) -> Body {
        struct Frames(Vec<usize>);
        impl hyper::body::Body for Frames {
            type Data = Bytes;
            type Error = Infallible;
            fn poll_frame(
                mut self: Pin<&mut Self>,
                _cx: &mut Context<'_>,
            ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
                Poll::Ready(self.0.pop().map(|len| Ok(Frame::data(Bytes::from(vec![0; len])))))
            }
        }
        Body::new(Frames(lens))
    }

    /// A body without an end, with one byte after each `pause`.
    struct Slow {
        pause: Duration,
        next: Pin<Box<tokio::time::Sleep>>,
    }

    impl hyper::body::Body for Slow {
        type Data = Bytes;
        type Error = Infallible;
        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            std::task::ready!(self.next.as_mut().poll(cx));
            let at = tokio::time::Instant::now() + self.pause;
            self.next.as_mut().reset(at);
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"x")))))
        }
    }

    #[tokio::test]
    async fn a_body_that_arrives_too_slowly_times_out() {
        const SOON: Duration = Duration::from_millis(20);
        const NEVER: Duration = Duration::from_secs(3600);
        // A body that stalls; one that never stalls and has no end.
        for (pause, patience, time_max) in [(NEVER, SOON, NEVER), (Duration::from_millis(1), NEVER, SOON)] {
            let bodies = Bodies { patience, time_max, ..Bodies::default() };
            let body = Body::new(Slow { pause, next: Box::pin(tokio::time::sleep(pause)) });
            let refusal = bodies.read(body, usize::MAX).await.expect_err("it has no end");
            assert_eq!(refusal.0, StatusCode::REQUEST_TIMEOUT, "a byte each {pause:?}");
            assert_eq!(bodies.read.available_permits(), BODIES_MAX);
        }
    }

    fn peer(number: u8) -> PeerKey {
        crate::admission::peer_key(Some([127, 0, 0, number].into()))
    }

    #[tokio::test]
    async fn answers_within_the_limit_are_sent_completely() {
        let bodies = Bodies::default();
        let bytes = |number, len| bodies.bytes(peer(number), "text/plain", vec![0; len]);
        let text: Vec<u8> = (0..3 * PIECE_BYTES + 7).map(|at| at as u8).collect();
        let whole = bodies.bytes(peer(1), "text/plain", text.clone()).into_body().collect().await;
        assert_eq!(whole.expect("it cannot fail").to_bytes(), text);
        let most = bytes(1, ANSWERS_BYTES_MAX + 1);
        assert_eq!(most.status(), StatusCode::OK, "alone there is room for any");
        assert_eq!(bytes(2, 1).status(), StatusCode::SERVICE_UNAVAILABLE);
        drop(most);
        assert_eq!(bytes(2, 1).status(), StatusCode::OK);
    }

    #[test]
    fn answers_count_while_they_are_built_and_free_unused_memory() {
        const MAKING: usize = 2 << 20;
        let bodies = Bodies::default();
        let mut making: Vec<Room> = (0..99).map_while(|_| bodies.reserve(peer(1), MAKING).ok()).collect();
        assert_eq!(making.len(), PEER_ANSWERS_BYTES_MAX / MAKING, "at the bound");
        let refusal = bodies.bytes(peer(1), "text/plain", vec![0; 1]);
        assert_eq!(refusal.status(), StatusCode::SERVICE_UNAVAILABLE, "past it");
        assert_eq!(refusal.headers()[header::RETRY_AFTER], RETRY_AFTER_S);
        let others: Vec<Room> =
            (2..99).filter_map(|number| bodies.reserve(peer(number), MAKING).ok()).collect();
        let all = (making.len() + others.len()) * MAKING;
        assert!(all < ANSWERS_BYTES_MAX, "the bound is that of all answers: {all}");
        assert_eq!(bodies.answers.lock().all, all);
        // Because of other clients its limit is below its size: it keeps the needed part.
        let made = bodies.made(making.pop().expect("there are some"), vec![0; MAKING / 2]);
        assert_eq!(made.status(), StatusCode::OK);
        assert_eq!(bodies.answers.lock().all, all - MAKING / 2);
        let most = making.last_mut().expect("there are some").resize(PEER_ANSWERS_BYTES_MAX);
        assert_eq!(most.expect_err("past the bound").0, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(bodies.answers.lock().all, all - MAKING / 2, "it has what it had");
        drop((making, others, made));
        assert_eq!(bodies.answers.lock().all, 0);
        assert!(bodies.answers.lock().of_peer.is_empty());
        let mut alone = bodies.reserve(peer(1), 1).expect("nobody else is there");
        alone.resize(2 * ANSWERS_BYTES_MAX).expect("alone there is room for any");
        alone.resize(1).expect("it is less");
        assert_eq!(bodies.answers.lock().all, 1);
    }

    #[test]
    fn one_client_may_use_half_of_the_memory() {
        let bodies = Bodies::default();
        let bytes = |number, len| bodies.bytes(peer(number), "text/plain", vec![0; len]);
        let half: Vec<Response> = (0..8).map(|_| bytes(1, PEER_ANSWERS_BYTES_MAX / 8)).collect();
        assert!(half.iter().all(|answer| answer.status() == StatusCode::OK), "at the bound");
        assert_eq!(bytes(1, 1).status(), StatusCode::SERVICE_UNAVAILABLE, "past it");
        let other = bytes(2, PEER_ANSWERS_BYTES_MAX / 2);
        assert_eq!(other.status(), StatusCode::OK, "half of what is left");
        assert_eq!(bytes(2, 1).status(), StatusCode::SERVICE_UNAVAILABLE, "past it");
        let thirds: Vec<Response> = (3..9).map(|number| bytes(number, 128 * 1024)).collect();
        assert!(thirds.iter().all(|answer| answer.status() == StatusCode::OK), "there is room for others");
        drop((half, other, thirds));
        assert!(bodies.answers.lock().of_peer.is_empty(), "clients without an answer are forgotten");
        assert_eq!(bodies.answers.lock().all, 0);
    }
}

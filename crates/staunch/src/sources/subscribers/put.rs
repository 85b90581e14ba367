//! Events that clients put: lines of JSON in bodies of requests, and frames of WebSockets (spec riemann §6.2).
//!
//! Invariant: a reply comes after its event was handed on.

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::CONTENT_ENCODING;
use hyper::{Request, StatusCode};
use model::Batches;
use pipeline::Intake;

use super::connection::{BUFFER_BYTES, Connection};
use crate::daemon::shared::names::peer;
use crate::sources::listener::{StreamSource, idle_timeout};
use crate::sources::stream::{close, hand_on, take_apart, turn_to_read};

/// Longest silence within a body. A shorter `idle_timeout` counts instead.
const BODY_PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);
/// Bytes of the replies to one body: what follows the line that exceeds them is not read.
const REPLIES_BYTES_MAX: usize = 1 << 20;

/// The daemon stops, or a line begins what cannot be read.
pub(super) struct Ends(pub(super) &'static str);

/// Events of one client.
pub(super) struct Events {
    source: StreamSource,
    intake: Intake,
}

impl Connection<'_> {
    /// Takes the events of a request. The answer has a line for each of them.
    ///
    /// # Errors
    /// The answer instead.
    pub(super) async fn put(
        &self,
        request: Request<Incoming>,
        source: StreamSource,
    ) -> Result<Vec<u8>, (StatusCode, &'static str)> {
        if request.headers().get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
            return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must not be compressed"));
        }
        let patience = idle_timeout(&source.plan).min(BODY_PATIENCE);
        let (mut events, mut body, mut replies) = (self.events(source), request.into_body(), Vec::new());
        let is_whole = loop {
            // A client that stops in its body has the replies to what it has sent.
            let Ok(frame) = tokio::time::timeout(patience, body.frame()).await else { break false };
            let data = match frame {
                None => break true,
                Some(Err(_ended)) => break false,
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            };
            for piece in data.chunks(BUFFER_BYTES) {
                if let Err(Ends(why)) = self.take(&mut events, piece, &mut replies).await {
                    self.end(&mut events, &mut replies, false).await;
                    return Err((StatusCode::SERVICE_UNAVAILABLE, why));
                }
            }
            if replies.len() > REPLIES_BYTES_MAX {
                break false;
            }
        };
        self.end(&mut events, &mut replies, is_whole).await;
        Ok(replies)
    }

    /// The begin of a client's events.
    pub(super) fn events(&self, source: StreamSource) -> Events {
        let mut intake = source.intake.make();
        intake.set_peer(peer(self.client.address));
        intake.set_peer_key(self.client.key);
        Events { source, intake }
    }

    /// Takes the next bytes, and appends the replies to the lines that they end.
    pub(super) async fn take(
        &self,
        events: &mut Events,
        bytes: &[u8],
        replies: &mut Vec<u8>,
    ) -> Result<(), Ends> {
        // Cancel-safe: nothing is taken while it waits.
        let _turn = turn_to_read(&events.intake, self.client.key, self.shared).await;
        let _handing = self.handing.lock().await;
        let batch = self.shared.floor().run(|| take_apart(bytes, &mut events.intake));
        self.hand_on(events, batch, replies).await?;
        match events.intake.broken() {
            None => Ok(()),
            Some(broken) => Err(Ends(broken.why())),
        }
    }

    /// The end of a client's events. The last line of a whole body needs no line feed.
    pub(super) async fn end(&self, events: &mut Events, replies: &mut Vec<u8>, is_whole: bool) {
        if is_whole && events.intake.has_tail() && self.take(events, b"\n", replies).await.is_err() {
            return;
        }
        let _handing = self.handing.lock().await;
        let batch = self.shared.floor().run(|| close(&mut events.intake, is_whole));
        // At a stop the events are counted as dropped.
        let _stops = self.hand_on(events, batch, replies).await;
    }

    async fn hand_on(
        &self,
        events: &mut Events,
        batch: Batches<'static>,
        replies: &mut Vec<u8>,
    ) -> Result<(), Ends> {
        let Events { source, intake } = events;
        while let Some(complaint) = intake.take_complaint() {
            (source.complaints)(&complaint, self.from);
        }
        if !hand_on(batch, self.client.key, self.shared).await {
            return Err(Ends("the daemon stops"));
        }
        replies.extend(intake.take_protocol_replies().bytes);
        Ok(())
    }
}

//! Points in the bodies of HTTP requests, as go-carbon takes them (spec graphite §1.6).
//!
//! Path of a point: `accept` -> [`Post::serve`] -> hyper reads the head -> [`Requests::take`] -> pieces of the body -> `Intake::stream` ->
//! `Exchange` -> the shard's thread -> the answer. Not here: accepting (`accept`), parsing (`pipeline`), the daemon's own HTTP (`admin`).
//! Invariants: a piece is read when there is room for its points, so that the client has to wait; `200` comes after all points of the body
//! were handed on. A request in progress at a stop is answered, if its body comes in time. No connection ends while it hands on points
//! ([`Requests::handing`]): they would have no outcome.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, ORIGIN};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use model::Batches;
use pipeline::{Complaint, Intake};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Mutex, watch};
use wire::graphite::input::MessageEncoding;

use super::stream::{End, Stream, close, hand_on, more, take_apart, turn_to_read};
use crate::admission::ConnectionSlot;
use crate::daemon::shared::Shared;
use crate::daemon::shared::names::{peer, shown};
use crate::sources::listener::{Order, StreamSource, idle_timeout, ordered};
use crate::sources::parked::Client;
use sys::clock::Clock;

/// Largest head of a request, and most bytes of a body that are read at once.
const BUFFER_BYTES: usize = 64 * 1024;

/// Most headers of a request.
const HEADERS_MAX: usize = 64;

/// Longest silence within a body. A shorter `idle_timeout` counts instead.
const BODY_PATIENCE: Duration = Duration::from_secs(30);

/// A connection of HTTP.
pub(super) struct Post {
    pub(super) stream: Stream,
    pub(super) client: Client,
    pub(super) source: StreamSource,
}

impl Post {
    /// Serves its requests until its end.
    pub(super) async fn serve(
        self,
        shared: &Shared,
        updates: &watch::Receiver<StreamSource>,
        orders: &mut watch::Receiver<Order>,
        slot: &ConnectionSlot,
    ) {
        let Post { stream, client, source } = self;
        slot.wait_begins(Clock::mono_ns());
        let from = format!("{} at {}", stream.shown_peer(client.key), shown(&source.listen));
        let requests = Requests { client, from: &from, shared, updates, slot, handing: Mutex::new(()) };
        let idle = idle_timeout(&source.plan);
        let end = match stream {
            Stream::Tcp(stream) => requests.serve(stream, idle, orders).await,
            #[cfg(unix)]
            Stream::Unix(stream) => requests.serve(stream, idle, orders).await,
            #[cfg(not(unix))]
            Stream::Unix(_) => End::Stopped,
        };
        slot.wait_ends();
        let account = &source.account;
        match end {
            End::Replaced => account.connections_replaced.fetch_add(1, Relaxed),
            End::Broken(why) => {
                tracing::debug!("connection of {from}: {why}");
                account.connections_broken.fetch_add(1, Relaxed)
            }
            _ => 0,
        };
        account.connections_open.fetch_sub(1, Relaxed);
    }
}

/// What the requests of a connection share.
struct Requests<'a> {
    client: Client,
    /// The client and the listener, for the log.
    from: &'a str,
    shared: &'a Shared,
    updates: &'a watch::Receiver<StreamSource>,
    slot: &'a ConnectionSlot,
    /// Locked while points of a body are with nobody else.
    handing: Mutex<()>,
}

/// The status and the text of an answer.
type Answer = (StatusCode, String);

/// A request in progress: its connection is not replaced.
struct UnderWay<'a>(&'a ConnectionSlot);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.wait_begins(Clock::mono_ns());
    }
}

/// What became of a body so far.
struct Body {
    source: StreamSource,
    intake: Intake,
    points: u64,
}

impl Requests<'_> {
    async fn serve<S>(&self, stream: S, idle: Duration, orders: &mut watch::Receiver<Order>) -> End
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let service = service_fn(|request| async { Ok::<_, Infallible>(self.answer(request).await) });
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(idle);
        builder.max_headers(HEADERS_MAX).max_buf_size(BUFFER_BYTES);
        let mut served = pin!(builder.serve_connection(TokioIo::new(stream), service));
        let (mut stops, mut late) = (false, pin!(tokio::time::sleep(Duration::ZERO)));
        let end = loop {
            // All other branches are cancel-safe.
            tokio::select! {
                biased;
                served = served.as_mut() => {
                    return served.map_or_else(|error| End::Broken(error.to_string()), |()| End::Orderly);
                }
                _leave = self.slot.asked_to_leave() => break End::Replaced,
                _order = ordered(orders), if !stops => {
                    stops = true;
                    late.set(tokio::time::sleep(self.shared.last_read_max()));
                    served.as_mut().graceful_shutdown();
                }
                () = late.as_mut(), if stops => break End::Stopped,
            }
        };
        tokio::select! {
            biased;
            _ended = served.as_mut() => {}
            _handed_on = self.handing.lock() => {}
        }
        end
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        self.slot.wait_ends();
        let _under_way = UnderWay(self.slot);
        let (status, text) = match self.take(request).await {
            Ok(text) => (StatusCode::OK, text),
            Err(answer) => answer,
        };
        let mut response = Response::new(Full::from(format!("{text}\n")));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        if status == StatusCode::METHOD_NOT_ALLOWED {
            headers.insert(ALLOW, HeaderValue::from_static("POST, PUT"));
        }
        response
    }

    /// Takes the points of a request. What it has handed on before an error stays.
    async fn take(&self, request: Request<Incoming>) -> Result<String, Answer> {
        let source = self.updates.borrow().clone();
        let (head, mut content) = request.into_parts();
        let form = form_of(&head.method, &head.headers)?;
        let mut body = self.begin(source, form)?;
        let patience = idle_timeout(&body.source.plan).min(BODY_PATIENCE);
        if form.is_some() {
            // The message comes behind its length, as on a connection of messages.
            let length =
                head.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
            let length: u64 = length.ok_or_else(|| {
                (StatusCode::LENGTH_REQUIRED, "a message needs a `Content-Length`".to_owned())
            })?;
            let length = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
            self.read(&mut body, &length).await?;
        }
        loop {
            let frame = tokio::time::timeout(patience, content.frame()).await;
            let why = match frame {
                Ok(None) => break,
                Ok(Some(Ok(frame))) => {
                    let data = frame.into_data().unwrap_or_default();
                    for piece in data.chunks(BUFFER_BYTES) {
                        self.read(&mut body, piece).await?;
                    }
                    continue;
                }
                Ok(Some(Err(error))) => (StatusCode::BAD_REQUEST, format!("the body ends early: {error}")),
                Err(_late) => {
                    (StatusCode::REQUEST_TIMEOUT, format!("nothing came for {} ms", patience.as_millis()))
                }
            };
            self.end(&mut body, false).await?;
            return Err(why);
        }
        self.end(&mut body, true).await?;
        body.answer()
    }

    fn begin(&self, source: StreamSource, form: Option<MessageEncoding>) -> Result<Body, Answer> {
        let intake = match form {
            None => Some(source.intake.make()),
            Some(form) => source.intake.make_message(form),
        };
        let Some(mut intake) = intake.filter(|_| source.plan.kind.carries_http()) else {
            let why = "a reload has changed what this source takes: connect again".to_owned();
            return Err((StatusCode::SERVICE_UNAVAILABLE, why));
        };
        intake.set_peer(peer(self.client.address));
        intake.set_peer_key(self.client.key);
        intake.keep_first_complaint();
        Ok(Body { source, intake, points: 0 })
    }

    /// The next bytes of a body.
    async fn read(&self, body: &mut Body, bytes: &[u8]) -> Result<(), Answer> {
        let (from, shared) = (self.client.key, self.shared);
        // Cancel-safe: nothing of the piece is taken while it waits. One message at a time unfolds, of all sources.
        let _turn = turn_to_read(&body.intake, from, shared).await;
        let _handing = self.handing.lock().await;
        let batch = shared.floor().run(|| take_apart(bytes, &mut body.intake));
        self.hand_on(body, batch).await?;
        while body.intake.has_more() {
            tokio::task::yield_now().await;
            shared.floor().turn(body.intake.source(), from).await;
            let batch = shared.floor().run(|| more(&mut body.intake));
            self.hand_on(body, batch).await?;
        }
        match body.intake.broken() {
            None => Ok(()),
            Some(broken) if body.intake.takes_messages() => {
                Err((StatusCode::PAYLOAD_TOO_LARGE, broken.why().to_owned()))
            }
            Some(broken) => Err((StatusCode::BAD_REQUEST, broken.why().to_owned())),
        }
    }

    /// The end of a body. Its last line is whole if the request is.
    async fn end(&self, body: &mut Body, is_whole: bool) -> Result<(), Answer> {
        self.shared.floor().turn(body.intake.source(), self.client.key).await;
        let _handing = self.handing.lock().await;
        if is_whole && !body.intake.takes_messages() && body.intake.has_tail() {
            // A body needs no line feed at its end.
            let batch = self.shared.floor().run(|| take_apart(b"\n", &mut body.intake));
            self.hand_on(body, batch).await?;
        }
        let batch = self.shared.floor().run(|| close(&mut body.intake, is_whole));
        self.hand_on(body, batch).await
    }

    async fn hand_on(&self, body: &mut Body, batch: Batches<'static>) -> Result<(), Answer> {
        let Body { source, intake, points } = body;
        while let Some(complaint) = intake.take_complaint() {
            (source.complaints)(&complaint, self.from);
        }
        let more = batch.records();
        if hand_on(batch, self.client.key, self.shared).await {
            *points += more;
            return Ok(());
        }
        let why = format!("the daemon stops; {points} points accepted");
        Err((StatusCode::SERVICE_UNAVAILABLE, why))
    }
}

impl Body {
    fn answer(&self) -> Result<String, Answer> {
        let points = self.points;
        let accepted = format!("{points} {} accepted", if points == 1 { "point" } else { "points" });
        match self.intake.first_complaint() {
            None => Ok(accepted),
            Some(Complaint { reason, line, .. }) => {
                let (word, why) = (reason.word(), reason.why());
                let text = format!("{accepted}; the first bad line is `{word}`: {why} It reads: {line}");
                if points == 0 { Err((StatusCode::BAD_REQUEST, text)) } else { Ok(text) }
            }
        }
    }
}

/// What the body is: none for lines.
fn form_of(method: &Method, headers: &HeaderMap) -> Result<Option<MessageEncoding>, Answer> {
    if method != Method::POST && method != Method::PUT {
        let why = "send lines of `name value time` with POST".to_owned();
        return Err((StatusCode::METHOD_NOT_ALLOWED, why));
    }
    if headers.contains_key(ORIGIN) {
        return Err((StatusCode::FORBIDDEN, "the request comes from a web page".to_owned()));
    }
    if headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        let why = "the body must not be compressed".to_owned();
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    }
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
    Ok(match kind.split(';').next().unwrap_or("").trim() {
        "application/python-pickle" => Some(MessageEncoding::Pickle),
        "application/protobuf" => Some(MessageEncoding::Protobuf),
        _ => None,
    })
}

//! Clients of a Riemann config by HTTP: dashboards that subscribe, and clients that put events (spec riemann §6).
//!
//! Path of a request: `accept` -> [`Web::serve`] -> hyper reads the head -> `request` (what it asks for, and whether its page may) ->
//! a WebSocket (`socket`), server-sent events (`sse`), or lines of JSON (`put`). Subscriptions begin with a call of the shard
//! ([`Connection::begin`]); after that, messages come from `pipeline::Subscriber`.
//! All of it runs on a thread of its own, so that thousands of subscribers delay only each other.
//! Not here: accepting (`accept`), which events a subscriber gets (`streams`), the daemon's own HTTP (`admin`).
//! Invariants: a client that does not read has a bounded number of bytes unread, and is closed. No connection ends while it hands on
//! events ([`Connection::handing`]): they would have no outcome.

mod connection;
mod put;
mod request;
mod socket;
mod sse;

use std::convert::Infallible;
use std::pin::pin;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use http_body_util::{Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue, UPGRADE, VARY,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use pipeline::Subscription;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Mutex, watch};

use self::connection::{BUFFER_BYTES, Connection};
use self::request::{Asked, Wish};
use self::sse::Sse;
use super::stream::{End, Stream, UNREAD_MAX};
use crate::admin::server::patience::Patient;
use crate::admission::ConnectionSlot;
use crate::daemon::shared::Shared;
use crate::daemon::shared::names::shown;
use crate::sources::listener::{Order, StreamSource, idle_timeout, ordered};
use crate::sources::parked::Client;
use sys::clock::Clock;

/// Most headers of a request.
const HEADERS_MAX: usize = 64;
/// Longest time until a request has its head. A shorter `idle_timeout` counts instead.
const HEAD_TIME_MAX: Duration = Duration::from_secs(30);
/// A connection of HTTP.
pub(super) struct Web {
    pub(super) stream: Stream,
    pub(super) client: Client,
    pub(super) source: StreamSource,
}

impl Web {
    /// Serves its requests until its end.
    pub(super) async fn serve(
        self,
        shared: &Shared,
        updates: &watch::Receiver<StreamSource>,
        orders: &mut watch::Receiver<Order>,
        slot: &ConnectionSlot,
    ) {
        let Web { stream, client, source } = self;
        slot.wait_begins(Clock::mono_ns());
        stream.send_at_once();
        let from = format!("{} at {}", stream.shown_peer(client.key), shown(&source.listen));
        let connection = Connection {
            client,
            from: &from,
            shared,
            updates,
            slot,
            handing: Mutex::new(()),
            is_streaming: AtomicBool::new(false),
            upgrade: std::sync::Mutex::new(None),
        };
        let head_time = idle_timeout(&source.plan).min(HEAD_TIME_MAX);
        let end = match stream {
            Stream::Tcp(stream) => connection.serve(stream, head_time, orders).await,
            #[cfg(unix)]
            Stream::Unix(stream) => connection.serve(stream, head_time, orders).await,
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

type Content = Either<Full<Bytes>, Sse>;

impl Connection<'_> {
    async fn serve<S>(&self, stream: S, head_time: Duration, orders: &mut watch::Receiver<Order>) -> End
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let service = service_fn(|request| async { Ok::<_, Infallible>(self.answer(request).await) });
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(head_time);
        builder.max_headers(HEADERS_MAX).max_buf_size(BUFFER_BYTES);
        let stream = TokioIo::new(Patient::new(stream, UNREAD_MAX));
        let mut served = pin!(builder.serve_connection(stream, service).with_upgrades());
        let (mut stops, mut late) = (false, pin!(tokio::time::sleep(Duration::ZERO)));
        let end = loop {
            // All other branches are cancel-safe.
            tokio::select! {
                biased;
                served = served.as_mut() => {
                    break served.map_or_else(|error| End::Broken(error.to_string()), |()| End::Orderly);
                }
                _leave = self.slot.asked_to_leave() => break End::Replaced,
                _order = ordered(orders), if !stops => {
                    if self.is_streaming.load(Relaxed) {
                        break End::Stopped;
                    }
                    stops = true;
                    late.set(tokio::time::sleep(self.shared.last_read_max()));
                    served.as_mut().graceful_shutdown();
                }
                () = late.as_mut(), if stops => break End::Stopped,
            }
        };
        if matches!(end, End::Orderly) {
            let upgrade = self.upgrade.lock().unwrap_or_else(PoisonError::into_inner).take();
            return match upgrade {
                None => end,
                Some((upgrade, wish)) => match upgrade.await {
                    Ok(upgraded) => socket::serve(self, TokioIo::new(upgraded), wish, orders).await,
                    Err(error) => End::Broken(error.to_string()),
                },
            };
        }
        // A body that hands on events does so to its end.
        tokio::select! {
            biased;
            _ended = poll_again(served) => {}
            _handed_on = self.handing.lock() => {}
        }
        end
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Content> {
        self.slot.wait_ends();
        let source = self.updates.borrow().clone();
        let Asked { wish, origin } = match request::asked(&request, &source.plan.kind) {
            Ok(asked) => asked,
            Err((status, why)) => {
                tracing::debug!("request of {}: {why}", self.from);
                self.slot.wait_begins(Clock::mono_ns());
                return text(status, &why);
            }
        };
        let mut response = match wish {
            Wish::Socket { .. } => self.upgrade(request, wish),
            Wish::Sse(of) => self.stream(&of).await,
            Wish::Put => {
                let put = self.put(request, source).await;
                self.slot.wait_begins(Clock::mono_ns());
                match put {
                    Ok(replies) => json(replies),
                    Err((status, why)) => text(status, why),
                }
            }
        };
        if let Some(origin) = origin {
            response.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            response.headers_mut().insert(VARY, HeaderValue::from_static("Origin"));
        }
        response
    }

    /// The answer after which the connection is a WebSocket.
    fn upgrade(&self, mut request: Request<Incoming>, wish: Wish) -> Response<Content> {
        let Wish::Socket { accept, .. } = &wish else { unreachable!("it asks for a WebSocket") };
        let mut response = Response::new(Either::Left(Full::default()));
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(hyper::header::SEC_WEBSOCKET_ACCEPT, accept.clone());
        let upgrade = hyper::upgrade::on(&mut request);
        *self.upgrade.lock().unwrap_or_else(PoisonError::into_inner) = Some((upgrade, wish));
        response
    }

    /// The answer whose body are events, as long as the client reads them.
    async fn stream(&self, of: &Subscription) -> Response<Content> {
        let begun = match self.begin(of).await {
            Ok(begun) => begun,
            Err(why) => return text(StatusCode::BAD_REQUEST, &why),
        };
        self.is_streaming.store(true, Relaxed);
        let mut response = Response::new(Either::Right(Sse::new(begun)));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        response
    }
}

/// Continues a connection that may have ended.
async fn poll_again<F: Future>(future: std::pin::Pin<&mut F>) -> F::Output {
    future.await
}

/// The replies to the events of a body.
fn json(replies: Vec<u8>) -> Response<Content> {
    let mut response = Response::new(Either::Left(Full::from(replies)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// An answer in words.
fn text(status: StatusCode, text: &str) -> Response<Content> {
    let mut response = Response::new(Either::Left(Full::from(format!("{text}\n"))));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

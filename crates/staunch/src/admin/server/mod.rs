//! The HTTP server below the API: its own thread, limits for connections, timeouts.
//!
//! Path of a request: [`start`] -> `Admission` -> one connection (TLS, [`patience`]) -> hyper reads the head ->
//! `http::front` -> the API. Nothing of it runs on the thread of the sources' connections, so a large document, a glob
//! or a handshake can delay only other requests.
//! Limits: connections (`http.max_connections`, also per client; `admission` chooses the replaced one),
//! [`HEAD_BYTES_MAX`] and [`HEAD_TIME_MAX`] for a head, [`HANDSHAKE_MAX`], [`WRITE_PATIENCE`] for a stalled response
//! and [`ANSWER_TIME_MAX`] for a whole one. Bodies and responses have theirs in `bodies`. Not here: the responses and
//! permissions (`http`, `guard`).

mod deadline;
pub(crate) mod patience;
mod quotes;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use hyper::body::{Bytes, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use self::deadline::{Deadline, Reading};
use self::patience::{Patient, TooSlow};
use self::quotes::Quotes;
use crate::admin::bodies::refused;
use crate::admin::clients::ClientEnd;
use crate::admin::guard::Ends;
use crate::admin::http::{self, Api};
use crate::admin::origins;
use crate::admission::{Admission, ConnectionSlot, Full, Limits, Refusals};
use crate::daemon::shared::bind::listen_again;
use crate::daemon::start::descriptors::{self, Kind};
use sys::clock::Clock;

/// Largest head of a request. The longest useful query is a line of 4 KiB in URL encoding; proxies and browsers add
/// their own headers.
const HEAD_BYTES_MAX: usize = 128 * 1024;

/// Most headers of a request.
const HEADERS_MAX: usize = 64;

/// Timeout for the head of a request, from the start of the connection or the end of the previous response.
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);

/// Longest TLS handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// Timeout for a response whose reader reads nothing.
const WRITE_PATIENCE: Duration = Duration::from_secs(10);

/// Total timeout of a response, like that of a body.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

/// Pause after a failed accept: there may be no descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves `listener` on its own thread until `stop` turns true and no request is open. The result resolves then.
///
/// # Errors
/// When no thread or runtime can be created.
pub(super) fn start(
    listener: std::net::TcpListener,
    api: Api,
    stop: watch::Receiver<bool>,
) -> io::Result<oneshot::Receiver<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (end, ended) = oneshot::channel();
    std::thread::Builder::new().name("http".into()).spawn(move || {
        if let Err(error) = runtime.block_on(serve(listener, Arc::new(api), stop)) {
            tracing::error!("cannot serve http: {error}");
        }
        // Work with files that a request has left behind continues alone.
        runtime.shutdown_background();
        let _nobody_waits = end.send(());
    })?;
    Ok(ended)
}

async fn serve(
    listener: std::net::TcpListener,
    api: Arc<Api>,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut listener = TcpListener::from_std(listener)?;
    let places = Arc::<Admission>::default();
    let (refusals, failures) = (Refusals::default(), Refusals::default());
    let mut tasks = JoinSet::new();
    loop {
        // All branches are cancel-safe.
        let accepted = tokio::select! {
            biased;
            // A closed channel also means that the daemon has ended.
            _ = stop.wait_for(|stop| *stop) => break,
            Some(_ended) = tasks.join_next(), if !tasks.is_empty() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let server = &api.shared.wiring.load().plan.http_server;
                let of_descriptors = descriptors::max(Kind::Http) as usize;
                let all = server.connections_max.min(of_descriptors);
                let limits = Limits { all, per_peer: server.peer_connections_max };
                let now_ns = Clock::mono_ns();
                match places.admit_or_replace(crate::admission::peer_key(Some(peer.ip())), limits, now_ns, 0)
                {
                    Ok(slot) => {
                        slot.wait_begins(now_ns);
                        let counted = api.shared.http_account.clients.accept();
                        let served = connection(stream, peer, slot, Arc::clone(&api), stop.clone());
                        tasks.spawn(async move { counted.end(served.await) });
                    }
                    Err(full) => {
                        api.shared.http_account.clients.end(full.into());
                        if let Some(refused) = refusals.note(now_ns) {
                            let why = why_full(full, limits, peer, &places);
                            tracing::warn!("http: {why}; {refused} refused");
                        }
                    }
                }
                // Open connections have priority over new ones.
                tokio::task::yield_now().await;
            }
            Err(error) => {
                let now_ns = Clock::mono_ns();
                let is_short = sys::is_out_of_resources(&error);
                if let Some(times) = failures.note(now_ns) {
                    let advice = if is_short { descriptors::advice() } else { String::new() };
                    tracing::warn!("http: cannot accept connections: {error} ({times} attempts). {advice}");
                }
                if is_short && places.make_room(now_ns) {
                    // Its connection closes, so that the next attempt has its descriptor.
                    tokio::task::yield_now().await;
                } else {
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
                // This failure would repeat at the next attempt to accept.
                if let (true, Ok(again)) = (sys::is_final_for_reading(&error), listen_again(&listener)) {
                    tracing::info!("http listens again");
                    listener = again;
                }
            }
        }
    }
    drop(listener);
    while tasks.join_next().await.is_some() {}
    Ok(())
}

/// Why a connection of `peer` was rejected, with advice.
fn why_full(full: Full, limits: Limits, peer: SocketAddr, places: &Admission) -> String {
    match full {
        Full::All => format!(
            "all connections have a request, and each client its share (http.max_connections){}",
            places.most_as_text()
        ),
        Full::PerPeer => format!(
            "{} has {} connections, each with a request (http.max_connections_per_peer)",
            peer.ip().to_canonical(),
            limits.per_peer
        ),
    }
}

/// One connection until its end.
async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    slot: ConnectionSlot,
    api: Arc<Api>,
    stop: watch::Receiver<bool>,
) -> ClientEnd {
    let ends = Ends::new(peer.ip(), stream.local_addr().ok().map(|own| own.ip()));
    let slot = Arc::new(slot);
    let tls = api.shared.wiring.load().certificates.of_http();
    let Some(tls) = tls else {
        return requests(patient(stream), ends, slot, api, (stop, Wrapping::Plain)).await;
    };
    let handshake = tokio_rustls::TlsAcceptor::from(tls).accept(stream);
    // Cancellation closes a connection in the middle of its handshake.
    let shaken = tokio::select! {
        biased;
        leave = slot.asked_to_leave() => return leave.into(),
        shaken = tokio::time::timeout(HANDSHAKE_MAX, handshake) => shaken,
    };
    match shaken {
        Ok(Ok(stream)) => requests(patient(stream), ends, slot, api, (stop, Wrapping::Tls)).await,
        Ok(Err(error)) => {
            tracing::debug!("http: handshake with {peer}: {error}");
            ClientEnd::HandshakeFailed
        }
        Err(_late) => {
            tracing::debug!("http: handshake with {peer}: it took too long");
            ClientEnd::HandshakeFailed
        }
    }
}

/// [`Deadline`] ends when the last piece of a response is in hyper's buffer, which a client can read for hours.
fn patient<S>(stream: S) -> Patient<Quotes<S>> {
    Patient::with_end(Quotes::new(stream), WRITE_PATIENCE, ANSWER_TIME_MAX)
}

/// The end of a connection with a hyper error.
fn end_of(error: &hyper::Error) -> ClientEnd {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<io::Error>());
    if error.is_timeout() {
        ClientEnd::Silent
    } else if cause.and_then(io::Error::get_ref).is_some_and(|cause| cause.is::<TooSlow>()) {
        ClientEnd::Slow
    } else if cause.is_some_and(|cause| cause.kind() == io::ErrorKind::TimedOut) {
        ClientEnd::Unread
    } else {
        ClientEnd::Broken
    }
}

/// How a connection came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrapping {
    Plain,
    Tls,
}

/// Whether a connection may have one more request: a reload may have turned TLS on since it was accepted.
#[expect(clippy::result_large_err, reason = "the error is the answer, sent at once")]
fn still_allowed(api: &Api, wrapping: Wrapping) -> Result<(), Response> {
    let wants_tls = api.shared.wiring.load().certificates.of_http().is_some();
    if wrapping == Wrapping::Tls || !wants_tls {
        return Ok(());
    }
    let why = "this address serves HTTPS since the last reload: connect again with TLS";
    let mut answer = refused(StatusCode::FORBIDDEN, why);
    answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    Err(answer)
}

async fn requests<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    ends: Ends,
    slot: Arc<ConnectionSlot>,
    api: Arc<Api>,
    (stop, wrapping): (watch::Receiver<bool>, Wrapping),
) -> ClientEnd {
    let deadline = Arc::new(Deadline::new(ANSWER_TIME_MAX));
    let of_answers = Arc::clone(&deadline);
    let router = TowerToHyperService::new(http::router(Arc::clone(&api)));
    let of_requests = Arc::clone(&slot);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let under_way = UnderWay::new(Arc::clone(&of_requests));
        let (api, router, of_answers) = (Arc::clone(&api), router.clone(), Arc::clone(&of_answers));
        async move {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo(ends));
            let origin = origins::allowed(&api.shared, request.headers());
            let allowed = match still_allowed(&api, wrapping) {
                Ok(()) => http::front(&api, &request),
                refused => refused,
            };
            let mut answer = match allowed {
                Err(refusal) => refusal,
                Ok(()) => match hyper::service::Service::call(&router, request).await {
                    Ok(answer) => answer,
                    Err(never) => match never {},
                },
            };
            origins::mark(origin, answer.headers_mut());
            let reading = of_answers.begin();
            Ok::<_, Infallible>(answer.map(|body| Answer { body, _reading: reading, _under_way: under_way }))
        }
    });
    served(stream, service, &slot, &deadline, HEAD_TIME_MAX, stop).await
}

async fn served<S, R>(
    stream: S,
    service: R,
    slot: &ConnectionSlot,
    deadline: &Deadline,
    head_time_max: Duration,
    mut stop: watch::Receiver<bool>,
) -> ClientEnd
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    R: HttpService<Incoming, ResBody = Answer, Error = Infallible>,
{
    let mut late = std::pin::pin!(deadline.passed());
    let mut served = std::pin::pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(head_time_max)
            .max_headers(HEADERS_MAX)
            .max_buf_size(HEAD_BYTES_MAX)
            .serve_connection(TokioIo::new(stream), service)
    );
    let mut stops = false;
    loop {
        // Dropping the served connection closes it; the other branches do not change it.
        tokio::select! {
            biased;
            served = served.as_mut() => {
                return match served {
                    Ok(()) => ClientEnd::Orderly,
                    Err(error) => {
                        tracing::debug!("http: {error}");
                        end_of(&error)
                    }
                };
            }
            () = late.as_mut() => return ClientEnd::Slow,
            leave = slot.asked_to_leave() => return leave.into(),
            _ = stop.wait_for(|stop| *stop), if !stops => {
                stops = true;
                served.as_mut().graceful_shutdown();
            }
        }
    }
}

/// A request in progress, until its response is in the socket: its connection is not replaced meanwhile.
struct UnderWay(Arc<ConnectionSlot>);

impl UnderWay {
    fn new(slot: Arc<ConnectionSlot>) -> UnderWay {
        slot.wait_ends();
        UnderWay(slot)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.wait_begins(Clock::mono_ns());
    }
}

/// The body of a response.
struct Answer {
    body: Body,
    _reading: Reading,
    _under_way: UnderWay,
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[tokio::test]
async fn a_reader_that_takes_too_long_for_its_response_is_closed() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let soon = Duration::from_millis(50);
    // All of the small one is in hyper's buffer at once, where no timeout for the response sees it.
    for (bytes, behind_max) in [(1 << 20, Duration::MAX), (32 << 10, soon)] {
        let slot = Arc::new(Arc::new(Admission::default()).admit_anyway(model::PeerKey::Local));
        let deadline = Arc::new(Deadline::new(soon));
        let (of_requests, of_answers) = (Arc::clone(&slot), Arc::clone(&deadline));
        let service = service_fn(move |_request: hyper::Request<Incoming>| {
            let bodies = crate::admin::bodies::Bodies::default();
            let body = bodies.bytes(model::PeerKey::Local, "text/plain", vec![0; bytes]).into_body();
            let (reading, under_way) = (of_answers.begin(), UnderWay::new(Arc::clone(&of_requests)));
            let answer = Answer { body, _reading: reading, _under_way: under_way };
            async move { Ok::<_, Infallible>(hyper::Response::new(answer)) }
        });
        let (near, mut far) = tokio::io::duplex(512);
        let (_stop, stopping) = watch::channel(false);
        far.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.expect("there is room");
        let reads = async {
            // It never stalls for long.
            while far.read(&mut [0; 16]).await.is_ok_and(|len| len > 0) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let near = Patient::with_end(near, WRITE_PATIENCE, behind_max);
        let served = served(near, service, &slot, &deadline, HEAD_TIME_MAX, stopping);
        let (end, ()) = tokio::join!(served, reads);
        assert_eq!(end, ClientEnd::Slow, "{bytes} bytes");
    }
}

#[tokio::test]
async fn a_head_that_arrives_too_slowly_closes_the_connection() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    for pause in [Duration::from_millis(1), Duration::from_secs(3600)] {
        let slot = Arc::new(Arc::new(Admission::default()).admit_anyway(model::PeerKey::Local));
        let deadline = Deadline::new(ANSWER_TIME_MAX);
        let service = service_fn(async |_request: hyper::Request<Incoming>| -> Result<_, Infallible> {
            panic!("a head without an end is no request")
        });
        let (near, far) = tokio::io::duplex(512);
        let (mut answers, mut requests) = tokio::io::split(far);
        let (_stop, stopping) = watch::channel(false);
        let writes = async {
            requests.write_all(b"GET / HTTP/1.1\r\n").await.expect("there is room");
            while requests.write_all(b"x").await.is_ok() {
                tokio::time::sleep(pause).await;
            }
            std::future::pending::<Infallible>().await
        };
        let soon = Duration::from_millis(50);
        let served = served(near, service, &slot, &deadline, soon, stopping);
        let ends = async {
            let mut answer = Vec::new();
            let (end, read) = tokio::join!(served, answers.read_to_end(&mut answer));
            (end, read.is_ok())
        };
        tokio::select! {
            end = ends => assert_eq!(end, (ClientEnd::Silent, true), "a byte each {pause:?}"),
            never = writes => match never {},
        }
    }
}

//! Requests to an HTTP server: one connection, one request at a time.
//!
//! Path of a record: `requests::run` -> [`HttpPeer::send`] (records of one head become one request) -> hyper -> the answer.
//! Not here: what an answer means for the records (`deliver::request`), what a record contains (`wire::request`).
//! Limits: redirects are not followed, and there is no proxy. Of an answer at most [`ANSWER_BYTES_MAX`] bytes are read.

use std::time::Duration;

use config::plan::{HttpEncoding, HttpMethod, HttpOutputPlan, UrlParts};
use deliver::endpoint::Failure;
use deliver::request::Answer;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue, LOCATION, RETRY_AFTER, USER_AGENT};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use wire::request::record;
use wire::template::Template;

use super::connecting::{NotConnected, Of, connect, encrypt};
use super::sent::{Sent, number, quoted};
use crate::outputs::addresses::locator::Locator;

/// Most bytes of an answer that are read; the connection of a longer one is closed.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// The client of one output.
pub struct HttpPeer {
    plan: HttpOutputPlan,
    parts: Option<UrlParts>,
    /// The headers that are the same for all events.
    headers: Vec<(HeaderName, HeaderValue)>,
    /// For TLS: the source of the current settings, read at each connection.
    shared: Of,
    open: Option<Open>,
}

/// An open connection. Its task ends with it.
struct Open {
    requests: SendRequest<Full<Bytes>>,
    task: JoinHandle<()>,
    /// It has answered before.
    is_used: bool,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Why a request has no answer.
struct Trouble {
    why: Failure,
    in_doubt: bool,
    words: Option<String>,
    /// On a connection that the server may have closed before: worth another attempt at once.
    is_stale: bool,
}

impl Trouble {
    fn new(why: Failure, words: impl Into<String>) -> Trouble {
        Trouble { why, in_doubt: false, words: Some(words.into()), is_stale: false }
    }
}

impl From<NotConnected> for Trouble {
    fn from((why, words): NotConnected) -> Trouble {
        Trouble::new(why, words)
    }
}

impl HttpPeer {
    /// Not connected yet.
    pub fn new(plan: &HttpOutputPlan, shared: Of) -> HttpPeer {
        let is_fixed = |text: &str| Template::parse(text).is_ok_and(|template| template.is_fixed());
        let headers = plan.headers.iter().filter(|(_, value)| is_fixed(value));
        let headers = headers.filter_map(|(name, value)| header(name.as_bytes(), value.as_bytes()));
        HttpPeer {
            parts: plan.parts().ok(),
            headers: headers.collect(),
            plan: plan.clone(),
            shared,
            open: None,
        }
    }

    /// The endpoint's name in logs.
    pub fn place(&self) -> String {
        self.plan.shown_url()
    }

    /// Sends the records at the front that have the same head.
    pub async fn send(&mut self, lines: &[&[u8]], locator: &mut Locator) -> Sent {
        let head = record(lines[0]).head;
        let same = lines.iter().take_while(|line| record(line).head == head).count();
        let body = Bytes::from(self.body(&lines[..same]));
        let mut is_doubled = false;
        loop {
            match self.attempt(lines[0], body.clone(), locator).await {
                Ok((status, said)) => {
                    return Sent {
                        records: number(same),
                        answer: status.answer(),
                        is_doubled,
                        words: Some(status.words(&said)),
                    };
                }
                // Once: the next attempt is on a new connection. A server that closes it without an answer may have read the request.
                Err(trouble) if trouble.is_stale => is_doubled |= trouble.in_doubt,
                Err(trouble) => {
                    let failed = Sent::failed(same, trouble.why, trouble.in_doubt, trouble.words);
                    return Sent { is_doubled, ..failed };
                }
            }
        }
    }

    fn body(&self, lines: &[&[u8]]) -> Vec<u8> {
        let (begin, between, end): (&[u8], &[u8], &[u8]) = match self.plan.encoding {
            HttpEncoding::Json => (b"[", b",", b"]"),
            HttpEncoding::JsonLines | HttpEncoding::InfluxDb => (b"", b"\n", b"\n"),
            HttpEncoding::Template => (b"", b"", b""),
        };
        let mut body = begin.to_vec();
        for (at, line) in lines.iter().enumerate() {
            if at > 0 {
                body.extend_from_slice(between);
            }
            record(line).body(&mut body);
        }
        body.extend_from_slice(end);
        body
    }

    async fn attempt(
        &mut self,
        line: &[u8],
        body: Bytes,
        locator: &mut Locator,
    ) -> Result<(Status, Vec<u8>), Trouble> {
        let request = self.request(line, body)?;
        // It is put back only when it can be used again, so that a dropped future leaves nothing behind.
        let mut open = match self.open.take().filter(|open| !open.requests.is_closed()) {
            Some(open) => open,
            None => self.connect(locator).await?,
        };
        let timeout = Duration::from_millis(self.plan.sender.write_timeout_ms);
        let is_used = std::mem::replace(&mut open.is_used, true);
        let answered = tokio::time::timeout(timeout, exchange(&mut open.requests, request)).await;
        let (status, said) = answered
            .map_err(|_elapsed| Trouble {
                in_doubt: true,
                ..Trouble::new(Failure::NoAnswer, "no answer in time")
            })?
            .map_err(|broken| Trouble {
                in_doubt: !broken.is_canceled(),
                is_stale: is_used,
                ..Trouble::new(Failure::Broken, words_of(&broken))
            })?;
        // The rest of a long answer is of no use.
        if said.is_some() {
            self.open = Some(open);
        }
        Ok((status, said.unwrap_or_default()))
    }

    fn request(&self, line: &[u8], body: Bytes) -> Result<Request<Full<Bytes>>, Trouble> {
        let mut fields = record(line).head_fields();
        let target = fields.next().filter(|target| !target.is_empty());
        let own = self.parts.as_ref().map_or("/", |parts| &parts.target);
        let target = target.as_deref().unwrap_or(own.as_bytes());
        let authority = self.parts.as_ref().map_or("", |parts| &parts.authority);
        let method = match self.plan.method {
            HttpMethod::Post => "POST",
            HttpMethod::Put => "PUT",
        };
        let mut request = Request::new(Full::new(body));
        *request.method_mut() =
            method.parse().map_err(|_| Trouble::new(Failure::Broken, "no such method"))?;
        *request.uri_mut() =
            String::from_utf8_lossy(target).replace(' ', "%20").parse().map_err(|error| {
                Trouble::new(Failure::Broken, format!("the target of the request is no URL: {error}"))
            })?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.plan.encoding.content_type()));
        headers.insert(USER_AGENT, HeaderValue::from_static("staunch"));
        if let Ok(authority) = HeaderValue::from_str(authority) {
            headers.insert(HOST, authority);
        }
        let of_event = fields.filter_map(|field| {
            let colon = memchr::memmem::find(&field, b": ")?;
            header(&field[..colon], &field[colon + 2..])
        });
        for (name, value) in self.headers.iter().cloned().chain(of_event) {
            headers.insert(name, value);
        }
        Ok(request)
    }

    async fn connect(&self, locator: &mut Locator) -> Result<Open, Trouble> {
        let within = Duration::from_millis(self.plan.sender.connect_timeout_ms);
        let connected = tokio::time::timeout(within, async {
            let stream = connect(locator, within, &self.shared).await?;
            self.begin(stream).await
        });
        let timed_out = |_elapsed| Trouble::new(Failure::ConnectTimeout, "not connected in time");
        connected.await.map_err(timed_out)?
    }

    /// After connecting: the handshakes.
    async fn begin(&self, stream: TcpStream) -> Result<Open, Trouble> {
        let broken = |error: hyper::Error| Trouble::new(Failure::Broken, words_of(&error));
        if self.plan.tls.is_none() {
            let (requests, connection) = handshake(TokioIo::new(stream)).await.map_err(broken)?;
            let task = tokio::spawn(async move { drop(connection.await) });
            return Ok(Open { requests, task, is_used: false });
        }
        let stream = encrypt(stream, &self.shared).await?;
        let (requests, connection) = handshake(TokioIo::new(stream)).await.map_err(broken)?;
        let task = tokio::spawn(async move { drop(connection.await) });
        Ok(Open { requests, task, is_used: false })
    }
}

fn header(name: &[u8], value: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let mut value = HeaderValue::from_bytes(value).ok()?;
    // It may be a token: it appears in no debugging text.
    value.set_sensitive(true);
    Some((HeaderName::from_bytes(name).ok()?, value))
}

/// The answer without its body.
struct Status {
    code: StatusCode,
    retry_after_ms: Option<u64>,
    location: Option<String>,
}

impl Status {
    fn of(answer: &Response<Incoming>) -> Status {
        let text = |name| answer.headers().get(name).and_then(|value| value.to_str().ok());
        // Of the two forms of `Retry-After` only seconds are read: a date depends on the server's clock.
        let seconds = text(RETRY_AFTER).and_then(|text| text.trim().parse::<u64>().ok());
        Status {
            code: answer.status(),
            retry_after_ms: seconds.map(|seconds| seconds.saturating_mul(1_000)),
            location: text(LOCATION).map(|location| quoted(location.as_bytes())),
        }
    }

    fn answer(&self) -> Answer {
        match self.code.as_u16() {
            200..=299 => Answer::Accepted,
            408 | 425 | 429 | 500..=599 => Answer::Failed {
                why: Failure::AnswersError,
                retry_after_ms: self.retry_after_ms,
                in_doubt: false,
            },
            _ => Answer::Rejected,
        }
    }

    fn words(&self, said: &[u8]) -> String {
        let code = self.code;
        match &self.location {
            Some(location) if self.code.is_redirection() => {
                format!("{code}: redirects are not followed, write `{location}` in `url`")
            }
            _ if said.is_empty() => format!("it answers {code}"),
            _ => format!("it answers {code}: `{}`", quoted(said)),
        }
    }
}

/// Sends a request and reads the answer; the body is absent when it is too long.
async fn exchange(
    requests: &mut SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> Result<(Status, Option<Vec<u8>>), hyper::Error> {
    requests.ready().await?;
    let answer = requests.send_request(request).await?;
    let status = Status::of(&answer);
    let said = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
    Ok((status, said.ok().map(|said| said.to_bytes().to_vec())))
}

/// With its cause.
fn words_of(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

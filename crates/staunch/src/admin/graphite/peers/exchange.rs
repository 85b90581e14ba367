//! One question to one node.

use graphite::peer::Encoding;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, USER_AGENT};
use hyper::{Request, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;

use super::question::Question;

/// Largest answer: ten million values as msgpack.
const ANSWER_BYTES_MAX: usize = 100 << 20;

/// Longest query in an address; longer ones are sent as a form.
const ADDRESS_BYTES_MAX: usize = 4096;

/// Most characters that a message quotes of a node's own.
const QUOTED_CHARS: usize = 120;

/// The answer, and the encoding that this node has.
type Answered<A> = (A, Option<Encoding>);

/// Asks a node. It is asked for msgpack first: it answers that a format is unknown to it by its status, or with an image.
///
/// # Errors
/// Why there is no usable answer.
pub(super) async fn exchange<Q: Question>(
    client: &Client<HttpConnector, Full<Bytes>>,
    peer: &str,
    encoding: Option<Encoding>,
    question: &Q,
) -> Result<Answered<Q::Answer>, String> {
    if !Q::IS_ENCODED {
        let (status, _, bytes) = request(client, peer, question, None).await?;
        return match status {
            StatusCode::OK => Ok((question.read(Encoding::Msgpack, &bytes)?, None)),
            other => Err(status_text(other, &bytes)),
        };
    }
    let asked = encoding.unwrap_or(Encoding::Msgpack);
    let (status, kind, bytes) = request(client, peer, question, Some(asked)).await?;
    if let (StatusCode::OK, Some(got)) = (status, kind) {
        return Ok((question.read(got, &bytes)?, Some(got)));
    }
    if asked == Encoding::Protobuf && status == StatusCode::NOT_FOUND {
        // go-carbon and carbonapi have found nothing.
        return Ok((question.nothing(), Some(asked)));
    }
    let is_unknown_format =
        matches!(status, StatusCode::OK | StatusCode::BAD_REQUEST | StatusCode::NOT_ACCEPTABLE);
    if encoding.is_some() || !is_unknown_format {
        return Err(status_text(status, &bytes));
    }
    let (other_status, kind, other_bytes) = request(client, peer, question, Some(Encoding::Protobuf)).await?;
    match (other_status, kind) {
        (StatusCode::OK, Some(got)) => Ok((question.read(got, &other_bytes)?, Some(got))),
        (StatusCode::NOT_FOUND, _) => Ok((question.nothing(), Some(Encoding::Protobuf))),
        // What it said first is about the question.
        _ => Err(status_text(status, &bytes)),
    }
}

fn status_text(status: StatusCode, body: &[u8]) -> String {
    match status {
        StatusCode::OK => "its answer is of an unknown content type".to_owned(),
        StatusCode::UNAUTHORIZED => "it wants a token: set graphite_api.auth = \"none\" there".to_owned(),
        _ => {
            let line = String::from_utf8_lossy(body);
            let line: String = line.lines().next().unwrap_or("").chars().take(QUOTED_CHARS).collect();
            format!("status {}: {line}", status.as_u16())
        }
    }
}

fn query_text<Q: Question>(question: &Q, encoding: Option<Encoding>) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(question.parameters());
    query.append_pair("local", "1");
    if let Some(encoding) = encoding {
        query.append_pair("format", encoding.format());
    }
    query.finish()
}

type Reply = (StatusCode, Option<Encoding>, Bytes);

async fn request<Q: Question>(
    client: &Client<HttpConnector, Full<Bytes>>,
    peer: &str,
    question: &Q,
    encoding: Option<Encoding>,
) -> Result<Reply, String> {
    let query = query_text(question, encoding);
    let address = format!("{}{}", peer.trim_end_matches('/'), question.path());
    let request = Request::builder().header(USER_AGENT, concat!("staunch/", env!("CARGO_PKG_VERSION")));
    let request = if query.len() <= ADDRESS_BYTES_MAX {
        request.uri(format!("{address}?{query}")).body(Full::default())
    } else {
        let request = request.method("POST").uri(address);
        request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(Full::from(query))
    };
    let request = request.map_err(|error| format!("it cannot be asked: {error}"))?;
    let answer = client.request(request).await.map_err(|error| with_causes(&error))?;
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let (status, kind) = (answer.status(), kind.and_then(Encoding::of_content_type));
    let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
    let body = body.map_err(|error| format!("its answer ends early: {error}"))?;
    Ok((status, kind, body.to_bytes()))
}

/// The error with what caused it: the client's own text does not say which system call failed.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

//! One question to a daemon's HTTP API, for verbs that speak with one.
//!
//! Not here: what the answers mean (`top::document`, `cli::queue`).

use std::path::Path;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::admin::token::Token;

/// Largest answer: thousands of outputs with all their reasons fit.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Names the file with the token of a daemon that wants one (`http.token_file`).
const TOKEN_FILE: &str = "STAUNCH_TOKEN_FILE";

/// What is asked.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    /// Path with its query.
    pub(crate) path: String,
    /// Type and bytes of what is sent along, which makes it a POST.
    pub(crate) body: Option<(&'static str, Vec<u8>)>,
    /// Longest wait for a whole answer. A daemon that is stopped accepts connections and never answers.
    pub(crate) wait: Duration,
}

/// Status and body of the answer of the daemon whose HTTP API is at `api` (`HOST:PORT`).
///
/// # Errors
/// A few words for people, without `api` in them.
pub(crate) async fn ask(api: &str, question: Question) -> Result<(StatusCode, Bytes), String> {
    let wait = question.wait;
    match tokio::time::timeout(wait, answer(api, question)).await {
        Ok(answer) => answer,
        Err(_late) => Err(format!("no answer within {} s", wait.as_secs())),
    }
}

/// The token in the file that the environment names, if it names one.
fn token() -> Result<Option<Token>, String> {
    let Some(path) = std::env::var_os(TOKEN_FILE).filter(|path| !path.is_empty()) else { return Ok(None) };
    let token = Token::read(Path::new(&path));
    token.map(Some).map_err(|why| format!("{TOKEN_FILE}: {}: {why}", path.display()))
}

async fn answer(api: &str, question: Question) -> Result<(StatusCode, Bytes), String> {
    let stream = TcpStream::connect(api).await.map_err(|error| format!("cannot connect: {error}"))?;
    // The address that a name has led to: names are answered only where they are listed, which is against web pages.
    let host = stream.peer_addr().map_or_else(|_gone| api.to_owned(), |at| at.to_string());
    let http = |error: hyper::Error| format!("no HTTP answer: {error}");
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(http)?;
    // Ends with this question, also when nobody waits for the answer any more.
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let mut request = Request::builder().uri(question.path).header(HOST, host);
    if let Some(token) = token()? {
        request = request.header(AUTHORIZATION, format!("Bearer {}", token.text()));
    }
    if let Some((kind, _)) = &question.body {
        request = request.method(Method::POST).header(CONTENT_TYPE, *kind);
    }
    let body = question.body.map(|(_, bytes)| bytes).unwrap_or_default();
    let request = request.body(Full::new(Bytes::from(body)));
    let request = request.map_err(|error| format!("`{api}` is no address: {error}"))?;
    let answer = sender.send_request(request).await.map_err(http)?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
    let body = body.map_err(|error| format!("the answer broke off: {error}"))?.to_bytes();
    Ok((status, body))
}

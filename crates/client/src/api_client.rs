//! One request to a daemon's HTTP API.
//!
//! Path of a request: a connection -> TLS, if the address is `https://` or `--ca` is given -> HTTP with the token.
//! Not here: what the responses mean (`top::document`, `queue::document`).

use std::path::PathBuf;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::CertificateError;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use tls::token::Token;

/// Largest answer: thousands of outputs with all their reasons fit.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Names the file with the token of a daemon that wants one (`http.token_file`).
const TOKEN_FILE: &str = "STAUNCH_TOKEN_FILE";

/// Longest wait for the alert by which a server shows that it speaks TLS.
const ALERT_WAIT: Duration = Duration::from_secs(1);

/// What a daemon's HTTP server wants of those who ask.
#[derive(Clone, Debug, Default)]
pub(crate) struct Access {
    /// Whose certificates are taken; none for those that the system trusts. With it connections are encrypted.
    pub(crate) ca: Option<PathBuf>,
    /// The file with the token; none for the one that the environment names.
    pub(crate) token_file: Option<PathBuf>,
    /// The certificate may be of any name: where the address is that of a daemon on this machine, and not the user's.
    pub(crate) skip_hostname_check: bool,
}

/// A daemon's HTTP API and how to speak with it.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    /// `HOST:PORT`, or `https://HOST:PORT`.
    pub(crate) at: String,
    /// What it wants.
    pub(crate) access: Access,
}

impl Server {
    fn place(&self) -> &str {
        self.at.strip_prefix("https://").unwrap_or(&self.at)
    }

    fn is_encrypted(&self) -> bool {
        self.at.starts_with("https://") || self.access.ca.is_some()
    }

    /// The file with the token, and the token; none when no file is named.
    fn token(&self) -> Result<Option<(PathBuf, Token)>, String> {
        let of_environment =
            || std::env::var_os(TOKEN_FILE).filter(|path| !path.is_empty()).map(PathBuf::from);
        let Some(path) = self.access.token_file.clone().or_else(of_environment) else { return Ok(None) };
        match Token::read(&path) {
            Ok(token) => Ok(Some((path, token))),
            Err(why) => Err(format!("the token in {}: {why}", path.display())),
        }
    }
}

/// A name as one part of a path.
pub(crate) fn escaped(name: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    name.bytes().map(byte).collect()
}

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

/// Status and body of the answer of a daemon; never 401.
///
/// # Errors
/// A few words for people, without the address in them.
pub(crate) async fn ask(server: &Server, question: Question) -> Result<(StatusCode, Bytes), String> {
    let wait = question.wait;
    match tokio::time::timeout(wait, answer(server, question)).await {
        Ok(answer) => answer,
        Err(_late) => Err(format!("no answer within {} s", wait.as_secs())),
    }
}

async fn answer(server: &Server, question: Question) -> Result<(StatusCode, Bytes), String> {
    let token = server.token()?;
    let stream = connect(server).await?;
    // The address that a name has led to: names are answered only where they are listed, which is against web pages.
    let host = stream.peer_addr().map_or_else(|_gone| server.place().to_owned(), |at| at.to_string());
    let mut request = Request::builder().uri(question.path).header(HOST, host);
    if let Some((_, token)) = &token {
        request = request.header(AUTHORIZATION, format!("Bearer {}", token.text()));
    }
    if let Some((kind, _)) = &question.body {
        request = request.method(Method::POST).header(CONTENT_TYPE, *kind);
    }
    let body = question.body.map(|(_, bytes)| bytes).unwrap_or_default();
    let request = request.body(Full::new(Bytes::from(body)));
    let request = request.map_err(|error| format!("`{}` is not an address: {error}", server.at))?;
    let (status, body) = if server.is_encrypted() {
        sent(encrypted(server, stream).await?, request).await?
    } else {
        match sent(stream, request).await {
            Err(why) if speaks_tls(server).await => {
                return Err(format!(
                    "the server speaks TLS: write https:// before its address, or --ca FILE ({why})"
                ));
            }
            answer => answer?,
        }
    };
    match token {
        _ if status != StatusCode::UNAUTHORIZED => Ok((status, body)),
        Some((path, _)) => Err(format!("the token in {} is not the daemon's", path.display())),
        None => Err(format!("it needs the token: set its file with --token-file FILE, or {TOKEN_FILE}")),
    }
}

async fn connect(server: &Server) -> Result<TcpStream, String> {
    TcpStream::connect(server.place()).await.map_err(|error| format!("cannot connect: {error}"))
}

/// A connection on which TLS is spoken with a server whose certificate is good.
async fn encrypted(
    server: &Server,
    stream: TcpStream,
) -> Result<impl AsyncRead + AsyncWrite + Unpin + Send + 'static, String> {
    let host = server.place().rsplit_once(':').map_or("", |(host, _port)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let tls = tls::for_question(server.access.ca.as_deref(), host, server.access.skip_hostname_check)?;
    let connected = TlsConnector::from(tls.config).connect(tls.name, stream).await;
    connected.map_err(|error| {
        match tls::words::cause(&error) {
            Some(rustls::Error::InvalidMessage(_)) => {
                "the server does not speak TLS: leave out https:// and --ca".to_owned()
            }
            // A bad signature: an authority of the same name is known, and has not signed it.
            Some(rustls::Error::InvalidCertificate(
                CertificateError::UnknownIssuer | CertificateError::BadSignature,
            )) => "its certificate is not signed by a known CA: set the CA's file with --ca FILE".to_owned(),
            _ => format!("no TLS: {}", tls::words::connecting(&error, "--ca")),
        }
    })
}

async fn sent<S>(stream: S, request: Request<Full<Bytes>>) -> Result<(StatusCode, Bytes), String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let http = |error: hyper::Error| format!("no HTTP response: {error}");
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(http)?;
    // Ends with this question, also when nobody waits for the answer any more.
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let answer = sender.send_request(request).await.map_err(http)?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
    let body = body.map_err(|error| format!("the response is incomplete: {error}"))?.to_bytes();
    Ok((status, body))
}

/// Whether the server answers a line of HTTP by an alert of TLS.
async fn speaks_tls(server: &Server) -> bool {
    let alert = async {
        let mut stream = connect(server).await.ok()?;
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.ok()?;
        let mut begin = [0; 2];
        stream.read_exact(&mut begin).await.ok()?;
        // An alert, of a version 3.x.
        Some(begin == [21, 3])
    };
    matches!(tokio::time::timeout(ALERT_WAIT, alert).await, Ok(Some(true)))
}

#[test]
fn names_are_one_part_of_a_path() {
    for (name, want) in [("carbon", "carbon"), ("copy/[::1]:2", "copy%2F%5B%3A%3A1%5D%3A2"), ("é", "%C3%A9")]
    {
        assert_eq!(escaped(name), want);
    }
}

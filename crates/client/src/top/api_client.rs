//! The accounts of a daemon and what its relays do, asked for over its HTTP API.

use std::time::Duration;

use hyper::StatusCode;

use super::document::{Document, Relay, Relays};
use crate::api_client::{Question, Server, ask};

/// Longest wait for a whole answer. A daemon that is stopped accepts connections and never answers.
const ANSWER_WAIT: Duration = Duration::from_secs(3);

/// Longest wait for what relays do: without it there is still all the rest.
const RELAYS_WAIT: Duration = Duration::from_secs(1);

/// What there is to know of a daemon.
///
/// # Errors
/// A few words for people, without the address in them.
pub(crate) async fn look(server: &Server) -> Result<Document, String> {
    let (document, relays) = tokio::join!(document(server), relays(server));
    Ok(Document { relays, ..document? })
}

/// Whether a daemon accepts records, and what is wrong with it in sentences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Readiness {
    /// `/ready` said 200.
    pub(crate) ready: bool,
    /// Why not; or what does not work although it is.
    pub(crate) lines: Vec<String>,
}

/// What a daemon replies on `/ready`.
///
/// # Errors
/// As of [`look`].
pub(crate) async fn ready(server: &Server) -> Result<Readiness, String> {
    let question = Question { path: "/ready".into(), body: None, wait: ANSWER_WAIT };
    let (status, body) = ask(server, question).await?;
    let lines = String::from_utf8_lossy(&body);
    let mut lines: Vec<String> = lines.lines().map(str::to_owned).collect();
    let ready = match status {
        StatusCode::OK => true,
        StatusCode::SERVICE_UNAVAILABLE => false,
        other => return Err(format!("HTTP {other} for /ready: is this a Staunch daemon?")),
    };
    lines.retain(|line| !(ready && line == "ready"));
    Ok(Readiness { ready, lines })
}

/// Its relays; none when it knows of none.
async fn relays(server: &Server) -> Vec<Relay> {
    let question = Question { path: "/api/v1/relay".into(), body: None, wait: RELAYS_WAIT };
    let Ok((StatusCode::OK, body)) = ask(server, question).await else { return Vec::new() };
    serde_json::from_slice::<Relays>(&body).unwrap_or_default().relays
}

/// Its accounts.
async fn document(server: &Server) -> Result<Document, String> {
    let question = Question { path: "/api/v1/accounts".into(), body: None, wait: ANSWER_WAIT };
    let (status, body) = ask(server, question).await?;
    if status != StatusCode::OK {
        return Err(format!("HTTP {status} for /api/v1/accounts: is this a Staunch daemon?"));
    }
    serde_json::from_slice(&body)
        .map_err(|error| format!("the response is not an accounts document: {error}"))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::api_client::Access;

    /// Asks a server that gives `reply` to one connection and closes it.
    fn asked(reply: &'static str) -> Result<Document, String> {
        answered(reply, "/api/v1/accounts", async |server| document(&server).await)
    }

    fn answered<T>(
        reply: &'static str,
        path: &str,
        ask: impl AsyncFnOnce(Server) -> Result<T, String>,
    ) -> Result<T, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            let api = listener.local_addr().expect("it is bound").to_string();
            let serve = async {
                let (mut stream, _) = listener.accept().await.expect("somebody comes");
                let mut question = Vec::new();
                while !question.ends_with(b"\r\n\r\n") {
                    question.push(stream.read_u8().await.expect("a whole question"));
                }
                stream.write_all(reply.as_bytes()).await.expect("it still listens");
                String::from_utf8(question).expect("a text")
            };
            let server = Server { at: api.clone(), access: Access::default() };
            let (question, answer) = tokio::join!(serve, ask(server));
            assert!(question.starts_with(&format!("GET {path} HTTP/1.1\r\n")), "{question}");
            assert!(question.contains(&format!("host: {api}\r\n")), "{question}");
            answer
        })
    }

    #[test]
    fn readiness_is_the_status_and_the_lines_are_what_is_wrong() {
        let asked = |reply| answered(reply, "/ready", async |server| ready(&server).await);
        for (reply, want) in [
            ("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nready\n", Some((true, &[][..]))),
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 25\r\n\r\nready\noutput `a` is down\n",
                Some((true, &["output `a` is down"])),
            ),
            (
                "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 9\r\n\r\nstopping\n",
                Some((false, &["stopping"])),
            ),
            ("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", None),
        ] {
            let readiness = asked(reply).ok();
            let got = readiness.as_ref().map(|got| (got.ready, got.lines.as_slice()));
            let want =
                want.map(|(ready, lines)| (ready, lines.iter().map(|line| (*line).to_owned()).collect()));
            assert_eq!(got.map(|(ready, lines)| (ready, lines.to_vec())), want, "{reply}");
        }
    }

    #[test]
    fn accounts_come_whole_or_chunked() {
        for reply in [
            "HTTP/1.1 200 OK\r\ncontent-length: 44\r\n\r\n{\"time_ms\":7,\"sources\":[{\"name\":\"a\"}],\"x\":1}",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n10\r\n{\"time_ms\":7,\"so\r\n1c\r\nurces\":[{\"name\":\"a\"}],\"x\":1}\r\n0\r\n\r\n",
            "HTTP/1.0 200 OK\r\n\r\n{\"time_ms\":7,\"sources\":[{\"name\":\"a\"}]}",
        ] {
            let document = asked(reply).expect("it is an account");
            assert_eq!((document.time_ms, document.sources[0].name.as_str()), (7, "a"), "{reply}");
        }
    }

    #[test]
    fn whatever_else_comes_is_a_sentence() {
        for (reply, part) in [
            ("", "no HTTP response"),
            ("STAT 1\r\n\r\n", "no HTTP response"),
            ("HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}", "HTTP 404"),
            ("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{}", "is incomplete"),
            ("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>", "not an accounts document"),
        ] {
            let error = asked(reply).expect_err("it is no account");
            assert!(error.contains(part) && !error.contains('\n'), "{reply}: {error}");
        }
    }
}

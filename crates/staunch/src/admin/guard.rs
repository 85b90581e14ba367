//! Which requests may change something: those that no web page can have made a browser send.
//!
//! The HTTP API asks for no password, so that whoever may run programs on the machine may use it. Others may not, where it
//! is opened to a network to be read. Nor may a page in a browser on the machine: it can send forms to any address, and
//! with a name of its own that leads to 127.0.0.1 it can even read answers. Three things tell it apart, and each is
//! enough to be refused.

use std::net::{IpAddr, SocketAddr};

use axum::extract::connect_info::Connected;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_TYPE, HOST, ORIGIN};
use axum::serve::IncomingStream;

use crate::admin::limited::Limited;

/// Types of bodies that a browser sends elsewhere only when it was told that it may, which we never tell it.
const TYPES: [&str; 3] = ["application/json", "application/x-ndjson", "application/octet-stream"];

/// The two ends of a connection. None: the system does not tell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    peer: IpAddr,
    own: Option<IpAddr>,
}

impl Ends {
    /// True when the peer is on this machine: it comes from loopback, or from the very address that it has come to.
    fn are_here(self) -> bool {
        let peer = self.peer.to_canonical();
        peer.is_loopback() || self.own.is_some_and(|own| own.to_canonical() == peer)
    }
}

impl Connected<IncomingStream<'_, Limited>> for Ends {
    fn connect_info(stream: IncomingStream<'_, Limited>) -> Ends {
        let own = stream.io().local_addr().map(|own: SocketAddr| own.ip());
        Ends { peer: stream.remote_addr().ip(), own: own.ok() }
    }
}

/// The type of the body of a request that may change something.
///
/// # Errors
/// Why it may not, in one sentence.
pub(super) fn changes(ends: Ends, headers: &HeaderMap) -> Result<&'static str, &'static str> {
    if !ends.are_here() {
        return Err("a request that changes something has to come from this machine");
    }
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or(""));
    let host = text(HOST).unwrap_or("");
    if !is_address(host) {
        return Err(
            "the Host of a request that changes something is an address or localhost, and no other name",
        );
    }
    if text(ORIGIN).is_some_and(|origin| origin.strip_prefix("http://") != Some(host)) {
        return Err("the request comes from a web page of another origin");
    }
    let kind = text(CONTENT_TYPE).unwrap_or("").split(';').next().unwrap_or("").trim();
    let known = TYPES.iter().find(|known| known.eq_ignore_ascii_case(kind));
    known
        .copied()
        .ok_or("the Content-Type is none of application/json, application/x-ndjson, application/octet-stream")
}

/// True for an address with or without a port, and for localhost: names that nobody else can point elsewhere.
fn is_address(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(""),
        None => host.split(':').next().unwrap_or(""),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    fn ends(peer: &str, own: &str) -> Ends {
        Ends { peer: peer.parse().expect("an address"), own: own.parse().ok() }
    }

    #[test]
    fn only_this_machine_may_change_something() {
        for (peer, own, here) in [
            ("127.0.0.1", "127.0.0.1", true),
            ("::1", "::1", true),
            ("::ffff:127.0.0.1", "::ffff:127.0.0.1", true),
            ("10.0.0.5", "10.0.0.5", true),
            ("::ffff:10.0.0.5", "10.0.0.5", true),
            ("10.0.0.6", "10.0.0.5", false),
            ("10.0.0.6", "unknown", false),
            ("fe80::1", "fe80::2", false),
        ] {
            assert_eq!(ends(peer, own).are_here(), here, "{peer} to {own}");
        }
        let why = changes(ends("10.0.0.6", "10.0.0.5"), &HeaderMap::new()).expect_err("it is elsewhere");
        assert!(why.contains("this machine"), "{why}");
    }

    #[test]
    fn only_what_no_page_can_send_may_change_something() {
        const JSON: (HeaderName, &str) = (CONTENT_TYPE, "application/json");
        const HERE: (HeaderName, &str) = (HOST, "127.0.0.1:8680");
        /// (headers, the type, or a word of why not)
        type Row = (&'static [(HeaderName, &'static str)], Result<&'static str, &'static str>);
        let table: &[Row] = &[
            (&[HERE, JSON], Ok("application/json")),
            (&[HERE, (CONTENT_TYPE, "Application/X-NDJSON; charset=utf-8")], Ok("application/x-ndjson")),
            (&[(HOST, "localhost:1"), JSON], Ok("application/json")),
            (&[(HOST, "[::1]:8680"), JSON], Ok("application/json")),
            (&[(HOST, "10.0.0.5"), JSON], Ok("application/json")),
            (&[HERE, JSON, (ORIGIN, "http://127.0.0.1:8680")], Ok("application/json")),
            (&[HERE, JSON, (ORIGIN, "http://evil.example")], Err("origin")),
            (&[HERE, JSON, (ORIGIN, "http://127.0.0.1:9999")], Err("origin")),
            (&[HERE, JSON, (ORIGIN, "null")], Err("origin")),
            (&[(HOST, "evil.example:8680"), JSON, (ORIGIN, "http://evil.example:8680")], Err("Host")),
            (&[(HOST, "127.0.0.1.evil.example"), JSON], Err("Host")),
            (&[(HOST, ""), JSON], Err("Host")),
            (&[JSON], Err("Host")),
            (&[HERE], Err("Content-Type")),
            (&[HERE, (CONTENT_TYPE, "text/plain")], Err("Content-Type")),
            (&[HERE, (CONTENT_TYPE, "application/x-www-form-urlencoded")], Err("Content-Type")),
            (&[HERE, (CONTENT_TYPE, "multipart/form-data; boundary=x")], Err("Content-Type")),
            (&[HERE, (CONTENT_TYPE, "text/plain; application/json")], Err("Content-Type")),
        ];
        for (headers, want) in table {
            let map: HeaderMap = headers
                .iter()
                .map(|(name, value)| (name.clone(), value.parse().expect("a header's value")))
                .collect();
            match (changes(ends("127.0.0.1", "127.0.0.1"), &map), want) {
                (Ok(kind), Ok(want)) => assert_eq!(kind, *want),
                (Err(why), Err(word)) => assert!(why.contains(word), "{headers:?}: {why}"),
                (found, want) => panic!("{headers:?}: {found:?} instead of {want:?}"),
            }
        }
    }
}

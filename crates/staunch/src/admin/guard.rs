//! Which requests are allowed, and which may change something. Only the head of a request is used: no body is read
//! before.
//!
//! A web page in a browser can send forms to any address. With its own name that resolves to 127.0.0.1, it can even
//! read responses (DNS rebinding). Therefore requests are served only for addresses, `localhost`, and names listed by
//! the operator. Requests that change something must have a type that web pages cannot send, and must come from this
//! machine, with or without a token: a scraper's token only allows reading.

use std::net::{IpAddr, Ipv6Addr};

use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, ORIGIN};
use axum::http::{HeaderMap, HeaderValue};

use model::PeerKey;
use tls::token::Token;

/// Content types that a browser sends to other sites only after a preflight request, which we never allow.
const TYPES: [&str; 3] = ["application/json", "application/x-ndjson", "application/octet-stream"];

/// The two addresses of a connection. `None`: the system does not report them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    peer: IpAddr,
    own: Option<IpAddr>,
}

impl Ends {
    pub(super) fn new(peer: IpAddr, own: Option<IpAddr>) -> Ends {
        Ends { peer, own }
    }

    /// The peer, for limits per client.
    pub(super) fn peer(self) -> PeerKey {
        crate::admission::peer_key(Some(self.peer))
    }

    /// The client's address.
    pub(super) fn client(self) -> IpAddr {
        self.peer.to_canonical()
    }

    /// True when the peer is on this machine: its address is loopback, or the same as the local address.
    pub(super) fn are_here(self) -> bool {
        let peer = self.peer.to_canonical();
        peer.is_loopback() || self.own.is_some_and(|own| own.to_canonical() == peer)
    }
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).map(|value| value.to_str().unwrap_or(""))
}

/// Checks the Host of a request. Requests without one do not come from browsers.
///
/// # Errors
/// The reason in one sentence.
pub(super) fn host(headers: &HeaderMap, allowed: &[String]) -> Result<(), String> {
    let mut hosts = headers.get_all(HOST).iter();
    let Some(host) = hosts.next() else { return Ok(()) };
    let host = host.to_str().unwrap_or("");
    if hosts.next().is_none() && is_ours(host, allowed) {
        return Ok(());
    }
    Err(format!(
        "the Host of a request must be an address, localhost, or a name in `http.allowed_hosts`, not `{}`",
        name_asked_for(headers)
    ))
}

/// The name in the Host of a request, for the log.
pub(super) fn name_asked_for(headers: &HeaderMap) -> String {
    let host = text(headers, HOST).unwrap_or("");
    name_of(host).unwrap_or(host).chars().filter(char::is_ascii_graphic).take(80).collect()
}

/// What a request had instead of the token, in words.
pub(super) fn instead_of_token(headers: &HeaderMap) -> &'static str {
    if headers.contains_key(AUTHORIZATION) { "a wrong token" } else { "no token" }
}

/// Whether a request has the token, if one is needed.
pub(super) fn has_token(headers: &HeaderMap, token: Option<&Token>) -> bool {
    let Some(token) = token else { return true };
    let given = headers.get(AUTHORIZATION).map(|value| value.as_bytes()).unwrap_or_default();
    let scheme = given.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"Bearer "));
    scheme && token.is(given[7..].trim_ascii())
}

/// The content type of a request that may change something.
///
/// # Errors
/// The reason in one sentence why it may not.
pub(super) fn changes(
    ends: Ends,
    headers: &HeaderMap,
    allowed: &[String],
) -> Result<&'static str, &'static str> {
    if !ends.are_here() {
        return Err("a request that changes something must come from this machine");
    }
    let host = text(headers, HOST).unwrap_or("");
    if !is_ours(host, allowed) {
        return Err(
            "the Host of a request that changes something must be an address, localhost or an allowed name",
        );
    }
    is_of_no_other_site(headers)?;
    let kind = text(headers, CONTENT_TYPE).unwrap_or("").split(';').next().unwrap_or("").trim();
    let known = TYPES.iter().find(|known| known.eq_ignore_ascii_case(kind));
    known.copied().ok_or(
        "the Content-Type must be one of application/json, application/x-ndjson, application/octet-stream",
    )
}

/// Whether no web page of another origin sends the request: browsers add the origin to what they send to other sites.
///
/// # Errors
/// The reason in one sentence.
pub(super) fn is_of_no_other_site(headers: &HeaderMap) -> Result<(), &'static str> {
    let host = text(headers, HOST).unwrap_or("");
    let is_own = |origin: &HeaderValue| {
        let origin = origin.to_str().unwrap_or("");
        let site = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        site == Some(host)
    };
    if headers.get_all(ORIGIN).iter().all(is_own) {
        return Ok(());
    }
    Err("the request comes from a web page of another origin")
}

/// The part of a Host before its port. `None` when the rest is not a port.
fn name_of(host: &str) -> Option<&str> {
    let (name, behind) = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').filter(|(name, _)| name.parse::<Ipv6Addr>().is_ok())?,
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    (behind.is_empty() || behind.strip_prefix(':').is_some_and(is_port)).then_some(name)
}

/// True for a Host that is an address or localhost, with or without a port.
pub(crate) fn is_address(host: &str) -> bool {
    is_ours(host, &[])
}

/// True for two Hosts, both addresses or localhost, that are the same one or both this machine.
pub(crate) fn are_same_machine(one: &str, other: &str) -> bool {
    let plain = |host| name_of(host).map(|name| name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase());
    let is_here = |name: &str| {
        name == "localhost" || name.parse().is_ok_and(|ip: IpAddr| ip.to_canonical().is_loopback())
    };
    let (Some(one), Some(other)) = (plain(one), plain(other)) else { return false };
    one == other || is_here(&one) && is_here(&other)
}

/// True for an address with or without a port, for localhost, and for allowed names: nobody else can make these resolve
/// elsewhere.
fn is_ours(host: &str, allowed: &[String]) -> bool {
    let Some(name) = name_of(host) else { return false };
    let plain = name.strip_suffix('.').unwrap_or(name);
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok()
        || allowed.iter().any(|known| known.eq_ignore_ascii_case(plain))
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
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "10.0.0.5".parse().expect("a header's value"));
        headers.insert(CONTENT_TYPE, "application/json".parse().expect("a header's value"));
        headers.insert(AUTHORIZATION, "Bearer 0123456789abcdef".parse().expect("a header's value"));
        assert!(changes(ends("10.0.0.5", "10.0.0.5"), &headers, &[]).is_ok());
        let why = changes(ends("10.0.0.6", "10.0.0.5"), &headers, &[]).expect_err("a token only reads");
        assert!(why.contains("this machine"), "{why}");
        let why = changes(ends("10.0.0.6", "10.0.0.5"), &HeaderMap::new(), &[]).expect_err("it is elsewhere");
        assert!(why.contains("this machine"), "{why}");
    }

    #[test]
    fn only_requests_that_web_pages_cannot_send_may_change_something() {
        const JSON: (HeaderName, &str) = (CONTENT_TYPE, "application/json");
        const HERE: (HeaderName, &str) = (HOST, "127.0.0.1:8680");
        /// (headers, the type, or a part of the error)
        type Row = (&'static [(HeaderName, &'static str)], Result<&'static str, &'static str>);
        let table: &[Row] = &[
            (&[HERE, JSON], Ok("application/json")),
            (&[HERE, (CONTENT_TYPE, "Application/X-NDJSON; charset=utf-8")], Ok("application/x-ndjson")),
            (&[(HOST, "localhost:1"), JSON], Ok("application/json")),
            (&[(HOST, "[::1]:8680"), JSON], Ok("application/json")),
            (&[(HOST, "10.0.0.5"), JSON], Ok("application/json")),
            (&[(HOST, "Staunch.example.org:8680"), JSON], Ok("application/json")),
            (&[(HOST, "localhost"), JSON, (ORIGIN, "https://localhost")], Ok("application/json")),
            (&[HERE, JSON, (ORIGIN, "http://127.0.0.1:8680")], Ok("application/json")),
            (&[HERE, JSON, (ORIGIN, "http://evil.example")], Err("origin")),
            (&[HERE, JSON, (ORIGIN, "http://127.0.0.1:9999")], Err("origin")),
            (&[HERE, JSON, (ORIGIN, "null")], Err("origin")),
            (
                &[HERE, JSON, (ORIGIN, "http://127.0.0.1:8680"), (ORIGIN, "http://evil.example")],
                Err("origin"),
            ),
            (
                &[HERE, JSON, (ORIGIN, "http://127.0.0.1:8680"), (ORIGIN, "http://127.0.0.1:8680")],
                Ok("application/json"),
            ),
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
        let allowed = ["staunch.example.org".to_owned()];
        for (headers, want) in table {
            let mut map = HeaderMap::new();
            for (name, value) in *headers {
                map.append(name, value.parse().expect("a header's value"));
            }
            match (changes(ends("127.0.0.1", "127.0.0.1"), &map, &allowed), want) {
                (Ok(kind), Ok(want)) => assert_eq!(kind, *want),
                (Err(why), Err(word)) => assert!(why.contains(word), "{headers:?}: {why}"),
                (found, want) => panic!("{headers:?}: {found:?} instead of {want:?}"),
            }
        }
    }

    #[test]
    fn requests_are_for_an_address_or_an_allowed_name() {
        let allowed = ["staunch.example.org".to_owned()];
        let table: &[(&[&str], bool)] = &[
            (&[], true),
            (&["127.0.0.1:8680"], true),
            (&["[::1]:8680"], true),
            (&["LOCALHOST"], true),
            (&["staunch.example.org"], true),
            (&["staunch.example.org.:8680"], true),
            (&["evil.example:8680"], false),
            (&["127.0.0.1.evil.example"], false),
            (&["localhost.evil.example"], false),
            (&["x.staunch.example.org"], false),
            (&["[::1]"], true),
            (&["[::1]:"], true),
            (&["[::1]evil.example"], false),
            (&["[::1]evil.example:8680"], false),
            (&["[::1]:8680.evil.example"], false),
            (&["[::1"], false),
            (&["[localhost]"], false),
            (&["127.0.0.1:8680:1"], false),
            (&["localhost:evil.example"], false),
            (&[""], false),
            (&["127.0.0.1", "evil.example"], false),
            (&["evil.example", "127.0.0.1"], false),
        ];
        for (hosts, want) in table {
            let mut headers = HeaderMap::new();
            for host in *hosts {
                headers.append(HOST, host.parse().expect("a header's value"));
            }
            assert_eq!(host(&headers, &allowed).is_ok(), *want, "{hosts:?}");
        }
    }

    #[test]
    fn a_token_is_required_only_if_one_is_set() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        std::fs::write(&path, "0123456789abcdef").expect("it can be written");
        let token = Token::read(&path).expect("a token");
        let table = [
            (None, false),
            (Some("Bearer 0123456789abcdef"), true),
            (Some("bearer  0123456789abcdef"), true),
            (Some("Bearer 0123456789abcdeF"), false),
            (Some("Bearer"), false),
            (Some("Basic 0123456789abcdef"), false),
            (Some("0123456789abcdef"), false),
        ];
        for (given, want) in table {
            let mut headers = HeaderMap::new();
            if let Some(given) = given {
                headers.insert(AUTHORIZATION, given.parse().expect("a header's value"));
            }
            assert_eq!(has_token(&headers, Some(&token)), want, "{given:?}");
            assert!(has_token(&headers, None));
        }
    }
}

//! What a request asks for, and whether its web page may.
//!
//! A browser lets the scripts of any page open WebSockets to any address, and names the page's origin. So a page may subscribe only if it
//! comes from the same machine's address, or is listed in `allowed_origins`; a page with a name of its own that leads here (DNS rebinding)
//! may not. Programs that are no browsers send no origin; browsers send none with links, images and frames, but say that they are of another
//! site.

use config::plan::SourceKind;
use data_encoding::BASE64;
use hyper::header::{CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, UPGRADE};
use hyper::header::{SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION};
use hyper::{Method, Request, StatusCode};
use pipeline::Subscription;

use crate::admin::guard;

/// Longest query.
const QUERY_BYTES_MAX: usize = 16 * 1024;
/// Longest name of a channel.
const CHANNEL_BYTES_MAX: usize = 1024;
/// What a browser says about the page that a request comes from; scripts cannot change it.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Appended to the key of a handshake (RFC 6455 §1.3).
const HANDSHAKE_TEXT: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// A WebSocket: what it is for, or why nothing, and the answer to its key.
    Socket { of: Result<SocketOf, String>, accept: HeaderValue },
    /// Server-sent events.
    Sse(Subscription),
    /// To put the events of its body.
    Put,
}

/// What a WebSocket is for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SocketOf {
    /// Messages for the client.
    Subscription(Subscription),
    /// Events of the client.
    Events,
}

/// A request that may be answered.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) wish: Wish,
    /// The origin of its page elsewhere, which gets the answer.
    pub(super) origin: Option<HeaderValue>,
}

/// What a request asks for.
///
/// # Errors
/// The answer instead.
pub(super) fn asked<B>(request: &Request<B>, kind: &SourceKind) -> Result<Asked, (StatusCode, String)> {
    let headers = request.headers();
    let bad = |status: StatusCode, why: &str| (status, why.to_owned());
    let SourceKind::Riemann(source) = kind else {
        let why = "a reload has changed what this source takes: connect again";
        return Err(bad(StatusCode::SERVICE_UNAVAILABLE, why));
    };
    let is_socket = has_word(headers, UPGRADE, "websocket") && has_word(headers, CONNECTION, "upgrade");
    let origin = page(headers, &source.allowed_origins, is_socket || request.method() != Method::GET)
        .map_err(|why| (StatusCode::FORBIDDEN, why))?;
    let path = request.uri().path();
    let of = target(path, request.uri().query().unwrap_or(""));
    if is_socket {
        let accept = handshake(request.method(), headers).map_err(|why| bad(StatusCode::BAD_REQUEST, why))?;
        let of = of.unwrap_or_else(|| Err(format!("there is no {path}")));
        return Ok(Asked { wish: Wish::Socket { of, accept }, origin: None });
    }
    let wish = match of {
        None => return Err(bad(StatusCode::NOT_FOUND, "use /index, /pubsub/CHANNEL or /events")),
        Some(Ok(SocketOf::Events)) if [Method::PUT, Method::POST].contains(request.method()) => Wish::Put,
        Some(Ok(SocketOf::Events)) => {
            return Err(bad(StatusCode::METHOD_NOT_ALLOWED, "send lines of JSON with PUT"));
        }
        Some(Ok(SocketOf::Subscription(_))) if request.method() != Method::GET => {
            return Err(bad(StatusCode::METHOD_NOT_ALLOWED, "subscribe with GET"));
        }
        // Server-sent events have no end (spec riemann §6.3).
        Some(Ok(SocketOf::Subscription(of))) => Wish::Sse(Subscription { subscribes: true, ..of }),
        Some(Err(why)) => return Err((StatusCode::BAD_REQUEST, why)),
    };
    Ok(Asked { wish, origin })
}

/// What an address is for; none if it is unknown.
fn target(path: &str, query: &str) -> Option<Result<SocketOf, String>> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let channel = match path {
        "/events" => return Some(Ok(SocketOf::Events)),
        "/index" => None,
        _ => Some(unescaped(path.strip_prefix("/pubsub/")?)),
    };
    let parameter = |name: &str| {
        let mut all = form_urlencoded::parse(query.as_bytes());
        all.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    };
    Some(match parameter("query") {
        None => Err("the address has no query: add ?query=true".to_owned()),
        Some(query) if query.len() > QUERY_BYTES_MAX => {
            Err(format!("the query has more than {QUERY_BYTES_MAX} bytes"))
        }
        Some(_) if channel.as_ref().is_some_and(|channel| channel.len() > CHANNEL_BYTES_MAX) => {
            Err(format!("the name of the channel has more than {CHANNEL_BYTES_MAX} bytes"))
        }
        Some(query) => {
            let subscribes = channel.is_some() || parameter("subscribe").as_deref() == Some("true");
            Ok(SocketOf::Subscription(Subscription { channel, query, subscribes }))
        }
    })
}

/// A part of a path as a text.
fn unescaped(part: &str) -> String {
    // As a value of a form, which is escaped in the same way, except for `&`.
    let form = format!("c={}", part.replace('&', "%26"));
    let mut all = form_urlencoded::parse(form.as_bytes());
    all.next().map(|(_, value)| value.into_owned()).unwrap_or_default()
}

fn has_word(headers: &HeaderMap, name: HeaderName, word: &str) -> bool {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|one| one.trim().eq_ignore_ascii_case(word))
}

/// The answer to the key of a handshake (RFC 6455 §4.2.2).
fn handshake(method: &Method, headers: &HeaderMap) -> Result<HeaderValue, &'static str> {
    if method != Method::GET {
        return Err("a WebSocket begins with GET");
    }
    if headers.get(SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
        return Err("the version of the WebSocket must be 13");
    }
    let key = headers.get(SEC_WEBSOCKET_KEY).ok_or("a WebSocket needs a Sec-WebSocket-Key")?;
    // The protocol names SHA-1, which protects nothing here.
    let mut digest = ring::digest::Context::new(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY);
    digest.update(key.as_bytes());
    digest.update(HANDSHAKE_TEXT);
    let accept = BASE64.encode(digest.finish().as_ref());
    HeaderValue::from_str(&accept).map_err(|_error| "the key is not ASCII")
}

/// The origin of a request of a page elsewhere that may have the answer; none for programs that are no browsers, and for pages of this
/// address. `names_page`: a browser always says which page sends such a request.
///
/// # Errors
/// Why the page may not.
fn page(headers: &HeaderMap, allowed: &[String], names_page: bool) -> Result<Option<HeaderValue>, String> {
    let is_allowed = |text: &str| allowed.iter().any(|one| one == "*" || one.eq_ignore_ascii_case(text));
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let host = text(HOST).unwrap_or("");
    let Some(origin) = text(ORIGIN) else {
        // An image, a frame or a link of any page: browsers send no origin with them, and each would hold a subscription.
        if has_word(headers, SEC_FETCH_SITE, "cross-site") && !is_allowed("*") {
            let why = "a web page elsewhere that does not name itself may not subscribe here: enter the address by hand, or use an EventSource";
            return Err(why.to_owned());
        }
        if names_page || host.is_empty() || guard::is_address(host) || is_allowed(&format!("http://{host}")) {
            return Ok(None);
        }
        return Err(format!(
            "`{}` may be a name that a web page has given to this address: ask by the address, or add \"http://{}\" to `allowed_origins`",
            shown(host),
            shown(host)
        ));
    };
    let site = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")).unwrap_or("");
    let is_here = guard::is_address(site) && guard::are_same_machine(site, host);
    if is_allowed(origin) || is_here {
        return Ok(headers.get(ORIGIN).cloned());
    }
    let origin = shown(origin);
    Err(format!("the web page {origin} may not subscribe here: add \"{origin}\" to `allowed_origins`"))
}

/// A header as a part of an answer.
fn shown(text: &str) -> String {
    text.chars().filter(char::is_ascii_graphic).take(200).collect()
}

#[cfg(test)]
mod tests {
    use config::plan::RiemannSource;

    use super::*;

    fn ask(
        method: &str,
        uri: &str,
        headers: &[(&str, &str)],
        allowed: &str,
    ) -> Result<Asked, (StatusCode, String)> {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let allowed_origins = allowed.split_whitespace().map(str::to_owned).collect();
        let kind = SourceKind::Riemann(RiemannSource { allowed_origins, ..RiemannSource::default() });
        asked(&request.body(()).expect("a request"), &kind)
    }

    fn socket(uri: &str) -> Result<SocketOf, String> {
        let headers = [
            ("upgrade", "WebSocket"),
            ("connection", "keep-alive, Upgrade"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        let asked = ask("GET", uri, &headers, "").expect("it may");
        let Wish::Socket { of, accept } = asked.wish else { panic!("{uri}: {:?}", asked.wish) };
        // The example of RFC 6455.
        assert_eq!(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        of
    }

    #[test]
    fn addresses_name_the_index_a_channel_or_events() {
        let of = |channel: Option<&str>, query: &str, subscribes| {
            let channel = channel.map(str::to_owned);
            Ok(SocketOf::Subscription(Subscription { channel, query: query.to_owned(), subscribes }))
        };
        let long = |bytes: usize| format!("/index?query={}", "x".repeat(bytes));
        let table = [
            ("/index?query=true", of(None, "true", false)),
            ("/index/?a=b&subscribe=true&query=service+%3D~+%22a%25%22", of(None, "service =~ \"a%\"", true)),
            ("/index?subscribe=false&query=a=b=c", of(None, "a=b=c", false)),
            ("/pubsub/a%2Fb%20%26&c+d?query=true", of(Some("a/b &&c d"), "true", true)),
            ("/events", Ok(SocketOf::Events)),
            ("/index", Err("the address has no query: add ?query=true".to_owned())),
            ("/other?query=true", Err("there is no /other".to_owned())),
            (&long(QUERY_BYTES_MAX), of(None, &"x".repeat(QUERY_BYTES_MAX), false)),
            (&long(QUERY_BYTES_MAX + 1), Err(format!("the query has more than {QUERY_BYTES_MAX} bytes"))),
        ];
        for (uri, want) in table {
            assert_eq!(socket(uri), want, "{uri}");
        }
        let channel = format!("/pubsub/{}?query=true", "x".repeat(CHANNEL_BYTES_MAX + 1));
        assert!(socket(&channel).is_err_and(|why| why.contains("name of the channel")));
    }

    #[test]
    fn requests_without_a_websocket_are_events_or_have_a_status() {
        let table = [
            ("GET", "/index?query=true", 200),
            ("GET", "/pubsub/a?query=true", 200),
            ("POST", "/index?query=true", 405),
            ("PUT", "/events", 200),
            ("POST", "/events", 200),
            ("GET", "/events", 405),
            ("GET", "/index", 400),
            ("GET", "/", 404),
        ];
        for (method, uri, status) in table {
            let asked = ask(method, uri, &[("host", "127.0.0.1:5556")], "");
            assert_eq!(asked.err().map_or(200, |(status, _)| status.as_u16()), status, "{method} {uri}");
        }
        let headers = [("upgrade", "websocket"), ("connection", "upgrade"), ("sec-websocket-version", "8")];
        assert_eq!(
            ask("GET", "/index?query=true", &headers, "").err().map(|(status, _)| status.as_u16()),
            Some(400)
        );
    }

    #[test]
    fn links_and_images_of_pages_elsewhere_do_not_subscribe() {
        /// (site, origin, allowed origins, whether it may)
        type Row = (&'static str, Option<&'static str>, &'static str, bool);
        let table: &[Row] = &[
            ("cross-site", None, "", false),
            ("Cross-Site", None, "", false),
            ("cross-site", None, "http://dash.example", false),
            ("cross-site", None, "*", true),
            ("cross-site", Some("http://dash.example"), "http://dash.example", true),
            ("same-site", None, "", true),
            ("same-origin", None, "", true),
            ("none", None, "", true),
        ];
        for (site, origin, allowed, may) in table {
            let mut headers = vec![("host", "127.0.0.1:5556"), ("sec-fetch-site", *site)];
            headers.extend(origin.map(|origin| ("origin", origin)));
            for (method, uri) in [("GET", "/index?query=true"), ("PUT", "/events")] {
                let status = ask(method, uri, &headers, allowed).err().map(|(status, _)| status.as_u16());
                assert_eq!(status, (!may).then_some(403), "{method} {site} {origin:?} {allowed}");
            }
        }
    }

    #[test]
    fn pages_elsewhere_may_subscribe_only_if_they_are_allowed() {
        /// (host, origin, allowed origins, whether it may)
        type Row = (&'static str, Option<&'static str>, &'static str, bool);
        let table: &[Row] = &[
            ("127.0.0.1:5556", None, "", true),
            ("localhost:5556", Some("http://localhost:4567"), "", true),
            ("127.0.0.1:5556", Some("http://localhost:4567"), "", true),
            ("[::1]:5556", Some("https://127.0.0.1"), "", true),
            ("10.0.0.5:5556", Some("http://10.0.0.5:4567"), "", true),
            ("10.0.0.5:5556", Some("http://10.0.0.6:4567"), "", false),
            ("127.0.0.1:5556", Some("http://evil.example"), "", false),
            ("127.0.0.1:5556", Some("null"), "", false),
            // A name that leads here: the page's own, or that of a dashboard.
            ("evil.example:5556", Some("http://evil.example:5556"), "", false),
            ("evil.example:5556", None, "", false),
            ("dash.example:5556", Some("http://dash.example:4567"), "http://dash.example:4567", true),
            ("dash.example:5556", Some("http://Dash.example:4567"), "http://dash.example:4567", true),
            ("dash.example:5556", Some("http://dash.example:80"), "http://dash.example:4567", false),
            ("dash.example:5556", None, "http://dash.example:5556", true),
            ("a.example", Some("http://b.example"), "*", true),
            ("a.example", None, "*", true),
        ];
        for (host, origin, allowed, may) in table {
            let headers: Vec<(&str, &str)> = [Some(("host", *host)), origin.map(|origin| ("origin", origin))]
                .into_iter()
                .flatten()
                .collect();
            let asked = ask("GET", "/index?query=true", &headers, allowed);
            assert_eq!(asked.is_ok(), *may, "{host} {origin:?} {allowed}");
            if let Ok(asked) = asked {
                assert_eq!(asked.origin.as_ref().map(|one| one.to_str().unwrap_or("")), *origin, "{host}");
            }
        }
    }
}

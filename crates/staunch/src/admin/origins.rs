//! Web pages elsewhere whose scripts may read data (`http.allowed_origins`).
//!
//! A browser gives an answer to such a script only if the answer names the page's origin. Before a request with a token it asks whether it
//! may send it, without the token ([`preflight`]). Requests that change something are refused for all other origins (`guard`).

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::daemon::shared::Shared;

/// How long a browser may remember the answer to a preflight request, in seconds.
const REMEMBERED_S: &str = "600";

/// The origin of a request, if its page may read.
pub(super) fn allowed(shared: &Shared, headers: &HeaderMap) -> Option<HeaderValue> {
    let origin = headers.get(header::ORIGIN)?;
    let text = origin.to_str().ok()?;
    let wiring = shared.wiring.load();
    let known = &wiring.plan.http_server.allowed_origins;
    known.iter().any(|known| known.eq_ignore_ascii_case(text)).then(|| origin.clone())
}

/// Whether a request may have its answer as a script (`jsonp`): a page can load a script from anywhere, so the page has to be one of ours
/// or of an allowed origin. Browsers name it in `Referer`; a page can make them leave it out, and gets nothing then.
///
/// # Errors
/// The reason in one sentence.
pub(super) fn script(shared: &Shared, request: &Request<Body>) -> Result<(), &'static str> {
    let query = request.uri().query().unwrap_or("").as_bytes();
    if !form_urlencoded::parse(query).any(|(name, function)| name == "jsonp" && !function.is_empty()) {
        return Ok(());
    }
    let headers = request.headers();
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
    let referer = text(header::REFERER);
    let origin = origin_of(referer).unwrap_or("");
    let site = origin.split_once("://").map(|(_, site)| site);
    let wiring = shared.wiring.load();
    let known = &wiring.plan.http_server.allowed_origins;
    let is_known = known.iter().any(|known| known.eq_ignore_ascii_case(origin));
    if is_known || site.is_some_and(|site| site == text(header::HOST)) {
        return Ok(());
    }
    Err(
        "`jsonp` is for web pages of `http.allowed_origins`, and the request does not come from one (Referer)",
    )
}

/// Scheme, host and port of an address.
fn origin_of(address: &str) -> Option<&str> {
    let (scheme, rest) = address.split_once("://")?;
    let host = rest.split(['/', '?', '#']).next()?;
    Some(&address[..scheme.len() + "://".len() + host.len()])
}

/// Names the origin in an answer, so that the browser passes it on.
pub(super) fn mark(origin: Option<HeaderValue>, answer: &mut HeaderMap) {
    if let Some(origin) = origin {
        answer.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        answer.append(header::VARY, HeaderValue::from_static("Origin"));
    }
}

/// The answer to a browser that asks whether a page of an allowed origin may send a request.
pub(super) fn preflight(shared: &Shared, request: &Request<Body>) -> Option<Response> {
    let asks = request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    if request.method() != Method::OPTIONS || !asks {
        return None;
    }
    allowed(shared, request.headers())?;
    let mut answer = StatusCode::NO_CONTENT.into_response();
    let headers = answer.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST"));
    let allowed =
        HeaderValue::from_static("Authorization, Content-Type, X-Grafana-Org-Id, X-Dashboard-Id, X-Panel-Id");
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(REMEMBERED_S));
    Some(answer)
}

#[test]
fn the_origin_of_an_address_has_scheme_host_and_port() {
    for (address, origin) in [
        ("https://wiki.example.org/a?b", Some("https://wiki.example.org")),
        ("http://[::1]:8680/", Some("http://[::1]:8680")),
        ("http://a:1?x=http://b", Some("http://a:1")),
        ("http://a", Some("http://a")),
        ("about:blank", None),
        ("", None),
    ] {
        assert_eq!(origin_of(address), origin, "{address}");
    }
}

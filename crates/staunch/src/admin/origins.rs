//! Web pages elsewhere whose scripts may read data (`http.allowed_origins`).
//!
//! A browser gives an answer to such a script only if the answer names the page's origin. Before a request with a token it asks whether it
//! may send it, without the token ([`preflight`]). Requests that change something are refused for all other origins (`guard`).

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
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

//! Requests to the daemon that owns the queues.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, bail};
use hyper::StatusCode;
use hyper::body::Bytes;

use super::document::{DropResult, QueueRow, QueuesPage, Replayed};
use super::place::Place;
use crate::api_client::{Access, Question, Server, ask, escaped};
use crate::owner::{Owner, within_reach};

/// Longest wait for a list.
const LIST_WAIT: Duration = Duration::from_secs(3);

/// Longest wait for a change: a large queue is dropped in many steps.
const CHANGE_WAIT: Duration = Duration::from_secs(600);

/// The queues on disk that the daemon has. None without a daemon, or when it does not say.
/// It knows more than the files do: what is settled is written there a moment later.
pub(super) fn listed(place: &Place, access: &Access) -> Option<Vec<QueueRow>> {
    let api = place.owner?.http?;
    let question = Question { path: "/api/v1/queues".into(), body: None, wait: LIST_WAIT };
    let (status, body) = asked(api, access, question).ok()?;
    let page: QueuesPage = serde_json::from_slice(&body).ok().filter(|_| status == StatusCode::OK)?;
    Some(page.queues.into_iter().filter(|queue| queue.disk.is_some()).collect())
}

/// The HTTP API of the daemon that has the queues.
///
/// # Errors
/// When it has none: nobody else may write there.
pub(super) fn address(owner: Owner) -> anyhow::Result<SocketAddr> {
    owner.http.with_context(|| {
        format!(
            "{} uses the queues, and its HTTP API is off\n  hint: stop that daemon first, or turn its HTTP API on \
             (http.listen)",
            owner.text()
        )
    })
}

/// Has the daemon drop what waits.
pub(super) fn drop_waiting(
    to: (Owner, &Access),
    name: &str,
    order: &serde_json::Value,
) -> anyhow::Result<DropResult> {
    let body = serde_json::to_vec(order)?;
    let answer = change(to, name, "drop", ("application/json", body))?;
    serde_json::from_slice(&answer).context("the daemon's answer cannot be read")
}

/// Has the daemon append blocks, as lines or as JSON lines.
pub(super) fn replay(
    to: (Owner, &Access),
    name: &str,
    body: (&'static str, Vec<u8>),
) -> anyhow::Result<Replayed> {
    let answer = change(to, name, "replay", body)?;
    serde_json::from_slice(&answer).context("the daemon's answer cannot be read")
}

fn change(
    (owner, access): (Owner, &Access),
    name: &str,
    verb: &str,
    body: (&'static str, Vec<u8>),
) -> anyhow::Result<Bytes> {
    let api = address(owner)?;
    let path = format!("/api/v1/queues/{}/{verb}", escaped(name));
    let (status, answer) = asked(api, access, Question { path, body: Some(body), wait: CHANGE_WAIT })?;
    if status != StatusCode::OK {
        bail!("{} at {api} answers {status}: {}", owner.text(), String::from_utf8_lossy(&answer).trim());
    }
    Ok(answer)
}

fn asked(api: SocketAddr, access: &Access, question: Question) -> anyhow::Result<(StatusCode, Bytes)> {
    let api = within_reach(api);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let server = Server { at: api.to_string(), access: access.clone() };
    let answer = runtime.block_on(ask(&server, question));
    answer.map_err(|error| anyhow::anyhow!("the daemon's HTTP API at {api}: {error}"))
}

//! `/api/v1/relay/explain`: the way of a name through a running relay, with the endpoints up that are up now.

use axum::http::StatusCode;
use config::plan::TransformKind;
use process::relay::Entry;
use serde::Deserialize;

use crate::daemon::shared::Shared;
use crate::daemon::worker::Asking;
use crate::explained::{Way, line};

/// Longest line that is asked about: longer ones are no lines.
const LINE_BYTES_MAX: usize = 32_768;

/// Query of a request.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExplainQuery {
    /// The name, or a whole line.
    #[serde(default)]
    pub name: String,
    /// Which relay, when there are several.
    pub relay: Option<String>,
}

/// The way of a name.
///
/// # Errors
/// A status and a sentence when the name or the relay is none.
pub async fn explain(
    shared: &Shared,
    asking: &mut Asking,
    query: ExplainQuery,
) -> Result<Way, (StatusCode, String)> {
    let ExplainQuery { name, relay } = query;
    if name.is_empty() || name.len() > LINE_BYTES_MAX {
        let why = format!("`name` is a name or a line of 1 to {LINE_BYTES_MAX} bytes");
        return Err((StatusCode::BAD_REQUEST, why));
    }
    let relay = known(shared, relay)?;
    let (wanted, tagged) = (relay.clone(), shared.wiring.load().plan.tags_are_named(&relay));
    let asked = asking.call(move |worker| worker.shard.relay_to_ask(&wanted)).await?;
    let (made_of, router) =
        asked.ok_or_else(|| (StatusCode::NOT_FOUND, format!("there is no relay `{relay}`")))?;
    // Thousands of expressions may be looked for: neither the shard nor other requests wait for them.
    let way = tokio::task::spawn_blocking(move || {
        let line = line(name.as_bytes(), tagged);
        let place = |statement: usize, _: usize| format!("rule {}", statement + 1);
        let explanation = router.explain(Entry::Records, line, 0);
        Way::new(&made_of.plan, line, &explanation, &place)
    });
    way.await.map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, format!("it was not explained: {error}")))
}

/// The relay that is asked about: the only one when none is named.
fn known(shared: &Shared, asked: Option<String>) -> Result<String, (StatusCode, String)> {
    if let Some(relay) = asked {
        return Ok(relay);
    }
    let wiring = shared.wiring.load();
    let relays = wiring.plan.transforms.iter().filter(|each| matches!(each.kind, TransformKind::Relay(_)));
    let names: Vec<&str> = relays.map(|relay| &*relay.name).collect();
    match &names[..] {
        [one] => Ok((*one).to_owned()),
        [] => Err((StatusCode::NOT_FOUND, "this daemon relays nothing".into())),
        several => Err((
            StatusCode::BAD_REQUEST,
            format!("which relay? add &relay= and one of {}", several.join(", ")),
        )),
    }
}

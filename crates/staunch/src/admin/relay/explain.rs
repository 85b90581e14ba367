//! `/api/v1/relay/explain`: the way of a name through a running relay, with the endpoints up that are up now.

use axum::http::StatusCode;
use config::plan::TransformKind;
use process::relay::{Entry, Line, Meeting};
use serde::Deserialize;

use crate::daemon::shared::Shared;
use crate::explained::Way;

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
pub async fn explain(shared: &Shared, query: ExplainQuery) -> Result<Way, (StatusCode, String)> {
    let ExplainQuery { name, relay } = query;
    if name.is_empty() || name.len() > LINE_BYTES_MAX {
        let why = format!("`name` is a name or a line of 1 to {LINE_BYTES_MAX} bytes");
        return Err((StatusCode::BAD_REQUEST, why));
    }
    let relay = known(shared, relay)?;
    let (asked, tagged) = (relay.clone(), names_have_tags(shared, &relay));
    let answer = shared.shard.call(move |worker| {
        let line = line(name.as_bytes(), tagged);
        let place = |met: &Meeting| format!("rule {}", met.statement + 1);
        let plan = worker.shard.relay_plan(&asked)?;
        let explanation = worker.shard.explain(&asked, Entry::Records, line.name, line.rest)?;
        Some(Way::new(plan, line, &explanation, &place))
    });
    let way = answer.await.map_err(|_gone| (StatusCode::SERVICE_UNAVAILABLE, "the daemon stops".into()))?;
    way.ok_or_else(|| (StatusCode::NOT_FOUND, format!("there is no relay `{relay}`")))
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

/// Whether tags are part of the names that a relay gets, from the first of its sources.
fn names_have_tags(shared: &Shared, relay: &str) -> bool {
    let wiring = shared.wiring.load();
    let transform = wiring.plan.transforms.iter().find(|transform| transform.name == relay);
    let source = transform.and_then(|transform| wiring.plan.sources.get(transform.from.first()?.index()));
    source.and_then(|source| source.kind.points()).is_some_and(|points| points.reading.names_have_tags())
}

/// A line as relays see it: the name ends at the first blank or, unless tags are part of it, the first `;`.
fn line(text: &[u8], tagged: bool) -> Line<'_> {
    let ends = |byte: &u8| matches!(byte, b' ' | b'\t') || *byte == b';' && !tagged;
    let end = text.iter().position(ends).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    Line { name, rest: rest.strip_prefix(b" ").or(rest.strip_prefix(b"\t")).unwrap_or(rest) }
}

#[test]
fn a_line_is_a_name_and_what_is_validated() {
    for (text, name, rest) in [
        ("a.b", "a.b", ""),
        ("a.b 1 2", "a.b", "1 2"),
        ("a.b\t1 2", "a.b", "1 2"),
        ("a;t=x 1 2", "a", ";t=x 1 2"),
        ("", "", ""),
    ] {
        let line = line(text.as_bytes(), false);
        assert_eq!((line.name, line.rest), (name.as_bytes(), rest.as_bytes()), "{text}");
    }
    assert_eq!(line(b"a;t=x 1 2", true).name, b"a;t=x");
}

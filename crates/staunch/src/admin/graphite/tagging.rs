//! `/tags/tagSeries`, `tagMultiSeries` and `delSeries`: names in the index of tags (spec graphite §6.9).
//!
//! Series come into the index by themselves with their first point, so carbon's requests change nothing in the end. `delSeries` takes names
//! out of the index and leaves their files, as graphite-web does: with its next point, a series is back. `staunch whisper delete` deletes
//! files. All three are changes, and must come from this machine.

use std::sync::Arc;

use axum::http::StatusCode;
use config::plan::Plan;
use graphite::answer::json;
use graphite::catalog::normal_name;

use super::page::{Page, wrapped};
use super::parameters::Parameters;
use super::queries::no_store;
use super::tags::argument;
use crate::admin::guard::Ends;
use crate::admin::refusal::Refusal;
use crate::daemon::shared::stores::OpenStore;

/// Most names of one request.
const NAMES_MAX: usize = 10_000;

/// Answers one of the requests.
pub(super) fn answer(
    path: &str,
    parameters: &Parameters,
    (stores, plan): (&[Arc<OpenStore>], &Plan),
    ends: Ends,
) -> Result<Page, Refusal> {
    // Names that have no points use up those that there may be.
    if !ends.are_here() {
        let why = "a request that changes something must come from this machine";
        return Err((StatusCode::FORBIDDEN, why.to_owned()));
    }
    let Some(store) = stores.first() else { return Err(no_store(plan, None)) };
    let names = parameters.all("path");
    let one = path == "/tags/tagSeries";
    if names.iter().all(|name| name.is_empty()) {
        return Err(argument(if one { "no path specified" } else { "no paths specified" }));
    }
    if names.len() > NAMES_MAX {
        return Err(argument(format!("a request has at most {NAMES_MAX} paths")));
    }
    let normal = |name: &&str| {
        normal_name(name.as_bytes()).map_err(|bad| argument(format!("Cannot parse path {name}: {bad}")))
    };
    let normal: Vec<Vec<u8>> = names.iter().map(normal).collect::<Result<_, _>>()?;
    if path == "/tags/delSeries" {
        for name in normal.iter().filter(|name| name.contains(&b';')) {
            for store in stores {
                let _was_known = store.store.forget_name(name);
            }
        }
        return wrapped(parameters, b"true".to_vec());
    }
    for name in &normal {
        if let Err(full) = store.store.put_name(name) {
            return Err((StatusCode::UNPROCESSABLE_ENTITY, full.to_string()));
        }
    }
    if one {
        let mut text = Vec::new();
        json::push_text(normal.last().map_or(&[], Vec::as_slice), &mut text);
        return wrapped(parameters, text);
    }
    wrapped(parameters, json::texts(normal.iter().map(Vec::as_slice)))
}

#[test]
fn only_requests_from_this_machine_change_names() {
    let parameters = Parameters::new("path=a;b=c", b"").expect("valid");
    let text = "[sources.s]\ntype = \"graphite\"\n[outputs.o]\ntype = \"graphite_file\"\nfrom = [\"s\"]\n";
    let source = config::diagnostic::Source { name: "test", text };
    let (plan, diagnostics) = config::check(source, config::Format::Toml);
    let plan = plan.unwrap_or_else(|| panic!("{diagnostics:?}"));
    for path in ["/tags/tagSeries", "/tags/tagMultiSeries", "/tags/delSeries"] {
        let status = |peer: &str| {
            let ends = Ends::new(peer.parse().expect("an address"), "10.0.0.5".parse().ok());
            answer(path, &parameters, (&[], &plan), ends).err().map(|(status, _)| status)
        };
        assert_eq!(status("10.0.0.6"), Some(StatusCode::FORBIDDEN), "{path}");
        // There is no store to change.
        assert_eq!(status("10.0.0.5"), Some(StatusCode::NOT_FOUND), "{path}");
    }
}

//! `POST /api/v1/reload` and `GET /api/v1/config`: reloads the config files, and shows the current config.
//!
//! Not here: the reload itself (`daemon::reload`), permission (`guard`).

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use serde::Serialize;

use crate::admin::refusal::Refusal;
use crate::daemon::shared::Shared;
use crate::daemon::shared::reloads::ReloadEnd;

/// Timeout for the result. A longer reload continues without its client.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The result of a reload.
#[derive(Debug, Default, Serialize)]
pub(super) struct ReloadPage {
    /// `done`, `partial` or `refused`.
    result: &'static str,
    /// The diagnostics of a rejected reload, or the failures of a partial one.
    message: String,
}

/// Reloads and waits for the result. Returns it with a status: 422 for a rejected reload.
///
/// # Errors
/// When there is no file to reload, or at the timeout.
pub(super) async fn reload(shared: &Arc<Shared>) -> Result<(StatusCode, ReloadPage), Refusal> {
    let Some(number) = shared.reloads.ask() else {
        let why = "there is no config file to reload: the options of the command line are in force";
        return Err((StatusCode::CONFLICT, why.to_owned()));
    };
    let mut ends = shared.reloads.ends();
    let ended = tokio::time::timeout(WAIT_MAX, ends.wait_for(|end| end.number > number)).await;
    let Ok(Ok(end)) = ended else {
        let why = "the reload has not ended yet: the log will report its end";
        return Err((StatusCode::SERVICE_UNAVAILABLE, why.to_owned()));
    };
    let ReloadEnd { result, message, .. } = end.clone();
    let status = if result == "refused" { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    Ok((status, ReloadPage { result, message }))
}

#[test]
fn the_page_on_the_api_shows_this_document() {
    let page = include_str!("../../../../docs/api.md");
    let shown = page.split("```json\n").find(|rest| rest.contains("\"result\"")).expect("it is shown");
    let shown = shown.split("```").next().expect("a first part");
    let shown: serde_json::Value = serde_json::from_str(shown).expect("the example is JSON");
    let ours = serde_json::to_value(ReloadPage::default()).expect("serializes");
    let members = |value: &serde_json::Value| -> Vec<String> {
        value.as_object().into_iter().flat_map(|object| object.keys().cloned()).collect()
    };
    assert_eq!(members(&shown), members(&ours));
}

//! Why a request is rejected.

use axum::http::StatusCode;

use crate::daemon::worker::Unanswered;

/// Why a request is rejected: a status and a sentence.
pub(super) type Refusal = (StatusCode, String);

impl From<Unanswered> for Refusal {
    fn from(why: Unanswered) -> Refusal {
        (StatusCode::SERVICE_UNAVAILABLE, why.to_string())
    }
}

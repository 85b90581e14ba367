//! Log lines about bad lines that sources receive.

use pipeline::Complaint;

use crate::carbon_c_relay::log_targets::NOT_AN_ERROR;

/// The log for complaints about bad lines, with their sender.
pub type Complaints = fn(complaint: &Complaint, from: &str);

/// The only log message about a kind of bad line; the account counts the others.
pub fn complain(complaint: &Complaint, from: &str) {
    let Complaint { source, reason, line, at: _ } = complaint;
    tracing::warn!(
        target: NOT_AN_ERROR,
        "source `{source}`: a line from {from} was rejected as `{}`: {} It reads: {line}   Further ones are only counted.",
        reason.word(),
        reason.why(),
    );
}

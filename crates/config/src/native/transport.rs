//! Checks of `tls`: for sources of points, for outputs of type `graphite`, and for HTTP.
//!
//! Not here: the existence and contents of the files (`tls`).

use super::fields::Fields;
use crate::diagnostic::{Code, Diagnostic};
use crate::plan::{EndpointTls, ListenTls};

/// `tls` of a listener; `fields` are those of the section around it.
pub(super) fn check_listener(tls: Option<&ListenTls>, fields: &Fields, wrong: &mut Vec<Diagnostic>) {
    let (Some(tls), Some(fields)) = (tls, fields.table("tls")) else { return };
    if tls.min > tls.max {
        let label = format!("`min` is {}", tls.min.word());
        fields.wrong("max", Code::OutOfRange, "`max` is below `min`", label, wrong);
    }
}

/// `tls` of an output.
pub(super) fn check_endpoint(tls: Option<&EndpointTls>, fields: &Fields, wrong: &mut Vec<Diagnostic>) {
    let (Some(tls), Some(fields)) = (tls, fields.table("tls")) else { return };
    let mut mistake = |key, code, message: &str, label: &str, hint: &str| {
        wrong.push(Diagnostic::error(code, message).at(fields.at(key)).label(label).hint(hint));
    };
    if fields.place_of("key").is_some() && fields.place_of("cert").is_none() {
        let hint = "write cert = \"…\" beside it; both may be in one file, and then `cert` alone is enough";
        mistake("key", Code::MissingKey, "`key` is set without `cert`", "`cert` is missing", hint);
    }
    if tls.server_name.as_deref() == Some("") {
        let hint = "remove it to use the endpoint's host";
        mistake("server_name", Code::BadValue, "`server_name` is no name", "a host name or an address", hint);
    }
    if tls.skip_hostname_check && tls.ca.is_none() {
        let message =
            "`skip_hostname_check` with the system's CAs accepts any server with a public certificate";
        let hint = "set ca = \"…\" with your own CA, or remove it";
        mistake("skip_hostname_check", Code::MissingKey, message, "`ca` is missing", hint);
    }
}

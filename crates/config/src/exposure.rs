//! Listeners of a plan that other machines can reach, and missing protection.
//!
//! Only addresses are considered, because firewalls are unknown here. Docs: `docs/security.md`.

use std::net::SocketAddr;

use crate::address::listen_text;
use crate::diagnostic::{Code, Diagnostic};
use crate::plan::{ManagementPlan, ManagementReplies, Plan};

/// True for an address that other machines can reach.
pub fn is_open(address: SocketAddr) -> bool {
    !address.ip().to_canonical().is_loopback()
}

/// A warning, without a place, for an HTTP server that other machines can reach without a token or TLS.
pub fn open_http(plan: &Plan) -> Option<Diagnostic> {
    let server = &plan.http_server;
    http(plan.http?, server.token_file.is_some(), server.tls.is_some())
}

/// The same for an address and its protection.
pub(crate) fn http(listen: SocketAddr, token: bool, tls: bool) -> Option<Diagnostic> {
    let (missing, hint) = match (token, tls) {
        _ if !is_open(listen) => return None,
        (true, true) => return None,
        (false, false) => (
            ", without a token and not encrypted",
            "write token_file = \"…\" and tls = { cert = \"…\" }; or listen on 127.0.0.1",
        ),
        (true, false) => (
            " and not encrypted: the token can be read on the way",
            "write tls = { cert = \"…\" } as well; or listen on 127.0.0.1",
        ),
        (false, true) => (
            " without a token: everybody who reaches it can read everything",
            "write token_file = \"…\" as well; or listen on 127.0.0.1",
        ),
    };
    let message = format!("the HTTP server is open to a network{missing}");
    Some(Diagnostic::warning(Code::HttpOpen, message).label("not a loopback address").hint(hint))
}

/// A warning, without a place, for each management port that lets other machines change something.
pub fn open_management(plan: &Plan) -> impl Iterator<Item = Diagnostic> {
    plan.management.iter().filter_map(management)
}

/// The same for one port.
pub(crate) fn management(port: &ManagementPlan) -> Option<Diagnostic> {
    if port.read_only || !is_open(port.listen) {
        return None;
    }
    let what = match port.replies {
        ManagementReplies::Node | ManagementReplies::Perl => "delete series and change its health",
        ManagementReplies::Proxy { .. } => "change its health",
    };
    let message =
        format!("the management port is open to a network: everybody who reaches {} can {what}", port.listen);
    let warning = Diagnostic::warning(Code::ManagementOpen, message).label("not a loopback address");
    Some(warning.hint("write read_only = true, or listen on 127.0.0.1"))
}

/// Listeners of sources that other machines can reach without TLS: the source and the address.
pub fn clear_listeners(plan: &Plan) -> Vec<(&str, String)> {
    let mut found = Vec::new();
    for source in plan.sources.iter().filter(|source| source.tls.is_none()) {
        for listen in &source.listen {
            if listen.socket().is_some_and(|(address, _)| is_open(address)) {
                found.push((&*source.name, listen_text(listen)));
            }
        }
    }
    found
}

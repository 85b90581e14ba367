//! `[http]`: how the server answers, and whom.
//!
//! Not here: where it listens (`native`), what is in its files (`tls`).

use std::net::{IpAddr, SocketAddr};

use super::fields::Fields;
use super::transport;
use crate::diagnostic::{Code, Diagnostic};
use crate::exposure;
use crate::options::table::daemon::{HTTP, HTTP_CLIENTS};
use crate::plan::HttpPlan;

/// Everything of the section but its address, which is `listen`.
pub(super) fn server(fields: &Fields, listen: Option<SocketAddr>, wrong: &mut Vec<Diagnostic>) -> HttpPlan {
    let mut plan = HttpPlan::default();
    fields.fill(&mut plan, &HTTP);
    fields.fill(&mut plan, &HTTP_CLIENTS);
    transport::check_listener(plan.tls.as_deref(), fields, wrong);
    plan.allowed_hosts = allowed_hosts(fields, wrong);
    if fields.place_of("max_connections_per_peer").is_none() {
        plan.peer_connections_max = plan.connections_max / 2;
    }
    fields.peer_has_no_more(plan.connections_max, "max_connections", wrong);
    let off = fields.value("enabled") == Some(false);
    let given = |key| fields.place_of(key).is_some();
    let open = listen.filter(|_| !off);
    if let Some(warning) = open.and_then(|at| exposure::http(at, given("token_file"), given("tls"))) {
        wrong.push(warning.at(fields.at("listen")));
    }
    plan
}

fn allowed_hosts(fields: &Fields, wrong: &mut Vec<Diagnostic>) -> Vec<String> {
    let hosts = fields.texts("allowed_hosts");
    let is_name = |host: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        !host.is_empty() && host.bytes().all(plain) && host.parse::<IpAddr>().is_err()
    };
    for (host, place) in hosts.iter().filter(|(host, _)| !is_name(host)) {
        let message = format!("`{host}` in `allowed_hosts` is not a host name");
        let mistake = Diagnostic::error(Code::BadValue, message).at(*place);
        let mistake = mistake.label("letters, digits, `-` and `.`; no scheme and no port");
        wrong.push(mistake.hint("addresses and localhost are always allowed"));
    }
    hosts.iter().map(|(host, _)| host.trim_end_matches('.').to_ascii_lowercase()).collect()
}

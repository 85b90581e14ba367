//! `[http]`: how the server answers, and whom.
//!
//! Not here: where it listens (`native`), what is in its files (`staunch::tls`, `staunch::admin::token`).

use std::net::{IpAddr, SocketAddr};

use super::fields::Fields;
use super::transport;
use super::value::Checked;
use crate::diagnostic::{Code, Diagnostic, Place};
use crate::options::Section;
use crate::plan::HttpPlan;

/// Everything of the section but its address, which is `listen`.
pub(super) fn server(
    fields: &Fields,
    listen: Option<SocketAddr>,
    place: Place,
    wrong: &mut Vec<Diagnostic>,
) -> HttpPlan {
    let mut plan = HttpPlan {
        allowed_hosts: allowed_hosts(fields, wrong),
        token_file: transport::pem(fields, "token_file"),
        tls: transport::listening(Section::HttpTls, "the tls of `http`", fields, wrong),
        ..HttpPlan::default()
    };
    Fields::set(&mut plan.connections_max, fields.whole_usize("max_connections"));
    let of_peer = fields.whole_usize("max_connections_per_peer");
    plan.peer_connections_max = of_peer.unwrap_or(plan.connections_max / 2);
    if plan.peer_connections_max > plan.connections_max {
        let place = fields.place_of("max_connections_per_peer").unwrap_or(place);
        let message = "`max_connections_per_peer` is above `max_connections`";
        let label = format!("`max_connections` is {}", plan.connections_max);
        wrong.push(Diagnostic::error(Code::OutOfRange, message).at(place).label(label));
    }
    let is_open = listen.is_some_and(|listen| !listen.ip().to_canonical().is_loopback());
    let is_off = fields.flag("enabled") == Some(false);
    let is_guarded = plan.token_file.is_some() || fields.place_of("tls").is_some();
    if is_open && !is_off && !is_guarded {
        let place = fields.place_of("listen").unwrap_or(place);
        let message = "the HTTP server is open to a network, without a token and not encrypted";
        let hint = "write token_file = \"…\", tls = { cert = \"…\" }, or both; or listen on 127.0.0.1";
        let warning = Diagnostic::warning(Code::HttpOpen, message).at(place).label("not a loopback address");
        wrong.push(warning.hint(hint));
    }
    plan
}

fn allowed_hosts(fields: &Fields, wrong: &mut Vec<Diagnostic>) -> Vec<String> {
    let Some(Checked::Texts(hosts)) = fields.other("allowed_hosts") else { return Vec::new() };
    let is_name = |host: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        !host.is_empty() && host.bytes().all(plain) && host.parse::<IpAddr>().is_err()
    };
    for (host, place) in hosts.iter().filter(|(host, _)| !is_name(host)) {
        let message = format!("`{host}` in `allowed_hosts` is no name of a host");
        let mistake = Diagnostic::error(Code::BadValue, message).at(*place);
        let mistake = mistake.label("letters, digits, `-` and `.`; no scheme and no port");
        wrong.push(mistake.hint("addresses and localhost are always allowed"));
    }
    hosts.iter().map(|(host, _)| host.trim_end_matches('.').to_ascii_lowercase()).collect()
}

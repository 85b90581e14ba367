//! `[http]`: the address of the server, its options and its protection.
//!
//! Not here: the contents of its files (`tls`).

use std::net::{IpAddr, SocketAddr};

use super::conflicts::Claims;
use super::fields::Fields;
use super::origins::{is_origin, not_an_origin};
use super::transport;
use crate::diagnostic::{Code, Diagnostic};
use crate::exposure;
use crate::options::Section;
use crate::options::checked::Checked;
use crate::plan::{HttpPlan, Plan};

/// Reads the section.
pub(super) fn read(top: &Fields, plan: &mut Plan, claims: &mut Claims, wrong: &mut Vec<Diagnostic>) {
    if let Some(fields) = top.table("http") {
        if fields.place_of("listen").is_some() {
            // After an error there is no server: the default would cause further errors about addresses.
            plan.http = fields.value("listen");
        }
        plan.http_server = server(fields, plan.http, wrong);
        if fields.value("enabled") == Some(false) {
            plan.http = None;
            fields.ignored("listen", "`listen` has no effect: the HTTP server is not enabled", wrong);
        }
    }
    if let Some(address) = plan.http {
        claims.tcp("the HTTP server", address, top.table("http").map(|fields| fields.at("listen")));
    }
}

/// All options of the section except the address, `listen`.
fn server(fields: &Fields, listen: Option<SocketAddr>, wrong: &mut Vec<Diagnostic>) -> HttpPlan {
    let mut plan: HttpPlan = fields.read();
    transport::check_listener(plan.tls.as_deref(), fields, wrong);
    plan.allowed_hosts = allowed_hosts(fields, wrong);
    plan.allowed_origins = allowed_origins(fields, wrong);
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

fn allowed_origins(fields: &Fields, wrong: &mut Vec<Diagnostic>) -> Vec<String> {
    let origins = fields.texts("allowed_origins");
    for (origin, place) in origins.iter().filter(|(origin, _)| !is_origin(origin)) {
        wrong.push(not_an_origin(origin, *place));
    }
    origins.iter().map(|(origin, _)| origin.to_ascii_lowercase()).collect()
}

/// The section; empty when all options have their defaults.
pub(super) fn fields(plan: &Plan) -> Fields {
    let mut fields = Fields::empty(Section::Http);
    match plan.http {
        None => fields.give_value("enabled", Checked::Flag(false)),
        Some(address) if address == HttpPlan::ADDRESS => {}
        Some(address) => fields.give_value("listen", Checked::Address(address)),
    }
    fields.give_table(&plan.http_server);
    fields
}

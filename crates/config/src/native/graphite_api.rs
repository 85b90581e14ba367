//! `[graphite_api]`: graphite-web's HTTP API.

use super::fields::Fields;
use crate::diagnostic::{Code, Diagnostic};
use crate::options::Section;
use crate::plan::{GraphiteApiPlan, OutputKind, Plan};

/// Reads the section.
pub(super) fn read(top: &Fields, plan: &mut Plan, wrong: &mut Vec<Diagnostic>) {
    let Some(fields) = top.table("graphite_api") else { return };
    plan.graphite_api = fields.read();
    for (peer, place) in fields.texts("peers").iter().filter(|(peer, _)| !is_peer(peer)) {
        let mistake =
            Diagnostic::error(Code::BadValue, format!("`{peer}` in `peers` is not an address of a node"));
        wrong.push(
            mistake.at(*place).label("http://HOST:PORT").hint("https and user names are not supported"),
        );
    }
    let has_store = plan.outputs.iter().any(|output| matches!(output.kind, OutputKind::Whisper(_)));
    if plan.http.is_none() {
        let warning =
            Diagnostic::warning(Code::NoEffect, "`graphite_api` has no effect: there is no HTTP server");
        wrong.push(warning.at(fields.at("peers")).hint("remove the section, or http.enabled = false"));
    } else if !has_store && plan.graphite_api.peers.is_empty() {
        let warning =
            Diagnostic::warning(Code::NoEffect, "`graphite_api` has no series: there is no output `whisper`");
        wrong.push(warning.at(fields.at("peers")).hint("add an output with type = \"whisper\", or `peers`"));
    }
}

/// `http://`, a host or an address, and perhaps a port and a path.
fn is_peer(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("http://") else { return false };
    let (place, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/:[]".contains(&byte);
    let host = place.rsplit_once(':').filter(|(_, port)| !port.contains(']'));
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    !place.is_empty()
        && host.is_none_or(|(host, port)| !host.is_empty() && is_port(port))
        && place.bytes().chain(path.bytes()).all(is_plain)
}

/// The section; empty when all options have their defaults.
pub(super) fn fields(plan: &GraphiteApiPlan) -> Fields {
    let mut fields = Fields::empty(Section::GraphiteApi);
    fields.give_table(plan);
    fields
}

#[test]
fn peers_are_http_addresses() {
    for (text, is_good) in [
        ("http://a", true),
        ("http://a.example.org:8680", true),
        ("http://[::1]:8680", true),
        ("http://[::1]", true),
        ("http://10.0.0.1:80/graphite", true),
        ("https://a", false),
        ("a:80", false),
        ("http://", false),
        ("http://:80", false),
        ("http://a:0", false),
        ("http://a:99999", false),
        ("http://a:b", false),
        ("http://user@a", false),
        ("http://a/x?y", false),
        ("http://a b", false),
    ] {
        assert_eq!(is_peer(text), is_good, "{text}");
    }
}

//! The management port and the output of its `config` command (spec statsd §11).

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use super::listen::{Family, ip, port as port_of};
use super::values::{Import, Section};
use crate::javascript::{Node, Value};
use config::plan::{ManagementPlan, ManagementReplies};

/// The port; none when an error was reported.
pub(super) fn port(import: &mut Import<'_>, root: &mut Section<'_>) -> Option<ManagementPlan> {
    let perl = import.perl();
    let listen = listen(import, root);
    let healthy = perl || healthy(import, root);
    Some(ManagementPlan {
        replies: if perl { ManagementReplies::Perl } else { ManagementReplies::Node },
        healthy,
        config: listing(root.node(), !perl),
        ..ManagementPlan::at(listen?)
    })
}

/// Its address; none when an error was reported.
pub(crate) fn listen(import: &mut Import<'_>, root: &mut Section<'_>) -> Option<SocketAddr> {
    let port = port_of(import, root, "mgmt_port", 8126);
    let address = match root.set("mgmt_address") {
        Some(member) => ip(import, "mgmt_address", &member.value, Family::Any),
        None if import.perl() => Some(Ipv4Addr::UNSPECIFIED.into()),
        None => Some(Ipv6Addr::UNSPECIFIED.into()),
    };
    Some(SocketAddr::new(address?, port?))
}

/// `healthStatus`, in capitals or not.
fn healthy(import: &mut Import<'_>, root: &mut Section<'_>) -> bool {
    let Some(member) = root.set("healthStatus") else { return true };
    match &member.value.value {
        Value::Text(text) if text.eq_ignore_ascii_case("up") => true,
        Value::Text(text) if text.eq_ignore_ascii_case("down") => false,
        _ => {
            import.bad_value("healthStatus", &member.value, "`up` or `down`");
            true
        }
    }
}

/// Most lines that `config` prints; later ones are left out.
const LISTING_LINES_MAX: usize = 10_000;

/// `key` and value for each scalar, `key > sub` and value for each member of an object or list; null, which JavaScript
/// treats as an object without members, gives nothing. Of equal lines (`a > b` may be one key) the first is kept. With
/// `defaults` the lines that node adds for missing options come at the end.
pub(crate) fn listing(root: &Node, defaults: bool) -> Vec<(String, String)> {
    let mut seen = BTreeSet::new();
    let mut lines = lines(root);
    lines.retain(|(key, _)| seen.insert(key.clone()));
    lines.truncate(LISTING_LINES_MAX);
    if defaults {
        lines.extend(default_lines(root).filter(|(key, _)| !seen.contains(key)));
    }
    lines
}

/// Options that node adds to its configuration at start and at the first flush, and prints with the rest.
fn default_lines(root: &Node) -> impl Iterator<Item = (String, String)> {
    let idle = root.member("deleteIdleStats").is_some_and(|member| member.value.value.truthy());
    let defaults = [
        ("flushInterval", "10000"),
        ("gaugesMaxTTL", "1"),
        ("deleteIdleStats", "false"),
        ("deleteCounters", if idle { "true" } else { "false" }),
        ("deleteTimers", if idle { "true" } else { "false" }),
        ("deleteSets", if idle { "true" } else { "false" }),
        ("deleteGauges", if idle { "true" } else { "false" }),
    ];
    defaults.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned()))
}

fn lines(root: &Node) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    for member in root.members() {
        let key = &member.key;
        match &member.value.value {
            Value::Object(inner) => {
                lines.extend(
                    inner.iter().map(|sub| (format!("{key} > {}", sub.key), sub.value.value.to_text())),
                );
            }
            Value::Array(inner) => {
                let each = inner.iter().enumerate();
                lines.extend(each.map(|(at, node)| (format!("{key} > {at}"), node.value.to_text())));
            }
            Value::Null | Value::Regex(_) => {}
            scalar => lines.push((key.clone(), scalar.to_text())),
        }
    }
    lines
}

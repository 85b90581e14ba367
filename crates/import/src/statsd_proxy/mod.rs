//! Reads configuration files of node's cluster proxy (proxyConfig.js): spec statsd §13.
//!
//! Text -> `import::javascript` (a tree of values with places) -> **`statsd_proxy`**. Listener, management port and
//! `log` have the keys and the rules of statsd's own file, and are read by its import.
//! Not here: the plan of a proxy (`plan`), name resolution, the ring itself (`process::sharding`).
//! Invariant: an option is read, reported, or unknown and reported; none is ignored silently, unless it asks for the
//! only behaviour there is. A [`ProxyConfig`] is returned only without errors.

mod content;
mod plan;

use std::net::IpAddr;

use process::sharding::{ENDPOINTS_MAX, RingReplicas};

use super::javascript::{self, Environment, Node, Value};
use super::statsd::values::{Import, Section};
use super::statsd::{listen, management, notes, object};
use config::diagnostic::{Code, Diagnostic, has_errors};
use config::plan::Listen;

pub use content::{ProxyConfig, ProxyNode};
pub use plan::plan_of;

/// The original's default interval of checks.
const CHECK_INTERVAL_MS: u64 = 10_000;
/// Longest interval of a timer in node.
const CHECK_INTERVAL_MS_MAX: u64 = i32::MAX as u64;
/// The original's default; setting it changes nothing.
const CACHE_SIZE: f64 = 10_000.0;

/// Reads a file's text. The diagnostics are in the order of the text; a warning [`Code::NotCarriedOver`] marks each
/// option that works in the original and does nothing here, [`Code::ImportNoEffect`] one that does nothing in either.
pub fn statsd_proxy(text: &str, environment: &Environment<'_>) -> (Option<ProxyConfig>, Vec<Diagnostic>) {
    let root = match javascript::evaluate(text, environment).and_then(object) {
        Ok(root) => root,
        Err(diagnostics) => return (None, diagnostics),
    };
    let mut import = Import::of_proxy(text);
    let config = config(&mut import, &mut Section::root(&root));
    let diagnostics = import.in_order();
    (config.filter(|_| !has_errors(&diagnostics)), diagnostics)
}

/// Options that the proxy has and statsd has not.
const ONLY_PROXY: [&str; 4] = ["nodes", "forkCount", "checkInterval", "cacheSize"];

/// Options that statsd has and the proxy has not.
const ONLY_STATSD: [&str; 3] = ["backends", "graphiteHost", "flushInterval"];

/// Whether a text is a file of the proxy rather than of statsd: it has an option of the proxy's own, whatever its value, and none
/// of statsd's own. So a mistake in `nodes` is reported as one, instead of the file being read as statsd's.
pub fn is_proxy(text: &str, environment: &Environment<'_>) -> bool {
    let Ok(root) = javascript::evaluate(text, environment) else { return false };
    let has = |names: &[&str]| {
        names.iter().any(|name| root.member(name).is_some_and(|member| member.value.value.truthy()))
    };
    has(&ONLY_PROXY) && !has(&ONLY_STATSD)
}

/// The whole file. None only when an error was reported.
fn config(import: &mut Import<'_>, root: &mut Section<'_>) -> Option<ProxyConfig> {
    let nodes = nodes(import, root);
    let listen = listen::one(import, root);
    // `one` has reported its mistakes.
    let nodes_ipv6 = root.set("address_ipv6").is_some();
    let management = management::listen(import, root);
    let check_interval_ms = import.integer(root, "checkInterval", 1, CHECK_INTERVAL_MS_MAX);
    let ring_replicas = ring_replicas(import, root);
    let reload_on_change = import.switch(root, "automaticConfigReload").unwrap_or(true);
    notes::log(import, root);
    not_carried_over(import, root);
    ignored(import, root, listen.as_ref(), nodes_ipv6);
    root.finish(import);
    Some(ProxyConfig {
        nodes: nodes?,
        listen: listen?,
        nodes_ipv6,
        management: management?,
        management_config: management::listing(root.node(), false),
        check_interval_ms: check_interval_ms.unwrap_or(CHECK_INTERVAL_MS),
        ring_replicas,
        reload_on_change,
    })
}

/// The nodes; none when an error was reported.
fn nodes(import: &mut Import<'_>, root: &mut Section<'_>) -> Option<Vec<ProxyNode>> {
    if root.set("nodes").is_none() {
        let place = root.get("nodes").map_or(root.node().place, |member| member.value.place);
        let report = import.error(Code::ImportBadValue, place, "`nodes` is not set: nothing could be sent");
        report.hint(match root.node().member("backends") {
            Some(_) => "this looks like a file of statsd itself; its command is `staunch statsd`",
            None => "list them: nodes: [{host: '10.0.0.1', port: 8125, adminport: 8126}]",
        });
        return None;
    }
    let listed = import.list(root, "nodes")?;
    let place = root.set("nodes").map_or(root.node().place, |member| member.value.place);
    if listed.is_empty() {
        import.error(Code::ImportBadValue, place, "`nodes` is empty: nothing could be sent");
        return None;
    }
    if listed.len() > ENDPOINTS_MAX {
        let message = format!("`nodes` has {} entries, and the most is {ENDPOINTS_MAX}", listed.len());
        import.error(Code::ImportBadValue, place, message);
        return None;
    }
    let mut nodes: Vec<(ProxyNode, usize)> = Vec::new();
    let mut complete = true;
    for (at, entry) in listed.iter().enumerate() {
        match node(import, &format!("nodes[{at}]"), entry) {
            Some(node) => match nodes.iter().find(|(known, _)| known.label == node.label) {
                Some((known, first)) => twice(import, entry, at, *first, known, &node),
                None => nodes.push((node, at)),
            },
            None => complete = false,
        }
    }
    complete.then(|| nodes.into_iter().map(|(node, _)| node).collect())
}

/// The original identifies nodes by their label, so a node listed twice has one place in its ring.
fn twice(
    import: &mut Import<'_>,
    entry: &Node,
    at: usize,
    first: usize,
    known: &ProxyNode,
    again: &ProxyNode,
) {
    let mut message =
        format!("`nodes[{at}]` is `nodes[{first}]` again, {}: it has one place in the ring", again.label);
    if known.adminport != again.adminport {
        message += &format!(", and is asked for its health at {} only", known.adminport);
    }
    import.warn(Code::ImportNoEffect, entry.place, message);
}

fn node(import: &mut Import<'_>, name: &str, entry: &Node) -> Option<ProxyNode> {
    let mut section = import.object(name, entry)?;
    let host = required(import, &mut section, "host");
    let host = host.and_then(|value| import.host(&section.name("host"), value));
    let written_port = required(import, &mut section, "port");
    let port = written_port.and_then(|value| self::port(import, &section.name("port"), value));
    let adminport = required(import, &mut section, "adminport");
    let adminport = adminport.and_then(|value| self::port(import, &section.name("adminport"), value));
    section.finish(import);
    let (host, port) = (host?, port?);
    let label = format!("{host}:{}", written_port?.value.to_text());
    Some(ProxyNode { host, port, adminport: adminport?, label })
}

/// The value of a required key; none, and reported, when it does not count as true.
fn required<'n>(import: &mut Import<'_>, section: &mut Section<'n>, key: &'static str) -> Option<&'n Node> {
    if let Some(member) = section.set(key) {
        return Some(&member.value);
    }
    let place = section.get(key).map_or(section.node().place, |member| member.value.place);
    import.error(Code::ImportBadValue, place, format!("`{}` is not set", section.name(key)));
    None
}

fn port(import: &mut Import<'_>, name: &str, value: &Node) -> Option<u16> {
    let number = import.number(name, value)?;
    if number.fract() != 0.0 || !(1.0..=65_535.0).contains(&number) {
        import.bad_value(name, value, "a whole number from 1 to 65535");
        return None;
    }
    Some(number as u16)
}

/// An option of ours, in the original's file since there is no other place for it.
fn ring_replicas(import: &mut Import<'_>, root: &mut Section<'_>) -> RingReplicas {
    let Some(member) = root.set("ring_replicas") else { return RingReplicas::default() };
    match import.number("ring_replicas", &member.value) {
        Some(1.0) | None => RingReplicas::One,
        Some(4.0) => RingReplicas::Four,
        Some(_) => {
            import.bad_value("ring_replicas", &member.value, "1, or 4 as before statsd 0.8.0");
            RingReplicas::default()
        }
    }
}

/// Reports options that work in the original and do nothing here.
fn not_carried_over(import: &mut Import<'_>, root: &mut Section<'_>) {
    if let Some(member) = root.set("forkCount") {
        let auto = matches!(&member.value.value, Value::Text(text) if text == "auto");
        if auto || import.number("forkCount", &member.value).is_some_and(|count| count > 1.0) {
            import.no_counterpart("forkCount", member, ": there is one process");
        }
    }
    if let Some(member) = root.set("cacheSize")
        && import.number("cacheSize", &member.value).is_some_and(|size| size != CACHE_SIZE)
    {
        import.no_counterpart("cacheSize", member, ": owners are found without a cache");
    }
}

/// Reports `host` and `udp_version`, which are in the original's example and which it never reads.
fn ignored(import: &mut Import<'_>, root: &mut Section<'_>, listen: Option<&Listen>, ipv6: bool) {
    if let Some(member) = root.set("host") {
        let asked = match &member.value.value {
            Value::Text(text) => text.parse::<IpAddr>().ok(),
            _ => None,
        };
        let happens = matches!(listen, Some(Listen::Udp(address) | Listen::Tcp(address)) if asked == Some(address.ip()));
        if !happens {
            let hint = "the address to listen at is `address`; without it, it is all addresses";
            import.no_effect("host", member, ": the original never reads it").hint(hint);
        }
    }
    if let Some(member) = root.set("udp_version") {
        let happens = if ipv6 { "udp6" } else { "udp4" };
        if !matches!(&member.value.value, Value::Text(text) if text == happens) {
            let report = import.no_effect("udp_version", member, ": the original never reads it");
            report.hint("`address_ipv6: true` makes it IPv6");
        }
    }
}

#[cfg(test)]
mod tests;

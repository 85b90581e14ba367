//! Loops that depend on this machine's addresses: an endpoint at one of them, and a wildcard listener (spec statsd §14
//! R13).
//!
//! The caller knows the machine's addresses. `native::conflicts` finds loops that the text shows. Loops through host
//! names or other machines are not detected.

use std::net::IpAddr;

use crate::address::destination_text;
use crate::diagnostic::{Code, Diagnostic};
use crate::plan::Plan;

/// An error, without a place, for each output that leads back to a wildcard listener of the plan. `is_own` returns
/// whether this machine has an address; it is called only for addresses with such a listener.
pub fn own_loops(plan: &Plan, is_own: impl Fn(IpAddr) -> bool) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for output in &plan.outputs {
        let Some(to) = output.kind.destination() else { continue };
        let Some(endpoint) = to.host() else { continue };
        let Ok(ip) = endpoint.host.parse::<IpAddr>() else { continue };
        let ip = ip.to_canonical();
        let Some(listener) = wildcard(plan, to.is_datagram(), endpoint.port, ip) else { continue };
        if is_own(ip) {
            let message = format!(
                "output `{}` sends to {listener} of this daemon: {} is an address of this machine",
                output.name,
                destination_text(&to)
            );
            let hint = "send to another port, or let the listener have one address only";
            found.push(Diagnostic::error(Code::Loop, message).hint(hint));
        }
    }
    found
}

/// The wildcard listener that would receive data sent to `ip` and `port`.
fn wildcard(plan: &Plan, is_udp: bool, port: u16, ip: IpAddr) -> Option<String> {
    let hears = |address: &std::net::SocketAddr| {
        address.port() == port
            && address.ip().to_canonical().is_unspecified()
            && (address.is_ipv6() || ip.is_ipv4())
    };
    let of_source = plan.sources.iter().find(|source| {
        let mut sockets = source.listen.iter().filter_map(|listen| listen.socket());
        sockets.any(|(address, takes_datagrams)| takes_datagrams == is_udp && hears(&address))
    });
    if let Some(source) = of_source {
        return Some(format!("source `{}`", source.name));
    }
    let of_management = || plan.management.iter().any(|management| hears(&management.listen));
    match is_udp {
        true => None,
        false if plan.http.as_ref().is_some_and(hears) => Some("the HTTP server".into()),
        false => of_management().then(|| "a management port".into()),
    }
}

#[test]
fn an_address_of_the_machine_leads_back_to_a_wildcard() {
    let own = |ip: IpAddr| ["10.0.0.9", "2001:db8::9"].contains(&&*ip.to_string());
    let table = [
        ("udp://0.0.0.0:1", "udp", "10.0.0.9:1", true),
        ("udp://[::]:1", "udp", "10.0.0.9:1", true),
        ("udp://[::]:1", "udp", "[2001:db8::9]:1", true),
        ("udp://[::]:1", "udp", "[::ffff:10.0.0.9]:1", true),
        ("tcp://0.0.0.0:1", "tcp", "10.0.0.9:1", true),
        ("udp://0.0.0.0:1", "udp", "[2001:db8::9]:1", false),
        ("udp://0.0.0.0:1", "udp", "10.0.0.9:2", false),
        ("udp://0.0.0.0:1", "udp", "10.0.0.8:1", false),
        ("udp://0.0.0.0:1", "tcp", "10.0.0.9:1", false),
        ("udp://127.0.0.1:1", "udp", "10.0.0.9:1", false),
        ("udp://0.0.0.0:1", "udp", "web:1", false),
        ("udp://0.0.0.0:1", "tcp", "10.0.0.9:8000", true),
        ("udp://0.0.0.0:1", "udp", "10.0.0.9:8000", false),
    ];
    for (listen, kind, to, want) in table {
        let text = format!(
            "[sources.a]\ntype = \"statsd\"\nlisten = [\"{listen}\"]\n[http]\nlisten = \"0.0.0.0:8000\"\n\
             [outputs.o]\ntype = \"{kind}\"\nfrom = [\"a\"]\nto = [\"{kind}://{to}\"]\n"
        );
        let source = crate::diagnostic::Source { name: "test", text: &text };
        let plan = crate::check(source, crate::Format::Toml).0.unwrap_or_else(|| panic!("{text}"));
        let found = own_loops(&plan, own);
        assert_eq!(found.len(), usize::from(want), "{listen} {kind} {to}: {found:?}");
    }
}

#[test]
fn points_as_datagrams_lead_back_to_a_wildcard_too() {
    for (listen, to, want) in [
        ("udp://0.0.0.0:1", "udp://10.0.0.9:1", true),
        ("udp://[::]:1", "udp://10.0.0.9:1", true),
        ("udp://0.0.0.0:1", "udp://10.0.0.8:1", false),
        ("udp://0.0.0.0:1", "tcp://10.0.0.9:1", false),
        ("tcp://0.0.0.0:1", "udp://10.0.0.9:1", false),
    ] {
        let text = format!(
            "[sources.a]\ntype = \"graphite\"\nlisten = [\"{listen}\"]\n\
             [outputs.o]\ntype = \"graphite\"\nfrom = [\"a\"]\nto = [\"{to}\"]\n"
        );
        let source = crate::diagnostic::Source { name: "test", text: &text };
        let plan = crate::check(source, crate::Format::Toml).0.unwrap_or_else(|| panic!("{text}"));
        let found = own_loops(&plan, |ip| ip.to_string() == "10.0.0.9");
        assert_eq!(found.len(), usize::from(want), "{listen} {to}: {found:?}");
    }
}

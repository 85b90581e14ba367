//! Loops that no file shows by itself: an endpoint at an address of this machine, and a listener at all of them (spec
//! statsd §14 R13).
//!
//! Which addresses are the machine's is the caller's to know. Loops that the text shows are found in
//! `native::conflicts`; those by way of a name, or of another machine, nowhere.

use std::net::IpAddr;

use crate::address::destination_text;
use crate::diagnostic::{Code, Diagnostic};
use crate::plan::Plan;

/// One mistake, without a place, for each output that leads back to a wildcard listener of the plan. `is_own` says
/// whether an address is this machine's; it is asked only about addresses with such a listener.
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

/// The listener at all addresses of the machine that what is sent to `ip` and `port` arrives at.
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

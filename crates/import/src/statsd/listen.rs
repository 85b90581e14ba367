//! Listeners: `servers`, or one listener from the top-level keys (spec statsd §10.1, §12).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use super::values::{Import, Section};
use crate::javascript::{Node, Value};
use config::diagnostic::Code;
use config::plan::Listen;

const KEYS: [&str; 6] = ["server", "address", "address_ipv6", "port", "socket", "socket_mod"];

/// All listeners; none when an error was reported.
pub(super) fn all(import: &mut Import<'_>, root: &mut Section<'_>) -> Option<Vec<Listen>> {
    if import.perl() || root.set("servers").is_none() {
        return one(import, root).map(|listen| vec![listen]);
    }
    for key in KEYS {
        if let Some(member) = root.get(key) {
            import.no_effect(key, member, " beside `servers`");
        }
    }
    let servers = import.list(root, "servers")?;
    if servers.is_empty() {
        let place = root.set("servers").map_or(root.node().place, |member| member.value.place);
        import.error(Code::ImportBadValue, place, "`servers` is empty: nothing could come in");
        return None;
    }
    let mut listen = Vec::new();
    let mut complete = true;
    for (at, node) in servers.iter().enumerate() {
        let name = format!("servers[{at}]");
        let Some(mut section) = import.object(&name, node) else {
            complete = false;
            continue;
        };
        match one(import, &mut section) {
            Some(new) if listen.contains(&new) => {
                let message = format!("`{name}` listens where another one does");
                import.error(Code::ImportBadValue, node.place, message);
            }
            Some(new) => listen.push(new),
            None => complete = false,
        }
        section.finish(import);
    }
    complete.then_some(listen)
}

/// The listener of one section's keys; none when an error was reported.
pub(crate) fn one(import: &mut Import<'_>, section: &mut Section<'_>) -> Option<Listen> {
    let tcp = tcp(import, section);
    let ipv6 = if import.perl() { None } else { import.switch(section, "address_ipv6") };
    let ipv6 = ipv6.unwrap_or(false);
    let port = port(import, section, "port", 8125);
    let address = section.set("address");
    let socket = import.text(section, "socket");
    let mode = mode(import, section);
    let Some(tcp) = tcp else {
        // In any case the address must be valid.
        if let Some(member) = address {
            ip(import, &section.name("address"), &member.value, Family::Any);
        }
        return None;
    };
    if let (Some(path), true) = (&socket, tcp) {
        for key in ["port", "address"] {
            if let Some(member) = section.set(key) {
                import.no_effect(&section.name(key), member, " beside `socket`");
            }
        }
        return Some(Listen::UnixStream { path: PathBuf::from(path), mode });
    }
    for key in ["socket", "socket_mod"] {
        if let Some(member) = section.set(key) {
            let why = if tcp { " without `socket`" } else { " without `server: \"./servers/tcp\"`" };
            import.no_effect(&section.name(key), member, why);
        }
    }
    // The proxy uses it for sending as well.
    if let (true, false, Some(member)) = (tcp && ipv6, import.proxy, section.set("address_ipv6")) {
        import.no_effect(&section.name("address_ipv6"), member, " on a tcp server");
    }
    let family = if tcp {
        Family::Any
    } else if ipv6 {
        Family::V6
    } else {
        Family::V4
    };
    let ip = match address {
        Some(member) => ip(import, &section.name("address"), &member.value, family)?,
        None if import.perl() || family == Family::V4 => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        None => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let address = SocketAddr::new(ip, port?);
    Some(if tcp { Listen::Tcp(address) } else { Listen::Udp(address) })
}

/// Whether the server is `./servers/tcp`.
fn tcp(import: &mut Import<'_>, section: &mut Section<'_>) -> Option<bool> {
    let Some(member) = section.set("server") else {
        return Some(false);
    };
    let name = section.name("server");
    let module = import.text_of(&name, &member.value)?;
    match module_name(&module, "servers/") {
        Some("udp") => Some(false),
        Some("tcp") => Some(true),
        _ => {
            let message = format!("`{name}` is {module:?}, which is no server here");
            let report = import.error(Code::ImportBadValue, member.value.place, message);
            report.hint("servers are `./servers/udp` and `./servers/tcp`");
            None
        }
    }
}

/// The last part of a module's path when it is in `folder` of the original: `./servers/udp.js` gives `udp`. A path into
/// another package is not one of the original's modules.
pub(super) fn module_name<'a>(module: &'a str, folder: &str) -> Option<&'a str> {
    let module = module.strip_suffix(".js").unwrap_or(module);
    let at = module.rfind(folder)?;
    let before = &module[..at];
    let ours =
        before.is_empty() || before == "statsd/" || before.ends_with('/') && before.starts_with(['.', '/']);
    ours.then(|| &module[at + folder.len()..])
}

/// A port; `default` when not set or 0. None when an error was reported.
pub(super) fn port(
    import: &mut Import<'_>,
    section: &mut Section<'_>,
    key: &'static str,
    default: u16,
) -> Option<u16> {
    let before = import.diagnostics.len();
    let port = import.integer(section, key, 1, 65_535);
    let refused = config::diagnostic::has_errors(&import.diagnostics[before..]);
    // The limits above are those of u16.
    (!refused).then(|| port.map_or(default, |port| port as u16))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    V4,
    V6,
    Any,
}

/// An address to listen at. Names are not resolved, except `localhost`: it is the loopback address of the socket's
/// family, and 127.0.0.1 where both are possible.
pub(super) fn ip(import: &mut Import<'_>, name: &str, node: &Node, family: Family) -> Option<IpAddr> {
    let text = import.text_of(name, node)?;
    let ip = if text.eq_ignore_ascii_case("localhost") {
        Some(if family == Family::V6 { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() })
    } else {
        text.parse::<IpAddr>().ok()
    };
    let fits = |ip: &IpAddr| match family {
        Family::V4 => ip.is_ipv4(),
        Family::V6 => ip.is_ipv6(),
        Family::Any => true,
    };
    if let Some(ip) = ip.filter(fits) {
        return Some(ip);
    }
    let message = format!("`{name}` is {text:?}, which is not an address to listen on");
    let hint = match (ip, family) {
        (Some(_), Family::V4) => "an IPv6 address needs `address_ipv6: true`",
        (Some(_), _) => "with `address_ipv6: true` it must be an IPv6 address",
        (None, _) => "write the address itself (names are not looked up), or leave it out for all addresses",
    };
    import.error(Code::ImportBadValue, node.place, message).hint(hint);
    None
}

/// Permissions of the unix socket: a number, or octal digits as text.
fn mode(import: &mut Import<'_>, section: &mut Section<'_>) -> Option<u32> {
    let member = section.set("socket_mod")?;
    let name = section.name("socket_mod");
    let mode = match &member.value.value {
        Value::Text(text) => u32::from_str_radix(text.strip_prefix("0o").unwrap_or(text), 8).ok(),
        Value::Number(number) if number.fract() == 0.0 && (0.0..=4095.0).contains(number) => {
            decimal_mode(import, &name, &member.value, *number);
            Some(*number as u32)
        }
        _ => None,
    };
    let mode = mode.filter(|mode| *mode <= 0o7777);
    if mode.is_none() {
        import.bad_value(&name, &member.value, "permissions such as 0o777");
    }
    mode
}

/// `777` is 0o1411: surely a mistake.
fn decimal_mode(import: &mut Import<'_>, name: &str, node: &Node, number: f64) {
    let written = import.text.get(node.place.start..node.place.end).unwrap_or_default();
    let octal_digits = written.len() == 3 && written.bytes().all(|b| (b'0'..=b'7').contains(&b));
    if octal_digits && !written.starts_with('0') {
        let message = format!("`{name}` is decimal: {written} is 0o{:o}", number as u32);
        let hint = format!("write 0o{written}, or \"{written}\" in JSON");
        import.warn(Code::ImportBadValue, node.place, message).hint(&hint);
    }
}

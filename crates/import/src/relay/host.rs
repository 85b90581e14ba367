//! Parses `host`, `host:port`, `[v6]` and `[v6]:port` as the original does: the port begins at the last colon.

use std::net::Ipv6Addr;

use config::diagnostic::{Code, Diagnostic};

/// Default port of servers and receptors.
pub(super) const PORT: u16 = 2003;

/// Why an address is invalid.
#[derive(Debug)]
pub(super) struct Wrong {
    pub diagnostic: Box<Diagnostic>,
    pub upstream: String,
}

fn wrong(message: String, label: &str, hint: Option<String>, upstream: String) -> Wrong {
    let diagnostic = Diagnostic::error(Code::ImportBadValue, message).label(label);
    Wrong { diagnostic: Box::new(Diagnostic { hint, ..diagnostic }), upstream }
}

/// Host without brackets, and port.
pub(super) fn split(text: &str) -> Result<(&str, u16), Wrong> {
    if let Some(rest) = text.strip_prefix('[') {
        let Some((host, behind)) = rest.split_once(']') else {
            let hint = Some("write [ADDRESS]:PORT".into());
            return Err(wrong("this `[` is not closed".into(), "no `]`", hint, "expected ']'".into()));
        };
        return match behind.strip_prefix(':') {
            Some(port) => Ok((filled(host)?, self::port(port)?)),
            None if behind.is_empty() => Ok((filled(host)?, PORT)),
            None => Err(no_port(behind)),
        };
    }
    let Some((host, port)) = text.rsplit_once(':') else { return Ok((filled(text)?, PORT)) };
    if host.contains(':') && host.parse::<Ipv6Addr>().is_err() {
        let hint = if text.parse::<Ipv6Addr>().is_ok() {
            format!("an IPv6 address stands in brackets: [{text}], or [{text}]:{PORT}")
        } else {
            "write HOST:PORT, or [ADDRESS]:PORT for an IPv6 address".into()
        };
        let message = format!("`{text}` has more than one colon, and is not an address with a port");
        let upstream = format!("failed to resolve {host}");
        return Err(wrong(message, "where does the port begin?", Some(hint), upstream));
    }
    Ok((filled(host)?, self::port(port)?))
}

fn filled(host: &str) -> Result<&str, Wrong> {
    if !host.is_empty() {
        return Ok(host);
    }
    let message = "there is no host before the port".to_owned();
    let upstream = "host or IP-address required".to_owned();
    Err(wrong(message, "HOST is missing", Some("write HOST:PORT".into()), upstream))
}

fn no_port(text: &str) -> Wrong {
    let message = format!("`{text}` is no port");
    let hint = Some("a port is a number from 1 to 65535".into());
    wrong(message, "no port", hint, format!("invalid port number '{text}'"))
}

/// A port from 1 on.
pub(super) fn port(text: &str) -> Result<u16, Wrong> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<u16>() {
        Ok(port) if digits && port > 0 => Ok(port),
        _ => Err(no_port(text)),
    }
}

/// A host as written before a port.
pub(super) fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

#[test]
fn addresses_are_split_at_the_last_colon() {
    let table = [
        ("h", Some(("h", 2003))),
        ("10.0.0.1:2004", Some(("10.0.0.1", 2004))),
        ("[::1]", Some(("::1", 2003))),
        ("[::1]:5", Some(("::1", 5))),
        ("[name]:5", Some(("name", 5))),
        ("fe80::1:2003", Some(("fe80::1", 2003))),
        ("h:02003", Some(("h", 2003))),
        ("h:1", Some(("h", 1))),
        ("h:65535", Some(("h", 65_535))),
        ("h:0", None),
        ("h:65536", None),
        ("h:", None),
        ("h:+1", None),
        ("h:x", None),
        (":2003", None),
        ("[]:1", None),
        ("[::1", None),
        ("[::1]x", None),
        ("[::1]:", None),
        ("::1", None),
        ("2001:db8:0:0:0:0:0:1", None),
        ("1.2.3.4:2003:2003", None),
    ];
    for (text, want) in table {
        assert_eq!(split(text).ok(), want, "{text}");
    }
}

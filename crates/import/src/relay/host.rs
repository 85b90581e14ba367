//! Parses `host`, `host:port`, `[v6]` and `[v6]:port` as the original does: the port begins at the last colon.

use std::net::Ipv6Addr;

use super::document::Span;
use super::mistakes::{Mistakes, UpstreamAt};
use config::diagnostic::Code;

/// Default port of servers and receptors.
pub(super) const PORT: u16 = 2003;

/// Why an address is invalid.
#[derive(Debug)]
pub(super) struct Wrong {
    message: String,
    label: &'static str,
    hint: String,
    upstream: String,
}

impl Wrong {
    pub(super) fn report(self, mistakes: &mut Mistakes, span: Span, at: UpstreamAt) {
        let report = mistakes.error(Code::ImportBadValue, span, self.message);
        report.label(self.label).hint(self.hint).upstream_at(at, self.upstream);
    }
}

fn wrong(
    message: impl Into<String>,
    label: &'static str,
    hint: impl Into<String>,
    upstream: impl Into<String>,
) -> Wrong {
    Wrong { message: message.into(), label, hint: hint.into(), upstream: upstream.into() }
}

/// Host without brackets, and port.
pub(super) fn split(text: &str) -> Result<(&str, u16), Wrong> {
    if let Some(rest) = text.strip_prefix('[') {
        let Some((host, behind)) = rest.split_once(']') else {
            return Err(wrong("this `[` is not closed", "no `]`", "write [ADDRESS]:PORT", "expected ']'"));
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
        return Err(wrong(message, "where does the port begin?", hint, upstream));
    }
    Ok((filled(host)?, self::port(port)?))
}

fn filled(host: &str) -> Result<&str, Wrong> {
    if !host.is_empty() {
        return Ok(host);
    }
    let (message, upstream) = ("there is no host before the port", "host or IP-address required");
    Err(wrong(message, "HOST is missing", "write HOST:PORT", upstream))
}

fn no_port(text: &str) -> Wrong {
    let (message, upstream) = (format!("`{text}` is no port"), format!("invalid port number '{text}'"));
    wrong(message, "no port", "a port is a number from 1 to 65535", upstream)
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

//! Listen addresses and endpoints as text: `udp://127.0.0.1:8125`, `unix:///run/statsd.sock?mode=660`.
//!
//! Parsing returns errors for people; a written address parses to the same value.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use crate::options::row::Scheme;
use crate::plan::{Destination, Endpoint, Listen};

/// The mistake in an address, and perhaps a correction.
#[derive(Debug, PartialEq, Eq)]
pub struct BadAddress {
    /// The mistake.
    pub label: String,
    /// The correction.
    pub hint: Option<String>,
}

/// Longest path of a unix socket: the size of `sun_path` without its NUL.
const UNIX_PATH_BYTES_MAX: usize = 107;

/// Longest host name (RFC 1035).
const HOST_BYTES_MAX: usize = 253;

fn bad<T>(label: impl Into<String>) -> Result<T, BadAddress> {
    Err(BadAddress { label: label.into(), hint: None })
}

/// Parses one entry of `listen`.
pub fn parse_listen(text: &str) -> Result<Listen, BadAddress> {
    let Some((scheme, rest)) = text.split_once("://") else {
        return Err(BadAddress {
            label: "begins with none of udp://, tcp://, unix://, unixgram://, unix-frames://".into(),
            hint: with_address(text).map(|at| format!("write \"udp://{at}\" or \"tcp://{at}\"")),
        });
    };
    match scheme {
        "udp" => Ok(Listen::Udp(parse_socket(rest)?)),
        "tcp" => Ok(Listen::Tcp(parse_socket(rest)?)),
        "unix" => parse_unix(rest).map(|(path, mode)| Listen::UnixStream { path, mode }),
        "unixgram" => parse_unix(rest).map(|(path, mode)| Listen::UnixDatagram { path, mode }),
        "unix-frames" => parse_unix(rest).map(|(path, mode)| Listen::UnixFrames { path, mode }),
        _ => {
            let known = ["udp", "tcp", "unix", "unixgram", "unix-frames"];
            Err(BadAddress {
                label: format!(
                    "`{scheme}://` is none of udp://, tcp://, unix://, unixgram://, unix-frames://"
                ),
                hint: crate::diagnostic::nearest(scheme, known.into_iter())
                    .map(|word| format!("did you mean `{word}://`?")),
            })
        }
    }
}

/// The address that a text without a scheme may mean: itself, or a port of this machine.
fn with_address(text: &str) -> Option<SocketAddr> {
    let port = || text.strip_prefix(':').unwrap_or(text).parse().ok();
    text.parse().ok().or_else(|| Some(SocketAddr::from(([127, 0, 0, 1], port()?))))
}

/// Writes one entry of `listen`.
pub fn listen_text(listen: &Listen) -> String {
    match listen {
        Listen::Udp(address) => format!("udp://{address}"),
        Listen::Tcp(address) => format!("tcp://{address}"),
        Listen::UnixStream { path, mode } => format!("unix://{}", unix_text(path, *mode)),
        Listen::UnixDatagram { path, mode } => format!("unixgram://{}", unix_text(path, *mode)),
        Listen::UnixFrames { path, mode } => format!("unix-frames://{}", unix_text(path, *mode)),
    }
}

/// Parses `ADDRESS:PORT` of a listener.
pub fn parse_socket(text: &str) -> Result<SocketAddr, BadAddress> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let (host, port) = text.rsplit_once(':').unwrap_or((text, ""));
    if port.parse::<u16>().is_err() {
        return bad("has no port of 0 to 65535 behind the last colon");
    }
    let hint = match host {
        "localhost" => Some(format!("write `127.0.0.1:{port}` or `[::1]:{port}`")),
        "" | "*" => Some(format!("write `0.0.0.0:{port}` or `[::]:{port}` for all addresses")),
        _ if host.contains(':') => Some("an IPv6 address stands in brackets".into()),
        _ => None,
    };
    Err(BadAddress { label: format!("`{host}` is not an IP address; names are not looked up here"), hint })
}

fn parse_unix(text: &str) -> Result<(PathBuf, Option<u32>), BadAddress> {
    let (path, mode) = match text.split_once('?') {
        None => (text, None),
        Some((path, query)) => {
            let digits = query.strip_prefix("mode=").unwrap_or("");
            let mode = u32::from_str_radix(digits, 8).ok().filter(|mode| *mode <= 0o7777);
            if mode.is_none() || digits.starts_with('+') {
                return bad("what follows `?` must be `mode=` and octal permissions such as 660");
            }
            (path, mode)
        }
    };
    let Some(path) = unescape(path) else { return bad("a `%` must be followed by two hexadecimal digits") };
    if path.is_empty() || path == "@" {
        return bad("has no path");
    }
    if path.contains('\0') {
        return bad("a path cannot contain NUL");
    }
    if path.len() > UNIX_PATH_BYTES_MAX {
        return bad(format!("the path has {} bytes; the system takes {UNIX_PATH_BYTES_MAX}", path.len()));
    }
    Ok((PathBuf::from(path), mode))
}

fn unix_text(path: &Path, mode: Option<u32>) -> String {
    let path = path.to_string_lossy().replace('%', "%25").replace('?', "%3F");
    match mode {
        None => path,
        Some(mode) => format!("{path}?mode={mode:o}"),
    }
}

fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digit = |at: usize| after.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        // Two hexadecimal digits are at most 255.
        bytes.push(u8::try_from(digit(0)? * 16 + digit(1)?).ok()?);
        rest = &after[2..];
    }
    String::from_utf8(bytes).ok()
}

/// Parses `host:port` with a name, an IPv4 address, or an IPv6 address in brackets.
pub fn parse_host_port(text: &str) -> Result<Endpoint, BadAddress> {
    let Some((host, port)) = text.rsplit_once(':').filter(|(_, port)| !port.contains(']')) else {
        return bad("has no port: it ends in `:` and a number");
    };
    let port = match port.parse::<u16>() {
        Ok(port) if port > 0 && !text.contains(":+") => port,
        _ => return bad("its port is not a number of 1 to 65535"),
    };
    if let Some(inner) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        return match inner.parse::<std::net::Ipv6Addr>() {
            Ok(_) => Ok(Endpoint { host: inner.into(), port }),
            Err(_) => bad(format!("`{inner}` is not an IPv6 address")),
        };
    }
    if host.contains(':') {
        return bad("an IPv6 address stands in brackets");
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    if host.is_empty() || host.len() > HOST_BYTES_MAX || !host.chars().all(fits) {
        return bad("its host is neither a name nor an address");
    }
    Ok(Endpoint { host: host.into(), port })
}

/// The loopback addresses that a host means, regardless of the machine's host tables: for `localhost` and similar
/// names, for unspecified addresses, and for numbers that resolvers accept as IPv4 addresses (`127.1`).
pub fn loopback_addresses(host: &str) -> Vec<IpAddr> {
    let (v4, v6) = (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST));
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    match &*host {
        "localhost" | "localhost.localdomain" | "0.0.0.0" | "::" => return vec![v4, v6],
        "ip6-localhost" | "ip6-loopback" | "localhost6" | "localhost6.localdomain6" => return vec![v6],
        "localhost4" | "localhost4.localdomain4" => return vec![v4],
        // RFC 6761 reserves the whole domain.
        _ if host.ends_with(".localhost") => return vec![v4, v6],
        _ => {}
    }
    match numeric_v4(&host) {
        Some(ip) if ip.is_unspecified() => vec![v4],
        Some(ip) if ip.is_loopback() => vec![ip.into()],
        _ => Vec::new(),
    }
}

/// `inet_aton`: one to four numbers, decimal, octal or hexadecimal; the last one fills the remaining bytes.
fn numeric_v4(host: &str) -> Option<Ipv4Addr> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None if text.len() > 1 && text.starts_with('0') => u64::from_str_radix(text, 8).ok(),
        None => text.parse().ok(),
    };
    let parts: Vec<u64> = host.split('.').map(number).collect::<Option<_>>()?;
    let (last, before) = parts.split_last()?;
    let bits_left = 32 - 8 * u32::try_from(before.len()).ok().filter(|parts| *parts < 4)?;
    if before.iter().any(|part| *part > 255) || *last >= 1 << bits_left {
        return None;
    }
    let high = before.iter().fold(0, |bits, part| bits << 8 | part);
    let bits = if before.is_empty() { *last } else { high << bits_left | last };
    u32::try_from(bits).ok().map(Ipv4Addr::from)
}

/// Parses one entry of `to` of an output of packets: `udp://host:port`, `unixgram:///path`, ….
pub fn parse_destination(text: &str, schemes: &[Scheme]) -> Result<Destination, BadAddress> {
    let words =
        || schemes.iter().map(|scheme| format!("{}://", scheme.word())).collect::<Vec<_>>().join(", ");
    let Some((given, rest)) = text.split_once("://") else {
        let host_port = parse_host_port(text).is_ok();
        let hint = schemes.first().filter(|scheme| host_port && scheme.is_host());
        let hint = hint.map(|scheme| format!("write \"{}://{text}\"", scheme.word()));
        return Err(BadAddress { label: format!("begins with none of {}", words()), hint });
    };
    let Some(scheme) = schemes.iter().find(|scheme| scheme.word() == given) else {
        let tls = given == "tls" && schemes.contains(&Scheme::Tcp);
        let hint = tls.then(|| format!("write \"tcp://{rest}\" and add tls = {{}} to the output"));
        return Err(BadAddress { label: format!("this output supports {}, not {given}://", words()), hint });
    };
    match scheme {
        Scheme::Udp => parse_host_port(rest).map(Destination::Udp),
        Scheme::Tcp => parse_host_port(rest).map(Destination::Tcp),
        Scheme::UnixDatagram | Scheme::UnixStream => match parse_unix(rest)? {
            (_, Some(_)) => bad("`?mode=` is for sockets that are made, not for those that are sent to"),
            (path, None) if *scheme == Scheme::UnixDatagram => Ok(Destination::UnixDatagram(path)),
            (path, None) => Ok(Destination::UnixStream(path)),
        },
    }
}

/// Writes one entry of `to` of an output of packets.
pub fn destination_text(to: &Destination) -> String {
    match to {
        Destination::Udp(host) => format!("udp://{}", host_port_text(host)),
        Destination::Tcp(host) => format!("tcp://{}", host_port_text(host)),
        Destination::UnixDatagram(path) => format!("unixgram://{}", unix_text(path, None)),
        Destination::UnixStream(path) => format!("unix://{}", unix_text(path, None)),
    }
}

/// The destination in the name of an output that has several: without its scheme.
pub fn destination_name(to: &Destination) -> String {
    match to {
        Destination::Udp(host) | Destination::Tcp(host) => host_port_text(host),
        Destination::UnixDatagram(path) | Destination::UnixStream(path) => {
            path.to_string_lossy().into_owned()
        }
    }
}

/// Writes `host:port`.
pub fn host_port_text(endpoint: &Endpoint) -> String {
    if endpoint.host.contains(':') {
        format!("[{}]:{}", endpoint.host, endpoint.port)
    } else {
        format!("{}:{}", endpoint.host, endpoint.port)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn listen_addresses_are_parsed_or_rejected_with_advice() {
        let unix = |path: &str, mode| Listen::UnixStream { path: path.into(), mode };
        let good = [
            ("udp://127.0.0.1:8125", Listen::Udp("127.0.0.1:8125".parse().unwrap())),
            ("tcp://[::1]:0", Listen::Tcp("[::1]:0".parse().unwrap())),
            ("unix:///run/s.sock", unix("/run/s.sock", None)),
            ("unix://@name?mode=0660", unix("@name", Some(0o660))),
            ("unix://rel%3Fative%25?mode=7", unix("rel?ative%", Some(7))),
            ("unixgram:///x", Listen::UnixDatagram { path: "/x".into(), mode: None }),
            ("unix-frames:///x", Listen::UnixFrames { path: "/x".into(), mode: None }),
        ];
        for (text, want) in good {
            let got = parse_listen(text).unwrap();
            assert_eq!(got, want, "{text}");
            assert_eq!(parse_listen(&listen_text(&got)), Ok(got), "{text}");
        }
        let bad = [
            ("127.0.0.1:8125", "begins with none"),
            ("udp://localhost:8125", "`localhost` is not an IP address"),
            ("udp://:8125", "not an IP address"),
            ("udp://127.0.0.1", "no port"),
            ("udp://127.0.0.1:99999", "no port"),
            ("upd://127.0.0.1:1", "is none of"),
            ("unix://", "no path"),
            ("unix:///x?mode=888", "octal"),
            ("unix:///x?mode=77777", "octal"),
            ("unix:///x?mode=+7", "octal"),
            ("unix:///x?m", "octal"),
            ("unix:///%0", "hexadecimal"),
            ("unix:///%+1", "hexadecimal"),
            ("unix:///%00", "NUL"),
        ];
        for (text, want) in bad {
            let got = parse_listen(text).unwrap_err();
            assert!(got.label.contains(want), "{text}: {}", got.label);
        }
        let path = |len: usize| format!("unix://{}", "x".repeat(len));
        assert!(parse_listen(&path(UNIX_PATH_BYTES_MAX)).is_ok());
        assert!(parse_listen(&path(UNIX_PATH_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn loopback_has_many_spellings() {
        let table: &[(&str, &[&str])] = &[
            ("localhost", &["127.0.0.1", "::1"]),
            ("LocalHost.", &["127.0.0.1", "::1"]),
            ("a.localhost", &["127.0.0.1", "::1"]),
            ("0.0.0.0", &["127.0.0.1", "::1"]),
            ("ip6-localhost", &["::1"]),
            ("127.1", &["127.0.0.1"]),
            ("127.0.5", &["127.0.0.5"]),
            ("2130706433", &["127.0.0.1"]),
            ("0x7f.1", &["127.0.0.1"]),
            ("0177.0.0.1", &["127.0.0.1"]),
            ("0", &["127.0.0.1"]),
            ("127.16777216", &[]),
            ("127.0.0.256", &[]),
            ("1.2.3.4.5", &[]),
            ("4294967296", &[]),
            ("10.0.0.5", &[]),
            ("notlocalhost", &[]),
            ("", &[]),
        ];
        for (host, want) in table {
            let want: Vec<IpAddr> = want.iter().map(|text| text.parse().unwrap()).collect();
            assert_eq!(loopback_addresses(host), want, "{host}");
        }
    }

    #[test]
    fn endpoints_are_parsed_or_rejected_with_advice() {
        for (text, host, port) in
            [("a.b-c_1:2003", "a.b-c_1", 2003), ("[::1]:1", "::1", 1), ("10.0.0.5:65535", "10.0.0.5", 65535)]
        {
            let text = format!("tcp://{text}");
            let got = parse_destination(&text, &[Scheme::Tcp]).unwrap();
            assert_eq!(got, Destination::Tcp(Endpoint { host: host.into(), port }));
            assert_eq!(got.to_string(), text);
        }
        let bad = [
            ("udp://h:1", "supports tcp://, unix://, not udp://"),
            ("h:1", "begins with none of tcp://, unix://"),
            ("unix://", "no path"),
            ("unix:///x?mode=660", "sockets that are made"),
            ("tcp://h", "no port"),
            ("tcp://[::1]", "no port"),
            ("tcp://h:0", "not a number of 1"),
            ("tcp://h:+1", "not a number of 1"),
            ("tcp://::1:1", "brackets"),
            ("tcp://[h]:1", "not an IPv6"),
            ("tcp://a b:1", "neither a name"),
            ("tcp://:1", "neither a name"),
        ];
        for (text, want) in bad {
            let got = parse_destination(text, &[Scheme::Tcp, Scheme::UnixStream]).unwrap_err();
            assert!(got.label.contains(want), "{text}: {}", got.label);
        }
        let tls = parse_destination("tls://h:1", &[Scheme::Udp, Scheme::Tcp]).unwrap_err();
        assert_eq!(tls.hint.as_deref(), Some("write \"tcp://h:1\" and add tls = {} to the output"));
        for text in ["udp://[::1]:1", "unixgram:///run/a%3Fb", "unix://@name"] {
            let schemes = [Scheme::Udp, Scheme::UnixDatagram, Scheme::UnixStream];
            assert_eq!(parse_destination(text, &schemes).map(|to| to.to_string()), Ok(text.to_owned()));
        }
        let host = "x".repeat(HOST_BYTES_MAX);
        assert!(parse_host_port(&format!("{host}:1")).is_ok());
        assert!(parse_host_port(&format!("{host}x:1")).is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(udp|tcp|unix)?(://)?.{0,20}") {
            let _ = (parse_listen(&text), parse_destination(&text, &[Scheme::Udp, Scheme::UnixDatagram]));
        }
    }
}

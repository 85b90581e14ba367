//! Explains failed TLS handshakes and names the option to check.
//!
//! The library's messages name its types (`UnknownIssuer`). Messages without an explanation here are shown unchanged.

use std::io;

use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, Error, PeerIncompatible};

/// The library's error, if `error` comes from it and not from the socket.
pub fn cause(error: &io::Error) -> Option<&Error> {
    error.get_ref().and_then(|inner| inner.downcast_ref::<Error>())
}

/// Why a connection or its handshake failed; `trust` as in [`of`].
pub fn connecting(error: &io::Error, trust: &str) -> String {
    cause(error).map_or_else(|| error.to_string(), |cause| of(cause, trust))
}

/// The peer closed the connection during the handshake, for example because it does not speak TLS.
pub fn ended_early() -> io::Error {
    let words = "the peer closed the connection during the TLS handshake: does it speak TLS?";
    io::Error::other(Error::General(words.to_owned()))
}

/// The explanation of the library's error. `trust`: the option that names the trusted authorities.
pub fn of(error: &Error, trust: &str) -> String {
    match error {
        Error::InvalidMessage(_) => "the peer does not speak TLS".to_owned(),
        Error::NoCertificatesPresented => {
            format!("the peer shows no certificate, and `{trust}` wants one")
        }
        Error::InvalidCertificate(wrong) => certificate(wrong, trust),
        Error::AlertReceived(alert) => refusal(*alert),
        Error::PeerIncompatible(why) => incompatible(why),
        Error::PeerMisbehaved(why) => format!("the peer breaks the rules of TLS ({})", spelled(why)),
        Error::InappropriateMessage { .. } | Error::InappropriateHandshakeMessage { .. } => {
            "the peer breaks the rules of TLS (a message at the wrong time)".to_owned()
        }
        Error::General(words) => words.clone(),
        other => other.to_string(),
    }
}

fn certificate(wrong: &CertificateError, trust: &str) -> String {
    match wrong {
        // A bad signature: an authority of this name is known, but it has not signed the certificate.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            format!("the peer's certificate is signed by no CA that is trusted here: look at `{trust}`")
        }
        CertificateError::Expired => "the peer's certificate has expired".to_owned(),
        CertificateError::ExpiredContext { time, not_after } => {
            format!("the peer's certificate expired {} ago", span(*not_after, *time))
        }
        CertificateError::NotValidYet => "the peer's certificate is not valid yet".to_owned(),
        CertificateError::NotValidYetContext { time, not_before } => {
            format!("the peer's certificate is valid only in {}", span(*time, *not_before))
        }
        CertificateError::NotValidForName => "the peer's certificate is for another name".to_owned(),
        CertificateError::NotValidForNameContext { expected, presented } => {
            let expected = expected.to_str();
            format!("the peer's certificate is not for `{expected}` but for {}", names(presented))
        }
        CertificateError::Other(why) => {
            format!("the peer's certificate is not accepted ({})", spelled(&*why.0))
        }
        other => format!("the peer's certificate is not accepted ({})", spelled(other)),
    }
}

/// The names of a certificate, of which there may be very many. The library formats them as `DnsName("a")`.
fn names(presented: &[String]) -> String {
    const SHOWN_MAX: usize = 4;
    let inner = |name: &String| Some(name.split_once('(')?.1.strip_suffix(')')?.trim_matches('"').to_owned());
    let plain = |name: &String| inner(name).unwrap_or_else(|| name.clone());
    let shown: Vec<String> = presented.iter().take(SHOWN_MAX).map(plain).collect();
    match presented.len() {
        0 => "no name".to_owned(),
        all if all > SHOWN_MAX => format!("{} and {} others", shown.join(", "), all - SHOWN_MAX),
        _ => shown.join(", "),
    }
}

/// The peer's alert.
fn refusal(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::CertificateRequired => "the peer wants a certificate: `cert` and `key`".to_owned(),
        AlertDescription::UnknownCA
        | AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateUnknown
        | AlertDescription::AccessDenied => {
            format!("the peer does not accept our certificate ({})", spelled(&alert))
        }
        AlertDescription::ProtocolVersion => VERSIONS.to_owned(),
        AlertDescription::UnrecognisedName => {
            "the peer knows no such name: look at `tls.server_name`".to_owned()
        }
        other => format!("the peer refused the TLS handshake ({})", spelled(&other)),
    }
}

const VERSIONS: &str = "the peer speaks no version of TLS that is spoken here (1.2 and 1.3)";

/// The peer and we have no version or cipher in common.
fn incompatible(why: &PeerIncompatible) -> String {
    match why {
        PeerIncompatible::ServerDoesNotSupportTls12Or13
        | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
        | PeerIncompatible::SupportedVersionsExtensionRequired
        | PeerIncompatible::Tls12NotOffered
        | PeerIncompatible::Tls12NotOfferedOrEnabled => VERSIONS.to_owned(),
        other => format!("the peer and we have no way to encrypt in common ({})", spelled(other)),
    }
}

/// The name of one of the library's values as words: `UnknownCA` as `unknown ca`.
fn spelled(value: &(impl std::fmt::Debug + ?Sized)) -> String {
    let text = format!("{value:?}");
    let name: Vec<char> = text.chars().take_while(char::is_ascii_alphanumeric).collect();
    let mut words = String::new();
    for (at, letter) in name.iter().enumerate() {
        let begins = letter.is_ascii_uppercase() && at > 0 && !name[at - 1].is_ascii_uppercase();
        if begins {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}

/// The time between two points, in its largest whole unit.
fn span(from: UnixTime, to: UnixTime) -> String {
    let seconds = to.as_secs().saturating_sub(from.as_secs());
    let units = [(86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")];
    let (length, unit) = units.into_iter().find(|(length, _)| seconds >= *length).unwrap_or((1, "second"));
    let number = seconds / length;
    format!("{number} {unit}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustls::PeerMisbehaved;
    use rustls::pki_types::ServerName;

    use super::*;

    fn at(seconds: u64) -> UnixTime {
        UnixTime::since_unix_epoch(Duration::from_secs(seconds))
    }

    #[test]
    fn each_cause_says_what_to_look_at() {
        for (error, want) in [
            (
                CertificateError::UnknownIssuer.into(),
                "the peer's certificate is signed by no CA that is trusted here: look at `ca`",
            ),
            (
                CertificateError::ExpiredContext { time: at(3 * 86_400), not_after: at(0) }.into(),
                "the peer's certificate expired 3 days ago",
            ),
            (
                CertificateError::NotValidYetContext { time: at(0), not_before: at(3_700) }.into(),
                "the peer's certificate is valid only in 1 hour",
            ),
            (
                Error::AlertReceived(AlertDescription::CertificateRequired),
                "the peer wants a certificate: `cert` and `key`",
            ),
            (
                Error::AlertReceived(AlertDescription::UnknownCA),
                "the peer does not accept our certificate (unknown ca)",
            ),
            (
                Error::AlertReceived(AlertDescription::HandshakeFailure),
                "the peer refused the TLS handshake (handshake failure)",
            ),
            (
                Error::AlertReceived(AlertDescription::ProtocolVersion),
                "the peer speaks no version of TLS that is spoken here (1.2 and 1.3)",
            ),
            (
                PeerIncompatible::ServerDoesNotSupportTls12Or13.into(),
                "the peer speaks no version of TLS that is spoken here (1.2 and 1.3)",
            ),
            (
                PeerIncompatible::NoCipherSuitesInCommon.into(),
                "the peer and we have no way to encrypt in common (no cipher suites in common)",
            ),
            (
                PeerMisbehaved::IllegalTlsInnerPlaintext.into(),
                "the peer breaks the rules of TLS (illegal tls inner plaintext)",
            ),
            (CertificateError::Revoked.into(), "the peer's certificate is not accepted (revoked)"),
            (
                CertificateError::NotValidForNameContext {
                    expected: ServerName::try_from("else.test").expect("a name"),
                    presented: vec!["DnsName(\"carbon.test\")".into(), "IpAddress(127.0.0.1)".into()],
                }
                .into(),
                "the peer's certificate is not for `else.test` but for carbon.test, 127.0.0.1",
            ),
            (Error::HandshakeNotComplete, "handshake not complete"),
        ] {
            let error = io::Error::new(io::ErrorKind::InvalidData, error);
            assert_eq!(connecting(&error, "ca"), want);
        }
        assert!(connecting(&ended_early(), "ca").ends_with("does it speak TLS?"));
        let many: Vec<String> = (0..9).map(|n| format!("DnsName(\"{n}.test\")")).collect();
        assert_eq!(names(&many), "0.test, 1.test, 2.test, 3.test and 5 others");
        let broken = io::Error::from(io::ErrorKind::ConnectionReset);
        assert_eq!(connecting(&broken, "ca"), broken.to_string());
    }
}

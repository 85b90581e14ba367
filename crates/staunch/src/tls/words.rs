//! Why TLS could not be spoken, in words that say what to look at.
//!
//! The library's own words name its types (`UnknownIssuer`); those of a cause that is not told here are given as they are.

use std::io;

use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, Error};

/// What the library had to say, when `error` came from it and not from the socket.
pub fn cause(error: &io::Error) -> Option<&Error> {
    error.get_ref().and_then(|inner| inner.downcast_ref::<Error>())
}

/// Why a connection could not be made, or why its handshake failed; `trust` as in [`of`].
pub fn connecting(error: &io::Error, trust: &str) -> String {
    cause(error).map_or_else(|| error.to_string(), |cause| of(cause, trust))
}

/// What the library has to say. `trust`: the option that names the authorities whose certificates are taken.
pub fn of(error: &Error, trust: &str) -> String {
    match error {
        Error::InvalidMessage(_) => "the peer does not speak TLS".to_owned(),
        Error::NoCertificatesPresented => {
            format!("the peer shows no certificate, and `{trust}` wants one")
        }
        Error::InvalidCertificate(wrong) => certificate(wrong, trust),
        Error::AlertReceived(alert) => refusal(*alert),
        other => other.to_string(),
    }
}

fn certificate(wrong: &CertificateError, trust: &str) -> String {
    match wrong {
        // A bad signature: an authority of the same name is known, and has not signed it.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            format!("none of the authorities of `{trust}` has signed the peer's certificate")
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
            format!("the peer's certificate is not for `{expected}` but for {}", presented.join(", "))
        }
        other => format!("the peer's certificate is not accepted: {other}"),
    }
}

/// What the peer said when it ended the connection.
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
            format!("the peer does not accept our certificate ({alert:?})")
        }
        AlertDescription::ProtocolVersion => "the peer speaks no version of TLS that we do".to_owned(),
        other => format!("the peer refused the TLS handshake ({other:?})"),
    }
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

    use super::*;

    fn at(seconds: u64) -> UnixTime {
        UnixTime::since_unix_epoch(Duration::from_secs(seconds))
    }

    #[test]
    fn each_cause_says_what_to_look_at() {
        for (error, want) in [
            (
                CertificateError::UnknownIssuer.into(),
                "none of the authorities of `ca` has signed the peer's certificate",
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
                "the peer does not accept our certificate (UnknownCA)",
            ),
            (Error::HandshakeNotComplete, "handshake not complete"),
        ] {
            let error = io::Error::new(io::ErrorKind::InvalidData, error);
            assert_eq!(connecting(&error, "ca"), want);
        }
        let broken = io::Error::from(io::ErrorKind::ConnectionReset);
        assert_eq!(connecting(&broken, "ca"), broken.to_string());
    }
}

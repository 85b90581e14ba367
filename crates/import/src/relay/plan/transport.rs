//! `transport`, `ssl` and `mtls` of listeners and servers, and `-C`, as a plan has them.

use std::path::Path;

use crate::relay::{self as original, Mistake, ServerTls, TlsVersion as Old};
use config::diagnostic::{Code, Diagnostic};
use config::plan::{EndpointTls, Identity, ListenTls, PemFile, TlsVersion};

/// The transport of a listener; none after a mistake. `ca` is the file of `-C`.
pub(super) fn listen(
    tls: &original::ListenTls,
    ca: Option<&Path>,
    wrong: &mut Vec<Mistake>,
) -> Option<Box<ListenTls>> {
    // Only the place of the certificate file is kept: all mistakes point there.
    let mut report = |diagnostic: Diagnostic, hint: &str| {
        let diagnostic = Diagnostic { place: tls.pem.place, ..diagnostic };
        wrong.push(Mistake::ours(tls.pem.file, diagnostic.hint(hint)));
    };
    if tls.mutual && ca.is_none() {
        let message = "`mtls` of a listener needs to know whose certificates its clients may show";
        report(
            Diagnostic::error(Code::NotCarriedOver, message),
            "name the file of their authorities: -C FILE",
        );
        return None;
    }
    for (keyword, list) in [("ciphers", &tls.ciphers), ("ciphersuites", &tls.suites)] {
        if list.is_some() {
            let message =
                format!("`{keyword}` has no effect: only ciphers that are known to be good are spoken");
            report(Diagnostic::warning(Code::ImportNoEffect, message), "remove it");
        }
    }
    if let Some(min) = tls.min.filter(|min| *min < Old::Tls12) {
        let message =
            format!("`protomin {}` has no effect: nothing older than TLS 1.2 is spoken", min.word());
        report(Diagnostic::warning(Code::ImportNoEffect, message), "clients of older versions are refused");
    }
    let Some(max) = version(tls.max.unwrap_or(Old::Tls13)) else {
        let oldest = "`protomax` leaves nothing that could be spoken: the oldest is TLS 1.2";
        report(Diagnostic::error(Code::NotCarriedOver, oldest), "write tls1.2 or tls1.3");
        return None;
    };
    Some(Box::new(ListenTls {
        identity: Identity { cert: tls.pem.clone(), key: tls.pem.clone() },
        client_ca: ca.filter(|_| tls.mutual).map(PemFile::new),
        min: tls.min.and_then(version).unwrap_or(TlsVersion::V1_2),
        max,
    }))
}

/// The transport of a server. With `-C` the original accepts any name in a certificate of those authorities; without
/// it, it accepts no certificate. Here, without `-C` the system's authorities apply, and names are checked, because
/// everybody can get a certificate from those.
pub(super) fn endpoint(tls: &ServerTls, ca: Option<&Path>) -> Option<Box<EndpointTls>> {
    let identity = match tls {
        ServerTls::None => return None,
        ServerTls::Tls => None,
        ServerTls::Mutual { cert, key } => Some(Identity { cert: cert.clone(), key: key.clone() }),
    };
    let skip_hostname_check = ca.is_some();
    Some(Box::new(EndpointTls { ca: ca.map(PemFile::new), identity, server_name: None, skip_hostname_check }))
}

/// None for insecure versions.
fn version(version: Old) -> Option<TlsVersion> {
    match version {
        Old::Ssl3 | Old::Tls10 | Old::Tls11 => None,
        Old::Tls12 => Some(TlsVersion::V1_2),
        Old::Tls13 => Some(TlsVersion::V1_3),
    }
}

#[test]
fn transports_of_listeners_and_servers_are_imported() {
    use config::diagnostic::Severity;
    let tls = |mutual, min, max| original::ListenTls {
        mutual,
        pem: PemFile::new("/p"),
        min,
        max,
        ciphers: None,
        suites: None,
    };
    let ca = Some(Path::new("/ca"));
    let mut wrong = Vec::new();
    let plain = listen(&tls(false, None, None), ca, &mut wrong).unwrap();
    assert_eq!((plain.min, plain.max, plain.client_ca), (TlsVersion::V1_2, TlsVersion::V1_3, None));
    assert_eq!(plain.identity.key, PemFile::new("/p"));
    let mutual = listen(&tls(true, Some(Old::Tls13), None), ca, &mut wrong).unwrap();
    assert_eq!((mutual.min, mutual.client_ca), (TlsVersion::V1_3, Some(PemFile::new("/ca"))));
    assert_eq!(wrong, []);
    assert!(listen(&tls(false, Some(Old::Ssl3), Some(Old::Tls12)), None, &mut wrong).is_some());
    assert_eq!(wrong.len(), 1);
    let said = &wrong[0].diagnostic;
    assert!(said.severity == Severity::Warning && said.message.contains("ssl3"), "{wrong:?}");
    assert_eq!(listen(&tls(true, None, None), None, &mut wrong), None);
    assert_eq!(listen(&tls(false, None, Some(Old::Tls11)), None, &mut wrong), None);
    assert!(wrong[1..].iter().all(|wrong| wrong.diagnostic.severity == Severity::Error));
    assert_eq!(endpoint(&ServerTls::None, ca), None);
    let of = |server| *endpoint(&server, ca).unwrap();
    let known =
        EndpointTls { ca: Some(PemFile::new("/ca")), skip_hostname_check: true, ..EndpointTls::default() };
    assert_eq!(of(ServerTls::Tls), known);
    assert_eq!(endpoint(&ServerTls::Tls, None), Some(Box::default()), "names count");
    let with = of(ServerTls::Mutual { cert: PemFile::new("/c"), key: PemFile::new("/k") });
    assert_eq!(with.identity, Some(Identity { cert: PemFile::new("/c"), key: PemFile::new("/k") }));
}

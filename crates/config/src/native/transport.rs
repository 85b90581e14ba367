//! `transport` and `tls` of a source of points and of an output of type `graphite`, and `tls` of HTTP.
//!
//! Not here: whether the files are there and what is in them (`tls`).

use super::fields::Fields;
use crate::diagnostic::{Code, Diagnostic, Place};
use crate::options::Section;
use crate::options::table::transport::{LISTEN_TLS, OUTPUT_TLS};
use crate::plan::{EndpointTls, Identity, ListenTls, PemFile, TlsVersion};

/// `tls` of the source `name`; none also after a mistake.
pub(super) fn listen(name: &str, fields: &Fields, wrong: &mut Vec<Diagnostic>) -> Option<Box<ListenTls>> {
    listening(Section::SourceTls, &format!("the tls of source `{name}`"), fields, wrong)
}

/// The same of whatever else listens: `section` has the options, `whose` names it in messages.
pub(super) fn listening(
    section: Section,
    whose: &str,
    fields: &Fields,
    wrong: &mut Vec<Diagnostic>,
) -> Option<Box<ListenTls>> {
    let fields = fields.table("tls", section, whose, wrong)?;
    // It is required, and its absence was reported.
    let cert: PemFile = fields.value("cert")?;
    let identity = Identity { key: cert.clone(), cert };
    let mut tls = ListenTls { identity, client_ca: None, min: TlsVersion::V1_2, max: TlsVersion::V1_3 };
    fields.fill(&mut tls, &LISTEN_TLS);
    if tls.min > tls.max {
        let label = format!("`min` is {}", tls.min.word());
        fields.wrong("max", Code::OutOfRange, "`max` is below `min`", label, wrong);
    }
    Some(Box::new(tls))
}

/// `tls` of the output `name`; none also after a mistake.
pub(super) fn endpoint(name: &str, fields: &Fields, wrong: &mut Vec<Diagnostic>) -> Option<Box<EndpointTls>> {
    let fields = fields.table("tls", Section::OutputTls, &format!("the tls of output `{name}`"), wrong)?;
    let identity = match (fields.value::<PemFile>("cert"), fields.value::<PemFile>("key")) {
        (Some(cert), key) => Some(Identity { key: key.unwrap_or_else(|| cert.clone()), cert }),
        (None, key) => {
            if let Some(place) = key.and_then(|key| key.place) {
                wrong.push(no_certificate(place));
            }
            None
        }
    };
    let mut tls = EndpointTls { identity, ..EndpointTls::default() };
    fields.fill(&mut tls, &OUTPUT_TLS);
    if tls.server_name.as_deref().is_some_and(str::is_empty) {
        let place = fields.at("server_name");
        let diagnostic = Diagnostic::error(Code::BadValue, "`server_name` is no name").at(place);
        wrong
            .push(diagnostic.label("a host name or an address").hint("remove it to use the endpoint's host"));
    }
    if tls.skip_hostname_check && tls.ca.is_none() {
        let place = fields.at("skip_hostname_check");
        let message =
            "`skip_hostname_check` with the system's CAs accepts any server with a public certificate";
        let diagnostic = Diagnostic::error(Code::MissingKey, message).at(place).label("`ca` is missing");
        wrong.push(diagnostic.hint("set ca = \"…\" with your own CA, or remove it"));
    }
    Some(Box::new(tls))
}

fn no_certificate(place: Place) -> Diagnostic {
    Diagnostic::error(Code::MissingKey, "`key` is set without `cert`")
        .at(place)
        .label("`cert` is missing")
        .hint("write cert = \"…\" beside it; both may be in one file, and then `cert` alone is enough")
}

//! `transport` and `tls` of a source of points and of an output of type `graphite`, and `tls` of HTTP.
//!
//! Not here: whether the files are there and what is in them (`tls`).

use super::fields::{Fields, table};
use crate::diagnostic::{Code, Diagnostic, Place};
use crate::options::Section;
use crate::plan::{Compression, EndpointTls, Identity, ListenTls, PemFile, TlsVersion};

/// How the bytes are packed.
pub(super) fn compression(fields: &Fields) -> Compression {
    let word = fields.word("transport");
    Compression::ALL.into_iter().find(|known| Some(known.word()) == word).unwrap_or_default()
}

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
    let node = fields.node("tls")?;
    let entries = table("tls", node, wrong)?;
    let fields = Fields::read(section, whose, node.place, entries, wrong);
    let version = |key| TlsVersion::ALL.into_iter().find(|known| Some(known.word()) == fields.word(key));
    let (min, max) = (version("min").unwrap_or(TlsVersion::V1_2), version("max").unwrap_or(TlsVersion::V1_3));
    if min > max {
        let place = fields.place_of("max").unwrap_or(node.place);
        let label = format!("`min` is {}", min.word());
        wrong.push(Diagnostic::error(Code::OutOfRange, "`max` is below `min`").at(place).label(label));
    }
    // It is required, and its absence was told.
    let cert = pem(&fields, "cert")?;
    let key = pem(&fields, "key").unwrap_or_else(|| cert.clone());
    let client_ca = pem(&fields, "client_ca");
    Some(Box::new(ListenTls { identity: Identity { cert, key }, client_ca, min, max }))
}

/// `tls` of the output `name`; none also after a mistake.
pub(super) fn endpoint(name: &str, fields: &Fields, wrong: &mut Vec<Diagnostic>) -> Option<Box<EndpointTls>> {
    let node = fields.node("tls")?;
    let entries = table("tls", node, wrong)?;
    let whose = format!("the tls of output `{name}`");
    let fields = Fields::read(Section::OutputTls, &whose, node.place, entries, wrong);
    let identity = match (pem(&fields, "cert"), pem(&fields, "key")) {
        (Some(cert), key) => Some(Identity { key: key.unwrap_or_else(|| cert.clone()), cert }),
        (None, key) => {
            if let Some(place) = key.and_then(|key| key.place) {
                wrong.push(no_certificate(place));
            }
            None
        }
    };
    let server_name = fields.text("server_name");
    if server_name.as_deref().is_some_and(str::is_empty) {
        let place = fields.place_of("server_name").unwrap_or(node.place);
        let diagnostic = Diagnostic::error(Code::BadValue, "`server_name` is no name").at(place);
        wrong
            .push(diagnostic.label("a host name or an address").hint("leave it out for the endpoint's host"));
    }
    let any_name = fields.flag("skip_hostname_check") == Some(true);
    if any_name && fields.path("ca").is_none() {
        let place = fields.place_of("skip_hostname_check").unwrap_or(node.place);
        let message =
            "`skip_hostname_check` with the system's CAs accepts any server with a public certificate";
        let diagnostic = Diagnostic::error(Code::MissingKey, message).at(place).label("`ca` is missing");
        wrong.push(diagnostic.hint("set ca = \"…\" with your own CA, or remove it"));
    }
    Some(Box::new(EndpointTls { ca: pem(&fields, "ca"), identity, server_name, any_name }))
}

fn no_certificate(place: Place) -> Diagnostic {
    Diagnostic::error(Code::MissingKey, "`key` is set without `cert`")
        .at(place)
        .label("`cert` is missing")
        .hint("write cert = \"…\" beside it; both may be in one file, and then `cert` alone is enough")
}

pub(super) fn pem(fields: &Fields, key: &str) -> Option<PemFile> {
    Some(PemFile { path: fields.path(key)?, place: fields.place_of(key), file: 0 })
}

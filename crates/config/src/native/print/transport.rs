//! `transport` and `tls`: the mirror of `native::transport`.

use super::{Out, given, inline, path, text};
use crate::options::Section::{HttpTls, SourceGraphite};
use crate::options::table::transport::{LISTEN_TLS, SOURCE_TRANSPORT};
use crate::plan::{EndpointTls, Identity, ListenTls, PemFile, SourcePlan, TlsVersion};

pub(super) fn print_source(out: &mut Out, source: &SourcePlan) {
    let default = crate::native::default_source("");
    out.options(SourceGraphite, &SOURCE_TRANSPORT, source, &default);
    print_listening(out, source.tls.as_deref());
}

/// `tls` of whatever listens.
pub(super) fn print_listening(out: &mut Out, tls: Option<&ListenTls>) {
    let Some(tls) = tls else { return };
    let identity = Identity { cert: PemFile::new(""), key: tls.identity.cert.clone() };
    let default = ListenTls { identity, client_ca: None, min: TlsVersion::V1_2, max: TlsVersion::V1_3 };
    out.key("tls", inline(given(HttpTls, &LISTEN_TLS, tls, &default)));
}

pub(super) fn print_output(out: &mut Out, tls: Option<&EndpointTls>) {
    let Some(tls) = tls else { return };
    let file = |key, file: Option<&PemFile>| file.map(|file| (key, path(&file.path)));
    let identity = tls.identity.as_ref();
    let pairs = [
        file("ca", tls.ca.as_ref()),
        file("cert", identity.map(|identity| &identity.cert)),
        file("key", identity.filter(|of| of.key != of.cert).map(|identity| &identity.key)),
        tls.server_name.as_deref().map(|name| ("server_name", text(name))),
        tls.skip_hostname_check.then(|| ("skip_hostname_check", "true".to_owned())),
    ];
    out.key("tls", inline(pairs.into_iter().flatten()));
}

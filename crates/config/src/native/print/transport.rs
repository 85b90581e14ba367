//! `transport` and `tls`: the mirror of `native::transport`.

use super::{Out, inline, path, text};
use crate::plan::{Compression, EndpointTls, Identity, ListenTls, PemFile, TlsVersion};

pub(super) fn print_source(out: &mut Out, compression: Compression, tls: Option<&ListenTls>) {
    print_compression(out, compression);
    print_listening(out, tls);
}

/// `tls` of whatever listens.
pub(super) fn print_listening(out: &mut Out, tls: Option<&ListenTls>) {
    let Some(tls) = tls else { return };
    let pairs = [
        ("cert", path(&tls.identity.cert.path), String::new()),
        ("key", path(&tls.identity.key.path), path(&tls.identity.cert.path)),
        ("client_ca", file(tls.client_ca.as_ref()), String::new()),
        ("min", text(tls.min.word()), text(TlsVersion::V1_2.word())),
        ("max", text(tls.max.word()), text(TlsVersion::V1_3.word())),
    ];
    out.key("tls", inline(&pairs).unwrap_or_default());
}

pub(super) fn print_output(out: &mut Out, compression: Compression, tls: Option<&EndpointTls>) {
    print_compression(out, compression);
    let Some(tls) = tls else { return };
    let of = |part: fn(&Identity) -> &PemFile| file(tls.identity.as_ref().map(part));
    let cert = of(|identity| &identity.cert);
    let pairs = [
        ("ca", file(tls.ca.as_ref()), String::new()),
        ("cert", cert.clone(), String::new()),
        ("key", of(|identity| &identity.key), cert),
        ("server_name", tls.server_name.as_deref().map(text).unwrap_or_default(), String::new()),
        ("skip_hostname_check", tls.any_name.to_string(), false.to_string()),
    ];
    out.key("tls", inline(&pairs).unwrap_or_else(|| "{}".into()));
}

fn print_compression(out: &mut Out, compression: Compression) {
    out.key_unless("transport", text(compression.word()), text(Compression::Plain.word()));
}

fn file(file: Option<&PemFile>) -> String {
    file.map(|file| path(&file.path)).unwrap_or_default()
}

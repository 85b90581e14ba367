//! Options of compressed or encrypted streams: sources of points and of Riemann's events, and outputs to carbon.

use super::types::one_of;
use crate::diagnostic::Place;
use crate::options::checked::Checked;
use crate::options::field::{Form, Nested, Slot, rows, words};
use crate::options::row::Default::{Absent, Depends, Required, Toml};
use crate::options::row::Type::{Flag, Path, Table, Text};
use crate::options::section::Section::{
    HttpTls, OutputGraphite, OutputTls, SourceGraphite, SourceRiemann, SourceTls,
};
use crate::plan::{
    Compression, EndpointTls, Identity, ListenTls, OutputKind, PemFile, SourcePlan, TlsVersion,
};

words! {
    Compression: "plain" = Compression::Plain, "gzip" = Compression::Gzip, "lz4" = Compression::Lz4,
        "snappy" = Compression::Snappy;
    TlsVersion: "1.2" = TlsVersion::V1_2, "1.3" = TlsVersion::V1_3;
}

rows! {
    SOURCE_TRANSPORT: SourcePlan;
    in [SourceGraphite] {
        "transport" => compression: one_of::<Compression>(), Toml("\"plain\""), "\"gzip\"",
            "Compression of its connections.",
            "`gzip`: concatenated members. `lz4`: concatenated frames. `snappy`: frames, or bare blocks as sent by carbon-c-relay. Streams only. See [Graphite](graphite.md#compressed-streams).";
    }
    in [SourceGraphite, SourceRiemann] {
        "tls" => tls as Nested: Table(SourceTls), Absent("connections are not encrypted"), "{ cert = \"/etc/staunch/relay.pem\" }",
            "Encrypts its connections.",
            "Streams only.";
    }
}

rows! {
    LISTEN_TLS: ListenTls = |given| {
        let cert = PemFile::new("");
        let key = given.map_or_else(|| cert.clone(), |given| given.identity.cert.clone());
        let identity = Identity { cert, key };
        ListenTls { identity, client_ca: None, min: TlsVersion::V1_2, max: TlsVersion::V1_3 }
    };
    in [SourceTls, HttpTls] {
        "cert" => identity.cert: Path, Required, "\"/etc/staunch/relay.pem\"",
            "File with its certificate and the chain after it (PEM).";
        "key" => identity.key: Path, Depends("the file of `cert`"), "\"/etc/staunch/relay.key\"",
            "File with the key of `cert` (PEM).";
        "client_ca" => client_ca: Path, Absent("clients show no certificate"), "\"/etc/staunch/ca.pem\"",
            "File with the authorities for client certificates (PEM).",
            "A client without a certificate is rejected. It may also be a folder, as made by `openssl rehash`. A client's own certificate in it is pinned.";
        "min" => min: one_of::<TlsVersion>(), Toml("\"1.2\""), "\"1.3\"",
            "Oldest supported version of TLS.";
        "max" => max: one_of::<TlsVersion>(), Toml("\"1.3\""), "\"1.2\"",
            "Newest supported version of TLS.",
            "At least `min`.";
    }
}

rows! {
    OUTPUT_TRANSPORT: OutputKind;
    in [OutputGraphite] {
        "transport" => Graphite { compression }: one_of::<Compression>(), Toml("\"plain\""), "\"gzip\"",
            "Compression on the wire.",
            "The endpoint must use the same. See [Graphite](graphite.md#compressed-streams).";
        "tls" => Graphite { tls } as Nested: Table(OutputTls), Absent("connections are not encrypted"), "{ ca = \"/etc/staunch/ca.pem\" }",
            "Encrypts the connections to its endpoints.";
    }
}

rows! {
    OUTPUT_TLS: EndpointTls = |_| EndpointTls::default();
    in [OutputTls] {
        "ca" => ca: Path, Absent("the system's authorities"), "\"/etc/staunch/ca.pem\"",
            "File with the authorities for the endpoint's certificate (PEM).",
            "It may also be a folder, as made by `openssl rehash`. The endpoint's own certificate in it is pinned: its name and expiry date are not checked.";
        "cert" => identity as CertFile: Path, Absent("the endpoint is shown none"), "\"/etc/staunch/client.pem\"",
            "File with the client certificate for endpoints that require one (PEM).";
        "key" => identity as KeyFile: Path, Depends("the file of `cert`"), "\"/etc/staunch/client.key\"",
            "File with the key of `cert` (PEM).";
        "server_name" => server_name: Text, Depends("the endpoint's host"), "\"carbon.example.org\"",
            "The name that the endpoint's certificate must have.",
            "It is also sent to the endpoint (SNI), unless it is an address.";
        "skip_hostname_check" => skip_hostname_check: Flag, Toml("false"), "true",
            "Accept certificates of the authorities in `ca` with any name.",
            "As in carbon-c-relay: every holder of such a certificate can then impersonate the endpoint. Certificates listed in `ca` themselves are pinned and do not need it.";
    }
}

/// An optional certificate. Its key is in the same file, unless `key` names another.
pub(crate) struct CertFile;

impl Form<Option<Identity>> for CertFile {
    fn put(identity: &mut Option<Identity>, value: &Checked, place: Place) {
        *identity = PemFile::of(value, place).map(|cert| Identity { key: cert.clone(), cert });
    }

    fn checked(identity: &Option<Identity>) -> Option<Checked> {
        identity.as_ref().and_then(|identity| identity.cert.checked())
    }
}

/// The key of such a certificate.
pub(crate) struct KeyFile;

impl Form<Option<Identity>> for KeyFile {
    fn put(identity: &mut Option<Identity>, value: &Checked, place: Place) {
        if let (Some(identity), Some(key)) = (identity, PemFile::of(value, place)) {
            identity.key = key;
        }
    }

    fn checked(identity: &Option<Identity>) -> Option<Checked> {
        identity.as_ref().filter(|identity| identity.key != identity.cert)?.key.checked()
    }
}

#[test]
fn versions_of_tls_have_the_same_words_in_files_and_in_messages() {
    use crate::options::field::Words;
    for version in TlsVersion::ALL {
        assert_eq!(<TlsVersion as Words>::word(&version), Some(version.word()));
    }
}

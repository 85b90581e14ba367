//! Options of streams that are packed or encrypted: sources of points, and outputs to carbon.

use super::row;
use crate::options::Default::{Absent, Depends, Required, Toml};
use crate::options::Section::{HttpTls, OutputGraphite, OutputTls, SourceGraphite, SourceTls};
use crate::options::{Row, Section, Type};

const PACKINGS: Type = Type::Word(&["plain", "gzip", "lz4", "snappy"]);

const VERSIONS: Type = Type::Word(&["1.2", "1.3"]);

/// Heading and purpose of the tables of either end.
pub(super) fn section_text(section: Section) -> (&'static str, &'static str) {
    match section {
        SourceTls => (
            "[sources.NAME.tls]",
            "Encrypts the connections of a source. The files are read again at each reload; connections that are open stay as they are. See [Graphite](graphite.md#tls).",
        ),
        HttpTls => (
            "[http.tls]",
            "Encrypts the connections of the HTTP server, with the files of a source's `tls`. They are read again at each reload; connections that are open stay as they are.",
        ),
        _ => (
            "[outputs.NAME.tls]",
            "Encrypts the connections to the endpoints, whose certificates are always verified. `tls = {}` verifies them by the system's authorities. The files are read again at each reload. See [Graphite](graphite.md#tls).",
        ),
    }
}

/// Of sources, in the order of the reference.
pub(super) const OF_SOURCES: &[Row] = &[
    row(
        &[SourceGraphite],
        "transport",
        PACKINGS,
        Toml("\"plain\""),
        "\"gzip\"",
        "How the bytes of its connections are packed.",
        "`gzip`: members behind each other. `lz4`: frames behind each other. `snappy`: frames, or bare blocks as carbon-c-relay sends them. Streams only. See [Graphite](graphite.md#packed-streams).",
    ),
    row(
        &[SourceGraphite],
        "tls",
        Type::Table(SourceTls),
        Absent("connections are not encrypted"),
        "{ cert = \"/etc/staunch/relay.pem\" }",
        "Encrypts its connections.",
        "Streams only.",
    ),
    row(
        &[SourceTls, HttpTls],
        "cert",
        Type::Path,
        Required,
        "\"/etc/staunch/relay.pem\"",
        "File with its certificate and the chain behind it (PEM).",
        "",
    ),
    row(
        &[SourceTls, HttpTls],
        "key",
        Type::Path,
        Depends("the file of `cert`"),
        "\"/etc/staunch/relay.key\"",
        "File with the key of `cert` (PEM).",
        "",
    ),
    row(
        &[SourceTls, HttpTls],
        "client_ca",
        Type::Path,
        Absent("clients show no certificate"),
        "\"/etc/staunch/ca.pem\"",
        "File with the authorities that a client's certificate must be of (PEM).",
        "A client without one is refused. Or a folder, as `openssl rehash` makes them; and a client's own certificate may be among them.",
    ),
    row(
        &[SourceTls, HttpTls],
        "min",
        VERSIONS,
        Toml("\"1.2\""),
        "\"1.3\"",
        "Oldest version of TLS that is spoken.",
        "",
    ),
    row(
        &[SourceTls, HttpTls],
        "max",
        VERSIONS,
        Toml("\"1.3\""),
        "\"1.2\"",
        "Newest version of TLS that is spoken.",
        "At least `min`.",
    ),
];

/// Of outputs, in the same order.
pub(super) const OF_OUTPUTS: &[Row] = &[
    row(
        &[OutputGraphite],
        "transport",
        PACKINGS,
        Toml("\"plain\""),
        "\"gzip\"",
        "How the bytes on the wire are packed.",
        "The endpoint has to be told the same. See [Graphite](graphite.md#packed-streams).",
    ),
    row(
        &[OutputGraphite],
        "tls",
        Type::Table(OutputTls),
        Absent("connections are not encrypted"),
        "{ ca = \"/etc/staunch/ca.pem\" }",
        "Encrypts the connections to its endpoints.",
        "",
    ),
    row(
        &[OutputTls],
        "ca",
        Type::Path,
        Absent("the system's authorities"),
        "\"/etc/staunch/ca.pem\"",
        "File with the authorities that the endpoint's certificate must be of (PEM).",
        "Or a folder, as `openssl rehash` makes them. The endpoint's own certificate may be among them: then its name and dates are not looked at.",
    ),
    row(
        &[OutputTls],
        "cert",
        Type::Path,
        Absent("the endpoint is shown none"),
        "\"/etc/staunch/client.pem\"",
        "File with the certificate that the endpoint is shown when it asks (PEM).",
        "",
    ),
    row(
        &[OutputTls],
        "key",
        Type::Path,
        Depends("the file of `cert`"),
        "\"/etc/staunch/client.key\"",
        "File with the key of `cert` (PEM).",
        "",
    ),
    row(
        &[OutputTls],
        "server_name",
        Type::Text,
        Depends("the endpoint's host"),
        "\"carbon.example.org\"",
        "The name that the endpoint's certificate must bear.",
        "It is also told to the endpoint (SNI), unless it is an address.",
    ),
    row(
        &[OutputTls],
        "skip_hostname_check",
        Type::Flag,
        Toml("false"),
        "true",
        "Takes a certificate of the authorities in `ca` whatever name it bears.",
        "As carbon-c-relay does: whoever has any certificate of theirs can then be this endpoint. A certificate that stands in `ca` itself is taken without it.",
    ),
];

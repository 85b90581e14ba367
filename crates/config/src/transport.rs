//! Compression and encryption of streams in plans.
//!
//! Not here: names of options (`options`), contents of the files (`tls`), compression itself (`wire::compression`).

use std::path::{Path, PathBuf};

pub use wire::compression::Compression;

use crate::diagnostic::Place;

/// A file of certificates or a key (PEM), and its place in the config. Files with equal paths are equal.
#[derive(Clone, Debug)]
pub struct PemFile {
    /// Its path.
    pub path: PathBuf,
    /// Its place in the config; `None` when there is no single one.
    pub place: Option<Place>,
    /// The index of the config file with that place: 0 for a single file.
    pub file: usize,
}

impl PemFile {
    /// The file at `path`, without a place.
    pub fn new(path: impl Into<PathBuf>) -> PemFile {
        PemFile { path: path.into(), place: None, file: 0 }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl PartialEq for PemFile {
    fn eq(&self, other: &PemFile) -> bool {
        self.path == other.path
    }
}

impl Eq for PemFile {}

/// A version of TLS. Older ones are broken and not supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// 1.2
    V1_2,
    /// 1.3
    V1_3,
}

impl TlsVersion {
    /// All versions, the oldest first.
    pub const ALL: [TlsVersion; 2] = [TlsVersion::V1_2, TlsVersion::V1_3];

    /// The value in configs.
    pub fn word(self) -> &'static str {
        match self {
            TlsVersion::V1_2 => "1.2",
            TlsVersion::V1_3 => "1.3",
        }
    }
}

/// A certificate with its chain, and its key. Both may be in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The certificate first, then the chain to an authority.
    pub cert: PemFile,
    /// Its key.
    pub key: PemFile,
}

/// TLS of the connections of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenTls {
    /// Its own certificate.
    pub identity: Identity,
    /// Authorities for client certificates. `None`: clients need none.
    pub client_ca: Option<PemFile>,
    /// Oldest supported version.
    pub min: TlsVersion,
    /// Newest supported version; not below `min`.
    pub max: TlsVersion,
}

/// TLS of the connections to an endpoint. Its certificate is always verified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointTls {
    /// Authorities for its certificate. `None`: the system's.
    pub ca: Option<PemFile>,
    /// The client certificate, for endpoints that require one.
    pub identity: Option<Identity>,
    /// The name that its certificate must have, also sent to it (SNI). `None`: the endpoint's host.
    pub server_name: Option<String>,
    /// Accept certificates of the authorities with any name.
    pub skip_hostname_check: bool,
}

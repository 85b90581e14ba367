//! How a stream is packed and encrypted, as plans say it.
//!
//! Not here: what the options are called (`options`), what is in the files (`tls`), who packs (`wire::compression`).

use std::path::{Path, PathBuf};

pub use wire::compression::Compression;

use crate::diagnostic::Place;

/// A file of certificates or a key (PEM), and where a config names it. Equal to every other of the same path.
#[derive(Clone, Debug)]
pub struct PemFile {
    /// Its path.
    pub path: PathBuf,
    /// Where it is named; none when no one file says it.
    pub place: Option<Place>,
    /// Which of the files that make up the config has that place: 0 where there is only one.
    pub file: usize,
}

impl PemFile {
    /// The file at `path`, named at no place that could be shown.
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

/// A version of TLS. Older ones are broken, and nobody here speaks them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// 1.2
    V1_2,
    /// 1.3
    V1_3,
}

impl TlsVersion {
    /// All of them, the oldest first.
    pub const ALL: [TlsVersion; 2] = [TlsVersion::V1_2, TlsVersion::V1_3];

    /// Its word in configs.
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
    /// The certificate first, then those that lead to an authority.
    pub cert: PemFile,
    /// Its key.
    pub key: PemFile,
}

/// Encryption of the connections of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenTls {
    /// What clients are shown.
    pub identity: Identity,
    /// Authorities that a client's certificate must be of. None: clients need not show any.
    pub client_ca: Option<PemFile>,
    /// Oldest version that is spoken.
    pub min: TlsVersion,
    /// Newest; not below `min`.
    pub max: TlsVersion,
}

/// Encryption of the connections to an endpoint. Its certificate is always verified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointTls {
    /// Authorities that its certificate must be of. None: the system's.
    pub ca: Option<PemFile>,
    /// What it is shown when it asks.
    pub identity: Option<Identity>,
    /// The name that its certificate must bear, and that it is told. None: the endpoint's host.
    pub server_name: Option<String>,
    /// The authorities' word is enough, whatever name its certificate bears.
    pub skip_hostname_check: bool,
}

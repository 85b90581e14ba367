//! Files of certificates and keys (PEM).

use config::plan::PemFile;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::Wrong;

/// Longest file: the system's authorities together have a quarter of a megabyte.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Every certificate in the file; at least one.
pub(super) fn certificates(file: &PemFile) -> Result<Vec<CertificateDer<'static>>, Wrong> {
    let text = read(file)?;
    let all: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(&text).collect();
    let all = all.map_err(|error| broken(file, &error))?;
    if all.is_empty() {
        let hint = "a certificate begins with -----BEGIN CERTIFICATE-----";
        return Err((Some(file.clone()), "there is no certificate in it".into(), hint));
    }
    Ok(all)
}

/// The first key in the file.
pub(super) fn key(file: &PemFile) -> Result<PrivateKeyDer<'static>, Wrong> {
    PrivateKeyDer::from_pem_slice(&read(file)?).map_err(|error| match error {
        pem::Error::NoItemsFound => {
            let hint = "write the path of the key: key = \"…\"; one that is encrypted with a password cannot be used";
            (Some(file.clone()), "there is no key in it".into(), hint)
        }
        error => broken(file, &error),
    })
}

fn read(file: &PemFile) -> Result<Vec<u8>, Wrong> {
    let cannot = |error: std::io::Error| {
        let hint =
            "the daemon's user must be able to read it; a path is seen from where the daemon is started";
        (Some(file.clone()), error.to_string(), hint)
    };
    let bytes = std::fs::metadata(&file.path).map_err(cannot)?.len();
    if bytes > FILE_BYTES_MAX {
        return Err((Some(file.clone()), format!("it has {bytes} bytes"), "this is no file of certificates"));
    }
    std::fs::read(&file.path).map_err(cannot)
}

fn broken(file: &PemFile, error: &pem::Error) -> Wrong {
    (Some(file.clone()), format!("it is no PEM: {error}"), "have the file written anew")
}

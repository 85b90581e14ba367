//! Files of certificates and keys (PEM).

use config::plan::PemFile;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A mistake in a file, or in several files together, and advice.
pub(super) type Wrong = (Option<PemFile>, String, &'static str);

/// Longest file: the system's authorities together have a quarter of a megabyte.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Every certificate in the file; at least one.
pub(super) fn certificates(file: &PemFile) -> Result<Vec<CertificateDer<'static>>, Wrong> {
    let text = read(file)?;
    let all: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(&text).collect();
    let all = all.map_err(|error| broken(file, &text, &error))?;
    if all.is_empty() {
        let hint = "a certificate begins with -----BEGIN CERTIFICATE-----";
        return Err((Some(file.clone()), "there is no certificate in it".into(), hint));
    }
    Ok(all)
}

/// Most files of a folder of authorities: a system has some hundreds.
const FOLDER_FILES_MAX: usize = 4096;

/// All certificates of authorities: of a file, or of a folder whose files have OpenSSL's names, HHHHHHHH.N. OpenSSL
/// ignores other files in it, and so does this function.
pub(super) fn authorities(file: &PemFile) -> Result<Vec<CertificateDer<'static>>, Wrong> {
    if !file.path.is_dir() {
        return certificates(file);
    }
    let entries = std::fs::read_dir(&file.path).map_err(|error| cannot_read(file, &error))?;
    let mut paths: Vec<_> =
        entries.flatten().map(|entry| entry.path()).filter(|path| is_hashed(path)).collect();
    paths.sort();
    let mut all = Vec::new();
    for path in paths.into_iter().take(FOLDER_FILES_MAX) {
        all.extend(certificates(&PemFile { path, ..file.clone() })?);
    }
    if all.is_empty() {
        let hint = "create the names with `openssl rehash FOLDER`";
        return Err((Some(file.clone()), "no file in it has a name such as 5ad8a5d6.0".into(), hint));
    }
    Ok(all)
}

fn is_hashed(path: &std::path::Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.split_once('.'));
    name.is_some_and(|(hash, number)| {
        hash.len() == 8
            && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
            && !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// The first line of an encrypted key: in PKCS #8, and in OpenSSL's older format.
const ENCRYPTED: [&[u8]; 2] = [b"BEGIN ENCRYPTED PRIVATE KEY", b"Proc-Type: 4,ENCRYPTED"];

/// The first key in the file.
pub(super) fn key(file: &PemFile) -> Result<PrivateKeyDer<'static>, Wrong> {
    let text = read(file)?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| broken(file, &text, &error))
}

fn read(file: &PemFile) -> Result<Vec<u8>, Wrong> {
    let about = std::fs::metadata(&file.path).map_err(|error| cannot_read(file, &error))?;
    if !about.is_file() && !about.is_dir() {
        // It may be endless, or have no writer.
        return Err((Some(file.clone()), "it is a pipe or a device".into(), "name a file of certificates"));
    }
    let bytes = about.len();
    if bytes > FILE_BYTES_MAX {
        return Err((Some(file.clone()), format!("it has {bytes} bytes"), "this is no file of certificates"));
    }
    std::fs::read(&file.path).map_err(|error| cannot_read(file, &error))
}

fn cannot_read(file: &PemFile, error: &std::io::Error) -> Wrong {
    let hint = "the daemon's user must be able to read it; a path is seen from where the daemon is started";
    (Some(file.clone()), error.to_string(), hint)
}

fn broken(file: &PemFile, text: &[u8], error: &pem::Error) -> Wrong {
    let (what, hint) = if ENCRYPTED.iter().any(|mark| memchr::memmem::find(text, mark).is_some()) {
        let hint = "a daemon cannot ask for it: write the key without one (openssl pkey -in KEY -out PLAIN)";
        ("its key is encrypted with a password".to_owned(), hint)
    } else if matches!(error, pem::Error::NoItemsFound) {
        let hint = "a key begins with -----BEGIN PRIVATE KEY-----; it may be in the certificate's file";
        ("there is no key in it".to_owned(), hint)
    } else {
        (format!("it is not PEM: {error}"), "create the file again")
    };
    (Some(file.clone()), what, hint)
}

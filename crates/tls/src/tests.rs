//! Which certificates are accepted: handshakes in memory, with certificates from files.

use std::path::Path;

use config::plan::Identity;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::{ClientConnection, ServerConnection};

use super::*;

/// A self-signed certificate of version 1 without a host name, as made by `openssl x509 -req -signkey`.
const OLD: &str = "\
-----BEGIN CERTIFICATE-----\n\
MIIBHDCBwwIUCwjcHOwGjmFNnPl6KVxvpPgunEswCgYIKoZIzj0EAwIwEDEOMAwG\n\
A1UEAwwFcmVsYXkwIBcNMjYxMTIyMDkxMzEwWhgPMjEyNjEwMjkwOTEzMTBaMBAx\n\
DjAMBgNVBAMMBXJlbGF5MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE+lHClEhz\n\
axiye2uyxQwGPpv/xYcoH3TOl2YqROi5AwCce1ZnIX+BKf7MxCystu/CpMLBmtGC\n\
r20mPvzG/KWp2TAKBggqhkjOPQQDAgNIADBFAiEAlaVetBmydT4WDT2mSEMLQIGv\n\
ifQUvKbpfNx0ifXpfusCIA1xXJ/5EUvGt47Tt557P6OsFSZwF+BDzyW7ppDOEDql\n\
-----END CERTIFICATE-----\n\
-----BEGIN EC PRIVATE KEY-----\n\
MHcCAQEEIMQ5gBC4jVvUiIiXxsXQZQ9TorgCjRqADaUgk/lbFujEoAoGCCqGSM49\n\
AwEHoUQDQgAE+lHClEhzaxiye2uyxQwGPpv/xYcoH3TOl2YqROi5AwCce1ZnIX+B\n\
Kf7MxCystu/CpMLBmtGCr20mPvzG/KWp2Q==\n\
-----END EC PRIVATE KEY-----\n\
";

/// `old.pem`; `ca.pem` and the certificates signed by it: `good.pem`, and the expired `past.pem`. `list/` is for
/// folders.
fn certificates(folder: &Path) {
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("it can be written");
    let key = || KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "authority");
    let ca = CertifiedIssuer::self_signed(params, key()).expect("it signs itself");
    let signed = |year| {
        let mut params = CertificateParams::new(vec!["good.test".to_owned()]).expect("a good name");
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        let key = key();
        params.signed_by(&key, &ca).expect("it signs").pem() + &key.serialize_pem()
    };
    write("old.pem", OLD);
    write("ca.pem", &ca.pem());
    write("good.pem", &signed(4000));
    write("past.pem", &signed(2001));
    write("both.pem", &(OLD.to_owned() + &ca.pem()));
    std::fs::create_dir(folder.join("list")).expect("a new folder");
    write("list/0a1b2c3d.0", &ca.pem());
    write("list/other.pem", OLD);
}

/// A server with the certificate of a file, and a client that trusts those of another.
struct Ends<'a> {
    folder: &'a Path,
    shows: &'a str,
    knows: &'a str,
    skip_hostname_check: bool,
    version: TlsVersion,
    /// The client's own certificate, and the file of the server's trusted ones.
    client: Option<(&'a str, &'a str)>,
}

impl Ends<'_> {
    fn file(&self, name: &str) -> PemFile {
        PemFile::new(self.folder.join(name))
    }

    fn identity(&self, name: &str) -> Identity {
        Identity { cert: self.file(name), key: self.file(name) }
    }

    fn server(&self) -> ServerConfig {
        let client_ca = self.client.map(|(_, known)| self.file(known));
        let identity = self.identity(self.shows);
        server(&ListenTls { identity, client_ca, min: self.version, max: self.version }).expect("good files")
    }

    fn meet(&self, server: ServerConfig) -> Result<(), String> {
        self.meet_as("good.test", server)
    }

    /// Sends a line from the client to `server`, which should have a certificate for `host`. Returns the error if that
    /// fails.
    fn meet_as(&self, host: &str, server: ServerConfig) -> Result<(), String> {
        let tls = EndpointTls {
            ca: Some(self.file(self.knows)),
            identity: self.client.map(|(own, _)| self.identity(own)),
            server_name: None,
            skip_hostname_check: self.skip_hostname_check,
        };
        let to = Endpoint { host: host.into(), port: 1 };
        let known = client(&tls, &to).expect("good files");
        let mut near = ClientConnection::new(known.config, known.name).expect("a good name");
        let mut far = ServerConnection::new(Arc::new(server)).expect("a good config");
        std::io::Write::write_all(&mut near.writer(), b"a 1 2\n").expect("memory");
        let mut got = Vec::new();
        while near.wants_write() || far.wants_write() {
            let mut wire = Vec::new();
            near.write_tls(&mut wire).expect("memory");
            far.read_tls(&mut &wire[..]).expect("memory");
            far.process_new_packets().map_err(|error| format!("server: {error}"))?;
            let _waits = std::io::Read::read_to_end(&mut far.reader(), &mut got);
            wire.clear();
            far.write_tls(&mut wire).expect("memory");
            near.read_tls(&mut &wire[..]).expect("memory");
            near.process_new_packets().map_err(|error| format!("client: {error}"))?;
        }
        assert_eq!(got, b"a 1 2\n");
        Ok(())
    }
}

#[test]
fn only_pinned_and_signed_certificates_are_accepted() {
    let folder = tempfile::TempDir::new().expect("a folder");
    certificates(folder.path());
    // Server's certificate; trusted file; skip the name check; the client's certificate and the server's trusted file;
    // a part of the error.
    type Row<'a> = (&'a str, &'a str, bool, Option<(&'a str, &'a str)>, &'a str);
    let table: &[Row<'_>] = &[
        ("good.pem", "ca.pem", false, None, ""),
        ("good.pem", "both.pem", false, None, ""),
        ("good.pem", "old.pem", true, None, "client: invalid peer certificate: UnknownIssuer"),
        ("old.pem", "old.pem", false, None, ""),
        ("old.pem", "both.pem", false, None, ""),
        ("old.pem", "ca.pem", true, None, "client: invalid peer certificate"),
        ("past.pem", "ca.pem", true, None, "client: invalid peer certificate: certificate expired"),
        ("past.pem", "past.pem", false, None, ""),
        ("good.pem", "list", false, None, ""),
        ("old.pem", "list", true, None, "client: invalid peer certificate"),
        ("good.pem", "ca.pem", false, Some(("good.pem", "ca.pem")), ""),
        ("old.pem", "both.pem", false, Some(("old.pem", "both.pem")), ""),
        ("old.pem", "both.pem", false, Some(("old.pem", "ca.pem")), "server: invalid peer certificate"),
        ("good.pem", "ca.pem", false, Some(("past.pem", "ca.pem")), "server: invalid peer certificate"),
    ];
    for version in TlsVersion::ALL {
        for (shows, knows, skip_hostname_check, client, refused) in table {
            let ends = Ends {
                folder: folder.path(),
                shows,
                knows,
                skip_hostname_check: *skip_hostname_check,
                version,
                client: *client,
            };
            let why = ends.meet(ends.server()).err().unwrap_or_default();
            let fits = if refused.is_empty() { why.is_empty() } else { why.starts_with(refused) };
            assert!(fits, "{shows} to {knows}, {client:?}, {version:?}: {why:?}");
        }
    }
}

#[test]
fn another_host_name_is_accepted_when_the_check_is_skipped() {
    let folder = tempfile::TempDir::new().expect("a folder");
    certificates(folder.path());
    for version in TlsVersion::ALL {
        let meet = |skip_hostname_check| {
            let (shows, knows) = ("good.pem", "ca.pem");
            let ends =
                Ends { folder: folder.path(), shows, knows, skip_hostname_check, version, client: None };
            ends.meet_as("10.0.0.1", ends.server())
        };
        assert_eq!(meet(true), Ok(()));
        assert!(meet(false).is_err_and(|why| why.contains("not valid for name")));
    }
}

#[test]
fn a_certificate_with_another_key_is_rejected() {
    let folder = tempfile::TempDir::new().expect("a folder");
    certificates(folder.path());
    let path = |name: &str| PemFile::new(folder.path().join(name));
    for version in TlsVersion::ALL {
        for (shows, other) in [("old.pem", "good.pem"), ("good.pem", "past.pem")] {
            let ends = Ends {
                folder: folder.path(),
                shows,
                knows: shows,
                skip_hostname_check: true,
                version,
                client: None,
            };
            assert_eq!(ends.meet(ends.server()), Ok(()));
            let key = files::key(&path(other)).expect("it has one");
            let key = provider().key_provider.load_private_key(key).expect("a good key");
            let stolen = CertifiedKey::new(files::certificates(&path(shows)).expect("it has one"), key);
            let thief = ServerConfig::builder_with_provider(provider())
                .with_protocol_versions(&versions(version, version))
                .expect("known versions")
                .with_no_client_auth()
                .with_cert_resolver(Arc::new(SingleCertAndKey::from(stolen)));
            let why = ends.meet(thief).expect_err("it has not the key");
            assert!(why.contains("invalid peer certificate: BadSignature"), "{shows} {version:?}: {why}");
        }
    }
}

//! Which certificates are accepted: those signed by an authority, and those in the list itself (pinned).
//!
//! Relays often have one self-signed certificate that is in the `ca` of their peers. The certificate made by
//! carbon-c-relay's instructions is of version 1 and has no name. Possession of the key of a listed certificate is all
//! that a chain could prove, so its names and dates are not checked (see RFC 7671 §5.1). Not here: files (`files`),
//! options (`config`).
//! Invariant: an accepted peer has proved possession of a key that is listed or that an authority has signed.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{
    WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
    verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ParsedCertificate, VerifierBuilderError, WebPkiClientVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerMisbehaved, RootCertStore,
    SignatureScheme,
};

/// Authorities and pinned certificates.
#[derive(Debug)]
pub(super) struct Trust {
    roots: Arc<RootCertStore>,
    listed: Vec<Listed>,
}

/// A pinned certificate and its key.
#[derive(Debug)]
struct Listed {
    cert: CertificateDer<'static>,
    key: SubjectPublicKeyInfoDer<'static>,
}

/// The public key of a certificate of any version; `None` for any other data.
pub(super) fn public_key(cert: &CertificateDer<'_>) -> Option<SubjectPublicKeyInfoDer<'static>> {
    let mut one = RootCertStore::empty();
    one.add(cert.clone()).ok()?;
    Some(key_of(&one))
}

/// The key of the last added authority, which is stored without its header.
fn key_of(roots: &RootCertStore) -> SubjectPublicKeyInfoDer<'static> {
    let inner = roots.roots.last().map(|anchor| anchor.subject_public_key_info.as_ref()).unwrap_or_default();
    let mut key = vec![SEQUENCE];
    match inner.len() {
        len @ 0..=0x7f => key.push(len as u8),
        len => {
            let len = (len as u32).to_be_bytes();
            let used = &len[len.iter().take_while(|byte| **byte == 0).count()..];
            key.push(0x80 | used.len() as u8);
            key.extend_from_slice(used);
        }
    }
    key.extend_from_slice(inner);
    SubjectPublicKeyInfoDer::from(key)
}

impl Trust {
    /// The system's authorities: none of them is pinned.
    pub(super) fn of_authorities(roots: RootCertStore) -> Trust {
        Trust { roots: Arc::new(roots), listed: Vec::new() }
    }

    /// The certificates of a file; `None` when none of them can be used.
    pub(super) fn of_file(certificates: Vec<CertificateDer<'static>>) -> Option<Trust> {
        let mut roots = RootCertStore::empty();
        let mut listed = Vec::new();
        for cert in certificates {
            if roots.add(cert.clone()).is_ok() {
                listed.push(Listed { cert, key: key_of(&roots) });
            }
        }
        (!listed.is_empty()).then(|| Trust { roots: Arc::new(roots), listed })
    }

    /// The key of a pinned certificate.
    fn known(&self, cert: &CertificateDer<'_>) -> Option<&SubjectPublicKeyInfoDer<'static>> {
        self.listed.iter().find(|listed| listed.cert == *cert).map(|listed| &listed.key)
    }

    fn signed_1_2(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match self.known(cert) {
            Some(key) => signed_with(key, message, signed),
            None => verify_tls12_signature(message, cert, signed, &algorithms()),
        }
    }

    fn signed_1_3(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match self.known(cert) {
            Some(key) => verify_tls13_signature_with_raw_key(message, key, signed, &algorithms()),
            None => verify_tls13_signature(message, cert, signed, &algorithms()),
        }
    }
}

fn algorithms() -> WebPkiSupportedAlgorithms {
    ring::default_provider().signature_verification_algorithms
}

/// Like `verify_tls12_signature`, for a key without a certificate.
fn signed_with(
    key: &SubjectPublicKeyInfoDer<'_>,
    message: &[u8],
    signed: &DigitallySignedStruct,
) -> Result<HandshakeSignatureValid, Error> {
    let (algorithm, bits) = parts(key).ok_or(CertificateError::BadEncoding)?;
    let algorithms = algorithms();
    let named = algorithms.mapping.iter().find(|(scheme, _)| *scheme == signed.scheme);
    let (_, named) = named.ok_or(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme)?;
    let fits = named.iter().filter(|known| known.public_key_alg_id().as_ref() == algorithm);
    for known in fits {
        if known.verify_signature(bits, message, signed.signature()).is_ok() {
            return Ok(HandshakeSignatureValid::assertion());
        }
    }
    Err(CertificateError::BadSignature.into())
}

const SEQUENCE: u8 = 0x30;
const BIT_STRING: u8 = 0x03;

/// A public key's algorithm, and its bits.
fn parts<'a>(key: &'a SubjectPublicKeyInfoDer<'_>) -> Option<(&'a [u8], &'a [u8])> {
    let (inner, []) = element(SEQUENCE, key.as_ref())? else { return None };
    let (algorithm, rest) = element(SEQUENCE, inner)?;
    // The first byte is the number of unused bits in the last byte.
    let ([0, bits @ ..], []) = element(BIT_STRING, rest)? else { return None };
    Some((algorithm, bits))
}

/// The contents of a DER element, and the rest after it.
fn element(tag: u8, der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&[found, len], rest) = der.split_first_chunk::<2>()?;
    let (len, rest) = match len {
        0..=0x7f => (usize::from(len), rest),
        0x81..=0x84 => {
            let (len, rest) = rest.split_at_checked(usize::from(len & 0x7f))?;
            (len.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    (found == tag).then(|| rest.split_at_checked(len)).flatten()
}

/// Verifies an endpoint.
#[derive(Debug)]
pub(super) struct OfEndpoint {
    pub trust: Trust,
    /// Accept certificates signed by the authorities with any name.
    pub skip_hostname_check: bool,
}

impl ServerCertVerifier for OfEndpoint {
    fn verify_server_cert(
        &self,
        cert: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.trust.known(cert).is_none() {
            let cert = ParsedCertificate::try_from(cert)?;
            let all = algorithms().all;
            verify_server_cert_signed_by_trust_anchor(&cert, &self.trust.roots, chain, now, all)?;
            if !self.skip_hostname_check {
                verify_server_name(&cert, name)?;
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.trust.signed_1_2(message, cert, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.trust.signed_1_3(message, cert, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        algorithms().supported_schemes()
    }
}

/// Verifies clients, which must all present a certificate.
#[derive(Debug)]
pub(super) struct OfClients {
    trust: Trust,
    chains: Arc<dyn ClientCertVerifier>,
}

impl OfClients {
    pub(super) fn new(trust: Trust) -> Result<OfClients, VerifierBuilderError> {
        let provider = Arc::new(ring::default_provider());
        let chains =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(&trust.roots), provider).build()?;
        Ok(OfClients { trust, chains })
    }
}

impl ClientCertVerifier for OfClients {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.chains.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        cert: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        match self.trust.known(cert) {
            Some(_key) => Ok(ClientCertVerified::assertion()),
            None => self.chains.verify_client_cert(cert, chain, now),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.trust.signed_1_2(message, cert, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.trust.signed_1_3(message, cert, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        algorithms().supported_schemes()
    }
}

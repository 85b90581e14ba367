//! TLS and the API token of a plan: every file is read and checked before a listener or an output uses it.
//!
//! `staunch check` calls [`mistakes`]; every start and reload calls [`Certificates::load`]. A reload reads the files again, even
//! if the config did not change: open connections keep their certificates, new connections get the new ones.
//! Not here: connections (`staunch::sources::stream::wrapping`, `staunch::outputs::stream::wrapping`), options (`config`).
//! Which certificates are trusted is in `trust`.
//! Invariants: the certificate of an endpoint is always verified; no version older than TLS 1.2 is used.

mod dates;
mod files;
#[cfg(test)]
mod tests;
pub mod token;
mod trust;
pub mod words;

use std::path::Path;
use std::sync::Arc;

use config::diagnostic::{Code, Diagnostic};
use config::plan::{Endpoint, EndpointTls, HttpPlan, Link, ListenTls, PemFile, Plan, StreamLink, TlsVersion};
use model::{OutputId, SECOND_NS, SourceId};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::ServerName;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion, version};
use sys::clock::Clock;

use self::token::Token;

pub use self::dates::{Expiry, Whose};
use self::files::Wrong;
use self::trust::{OfClients, OfEndpoint, Trust};

/// The TLS settings for connections to an endpoint.
#[derive(Clone, Debug)]
pub struct ForEndpoint {
    /// The client's configuration.
    pub config: Arc<ClientConfig>,
    /// The name that the endpoint's certificate must have.
    pub name: ServerName<'static>,
}

/// The TLS settings of all parts of a plan, by id.
#[derive(Debug, Default)]
pub struct Certificates {
    sources: Vec<Option<Arc<ServerConfig>>>,
    outputs: Vec<Option<ForEndpoint>>,
    http: Option<Arc<ServerConfig>>,
    token: Option<Token>,
    expiries: Vec<Expiry>,
}

/// A mistake in the certificates of a source or output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// `source`, or `output`, and its name; or the option of `http`.
    whose: String,
    /// The unusable option, or the file.
    subject: String,
    /// The file, if the mistake is in a file.
    file: Option<PemFile>,
    what: String,
    hint: &'static str,
}

impl Mistake {
    fn diagnostic(&self) -> Diagnostic {
        let place = self.file.as_ref().and_then(|file| file.place);
        let Some(place) = place else {
            return Diagnostic::error(Code::BadValue, self.to_string()).hint(self.hint);
        };
        let message = format!("{} cannot be used", self.subject);
        Diagnostic::error(Code::BadValue, message).at(place).label(self.what.clone()).hint(self.hint)
    }
}

impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{}: {}: {}", self.whose, file.path.display(), self.what),
            None => write!(f, "{}: {}", self.whose, self.what),
        }
    }
}

/// Mistakes and warnings about the files that a plan names, with the index of the config file that names them. A file
/// that several sources or outputs use is reported once.
pub fn mistakes(plan: &Plan) -> Vec<(usize, Diagnostic)> {
    let wrong = Certificates::load(plan, None).err().unwrap_or_default();
    let is_same = |one: &Mistake, other: &Mistake| {
        let place = |mistake: &Mistake| mistake.file.as_ref().map(|file| (file.file, file.place));
        one.file == other.file && place(one) == place(other) && one.what == other.what
    };
    let first =
        wrong.iter().enumerate().filter(|(at, one)| !wrong[..*at].iter().any(|other| is_same(one, other)));
    let mistakes = first.map(|(_, one)| (one.file.as_ref().map_or(0, |file| file.file), one.diagnostic()));
    mistakes.chain(dates::warnings(plan, Clock::now().wall_ns / SECOND_NS)).chain(open_token(plan)).collect()
}

/// A warning when other users can read the token.
fn open_token(plan: &Plan) -> Option<(usize, Diagnostic)> {
    let file = plan.http.and(plan.http_server.token_file.as_ref())?;
    if !token::is_open_to_others(&file.path) {
        return None;
    }
    let path = file.path.display();
    let warning =
        Diagnostic::warning(Code::TokenOpen, "others than its owner can read the file of the token");
    let warning = warning.label("not of mode 600").hint(format!("chmod 600 {path}"));
    Some((file.file, file.place.map_or(warning.clone(), |place| warning.at(place))))
}

impl Certificates {
    /// Reads all files that `plan` names. An output that a reload has removed keeps its settings from `before`.
    ///
    /// # Errors
    /// Every mistake.
    pub fn load(plan: &Plan, before: Option<&Certificates>) -> Result<Certificates, Vec<Mistake>> {
        let mut wrong = Vec::new();
        let mut note = |kind: &str, name: &str, (file, what, hint): Wrong| {
            let whose = format!("{kind} `{name}`");
            wrong.push(Mistake { subject: format!("a file of {whose}"), whose, file, what, hint });
        };
        let mut loaded = Certificates::default();
        for source in &plan.sources {
            let tls = source.tls.as_deref().filter(|_| !source.listen.is_empty());
            let config = tls.map(server).transpose();
            let config = config.map_err(|error| note("source", &source.name, error));
            loaded.sources.push(config.ok().flatten().map(Arc::new));
        }
        for (at, output) in plan.outputs.iter().enumerate() {
            let link = output.kind.facts().link;
            let Some((to, tls)) = encrypted(&link) else {
                loaded.outputs.push(None);
                continue;
            };
            let known = || before.and_then(|before| before.of_output(OutputId(at as u16)));
            loaded.outputs.push(match client(tls, to) {
                Ok(config) => Some(config),
                // A reload has removed it.
                Err(_gone) if output.from.is_empty() => known(),
                Err(error) => {
                    note("output", &output.name, error);
                    None
                }
            });
        }
        if plan.http.is_some() {
            loaded.read_http(&plan.http_server, &mut wrong);
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        loaded.expiries = dates::expiries(plan);
        Ok(loaded)
    }

    fn read_http(&mut self, plan: &HttpPlan, wrong: &mut Vec<Mistake>) {
        let mistake = |option: String, (file, what, hint): Wrong| Mistake {
            whose: option.clone(),
            subject: option,
            file,
            what,
            hint,
        };
        match plan.tls.as_deref().map(server).transpose() {
            Ok(config) => {
                self.http = config.map(|mut config| {
                    config.alpn_protocols = vec![b"http/1.1".to_vec()];
                    Arc::new(config)
                });
            }
            Err(error) => {
                let of_key = plan.tls.as_deref().is_some_and(|tls| {
                    tls.identity.key != tls.identity.cert && error.0.as_ref() == Some(&tls.identity.key)
                });
                let option = if of_key { "`http.tls.key`" } else { "`http.tls.cert`" };
                wrong.push(mistake(option.to_owned(), error));
            }
        }
        let Some(file) = &plan.token_file else { return };
        match Token::read(&file.path) {
            Ok(token) => self.token = Some(token),
            Err(error) => {
                let wrong_token = (Some(file.clone()), error.to_string(), error.hint());
                wrong.push(mistake("`http.token_file`".to_owned(), wrong_token));
            }
        }
    }

    /// When our certificates expire, in the order of the plan.
    pub fn expiries(&self) -> &[Expiry] {
        &self.expiries
    }

    /// For connections to the HTTP server; `None` without TLS.
    pub fn of_http(&self) -> Option<Arc<ServerConfig>> {
        self.http.clone()
    }

    /// The token for requests to the HTTP server; `None` without one.
    pub fn token(&self) -> Option<&Token> {
        self.token.as_ref()
    }

    /// For connections to a source; `None` without TLS.
    pub fn of_source(&self, id: SourceId) -> Option<Arc<ServerConfig>> {
        self.sources.get(id.index()).cloned().flatten()
    }

    /// For connections of an output; `None` without TLS.
    pub fn of_output(&self, id: OutputId) -> Option<ForEndpoint> {
        self.outputs.get(id.index()).cloned().flatten()
    }
}

/// All mistakes as one text.
pub fn joined(wrong: &[Mistake]) -> String {
    wrong.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn versions(min: TlsVersion, max: TlsVersion) -> Vec<&'static SupportedProtocolVersion> {
    let all = [(TlsVersion::V1_2, &version::TLS12), (TlsVersion::V1_3, &version::TLS13)];
    all.into_iter().filter(|(version, _)| (min..=max).contains(version)).map(|(_, known)| known).collect()
}

fn server(tls: &ListenTls) -> Result<ServerConfig, Wrong> {
    let ours = identity(&tls.identity)?;
    let builder = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&versions(tls.min, tls.max))
        .map_err(|error| (None, error.to_string(), "write `min` and `max` as \"1.2\" or \"1.3\""))?;
    let builder = match &tls.client_ca {
        None => builder.with_no_client_auth(),
        Some(file) => {
            let bad = |error: rustls::server::VerifierBuilderError| {
                (Some(file.clone()), error.to_string(), AUTHORITIES)
            };
            let clients = OfClients::new(authorities(file)?).map_err(bad)?;
            builder.with_client_cert_verifier(Arc::new(clients))
        }
    };
    Ok(builder.with_cert_resolver(Arc::new(ours)))
}

/// The endpoint of an output whose connections are encrypted, and how.
fn encrypted<'a>(link: &'a Link<'a>) -> Option<(&'a Endpoint, &'a EndpointTls)> {
    match link {
        Link::Stream(StreamLink { to, tls, .. }) => Some((to.host()?, (*tls)?)),
        Link::Requests { to, form, .. } => Some((to.host()?, form.tls()?)),
        Link::Datagrams { .. } | Link::File { .. } | Link::Store(_) | Link::Stdout | Link::Stderr => None,
    }
}

fn client(tls: &EndpointTls, to: &Endpoint) -> Result<ForEndpoint, Wrong> {
    let trust = match &tls.ca {
        Some(file) => authorities(file)?,
        None => of_system()?,
    };
    let builder = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&versions(TlsVersion::V1_2, TlsVersion::V1_3))
        .map_err(|error| (None, error.to_string(), "this is a mistake of ours: report it"))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(OfEndpoint {
            trust,
            skip_hostname_check: tls.skip_hostname_check,
        }));
    let config = match &tls.identity {
        None => builder.with_no_client_auth(),
        Some(both) => builder.with_client_cert_resolver(Arc::new(identity(both)?)),
    };
    let name = tls.server_name.as_deref().unwrap_or(&to.host);
    // A name may end with a dot; a certificate's never does.
    let name = ServerName::try_from(name.trim_end_matches('.').to_owned()).map_err(|_error| {
        let hint = "write the name that the endpoint's certificate bears: server_name = \"…\"";
        (None, format!("no certificate can be of `{name}`"), hint)
    })?;
    Ok(ForEndpoint { config: Arc::new(config), name })
}

/// For requests to a daemon's HTTP server at `host`. Without `ca`, the system's authorities are trusted.
///
/// # Errors
/// A short message.
pub fn for_question(ca: Option<&Path>, host: &str, skip_hostname_check: bool) -> Result<ForEndpoint, String> {
    let ca = ca.map(|path| PemFile { path: path.to_owned(), place: None, file: 0 });
    let tls = EndpointTls { ca, identity: None, server_name: None, skip_hostname_check };
    let wrong = |(file, what, _hint): Wrong| match file {
        Some(file) => format!("{}: {what}", file.path.display()),
        None => format!("{what}: set the CA's file with --ca FILE"),
    };
    // A certificate has no port.
    client(&tls, &Endpoint { host: host.to_owned(), port: 0 }).map_err(wrong)
}

const AUTHORITIES: &str =
    "write the path of a file with the authorities' certificates (PEM), or of a folder of such";

/// A chain and its key. Certificates of version 1 are allowed: the peer decides about them.
fn identity(both: &config::plan::Identity) -> Result<SingleCertAndKey, Wrong> {
    let chain = files::certificates(&both.cert)?;
    let key = provider().key_provider.load_private_key(files::key(&both.key)?).map_err(|error| {
        let hint = "have a key made that is of RSA (2048 bits or more), ECDSA (P-256, P-384) or Ed25519";
        (Some(both.key.clone()), format!("its key cannot be used: {error}"), hint)
    })?;
    let Some(of_cert) = chain.first().and_then(trust::public_key) else {
        let what = "its first certificate cannot be read".to_owned();
        return Err((Some(both.cert.clone()), what, "create the certificate again"));
    };
    if key.public_key().is_some_and(|of_key| of_key != of_cert) {
        let hint =
            "write the key that the certificate was made with; in the chain its own certificate comes first";
        return Err((Some(both.key.clone()), "the key is not that of the certificate".into(), hint));
    }
    Ok(SingleCertAndKey::from(CertifiedKey::new(chain, key)))
}

fn authorities(file: &PemFile) -> Result<Trust, Wrong> {
    Trust::of_file(files::authorities(file)?).ok_or_else(|| {
        (Some(file.clone()), "none of its certificates can be an authority's".to_owned(), AUTHORITIES)
    })
}

fn of_system() -> Result<Trust, Wrong> {
    let mut roots = RootCertStore::empty();
    let (added, _refused) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if added == 0 {
        let hint = "name their file: tls = { ca = \"…\" }; or install the system's (ca-certificates)";
        return Err((None, "this system knows no authorities".into(), hint));
    }
    Ok(Trust::of_authorities(roots))
}

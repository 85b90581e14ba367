//! A Riemann config that was evaluated, as a plan: its servers are sources, its streams a transform, its outputs outputs.
//!
//! Not here: evaluating it (`config::streams`), and reading its files (`staunch`).

mod parts;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use config::diagnostic::{Code, Diagnostic};
use config::plan::{
    Feed, Identity, Listen, ListenTls, PemFile, Plan, RiemannEncoding, RiemannSource, SourceKind, SourcePlan,
    StreamsTransform, TlsVersion, TransformKind, TransformPlan,
};
use config::streams::{Evaluated, attach, place_in};
use model::{SourceId, TransformId};
use streams::position::Position;
use streams::riemann::declared::{Placed, Server, TlsFiles, Transport};

pub use self::parts::parts_text;

/// The name of the transform.
const STREAMS: &str = "streams";

/// The plan of a config. `file` is its path; `resolve` gives the address of a host name.
///
/// Returns no plan if there are mistakes, and the diagnostics, each with the name of its file.
pub fn riemann(
    file: PathBuf,
    evaluated: &Evaluated,
    resolve: &dyn Fn(&str) -> Result<IpAddr, String>,
) -> (Option<Plan>, Vec<(String, Diagnostic)>) {
    let mut said = evaluated.said.clone();
    let Some(declared) = &evaluated.declared else { return (None, said) };
    let mut import = Import { evaluated, resolve, plan: Plan::default(), wrong: Vec::new() };
    for server in &declared.servers {
        import.server(server);
    }
    let Import { mut plan, wrong, .. } = import;
    said.extend(wrong);
    if plan.sources.is_empty() {
        let hint = "add (tcp-server) and (udp-server): both listen on port 5555";
        let error = Diagnostic::error(Code::RiemannConfig, "no server of the config takes events").hint(hint);
        said.push((evaluated.files.main.clone(), error));
        return (None, said);
    }
    let from = (0..plan.sources.len()).map(|at| Feed::Source(SourceId(at as u16))).collect();
    let kind = TransformKind::Streams(Box::new(StreamsTransform::of_file(file)));
    plan.transforms.push(TransformPlan { name: STREAMS.to_owned(), kind, from });
    said.extend(attach(&mut plan, TransformId(0), evaluated));
    let is_right = !said.iter().any(|(_, one)| config::diagnostic::has_errors(std::slice::from_ref(one)));
    (Some(plan).filter(|_| is_right), said)
}

struct Import<'a> {
    evaluated: &'a Evaluated,
    resolve: &'a dyn Fn(&str) -> Result<IpAddr, String>,
    plan: Plan,
    wrong: Vec<(String, Diagnostic)>,
}

impl Import<'_> {
    fn say(&mut self, at: &Position, diagnostic: Diagnostic) {
        self.wrong.push(place_in(&self.evaluated.files, at, diagnostic));
    }

    fn server(&mut self, server: &Placed<Server>) {
        let Placed { what, at } = server;
        let ip = match (self.resolve)(&what.listen().host) {
            Ok(ip) => ip,
            Err(why) => {
                let text = format!("the host of the {} has no address: {why}", what.function());
                return self.say(at, Diagnostic::error(Code::RiemannConfig, text));
            }
        };
        let address = SocketAddr::new(ip, what.listen().port);
        match what {
            Server::Tcp { tls: Some(tls), .. } => {
                let name = format!("riemann-tls-{}", address.port());
                self.source(name, vec![Listen::Tcp(address)], Some(tls));
            }
            Server::Tcp { tls: None, .. } => self.plain(Listen::Tcp(address)),
            Server::Udp { .. } => self.plain(Listen::Udp(address)),
            Server::WebSocket { allowed_origins, .. } => self.web("ws", address, allowed_origins),
            Server::Sse { allowed_origins, .. } => self.web("sse", address, allowed_origins),
            Server::Graphite { transport, tags, .. } => {
                let (word, listen) = match transport {
                    Transport::Tcp => ("tcp", Listen::Tcp(address)),
                    Transport::Udp => ("udp", Listen::Udp(address)),
                };
                let name = format!("riemann-graphite-{word}-{}", address.port());
                self.lines(name, listen, RiemannEncoding::Graphite, *tags);
            }
            Server::Opentsdb { .. } => {
                let name = format!("riemann-opentsdb-{}", address.port());
                self.lines(name, Listen::Tcp(address), RiemannEncoding::Opentsdb, false);
            }
        }
    }

    /// A source of lines that become events.
    fn lines(&mut self, name: String, listen: Listen, encoding: RiemannEncoding, tags: bool) {
        self.source(name, vec![listen], None);
        let Some(source) = self.plan.sources.last_mut() else { return };
        source.kind = SourceKind::Riemann(RiemannSource { encoding, tags, ..RiemannSource::default() });
    }

    /// A source of its own for each: they differ in who may subscribe.
    fn web(&mut self, what: &str, address: SocketAddr, allowed_origins: &[impl AsRef<str>]) {
        self.source(format!("riemann-{what}-{}", address.port()), vec![Listen::Tcp(address)], None);
        let Some(source) = self.plan.sources.last_mut() else { return };
        let allowed_origins =
            allowed_origins.iter().map(|origin| origin.as_ref().to_ascii_lowercase()).collect();
        let encoding = RiemannEncoding::Http;
        source.kind =
            SourceKind::Riemann(RiemannSource { encoding, allowed_origins, ..RiemannSource::default() });
    }

    /// Servers without TLS are listeners of one source.
    fn plain(&mut self, listen: Listen) {
        match self.plan.sources.iter_mut().find(|source| source.name == "riemann") {
            Some(source) => source.listen.push(listen),
            None => self.source("riemann".to_owned(), vec![listen], None),
        }
    }

    fn source(&mut self, name: String, listen: Vec<Listen>, tls: Option<&TlsFiles>) {
        // Servers with one port have different addresses.
        let is_known = |name: &str| self.plan.sources.iter().any(|source| source.name == name);
        let mut others = (2..).map(|number| format!("{name}-{number}"));
        let name = match is_known(&name) {
            true => others.find(|name| !is_known(name)).expect("there are more numbers than sources"),
            false => name,
        };
        // Riemann keeps silent connections for ever.
        let mut source = SourcePlan { listen, idle_timeout_ms: 0, ..config::native::riemann_source(&name) };
        source.tls = tls.map(|tls| {
            let pem = |path: &str| PemFile::new(PathBuf::from(path));
            Box::new(ListenTls {
                identity: Identity { cert: pem(&tls.cert), key: pem(&tls.key) },
                client_ca: Some(pem(&tls.ca_cert)),
                min: TlsVersion::V1_2,
                max: TlsVersion::V1_3,
            })
        });
        self.plan.sources.push(source);
    }
}

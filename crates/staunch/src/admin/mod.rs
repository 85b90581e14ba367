//! The daemon's own ports: HTTP for people and programs, the StatsD management port and CarbonLink for existing tools.

mod accept;
pub mod accounts;
mod bodies;
mod carbonlink;
pub mod clients;
mod graphite;
pub(crate) mod guard;
pub mod http;
pub mod management;
pub mod metrics;
mod origins;
pub mod port_kind;
pub mod queues;
mod refusal;
pub mod relay;
mod reload;
pub mod series;
pub(crate) mod server;
pub mod stores;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use config::plan::{CarbonLinkPlan, ManagementPlan, Plan};
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::port_kind::PortKind;
use crate::carbon_c_relay::log_targets::NOT_AN_ERROR;
use crate::daemon::hot_restart::Inheritance;
use crate::daemon::shared::Shared;
use crate::daemon::shared::bind::listen_tcp;

/// The option of the command line that moves HTTP.
#[derive(Clone, Copy, Debug)]
pub struct HttpOption {
    /// Its name. A fan-out uses the term of other proxies.
    pub name: &'static str,
    /// The address is only a default: if it is in use, the daemon continues without HTTP.
    pub is_unset: bool,
}

impl HttpOption {
    /// `--http` of most commands.
    pub fn http(is_unset: bool) -> HttpOption {
        HttpOption { name: "--http", is_unset }
    }
}

/// The open ports of a plan, before they are served.
#[derive(Debug, Default)]
pub struct Ports {
    http: Option<TcpListener>,
    management: Vec<(TcpListener, ManagementPlan)>,
    carbonlink: Option<(TcpListener, CarbonLinkPlan)>,
    /// The actual address of HTTP.
    pub http_at: Option<SocketAddr>,
    /// Why HTTP is not open although the plan has it, and what opens it. For the banner.
    pub http_closed: Option<String>,
    /// The actual addresses of the management ports.
    pub management_at: Vec<SocketAddr>,
    /// The actual address of CarbonLink.
    pub carbonlink_at: Option<SocketAddr>,
}

/// The served ports of a plan.
#[derive(Debug, Default)]
pub struct ServedPorts {
    /// Each with its index in the plan, for another process.
    pub listeners: Vec<(PortKind, SocketAddr, TcpListener)>,
    /// They end with the daemon, when no request is open any more.
    pub tasks: JoinSet<()>,
}

/// Opens the ports of `plan`. Also returns one sentence for each port that could not be opened. With the built-in plan,
/// and for an HTTP address that is only a default, the sentence is logged as a warning. Sockets from another process
/// are used instead of opened.
pub fn open(plan: &Plan, option: HttpOption, mut from: Option<&mut Inheritance>) -> (Ports, Vec<String>) {
    let mut taken = |kind, address| from.as_deref_mut().and_then(|from| from.take_port(kind, address));
    let mut ports = Ports::default();
    let mut failures = Vec::new();
    if let Some(address) = plan.http {
        ports.http = taken(PortKind::Http, address)
            .or_else(|| open_http(address, option, &mut failures, &mut ports.http_closed));
        ports.http_at = ports.http.as_ref().map(|listener| really_at(listener, address));
    }
    for management in &plan.management {
        let listener = taken(PortKind::Management, management.listen)
            .or_else(|| open_one("management", management.listen, plan.built_in, &mut failures));
        if let Some(listener) = listener {
            ports.management_at.push(really_at(&listener, management.listen));
            ports.management.push((listener, management.clone()));
        }
    }
    if let Some(plan) = plan.carbonlink {
        let listener = taken(PortKind::CarbonLink, plan.listen)
            .or_else(|| open_one("carbonlink", plan.listen, false, &mut failures));
        ports.carbonlink_at = listener.as_ref().map(|listener| really_at(listener, plan.listen));
        ports.carbonlink = listener.map(|listener| (listener, plan));
    }
    (ports, failures)
}

impl Ports {
    /// Serves them until `stop` turns true.
    ///
    /// # Errors
    /// When the runtime cannot register a socket.
    pub fn serve(
        self,
        plan: &Plan,
        shared: &Arc<Shared>,
        stop: &watch::Receiver<bool>,
    ) -> io::Result<ServedPorts> {
        let mut served = ServedPorts::default();
        if let (Some(listener), Some(configured)) = (self.http, plan.http) {
            served.listeners.push((PortKind::Http, configured, listener.try_clone()?));
            let ended = server::start(listener, http::Api::new(shared), stop.clone())?;
            served.tasks.spawn(async move {
                // A thread that panicked has logged it.
                let _panicked = ended.await;
            });
        }
        for (listener, plan) in self.management {
            served.listeners.push((PortKind::Management, plan.listen, listener.try_clone()?));
            let listener = tokio::net::TcpListener::from_std(listener)?;
            served.tasks.spawn(management::serve(listener, plan, Arc::clone(shared), stop.clone()));
        }
        if let Some((listener, plan)) = self.carbonlink {
            served.listeners.push((PortKind::CarbonLink, plan.listen, listener.try_clone()?));
            let listener = tokio::net::TcpListener::from_std(listener)?;
            served.tasks.spawn(carbonlink::serve(listener, plan, Arc::clone(shared), stop.clone()));
        }
        Ok(served)
    }
}

/// The actual address: port 0 becomes a free port.
fn really_at(listener: &TcpListener, configured: SocketAddr) -> SocketAddr {
    listener.local_addr().unwrap_or(configured)
}

/// Opens HTTP. `closed` says why it is not open, if the daemon continues without it.
fn open_http(
    address: SocketAddr,
    HttpOption { name, is_unset }: HttpOption,
    failures: &mut Vec<String>,
    closed: &mut Option<String>,
) -> Option<TcpListener> {
    let why = match listen_tcp(address) {
        Ok(listener) => return Some(listener),
        Err(error) => why_not(&error),
    };
    let failure = format!("cannot open http on {address}: {why}; move it with `{name} ADDR`");
    if is_unset {
        tracing::warn!(target: NOT_AN_ERROR, "{failure}; continuing without it");
        let why = why.strip_prefix("the address").map_or_else(|| format!(": {why}"), str::to_owned);
        *closed = Some(format!("none: {address}{why}; {name} ADDR opens it elsewhere"));
    } else {
        // A fan-out has no config.
        let or = if name == "--health" { "" } else { " or in the config" };
        failures.push(failure + or);
    }
    None
}

fn open_one(
    what: &str,
    address: SocketAddr,
    taken_is_fine: bool,
    failures: &mut Vec<String>,
) -> Option<TcpListener> {
    let why = match listen_tcp(address) {
        Ok(listener) => return Some(listener),
        Err(error) => why_not(&error),
    };
    let advice = match what {
        "management" => "move it with `--management ADDR`",
        _ => "move it with `listen` in `[carbonlink]`",
    };
    let failure = format!("cannot open {what} on {address}: {why}; {advice}");
    if taken_is_fine {
        tracing::warn!(target: NOT_AN_ERROR, "{failure}; continuing without it");
    } else {
        failures.push(if what == "carbonlink" { failure } else { failure + " or in the config" });
    }
    None
}

fn why_not(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "the address is in use".to_owned(),
        _ => error.to_string(),
    }
}

#[test]
fn a_default_http_address_in_use_is_no_failure_and_names_its_option() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let at = taken.local_addr().expect("it is bound");
    let plan =
        Plan { http: Some(at), management: Vec::new(), ..config::defaults(std::path::Path::new("data")) };
    for (option, want) in [("--http", "--http ADDR"), ("--health", "--health ADDR")] {
        let (ports, failures) = open(&plan, HttpOption { name: option, is_unset: true }, None);
        let closed = format!("none: {at} is in use; {want} opens it elsewhere");
        assert_eq!((ports.http_at, ports.http_closed, failures), (None, Some(closed), Vec::new()));
        let (ports, failures) = open(&plan, HttpOption { name: option, is_unset: false }, None);
        let failure = format!("cannot open http on {at}: the address is in use; move it with `{want}`");
        assert!(matches!(&*failures, [only] if only.starts_with(&failure)), "{failures:?}");
        assert_eq!((ports.http_at, ports.http_closed), (None, None));
    }
}

//! The daemon's own ports: HTTP for people and machines, the StatsD management port for tools that exist.

pub mod accounts;
pub mod checkpoints;
mod guard;
pub mod http;
pub mod management;
pub mod metrics;
pub mod queues;
pub mod series;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use config::plan::{ManagementPlan, Plan};
use tokio::sync::watch;

use crate::daemon::shared::Shared;

/// The ports of a plan, open and not yet served.
#[derive(Debug, Default)]
pub struct Ports {
    http: Option<TcpListener>,
    management: Vec<(TcpListener, ManagementPlan)>,
    /// Where HTTP really is.
    pub http_at: Option<SocketAddr>,
    /// Where the management ports really are.
    pub management_at: Vec<SocketAddr>,
}

/// Opens the ports of `plan`. Also gives one sentence for each that could not be opened; with the built-in plan, and
/// for HTTP whose address nobody asked for, it is a warning instead, given here.
pub fn open(plan: &Plan, http_optional: bool) -> (Ports, Vec<String>) {
    let mut ports = Ports::default();
    let mut failures = Vec::new();
    if let Some(address) = plan.http {
        ports.http = open_one("http", address, http_optional, &mut failures);
        ports.http_at = ports.http.as_ref().map(|listener| really_at(listener, address));
    }
    for management in &plan.management {
        if let Some(listener) = open_one("management", management.listen, plan.built_in, &mut failures) {
            ports.management_at.push(really_at(&listener, management.listen));
            ports.management.push((listener, management.clone()));
        }
    }
    (ports, failures)
}

impl Ports {
    /// Serves them until `stop` turns true.
    ///
    /// # Errors
    /// When the runtime cannot take a socket.
    pub fn serve(self, shared: &Arc<Shared>, stop: &watch::Receiver<bool>) -> std::io::Result<()> {
        if let Some(listener) = self.http {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let serve = http::serve(listener, Arc::clone(shared), stop.clone());
            tokio::spawn(async move {
                if let Err(error) = serve.await {
                    tracing::error!("cannot serve http: {error}");
                }
            });
        }
        for (listener, plan) in self.management {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            tokio::spawn(management::serve(listener, plan, Arc::clone(shared), stop.clone()));
        }
        Ok(())
    }
}

/// Port 0 stands for any free port: this is the one that it became.
fn really_at(listener: &TcpListener, told: SocketAddr) -> SocketAddr {
    listener.local_addr().unwrap_or(told)
}

fn open_one(
    what: &str,
    address: SocketAddr,
    taken_is_fine: bool,
    failures: &mut Vec<String>,
) -> Option<TcpListener> {
    let opened = TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    let error = match opened {
        Ok(listener) => return Some(listener),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => "the address is in use".to_owned(),
        Err(error) => error.to_string(),
    };
    // A fan-out has its own word for it, that of other proxies.
    let option = if what == "http" {
        "--http ADDR` (`staunch fanout`: `--health ADDR`)"
    } else {
        "--management ADDR`"
    };
    let failure = format!("cannot open {what} on {address}: {error}; move it with `{option}");
    if taken_is_fine {
        tracing::warn!("{failure}; going on without it");
    } else {
        failures.push(failure + " or in the config");
    }
    None
}

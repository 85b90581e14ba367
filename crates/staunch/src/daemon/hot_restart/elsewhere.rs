//! Systems without hot restarts: uninhabited types replace those of Linux.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::Duration;

use config::plan::{Listen, Plan};
use model::{Losses, OutputId};

use super::Handed;
use crate::admin::port_kind::PortKind;
use crate::daemon::running::Running;
use sys::OwnedFd;

/// Never exists.
#[derive(Debug)]
pub enum Inheritance {}

/// Never exists.
#[derive(Debug)]
pub enum Asked {}

/// Never exists.
#[derive(Debug)]
pub enum Control {}

/// Always rejected here.
///
/// # Errors
/// Always.
pub fn ask(_data_dir: &Path) -> anyhow::Result<Option<Inheritance>> {
    anyhow::bail!("`--hot-restart` needs Linux: stop the running process, then start without it")
}

#[allow(missing_docs, reason = "as on Linux, and never called")]
impl Inheritance {
    pub fn watchdog(&self) -> Option<Duration> {
        match *self {}
    }

    pub fn take_listener(&mut self, _source: &str, _listen: &Listen) -> Option<(usize, OwnedFd)> {
        match *self {}
    }

    pub fn take_port(&mut self, _kind: PortKind, _address: SocketAddr) -> Option<TcpListener> {
        match *self {}
    }

    pub fn take_lock(&mut self) -> Option<std::fs::File> {
        match *self {}
    }

    pub fn hand_over(&mut self, _plan: &Plan) -> anyhow::Result<Handed> {
        match *self {}
    }

    pub fn give_up(self, _error: anyhow::Error) -> anyhow::Error {
        match self {}
    }

    pub fn taken(self) -> anyhow::Result<()> {
        match self {}
    }
}

#[allow(missing_docs, reason = "as on Linux, and never called")]
impl Control {
    pub fn open(_data_dir: &Path, _from: Option<&mut Inheritance>) -> Option<Control> {
        None
    }

    pub fn serve(&mut self, _asked: tokio::sync::mpsc::Sender<Asked>) -> std::io::Result<()> {
        match *self {}
    }

    pub fn remove(&self) {
        match *self {}
    }
}

/// The parts that end with a replaced process.
#[derive(Debug)]
pub(crate) struct EndsHere {
    pub(crate) output: OutputId,
    pub(crate) lost_before: Losses,
}

/// Never called.
pub(crate) async fn hand_over(_running: &mut Running, asked: Asked) -> Option<Vec<EndsHere>> {
    match asked {}
}

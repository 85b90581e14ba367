//! Conflicts between parts of a plan: the same address, an endpoint that is our own listener, the same file, the same
//! name.
//!
//! Only the file's text is checked: no name is resolved, no path is opened. Conflicts that only the system knows (a
//! port used by another program, a link to the same file) are found when the address or file is opened. Not here: the
//! edges between nodes (`wiring`).

use std::net::{IpAddr, SocketAddr};
use std::path::{Component, Path, PathBuf};

use foldhash::HashSet;

use super::asked::Built;
use crate::address::{destination_name, loopback_addresses};
use crate::diagnostic::{Code, Diagnostic, Place};
use crate::plan::{Destination, Listen, SourcePlan};

/// The addresses, files and names of a plan, collected while it is built.
#[derive(Default)]
pub(super) struct Claims {
    listeners: Vec<Listener>,
    endpoints: Vec<Claim<Destination>>,
    files: Vec<Claim<File>>,
    output_names: HashSet<String>,
}

struct Claim<T> {
    /// "output `carbon`".
    whose: String,
    place: Place,
    what: T,
}

struct Listener {
    whose: String,
    /// `None` for a default that is not in the file.
    place: Option<Place>,
    at: At,
}

#[derive(PartialEq)]
enum At {
    Socket(Protocol, SocketAddr),
    Path(PathBuf),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Udp,
    Tcp,
}

struct File {
    path: PathBuf,
    /// Its rotated files, `path.1` and so on.
    rotated: u32,
}

impl Claims {
    pub(super) fn source(&mut self, source: &SourcePlan, places: &[Place]) {
        for (listen, place) in source.listen.iter().zip(places) {
            let at = match listen {
                Listen::Udp(address) => At::Socket(Protocol::Udp, *address),
                Listen::Tcp(address) => At::Socket(Protocol::Tcp, *address),
                Listen::UnixStream { path, .. }
                | Listen::UnixDatagram { path, .. }
                | Listen::UnixFrames { path, .. } => At::Path(plain(path)),
            };
            let whose = format!("source `{}`", source.name);
            self.listeners.push(Listener { whose, place: Some(*place), at });
        }
    }

    /// A TCP listener that is not a source's.
    pub(super) fn tcp(&mut self, whose: &str, address: SocketAddr, place: Option<Place>) {
        let at = At::Socket(Protocol::Tcp, address);
        self.listeners.push(Listener { whose: whose.to_owned(), place, at });
    }

    /// A file that is written, and the number of its rotated files.
    pub(super) fn file(&mut self, whose: &str, (path, rotated): (&Path, u32), place: Place) {
        let what = File { path: plain(path), rotated };
        self.files.push(Claim { whose: whose.to_owned(), place, what });
    }

    pub(super) fn output(&mut self, built: &Built, name_place: Place, wrong: &mut Vec<Diagnostic>) {
        let name = &built.plan.name;
        let whose = format!("output `{name}`");
        if !self.output_names.insert(name.clone()) {
            wrong.push(
                Diagnostic::error(Code::DuplicateName, format!("two outputs have the name `{name}`"))
                    .at(name_place)
                    .label("an output with several endpoints has this name for one of them"),
            );
        }
        if let Some(file) = built.plan.kind.file() {
            self.file(&whose, file, built.place);
        }
        if let Some(what) = built.plan.kind.destination() {
            self.endpoints.push(Claim { whose, place: built.place, what });
        }
    }

    /// Compares all entries with each other.
    pub(super) fn check(&self, wrong: &mut Vec<Diagnostic>) {
        for (at, listener) in self.listeners.iter().enumerate() {
            if let Some(other) = self.listeners[..at].iter().find(|other| collide(&other.at, &listener.at)) {
                wrong.push(address_taken(listener, other));
            }
        }
        for endpoint in &self.endpoints {
            let to = &endpoint.what;
            if let Some(listener) = self.listeners.iter().find(|listener| reaches(to, &listener.at)) {
                let message = format!("{} sends to {} of this daemon", endpoint.whose, listener.whose);
                wrong.push(
                    Diagnostic::error(Code::Loop, message)
                        .at(endpoint.place)
                        .label(format!("{} is listened at here", destination_name(to))),
                );
            }
        }
        for (at, file) in self.files.iter().enumerate() {
            if let Some(other) = self.files[..at].iter().find(|other| share(&other.what, &file.what)) {
                wrong.push(file_shared(file, other));
            }
        }
    }
}

fn address_taken(listener: &Listener, other: &Listener) -> Diagnostic {
    let text = |at: &At| match at {
        At::Socket(Protocol::Udp, address) => format!("udp {address}"),
        At::Socket(Protocol::Tcp, address) => format!("tcp {address}"),
        At::Path(path) => path.display().to_string(),
    };
    // The listener in the file is shown, and the other one is named.
    let (shown, named) = if listener.place.is_some() { (listener, other) } else { (other, listener) };
    let message = format!("{} listens where {} does", shown.whose, named.whose);
    let diagnostic = Diagnostic::error(Code::AddressTaken, message).label(format!(
        "taken by {} ({})",
        named.whose,
        text(&named.at)
    ));
    match shown.place {
        Some(place) => diagnostic.at(place),
        None => diagnostic,
    }
}

/// Two listeners cannot both be opened. Port 0 is always a different port.
fn collide(one: &At, other: &At) -> bool {
    match (one, other) {
        (At::Socket(p, a), At::Socket(q, b)) => {
            let (x, y) = (a.ip().to_canonical(), b.ip().to_canonical());
            let overlap = x == y || (covers(x, y) || covers(y, x));
            p == q && a.port() == b.port() && a.port() != 0 && overlap
        }
        (At::Path(a), At::Path(b)) => a == b,
        _ => false,
    }
}

/// A listener at `wildcard` also receives data sent to `address`. `[::]` includes IPv4.
fn covers(wildcard: IpAddr, address: IpAddr) -> bool {
    match wildcard {
        IpAddr::V4(wildcard) => wildcard.is_unspecified() && address.is_ipv4(),
        IpAddr::V6(wildcard) => wildcard.is_unspecified(),
    }
}

/// Data sent to the endpoint arrives at the listener, as far as the file shows. Names other than loopback's, and
/// addresses of other interfaces, may also be this machine's; that is unknown here.
fn reaches(to: &Destination, listener: &At) -> bool {
    let (protocol, to) = match to {
        Destination::Udp(to) => (Protocol::Udp, to),
        Destination::Tcp(to) => (Protocol::Tcp, to),
        // Datagrams to a stream socket's path fail, but no other listener can be meant.
        Destination::UnixDatagram(path) | Destination::UnixStream(path) => {
            return matches!(listener, At::Path(heard) if *heard == plain(path));
        }
    };
    let At::Socket(heard, at) = listener else { return false };
    if *heard != protocol || at.port() != to.port {
        return false;
    }
    let addresses = match to.host.parse::<IpAddr>() {
        Ok(ip) if !ip.is_unspecified() => vec![ip.to_canonical()],
        _ => loopback_addresses(&to.host),
    };
    let heard_at = at.ip().to_canonical();
    addresses.iter().any(|ip| *ip == heard_at || ip.is_loopback() && covers(heard_at, *ip))
}

fn file_shared(file: &Claim<File>, other: &Claim<File>) -> Diagnostic {
    let message = format!("{} and {} write to one file", other.whose, file.whose);
    let label = if file.what.path == other.what.path {
        format!("taken by {}", other.whose)
    } else if is_rotated(&other.what, &file.what.path) {
        format!("a rotated file of {}", other.whose)
    } else {
        format!("{}, which {} writes, would be a rotated file of it", other.what.path.display(), other.whose)
    };
    Diagnostic::error(Code::FileShared, message).at(file.place).label(label).hint("give each its own `path`")
}

fn share(one: &File, other: &File) -> bool {
    one.path == other.path || is_rotated(one, &other.path) || is_rotated(other, &one.path)
}

fn is_rotated(of: &File, path: &Path) -> bool {
    let (of_path, path) = (of.path.to_string_lossy(), path.to_string_lossy());
    let number = path.strip_prefix(&*of_path).and_then(|rest| rest.strip_prefix('.'));
    let number = number.and_then(|number| number.parse::<u32>().ok());
    number.is_some_and(|number| (1..=of.rotated).contains(&number))
}

/// The path without `.` and double slashes. `..` stays, because its meaning depends on the file system.
fn plain(path: &Path) -> PathBuf {
    path.components().filter(|component| !matches!(component, Component::CurDir)).collect()
}

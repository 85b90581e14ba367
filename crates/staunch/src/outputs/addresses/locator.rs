//! The current addresses of an endpoint: a path, or the addresses of its name without our own listeners.
//!
//! Not here: resolving names (`names`), sockets (`socket`).

use std::future::pending;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use config::plan::{Destination, Listen};
use deliver::Failure;

use crate::daemon::shared::names::shown;
use crate::outputs::addresses::names::{Following, Names};

/// Shared by all outputs to find their endpoints.
#[derive(Debug)]
pub struct Directory {
    /// Resolves names.
    pub names: Arc<Names>,
    /// The daemon's own listeners.
    pub own: OwnListeners,
}

impl Directory {
    /// Resolves names like this machine, without listeners yet.
    pub fn of_system() -> Directory {
        Directory { names: Arc::new(Names::of_system()), own: OwnListeners::default() }
    }
}

/// The daemon's own listeners: an output to one of them would be an endless loop (spec statsd §14 R13).
#[derive(Debug, Default)]
pub struct OwnListeners(ArcSwap<Vec<Listen>>);

impl OwnListeners {
    /// Sets all listeners, with their actual ports.
    pub fn set(&self, listeners: Vec<Listen>) {
        self.0.store(Arc::new(listeners));
    }

    /// Our own listener that receives data sent to `address`, if there is one.
    fn at(&self, to: &Destination, address: SocketAddr) -> Option<Listen> {
        let takes = |listen: &Listen| match (to, listen) {
            (Destination::Udp(_), Listen::Udp(own)) | (Destination::Tcp(_), Listen::Tcp(own)) => {
                own.port() == address.port() && reaches(own.ip(), address.ip())
            }
            _ => false,
        };
        self.0.load().iter().find(|listen| takes(listen)).cloned()
    }

    /// The same for a unix socket, by any path to its file.
    fn at_path(&self, to: &Destination, path: &Path) -> Option<Listen> {
        let takes = |listen: &Listen| match (to, listen) {
            (Destination::UnixDatagram(_), Listen::UnixDatagram { path: own, .. })
            | (Destination::UnixStream(_), Listen::UnixStream { path: own, .. })
            | (Destination::UnixStream(_), Listen::UnixFrames { path: own, .. }) => is_same_file(own, path),
            _ => false,
        };
        self.0.load().iter().find(|listen| takes(listen)).cloned()
    }
}

fn loop_words(own: &Listen) -> String {
    format!("it is a listener of this daemon, {}: records sent there would come back", shown(own))
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    one == other || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Whether data sent to `to` arrives at a listener bound to `own`, with the same port.
fn reaches(own: IpAddr, to: IpAddr) -> bool {
    let to = to.to_canonical();
    if own.to_canonical() == to {
        return true;
    }
    // The IPv6 wildcard includes IPv4; sending to a wildcard means sending to this machine.
    let family = own.is_ipv6() || to.is_ipv4();
    match (own.is_unspecified(), to.is_unspecified()) {
        (true, true) => family,
        (true, false) => family && is_local(to),
        (false, true) => own.is_loopback() && own.is_ipv4() == to.is_ipv4(),
        (false, false) => false,
    }
}

/// Whether this machine has an address: only then can it be bound.
fn is_local(address: IpAddr) -> bool {
    address.is_loopback() || UdpSocket::bind((address, 0)).is_ok()
}

/// The known addresses of an endpoint.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// A unix socket.
    Path(PathBuf),
    /// Addresses; the first that works is used. At least one.
    Addresses(Vec<SocketAddr>),
    /// The name is not resolved yet.
    NotYet,
    /// There is no address, for this reason and message.
    Nowhere(Failure, String),
}

/// Resolves one endpoint.
#[derive(Debug)]
pub struct Locator {
    to: Destination,
    following: Option<Following>,
    directory: Arc<Directory>,
}

impl Locator {
    /// Begins to resolve `to`.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn new(to: Destination, directory: Arc<Directory>) -> Locator {
        let following = match &to {
            Destination::Udp(host) | Destination::Tcp(host) => {
                Some(directory.names.follow(&host.host, host.port))
            }
            Destination::UnixDatagram(_) | Destination::UnixStream(_) => None,
        };
        Locator { to, following, directory }
    }

    /// Its endpoint.
    pub fn to(&self) -> &Destination {
        &self.to
    }

    /// The current result, without waiting.
    pub fn find(&mut self) -> Found {
        let following = match (&self.to, &mut self.following) {
            (Destination::UnixDatagram(path) | Destination::UnixStream(path), _) => {
                return match self.directory.own.at_path(&self.to, path) {
                    None => Found::Path(path.clone()),
                    Some(own) => Found::Nowhere(Failure::Loop, loop_words(&own)),
                };
            }
            (_, Some(following)) => following,
            (_, None) => return Found::NotYet,
        };
        let answer = following.answer();
        let mut own = None;
        let mut addresses = answer.addresses;
        addresses.retain(|address| {
            let listener = self.directory.own.at(&self.to, *address);
            let other = listener.is_none();
            own = own.take().or(listener);
            other
        });
        match (own, answer.trouble) {
            _ if !addresses.is_empty() => Found::Addresses(addresses),
            (Some(own), _) => Found::Nowhere(Failure::Loop, loop_words(&own)),
            (None, Some(trouble)) => Found::Nowhere(Failure::Unresolved, trouble),
            (None, None) => Found::NotYet,
        }
    }

    /// Resolves when [`Self::find`] may return another result. Cancel-safe.
    pub async fn changed(&mut self) {
        match &mut self.following {
            Some(following) => following.changed().await,
            None => pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use config::plan::Endpoint;

    use super::*;
    use crate::outputs::addresses::names::tests::Dns;

    #[test]
    fn own_listeners_are_found_by_address_and_by_wildcard() {
        let table = [
            ("127.0.0.1:5", "127.0.0.1:5", true),
            ("127.0.0.1:5", "127.0.0.1:6", false),
            ("127.0.0.1:5", "127.0.0.2:5", false),
            ("127.0.0.1:5", "0.0.0.0:5", true),
            ("0.0.0.0:5", "127.0.0.2:5", true),
            ("0.0.0.0:5", "0.0.0.0:5", true),
            ("0.0.0.0:5", "[::1]:5", false),
            ("[::]:5", "127.0.0.1:5", true),
            ("[::]:5", "[::1]:5", true),
            ("[::]:5", "[::ffff:127.0.0.1]:5", true),
            ("127.0.0.1:5", "[::ffff:127.0.0.1]:5", true),
            // TEST-NET-1: nobody has that address.
            ("0.0.0.0:5", "192.0.2.1:5", false),
            ("192.0.2.1:5", "192.0.2.1:5", true),
        ];
        let to = |port| Endpoint { host: "x".into(), port };
        for (own, address, want) in table {
            let address: SocketAddr = address.parse().expect("an address");
            let listeners = OwnListeners::default();
            assert_eq!(listeners.at(&Destination::Udp(to(5)), address), None);
            listeners.set(vec![Listen::Udp(own.parse().expect("an address"))]);
            let found = listeners.at(&Destination::Udp(to(5)), address).is_some();
            assert_eq!(found, want, "{own} and {address}");
            assert_eq!(listeners.at(&Destination::Tcp(to(5)), address), None, "UDP is not TCP");
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn an_own_unix_socket_is_found_by_every_path_to_it() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("run")).expect("a folder of our own");
        std::os::unix::fs::symlink(at("run"), at("link")).expect("a link of our own");
        let _listener = std::os::unix::net::UnixDatagram::bind(at("run/s")).expect("a path of our own");
        let directory = Arc::new(Directory::of_system());
        directory.own.set(vec![Listen::UnixDatagram { path: at("run/s"), mode: None }]);
        for (name, want) in [("run/s", true), ("link/s", true), ("run/../link/s", true), ("run/t", false)] {
            let find = |to| Locator::new(to, Arc::clone(&directory)).find();
            let found = find(Destination::UnixDatagram(at(name)));
            assert_eq!(matches!(found, Found::Nowhere(Failure::Loop, _)), want, "{name}: {found:?}");
            // A socket of another kind belongs to another listener, if at all.
            assert_eq!(find(Destination::UnixStream(at(name))), Found::Path(at(name)));
        }
    }

    #[tokio::test]
    async fn own_addresses_are_skipped_and_reported_when_there_are_no_others() {
        let dns = Dns::new().await;
        dns.set("us.test.", &[[127, 0, 0, 1]]);
        dns.set("both.test.", &[[127, 0, 0, 1], [127, 0, 0, 2]]);
        let directory = Arc::new(Directory { names: Arc::clone(&dns.names), own: OwnListeners::default() });
        directory.own.set(vec![Listen::Udp("127.0.0.1:9125".parse().expect("an address"))]);
        let locate = |host: &str| {
            let to = Destination::Udp(Endpoint { host: host.into(), port: 9125 });
            let mut locator = Locator::new(to, Arc::clone(&directory));
            async move {
                let found = async {
                    loop {
                        match locator.find() {
                            Found::NotYet => locator.changed().await,
                            found => return found,
                        }
                    }
                };
                tokio::time::timeout(Duration::from_secs(30), found).await.expect("an answer")
            }
        };
        let Found::Nowhere(Failure::Loop, words) = locate("us.test.").await else { panic!("it is us") };
        assert!(words.contains("udp://127.0.0.1:9125"), "{words}");
        let other = Found::Addresses(vec!["127.0.0.2:9125".parse().expect("an address")]);
        assert_eq!(locate("both.test.").await, other);
        assert!(matches!(locate("127.0.0.1").await, Found::Nowhere(Failure::Loop, _)));
        assert!(matches!(locate("nowhere.test.").await, Found::Nowhere(Failure::Unresolved, _)));
        let path = Destination::UnixDatagram("/x".into());
        assert_eq!(Locator::new(path, Arc::clone(&directory)).find(), Found::Path("/x".into()));
    }
}

//! Which connections of the HTTP server may stay: so many in all, and so many of one client.
//!
//! At a bound the connection that has been without a request for longest goes, so that whoever opens connections and
//! sends nothing, or half a request, keeps out nobody who has something to ask. Where all have a request, the new one goes.
//! Invariant: a connection is counted until its [`Place`] is dropped, or it was told to go.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Bounds on connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Most at once.
    pub(super) all: usize,
    /// Most of one client.
    pub(super) of_peer: usize,
}

/// Every connection that is open.
#[derive(Clone, Debug, Default)]
pub(super) struct Connections(Arc<Mutex<Open>>);

#[derive(Debug, Default)]
struct Open {
    by_number: BTreeMap<u64, Connection>,
    /// Number of the next.
    next: u64,
    /// Counts requests: what has the least has been without one for longest.
    clock: u64,
}

#[derive(Debug)]
struct Connection {
    peer: IpAddr,
    /// Requests under way.
    requests: usize,
    /// When the last request ended, or it was opened, by the clock of [`Open`].
    since: u64,
    goes: Arc<Notify>,
}

/// A connection that may stay.
#[derive(Debug)]
pub(super) struct Place {
    connections: Connections,
    number: u64,
    goes: Arc<Notify>,
}

/// A request of a connection, until its answer has been handed to the socket.
#[derive(Debug)]
pub(super) struct Request {
    connections: Connections,
    number: u64,
}

/// A client: of an IPv6 address its network, which one client can have whole.
pub(super) fn client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from(network))
        }
        v4 => v4,
    }
}

impl Connections {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection from `address`; none when there is no room that could be made.
    pub(super) fn admit(&self, address: IpAddr, bounds: Bounds) -> Option<Place> {
        let peer = client(address);
        let mut open = self.open();
        let of_peer = open.by_number.values().filter(|known| known.peer == peer).count();
        if of_peer >= bounds.of_peer {
            open.send_away(|known| known.peer == peer)?;
        } else if open.by_number.len() >= bounds.all {
            open.send_away(|_| true)?;
        }
        let (number, goes) = (open.next, Arc::new(Notify::new()));
        open.next += 1;
        let since = open.tick();
        open.by_number.insert(number, Connection { peer, requests: 0, since, goes: Arc::clone(&goes) });
        drop(open);
        Some(Place { connections: self.clone(), number, goes })
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.open().by_number.len()
    }
}

impl Open {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// Has the one that has been without a request for longest go, of those that `may`.
    fn send_away(&mut self, may: impl Fn(&Connection) -> bool) -> Option<()> {
        let idle = self.by_number.iter().filter(|(_, known)| known.requests == 0 && may(known));
        let number = idle.min_by_key(|(_, known)| known.since).map(|(number, _)| *number)?;
        let gone = self.by_number.remove(&number)?;
        gone.goes.notify_one();
        Some(())
    }
}

impl Place {
    /// Resolves when it is to go. Cancel-safe.
    pub(super) async fn told_to_go(&self) {
        self.goes.notified().await;
    }

    /// Counts a request as under way.
    pub(super) fn request(&self) -> Request {
        if let Some(known) = self.connections.open().by_number.get_mut(&self.number) {
            known.requests += 1;
        }
        Request { connections: self.connections.clone(), number: self.number }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.open().by_number.remove(&self.number);
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        let mut open = self.connections.open();
        let now = open.tick();
        if let Some(known) = open.by_number.get_mut(&self.number) {
            known.requests -= 1;
            known.since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { all: 4, of_peer: 2 };

    fn at(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    async fn goes(place: &Place) -> bool {
        tokio::time::timeout(std::time::Duration::ZERO, place.told_to_go()).await.is_ok()
    }

    #[tokio::test]
    async fn past_the_bound_of_a_client_its_own_oldest_goes() {
        let connections = Connections::default();
        let other = connections.admit(at(2), BOUNDS).expect("room");
        let first = connections.admit(at(1), BOUNDS).expect("room");
        let second = connections.admit(at(1), BOUNDS).expect("at the bound");
        drop(first.request());
        let third = connections.admit(at(1), BOUNDS).expect("past it, for one that is idle");
        assert!(
            !goes(&other).await && !goes(&first).await && goes(&second).await,
            "the longest without a request"
        );
        assert_eq!(connections.len(), 3);
        let requests = (first.request(), third.request());
        assert!(connections.admit(at(1), BOUNDS).is_none(), "all of them have a request");
        drop((requests, second));
        assert_eq!(connections.len(), 3, "it was counted no longer");
    }

    #[tokio::test]
    async fn past_the_bound_of_all_the_oldest_goes_whosever_it_is() {
        let connections = Connections::default();
        let places: Vec<Place> =
            (0..4).map(|last| connections.admit(at(last), BOUNDS).expect("up to the bound")).collect();
        let _request = places[0].request();
        let _fifth = connections.admit(at(9), BOUNDS).expect("past it");
        assert!(!goes(&places[0]).await && goes(&places[1]).await);
        assert_eq!(connections.len(), 4);
        drop(places);
        assert_eq!(connections.len(), 1);
    }

    #[test]
    fn one_client_is_an_address_or_a_network_of_ipv6() {
        let client = |text: &str| super::client(text.parse().expect("an address"));
        assert_eq!(client("2001:db8:0:1::1"), client("2001:db8:0:1:ffff::9"));
        assert_ne!(client("2001:db8:0:1::1"), client("2001:db8:0:2::1"));
        assert_eq!(client("::ffff:10.0.0.1"), client("10.0.0.1"));
        assert_ne!(client("10.0.0.2"), client("10.0.0.1"));
    }
}

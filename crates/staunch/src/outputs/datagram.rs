//! One UDP or unix datagram endpoint: sends packets for its sender (sendmmsg on connected sockets).
//!
//! Path of a packet: `Outlet` -> `DatagramSender::poll` -> **`Driver::turn`** -> `Lanes::send`. Not here: the choice of
//! packets and their outcomes (`deliver::datagram`), the endpoint's addresses (`addresses::locator`), turns of several addresses
//! (`lanes`).
//! Invariant: a turn takes the queue's lock only for polls, and never waits; `Driver::rest` waits.

pub mod lanes;

#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use config::plan::{Addresses, Destination};
use deliver::datagram::{DatagramAction, DatagramSender, SendError};
use deliver::plan::SenderPlan;
use model::Now;
use tokio::time::Sleep;

use self::lanes::Lanes;
use crate::daemon::outlet::Outlet;
use crate::outputs::addresses::locator::{Found, Locator};
use crate::outputs::progress::{end, publish, worked};
use crate::outputs::socket::DatagramSocket;
use crate::outputs::telling::Teller;
use sys::clock::Clock;
use sys::errno;

/// Most system calls before other endpoints have their turn.
const CALLS_MAX: usize = 16;

/// A long sleep when no timer is set.
const NOTHING_DUE: Duration = Duration::from_secs(3600);

/// Drives the sender of one endpoint until its outlet stops.
pub async fn run(locator: Locator, plan: SenderPlan, addresses: Addresses, outlet: Arc<Outlet>, seed: u64) {
    let mut driver = Driver::new(locator, plan, addresses, outlet, seed);
    while !driver.sender.stopped() {
        if driver.outlet.is_stopping() {
            driver.sender.begin_stop(driver.outlet.deadline_ns(0));
        }
        let now = Clock::now();
        let next = driver.turn(now);
        driver.tell();
        worked(&driver.outlet, now.mono_ns);
        match next {
            Next::Turn => tokio::task::yield_now().await,
            Next::Rest => driver.rest().await,
        }
    }
    driver.sender.finish_stop(&mut *driver.outlet.queue(), Clock::now());
    end(&driver.outlet, 0, driver.sender.state());
}

/// The next step after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Another turn at once.
    Turn,
    /// Wait for an event.
    Rest,
}

/// A sender with its sockets.
struct Driver {
    sender: DatagramSender,
    lanes: Lanes,
    addresses: Addresses,
    outlet: Arc<Outlet>,
    locator: Locator,
    teller: Teller,
    /// The sender needs a socket.
    opening: bool,
    /// The socket had no room for the last packet.
    full: bool,
    /// The system's message for the last failure.
    words: Option<String>,
    alarm: Alarm,
}

impl Driver {
    fn new(
        locator: Locator,
        plan: SenderPlan,
        addresses: Addresses,
        outlet: Arc<Outlet>,
        seed: u64,
    ) -> Driver {
        let place = locator.to().to_string();
        Driver {
            sender: DatagramSender::new(plan, Arc::clone(&outlet.account), seed),
            lanes: Lanes::new(format!("output `{}`: {place}", outlet.name), plan),
            addresses,
            teller: Teller::new(place),
            outlet,
            locator,
            opening: false,
            full: false,
            words: None,
            alarm: Alarm::new(),
        }
    }

    /// Does the sender's actions, up to one turn's limit of system calls. One `now` is precise enough for all of them,
    /// because the sender's times are tenths of a second.
    fn turn(&mut self, now: Now) -> Next {
        let wanted = self.sender.needs_error_check(now);
        for lane in 0..self.lanes.count() {
            if let Some(error) = self.lanes.take_error(lane, wanted, now) {
                self.failed(lane, &error, now);
            }
        }
        for _call in 0..CALLS_MAX {
            let packets_max = self.lanes.pick(now);
            let action = self.sender.poll(&mut *self.outlet.queue(), packets_max, now);
            match action {
                DatagramAction::Open => {
                    self.opening = true;
                    self.open(now);
                }
                DatagramAction::Send(packets) => match self.lanes.send(packets.bytes, packets.spans, now) {
                    Ok(packets) => {
                        self.full = false;
                        self.sender.on_sent(packets, now);
                    }
                    Err(error) => self.failed(self.lanes.current(), &error, now),
                },
                DatagramAction::WaitUntil(_) | DatagramAction::Idle => return Next::Rest,
            }
            // A pending error of the socket is read between turns.
            if self.sender.needs_error_check(now) {
                return Next::Turn;
            }
        }
        Next::Turn
    }

    /// Reports an error of a lane's socket to the sender.
    fn failed(&mut self, lane: usize, error: &io::Error, now: Now) {
        let why = send_error(error, self.locator.to());
        // For a lack of memory (ENOBUFS), no event reports its end: the sender's pause is used.
        self.full = error.kind() == io::ErrorKind::WouldBlock;
        if why != SendError::WouldBlock {
            self.outlet.errors.count(error);
            self.words = Some(error.to_string());
        }
        let of_one = self.addresses == Addresses::RoundRobin
            && matches!(why, SendError::Refused | SendError::Gone)
            && self.lanes.pass_over(lane, error, now);
        if of_one {
            self.words = None;
            return self.sender.on_address_error(why);
        }
        self.sender.on_error(why, now);
        if why == SendError::Refused && self.addresses == Addresses::First {
            self.turn_to_next_address(now);
        }
    }

    /// Opens the socket that the sender has requested, if the address is known.
    fn open(&mut self, now: Now) {
        let opened = match self.locator.find() {
            Found::NotYet => return,
            Found::Nowhere(why, words) => {
                self.opening = false;
                self.words = Some(words);
                return self.sender.on_no_address(why, now);
            }
            Found::Path(path) => DatagramSocket::unix(&path).map(|socket| self.lanes.set_only(socket, None)),
            Found::Addresses(addresses) => self.lead_to(&addresses, now),
        };
        self.opening = false;
        match opened {
            Ok(()) => {
                self.full = false;
                self.sender.on_opened(now);
            }
            Err(error) => {
                self.outlet.errors.count(&error);
                self.words = Some(error.to_string());
                self.sender.on_open_failed(now);
            }
        }
    }

    /// Opens sockets to these addresses that do not exist yet.
    fn lead_to(&mut self, addresses: &[SocketAddr], now: Now) -> io::Result<()> {
        match self.addresses {
            Addresses::First => {
                let (socket, address) = first_of(addresses)?;
                self.lanes.set_only(socket, Some(address));
                Ok(())
            }
            Addresses::RoundRobin => self.lanes.lead_to(addresses, now).map(drop),
        }
    }

    /// The host name's addresses may have changed. Queued packets are not affected: only the socket changes.
    fn moved(&mut self, now: Now) {
        if self.opening {
            return self.open(now);
        }
        let (Some(address), Found::Addresses(addresses)) = (self.lanes.address(), self.locator.find()) else {
            return;
        };
        if self.addresses == Addresses::RoundRobin || !addresses.contains(&address) {
            self.change_to(&addresses, now);
        }
    }

    /// The address rejects packets: tries the ones after it, then the ones before it.
    fn turn_to_next_address(&mut self, now: Now) {
        let (Some(address), Found::Addresses(mut addresses)) = (self.lanes.address(), self.locator.find())
        else {
            return;
        };
        if let Some(at) = addresses.iter().position(|known| *known == address) {
            addresses.rotate_left(at + 1);
            // The last one is the current one.
            addresses.pop();
        }
        if !addresses.is_empty() {
            self.change_to(&addresses, now);
        }
    }

    /// Replaces the current sockets. A single one is kept if no other can be opened.
    fn change_to(&mut self, addresses: &[SocketAddr], now: Now) {
        match self.lead_to(addresses, now) {
            Ok(()) => {
                self.full = false;
                self.outlet.account.connects.fetch_add(1, Relaxed);
            }
            Err(error) => self.outlet.errors.count(&error),
        }
    }

    fn tell(&mut self) {
        self.teller.look(&self.outlet, self.sender.state(), |_failure| self.words.take());
        while let Some(change) = self.sender.take_state_change() {
            self.teller.tell(&self.outlet, change);
        }
        let sender = &self.sender;
        publish(&self.outlet, 0, sender.waiting_copies(), sender.queued_bytes(), sender.state());
    }

    async fn rest(&mut self) {
        // A sender that has just ended does not wait.
        if self.sender.stopped() {
            return;
        }
        let wake_ns = self.sender.wake_ns();
        let socket = self.lanes.socket().filter(|_| self.full);
        let writable = async {
            match socket {
                Some(socket) => socket.writable().await,
                None => std::future::pending().await,
            }
        };
        // All branches are cancel-safe: they only ask.
        tokio::select! {
            () = self.outlet.woken(0) => {}
            () = self.alarm.ring(wake_ns) => {}
            _room = writable => {
                self.full = false;
                self.sender.on_writable();
            }
            () = self.locator.changed() => self.moved(Clock::now()),
        }
    }
}

/// A socket to the first address for which one can be opened.
fn first_of(addresses: &[SocketAddr]) -> io::Result<(DatagramSocket, SocketAddr)> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in addresses {
        match DatagramSocket::udp(*address) {
            Ok(socket) => return Ok((socket, *address)),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// A timer that is reset only if it would fire too late. Firing early costs one check per second; resetting it for each
/// sent block would cost more than sending.
struct Alarm {
    sleep: Pin<Box<Sleep>>,
    at_ns: u64,
}

impl Alarm {
    fn new() -> Alarm {
        Alarm { sleep: Box::pin(tokio::time::sleep(Duration::ZERO)), at_ns: 0 }
    }

    /// Resolves at `at_ns` (monotonic) or before. Cancel-safe.
    async fn ring(&mut self, at_ns: Option<u64>) {
        let at_ns = at_ns.unwrap_or(u64::MAX);
        if at_ns < self.at_ns || self.sleep.is_elapsed() {
            let pause = Duration::from_nanos(at_ns.saturating_sub(Clock::mono_ns())).min(NOTHING_DUE);
            self.sleep.set(tokio::time::sleep(pause));
            self.at_ns = at_ns;
        }
        self.sleep.as_mut().await;
    }
}

fn send_error(error: &io::Error, to: &Destination) -> SendError {
    match error.raw_os_error() {
        // Over UDP it is about an earlier packet; on a unix socket, nobody listens at the path any more.
        Some(errno::ECONNREFUSED) if matches!(to, Destination::Udp(_)) => SendError::Refused,
        Some(errno::ECONNREFUSED | errno::EPIPE) => SendError::Gone,
        Some(errno::EAGAIN | errno::ENOBUFS) => SendError::WouldBlock,
        Some(errno::EMSGSIZE) => SendError::TooBig,
        Some(errno::ECONNRESET | errno::ENOTCONN) => SendError::Gone,
        // No route now: the packet is not at fault, and was not sent.
        Some(errno::ENETUNREACH | errno::EHOSTUNREACH | errno::ENETDOWN) => SendError::Gone,
        _ if error.kind() == io::ErrorKind::NotConnected => SendError::Gone,
        // The runtime knows that there has been no room since the last call.
        _ if error.kind() == io::ErrorKind::WouldBlock => SendError::WouldBlock,
        _ => SendError::Other,
    }
}

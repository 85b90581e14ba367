//! An output of datagrams with real sockets: sent, counted and queued packets.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use config::plan::{Endpoint, Listen};
use deliver::Status;
use deliver::plan::QueueLimits;
use deliver::queue::{Block, BlockEncoding};
use model::{OutputAccount, Span};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

use super::*;
use crate::outputs::addresses::locator::{Directory, OwnListeners};
use crate::outputs::addresses::names::tests::Dns;

/// An output to a name on the test's own DNS server.
struct World {
    dns: Dns,
    directory: Arc<Directory>,
    outlet: Arc<Outlet>,
    running: Option<JoinHandle<()>>,
}

impl World {
    async fn new() -> World {
        let dns = Dns::new().await;
        let names = Arc::clone(&dns.names);
        let directory = Arc::new(Directory { names, own: OwnListeners::default() });
        let account = Arc::new(OutputAccount::default());
        let outlet = Arc::new(Outlet::new("o", QueueLimits::default(), &account));
        World { dns, directory, outlet, running: None }
    }

    fn run(&mut self, port: u16) {
        self.run_over(Addresses::First, port);
    }

    fn run_over(&mut self, addresses: Addresses, port: u16) {
        let to = Destination::Udp(Endpoint { host: "agent.test.".into(), port });
        let locator = Locator::new(to, Arc::clone(&self.directory));
        let plan = SenderPlan { retry_max_ms: 250, ..SenderPlan::default() };
        self.running = Some(tokio::spawn(run(locator, plan, addresses, Arc::clone(&self.outlet), 1)));
    }

    fn append(&self, packet: &[u8]) {
        let now = Clock::now();
        let encoding = BlockEncoding::Packets(Arc::new(vec![Span::new(0, packet.len())]));
        let block = Block {
            bytes: Arc::new(packet.to_vec()),
            copies: 1,
            encoding,
            at_ns: now.mono_ns,
            partition: None,
        };
        self.outlet.append(block, now);
    }

    async fn stop(mut self, pause: Duration) -> Arc<Outlet> {
        self.outlet.stop(Clock::mono_ns() + pause.as_nanos() as u64);
        let ended = self.running.take().expect("it was started");
        let ended = tokio::time::timeout(Duration::from_secs(30), ended).await;
        ended.expect("ends at its deadline").expect("without a panic");
        assert!(self.outlet.sum().holds() && self.outlet.sum().queued == 0);
        self.outlet
    }
}

#[test]
fn system_errors_are_classified_by_their_cause() {
    let udp = Destination::Udp(Endpoint { host: "a".into(), port: 1 });
    let unix = Destination::UnixDatagram("/a".into());
    for (number, on_udp, on_unix) in [
        (errno::ECONNREFUSED, SendError::Refused, SendError::Gone),
        (errno::EAGAIN, SendError::WouldBlock, SendError::WouldBlock),
        (errno::ENOBUFS, SendError::WouldBlock, SendError::WouldBlock),
        (errno::EMSGSIZE, SendError::TooBig, SendError::TooBig),
        (errno::ENOTCONN, SendError::Gone, SendError::Gone),
        (errno::ENETUNREACH, SendError::Gone, SendError::Gone),
        (libc::EPERM, SendError::Other, SendError::Other),
    ] {
        let error = io::Error::from_raw_os_error(number);
        assert_eq!((send_error(&error, &udp), send_error(&error, &unix)), (on_udp, on_unix), "{error}");
    }
    let full = io::ErrorKind::WouldBlock.into();
    assert_eq!(send_error(&full, &unix), SendError::WouldBlock, "said by the runtime");
}

async fn received(socket: &UdpSocket) -> Vec<u8> {
    let mut packet = [0; 100];
    let received = tokio::time::timeout(Duration::from_secs(30), socket.recv(&mut packet)).await;
    let len = received.expect("a packet comes").expect("the socket is well");
    packet[..len].to_vec()
}

async fn until(what: &str, seen: impl Fn() -> bool) {
    for _look in 0..1500 {
        if seen() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("waited in vain for {what}");
}

#[tokio::test]
async fn an_unresolvable_endpoint_is_down_and_does_not_delay_the_stop() {
    let mut world = World::new().await;
    world.append(b"a:1|c");
    world.run(9);
    let outlet = Arc::clone(&world.outlet);
    until("the failure", || outlet.state().is_some_and(|state| state.status == Status::Down)).await;
    let failure = outlet.state().and_then(|state| state.last_failure).map(|(failure, _)| failure.word());
    assert_eq!((failure, outlet.sum().queued), (Some("unresolved"), 1));
    let outlet = world.stop(Duration::from_millis(100)).await;
    assert_eq!(outlet.account.dropped(model::Dropped::Stopped), 1);
}

#[tokio::test]
async fn our_own_listener_gets_nothing() {
    let mut world = World::new().await;
    let own = UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
    let at = own.local_addr().expect("it is bound");
    world.directory.own.set(vec![Listen::Udp((Ipv4Addr::UNSPECIFIED, at.port()).into())]);
    world.dns.set("agent.test.", &[[127, 0, 0, 1]]);
    world.append(b"a:1|c");
    world.run(at.port());
    let outlet = Arc::clone(&world.outlet);
    until("the refusal", || outlet.state().is_some_and(|state| state.last_failure.is_some())).await;
    let state = outlet.state().expect("it was published");
    assert_eq!(state.last_failure.map(|(failure, _)| failure.word()), Some("loop"));
    assert_eq!((state.status, outlet.sum().queued), (Status::Down, 1));
    world.stop(Duration::from_millis(1)).await;
    assert!(own.try_recv(&mut [0; 10]).is_err(), "nothing was sent");
}

#[tokio::test]
async fn a_changed_address_of_a_name_is_used_without_loss() {
    let mut world = World::new().await;
    let first = UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
    let port = first.local_addr().expect("it is bound").port();
    let Ok(second) = UdpSocket::bind(("127.0.0.2", port)).await else {
        crate::outputs::skip(&format!("127.0.0.2:{port} cannot be bound here"));
        return;
    };
    world.append(b"early");
    world.dns.set("agent.test.", &[[127, 0, 0, 1]]);
    world.run(port);
    assert_eq!(received(&first).await, b"early");
    let connects = world.outlet.account.connects.load(Relaxed);
    world.dns.set("agent.test.", &[[127, 0, 0, 2]]);
    let account = Arc::clone(&world.outlet.account);
    until("the move", || account.connects.load(Relaxed) > connects).await;
    world.append(b"late");
    assert_eq!(received(&second).await, b"late");
    // Failed lookups change nothing.
    world.dns.remove("agent.test.");
    world.append(b"later");
    assert_eq!(received(&second).await, b"later");
    let outlet = world.stop(Duration::from_secs(30)).await;
    assert_eq!(outlet.sum().delivered, 3);
}

#[tokio::test]
async fn after_a_rejection_the_next_address_is_used() {
    let mut world = World::new().await;
    // Port in use at the other address only: packets to 127.0.0.1 are rejected.
    let live = UdpSocket::bind("127.0.0.2:0").await.expect("a free port");
    let port = live.local_addr().expect("it is bound").port();
    if std::net::UdpSocket::bind(("127.0.0.1", port)).is_err() {
        crate::outputs::skip(&format!("somebody else has 127.0.0.1:{port}"));
        return;
    }
    world.dns.set("agent.test.", &[[127, 0, 0, 1], [127, 0, 0, 2]]);
    world.run(port);
    for number in 0..20 {
        world.append(format!("n{number}").as_bytes());
    }
    let mut last = Vec::new();
    while last != b"n19" {
        last = received(&live).await;
    }
    let outlet = world.stop(Duration::from_secs(30)).await;
    let sum = outlet.sum();
    assert!(sum.delivered >= 15 && sum.rejected_by_peer + sum.delivered == 20, "{sum:?}");
}

/// Sockets with one port at these addresses; `None` (and a note) where that is impossible.
async fn listeners(addresses: &[[u8; 4]]) -> Option<(Vec<UdpSocket>, u16)> {
    let mut sockets = vec![UdpSocket::bind("127.0.0.1:0").await.expect("a free port")];
    let port = sockets[0].local_addr().expect("it is bound").port();
    for address in addresses {
        match UdpSocket::bind((Ipv4Addr::from(*address), port)).await {
            Ok(socket) => sockets.push(socket),
            Err(error) => {
                crate::outputs::skip(&format!("{address:?}:{port} cannot be bound here ({error})"));
                return None;
            }
        }
    }
    Some((sockets, port))
}

/// Appends packets `range` one by one, each after the previous ones have left the queue.
async fn append_slowly(world: &World, range: std::ops::Range<usize>) {
    for number in range {
        world.append(format!("n{number}").as_bytes());
        let account = Arc::clone(&world.outlet.account);
        until("the queue's end", || account.queued_bytes.load(Relaxed) == 0).await;
    }
}

fn drain(socket: &UdpSocket) -> Vec<String> {
    let mut packet = [0; 100];
    let mut got = Vec::new();
    while let Ok(len) = socket.try_recv(&mut packet) {
        got.push(String::from_utf8_lossy(&packet[..len]).into_owned());
    }
    got
}

#[tokio::test]
async fn round_robin_uses_the_current_addresses_of_the_name() {
    let Some((sockets, port)) = listeners(&[[127, 0, 0, 2], [127, 0, 0, 3]]).await else { return };
    let mut world = World::new().await;
    world.dns.set("agent.test.", &[[127, 0, 0, 1], [127, 0, 0, 2]]);
    world.run_over(Addresses::RoundRobin, port);
    append_slowly(&world, 0..20).await;
    let mut all = BTreeSet::new();
    for (socket, want) in sockets.iter().zip([10, 10, 0]) {
        // Loopback delivers datagrams before the call returns.
        if want > 0 {
            socket.readable().await.expect("the socket is well");
        }
        let got = drain(socket);
        assert_eq!(got.len(), want, "{got:?}");
        all.extend(got);
    }
    assert_eq!(all.len(), 20, "each once");
    let connects = world.outlet.account.connects.load(Relaxed);
    world.dns.set("agent.test.", &[[127, 0, 0, 2], [127, 0, 0, 3]]);
    let account = Arc::clone(&world.outlet.account);
    until("the change", || account.connects.load(Relaxed) > connects).await;
    append_slowly(&world, 20..40).await;
    sockets[2].readable().await.expect("the socket is well");
    let counts: Vec<usize> = sockets.iter().map(|socket| drain(socket).len()).collect();
    assert_eq!(counts, [0, 10, 10]);
    let outlet = world.stop(Duration::from_secs(30)).await;
    assert_eq!((outlet.sum().delivered, outlet.sum().rejected_by_peer), (40, 0));
}

#[tokio::test]
async fn a_rejecting_address_is_skipped_until_it_accepts_again() {
    let Some((mut sockets, port)) = listeners(&[[127, 0, 0, 2], [127, 0, 0, 3]]).await else { return };
    // Nothing listens at 127.0.0.2 any more.
    let away = sockets.remove(1);
    drop(away);
    let mut world = World::new().await;
    world.dns.set("agent.test.", &[[127, 0, 0, 1], [127, 0, 0, 2], [127, 0, 0, 3]]);
    world.run_over(Addresses::RoundRobin, port);
    append_slowly(&world, 0..60).await;
    let counts: Vec<usize> = sockets.iter().map(|socket| drain(socket).len()).collect();
    let arrived: usize = counts.iter().sum();
    assert!(counts.iter().all(|count| *count >= 15), "{counts:?}");
    let state = world.outlet.state().expect("it was published");
    assert_ne!(state.status, Status::Down, "two of three take packets");
    let back = UdpSocket::bind(("127.0.0.2", port)).await.expect("it was ours");
    let mut more = 0;
    while drain(&back).len() < 2 && more < 3_000 {
        append_slowly(&world, more..more + 10).await;
        more += 10;
    }
    assert!(more < 3_000, "it never had its turns again");
    let outlet = world.stop(Duration::from_secs(30)).await;
    let sum = outlet.sum();
    assert_eq!(
        sum.rejected_by_peer + arrived as u64,
        60,
        "what did not arrive was refused, and counted: {sum:?}"
    );
    assert_eq!(sum.delivered, arrived as u64 + more as u64, "{sum:?}");
    assert!(outlet.errors.table().contains_key("ECONNREFUSED"));
}

#[tokio::test]
async fn when_all_addresses_reject_the_endpoint_is_down_and_packets_stay_queued() {
    let Some((sockets, port)) = listeners(&[[127, 0, 0, 2]]).await else { return };
    drop(sockets);
    let mut world = World::new().await;
    world.dns.set("agent.test.", &[[127, 0, 0, 1], [127, 0, 0, 2]]);
    world.run_over(Addresses::RoundRobin, port);
    (0..100).for_each(|number| world.append(format!("n{number}").as_bytes()));
    let outlet = Arc::clone(&world.outlet);
    until("the failure", || outlet.state().is_some_and(|state| state.status == Status::Down)).await;
    assert!(outlet.sum().queued > 50, "{:?}", outlet.sum());
    let Ok(back) = UdpSocket::bind(("127.0.0.2", port)).await else { return };
    let mut got = 0;
    let all = async {
        while outlet.sum().rejected_by_peer + got < 100 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            got += drain(&back).len() as u64;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), all).await.expect("the rest comes");
    let outlet = world.stop(Duration::from_secs(30)).await;
    assert_eq!((outlet.sum().delivered, outlet.sum().delivered + outlet.sum().rejected_by_peer), (got, 100));
}

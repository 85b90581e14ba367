//! The sockets of one datagram endpoint: one, or one for each address of its name in turn (spec statsd §14 R7).
//!
//! Path of a packet: `DatagramSender::poll` -> `Driver::turn` -> **`Lanes::pick`** -> `Lanes::send`.
//!
//! A lane is a socket to one address. A failed lane is skipped for a pause that doubles. Then one packet probes it,
//! while the others continue. If it is not rejected within [`PROBE_NS`], the lane is used again. Not here: the effect
//! on the endpoint when all lanes have failed (`deliver::datagram`), names (`addresses::names`).
//! Invariant: several lanes have different addresses, at most [`ADDRESSES_MAX`].

use std::io;
use std::net::SocketAddr;

use deliver::plan::SenderPlan;
use model::{Now, SECOND_NS, Span};

use crate::outputs::socket::DatagramSocket;
use sys::{AsFd, PacketWriter, Wait};

/// Packets of one system call.
pub const PACKETS_MAX: usize = 64;

/// Most addresses of one name that are used in turn. Others are not used, which is logged.
pub const ADDRESSES_MAX: usize = 16;

/// Without a rejection for this long, a probe packet has arrived.
const PROBE_NS: u64 = SECOND_NS / 10;

const MS_NS: u64 = 1_000_000;

/// See the module's header.
pub struct Lanes {
    /// The output and its endpoint, for log lines.
    name: String,
    plan: SenderPlan,
    lanes: Vec<Lane>,
    /// The last picked lane.
    current: usize,
    /// Where the search for the next one begins.
    next: usize,
    /// The last call sent fewer packets than given: the next packet uses the same lane, to find the reason.
    cut_short: bool,
}

struct Lane {
    /// `None` on a unix socket.
    address: Option<SocketAddr>,
    /// `None` when it could not be opened yet.
    socket: Option<DatagramSocket>,
    writer: PacketWriter,
    /// Consecutive failures; 0 while it is used.
    failures: u32,
    /// When a failed lane is probed, or the probe is judged.
    due_ns: u64,
    /// A probe packet was sent.
    asked: bool,
}

impl Lane {
    fn new(address: Option<SocketAddr>) -> Lane {
        let writer = PacketWriter::new(PACKETS_MAX);
        Lane { address, socket: None, writer, failures: 0, due_ns: 0, asked: false }
    }

    fn take(&mut self, socket: DatagramSocket) {
        self.writer.begin(socket.as_fd());
        self.socket = Some(socket);
    }

    fn open(&mut self) -> io::Result<()> {
        let address = self.address.ok_or(io::ErrorKind::NotConnected)?;
        self.take(DatagramSocket::udp(address)?);
        Ok(())
    }

    fn fail(&mut self, plan: &SenderPlan, now: Now) {
        let pause_ms = plan.retry_min_ms.saturating_mul(1 << self.failures.min(32)).min(plan.retry_max_ms);
        self.failures += 1;
        self.asked = false;
        self.due_ns = now.mono_ns.saturating_add(pause_ms.saturating_mul(MS_NS));
    }
}

impl Lanes {
    /// No lanes yet. `name` is for logs; only the retry delays of the plan are used.
    pub fn new(name: String, plan: SenderPlan) -> Lanes {
        Lanes { name, plan, lanes: Vec::new(), current: 0, next: 0, cut_short: false }
    }

    /// Uses one lane with this socket.
    pub fn set_only(&mut self, socket: DatagramSocket, address: Option<SocketAddr>) {
        let mut lane = Lane::new(address);
        lane.take(socket);
        self.lanes = vec![lane];
        self.begin();
    }

    /// Uses one lane for each of `addresses`; existing lanes to them are kept. Returns how many sockets were opened.
    ///
    /// # Errors
    /// When no lane has a socket: the system's last error.
    pub fn lead_to(&mut self, addresses: &[SocketAddr], now: Now) -> io::Result<usize> {
        self.lanes.retain(|lane| lane.address.is_some_and(|address| addresses.contains(&address)));
        let mut made = 0;
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for address in addresses {
            if self.lanes.iter().any(|lane| lane.address == Some(*address)) {
                continue;
            }
            if self.lanes.len() == ADDRESSES_MAX {
                let (name, all) = (&self.name, addresses.len());
                tracing::warn!("{name} has {all} addresses; only {ADDRESSES_MAX} of them get packets");
                break;
            }
            let mut lane = Lane::new(Some(*address));
            match lane.open() {
                Ok(()) => made += 1,
                Err(error) => {
                    lane.fail(&self.plan, now);
                    last = error;
                }
            }
            self.lanes.push(lane);
        }
        self.begin();
        if self.lanes.iter().all(|lane| lane.socket.is_none()) { Err(last) } else { Ok(made) }
    }

    fn begin(&mut self) {
        debug_assert!(self.lanes.len() <= ADDRESSES_MAX);
        (self.current, self.next, self.cut_short) = (0, 0, false);
    }

    /// Number of lanes.
    pub fn count(&self) -> usize {
        self.lanes.len()
    }

    /// The last picked lane.
    pub fn current(&self) -> usize {
        self.current
    }

    /// Its address, on UDP.
    pub fn address(&self) -> Option<SocketAddr> {
        self.lanes.get(self.current)?.address
    }

    /// Its socket.
    pub fn socket(&self) -> Option<&DatagramSocket> {
        self.lanes.get(self.current)?.socket.as_ref()
    }

    /// Picks the lane of the next packets, and returns how many may be sent. When all lanes have failed, it is the one
    /// whose pause ends first: the sender decides about the endpoint's pause.
    pub fn pick(&mut self, now: Now) -> usize {
        if self.lanes.len() < 2 {
            return PACKETS_MAX;
        }
        if !self.cut_short {
            let (count, next) = (self.lanes.len(), self.next);
            let ready = (0..count).map(|step| (next + step) % count).find(|at| self.is_ready(*at, now));
            let first_due = || (0..count).min_by_key(|at| self.lanes[*at].due_ns).unwrap_or(0);
            self.current = ready.unwrap_or_else(first_due);
        }
        if self.lanes[self.current].failures == 0 { PACKETS_MAX } else { 1 }
    }

    fn is_ready(&mut self, at: usize, now: Now) -> bool {
        let lane = &mut self.lanes[at];
        if lane.failures == 0 {
            return true;
        }
        if now.mono_ns < lane.due_ns {
            return false;
        }
        if lane.socket.is_none() && lane.open().is_err() {
            lane.fail(&self.plan, now);
            return false;
        }
        // A rejection would have been found by `take_error` before.
        if std::mem::take(&mut lane.asked) {
            lane.failures = 0;
            tracing::info!("{}: {} accepts packets again", self.name, shown(lane.address));
        }
        true
    }

    /// Sends the first of `packets` (spans of `bytes`) over the picked lane; see [`PacketWriter::send`].
    ///
    /// # Errors
    /// Errors of [`PacketWriter::send`]; not connected without a socket.
    pub fn send(&mut self, bytes: &[u8], packets: &[Span], now: Now) -> io::Result<usize> {
        let Some(lane) = self.lanes.get_mut(self.current) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let Some(socket) = &lane.socket else { return Err(io::ErrorKind::NotConnected.into()) };
        let sent = socket.try_send(|fd| lane.writer.send(fd, bytes, packets, Wait::No))?;
        if lane.failures > 0 {
            lane.asked = true;
            lane.due_ns = now.mono_ns.saturating_add(PROBE_NS);
        }
        self.cut_short = sent < packets.len();
        self.next = if self.cut_short { self.current } else { (self.current + 1) % self.lanes.len() };
        Ok(sent)
    }

    /// The pending error of lane `at`'s socket, if it is time to read it: the sender checks all lanes (`wanted`), or a
    /// probe's time is over.
    pub fn take_error(&self, at: usize, wanted: bool, now: Now) -> Option<io::Error> {
        let lane = self.lanes.get(at)?;
        let judged = lane.asked && now.mono_ns >= lane.due_ns;
        lane.socket.as_ref().filter(|_| wanted || judged)?.take_error()
    }

    /// Skips lane `at` for a while. False when no other lane is usable: the endpoint is down.
    pub fn pass_over(&mut self, at: usize, error: &io::Error, now: Now) -> bool {
        let others = self.lanes.iter().enumerate().any(|(other, lane)| other != at && lane.failures == 0);
        let Some(lane) = self.lanes.get_mut(at) else { return others };
        if lane.failures == 0 && others {
            let address = shown(lane.address);
            tracing::warn!(
                "{}: {address} is skipped ({error}); its other addresses still get packets",
                self.name
            );
        }
        lane.fail(&self.plan, now);
        if at == self.current {
            self.cut_short = false;
        }
        others
    }
}

fn shown(address: Option<SocketAddr>) -> String {
    address.map_or_else(|| "its socket".to_owned(), |address| address.to_string())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    /// Addresses of loopback that end in these numbers. Nothing is sent to them.
    fn addresses(ends: impl IntoIterator<Item = u8>) -> Vec<SocketAddr> {
        ends.into_iter().map(|end| (Ipv4Addr::new(127, 0, 0, end), 9).into()).collect()
    }

    fn lanes() -> Lanes {
        let plan = SenderPlan { retry_min_ms: 100, retry_max_ms: 350, ..SenderPlan::default() };
        Lanes::new("output `o`: udp://agent.test:9".to_owned(), plan)
    }

    fn led_to(lanes: &Lanes) -> Vec<u8> {
        let end = |lane: &Lane| match lane.address {
            Some(SocketAddr::V4(address)) => address.ip().octets()[3],
            other => panic!("{other:?}"),
        };
        lanes.lanes.iter().map(end).collect()
    }

    #[tokio::test]
    async fn addresses_have_a_limit_and_existing_lanes_are_kept() {
        let mut lanes = lanes();
        let now = Now::default();
        let most = ADDRESSES_MAX as u8;
        assert_eq!(lanes.lead_to(&addresses(1..=most), now).expect("loopback"), ADDRESSES_MAX);
        assert_eq!(lanes.count(), ADDRESSES_MAX, "at the bound");
        let more: Vec<u8> = (1..=most + 1).rev().collect();
        assert_eq!(lanes.lead_to(&addresses(more.clone()), now).expect("loopback"), 0, "past it");
        assert_eq!(led_to(&lanes), (1..=most).collect::<Vec<u8>>());
        // One address is gone: the one above the limit replaces it.
        let without: Vec<u8> = more.into_iter().filter(|end| *end != 3).collect();
        assert_eq!(lanes.lead_to(&addresses(without), now).expect("loopback"), 1);
        assert_eq!(led_to(&lanes), (1..=most + 1).filter(|end| *end != 3).collect::<Vec<u8>>());
        assert!(lanes.lead_to(&[], now).is_err(), "nowhere to go to");
        assert_eq!((lanes.count(), lanes.pick(now)), (0, PACKETS_MAX));
        assert!(lanes.send(b"a", &[Span::new(0, 1)], now).is_err());
    }

    /// Picks a lane, and ends that turn as `send` does after sending everything.
    fn turn(lanes: &mut Lanes, now: Now) -> (usize, usize) {
        let packets_max = lanes.pick(now);
        let lane = &mut lanes.lanes[lanes.current];
        if lane.failures > 0 {
            (lane.asked, lane.due_ns) = (true, now.mono_ns + PROBE_NS);
        }
        lanes.next = (lanes.current + 1) % lanes.lanes.len();
        (lanes.current, packets_max)
    }

    #[tokio::test]
    async fn a_failed_lane_is_skipped_probed_with_one_packet_and_used_again() {
        let mut lanes = lanes();
        let mut now = Now::default().plus_ns(SECOND_NS);
        lanes.lead_to(&addresses(1..=3), now).expect("loopback");
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        let turns = |lanes: &mut Lanes, now| [0; 4].map(|_: u8| turn(lanes, now));
        let all = PACKETS_MAX;
        assert_eq!(turns(&mut lanes, now), [(0, all), (1, all), (2, all), (0, all)]);
        assert!(lanes.pass_over(1, &refused, now), "others take packets");
        assert_eq!(turns(&mut lanes, now), [(2, all), (0, all), (2, all), (0, all)]);
        now = now.plus_ns(100 * MS_NS);
        assert_eq!(turns(&mut lanes, now), [(1, 1), (2, all), (0, all), (2, all)], "one packet finds out");
        // Rejected again: the pause doubles.
        assert!(lanes.pass_over(1, &refused, now));
        now = now.plus_ns(199 * MS_NS);
        assert_eq!(turns(&mut lanes, now), [(0, all), (2, all), (0, all), (2, all)]);
        now = now.plus_ns(MS_NS);
        assert_eq!(turns(&mut lanes, now), [(0, all), (1, 1), (2, all), (0, all)]);
        now = now.plus_ns(PROBE_NS);
        assert_eq!(turns(&mut lanes, now), [(1, all), (2, all), (0, all), (1, all)], "it was not refused");
        // All have failed: the one whose pause ends first is probed, when the sender says so.
        assert!(lanes.pass_over(2, &refused, now));
        assert!(lanes.pass_over(0, &refused, now.plus_ns(MS_NS)));
        assert!(!lanes.pass_over(1, &refused, now.plus_ns(2 * MS_NS)), "none is left");
        assert_eq!(turn(&mut lanes, now), (2, 1));
    }
}

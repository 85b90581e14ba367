//! Contestants: a bare loop, Staunch or node's statsd. Each run reads memory, CPU time and counts before, while and
//! after packets are sent.
//!
//! Not here: the order of runs (`rounds`), the definition of a run (`statsd::scenario`, `fanout::copies`).

pub(crate) mod api_client;
pub(crate) mod bare;
pub(crate) mod process;
pub(crate) mod server;
pub(crate) mod usage;

use std::net::SocketAddr;
use std::time::Duration;

use crate::contestant::api_client::Counts;
use crate::contestant::bare::BareLoop;
use crate::contestant::server::{Daemon, Ports, Server, Stand};
use crate::contestant::usage::{Patience, Progress, Usage};
use crate::traffic::generator::{Generator, Sent};
use crate::traffic::packets::Ring;
use crate::{BenchError, failed};
use sys::{Gather, Memory};

/// The kernel keeps packets only until they are read.
const PATIENCE: Patience = Patience { look_every: Duration::from_millis(50), looks_unchanged_max: 6 };

/// The contestants of each round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entrant {
    /// A loop that only receives, at once or after pauses.
    Bare(Option<Gather>),
    /// A daemon under test.
    Daemon(Daemon),
}

impl Entrant {
    /// All contestants on this machine. The first two are the bare loop, which the others' figures are multiples of,
    /// and Staunch.
    pub(crate) fn all(stand: &Stand) -> Vec<Entrant> {
        let rival = stand.rival.is_some().then_some(Entrant::Daemon(Daemon::Node));
        [Entrant::Bare(None), Entrant::Daemon(Daemon::Staunch), Entrant::Bare(Some(Gather::default()))]
            .into_iter()
            .chain(rival)
            .collect()
    }

    /// Its name in the rows of the report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Entrant::Bare(None) => "bare loop",
            Entrant::Bare(Some(_)) => "bare, napping",
            Entrant::Daemon(daemon) => daemon.name(),
        }
    }

    /// Starts the contestant. The loop copies to each of `to`; a daemon follows its `config`.
    ///
    /// # Errors
    /// When it does not start or answer.
    pub(crate) fn start(
        self,
        stand: &Stand,
        to: &[SocketAddr],
        config: &dyn Fn(Daemon, Ports) -> String,
    ) -> Result<Contestant, BenchError> {
        match self {
            Entrant::Bare(gather) => BareLoop::start(stand.core, gather, to)
                .map(Contestant::Bare)
                .map_err(failed("start the bare loop")),
            Entrant::Daemon(daemon) => {
                Server::start(stand, daemon, &|ports| config(daemon, ports)).map(Contestant::Server)
            }
        }
    }
}

/// The receiver of the packets.
pub(crate) enum Contestant {
    Bare(BareLoop),
    Server(Server),
}

/// One run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measured {
    /// The packets sent.
    pub sent: Sent,
    /// The packets received.
    pub counted: Counts,
    /// CPU time without idle use, in nanoseconds.
    pub cpu_ns: f64,
    /// Share of the server's core that other processes took meanwhile.
    pub others_share: f64,
}

impl Contestant {
    fn generator(&self) -> Result<Generator, BenchError> {
        let address = match self {
            Contestant::Bare(bare) => bare.address().map_err(failed("find the bare loop's port"))?,
            Contestant::Server(server) => server.address(),
        };
        Generator::new(address).map_err(failed("make the generator's socket"))
    }

    fn cpu_ns(&self) -> Result<u64, BenchError> {
        match self {
            Contestant::Bare(bare) => bare.cpu_ns().map_err(failed("read the CPU time of the bare loop")),
            Contestant::Server(server) => server.cpu_ns(),
        }
    }

    /// Memory of a daemon; the bare loops have none of their own.
    pub(crate) fn memory(&self) -> Result<Memory, BenchError> {
        match self {
            Contestant::Bare(_) => Ok(Memory::default()),
            Contestant::Server(server) => server.memory(),
        }
    }

    fn counts(&self) -> Result<Counts, BenchError> {
        match self {
            Contestant::Bare(bare) => {
                let dropped = bare.drops().map_err(failed("read the drops of the bare loop"))?;
                Ok(Counts { packets: bare.packets(), samples: 0, dropped })
            }
            Contestant::Server(server) => server.counts(),
        }
    }

    /// Sends, and waits until all packets have been received or lost. `core` is the contestant's.
    pub(crate) fn measure(
        &self,
        core: Option<usize>,
        ring: &Ring,
        packets: u64,
        rate: u64,
    ) -> Result<Measured, BenchError> {
        self.measure_until(core, ring, packets, rate, &mut |before| {
            let now = self.counts()?.since(before);
            Ok(Progress { done: now.packets, moved: now.packets + now.samples + now.dropped })
        })
    }

    /// Sends, and waits until `progress` has every packet or nothing changes any more. Its argument is the contestant's
    /// counts before the run.
    pub(crate) fn measure_until(
        &self,
        core: Option<usize>,
        ring: &Ring,
        packets: u64,
        rate: u64,
        progress: &mut dyn FnMut(Counts) -> Result<Progress, BenchError>,
    ) -> Result<Measured, BenchError> {
        let mut generator = self.generator()?;
        let before = self.counts()?;
        let read_cpu = || self.cpu_ns();
        let usage = Usage::begin(core, &read_cpu)?;
        let sent = generator.send(ring, packets, rate).map_err(failed("send packets"))?;
        let used = usage.until_settled(sent.packets, PATIENCE, &mut || progress(before))?;
        let counted = self.counts()?.since(before);
        Ok(Measured { sent, counted, cpu_ns: used.cpu_ns, others_share: used.others_share })
    }
}

impl Measured {
    pub(crate) fn ns_per_packet(&self) -> f64 {
        self.cpu_ns / self.counted.packets.max(1) as f64
    }

    pub(crate) fn percent_counted(&self) -> f64 {
        100.0 * self.counted.packets as f64 / self.sent.packets.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::packets::{Mixture, SampleType};

    #[test]
    fn the_bare_loops_take_every_packet_of_the_generator() {
        for gather in [None, Some(Gather::default())] {
            let bare = Contestant::Bare(BareLoop::start(None, gather, &[]).unwrap());
            let ring = Ring::new(Mixture { names: 10, pack: 3, kind: SampleType::Mix, every_name: false });
            // More than the ring holds, so that it goes round; paced, so that no buffer can overflow.
            let run = bare.measure(None, &ring, 5_000, 100_000).unwrap();
            assert_eq!((run.sent.packets, run.sent.samples), (5_000, 15_000));
            assert_eq!((run.counted.packets, run.counted.dropped), (5_000, 0));
            assert!(run.cpu_ns > 0.0 && run.sent.ns >= 40_000_000, "{run:?}");
            let full = bare.measure(None, &ring, 500, 0).unwrap();
            assert_eq!(full.counted.packets + full.counted.dropped, 500);
            assert_eq!(full.sent.refused, 0);
        }
    }
}

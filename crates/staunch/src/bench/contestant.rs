//! One run of one contestant: what is read before, while and after packets are sent to it.
//!
//! Not here: who runs when and how often (`scenario`).

use std::thread;
use std::time::Duration;

use super::ask::Counts;
use super::bare::BareLoop;
use super::generator::{Generator, Sent};
use super::machine::core_busy_ns;
use super::packets::Ring;
use super::server::Server;
use super::{BenchError, failed};
use crate::clock::Clock;
use crate::sys::Memory;

/// How long idle use is watched before a run.
const IDLE_WATCH: Duration = Duration::from_millis(300);

/// Between two looks at whether all packets are in; after so many looks without change the rest is lost.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const LOOKS_WITHOUT_CHANGE_MAX: u32 = 6;

/// Who receives.
pub(super) enum Contestant {
    Bare(BareLoop),
    Server(Server),
}

/// One run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Measured {
    /// What was sent.
    pub sent: Sent,
    /// What of it came in.
    pub counted: Counts,
    /// CPU time without idle use, in nanoseconds.
    pub cpu_ns: f64,
    /// Share of the server's core that other processes took meanwhile.
    pub others_share: f64,
}

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// Packets that are where they should be.
    pub done: u64,
    /// Grows while anything still happens.
    pub moved: u64,
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
    pub(super) fn memory(&self) -> Result<Memory, BenchError> {
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

    /// Sends and waits until everything is in or lost. `core` is the contestant's.
    pub(super) fn measure(
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

    /// Sends and waits until `progress` is done with every packet, or nothing moves any more. It is told what the
    /// contestant had counted before.
    pub(super) fn measure_until(
        &self,
        core: Option<usize>,
        ring: &Ring,
        packets: u64,
        rate: u64,
        progress: &mut dyn FnMut(Counts) -> Result<Progress, BenchError>,
    ) -> Result<Measured, BenchError> {
        let mut generator = self.generator()?;
        let idle_ns = self.cpu_ns()?;
        thread::sleep(IDLE_WATCH);
        let idle_share = (self.cpu_ns()? - idle_ns) as f64 / IDLE_WATCH.as_nanos() as f64;
        let before = self.counts()?;
        let busy_ns = core.and_then(core_busy_ns);
        let (cpu_ns, start_ns) = (self.cpu_ns()?, Clock::mono_ns());
        let sent = generator.send(ring, packets, rate).map_err(failed("send packets"))?;
        let (cpu_end_ns, end_ns) = self.settled(sent.packets, &mut || progress(before))?;
        let counted = self.counts()?.since(before);
        let passed_ns = (end_ns - start_ns) as f64;
        let used_ns = (cpu_end_ns - cpu_ns) as f64;
        let busy_ns =
            busy_ns.zip(core.and_then(core_busy_ns)).map_or(used_ns, |(before, now)| (now - before) as f64);
        Ok(Measured {
            sent,
            counted,
            cpu_ns: (used_ns - idle_share * passed_ns).max(0.0),
            others_share: ((busy_ns - used_ns) / passed_ns).max(0.0),
        })
    }

    /// CPU time and moment once all is in or lost, read before the question.
    fn settled(
        &self,
        packets: u64,
        progress: &mut dyn FnMut() -> Result<Progress, BenchError>,
    ) -> Result<(u64, u64), BenchError> {
        let mut last = 0;
        let mut unchanged = 0;
        loop {
            thread::sleep(LOOK_EVERY);
            let (cpu_ns, at_ns) = (self.cpu_ns()?, Clock::mono_ns());
            let now = progress()?;
            unchanged = if now.moved == last { unchanged + 1 } else { 0 };
            if now.done >= packets || unchanged >= LOOKS_WITHOUT_CHANGE_MAX {
                return Ok((cpu_ns, at_ns));
            }
            last = now.moved;
        }
    }
}

impl Measured {
    pub(super) fn ns_per_packet(&self) -> f64 {
        self.cpu_ns / self.counted.packets.max(1) as f64
    }

    pub(super) fn percent_counted(&self) -> f64 {
        100.0 * self.counted.packets as f64 / self.sent.packets.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::super::packets::{Mixture, SampleType};
    use super::*;
    use crate::sys::Gather;

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

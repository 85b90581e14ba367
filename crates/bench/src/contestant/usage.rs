//! CPU time of one run: from the first packet sent until all have arrived, without the contestant's idle use.
//!
//! Not here: the packets and their destinations (`contestant`, `relay::contestant`).

use std::thread;
use std::time::Duration;

use crate::BenchError;
use crate::machine::core_busy_ns;
use sys::clock::Clock;

/// How long idle use is measured before a run.
const IDLE_WATCH: Duration = Duration::from_millis(300);

/// Reads a contestant's CPU time so far, in nanoseconds.
pub(crate) type ReadCpu<'a> = &'a dyn Fn() -> Result<u64, BenchError>;

/// The progress of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    /// Packets or lines that have arrived.
    pub done: u64,
    /// Grows as long as packets still move.
    pub moved: u64,
}

/// How long to wait for the rest of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// The interval between two checks.
    pub look_every: Duration,
    /// After this many checks without change, the rest counts as lost.
    pub looks_unchanged_max: u32,
}

/// A run that has begun.
pub(crate) struct Usage<'a> {
    read_cpu: ReadCpu<'a>,
    core: Option<usize>,
    /// The contestant's use of a core while nothing is sent, as a share.
    idle_share: f64,
    core_busy_ns: Option<u64>,
    cpu_ns: u64,
    /// Its start on the monotonic clock.
    pub start_ns: u64,
}

/// The CPU use of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    /// CPU time without idle use, in nanoseconds.
    pub cpu_ns: f64,
    /// Share of the contestant's core that other processes took meanwhile.
    pub others_share: f64,
}

impl<'a> Usage<'a> {
    /// Measures idle use first; the run begins when this call returns. `core` is the contestant's.
    pub(crate) fn begin(core: Option<usize>, read_cpu: ReadCpu<'a>) -> Result<Usage<'a>, BenchError> {
        let idle_ns = read_cpu()?;
        thread::sleep(IDLE_WATCH);
        let idle_share = (read_cpu()? - idle_ns) as f64 / IDLE_WATCH.as_nanos() as f64;
        let core_busy_ns = core.and_then(core_busy_ns);
        Ok(Usage {
            read_cpu,
            core,
            idle_share,
            core_busy_ns,
            cpu_ns: read_cpu()?,
            start_ns: Clock::mono_ns(),
        })
    }

    /// Waits until `progress` has reached `total`, or nothing changes any more.
    pub(crate) fn until_settled(
        self,
        total: u64,
        patience: Patience,
        progress: &mut dyn FnMut() -> Result<Progress, BenchError>,
    ) -> Result<Used, BenchError> {
        let (cpu_end_ns, end_ns) = settled(self.read_cpu, total, patience, progress)?;
        let busy_end_ns = self.core.and_then(core_busy_ns);
        let passed_ns = (end_ns - self.start_ns) as f64;
        let used_ns = (cpu_end_ns - self.cpu_ns) as f64;
        let busy_ns =
            self.core_busy_ns.zip(busy_end_ns).map_or(used_ns, |(before, now)| (now - before) as f64);
        Ok(Used {
            cpu_ns: (used_ns - self.idle_share * passed_ns).max(0.0),
            others_share: ((busy_ns - used_ns) / passed_ns).max(0.0),
        })
    }
}

/// CPU time and moment when `progress` has reached `total`, or nothing changes any more. Both are read before
/// `progress` is.
pub(crate) fn settled(
    read_cpu: ReadCpu<'_>,
    total: u64,
    patience: Patience,
    progress: &mut dyn FnMut() -> Result<Progress, BenchError>,
) -> Result<(u64, u64), BenchError> {
    let mut last = 0;
    let mut unchanged = 0;
    loop {
        thread::sleep(patience.look_every);
        let read = (read_cpu()?, Clock::mono_ns());
        let now = progress()?;
        unchanged = if now.moved == last { unchanged + 1 } else { 0 };
        if now.done >= total || unchanged >= patience.looks_unchanged_max {
            return Ok(read);
        }
        last = now.moved;
    }
}

//! The parts that all benchmarks share: cores, the binary under test, the command line.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use crate::contestant::Measured;
use crate::contestant::server::Stand;
use crate::machine::Machine;
use crate::report::{Report, ScenarioReport, figure};
use crate::rival::Rival;
use crate::rounds;
use crate::{BenchError, failed};

/// Most runs: more would not fit a report.
pub(crate) const RUNS_MAX: u64 = 1000;

/// Above this load average, the figures are doubtful.
const LOAD_MAX: f64 = 0.3;

/// Above this share of the server's core for other processes, the server may have had to wait for it.
const OTHERS_SHARE_MAX: f64 = 0.05;

/// The generator kept its rate if it reached at least this share of it.
const RATE_KEPT_MIN: f64 = 0.97;

/// Arguments that all benchmarks take.
#[derive(Clone, Debug, clap::Args)]
pub struct Common {
    /// Core of the daemon under test
    #[arg(long, default_value_t = 0, hide_short_help = true)]
    pub server_core: usize,
    /// Core of the generator, and of whatever receives behind the daemon
    #[arg(long, default_value_t = 1, hide_short_help = true)]
    pub generator_core: usize,
    /// The staunch to measure [default: this one]
    #[arg(long, hide_short_help = true)]
    pub binary: Option<PathBuf>,
}

/// Progress, a line at a time, for people who wait.
pub(crate) type Talk<'t> = &'t mut (dyn FnMut(&str) + Send);

/// The conditions of a benchmark's scenarios.
pub(crate) struct Ground<'a> {
    /// Binary, cores and folder of the daemons under test.
    pub stand: Stand,
    /// Warnings so far: conditions that make the figures doubtful.
    pub warnings: Vec<String>,
    /// Progress.
    pub talk: RefCell<Talk<'a>>,
}

/// The description of a benchmark.
pub(crate) struct About {
    /// Its word on the command line.
    pub name: &'static str,
    /// The transport of its packets.
    pub over: &'static str,
    /// Its method, after the sentence on the cores.
    pub method: String,
    /// The program that it is compared with.
    pub rival: Rival,
}

/// Pins the threads, finds the binary, runs the scenarios, and makes the report.
///
/// # Errors
/// Those of `scenarios`, and when the benchmark itself fails. The folder with configs and logs is then kept; the error
/// names it.
pub(crate) fn measure(
    common: &Common,
    about: About,
    talk: Talk<'_>,
    scenarios: impl FnOnce(&mut Ground<'_>) -> Result<Vec<ScenarioReport>, BenchError> + Send,
) -> Result<Report, BenchError> {
    // On its own thread, because the thread is bound to a core and the caller's threads must not be.
    thread::scope(|threads| {
        let bench = threads.spawn(|| measure_pinned(common, about, talk, scenarios));
        bench.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn measure_pinned(
    common: &Common,
    about: About,
    talk: Talk<'_>,
    scenarios: impl FnOnce(&mut Ground<'_>) -> Result<Vec<ScenarioReport>, BenchError>,
) -> Result<Report, BenchError> {
    let machine = Machine::look();
    let mut warnings = Vec::new();
    let cores = common.pin(&mut warnings);
    warnings.extend(warning_of_load(&machine));
    warnings.extend(about.rival.missing);
    let dir = std::env::temp_dir().join(format!("staunch-bench-{}", std::process::id()));
    fs::create_dir_all(&dir).map_err(failed("make a folder for configs and logs"))?;
    let binary = match &common.binary {
        Some(binary) => fs::canonicalize(binary).map_err(failed("find the --binary"))?,
        None => std::env::current_exe().map_err(failed("find its own binary"))?,
    };
    let stand =
        Stand { binary, rival: about.rival.program, dir: dir.clone(), core: cores.map(|cores| cores.0) };
    let mut ground = Ground { stand, warnings, talk: RefCell::new(talk) };
    let scenarios = scenarios(&mut ground)?;
    fs::remove_dir_all(&dir).map_err(failed("remove its folder"))?;
    let place = match cores {
        Some((server, generator)) => format!("server on core {server}, generator on core {generator}"),
        None => "nothing pinned".into(),
    };
    let mut report = Report {
        bench: about.name,
        version: env!("CARGO_PKG_VERSION").into(),
        machine,
        command: command_line(),
        method: format!("{} on loopback; {place}; {}", about.over, about.method),
        rival: about.rival.words,
        scenarios,
        warnings: ground.warnings,
    };
    report.warn_of_noise();
    Ok(report)
}

/// A warning when the machine was busy before the first run.
pub(crate) fn warning_of_load(machine: &Machine) -> Option<String> {
    (machine.load > LOAD_MAX)
        .then(|| format!("the load was {:.2} before the first run: other programs disturb", machine.load))
}

impl Ground<'_> {
    /// Prints one line of progress.
    pub(crate) fn say(&self, line: &str) {
        (self.talk.borrow_mut())(line);
    }

    /// Runs `entrants` in turn: see [`rounds::rounds`].
    ///
    /// # Errors
    /// Those of `run`.
    pub(crate) fn rounds<E, R>(
        &self,
        name: &str,
        rounds: u64,
        entrants: &[E],
        run: impl FnMut(&E, u64) -> Result<R, BenchError>,
    ) -> Result<Vec<Vec<R>>, BenchError> {
        rounds::rounds(&mut |line| self.say(line), name, rounds, entrants, run)
    }

    /// Warns when other processes used much of the server's core in any of `runs`.
    pub(crate) fn warn_of_others<'r>(&mut self, name: &str, runs: impl IntoIterator<Item = &'r Measured>) {
        self.warn_of_share(name, runs.into_iter().map(|run| run.others_share).fold(0.0, f64::max));
    }

    /// The same with the largest share of all runs.
    pub(crate) fn warn_of_share(&mut self, name: &str, share: f64) {
        if share > OTHERS_SHARE_MAX {
            self.warnings.push(format!(
                "{name}: other programs took up to {:.0} % of the server's core during a run",
                share * 100.0
            ));
        }
    }

    /// Warns when the generator did not reach the requested `rate`; 0 means no rate.
    pub(crate) fn warn_of_rate(&mut self, name: &str, speed: f64, rate: u64) {
        if speed < RATE_KEPT_MIN * rate as f64 {
            self.warnings
                .push(format!("{name}: the generator made only {} packets/s", figure(speed.round())));
        }
    }
}

impl Common {
    /// Binds this thread to the generator's core. Returns both cores if they exist.
    fn pin(&self, warnings: &mut Vec<String>) -> Option<(usize, usize)> {
        let (server, generator) = (self.server_core, self.generator_core);
        // The server's core first: if it is not allowed, this fails here. The second call undoes the first.
        let pinned = sys::pin_to_core(server).and_then(|()| sys::pin_to_core(generator));
        match pinned {
            Ok(()) if server != generator => Some((server, generator)),
            Ok(()) => {
                warnings.push("server and generator share a core: the figures say little".into());
                Some((server, generator))
            }
            Err(error) => {
                warnings.push(format!(
                    "nothing is pinned: cores {server} and {generator} cannot be used: {error}"
                ));
                None
            }
        }
    }
}

/// This process's command line, the program by its name alone.
pub(crate) fn command_line() -> String {
    let mut words = std::env::args();
    let program = words.next().unwrap_or_default();
    let program =
        Path::new(&program).file_name().map_or(program.clone(), |name| name.to_string_lossy().into_owned());
    std::iter::once(program).chain(words).collect::<Vec<_>>().join(" ")
}

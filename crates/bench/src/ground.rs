//! What every benchmark is told and says: cores, the binary under test, the command line.

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

/// Most runs: more would not fit a report, nor an afternoon.
pub(crate) const RUNS_MAX: u64 = 1000;

/// A load of the machine from which on the figures are doubted.
const LOAD_MAX: f64 = 0.3;

/// When others take more than this share of the server's core, the server may have had to wait for it.
const OTHERS_SHARE_MAX: f64 = 0.05;

/// A rate that was not kept to this share was not kept.
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

/// What a benchmark's scenarios are run with.
pub(crate) struct Ground<'a> {
    /// What daemons are started with.
    pub stand: Stand,
    /// What makes the figures doubtful, so far.
    pub warnings: Vec<String>,
    /// Progress.
    pub talk: RefCell<Talk<'a>>,
}

/// What a benchmark says of itself.
pub(crate) struct About {
    /// Its word on the command line.
    pub name: &'static str,
    /// What it sends over.
    pub over: &'static str,
    /// How it measures, behind the words on the cores.
    pub method: String,
    /// What it is run beside.
    pub rival: Rival,
}

/// Pins, finds the binary, has the scenarios run, and makes the report.
///
/// # Errors
/// Those of `scenarios`, and when something of the benchmark's own fails. The folder with configs and logs is then
/// left behind; the error names it.
pub(crate) fn measure(
    common: &Common,
    about: About,
    talk: Talk<'_>,
    scenarios: impl FnOnce(&mut Ground<'_>) -> Result<Vec<ScenarioReport>, BenchError> + Send,
) -> Result<Report, BenchError> {
    // On a thread of its own, because it binds itself to a core and the caller's threads should stay as they are.
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
    /// Tells people who wait.
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

    /// Warns when other processes took much of the server's core in any of `runs`.
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

    /// Warns when the generator's speed was not the `rate` it was told; a rate of 0 is none.
    pub(crate) fn warn_of_rate(&mut self, name: &str, speed: f64, rate: u64) {
        if speed < RATE_KEPT_MIN * rate as f64 {
            self.warnings
                .push(format!("{name}: the generator made only {} packets/s", figure(speed.round())));
        }
    }
}

impl Common {
    /// Binds this thread to the generator's core; gives both cores when they exist.
    fn pin(&self, warnings: &mut Vec<String>) -> Option<(usize, usize)> {
        let (server, generator) = (self.server_core, self.generator_core);
        // The server's first: what may not be used fails here, and the second call undoes the first.
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

//! The four scenarios of `staunch bench relay`, and the limits of their figures.

use std::fs;
use std::path::Path;

use model::SECOND_NS;

use super::Args;
use super::contestant::{Run, Settings, Who};
use super::lines::{Lines, astray};
use super::sinks::Sinks;
use crate::ground::Ground;
use crate::report::{Check, Row, ScenarioReport, figure};
use crate::statsd::scenario::TIMES_BARE;
use crate::{BenchError, failed};

/// The project's promises; the report marks a figure beyond them as not met.
const PLAIN_NS_MAX: f64 = 210.0;
const ORIGINAL_TIMES_MIN: f64 = 10.0;
const NAMES_NS_MAX: f64 = 500.0;
const RULES_TIMES_PLAIN_MAX: f64 = 1.5;
const DISK_NS_MAX: f64 = 400.0;

/// The arguments of all scenarios.
pub(super) struct Relays<'a, 'g> {
    pub args: &'a Args,
    pub ground: &'a mut Ground<'g>,
    pub sinks: &'a Sinks,
}

/// One contestant of a scenario.
#[derive(Clone, Copy)]
struct Entrant {
    who: Who,
    /// Its name in the rows of the report.
    name: &'static str,
    rules: u64,
    on_disk: bool,
    /// It gets one of this many lines, because it is slow.
    share: u64,
    runs_max: u64,
}

impl Entrant {
    fn new(who: Who) -> Entrant {
        Entrant { who, name: who.name(), rules: 0, on_disk: false, share: 1, runs_max: u64::MAX }
    }
}

impl Relays<'_, '_> {
    /// `plain`: CPU per line of the bare loop, Staunch and the original.
    pub(super) fn plain(&mut self) -> Result<ScenarioReport, BenchError> {
        let entrants = [Entrant::new(Who::Bare), Entrant::new(Who::Staunch), Entrant::new(Who::Original)];
        let lines = Lines::new(self.args.names);
        let table = self.table("plain", &entrants, &lines)?;
        let mut checks = vec![table.cpu_at_most(PLAIN_NS_MAX)];
        checks.extend(table.original_at_least(ORIGINAL_TIMES_MIN));
        checks.push(table.astray_none());
        Ok(ScenarioReport {
            name: "plain",
            what: self.sentence(self.args.names, &lines),
            checks,
            rows: table.rows(),
        })
    }

    /// `names`: the same with very many names.
    pub(super) fn names(&mut self) -> Result<ScenarioReport, BenchError> {
        let entrants = [Entrant::new(Who::Bare), Entrant::new(Who::Staunch), Entrant::new(Who::Original)];
        let lines = Lines::new(self.args.many_names);
        let table = self.table("names", &entrants, &lines)?;
        let checks = vec![table.cpu_at_most(NAMES_NS_MAX), table.astray_none()];
        Ok(ScenarioReport {
            name: "names",
            what: self.sentence(self.args.many_names, &lines),
            checks,
            rows: table.rows(),
        })
    }

    /// `rules`: with and without regular expressions that every new name is compared with.
    pub(super) fn rules(&mut self) -> Result<ScenarioReport, BenchError> {
        let rules = self.args.rules;
        let entrants = [
            Entrant { name: NO_RULES, ..Entrant::new(Who::Staunch) },
            Entrant { rules, ..Entrant::new(Who::Staunch) },
            Entrant { rules, share: 10, runs_max: 2, ..Entrant::new(Who::Original) },
        ];
        let lines = Lines::new(self.args.names);
        let table = self.table("rules", &entrants, &lines)?;
        let ratio = table.ratio(1, "times without rules", 0);
        let check =
            Check::at_most("CPU per line, times that without rules:", ratio.median(), RULES_TIMES_PLAIN_MAX);
        let checks = vec![check, table.astray_none()];
        let mut rows = table.rows();
        rows.push(ratio);
        let what = format!(
            "{rules} regular expressions before the match; {}",
            self.sentence(self.args.names, &lines)
        );
        Ok(ScenarioReport { name: "rules", what, checks, rows })
    }

    /// `disk`: all queues on disk.
    pub(super) fn disk(&mut self) -> Result<ScenarioReport, BenchError> {
        let entrants = [Entrant::new(Who::Bare), Entrant { on_disk: true, ..Entrant::new(Who::Staunch) }];
        let lines = Lines::new(self.args.names);
        let table = self.table("disk", &entrants, &lines)?;
        let checks = vec![table.cpu_at_most(DISK_NS_MAX), table.astray_none()];
        let what = format!("queues on disk; {}", self.sentence(self.args.names, &lines));
        Ok(ScenarioReport { name: "disk", what, checks, rows: table.rows() })
    }

    /// Runs them in turn.
    fn table(
        &mut self,
        name: &'static str,
        entrants: &[Entrant],
        lines: &Lines,
    ) -> Result<Table, BenchError> {
        let there = |entrant: &&Entrant| entrant.who != Who::Original || self.ground.stand.rival.is_some();
        let entrants: Vec<Entrant> = entrants.iter().filter(there).copied().collect();
        let runs = self.ground.rounds(name, self.args.runs, &entrants, |entrant, round| {
            (round <= entrant.runs_max).then(|| self.run(entrant, lines)).transpose()
        })?;
        let runs: Vec<Vec<_>> = runs.into_iter().map(|runs| runs.into_iter().flatten().collect()).collect();
        let share = runs.iter().flatten().map(|(run, _)| run.others_share).fold(0.0, f64::max);
        self.ground.warn_of_share(name, share);
        Ok(Table { entrants, runs })
    }

    /// One run, with the number of lines that did not arrive at their endpoint.
    fn run(&self, entrant: &Entrant, lines: &Lines) -> Result<(Run, u64), BenchError> {
        let count = (self.args.lines / entrant.share).max(1);
        let folder = self.args.folder.join(format!("staunch-bench-relay-{}", std::process::id()));
        let settings = Settings {
            rules: entrant.rules as usize,
            queues: entrant.on_disk.then_some(&*folder),
            lines_max: count,
        };
        if entrant.on_disk {
            fs::create_dir_all(&folder).map_err(failed("make a folder on the disk to measure"))?;
        }
        let run = entrant.who.run(&self.ground.stand, settings, self.sinks, lines, count);
        remove(entrant.on_disk.then_some(&folder))?;
        let run = run?;
        // The bare loop ignores names, so no endpoint has a share.
        let astray = if entrant.who == Who::Bare { 0 } else { astray(&lines.shares(count), &run.arrived) };
        Ok((run, astray))
    }

    fn sentence(&self, names: u64, lines: &Lines) -> String {
        format!(
            "carbon_ch over three endpoints, {} names, {} lines of {} bytes a run",
            figure(names as f64),
            figure(self.args.lines as f64),
            figure(lines.mean_bytes())
        )
    }
}

fn remove(folder: Option<&Path>) -> Result<(), BenchError> {
    folder.map_or(Ok(()), fs::remove_dir_all).map_err(failed("remove its folder"))
}

const NO_RULES: &str = "without rules";

/// The runs of a scenario, by entrant.
struct Table {
    entrants: Vec<Entrant>,
    runs: Vec<Vec<(Run, u64)>>,
}

impl Run {
    fn ns_per_line(&self) -> f64 {
        let arrived: u64 = self.arrived.iter().map(|tally| tally.lines).sum();
        self.cpu_ns / arrived.max(1) as f64
    }

    fn lines_per_second(&self) -> f64 {
        self.lines as f64 * SECOND_NS as f64 / self.ns.max(1) as f64
    }
}

impl Table {
    fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for (at, entrant) in self.entrants.iter().enumerate() {
            let row = |what, unit, figure: &dyn Fn(&(Run, u64)) -> f64| Row {
                who: entrant.name,
                what,
                unit,
                runs: self.runs[at].iter().map(figure).collect(),
            };
            rows.push(row(CPU, "ns", &|(run, _)| run.ns_per_line()));
            if at > 0 && self.entrants[0].who == Who::Bare {
                rows.push(self.ratio(at, TIMES_BARE, 0));
            }
            if entrant.who == Who::Original
                && let Some(staunch) = self.of(Who::Staunch)
            {
                rows.push(self.ratio(at, "times Staunch's", staunch));
            }
            rows.push(row("lines per second", "/s", &|(run, _)| run.lines_per_second()));
            if entrant.who != Who::Bare {
                rows.push(row("memory, peak", "MB", &|(run, _)| run.memory_bytes as f64 / 1e6));
                rows.push(row("lines astray", "", &|(_, astray)| *astray as f64));
            }
        }
        rows
    }

    /// CPU per line of one contestant as a multiple of another's, run by run, because a slow minute affects both.
    fn ratio(&self, at: usize, what: &'static str, by: usize) -> Row {
        let pairs = self.runs[at].iter().zip(&self.runs[by]);
        let runs = pairs.map(|((run, _), (by, _))| run.ns_per_line() / by.ns_per_line()).collect();
        Row { who: self.entrants[at].name, what, unit: "", runs }
    }

    /// The last entrant that is `who`.
    fn of(&self, who: Who) -> Option<usize> {
        self.entrants.iter().rposition(|entrant| entrant.who == who)
    }

    fn cpu_at_most(&self, limit: f64) -> Check {
        let rows = self.rows();
        let own = rows.iter().find(|row| row.who == Who::Staunch.name() && row.what == CPU);
        Check::at_most("CPU per line in ns:", own.map_or(f64::NAN, Row::median), limit)
    }

    fn original_at_least(&self, limit: f64) -> Option<Check> {
        let ratio = self.ratio(self.of(Who::Original)?, "", self.of(Who::Staunch)?);
        Some(Check::at_least("c-relay's CPU per line, times Staunch's:", ratio.median(), limit))
    }

    fn astray_none(&self) -> Check {
        let most = self.runs.iter().flatten().map(|(_, astray)| *astray).max().unwrap_or(0);
        Check::at_most("lines lost or elsewhere than they belong, most of a run:", most as f64, 0.0)
    }
}

const CPU: &str = "CPU per line";

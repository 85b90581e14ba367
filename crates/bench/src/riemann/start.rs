//! From the start of the program to its first reply, with a large config.

use std::fmt::Write;

use super::node::{CONFIG, Node, Program};
use crate::BenchError;
use crate::ground::Ground;
use crate::report::{Check, Row, ScenarioReport, figure};

/// The asked figure, and the least that the config has.
const START_MS_MAX: f64 = 50.0;
const LINES_MIN: usize = 1_000;

/// Teams of the config, each with the streams of its services.
const TEAMS: usize = 60;

/// Milliseconds to the first reply.
pub(super) fn start(ground: &mut Ground<'_>, runs: u64) -> Result<ScenarioReport, BenchError> {
    let text = config();
    let lines = text.lines().filter(|line| is_code(line)).count();
    let original = ground.stand.rival.is_some().then_some(Program::Riemann);
    let entrants: Vec<Program> = std::iter::once(Program::Staunch).chain(original).collect();
    let times = ground.rounds("start", runs, &entrants, |program, _round| {
        let (node, took_ns) = Node::start_timed(&ground.stand, *program, &text)?;
        let cpu_ns = node.cpu_ns()?;
        node.stop()?;
        Ok((took_ns as f64 / 1e6, cpu_ns as f64 / 1e6))
    })?;
    let row = |who: Program, what, runs| Row { who: who.name(), what, unit: "ms", runs };
    let mut rows = Vec::new();
    for (program, times) in entrants.iter().zip(times) {
        let (took, cpu): (Vec<f64>, Vec<f64>) = times.into_iter().unzip();
        rows.extend([row(*program, "start to first reply", took), row(*program, "CPU of it", cpu)]);
    }
    let checks = vec![
        Check::at_most("ms from start to first reply:", rows[0].median(), START_MS_MAX),
        Check::at_least("lines of the config:", lines as f64, LINES_MIN as f64),
    ];
    let what = format!("a config of {} lines of code in one file", figure(lines as f64));
    Ok(ScenarioReport { name: "start", what, rows, checks })
}

fn is_code(line: &str) -> bool {
    !line.trim().is_empty() && !line.trim_start().starts_with(';')
}

/// The published config, and teams with functions and streams as large configs have them.
fn config() -> String {
    let mut text = format!("{CONFIG}\n(def stored (index))\n");
    for team in 0..TEAMS {
        let written = write!(
            text,
            r##"
(defn team-{team}-severity
  [event]
  (let [metric (or (:metric event) 0)]
    (cond
      (> metric 0.95) "critical"
      (> metric 0.8) "warning"
      :else "ok")))
(def team-{team}-notify
  (throttle 5 3600
    (fn [event] (info "team {team}" (:host event) (:service event) (:state event)))))
(streams
  (where (and (service #"^team{team}\.") (not (expired? event)))
    (by [:host :service]
      (changed-state {{:init "ok"}}
        team-{team}-notify))
    (where (service #"latency$")
      (percentiles 10 [0.5 0.95 0.99]
        (with :ttl 60 stored)))
    (splitp <= metric
      0.95 (with :state "critical" team-{team}-notify)
      0.8 (with :state "warning" stored)
      (with :state "ok" stored))
    (smap (fn [event] (assoc event :state (team-{team}-severity event)))
      (batch 3 600
        (fn [events] (info "team {team}:" (count events) "events"))))))
"##
        );
        assert!(written.is_ok(), "a String takes everything");
    }
    text
}

#[test]
fn the_config_has_as_many_lines_as_the_figure_asks_for() {
    assert!(config().lines().filter(|line| is_code(line)).count() >= LINES_MIN);
}

//! The report of a benchmark: figures with their spread, limits, warnings.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

use crate::machine::Machine;

/// Columns of the table: it fits the smallest usual terminal.
const WIDTH: usize = 80;

/// If the runs of a figure spread by more than this share of their median, it is noise.
const SPREAD_MAX: f64 = 0.10;

/// The whole report. `Display` is the table, `Serialize` the JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Its word on the command line.
    pub bench: &'static str,
    /// Version of the daemon under test.
    pub version: String,
    /// The machine.
    pub machine: Machine,
    /// The command, to repeat it.
    pub command: String,
    /// The method.
    pub method: String,
    /// The compared programs with their versions; empty without.
    pub rival: String,
    /// The results.
    pub scenarios: Vec<ScenarioReport>,
    /// Conditions that make the figures doubtful.
    pub warnings: Vec<String>,
}

/// One scenario.
#[derive(Clone, Debug, Serialize)]
pub struct ScenarioReport {
    /// Its word on the command line.
    pub name: &'static str,
    /// The data sent.
    pub what: String,
    /// The figures.
    pub rows: Vec<Row>,
    /// The limits.
    pub checks: Vec<Check>,
}

/// One figure over all runs.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Bare loop, Staunch or the rival.
    pub who: &'static str,
    /// The measured quantity.
    pub what: &'static str,
    /// Its unit; empty for a ratio or a count.
    pub unit: &'static str,
    /// The figure of each run, in their order.
    pub runs: Vec<f64>,
}

/// A limit and the figure that is compared with it.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// The condition in words.
    pub what: String,
    /// The figure.
    pub value: f64,
    /// Its limit.
    pub limit: f64,
    /// Whether the condition is met.
    pub met: bool,
}

impl Report {
    /// True when every limit is kept.
    pub fn all_met(&self) -> bool {
        self.scenarios.iter().flat_map(|scenario| &scenario.checks).all(|check| check.met)
    }

    /// Adds a warning for each scenario whose figures spread too much; it names the worst figure.
    pub(crate) fn warn_of_noise(&mut self) {
        for scenario in &self.scenarios {
            let timed = scenario.rows.iter().filter(|row| matches!(row.unit, "ns" | "MB/s"));
            let Some(worst) = timed.max_by(|a, b| a.spread().total_cmp(&b.spread())) else { continue };
            if worst.spread() > SPREAD_MAX {
                self.warnings.push(format!(
                    "{}: the runs spread by up to {:.0} % ({} of {}): the machine is not quiet; stop what else runs, \
                     or use more --runs",
                    scenario.name,
                    worst.spread() * 100.0,
                    worst.what,
                    worst.who
                ));
            }
        }
    }
}

impl Row {
    /// Smallest, median and largest of the runs; zeros without runs.
    pub fn min_median_max(&self) -> (f64, f64, f64) {
        let mut runs = self.runs.clone();
        runs.sort_by(f64::total_cmp);
        let (Some(min), Some(max)) = (runs.first(), runs.last()) else { return (0.0, 0.0, 0.0) };
        (*min, (runs[(runs.len() - 1) / 2] + runs[runs.len() / 2]) / 2.0, *max)
    }

    /// Median of the runs.
    pub fn median(&self) -> f64 {
        self.min_median_max().1
    }

    /// Largest minus smallest, as a share of the median.
    pub fn spread(&self) -> f64 {
        let (min, median, max) = self.min_median_max();
        if median == 0.0 { 0.0 } else { (max - min) / median }
    }
}

impl Check {
    /// A figure that must not be above `limit`.
    pub(crate) fn at_most(what: &str, value: f64, limit: f64) -> Check {
        Check { what: format!("{what} at most {}", figure(limit)), value, limit, met: value <= limit }
    }

    /// A figure that must not be below `limit`.
    pub(crate) fn at_least(what: &str, value: f64, limit: f64) -> Check {
        Check { what: format!("{what} at least {}", figure(limit)), value, limit, met: value >= limit }
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let machine = &self.machine;
        let kind = if machine.is_virtual { ", virtual machine" } else { "" };
        let memory = machine.memory_bytes as f64 / f64::from(1 << 30);
        let hardware = format!("{}, {} cores, {memory:.1} GiB{kind}", machine.processor, machine.cores);
        paragraph(f, "staunch", &format!("{}, bench {}", self.version, self.bench))?;
        paragraph(f, "machine", &hardware)?;
        paragraph(
            f,
            "kernel",
            &format!("{}, load {:.2} before the first run", machine.kernel, machine.load),
        )?;
        paragraph(f, "command", &self.command)?;
        paragraph(f, "method", &self.method)?;
        if !self.rival.is_empty() {
            paragraph(f, "rival", &self.rival)?;
        }
        for scenario in &self.scenarios {
            write!(f, "\n{scenario}")?;
        }
        if !self.warnings.is_empty() {
            writeln!(f)?;
        }
        self.warnings.iter().try_for_each(|warning| paragraph(f, "warning", warning))
    }
}

impl Display for ScenarioReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        paragraph(f, self.name, &self.what)?;
        writeln!(f, "  {:<13} {:<21} {:>11} {:>11} {:>11}", "", "", "min", "median", "max")?;
        for row in &self.rows {
            let (min, median, max) = row.min_median_max();
            let line = format!(
                "  {:<13} {:<21} {:>11} {:>11} {:>11}  {}",
                row.who,
                row.what,
                figure(min),
                figure(median),
                figure(max),
                row.unit
            );
            writeln!(f, "{}", line.trim_end())?;
        }
        for check in &self.checks {
            let word = if check.met { "met" } else { "NOT MET" };
            paragraph(f, "  limit", &format!("{}: {}, {word}", check.what, figure(check.value)))?;
        }
        Ok(())
    }
}

/// A label and a text, wrapped at [`WIDTH`] and indented behind the label.
fn paragraph(f: &mut Formatter<'_>, label: &str, text: &str) -> fmt::Result {
    const INDENT: usize = 10;
    write!(f, "{label:<INDENT$}")?;
    let mut column = label.len().max(INDENT);
    for (at, word) in text.split_whitespace().enumerate() {
        let len = word.chars().count();
        if at > 0 && column + 1 + len > WIDTH {
            write!(f, "\n{:INDENT$}", "")?;
            column = INDENT;
        } else if at > 0 {
            write!(f, " ")?;
            column += 1;
        }
        write!(f, "{word}")?;
        column += len;
    }
    writeln!(f)
}

/// A number for people: about three significant digits, with thousands separators.
pub(crate) fn figure(value: f64) -> String {
    let places = match value.abs() {
        _ if value.fract() == 0.0 => 0,
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.places$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let mut grouped = String::from(sign);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(unit: &'static str, runs: &[f64]) -> Row {
        Row { who: "bare loop", what: "CPU per packet", unit, runs: runs.to_vec() }
    }

    fn report() -> Report {
        let machine = Machine {
            processor: "A Processor With A Rather Long Name That Nobody Needs @ 2.60 GHz".into(),
            cores: 2,
            memory_bytes: 8 << 30,
            kernel: "Linux 6.18.44".into(),
            is_virtual: true,
            load: 0.25,
        };
        let scenario = ScenarioReport {
            name: "one",
            what: "1 sample per packet, 1,000 names, 1,000,000 packets a run, at full speed".into(),
            rows: vec![row("ns", &[900.0, 1234.5, 1000.0]), row("pkt/s", &[300_000.0, 301_000.0])],
            checks: vec![
                Check::at_most("CPU per packet, times the bare loop's:", 0.551, 1.15),
                Check::at_least("packets counted, of 5,000,000:", 4_999_999.0, 5e6),
            ],
        };
        Report {
            bench: "statsd",
            version: "0.1.0".into(),
            machine,
            command:
                "staunch bench statsd --scenario one --runs 3 --count 1000000 --names 1000 --generator-core 1"
                    .into(),
            method: "loopback".into(),
            rival: String::new(),
            scenarios: vec![scenario],
            warnings: Vec::new(),
        }
    }

    #[test]
    fn figures_are_short_and_exact_where_they_are_whole() {
        for (value, want) in [
            (0.0, "0"),
            (5.0, "5"),
            (0.551, "0.551"),
            (12.345, "12.35"),
            (123.45, "123.5"),
            (1234.5, "1,234"),
            (5_000_000.0, "5,000,000"),
            (-1234.6, "-1,235"),
        ] {
            assert_eq!(figure(value), want);
        }
    }

    #[test]
    fn the_median_lies_between() {
        assert_eq!(row("ns", &[3.0, 1.0, 2.0]).min_median_max(), (1.0, 2.0, 3.0));
        assert_eq!(row("ns", &[4.0, 1.0]).min_median_max(), (1.0, 2.5, 4.0));
        assert_eq!(row("ns", &[]).min_median_max(), (0.0, 0.0, 0.0));
        assert_eq!(row("ns", &[]).spread(), 0.0);
    }

    #[test]
    fn the_table_fits_80_columns_and_marks_failed_limits() {
        let mut report = report();
        report.warn_of_noise();
        let text = report.to_string();
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(!report.all_met());
        assert!(
            text.contains("limit   CPU per packet, times the bare loop's: at most 1.150: 0.551, met"),
            "{text}"
        );
        assert!(text.contains("4,999,999, NOT MET"), "{text}");
        assert_eq!(report.warnings.len(), 1, "only the ns row is checked: {:?}", report.warnings);
        assert!(
            report.warnings[0].contains("spread by up to 33 % (CPU per packet of bare loop)"),
            "{:?}",
            report.warnings
        );
    }
}

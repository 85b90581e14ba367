//! The scenarios of `staunch bench statsd`: contestants, number of runs and figures.
//!
//! Path of a packet: the ring made here -> `Contestant::measure` -> rows and checks of the report. Not here: reading
//! CPU time and counts (`contestant`), starting daemons (`server`), the table (`report`).

use model::SECOND_NS;

use crate::contestant::server::{Daemon, Server, statsd_config};
use crate::contestant::{Contestant, Entrant, Measured};
use crate::ground::Ground;
use crate::report::{Check, Row, ScenarioReport, figure};
use crate::rounds::{LONG_RUNS_MAX, warm_up};
use crate::statsd::Args;
use crate::traffic::packets::{Mixture, NAME_BYTES, Ring, SampleType};
use crate::traffic::sink::Sink;
use crate::{BenchError, failed};

/// The project's promises; the report marks a figure beyond one of them as not met.
const CPU_TIMES_BARE_MAX: f64 = 1.15;
const CPU_NS_PER_SAMPLE_MAX: f64 = 50.0;
const BYTES_PER_SERIES_MAX: f64 = 250.0;

const CPU_TIMES_MEMORY_MAX: f64 = 1.05;

/// Length of the `series` scenario under load: two and a half windows of ten seconds.
const SERIES_SECONDS: u64 = 25;

/// The arguments of all scenarios.
pub(crate) struct Bench<'a, 'g> {
    pub args: &'a Args,
    pub ground: &'a mut Ground<'g>,
    pub sink: &'a Sink,
}

impl Bench<'_, '_> {
    /// `one` and `packed`: CPU per packet of the bare loops, Staunch and the rival, in turn.
    pub(crate) fn cpu(
        &mut self,
        name: &'static str,
        pack: u64,
        packets: u64,
    ) -> Result<ScenarioReport, BenchError> {
        let ring = self.ring(self.args.names, pack, self.args.kind, false);
        let entrants = Entrant::all(&self.ground.stand);
        let runs = self.ground.rounds(name, self.args.runs, &entrants, |entrant, _round| {
            let contestant = entrant.start(&self.ground.stand, &[], &|daemon, ports| {
                statsd_config(daemon, self.sink.address(), ports)
            })?;
            self.run(contestant, &ring, packets)
        })?;
        self.ground.warn_of_others(name, runs.iter().flatten());
        let mut rows = Vec::new();
        for (entrant, own) in entrants.iter().zip(&runs) {
            let beside = (*entrant != Entrant::Bare(None)).then_some(&runs[0][..]);
            let samples = if matches!(entrant, Entrant::Bare(_)) { 1 } else { pack };
            rows.extend(cpu_rows(entrant.name(), own, beside, samples));
        }
        let median = |what: &str| {
            let own = rows.iter().find(|row| row.who == Daemon::Staunch.name() && row.what == what);
            own.map_or(f64::NAN, Row::median)
        };
        let check = if pack == 1 {
            Check::at_most("CPU per packet, times the bare loop's:", median(TIMES_BARE), CPU_TIMES_BARE_MAX)
        } else {
            Check::at_most("CPU per sample in ns:", median(NS_PER_SAMPLE), CPU_NS_PER_SAMPLE_MAX)
        };
        let what = self.sentence(pack, self.args.names, packets, self.args.rate);
        Ok(ScenarioReport { name, what, rows, checks: vec![check] })
    }

    /// `flood`: full speed; the account must count every packet, and the endpoint must receive every sample.
    pub(crate) fn flood(&mut self, packets: u64) -> Result<ScenarioReport, BenchError> {
        let ring = self.ring(self.args.names, 1, self.args.kind, false);
        let count = self.args.runs.min(LONG_RUNS_MAX);
        let runs = self.ground.rounds("flood", count, &[Daemon::Staunch], |daemon, _round| {
            let contestant = Contestant::Server(self.start(*daemon)?);
            let before = self.sink.counted();
            let measured = contestant.measure(self.ground.stand.core, &ring, packets, 0)?;
            self.stop(contestant)?;
            Ok((measured, (self.sink.counted() - before) as f64))
        })?;
        let (measured, delivered): (Vec<Measured>, Vec<f64>) = runs.into_iter().flatten().unzip();
        self.ground.warn_of_others("flood", &measured);
        let who = Daemon::Staunch.name();
        let counted: Vec<f64> = measured.iter().map(|run| run.counted.packets as f64).collect();
        let speeds = measured.iter().map(|run| run.sent.packets_per_second()).collect();
        let least = |runs: &[f64]| runs.iter().copied().fold(f64::INFINITY, f64::min);
        let mut checks = vec![Check::at_least("packets counted:", least(&counted), packets as f64)];
        if self.args.kind == SampleType::C {
            checks.push(Check::at_least(
                "samples in the counts at the output:",
                least(&delivered),
                packets as f64,
            ));
        }
        let rows = vec![
            Row { who: "generator", what: "speed", unit: "pkt/s", runs: speeds },
            Row { who, what: "packets counted", unit: "", runs: counted },
            Row {
                who,
                what: DROPPED,
                unit: "",
                runs: measured.iter().map(|run| run.counted.dropped as f64).collect(),
            },
            Row { who, what: "samples at the output", unit: "", runs: delivered },
        ];
        Ok(ScenarioReport {
            name: "flood",
            what: self.sentence(1, self.args.names, packets, 0),
            rows,
            checks,
        })
    }

    /// `disk`: CPU per packet with the output's queue in memory and on disk, in turn, with a flush every second.
    pub(crate) fn disk(&mut self, packets: u64) -> Result<ScenarioReport, BenchError> {
        let ring = self.ring(self.args.names, 1, self.args.kind, false);
        let runs = self.ground.rounds("disk", self.args.runs, &["memory", "disk"], |kind, _round| {
            let server = Server::start(&self.ground.stand, Daemon::Staunch, &|ports| {
                with_queue(kind, &statsd_config(Daemon::Staunch, self.sink.address(), ports))
            })?;
            self.run(Contestant::Server(server), &ring, packets)
        })?;
        self.ground.warn_of_others("disk", runs.iter().flatten());
        let (memory, disk) = (&runs[0], &runs[1]);
        let mut rows = cpu_rows(IN_MEMORY, memory, None, 1);
        rows.extend(cpu_rows(ON_DISK, disk, None, 1));
        let ratios =
            disk.iter().zip(memory).map(|(disk, memory)| disk.ns_per_packet() / memory.ns_per_packet());
        let ratio = Row { who: ON_DISK, what: "times in memory", unit: "", runs: ratios.collect() };
        let check =
            Check::at_most("CPU per packet, times that in memory:", ratio.median(), CPU_TIMES_MEMORY_MAX);
        rows.push(ratio);
        let what = self.sentence(1, self.args.names, packets, self.args.rate) + ", a flush every second";
        Ok(ScenarioReport { name: "disk", what, rows, checks: vec![check] })
    }

    /// `series`: memory of very many counters, and whether their flush loses packets.
    pub(crate) fn series(&mut self) -> Result<ScenarioReport, BenchError> {
        let (series, rate) = (self.args.series, self.args.series_rate);
        self.ground
            .say(&format!("series: {} counters, then {SERIES_SECONDS} s of load", figure(series as f64)));
        let ring = self.ring(series, 1, SampleType::C, true);
        let server = self.start(Daemon::Staunch)?;
        let idle = server.memory()?;
        let lines = self.sink.lines();
        let contestant = Contestant::Server(server);
        let filled = contestant.measure(self.ground.stand.core, &ring, series, rate)?;
        let memory_filled = contestant.memory()?;
        let loaded = contestant.measure(self.ground.stand.core, &ring, rate * SERIES_SECONDS, rate)?;
        let memory_end = contestant.memory()?;
        let lines = self.sink.lines() - lines;
        self.stop(contestant)?;
        let each = |bytes: u64| bytes.saturating_sub(idle.resident) as f64 / series as f64;
        let (sent, got) = (
            (filled.sent.packets + loaded.sent.packets) as f64,
            (filled.counted.packets + loaded.counted.packets) as f64,
        );
        let speed = loaded.sent.packets_per_second();
        self.ground.warn_of_rate("series", speed, rate);
        self.ground.warn_of_others("series", &[filled, loaded]);
        let who = Daemon::Staunch.name();
        let one = |what, unit, value: f64| Row { who, what, unit, runs: vec![value] };
        let resident = each(memory_filled.resident).max(each(memory_end.resident));
        let rows = vec![
            Row { who: "generator", what: "speed", unit: "pkt/s", runs: vec![speed] },
            one("bytes each, filled", "B", each(memory_filled.resident)),
            one("bytes each, at end", "B", each(memory_end.resident)),
            one("bytes each, peak", "B", each(memory_end.resident_high)),
            one("packets counted", "", got),
            one(DROPPED, "", (filled.counted.dropped + loaded.counted.dropped) as f64),
            one("lines at the output", "", lines as f64),
        ];
        let checks = vec![
            Check::at_most("resident bytes per counter:", resident, BYTES_PER_SERIES_MAX),
            Check::at_least("packets counted:", got, sent),
            // A rate and a count for each: with fewer lines, no complete flush was seen.
            Check::at_least("lines flushed under load:", lines as f64, 2.0 * series as f64),
        ];
        let what = format!(
            "{} distinct counters with names of {NAME_BYTES} bytes, then {} packets/s for {SERIES_SECONDS} s with a \
             flush every 10 s",
            figure(series as f64),
            figure(rate as f64)
        );
        Ok(ScenarioReport { name: "series", what, rows, checks })
    }

    fn ring(&self, names: u64, pack: u64, kind: SampleType, every_name: bool) -> Ring {
        Ring::new(Mixture { names, pack, kind, every_name })
    }

    fn start(&self, daemon: Daemon) -> Result<Server, BenchError> {
        Server::start(&self.ground.stand, daemon, &|ports| statsd_config(daemon, self.sink.address(), ports))
    }

    /// One run of a contestant: warmed up, measured, stopped.
    fn run(&self, contestant: Contestant, ring: &Ring, packets: u64) -> Result<Measured, BenchError> {
        contestant.measure(self.ground.stand.core, ring, warm_up(packets), self.args.rate)?;
        let measured = contestant.measure(self.ground.stand.core, ring, packets, self.args.rate)?;
        self.stop(contestant)?;
        Ok(measured)
    }

    /// Stops a contestant, and waits until its last output has been read.
    fn stop(&self, contestant: Contestant) -> Result<(), BenchError> {
        if let Contestant::Server(server) = contestant {
            server.stop()?;
            self.sink.wait_until_quiet().map_err(failed("read what was delivered to the end"))?;
        }
        Ok(())
    }

    fn sentence(&self, pack: u64, names: u64, packets: u64, rate: u64) -> String {
        let speed = match rate {
            0 => "full speed".into(),
            rate => format!("{} packets/s", figure(rate as f64)),
        };
        let samples = if pack == 1 { "1 sample".into() } else { format!("{pack} samples") };
        format!(
            "{samples} per packet, {} names, {} packets a run, {speed}",
            figure(names as f64),
            figure(packets as f64)
        )
    }
}

const IN_MEMORY: &str = "in memory";
const ON_DISK: &str = "on disk";

/// The published config with a queue of `kind`, and with windows short enough to use it.
fn with_queue(kind: &str, config: &str) -> String {
    let output = "type = \"graphite\"\n";
    config
        .replace("window = \"10s\"", "window = \"1s\"")
        .replace(output, &format!("{output}queue = {{ kind = \"{kind}\" }}\n"))
}

const NS_PER_PACKET: &str = "CPU per packet";
const NS_PER_SAMPLE: &str = "CPU per sample";
pub(crate) const TIMES_BARE: &str = "times the bare loop";
pub(crate) const DROPPED: &str = "dropped by kernel";

/// The figures of one contestant. Ratios compare run with run, because a slow minute affects both.
pub(crate) fn cpu_rows(
    who: &'static str,
    runs: &[Measured],
    bare: Option<&[Measured]>,
    pack: u64,
) -> Vec<Row> {
    if runs.is_empty() {
        return Vec::new();
    }
    let row = |what, unit, figure: &dyn Fn(&Measured) -> f64| Row {
        who,
        what,
        unit,
        runs: runs.iter().map(figure).collect(),
    };
    let mut rows = vec![row(NS_PER_PACKET, "ns", &Measured::ns_per_packet)];
    if pack > 1 {
        rows.push(row(NS_PER_SAMPLE, "ns", &|run| run.ns_per_packet() / pack as f64));
    }
    if let Some(bare) = bare {
        let ratios = runs.iter().zip(bare).map(|(run, bare)| run.ns_per_packet() / bare.ns_per_packet());
        rows.push(Row { who, what: TIMES_BARE, unit: "", runs: ratios.collect() });
    }
    rows.push(row("counted", "%", &Measured::percent_counted));
    rows.push(row("counted per second", "pkt/s", &|run| {
        run.counted.packets as f64 * SECOND_NS as f64 / run.sent.ns.max(1) as f64
    }));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestant::api_client::Counts;
    use crate::traffic::generator::Sent;

    #[test]
    fn a_queue_is_put_into_the_published_config() {
        let ports = crate::contestant::server::Ports { statsd: 1, control: 2 };
        let published = statsd_config(Daemon::Staunch, ([127, 0, 0, 1], 3).into(), ports);
        for kind in ["memory", "disk"] {
            let text = with_queue(kind, &published);
            let source = config::diagnostic::Source { name: "staunch.toml", text: &text };
            let (plan, mistakes) = config::check(source, config::Format::Toml);
            assert!(mistakes.is_empty() && text.contains("\"1s\""), "{mistakes:?}");
            let outputs = plan.expect("no mistakes").outputs;
            assert_eq!(outputs[0].queue_kind.is_disk(), kind == "disk");
        }
    }

    #[test]
    fn ratios_are_of_run_to_run() {
        let run = |cpu_ns| Measured {
            cpu_ns,
            others_share: 0.0,
            sent: Sent { packets: 20, ns: SECOND_NS, ..Sent::default() },
            counted: Counts { packets: 10, ..Counts::default() },
        };
        let rows = cpu_rows("staunch", &[run(30.0), run(10.0)], Some(&[run(10.0), run(20.0)]), 5);
        let figures: Vec<(&str, &[f64])> = rows.iter().map(|row| (row.what, &row.runs[..])).collect();
        assert_eq!(
            figures,
            [
                (NS_PER_PACKET, &[3.0, 1.0][..]),
                (NS_PER_SAMPLE, &[0.6, 0.2]),
                (TIMES_BARE, &[3.0, 0.5]),
                ("counted", &[50.0, 50.0]),
                ("counted per second", &[10.0, 10.0]),
            ]
        );
        assert!(cpu_rows("node statsd", &[], None, 1).is_empty());
    }
}

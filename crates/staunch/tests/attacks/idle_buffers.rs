//! A3: connections that are idle after one write of 64 KiB, by what was written.

use crate::attacker::{Manner, Target};
use crate::finding::{End, worse};
use crate::scene::{Attack, Scene};
use crate::support::bench::Bench;

/// What one write takes.
const BYTES: usize = 64 << 10;

/// `max_line_bytes`, and what F7 allows beside it.
const EACH_MAX: u64 = (64 << 10) + (8 << 10);

/// What the reading threads and batches under way keep, whatever the number of connections.
const BESIDE_MAX: u64 = 32 << 20;

/// Connections come from so many peers: no bound for one of them is reached.
const SOURCES: u64 = 4;

/// What is written: a name for the figures, the source, and a line.
fn kinds() -> [(&'static str, &'static str, Vec<u8>); 4] {
    let mut values = b"many".to_vec();
    while values.len() + 5 < BYTES {
        values.extend_from_slice(b":1");
    }
    values.extend_from_slice(b"|c\n");
    let lines = |line: &[u8]| line.repeat(BYTES / line.len());
    [
        ("StatsD lines", "samples", lines(b"some.service.host.requests:1|c|#env:prod\n")),
        ("Graphite lines", "points", lines(b"some.service.host.requests 1 1700000000\n")),
        ("`a:1|c` lines", "samples", lines(b"a:1|c\n")),
        ("one line of packed values", "samples", values),
    ]
}

pub(crate) fn run(bench: &Bench) -> End {
    let toml = "[sources.samples]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\nmax_connections = 100000\n\
         [sources.points]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\nmax_connections = 100000\n\
         [transforms.counts]\ntype = \"aggregate\"\nfrom = [\"samples\"]\n\
         [transforms.hole]\ntype = \"relay\"\nfrom = [\"points\"]\nrules = [{ to = \"blackhole\" }]\n\
         [outputs.counted]\ntype = \"graphite_file\"\nfrom = [\"counts\"]\nmax_files = 1\n";
    let each = bench.pick(400, 2_500);
    let (mut all, mut figures, mut end) = (0, Vec::new(), None);
    // One after the other in daemons of their own, so that each has its figure.
    for (kind, source, payload) in kinds() {
        let mut scene = Scene::start(bench, toml, BESIDE_MAX + each * EACH_MAX);
        let target: Target = scene.tcp(source);
        let attack = Attack::new(target, Manner::Hold(1), payload).on(each).by(SOURCES);
        let held = scene.attack(vec![attack], bench.pick(1.2, 12.0));
        let [before, ..] = scene.finding.resident;
        let now = sys::memory_of(scene.daemon.pid()).map_or(0, |memory| memory.resident);
        let per_connection = now.saturating_sub(before) / each;
        figures.push(format!("{kind}: {} KiB each", per_connection >> 10));
        scene.finding.promise(per_connection <= EACH_MAX + BESIDE_MAX / each, || {
            format!("{kind}: an idle connection holds {} KiB", per_connection >> 10)
        });
        let counted = held.end();
        scene.finding.promise(counted.connected * 100 >= each * 95, || {
            format!("{} of {each} connections were made: this run shows little", counted.connected)
        });
        all += each;
        let mut finding = scene.end(format!("{all} idle connections"));
        // The worst of the four is the row.
        if let Some(worst) = end.take() {
            finding = worse(worst, finding);
        }
        end = Some(finding);
    }
    let mut finding = end.expect("there are four kinds");
    figures.append(&mut finding.figures);
    finding.figures = figures;
    finding.done = format!("{all} idle connections, 64 KiB");
    End::Ran(finding)
}

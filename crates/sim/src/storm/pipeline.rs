//! The pipelines of storms: one shape with random options. Every reload is another one of them.

use std::collections::BTreeSet;

use config::Format;
use config::diagnostic::{Source, render};
use config::plan::Plan;
use deliver::plan::{QueueKind, WhenFull};
use model::AckWhen;

use crate::random::{Digest, Random};

/// The fixed part: addresses, the nodes that the ledger follows, and the outputs without faults.
const FIXED: &str = r#"
[sources.a]
type = "statsd"
listen = ["udp://127.0.0.1:8125", "tcp://127.0.0.1:8125"]
max_line_bytes = "2KiB"

[sources.f]
type = "statsd"
dialect = "dogstatsd"
listen = ["unix-frames:///run/f.sock"]

[outputs.calm]
type = "graphite_file"
from = ["t"]
path = "calm"

[outputs.calm_pickle]
type = "graphite"
encoding = "pickle"
from = ["t"]
to = ["tcp://127.0.0.1:2004"]
"#;

/// Outputs without faults: the ledger is compared with their arrivals.
pub(super) const CALM: &[&str] = &["calm", "calm_pickle"];

pub(super) const CALM_IS_MISSING: &str = "the calm outputs are in every plan";

/// Outputs whose lines are acknowledged to clients. No fault damages the data on their disks.
pub(super) const KEPT: &[&str] = &["kept", "kept_too"];

/// Outputs of every plan, whose queue may change its kind.
pub(super) const MOVABLE: &[&str] = &["lines", "pickle", "dogs", "file", "events", "udp", "edge"];

/// A random plan. No output is fed by two transforms: their own points would be equal, and a duplicate could not be
/// distinguished from the other transform's point. Equal `disks` put the same queues on disk over all reloads, except
/// those of `moved` outputs, which have the other kind.
pub(super) fn plan(random: &mut Random, disks: Option<u64>, moved: &BTreeSet<String>) -> Plan {
    let mut text = FIXED.to_owned();
    let dialect = *random.pick(&["union", "etsy", "perl"]);
    text += &format!(
        "[sources.b]\ntype = \"statsd\"\ndialect = \"{dialect}\"\nlisten = [\"tcp://127.0.0.1:8135\"]\ntail_counts = {}\n",
        random.chance(50)
    );
    text += "[sources.k]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:8145\"]\nack_when = \"accepted\"\n";
    text += "[outputs.kept]\ntype = \"tcp\"\nfrom = [\"k\"]\nto = [\"tcp://10.0.3.1:8125\"]\n";
    text += "[outputs.kept_too]\ntype = \"unix\"\nfrom = [\"k\"]\nto = [\"unix:///run/kept.sock\"]\n";
    let window_s = *random.pick(&[2, 5, 10]);
    text += &format!(
        "[transforms.t]\ntype = \"aggregate\"\nfrom = [\"a\"]\nwindow = \"{window_s}s\"\nmax_series = {}\n\
         expiry = {{ counters = \"keep\", gauges = \"2 windows\", timers = \"delete\", sets = \"20s\" }}\n",
        random.between(60, 120)
    );
    let checkpoint = *random.pick(&["off", "1s", "2s", "5s", "5s"]);
    text += &format!("checkpoint = \"{checkpoint}\"\n");
    let align = *random.pick(&["wall", "start", "interval"]);
    text += &format!(
        "[transforms.u]\ntype = \"aggregate\"\nfrom = [\"b\"]\nflush_align = \"{align}\"\nexpiry = \"20s\"\n\
         [transforms.v]\ntype = \"aggregate\"\nfrom = [\"f\"]\n"
    );
    text += "[outputs.lines]\ntype = \"graphite\"\nfrom = [\"t\"]\nto = [\"tcp://10.0.0.1:2003\"]\n";
    text += "[outputs.pickle]\ntype = \"graphite\"\nencoding = \"pickle\"\nfrom = [\"u\"]\nto = [\"tcp://10.0.0.1:2004\"]\n";
    text += "[outputs.dogs]\ntype = \"graphite\"\nfrom = [\"v\"]\nto = [\"tcp://10.0.0.5:2003\"]\n";
    text += "[outputs.file]\ntype = \"graphite_file\"\nfrom = [\"t\"]\npath = \"file\"\nmax_file_bytes = \"8KiB\"\nmax_files = 2\n";
    text += "[outputs.events]\ntype = \"event_file\"\nfrom = [\"a\", \"f\"]\npath = \"events\"\nmax_file_bytes = \"4KiB\"\n";
    text += "[outputs.udp]\ntype = \"udp\"\nfrom = [\"a\"]\nto = [\"udp://10.0.0.2:8125\"]\n";
    text += &fan_out(random);
    if random.chance(70) {
        text += "[outputs.tcp]\ntype = \"tcp\"\nfrom = [\"b\"]\nto = [\"tcp://10.0.0.3:8125\"]\n";
    }
    if random.chance(50) {
        let namespace = *random.pick(&["legacy", "modern"]);
        text += &format!(
            "[outputs.more]\ntype = \"graphite\"\nfrom = [\"t\"]\nto = [\"tcp://10.0.0.4:2003\"]\nnamespace = \"{namespace}\"\n"
        );
    }
    let source = Source { name: "storm.toml", text: &text };
    let (plan, diagnostics) = config::check(source, Format::Toml);
    let mut plan = plan.unwrap_or_else(|| panic!("{}", render(source, &diagnostics, false)));
    shrink_queues(&mut plan, random);
    let mut when = AckWhen::Delivered;
    if let Some(seed) = disks {
        put_on_disk(&mut plan, seed, moved);
        when = [AckWhen::Accepted, AckWhen::Safe, AckWhen::Safe, AckWhen::Delivered][seed as usize % 4];
    }
    plan.sources.iter_mut().filter_map(|source| source.ack_when.as_mut()).for_each(|asked| *asked = when);
    plan
}

/// Packets to many endpoints: unchanged, line by line, sharded, and aggregates sent as samples.
fn fan_out(random: &mut Random) -> String {
    let mut text = String::from(
        "[outputs.copies]\ntype = \"udp\"\nfrom = [\"a\"]\nto = [\"udp://10.0.1.1:8125\", \"udp://10.0.1.2:8125\"]\n\
         [outputs.local]\ntype = \"unix\"\nfrom = [\"a\"]\nto = [\"unixgram:///run/local.sock\", \"unix:///run/stream.sock\"]\n\
         [outputs.edge]\ntype = \"udp\"\nfrom = [\"v\"]\nto = [\"udp://10.0.1.3:8125\"]\n",
    );
    text += &format!(
        "[outputs.packed]\ntype = \"udp\"\nfrom = [\"a\", \"b\"]\nto = [\"udp://10.0.1.4:8125\"]\nmode = \"repack\"\n\
         max_packet_bytes = \"{}B\"\nflush_delay = \"{}ms\"\nprefix = \"eu.\"\ndeny = [\"t.*\"]\nsample = 0.5\n\
         max_series = {}\n",
        random.between(64, 300),
        *random.pick(&[0, 100, 5000]),
        random.between(5, 100)
    );
    let nodes = (1..=random.between(1, 4)).map(|node| format!("\"udp://10.0.2.{node}:8125\""));
    text += &format!(
        "[outputs.nodes]\ntype = \"udp\"\nfrom = [\"a\", \"f\"]\nto = [{}]\nsharding = \"{}\"\n",
        nodes.collect::<Vec<_>>().join(", "),
        random.pick(&["statsd-node", "ketama", "jump"])
    );
    text
}

/// Puts most queues on disk, and always those whose records are followed over crashes.
fn put_on_disk(plan: &mut Plan, seed: u64, moved: &BTreeSet<String>) {
    for output in &mut plan.outputs {
        let mut digest = Digest::default();
        digest.add(output.name.as_bytes());
        let mut random = Random::new(seed ^ digest.number());
        let window = QueueKind::Disk { sync_window_ms: random.between(1, 20) };
        let always = CALM.iter().chain(KEPT).any(|name| *name == output.name);
        if (random.chance(60) != moved.contains(&output.name)) || always {
            output.queue_kind = window;
        }
    }
}

/// Queues far below the minimum of config files, so that they are often full.
fn shrink_queues(plan: &mut Plan, random: &mut Random) {
    for output in &mut plan.outputs {
        if CALM.contains(&output.name.as_str()) {
            continue;
        }
        output.queue.bytes_max = random.between(15_000, 60_000);
        output.queue.records_max = *random.pick(&[0, 0, 50]);
        output.queue.when_full =
            *random.pick(&[WhenFull::DropOldest, WhenFull::DropNewest, WhenFull::Block, WhenFull::Wait]);
        output.queue.age_max_ms = *random.pick(&[0, 0, 30_000]);
        if KEPT.contains(&output.name.as_str()) {
            // Acknowledged lines must not be dropped later.
            output.queue.when_full = WhenFull::Block;
            (output.queue.records_max, output.queue.age_max_ms) = (0, 0);
        }
    }
}

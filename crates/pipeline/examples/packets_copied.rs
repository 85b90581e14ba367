//! Measured by `cargo xtask instructions`: packets through intake, shard, queue and sender of a fan-out's endpoints,
//! without the system calls.
//!
//! `packets_copied FORM PACKETS`: so many packets of one line to two endpoints; FORM is `verbatim`, `repack` (with a
//! filter and a prefix) or `cluster`. No clock and no socket: the same arguments cost the same instructions.
#![allow(clippy::print_stderr, reason = "an example says how to call it")]

use std::process::ExitCode;
use std::sync::Arc;

use config::plan::Plan;
use deliver::datagram::{DatagramAction, DatagramSender};
use deliver::plan::SenderPlan;
use deliver::queue::{Appended, MemoryQueue, Queue};
use model::{Now, OutputId, SourceId, Span};
use pipeline::{Accounts, Routed, Scratch, Shard};

const NAMES: usize = 1000;

/// Packets of one batch: the most that one system call returns.
const BATCH_PACKETS: usize = 64;

/// Time between two batches: 300,000 packets a second.
const BATCH_NS: u64 = 213_000;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [form, packets] = args.as_slice() else {
        eprintln!("usage: packets_copied FORM PACKETS");
        return ExitCode::FAILURE;
    };
    let (Some(plan), Ok(packets)) = (plan(form), packets.parse::<usize>()) else {
        eprintln!("FORM is verbatim, repack or cluster; PACKETS is a number");
        return ExitCode::FAILURE;
    };
    let batches: Vec<(Vec<u8>, Vec<Span>)> =
        (0..NAMES.div_ceil(BATCH_PACKETS)).map(|at| batch(at * BATCH_PACKETS)).collect();
    let mut now = Now { mono_ns: 1, wall_ns: 1_000_000_000_000_000_000 };
    let accounts = Accounts::default().carried_to(&plan);
    let mut shard = Shard::new(&plan, &accounts, 7, now);
    let mut intake = shard.intakes(&plan, SourceId(0), &accounts).make();
    let mut scratch = Scratch::default();
    let mut endpoints: Vec<Endpoint> =
        (0..plan.outputs.len()).map(|at| Endpoint::new(&plan, at, &accounts)).collect();
    let mut routed = Routed::default();
    for (bytes, packets) in batches.iter().cycle().take(packets.div_ceil(BATCH_PACKETS)) {
        now = now.plus_ns(BATCH_NS);
        shard.push(intake.datagrams(bytes, packets, now, &mut scratch), now, &mut routed);
        shard.close_blocks(now, &mut routed);
        shard.close_due(now, &mut routed);
        for (output, block) in routed.blocks.drain(..) {
            let appended = endpoints[output.index()].queue.append(block, now);
            assert!(matches!(appended, Appended::Kept), "the queue has room");
        }
        endpoints.iter_mut().for_each(|endpoint| endpoint.send(now));
    }
    for (endpoint, (_, _, account)) in endpoints.iter().zip(accounts.outputs()) {
        assert!(account.sum(endpoint.queue.copies() + endpoint.sender.waiting_copies()).holds());
    }
    ExitCode::SUCCESS
}

/// Queue and sender of one output; everything is sent.
struct Endpoint {
    queue: MemoryQueue,
    sender: DatagramSender,
}

impl Endpoint {
    fn new(plan: &Plan, at: usize, accounts: &Accounts) -> Endpoint {
        let account = accounts.output(OutputId(at as u16));
        Endpoint {
            queue: MemoryQueue::new(plan.outputs[at].queue, Arc::clone(account)),
            sender: DatagramSender::new(SenderPlan::default(), Arc::clone(account), 7),
        }
    }

    fn send(&mut self, now: Now) {
        loop {
            match self.sender.poll(&mut self.queue, BATCH_PACKETS, now) {
                DatagramAction::Open => self.sender.on_opened(now),
                DatagramAction::Send(packets) => {
                    let count = packets.spans.len();
                    self.sender.on_sent(count, now);
                }
                DatagramAction::WaitUntil(_) | DatagramAction::Idle => return,
            }
        }
    }
}

fn plan(form: &str) -> Option<Plan> {
    let options = match form {
        "verbatim" => "",
        "repack" => "mode = \"repack\"\ndeny = [\"debug.*\"]\nprefix = \"eu.\"\n",
        "cluster" => "sharding = \"statsd-node\"\n",
        _ => return None,
    };
    let text = format!(
        "[sources.s]\ntype = \"statsd\"\n[outputs.o]\ntype = \"udp\"\nfrom = [\"s\"]\n\
         to = [\"udp://10.0.0.1:8125\", \"udp://10.0.0.2:8125\"]\n{options}"
    );
    let source = config::diagnostic::Source { name: "example", text: &text };
    config::check(source, config::Format::Toml).0
}

fn batch(first: usize) -> (Vec<u8>, Vec<Span>) {
    let mut bytes = Vec::new();
    let mut packets = Vec::new();
    for number in first..first + BATCH_PACKETS {
        let name = number * 2_654_435_761 % NAMES;
        let text = format!("app.web{}.requests.endpoint{name}:1|c", name % 97);
        packets.push(Span::new(bytes.len(), text.len()));
        bytes.extend_from_slice(text.as_bytes());
    }
    (bytes, packets)
}

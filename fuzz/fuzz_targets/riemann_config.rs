//! Any text as a config of Riemann: it is read, analysed and evaluated within a small budget, or has mistakes; what it gives
//! can be printed.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use streams::graph::Graph;
use streams::language::budget::Limits;
use streams::language::evaluation::Evaluation;
use streams::language::host::Nowhere;
use streams::language::machine::Machine;

/// Enough for what a text of some kilobytes can mean, and little enough for many texts a second.
const LIMITS: Limits = Limits { steps: 20_000, depth: 300, memory_bytes: 8 << 20 };

fuzz_target!(|text: &str| {
    let evaluation = Evaluation::new(Arc::new(streams::language::clojure()), Box::new(Nowhere::default()));
    let mut graph = Graph::new(evaluation, 0);
    let mut machine = Machine::new(&mut graph, LIMITS);
    if let Ok(value) = machine.load(text, "fuzz")
        && let Ok(value) = machine.realize(&value)
    {
        std::hint::black_box(streams::print::to_text(&value, true));
    }
});

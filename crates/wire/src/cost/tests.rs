//! The worst inputs that we know, and the canary.

use super::*;
use crate::graphite::input::Opened;

const PICKLE: Parser = Parser::Message(MessageEncoding::Pickle);

/// Most steps of one piece of a message: what is looked at before it gives anything, and a piece of lines with the longest
/// element.
const PIECE_STEPS_MAX: u64 = 256 * 1024;

fn allocated(run: &mut dyn FnMut()) -> u64 {
    allocation_counter::measure(run).bytes_total
}

#[test]
fn twice_the_input_costs_twice_as_much_whoever_reads_it() {
    for input in inputs() {
        check_doubled(&input, 16 * 1024, allocated);
    }
}

/// What reading a message took before what it refers to was bounded by its own length.
fn unbounded(bytes: usize) -> Cost {
    let repeated =
        inputs().into_iter().find(|input| input.name == "a bad name, repeated").expect("it is known");
    let message = (repeated.make)(bytes);
    let reader = input::Reader::new(input::Options::of(Compatibility::Strict), 1);
    Cost::of(allocated, &mut || {
        let mut opened = Opened::within(usize::MAX, MessageEncoding::Pickle, &message);
        let span = Span::new(0, message.len());
        while reader.piece(&mut opened, &message, span, 0, &mut input::Parsed::default()) {}
    })
}

#[test]
fn a_piece_of_a_long_message_costs_no_more_than_one_of_a_short_one() {
    let reader = input::Reader::new(input::Options::of(Compatibility::Carbon), 1);
    for input in inputs() {
        let Parser::Message(form) = input.parser else { continue };
        for bytes in [256 * 1024, 1 << 20] {
            let message = (input.make)(bytes);
            let span = Span::new(0, message.len());
            let mut opened = Opened::new(form, &message);
            let (mut more, mut parsed) = (true, input::Parsed::default());
            while more {
                parsed.clear();
                let before = STEPS.get();
                more = reader.piece(&mut opened, &message, span, 0, &mut parsed);
                let steps = STEPS.get() - before;
                assert!(steps <= PIECE_STEPS_MAX, "{} of {bytes} bytes: {steps}", input.name);
            }
        }
    }
}

#[test]
fn a_message_without_its_bound_is_found() {
    let (once, twice) = (unbounded(4 * 1024), unbounded(8 * 1024));
    assert!(!once.is_within(PICKLE, 4 * 1024) && !twice.is_within(PICKLE, 8 * 1024), "{once:?}");
    assert!(!twice.is_twice(once), "{twice:?} for twice what took {once:?}");
}

#[test]
fn a_writer_without_its_bound_is_found() {
    // A line of 16 KiB whose 4,096 values each get a name of 8 KiB, and a rate that is read for each of them.
    let unbounded = Cost { steps: 4096 * 8192, allocated: 4096 * 8192 };
    let writer = Parser::Written(Writer::Points);
    assert!(!unbounded.is_within(writer, 16 * 1024));
    assert!(!Cost { allocated: 0, ..unbounded }.is_within(writer, 16 * 1024));
    assert!(!Cost { steps: 0, ..unbounded }.is_within(writer, 16 * 1024));
}

#[test]
fn a_cost_is_within_its_bounds_or_not() {
    let most = Cost {
        steps: STEPS_ALWAYS_MAX + 10 * MESSAGES.steps,
        allocated: ALLOCATED_ALWAYS_MAX + 10 * MESSAGES.allocated,
    };
    assert!(most.is_within(PICKLE, 10) && !most.is_within(Parser::Parts, 10));
    assert!(!Cost { steps: most.steps + 1, ..most }.is_within(PICKLE, 10));
    assert!(!Cost { allocated: most.allocated + 1, ..most }.is_within(PICKLE, 10));
    let once = Cost { steps: 1000, allocated: 1000 };
    let twice = Cost { steps: 2500 + STEPS_ALWAYS_MAX, allocated: 2500 + ALLOCATED_ALWAYS_MAX };
    assert!(twice.is_twice(once));
    assert!(!Cost { steps: twice.steps + 1, ..twice }.is_twice(once));
    assert!(!Cost { allocated: twice.allocated + 1, ..twice }.is_twice(once));
}

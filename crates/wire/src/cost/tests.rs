//! The worst known inputs for each parser, and the canary.

use super::*;
use crate::graphite::input::MessageReader;

const PICKLE: Parser = Parser::Message(MessageEncoding::Pickle);

/// Most steps of one piece of a message: validation before the first element is returned, and a piece of lines with the
/// longest element.
const PIECE_STEPS_MAX: u64 = 256 * 1024;

fn allocated(run: &mut dyn FnMut()) -> u64 {
    allocation_counter::measure(run).bytes_total
}

#[test]
fn cost_is_linear_in_the_input_for_every_parser() {
    for input in inputs() {
        check_doubled(&input, 16 * 1024, allocated);
    }
}

/// The cost of a message before its references were bounded by its own length.
fn unbounded(bytes: usize) -> Cost {
    let repeated =
        inputs().into_iter().find(|input| input.name == "a bad name, repeated").expect("it is known");
    let message = (repeated.make)(bytes);
    let reader = input::Reader::new(input::Options::of(Compatibility::Strict), 1);
    Cost::of(allocated, &mut || {
        let mut opened = MessageReader::within(usize::MAX, MessageEncoding::Pickle, &message);
        let span = Span::new(0, message.len());
        while reader.piece(&mut opened, &message, span, 0, &mut input::Parsed::default()) {}
    })
}

#[test]
fn the_cost_of_a_piece_does_not_depend_on_message_length() {
    let reader = input::Reader::new(input::Options::of(Compatibility::Carbon), 1);
    for input in inputs() {
        let Parser::Message(form) = input.parser else { continue };
        for bytes in [256 * 1024, 1 << 20] {
            let message = (input.make)(bytes);
            let span = Span::new(0, message.len());
            let mut opened = MessageReader::new(form, &message);
            let (mut more, mut parsed) = (true, input::Parsed::default());
            while more {
                parsed.clear();
                let before = steps();
                more = reader.piece(&mut opened, &message, span, 0, &mut parsed);
                let steps = steps() - before;
                assert!(steps <= PIECE_STEPS_MAX, "{} of {bytes} bytes: {steps}", input.name);
            }
        }
    }
}

#[test]
fn the_check_fails_for_a_message_without_its_bound() {
    let (once, twice) = (unbounded(4 * 1024), unbounded(8 * 1024));
    assert!(!once.is_within(PICKLE, 4 * 1024) && !twice.is_within(PICKLE, 8 * 1024), "{once:?}");
    assert!(!twice.is_twice(once), "{twice:?} for twice the input of {once:?}");
}

#[test]
fn the_check_fails_for_a_writer_without_its_bound() {
    // A line of 16 KiB whose 4,096 values each get a name of 8 KiB, and a rate that is parsed for each of them.
    let unbounded = Cost { steps: 4096 * 8192, allocated: 4096 * 8192 };
    let writer = Parser::Written(Writer::Points);
    assert!(!unbounded.is_within(writer, 16 * 1024));
    assert!(!Cost { allocated: 0, ..unbounded }.is_within(writer, 16 * 1024));
    assert!(!Cost { steps: 0, ..unbounded }.is_within(writer, 16 * 1024));
}

#[test]
fn cost_bounds_are_checked() {
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

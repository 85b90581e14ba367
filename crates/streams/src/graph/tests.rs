//! Values and timers through small graphs.

use std::sync::{Arc, Mutex};

use super::{CHILDREN, DEPTH_MAX, Graph, Node, NodeId, TimerId, Turn};
use crate::event::Field;
use crate::language::error::{EvalError, Outcome};
use crate::language::host::Nowhere;
use crate::number::Number;
use crate::object::class;
use crate::value::Value;

type Seen = Arc<Mutex<Vec<String>>>;

fn no() -> EvalError {
    EvalError::throw(&class::RUNTIME_EXCEPTION, "no")
}

#[derive(Debug)]
struct Pass;

impl Node for Pass {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        turn.emit(value.clone());
        Ok(true)
    }
}

/// Notes what it gets.
#[derive(Debug)]
struct Note(&'static str, Seen);

impl Node for Note {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        let text = match value {
            Value::Number(Number::Int(number)) => number.to_string(),
            Value::Event(event) => {
                format!("{:?} {:?}", event.get(Field::Service), event.get(Field::Description))
            }
            other => format!("{other:?}"),
        };
        self.1.lock().unwrap().push(format!("{}@{}: {text}", self.0, turn.now_us()));
        Ok(true)
    }
}

/// Emits the value, and throws.
#[derive(Debug)]
struct Throws;

impl Node for Throws {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        turn.emit(value.clone());
        Err(no())
    }
}

/// Calls a function with the value.
#[derive(Debug)]
struct Calls(Value);

impl Node for Calls {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        turn.call(&self.0, std::slice::from_ref(value)).map(|value| value.is_true())
    }
}

/// Sets a timer for each value, that many microseconds ahead; a negative one cancels the last one.
#[derive(Debug, Default)]
struct Later(Vec<TimerId>);

impl Node for Later {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        let Value::Number(Number::Int(after)) = value else { return Err(no()) };
        match after {
            ..0 => self.0.pop().into_iter().for_each(|timer| turn.cancel_timer(timer)),
            _ => self.0.push(turn.set_timer(turn.now_us() + *after)),
        }
        Ok(true)
    }

    fn due(&mut self, timer: TimerId, turn: &mut Turn<'_>) -> Outcome<()> {
        let at = self.0.iter().position(|set| *set == timer).expect("each is due once");
        self.0.remove(at);
        turn.emit(Value::Number(Number::Int(at as i64)));
        Ok(())
    }
}

fn int(value: i64) -> Value {
    Value::Number(Number::Int(value))
}

fn graph() -> (Graph, Seen) {
    (crate::language::tests::graph(Nowhere::default()), Seen::default())
}

fn seen(seen: &Seen) -> Vec<String> {
    std::mem::take(&mut *seen.lock().unwrap())
}

#[test]
fn children_get_what_was_emitted_in_order_and_one_that_throws_stops_no_other() {
    let (mut graph, notes) = graph();
    let a = graph.add(Box::new(Note("a", Arc::clone(&notes))), &[]);
    let under = graph.add(Box::new(Note("under", Arc::clone(&notes))), &[]);
    let throws = graph.add(Box::new(Throws), &[&[under]]);
    let b = graph.add(Box::new(Note("b", Arc::clone(&notes))), &[]);
    let top = graph.add(Box::new(Pass), &[&[a, throws, b]]);
    assert_eq!(graph.push(top, &int(7)).ok(), Some(true));
    assert_eq!(seen(&notes), ["a@0: 7", "under@0: 7", "b@0: 7"]);
    let (caught, more) = graph.take_caught();
    assert_eq!((caught.len(), more, caught[0].parent, caught[0].node), (1, 0, top, throws));
    assert!(graph.push(throws, &int(8)).is_err(), "who pushes gets what the node itself throws");
    assert_eq!(seen(&notes), ["under@0: 8"]);
}

#[test]
fn ports_have_children_of_their_own() {
    #[derive(Debug)]
    struct ByNumber;
    impl Node for ByNumber {
        fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
            let Value::Number(Number::Int(port)) = value else { return Err(no()) };
            turn.emit_at(*port as u16, value.clone());
            Ok(true)
        }
    }
    let (mut graph, notes) = graph();
    let ids = ["a", "b", "c"].map(|name| graph.add(Box::new(Note(name, Arc::clone(&notes))), &[]));
    let top = graph.add(Box::new(ByNumber), &[&ids[..2], &[], &ids[2..]]);
    for port in 0..4 {
        graph.push(top, &int(port)).unwrap();
    }
    assert_eq!(seen(&notes), ["a@0: 0", "b@0: 0", "c@0: 2"]);
    assert_eq!(CHILDREN, 0);
}

#[test]
fn timers_are_due_at_their_own_time_and_those_of_an_instant_in_the_order_in_which_they_were_set() {
    let (mut graph, notes) = graph();
    let note = graph.add(Box::new(Note("n", Arc::clone(&notes))), &[]);
    let later = graph.add(Box::<Later>::default(), &[&[note]]);
    for after in [5, 3, 3, 9, -1] {
        graph.push(later, &int(after)).unwrap();
    }
    assert_eq!(graph.next_due_us(), Some(3));
    assert!(!graph.advance(8, 1), "a limit of one");
    assert_eq!((seen(&notes), graph.now_us()), (vec!["n@3: 1".to_owned()], 3));
    assert!(graph.advance(8, 10));
    assert_eq!((seen(&notes), graph.now_us()), (vec!["n@3: 1".to_owned(), "n@5: 0".to_owned()], 8));
    assert_eq!(graph.next_due_us(), None, "the fourth was cancelled");
    assert!(graph.advance(2, 10));
    assert_eq!(graph.now_us(), 8, "the clock never goes back");
}

#[test]
fn a_stream_that_feeds_itself_ends_at_the_limit_or_is_refused_within_its_own_turn() {
    let (mut graph, _) = graph();
    let calls = graph.add(Box::new(Calls(Value::Stream(NodeId::first(1)))), &[]);
    let top = graph.add(Box::new(Pass), &[&[calls]]);
    assert_eq!((calls, top), (NodeId::first(0), NodeId::first(1)));
    assert_eq!(graph.push(top, &int(7)).ok(), Some(true));
    let (caught, more) = graph.take_caught();
    assert_eq!((caught.len(), more), (1, 0));
    assert_eq!(caught[0].error.class().name, class::ILLEGAL_STATE.name);
    // A chain that is as long as may be, and one more.
    let mut last = graph.add(Box::new(Pass), &[]);
    for _ in 0..DEPTH_MAX {
        last = graph.add(Box::new(Pass), &[&[last]]);
    }
    graph.push(last, &int(7)).unwrap();
    let (caught, _) = graph.take_caught();
    assert_eq!(
        caught.iter().map(|caught| caught.error.class().name).collect::<Vec<_>>(),
        [class::STACK_OVERFLOW.name]
    );
}

#[test]
fn nodes_that_a_node_made_go_with_it_and_their_timers_with_them() {
    #[derive(Debug, Default)]
    struct Makes(Vec<NodeId>);
    impl Node for Makes {
        fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
            match value {
                Value::Number(Number::Int(count)) => {
                    let make = |graph: &mut Graph| {
                        Ok((0..*count).map(|_| graph.add(Box::new(Pass), &[&[]])).collect::<Vec<_>>())
                    };
                    self.0.extend(turn.make_with(make)?.1);
                }
                _ => turn.drop_nodes(&std::mem::take(&mut self.0)),
            }
            Ok(true)
        }
    }
    let (mut graph, notes) = graph();
    let note = graph.add(Box::new(Note("n", Arc::clone(&notes))), &[]);
    let makes = graph.add(Box::<Makes>::default(), &[]);
    graph.push(makes, &int(3)).unwrap();
    assert_eq!(graph.len(), 5);
    graph.push(makes, &Value::Nil).unwrap();
    assert_eq!(graph.len(), 2);
    let later = graph.add(Box::<Later>::default(), &[&[note]]);
    graph.push(later, &int(5)).unwrap();
    graph.remove(later);
    let other = graph.add(Box::<Later>::default(), &[&[note]]);
    assert_eq!((other.place(), other == later), (later.place(), false), "its place is used again");
    assert_eq!(graph.push(later, &int(1)).ok(), Some(false), "who kept it does not reach the next one");
    graph.remove(later);
    assert_eq!(graph.push(other, &int(100)).ok(), Some(true), "nor removes it");
    assert!(graph.advance(10, 10));
    assert_eq!(seen(&notes), [""; 0], "the timer was another node's");
    assert_eq!(graph.push(NodeId::first(3), &int(1)).ok(), Some(false), "what was removed takes nothing");
}

#[test]
fn exceptions_go_to_the_handler_of_the_node_that_threw() {
    let (mut graph, notes) = graph();
    let handler = graph.add(Box::new(Note("handler", Arc::clone(&notes))), &[]);
    let throws = graph.with_rescue(handler, |graph| graph.add(Box::new(Throws), &[]));
    let top = graph.add(Box::new(Pass), &[&[throws]]);
    graph.push(top, &int(7)).unwrap();
    let want = "handler@0: Text(\"riemann exception\") Text(\"java.lang.RuntimeException: no\")";
    assert_eq!(seen(&notes), [want]);
    assert_eq!(graph.take_caught().0.len(), 0);
}

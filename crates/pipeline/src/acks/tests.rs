//! A table of how marks end, and a model that knows for every copy whether its condition holds.

use deliver::plan::QueueLimits;
use deliver::queue::{Block, Entry, MemoryQueue, Queue};
use model::{CopyOutcome, Now, RejectedByPeer};
use proptest::prelude::*;

use super::*;

/// One output: a queue in memory, and the sync state of its blocks.
struct Output {
    queue: MemoryQueue,
    account: Arc<OutputAccount>,
    /// Popped and not settled: (position, entry).
    held: Vec<(u64, Entry)>,
    popped: u64,
    synced: u64,
    /// Positions whose sync failed.
    doubtful: Vec<u64>,
    /// Positions that were synced.
    safe: Vec<u64>,
    /// By position: how the block ended.
    ends: Vec<Option<CopyOutcome>>,
    /// Copies of an earlier run that were lost.
    of_before: u64,
}

impl Output {
    fn new() -> Output {
        let account = Arc::new(OutputAccount::default());
        Output {
            queue: MemoryQueue::new(QueueLimits::default(), Arc::clone(&account)),
            account,
            held: Vec::new(),
            popped: 0,
            synced: 0,
            doubtful: Vec::new(),
            safe: Vec::new(),
            ends: Vec::new(),
            of_before: 0,
        }
    }

    fn append(&mut self) {
        let appended = self.queue.append(Block::lines(b"a\n".to_vec(), 1, 0), Now::default());
        assert_eq!(appended, deliver::queue::Appended::Kept);
        self.ends.push(None);
    }

    fn turn_away(&mut self) {
        self.queue.drop_block(Block::lines(b"a\n".to_vec(), 1, 0), Dropped::QueueFull);
    }

    /// Pops the next block, as a sender does.
    fn pop(&mut self) {
        if let Some(entry) = self.queue.pop(Now::default()) {
            self.held.push((self.popped, entry));
            self.popped += 1;
        }
    }

    /// Settles one of the popped blocks, or the next one.
    fn settle(&mut self, which: usize, outcome: CopyOutcome) {
        if self.held.is_empty() {
            self.pop();
        }
        if self.held.is_empty() {
            return;
        }
        let (place, entry) = self.held.remove(which % self.held.len());
        entry.settle(outcome);
        self.ends[place as usize] = Some(outcome);
    }

    fn sync(&mut self, good: bool) {
        let end = self.ends.len() as u64;
        let synced = self.synced..end;
        if good {
            self.safe.extend(synced.filter(|place| self.ends[*place as usize].is_none()));
        } else {
            self.doubtful.extend(synced);
        }
        self.synced = end;
    }

    fn holds(&self, place: u64, when: AckWhen) -> bool {
        let end = self.ends[place as usize];
        match when {
            AckWhen::Accepted => true,
            // It was on disk, even if a limit removes it later; or it left before it was.
            AckWhen::Safe => {
                let sent = matches!(end, Some(CopyOutcome::Delivered | CopyOutcome::RejectedByPeer(_)));
                self.safe.contains(&place) || sent
            }
            AckWhen::Delivered => end == Some(CopyOutcome::Delivered),
        }
    }
}

struct Outputs(Vec<Output>);

impl Queues for Outputs {
    fn accepted_up_to(&mut self, output: OutputId) -> Position {
        self.0[output.index()].queue.accepted_up_to()
    }

    fn settled_up_to(&mut self, output: OutputId) -> Position {
        self.0[output.index()].queue.settled_up_to()
    }

    fn promise(&mut self, output: OutputId, of: Position) -> Promise {
        let output = &mut self.0[output.index()];
        if of < output.queue.settled_up_to() {
            Promise::Safe
        } else if output.doubtful.contains(&of.0) {
            Promise::InDoubt
        } else if of.0 < output.synced {
            Promise::Safe
        } else {
            Promise::Accepted
        }
    }

    fn lost_before_start(&mut self, output: OutputId) -> u64 {
        self.0[output.index()].of_before
    }

    fn account(&self, output: OutputId) -> &OutputAccount {
        &self.0[output.index()].account
    }
}

/// The component and the model.
struct World {
    acks: Acks,
    outputs: Outputs,
    source: Arc<SourceAccount>,
    connections: Vec<Asked>,
}

/// One connection's request.
struct Asked {
    id: ConnectionId,
    when: AckWhen,
    /// For each mark: the positions of its copies, and whether all were accepted.
    marks: Vec<(Vec<(usize, u64)>, bool)>,
    /// Marks whose acknowledgement was verified.
    checked: usize,
}

impl World {
    fn new(outputs: usize, whens: &[AckWhen]) -> World {
        let mut acks = Acks::default();
        let connections =
            whens.iter().map(|when| Asked { id: acks.open(), when: *when, marks: Vec::new(), checked: 0 });
        World {
            connections: connections.collect(),
            acks,
            outputs: Outputs((0..outputs).map(|_| Output::new()).collect()),
            source: Arc::default(),
        }
    }

    /// A batch of one line: `copies` blocks to each output, or one that is refused.
    fn take(&mut self, connection: usize, copies: &[usize], lost: bool) {
        let asked = &mut self.connections[connection];
        let up_to = asked.marks.len() as u64 + 1;
        let mark = AckMark { connection: asked.id, up_to, rejected: 0, when: asked.when };
        let before = |at: usize, outputs: &mut Outputs| {
            let output = OutputId(at as u16);
            let account = Arc::clone(&outputs.0[at].account);
            Before {
                output,
                from: outputs.accepted_up_to(output),
                turned_away: account.turned_away(),
                lost_here: account.lost_here(),
                refused: account.refused(),
            }
        };
        let outputs = (0..copies.len()).map(|at| before(at, &mut self.outputs)).collect();
        let taking = Taking {
            mark,
            source: Arc::clone(&self.source),
            source_lost: self.source.lost(),
            kept: true,
            outputs,
        };
        let mut places = Vec::new();
        for (at, copies) in copies.iter().enumerate() {
            let output = &mut self.outputs.0[at];
            for _ in 0..*copies {
                places.push((at, output.ends.len() as u64));
                output.append();
            }
        }
        if lost {
            self.outputs.0[0].turn_away();
        }
        asked.marks.push((places, !lost));
        let _waits_for = self.acks.taken(taking, &mut self.outputs);
    }

    fn answer(&mut self, connection: usize) -> Answer {
        self.acks.resolve(&mut self.outputs);
        self.acks.answer(self.connections[connection].id)
    }

    /// No new answer claims more than is true now.
    fn check(&mut self) {
        self.acks.resolve(&mut self.outputs);
        for asked in &mut self.connections {
            let answer = self.acks.answer(asked.id);
            assert_eq!(answer.up_to, answer.marks, "one line for each mark");
            let up_to = answer.up_to as usize;
            for (places, taken) in &asked.marks[asked.checked..up_to] {
                assert!(*taken, "{answer:?}: a copy was turned away");
                for (output, place) in places {
                    let Output { ends, synced, doubtful, .. } = &self.outputs.0[*output];
                    let end = ends[*place as usize];
                    assert!(
                        self.outputs.0[*output].holds(*place, asked.when),
                        "{answer:?} for {:?}: block {place} is {end:?}, synced up to {synced}, in doubt {doubtful:?}",
                        asked.when,
                    );
                }
            }
            asked.checked = up_to;
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.outputs.0.iter_mut().for_each(|output| output.queue.on_sender_stopped());
    }
}

#[test]
fn each_condition_is_met_by_exactly_its_event() {
    use AckWhen::{Accepted, Delivered, Safe};
    use CopyOutcome::{Delivered as Arrived, Dropped as Lost, RejectedByPeer as Sent};
    type Step = fn(&mut Output);
    let synced: Step = |output| output.sync(true);
    let sync_failed: Step = |output| output.sync(false);
    let arrived: Step = |output| output.settle(0, Arrived);
    let refused: Step = |output| output.settle(0, Sent(RejectedByPeer::ByPeer));
    let dropped: Step = |output| output.settle(0, Lost(Dropped::QueueFull));
    let stopped: Step = |output| output.settle(0, Lost(Dropped::Stopped));
    let held: Step = Output::pop;
    // (condition, what happens to the one copy, lines acknowledged, the error)
    let table: &[(AckWhen, &[Step], u64, Option<Unacked>)] = &[
        (Accepted, &[], 1, None),
        (Accepted, &[dropped], 1, None),
        (Safe, &[], 0, None),
        (Safe, &[held], 0, None),
        (Safe, &[synced], 1, None),
        (Safe, &[sync_failed], 0, Some(Unacked::InDoubt)),
        (Safe, &[sync_failed, arrived], 1, None),
        (Safe, &[arrived], 1, None),
        (Safe, &[refused], 1, None),
        (Safe, &[dropped], 0, Some(Unacked::Dropped)),
        (Delivered, &[], 0, None),
        (Delivered, &[synced, held], 0, None),
        (Delivered, &[arrived], 1, None),
        (Delivered, &[sync_failed, arrived], 1, None),
        (Delivered, &[refused], 0, Some(Unacked::RejectedByPeer)),
        (Delivered, &[dropped], 0, Some(Unacked::Dropped)),
        (Delivered, &[stopped], 0, Some(Unacked::Stopped)),
    ];
    for (at, (when, steps, up_to, failed)) in table.iter().enumerate() {
        let mut world = World::new(1, &[*when]);
        world.take(0, &[1], false);
        steps.iter().for_each(|step| step(&mut world.outputs.0[0]));
        let answer = world.answer(0);
        assert_eq!((answer.up_to, answer.failed), (*up_to, *failed), "row {at}: {when:?}");
        world.check();
    }
}

#[test]
fn a_connection_handed_over_waits_for_all_blocks_of_the_other_process() {
    use CopyOutcome::{Delivered as Arrived, Dropped as Lost, RejectedByPeer as Sent};
    // (how the two copies of the other process end, how many of them the queue counts as of an earlier run, lines
    // acknowledged, the error)
    type Row = ([Option<CopyOutcome>; 2], u64, u64, Option<Unacked>);
    let table: [Row; 6] = [
        ([None, None], 0, 0, None),
        ([Some(Arrived), None], 0, 0, None),
        ([Some(Arrived), Some(Arrived)], 0, 7, None),
        ([Some(Arrived), Some(Sent(RejectedByPeer::ByPeer))], 0, 0, Some(Unacked::RejectedByPeer)),
        ([Some(Lost(Dropped::TooOld)), None], 0, 0, Some(Unacked::Dropped)),
        ([Some(Lost(Dropped::TooOld)), None], 1, 0, Some(Unacked::Dropped)),
    ];
    for (at, (ends, of_before, up_to, failed)) in table.into_iter().enumerate() {
        let mut world = World::new(2, &[AckWhen::Delivered]);
        let (id, output) = (world.connections[0].id, OutputId(1));
        let inherited = Inherited::new(output, &world.outputs.0[1].account);
        (0..2).for_each(|_| world.outputs.0[1].append());
        let mark = AckMark { connection: id, up_to: 7, rejected: 1, when: AckWhen::Delivered };
        assert_eq!(world.acks.go_on(mark, &[inherited], &mut world.outputs), [output]);
        assert_eq!(world.acks.waiting(), HashMap::from([(id, vec![output])]), "row {at}");
        // New blocks have positions behind theirs.
        world.outputs.0[1].append();
        world.outputs.0[1].of_before = of_before;
        ends.into_iter().flatten().for_each(|end| world.outputs.0[1].settle(0, end));
        let answer = world.answer(0);
        assert_eq!((answer.up_to, answer.failed), (up_to, failed), "row {at}");
        assert_eq!(world.acks.waiting().is_empty(), up_to > 0 || failed.is_some(), "row {at}");
    }
}

#[test]
fn marks_are_met_in_order_and_no_connection_waits_for_anothers_output() {
    let mut world = World::new(2, &[AckWhen::Delivered, AckWhen::Delivered, AckWhen::Safe]);
    world.take(0, &[1, 1], false);
    world.take(0, &[0, 1], false);
    world.take(1, &[0, 1], false);
    world.take(2, &[1, 0], false);
    world.outputs.0[1].settle(0, CopyOutcome::Delivered);
    world.outputs.0[1].settle(0, CopyOutcome::Delivered);
    assert_eq!(world.answer(0).up_to, 0, "the second line is delivered, the first one is not");
    world.outputs.0[1].settle(0, CopyOutcome::Delivered);
    assert_eq!((world.answer(1).up_to, world.answer(2).up_to), (1, 0));
    world.outputs.0[0].sync(true);
    assert_eq!((world.answer(0).up_to, world.answer(2).up_to), (0, 1));
    world.outputs.0[0].settle(0, CopyOutcome::Delivered);
    assert_eq!(world.answer(0).up_to, 2);
    world.check();
}

#[test]
fn a_failure_is_reported_once_and_only_to_connections_that_wait() {
    let mut world = World::new(1, &[AckWhen::Delivered, AckWhen::Delivered, AckWhen::Accepted]);
    world.take(0, &[1], false);
    world.outputs.0[0].settle(0, CopyOutcome::Delivered);
    assert_eq!(world.answer(0).up_to, 1);
    world.take(0, &[1], false);
    world.take(1, &[1], true);
    assert_eq!(world.answer(1).failed, Some(Unacked::Dropped), "one of its copies was turned away");
    let answer = world.answer(0);
    assert_eq!((answer.up_to, answer.failed), (1, Some(Unacked::Dropped)), "whose copy it was is not known");
    world.take(0, &[1], false);
    world.take(2, &[1], false);
    assert_eq!((world.answer(0).up_to, world.answer(2).up_to), (1, 1), "nothing comes after a failure");
    let changed = world.acks.take_changed();
    assert_eq!(changed.iter().map(|id| id.0).collect::<Vec<_>>(), [0, 1, 2], "each once");
    assert_eq!(world.acks.take_changed(), []);
    let source = Arc::clone(&world.source);
    source.receive(1);
    let asked = &world.connections[2];
    let mark = AckMark { connection: asked.id, up_to: 2, rejected: 0, when: AckWhen::Accepted };
    let taking = Taking {
        mark,
        source_lost: source.lost(),
        source: Arc::clone(&source),
        kept: true,
        outputs: Vec::new(),
    };
    source.settle(model::Outcome::Dropped(Dropped::SeriesMax), 1);
    assert_eq!(world.acks.taken(taking, &mut world.outputs), []);
    assert_eq!(world.answer(2).failed, Some(Unacked::Dropped), "the record itself was dropped");
}

#[test]
fn losses_of_an_earlier_crash_fail_no_later_connection() {
    let mut world = World::new(1, &[AckWhen::Delivered, AckWhen::Safe]);
    world.take(0, &[1], false);
    world.take(1, &[1], false);
    let output = &mut world.outputs.0[0];
    output.account.pass(CopyOutcome::Dropped(Dropped::Damaged), 3, 30);
    output.of_before += 3;
    output.sync(true);
    assert_eq!((world.answer(0).failed, world.answer(1).up_to), (None, 1));
    world.outputs.0[0].account.pass(CopyOutcome::Dropped(Dropped::Damaged), 1, 10);
    assert_eq!(world.answer(0).failed, Some(Unacked::Dropped), "a loss of this run may be its own");
}

#[test]
fn closed_connections_leave_few_waits() {
    let mut world = World::new(2, &[AckWhen::Delivered; 2]);
    let waits = |world: &World| world.acks.outputs.iter().flatten().map(VecDeque::len).sum::<usize>();
    world.take(1, &[1, 1], false);
    for _ in 0..1000 {
        world.take(0, &[1, 1], false);
        world.take(0, &[0, 0], false);
        let asked = &mut world.connections[0];
        world.acks.close(asked.id);
        asked.id = world.acks.open();
        asked.marks.clear();
        assert!(world.acks.dead <= DEAD_MAX && waits(&world) <= 2 + DEAD_MAX + 2, "{}", waits(&world));
    }
    assert_eq!(world.acks.connections.len(), 2);
    for output in &mut world.outputs.0 {
        (0..1001).for_each(|_| output.settle(0, CopyOutcome::Delivered));
    }
    assert_eq!((world.answer(0), world.answer(1).up_to), (Answer::default(), 1));
    assert_eq!((waits(&world), world.acks.dead), (0, 0));
}

#[derive(Clone, Debug)]
enum Operation {
    Take { connection: usize, copies: Vec<usize>, lost: bool },
    Pop { output: usize },
    Settle { output: usize, which: usize, outcome: CopyOutcome },
    Sync { output: usize, good: bool },
    Close { connection: usize },
}

const OUTPUTS: usize = 3;
const CONNECTIONS: usize = 4;

fn operation() -> impl Strategy<Value = Operation> {
    let outcome = prop_oneof![
        20 => Just(CopyOutcome::Delivered),
        1 => Just(CopyOutcome::Dropped(Dropped::TooOld)),
        1 => Just(CopyOutcome::RejectedByPeer(RejectedByPeer::ByPeer)),
    ];
    let (connection, output) = (0..CONNECTIONS, 0..OUTPUTS);
    prop_oneof![
        6 => (connection.clone(), proptest::collection::vec(0usize..3, OUTPUTS), proptest::bool::weighted(0.02))
            .prop_map(|(connection, copies, lost)| Operation::Take { connection, copies, lost }),
        4 => output.clone().prop_map(|output| Operation::Pop { output }),
        8 => (output.clone(), 0usize..8, outcome)
            .prop_map(|(output, which, outcome)| Operation::Settle { output, which, outcome }),
        3 => (output, proptest::bool::weighted(0.9)).prop_map(|(output, good)| Operation::Sync { output, good }),
        1 => connection.prop_map(|connection| Operation::Close { connection }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_answer_acknowledges_an_unmet_condition(operations in proptest::collection::vec(operation(), 1..80)) {
        use AckWhen::{Accepted, Delivered, Safe};
        let mut world = World::new(OUTPUTS, &[Accepted, Safe, Delivered, Delivered]);
        for operation in operations {
            match operation {
                Operation::Take { connection, copies, lost } => world.take(connection, &copies, lost),
                Operation::Pop { output } => world.outputs.0[output].pop(),
                Operation::Settle { output, which, outcome } => world.outputs.0[output].settle(which, outcome),
                Operation::Sync { output, good } => world.outputs.0[output].sync(good),
                Operation::Close { connection } => {
                    let asked = &mut world.connections[connection];
                    world.acks.close(asked.id);
                    asked.id = world.acks.open();
                    asked.marks.clear();
                    asked.checked = 0;
                }
            }
            world.check();
        }
        // In the end every line is acknowledged or has failed.
        for output in &mut world.outputs.0 {
            output.sync(true);
            while output.ends.iter().any(Option::is_none) {
                output.settle(0, CopyOutcome::Delivered);
            }
        }
        world.check();
        for asked in &world.connections {
            let answer = world.acks.answer(asked.id);
            prop_assert!(answer.failed.is_some() || answer.up_to == asked.marks.len() as u64, "{:?}", answer);
        }
        prop_assert!(world.acks.outputs.iter().flatten().all(VecDeque::is_empty));
    }
}

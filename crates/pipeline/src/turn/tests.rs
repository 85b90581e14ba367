//! Turns over queues in memory, with a clock that the test sets.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use deliver::disk_queue::faulty_disk::FaultyDisk;
use deliver::disk_queue::{DiskQueue, DiskQueuePlan, Position, Promise};
use deliver::plan::QueueKind;
use deliver::queue::{Admission, Appended, Block, Entry, MemoryQueue, OutputQueue, Queue, Room};
use model::{
    AckMark, AckWhen, ConnectionId, CopyOutcome, EventsBuilder, Now, NumberRef, OutputAccount, OutputId,
    PeerKey, SourceId, Span,
};

use super::*;
use crate::acks::{Queues, Taking};
use crate::checkpoints::{Keep, Note, Piece};
use crate::{Accounts, Exchange, Scratch};

const START: Now = Now { mono_ns: model::SECOND_NS, wall_ns: 1_000_000_000 * model::SECOND_NS };

const MS_NS: u64 = model::SECOND_NS / 1000;

const PEER: PeerKey = PeerKey::V4(1);

/// A source whose packets go to an output with room for three records, and another one that waits for nobody.
const BLOCKING: &str = "[sources.a]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:1\"]\n\
    [sources.b]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:2\"]\n\
    [outputs.full]\ntype = \"tcp\"\nfrom = [\"a\"]\nto = [\"tcp://127.0.0.1:3\"]\n\
    queue = { max_records = 3, when_full = \"block\" }\n\
    [outputs.free]\ntype = \"tcp\"\nfrom = [\"b\"]\nto = [\"tcp://127.0.0.1:4\"]\n\
    queue = { when_full = \"drop_oldest\" }\n";

struct TestHost {
    queues: Queued,
    mono_ns: u64,
    taken: usize,
    keep: NoCheckpoints,
    noted: Vec<String>,
}

/// The queues, their accounts, and which sources wait for them since when.
struct Queued(Vec<OutputQueue<FaultyDisk>>, Vec<Arc<OutputAccount>>, Vec<(OutputId, SourceId, u64)>);

impl Queued {
    fn of(&mut self, output: OutputId) -> &mut OutputQueue<FaultyDisk> {
        &mut self.0[output.index()]
    }
}

impl Queues for Queued {
    fn accepted_up_to(&mut self, output: OutputId) -> Position {
        self.of(output).accepted_up_to()
    }

    fn settled_up_to(&mut self, output: OutputId) -> Position {
        self.of(output).settled_up_to()
    }

    fn promise(&mut self, output: OutputId, of: Position) -> Promise {
        self.of(output).promise(of)
    }

    fn lost_before_start(&mut self, output: OutputId) -> u64 {
        self.of(output).lost_before_start()
    }

    fn account(&self, output: OutputId) -> &OutputAccount {
        &self.1[output.index()]
    }
}

impl MovingQueues for Queued {
    fn take(&mut self, from: OutputId, now: Now) -> Option<Entry> {
        self.of(from).pop(now)
    }

    fn put_back(&mut self, from: OutputId, entry: Entry) {
        self.of(from).put_back(entry);
    }

    fn has_room(&mut self, to: OutputId, block: &Block, now: Now) -> bool {
        self.of(to).has_room_for(block, now)
    }

    fn append_moved(&mut self, to: OutputId, block: Block, now: Now) -> Option<Position> {
        self.append(to, block, Admission::Granted, now)
    }

    fn is_on_disk(&mut self, output: OutputId) -> bool {
        self.of(output).on_disk().is_some()
    }

    fn settled(&mut self, _: OutputId, _: u64) {}
}

impl Outputs for Queued {
    fn append(&mut self, to: OutputId, block: Block, admission: Admission, now: Now) -> Option<Position> {
        let queue = self.of(to);
        let place = queue.accepted_up_to();
        (queue.append_as(block, admission, now) == Appended::Kept).then_some(place)
    }

    fn room(&mut self, output: OutputId, bytes: u64, records: u64, now: Now) -> Room {
        self.of(output).room(bytes, records, || false, now)
    }

    fn takes(&mut self, output: OutputId, bytes: u64, records: u64, now: Now) -> bool {
        self.of(output).takes_more(bytes, records, now)
    }

    fn disk_fails(&mut self, output: OutputId) -> bool {
        self.of(output).disk_fails()
    }

    fn has_room_for_all(&mut self, output: OutputId, bytes: u64, records: u64) -> bool {
        self.of(output).has_room_for_all(bytes, records)
    }

    fn look_again_ns(&mut self, output: OutputId) -> u64 {
        self.of(output).look_again_ns()
    }

    fn note_wait(&mut self, output: OutputId, source: SourceId, since_ns: Option<u64>) {
        self.2.retain(|(known_output, known, _)| (*known_output, *known) != (output, source));
        self.2.extend(since_ns.map(|since_ns| (output, source, since_ns)));
    }

    fn end_waits(&mut self, output: OutputId) {
        self.2.retain(|(known, ..)| *known != output);
    }

    fn queued_bytes(&mut self, output: OutputId) -> u64 {
        self.of(output).bytes()
    }
}

struct NoCheckpoints;

impl Keep for NoCheckpoints {
    fn offer(&mut self, _: Piece) -> Result<(), Piece> {
        Ok(())
    }

    fn is_failing(&self, _: &str) -> bool {
        false
    }

    fn fresh_id(&mut self) -> u64 {
        1
    }
}

impl Host for TestHost {
    type Outputs = Queued;
    type Keep = NoCheckpoints;

    fn keep(&mut self) -> &mut NoCheckpoints {
        &mut self.keep
    }

    fn note(&mut self, aggregation: &str, _: Note) {
        self.noted.push(aggregation.to_owned());
    }

    fn outputs(&mut self) -> &mut Queued {
        &mut self.queues
    }

    fn mono_ns(&self) -> u64 {
        self.mono_ns
    }

    fn taken(&mut self, taking: Taking) {
        drop(taking);
        self.taken += 1;
    }
}

struct World {
    plan: config::plan::Plan,
    accounts: Accounts,
    turn: Turn,
    exchange: Exchange,
    host: TestHost,
}

impl World {
    fn new(text: &str) -> World {
        let source = config::diagnostic::Source { name: "t.toml", text };
        let (plan, diagnostics) = config::check(source, config::Format::Toml);
        let plan = plan.unwrap_or_else(|| panic!("{diagnostics:?}"));
        let accounts = Accounts::default().carried_to(&plan);
        let output_accounts: Vec<Arc<OutputAccount>> =
            (0..plan.outputs.len()).map(|at| Arc::clone(accounts.output(OutputId(at as u16)))).collect();
        let queue = |(output, account): (&config::plan::OutputPlan, &Arc<OutputAccount>)| {
            let account = Arc::clone(account);
            let QueueKind::Disk { sync_window_ms } = output.queue_kind else {
                return OutputQueue::Memory(MemoryQueue::new(output.queue, account));
            };
            let plan = DiskQueuePlan::within(output.queue, sync_window_ms);
            let opened = DiskQueue::open(FaultyDisk::new(7), plan, account, 1, START);
            OutputQueue::Disk(Box::new(opened.expect("the directory is empty").0))
        };
        let queues = Queued(
            plan.outputs.iter().zip(&output_accounts).map(queue).collect(),
            output_accounts,
            Vec::new(),
        );
        let turn = Turn::new(Shard::new(&plan, &accounts, 1, START), TurnLimits::default());
        let host =
            TestHost { queues, mono_ns: START.mono_ns, taken: 0, keep: NoCheckpoints, noted: Vec::new() };
        World { exchange: Exchange::new(1 << 20, plan.sources.len()), plan, accounts, turn, host }
    }

    fn output(&self, name: &str) -> OutputId {
        let at = self.plan.outputs.iter().position(|output| output.name == name);
        OutputId(at.expect("there is such an output") as u16)
    }

    /// A batch of these lines, each a packet, waits in the exchange.
    fn send(&mut self, source: &str, lines: &str, ack: Option<AckMark>) {
        let at = self.plan.sources.iter().position(|known| known.name == source);
        let id = SourceId(at.expect("there is such a source") as u16);
        let mut intake = self.turn.shard.intakes(&self.plan, id, &self.accounts).make();
        let mut at = 0;
        let spans: Vec<Span> = lines
            .split_inclusive('\n')
            .map(|line| {
                at += line.len();
                Span::new(at - line.len(), line.len())
            })
            .collect();
        let mut scratch = Scratch::default();
        let mut batch = intake.datagrams(lines.as_bytes(), &spans, START, &mut scratch).into_owned();
        batch.ack = ack;
        assert!(self.exchange.try_send(PEER, batch).is_ok(), "there is room");
    }

    /// Likewise, a message with so many events.
    fn send_events(&mut self, source: SourceId, count: i64) {
        let mut events = EventsBuilder::default();
        for number in 0..count {
            let mut event = events.event();
            event.metric(NumberRef::I64(number));
            event.finish();
        }
        let mut message = Vec::new();
        wire::riemann::request(None, events.view().iter(), &mut message);
        let mut intake = self.turn.shard.intakes(&self.plan, source, &self.accounts).make();
        let mut scratch = Scratch::default();
        let spans = [Span::new(0, message.len())];
        let batch = intake.datagrams(&message, &spans, START, &mut scratch).into_owned();
        assert!(self.exchange.try_send(PEER, batch).is_ok(), "there is room");
    }

    fn run(&mut self, at: Now) -> Taken {
        self.host.mono_ns = at.mono_ns;
        self.turn.run(&self.exchange, &mut self.host, at)
    }

    /// Copies in the queue of an output.
    fn copies(&mut self, name: &str) -> u64 {
        let output = self.output(name);
        self.host.queues.of(output).copies()
    }

    /// Delivers the oldest block of an output.
    fn deliver(&mut self, name: &str, at: Now) {
        let output = self.output(name);
        let entry = self.host.queues.of(output).pop(at).expect("a block is queued");
        entry.settle(CopyOutcome::Delivered);
    }
}

fn after(ms: u64) -> Now {
    START.plus_ns(ms * MS_NS)
}

#[test]
fn batch_stays_in_the_exchange_until_its_output_has_room_and_other_sources_do_not_wait() {
    let mut world = World::new(BLOCKING);
    world.send("a", "x:1|c\nx:2|c\nx:3|c\n", None);
    assert_eq!(world.run(START), Taken { any: true, more: false });
    assert_eq!((world.copies("full"), world.turn.look_ns()), (3, u64::MAX));
    world.send("a", "x:4|c\n", None);
    world.send("b", "y:1|c\n", None);
    assert!(world.run(START).any, "the source that waits for nobody");
    assert_eq!((world.copies("full"), world.copies("free")), (3, 1));
    assert!(!world.exchange.is_empty() && world.turn.look_ns() == after(4).mono_ns);
    let full = world.output("full");
    let account = Arc::clone(world.accounts.output(full));
    assert_eq!((account.stalls.load(Relaxed), account.stalled_since_ns.load(Relaxed)), (1, START.mono_ns));
    // The pauses grow while there is no room, and it is not looked for in between.
    for (at, next) in [(3, 4), (4, 12), (12, 28), (28, 60), (60, 124), (124, 188)] {
        assert!(!world.run(after(at)).any);
        assert_eq!(world.turn.look_ns(), after(next).mono_ns, "after {at} ms");
    }
    world.deliver("full", after(150));
    assert!(!world.run(after(150)).any, "not before the next look");
    world.turn.look_for_room();
    assert!(world.run(after(150)).any, "unless somebody asks for one");
    assert_eq!((world.copies("full"), world.turn.look_ns()), (1, u64::MAX));
    assert!(world.exchange.is_empty());
    // The next turn finds that nobody waits.
    world.run(after(151));
    assert_eq!((account.stalls.load(Relaxed), account.stalled_since_ns.load(Relaxed)), (1, 0));
}

#[test]
fn a_batch_larger_than_the_room_is_taken_up_to_the_bound_and_the_rest_waits() {
    let mut world = World::new(BLOCKING);
    let full = world.output("full");
    let account = Arc::clone(world.accounts.output(full));
    let source = Arc::clone(world.accounts.source(SourceId(0)));
    world.send("a", "x:1|c\n", None);
    world.run(START);
    // (lines of a batch, copies in the queue, records that wait): at the bound, and past it.
    for (lines, copies, waiting) in [("x:2|c\nx:3|c\n", 3, 0), ("x:4|c\nx:5|c\nx:6|c\nx:7|c\nx:8|c\n", 3, 5)]
    {
        world.send("a", lines, None);
        world.turn.look_for_room();
        world.run(START);
        assert_eq!((world.copies("full"), world.exchange.in_flight(SourceId(0))), (copies, waiting));
    }
    // Each delivered copy makes room for one more line of the batch that waits.
    let mut delivered = Vec::new();
    for waiting in [4, 2, 1, 0] {
        let entry = world.host.queues.of(full).pop(START).expect("a block is queued");
        delivered.extend_from_slice(&entry.block().bytes);
        entry.settle(CopyOutcome::Delivered);
        world.turn.look_for_room();
        world.run(START);
        assert_eq!(world.exchange.in_flight(SourceId(0)), waiting);
        assert!(source.sum(waiting).holds() && world.copies("full") <= 3);
        assert!(account.sum(world.copies("full")).holds());
    }
    while let Some(entry) = world.host.queues.of(full).pop(START) {
        delivered.extend_from_slice(&entry.block().bytes);
        entry.settle(CopyOutcome::Delivered);
    }
    let want: String = (1..=8).map(|number| format!("x:{number}|c\n")).collect();
    assert_eq!(String::from_utf8_lossy(&delivered), want);
    assert_eq!(account.sum(0).dropped, 0);
}

#[test]
fn events_stay_in_the_exchange_until_their_outputs_have_room() {
    for output in
        ["type = \"event_file\"\npath = \"events\"", "type = \"http\"\nurl = \"http://127.0.0.1:3/\""]
    {
        let mut world = World::new(&format!(
            "[sources.a]\ntype = \"riemann\"\nlisten = [\"tcp://127.0.0.1:1\"]\n\
             [outputs.full]\nfrom = [\"a\"]\nqueue = {{ max_records = 3, when_full = \"block\" }}\n{output}\n"
        ));
        let full = world.output("full");
        let account = Arc::clone(world.accounts.output(full));
        // Two and one more are at the bound.
        world.send_events(SourceId(0), 2);
        world.run(START);
        world.send_events(SourceId(0), 1);
        world.run(START);
        assert_eq!((world.copies("full"), world.exchange.is_empty()), (3, true), "{output}");
        world.send_events(SourceId(0), 2);
        assert!(!world.run(START).any, "{output}: there is no room for them");
        assert_eq!((world.copies("full"), world.exchange.in_flight(SourceId(0))), (3, 2));
        while world.copies("full") > 0 {
            world.deliver("full", START);
        }
        world.turn.look_for_room();
        assert!(world.run(START).any, "{output}: there is room");
        assert_eq!((world.copies("full"), world.exchange.is_empty()), (2, true));
        // More than there may be are taken by an empty queue, whole.
        world.send_events(SourceId(0), 5);
        world.turn.look_for_room();
        assert!(!world.run(START).any, "{output}: it is not empty");
        while world.copies("full") > 0 {
            world.deliver("full", START);
        }
        world.turn.look_for_room();
        world.run(START);
        assert_eq!((world.copies("full"), account.sum(world.copies("full")).dropped), (5, 0), "{output}");
    }
}

/// The default bound of the smallest queue, and reads of 64 KiB of short lines: four of them take more memory than it has.
#[test]
fn a_queue_of_bytes_is_filled_up_to_its_last_record_whatever_the_size_of_the_batches() {
    // More than the estimate for one line: its block, the open one, and what both may have grown to.
    const LAST_RECORD_BYTES: u64 = 4 * 1024;
    for when_full in ["block", "wait"] {
        for kind in ["memory", "disk"] {
            let text = format!(
                "data_dir = \"/nowhere\"\n[sources.a]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:1\"]\n\
                 [outputs.o]\ntype = \"graphite\"\nfrom = [\"a\"]\nto = [\"tcp://127.0.0.1:3\"]\n\
                 queue = {{ kind = \"{kind}\", max_bytes = \"256KiB\", when_full = \"{when_full}\" }}\n"
            );
            let mut world = World::new(&text);
            let output = world.output("o");
            let lines = "a.name 1 1700000000\n".repeat(64 * 1024 / 20);
            for _ in 0..6 {
                world.send("a", &lines, None);
                world.run(START);
            }
            // Lines that were in an open block take less room in the queue than was kept free for them.
            for look in 1..10 {
                world.turn.look_for_room();
                world.run(after(10 * look));
            }
            let account = Arc::clone(world.accounts.output(output));
            let queued = account.queued_bytes.load(Relaxed);
            let bound = 256 * 1024;
            assert!(queued <= bound && queued > bound - LAST_RECORD_BYTES, "{kind}, {when_full}: {queued}");
            assert_eq!((account.sum(world.copies("o")).dropped, account.stalls.load(Relaxed)), (0, 1));
            assert!(world.exchange.in_flight(SourceId(0)) > 0, "the rest waits");
            world.turn.drop_left(&world.exchange, &mut world.host, START);
        }
    }
}

#[test]
fn records_that_wait_at_a_stop_pass_the_limits_and_datagrams_in_memory_do_not() {
    for kind in ["memory", "disk"] {
        for when_full in ["block", "wait"] {
            let queue =
                format!("queue = {{ kind = \"{kind}\", max_records = 3, when_full = \"{when_full}\" }}");
            let text = BLOCKING.replacen("queue = { max_records = 3, when_full = \"block\" }", &queue, 1);
            let mut world = World::new(&format!("data_dir = \"/nowhere\"\n{text}"));
            for _ in 0..3 {
                world.send("a", "x:1|c\nx:2|c\n", None);
                world.run(START);
            }
            assert_eq!((world.copies("full"), world.exchange.in_flight(SourceId(0))), (3, 3));
            world.turn.keep_past_limits();
            assert!(world.turn.take_all(&world.exchange, &mut world.host, START, u64::MAX));
            world.turn.append(&mut world.host.queues, START);
            let full = world.output("full");
            let account = Arc::clone(world.accounts.output(full));
            assert_eq!((world.copies("full"), account.sum(6).dropped), (6, 0), "{kind}, {when_full}");
            // From here on only a disk keeps more than its limit.
            world.turn.keep_past_limits_on_disk(&mut world.host.queues);
            world.send("a", "x:3|c\n", None);
            assert!(world.turn.take_all(&world.exchange, &mut world.host, START, u64::MAX));
            world.turn.append(&mut world.host.queues, START);
            let dropped = account.dropped(model::Dropped::QueueFull);
            assert_eq!(dropped == 0, kind == "disk", "{kind}, {when_full}: {dropped}");
            assert!(account.sum(world.copies("full")).holds());
        }
    }
}

/// A source whose packets go to two outputs with room for three records each, and another one that goes to the first of them.
const TWO_FULL: &str = "[sources.a]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:1\"]\n\
    [sources.b]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:2\"]\n\
    [outputs.one]\ntype = \"tcp\"\nfrom = [\"a\", \"b\"]\nto = [\"tcp://127.0.0.1:3\"]\n\
    queue = { max_records = 3, when_full = \"block\" }\n\
    [outputs.two]\ntype = \"tcp\"\nfrom = [\"a\"]\nto = [\"tcp://127.0.0.1:4\"]\n\
    queue = { max_records = 3, when_full = \"block\" }\n";

#[test]
fn a_source_waits_from_its_beginning_when_the_output_that_lacks_room_is_another_one() {
    let mut world = World::new(TWO_FULL);
    let (one, two, a) = (world.output("one"), world.output("two"), SourceId(0));
    world.send("a", "x:1|c\nx:2|c\nx:3|c\n", None);
    world.run(START);
    world.send("a", "x:4|c\n", None);
    world.run(after(10));
    let since_ns = after(10).mono_ns;
    assert_eq!(world.host.queues.2, [(one, a, since_ns), (two, a, since_ns)]);
    // The first one has room for a moment, then the other one.
    world.deliver("one", after(4_000));
    world.turn.look_for_room();
    world.run(after(4_000));
    assert_eq!(world.host.queues.2, [(two, a, since_ns)]);
    world.send("b", "y:1|c\ny:2|c\ny:3|c\n", None);
    world.deliver("two", after(8_000));
    // The other source comes first.
    world.turn.look_for_room();
    world.run(after(8_000));
    let waits = world.host.queues.2.iter().any(|(output, source, _)| (*output, *source) == (one, a));
    assert!(waits || world.exchange.is_empty(), "{:?}", world.host.queues.2);
    if waits {
        assert_eq!(world.host.queues.2, [(one, a, since_ns)]);
    }
    world.turn.drop_left(&world.exchange, &mut world.host, after(8_000));
}

#[test]
fn batches_past_the_bytes_of_a_turn_are_left_for_the_next_one() {
    let mut world = World::new(BLOCKING);
    world.turn.limits.take_bytes = 1;
    for _ in 0..2 {
        world.send("b", "y:1|c\n", None);
    }
    assert_eq!(world.run(START), Taken { any: true, more: true });
    assert_eq!(world.run(START), Taken { any: true, more: false });
    assert_eq!(world.run(START), Taken::default());
    assert_eq!(world.copies("free"), 2);
}

#[test]
fn lines_of_a_batch_with_an_acknowledgement_are_queued_when_it_counts_as_taken() {
    let mut world = World::new(BLOCKING);
    let mark = AckMark { connection: ConnectionId(0), up_to: 1, rejected: 0, when: AckWhen::Accepted };
    world.send("b", "y:1|c\n", Some(mark));
    assert!(world.run(START).any);
    assert_eq!((world.host.taken, world.copies("free")), (1, 1));
    world.send("b", "y:2|c\n", None);
    assert!(world.run(START).any);
    assert_eq!(world.host.taken, 1, "nobody waits for it");
}

#[test]
fn flush_waits_at_most_a_second_for_an_endpoint_that_is_far_behind_and_takes_data() {
    let text = "[sources.s]\ntype = \"statsd\"\n\
        [transforms.t]\ntype = \"aggregate\"\nfrom = [\"s\"]\nwindow = \"1s\"\n\
        [outputs.o]\ntype = \"graphite\"\nfrom = [\"t\"]\nto = [\"tcp://127.0.0.1:1\"]\n";
    let backlog = || Block::lines(vec![b'\n'; 5 << 20], 5 << 20, 0);
    // (the endpoint takes data, milliseconds after the window's end, flushed then)
    for (takes, table) in
        [(true, &[(0, false), (500, false), (999, false), (1000, true)][..]), (false, &[(0, true)])]
    {
        let mut world = World::new(text);
        world.send("s", "x:1|c\n", None);
        world.run(START);
        let window_end = loop {
            let due_ns = world.turn.due_ns(START);
            if due_ns > START.mono_ns {
                break due_ns - START.mono_ns;
            }
            world.run(START);
        };
        let output = world.output("o");
        let _kept = world.host.queues.append(output, backlog(), Admission::Granted, START);
        for (ms, flushed) in table {
            let at = START.plus_ns(window_end + ms * MS_NS);
            if takes {
                world.accounts.output(output).route(1, 1);
                world.accounts.output(output).settle(CopyOutcome::Delivered, 1, 1);
            }
            // A window is closed in one turn and visited in the next ones.
            for _ in 0..4 {
                world.run(at);
            }
            let blocks = world.host.queues.of(output).accepted_up_to().0;
            assert_eq!(blocks > 1, *flushed, "{takes}, {ms} ms");
            assert_eq!(world.host.noted.len(), usize::from(*flushed), "noted once it is in the queue");
            if !flushed {
                assert!(!world.turn.continues(at), "it does not spin");
            }
        }
    }
}

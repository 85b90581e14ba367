//! A relay at the border of the pipeline: which lines leave for which output, and how each record ends.

#[allow(dead_code, reason = "other tests use the rest of it")]
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;

use config::plan::{OutputKind, Plan};
use deliver::disk_queue::{Position, Promise};
use deliver::plan::{QueueLimits, WhenFull};
use deliver::queue::{Appended, Block, BlockEncoding, Entry, MemoryQueue, Queue};
use import::relay::flags::{Flags, Machine, settings};
use import::relay::plan::{Relay, relay};
use import::relay::read_text;
use model::{CopyOutcome, Now, OutputAccount, OutputId, SECOND_NS, SourceId, Span};
use pipeline::{Kept, Moves, MovingQueues, Routed, Scratch, merge_plans};
use process::aggregation_rules::Fed;
use world::{START, World};

const CLUSTERS: &str = "listen type linemode 2003 proto tcp;\n\
    cluster a forward 10.0.0.1; cluster b forward 10.0.0.2; cluster u forward 10.0.0.3 proto udp;\n\
    cluster f failover 10.0.0.4 10.0.0.5; cluster c any_of 10.0.0.6 10.0.0.7;\n";

fn plan(statements: &str) -> Plan {
    plan_with(statements, Flags::default())
}

fn plan_with(statements: &str, flags: Flags) -> Plan {
    whole_plan(&format!("{CLUSTERS}{statements}"), flags)
}

fn whole_plan(text: &str, flags: Flags) -> Plan {
    let queue_given = flags.queue.is_some();
    let reading = read_text("relay.conf", text);
    let conf = reading.conf.unwrap_or_else(|| panic!("{text}: {:?}", reading.mistakes));
    let flags = Flags { config: Some("relay.conf".into()), ..flags };
    let machine = Machine { hostname: "host".into(), cores: 1 };
    let (settings, _) = settings(&flags, &machine);
    let settings = &settings.expect("no flag is wrong");
    let asked = Relay { conf: &conf, settings, queue_given, queue_dir: None, http: None };
    let (plan, wrong) = relay(&asked);
    plan.unwrap_or_else(|| panic!("{text}: {wrong:?}"))
}

fn at(s: u64) -> Now {
    START.plus_ns(s * SECOND_NS)
}

/// Lines by the address of the output that they left for.
fn arrived(world: &mut World) -> BTreeMap<String, Vec<String>> {
    world.shard.close_blocks(START, &mut world.routed);
    let mut arrived: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (output, block) in world.routed.blocks.drain(..) {
        let output = &world.plan.outputs[output.index()];
        let host = match &output.kind {
            OutputKind::GraphiteFile { path, .. } => {
                path.to_str().expect("a path of letters").trim_matches('/')
            }
            _ => output.name.rsplit_once('/').expect("cluster/host:port").1,
        };
        let text = String::from_utf8_lossy(&block.bytes).into_owned();
        let lines = text.lines().map(str::to_owned);
        arrived.entry(host.to_owned()).or_default().extend(lines);
    }
    arrived
}

fn want(table: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
    let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
    table.iter().map(|(host, these)| (format!("{host}:2003"), lines(these))).collect()
}

#[test]
fn each_record_goes_where_its_name_says_and_has_one_outcome() {
    let statements = "rewrite ^old\\.(.*) into new.\\1;\n\
        match ^black send to blackhole;\n\
        match ^sys validate ^[0-9.]+\\ [0-9]+$ else drop send to a stop;\n\
        match ^new send to a b;\n\
        match ^new validate ^1 else drop;\n\
        match ^dgram send to u stop;";
    let mut world = World::new(plan(statements), 1);
    world.send(
        "old.x;t=v 1 5\nblack.y 1 5\nsys.cpu 1.50 5\nsys.bad x 5\nnew.z 2 5\ndgram.one 1 5\ndgram.two 1 5\nnone 1 5\n",
        START,
    );
    let of_datagrams = world
        .plan
        .outputs
        .iter()
        .position(|output| output.name == "u-udp/10.0.0.3:2003")
        .expect("it is there");
    world.shard.close_blocks(START, &mut world.routed);
    let datagrams = world.routed.blocks.iter().find(|(output, _)| output.index() == of_datagrams);
    let (_, block) = datagrams.expect("lines left for it");
    assert_eq!((block.copies, &block.encoding), (2, &BlockEncoding::Frames(vec![(14, 1), (28, 1)])));
    let a: &[&str] = &["new.x;t=v 1 5", "sys.cpu 1.50 5", "new.z 2 5"];
    let table: &[(&str, &[&str])] = &[
        ("10.0.0.1", a),
        ("10.0.0.2", &["new.x;t=v 1 5", "new.z 2 5"]),
        ("10.0.0.3", &["dgram.one 1 5", "dgram.two 1 5"]),
    ];
    assert_eq!(arrived(&mut world), want(table));
    let sum = world.accounts.source(SourceId(0)).sum(0);
    assert!(sum.holds(), "{sum:?}");
    assert_eq!((sum.received, sum.routed, sum.filtered, sum.rejected), (8, 5, 2, 1));
    let state = world.shard.relays().next().expect("a relay");
    let figures = &state.figures;
    // `new.x` is followed by its tag, and `new.z` by a 2.
    assert_eq!((figures.points, figures.blackholed, figures.unmatched, figures.invalid), (8, 1, 1, 3));
    assert_eq!((state.names, state.cache.misses), (8, 8));
}

#[test]
fn clients_wait_for_every_endpoint_unless_they_never_may() {
    for (stalls, when_full) in [(None, WhenFull::BlockWhileUp), (Some("0"), WhenFull::DropOldest)] {
        let flags =
            Flags { stalls: stalls.map(str::to_owned), queue: Some("77000".into()), ..Flags::default() };
        let plan = plan_with("match * send to a b f stop;", flags);
        let queues: Vec<_> = plan.outputs.iter().map(|output| output.queue).collect();
        assert!(queues.iter().all(|queue| queue.when_full == when_full && queue.records_max == 77_000));
        let world = World::new(plan, 1);
        assert_eq!(world.shard.blocking(SourceId(0)).is_empty(), stalls.is_some());
        assert_eq!(world.shard.blocks(), stalls.is_none());
        assert!(world.shard.multiplies(SourceId(0)));
    }
}

#[test]
fn lines_fail_over_to_another_member_while_one_is_down() {
    let mut world = World::new(plan("match ^f send to f stop; match * send to c stop;"), 1);
    let first = |world: &World, host: &str| {
        let at = world.plan.outputs.iter().position(|output| output.name.ends_with(&format!("{host}:2003")));
        OutputId(at.expect("it is there") as u16)
    };
    let (four, six, seven) =
        (first(&world, "10.0.0.4"), first(&world, "10.0.0.6"), first(&world, "10.0.0.7"));
    let text = "f 1 5\na 1 5\nb 1 5\n";
    world.send(text, START);
    let before = arrived(&mut world);
    assert_eq!(before["10.0.0.4:2003"], ["f 1 5"]);
    assert!(world.shard.set_member_live(four, false) && !world.shard.set_member_live(four, false));
    let gone = if before.get("10.0.0.6:2003").is_some_and(|lines| lines.contains(&"a 1 5".into())) {
        six
    } else {
        seven
    };
    world.shard.set_member_live(gone, false);
    world.send(text, START);
    let between = arrived(&mut world);
    assert_eq!(between["10.0.0.5:2003"], ["f 1 5"]);
    assert_eq!(
        between.keys().filter(|host| host.starts_with("10.0.0.6") || host.starts_with("10.0.0.7")).count(),
        1
    );
    // A reload does not make an endpoint live again.
    world.reload(plan("match ^f send to f stop; match ^g send to a; match * send to c stop;"));
    world.send(text, START);
    assert_eq!(arrived(&mut world), between);
    world.shard.set_member_live(four, true);
    world.shard.set_member_live(gone, true);
    world.send(text, START);
    assert_eq!(arrived(&mut world), before);
}

#[test]
fn results_of_aggregation_rules_are_routed_separately_and_late_points_are_counted() {
    let statements = "aggregate ^sys\\.([a-z]+)\\..*$ every 10 seconds expire after 20 seconds\n\
          compute sum write to sum.\\1 compute count write to n.\\1 send to b stop;\n\
        aggregate ^loop every 10 seconds expire after 20 seconds compute max write to max.loop;\n\
        match ^max send to a;";
    let mut world = World::new(plan(statements), 1);
    let now_s = START.wall_seconds();
    let (time, late) = (now_s - now_s % 10, now_s - 100);
    world.send(
        &format!(
            "sys.cpu.a 1 {time}\nsys.cpu.b;t=v 2.5 {time}.9\nsys.cpu.c 1 {late}\nsys.cpu.d x {time}\nsys.cpu.e 1 9{time}\n\
             loop 7 {time}\n"
        ),
        START,
    );
    let sum = world.accounts.source(SourceId(0)).sum(0);
    assert!(sum.holds(), "{sum:?}");
    assert_eq!((sum.received, sum.aggregated, sum.dropped, sum.rejected), (6, 3, 2, 1));
    for s in 0..60 {
        world.shard.tick(at(s), 512, &mut world.routed);
    }
    let end = time + 10;
    let (total, number, most) =
        (format!("sum.cpu 3.500000 {end}"), format!("n.cpu 2 {end}"), format!("max.loop 7.000000 {end}"));
    let mut arrived = arrived(&mut world);
    arrived.values_mut().for_each(|lines| lines.sort());
    assert_eq!(arrived, want(&[("10.0.0.1", &[&most]), ("10.0.0.2", &[&number, &total])]));
    let state = world.shard.relays().next().expect("a relay");
    let fed: BTreeMap<&str, u64> = state.figures.fed.iter().map(|(fed, count)| (fed.word(), count)).collect();
    assert_eq!((fed["counted"], fed["late"], fed["early"], fed["not_finite"]), (5, 2, 2, 2));
    assert_eq!((state.figures.results, state.aggregation_rules.series), (3, 0));
    assert_eq!(Fed::ALL.len(), fed.len());
}

#[test]
fn ended_windows_are_emitted_at_a_stop_and_the_rest_is_counted() {
    let mut world = World::new(
        plan("aggregate a every 10 seconds expire after 30 seconds compute sum write to b send to a stop;"),
        1,
    );
    let now_s = START.wall_seconds();
    let time = now_s - now_s % 10;
    world.send(&format!("a 1 {}\na 2 {time}\n", time - 10), START);
    world.shard.stop(START, &mut world.routed);
    assert_eq!(arrived(&mut world), want(&[("10.0.0.1", &[&format!("b 1.000000 {time}")])]));
    let state = world.shard.relays().next().expect("a relay");
    assert_eq!((state.figures.results, state.figures.values_left), (1, 1));
}

/// Three aggregation rules of ten seconds, one of each output.
const SUMS: [&str; 3] = [
    "aggregate ^a every 10 seconds expire after 20 seconds compute sum write to sum.a send to a stop;\n",
    "aggregate ^b every 10 seconds expire after 20 seconds compute sum write to sum.b send to b stop;\n",
    "aggregate ^a every 10 seconds expire after 20 seconds compute max write to max.a send to b stop;\n",
];

fn ticked(world: &mut World, seconds: std::ops::Range<u64>) -> BTreeMap<String, Vec<String>> {
    for s in seconds {
        world.shard.tick(at(s), 512, &mut world.routed);
    }
    arrived(world)
}

#[test]
fn a_reload_keeps_the_state_of_statements_that_stay() {
    let [kept, gone, new] = SUMS;
    let mut world = World::new(plan(&format!("{kept}{gone}")), 1);
    let time = START.wall_seconds();
    world.send(&format!("a 1 {time}\nb 1 {time}\nb 7 {}\n", time - 10), START);
    world.reload(merge_plans(&world.plan, &plan(&format!("{new}match ^x send to a;{kept}"))));
    // The window of ten seconds ago is over for those that are gone.
    assert_eq!(arrived(&mut world), want(&[("10.0.0.2", &[&format!("sum.b 7.000000 {time}")])]));
    world.send(&format!("ax 2 {time}\n"), START);
    let end = time + 10;
    let (sum, max) = (format!("sum.a 1.000000 {end}"), format!("max.a 2.000000 {end}"));
    assert_eq!(ticked(&mut world, 0..60), want(&[("10.0.0.1", &[&sum]), ("10.0.0.2", &[&max])]));
    let state = world.shard.relays().next().expect("a relay");
    assert_eq!((state.figures.results, state.figures.values_left), (3, 1));
}

#[test]
fn an_unrelated_reload_keeps_the_remembered_names() {
    let mut world = World::new(plan("match ^a send to a;"), 1);
    world.send("a 1 5\n", START);
    let mut new = plan("match ^a send to a;");
    new.stop_timeout_ms += 1;
    world.reload(merge_plans(&world.plan, &new));
    world.send("a 1 5\n", START);
    let cache = |world: &World| world.shard.relays().next().expect("a relay").cache;
    let known = |world: &World| (cache(world).hits, cache(world).misses);
    assert_eq!(known(&world), (1, 1));
    world.reload(merge_plans(&world.plan, &plan("match ^a send to b;")));
    world.send("a 1 5\n", START);
    assert_eq!(known(&world), (1, 2), "another statement forgets the names, and the figures go on");
    assert_eq!(arrived(&mut world), want(&[("10.0.0.1", &["a 1 5", "a 1 5"]), ("10.0.0.2", &["a 1 5"])]));
}

#[test]
fn copies_find_their_output_when_a_reload_names_servers_in_another_order() {
    let listen = "listen type linemode 2003 proto tcp;";
    let clusters = ["cluster a forward 10.0.0.1;", "cluster b forward 10.0.0.2;"];
    let matches = "match ^a send to a; match ^b send to b;";
    let [a, b] = clusters;
    let mut world = World::new(whole_plan(&format!("{listen}{a}{b}{matches}"), Flags::default()), 1);
    world
        .reload(merge_plans(&world.plan, &whole_plan(&format!("{listen}{b}{a}{matches}"), Flags::default())));
    world.send("a 1 5\nb 1 5\n", START);
    assert_eq!(arrived(&mut world), want(&[("10.0.0.1", &["a 1 5"]), ("10.0.0.2", &["b 1 5"])]));
}

#[test]
fn another_process_continues_the_aggregation_rules() {
    let [sum, other, max] = SUMS;
    let mut before = World::new(plan(&format!("{other}{sum}")), 1);
    let time = START.wall_seconds();
    before.send(&format!("a 1 {time}\nb 5 {time}\n"), START);
    let states = before.shard.export(&Kept::of(&before.plan), 9, START, &mut before.routed);
    let [state] = &states[..] else { panic!("of one relay: {states:?}") };
    let mut after = World::new(plan(&format!("{max}{sum}")), 2);
    let restored =
        after.shard.import_aggregation_rules(&state.name, &state.bytes).expect("there is such a relay");
    let restored = restored.expect("it is whole");
    assert_eq!((restored.series, restored.values_left), (1, 1));
    assert!(after.shard.import_aggregation_rules("nobody", &state.bytes).is_none());
    after.send(&format!("a 2 {time}\n"), START);
    let end = time + 10;
    let (sum, max) = (format!("sum.a 1.000000 {end}"), format!("max.a 2.000000 {end}"));
    assert_eq!(ticked(&mut after, 0..60), want(&[("10.0.0.1", &[&sum]), ("10.0.0.2", &[&max])]));
    assert_eq!(ticked(&mut before, 0..1), BTreeMap::new(), "the first emitted nothing");
}

#[test]
fn a_last_flush_is_undone_if_the_other_process_gives_up() {
    let mut world = World::new(plan(SUMS[0]), 1);
    let time = START.wall_seconds();
    world.send(&format!("a 1 {time}\n"), START);
    let held = |world: &mut World| {
        (world.shard.export(&Kept::of(&world.plan), 9, START, &mut world.routed), world.shard.relays().next())
    };
    let before = held(&mut world);
    let mut last = Routed::default();
    let undo = world.shard.flush_others(&Kept::default(), START, &mut last);
    assert_ne!(held(&mut world), before);
    world.shard.go_back(undo);
    assert_eq!(held(&mut world), before);
    world.send(&format!("a 2 {time}\n"), START);
    let sum = format!("sum.a 3.000000 {}", time + 10);
    assert_eq!(ticked(&mut world, 0..60), want(&[("10.0.0.1", &[&sum])]));
}

#[test]
fn lines_carry_their_client_address_where_an_endpoint_needs_it() {
    let text = "listen type linemode 2003 proto tcp;\n\
        cluster s forward 10.0.0.1 type syslog; cluster u forward 10.0.0.2 proto udp type syslog;\n\
        cluster f file ip /10.0.0.3:2003; cluster p file /10.0.0.4:2003;\n\
        rewrite ^old into new;\n\
        aggregate ^new every 10 seconds expire after 20 seconds compute sum write to sum send to s f p;\n\
        match * send to s u f p;";
    let mut world = World::new(whole_plan(text, Flags::default()), 1);
    let time = START.wall_seconds();
    let lines = [format!("a 1 {time}"), format!("old;k=v  2 {time}")];
    world.send(&lines.join("\n"), START);
    let lines = [&lines[0], &format!("new;k=v  2 {time}")];
    let line_prefix = |second: u64, client: &str| {
        assert!(second < 60);
        format!("<30>1 2001-09-09T01:46:{second:02}.000Z {client} carbon-c-relay - - - ")
    };
    let messages = lines.map(|line| format!("{}{line}", line_prefix(40, "(unknown)")));
    let of_file = lines.map(|line| format!("(unknown) {line}"));
    let texts = |lines: &[String; 2]| lines.iter().map(String::clone).collect::<Vec<_>>();
    let arrived_at =
        |host: &str, arrived: &BTreeMap<String, Vec<String>>| arrived[&format!("{host}:2003")].clone();
    let first = arrived(&mut world);
    assert_eq!(arrived_at("10.0.0.1", &first), texts(&messages));
    assert_eq!(arrived_at("10.0.0.2", &first), texts(&messages));
    assert_eq!(arrived_at("10.0.0.3", &first), texts(&of_file));
    assert_eq!(arrived_at("10.0.0.4", &first), lines.map(String::clone));
    // Its splay is known once its result has come: any of ten seconds.
    let results = ticked(&mut world, 0..60);
    let result = format!("sum 2.000000 {}", time + 10);
    assert_eq!(arrived_at("10.0.0.4", &results), [&*result]);
    assert_eq!(arrived_at("10.0.0.3", &results), [format!(" {result}")], "nobody sent it");
    let [message] = &arrived_at("10.0.0.1", &results)[..] else { panic!("{results:?}") };
    assert!(message.ends_with(&format!(".000Z  carbon-c-relay - - - {result}")), "{message}");
}

/// Queues of a world, on disks whose syncs the test completes.
struct Queues<'a> {
    queues: &'a mut [MemoryQueue],
    on_disk: bool,
    synced: bool,
    /// Appended blocks are dropped, although there was room a moment ago.
    full: bool,
}

impl pipeline::Queues for Queues<'_> {
    fn accepted_up_to(&mut self, output: OutputId) -> Position {
        self.queues[output.index()].accepted_up_to()
    }

    fn settled_up_to(&mut self, output: OutputId) -> Position {
        self.queues[output.index()].settled_up_to()
    }

    fn promise(&mut self, _: OutputId, _: Position) -> Promise {
        if self.synced { Promise::Safe } else { Promise::Accepted }
    }

    fn lost_before_start(&mut self, output: OutputId) -> u64 {
        self.queues[output.index()].lost_before_start()
    }

    fn account(&self, output: OutputId) -> &OutputAccount {
        self.queues[output.index()].account()
    }
}

impl MovingQueues for Queues<'_> {
    fn take(&mut self, from: OutputId, now: Now) -> Option<Entry> {
        self.queues[from.index()].pop(now)
    }

    fn put_back(&mut self, from: OutputId, entry: Entry) {
        self.queues[from.index()].put_back(entry);
    }

    fn has_room(&mut self, to: OutputId, block: &Block, _: Now) -> bool {
        self.queues[to.index()].has_room(block.memory_bytes(), u64::from(block.copies))
    }

    fn append_moved(&mut self, to: OutputId, block: Block, now: Now) -> Option<Position> {
        if self.full {
            return None;
        }
        let queue = &mut self.queues[to.index()];
        let place = queue.accepted_up_to();
        assert_eq!(queue.append(block, now), Appended::Kept);
        Some(place)
    }

    fn is_on_disk(&mut self, _: OutputId) -> bool {
        self.on_disk
    }

    fn settled(&mut self, _: OutputId, _: u64) {}
}

#[test]
fn no_client_waits_for_a_block_that_its_new_output_drops() {
    let mut world = World::new(plan("match ^f send to f stop;"), 1);
    let at = world.plan.outputs.iter().position(|output| output.name == "f/10.0.0.4:2003");
    let four = OutputId(at.expect("it is there") as u16);
    let queue = |_| MemoryQueue::new(QueueLimits::default(), Arc::new(OutputAccount::default()));
    let mut queues: Vec<MemoryQueue> = (0..world.plan.outputs.len()).map(queue).collect();
    assert_eq!(queues[four.index()].append(Block::lines(b"f.a 1 5\n".to_vec(), 1, 0), START), Appended::Kept);
    world.shard.set_member_live(four, false);
    let mut moves = Moves::default();
    moves.look_at(four);
    // The position that it would have had is never synced.
    let on_disk = true;
    for _ in 0..2 {
        let mut queues = Queues { queues: &mut queues, on_disk, synced: false, full: true };
        moves.turn(&world.shard, &mut queues, START);
    }
    assert_eq!(queues[four.index()].account().sum(0).moved, 1);
}

#[test]
fn waiting_blocks_move_a_few_at_a_time_in_order_and_only_where_there_is_room() {
    for on_disk in [false, true] {
        let mut world = World::new(plan("match ^f send to f stop;"), 1);
        let place = |world: &World, host: &str| {
            let at = world.plan.outputs.iter().position(|output| output.name == format!("f/{host}:2003"));
            OutputId(at.expect("it is there") as u16)
        };
        let (four, five) = (place(&world, "10.0.0.4"), place(&world, "10.0.0.5"));
        let limits = QueueLimits { records_max: 12, ..QueueLimits::default() };
        let queue = |_| MemoryQueue::new(limits, Arc::new(OutputAccount::default()));
        let mut queues: Vec<MemoryQueue> = (0..world.plan.outputs.len()).map(queue).collect();
        let block = |at: u64| Block::lines(format!("f.a {at} 5\nf.b;t=v {at} 5\n").into_bytes(), 2, at);
        for at in 0..6 {
            assert_eq!(queues[four.index()].append(block(at), START), Appended::Kept);
        }
        let mut moves = Moves::default();
        moves.look_at(four);
        let turn = |world: &World, moves: &mut Moves, queues: &mut [MemoryQueue], synced| {
            let due_ns =
                moves.turn(&world.shard, &mut Queues { queues, on_disk, synced, full: false }, START);
            (
                due_ns.saturating_sub(START.mono_ns),
                queues[four.index()].copies(),
                queues[five.index()].copies(),
            )
        };
        assert_eq!(
            turn(&world, &mut moves, &mut queues, false),
            (u64::MAX - START.mono_ns, 12, 0),
            "it is up"
        );
        world.shard.set_member_live(four, false);
        moves.look_at(four);
        // One of the blocks finds no room, and is tried again only after a notification.
        let one = || Block::lines(b"f.c 1 5\n".to_vec(), 1, 0);
        assert_eq!(queues[five.index()].append(one(), START), Appended::Kept);
        assert_eq!(turn(&world, &mut moves, &mut queues, false), (0, 4, 9), "four blocks in a turn");
        let (due_ns, four_left, five_has) = turn(&world, &mut moves, &mut queues, false);
        assert_eq!((four_left, five_has), (2, 11));
        assert_eq!(due_ns < SECOND_NS, on_disk, "it looks whether they are safe");
        let account = |queues: &[MemoryQueue]| queues[four.index()].account().sum(0).moved;
        assert_eq!(account(&queues), if on_disk { 0 } else { 10 });
        let mut came = Vec::new();
        while let Some(entry) = queues[five.index()].pop(START) {
            came.extend_from_slice(&entry.block().bytes);
            entry.settle(CopyOutcome::Delivered);
        }
        let want: String = (0..5).map(|at| format!("f.a {at} 5\nf.b;t=v {at} 5\n")).collect();
        assert_eq!(String::from_utf8_lossy(&came), format!("f.c 1 5\n{want}"));
        moves.look_at(four);
        let _due_ns = turn(&world, &mut moves, &mut queues, true);
        let _due_ns = turn(&world, &mut moves, &mut queues, true);
        assert_eq!((account(&queues), queues[five.index()].copies()), (12, 2));
        assert!(queues[four.index()].account().sum(0).holds());
    }
}

#[test]
fn a_move_that_is_given_up_leaves_blocks_where_they_were() {
    let mut world = World::new(plan("match ^f send to f stop;"), 1);
    let at =
        |host: &str| world.plan.outputs.iter().position(|output| output.name == format!("f/{host}:2003"));
    let four = OutputId(at("10.0.0.4").expect("it is there") as u16);
    let mut queues: Vec<MemoryQueue> = (0..world.plan.outputs.len())
        .map(|_| MemoryQueue::new(QueueLimits::default(), Arc::new(OutputAccount::default())))
        .collect();
    let block = Block::lines(b"f.a 1 5\n".to_vec(), 1, 0);
    assert_eq!(queues[four.index()].append(block, START), Appended::Kept);
    world.shard.set_member_live(four, false);
    let mut moves = Moves::default();
    moves.look_at(four);
    let mut on_disk = Queues { queues: &mut queues, on_disk: true, synced: false, full: false };
    let _due_ns = moves.turn(&world.shard, &mut on_disk, START);
    moves.let_go(&mut on_disk);
    assert_eq!(queues[four.index()].copies(), 1);
    assert_eq!(queues.iter().map(Queue::copies).sum::<u64>(), 2, "in both");
}

/// Pushes lines of one batch in parts: each ends after the first name that needs a long search, or after many values.
fn in_parts(world: &mut World, text: &str) -> usize {
    let mut intake = world.shard.intakes(&world.plan, SourceId(0), &world.accounts).make();
    let spans = [Span::new(0, text.len())];
    let mut scratch = Scratch::default();
    let batch = intake.datagrams(text.as_bytes(), &spans, START, &mut scratch);
    let World { shard, routed, accounts, .. } = world;
    let mut left = shard.push_while(batch, START, routed, &mut || false).map(model::Batches::into_owned);
    let mut parts = 1;
    while let Some(batch) = left {
        let records = batch.records();
        assert!(accounts.source(SourceId(0)).sum(records).holds(), "what is left is in flight");
        left = shard.push_while(batch, START, routed, &mut || false);
        parts += 1;
        assert!(left.as_ref().is_none_or(|left| left.records() < records), "each part is something");
    }
    parts
}

#[test]
fn batch_of_names_with_long_searches_is_taken_in_parts() {
    // A back-reference is searched by backtracking.
    let statements =
        "match ^(x+)\\1z send to a stop; match ^k send to b stop; match ^x validate ^(1+)\\1$ else drop;";
    let lines: String = (0..200).map(|n| format!("x{n}.{n} 1 5\nk.{n} 1 5\nxxz.{n} 1 5\n")).collect();
    let mut whole = World::new(plan(statements), 1);
    whole.send(&lines, START);
    let mut cut = World::new(plan(statements), 1);
    let parts = in_parts(&mut cut, &lines);
    assert!(parts > 50, "{parts}");
    assert_eq!(arrived(&mut cut), arrived(&mut whole));
    let sums = [&cut, &whole].map(|world| world.accounts.source(SourceId(0)).sum(0));
    assert!(sums[0].holds() && sums[0] == sums[1], "{sums:?}");
    assert_eq!((sums[0].received, sums[0].routed), (600, 400));
    // With remembered names nothing is searched except the rest of the line.
    assert!(in_parts(&mut cut, &lines) < parts);
    let known: String = (0..1_000).map(|n| format!("k.{} 1 5\nxxz.{} 1 5\n", n % 200, n % 200)).collect();
    assert_eq!(in_parts(&mut cut, &known), 1);
}

#[test]
fn batch_that_feeds_many_values_is_taken_in_parts() {
    let statements = "aggregate ^r every 1 seconds expire after 3600 seconds compute sum write to sum compute count write to count \
                      send to a stop;";
    let lines: String = (0..2_000).map(|n| format!("r.{} 1 {}\n", n % 10, 999_999_000 + n)).collect();
    let mut world = World::new(plan(statements), 1);
    let parts = in_parts(&mut world, &lines);
    assert!((10..100).contains(&parts), "{parts}");
    assert!(world.accounts.source(SourceId(0)).sum(0).holds());
    // The same lines without aggregation rules, with remembered names.
    let mut plain = World::new(plan("match ^r send to a stop;"), 1);
    assert_eq!(in_parts(&mut plain, &lines), 1);
}

#[test]
fn several_relays_of_a_source_take_the_same_parts() {
    let relay = |name: &str, to: &str, ending: &str| {
        format!(
            "[transforms.{name}]\ntype = \"relay\"\nfrom = [\"points\"]\n\
             clusters.all = {{ type = \"forward\", to = [\"out_{name}\"] }}\n\
             [[transforms.{name}.rules]]\nmatch = ['^(x+)\\1{ending}']\nto = [\"all\"]\n\
             [outputs.out_{name}]\ntype = \"graphite\"\nfrom = [\"{name}\"]\nto = [\"tcp://{to}:2003\"]\n"
        )
    };
    let text = format!(
        "[sources.points]\ntype = \"graphite\"\n{}{}[outputs.all]\ntype = \"graphite\"\nfrom = [\"points\"]\n\
         to = [\"tcp://10.0.0.3:2003\"]\n",
        relay("one", "10.0.0.1", "y"),
        relay("two", "10.0.0.2", "z"),
    );
    let lines: String = (0..50).map(|n| format!("xxy.{n} 1 5\nxxz.{n} 1 5\nother.{n} 1 5\n")).collect();
    let mut whole = World::new(world::plan_of(&text), 1);
    whole.send(&lines, START);
    let mut cut = World::new(world::plan_of(&text), 1);
    assert!(in_parts(&mut cut, &lines) > 10);
    let both = [&mut cut, &mut whole].map(|world| {
        world.shard.close_blocks(START, &mut world.routed);
        let mut arrived: BTreeMap<usize, String> = BTreeMap::new();
        for (output, block) in world.routed.blocks.drain(..) {
            arrived.entry(output.index()).or_default().push_str(&String::from_utf8_lossy(&block.bytes));
        }
        assert!(world.accounts.source(SourceId(0)).sum(0).holds());
        arrived
    });
    assert_eq!(both[0], both[1]);
    let lines_of: Vec<usize> = both[0].values().map(|text| text.lines().count()).collect();
    assert_eq!(lines_of.iter().sum::<usize>(), 150 + 50 + 50, "{lines_of:?}");
}

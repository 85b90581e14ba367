//! The store with files in memory: bounds, order, faults, and random runs with crashes beside a model.

use std::collections::BTreeMap;

use model::{FileTree as _, TreeFile as _};
use proptest::prelude::*;

use super::*;
use crate::memory_tree::{Faults, MemoryTree};
use crate::query::{self, Ask, Fetch as _, Range, Room, Selector};
use crate::whisper::rules::{AggregationRule, Aggregations, SchemaRule, Schemas};
use crate::whisper::{self, AggregationMethod, Layout, Point, UpdateOptions, WhisperFile, parse_retentions};
use model::DiskError;

mod kept;
mod removal;

const NOW: i64 = 1_800_000_000;

fn rules(retentions: &str, method: AggregationMethod, factor: f32) -> Rules {
    let layout = Layout::new(&parse_retentions(retentions).expect("valid")).expect("valid");
    let schema = SchemaRule { section: "all".into(), pattern: String::new(), layout };
    let rule = AggregationRule {
        section: "all".into(),
        pattern: String::new(),
        x_files_factor: Some(factor),
        method: Some(method),
    };
    Rules {
        schemas: Schemas::new(vec![schema]).expect("valid"),
        aggregations: Aggregations::new(vec![rule]).expect("valid"),
    }
}

fn store(options: StoreOptions) -> Store {
    Store::new(options, rules("10s:1h,1m:6h,10m:1d", AggregationMethod::Average, 0.5), 7)
}

fn point(time: i64, value: f64) -> Point {
    Point { time, value }
}

/// Writes all series that are due. Returns what was done.
fn write_due(store: &Store, tree: &MemoryTree, now: i64) -> Vec<WriteReport> {
    let mut writer = Writer::default();
    let mut reports = Vec::new();
    while let Some(job) = store.next(now) {
        reports.push(store.write(job, tree, &mut writer, now));
    }
    reports
}

fn read(
    store: &Store,
    tree: &MemoryTree,
    name: &str,
    range: (i64, i64),
    now: i64,
) -> Option<whisper::Fetched> {
    let mut reader = Reader::new(store, tree, now, || Ok(()));
    let (from, until) = range;
    reader.fetch_series(name.as_bytes(), Range { from, until }).expect("the file can be read")
}

#[test]
fn points_are_readable_before_and_after_they_are_written() {
    let (store, tree) = (store(StoreOptions::default()), MemoryTree::new());
    for (time, value) in [(NOW - 20, 1.0), (NOW - 10, 2.0), (NOW - 10, 3.0)] {
        assert_eq!(store.push(b"a.b", point(time, value), 0, NOW), Pushed::Taken);
    }
    store.pushed_up_to(1);
    let before = read(&store, &tree, "a.b", (NOW - 40, NOW), NOW).expect("it is in memory");
    assert_eq!(before.points().collect::<Vec<_>>(), [(NOW - 20, 1.0), (NOW - 10, 3.0)]);
    assert_eq!((store.written_up_to(), store.pending()), (0, (2, 1)));
    assert_eq!(write_due(&store, &tree, NOW + 269), [], "the points are not old enough");
    let reports = write_due(&store, &tree, NOW + 270);
    assert!(
        matches!(&reports[..], [WriteReport { points: 2, created_bytes: 10_420, error: None, .. }]),
        "{reports:?}"
    );
    assert_eq!((store.written_up_to(), store.pending(), store.points_bytes()), (1, (0, 0), 0));
    assert_eq!(read(&store, &tree, "a.b", (NOW - 40, NOW), NOW), Some(before));
    assert_eq!(tree.exists("a/b.wsp"), Ok(true));
}

#[test]
fn coarse_values_are_those_that_the_file_will_have() {
    let (store, tree) = (store(StoreOptions::default()), MemoryTree::new());
    for at in 0..200 {
        let time = NOW - 2_000 + at * 10;
        assert_eq!(store.push(b"a", point(time, at as f64), at as u64, NOW), Pushed::Taken);
        if at == 120 {
            store.drain(true);
            write_due(&store, &tree, NOW);
            store.drain(false);
        }
    }
    let ranges = [(NOW - 3_000, NOW), (NOW - 20_000, NOW), (NOW - 80_000, NOW), (NOW - 500, NOW - 100)];
    let all = |store: &Store| ranges.map(|range| read(store, &tree, "a", range, NOW));
    let before = all(&store);
    assert!(before.iter().all(|found| found.as_ref().is_some_and(|found| found.points().count() > 0)));
    store.drain(true);
    write_due(&store, &tree, NOW);
    assert_eq!(all(&store), before);
}

#[test]
fn a_query_ends_while_points_in_memory_are_aggregated_for_it() {
    let rules = rules("1s:1h,1m:1d", AggregationMethod::Average, 0.0);
    let (store, tree) = (Store::new(StoreOptions::default(), rules, 7), MemoryTree::new());
    // Each is a write of its own.
    for at in 0..1000 {
        store.push(b"a", point(NOW - 3_000 + at * 3, 1.0), 0, NOW);
    }
    let mut asked = 0;
    let mut reader = Reader::new(&store, &tree, NOW, || {
        asked += 1;
        if asked < 2 { Ok(()) } else { Err(query::Stop::Cancelled) }
    });
    let range = Range { from: NOW - 80_000, until: NOW };
    assert_eq!(reader.fetch_series(b"a", range), Err(NotRead::Stopped(query::Stop::Cancelled)));
    assert_eq!(asked, 2);
}

#[test]
fn at_the_limit_of_memory_points_are_not_taken_until_others_are_written() {
    let options = StoreOptions { points_bytes_max: 12 * 64, ..StoreOptions::default() };
    let (store, tree) = (store(options), MemoryTree::new());
    let push = |series: u64| store.push(format!("s{series}").as_bytes(), point(NOW, 1.0), series, NOW);
    let taken = (0..1000).take_while(|series| push(*series) == Pushed::Taken).count();
    assert!((10..=64).contains(&taken), "{taken}");
    assert_eq!(push(5), Pushed::Full);
    assert!(store.points_bytes() <= 12 * 64 + 12 * 4);
    // Memory is short, so all are due.
    let written = write_due(&store, &tree, NOW).len();
    assert!(written > 0, "{written}");
    assert_eq!(push(5), Pushed::Taken);
}

#[test]
fn each_refused_point_has_its_reason() {
    let store = store(StoreOptions { series_max: 2, ..StoreOptions::default() });
    let long = [b'a'; 5000];
    let cases: [(&[u8], i64, Pushed); 8] = [
        (b"a", NOW, Pushed::Taken),
        (b"a", NOW - 86_401, Pushed::Refused(Refusal::TooOld)),
        (b"a", NOW + 601, Pushed::Refused(Refusal::InFuture)),
        (b"a", 1 << 40, Pushed::Refused(Refusal::InFuture)),
        (b"a..b", NOW, Pushed::Refused(Refusal::BadName)),
        (&long, NOW, Pushed::Refused(Refusal::BadName)),
        (b"b;x=1", NOW, Pushed::Taken),
        (b"c", NOW, Pushed::Refused(Refusal::TooManySeries)),
    ];
    for (name, time, want) in cases {
        assert_eq!(store.push(name, point(time, 1.0), 0, NOW), want, "{}", String::from_utf8_lossy(name));
    }
    assert_eq!(store.take_refused(), [], "the caller counts them");
    let of = |why| store.take_example(why).expect("some were refused");
    let (points, first) = of(Refusal::InFuture);
    assert_eq!((points, &*first.name, first.time, first.now), (2, &b"a"[..], Some(NOW + 601), NOW));
    assert_eq!(of(Refusal::TooManySeries).1.name, b"c");
    let (_, first) = of(Refusal::BadName);
    assert_eq!((&*first.name, first.is_cut), (&b"a..b"[..], false));
    assert_eq!(store.take_example(Refusal::BadName), None, "each is taken once");
    assert_eq!(store.push(&long, point(NOW, 1.0), 0, NOW), Pushed::Refused(Refusal::BadName));
    let (points, first) = of(Refusal::BadName);
    assert_eq!((points, &*first.name, first.is_cut), (1, &long[..EXAMPLE_BYTES_MAX], true));
}

#[test]
fn a_refused_point_uses_up_no_name() {
    let store = store(StoreOptions { series_max: 2, ..StoreOptions::default() });
    for number in 0..100 {
        let name = format!("n{number};t=1");
        let (early, late) = (point(NOW - 86_401, 1.0), point(NOW * 1000, 1.0));
        assert_eq!(store.push(name.as_bytes(), early, 0, NOW), Pushed::Refused(Refusal::TooOld));
        assert_eq!(store.push(name.as_bytes(), late, 0, NOW), Pushed::Refused(Refusal::InFuture));
    }
    assert_eq!(store.catalog().len(), 0);
    assert_eq!(store.push(b"a", point(NOW, 1.0), 0, NOW), Pushed::Taken);
    assert_eq!(store.push(b"b;y=1;x=1", point(NOW, 1.0), 0, NOW), Pushed::Taken);
    assert_eq!(store.push(b"b;y=1;x=1", point(NOW + 1, 1.0), 0, NOW), Pushed::Taken);
    assert_eq!((store.catalog().len(), store.pending()), (2, (3, 2)));
}

#[test]
fn a_name_with_its_tags_in_another_order_is_the_same_series() {
    let (store, tree) = (store(StoreOptions::default()), MemoryTree::new());
    assert_eq!(store.push(b"m;b=2;a=1", point(NOW - 10, 1.0), 0, NOW), Pushed::Taken);
    assert_eq!(store.push(b"m;a=1;b=2", point(NOW, 2.0), 1, NOW), Pushed::Taken);
    let found = read(&store, &tree, "m;a=1;b=2", (NOW - 60, NOW), NOW).expect("it is in memory");
    assert_eq!((found.points().count(), store.pending().1), (2, 1));
}

#[test]
fn a_disk_error_keeps_the_points_and_is_tried_again_later() {
    let (store, tree) = (store(StoreOptions::default()), MemoryTree::new());
    store.push(b"a", point(NOW, 1.0), 4, NOW);
    store.pushed_up_to(5);
    store.drain(true);
    tree.set_faults(Faults { read_only: true, ..Faults::default() });
    let reports = write_due(&store, &tree, NOW);
    let error = Some(("a.wsp".to_owned(), WriteError::Disk(DiskError::Denied)));
    assert_eq!((reports.len(), &reports[0].error), (1, &error));
    store.push(b"a", point(NOW + 10, 2.0), 5, NOW);
    store.pushed_up_to(6);
    assert_eq!((store.written_up_to(), store.pending()), (4, (2, 1)));
    assert_eq!(write_due(&store, &tree, NOW), [], "not at once");
    assert_eq!(write_due(&store, &tree, NOW + 1).len(), 1, "it fails again, and pauses longer");
    assert_eq!(write_due(&store, &tree, NOW + 2), []);
    tree.set_faults(Faults::default());
    let reports = write_due(&store, &tree, NOW + 60);
    assert!(matches!(&reports[..], [WriteReport { points: 2, error: None, .. }]), "{reports:?}");
    assert_eq!((store.written_up_to(), store.pending()), (6, (0, 0)));
}

#[test]
fn a_damaged_file_is_left_alone_and_its_points_are_counted() {
    let tree = MemoryTree::with_file("a.wsp", b"these are not the bytes of a whisper file").expect("a path");
    let store = store(StoreOptions::default());
    store.push(b"a", point(NOW, 1.0), 0, NOW);
    store.push(b"b", point(NOW, 1.0), 0, NOW);
    store.pushed_up_to(1);
    store.drain(true);
    let errors = write_due(&store, &tree, NOW).into_iter().filter_map(|report| report.error).count();
    assert_eq!((errors, store.written_up_to()), (1, 1));
    assert_eq!(store.push(b"a", point(NOW, 1.0), 1, NOW), Pushed::Refused(Refusal::UnusableFile));
    assert_eq!(store.take_refused(), [(Refusal::UnusableFile, 1)]);
    assert_eq!(tree.bytes("a.wsp").expect("it is there"), b"these are not the bytes of a whisper file");
    let mut reader = Reader::new(&store, &tree, NOW, || Ok(()));
    let ask = Ask { selector: Selector::Glob("*".into()), range: Range { from: NOW - 60, until: NOW } };
    let answers = reader.fetch(&[ask], Room { series: 10, points: 1000 }).expect("the other series");
    assert_eq!((answers[0].len(), &*answers[0][0].name, reader.notes.len()), (1, "b", 1));
}

#[test]
fn limits_in_time_make_points_wait_and_lose_none() {
    let options =
        StoreOptions { creates_per_minute_max: 2, updates_per_second_max: 3, ..StoreOptions::default() };
    let (store, tree) = (store(options), MemoryTree::new());
    let push = |block: u64| {
        for series in 0..5 {
            store.push(format!("s{series}").as_bytes(), point(NOW, 1.0), block, NOW);
        }
        store.pushed_up_to(block + 1);
    };
    push(0);
    store.drain(true);
    let created =
        |now: i64| write_due(&store, &tree, now).iter().filter(|report| report.created_bytes > 0).count();
    assert_eq!([NOW, NOW + 1, NOW + 2].map(created), [2, 0, 0], "two new files in the first minute");
    assert_eq!((store.pending().0, store.written_up_to()), (3, 0));
    let later: usize = (30..200).map(|second| created(NOW + second)).sum();
    assert_eq!((later, store.pending().0, store.written_up_to()), (3, 0, 1));
    push(1);
    assert_eq!(write_due(&store, &tree, NOW + 300).len(), 3, "three updates a second");
    assert_eq!(write_due(&store, &tree, NOW + 301).len(), 2);
}

#[test]
fn limits_in_time_do_not_stop_a_store_whose_memory_is_short() {
    let options = StoreOptions {
        creates_per_minute_max: 2,
        updates_per_second_max: 1,
        points_bytes_max: 12 * 64,
        ..StoreOptions::default()
    };
    let (store, tree) = (store(options), MemoryTree::new());
    let taken = |from: u64| {
        let push = |series: &u64| store.push(format!("s{series}").as_bytes(), point(NOW, 1.0), 0, NOW);
        (from..from + 1_000).take_while(|series| push(series) == Pushed::Taken).count() as u64
    };
    let mut series = 0;
    for _ in 0..10 {
        let more = taken(series);
        assert!(more > 0, "the store has stopped at {series} series");
        series += more;
        write_due(&store, &tree, NOW);
        assert!(!store.is_short());
    }
}

#[test]
fn a_renamed_series_keeps_its_file_and_its_points_in_memory() {
    // Names of all parts, so that both names have the same part, or two of them in either order.
    for number in 0..40 {
        let (store, tree) = (store(StoreOptions::default()), MemoryTree::new());
        let (old, new) = (format!("old.s{number}"), format!("new;host=h{number}"));
        store.push(old.as_bytes(), point(NOW - 20, 1.0), 0, NOW);
        store.drain(true);
        write_due(&store, &tree, NOW);
        store.drain(false);
        store.push(old.as_bytes(), point(NOW - 10, 2.0), 1, NOW);
        store.push(b"other", point(NOW - 10, 2.0), 2, NOW);
        store.pushed_up_to(3);
        assert_eq!(store.rename(&tree, old.as_bytes(), b"other"), Err(ChangeError::Taken));
        assert_eq!(store.rename(&tree, old.as_bytes(), b"n;a="), Err(ChangeError::BadName));
        assert_eq!(store.rename(&tree, b"nobody", new.as_bytes()), Ok(false));
        assert_eq!(store.rename(&tree, old.as_bytes(), new.as_bytes()), Ok(true));
        assert_eq!((store.pending(), store.written_up_to()), ((2, 2), 1), "its points keep their block");
        assert_eq!(read(&store, &tree, &old, (NOW - 40, NOW), NOW), None);
        let found = read(&store, &tree, &new, (NOW - 40, NOW), NOW).expect("it has points");
        assert_eq!(found.points().collect::<Vec<_>>(), [(NOW - 20, 1.0), (NOW - 10, 2.0)]);
        assert_eq!(write_due(&store, &tree, NOW).len(), 1, "its points are due at once");
        assert_eq!(store.written_up_to(), 2);
        assert_eq!(tree.exists(&format!("old/s{number}.wsp")), Ok(false));
        let found = read(&store, &tree, &new, (NOW - 40, NOW), NOW).expect("it has a file");
        assert_eq!(found.points().count(), 2);
        // A sender with the old name begins a new series.
        assert_eq!(store.push(old.as_bytes(), point(NOW, 3.0), 3, NOW), Pushed::Taken);
        assert_eq!(store.rename(&tree, new.as_bytes(), old.as_bytes()), Err(ChangeError::Taken));
    }
}

#[test]
fn a_series_keeps_its_name_while_it_is_written_and_when_the_disk_fails() {
    let (store, tree) = (store(StoreOptions::default()), MemoryTree::new());
    store.push(b"a", point(NOW - 20, 1.0), 0, NOW);
    store.pushed_up_to(1);
    store.drain(true);
    let job = store.next(NOW).expect("it is due");
    assert_eq!(store.rename(&tree, b"a", b"b"), Err(ChangeError::Busy));
    let done = store.write(job, &tree, &mut Writer::default(), NOW);
    assert_eq!(done.error, None);
    store.push(b"a", point(NOW - 10, 2.0), 1, NOW);
    tree.set_faults(Faults { read_only: true, ..Faults::default() });
    assert!(matches!(store.rename(&tree, b"a", b"b"), Err(ChangeError::File(_))));
    tree.set_faults(Faults::default());
    assert!(store.catalog().find(b"b").is_none());
    assert_eq!((store.pending(), store.rename(&tree, b"a", b"b")), ((1, 1), Ok(true)));
    let found = read(&store, &tree, "b", (NOW - 40, NOW), NOW).expect("it has points");
    assert_eq!(found.points().count(), 2);
}

#[test]
fn names_of_files_and_of_memory_are_found_and_deleted() {
    let (store, tree) = (store(StoreOptions::default()), MemoryTree::new());
    store.add_name(b"gone.z").expect("a valid name");
    store.add_name(b"gone;tag=z").expect("a valid name");
    tree.create("old/x.wsp").expect("made");
    tree.create("old/notes.txt").expect("made");
    store.push(b"new.y", point(NOW, 1.0), 0, NOW);
    let mut walk = Walk::default();
    while walk.step(&store, &tree) {}
    let report = walk.report();
    assert_eq!((report.folders, report.files, report.new, report.foreign), (2, 1, 1, 1));
    assert_eq!(report.gone, 2, "names of a saved catalog whose files were removed");
    let find = |glob: &str| {
        let mut reader = Reader::new(&store, &tree, NOW, || Ok(()));
        let found =
            reader.find(&Selector::Glob(glob.into()), crate::catalog::Wanted::Leaves, 10).expect("few");
        let paths = found.by_path();
        paths.iter().map(|node| String::from_utf8_lossy(node.path).into_owned()).collect::<Vec<_>>()
    };
    assert_eq!(find("*.*"), ["new.y", "old.x"]);
    assert_eq!(store.delete(&tree, b"old.x"), Ok(true));
    assert_eq!(store.delete(&tree, b"new.y"), Ok(true));
    assert_eq!(store.delete(&tree, b"new.y"), Ok(false));
    assert_eq!((find("**"), tree.exists("old/x.wsp"), store.pending()), (vec![], Ok(false), (0, 0)));
    assert_eq!(store.take_refused(), [(Refusal::Deleted, 1)]);
    // It may come back.
    assert_eq!(store.push(b"new.y", point(NOW, 1.0), 1, NOW), Pushed::Taken);
    assert_eq!(find("new.*"), ["new.y"]);
}

#[test]
fn threads_push_write_and_read_at_once_without_losing_a_point() {
    let (store, tree) =
        (store(StoreOptions { write_after_s: 0, ..StoreOptions::default() }), MemoryTree::new());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut writer = Writer::default();
                loop {
                    let last = done.load(Relaxed);
                    while let Some(job) = store.next(NOW) {
                        assert_eq!(store.write(job, &tree, &mut writer, NOW).error, None);
                    }
                    if last {
                        break;
                    }
                }
            });
        }
        scope.spawn(|| {
            // What was pushed is there from then on, in memory or in the file.
            while !done.load(Relaxed) {
                let up_to = store.pushed_up_to.load(Relaxed) as i64;
                if up_to == 0 {
                    continue;
                }
                let found = read(&store, &tree, "s3", (NOW - 3_000, NOW), NOW).expect("it is there");
                let times: Vec<i64> = found.points().map(|point| point.0).collect();
                assert!(times.len() as i64 >= up_to, "{} of {up_to}", times.len());
            }
        });
        for block in 0..200 {
            for series in 0..20 {
                let time = NOW - 2_500 + block * 10;
                let pushed = store.push(format!("s{series}").as_bytes(), point(time, 1.0), block as u64, NOW);
                assert_eq!(pushed, Pushed::Taken);
            }
            store.pushed_up_to(block as u64 + 1);
        }
        done.store(true, Relaxed);
    });
    assert_eq!((store.written_up_to(), store.pending(), store.points_bytes()), (200, (0, 0), 0));
    for series in 0..20 {
        let file = tree.open_to_read(&format!("s{series}.wsp")).expect("it was written");
        let file = WhisperFile::open(file).expect("it is whole");
        let found = file.fetch(NOW - 3_000, NOW, NOW).expect("it reads").expect("it covers that");
        assert_eq!(found.points().count(), 200);
    }
}

/// A step of a random run.
#[derive(Clone, Debug)]
enum Step {
    /// Points of a block: (series, steps of ten seconds before now, value).
    Block(Vec<(u8, u16, i16)>),
    /// Some jobs.
    Write(u8),
    /// Sync the tree and settle what is written.
    Settle,
    /// The same, but the sync fails: the store begins anew with the blocks of the queue.
    FailedSync,
    /// The process dies; true: with everything that was not synced.
    Crash(bool),
    /// The disk refuses one write.
    Fault(u8),
    /// Time passes.
    Pass(u16),
}

fn step() -> impl Strategy<Value = Step> {
    let point = (0u8..6, 0u16..400, any::<i16>());
    prop_oneof![
        4 => prop::collection::vec(point, 1..30).prop_map(Step::Block),
        4 => (1u8..10).prop_map(Step::Write),
        2 => Just(Step::Settle),
        1 => Just(Step::FailedSync),
        1 => any::<bool>().prop_map(Step::Crash),
        1 => (0u8..20).prop_map(Step::Fault),
        2 => (0u16..400).prop_map(Step::Pass),
    ]
}

/// The queue with its blocks, the tree, and the last value of each point of a settled or queued block.
struct World {
    store: Store,
    tree: MemoryTree,
    /// From the first unsettled block on.
    queue: Vec<Vec<(String, Point)>>,
    settled: u64,
    now: i64,
    want: BTreeMap<(String, i64), f64>,
}

impl World {
    fn new() -> World {
        let tree = MemoryTree::new();
        let store = World::store();
        let (queue, want) = (Vec::new(), BTreeMap::new());
        World { store, tree, queue, settled: 0, now: NOW, want }
    }

    fn store() -> Store {
        Store::new(StoreOptions::default(), rules("10s:3h,1m:6h", AggregationMethod::Sum, 0.0), 3)
    }

    fn push(&self, block: &[(String, Point)], number: u64) {
        for (name, point) in block {
            assert_eq!(self.store.push(name.as_bytes(), *point, number, self.now), Pushed::Taken);
        }
        self.store.pushed_up_to(number + 1);
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Block(points) => {
                let to_point = |(series, age, value): (u8, u16, i16)| {
                    let time = (self.now - i64::from(age) * 10).div_euclid(10) * 10;
                    (format!("s.{series}"), point(time, f64::from(value)))
                };
                let block: Vec<(String, Point)> = points.into_iter().map(to_point).collect();
                for (name, point) in &block {
                    self.want.insert((name.clone(), point.time), point.value);
                }
                self.push(&block, self.settled + self.queue.len() as u64);
                self.queue.push(block);
            }
            Step::Write(jobs) => {
                let mut writer = Writer::default();
                self.store.drain(true);
                for _ in 0..jobs {
                    let Some(job) = self.store.next(self.now) else { break };
                    let _failed = self.store.write(job, &self.tree, &mut writer, self.now);
                }
                self.store.drain(false);
            }
            Step::Settle => {
                let up_to = self.store.written_up_to();
                self.tree.sync_all().expect("no fault");
                assert!(up_to >= self.settled);
                self.queue.drain(..(up_to - self.settled) as usize);
                self.settled = up_to;
            }
            Step::FailedSync => {
                self.tree.set_faults(Faults { sync_fails: true, ..Faults::default() });
                self.tree.sync_all().expect_err("a fault");
                self.begin_anew();
            }
            Step::Crash(loses) => {
                if loses {
                    self.tree = self.tree.after_power_loss();
                } else {
                    self.tree.set_faults(Faults::default());
                }
                self.begin_anew();
            }
            Step::Fault(write) => {
                let write_error_in = Some(u64::from(write));
                self.tree.set_faults(Faults { write_error_in, ..Faults::default() });
            }
            Step::Pass(seconds) => self.now += i64::from(seconds),
        }
    }

    /// A store that has nothing but what the queue has.
    fn begin_anew(&mut self) {
        self.store = World::store();
        self.store.pushed_up_to(self.settled);
        for (at, block) in self.queue.iter().enumerate() {
            self.push(block, self.settled + at as u64);
        }
    }

    /// Everything that was pushed can be read.
    fn check(&self) {
        for series in 0..6 {
            let name = format!("s.{series}");
            let range = (self.now - 10_000, self.now);
            let found: BTreeMap<i64, f64> = match read(&self.store, &self.tree, &name, range, self.now) {
                Some(found) => found.points().collect(),
                None => BTreeMap::new(),
            };
            let want = self.want.range((name.clone(), range.0 + 10)..=(name.clone(), range.1));
            let want: BTreeMap<i64, f64> = want.map(|((_, time), value)| (*time, *value)).collect();
            let found: BTreeMap<i64, f64> =
                found.into_iter().filter(|(time, _)| *time >= range.0 + 10).collect();
            assert_eq!(found, want, "{name}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_crash_loses_a_point_of_the_queue_or_of_a_synced_file(steps in prop::collection::vec(step(), 1..40)) {
        let mut world = World::new();
        for step in steps {
            world.take(step);
            world.check();
        }
        world.tree.set_faults(Faults::default());
        world.now += 120;
        world.take(Step::Write(255));
        world.take(Step::Settle);
        prop_assert_eq!((world.store.pending(), world.queue.len()), ((0, 0), 0));
        prop_assert_eq!(world.store.points_bytes(), 0);
        world.take(Step::Crash(true));
        world.check();
    }
}

/// Runs that random ones have found.
#[test]
fn headers_that_are_cut_short_after_failed_syncs_lose_no_point() {
    let block = || Step::Block(vec![(0, 0, 0)]);
    let written_again = vec![
        block(),
        Step::Write(1),
        Step::FailedSync,
        Step::Fault(0),
        Step::Write(1),
        Step::Settle,
        Step::Crash(true),
    ];
    let begun_again = vec![
        block(),
        Step::Write(1),
        Step::FailedSync,
        Step::Settle,
        Step::Crash(true),
        Step::Fault(1),
        Step::Write(1),
    ];
    for steps in [written_again, begun_again] {
        let mut world = World::new();
        for step in steps.into_iter().chain([Step::Crash(false), Step::Write(1), Step::Settle]) {
            world.take(step);
            world.check();
        }
        assert_eq!(world.queue.len(), 0);
    }
}

/// What is in the place of a header, and what becomes of the file.
#[test]
fn a_file_with_a_part_of_its_header_is_unfinished_and_others_are_damaged() {
    let store = store(StoreOptions::default());
    let header = store.header_of_new(b"a").expect("the rules are valid").to_bytes();
    let whole =
        Layout::new(&parse_retentions("10s:1h,1m:6h,10m:1d").expect("valid")).expect("valid").file_bytes();
    let with = |bytes: &[u8], size: u64| {
        let tree = MemoryTree::with_file("a.wsp", bytes).expect("a path");
        tree.open("a.wsp").expect("there").extend(size).expect("no fault");
        assert_eq!(store.push(b"a", point(NOW, 1.0), 0, NOW), Pushed::Taken);
        store.forget_unusable();
        store.drain(true);
        let reports = write_due(&store, &tree, NOW);
        store.drain(false);
        reports.iter().all(|report| report.error.is_none())
    };
    for cut in 0..header.len() {
        assert!(with(&header[..cut], whole), "{cut} bytes, then zeros");
        assert!(with(&header[..cut], 0), "{cut} bytes");
    }
    let mut other = header[..20].to_vec();
    other[15] = 9;
    for (bytes, size) in [(&other[..], whole), (&header[..20], whole + 1), (&header, 0)] {
        assert!(!with(bytes, size), "{bytes:?}, {size}");
        store.forget_unusable();
    }
}

#[test]
fn names_that_are_only_in_the_saved_catalog_are_found_after_a_start() {
    use crate::catalog::saved::Reader as SavedReader;

    let store = store(StoreOptions::default());
    let push = |name: &[u8]| assert_eq!(store.push(name, point(NOW, 1.0), 0, NOW), Pushed::Taken);
    push(b"before;a=1");
    let (mut snapshot, mut bytes, mut journal) = (store.begin_saving(3), Vec::new(), Vec::new());
    push(b"during;a=2");
    while snapshot.next(&store.catalog(), &mut bytes) {}
    push(b"after;a=3");
    assert_eq!(store.delete(&MemoryTree::new(), b"before;a=1"), Ok(true));
    store.take_changes(&mut journal);
    let mut reader = SavedReader::new(store.options().catalog_limits(), 9);
    for file in [&bytes, &journal] {
        reader.begin();
        reader.push(file);
        assert_eq!(reader.end().damages, 0);
    }
    let options = StoreOptions::default();
    let again = Store::with_names(options, rules("10s:1h", AggregationMethod::Sum, 0.0), 9, reader.finish());
    let tree = MemoryTree::new();
    let mut reader = Reader::new(&again, &tree, NOW, || Ok(()));
    let found =
        reader.find(&Selector::Tags(vec!["a=~.".into()]), crate::catalog::Wanted::Leaves, 10).expect("few");
    let paths = found.by_path();
    let names: Vec<_> = paths.iter().map(|node| String::from_utf8_lossy(node.path)).collect();
    assert_eq!(names, ["after;a=3", "during;a=2"]);
    let mut more = Vec::new();
    store.take_changes(&mut more);
    assert_eq!(more, b"", "nothing has changed");
}

/// Writes a point to a new file of each of these series.
fn written(store: &Store, tree: &MemoryTree, names: &[&str], now: i64) {
    tree.set_now(now);
    store.drain(true);
    for name in names {
        assert_eq!(store.push(name.as_bytes(), point(now, 1.0), 0, now), Pushed::Taken);
    }
    write_due(store, tree, now);
    store.drain(false);
}

#[test]
fn a_migration_gives_files_the_archives_of_new_rules_and_keeps_their_points() {
    let (store, tree) = (store(StoreOptions::default()), MemoryTree::new());
    for at in 0..60 {
        store.push(b"a.b", point(NOW - 600 + at * 10, at as f64), 0, NOW);
    }
    written(&store, &tree, &["a.c", "c;x=1"], NOW);
    tree.create("damaged/x.wsp").expect("made");
    store.add_name(b"damaged.x").expect("valid");
    store.add_name(b"without.file").expect("valid");
    // In memory only, and written after the migration.
    store.push(b"a.b", point(NOW, 9.0), 0, NOW);
    assert!(!store.set_rules(rules("10s:1h,1m:6h,10m:1d", AggregationMethod::Average, 0.5)), "as before");
    assert!(store.set_rules(rules("30s:2h,5m:10d", AggregationMethod::Max, 0.0)));
    let mut migrate = Migrate::default();
    while migrate.step(&store, &tree, NOW) {}
    let report = migrate.report();
    assert_eq!((report.looked_at, report.changed, report.failed), (4, 3, 1), "{report:?}");
    assert_eq!(report.last_error.as_ref().map(|(path, _)| &**path), Some("damaged/x.wsp"));
    let found = read(&store, &tree, "a.b", (NOW - 610, NOW), NOW).expect("it has points");
    let found: Vec<_> = found.points().collect();
    assert_eq!((found.len(), found[0], found[20]), (21, (NOW - 600, 2.0), (NOW, 9.0)), "{found:?}");
    let file = WhisperFile::open(tree.open_to_read("a/b.wsp").expect("there")).expect("whole");
    assert_eq!(file.header().archives().iter().map(|one| one.step).collect::<Vec<_>>(), [30, 300]);
    assert_eq!(file.header().method, AggregationMethod::Max);
    // Points that the old file did not cover are taken now.
    let old = point(NOW - 3 * 86_400, 5.0);
    assert_eq!(store.push(b"a.b", old, 0, NOW), Pushed::Taken);
    let mut again = Migrate::default();
    while again.step(&store, &tree, NOW) {}
    assert_eq!((again.report().changed, again.report().failed), (0, 1));
}

#[test]
fn a_migration_on_a_full_disk_is_given_up_and_changes_nothing() {
    let (store, tree) = (store(StoreOptions::default()), MemoryTree::new());
    written(&store, &tree, &["a", "b"], NOW);
    let before = (tree.bytes("a.wsp"), tree.bytes("b.wsp"));
    store.set_rules(rules("30s:2h", AggregationMethod::Average, 0.5));
    tree.set_faults(Faults { bytes_max: Some(21_000), ..Faults::default() });
    let mut migrate = Migrate::default();
    while migrate.step(&store, &tree, NOW) {}
    let report = migrate.report();
    assert!(report.is_given_up && report.changed == 0 && report.looked_at == 1, "{report:?}");
    tree.set_faults(Faults::default());
    assert_eq!((tree.bytes("a.wsp"), tree.bytes("b.wsp")), before);
}

#[test]
fn above_the_limit_of_bytes_files_that_were_written_least_recently_go() {
    let (store, tree) = (store(StoreOptions::default()), MemoryTree::new());
    let names: Vec<String> = (0..40).map(|number| format!("n{number};t=1")).collect();
    for (at, name) in names.iter().enumerate() {
        written(&store, &tree, &[name], NOW + at as i64);
    }
    tree.create("foreign.wsp").expect("made");
    let size = 10_420;
    let run = |most: u64| {
        let mut expire = Expire::new(most);
        while expire.step(&store, &tree) {}
        *expire.report()
    };
    let report = run(40 * size);
    assert_eq!((report.bytes, report.removed), (40 * size, 0), "at the limit nothing is removed");
    // A point in memory of a series that goes.
    store.push(names[0].as_bytes(), point(NOW + 50, 2.0), 0, NOW + 50);
    let report = run(30 * size);
    assert_eq!((report.removed, report.failed, report.bytes), (13, 0, 27 * size));
    for (at, name) in names.iter().enumerate() {
        let is_there = store.catalog().find(name.as_bytes()).is_some();
        assert_eq!(is_there, at >= 13, "{name}");
    }
    assert_eq!((store.take_refused(), tree.exists("foreign.wsp")), (vec![(Refusal::Expired, 1)], Ok(true)));
    assert_eq!(run(30 * size).removed, 0);
}

#[test]
fn series_that_come_and_go_use_bounded_memory() {
    let (store, tree) = (store(StoreOptions::default()), MemoryTree::new());
    for number in 0..20_000 {
        let name = format!("some.name.of.{number}");
        assert_eq!(store.push(name.as_bytes(), point(NOW, 1.0), 0, NOW), Pushed::Taken);
        assert_eq!(store.delete(&tree, name.as_bytes()), Ok(true));
    }
    let (series, names) = store
        .parts
        .iter()
        .map(|part| locked(part).sizes())
        .fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
    assert!(series <= PARTS && names <= PARTS * 100, "{series} series, {names} bytes of names");
}

#[test]
fn a_series_whose_first_write_failed_and_that_waits_for_a_limit_keeps_its_block() {
    let options = StoreOptions { creates_per_minute_max: 1, ..StoreOptions::default() };
    let (store, tree) = (store(options), MemoryTree::new());
    store.push(b"a", point(NOW, 1.0), 0, NOW);
    store.pushed_up_to(1);
    store.drain(true);
    tree.set_faults(Faults { write_error_in: Some(0), ..Faults::default() });
    assert!(write_due(&store, &tree, NOW)[0].error.is_some());
    for number in 0..200 {
        store.push(format!("b{number}").as_bytes(), point(NOW, 1.0), 1, NOW);
    }
    store.pushed_up_to(2);
    write_due(&store, &tree, NOW);
    write_due(&store, &tree, NOW + 1);
    assert_eq!((tree.exists("a.wsp"), store.written_up_to()), (Ok(false), 0), "it is only in memory");
}

#[test]
fn an_empty_file_is_that_of_an_interrupted_creation_and_is_created_again() {
    let tree = MemoryTree::with_file("a.wsp", b"").expect("a path");
    let store = store(StoreOptions::default());
    store.push(b"a", point(NOW, 1.0), 0, NOW);
    store.pushed_up_to(1);
    let reports = write_due(&store, &tree, NOW + 270);
    assert!(matches!(&reports[..], [WriteReport { points: 1, error: None, .. }]), "{reports:?}");
    assert_eq!(tree.bytes("a.wsp").map(|bytes| bytes.len()), Ok(10_420));
    assert_eq!((store.take_refused(), store.written_up_to()), (vec![], 1));
}

#[test]
fn points_are_written_also_after_the_clock_was_set_back() {
    let (store, tree) = (store(StoreOptions::default()), MemoryTree::new());
    let back = NOW - 86_400;
    store.push(b"a", point(back, 1.0), 0, NOW);
    store.push(b"b", point(back, 2.0), 1, back);
    store.pushed_up_to(2);
    let written = |now: i64| write_due(&store, &tree, now).iter().filter(|one| one.error.is_none()).count();
    assert_eq!((written(back), store.written_up_to()), (1, 1), "what came before is due at once");
    assert_eq!((written(back + 270), store.written_up_to()), (1, 2));
    tree.set_faults(Faults { write_error_in: Some(0), ..Faults::default() });
    store.push(b"a", point(NOW, 1.0), 2, NOW);
    store.pushed_up_to(3);
    assert_eq!((written(NOW + 270), store.written_up_to()), (0, 2));
    assert_eq!((written(back + 300), store.written_up_to()), (1, 3), "an attempt that failed, too");
}

#[test]
fn a_path_that_cannot_be_a_file_holds_up_no_other_and_is_given_up() {
    let options = StoreOptions { write_after_s: 0, ..StoreOptions::default() };
    // A folder in the place of the file of `bad`.
    let (store, tree) = (store(options), MemoryTree::with_file("bad.wsp/x", b"").expect("a path"));
    let push = |name: &[u8], at: i64| {
        assert_eq!(store.push(name, point(at, 1.0), 0, at), Pushed::Taken, "{name:?}");
    };
    push(b"bad", NOW);
    push(b"good", NOW);
    let mut attempts = 0;
    let mut now = NOW;
    let unusable = loop {
        let reports = write_due(&store, &tree, now);
        let errors: Vec<WriteError> = reports.iter().filter_map(|done| Some(done.error.clone()?.1)).collect();
        match errors[..] {
            [] => {}
            [WriteError::File(_)] => attempts += 1,
            [WriteError::Unusable(_)] => break true,
            _ => break false,
        }
        if now == NOW {
            assert!(tree.exists("good.wsp").expect("no fault"), "the other one is written at once");
        }
        now += 1;
        assert!(now < NOW + 300, "it ends");
    };
    assert!(unusable);
    assert_eq!(attempts + 1, ATTEMPTS_MAX);
    assert_eq!(store.take_refused(), [(Refusal::UnusableFile, 1)]);
    assert_eq!((store.pending(), store.points_bytes()), ((0, 0), 0));
    assert_eq!(store.push(b"bad", point(now, 1.0), 0, now), Pushed::Refused(Refusal::UnusableFile));
    // Somebody mends it.
    tree.remove("bad.wsp/x").expect("it is there");
    store.forget_unusable();
    push(b"bad", now);
    let reports = write_due(&store, &tree, now);
    assert!(reports.iter().all(|done| done.error.is_none()), "{reports:?}");
    assert!(tree.exists("bad.wsp").expect("no fault"));
}

#[test]
fn a_read_only_tree_keeps_points_for_as_long_as_it_lasts() {
    let options = StoreOptions { write_after_s: 0, ..StoreOptions::default() };
    let (store, tree) = (store(options), MemoryTree::new());
    tree.set_faults(Faults { read_only: true, ..Faults::default() });
    assert_eq!(store.push(b"a", point(NOW, 1.0), 0, NOW), Pushed::Taken);
    for second in 0..600 {
        for done in write_due(&store, &tree, NOW + second) {
            assert!(matches!(done.error, Some((_, WriteError::Disk(DiskError::Denied)))), "{done:?}");
        }
    }
    tree.set_faults(Faults::default());
    let reports = write_due(&store, &tree, NOW + 700);
    assert!(reports.iter().any(|done| done.written.written == 1), "{reports:?}");
    assert_eq!(store.take_refused(), []);
}

#[test]
fn with_the_first_of_two_points_answers_and_files_agree() {
    let update = UpdateOptions { first_duplicate: true, ..UpdateOptions::default() };
    let options = StoreOptions { write_after_s: 0, update, ..StoreOptions::default() };
    let (store, tree) = (store(options), MemoryTree::new());
    let at = NOW - NOW.rem_euclid(10) - 20;
    for value in [1.0, 2.0, 3.0] {
        assert_eq!(store.push(b"a", point(at, value), 0, NOW), Pushed::Taken);
    }
    let values = || -> Vec<(i64, f64)> {
        read(&store, &tree, "a", (at - 10, NOW), NOW)
            .map(|found| found.points().collect())
            .unwrap_or_default()
    };
    let before = values();
    write_due(&store, &tree, NOW);
    assert_eq!((before, values()), (vec![(at, 1.0)], vec![(at, 1.0)]));
}

#[test]
fn a_name_that_comes_during_a_walk_stays() {
    let (store, tree) = (store(StoreOptions::default()), MemoryTree::new());
    let ends = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !ends.load(Relaxed) {
                let mut walk = Walk::default();
                while walk.step(&store, &tree) {}
            }
        });
        for number in 0..50_000 {
            let name = format!("some.name.of.{number}");
            assert_eq!(store.push(name.as_bytes(), point(NOW, 1.0), 0, NOW), Pushed::Taken);
        }
        ends.store(true, Relaxed);
    });
    assert_eq!((store.catalog().len(), store.pending().1), (50_000, 50_000));
}

#[test]
fn a_new_name_whose_file_is_there_is_written_to_it() {
    for creates_per_minute_max in [0, 1] {
        let tree = MemoryTree::new();
        let options = StoreOptions { write_after_s: 0, creates_per_minute_max, ..StoreOptions::default() };
        for number in 0..3 {
            // Each store begins without names, as before a walk.
            let store = store(options.clone());
            for name in ["a.b", "a.c"].into_iter().take(if number == 0 { 1 } else { 2 }) {
                assert_eq!(store.push(name.as_bytes(), point(NOW - 60 * number, 1.0), 0, NOW), Pushed::Taken);
            }
            let mut writer = Writer::default();
            while let Some(job) = store.next(NOW) {
                let done = store.write(job, &tree, &mut writer, NOW);
                assert_eq!((done.error, done.waits), (None, false), "{number}");
            }
            assert_eq!(store.pending().0, 0);
        }
        let known = |path: &str| {
            let file = WhisperFile::open(tree.open(path).expect("it is there")).expect("a whisper file");
            let fetched = file.fetch(NOW - 600, NOW, NOW).expect("no fault").expect("a range");
            fetched.values.iter().flatten().count()
        };
        assert_eq!((known("a/b.wsp"), known("a/c.wsp")), (3, 2), "{creates_per_minute_max}");
    }
}

#[test]
fn a_file_that_a_power_loss_left_without_its_header_gets_it_again() {
    let header = crate::whisper::rules::header_of(
        &rules("10s:1h,1m:6h,10m:1d", AggregationMethod::Average, 0.5).schemas,
        &rules("10s:1h,1m:6h,10m:1d", AggregationMethod::Average, 0.5).aggregations,
        b"a",
    );
    let bytes = header.expect("valid").file_bytes() as usize;
    let mut on_other_page = vec![0; bytes];
    on_other_page[4096..4100].fill(7);
    for (left, is_mended) in [
        (vec![0; bytes], true),
        (vec![0; 4096], true),
        (on_other_page.clone(), true),
        // None of ours.
        (vec![0; bytes + 1], false),
        ([vec![0; 100], vec![1], vec![0; 4096]].concat(), false),
    ] {
        let tree = MemoryTree::with_file("a.wsp", &left).expect("a path");
        let store = store(StoreOptions::default());
        store.push(b"a", point(NOW, 1.0), 0, NOW);
        let read = |store| read(store, &tree, "a", (NOW - 40, NOW), NOW).map(|found| found.points().count());
        if is_mended {
            assert_eq!(read(&store), Some(1), "from memory");
        }
        store.drain(true);
        let reports = write_due(&store, &tree, NOW);
        assert_eq!(reports[0].error.is_none(), is_mended, "{reports:?}");
        let now = tree.bytes("a.wsp").expect("it is there");
        if is_mended {
            assert_eq!((read(&store), now.len()), (Some(1), bytes));
            assert_eq!(now[4096..4100], if left == on_other_page { [7; 4] } else { [0; 4] });
        } else {
            assert!(now == left, "it is left alone");
        }
    }
}

/// A tree that asks for changes of a series while its file is replaced.
#[derive(Debug)]
struct Meddling<'s> {
    tree: MemoryTree,
    store: &'s Store,
    answers: Mutex<Vec<bool>>,
}

impl model::FileTree for Meddling<'_> {
    type File = crate::memory_tree::MemoryFile;

    fn open(&self, path: &str) -> Result<Self::File, DiskError> {
        self.tree.open(path)
    }

    fn open_to_read(&self, path: &str) -> Result<Self::File, DiskError> {
        self.tree.open_to_read(path)
    }

    fn create(&self, path: &str) -> Result<Self::File, DiskError> {
        let is_busy = |error: Option<ChangeError>| error == Some(ChangeError::Busy);
        let (store, tree) = (self.store, &self.tree);
        locked(&self.answers).extend([
            is_busy(store.delete(tree, b"a").err()),
            is_busy(store.rename(tree, b"a", b"b").err()),
            is_busy(store.set_method(tree, b"a", AggregationMethod::Max).err()),
            !is_busy(store.delete(tree, b"other").err()),
        ]);
        self.tree.create(path)
    }

    fn exists(&self, path: &str) -> Result<bool, DiskError> {
        self.tree.exists(path)
    }

    fn list(
        &self,
        folder: &str,
        each: &mut dyn FnMut(&str, model::EntryKind) -> bool,
    ) -> Result<(), DiskError> {
        self.tree.list(folder, each)
    }

    fn remove(&self, path: &str) -> Result<(), DiskError> {
        self.tree.remove(path)
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        self.tree.rename(from, to)
    }

    fn is_current(&self, path: &str, file: &Self::File) -> Result<bool, DiskError> {
        self.tree.is_current(path, file)
    }

    fn facts(&self, path: &str) -> Result<model::FileFacts, DiskError> {
        self.tree.facts(path)
    }

    fn sync_folder(&self, folder: &str) -> Result<(), DiskError> {
        self.tree.sync_folder(folder)
    }

    fn sync_all(&self) -> Result<(), DiskError> {
        self.tree.sync_all()
    }
}

#[test]
fn a_file_that_is_migrated_is_not_changed_by_requests_meanwhile() {
    let (store, tree) = (store(StoreOptions::default()), MemoryTree::new());
    store.push(b"a", point(NOW, 1.0), 0, NOW);
    store.pushed_up_to(1);
    store.drain(true);
    write_due(&store, &tree, NOW);
    store.set_rules(rules("10s:2h,1m:1d", AggregationMethod::Average, 0.5));
    let meddling = Meddling { tree: tree.clone(), store: &store, answers: Mutex::default() };
    let mut migrate = Migrate::default();
    while migrate.step(&store, &meddling, NOW) {}
    assert_eq!(migrate.report().changed, 1, "{:?}", migrate.report());
    let answers = locked(&meddling.answers).clone();
    assert!(!answers.is_empty() && answers.iter().all(|answer| *answer), "{answers:?}");
    assert_eq!(store.delete(&tree, b"a"), Ok(true));
}

//! When which aggregation is saved, on the shard's thread: a slice in each turn, so that receiving never waits.

use std::sync::Arc;

use config::plan::{Plan, TransformKind};
use model::Now;
use pipeline::Shard;
use process::aggregate::checkpoint::Slice;

use super::board::Board;
use super::keeper::{Keeper, LastCheckpoints, Piece};
use crate::daemon::random_seed;

/// Series of one slice: some tens of microseconds.
const SLICE_SERIES: usize = 512;

/// Slices are gathered into pieces of about so many bytes.
const PIECE_BYTES: usize = 256 * 1024;

/// A save that took long is not begun anew before so many times its duration has passed.
const PAUSE_DURATIONS: u64 = 9;

/// Pause when the disk is behind, in nanoseconds.
const FULL_PAUSE_NS: u64 = model::SECOND_NS / 1000;

/// One aggregation with checkpoints.
#[derive(Debug)]
struct Job {
    name: String,
    every_ns: u64,
    /// Monotonic nanosecond of the next one.
    due_ns: u64,
    /// Number of the next one.
    number: u64,
}

/// The checkpoint that is being saved.
#[derive(Debug)]
struct UnderWay {
    job: usize,
    begun_ns: u64,
    bytes: Vec<u8>,
}

/// Saves the aggregations of a shard in turn.
#[derive(Debug)]
pub struct Saver {
    board: Arc<Board>,
    /// None until the first aggregation wants checkpoints.
    keeper: Option<Keeper>,
    jobs: Vec<Job>,
    under_way: Option<UnderWay>,
    /// What the keeper had no room for, in order.
    waiting: Vec<Piece>,
    /// When to offer it again.
    full_until_ns: u64,
}

impl Saver {
    /// Nothing to save before [`Saver::follow`].
    pub fn new(board: Arc<Board>) -> Saver {
        Saver {
            board,
            keeper: None,
            jobs: Vec::new(),
            under_way: None,
            waiting: Vec::new(),
            full_until_ns: 0,
        }
    }

    /// Takes a plan: what has gone, or has checkpoints no more, loses its files. Nothing is saved while there is no
    /// folder for it.
    pub fn follow(&mut self, plan: &Plan, now: Now) {
        let board = Arc::clone(&self.board);
        let Some(folder) = board.folder() else { return };
        let wanted = plan.transforms.iter().filter_map(|transform| {
            let TransformKind::Aggregate(aggregate) = &transform.kind;
            (aggregate.checkpoint_ms > 0).then_some((&transform.name, aggregate.checkpoint_ms))
        });
        let mut before = std::mem::take(&mut self.jobs);
        for (name, every_ms) in wanted {
            let every_ns = every_ms * 1_000_000;
            let job = match before.iter().position(|job| job.name == *name) {
                Some(at) => {
                    let job = before.swap_remove(at);
                    Job { every_ns, due_ns: job.due_ns.min(now.mono_ns + every_ns), ..job }
                }
                None => {
                    let number = super::restore::next_number(folder, name);
                    Job { name: name.clone(), every_ns, due_ns: now.mono_ns + every_ns, number }
                }
            };
            self.board.change(name, |row| row.every_ms = every_ms);
            self.jobs.push(job);
        }
        // Whatever was under way was saved for the plan before.
        if self.under_way.take().is_some() {
            self.waiting.push(Piece::Void);
        }
        self.waiting.extend(before.into_iter().map(|gone| Piece::Remove { name: gone.name }));
        if self.keeper.is_none() && !self.jobs.is_empty() {
            match Keeper::start(folder, &self.board) {
                Ok(keeper) => self.keeper = Some(keeper),
                Err(error) => {
                    tracing::error!(
                        "cannot start the thread that writes checkpoints: {error}; there are none"
                    );
                    self.jobs.clear();
                }
            }
        }
    }

    /// Monotonic nanosecond at which [`Saver::turn`] has something to do.
    pub fn due_ns(&self) -> u64 {
        if !self.waiting.is_empty() {
            return self.full_until_ns;
        }
        if self.under_way.is_some() {
            return 0;
        }
        self.jobs.iter().map(|job| job.due_ns).min().unwrap_or(u64::MAX)
    }

    /// Saves a slice, if there is something to save.
    pub fn turn(&mut self, shard: &mut Shard, now: Now) {
        if now.mono_ns < self.due_ns() || !self.hand_over(now) {
            return;
        }
        let Some(mut under_way) = self.under_way.take() else { return self.begin(shard, now) };
        let job = &mut self.jobs[under_way.job];
        let slice = shard.save_slice(&job.name, SLICE_SERIES, &mut under_way.bytes);
        match slice {
            Slice::More => {
                if under_way.bytes.len() >= PIECE_BYTES {
                    let room = Vec::with_capacity(PIECE_BYTES + PIECE_BYTES / 4);
                    self.waiting.push(Piece::Bytes(std::mem::replace(&mut under_way.bytes, room)));
                }
                self.under_way = Some(under_way);
            }
            Slice::Done { series } => {
                let took_ns = now.mono_ns.saturating_sub(under_way.begun_ns);
                let pause_ns = took_ns.saturating_mul(PAUSE_DURATIONS);
                job.due_ns = (under_way.begun_ns + job.every_ns).max(now.mono_ns + pause_ns);
                job.number += 1;
                self.waiting.extend([Piece::Bytes(under_way.bytes), Piece::End { series }]);
            }
            // Its window has ended: it begins anew when the flush is over.
            Slice::Void => self.waiting.push(Piece::Void),
        }
        self.hand_over(now);
    }

    /// Begins with the aggregation that has been due for longest.
    fn begin(&mut self, shard: &mut Shard, now: Now) {
        let due = self.jobs.iter_mut().enumerate().filter(|(_, job)| job.due_ns <= now.mono_ns);
        let Some((at, job)) = due.min_by_key(|(_, job)| job.due_ns) else { return };
        if !shard.is_changed(&job.name) && !self.board.is_failing(&job.name) {
            // What is on disk is what it holds.
            job.due_ns = now.mono_ns + job.every_ns;
            return self.board.change(&job.name, |row| {
                row.as_of_ns = row.as_of_ns.map(|_before| now.mono_ns);
            });
        }
        let mut bytes = Vec::new();
        if shard.save_begin(&job.name, random_seed(), job.number, now, &mut bytes) {
            self.waiting.push(Piece::Begin { name: job.name.clone(), begun_ns: now.mono_ns });
            self.under_way = Some(UnderWay { job: at, begun_ns: now.mono_ns, bytes });
            self.hand_over(now);
        }
    }

    /// Offers the keeper what waits. True when nothing does any more.
    fn hand_over(&mut self, now: Now) -> bool {
        let Some(keeper) = &self.keeper else {
            self.waiting.clear();
            return true;
        };
        while !self.waiting.is_empty() {
            if let Err(piece) = keeper.try_send(self.waiting.remove(0)) {
                self.waiting.insert(0, piece);
                self.full_until_ns = now.mono_ns + FULL_PAUSE_NS;
                return false;
            }
        }
        true
    }

    /// The last checkpoints, of everything as it is now; to be written elsewhere. None when there are none.
    pub fn last(&mut self, shard: &mut Shard, now: Now) -> Option<LastCheckpoints> {
        let mut pieces = std::mem::take(&mut self.waiting);
        self.under_way = None;
        for job in std::mem::take(&mut self.jobs) {
            let mut bytes = Vec::new();
            if !shard.save_begin(&job.name, random_seed(), job.number, now, &mut bytes) {
                continue;
            }
            let series = loop {
                match shard.save_slice(&job.name, usize::MAX, &mut bytes) {
                    Slice::More => {}
                    Slice::Done { series } => break Some(series),
                    Slice::Void => break None,
                }
            };
            if let Some(series) = series {
                let begin = Piece::Begin { name: job.name, begun_ns: now.mono_ns };
                pieces.extend([begin, Piece::Bytes(bytes), Piece::End { series }]);
            }
        }
        Some(LastCheckpoints { keeper: self.keeper.take()?, pieces })
    }

    /// Saves no more, and leaves the files to a process that takes over, once what this gives is written: the keeper may
    /// be in the middle of one. [`Saver::follow`] begins anew.
    pub fn end(&mut self) -> Option<LastCheckpoints> {
        self.jobs.clear();
        self.waiting.clear();
        self.under_way = None;
        Some(LastCheckpoints { keeper: self.keeper.take()?, pieces: vec![Piece::Void] })
    }
}

#[cfg(test)]
mod tests {
    use model::{SECOND_NS, SourceId, Span};
    use pipeline::{Accounts, Routed};

    use super::super::files;
    use super::*;

    const START: Now = Now { mono_ns: SECOND_NS, wall_ns: 1_000_000_000 * SECOND_NS };

    struct World {
        plan: Plan,
        accounts: Accounts,
        shard: Shard,
        routed: Routed,
        saver: Saver,
        board: Arc<Board>,
    }

    impl World {
        fn new(folder: &std::path::Path) -> World {
            let text = "[sources.s]\ntype = \"statsd\"\n\
                        [transforms.t]\ntype = \"aggregate\"\nfrom = [\"s\"]\ncheckpoint = \"1s\"\n\
                        [outputs.o]\ntype = \"console\"\nfrom = [\"t\"]\n";
            let source = config::diagnostic::Source { name: "t.toml", text };
            let plan = config::check(source, config::Format::Toml).0.expect("it is good");
            let accounts = Accounts::default().carried_to(&plan);
            let shard = Shard::new(&plan, &accounts, 1, START);
            let board = Arc::new(Board::default());
            board.keep_in(folder.to_owned());
            let mut saver = Saver::new(Arc::clone(&board));
            saver.follow(&plan, START);
            World { plan, accounts, shard, routed: Routed::default(), saver, board }
        }

        fn send(&mut self, series: std::ops::Range<usize>, now: Now) {
            let mut intake = self.shard.intakes(&self.plan, SourceId(0), &self.accounts).make();
            for at in series {
                let packet = format!("n{at}:1|c");
                let spans = [Span::new(0, packet.len())];
                self.shard.push(intake.datagrams(packet.as_bytes(), &spans, now), now, &mut self.routed);
            }
        }

        /// Turns until nothing is due at `now`; gives their number.
        fn turns(&mut self, now: Now) -> usize {
            let mut turns = 0;
            // A disk that is behind is offered what waits at once: time stands still here.
            while std::mem::take(&mut self.saver.full_until_ns) > 0 || self.saver.due_ns() <= now.mono_ns {
                self.saver.turn(&mut self.shard, now);
                turns += 1;
            }
            turns
        }

        /// (written, series of the last one), when everything has been written.
        fn end(&mut self) -> (u64, u64) {
            self.saver.end().expect("a keeper runs").write();
            let row = self.board.all().remove(0).1;
            (row.written, row.series)
        }
    }

    #[test]
    fn a_checkpoint_goes_in_slices_and_only_when_something_came() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut world = World::new(folder.path());
        world.send(0..1500, START);
        assert_eq!(world.turns(START), 0, "not yet due");
        let at = |ms: u64| START.plus_ns(ms * 1_000_000);
        assert!(world.turns(at(1000)) > 3, "1500 series are three slices");
        assert_eq!(world.turns(at(1999)), 0);
        assert_eq!(world.turns(at(2000)), 1, "a look: nothing came");
        world.send(0..1, at(2500));
        assert!(world.turns(at(3000)) > 3);
        let (written, series) = world.end();
        assert_eq!((written, files::generations(folder.path(), "t").len()), (2, 2));
        assert!(series >= 1500);
    }

    #[test]
    fn a_checkpoint_that_its_windows_end_catches_is_begun_anew_after_the_flush() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut world = World::new(folder.path());
        world.send(0..1500, START);
        let due = START.plus_ns(10 * SECOND_NS);
        for _ in 0..2 {
            world.saver.turn(&mut world.shard, due);
        }
        while world.shard.tick(due, 512, &mut world.routed) <= due.mono_ns {
            // It finds that its save is void, and nothing can be saved in the middle of a sweep.
            world.saver.turn(&mut world.shard, due);
        }
        world.turns(due);
        assert_eq!(world.end().0, 1);
        let generation = files::generations(folder.path(), "t").remove(0);
        let bytes = files::read(&generation.path).expect("readable");
        let mut other = World::new(folder.path());
        let restored = other.shard.import("t", &bytes, None, due).expect("there").expect("whole");
        assert_eq!(
            (restored.damaged, restored.cut_short, restored.active),
            (0, false, 0),
            "of the next window"
        );
        assert!(restored.series >= 1500);
        other.saver.end().expect("a keeper runs").write();
    }
}

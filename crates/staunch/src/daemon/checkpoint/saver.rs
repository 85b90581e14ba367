//! The receiver of the shard's checkpoints: the thread that writes them, started for the first one.
//!
//! Not here: when an aggregation is due (`pipeline::checkpoints`), and slices (`pipeline::Turn`).

use std::sync::Arc;

use config::plan::Plan;
use model::Now;
use pipeline::Turn;
use pipeline::checkpoints::{Keep, Piece};

use super::keeper::{Keeper, LastCheckpoints};
use super::table::CheckpointTable;
use crate::daemon::checkpoint::handover::Handover;

/// The state that the shard's thread needs to save aggregations.
#[derive(Debug)]
pub struct Saver {
    table: Arc<CheckpointTable>,
    handover: Arc<Handover>,
    /// `None` until the first aggregation has checkpoints.
    keeper: Option<Keeper>,
}

impl Keep for Saver {
    fn offer(&mut self, piece: Piece) -> Result<(), Piece> {
        // Without a thread nothing is written.
        self.keeper.as_ref().map_or(Ok(()), |keeper| keeper.try_send(piece))
    }

    fn is_failing(&self, name: &str) -> bool {
        self.table.is_failing(name)
    }

    fn fresh_id(&mut self) -> u64 {
        sys::random_seed()
    }
}

impl Saver {
    /// Saves nothing before [`Saver::follow`].
    pub fn new(table: Arc<CheckpointTable>, handover: Arc<Handover>) -> Saver {
        Saver { table, handover, keeper: None }
    }

    /// Follows a plan: aggregations that were removed, or have no checkpoints any more, lose their files. Nothing is
    /// saved without a folder.
    pub fn follow(&mut self, plan: &Plan, turn: &mut Turn, now: Now) {
        let Saver { table, handover, keeper } = self;
        let Some(folder) = table.folder() else { return };
        let number = |name: &str| super::restore::next_number(folder, name, handover.last_of(name));
        turn.follow_checkpoints(plan, number, now);
        for (name, every_ns) in turn.checkpoints() {
            table.change(name, |row| row.every_ms = every_ns / 1_000_000);
        }
        if keeper.is_none() && turn.checkpoints().next().is_some() {
            match Keeper::start(folder, table) {
                Ok(started) => *keeper = Some(started),
                Err(error) => {
                    tracing::error!(
                        "cannot start the thread that writes checkpoints: {error}; no checkpoints are written"
                    );
                    turn.end_checkpoints();
                }
            }
        }
    }

    /// The last checkpoints, to be written elsewhere. `None` without any.
    pub fn last(&mut self, pieces: Vec<Piece>) -> Option<LastCheckpoints> {
        Some(LastCheckpoints { keeper: self.keeper.take()?, pieces })
    }

    /// Stops saving, and leaves the files to a successor once the result is written, because the keeper may be writing
    /// a checkpoint. [`Saver::follow`] starts again.
    pub fn end(&mut self, turn: &mut Turn) -> Option<LastCheckpoints> {
        turn.end_checkpoints();
        self.last(vec![Piece::Void])
    }
}

#[cfg(test)]
mod tests {
    use model::{SECOND_NS, SourceId, Span};
    use pipeline::checkpoints::{begin, generations};
    use pipeline::{Accounts, Shard, TurnLimits};
    use process::aggregate::checkpoint::LastFlush;

    use super::*;
    use sys::disk::Folder;

    const START: Now = Now { mono_ns: SECOND_NS, wall_ns: 1_000_000_000 * SECOND_NS };

    struct World {
        plan: Plan,
        accounts: Accounts,
        turn: Turn,
        saver: Saver,
        table: Arc<CheckpointTable>,
    }

    impl World {
        fn new(folder: &std::path::Path) -> World {
            let text = "[sources.s]\ntype = \"statsd\"\n\
                        [transforms.t]\ntype = \"aggregate\"\nfrom = [\"s\"]\ncheckpoint = \"1s\"\n\
                        [outputs.o]\ntype = \"console\"\nfrom = [\"t\"]\n";
            let source = config::diagnostic::Source { name: "t.toml", text };
            let plan = config::check(source, config::Format::Toml).0.expect("it is good");
            let accounts = Accounts::default().carried_to(&plan);
            let mut turn = Turn::new(Shard::new(&plan, &accounts, 1, START), TurnLimits::default());
            let table = Arc::new(CheckpointTable::default());
            table.keep_in(folder.to_owned());
            let mut saver = Saver::new(Arc::clone(&table), Arc::default());
            saver.follow(&plan, &mut turn, START);
            World { plan, accounts, turn, saver, table }
        }

        fn send(&mut self, series: std::ops::Range<usize>, now: Now) {
            let mut intake = self.turn.shard.intakes(&self.plan, SourceId(0), &self.accounts).make();
            let mut scratch = pipeline::Scratch::default();
            for at in series {
                let packet = format!("n{at}:1|c");
                let spans = [Span::new(0, packet.len())];
                self.turn.shard.push(
                    intake.datagrams(packet.as_bytes(), &spans, now, &mut scratch),
                    now,
                    &mut self.turn.routed,
                );
            }
        }

        /// Runs turns until nothing is due at `now`, or while the disk is slow; returns their number.
        fn turns(&mut self, now: Now) -> usize {
            let (mut turns, mut at) = (0, now);
            while self.turn.save_due_ns() < now.mono_ns + SECOND_NS / 2 {
                at = at.plus_ns(self.turn.save_due_ns().saturating_sub(at.mono_ns));
                self.turn.save(&mut self.saver, at);
                turns += 1;
            }
            turns
        }

        /// Runs turns from `from_ms` after the start, until this many checkpoints are written.
        fn wait_written(&mut self, written: u64, from_ms: u64) {
            for ms in from_ms..from_ms + 10_000 {
                if self.table.all()[0].1.written >= written {
                    return;
                }
                self.turns(START.plus_ns(ms * 1_000_000));
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }

        /// (written, series of the last one), when everything has been written.
        fn end(&mut self) -> (u64, u64) {
            self.saver.end(&mut self.turn).expect("a keeper runs").write();
            let row = self.table.all().remove(0).1;
            (row.written, row.series)
        }
    }

    #[test]
    fn a_checkpoint_is_saved_in_slices_and_only_after_new_records() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut world = World::new(folder.path());
        world.send(0..1500, START);
        assert_eq!(world.turns(START), 0, "not yet due");
        let at = |ms: u64| START.plus_ns(ms * 1_000_000);
        assert!(world.turns(at(1000)) > 3, "1500 series are three slices");
        assert_eq!(world.turns(at(1499)), 0);
        assert_eq!(world.turns(at(2000)), 1, "a look: nothing came");
        world.send(0..1, at(2500));
        assert!(world.turns(at(3000)) > 3);
        let (written, series) = world.end();
        let disk = Folder::open(folder.path().to_owned()).expect("it is there");
        assert_eq!((written, generations(&disk, "t").map(|found| found.len())), (2, Ok(2)));
        assert!(series >= 1500);
    }

    #[test]
    fn a_checkpoint_interrupted_by_the_end_of_its_window_restarts_after_the_flush() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut world = World::new(folder.path());
        world.send(0..1500, START);
        let due = START.plus_ns(10 * SECOND_NS);
        for _ in 0..2 {
            world.turn.save(&mut world.saver, due);
        }
        while world.turn.shard.tick(due, 512, &mut world.turn.routed) <= due.mono_ns {
            // Its save is void, and nothing can be saved during a sweep.
            world.turn.save(&mut world.saver, due);
        }
        world.turns(due);
        assert_eq!(world.end().0, 1);
        let disk = Folder::open(folder.path().to_owned()).expect("it is there");
        let mut other = World::new(folder.path());
        let ignored = |file: &str, why: &str| panic!("{file}: {why}");
        let transform = &other.plan.transforms[0];
        let restored =
            begin(Some(&disk), &mut other.turn.shard, transform, LastFlush::default(), due, ignored);
        let (_, restored) = restored.expect("it can be read").expect("it is there");
        assert_eq!(
            (restored.damaged, restored.cut_short, restored.active),
            (0, false, 0),
            "of the next window"
        );
        assert!(restored.series >= 1500);
        other.saver.end(&mut other.turn).expect("a keeper runs").write();
    }

    #[test]
    fn restarted_checkpoints_write_what_the_ended_ones_had_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut world = World::new(folder.path());
        world.send(0..1500, START);
        let at = |ms: u64| START.plus_ns(ms * 1_000_000);
        // In the middle of a checkpoint.
        (0..2).for_each(|_| world.turn.save(&mut world.saver, at(1000)));
        world.saver.end(&mut world.turn).expect("a keeper runs").write();
        assert_eq!(world.table.all()[0].1.written, 0);
        world.saver.follow(&world.plan, &mut world.turn, at(1100));
        world.turns(at(2100));
        let (written, series) = world.end();
        assert!(written == 1 && series >= 1500, "{written}, {series}");
    }

    #[test]
    fn a_second_writer_of_checkpoints_waits_for_the_first_to_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut world = World::new(folder.path());
        world.send(0..1500, START);
        let at = |ms: u64| START.plus_ns(ms * 1_000_000);
        world.turns(at(1000));
        // Then its thread has the files.
        world.wait_written(1, 1001);
        world.send(0..1500, at(20_000));
        (0..2).for_each(|_| world.turn.save(&mut world.saver, at(21_000)));
        // A hot restart was rejected because the disk is busy with this one, and the daemon continues.
        let busy = world.saver.end(&mut world.turn).expect("a keeper runs");
        world.saver.follow(&world.plan, &mut world.turn, at(21_100));
        world.turns(at(22_100));
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert_eq!(world.table.all()[0].1.written, 1, "both write to one file");
        busy.write();
        // Before its thread waits, there may not have been room for all of it.
        world.wait_written(2, 22_101);
        assert_eq!(world.end().0, 2);
        let disk = Folder::open(folder.path().to_owned()).expect("it is there");
        let found = generations(&disk, "t").expect("it can be read");
        let whole = found.iter().filter(|generation| generation.peeked.is_ok()).count();
        assert_eq!((found.len(), whole), (2, 2));
    }
}

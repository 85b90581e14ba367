//! Decides when each aggregation is saved, beside the shard: a slice at a time, so that receiving never waits.

use std::collections::VecDeque;

use config::plan::Plan;
use model::Now;
use process::aggregate::checkpoint::Slice;

use crate::Shard;

/// Slices are gathered into pieces of about this many bytes.
const PIECE_BYTES: usize = 256 * 1024;
/// The largest piece.
const PIECE_BYTES_MAX: usize = 2 * PIECE_BYTES;

/// After a save, the next one waits at least this many times its duration.
const PAUSE_DURATIONS: u64 = 9;

/// Pause when the disk is behind, in nanoseconds.
const FULL_PAUSE_NS: u64 = model::SECOND_NS / 1000;

/// Bytes as pieces of at most [`PIECE_BYTES_MAX`], so that a queue of a few pieces is one of a few bytes, too.
fn pieces(bytes: Vec<u8>) -> Vec<Piece> {
    match bytes.len() {
        0..=PIECE_BYTES_MAX => vec![Piece::Bytes(bytes)],
        _ => bytes.chunks(PIECE_BYTES_MAX).map(|piece| Piece::Bytes(piece.to_vec())).collect(),
    }
}

/// Instructions for the writer, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A checkpoint begins; an unfinished one before it is void.
    Begin {
        /// The aggregation.
        name: String,
        /// Number of the checkpoint.
        number: u64,
        /// Monotonic nanosecond.
        begun_ns: u64,
    },
    /// Its next bytes.
    Bytes(Vec<u8>),
    /// It is whole.
    End {
        /// Series in it.
        series: u64,
    },
    /// It is void.
    Void,
    /// The file on disk is still what the aggregation holds.
    Same {
        /// The aggregation.
        name: String,
        /// Monotonic nanosecond.
        at_ns: u64,
    },
    /// The aggregation is removed, or no longer has checkpoints.
    Remove {
        /// The aggregation.
        name: String,
    },
}

/// Receives the pieces.
pub trait Keep {
    /// Accepts a piece, or returns it when there is no room now.
    ///
    /// # Errors
    /// The piece: it is offered again.
    fn offer(&mut self, piece: Piece) -> Result<(), Piece>;

    /// True when the last checkpoint of `name` could not be written.
    fn is_failing(&self, name: &str) -> bool;

    /// A number that is not known outside.
    fn fresh_id(&mut self) -> u64;
}

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

/// Saves the aggregations of a shard in turn. The default has nothing to save before [`Saver::follow`].
#[derive(Debug, Default)]
pub struct Saver {
    jobs: Vec<Job>,
    under_way: Option<UnderWay>,
    /// Pieces that found no room, in order.
    waiting: VecDeque<Piece>,
    /// When to offer it again.
    full_until_ns: u64,
}

impl Saver {
    /// Applies a plan: removed aggregations, and those without checkpoints now, lose their files. `next_number` is
    /// called for those that are new here, see [`super::next_number`]; the shard gets the number as well, so that its
    /// next note covers all earlier ones.
    pub fn follow(&mut self, plan: &Plan, shard: &mut Shard, next_number: impl Fn(&str) -> u64, now: Now) {
        let wanted = plan.checkpoints();
        let mut before = std::mem::take(&mut self.jobs);
        for (name, every_ms) in wanted {
            let every_ns = every_ms * 1_000_000;
            let job = match before.iter().position(|job| job.name == name) {
                Some(at) => {
                    let job = before.swap_remove(at);
                    Job { every_ns, due_ns: job.due_ns.min(now.mono_ns + every_ns), ..job }
                }
                None => {
                    let number = shard.saved_before(name, next_number(name));
                    Job { name: name.to_owned(), every_ns, due_ns: now.mono_ns + every_ns, number }
                }
            };
            self.jobs.push(job);
        }
        // A save in progress was for the previous plan.
        if self.under_way.take().is_some() {
            self.waiting.push_back(Piece::Void);
        }
        self.waiting.extend(before.into_iter().map(|gone| Piece::Remove { name: gone.name }));
    }

    /// Aggregations with checkpoints, and the nanoseconds between two.
    pub fn jobs(&self) -> impl Iterator<Item = (&str, u64)> {
        self.jobs.iter().map(|job| (job.name.as_str(), job.every_ns))
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

    /// Saves `series_max` series, if there is something to save.
    pub fn turn(&mut self, shard: &mut Shard, series_max: usize, keep: &mut impl Keep, now: Now) {
        if now.mono_ns < self.due_ns() || !self.hand_over(keep, now) {
            return;
        }
        let Some(mut under_way) = self.under_way.take() else { return self.begin(shard, keep, now) };
        let job = &mut self.jobs[under_way.job];
        let slice = shard.save_slice(&job.name, series_max, &mut under_way.bytes);
        match slice {
            Slice::More => {
                if under_way.bytes.len() >= PIECE_BYTES {
                    let room = Vec::with_capacity(PIECE_BYTES + PIECE_BYTES / 4);
                    self.waiting.extend(pieces(std::mem::replace(&mut under_way.bytes, room)));
                }
                self.under_way = Some(under_way);
            }
            Slice::Done { series } => {
                let took_ns = now.mono_ns.saturating_sub(under_way.begun_ns);
                let pause_ns = took_ns.saturating_mul(PAUSE_DURATIONS);
                job.due_ns = (under_way.begun_ns + job.every_ns).max(now.mono_ns + pause_ns);
                self.waiting.extend(pieces(under_way.bytes));
                self.waiting.push_back(Piece::End { series });
            }
            // Its window has ended: it starts again when the flush is over.
            Slice::Void => self.waiting.push_back(Piece::Void),
        }
        self.hand_over(keep, now);
    }

    /// Starts with the aggregation that has been due for longest.
    fn begin(&mut self, shard: &mut Shard, keep: &mut impl Keep, now: Now) {
        let due = self.jobs.iter_mut().enumerate().filter(|(_, job)| job.due_ns <= now.mono_ns);
        let Some((at, job)) = due.min_by_key(|(_, job)| job.due_ns) else { return };
        if !shard.is_changed(&job.name) && !keep.is_failing(&job.name) {
            job.due_ns = now.mono_ns + job.every_ns;
            self.waiting.push_back(Piece::Same { name: job.name.clone(), at_ns: now.mono_ns });
        } else {
            let (mut bytes, number) = (Vec::new(), job.number);
            if !shard.save_begin(&job.name, keep.fresh_id(), number, now, &mut bytes) {
                return;
            }
            // An abandoned one uses up its number, too: a flush may have noted it meanwhile.
            job.number += 1;
            let begun_ns = now.mono_ns;
            self.waiting.push_back(Piece::Begin { name: job.name.clone(), number, begun_ns });
            self.under_way = Some(UnderWay { job: at, begun_ns, bytes });
        }
        self.hand_over(keep, now);
    }

    /// Offers the waiting pieces. True when none is left.
    fn hand_over(&mut self, keep: &mut impl Keep, now: Now) -> bool {
        while let Some(piece) = self.waiting.pop_front() {
            if let Err(piece) = keep.offer(piece) {
                self.waiting.push_front(piece);
                self.full_until_ns = now.mono_ns + FULL_PAUSE_NS;
                return false;
            }
        }
        true
    }

    /// The final checkpoints, of everything as it is now, behind the waiting pieces.
    pub fn last(&mut self, shard: &mut Shard, keep: &mut impl Keep, now: Now) -> Vec<Piece> {
        let mut pieces = Vec::from(std::mem::take(&mut self.waiting));
        self.under_way = None;
        for Job { name, number, .. } in std::mem::take(&mut self.jobs) {
            let mut bytes = Vec::new();
            if !shard.save_begin(&name, keep.fresh_id(), number, now, &mut bytes) {
                continue;
            }
            let series = loop {
                match shard.save_slice(&name, usize::MAX, &mut bytes) {
                    Slice::More => {}
                    Slice::Done { series } => break Some(series),
                    Slice::Void => break None,
                }
            };
            if let Some(series) = series {
                let begin = Piece::Begin { name, number, begun_ns: now.mono_ns };
                pieces.extend([begin, Piece::Bytes(bytes), Piece::End { series }]);
            }
        }
        pieces
    }

    /// Saves nothing more before [`Saver::follow`]. Pieces that found no room are not written: they are saved again
    /// then.
    pub fn end(&mut self, shard: &mut Shard) {
        self.jobs.drain(..).for_each(|job| shard.save_again(&job.name));
        self.waiting.clear();
        self.under_way = None;
    }
}

#[test]
fn large_slices_are_handed_over_in_pieces() {
    for (bytes, want) in
        [(0, 1), (1, 1), (PIECE_BYTES_MAX, 1), (PIECE_BYTES_MAX + 1, 2), (10 * PIECE_BYTES_MAX, 10)]
    {
        let all: Vec<u8> = (0..bytes).map(|at| at as u8).collect();
        let pieces = pieces(all.clone());
        let bytes_of = |piece: &Piece| match piece {
            Piece::Bytes(bytes) => bytes.clone(),
            other => panic!("{other:?}"),
        };
        let lens: Vec<usize> = pieces.iter().map(|piece| bytes_of(piece).len()).collect();
        assert!(lens.iter().all(|len| *len <= PIECE_BYTES_MAX), "{lens:?}");
        assert_eq!(lens.len(), want, "{bytes}");
        assert_eq!(pieces.iter().flat_map(bytes_of).collect::<Vec<u8>>(), all);
    }
}

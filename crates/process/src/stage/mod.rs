//! Filter stage of an endpoint: filters by name, sampling, and a cap on distinct series (spec statsd §14 R5).
//!
//! Path of a line: its parts (`wire`) -> **[`Stage::admit`]** -> `Rewrite::write` (`wire`) or an outcome.
//! Order: `deny` and `allow` first, then sampling, then the cap. So only lines that would be sent count as series.
//! Not here: parsing of lines (`wire`), pre-aggregation (`aggregate`). An endpoint without a plan has no stage.
//! Pure: no clock, randomness from a seed. No allocation per line once the tables have grown.
//! Invariants: a stage never stores more than `series_max` series; with the same seed and the same sequence of
//! calls it makes the same decisions.

mod seen;
mod verdicts;

use std::fmt;

use foldhash::{SharedSeed, fast::FoldHasher};
use std::hash::Hasher;

use crate::glob::Glob;
use seen::Seen;
use verdicts::{Verdict, Verdicts};

/// Filter options of an endpoint. The default lets everything pass.
#[derive(Clone, Debug, PartialEq)]
pub struct StagePlan {
    /// Patterns of names that the endpoint gets. Empty: all.
    pub allow: Vec<Glob>,
    /// Patterns of names that it does not get. `deny` has priority over `allow`.
    pub deny: Vec<Glob>,
    /// Share of the lines that are kept, 0 to 1. Only for types with a sample rate; other types are never sampled.
    pub sample: f64,
    /// Shares for names: the first pattern that matches replaces `sample`.
    pub sample_names: Vec<(Glob, f64)>,
    /// Maximum distinct series (name and tags as sent) within one to two `series_idle_ns`; 0 for no cap. Each takes
    /// 10 to 40 bytes.
    pub series_max: u32,
    /// Idle series are forgotten after this time at the earliest, and after twice this time at the latest. 0:
    /// never.
    pub series_idle_ns: u64,
}

impl Default for StagePlan {
    fn default() -> StagePlan {
        StagePlan {
            allow: Vec::new(),
            deny: Vec::new(),
            sample: 1.0,
            sample_names: Vec::new(),
            series_max: 0,
            series_idle_ns: 0,
        }
    }
}

/// A share outside 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BadShare(pub f64);

impl fmt::Display for BadShare {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} is not a share of lines: give a number from 0 to 1", self.0)
    }
}

impl std::error::Error for BadShare {}

/// Decision for a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Admit {
    /// It passes unchanged.
    Pass,
    /// It passes and represents others: multiply its sample rate by `share`.
    PassSampled {
        /// Probability with which it was kept, above 0 and below 1.
        share: f64,
    },
    /// Its name matches `deny`, or does not match `allow`.
    Filtered,
    /// Sampled out. The lines that were kept represent it.
    SampledOut,
    /// It belongs to a new series, and there are `series_max` already.
    SeriesMax,
}

/// State of one endpoint's filter stage.
#[derive(Clone, Debug)]
pub struct Stage {
    plan: StagePlan,
    verdicts: Verdicts,
    seen: Seen,
    seed: u64,
    shared: SharedSeed,
    random: u64,
}

impl Stage {
    /// A stage whose hashes and random numbers derive from `seed`. The seed must be random: otherwise senders can
    /// choose names that collide.
    ///
    /// # Errors
    /// [`BadShare`] when a share of the plan is outside 0 to 1.
    pub fn new(plan: StagePlan, seed: u64) -> Result<Stage, BadShare> {
        let shares = plan.sample_names.iter().map(|(_, share)| *share).chain([plan.sample]);
        if let Some(bad) = shares.clone().find(|share| !(0.0..=1.0).contains(share)) {
            return Err(BadShare(bad));
        }
        let verdicts = Verdicts::new(shares.collect());
        let seen = Seen::new(plan.series_max, plan.series_idle_ns);
        Ok(Stage { plan, verdicts, seen, seed, shared: SharedSeed::from_u64(seed), random: seed })
    }

    /// Decides on one line.
    ///
    /// `name` is the name without tags; patterns match it. `tags` are the texts of its tags, as sent and in as many
    /// pieces. `sampled_type` is true when all its values have types with a sample rate.
    #[inline]
    pub fn admit(&mut self, name: &[u8], tags: &[&[u8]], sampled_type: bool) -> Admit {
        let hash = if self.verdicts_matter() || self.plan.series_max != 0 { self.hash(name) } else { 0 };
        let verdict = if self.verdicts_matter() {
            let plan = &self.plan;
            self.verdicts.of(hash, || decide(plan, name))
        } else {
            Verdict::share(0)
        };
        let Some(share) = self.verdicts.share_of(verdict) else { return Admit::Filtered };
        let mut admit = Admit::Pass;
        if sampled_type && share < 1.0 {
            if !self.keeps(share) {
                return Admit::SampledOut;
            }
            admit = Admit::PassSampled { share };
        }
        if self.plan.series_max != 0 && !self.seen.admit(self.series_hash(hash, tags)) {
            return Admit::SeriesMax;
        }
        admit
    }

    /// Forgets idle series, and returns their number. Call it about once a second, with any clock that does not go
    /// back.
    pub fn forget(&mut self, now_ns: u64) -> u64 {
        self.seen.forget(now_ns)
    }

    /// Number of known series, at most `series_max`. 0 without a cap.
    pub fn series(&self) -> u32 {
        self.seen.len()
    }

    /// The plan of this stage.
    pub fn plan(&self) -> &StagePlan {
        &self.plan
    }

    /// Memory of the stage.
    pub fn memory_bytes(&self) -> usize {
        self.seen.memory_bytes() + self.verdicts.memory_bytes()
    }

    #[inline]
    fn verdicts_matter(&self) -> bool {
        !(self.plan.deny.is_empty() && self.plan.allow.is_empty() && self.plan.sample_names.is_empty())
    }

    #[inline]
    fn hash(&self, name: &[u8]) -> u64 {
        let mut hasher = FoldHasher::with_seed(self.seed, &self.shared);
        hasher.write(name);
        hasher.finish()
    }

    #[inline]
    fn series_hash(&self, name_hash: u64, tags: &[&[u8]]) -> u64 {
        let mut hash = name_hash;
        for (at, piece) in tags.iter().enumerate() {
            if !piece.is_empty() {
                // The position counts: `;a=b` in a name is another series than `|#a=b`.
                let mut hasher = FoldHasher::with_seed(hash ^ at as u64, &self.shared);
                hasher.write(piece);
                hash = hasher.finish();
            }
        }
        hash
    }

    /// True with the probability `share`.
    #[inline]
    fn keeps(&mut self, share: f64) -> bool {
        // splitmix64; its upper 53 bits make a double between 0 and 1.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        ((bits >> 11) as f64) * (1.0 / (1_u64 << 53) as f64) < share
    }
}

/// Evaluates the plan for a name. Only here are patterns matched.
#[cold]
#[inline(never)]
fn decide(plan: &StagePlan, name: &[u8]) -> Verdict {
    let matches = |glob: &Glob| glob.matches(name);
    if plan.deny.iter().any(matches) || !plan.allow.is_empty() && !plan.allow.iter().any(matches) {
        return Verdict::FILTERED;
    }
    // The plan's own share comes after those of the patterns.
    let place = plan.sample_names.iter().position(|(glob, _)| glob.matches(name));
    Verdict::share(place.unwrap_or(plan.sample_names.len()))
}

#[cfg(test)]
mod tests;

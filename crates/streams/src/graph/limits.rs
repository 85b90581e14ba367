//! Limits on what outside data can fill, and counters of their effects.

/// What happened because of a limit; each is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// A window was full, and an event of it was dropped: the oldest one where the stream looks at the latest ones.
    WindowFull,
    /// A window was passed on before its end, since it was full.
    FlushedEarly,
    /// A stream that remembers something for each key forgot one of them to have room for another.
    KeysFull,
    /// An event of a new key was dropped, since other streams have as many forks as may be.
    ForksFull,
    /// A fork was removed that had no events for long.
    ForkIdle,
    /// Empty windows were left out, since the time of an event is that far ahead.
    EmptyWindows,
    /// A fork was removed to have room for a new one: the one of its stream that had no event for the longest time.
    ForkEvicted,
    /// A value was not passed on, since one event had led to as many passes as may be.
    PushesFull,
    /// A stream did not get a value, since it had used up what an event may use several times in this second.
    LeftOut,
    /// What streams remember, an event of the index, or a value of one is not in a checkpoint, since it is too large by itself.
    StateTooLarge,
    /// What streams remember, or an event of the index, is not in a checkpoint, since that has as many bytes as may be.
    CheckpointFull,
    /// A stream did not keep the time of an event, since that is more than a day ahead of the server's clock; windows left the event out.
    TimeAhead,
}

impl Limit {
    /// All of them.
    pub const ALL: [Limit; 12] = [
        Limit::WindowFull,
        Limit::FlushedEarly,
        Limit::KeysFull,
        Limit::ForksFull,
        Limit::ForkIdle,
        Limit::EmptyWindows,
        Limit::ForkEvicted,
        Limit::PushesFull,
        Limit::LeftOut,
        Limit::StateTooLarge,
        Limit::CheckpointFull,
        Limit::TimeAhead,
    ];

    /// Its name, as the tag of a self-metric.
    pub const fn name(self) -> &'static str {
        match self {
            Limit::WindowFull => "window_full",
            Limit::FlushedEarly => "flushed_early",
            Limit::KeysFull => "keys_full",
            Limit::ForksFull => "forks_full",
            Limit::ForkIdle => "fork_idle",
            Limit::EmptyWindows => "empty_windows",
            Limit::ForkEvicted => "fork_evicted",
            Limit::PushesFull => "pushes_full",
            Limit::LeftOut => "left_out",
            Limit::StateTooLarge => "state_too_large",
            Limit::CheckpointFull => "checkpoint_full",
            Limit::TimeAhead => "time_ahead",
        }
    }
}

/// The limits of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most events, or keys, that one stream remembers.
    pub window_events: usize,
    /// Most forks of all `by` streams together.
    pub forks: u64,
    /// Microseconds without an event after which a fork is removed; events with a longer ttl lengthen it.
    pub fork_idle_us: i64,
    /// Most empty windows that one event of a far later time ends.
    pub empty_windows: usize,
    /// Most values that streams pass to each other for one event, or one timer, at one top-level stream: `smapcat` below `smapcat` multiplies
    /// them.
    pub pushes: u64,
    /// Whether `fold-interval` passes nothing for an interval without values. Riemann passes an event that has only the field.
    pub drop_empty_folds: bool,
    /// Seed of the hashes of keys: a secret of the process, so that nobody outside can make keys collide.
    pub hash_seed: u64,
}

impl Limits {
    /// What holds unless the config says otherwise.
    pub const DEFAULT: Limits = Limits {
        window_events: 100_000,
        forks: 4_000_000,
        fork_idle_us: 24 * 3_600 * 1_000_000,
        empty_windows: 1_000,
        pushes: 4_000_000,
        drop_empty_folds: false,
        hash_seed: 0,
    };
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::DEFAULT
    }
}

/// Counters of a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    limits: [u64; Limit::ALL.len()],
    forks: u64,
}

impl Counts {
    /// How often a limit had an effect.
    pub fn of(&self, limit: Limit) -> u64 {
        self.limits[limit as usize]
    }

    /// How many forks of `by` there are now.
    pub fn forks(&self) -> u64 {
        self.forks
    }

    pub(super) fn add(&mut self, limit: Limit, times: u64) {
        self.limits[limit as usize] += times;
    }

    pub(super) fn add_forks(&mut self, more: i64) {
        self.forks = self.forks.saturating_add_signed(more);
    }
}

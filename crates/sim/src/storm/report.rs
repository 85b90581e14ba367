//! The figures of a run, and its failure.

/// The figures of one run or several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calm {
    /// Steps done.
    pub steps: usize,
    /// Records that were received, over all sources.
    pub received: u64,
    /// Copies that were delivered, over all outputs.
    pub delivered: u64,
    /// Copies that were dropped, over all outputs: a run without drops tests little.
    pub dropped: u64,
    /// Copies that were sent a second time.
    pub resent: u64,
    /// Lines acknowledged to clients as accepted, safe or delivered.
    pub acked: u64,
    /// Connections with the reply that the fate of their lines is unknown.
    pub unacked: u64,
    /// Crashes, and the data that they left on disk.
    pub tally: Tally,
    /// Fingerprint of all bytes that arrived anywhere, and of every disk.
    pub digest: u64,
}

impl std::fmt::Display for Calm {
    /// Several lines; the last one is the shortest summary.
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Calm { steps, received, delivered, dropped, resent, acked, unacked, tally, .. } = self;
        let Tally { kills, power_losses, found, lost, damaged, .. } = tally;
        let Tally { checkpoints, restored, refused_minutes, attempts, .. } = tally;
        writeln!(to, "{steps} steps, {received} records received")?;
        writeln!(to, "copies: {delivered} delivered, {dropped} dropped, {resent} sent again")?;
        writeln!(to, "lines of clients: {acked} acknowledged, {unacked} connections without a known result")?;
        writeln!(to, "blocks on disk: {found} found again, {lost} lost that were not safe")?;
        writeln!(to, "copies on disk: {damaged} damaged, and counted")?;
        writeln!(to, "{checkpoints} checkpoints, and {restored} units of counters back out of them")?;
        writeln!(to, "endpoints that refuse for hours: {refused_minutes} minutes, {attempts} attempts")?;
        write!(to, "{kills} kills, {power_losses} losses of power: nothing lost that was safe")
    }
}

impl Calm {
    /// Adds the figures of another run, and combines the fingerprints.
    pub fn add(&mut self, other: &Calm) {
        self.steps += other.steps;
        self.received += other.received;
        self.delivered += other.delivered;
        self.dropped += other.dropped;
        self.resent += other.resent;
        self.acked += other.acked;
        self.unacked += other.unacked;
        self.tally.kills += other.tally.kills;
        self.tally.power_losses += other.tally.power_losses;
        self.tally.found += other.tally.found;
        self.tally.lost += other.tally.lost;
        self.tally.damaged += other.tally.damaged;
        self.tally.checkpoints += other.tally.checkpoints;
        self.tally.restored += other.tally.restored;
        self.tally.refused_minutes += other.tally.refused_minutes;
        self.tally.attempts += other.tally.attempts;
        self.digest ^= other.digest;
    }
}

/// Crashes and the data that they left on disk, over all outputs with a queue on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Processes that were killed.
    pub kills: u64,
    /// Power losses.
    pub power_losses: u64,
    /// Blocks that the next process found.
    pub found: u64,
    /// Accepted blocks without an outcome that were missing after a crash: none of them was safe.
    pub lost: u64,
    /// Copies that the next process counted as damaged.
    pub damaged: u64,
    /// Checkpoints of the followed aggregation.
    pub checkpoints: u64,
    /// Restored units of the followed counters.
    pub restored: u64,
    /// Minutes in which an endpoint rejected all attempts, and the attempts of its sender.
    pub refused_minutes: u64,
    /// See above.
    pub attempts: u64,
}

/// The failure of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Seed of the run.
    pub seed: u64,
    /// The step before the failed check, from 0.
    pub step: usize,
    /// The failed check.
    pub message: String,
}

impl std::fmt::Display for Found {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "seed {} step {}: {}", self.seed, self.step, self.message)
    }
}

//! What a run was like, and what it has found.

/// What a run was like, or several together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calm {
    /// Steps that were taken.
    pub steps: usize,
    /// Records that were received, over all sources.
    pub received: u64,
    /// Copies that were delivered, over all outputs.
    pub delivered: u64,
    /// Copies that were dropped, over all outputs: a run without any has not tried hard.
    pub dropped: u64,
    /// Copies that were sent a second time.
    pub resent: u64,
    /// Lines that clients were told to be accepted, safe or delivered.
    pub acked: u64,
    /// Connections that were told that it is not known.
    pub unacked: u64,
    /// What happened to processes, machines and what they left on disk.
    pub tally: Tally,
    /// Fingerprint of all bytes that arrived anywhere, and of every disk.
    pub digest: u64,
}

impl std::fmt::Display for Calm {
    /// Some lines; the last one is the shortest answer.
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Calm { steps, received, delivered, dropped, resent, acked, unacked, tally, .. } = self;
        let Tally { kills, power_losses, found, lost, damaged, .. } = tally;
        let Tally { checkpoints, restored, refused_minutes, attempts, .. } = tally;
        writeln!(to, "{steps} steps, {received} records received")?;
        writeln!(to, "copies: {delivered} delivered, {dropped} dropped, {resent} sent again")?;
        writeln!(to, "lines of clients: {acked} acknowledged, {unacked} connections told otherwise")?;
        writeln!(to, "blocks on disk: {found} found again, {lost} lost that were not safe")?;
        writeln!(to, "copies on disk: {damaged} damaged, and counted")?;
        writeln!(to, "{checkpoints} checkpoints, and {restored} units of counters back out of them")?;
        writeln!(to, "endpoints that refuse for hours: {refused_minutes} minutes, {attempts} attempts")?;
        write!(to, "{kills} kills, {power_losses} losses of power: nothing lost that was safe")
    }
}

impl Calm {
    /// Adds what another run was like. The fingerprint becomes that of both.
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

/// What happened to processes, machines and what they left on disk, over all outputs with a queue there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Processes that were killed.
    pub kills: u64,
    /// Machines that lost their power.
    pub power_losses: u64,
    /// Blocks that the next process found.
    pub found: u64,
    /// Blocks that had been accepted, had no outcome, and were not there: none of them had been called safe.
    pub lost: u64,
    /// Copies that the next process counted as damaged.
    pub damaged: u64,
    /// Checkpoints of the aggregation that is followed.
    pub checkpoints: u64,
    /// What came back out of them, of the counters that are followed.
    pub restored: u64,
    /// Minutes in which an endpoint refused without an end, and the attempts of its sender.
    pub refused_minutes: u64,
    /// See before.
    pub attempts: u64,
}

/// What a run has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Seed of the run.
    pub seed: u64,
    /// Step after which it showed, from 0.
    pub step: usize,
    /// What must not have happened.
    pub message: String,
}

impl std::fmt::Display for Found {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "seed {} step {}: {}", self.seed, self.step, self.message)
    }
}

//! What a queue and a sender are told to do. Made by `config`, checked there.

/// What happens when a queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// The source waits. Sources that cannot wait dropped the newest.
    Block,
    /// The source waits while the endpoint is not down; the oldest block makes room while it is, and for sources that
    /// cannot wait.
    BlockWhileUp,
    /// The oldest block makes room.
    DropOldest,
    /// The new block is dropped.
    DropNewest,
}

impl WhenFull {
    /// True when sources that can wait do so for the endpoint, which is down or is not.
    pub fn waits(self, endpoint_is_down: bool) -> bool {
        match self {
            WhenFull::Block => true,
            WhenFull::BlockWhileUp => !endpoint_is_down,
            WhenFull::DropOldest | WhenFull::DropNewest => false,
        }
    }

    /// True when sources that can wait do so at all.
    pub fn ever_waits(self) -> bool {
        self.waits(false)
    }
}

/// Where an output's queue is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueKind {
    /// In memory: gone with the process.
    #[default]
    Memory,
    /// On disk: there again in the next run.
    Disk {
        /// How long an accepted record waits for others before they are synced together, in milliseconds.
        sync_window_ms: u64,
    },
}

impl QueueKind {
    /// True for a queue on disk.
    pub fn is_disk(self) -> bool {
        matches!(self, QueueKind::Disk { .. })
    }
}

/// Bounds of one output's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// Most bytes, in flight included; at least [`QueueLimits::BYTES_MIN`].
    pub bytes_max: u64,
    /// Most copies, in flight included; 0 for as many as there are bytes for. A single block may be larger.
    pub records_max: u64,
    /// What happens past either.
    pub when_full: WhenFull,
    /// Blocks older than this many milliseconds are dropped as `too_old`; 0 for never.
    pub age_max_ms: u64,
}

impl QueueLimits {
    /// Smallest `max_bytes`: two of the largest blocks.
    pub const BYTES_MIN: u64 = 256 * 1024;

    /// What holds where nothing else is said. A queue on disk is there to lose nothing, so it makes sources wait.
    pub fn default_of(kind: QueueKind) -> QueueLimits {
        match kind {
            QueueKind::Memory => QueueLimits::default(),
            QueueKind::Disk { .. } => {
                QueueLimits { bytes_max: 4 << 30, when_full: WhenFull::Block, ..QueueLimits::default() }
            }
        }
    }

    /// When a block that was made at `at_ns` becomes too old, monotonic nanoseconds. None when it never does.
    pub fn expires_ns(&self, at_ns: u64) -> Option<u64> {
        let age_max_ns = self.age_max_ms.saturating_mul(crate::pause::MS_NS);
        (age_max_ns > 0).then(|| at_ns.saturating_add(age_max_ns).saturating_add(1))
    }
}

const _: () = assert!(QueueLimits::BYTES_MIN >= 2 * crate::block::BLOCK_BYTES_MAX as u64);

impl Default for QueueLimits {
    fn default() -> Self {
        QueueLimits { bytes_max: 256 << 20, records_max: 0, when_full: WhenFull::DropOldest, age_max_ms: 0 }
    }
}

/// How an endpoint behind a stream connection is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderPlan {
    /// First pause after a failure, in milliseconds; doubles up to `retry_max_ms`, with jitter.
    pub retry_min_ms: u64,
    /// Longest pause between attempts.
    pub retry_max_ms: u64,
    /// A connection attempt that takes longer has failed.
    pub connect_timeout_ms: u64,
    /// A connection on which nothing was taken for so long has failed.
    pub write_timeout_ms: u64,
}

impl Default for SenderPlan {
    fn default() -> Self {
        SenderPlan {
            retry_min_ms: 250,
            retry_max_ms: 15_000,
            connect_timeout_ms: 5_000,
            write_timeout_ms: 10_000,
        }
    }
}

/// How a file, or the console, is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilePlan {
    /// A record that would make the file larger goes to a new file; 0 for never.
    pub file_bytes_max: u64,
    /// Rotated files that are kept beside the one that is written.
    pub files_max: u32,
    /// Close the file whenever nothing is left to write, so that it may be moved away from outside.
    pub close_when_idle: bool,
    /// First pause after a failure, in milliseconds; doubles up to `retry_max_ms`, with jitter.
    pub retry_min_ms: u64,
    /// Longest pause between attempts.
    pub retry_max_ms: u64,
}

impl Default for FilePlan {
    fn default() -> Self {
        let SenderPlan { retry_min_ms, retry_max_ms, .. } = SenderPlan::default();
        FilePlan { file_bytes_max: 0, files_max: 0, close_when_idle: false, retry_min_ms, retry_max_ms }
    }
}

//! Checked settings of queues and senders. `config` creates and checks them.

/// What happens when a queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// The source waits (backpressure). For sources that cannot wait, the new block is dropped.
    Block,
    /// The source waits for at most [`QueueLimits::max_wait_ms`] in any 10 s. After that, the oldest blocks are dropped until
    /// the queue is half empty. For sources that cannot wait, the oldest block is dropped.
    Wait,
    /// The source waits while the endpoint is up or unknown. While it is down, and for sources that cannot wait, the
    /// oldest block is dropped.
    BlockWhileUp,
    /// The oldest block is dropped.
    DropOldest,
    /// The new block is dropped.
    DropNewest,
}

impl WhenFull {
    /// Its word in config files.
    pub fn as_str(self) -> &'static str {
        match self {
            WhenFull::Block => "block",
            WhenFull::Wait => "wait",
            WhenFull::BlockWhileUp => "block_while_up",
            WhenFull::DropOldest => "drop_oldest",
            WhenFull::DropNewest => "drop_newest",
        }
    }

    /// True when sources that can wait do so, given whether the endpoint is down.
    pub fn waits(self, endpoint_is_down: bool) -> bool {
        match self {
            WhenFull::Block | WhenFull::Wait => true,
            WhenFull::BlockWhileUp => !endpoint_is_down,
            WhenFull::DropOldest | WhenFull::DropNewest => false,
        }
    }

    /// True when sources that can wait may have to.
    pub fn ever_waits(self) -> bool {
        self.waits(false)
    }
}

/// Where an output's queue is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueKind {
    /// In memory: lost when the process ends.
    #[default]
    Memory,
    /// On disk: survives a restart.
    Disk {
        /// How long an accepted record may wait for a group sync, in milliseconds.
        sync_window_ms: u64,
    },
}

impl QueueKind {
    /// True for a queue on disk.
    pub fn is_disk(self) -> bool {
        matches!(self, QueueKind::Disk { .. })
    }
}

/// Limits of one output's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// Most bytes, in flight included; at least [`QueueLimits::BYTES_MIN`].
    pub bytes_max: u64,
    /// Most copies, in flight included; 0 for no limit. A single block may be larger.
    pub records_max: u64,
    /// What happens at either limit.
    pub when_full: WhenFull,
    /// With [`WhenFull::Wait`]: how long sources wait for room in any 10 s, in milliseconds.
    pub max_wait_ms: u64,
    /// Blocks older than this many milliseconds are dropped as `too_old`; 0 for never.
    pub age_max_ms: u64,
}

impl QueueLimits {
    /// Smallest `max_bytes`: two of the largest blocks.
    pub const BYTES_MIN: u64 = 256 * 1024;

    /// Default limits.
    pub fn default_of(kind: QueueKind) -> QueueLimits {
        match kind {
            QueueKind::Memory => QueueLimits::default(),
            QueueKind::Disk { .. } => QueueLimits { bytes_max: 4 << 30, ..QueueLimits::default() },
        }
    }

    /// When a block created at `at_ns` becomes too old, monotonic nanoseconds. None without an age limit.
    pub fn expires_ns(&self, at_ns: u64) -> Option<u64> {
        let age_max_ns = self.age_max_ms.saturating_mul(crate::pause::MS_NS);
        (age_max_ns > 0).then(|| at_ns.saturating_add(age_max_ns).saturating_add(1))
    }
}

const _: () = assert!(QueueLimits::BYTES_MIN >= 2 * crate::block::BLOCK_BYTES_MAX as u64);

impl Default for QueueLimits {
    fn default() -> Self {
        QueueLimits {
            bytes_max: 256 << 20,
            records_max: 0,
            when_full: WhenFull::Wait,
            max_wait_ms: 1_000,
            age_max_ms: 0,
        }
    }
}

/// Settings of a sender to a stream endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderPlan {
    /// First pause after a failure, in milliseconds; doubles up to `retry_max_ms`, with jitter.
    pub retry_min_ms: u64,
    /// Longest pause between attempts.
    pub retry_max_ms: u64,
    /// An attempt to connect that takes longer has failed.
    pub connect_timeout_ms: u64,
    /// A connection whose peer accepts nothing for so long has failed.
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

/// Limits of one request of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchPlan {
    /// Most records. At least 1.
    pub records_max: u32,
    /// Most bytes of their lines; a single record may have more.
    pub bytes_max: u64,
    /// How long a record waits for others, in milliseconds.
    pub delay_ms: u64,
}

/// Settings of a file or console output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilePlan {
    /// A record that would make the file larger goes to a new file; 0 for no limit.
    pub file_bytes_max: u64,
    /// Rotated files to keep, beside the current file.
    pub files_max: u32,
    /// Close the file whenever everything is written, so that another program may move it.
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

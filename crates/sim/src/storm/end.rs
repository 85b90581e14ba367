//! What ends a process of a storm.

use crate::random::Random;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Killed: its writes are kept.
    Killed,
    /// Power loss: writes without a sync may be kept, in part and in any order.
    PowerLoss,
}

impl End {
    pub(super) fn by_chance(random: &mut Random) -> End {
        if random.chance(50) { End::PowerLoss } else { End::Killed }
    }
}

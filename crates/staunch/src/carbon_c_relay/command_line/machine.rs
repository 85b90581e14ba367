//! The facts about this machine that defaults of flags depend on.

use import::relay::flags::Machine;

use crate::cli::load;

/// This machine.
pub(super) fn machine() -> Machine {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Machine { hostname: load::hostname(), cores }
}

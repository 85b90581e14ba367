//! Position of a sweep over the series of a closed window.

use model::Kind;

use super::state::State;

/// Number of stages of a sweep: the four kinds in order, then the aliases.
pub(super) const STAGES: usize = 5;

/// Position of a sweep.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cursor {
    pub(super) stage: usize,
    /// First entry of the stage that is not visited yet.
    pub(super) from: u32,
}

impl Cursor {
    /// True while no entry of the kind has been visited.
    pub(super) fn is_before<S: State>(self) -> bool {
        let stage = Kind::ALL.iter().position(|kind| *kind == S::KIND);
        stage.is_some_and(|stage| self.stage < stage || (self.stage == stage && self.from == 0))
    }
}

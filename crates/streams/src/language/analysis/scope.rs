//! The locals of functions: which slot each has, and what functions capture from those around them.

use arcstr::ArcStr;

use crate::language::expr::Place;

/// One `fn` or `letfn` that is analysed, or the top level.
#[derive(Default)]
pub(super) struct Scope {
    /// Names of the functions that are made together; `None` for one without a name.
    pub(super) siblings: Vec<Option<ArcStr>>,
    /// What its closures capture, with the place in the scope around it.
    pub(super) captures: Vec<(ArcStr, Place)>,
    /// Locals that can be seen, the innermost last.
    pub(super) locals: Vec<(ArcStr, u32)>,
    pub(super) next: u32,
    pub(super) most: u32,
    /// The slots that `recur` sets, for each loop or function around; the innermost last.
    pub(super) targets: Vec<Vec<u32>>,
}

impl Scope {
    /// The scope of functions that are made together.
    pub(super) fn of(siblings: Vec<Option<ArcStr>>) -> Self {
        Scope { siblings, ..Scope::default() }
    }

    /// How many slots a frame needs.
    pub(super) fn most_slots(&self) -> u32 {
        self.most
    }

    /// Begins another body of the same functions: captures stay, locals do not.
    pub(super) fn begin_body(&mut self) {
        self.locals.clear();
        self.targets.clear();
        (self.next, self.most) = (0, 0);
    }
}

/// Where locals ended, to go back to.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    pub(super) locals: usize,
    pub(super) next: u32,
}

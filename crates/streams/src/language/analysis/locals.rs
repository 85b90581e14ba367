//! Locals: declaring them, and finding them from inner functions.

use arcstr::ArcStr;

use super::analyzer::Analyzer;
use super::scope::{Mark, Scope};
use crate::language::expr::{Expr, Place};

impl Analyzer<'_, '_> {
    /// The innermost scope.
    pub(super) fn scope(&mut self) -> &mut Scope {
        self.scopes.last_mut().expect("the top level's scope is never taken away")
    }

    /// A new slot, with a name or, for values in between, without one.
    pub(super) fn declare(&mut self, name: &ArcStr) -> u32 {
        let scope = self.scope();
        let slot = scope.next;
        scope.next += 1;
        scope.most = scope.most.max(scope.next);
        scope.locals.push((name.clone(), slot));
        slot
    }

    /// Where locals end now.
    pub(super) fn mark(&mut self) -> Mark {
        let scope = self.scope();
        Mark { locals: scope.locals.len(), next: scope.next }
    }

    /// Forgets the locals since then.
    pub(super) fn back_to(&mut self, mark: Mark) {
        let scope = self.scope();
        scope.locals.truncate(mark.locals);
        scope.next = mark.next;
    }

    /// The expression of a local; `None` if there is none of this name.
    pub(super) fn place(&mut self, name: &ArcStr) -> Option<Expr> {
        let place = self.place_in(self.scopes.len() - 1, name)?;
        Some(match place {
            Place::Local(slot) => Expr::Local(slot),
            Place::Captured(index) => Expr::Captured(index),
            Place::Sibling(index) => Expr::Sibling(index),
        })
    }

    fn place_in(&mut self, level: usize, name: &ArcStr) -> Option<Place> {
        let scope = &self.scopes[level];
        if let Some((_, slot)) = scope.locals.iter().rev().find(|(known, _)| known == name) {
            return Some(Place::Local(*slot));
        }
        if let Some(index) = scope.siblings.iter().position(|known| known.as_ref() == Some(name)) {
            return Some(Place::Sibling(u32::try_from(index).ok()?));
        }
        if let Some(index) = scope.captures.iter().position(|(known, _)| known == name) {
            return Some(Place::Captured(u32::try_from(index).ok()?));
        }
        let outer = self.place_in(level.checked_sub(1)?, name)?;
        let captures = &mut self.scopes[level].captures;
        captures.push((name.clone(), outer));
        Some(Place::Captured(u32::try_from(captures.len() - 1).ok()?))
    }

    /// The names of all locals around.
    pub(super) fn local_names(&self) -> Vec<ArcStr> {
        let locals = self.scopes.iter().flat_map(|scope| scope.locals.iter().map(|(name, _)| name));
        let siblings = self.scopes.iter().flat_map(|scope| scope.siblings.iter().flatten());
        locals.chain(siblings).filter(|name| !name.is_empty()).cloned().collect()
    }
}

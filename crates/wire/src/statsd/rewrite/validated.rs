//! A validated plan, ready to write lines.

use super::form::{Form, TagFormat};
use super::plan::{RewriteError, RewritePlan};
use super::tags::TagEdits;

/// A validated plan, ready to write lines.
#[derive(Clone, Debug)]
pub struct Rewrite {
    pub(super) prefix: Vec<u8>,
    pub(super) suffix: Vec<u8>,
    pub(super) edits: TagEdits,
    pub(super) form: Form,
    /// Only names change.
    pub(super) only_names: bool,
}

impl Rewrite {
    /// Checks a plan.
    ///
    /// # Errors
    /// [`RewriteError`] with the invalid text.
    pub fn new(plan: &RewritePlan) -> Result<Rewrite, RewriteError> {
        for affix in [&plan.prefix, &plan.suffix] {
            if affix.contains([':', '|', ';']) || affix.contains(char::is_control) {
                return Err(RewriteError::BadAffix(affix.clone()));
            }
        }
        let edits = TagEdits::new(plan)?;
        let only_names = plan.to == Form::KEEP && edits.is_empty();
        Ok(Rewrite {
            prefix: plan.prefix.clone().into_bytes(),
            suffix: plan.suffix.clone().into_bytes(),
            edits,
            form: plan.to,
            only_names,
        })
    }

    /// True when every line is unchanged and need not be split into parts.
    pub fn is_identity(&self) -> bool {
        self.only_names && self.prefix.is_empty() && self.suffix.is_empty()
    }

    /// The conversions.
    pub fn form(&self) -> &Form {
        &self.form
    }

    /// True when tags are rebuilt instead of copied.
    pub(super) fn rebuilds_tags(&self) -> bool {
        self.form.tags != TagFormat::Keep || !self.edits.is_empty()
    }
}

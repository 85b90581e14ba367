//! What an endpoint wants changed, checked once.

use std::fmt;

use super::form::{Form, TagFormat};
use super::tags::TagEdits;

/// Changes to each line of an endpoint. The default changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RewritePlan {
    /// Stands before each name, with its dot if there is to be one. Events and checks have none.
    pub prefix: String,
    /// Stands behind each name, before tags in the name.
    pub suffix: String,
    /// Keys of tags that are taken away; `*` at the end stands for any rest.
    pub tags_drop: Vec<String>,
    /// Tags that get another key: (old, new). Those that were dropped are gone by then.
    pub tags_rename: Vec<(String, String)>,
    /// Tags that lines get, `key:value` or a bare word, unless they have a tag of that key by then. To have a value
    /// replaced, drop the key as well.
    ///
    /// They go where the line's own tags are: into the name when only that has tags, else into the `#` field.
    pub tags_add: Vec<String>,
    /// Value of bare tags where a form needs one (`bare_tag_value`); when it is empty they are left out.
    pub bare_tag_value: String,
    /// The form that lines are put into.
    pub to: Form,
}

impl Default for RewritePlan {
    fn default() -> RewritePlan {
        RewritePlan {
            prefix: String::new(),
            suffix: String::new(),
            tags_drop: Vec::new(),
            tags_rename: Vec::new(),
            tags_add: Vec::new(),
            bare_tag_value: "true".to_owned(),
            to: Form::KEEP,
        }
    }
}

/// Why a plan is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RewriteError {
    /// A prefix or suffix with a byte that would end the name.
    BadAffix(String),
    /// A tag, or a key, that would not be read as one: empty, or with a byte that ends a tag.
    BadTag(String),
}

impl fmt::Display for RewriteError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RewriteError::BadAffix(text) => {
                write!(
                    to,
                    "`{text}` cannot be part of a name: leave out `:`, `|`, `;` and control characters"
                )
            }
            RewriteError::BadTag(text) => write!(
                to,
                "`{text}` is no tag: write `key:value`, a bare word, or a key alone where one is named, \
                 without `,`, `|`, `;` and control characters"
            ),
        }
    }
}

impl std::error::Error for RewriteError {}

/// A checked plan, ready to write lines.
#[derive(Clone, Debug)]
pub struct Rewrite {
    pub(super) prefix: Vec<u8>,
    pub(super) suffix: Vec<u8>,
    pub(super) edits: TagEdits,
    pub(super) form: Form,
    /// Behind the name nothing changes.
    pub(super) only_names: bool,
}

impl Rewrite {
    /// Checks a plan.
    ///
    /// # Errors
    /// [`RewriteError`] names the text that cannot stand in a line.
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

    /// True when every line comes out as it went in: nothing need be taken apart.
    pub fn is_identity(&self) -> bool {
        self.only_names && self.prefix.is_empty() && self.suffix.is_empty()
    }

    /// The form that lines are put into.
    pub fn form(&self) -> &Form {
        &self.form
    }

    /// True when tags are rebuilt, and not copied as they stand.
    pub(super) fn rebuilds_tags(&self) -> bool {
        self.form.tags != TagFormat::Keep || !self.edits.is_empty()
    }
}

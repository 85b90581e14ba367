//! The changes that an endpoint's configuration asks for, and what can be wrong with them.

use std::fmt;

use super::form::Form;

/// Changes to each line of an endpoint. The default changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RewritePlan {
    /// Text before each name, with its dot if it is to have one. Not for events and checks.
    pub prefix: String,
    /// Text after each name, before tags in the name.
    pub suffix: String,
    /// Keys of tags that are removed; `*` at the end matches any rest.
    pub tags_drop: Vec<String>,
    /// Tags that get another key: (old, new). Applied after `tags_drop`.
    pub tags_rename: Vec<(String, String)>,
    /// Tags to add, `key:value` or a bare word, unless the line has a tag of that key after the other edits. To
    /// replace a value, drop the key as well.
    ///
    /// They are added where the line's own tags are: to the name when only that has tags, else to the `#` field.
    pub tags_add: Vec<String>,
    /// Value of bare tags where a format needs one (`bare_tag_value`); when it is empty they are omitted.
    pub bare_tag_value: String,
    /// Conversions.
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

/// Why a plan is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RewriteError {
    /// A prefix or suffix with a byte that would end the name.
    BadAffix(String),
    /// An invalid tag or key: empty, or with a byte that ends a tag.
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

//! What a global name can mean.

use std::sync::Arc;

use arcstr::ArcStr;

use crate::function::Native;
use crate::language::namespace::Entry;
use crate::object::reference::Var;
use crate::value::Value;

/// What a global name means.
pub(super) enum Meaning {
    Native(&'static Native),
    Macro(&'static Native),
    Constant(Value),
    Var(Arc<Var<Value>>),
}

/// Why a name means nothing.
pub(super) enum Unknown {
    /// There is no such namespace or class.
    Space(ArcStr),
    /// The namespace has no such name.
    Name,
}

impl From<Entry> for Meaning {
    fn from(entry: Entry) -> Meaning {
        match entry {
            Entry::Native(native) => Meaning::Native(native),
            Entry::Macro(native) => Meaning::Macro(native),
            Entry::Constant(value) => Meaning::Constant(value),
            Entry::Var(var) => Meaning::Var(var),
        }
    }
}

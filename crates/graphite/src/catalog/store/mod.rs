//! Memory of the catalog: compact collections addressed by 32-bit numbers. Nothing here knows what a name is.

mod hasher;
mod ids;
mod pages;
mod table;
mod texts;
mod tree;

pub(in crate::catalog) use ids::Ids;
pub(in crate::catalog) use pages::Pages;
pub(in crate::catalog) use texts::{TEXT_BYTES_MAX, Texts};
pub(in crate::catalog) use tree::{NO_SERIES, ROOT, Slot, Tree};

/// No entry: the end of a list, or a number that is not in use.
pub(in crate::catalog) const NONE: u32 = u32::MAX;

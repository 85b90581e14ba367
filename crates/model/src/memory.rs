//! Arrays that a batch borrows or owns.

use std::borrow::Cow;

/// The same elements in memory of their own.
pub(crate) fn owned<T: Clone>(slice: Cow<'_, [T]>) -> Cow<'static, [T]> {
    Cow::Owned(slice.into_owned())
}

/// Memory of a slice in addition to its owner's; none if it is borrowed.
#[expect(clippy::ptr_arg, reason = "it asks whose memory it is")]
pub(crate) fn memory_of<T: Clone>(slice: &Cow<'_, [T]>) -> usize {
    match slice {
        Cow::Borrowed(_) => 0,
        Cow::Owned(owned) => owned.capacity() * size_of::<T>(),
    }
}

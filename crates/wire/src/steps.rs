//! Counts the steps of parsers and writers, for `cost`. Outside of tests and the feature `reference` it compiles to
//! nothing.

#[cfg(any(test, feature = "reference"))]
mod counted {
    use std::cell::Cell;

    thread_local! {
        static STEPS: Cell<u64> = const { Cell::new(0) };
    }

    /// Counts a pass over this many bytes.
    #[inline]
    pub(crate) fn touch(bytes: usize) {
        STEPS.set(STEPS.get() + bytes as u64);
    }

    /// Steps of this thread so far.
    pub(crate) fn steps() -> u64 {
        STEPS.get()
    }
}

#[cfg(any(test, feature = "reference"))]
pub(crate) use counted::{steps, touch};

/// Counts nothing.
#[cfg(not(any(test, feature = "reference")))]
#[inline(always)]
pub(crate) fn touch(_bytes: usize) {}

//! Drops values one after the other instead of one inside the other.
//!
//! A sequence of a million cells is a chain of a million pointers. Dropped naively, each cell drops the next one on its own
//! stack, which ends the process. Cells and atoms hand what they hold to this list instead.

use std::any::Any;
use std::cell::RefCell;

thread_local! {
    /// What the drop that runs has still to do; `None` while none runs.
    static QUEUED: RefCell<Option<Vec<Box<dyn Any>>>> = const { RefCell::new(None) };
}

/// Drops a value: now if no other drop runs in this thread, else after it.
pub(crate) fn drop_later<V: 'static>(value: V) {
    let value: Box<dyn Any> = Box::new(value);
    // While the thread ends its list may be gone; then nothing is left but to drop here.
    let begin = QUEUED.try_with(|queued| {
        let mut queued = queued.borrow_mut();
        match queued.as_mut() {
            Some(queue) => {
                queue.push(value);
                false
            }
            None => {
                *queued = Some(vec![value]);
                true
            }
        }
    });
    if begin != Ok(true) {
        return;
    }
    while let Some(value) = QUEUED.with(|queued| queued.borrow_mut().as_mut().and_then(Vec::pop)) {
        drop(value);
    }
    QUEUED.with(|queued| *queued.borrow_mut() = None);
}

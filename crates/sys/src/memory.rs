//! Calls to the allocator that `staunch` uses.

/// Returns memory to the system that was freed a second ago or longer. The allocator itself does so only at its next
/// allocation, so after a burst of work an idle process would keep the memory.
pub fn release_freed_memory() {
    // SAFETY: no pointer is passed. Memory in use is not affected; with another allocator the call does nothing.
    unsafe { libmimalloc_sys::mi_collect(false) };
}

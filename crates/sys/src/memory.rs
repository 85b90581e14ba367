//! What the allocator that `staunch` chooses is asked for.

/// Gives memory that was freed a second ago or longer back to the system. The allocator does so only when it is next asked for
/// some: what much work has left would be held for as long as there is little.
pub fn give_memory_back() {
    // SAFETY: no pointer is passed. What is in use stays as it is; where another allocator is chosen there is nothing to do.
    unsafe { libmimalloc_sys::mi_collect(false) };
}

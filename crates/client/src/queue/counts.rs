//! Numbers of things as people read them.

/// So many of something, in words.
pub(super) fn count_of(count: u64, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

/// So many copies.
pub(super) fn copies(count: u64) -> String {
    count_of(count, "copy", "copies")
}

/// So many files.
pub(super) fn files(count: u64) -> String {
    count_of(count, "file", "files")
}

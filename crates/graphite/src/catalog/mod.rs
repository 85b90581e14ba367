//! The names of all series in memory: found by globs and by tags, saved and read at a start.

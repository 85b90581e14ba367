//! Series names to paths and back (spec graphite §4.7).

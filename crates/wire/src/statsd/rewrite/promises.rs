//! What holds of any line whatever: what tests and the fuzz target `rewrite` check.

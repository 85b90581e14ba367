//! Which layout and aggregation a new series gets (spec graphite §4.3).

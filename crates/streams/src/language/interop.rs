//! Where methods and constructors of Java's classes stand among the namespaces. A name of a config never begins with a space.

/// The namespace of methods: `toLowerCase` is `.toLowerCase`.
pub const METHODS: &str = " methods";
/// The namespace of constructors: `Date` is `Date.`.
pub const CONSTRUCTORS: &str = " constructors";

//! Taps and tests of a config (spec riemann §13).

/// What taps recorded, and which tests there are.
#[derive(Debug, Default)]
pub struct Testing {}

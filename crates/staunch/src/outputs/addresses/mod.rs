//! Addresses of endpoints: `names` resolves names, `locator` says which address a sender uses.

pub mod locator;
pub mod names;

//! What the tests of several protocols share.

pub(crate) mod corpus;

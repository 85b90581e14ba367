//! Shared code of the tests of several protocols.

pub(crate) mod corpus;

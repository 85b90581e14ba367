//! Packets: making, sending, and receiving them behind the daemon under test.

pub(crate) mod endpoints;
pub(crate) mod generator;
pub(crate) mod packets;
pub(crate) mod sink;

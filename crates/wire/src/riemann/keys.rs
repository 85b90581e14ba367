//! The fields of Riemann's messages, by number and wire type (spec riemann §1).

use super::fields::{BYTES, EIGHT, FOUR, VARINT, key};

/// Fields of a message.
pub(super) mod message {
    use super::*;

    pub(in crate::riemann) const OK: u32 = key(2, VARINT);
    pub(in crate::riemann) const ERROR: u32 = key(3, BYTES);
    pub(in crate::riemann) const STATE: u32 = key(4, BYTES);
    pub(in crate::riemann) const QUERY: u32 = key(5, BYTES);
    pub(in crate::riemann) const EVENT: u32 = key(6, BYTES);
}

/// Fields of a query.
pub(super) mod query {
    use super::*;

    pub(in crate::riemann) const STRING: u32 = key(1, BYTES);
}

/// Fields of an event.
pub(super) mod event {
    use super::*;

    pub(in crate::riemann) const TIME: u32 = key(1, VARINT);
    pub(in crate::riemann) const STATE: u32 = key(2, BYTES);
    pub(in crate::riemann) const SERVICE: u32 = key(3, BYTES);
    pub(in crate::riemann) const HOST: u32 = key(4, BYTES);
    pub(in crate::riemann) const DESCRIPTION: u32 = key(5, BYTES);
    pub(in crate::riemann) const TAG: u32 = key(7, BYTES);
    pub(in crate::riemann) const TTL: u32 = key(8, FOUR);
    pub(in crate::riemann) const ATTRIBUTE: u32 = key(9, BYTES);
    pub(in crate::riemann) const TIME_MICROS: u32 = key(10, VARINT);
    pub(in crate::riemann) const METRIC_SINT64: u32 = key(13, VARINT);
    pub(in crate::riemann) const METRIC_D: u32 = key(14, EIGHT);
    pub(in crate::riemann) const METRIC_F: u32 = key(15, FOUR);
}

/// Fields of an attribute.
pub(super) mod attribute {
    use super::*;

    pub(in crate::riemann) const KEY: u32 = key(1, BYTES);
    pub(in crate::riemann) const VALUE: u32 = key(2, BYTES);
}

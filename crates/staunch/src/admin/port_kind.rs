//! The kinds of our own ports, for a hot restart.

/// What a port is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortKind {
    /// HTTP.
    Http,
    /// A management port.
    Management,
    /// CarbonLink.
    CarbonLink,
}

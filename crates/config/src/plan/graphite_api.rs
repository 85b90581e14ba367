//! graphite-web's HTTP API.

/// Settings of graphite-web's API, on the HTTP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphiteApiPlan {
    /// Its read paths need no token, where the rest of the HTTP server needs one.
    pub open: bool,
    /// How long an answer is given again to the same request, in milliseconds; 0 for never.
    pub cache_ms: u64,
    /// Most bytes of the answers that are kept.
    pub cache_bytes_max: u64,
    /// Most events; the oldest one is removed for a new one.
    pub events_max: usize,
    /// Other nodes that are asked, too: `http://HOST:PORT`.
    pub peers: Vec<String>,
    /// Longest wait for the answer of one of them, in milliseconds.
    pub peer_timeout_ms: u64,
}

/// What an empty section means.
impl Default for GraphiteApiPlan {
    fn default() -> GraphiteApiPlan {
        GraphiteApiPlan {
            open: false,
            cache_ms: 0,
            cache_bytes_max: 32 << 20,
            events_max: 100_000,
            peers: Vec::new(),
            peer_timeout_ms: 5_000,
        }
    }
}

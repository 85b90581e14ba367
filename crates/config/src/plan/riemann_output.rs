//! An output that sends events to another Riemann.

use deliver::plan::{BatchPlan, SenderPlan};

use super::http_output::REQUEST_BYTES_MAX;
use super::{Destination, Endpoint, EndpointTls, Link, OutputFacts, RequestForm, Written};
use crate::kinds::RecordKind;
use crate::options::section::Section;

/// An output of type `riemann` with one endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct RiemannOutputPlan {
    /// The endpoint: by TCP each message is acknowledged, by UDP none is.
    pub to: Destination,
    /// Most events of a message.
    pub events_max: u32,
    /// How long events wait for others, in milliseconds.
    pub delay_ms: u64,
    /// TLS of its connections, if any; never with UDP.
    pub tls: Option<Box<EndpointTls>>,
    /// Retries and time-outs; `write_timeout_ms` is that of a message and its reply.
    pub sender: SenderPlan,
}

impl RiemannOutputPlan {
    /// Default of `max_batch_events`.
    pub const EVENTS_MAX: u32 = 1_000;

    /// Default of `max_batch_delay`, in milliseconds.
    pub const DELAY_MS: u64 = 10;

    /// Longest datagram in bytes: Riemann cuts off longer ones (spec riemann §1.4).
    pub const DATAGRAM_BYTES_MAX: usize = 16 << 10;

    /// Bytes of events up to which they share a datagram: it then fits into a frame of Ethernet.
    pub const SHARED_DATAGRAM_BYTES: usize = 1_432;

    /// With the defaults.
    pub fn new(to: Destination) -> RiemannOutputPlan {
        RiemannOutputPlan {
            to,
            events_max: RiemannOutputPlan::EVENTS_MAX,
            delay_ms: RiemannOutputPlan::DELAY_MS,
            tls: None,
            sender: SenderPlan::default(),
        }
    }

    /// Its facts as an output.
    pub(super) fn facts(&self) -> OutputFacts<'_> {
        let (to, form) = (self.to.clone(), RequestForm::Riemann(self));
        let link = Link::Requests { to, sender: self.sender, form };
        OutputFacts::plain(Section::OutputRiemann, &[RecordKind::Events], link, Written::Lines)
    }

    /// Limits of a message.
    pub fn batch(&self) -> BatchPlan {
        BatchPlan { records_max: self.events_max, bytes_max: REQUEST_BYTES_MAX, delay_ms: self.delay_ms }
    }
}

impl Default for RiemannOutputPlan {
    /// Without an endpoint.
    fn default() -> RiemannOutputPlan {
        RiemannOutputPlan::new(Destination::Tcp(Endpoint { host: String::new(), port: 0 }))
    }
}

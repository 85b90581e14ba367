//! Options of the source `riemann`, beside those that others have too.

use wire::riemann::MESSAGE_BYTES_LIMIT;

use super::types::size;
use crate::options::field::rows;
use crate::options::row::Default::Toml;
use crate::options::row::Type::Listen;
use crate::options::section::Section::SourceRiemann;
use crate::plan::{RiemannSource, SourcePlan};

rows! {
    LISTENER: SourcePlan;
    in [SourceRiemann] {
        "listen": Listen,
            Toml("[\"tcp://127.0.0.1:5555\", \"udp://127.0.0.1:5555\"]"), "[\"tcp://0.0.0.0:5555\", \"udp://0.0.0.0:5555\"]",
            "Listen addresses.",
            "`tcp://ADDRESS:PORT` and `unix://PATH`: messages, each after its length, and a reply to each. `udp://ADDRESS:PORT` and `unixgram://PATH`: a message in each datagram, without replies. With `tls` there are only streams.";
    }
}

rows! {
    MESSAGES: RiemannSource = |_| RiemannSource::default();
    in [SourceRiemann] {
        "max_message_bytes" => message_bytes_max: size(64, MESSAGE_BYTES_LIMIT as u64), Toml("\"16MiB\""), "\"1MiB\"",
            "Longest message of a connection.",
            "A longer message closes its connection as `bad_frame`, before any of it is buffered.";
    }
}

//! Options of outputs of type `riemann`, beside those that others have too.

use super::types::{HOUR, duration, whole};
use crate::options::field::{Nested, rows};
use crate::options::row::Default::{Absent, Required, Toml};
use crate::options::row::Scheme;
use crate::options::row::Type::{Endpoints, Table};
use crate::options::section::Section::{OutputRiemann, OutputTls};
use crate::plan::RiemannOutputPlan;

rows! {
    RIEMANN_OUTPUT: RiemannOutputPlan;
    in [OutputRiemann] {
        "to": Endpoints(&[Scheme::Tcp, Scheme::Udp]), Required, "[\"tcp://10.0.0.5:5555\"]",
            "Endpoints; each gets every event.",
            "Over `tcp://` each message is acknowledged and sent again if its reply does not come; over `udp://` events are sent once. With several endpoints each is an output of its own, called `NAME/host:port`.";
        "max_batch_events" => events_max: whole(1, 65_536), Toml("1000"), "100",
            "Most events of a message.",
            "A message has about 1 MiB at most, or a single event. Datagrams have 1,432 bytes at most, or a single event.";
        "max_batch_delay" => delay_ms: duration(0, HOUR), Toml("\"10ms\""), "\"0s\"",
            "How long events wait for others to share a message.";
        "tls" => tls as Nested: Table(OutputTls), Absent("connections are not encrypted"), "{ ca = \"/etc/staunch/ca.pem\", cert = \"/etc/staunch/client.pem\" }",
            "Encrypts the connections to its endpoints.",
            "Riemann requires a certificate of the client: `cert`.";
    }
}

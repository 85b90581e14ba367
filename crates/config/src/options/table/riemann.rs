//! Options of the source `riemann`, beside those that others have too.

use wire::riemann::MESSAGE_BYTES_LIMIT;

use super::types::{one_of, size};
use crate::options::field::{rows, words};
use crate::options::row::Default::Toml;
use crate::options::row::Type::{Flag, Listen, Texts};
use crate::options::section::Section::SourceRiemann;
use crate::plan::{RiemannEncoding, RiemannSource, SourcePlan};

words! {
    RiemannEncoding: "protobuf" = RiemannEncoding::Messages, "http" = RiemannEncoding::Http,
        "graphite" = RiemannEncoding::Graphite, "opentsdb" = RiemannEncoding::Opentsdb;
}

rows! {
    LISTENER: SourcePlan;
    in [SourceRiemann] {
        "listen": Listen,
            Toml("[\"tcp://127.0.0.1:5555\", \"udp://127.0.0.1:5555\"]"), "[\"tcp://0.0.0.0:5555\", \"udp://0.0.0.0:5555\"]",
            "Listen addresses.",
            "`tcp://ADDRESS:PORT` and `unix://PATH`: messages, each after its length, and a reply to each. `udp://ADDRESS:PORT` and `unixgram://PATH`: a message in each datagram, without replies. With `tls` there are only streams. With `encoding = \"http\"` write `tcp://127.0.0.1:5556`, Riemann's port of WebSockets.";
    }
}

rows! {
    MESSAGES: RiemannSource = |_| RiemannSource::default();
    in [SourceRiemann] {
        "max_message_bytes" => message_bytes_max: size(64, MESSAGE_BYTES_LIMIT as u64), Toml("\"16MiB\""), "\"1MiB\"",
            "Longest message of a connection.",
            "A longer message closes its connection as `bad_frame`, before any of it is buffered. With another `encoding`: the longest line; a longer one is rejected as `line_too_long`.";
        "encoding" => encoding: one_of::<RiemannEncoding>(), Toml("\"protobuf\""), "\"http\"",
            "Format of the data on its connections.",
            "`protobuf`: messages of Riemann's clients. `http`: dashboards subscribe to the index and to channels as WebSockets or server-sent events, and clients put events as lines of JSON. See [Subscribers](riemann.md#subscribers). `graphite` and `opentsdb`: lines of these programs, each of which becomes an event. See [Lines as events](riemann.md#lines-as-events).";
        "tags" => tags: Flag, Toml("false"), "true",
            "Whether the tags of a Graphite name become fields of its event.",
            "Only with `encoding = \"graphite\"`: `cpu;host=web1 1 TIME` has the service `cpu` and the host `web1`.";
        "allowed_origins" => allowed_origins: Texts, Toml("[]"), "[\"http://dash.example.org:4567\"]",
            "Origins of web pages elsewhere that may subscribe and put events.",
            "Only with `encoding = \"http\"`. The origin is scheme, host and port, as in the address bar of the page; `*` is every page. Pages of the same address or of `localhost` may always do so.";
    }
}

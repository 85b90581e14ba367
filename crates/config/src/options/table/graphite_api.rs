//! Options of graphite-web's API.

use super::types::{HOUR, MIB, TIB, duration, one_of, size, whole};
use crate::options::field::{rows, words};
use crate::options::row::Default::Toml;
use crate::options::row::Type::Texts;
use crate::options::section::Section::GraphiteApi;
use crate::plan::GraphiteApiPlan;

words! {
    IsOpen for bool: "token" = false, "none" = true;
}

rows! {
    GRAPHITE_API: GraphiteApiPlan = |_| GraphiteApiPlan::default();
    in [GraphiteApi] {
        "auth" => open as IsOpen: one_of::<IsOpen>(), Toml("\"token\""), "\"none\"",
            "Whether its read paths need the token of the HTTP server: `token` or `none`.",
            "With `none`, images in wikis and mails work while the rest of the HTTP server still needs `http.token_file`. Every client that can connect can then read all points.";
        "cache" => cache_ms: duration(0, HOUR), Toml("\"0s\""), "\"60s\"",
            "How long an answer of `/render` is given again to the same request.",
            "A request can say otherwise: `cacheTimeout=SECONDS`, `noCache=1`. With `0s` and without `cacheTimeout`, each answer has all points that have come.";
        "max_cache_bytes" => cache_bytes_max: size(MIB, TIB), Toml("\"32MiB\""), "\"256MiB\"",
            "Most memory of the answers that are kept.",
            "The answer that was used least recently makes room for a new one.";
        "max_events" => events_max: whole(1, 10_000_000), Toml("100000"), "1000000",
            "Most events of `/events`.",
            "The oldest one is removed for a new one. They are kept in the file `events.jsonl` in `data_dir`.";
        "peers" => peers: Texts, Toml("[]"), "[\"http://graphite2.example.org:8680\"]",
            "Other nodes whose series are part of the answers.",
            "Another Staunch, graphite-web, carbonapi or go-carbon. Addresses begin with `http://`, and may end with the path before `/render`. A node that does not answer in time is left out, and the answer says so in the header `X-Staunch-Missing`. Requests of nodes to each other ask no further nodes (`local=1`).";
        "peer_timeout" => peer_timeout_ms: duration(100, HOUR), Toml("\"5s\""), "\"2s\"",
            "Longest wait for the answer of a node.";
    }
}

//! Options of outputs of type `http`, beside those that others have too.

use wire::influxdb::Precision;

use super::types::{HOUR, duration, one_of, whole};
use crate::options::field::{Nested, rows, words};
use crate::options::row::Default::{Absent, Depends, Required, Toml};
use crate::options::row::Type::{Map, Table, Text, Texts};
use crate::options::section::Section::{OutputHttp, OutputTls};
use crate::plan::{HttpEncoding, HttpMethod, HttpOutputPlan};

words! {
    HttpEncoding: "json" = HttpEncoding::Json, "json_lines" = HttpEncoding::JsonLines,
        "influxdb" = HttpEncoding::InfluxDb, "template" = HttpEncoding::Template;
    HttpMethod: "POST" = HttpMethod::Post, "PUT" = HttpMethod::Put;
    Precision: "s" = Precision::Seconds, "ms" = Precision::Milliseconds, "us" = Precision::Microseconds,
        "ns" = Precision::Nanoseconds;
}

rows! {
    HTTP_OUTPUT: HttpOutputPlan;
    in [OutputHttp] {
        "url" => url: Text, Required, "\"https://hooks.example.org/services/{{service}}\"",
            "Where to: `http://` or `https://`, host, perhaps a port, path and query.",
            "Path and query may have places for fields such as `{{service}}`; what is written there is percent-encoded. See [HTTP output](http-output.md#templates).";
        "method" => method: one_of::<HttpMethod>(), Toml("\"POST\""), "\"PUT\"",
            "The method of its requests.";
        "headers" => headers: Map, Absent("only those that each request has"), "{ Authorization = \"Token abc\" }",
            "Headers of its requests.",
            "Values may have places for fields. Take secrets from a file: `\"Bearer ${file:/etc/staunch/token}\"`; such a value is hidden in what `check --print` prints.";
        "encoding" => encoding: one_of::<HttpEncoding>(), Toml("\"json\""), "\"influxdb\"",
            "The form of the body.",
            "`json`: an array of objects as in `event_file`. `json_lines`: the same objects, each on a line. `influxdb`: InfluxDB's line protocol. `template`: the text of `body`.";
        "body" => body: Text, Absent("needed by `template`"), "\"{\\\"text\\\": \\\"{{description|json}}\\\"}\"",
            "The body for one event, with `encoding = \"template\"`.",
            "It has places for fields: `{{host}}`, `{{metric}}`. See [HTTP output](http-output.md#templates).";
        "tags" => tags: Texts, Toml("[\"host\"]"), "[\"host\", \"rack\"]",
            "Fields and attributes that are tags, with `encoding = \"influxdb\"`.";
        "precision" => precision: one_of::<Precision>(), Toml("\"ns\""), "\"s\"",
            "Unit of times, with `encoding = \"influxdb\"`.",
            "The query of `url` must name the same: `precision=s`. Without it InfluxDB expects `ns`.";
        "max_batch_events" => events_max: whole(1, 100_000), Depends("1 with `encoding = \"template\"`, otherwise 1000"), "50",
            "Most events of a request.",
            "The bodies of `template` are written one after the other. A request has about 1 MiB at most, or a single event.";
        "max_batch_delay" => delay_ms: duration(0, HOUR), Toml("\"1s\""), "\"100ms\"",
            "How long events wait for others to share a request.";
        "tls" => tls as Nested: Table(OutputTls), Depends("`{}` with `https://`"), "{ ca = \"/etc/staunch/ca.pem\" }",
            "Authorities and certificates of an `https` URL.";
    }
}

//! A source of Riemann's events by HTTP or as lines: what `check` refuses.

use crate::diagnostic::Source;
use crate::{Format, check};

/// Codes and messages of a source with these options.
fn mistakes(options: &str) -> Vec<String> {
    let text = format!(
        "[sources.in]\ntype = \"riemann\"\n{options}\n[outputs.o]\ntype = \"event_file\"\nfrom = [\"in\"]\n"
    );
    let (_, wrong) = check(Source { name: "t.toml", text: &text }, Format::Toml);
    wrong.iter().map(|wrong| format!("{} {}", wrong.code.word(), wrong.message)).collect()
}

#[test]
fn options_and_listeners_fit_the_encoding() {
    const TCP: &str = "listen = [\"tcp://127.0.0.1:5556\"]\nencoding = \"http\"\n";
    let table: [(&str, &[&str]); 13] = [
        (TCP, &[]),
        ("listen = [\"unix:///run/r\"]\nencoding = \"http\"", &[]),
        (&format!("{TCP}allowed_origins = [\"*\", \"https://a.example:1\"]"), &[]),
        (
            &format!("{TCP}allowed_origins = [\"a.example\"]"),
            &["C004 `a.example` in `allowed_origins` is not an origin"],
        ),
        (
            "allowed_origins = [\"*\"]",
            &["C022 `allowed_origins` has no effect without `encoding = \"http\"`"],
        ),
        ("encoding = \"http\"", &["C004 a source of events cannot use this listener"]),
        (
            "listen = [\"unixgram:///run/r\"]\nencoding = \"http\"",
            &["C004 a source of events cannot use this listener"],
        ),
        (
            &format!("{TCP}tls = {{ cert = \"c.pem\" }}"),
            &["C004 `tls` has no meaning with `encoding = \"http\"`"],
        ),
        (&format!("{TCP}max_message_bytes = \"1KiB\""), &[]),
        ("encoding = \"graphite\"\ntags = true", &[]),
        (&format!("{TCP}tags = true"), &["C022 `tags` has no effect without `encoding = \"graphite\"`"]),
        ("encoding = \"opentsdb\"", &["C004 a source of events cannot use this listener"]),
        ("listen = [\"tcp://127.0.0.1:0\"]\nencoding = \"opentsdb\"", &[]),
    ];
    for (options, want) in table {
        assert_eq!(mistakes(options), want, "{options}");
    }
}

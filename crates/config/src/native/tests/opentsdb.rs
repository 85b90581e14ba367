//! OpenTSDB as a source and as an output: what `check` refuses.

use crate::diagnostic::Source;
use crate::{Format, check};

/// Codes and messages of a source that listens there, and an output with that default tag.
fn mistakes(listen: &str, default_tag: &str) -> Vec<String> {
    let text = format!(
        "[sources.in]\ntype = \"opentsdb\"\nlisten = [\"{listen}\"]\n\
         [outputs.o]\ntype = \"opentsdb\"\nfrom = [\"in\"]\nto = [\"tcp://h:4242\"]\ndefault_tag = \"{default_tag}\"\n"
    );
    let (_, wrong) = check(Source { name: "t.toml", text: &text }, Format::Toml);
    wrong.iter().map(|wrong| format!("{} {}", wrong.code.word(), wrong.message)).collect()
}

#[test]
fn a_source_of_opentsdb_listens_on_streams_only() {
    for (listen, is_good) in [
        ("tcp://127.0.0.1:0", true),
        ("unix:///run/o", true),
        ("udp://127.0.0.1:0", false),
        ("unixgram:///run/o", false),
        ("unix-frames:///run/o", false),
    ] {
        let wrong = mistakes(listen, "k=v");
        let want: &[&str] = &["C004 a source of points cannot use this listener"];
        assert_eq!(wrong, if is_good { &[] } else { want }, "{listen}");
    }
}

#[test]
fn the_default_tag_is_one_that_opentsdb_takes() {
    for (tag, is_good) in [
        ("host=web-1.example.org", true),
        ("é=a/b_c", true),
        ("host", false),
        ("host=", false),
        ("=web1", false),
        ("host=web 1", false),
        ("host=a=b", false),
        ("", false),
    ] {
        let wrong = mistakes("tcp://127.0.0.1:0", tag);
        let want: &[&str] = &["C004 `default_tag` is no tag"];
        assert_eq!(wrong, if is_good { &[] } else { want }, "{tag:?}");
    }
}

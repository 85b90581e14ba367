//! Parts of lines by the spec's grammars.

use model::Reject;

use super::super::{FieldKind, LineKind, Parts, parts};

/// A line's parts as text: `name;tags #tags @rate [values|type rest, …] {fields}`; missing parts are omitted.
fn text(parts: &Parts<'_>) -> String {
    let show = |bytes: &[u8]| String::from_utf8_lossy(bytes).to_string();
    let mut out = show(parts.name());
    if !parts.name_tags().is_empty() {
        out += &format!(";{}", show(parts.name_tags()));
    }
    if !parts.tags().is_empty() {
        out += &format!(" #{}", show(parts.tags()));
    }
    if let Some(rate) = parts.rate() {
        out += &format!(" @{}", show(rate));
    }
    let bits: Vec<String> = parts
        .bits()
        .map(|bit| match bit.type_text {
            Some(word) => format!("{}|{}{}", show(bit.values), show(word), show(bit.rest)),
            None => show(bit.values),
        })
        .collect();
    let fields: Vec<String> = parts.fields().map(|field| format!("{:?}", field.kind)).collect();
    format!("{out} [{}] {{{}}}", bits.join(", "), fields.join(" "))
}

#[test]
fn lines_have_their_parts() {
    let table: &[(&[u8], &str)] = &[
        (b"a.b:1|c", "a.b [1|c] {}"),
        (b"a:1|c\r", "a [1|c] {}"),
        (b"a:1:2:3|ms|@0.5", "a @0.5 [1:2:3|ms] {Rate}"),
        (b"u:a:b|s", "u [a:b|s] {}"),
        (b"a;k=v;l=w:1|c", "a;k=v;l=w [1|c] {}"),
        (b"a;k=v:1|c|#dc:x", "a;k=v #dc:x [1|c] {Tags}"),
        (b"a|b:1|c", "a|b [1|c] {}"),
        // Every field, in any order, and an unknown one.
        (
            b"m:1|d|#a:b,c|@0.1|T12|c:in-1|e:it-false,cn-x|card:low|zz:9",
            "m #a:b,c @0.1 [1|d] {Tags Rate Time Container External Cardinality Other}",
        ),
        (b"m:1|c|#a:b|#c:d|@0.5|@0.1", "m #c:d @0.1 [1|c] {Tags Tags Rate Rate}"),
        (b"m:1|c|#", "m [1|c] {Tags}"),
        (b"m:1|c|", "m [1|c] {Other}"),
        // Node's several types; fields only after the tags.
        (b"a:1|c:2|g:3|ms", "a [1|c, 2|g, 3|ms] {}"),
        (b"a:1|c|@0.1:2|c|#t|@0.5", "a #t @0.5 [1|c|@0.1, 2|c] {Tags Rate}"),
        (b"a:1|c:2", "a [1|c, 2] {}"),
        (b"a:1|c:2|ms|T9", "a [1|c, 2|ms|T9] {}"),
        // Colons in DogStatsD fields do not separate bits.
        (b"m:1|c|c:abc", "m [1|c] {Container}"),
        (b"m:1|c|#a:b|@x:1", "m #a:b @x:1 [1|c] {Tags Rate}"),
        // Only node accepts these: no name, no type, blanks.
        (b":1|c", " [1|c] {}"),
        (b":1:2|c", " [1, 2|c] {}"),
        (b"a:1|", "a [1|] {}"),
        (b"a: 1 | c ", "a [ 1 | c ] {}"),
        // A line that begins like an event or a check is not a metric, but `_score` is one.
        (b"_score:1|c", "_score [1|c] {}"),
        (b"_sc:1|c", "_sc [1|c] {}"),
        (b"_e{5,4}:title|a|b:|#x,y|c:z", "title #x,y [] {Tags Container}"),
        (b"_sc|disk.full|2|#x|m:a:b", "disk.full #x [] {Tags Other}"),
    ];
    for (line, want) in table {
        let parts = parts(line).unwrap_or_else(|why| panic!("{why:?}: {}", String::from_utf8_lossy(line)));
        assert_eq!(text(&parts), *want, "{}", String::from_utf8_lossy(line));
        assert_eq!(parts.line(), *line);
        let kind = match want {
            want if want.starts_with("title") => LineKind::Event,
            want if want.starts_with("disk") => LineKind::Check,
            _ => LineKind::Samples,
        };
        assert_eq!(parts.kind(), kind);
    }
}

#[test]
fn lines_that_no_dialect_accepts_have_no_parts() {
    let table: &[(&[u8], Reject)] = &[
        (b"", Reject::EmptyLine),
        (b"\r", Reject::EmptyLine),
        (b"a", Reject::NoType),
        (b"a:", Reject::NoType),
        (b"a:1", Reject::NoType),
        (b"a|c", Reject::NoType),
        (b"a|#t:1", Reject::NoType),
        (b"_e{5,40}:title|text", Reject::BadEvent),
        (b"_e{5,3}:title|text", Reject::BadEvent),
        (b"_e{", Reject::BadEvent),
        (b"_sc|a", Reject::BadCheck),
        (b"_sc||0", Reject::BadCheck),
        (b"_sc|a|4", Reject::BadCheck),
    ];
    for (line, want) in table {
        assert_eq!(parts(line).err(), Some(*want), "{}", String::from_utf8_lossy(line));
    }
}

#[test]
fn several_values_are_iterated_one_by_one() {
    let table: &[(&[u8], &[&str])] = &[
        (b"a:1|c", &["1"]),
        (b"a:1::2|ms", &["1", "2"]),
        (b"a:::|ms", &[]),
        (b"a:|s", &[""]),
        (b"a:|c", &[""]),
        (b"u:a:b|s", &["a:b"]),
        (b"a:1|c:2|c", &["1", "2"]),
    ];
    for (line, want) in table {
        let parts = parts(line).expect("a line");
        let values: Vec<_> =
            parts.bits().flat_map(|bit| bit.values()).map(|value| String::from_utf8_lossy(value)).collect();
        assert_eq!(values, *want, "{}", String::from_utf8_lossy(line));
    }
}

#[test]
fn only_four_types_can_be_sampled() {
    for (line, want) in [
        ("a:1|c", true),
        ("a:1|ms", true),
        ("a:1|h\r", true),
        ("a:1| d ", true),
        ("a:1|g", false),
        ("a:1|s", false),
        ("a:1|kv", false),
        ("a:1|", false),
        ("a:1|c:2|ms", true),
        ("a:1|c:2|g", false),
        ("a:1|c:2", false),
        ("_sc|a|0", false),
        ("_e{1,1}:a|c", false),
    ] {
        assert_eq!(parts(line.as_bytes()).expect(line).is_sampled_type(), want, "{line}");
    }
}

#[test]
fn fields_are_recognised_by_their_prefix() {
    let line = b"a:1|c|c|card|cc:1|e|T|@|#|card:";
    let kinds: Vec<_> = parts(line).expect("a line").fields().map(|field| field.kind).collect();
    use FieldKind::*;
    assert_eq!(kinds, [Other, Other, Other, Other, Time, Rate, Tags, Cardinality]);
}

/// Found by mutation: each violated a property in the first versions.
#[test]
fn ambiguous_lines_keep_the_properties() {
    let lines: &[&[u8]] = &[
        b"a:9:low|h:some.host|:y|s:test|#tag1,tag2:t|@_e{2,3}:x|a|b",
        b"m:1|c|#b,a|@0.5\r|zz:",
        b"m:1|c|#a|@0m:1|@0.5|zz:1|card:low",
        b"g:=\r-5|g",
        b"x:1|c|@++x:1|9|c",
        b":1|ms|@0.5|T5320|msser:1|c",
        b";=:|#1|C",
        b";a:1|#e3$",
        b".host|k:aggKey|s:test|\r#tag1,tag2:test",
        b":use9e|#r-13c\r:2.25|g",
        b"x|hms|@0..host|k:aggKey|s:t\r|#tag1,tag2:test",
        b"gorets: 1|c|#url:http::1|c|#u",
        b"g;:333|g",
        b"m:1|#a:b|c",
    ];
    for line in lines {
        super::super::properties::check(line);
    }
}

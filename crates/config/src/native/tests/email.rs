//! Outputs of type `email`: what `check` refuses, and where.

use crate::diagnostic::Source;
use crate::{Format, check};

fn mistakes(options: &str) -> Vec<String> {
    let text = format!(
        "[sources.in]\ntype = \"riemann\"\nlisten = [\"tcp://127.0.0.1:5555\"]\n\
         [outputs.o]\ntype = \"email\"\nfrom = [\"in\"]\n{options}\n"
    );
    let (_, wrong) = check(Source { name: "t.toml", text: &text }, Format::Toml);
    let shown = wrong.iter().map(|wrong| {
        let marked = wrong.place.map_or("", |place| &text[place.start..place.end]);
        format!("{} {}: {} at {marked}", wrong.code.word(), wrong.message, wrong.label)
    });
    shown.collect()
}

#[test]
fn servers_addresses_and_templates_are_checked_where_they_are_written() {
    const TO: &str = "recipients = ['a@b']";
    for good in ["smtp = 'smtp://h'", "smtp = 'smtps://h:465/'", "smtp = 'smtp://[::1]:25'\nstarttls = true"]
    {
        assert_eq!(mistakes(&format!("{good}\n{TO}")), Vec::<String>::new(), "{good}");
    }
    assert_eq!(mistakes("smtp = 'smtp://h'\nfrom_event = true"), Vec::<String>::new());
    for server in [
        "smtps://h'",
        "smtp://h'\nstarttls = true",
        "smtp://localhost'",
        "smtp://127.0.0.2:587'",
        "smtp://[::1]'",
    ] {
        let with_login = format!("smtp = '{server}\nuser = 'u'\npassword = 'p'\n{TO}");
        assert_eq!(mistakes(&with_login), Vec::<String>::new(), "{server}");
    }
    for (options, want) in [
        (
            format!("smtp = 'h:25'\n{TO}"),
            "C004 `smtp` is no server: it begins with neither smtp:// nor smtps:// at 'h:25'",
        ),
        (
            format!("smtp = 'smtp://u:p@h'\n{TO}"),
            "C004 `smtp` is no server: user and password have options of their own: `user` and `password` at 'smtp://u:p@h'",
        ),
        (
            format!("smtp = 'smtps://h'\nstarttls = true\n{TO}"),
            "C004 `starttls` is for smtp://: a connection of smtps:// is encrypted from its beginning at true",
        ),
        (
            format!("smtp = 'smtp://h'\ntls = {{}}\n{TO}"),
            "C004 `tls` is for encrypted connections: write `starttls = true` beside it, or `smtps://` at {}",
        ),
        (
            format!("smtp = 'smtp://h'\nuser = 'u'\n{TO}"),
            "C006 `user` is set without `password`: `password` is missing at 'u'",
        ),
        (
            format!("smtp = 'smtp://h:587'\nuser = 'u'\npassword = 'p'\n{TO}"),
            "C045 `password` is sent in clear text: not encrypted, and not a loopback address at 'smtp://h:587'",
        ),
        (
            format!("smtp = 'smtp://h'\nsender = 'a b'\n{TO}"),
            "C004 `sender` is no address: name@example.org at 'a b'",
        ),
        (
            "smtp = 'smtp://h'\nrecipients = ['a@b', '@c']".to_owned(),
            "C004 `@c` is no address: name@example.org at '@c'",
        ),
        (
            "smtp = 'smtp://h'\nrecipients = ['a@b', 'ops']".to_owned(),
            "C044 the address `ops` has no domain: completed with the name of the machine at 'ops'",
        ),
        (
            format!("smtp = 'smtp://h'\nsubject = '{{{{host'\n{TO}"),
            "C004 `subject` has a mistake at `{{host`: `{{` without `}}` at '{{host'",
        ),
    ] {
        assert_eq!(mistakes(&options), [want], "{options}");
    }
    let missing = mistakes("smtp = 'smtp://h'");
    assert!(missing.len() == 1 && missing[0].starts_with("C006 `recipients` is missing"), "{missing:?}");
    for (number, is_good) in [(100, true), (101, false)] {
        let all = vec!["'a@b'"; number].join(", ");
        assert_eq!(
            mistakes(&format!("smtp = 'smtp://h'\nrecipients = [{all}]")).is_empty(),
            is_good,
            "{number}"
        );
    }
}

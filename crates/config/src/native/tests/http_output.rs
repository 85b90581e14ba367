//! Outputs of type `http`: what `check` refuses, and where.

use crate::diagnostic::Source;
use crate::plan::{OutputKind, UrlParts};
use crate::{Format, check};

#[test]
fn people_see_only_scheme_and_host_of_a_url() {
    for (url, shown) in [
        ("https://h:1/services/T0/x?y", "https://h:1"),
        ("http://h", "http://h"),
        ("http://h?a=b/c", "http://h"),
        ("", ""),
    ] {
        let plan = crate::plan::HttpOutputPlan { url: url.into(), ..Default::default() };
        assert_eq!(plan.shown_url(), shown);
    }
}

/// The plan's parts of the URL, and codes with messages, labels and the marked text.
fn checked(options: &str) -> (Option<UrlParts>, Vec<String>) {
    let text = format!(
        "[sources.in]\ntype = \"riemann\"\nlisten = [\"tcp://127.0.0.1:5555\"]\n\
         [outputs.o]\ntype = \"http\"\nfrom = [\"in\"]\n{options}\n"
    );
    let (plan, wrong) = check(Source { name: "t.toml", text: &text }, Format::Toml);
    let parts = plan.and_then(|plan| match &plan.outputs[0].kind {
        OutputKind::Http(http) => http.parts().ok(),
        _ => None,
    });
    let shown = wrong.iter().map(|wrong| {
        let marked = wrong.place.map_or("", |place| &text[place.start..place.end]);
        format!("{} {}: {} at {marked}", wrong.code.word(), wrong.message, wrong.label)
    });
    (parts, shown.collect())
}

#[test]
fn a_url_has_a_scheme_and_a_host_that_is_fixed() {
    for (url, to, target) in [
        ("http://h", "h:80", "/"),
        ("https://h/a?b={{host}}", "h:443", "/a?b={{host}}"),
        ("http://h:8086?db=a", "h:8086", "/?db=a"),
        ("http://[::1]:9/x", "::1:9", "/x"),
        ("http://[::1]/x", "::1:80", "/x"),
    ] {
        let (parts, wrong) = checked(&format!("url = \"{url}\""));
        assert_eq!(wrong, Vec::<String>::new(), "{url}");
        let parts = parts.expect("it is one");
        assert_eq!((format!("{}:{}", parts.to.host, parts.to.port), &*parts.target), (to.to_owned(), target));
    }
    for (url, label) in [
        ("h/x", "it begins with neither http:// nor https://"),
        ("http://u:p@h/", "user and password belong to a header: headers = { Authorization = \"Basic …\" }"),
        ("http://{{host}}/", "the host cannot depend on the event"),
        ("http://h/é", "path and query are ASCII without a fragment"),
        ("http://h/#a", "path and query are ASCII without a fragment"),
    ] {
        let (_, wrong) = checked(&format!("url = '{url}'"));
        assert_eq!(wrong, [format!("C004 `url` is no URL: {label} at '{url}'")], "{url}");
    }
    assert!(checked("url = \"http://h:0/\"").1[0].starts_with("C004 `url` is no URL"));
}

#[test]
fn templates_and_headers_are_checked_where_they_are_written() {
    const BODY: &str = "url = \"http://h/\"\nencoding = \"template\"\nbody";
    for (options, want) in [
        (
            "url = 'http://h/{{host'",
            "C004 `url` has a mistake at `{{host`: `{{` without `}}` at 'http://h/{{host'",
        ),
        (
            &*format!("{BODY} = '{{{{host|upper}}}}'"),
            "C004 `body` has a mistake at `{{host|upper}}`: there is no such filter at '{{host|upper}}'",
        ),
        (
            "url = \"http://h/\"\nheaders = { A = '{{}}' }",
            "C004 `headers` has a mistake at `{{}}`: this is no name of a field at { A = '{{}}' }",
        ),
        (
            "url = \"http://h/\"\nheaders = { 'a b' = 'c' }",
            "C004 `a b` is no name of a header: letters, digits and dashes at { 'a b' = 'c' }",
        ),
        (
            "url = \"http://h/\"\nheaders = { Host = 'c' }",
            "C004 the header `Host` cannot be set: it follows from the request at { Host = 'c' }",
        ),
        (
            "url = \"http://h/\"\nheaders = { A = \"b\\nc\" }",
            "C004 the header `A` contains a control character: perhaps a line feed at { A = \"b\\nc\" }",
        ),
        (
            "url = \"http://h/\"\nencoding = \"template\"",
            "C006 `body` is missing: `template` needs it at \"template\"",
        ),
        (
            "url = \"http://h/\"\ntls = {}",
            "C004 `tls` is for https: the URL begins with http://, so its connections are not encrypted at {}",
        ),
    ] {
        assert_eq!(checked(options).1, [want], "{options}");
    }
    for ignored in ["body = \"a\"", "tags = [\"a\"]", "precision = \"s\""] {
        let (_, wrong) = checked(&format!("url = \"http://h/\"\n{ignored}"));
        assert!(wrong.len() == 1 && wrong[0].starts_with("C022 "), "{wrong:?}");
    }
}

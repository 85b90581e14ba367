//! Which streams of a config run natively.

use super::*;

/// The streams of a config: line:column, name, and the function that is called.
fn parts(text: &str) -> Vec<String> {
    let files = BTreeMap::from([("riemann.config".to_owned(), text.to_owned())]);
    let host = Box::new(Folder { files, ..Folder::default() });
    let mut engine = Engine::load("riemann.config", host, Setup::DEFAULT).expect("a right config");
    let shown = |part: crate::riemann::parts::Part| {
        let calls = match part.calls {
            None => String::new(),
            Some(called) => format!(" calls {}", called.name.as_deref().unwrap_or("-")),
        };
        format!("{}:{} {}{calls}", part.at.line, part.at.column, part.name)
    };
    engine.parts().into_iter().map(shown).collect()
}

#[test]
fn streams_that_call_functions_of_the_config_are_named_with_their_places() {
    let table: &[(&str, &[&str])] = &[
        ("(streams (where (service \"a\") (rate 5)))", &["1:10 where", "1:31 rate"]),
        ("(streams (where (> (* 2 metric) 3) (rate 5)))", &["1:10 where calls -", "1:36 rate"]),
        (
            "(defn f [e] e)\n(streams (smap f) (smap #'f) (smap :host))",
            &["2:10 smap calls f", "2:19 smap calls f", "2:30 smap"],
        ),
        ("(streams (smap (partial assoc {}) (fn [e] e)))", &["1:10 function calls -", "1:10 smap"]),
        ("(streams (fn [e] e))", &["1:1 function calls -"]),
        // Below `by`, and within it once more.
        (
            "(streams (by :host (changed :state (by :service\n  (smap (fn [e] e))))))",
            &["1:10 by", "1:20 changed", "1:36 by", "2:3 smap calls -"],
        ),
        // A function that makes streams is written once.
        ("(defn f [n]\n  (rate n))\n(streams (f 1) (f 2))", &["2:3 rate"]),
    ];
    for (text, want) in table {
        assert_eq!(parts(text), *want, "{text}");
    }
}

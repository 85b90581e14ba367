use super::Running;

/// The notes of a config.
fn notes(config: &str) -> Vec<String> {
    let running = Running::new(config);
    let notes = &running.engine.declared().notes;
    notes.iter().map(|note| format!("{} {}", note.at, note.text)).collect()
}

#[test]
fn traps_of_configs_are_notes_with_their_place() {
    let table = [
        ("(streams (with :time (unix-time) prn))", "riemann.config:2:10 `(unix-time)` is called once"),
        ("(streams (with {:a 1 :time (long (unix-time))} prn))", "2:10 `(unix-time)` is called once"),
        ("(streams (default :id (rand-int 5) prn))", "2:10 `(rand-int)` is called once"),
        ("(streams\n  (rate 5 (default :ttl 60 prn)))", "3:11 `default :ttl` comes too late below `rate`"),
        ("(streams (coalesce 5 (smap folds/sum (default {:ttl 60} prn))))", "below `coalesce`"),
        (
            "(streams (smap (fn [e] (where (> metric 5) prn))))",
            "the function of `smap` makes a new `where` stream",
        ),
        ("(streams (smapcat #(rate 5 prn) prn))", "the function of `smapcat` makes a new `rate` stream"),
        ("(streams (fn [e] ((index) e)))", "2:18 `(index)` is called for each event here"),
        (
            "(periodically-expire 5)\n(streams (where (tagged \"x\") (expired prn)))",
            "3:30 events that expire do not have the field `tags`",
        ),
        (
            "(periodically-expire 5 {:keep-keys [:host :service :tags]})\n(streams (where (= \"eu\" (:dc event)) (expired prn)))",
            "the field `dc`, which a stream around this `expired` tests: add `:dc` to `:keep-keys`",
        ),
        ("(periodically-expire 5)\n(streams (tagged \"x\" (expired prn)))", "do not have the field `tags`"),
    ];
    for (config, expected) in table {
        let notes = notes(config);
        assert!(notes.len() == 1 && notes[0].contains(expected), "{config}: {notes:?}");
    }
}

#[test]
fn what_only_looks_like_a_trap_is_no_note() {
    let configs = [
        "(streams (with :time 5 prn) (with {:a 1} prn))",
        "(streams (smap (fn [e] (assoc e :time (unix-time))) prn))",
        "(streams (default :ttl 60 (rate 5 (default :ttl 10 prn))))",
        "(streams (rate 5 (default :state \"ok\" prn)))",
        "(streams (smap (fn [e] (common/match #\"a\" (:host e))) prn))",
        "(streams (smap (fn [e] ((where (> metric 5) prn) e) e) prn))",
        "(let [index (index)] (streams index (fn [e] (index e))))",
        "(periodically-expire 5)\n(streams (where (service \"a\") (expired prn)))",
        "(periodically-expire 5)\n(streams (where (not (tagged \"x\")) (expired prn)))",
        "(periodically-expire 5)\n(streams (where (tagged \"x\") prn (else (expired prn))))",
        "(periodically-expire 5 {:keep-keys [:host :service :tags]})\n(streams (where (tagged \"x\") (expired prn)))",
        "(periodically-expire 5 {:keep-keys :all})\n(streams (where (tagged \"x\") (expired prn)))",
        "(streams (where (tagged \"x\") (expired prn)))",
    ];
    for config in configs {
        assert_eq!(notes(config), [""; 0], "{config}");
    }
}

#[test]
fn traps_of_included_files_have_their_file() {
    let files = [("more.config", "(streams (with :time (unix-time) prn))")];
    let running = Running::load("(include \"more.config\")", &files).expect("it is right");
    let notes = &running.engine.declared().notes;
    assert_eq!(notes.iter().map(|note| note.at.to_string()).collect::<Vec<_>>(), ["more.config:1:10"]);
}

//! What configs declare.

use super::{Running, mistakes};
use crate::riemann::declared::{Listen, Output, OutputNumber, Server, Transport};

fn servers(config: &str) -> Vec<String> {
    let running = Running::new(config);
    let shown = |server: &Server| {
        let transport = match server.transport() {
            Transport::Tcp => "tcp",
            Transport::Udp => "udp",
        };
        format!("{} {transport} {}", server.function(), server.listen())
    };
    running.engine.declared().servers.iter().map(|placed| shown(&placed.what)).collect()
}

#[test]
fn servers_have_the_standard_addresses_unless_options_say_otherwise() {
    let table = [
        ("(tcp-server)", "tcp-server tcp 127.0.0.1:5555"),
        ("(tcp-server {:host \"0.0.0.0\" :port 5})", "tcp-server tcp 0.0.0.0:5"),
        ("(tcp-server :host \"::1\" :port 5)", "tcp-server tcp [::1]:5"),
        ("(tcp-server :tls? true :key \"k\" :cert \"c\" :ca-cert \"a\")", "tcp-server tcp 127.0.0.1:5554"),
        ("(udp-server :max-size 65535)", "udp-server udp 127.0.0.1:5555"),
        ("(ws-server)", "ws-server tcp 127.0.0.1:5556"),
        ("(sse-server)", "sse-server tcp 127.0.0.1:5558"),
        ("(graphite-server)", "graphite-server tcp 127.0.0.1:2003"),
        ("(graphite-server :protocol :udp)", "graphite-server udp 127.0.0.1:2003"),
        ("(opentsdb-server)", "opentsdb-server tcp 127.0.0.1:4242"),
    ];
    for (config, expected) in table {
        assert_eq!(servers(config), [expected], "{config}");
    }
}

#[test]
fn two_servers_with_the_same_port_are_an_error_that_names_both_places() {
    let said = mistakes("(tcp-server)\n\n(ws-server :port 5555)");
    assert!(said.contains("riemann.config:4:1"), "{said}");
    assert!(said.contains("127.0.0.1:5555 is that of the tcp-server in riemann.config:2:1"), "{said}");
    assert_eq!(servers("(tcp-server) (udp-server)").len(), 2, "TCP and UDP have ports of their own");
}

#[test]
fn options_are_checked_when_the_config_is_loaded() {
    let table = [
        ("(tcp-server :port 70000)", "from 0 to 65535"),
        ("(tcp-server :port \"5555\")", "a whole number"),
        ("(tcp-server :host 1)", ":host must be a text"),
        ("(tcp-server :tls? true :key \"k\")", ":cert is missing"),
        ("(tcp-server 5555)", "takes a map, or keys with values"),
        ("(graphite-server :protocol :sctp)", ":tcp or :udp"),
        ("(ws-server :allowed-origins [1])", ":allowed-origins must be a list of texts"),
        ("(periodically-expire 0)", "must be over zero"),
        ("(periodically-expire 5 {:keep-keys [1]})", "a list of keywords"),
        ("(periodically-expire 5) (periodically-expire 7)", "called before, in riemann.config:2:1"),
        ("(instrumentation {:interval 0})", ":interval must be over zero"),
        ("(load-plugin \"x\")", "no Java archives"),
        ("(kafka-consumer {})", "kafka-consumer is not built yet"),
        ("(def twitter (twilio {:from \"a\"}))", ":key is missing"),
        ("(kafka {})", "kafka is not built yet"),
        ("((mailer {:host \"h\"}) 1)", "address of a recipient"),
        ("((mailer {:host \"h\"}))", "needs recipients"),
        ("(mailer {:host 1})", ":host must be a text"),
    ];
    for (config, expected) in table {
        let said = mistakes(config);
        assert!(said.contains(expected), "{config}: {said}");
        assert!(said.contains("riemann.config:2:"), "{config}: {said}");
    }
}

#[test]
fn wrong_options_and_calls_without_effect_are_notes() {
    let config =
        "(tcp-server :prot 5555)\n(repl-server)\n(logging/init :file \"x\" :console true)\n(load-plugins)";
    let running = Running::new(config);
    let notes = &running.engine.declared().notes;
    let shown: Vec<String> = notes.iter().map(|note| format!("{} {}", note.at, note.text)).collect();
    assert_eq!(
        shown,
        [
            "riemann.config:2:1 tcp-server has no option :prot: did you mean :port?",
            "riemann.config:3:1 repl-server is not opened: Staunch has no REPL",
            "riemann.config:4:1 the files of logging/init are not written: Staunch logs to standard error",
        ]
    );
}

#[test]
fn functions_that_declare_can_be_called_only_while_the_config_is_loaded() {
    for call in [
        "(tcp-server)",
        "(streams prn)",
        "(periodically-expire)",
        "(graphite {:path :host})",
        "(staunch/output \"a\")",
    ] {
        let mut running = Running::new(&format!("(streams (fn [e] {call}))"));
        let out = running.run("a").out();
        assert!(out.contains("only while the config is loaded"), "{call}: {out}");
    }
}

#[test]
fn equal_outputs_are_one() {
    let config =
        "(def a (graphite {:host \"g\" :path :service})) (def b (graphite {:host \"g\" :path :host}))
        (def c (graphite {:host \"h\" :path :host})) (streams a b c (staunch/output \"n\"))";
    let mut running = Running::new(config);
    let outputs: Vec<Output> =
        running.engine.declared().outputs.iter().map(|placed| placed.what.clone()).collect();
    assert_eq!(outputs.len(), 3, "{outputs:?}");
    assert_eq!(outputs[2], Output::Named("n".into()));
    assert_eq!(
        running.run("s,m1t2,^x").effects(),
        ["0 s 1 2", "0 x 1 2", "1 x 1 2", &format!("{} s,m1t2,^x", OutputNumber(2).0)]
    );
    assert_eq!(Listen { host: "a".into(), port: 1 }.to_string(), "a:1");
}

#[test]
fn included_files_are_found_beside_the_file_that_includes_them() {
    let files = [
        ("a/b.clj", "(include \"c.clj\") (def seen (str seen \"b\"))"),
        ("a/c.clj", "(def seen (str seen \"c\"))"),
        ("d/1.clj", "(def seen (str seen 1))"),
        ("d/e/2.config", "(def seen (str seen 2))"),
        ("my/own_names.clj", "(ns my.own-names) (defn twice [x] (* 2 x))"),
    ];
    let config = "(def seen \"\") (include \"a/b.clj\") (include \"d\") (require '[my.own-names :as own]) (prn seen (own/twice 4))";
    let running = Running::load(config, &files).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(running.out(), "\"cb12\" 8\n");
    let said = mistakes("(include \"none.clj\")");
    assert!(said.contains("riemann.config:2:1") && said.contains("none.clj"), "{said}");
}

#[test]
fn taps_and_tests_of_a_config_change_nothing_when_it_runs() {
    let config =
        "(streams (tap :all (io (fn [e] (print (:service e)))))) (tests (deftest x (is (no-such-name))))";
    assert_eq!(Running::new(config).run("a").out(), "a");
}

#[test]
fn macros_of_streams_work_in_namespaces_that_refer_only_to_them() {
    let file = "(ns my.rules (:require [riemann.streams :refer [where by changed-state]]))
        (defn rules [child] (where (> metric 1) (by :host (changed-state child))))";
    let running = Running::load(
        "(require '[my.rules :refer [rules]]) (streams (rules prn))",
        &[("my/rules.clj", file)],
    );
    running.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_misspelt_stream_is_one_mistake_with_the_nearest_name() {
    let said = mistakes("(streams (wher (service \"x\") (raet 5 prn)))");
    assert!(said.contains("did you mean `where`?") && said.contains("did you mean `rate`?"), "{said}");
    assert!(!said.contains("service"), "its fields are none: {said}");
    assert!(mistakes("(streams (service \"x\"))").contains("`service` is not defined"));
}

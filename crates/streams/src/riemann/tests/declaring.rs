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
        ("(mailer {:host \"h\" :user \"u\"})", ":user needs :pass"),
        ("(tcp-server {:host \"tcp://a\"})", ":host must be a name or an IP address, not \"tcp://a\""),
        ("(graphite {:host \"10.0.0.1:2003\"})", ":host must be a name or an IP address"),
        ("(graphite {:host \"\"})", ":host must be a name or an IP address"),
    ];
    for (config, expected) in table {
        let said = mistakes(config);
        assert!(said.contains(expected), "{config}: {said}");
        assert!(said.contains("riemann.config:2:"), "{config}: {said}");
    }
}

#[test]
fn wrong_options_and_calls_without_effect_are_notes() {
    let config = "(tcp-server :prot 5555)\n(repl-server)\n(logging/init :file \"x\" :console true)\n(load-plugins) (streams prn)";
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
fn what_has_no_effect_is_a_note() {
    let table = [
        ("(tcp-server :so-backlog 5) (streams prn)", "2:1 tcp-server: :so-backlog has no effect"),
        ("(streams (graphite {:pool-size 5}))", "2:10 graphite: :pool-size has no effect"),
        (
            "(streams (async-queue! :a {:queue-sise 5} prn))",
            "2:10 async-queue! has no option :queue-sise: did you mean :queue-size?",
        ),
        (
            "(streams prn) (instrumentation {})",
            "2:15 instrumentation was called before, in riemann.config:1:1",
        ),
        ("(def x 1)", "1:1 the config has no (streams …)"),
        (
            "(streams (pagerduty \"key\"))",
            "2:1 what is to get the events here is a map of streams: take one of them, by :trigger",
        ),
        ("(streams 5)", "2:1 what is to get the events here is 5, which is neither a stream nor a function"),
        ("(streams (sdo nil))", "2:10 what is to get the events here is nil, which is neither"),
        ("(streams (where (state \"ok\") \"text\"))", "2:10 what is to get the events here is \"text\""),
        ("(streams (by :host (sdo nil)))", "2:20 what is to get the events here is nil"),
        (
            "(streams (fn [e] (where (state \"x\") prn)))",
            "2:10 this function makes a new `where` stream for each event",
        ),
        ("(streams (by :host #(rate 5 prn)))", "2:20 this function makes a new `rate` stream for each event"),
        ("(streams (changed-state :init \"ok\" prn))", "2:10 the options of `changed-state` are a map"),
    ];
    for (config, expected) in table {
        let running = Running::new(config);
        let notes: Vec<String> =
            running.engine.declared().notes.iter().map(|note| format!("{} {}", note.at, note.text)).collect();
        assert!(
            notes.iter().any(|note| note.contains(&format!("riemann.config:{expected}"))),
            "{config}: {notes:?}"
        );
    }
    let quiet = "(streams (by :host prn :service #(prn %)) (changed-state {:init \"ok\"} prn) (async-queue! :a {:queue-size 1} prn))";
    assert_eq!(Running::new(quiet).engine.declared().notes, []);
    // A mistake does not hide them.
    let error = Running::load("(tcp-server :prot 5)\n(streams (smap (fn [e] (rate 5 prn))))\n(strems)", &[]);
    let notes = error.map(|_| ()).expect_err("it has a mistake").notes;
    let notes: Vec<String> = notes.iter().map(|(at, _)| at.to_string()).collect();
    assert_eq!(notes, ["riemann.config:2:1", "riemann.config:3:10"]);
}

#[test]
fn functions_that_declare_can_be_called_only_while_the_config_is_loaded() {
    for call in ["(tcp-server)", "(streams prn)", "(periodically-expire)"] {
        let mut running = Running::new(&format!("(streams (fn [e] {call}))"));
        let out = running.run("a").out();
        assert!(out.contains("only while the config is loaded"), "{call}: {out}");
    }
}

/// Forms that make an output, or the index, and use it.
const MAKING: &[&str] = &[
    "(graphite {:path :host})",
    "(staunch/output \"a\")",
    "(index)",
    "(slack {:account \"a\" :token \"b\"} {:channel \"c\"})",
    "((mailer {:host \"h\"}) \"a@b\")",
    "(:trigger (pagerduty \"key\"))",
    "(influxdb {:host \"h\"})",
];

#[test]
fn outputs_in_forks_are_declared_when_the_config_is_loaded() {
    for making in MAKING {
        for around in
            ["(by :host $)", "(changed-state {:init \"ok\"} $)", "(by-builder [h :host] (with :x h $))"]
        {
            for outer in ["$", "(by :service $)", "(where (service #\"a\") $)"] {
                let config = format!("(streams {})", outer.replace('$', &around.replace('$', making)));
                let mut running = Running::new(&config);
                let declared = running.engine.declared();
                assert_eq!(declared.outputs.len(), usize::from(*making != "(index)"), "{config}");
                assert_eq!(declared.notes.len(), 0, "{config}: {:?}", declared.notes);
                let nodes = running.engine.nodes();
                running.run("a,^h,:bad,m1t1 a,^i,:bad,m1t1");
                assert_eq!(running.out(), "", "{config}");
                match running.engine.index() {
                    Some(index) => assert_eq!(index.len(), 2, "{config}"),
                    None => assert_eq!(running.effects().len(), 2, "{config}"),
                }
                assert_eq!(running.engine.declared().outputs.len(), usize::from(*making != "(index)"));
                assert!(running.engine.nodes() >= nodes, "{config}: the nodes of the trial are gone");
            }
        }
    }
}

#[test]
fn outputs_that_the_load_did_not_see_are_refused_with_the_reason() {
    for making in MAKING {
        let config = format!("(streams (fn [e] {making}))");
        let mut running = Running::new(&config);
        let out = running.run("a").out();
        assert!(out.contains("outputs are made while the config is loaded"), "{config}: {out}");
        assert!(running.effects().is_empty() && running.engine.declared().outputs.is_empty());
        // One that was declared is found.
        let mut running = Running::new(&format!("(def made {making}) {config}"));
        assert_eq!(running.run("a,m1t1").out(), "", "{config}");
    }
}

#[test]
fn mistakes_in_forks_are_found_when_the_config_is_loaded() {
    let table = [
        ("(streams (by :host (rate \"x\" prn)))", "(rate dt c…): dt must be a number, not \"x\""),
        (
            "(streams (changed-state (where true (by :service (slack {:account 1} {})))))",
            ":account must be a text",
        ),
        ("(streams (by :host (streams prn)))", "only while the config is loaded"),
    ];
    for (config, expected) in table {
        let said = mistakes(config);
        assert!(said.contains(expected) && said.contains("riemann.config:2:"), "{config}: {said}");
    }
    // Another key may be right.
    let config = "(streams (by-builder [h :host] (scale (Integer/parseInt h) prn)))";
    let running = Running::new(config);
    let notes: Vec<String> = running.engine.declared().notes.iter().map(|note| note.text.clone()).collect();
    assert!(notes.len() == 1 && notes[0].contains("a trial with the key \"trial\" threw"), "{notes:?}");
}

#[test]
fn a_trial_of_a_fork_changes_nothing_else() {
    let config =
        "(declare later) (streams (by :host (do (println \"made\") (riemann.pubsub/subscribe! nil \"c\" prn)
        (riemann.time/every! 1 (fn [] (println \"tick\"))) (info \"fork\") (later))))
        (defn later [] (counter (fn [e] (println (:metric e)))))";
    let mut running = Running::new(config);
    assert_eq!((running.out(), running.engine.next_due_us()), (String::new(), None));
    assert_eq!(running.run("m2t0").out(), "made\nInfo: fork2\n");
    // Streams that make themselves without an end are made once for each event only.
    Running::new("(declare f) (defn f [] (by :host (f) (f))) (streams (f))");
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
fn files_of_a_config_require_riemanns_namespaces_by_their_names() {
    let file = "(ns my.alerts (:require [riemann.email :refer [mailer]] [riemann.slack :as s] [riemann.service]
          [riemann.graphite :refer [graphite]] [riemann.pagerduty :refer :all] [clojure.edn :as edn] [clojure.pprint :refer [pprint]])
          (:use riemann.client [riemann.transport.tcp :only [tcp-server]]))
        (def email (mailer {:host \"h\"})) (def page (:trigger (pagerduty \"key\")))
        (def chat (s/slack {:account \"a\" :token \"b\"} {:channel \"c\"}))
        (pprint (edn/read-string \"{:a [1]}\"))";
    let config = "(require '[my.alerts :as alerts]) (streams alerts/page alerts/chat (alerts/email \"a@b\"))";
    let running = Running::load(config, &[("my/alerts.clj", file)]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((running.engine.declared().outputs.len(), running.out()), (3, "{:a [1]}\n".to_owned()));
}

#[test]
fn all_namespaces_that_are_not_there_are_named_at_their_form_in_their_file() {
    let file = "\n(ns my.alerts (:require [clj-http.client :as http] [riemann.slack :refer [slack slak]]\n  [my.none])
        (:use [clojure.java.shell :only [sh]]))\n(slack 1)";
    let error = Running::load("(require '[my.alerts :as alerts])", &[("my/alerts.clj", file)]);
    let said = error.map(|_| ()).expect_err("it has mistakes").to_string();
    for expected in [
        "my/alerts.clj:2:1: there is no namespace `clj-http.client`: Staunch has no clj-http: use an output of type `http`",
        "my/alerts.clj:2:1: riemann.slack has no `slak`; did you mean `slack`?",
        "my/alerts.clj:2:1: there is no namespace `my.none`: my/none.clj: ",
        "my/alerts.clj:2:1: there is no namespace `clojure.java.shell`: a config starts no processes",
    ] {
        assert!(said.contains(expected), "{said}");
    }
    assert!(!said.contains("java.io"), "{said}");
}

#[test]
fn a_misspelt_stream_is_one_mistake_with_the_nearest_name() {
    let said = mistakes("(streams (wher (service \"x\") (raet 5 prn)))");
    assert!(said.contains("did you mean `where`?") && said.contains("did you mean `rate`?"), "{said}");
    assert!(!said.contains("service"), "its fields are none: {said}");
    assert!(mistakes("(streams (service \"x\"))").contains("`service` is not defined"));
    for (test, near) in
        [("(sevice \"x\")", "service"), ("(= sate \"x\")", "state"), ("(> metrik 1)", "metric")]
    {
        let said = mistakes(&format!("(streams (where {test} prn))"));
        assert!(said.contains(&format!("did you mean `{near}`?")), "{said}");
    }
    assert!(mistakes("(streams (email \"a@b\"))").contains("define it: `(def email (mailer"));
}

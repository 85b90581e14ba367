//! Events and time.

use std::sync::Arc;

use super::Running;
use crate::event::{Event, Field};
use crate::index::SearchLimits;
use crate::nodes::tests::rig;
use crate::query::Query;
use crate::riemann::surroundings::REINJECTED_MAX;
use crate::riemann::watching::{EVENT_STEPS_MAX, PATTERNS_MAX, WATCHES_MAX, WatchError};
use crate::value::Value;

impl Running {
    /// The events of the index that a query finds, sorted.
    fn found(&mut self, query: &str) -> Vec<String> {
        let limits = SearchLimits { results_max: 1_000, steps_max: 1_000_000 };
        let mut search = self.engine.search(&parsed(query), limits).expect("it has an index");
        let mut found = Vec::new();
        self.engine.continue_search(&mut search, u64::MAX, &mut found);
        let mut shown: Vec<String> = found.into_iter().map(|event| rig::show(&Value::Event(event))).collect();
        shown.sort();
        shown
    }
}

fn parsed(query: &str) -> Arc<Query> {
    Arc::new(Query::new(query).unwrap_or_else(|error| panic!("{query}: {error}")))
}

#[test]
fn the_index_has_the_latest_event_of_each_host_and_service() {
    let mut running = Running::new("(streams (index))");
    running.run("a,m1t1,^x a,m2t2,^x b,m3t3,^x b,m4t4,^x,:expired");
    assert_eq!(running.found("true"), ["a,m2t2,^x"]);
    assert!(running.run("c,m1").out().contains("cannot index event with no time"));
}

#[test]
fn there_is_one_index_however_often_it_is_called() {
    let mut running = Running::new("(let [a (index) b (index)] (streams a (update-index b)))");
    running.run("a,t1");
    assert_eq!(running.found("true").len(), 1);
}

#[test]
fn without_an_index_a_query_is_an_error() {
    let running = Running::new("(streams prn)");
    let limits = SearchLimits { results_max: 1, steps_max: 1 };
    assert!(running.engine.search(&parsed("true"), limits).is_none());
}

#[test]
fn a_top_level_stream_that_throws_does_not_keep_events_from_the_others() {
    let mut running =
        Running::new("(streams (where (> metric 1) prn))\n(streams (fn [e] (print (:service e))))");
    let out = running.run("a,t1").out();
    assert!(out.contains("athrew: "), "{out}");
    let said = "Warn: where (riemann.config:2:10) threw on service \"a\": cannot compute with nil";
    assert!(out.starts_with(said), "{out}");
    assert!(out.contains("in the stream of riemann.config:2:1"), "{out}");
    assert_eq!(running.engine.figures().threw, 1);
    assert_eq!(running.engine.figures().streamed, 1);
}

#[test]
fn the_log_names_the_stream_that_threw_with_its_place_and_the_event() {
    let table = [
        (
            "(streams (sdo (where (> metric 1) prn)))",
            "where (riemann.config:2:15) threw on host \"h\" service \"a\": cannot compute with nil",
        ),
        ("(streams (by :host (where (> metric 1) prn)))", "where (riemann.config:2:20) threw on host \"h\""),
        (
            "(streams (by :host (scale 2 (fn [_])) (where true (with :metric \"x\" (scale 2 (fn [_]))))))",
            "scale threw on host \"h\" service \"a\": cannot compute with \"x\"",
        ),
        ("(streams (sdo (fn [e] (/ 1 0))))", "a function (riemann.config:2:23) threw on host \"h\""),
        (
            "(streams (sdo (smap (fn [e] (/ 1 0)) prn)))",
            "smap (riemann.config:2:15, in riemann.config:2:29) threw on",
        ),
        (
            "(streams (fixed-event-window 1 (smap (fn [es] (/ 1 0)))))",
            "threw on events, the first of host \"h\" service \"a\": ",
        ),
    ];
    for (config, said) in table {
        let mut running = Running::new(config);
        let out = running.run("a,^h").out();
        assert!(out.starts_with("Warn: ") && out.contains(said), "{config}: {out}");
        let place = running.engine.threw_lately().expect("it threw now").to_owned();
        assert!(out.starts_with(&format!("Warn: {place} threw on ")), "{config}: {place}");
        running.run("+61");
        assert_eq!(running.engine.threw_lately(), None, "{config}");
    }
}

#[test]
fn expired_events_leave_the_index_and_go_through_the_streams() {
    let config = "(periodically-expire 5 {:keep-keys [:host :service :tags]})
        (streams (index) (expired (fn [e] (print (:service e) (:time e) (:state e) (:metric e) (:tags e) \";\"))))";
    let mut running = Running::new(config);
    running.run("a,m1t0l3,^x,#p b,m1t0l7,^x c,m1t0,^x");
    assert_eq!(running.run("+5").out(), "a 5 expired nil [p] ;");
    assert_eq!(running.run("+5").out(), "b 10 expired nil nil ;");
    assert_eq!(running.run("+50").out(), "", "60 seconds are not over");
    assert_eq!(running.run("+5").out(), "c 65 expired nil nil ;");
    assert_eq!(running.found("true"), [""; 0]);
    assert_eq!(running.engine.figures().expired, 3);
}

#[test]
fn expired_events_have_only_the_fields_that_are_kept() {
    let table = [
        ("", "(host service state time)"),
        ("{:keep-keys [:service :tags :dc]}", "(dc service state time)"),
        ("{:keep-keys :all}", "(dc description host metric service state tags time ttl)"),
    ];
    for (keep, want) in table {
        let shown = "(fn [e] (print (sort (map name (keys e)))))";
        let config = format!("(periodically-expire 5 {keep}) (streams (index) (expired {shown}))");
        assert_eq!(Running::new(&config).run("a,t1l1,^x,dc=eu +10").out(), want, "{keep}");
    }
    let config = "(streams (fn [e] (print (sort (map name (keys (common/expire e)))))))";
    assert_eq!(Running::new(config).run("a,t1,m1").out(), "(service state time)");
}

#[test]
fn a_sweep_of_many_events_is_done_in_slices() {
    let mut running = Running::new(
        "(periodically-expire 5) (let [n (atom 0)] (def n n) (streams (index) (expired (fn [_] (swap! n inc)))))",
    );
    let events: Vec<String> = (0..2_000).map(|number| format!("s{number},m1t0l1")).collect();
    running.run(&events.join(" ")).run("+5");
    assert_eq!(running.engine.figures().expired, 2_000);
    assert!(
        matches!(running.engine.var("riemann.config", "n"), Some(Value::Atom(n)) if rig::show(&n.get()) == "2000")
    );
}

#[test]
fn reinjected_events_go_through_all_streams_after_the_event_at_hand() {
    let config =
        "(streams (where (service \"a\") (with :service \"b\" reinject)) (fn [e] (print (:service e))))";
    assert_eq!(Running::new(config).run("a").out(), "ab");
}

#[test]
fn a_stream_that_reinjects_what_it_gets_ends_at_a_limit() {
    let mut running = Running::new("(streams reinject)");
    running.run("a");
    assert_eq!(running.engine.figures().not_reinjected, 1);
    assert_eq!(running.engine.figures().streamed, 1 + REINJECTED_MAX as u64);
    running.run("a");
    assert_eq!(running.engine.figures().not_reinjected, 2, "the next event has the limit anew");
}

#[test]
fn subscribers_get_what_is_published_and_what_is_indexed() {
    let config = "(subscribe \"index\" (fn [e] (print \"i\" (:service e) \"\")))
        (subscribe :up (fn [e] (print \"u\" (:service e) \"\")))
        (streams (index) (where (state \"up\") (publish :up)))";
    assert_eq!(Running::new(config).run("a,t1,:up b,t1").out(), "i a u a i b ");
}

#[test]
fn functions_look_into_the_index() {
    let config = "(def i (index))
        (streams i (fn [e]
          (print (:metric (riemann.index/lookup (:index @core) \"x\" \"a\"))
                 (count (riemann.index/search (:index @core) '(and (= :host \"x\") (:like \"%\" :service))))
                 (count (index/search i (riemann.query/ast \"metric > 1 and service ~= \\\"^b\\\"\"))) \";\")))";
    assert_eq!(Running::new(config).run("a,m1t1,^x b,m2t1,^x").out(), "1 1 0 ;1 2 1 ;");
}

#[test]
fn the_index_is_a_sequence_of_its_events() {
    let config = "(def i (index))
        (streams i (fn [e] (print (sort (map :service i)) (count (seq (:index @core))) (some :metric i) \";\")))";
    assert_eq!(Running::new(config).run("a,m1t1 b,m2t1").out(), "(a) 1 1 ;(a b) 2 1 ;");
    assert_eq!(Running::new("(def i (index)) (streams (fn [e] (print (seq i))))").run("a,t1").out(), "nil");
}

#[test]
fn delete_from_index_deletes_by_key_or_by_fields() {
    let config =
        |delete: &str| format!("(def i (index)) (streams (where (state \"gone\") {delete} (else i)))");
    let events = "a,t1,^x b,t1,^x a,t1,^y a,t1,^x,:gone";
    assert_eq!(
        Running::new(&config("(delete-from-index)")).run(events).found("true"),
        ["a,t1,^y", "b,t1,^x"]
    );
    assert_eq!(Running::new(&config("(delete-from-index :host)")).run(events).found("true"), ["a,t1,^y"]);
    assert_eq!(
        Running::new(&config("(delete-from-index [:service])")).run(events).found("true"),
        ["b,t1,^x"]
    );
}

#[test]
fn tasks_run_at_their_times_until_they_are_cancelled() {
    let config = "(def task (every! 2 1 (fn [] (print \"e\" (unix-time) \"\"))))
        (once! 4 (fn [] (print \"o\") (riemann.time/cancel task)))
        (riemann.time/after! 3 (fn [] (print \"a\")))";
    let mut running = Running::new(config);
    assert_eq!(running.run("+10").out(), "e 1 e 3 ao");
    assert_eq!(running.engine.next_due_us(), None);
}

#[test]
fn a_deferred_task_runs_later_and_leaves_out_the_run_that_was_due() {
    let config = "(def task (every! 2 (fn [] (print (unix-time) \"\")))) (streams (fn [e] (riemann.time/defer task 5)))";
    assert_eq!(Running::new(config).run("+3 a +10").out(), "2 8 10 12 ");
}

#[test]
fn a_parser_function_changes_events_before_the_streams_see_them() {
    let config =
        "(graphite-server :parser-fn (fn [e] (if (= \"throw\" (:service e)) (/ 1 0) (when (not= \"drop\" (:service e)) (assoc e :host \"p\")))))
        (streams (fn [e] (print (:host e) (:service e) \"\")))";
    let mut running = Running::new(config);
    let crate::riemann::declared::Server::Graphite { parser, .. } =
        running.engine.declared().servers[0].what.clone()
    else {
        panic!("it is one")
    };
    let mut batch = model::EventsBuilder::default();
    for service in ["keep", "drop", "throw"] {
        let mut event = batch.event();
        event.plain_text(model::TextField::Service, service);
        event.finish();
    }
    for event in batch.view().iter() {
        let threw = running.engine.push_parsed(event, &parser).is_err();
        assert_eq!(threw, event.service() == Some("throw"));
    }
    let out = running.out();
    assert!(
        out.starts_with("p keep Warn: a :parser-fn (riemann.config:")
            && out.contains(") threw on service \"throw\": "),
        "{out}"
    );
    assert_eq!(running.engine.figures().threw, 1);
}

#[test]
fn figures_of_streams_and_index_are_events_unless_they_are_switched_off() {
    let config = "(instrumentation {:interval 2}) (streams (index) (where (service #\"^riemann\") (fn [e] (print (:service e) (:metric e) (:ttl e) \";\"))))";
    assert_eq!(
        Running::new(config).run("a,t1 +2").out(),
        "riemann streams rate 0.5 4.0 ;riemann index size 1 4.0 ;"
    );
    let off = format!("{config} (instrumentation {{:enabled? false}})");
    assert_eq!(Running::new(&off).run("a,t1 +2").out(), "");
}

#[test]
fn exceptions_past_the_limit_of_a_second_are_counted_in_the_log() {
    let mut running = Running::new(
        "(streams (fn [e] (throw (Exception. \"x\"))) (where true (fn [e] (throw (Exception. \"y\")))))",
    );
    running.run(&"a ".repeat(20));
    let out = running.out();
    assert_eq!(out.matches("Warn: ").count(), 10, "{out}");
    let out = running.run("+1 a").out();
    assert!(out.contains("30 exceptions before this one were not logged"), "{out}");
    assert_eq!(running.engine.figures().threw, 42);
}

#[test]
fn an_event_that_runs_for_ever_ends_at_its_limit() {
    let mut running = Running::new("(streams (fn [e] (loop [] (recur))) (fn [e] (print \"next\")))");
    let out = running.run("a").out();
    assert!(out.contains("next") && out.contains("too many steps"), "{out}");
}

#[test]
fn streams_of_a_config_call_their_children_and_survive_what_these_throw() {
    let config = "(defn twice [& children] (fn [e] (call-rescue e children) (call-rescue e children)))
        (streams (twice (where (service \"a\") (fn [e] (print \"<1>\"))) (fn [e] (throw (Exception. \"x\"))) (fn [e] (print \"<2>\"))))";
    let mut running = Running::new(config);
    let out = running.run("a").out();
    assert_eq!((out.matches("<1>").count(), out.matches("<2>").count()), (2, 2), "{out}");
    assert_eq!(out.matches("Exception: x").count(), 2, "{out}");
    // They are counted, and there are at most 10 lines in a second.
    let out = running.run(&"a ".repeat(20)).out();
    assert_eq!((out.matches("Exception: x").count(), running.engine.figures().threw), (8, 42));
}

#[test]
fn the_bit_bucket_makes_no_nodes() {
    let mut running = Running::new("(streams bit-bucket (smap identity bit-bucket))");
    let nodes = running.engine.nodes();
    running.run("a b c");
    assert_eq!(running.engine.nodes(), nodes);
}

#[test]
fn watches_get_the_events_of_their_channel_that_match_their_query() {
    let mut running = Running::new(
        "(periodically-expire 5) (streams (index) (publish \"all\") (publish :all) (where (metric 2) (smap (fn [_] {:a 1}) (publish \"maps\"))))",
    );
    running.run("a,m1t0l3");
    assert_eq!(running.effects(), [""; 0], "nobody watches");
    for (channel, query) in
        [("index", "metric > 1 or state = \"expired\""), ("all", "service =~ \"b%\""), ("maps", "true")]
    {
        running.engine.watch(channel, parsed(query)).unwrap_or_else(|error| panic!("{error}"));
    }
    running.run("a,m1t0l3 b,m2t0l9");
    let sent = running.effects();
    assert_eq!(sent.len(), 3, "{sent:?}");
    assert!(sent[0].starts_with("[WatchId(0)] Record b,m2"), "{sent:?}");
    assert!(sent[1].starts_with("[WatchId(1)] Record b,m2"), "{sent:?}");
    assert!(sent[2].starts_with("[WatchId(2)] Map "), "{sent:?}");
    running.run("+5");
    let sent = running.effects();
    // When it expires, and when it goes through the streams to the index again.
    assert_eq!(sent, ["[WatchId(0)] Map a,t5,:expired"; 2]);
}

#[test]
fn an_engine_that_goes_on_where_another_was_keeps_its_watches() {
    let mut before = Running::new("(streams (publish \"c\"))");
    let ended = before.engine.watch("c", parsed("true")).unwrap();
    let kept = before.engine.watch("c", parsed("service = \"a\"")).unwrap();
    before.engine.unwatch(ended);
    let mut running = Running::new("(streams (publish \"c\"))");
    running.engine.adopt(before.engine);
    running.run("a b");
    let sent = running.effects();
    assert!(sent.len() == 1 && sent[0].starts_with(&format!("[{kept:?}]")), "{sent:?}");
    assert_ne!(running.engine.watch("c", parsed("true")).unwrap(), kept, "numbers are not used again");
}

#[test]
fn subscribers_have_a_bounded_number_of_queries() {
    let mut running = Running::new("(streams prn)");
    let first = running.engine.watch("c", parsed("true")).unwrap();
    for number in 1..WATCHES_MAX {
        running.engine.watch("c", parsed(&format!("metric = {number}"))).unwrap();
    }
    assert!(matches!(running.engine.watch("c", parsed("true")), Err(WatchError::TooMany)));
    running.engine.unwatch(first);
    assert!(running.engine.watch("c", parsed("true")).is_ok());
}

#[test]
fn the_expressions_of_subscribers_are_limited() {
    let mut running = Running::new("(streams prn)");
    let some = |number: usize| parsed(&format!("service ~= \"a{number}\" or service ~= \"b{number}\""));
    for number in 0..PATTERNS_MAX / 2 {
        running.engine.watch("c", some(number)).expect("few");
    }
    assert!(matches!(running.engine.watch("c", some(PATTERNS_MAX)), Err(WatchError::TooManyPatterns)));
    assert!(running.engine.watch("c", parsed("service = \"a\"")).is_ok(), "without one");
}

#[test]
fn the_query_that_takes_most_is_ended_when_an_event_takes_too_much() {
    let mut running = Running::new("(streams (publish \"c\"))");
    let slow = "description ~= \"(?=b)(b|b5|.)*?x\"";
    let many = |times: usize| parsed(&vec![slow; times].join(" or "));
    running.engine.watch("c", parsed("true")).expect("few");
    for _ in 0..8 {
        running.engine.watch("c", many(16)).expect("few");
    }
    running.engine.watch("c", many(1)).expect("few");
    let description = format!("b{}", "b5".repeat(500));
    let mut ended = Vec::new();
    for _ in 0..20 {
        let mut event = Event::default();
        event.set(Field::Description, Value::from(description.as_str()));
        running.engine.push_value(Value::Event(Arc::new(event))).expect("it throws nothing");
        let effects = running.effects();
        assert!(effects[0].starts_with("[WatchId(0)]"), "the others have their events: {effects:?}");
        ended.extend(effects.into_iter().skip(1));
    }
    assert!(
        !ended.is_empty() && ended.len() <= 8,
        "those that take most go, until the rest take less than {EVENT_STEPS_MAX}: {ended:?}"
    );
    assert!(
        ended.iter().all(|effect| effect.ends_with("has ended") && !effect.contains("WatchId(9)")),
        "{ended:?}"
    );
}

#[test]
fn vectors_that_share_their_parts_are_not_sent() {
    let wide = "(smap (fn [e] (nth (iterate (fn [v] [v v]) [e]) 34))";
    for output in ["(graphite {:host \"h\"})", "(staunch/output :out)"] {
        let mut running = Running::new(&format!("(streams {wide} {output}))"));
        running.run("a,m1t0");
        assert_eq!(running.effects(), Vec::<String>::new(), "{output}");
        assert!(running.out().contains("steps"), "{output}");
        running.run("a,m1t1");
        assert_eq!(running.engine.figures().threw, 2, "{output}");
    }
}

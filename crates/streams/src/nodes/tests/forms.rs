//! How expressions of predicates are rewritten and taken apart.

use super::rig::{Rig, read};
use crate::language::namespace::Entry;
use crate::nodes::forms;
use crate::print::to_text;

#[test]
fn expressions_become_code_of_the_event() {
    let table = [
        ("metric", "(:metric event)"),
        ("(> metric 1)", "(> (:metric event) 1)"),
        ("(service \"a\")", "(riemann.common/match \"a\" (:service event))"),
        ("(host a b)", "(or (riemann.common/match a (:host event)) (riemann.common/match b (:host event)))"),
        ("(service)", "((:service event))"),
        ("(tagged \"x\")", "(riemann.streams/tagged-all? \"x\" event)"),
        (
            "(and (state \"ok\") (not metric_f))",
            "(and (riemann.common/match \"ok\" (:state event)) (not (:metric_f event)))",
        ),
        ("(some #{1} [service])", "(some #{1} [service])"),
        ("(service (f metric))", "(riemann.common/match (f metric) (:service event))"),
        ("nil", "nil"),
    ];
    for (form, want) in table {
        assert_eq!(to_text(&forms::rewrite(&read(form)).unwrap(), true), want, "{form}");
    }
}

#[test]
fn predicates_are_data_as_far_as_they_are_fields_literals_and_tests() {
    let table = [
        ("metric", "[:riemann/field :metric]"),
        ("true", "[:riemann/constant true]"),
        ("(:dc event)", "[:riemann/field :dc]"),
        ("(service #\"^a\")", "[:riemann/match :service #\"^a\"]"),
        ("(state \"a\" nil)", "[:riemann/or [:riemann/match :state \"a\"] [:riemann/match :state nil]]"),
        (
            "(< 1 metric 5)",
            "[:riemann/compare \"<\" [:riemann/constant 1] [:riemann/field :metric] [:riemann/constant 5]]",
        ),
        (
            "(and (expired? event) (nil? ttl))",
            "[:riemann/and [:riemann/expired] [:riemann/nil [:riemann/field :ttl]]]",
        ),
        ("(not (tagged-any [\"a\"]))", "[:riemann/not [:riemann/tagged-any [\"a\"]]]"),
        ("(state x)", "[:riemann/call (fn [event] (riemann.common/match x (:state event)))]"),
        ("(or x metric)", "[:riemann/or [:riemann/call (fn [event] x)] [:riemann/field :metric]]"),
        ("(> metric x)", "[:riemann/call (fn [event] (> (:metric event) x))]"),
    ];
    for (form, want) in table {
        assert_eq!(to_text(&forms::predicate(&read(form)).unwrap(), true), want, "{form}");
    }
}

#[test]
fn macros_become_calls_of_streams() {
    let table = [
        ("(by :host a b)", "(riemann.streams/by-fn :host (fn [_] [a b]) :by)"),
        ("(by-builder [k [:host]] a)", "(riemann.streams/by-fn [:host] (fn [k] [a]) :by-builder)"),
        (
            "(changed-state {:init 1} a)",
            "(riemann.streams/by-fn [:host :service] (fn [_] [(riemann.streams/changed :state {:init 1} a)]) :changed-state)",
        ),
        ("(where metric a (else b))", "(riemann.streams/where* [:riemann/field :metric] a (else b))"),
        ("(else a)", "[:riemann/else a]"),
        (
            "(split metric a ttl b c)",
            "(riemann.streams/split* [:riemann/field :metric] a [:riemann/field :ttl] b c)",
        ),
        ("(pipe - (a -) (b -) c)", "(let [- c - (b -)] (a -))"),
        ("(exception-stream h a)", "(riemann.streams/exception-stream* h (fn [] [a]))"),
    ];
    for (form, want) in table {
        assert_eq!(to_text(&forms::expand(&read(form)).unwrap().unwrap(), true), want, "{form}");
    }
    assert!(forms::expand(&read("(rate 5)")).unwrap().is_none());
    for form in ["(where)", "(by)", "(by-builder [a] b)", "(pipe)", "(project 5)"] {
        assert!(forms::expand(&read(form)).is_err(), "{form}");
    }
}

#[test]
fn predicates_run_natively_and_as_code() {
    let table = [
        ("(where (service \"a\") out (else (to E)))", "a b {}", "a E:b E:{}"),
        ("(where (and (service \"a\") (> metric 1)) out)", "a,m2 a,m1 b a", "a,m2 !"),
        ("(where (or (service \"a\" \"b\") (nil? metric)) out)", "a,m1 b,m1 c,m1 d", "a,m1 b,m1 d"),
        ("(where (not (state \"ok\")) out)", ":ok {}", "{}"),
        ("(where (tagged \"x\") out)", "#x #y,#x {}", "#x #y,#x"),
        ("(where (tagged [\"x\" \"y\"]) out)", "#x #y,#x", "#y,#x"),
        ("(where (tagged-any [\"x\" \"y\"]) out)", "#x #z", "#x"),
        ("(where (service #\"^ab\") out)", "abc cab metric=1", "abc"),
        ("(where (service #\"ab\") out)", "abc cab a", "abc cab"),
        ("(where (service #\"a.c\") out)", "abc ac", "abc"),
        ("(where (= metric 1) out)", "m1 m1.0", "m1"),
        ("(where (== metric 1) out)", "m1 m1.0 m2", "m1 m1"),
        ("(where (not= state \"ok\") out)", ":ok :x", ":x"),
        ("(where (expired? event) out)", "t0 +61 t0 t1", "@61 t0"),
        ("(where (:dc event) out)", "dc=x {}", "dc=x"),
        ("(where nil out)", "a", ""),
        ("(let [x \"a\"] (where (service x) out))", "a b", "a"),
        ("(where (metric #{1 2}) out)", "m1 m3", "m1"),
        ("(where (metric {:a 1}) out)", "m1", ""),
        ("(where* :metric out)", "m1 a", "m1"),
        ("(split (service \"a\") (to A) (> metric 1) (to B) (to C))", "a b,m2 b,m1", "A:a B:b,m2 C:b,m1"),
        ("(split (service \"a\") (to A))", "a b", "A:a"),
        ("(match :service \"a\" out)", "a b", "a"),
        ("(match :service #{\"a\" \"b\"} out)", "a b c", "a b"),
        ("(match identity {:service \"a\" :metric #\"x\"} out)", "a,metric=xy a,m1 a", "a,mxy"),
        ("(tagged \"x\" out)", "#x a", "#x"),
        ("(tagged-all [\"x\" \"y\"] out)", "#x #y,#x", "#y,#x"),
        ("(tagged-any [\"x\" \"y\"] out)", "#y a", "#y"),
        ("(expired out)", "t0l1 +2 t0l1 t5 :expired ttl=infinity,t0", "@2 t0l1 :expired"),
        ("(not-expired out)", "t0l1 +2 t0l1 t5", "t0l1 @2 t5"),
        ("(over 1 out)", "m1 m2 a", "m2"),
        ("(under 1 out)", "m1 m0 a", "m0"),
        ("(within [1 2] out)", "m0 m1 m2 m3", "m1 m2"),
        ("(without [1 2] out)", "m0 m1 m2 m3 a", "m0 m3"),
        ("(pipe - (smap :metric -) out)", "m1", "1"),
    ];
    for (stream, inputs, want) in table {
        let mut rig = Rig::new(stream);
        rig.run(inputs);
        assert_eq!(rig.outputs(), want, "{stream} gets {inputs}");
    }
}

#[test]
fn forms_that_are_too_deep_are_refused() {
    let mut form = read("metric");
    for _ in 0..1_000 {
        form = crate::value::Value::list([read("not"), form]);
    }
    assert!(forms::rewrite(&form).is_err());
    assert!(forms::predicate(&form).is_err());
}

#[test]
fn each_macro_of_the_reference_is_one_of_the_language() {
    let world = crate::language::clojure();
    crate::nodes::library::add(&world);
    let namespaces = world.namespaces();
    let names = &namespaces.get("riemann.streams").unwrap().names;
    for (name, _) in forms::MACROS {
        assert!(matches!(names.get(*name).map(|named| &named.entry), Some(Entry::Macro(_))), "{name}");
    }
}

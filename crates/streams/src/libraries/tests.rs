//! Expressions and their values, in a config.

use crate::riemann::tests::printed;

fn check(table: &[(&str, &str)]) {
    for (expression, expected) in table {
        assert_eq!(printed(expression), *expected, "{expression}");
    }
}

#[test]
fn functions_of_riemann_common() {
    check(&[
        ("(:time (event {:host \"a\" :time 1.5}))", "2"),
        ("(:time (event {:host \"a\"}))", "0"),
        ("(:dc (event {:dc \"eu\"}))", "\"eu\""),
        ("(str (java.util.Date. 1700000000123))", "\"Tue Nov 14 22:13:20 UTC 2023\""),
        ("(pr-str (java.util.Date. 1700000000123))", "\"#inst \\\"2023-11-14T22:13:20.123-00:00\\\"\""),
        (
            "[(str 1e-323) (str 4.9e-324) (str (float 0.1)) (str 1e7)]",
            "[\"9.9E-324\" \"4.9E-324\" \"0.1\" \"1.0E7\"]",
        ),
        ("(expired? {:time 0 :ttl 1})", "false"),
        ("(expired? {:state \"expired\"})", "true"),
        ("(:state (common/expire {:host \"a\" :metric 1}))", "\"expired\""),
        ("(:metric (common/expire {:host \"a\" :metric 1}))", "nil"),
        ("(common/match #\"^a\" \"abc\")", "true"),
        ("(common/match #\"^a\" nil)", "false"),
        ("(common/match {:a #\"x\"} {:a \"axb\" :c 1})", "true"),
        ("(common/match nil nil)", "true"),
        ("(common/match odd? 3)", "true"),
        ("(common/match #{1 2} 3)", "false"),
        ("(common/match 2 2.0)", "false"),
        (
            "[(common/member? 1 [1 2]) (common/subset? [1] [1 2]) (common/overlap? [1] [2]) (common/disjoint? [1] [2])]",
            "[true true false true]",
        ),
        (
            "[(common/approx-equal 1 1.001) (common/approx-equal 1 2) (common/approx-equal 1 2 10)]",
            "[true false true]",
        ),
        ("[(common/re-matches? #\"a+\" \"baa\") (common/re-matches? #\"a\" nil)]", "[\"aa\" nil]"),
        ("(common/unix-to-iso8601 1700000000.1239)", "\"2023-11-14T22:13:20.123Z\""),
        ("(common/iso8601->unix \"2023-11-14T22:13:20.999Z\")", "1700000000"),
        (
            "(map common/iso8601->unix [\"2023-11-14T22:13:20\" \"2023-11-14T22:13:20+01:00\" \"2023-11-14\"])",
            "(1700000000 1699996400 1699920000)",
        ),
        (
            "(try (common/iso8601->unix \"soon\") (catch IllegalArgumentException e (.getMessage e)))",
            "\"Invalid format: \\\"soon\\\"\"",
        ),
        ("(common/pkey {:host \"a\" :service \"b\"})", "[\"a\" \"b\"]"),
        ("(common/middle [1 2 3 4])", "3"),
        ("(common/custom-attributes {:host \"a\" :dc 1})", "{:dc 1}"),
        ("(:time (common/ensure-event-time {:host \"a\"}))", "0"),
        (
            "(map (fn [n] (common/truncate \"abcd😀\" n)) [5 6 4 2 0 -1])",
            "(\"abcd\" \"abcd😀\" \"abcd\" \"ab\" \"\" \"\")",
        ),
        (
            "(map (fn [n] (common/truncate-bytes \"aéé\" n)) [5 4 3 2 1 0 -1])",
            "(\"aéé\" \"aé\" \"aé\" \"a\" \"a\" \"\" \"\")",
        ),
        ("(common/localhost)", "\"here\""),
        (
            "[(tagged-all? [\"a\" \"b\"] {:tags [\"a\"]}) (tagged-any? [\"a\" \"b\"] {:tags [\"a\"]})]",
            "[false true]",
        ),
    ]);
}

#[test]
fn subjects_and_bodies_of_mails() {
    check(&[
        ("(common/subject [{:host \"a\" :service \"s\" :state \"ok\"}])", "\"a s ok\""),
        (
            "(common/subject [{:host \"a\" :service \"s\" :state \"ok\"} {:host \"b\" :service \"s\" :state \"ok\"}])",
            "\"a and b s ok\"",
        ),
        (
            "(common/subject (map (fn [n] {:host (str n) :service \"s\" :state \"x\"}) (range 6)))",
            "\"6 hosts s x\"",
        ),
        ("(common/human-uniq [1 2 3 1] \"hosts\")", "\"1, 2, 3\""),
        ("(common/human-uniq (range 20000) \"hosts\")", "\"20000 hosts\""),
        ("(common/human-uniq [nil] \"hosts\")", "nil"),
        (
            "(second (clojure.string/split-lines (common/body [{:host \"a\" :service \"s\" :state \"ok\" :metric 1/2 :time 0}])))",
            "\"a s ok (0.5)\"",
        ),
    ]);
}

#[test]
fn names_of_series_in_graphite() {
    check(&[
        (
            "(graphite-path-basic {:host \"web1.example.com\" :service \"cpu idle\"})",
            "\"com.example.web1.cpu.idle\"",
        ),
        ("(graphite-path-basic {:service \"cpu\"})", "\"cpu\""),
        ("(graphite-path-percentiles {:host \"a\" :service \"req 0.95\"})", "\"a.req.95\""),
        ("(graphite-path-percentiles {:host \"a\" :service \"req 1.5\"})", "\"a.req.15\""),
        ("(graphite-path-percentiles {:host \"a\" :service \"req 1\"})", "\"a.req.1\""),
        ("((graphite-path-tags [:host :dc]) {:host \"a\" :service \"x y\"})", "\"x.y;host=a\""),
    ]);
}

#[test]
fn ticks_of_a_grid() {
    check(&[
        ("(riemann.time/next-tick 0 5 0)", "5"),
        ("(riemann.time/next-tick 0 5 4.9)", "5.0"),
        ("(riemann.time/next-tick 0 5 5)", "10"),
        ("(riemann.time/next-tick 2 5 3)", "7"),
        ("(unix-time)", "0"),
        (
            "(try (riemann.time/next-tick 0 0 5) (catch ArithmeticException e (.getMessage e)))",
            "\"Divide by zero\"",
        ),
        ("(try (riemann.time/next-tick 0 0.0 5.5) (catch ArithmeticException e 1))", "1"),
    ]);
}

#[test]
fn lines_of_the_log() {
    let logged = |form: &str| crate::riemann::tests::logged(form);
    assert_eq!(logged("(info \"a\" 1 nil :k)"), "Info: a 1  :k");
    assert_eq!(logged("(warn (Exception. \"x\") \"failed\")"), "Warn: java.lang.Exception: x failed");
    assert_eq!(logged("(infof \"%s=%d\" \"a\" 1)"), "Info: a=1");
    assert_eq!(logged("(clojure.tools.logging/log :error \"e\")"), "Error: e");
    assert_eq!(logged("(spy 3)"), "Debug: 3");
    assert_eq!(logged("(spy :warn 3)"), "Warn: 3");
    assert_eq!(logged("(warnf (Exception. \"x\") \"%d of %d\" 1 2)"), "Warn: java.lang.Exception: x 1 of 2");
}

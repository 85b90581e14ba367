//! Tests of configs: taps, virtual time, reports.

use super::Folder;
use crate::language::host::Host;
use crate::riemann::testing::{Report, run};

/// The report of a config's tests.
fn report(config: &str) -> Report {
    let mut folder = Folder::default();
    folder.files.insert("riemann.config".to_owned(), config.to_owned());
    let mut host = || Box::new(folder.clone()) as Box<dyn Host>;
    run("riemann.config", &mut host, &|namespace| namespace.ends_with("-test"))
        .unwrap_or_else(|error| panic!("{config}: {error}"))
}

#[track_caller]
fn all_good(config: &str, assertions: u64) {
    let report = report(config);
    assert!(report.is_good(), "{report}");
    assert_eq!(report.tests.iter().map(|test| test.assertions).sum::<u64>(), assertions, "{report}");
}

#[test]
fn taps_record_what_passes_under_the_virtual_clock() {
    all_good(
        r#"(tcp-server)
        (periodically-expire 5)
        (let [index (index)]
          (streams (default :ttl 3 index)
                   (where (service "a") (rate 2 (tap :rate (io (fn [e] (throw (Exception. "never")))))))
                   (expired (tap :gone))))
        (tests
          (deftest rates
            (let [result (inject! [{:host "h" :service "a" :metric 5 :time 0} {:host "h" :service "a" :metric 4 :time 1}
                                   {:host "h" :service "b" :time 2}])]
              (is (= 9/2 (:metric (first (:rate result)))))
              (is (= [] (:gone result)))))
          (deftest expiry
            (inject! [{:host "h" :service "a" :metric 1 :time 0}])
            (riemann.time.controlled/advance! 7)
            (let [gone (:gone (inject! []))]
              (is (= 1 (count gone)))
              (is (= "expired" (:state (lookup gone "h" "a"))))
              (is (= 5 (:time (first gone)))))))"#,
        5,
    );
}

#[test]
fn no_test_sees_what_another_one_left() {
    let one = "(deftest NAME (is (= [1] (map :metric (:all (inject! [{:metric 1 :time 100}]))))) (is (= 100 (unix-time))))";
    let config = format!(
        "(streams (counter (tap :all))) (tests {} {})",
        one.replace("NAME", "a"),
        one.replace("NAME", "b")
    );
    all_good(&config, 4);
}

#[test]
fn streams_run_alone_and_with_intervals() {
    all_good(
        r#"(tests
          (deftest alone
            (is (= [2 4] (map :metric (run-stream (scale 2) [{:metric 1} {:metric 2}]))))
            (test-stream (where (> metric 1)) [{:metric 1} {:metric 2}] [{:metric 2}])
            (is (= [5/2] (map :metric (run-stream-intervals (rate 2) [{:metric 5 :time 0} 2]))))
            (are [x y] (= (+ x 1) y) 1 2 3 4)
            (testing "exceptions"
              (is (thrown? ArithmeticException (/ 1 0)))
              (is (thrown-with-msg? Exception #"by zero" (/ 1 0))))))"#,
        7,
    );
}

#[test]
fn what_fails_is_reported_with_its_place_as_clojure_test_does() {
    let report = report(
        "(tests\n  (deftest sums\n    (is (= 3 (+ 1 1)) \"adding\")\n    (is (nil? 1)))\n  (deftest throws\n    (is (/ 1 0))\n    (throw (Exception. \"x\"))))",
    );
    assert_eq!(
        report.to_string(),
        "\nTesting riemann.config-test\n\
         \nFAIL in (sums) (riemann.config:3)\nadding\nexpected: (= 3 (+ 1 1))\n  actual: (not (= 3 2))\n\
         \nFAIL in (sums) (riemann.config:4)\nexpected: (nil? 1)\n  actual: (not false)\n\
         \nERROR in (throws) (riemann.config:6)\nexpected: (/ 1 0)\n  actual: java.lang.ArithmeticException: Divide by zero\n\
         \nERROR in (throws) (riemann.config:7)\nUncaught exception, not in assertion.\nexpected: nil\n  actual: java.lang.Exception: x\n\
         \nRan 2 tests containing 3 assertions.\n2 failures, 2 errors.\n"
    );
    assert!(!report.is_good());
    let xml = report.junit();
    assert!(
        xml.contains("<testsuite name=\"riemann.config-test\" tests=\"2\" failures=\"2\" errors=\"2\">"),
        "{xml}"
    );
    assert_eq!(xml.matches("<testcase").count(), 2, "{xml}");
}

#[test]
fn two_taps_of_one_name_are_an_error_that_names_both_places() {
    let mut folder = Folder::default();
    folder.files.insert("c".to_owned(), "(streams (tap :a))\n(streams\n  (tap :a))".to_owned());
    let mut host = || Box::new(folder.clone()) as Box<dyn Host>;
    let error = run("c", &mut host, &|_| true).expect_err("it has a mistake").to_string();
    assert!(error.contains("c:3:3") && error.contains("there is a tap :a already, in c:1:10"), "{error}");
}

#[test]
fn a_tap_in_forks_and_functions_is_one_tap() {
    all_good(
        r#"(defn watched [n] (by :host (scale n (tap :all))))
        (streams (watched 1) (watched 2) (by :host (where (service "never") (by :service (tap :none)))))
        (tests
          (deftest taps
            (let [result (inject! [{:host "a" :metric 1} {:host "b" :metric 2}])]
              (is (= [1 2 2 4] (map :metric (:all result))))
              (is (= [] (:none result))))))"#,
        2,
    );
}

#[test]
fn timers_that_are_due_at_once_run_after_all_events_of_the_time() {
    all_good(
        r#"(streams (coalesce 5 (smap count (tap :counts))))
        (tests
          (deftest together
            (is (= [2 3] (:counts (inject! [{:host "a" :time 3} {:host "b" :time 3} {:host "c" :time 7} {:host "c" :time 9}]))))))"#,
        1,
    );
}

#[test]
fn run_stream_goes_by_the_times_of_events_and_intervals_can_be_nil() {
    all_good(
        r#"(tests
          (deftest alone
            (is (= [5] (map :metric (run-stream (rate 2) [{:metric 10 :time 0} {:time 3}]))))
            (is (= [[1 2 3] [4]] (run-stream-intervals (batch 3 5) [1 nil 2 nil 3 nil 4 6])))))"#,
        2,
    );
}

#[test]
fn a_test_that_runs_for_ever_ends_at_its_limit() {
    let report = report("(tests (deftest endless (loop [] (recur))) (deftest next-one (is true)))");
    assert_eq!(report.tests.len(), 2);
    assert!(report.tests[0].failures[0].actual.contains("too many steps"), "{report}");
    assert!(report.tests[1].failures.is_empty(), "{report}");
}

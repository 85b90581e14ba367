use super::{check, evaluated};
use crate::language::budget::{Budget, Limits};
use crate::language::host::Nowhere;
use crate::language::machine::Machine;

/// Forty vectors around each other, each with the one before it twice.
const SHARED: &str = "(let [f (fn [x] (nth (iterate (fn [v] [v v]) [x]) 40)) m (fn [x] (nth (iterate (fn [v] {v v}) {x 1}) 40))]";

#[test]
fn values_that_share_their_parts_are_compared_within_the_budget() {
    let expressions = [
        "(= (f 1) (f 1))",
        "(hash (f 1))",
        "(compare (f 1) (f 1))",
        "(sort [(f 1) (f 2) (f 1)])",
        "(get {(f 1) 1} (f 1))",
        "#{(f 1) (f 2)}",
        "(hash-map (f 1) 2)",
        "(.equals (f 1) (f 1))",
        "(= {:a (f 1)} {:a (f 1)})",
    ];
    for expression in expressions {
        let text = evaluated(&format!("{SHARED} {expression})"));
        assert!(text.ends_with("too many steps"), "{expression}: {text}");
    }
}

#[test]
fn values_that_share_their_parts_are_printed_up_to_a_limit() {
    for expression in ["(str (f 1))", "(format \"%s\" (f 1))", "(clojure.string/join [(f 1)])"] {
        let text = evaluated(&format!("{SHARED} {expression})"));
        assert!(
            text.ends_with("too much memory") || text.ends_with("too many steps"),
            "{expression}: {text}"
        );
    }
    // Messages have their beginning only.
    assert!(evaluated(&format!("{SHARED} ((f 1)))")).contains("ArityException"));
    assert!(evaluated(&format!("{SHARED} (+ 1 (f 1)))")).contains("java.lang.ClassCastException"));
}

#[test]
fn ordinary_comparisons_cost_little() {
    check(
        "(count (into #{} (map vector (range 20000)))) => 20000\n(= (vec (range 100000)) (vec (range 100000))) => true",
    );
}

#[test]
fn functions_of_long_texts_and_numbers_use_steps() {
    let mut graph = super::graph(Nowhere::default());
    let mut machine = Machine::new(&mut graph, Limits::LOAD);
    let values = "(def s (apply str (repeat 100000 \"x\"))) (def v (vec (range 100000)))
        (def t (apply str (repeat 100000 \"x\")))
        (def b (nth (iterate (fn [x] (*' x x)) 3N) 14)) (def r (/ b (inc' b)))";
    machine.load(values, "values").expect("they are right");
    // Each with the least number of steps.
    let table = [
        ("(inc 1)", 0),
        ("(.toLowerCase s)", 1_500),
        ("(.trim s)", 1_500),
        ("(.length s)", 1_500),
        ("(count s)", 1_500),
        ("(clojure.string/includes? s \"y\")", 1_500),
        ("(clojure.string/index-of s \"y\")", 1_500),
        ("(clojure.string/blank? s)", 1_500),
        ("(clojure.string/upper-case s)", 1_500),
        ("(re-find #\"y\" s)", 1_500),
        ("(.matches s \"y\")", 1_500),
        ("(str s \"a\")", 390),
        ("(subvec v 1)", 12_000),
        ("(format \"%900.900f\" 0.1)", 400),
        ("(+ r r)", 10_000),
        ("(* r r)", 10_000),
        ("(*' b b)", 900),
        ("(= v (subvec v 0))", 25_000),
        ("(hash v)", 12_000),
        ("(= s t)", 90),
        ("(compare s t)", 700),
        ("(hash s)", 700),
        ("(get s 99999)", 1_500),
        ("(re-find #\"(?=y)y\" \"x\")", 500),
        ("(re-seq #\"(?=x)x\" \"xxxx\")", 2_000),
        ("(clojure.string/replace \"xxxx\" #\"(?=x)x\" \"y\")", 2_000),
        ("(clojure.string/split \"axbxc\" #\"(?=x)x\")", 1_000),
        ("(read-string \"[#\\\"a\\\" #\\\"b\\\"]\")", 4_000),
    ];
    for (expression, least) in table {
        machine.budget = Budget::new(Limits::LOAD);
        machine.load(expression, "t").expect("it is right");
        let used = Limits::LOAD.steps - machine.budget.steps_left();
        assert!(used >= least && (least > 0 || used < 100), "{expression} uses {used} steps");
    }
}

#[test]
fn many_sequences_are_put_together_in_linear_time() {
    let mut graph = super::graph(Nowhere::default());
    let mut machine = Machine::new(&mut graph, Limits::LOAD);
    let concat = "(count (apply concat (repeat 20000 [1 2 3])))";
    machine.load(concat, "t").expect("it is right");
    let used = Limits::LOAD.steps - machine.budget.steps_left();
    assert!(used < 1_000_000, "{used} steps for 60,000 values");
    check(
        "(concat) => ()\n(concat nil [] [1] nil '(2 3) {}) => (1 2 3)\n(concat [1]) => (1)\n\
         (take 3 (concat [1] (iterate inc 2))) => (1 2 3)\n(apply concat [[1 2] [] [3]]) => (1 2 3)",
    );
}

//! Loads of configs: files, namespaces, mistakes with their places, and limits.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::graph;
use crate::collections::element::Element as _;
use crate::graph::{Node, Turn};
use crate::language::budget::Limits;
use crate::language::error::{Outcome, Reason};
use crate::language::host::{Host, Level, Nowhere};
use crate::language::machine::{Expansion, Machine};
use crate::language::world::Library;
use crate::print::to_text;
use crate::value::Value;

/// A folder with files.
#[derive(Default)]
struct Folder {
    files: BTreeMap<String, String>,
    inner: Nowhere,
}

impl Folder {
    fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        Folder { files, inner: Nowhere::default() }
    }

    /// What the first file evaluates to.
    fn load(self) -> Result<String, String> {
        let text = self.files["main.clj"].clone();
        let mut graph = graph(self);
        let mut machine = Machine::new(&mut graph, Limits::EVENT);
        let value = machine.load(&text, "main.clj").map_err(|error| error.to_string())?;
        machine.realize(&value).map(|value| to_text(&value, true)).map_err(|error| error.to_string())
    }
}

impl Host for Folder {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn read_file(&mut self, path: &str) -> Result<String, String> {
        self.files.get(path).cloned().ok_or_else(|| "no such file".to_owned())
    }

    fn environment(&mut self, name: &str) -> Option<String> {
        (name == "HOME").then(|| "/root".to_owned())
    }

    fn host_name(&self) -> String {
        self.inner.host_name()
    }

    fn random(&mut self) -> u64 {
        self.inner.random()
    }

    fn print(&mut self, text: &str) {
        self.inner.print(text);
    }

    fn log(&mut self, level: Level, text: &str) {
        self.inner.log(level, text);
    }
}

#[test]
fn namespaces_are_loaded_from_files() {
    let library = "(ns a.my-lib (:require [clojure.string :as s])) (def x 5) (defn up [t] (s/upper-case t))";
    let table = [
        ("(require '[a.my-lib :as l]) [(l/up \"a\") l/x]", "[\"A\" 5]"),
        ("(require '[a.my-lib :refer [up]]) (up \"b\")", "\"B\""),
        ("(require '[a.my-lib :refer :all]) x", "5"),
        ("(use 'a.my-lib) x", "5"),
        ("(use '[a.my-lib :only [x]]) x", "5"),
        (
            "(ns z (:require [a.my-lib :as l]) (:use [clojure.set :only [union]])) [(union #{1} #{l/x}) ::l/k]",
            "[#{1 5} :a.my-lib/k]",
        ),
        ("(require '(a [my-lib :as l])) l/x", "5"),
        ("(load-file \"a/my_lib.clj\") a.my-lib/x", "5"),
        ("(require 'a.my-lib) (ns-name (find-ns 'a.my-lib))", "a.my-lib"),
        ("(require '[clojure.string :as s]) `(s/join x)", "(clojure.string/join user/x)"),
    ];
    for (text, want) in table {
        let folder = Folder::of(&[("main.clj", text), ("a/my_lib.clj", library)]);
        assert_eq!(folder.load(), Ok(want.to_owned()), "{text}");
    }
}

#[test]
fn all_wrong_names_of_all_files_are_reported() {
    let main = "(ns m (:require [lib :as l]))\n(defn f [x] (incc x))\n(println (l/good) (l/bda))\n(strr 1)";
    let library = "(ns lib)\n(defn good [] (frist [1]))\n(defn bad [] 1)";
    let error = Folder::of(&[("main.clj", main), ("lib.clj", library)]).load().expect_err("names are wrong");
    let want = "lib.clj:2:16: `frist` is not defined (did you mean `first`?)\n\
                main.clj:2:14: `incc` is not defined (did you mean `inc`?)\n\
                main.clj:3:20: `l/bda` is not defined (did you mean `l/bad`?)\n\
                main.clj:4:2: `strr` is not defined (did you mean `str`?)";
    assert_eq!(error, want);
}

#[test]
fn mistakes_of_files_have_places() {
    let table = [
        ("(require 'none)", "main.clj:1:1: there is no namespace `none`: none.clj: no such file"),
        ("(defn f [x] (/ x 0))\n(f 1)", "main.clj:1:13: Divide by zero"),
        ("(let [x] x)", "main.clj:1:1: the bindings of `let` are pairs, and one has no value"),
        ("(def a 1)\n(a", "main.clj:2:1: this `(` is not closed: `)` is missing"),
        (
            "(clojure.strin/join 1)",
            "main.clj:1:2: there is no namespace or class `clojure.strin` for `clojure.strin/join` (did you mean `clojure.string`?)",
        ),
        (
            "(.toUpercase \"a\")",
            "main.clj:1:2: there is no method `.toUpercase` (did you mean `.toUpperCase`?)",
        ),
        ("(Math/flor 1)", "main.clj:1:2: `Math/flor` is not defined (did you mean `Math/floor`?)"),
        (
            "(try 1 (catch Excepton e 2))",
            "main.clj:1:15: there is no class `Excepton` (did you mean `Exception`?)",
        ),
        (
            "(map when [1])",
            "main.clj:1:6: `when` is a macro, which is no value (write a function around it: `#(when …)`)",
        ),
        ("(require 'main2)", "main.clj:1:1: there is no namespace `main2`: main2.clj: no such file"),
        (
            "(require '[clojure.set :refer [unoin]])",
            "main.clj:1:1: clojure.set has no `unoin`; did you mean `union`?",
        ),
    ];
    for (text, want) in table {
        assert_eq!(Folder::of(&[("main.clj", text)]).load(), Err(want.to_owned()), "{text}");
    }
}

#[test]
fn files_that_load_each_other_are_a_mistake() {
    let files = [
        ("main.clj", "(load-file \"a.clj\")"),
        ("a.clj", "(load-file \"b.clj\")"),
        ("b.clj", "(load-file \"a.clj\")"),
    ];
    let error = Folder::of(&files).load().expect_err("they load each other");
    assert!(error.contains("a.clj is loaded by a file that it loads"), "{error}");
}

/// A stream that matches one number.
#[derive(Debug)]
struct IsSeven;

impl Node for IsSeven {
    fn push(&mut self, value: &mut Value, _: &mut Turn<'_>) -> Outcome<bool> {
        Ok(value.equal(&7_i64.into()))
    }
}

#[test]
fn streams_are_functions_and_the_environment_is_asked_of_the_host() {
    let mut graph = graph(Folder::default());
    let stream = graph.add(Box::new(IsSeven), &[]);
    let mut machine = Machine::new(&mut graph, Limits::EVENT);
    let function = machine
        .load("(fn [s e] [(s e) (s 5) (System/getenv \"HOME\") (System/getenv \"X\")])", "t")
        .expect("it is right");
    let result = machine.call(&function, &mut [Value::Stream(stream), 7_i64.into()]).expect("it is called");
    assert_eq!(to_text(&result, true), "[true false \"/root\" nil]");
}

type IsExpected = fn(&Reason) -> bool;

#[test]
fn each_limit_has_its_outcome_and_cannot_be_caught() {
    let table: &[(&str, IsExpected)] = &[
        ("(fn [] (try (loop [] (recur)) (catch Throwable e 1)))", |reason| {
            matches!(reason, Reason::TooManySteps)
        }),
        ("(fn [] (try (count (range)) (catch Throwable e 1)))", |reason| {
            matches!(reason, Reason::TooManySteps)
        }),
        ("(fn f [] (try (inc (f)) (catch Throwable e 1)))", |reason| matches!(reason, Reason::TooDeep)),
        ("(fn [] (reduce (fn [a _] [a]) nil (range 1000)))", |reason| matches!(reason, Reason::TooDeep)),
        ("(fn [] (assoc-in {} (range 1000) 1))", |reason| matches!(reason, Reason::TooDeep)),
        ("(fn [] (reduce (fn [a _] (fn [] a)) nil (range 1000)))", |reason| {
            matches!(reason, Reason::TooDeep)
        }),
        ("(fn [] (reduce concat (repeat 1000 [1])))", |reason| matches!(reason, Reason::TooDeep)),
        ("(fn [] (loop [s \"ab\"] (recur (str s s))))", |reason| matches!(reason, Reason::TooMuchMemory)),
        ("(fn [] (loop [n 3N] (recur (* n n))))", |reason| matches!(reason, Reason::TooMuchMemory)),
        (
            "(fn [] (re-find #\"(?:(a|aa)(?!x))+c\" (apply str (concat (repeat 200 \"a\") [\"b\"]))))",
            |reason| matches!(reason, Reason::TooManySteps),
        ),
        ("(fn [] (into [] (repeat 5 1)) (vec (range 900000)) (vec (range 900000)))", |reason| {
            matches!(reason, Reason::TooManySteps)
        }),
    ];
    for (text, expected) in table {
        let mut graph = graph(Nowhere::default());
        let mut machine = Machine::new(&mut graph, Limits::EVENT);
        let function = machine.load(text, "t").expect("it is right");
        let error = machine.call(&function, &mut []).map(|value| to_text(&value, true)).expect_err(text);
        assert!(expected(error.reason()), "{text}: {error}");
    }
}

#[test]
fn long_chains_are_dropped_without_a_deep_stack() {
    let texts = [
        "(fn [] (count (doall (map inc (range 200000)))))",
        "(fn [] (count (reduce (fn [s i] (cons i s)) (seq [1]) (range 100000))))",
        "(fn [] (reduce (fn [a i] (let [b (atom nil)] (reset! a b) b)) (atom nil) (range 100000)) 1)",
    ];
    for text in texts {
        let mut graph = graph(Nowhere::default());
        let mut machine = Machine::new(&mut graph, Limits::LOAD);
        let function = machine.load(text, "t").expect("it is right");
        machine.call(&function, &mut []).expect(text);
    }
}

#[test]
fn deep_expressions_in_deep_calls_stay_within_a_thread_s_stack() {
    let long = "inc ".repeat(190);
    for text in [format!("(fn f [x] (-> (f x) {long}))"), format!("(fn f [x] (inc (f (-> x {long}))))")] {
        let mut graph = graph(Nowhere::default());
        let mut machine = Machine::new(&mut graph, Limits { depth: u32::MAX, ..Limits::LOAD });
        let function = machine.load(&text, "t").expect("it is right");
        let error = machine
            .call(&function, &mut [1_i64.into()])
            .map(|value| to_text(&value, true))
            .expect_err("it never ends");
        assert!(matches!(error.reason(), Reason::TooDeep), "{error}");
    }
}

/// What a native of another namespace sees of its call.
fn place(machine: &mut Machine<'_>, _: &mut [Value]) -> Outcome {
    Ok(machine.here().to_string().into())
}

crate::natives! {
    PLACES = {
        "place", 0, 0, "Where it is called.", place;
    }
}

fn twice(expansion: &mut Expansion<'_, '_>, forms: &[Value]) -> Outcome {
    let local = Value::from(expansion.is_local("x"));
    Ok(Value::list([Value::symbol("clojure.core/vector"), forms[0].clone(), forms[0].clone(), local]))
}

crate::macros! {
    TWICE = {
        "twice", 1, 1, "A form two times, and whether `x` is a local.", twice;
    }
}

#[test]
fn other_namespaces_have_natives_and_macros() {
    let mut graph = graph(Nowhere::default());
    let world = Arc::clone(&graph.evaluation.world);
    world.add(Library { namespace: "riemann.test", natives: PLACES, macros: TWICE });
    world.alias(&"user".into(), "t", "riemann.test");
    world.refer_all(&"user".into(), "riemann.test");
    let mut machine = Machine::new(&mut graph, Limits::LOAD);
    let value = machine.load("(let [x 1]\n (twice (place)))\n", "t").expect("it is right");
    assert_eq!(to_text(&value, true), "[\"t:2:9\" \"t:2:9\" true]");
    let value = machine.load("[(t/place) (riemann.test/twice 1)]", "t").expect("it is right");
    assert_eq!(to_text(&value, true), "[\"t:1:2\" [1 1 false]]");
}

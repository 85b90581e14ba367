#!/usr/bin/env python3
"""Expressions by Clojure and by the interpreter of Riemann's configs (an example of crates/streams).

Two sorts: the tables of crates/streams, whose results must be those of Clojure; and random calls of functions with random
arguments. INTENDED says where these differ on purpose, and why.

Needs java and Clojure's three jars, which `.ci/tools` fetches to compat/.clojure; without them it says that it was skipped.
"""

import argparse
import itertools
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent
TABLES = [ROOT / "crates/streams/src/language/tests" / name for name in ("clojure.clj", "sample.clj")]

PROGRAM = """
(require 'clojure.string 'clojure.set 'clojure.walk)
(defn root [t] (if (instance? clojure.lang.Compiler$CompilerException t) (recur (.getCause t)) t))
(with-open [lines (clojure.java.io/reader (first *command-line-args*))]
  (doseq [line (line-seq lines)]
    (let [space (create-ns (gensym "n"))
          out (binding [*ns* space]
                (refer 'clojure.core)
                (try (pr-str (load-string line))
                     (catch Throwable t (str "!" (.getName (class (root t)))))))]
      (println (str "\\u0001" (clojure.string/replace out "\\n" "\\\\n"))))))
"""

# (expression, result of Clojure, our result, reason): a random call where all three match is no difference.
INTENDED = [
    (r"", r"^!", r"^!", "which of two wrong arguments is named, and by which class"),
    (r"^\((find|rseq|peek|nth|contains\?|distinct|drop|take|keys|vals) ", r"^!", r"", "arguments of a wrong type are taken all the same"),
    (r"^\((take|drop) -?\d+/\d|^\(drop ", r"^!", r"", "a sequence is computed later"),
    (r"^\(get \"", r"^\\", r"^nil", "an index of a text is an integer"),
    (r"^\(/ ", r"^(##|-?\d)", r"ArithmeticException", "a zero in double precision: Clojure's compiler divides literals otherwise than values"),
    (r"", r"^-?\d\.\d{15,}E", r"^-?\d\.\d{14,}E", "java before 19 prints more digits than the shortest"),
    (r"", r"#object|#error", r"", "what is only for humans"),
]

NUMBERS = "0 1 -1 2 -7 7 1.5 -2.5 1/2 -3/4 100N 1e10 1e-5".split()
VALUES = NUMBERS + ["nil", "true", '"abc"', '""', ":k", "\\a", "[]", "[1 2 3]", "'(1 2)", "{}", "{:a 1 :b 2}", "#{1 2}", "(range 4)", "[[1 2] [3 4]]"]
TWO = "+ - * / quot rem mod < <= > >= == = compare get take drop cons nth conj".split()
ONE = """inc dec zero? pos? neg? even? odd? integer? str pr-str hash seq first rest next last count empty? reverse vec set sort
    distinct flatten frequencies boolean not sequential? coll? map? vector? butlast second ffirst class""".split()


def generated(count, seed):
    chosen = random.Random(seed)
    every = [f"({name} {a} {b})" for name, a, b in itertools.product(TWO, VALUES, VALUES)]
    every += [f"({name} {a})" for name, a in itertools.product(ONE, VALUES)]
    return chosen.sample(every, min(count, len(every)))


def by_clojure(jars, expressions, folder):
    program, lines = folder / "run.clj", folder / "lines"
    program.write_text(PROGRAM)
    lines.write_text("".join(line + "\n" for line in expressions))
    command = ["java", "-cp", ":".join(map(str, jars)), "clojure.main", str(program), str(lines)]
    out = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600).stdout
    return [part.split("\n")[0] for part in out.split("\x01")[1:]]


def by_us(expressions):
    command = ["cargo", "run", "-q", "-p", "streams", "--example", "evaluate"]
    lines = "".join(line + "\n" for line in expressions)
    out = subprocess.run(command, check=True, capture_output=True, text=True, input=lines, cwd=ROOT, timeout=600).stdout
    return out.split("\n")[:-1]


def intended(expression, theirs, ours):
    texts = (expression, theirs, ours)
    return any(all(re.search(part, text) for part, text in zip(rule[:3], texts, strict=True)) for rule in INTENDED)


def tables():
    lines = itertools.chain.from_iterable(table.read_text().splitlines() for table in TABLES)
    return [tuple(line.split(" => ", 1)) for line in lines if " => " in line]


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--cases", type=int, default=500)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--self-test", action="store_true", help="changes our results, which must be found")
    asked = options.parse_args()
    jars = sorted((HERE / ".clojure").glob("*.jar"))
    if len(jars) < 3 or not shutil.which("java"):
        print("SKIPPED: java or compat/.clojure is missing (.ci/tools)")
        return 0
    pairs, random_ones = tables(), generated(asked.cases, asked.seed)
    with tempfile.TemporaryDirectory() as folder:
        theirs = by_clojure(jars, [text for text, _ in pairs] + random_ones, pathlib.Path(folder))
    ours = [want for _, want in pairs] + by_us(random_ones)
    if asked.self_test:
        ours[::100] = [text + " " for text in ours[::100]]
    wrong = 0
    for index, (text, their, our) in enumerate(zip([text for text, _ in pairs] + random_ones, theirs, ours, strict=True)):
        if their == our or (index >= len(pairs) and intended(text, their, our)):
            continue
        wrong += 1
        print(f"{text}\n  clojure {their}\n  staunch {our}")
    if asked.self_test:
        print(f"clojure: {wrong} changes were found")
        return 0 if wrong else 1
    print(f"clojure: {len(theirs) - wrong} passed, {wrong} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

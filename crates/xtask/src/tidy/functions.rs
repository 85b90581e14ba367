//! Rule for the length of functions, with a list of exceptions that may only shrink.

use std::collections::BTreeMap;

use super::breach::Breach;
use super::mask::{brace_end, mask};
use super::ratchet;
use super::tree::Tree;

/// Most lines of code between a function's braces; blank lines and comments do not count.
const LINES_MAX: usize = 70;

/// A function that does not fit on a screen does more than one thing.
pub(super) fn lengths(tree: &Tree) -> Vec<Breach> {
    let allowed = match ratchet::numbers(tree, "functions") {
        Ok(allowed) => allowed,
        Err(reason) => return vec![Breach::new(ratchet::PATH, 1, "length", reason)],
    };
    let mut breaches = Vec::new();
    let mut seen = BTreeMap::new();
    for (path, text) in tree.sources() {
        for function in functions(text).into_iter().filter(|function| function.code_lines > LINES_MAX) {
            let key = format!("{path}::{}", function.name);
            let length = function.code_lines;
            seen.insert(key.clone(), length);
            let limit = allowed.get(&key).copied().unwrap_or(LINES_MAX);
            if length > limit {
                let reason = format!("`{}` has {length} lines of code; at most {limit}", function.name);
                breaches.push(Breach::new(path, function.line, "length", reason));
            }
        }
    }
    for (key, limit) in allowed {
        let reason = match seen.get(&key) {
            Some(length) if *length < limit => {
                format!("`{key}` has shrunk to {length} lines: change the entry from {limit}")
            }
            Some(_) => continue,
            None => format!("`{key}` is no longer over {LINES_MAX} lines: remove it from the list"),
        };
        breaches.push(Breach::new(ratchet::PATH, 1, "length", reason));
    }
    breaches
}

/// A function found in a source.
struct Function {
    name: String,
    line: usize,
    code_lines: usize,
}

/// All functions with a body, nested ones included.
fn functions(source: &str) -> Vec<Function> {
    let code = mask(source, true);
    // Strings count as code, comments do not.
    let counted = mask(source, false);
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|before| before.is_alphanumeric() || before == '_') {
            continue;
        }
        let rest = &code[at + "fn ".len()..];
        let name: String = rest.chars().take_while(|part| part.is_alphanumeric() || *part == '_').collect();
        // `fn(u8)` as a type, and declarations without a body.
        let Some(open) = body(rest).filter(|_| !name.is_empty()).map(|open| at + "fn ".len() + open) else {
            continue;
        };
        let end = brace_end(code.as_bytes(), open);
        let inside = counted.get(open + 1..end.saturating_sub(1)).unwrap_or_default();
        let line = code[..at].matches('\n').count() + 1;
        found.push(Function {
            name,
            line,
            code_lines: inside.lines().filter(|line| !line.trim().is_empty()).count(),
        });
    }
    found
}

/// Offset of the brace that opens the body of the function whose name starts `rest`; `None` when there is none.
fn body(rest: &str) -> Option<usize> {
    let mut nested = 0_usize;
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            b'(' | b'[' => nested += 1,
            b')' | b']' => nested = nested.saturating_sub(1),
            b';' if nested == 0 => return None,
            b'{' if nested == 0 => return Some(at),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
use super::breach::places;

#[cfg(test)]
fn function_of(lines: usize) -> String {
    format!(
        "// fn x() {{\nfn long(a: [u8; 2]) -> u8 {{\n{}    // free\n\n}}\n",
        "    f(\"}\");\n".repeat(lines)
    )
}

#[test]
fn long_functions_are_found() {
    for (lines, want) in [(LINES_MAX, 0), (LINES_MAX + 1, 1)] {
        let breaches = lengths(&Tree::of(&[("a.rs", &function_of(lines))]));
        assert_eq!(breaches.len(), want, "{breaches:?}");
        assert!(breaches.iter().all(|breach| breach.line == 2));
    }
    assert!(functions("trait T { fn a(&self); }\ntype F = fn (u8);\n").is_empty());
}

#[test]
fn the_ratchet_only_shrinks() {
    let table = [
        (72, 72, vec![]),
        (73, 72, vec!["a.rs:2"]),
        (71, 72, vec![ratchet::PATH]),
        (60, 72, vec![ratchet::PATH]),
    ];
    for (lines, allowed, want) in table {
        let ratchet = format!("[functions]\n\"a.rs::long\" = {allowed}\n");
        let files = [("a.rs", function_of(lines)), (ratchet::PATH, ratchet)];
        let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        let found = places(&lengths(&Tree::of(&files)));
        assert!(
            found.len() == want.len() && found.iter().zip(&want).all(|(a, b)| a.starts_with(b)),
            "{lines}: {found:?}"
        );
    }
}

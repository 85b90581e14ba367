//! The plain versions: a set of names, and a matcher that tries everything.

use std::collections::{BTreeMap, BTreeSet};

/// All patterns without braces that a component means.
pub(super) fn expand(pattern: &str) -> Vec<String> {
    let bytes = pattern.as_bytes();
    let Some((open, close)) = first_pair(bytes) else { return vec![pattern.to_owned()] };
    let (mut depth, mut begin, mut branches, mut at) = (0, open + 1, Vec::new(), open + 1);
    while at < close {
        match bytes[at] {
            b'\\' => at += 1,
            b'[' if class_end(&bytes[at..]).is_some() => at += class_end(&bytes[at..]).unwrap(),
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 0 => {
                branches.push(&pattern[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    branches.push(&pattern[begin..close]);
    let rests = expand(&pattern[close + 1..]);
    let mut all = Vec::new();
    for branch in branches.into_iter().flat_map(expand) {
        all.extend(rests.iter().map(|rest| format!("{}{branch}{rest}", &pattern[..open])));
    }
    all
}

/// The first brace that has another half.
fn first_pair(bytes: &[u8]) -> Option<(usize, usize)> {
    let (mut open, mut at, mut pairs) = (Vec::new(), 0, Vec::new());
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'[' if class_end(&bytes[at..]).is_some() => at += class_end(&bytes[at..]).unwrap(),
            b'{' => open.push(at),
            b'}' => pairs.extend(open.pop().map(|begin| (begin, at))),
            _ => {}
        }
        at += 1;
    }
    pairs.into_iter().min()
}

/// Position of the `]` of a class at the start.
fn class_end(bytes: &[u8]) -> Option<usize> {
    let begin = if bytes.get(1) == Some(&b'!') { 3 } else { 2 };
    (begin..bytes.len()).find(|at| bytes[*at] == b']')
}

/// Whether a component without braces matches: `*`, `?`, classes, escapes; ASCII only.
pub(super) fn component(pattern: &[u8], text: &[u8]) -> bool {
    let Some(first) = pattern.first() else { return text.is_empty() };
    let one = |len: usize, takes: bool| takes && component(&pattern[len..], &text[1..]);
    match first {
        b'*' => (0..=text.len()).any(|skip| component(&pattern[1..], &text[skip..])),
        _ if text.is_empty() => false,
        b'?' => one(1, true),
        b'[' if class_end(pattern).is_some() => {
            let end = class_end(pattern).unwrap();
            let inverted = pattern[1] == b'!';
            let mut members = &pattern[if inverted { 2 } else { 1 }..end];
            let mut takes = false;
            while let Some(member) = members.first() {
                if let [from, b'-', to, ..] = members {
                    takes |= (from..=to).contains(&&text[0]);
                    members = &members[3..];
                } else {
                    takes |= *member == text[0];
                    members = &members[1..];
                }
            }
            one(end + 1, takes != inverted)
        }
        b'\\' if pattern.len() > 1 => one(2, pattern[1] == text[0]),
        byte => one(1, *byte == text[0]),
    }
}

fn path(pattern: &[&str], components: &[&str]) -> bool {
    match pattern {
        [] => components.is_empty(),
        ["**"] => !components.is_empty(),
        ["**", rest @ ..] => (0..=components.len()).any(|skip| path(rest, &components[skip..])),
        [first, rest @ ..] => {
            let Some((component_text, after)) = components.split_first() else { return false };
            let matches =
                expand(first).iter().any(|one| component(one.as_bytes(), component_text.as_bytes()));
            matches && path(rest, after)
        }
    }
}

/// The paths that a glob matches, each with (is a series, is a prefix).
pub(super) fn find(names: &BTreeSet<String>, glob: &str) -> BTreeMap<String, (bool, bool)> {
    let pattern: Vec<&str> = glob.split('.').collect();
    let mut found: BTreeMap<String, (bool, bool)> = BTreeMap::new();
    for name in names {
        let components: Vec<&str> = name.split('.').collect();
        for len in 1..=components.len() {
            if path(&pattern, &components[..len]) {
                let entry = found.entry(components[..len].join(".")).or_default();
                entry.0 |= len == components.len();
                entry.1 |= len < components.len();
            }
        }
    }
    found
}

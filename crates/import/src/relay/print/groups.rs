//! Order of rules in test mode: that of the files, or grouped as the original does with many rules.
//!
//! The original searches for the word that a group's expressions share, and tries the expressions only if it is
//! found. This reorders rules, but never across a rule that rewrites or has no such word; after a rule that stops,
//! nothing is grouped until the next of those. We always keep the order of the files (`process::relay`), and group
//! only the printed form, so that it can be compared.

use process::relay::To;

use crate::relay::document::*;
use crate::relay::pattern::Pattern;

/// Shortest word that the original groups by, in bytes.
const WORD_BYTES_MIN: usize = 3;
/// Longest part of a word that it compares.
const WORD_BYTES_MAX: usize = 62;
/// Fewest expressions of a group.
const GROUP_PATTERNS_MIN: usize = 3;

/// Rules that are printed together.
pub(super) struct Group<'a> {
    /// The word that their expressions share; none when they are no group.
    pub word: Option<String>,
    /// Rules, or parts of them.
    pub items: Vec<Item<'a>>,
}

/// A rule with some of its expressions.
pub(super) struct Item<'a> {
    /// Index in the document.
    pub rule: usize,
    /// In the order of the file.
    pub patterns: Vec<&'a Pattern>,
}

impl Group<'_> {
    /// Number of expressions in it.
    pub(super) fn patterns(&self) -> usize {
        self.items.iter().map(|item| item.patterns.len()).sum()
    }
}

/// A rule with all its expressions.
pub(super) fn whole(conf: &RelayConf, rule: usize) -> Item<'_> {
    Item { rule, patterns: conf.rules[rule].patterns().iter().collect() }
}

/// All rules in the order of printing.
pub(super) fn of(conf: &RelayConf, group_from: Option<u32>) -> Vec<Group<'_>> {
    let all = || (0..conf.rules.len()).map(|rule| whole(conf, rule));
    let stubs =
        conf.rules.iter().filter_map(Rule::as_aggregate).filter(|rule| rule.send != To::Nowhere).count();
    let stubs = stubs + usize::from(conf.statistics.send != To::Nowhere);
    let count = stubs + all().map(|item| item.patterns.len()).sum::<usize>();
    if group_from.is_none_or(|least| (least as usize) > count) {
        return vec![Group { word: None, items: all().collect() }];
    }
    let mut groups: Vec<Group<'_>> = Vec::new();
    // Where groups begin that may still grow, and whether an expression that stops prevents that.
    let (mut open, mut stopped) = (0, false);
    for Item { rule, patterns } in all() {
        for pattern in patterns {
            let word = shared_word(&conf.rules[rule], pattern);
            let has_word = word.is_some();
            let word = word.filter(|_| !stopped);
            let mut known = groups[open..].iter();
            let known = word.as_ref().and_then(|_| known.position(|group| group.word == word));
            let at = known.map_or(groups.len(), |at| open + at);
            if at == groups.len() {
                groups.push(Group { word, items: Vec::new() });
            }
            add(&mut groups[at].items, rule, pattern);
            if !has_word {
                (open, stopped) = (groups.len(), false);
            } else if stops(&conf.rules[rule]) {
                // The group moves behind everything before this rule.
                let group = groups.remove(at);
                groups.push(group);
                stopped = true;
            }
        }
    }
    for group in &mut groups {
        if group.patterns() < GROUP_PATTERNS_MIN {
            group.word = None;
        }
    }
    joined(groups)
}

fn stops(rule: &Rule) -> bool {
    match rule {
        Rule::Match(rule) => rule.stop && rule.send != To::Nowhere,
        Rule::Rewrite(_) => false,
        Rule::Aggregate(rule) => rule.stop,
    }
}

/// The word that groups an expression of a rule.
fn shared_word(rule: &Rule, pattern: &Pattern) -> Option<String> {
    let has_none = matches!(rule, Rule::Rewrite(_)) || pattern.class.is_none();
    if has_none { None } else { word(&pattern.written) }
}

/// Adds an expression to the others of its rule, or adds the rule.
fn add<'a>(items: &mut Vec<Item<'a>>, rule: usize, pattern: &'a Pattern) {
    match items.last_mut().filter(|last| last.rule == rule) {
        Some(last) => last.patterns.push(pattern),
        None => items.push(Item { rule, patterns: vec![pattern] }),
    }
}

/// Joins parts of one rule again where nothing is between them.
fn joined(groups: Vec<Group<'_>>) -> Vec<Group<'_>> {
    let mut out: Vec<Group<'_>> = Vec::new();
    for group in groups {
        match out.last_mut().filter(|last| last.word.is_none() && group.word.is_none()) {
            Some(last) => {
                let parts = group.items.into_iter().flat_map(|item| {
                    let rule = item.rule;
                    item.patterns.into_iter().map(move |pattern| (rule, pattern))
                });
                parts.for_each(|(rule, pattern)| add(&mut last.items, rule, pattern));
            }
            None => out.push(group),
        }
    }
    out
}

/// The last word of an expression outside of groups; none when it is too short.
fn word(expression: &str) -> Option<String> {
    let is_word = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    let bytes = expression.as_bytes();
    let mut at = bytes.len();
    let mut depth = 0usize;
    while at > 0 && (depth > 0 || !is_word(bytes[at - 1])) {
        let is_escaped = at > 1 && bytes[at - 2] == b'\\';
        match bytes[at - 1] {
            b')' if !is_escaped => depth += 1,
            b'(' if !is_escaped => depth = depth.saturating_sub(1),
            _ => {}
        }
        at -= 1;
    }
    let end = at;
    while at > 0 && end - at < WORD_BYTES_MAX && is_word(bytes[at - 1]) {
        at -= 1;
    }
    (end - at >= WORD_BYTES_MIN).then(|| expression[at..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relay::read_text;

    #[test]
    fn the_group_word_is_the_last_word_outside_of_groups() {
        // Output of carbon-c-relay 3.7.3.
        let table = [
            ("a.errors", Some("errors")),
            ("^errors\\..*", Some("errors")),
            ("dothework.(foo|bar)\\.(.+)", Some("dothework")),
            ("errors(a(b)c)", Some("errors")),
            ("errors{2}", Some("errors")),
            ("errors\\)", Some("errors")),
            ("err[abcdef]", Some("abcdef")),
            ("errors[a-z]", None),
            ("foo-errors", Some("errors")),
            ("foo-errors-x", None),
            ("Err9ors", Some("ors")),
            ("_errors.xx", None),
            ("errors_", Some("errors_")),
            ("errors)", None),
            ("[0-9]+", None),
        ];
        for (expression, want) in table {
            assert_eq!(word(expression).as_deref(), want, "{expression}");
        }
        assert_eq!(word(&"x".repeat(70)).map(|word| word.len()), Some(WORD_BYTES_MAX));
    }

    #[test]
    fn rules_are_not_grouped_across_stop_rewrite_or_rules_without_a_word() {
        // Output of carbon-c-relay 3.7.3. Brackets are a group; a digit for each expression of a rule.
        let table = [
            ("match p.bar send to a; match q.bar send to a; match r.bar send to a;", "(bar: 0, 1, 2)"),
            ("match p.bar send to a; match q.bar send to a;", "0, 1"),
            ("match p.bar send to a; match q.bar send to a stop; match r.bar send to a;", "0, 1, 2"),
            ("match p.bar send to a; match q.bar send to a; match r.bar send to a stop;", "(bar: 0, 1, 2)"),
            ("match p.bar send to a; match * send to a; match q.bar r.bar send to a;", "0, 1, 22"),
            ("match p.bar send to a; rewrite x into y; match q.bar r.bar send to a;", "0, 1, 22"),
            ("match p.bar send to a; match ab send to a; match q.bar r.bar send to a;", "0, 1, 22"),
            (
                "match q.bar x.foo send to a; match r.bar x.foo send to a; match s.bar x.foo y.foo send to a;",
                "(bar: 0, 1, 2), (foo: 0, 1, 22)",
            ),
            ("match p.bar x.foo q.bar send to a;", "000"),
            ("match p.bar send to a; match k.foo send to a; match q.bar r.bar send to a stop;", "1, 0, 22"),
            ("match k.foo send to a stop; match p.bar q.bar r.bar send to a;", "0, 111"),
            ("match k.ab send to a stop; match p.bar q.bar r.bar send to a;", "0, (bar: 111)"),
            (
                "match k.foo send to a stop; match * send to a; match p.bar q.bar r.bar send to a;",
                "0, 1, (bar: 222)",
            ),
        ];
        for (rules, want) in table {
            let conf = read_text("relay.conf", &format!("cluster a forward 10.0.0.1; {rules}")).conf;
            let conf = conf.expect("a valid configuration");
            let groups: Vec<String> = of(&conf, Some(0)).iter().map(shown).collect();
            assert_eq!(groups.join(", "), want, "{rules}");
            assert_eq!(of(&conf, None).len(), 1);
        }
    }

    fn shown(group: &Group<'_>) -> String {
        let items = group.items.iter().map(|item| item.rule.to_string().repeat(item.patterns.len()));
        let items = items.collect::<Vec<_>>().join(", ");
        group.word.as_ref().map_or(items.clone(), |word| format!("({word}: {items})"))
    }
}

//! Prefilter of rules: finds those that can match a name in one pass, however many rules there are.
//!
//! Most expressions match only names with a certain text. One automaton (Aho-Corasick) searches for the texts of
//! all rules at once. A rule is evaluated only when one of its texts is in the name, or when it has none.
//! Not here: whether the rule matches. Invariant: a rule that matches is never left out.

use std::collections::BTreeMap;

use aho_corasick::{AhoCorasick, MatchKind};
use regex_syntax::hir::{Hir, HirKind};

/// Maximum texts of one expression: more alternatives are not worth the memory.
const TEXTS_MAX: usize = 16;

/// Texts of which every match of an expression contains at least one.
pub(super) type Texts = Vec<Vec<u8>>;

/// The prefilter.
#[derive(Clone, Debug, Default)]
pub(super) struct Prefilter {
    /// None when no rule has a text.
    automaton: Option<AhoCorasick>,
    /// For each text of the automaton, the rules that it belongs to.
    rules: Vec<Vec<u32>>,
    /// One bit per rule; set for rules that are always evaluated.
    always: Vec<u64>,
}

/// One bit per rule; set for rules to evaluate.
#[derive(Clone, Debug, Default)]
pub(super) struct Candidates(Vec<u64>);

impl Prefilter {
    /// Built from the texts of each rule, in order.
    pub(super) fn new(texts: &[Option<Texts>]) -> Prefilter {
        let mut always = vec![0; texts.len().div_ceil(64)];
        let mut rules_of: BTreeMap<&[u8], Vec<u32>> = BTreeMap::new();
        for (rule, texts) in texts.iter().enumerate() {
            match texts {
                Some(texts) if !texts.iter().any(Vec::is_empty) => {
                    texts.iter().for_each(|text| rules_of.entry(text).or_default().push(rule as u32));
                }
                Some(_) | None => set(&mut always, rule as u32),
            }
        }
        let (patterns, rules): (Vec<&[u8]>, Vec<Vec<u32>>) = rules_of.into_iter().unzip();
        let build = || AhoCorasick::builder().match_kind(MatchKind::Standard).build(&patterns).ok();
        let automaton = if patterns.is_empty() { None } else { build() };
        if automaton.is_none() {
            // Too large for an automaton: all rules are evaluated.
            rules.iter().flatten().for_each(|rule| set(&mut always, *rule));
        }
        Prefilter { automaton, rules, always }
    }

    /// Replaces the content of `to` by the rules that can match a name.
    pub(super) fn candidates(&self, name: &[u8], to: &mut Candidates) {
        to.0.clone_from(&self.always);
        let Some(automaton) = &self.automaton else { return };
        for found in automaton.find_overlapping_iter(name) {
            self.rules[found.pattern().as_usize()].iter().for_each(|rule| set(&mut to.0, *rule));
        }
    }
}

fn set(bits: &mut [u64], rule: u32) {
    bits[rule as usize / 64] |= 1 << (rule % 64);
}

impl Candidates {
    /// The first candidate at or after an index.
    pub(super) fn next(&self, from: usize) -> Option<usize> {
        let mut word = from / 64;
        let mut bits = self.0.get(word)? & (u64::MAX << (from % 64));
        while bits == 0 {
            word += 1;
            bits = *self.0.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }
}

/// The texts of an expression; None when it may match without any of them.
pub(super) fn texts(hir: &Hir) -> Option<Texts> {
    match hir.kind() {
        HirKind::Literal(literal) => Some(vec![literal.0.to_vec()]),
        HirKind::Capture(capture) => texts(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => texts(&repetition.sub),
        HirKind::Concat(parts) => {
            // The rarest: the set whose shortest text is longest.
            let shortest = |texts: &Texts| texts.iter().map(Vec::len).min();
            parts.iter().filter_map(texts).max_by_key(shortest)
        }
        HirKind::Alternation(branches) => {
            let all: Option<Vec<Texts>> = branches.iter().map(texts).collect();
            all.map(|all| all.concat()).filter(|all| all.len() <= TEXTS_MAX)
        }
        HirKind::Repetition(_) | HirKind::Empty | HirKind::Class(_) | HirKind::Look(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::expression::Expression;
    use super::*;

    fn of(text: &str) -> Option<Vec<String>> {
        let texts = Expression::new(&text.into(), true).expect("a valid expression").texts();
        texts.map(|texts| texts.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect())
    }

    #[test]
    fn required_texts_of_expressions_are_found() {
        let table: &[(&str, Option<&[&str]>)] = &[
            ("foo", Some(&["foo"])),
            ("^foo\\.bar$", Some(&["foo.bar"])),
            ("^", Some(&[""])),
            ("^a\\.(.*)\\.cpu\\.total$", Some(&[".cpu.total"])),
            ("(abc)+x", Some(&["abc"])),
            ("(abc)*x", Some(&["x"])),
            ("(abc)?", None),
            ("^[a-z]+$", None),
            ("(foo|barx)\\.", Some(&["foo", "barx"])),
            ("(foo|[a-z])\\.", Some(&["."])),
            ("(foo|[a-z])", None),
        ];
        for (text, want) in table {
            let want = want.map(|want| want.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
            assert_eq!(of(text), want, "{text:?}");
        }
        let many =
            |count| format!("({})", (0..count).map(|at| format!("x{at}y")).collect::<Vec<_>>().join("|"));
        assert!(of(&many(200)).is_none());
        let folded = super::super::ExpressionPlan { text: "foo\\.9".into(), ignore_case: true };
        let folded = Expression::new(&folded, true).expect("a valid expression").texts();
        assert_eq!(folded, Some(vec![b".9".to_vec()]));
    }

    #[test]
    fn candidates_are_found_in_order() {
        let rules: Vec<Option<Texts>> = (0..200)
            .map(|rule| match rule {
                70 | 130 => None,
                190 => Some(vec![Vec::new()]),
                _ => Some(vec![format!("r{rule}.").into_bytes(), format!("s{rule}.").into_bytes()]),
            })
            .collect();
        let prefilter = Prefilter::new(&rules);
        let all = |name: &str| {
            let mut candidates = Candidates::default();
            prefilter.candidates(name.as_bytes(), &mut candidates);
            let next = |at: &usize| candidates.next(at + 1);
            std::iter::successors(candidates.next(0), next).collect::<Vec<_>>()
        };
        assert_eq!(all("x"), [70, 130, 190]);
        assert_eq!(all("r199.r0.s63.r64.x"), [0, 63, 64, 70, 130, 190, 199]);
        assert_eq!(Candidates::default().next(0), None);
        let mut none = Candidates::default();
        Prefilter::new(&[]).candidates(b"x", &mut none);
        assert_eq!(none.next(0), None);
    }
}

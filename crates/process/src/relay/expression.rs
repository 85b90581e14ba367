//! Compiled expressions for names: parsing as the relay does, and matching (spec graphite §2.5).
//!
//! Path of a name: `Router::decide` -> **`Expression::find`** -> `Replacement::expand`.
//! Most expressions are plain text with an anchor or two, and need no automaton. `class` detects them, by the rules
//! of the original, whose test mode prints the class. `syntax` translates the others: for the linear engine
//! (`searches`), or for `backtracking` if they need it.
//! Not here: the action after a match. Of several matches at one position the first alternative is taken (Perl),
//! not the longest (POSIX); the relay docs list where that shows.
//! Invariants: the time for a name is linear in its length, or the search gives up at a limit; memory is limited by
//! the `_MAX` constants for any names.

use memchr::memmem::Finder;

use super::ExpressionPlan;
use super::backtracking::Backtracking;
use super::found::{Found, GaveUp};
use super::prefilter::{self, Texts};
use super::searches::{Linear, Searches};
use super::syntax::{self, Note, Refusal, Translated};

/// Maximum memory of the automaton of one expression.
pub const COMPILED_BYTES_MAX: usize = 1 << 20;

/// Minimum work of a new name.
pub(super) const NAME_WORK: u64 = 16;

/// Cost of one backtracking search, in bytes that a linear search goes over.
const BACKTRACKING_WORK: u64 = 4 << 10;

/// Maximum cache of an automaton in each direction. A full cache is cleared.
const REMEMBERED_BYTES_MAX: usize = 128 << 10;

/// Maximum bytes that all searches for the matches in one name may have ahead of them, together. Each may scan the
/// rest of the name, and there may be as many searches as bytes.
const ALL_BYTES_MAX: usize = 1 << 20;

/// How an expression is matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Class {
    /// The name contains the text.
    Contains(Vec<u8>),
    /// The name begins with the text: `^`.
    Begins(Vec<u8>),
    /// The name ends with the text: `$`.
    Ends(Vec<u8>),
    /// The name equals the text.
    Equals(Vec<u8>),
    /// Anything else.
    Regex,
}

/// Properties of an expression, known before it is compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// How it is matched.
    pub class: Class,
    /// Groups that a replacement can refer to.
    pub groups: usize,
    /// Hints for the author of the expression.
    pub notes: Vec<Note>,
}

/// A compiled expression.
#[derive(Clone, Debug)]
pub struct Expression {
    class: Class,
    groups: usize,
    matcher: Matcher,
    texts: Option<Texts>,
}

#[derive(Clone, Debug)]
enum Matcher {
    Text(Box<Finder<'static>>),
    Linear(Linear),
    Backtracking(Backtracking),
}

/// Cost of searches, in bytes that a linear search goes over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    per_16_bytes: u64,
    fixed: u64,
}

impl Work {
    /// In a text of this length.
    #[inline]
    pub(super) fn of(&self, bytes: usize) -> u64 {
        self.fixed + self.per_16_bytes * bytes as u64 / 16
    }

    /// Cost of searching a name for all of these expressions.
    pub(super) fn of_name<'a>(expressions: impl Iterator<Item = &'a Expression>) -> Work {
        expressions.fold(Work { per_16_bytes: 0, fixed: NAME_WORK }, |all, one| {
            let Work { per_16_bytes, fixed } = one.work();
            Work { per_16_bytes: all.per_16_bytes + per_16_bytes, fixed: all.fixed + fixed }
        })
    }
}

impl ExpressionPlan {
    /// The outline of the expression. `captures` as for [`Expression::new`]: it adds notes.
    ///
    /// # Errors
    /// The first construct that is invalid. A valid expression may still be too large, or have a look-behind
    /// without a fixed length.
    pub fn outline(&self, captures: bool) -> Result<Outline, Refusal> {
        match class_of(self) {
            Class::Regex => {
                let Translated { groups, notes, .. } = translated(self, captures)?;
                Ok(Outline { class: Class::Regex, groups, notes })
            }
            class => Ok(Outline { class, groups: 0, notes: Vec::new() }),
        }
    }
}

impl Expression {
    /// Compiles an expression. With `captures`, positions and groups of matches are needed, not only whether there
    /// is one.
    ///
    /// # Errors
    /// Why the expression cannot be used.
    pub fn new(plan: &ExpressionPlan, captures: bool) -> Result<Expression, Refusal> {
        Expression::distribution(plan, captures, &Searches::default())
    }

    /// As `new`, with a search cache that is shared with other expressions.
    pub(super) fn distribution(
        plan: &ExpressionPlan,
        captures: bool,
        searches: &Searches,
    ) -> Result<Expression, Refusal> {
        let class = class_of(plan);
        let text = match &class {
            Class::Contains(text) | Class::Begins(text) | Class::Ends(text) | Class::Equals(text) => text,
            Class::Regex => {
                let translated = translated(plan, captures)?;
                let (matcher, texts) = compiled(plan, &translated, searches)?;
                return Ok(Expression { class, groups: translated.groups, matcher, texts });
            }
        };
        let matcher = Matcher::Text(Box::new(Finder::new(text).into_owned()));
        let texts = Some(vec![text.clone()]);
        Ok(Expression { class, groups: 0, matcher, texts })
    }

    /// A copy for another router. It shares nothing that a search changes.
    pub(super) fn detached(&self, searches: &Searches) -> Expression {
        let matcher = match &self.matcher {
            Matcher::Text(finder) => Matcher::Text(finder.clone()),
            Matcher::Linear(regex) => Matcher::Linear(regex.detached(searches)),
            Matcher::Backtracking(regex) => Matcher::Backtracking(regex.detached(&searches.budget)),
        };
        Expression { class: self.class.clone(), groups: self.groups, matcher, texts: self.texts.clone() }
    }

    /// The cost of searching for it.
    pub(super) fn work(&self) -> Work {
        match &self.matcher {
            Matcher::Text(_) => Work { per_16_bytes: 1, fixed: 0 },
            Matcher::Linear(_) => Work { per_16_bytes: 16, fixed: 0 },
            Matcher::Backtracking(_) => Work { per_16_bytes: 16, fixed: BACKTRACKING_WORK },
        }
    }

    /// How it is matched.
    pub fn class(&self) -> &Class {
        &self.class
    }

    /// Texts of which every matching name contains at least one; None when there are no such texts.
    pub(super) fn texts(&self) -> Option<Texts> {
        self.texts.clone()
    }

    /// Groups that a replacement can refer to.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// True when the name matches.
    ///
    /// # Errors
    /// The search came to a limit.
    pub fn is_in(&self, name: &[u8]) -> Result<bool, GaveUp> {
        match &self.matcher {
            Matcher::Text(_) => Ok(self.text_span(name).is_some()),
            Matcher::Linear(regex) => Ok(regex.is_in(name)),
            Matcher::Backtracking(regex) => {
                if self.can_be_in(name) {
                    regex.is_in(name)
                } else {
                    Ok(false)
                }
            }
        }
    }

    /// The first match.
    pub(super) fn find(&self, name: &[u8]) -> Result<Option<Found>, GaveUp> {
        match &self.matcher {
            Matcher::Text(_) => Ok(self.text_span(name).map(|span| Found { span, groups: Vec::new() })),
            Matcher::Linear(regex) => Ok(regex.find(name)),
            Matcher::Backtracking(regex) => {
                if self.can_be_in(name) {
                    regex.find(name)
                } else {
                    Ok(None)
                }
            }
        }
    }

    /// All matches that do not overlap, as Python's `re.sub` finds them: an empty match may directly follow another
    /// match, and none splits a character.
    pub(super) fn find_all(&self, name: &[u8]) -> Result<Vec<Found>, GaveUp> {
        match &self.matcher {
            Matcher::Text(finder) if matches!(self.class, Class::Contains(_)) => {
                let length = finder.needle().len();
                let at = |at| Found { span: (at, at + length), groups: Vec::new() };
                all(name, usize::MAX, |from| Ok(finder.find(&name[from..]).map(|found| at(from + found))))
            }
            Matcher::Text(_) => Ok(self.find(name)?.into_iter().collect()),
            Matcher::Linear(regex) => all(name, ALL_BYTES_MAX, |from| Ok(regex.find_from(name, from))),
            Matcher::Backtracking(regex) => {
                if self.can_be_in(name) {
                    all(name, ALL_BYTES_MAX, |from| regex.find_from(name, from))
                } else {
                    Ok(Vec::new())
                }
            }
        }
    }

    /// True when the name contains one of the texts. The prefilter checks the same, so that with and without it the
    /// same names are searched, and the same searches give up.
    fn can_be_in(&self, name: &[u8]) -> bool {
        let Some(texts) = &self.texts else { return true };
        texts.iter().any(|text| memchr::memmem::find(name, text).is_some())
    }

    fn text_span(&self, name: &[u8]) -> Option<(usize, usize)> {
        let end = name.len();
        match (&self.class, &self.matcher) {
            (Class::Contains(text), Matcher::Text(finder)) => {
                finder.find(name).map(|at| (at, at + text.len()))
            }
            (Class::Begins(text), _) => name.starts_with(text).then_some((0, text.len())),
            (Class::Ends(text), _) => name.ends_with(text).then(|| (end - text.len(), end)),
            (Class::Equals(text), _) => (name == text).then_some((0, end)),
            (Class::Contains(_) | Class::Regex, _) => None,
        }
    }
}

fn all(
    name: &[u8],
    bytes_max: usize,
    mut find_from: impl FnMut(usize) -> Result<Option<Found>, GaveUp>,
) -> Result<Vec<Found>, GaveUp> {
    let (mut all, mut from, mut left) = (Vec::new(), 0, bytes_max);
    while from <= name.len()
        && let Some(found) = find_from(from)?
    {
        left = left.checked_sub(name.len() - from).ok_or(GaveUp)?;
        let (begin, end) = found.span;
        from = end;
        if begin == end {
            let is_inside = |at: &usize| name.get(*at).is_some_and(|byte| byte & 0xC0 == 0x80);
            from = (end + 1..).find(|at| !is_inside(at)).unwrap_or(name.len());
        }
        all.push(found);
    }
    Ok(all)
}

fn translated(plan: &ExpressionPlan, captures: bool) -> Result<Translated, Refusal> {
    syntax::translate(&plan.text, plan.ignore_case, captures)
}

fn compiled(
    plan: &ExpressionPlan,
    translated: &Translated,
    searches: &Searches,
) -> Result<(Matcher, Option<Texts>), Refusal> {
    let whole = || 0..plan.text.len();
    let too_large = || {
        let message =
            format!("this expression needs more than {} MiB once it is compiled", COMPILED_BYTES_MAX >> 20);
        Refusal::new(whole(), &message, syntax::TOO_BIG)
            .hint("use fewer repetitions: an item followed by {…} is compiled that many times")
    };
    let matcher = match &translated.backtracking {
        Some(text) => {
            Matcher::Backtracking(Backtracking::new(text, &searches.budget).map_err(|why| match why {
                Some(why) => Refusal::new(whole(), &why, syntax::NOT_REPEATABLE),
                None => Refusal::new(
                    whole(),
                    "this expression is too large to be matched by backtracking",
                    syntax::TOO_BIG,
                ),
            })?)
        }
        None => {
            let built = Linear::new(&translated.linear, COMPILED_BYTES_MAX, REMEMBERED_BYTES_MAX, searches);
            Matcher::Linear(built.map_err(|_| too_large())?)
        }
    };
    let parts = regex_syntax::ParserBuilder::new()
        .unicode(false)
        .utf8(false)
        .dot_matches_new_line(true)
        .build()
        .parse(&translated.linear);
    Ok((matcher, parts.ok().as_ref().and_then(prefilter::texts)))
}

fn class_of(plan: &ExpressionPlan) -> Class {
    if plan.ignore_case { Class::Regex } else { class(&plan.text) }
}

/// The class of an expression, by the same syntactic rules as in the original.
fn class(text: &str) -> Class {
    let (begins, rest) = match text.strip_prefix('^') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let mut literal = Vec::with_capacity(rest.len());
    let mut bytes = rest.bytes().peekable();
    let mut ends = false;
    while let Some(byte) = bytes.next() {
        match byte {
            b'$' if bytes.peek().is_none() => ends = true,
            b'\\' => match bytes.next() {
                Some(next @ (b'\\' | b'.' | b'^' | b'*' | b'+')) => literal.push(next),
                _ => return Class::Regex,
            },
            b'_' | b'-' => literal.push(byte),
            _ if byte.is_ascii_alphanumeric() => literal.push(byte),
            _ => return Class::Regex,
        }
    }
    match (begins, ends) {
        (false, false) => Class::Contains(literal),
        (true, false) => Class::Begins(literal),
        (false, true) => Class::Ends(literal),
        (true, true) => Class::Equals(literal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expression(text: &str) -> Expression {
        Expression::new(&text.into(), true).expect("a valid expression")
    }

    #[test]
    fn classes_equal_those_of_the_original() {
        // Output of carbon-c-relay 3.7.3 with `-t`: its word and the text that it shows.
        let table = [
            ("foo", "strstr", "foo"),
            ("foo_-9", "strstr", "foo_-9"),
            ("foo\\.bar$", "tailcmp", "foo.bar"),
            ("^foo$", "strcmp", "foo"),
            ("^foo", "strncmp", "foo"),
            ("^", "strncmp", ""),
            ("$", "tailcmp", ""),
            ("\\^foo", "strstr", "^foo"),
            ("a:b", "regex", ""),
            ("foo\\d", "regex", ""),
            ("foo\\$", "regex", ""),
            ("foo\\-x", "regex", ""),
            ("fo.o", "regex", ""),
            ("f$oo", "regex", ""),
            ("(foo)", "regex", ""),
        ];
        for (text, word, literal) in table {
            let literal = literal.as_bytes().to_vec();
            let want = match word {
                "strstr" => Class::Contains(literal),
                "strncmp" => Class::Begins(literal),
                "tailcmp" => Class::Ends(literal),
                "strcmp" => Class::Equals(literal),
                _ => Class::Regex,
            };
            assert_eq!(*expression(text).class(), want, "{text:?}");
        }
        let ignore_case = ExpressionPlan { text: "foo".into(), ignore_case: true };
        let folded = Expression::new(&ignore_case, true).expect("a valid expression");
        assert!(*folded.class() == Class::Regex && folded.is_in(b"xFOOx") == Ok(true));
    }

    #[test]
    fn matches_and_groups_are_found() {
        // (expression, name, the match and its groups as text)
        let table: &[(&str, &str, Option<&[&str]>)] = &[
            ("foo", "a.foo.foo", Some(&["foo"])),
            ("^foo", "a.foo", None),
            ("^foo", "foo.a", Some(&["foo"])),
            ("foo$", "foo.foo", Some(&["foo"])),
            ("^foo$", "foo", Some(&["foo"])),
            ("^foo$", "foo.", None),
            ("f.o", "a.fxo", Some(&["fxo"])),
            ("^(a)(b)?(.*)$", "a.c", Some(&["a.c", "a", "-", ".c"])),
            ("(o)*", "foo", Some(&["", "-"])),
            ("a|ab", "xab", Some(&["a"])),
            // Debian's carbon-c-relay 3.7.3, built with the C library, matches it as `(a+)+` with `-t`.
            ("^a++ab$", "aaab", Some(&["aaab"])),
            ("^b+*c$", "c", Some(&["c"])),
            ("[a-c]+\\.\\d{2}", "x.abc.42", Some(&["abc.42"])),
            ("[^.]+$", "x.\u{e9}", Some(&["\u{e9}"])),
        ];
        for (text, name, want) in table {
            let expression = expression(text);
            let found = expression.find(name.as_bytes()).expect("no limit");
            assert_eq!(expression.is_in(name.as_bytes()), Ok(want.is_some()), "{text:?} in {name:?}");
            let texts = found.map(|found| {
                let spans = [Some(found.span)].into_iter().chain(found.groups);
                spans.map(|span| span.map_or("-", |(begin, end)| &name[begin..end])).collect::<Vec<_>>()
            });
            assert_eq!(texts.as_deref(), *want, "{text:?} in {name:?}");
        }
        let begins = |found: &Found| found.span.0;
        let all = |text, name: &str| {
            expression(text)
                .find_all(name.as_bytes())
                .expect("no limit")
                .iter()
                .map(begins)
                .collect::<Vec<_>>()
        };
        assert_eq!(all("ab", "ababab.ab"), [0, 2, 4, 7]);
        assert_eq!(all("^ab", "abab"), [0]);
        assert_eq!(all("a[bc]", "abacad"), [0, 2]);
    }
}

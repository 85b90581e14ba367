//! Expressions for names: as the relay reads them, and as the library runs them (spec graphite §2.5).
//!
//! Path of a name: `Router::decide` -> **`Expression::find`** -> `Replacement::expand`.
//! Most expressions are plain text with an anchor or two, which needs no automaton; `class` says which, by the rules of
//! the original, whose test mode prints it. The rest is turned into the library's form by `syntax`.
//! Not here: what a match brings about. Of several matches at one place the first alternative is taken (Perl), not the
//! longest (POSIX): docs of the relay list where that shows.
//! Invariant: the time for a name is linear in its length, whatever the expression.

use memchr::memmem::Finder;
use regex::bytes::{Regex, RegexBuilder};

use super::ExpressionPlan;
use super::sieve::{self, Texts};
use super::syntax::in_library_form;

/// Most groups of an expression.
pub const GROUPS_MAX: usize = 64;

/// Most memory that the automaton of one expression takes.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// How an expression is looked for in a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Class {
    /// The text stands anywhere.
    Contains(Vec<u8>),
    /// The name begins with it: `^`.
    Begins(Vec<u8>),
    /// The name ends with it: `$`.
    Ends(Vec<u8>),
    /// The name is the text.
    Equals(Vec<u8>),
    /// Anything else.
    Regex,
}

/// Where an expression was found, and its groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Begin and end of the whole match.
    pub(super) span: (usize, usize),
    /// Begin and end of group 1 and those that follow; none where a group took no part.
    pub(super) groups: Vec<Option<(usize, usize)>>,
}

/// An expression, compiled.
#[derive(Clone, Debug)]
pub(super) struct Expression {
    class: Class,
    matcher: Matcher,
    texts: Option<Texts>,
}

#[derive(Clone, Debug)]
enum Matcher {
    Text(Box<Finder<'static>>),
    Regex(Regex),
}

impl Expression {
    /// # Errors
    /// Why the expression cannot be, in words.
    pub(super) fn new(plan: &ExpressionPlan) -> Result<Expression, String> {
        let class = if plan.ignore_case { Class::Regex } else { class(&plan.text) };
        let text = match &class {
            Class::Contains(text) | Class::Begins(text) | Class::Ends(text) | Class::Equals(text) => text,
            Class::Regex => {
                let (regex, texts) = compiled(plan)?;
                return Ok(Expression { class, matcher: Matcher::Regex(regex), texts });
            }
        };
        let matcher = Matcher::Text(Box::new(Finder::new(text).into_owned()));
        let texts = Some(vec![text.clone()]);
        Ok(Expression { class, matcher, texts })
    }

    pub(super) fn class(&self) -> &Class {
        &self.class
    }

    /// Texts of which one is in every name that matches; none when there are no such.
    pub(super) fn texts(&self) -> Option<Texts> {
        self.texts.clone()
    }

    /// Number of groups.
    pub(super) fn groups(&self) -> usize {
        match &self.matcher {
            Matcher::Text(_) => 0,
            Matcher::Regex(regex) => regex.captures_len() - 1,
        }
    }

    pub(super) fn is_in(&self, name: &[u8]) -> bool {
        match &self.matcher {
            Matcher::Text(_) => self.text_span(name).is_some(),
            Matcher::Regex(regex) => regex.is_match(name),
        }
    }

    /// The first match.
    pub(super) fn find(&self, name: &[u8]) -> Option<Found> {
        match &self.matcher {
            Matcher::Text(_) => self.text_span(name).map(|span| Found { span, groups: Vec::new() }),
            Matcher::Regex(regex) => regex.captures(name).map(|captures| found(&captures)),
        }
    }

    /// All matches that do not overlap.
    pub(super) fn find_all(&self, name: &[u8]) -> Vec<Found> {
        match &self.matcher {
            Matcher::Text(finder) if matches!(self.class, Class::Contains(_)) => {
                let length = finder.needle().len();
                let at = |at| Found { span: (at, at + length), groups: Vec::new() };
                finder.find_iter(name).map(at).collect()
            }
            Matcher::Text(_) => self.find(name).into_iter().collect(),
            Matcher::Regex(regex) => regex.captures_iter(name).map(|captures| found(&captures)).collect(),
        }
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

fn found(captures: &regex::bytes::Captures<'_>) -> Found {
    let mut spans = captures.iter().map(|group| group.map(|group| (group.start(), group.end())));
    let span = spans.next().flatten().expect("a match has a whole");
    Found { span, groups: spans.collect() }
}

fn compiled(plan: &ExpressionPlan) -> Result<(Regex, Option<Texts>), String> {
    let text = in_library_form(&plan.text)?;
    let regex = RegexBuilder::new(&text)
        .unicode(false)
        .dot_matches_new_line(true)
        .case_insensitive(plan.ignore_case)
        .size_limit(REGEX_BYTES_MAX)
        .build()
        .map_err(|error| sentence(&error))?;
    if regex.captures_len() - 1 > GROUPS_MAX {
        return Err(format!("{} groups, more than {GROUPS_MAX}", regex.captures_len() - 1));
    }
    let parts = regex_syntax::ParserBuilder::new()
        .unicode(false)
        .utf8(false)
        .dot_matches_new_line(true)
        .case_insensitive(plan.ignore_case)
        .build()
        .parse(&text);
    Ok((regex, parts.ok().as_ref().and_then(sieve::texts)))
}

/// The library's word without the picture of the expression, which is in another form than the user wrote.
fn sentence(error: &regex::Error) -> String {
    let text = error.to_string();
    match error {
        regex::Error::CompiledTooBig(_) => format!("it takes more than {REGEX_BYTES_MAX} bytes of memory"),
        _ => text.rsplit("error: ").next().unwrap_or(&text).trim().to_owned(),
    }
}

/// The class by the text's looks, as the original tells them apart.
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
        Expression::new(&text.into()).expect("a valid expression")
    }

    #[test]
    fn classes_are_those_of_the_original() {
        // Asked of carbon-c-relay 3.7.3 with `-t`: its word and the text that it shows.
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
        let folded = Expression::new(&ignore_case).expect("a valid expression");
        assert!(*folded.class() == Class::Regex && folded.is_in(b"xFOOx"));
    }

    #[test]
    fn what_is_found_and_where() {
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
            ("[a-c]+\\.\\d{2}", "x.abc.42", Some(&["abc.42"])),
            ("[^.]+$", "x.\u{e9}", Some(&["\u{e9}"])),
        ];
        for (text, name, want) in table {
            let expression = expression(text);
            let found = expression.find(name.as_bytes());
            assert_eq!(expression.is_in(name.as_bytes()), want.is_some(), "{text:?} in {name:?}");
            let texts = found.map(|found| {
                let spans = [Some(found.span)].into_iter().chain(found.groups);
                spans.map(|span| span.map_or("-", |(begin, end)| &name[begin..end])).collect::<Vec<_>>()
            });
            assert_eq!(texts.as_deref(), *want, "{text:?} in {name:?}");
        }
        let begins = |found: &Found| found.span.0;
        let all = |text, name: &str| {
            expression(text).find_all(name.as_bytes()).iter().map(begins).collect::<Vec<_>>()
        };
        assert_eq!(all("ab", "ababab.ab"), [0, 2, 4, 7]);
        assert_eq!(all("^ab", "abab"), [0]);
        assert_eq!(all("a[bc]", "abacad"), [0, 2]);
    }

    #[test]
    fn what_cannot_be_is_said_in_a_sentence() {
        let table = [
            ("a(b", "unclosed group"),
            ("*a", "repetition operator missing expression"),
            ("a[b", "unclosed character class"),
            ("(a)\\1", "back-references"),
            ("(?=a)b", "look-around"),
            ("a\\", "a backslash at the end"),
            ("[[:nope:]]", "no set of characters"),
            ("(.{1000}){1000}", "1048576 bytes of memory"),
        ];
        for (text, want) in table {
            let error = Expression::new(&text.into()).expect_err(text);
            assert!(error.contains(want) && !error.contains('\n'), "{text:?}: {error:?}");
        }
        let groups = |count: usize| Expression::new(&"(a)".repeat(count).as_str().into());
        assert_eq!(groups(GROUPS_MAX).expect("as many as may be").groups(), GROUPS_MAX);
        assert_eq!(groups(GROUPS_MAX + 1).err().as_deref(), Some("65 groups, more than 64"));
    }
}

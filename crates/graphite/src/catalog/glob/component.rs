//! One component of a glob, in the form that is matched fastest.

use super::nfa::Nfa;

/// Most texts of a component with braces that are looked up one by one.
const TEXTS_MAX: usize = 1024;

/// One component of a glob.
#[derive(Debug)]
pub(in crate::catalog) enum Part {
    /// These texts, sorted, without repeats.
    Texts(Vec<Box<[u8]>>),
    /// `*`.
    Any,
    /// `before*after`.
    Around(Box<[u8]>, Box<[u8]>),
    Pattern(Matcher),
    /// `**`: any number of components.
    Levels,
}

/// Everything else.
#[derive(Debug)]
pub(in crate::catalog) struct Matcher(Nfa);

impl Part {
    /// Compiles a component of a glob.
    pub(super) fn new(pattern: &[u8]) -> Part {
        if pattern == b"**" {
            return Part::Levels;
        }
        if !pattern.is_empty() && pattern.iter().all(|byte| *byte == b'*') {
            return Part::Any;
        }
        if !pattern.iter().any(|byte| b"*?[{}\\".contains(byte)) {
            return Part::Texts(vec![pattern.into()]);
        }
        let mut parts = pattern.splitn(2, |byte| *byte == b'*');
        if let (Some(before), Some(after)) = (parts.next(), parts.next())
            && !before.iter().chain(after).any(|byte| b"*?[{}\\".contains(byte))
        {
            return Part::Around(before.into(), after.into());
        }
        match texts(pattern) {
            Some(texts) => Part::Texts(texts),
            None => Part::Pattern(Matcher(Nfa::new(pattern))),
        }
    }

    /// True when the component matches. Adds its cost to `work`, in steps of some nanoseconds.
    #[inline]
    pub(in crate::catalog) fn matches(&self, text: &[u8], work: &mut u64) -> bool {
        match self {
            Part::Any | Part::Levels => true,
            Part::Around(before, after) => {
                text.len() >= before.len() + after.len() && text.starts_with(before) && text.ends_with(after)
            }
            Part::Texts(texts) => {
                *work += 8;
                texts.binary_search_by(|known| (**known).cmp(text)).is_ok()
            }
            Part::Pattern(matcher) => matcher.0.matches(text, work),
        }
    }
}

/// All texts that a pattern of braces and ordinary characters matches. None when it has other wildcards, an escape, a
/// brace within a brace or without its other half, or too many of them.
fn texts(pattern: &[u8]) -> Option<Vec<Box<[u8]>>> {
    if pattern.iter().any(|byte| b"*?[\\".contains(byte)) {
        return None;
    }
    let mut texts: Vec<Vec<u8>> = vec![Vec::new()];
    let mut rest = pattern;
    while !rest.is_empty() {
        let open = rest.iter().position(|byte| matches!(byte, b'{' | b'}')).unwrap_or(rest.len());
        let (plain, braces) = rest.split_at(open);
        texts.iter_mut().for_each(|text| text.extend_from_slice(plain));
        let Some((_, inner)) = braces.split_first() else { break };
        let end = inner.iter().position(|byte| matches!(byte, b'{' | b'}'))?;
        if braces[0] != b'{' || inner[end] != b'}' {
            return None;
        }
        let branches = || inner[..end].split(|byte| *byte == b',');
        if branches().count() * texts.len() > TEXTS_MAX {
            return None;
        }
        let with =
            |text: &Vec<u8>| -> Vec<Vec<u8>> { branches().map(|branch| [text, branch].concat()).collect() };
        texts = texts.iter().flat_map(with).collect();
        rest = &inner[end + 1..];
    }
    texts.sort_unstable();
    texts.dedup();
    Some(texts.into_iter().map(Vec::into_boxed_slice).collect())
}

#[test]
fn each_form_is_the_one_that_is_matched_fastest() {
    let form = |pattern: &str| match Part::new(pattern.as_bytes()) {
        Part::Levels => "levels".to_owned(),
        Part::Any => "any".to_owned(),
        Part::Around(before, after) => format!("{} {}", before.escape_ascii(), after.escape_ascii()),
        Part::Texts(texts) => {
            texts.iter().map(|text| text.escape_ascii().to_string()).collect::<Vec<_>>().join("|")
        }
        Part::Pattern(_) => "pattern".to_owned(),
    };
    let table = [
        ("**", "levels"),
        ("*", "any"),
        ("***", "any"),
        ("web1*", "web1 "),
        ("a*b", "a b"),
        ("abc", "abc"),
        ("x{b,a,b}{1,2}", "xa1|xa2|xb1|xb2"),
        ("{a}", "a"),
        ("{}", ""),
        ("a,b", "a,b"),
        ("{a,{b}}", "pattern"),
        ("a}", "pattern"),
        ("a*b*", "pattern"),
        (r"\a", "pattern"),
    ];
    for (pattern, want) in table {
        assert_eq!(form(pattern), want, "{pattern}");
    }
    assert_eq!(form(&format!("{{{}}}", vec!["a"; TEXTS_MAX].join(","))), "a");
    assert_eq!(form(&format!("{{{}}}", vec!["a"; TEXTS_MAX + 1].join(","))), "pattern");
    assert_eq!(form(&"{a,b}".repeat(11)), "pattern");
}

//! One component of a glob as a list of steps, matched by the set of active steps: time is at most steps × characters.
//!
//! Characters are those of UTF-8; a byte that is not UTF-8 is one character. Patterns of up to 64 steps keep the set in
//! one word and allocate nothing.
//! A `[`, `{` or `}` without its other half is an ordinary character, and so is a `\` at the end.

use std::cell::RefCell;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    One(u32),
    Any,
    /// Ranges of characters, both ends included.
    Class {
        ranges: Box<[(u32, u32)]>,
        inverted: bool,
    },
    /// Continue at both steps without reading a character.
    Fork(u32, u32),
    Jump(u32),
    Match,
}

impl Step {
    #[inline]
    fn takes(&self, character: u32) -> bool {
        match self {
            Step::One(wanted) => *wanted == character,
            Step::Any => true,
            Step::Class { ranges, inverted } => {
                ranges.iter().any(|(from, to)| (*from..=*to).contains(&character)) != *inverted
            }
            Step::Fork(..) | Step::Jump(_) | Step::Match => false,
        }
    }
}

/// A compiled component.
#[derive(Debug)]
pub(super) struct Nfa {
    steps: Vec<Step>,
    /// With at most 64 steps: for each step the set after it has taken a character; the last entry is the start set.
    after: Option<Box<[u64]>>,
    wide: RefCell<Wide>,
}

/// Reused by patterns of many steps.
#[derive(Debug, Default)]
struct Wide {
    now: Vec<u32>,
    next: Vec<u32>,
    seen: Vec<bool>,
    todo: Vec<u32>,
}

impl Nfa {
    pub(super) fn new(pattern: &[u8]) -> Nfa {
        let mut compiler = Compiler { pattern, at: 0, steps: Vec::new(), open: Vec::new() };
        compiler.run();
        let steps = compiler.steps;
        let mut nfa = Nfa { after: None, wide: RefCell::default(), steps };
        if nfa.steps.len() <= u64::BITS as usize {
            let last = nfa.steps.len() as u32 - 1;
            let mut reached = Vec::new();
            let mut set_from = |at: u32| {
                let mut seen = vec![false; nfa.steps.len()];
                reached.clear();
                nfa.reach(at, &mut seen, &mut vec![], &mut reached);
                reached.iter().fold(0u64, |set, at| set | 1 << at)
            };
            nfa.after = Some((1..=last).chain([0]).map(&mut set_from).collect());
        }
        nfa
    }

    /// True when the whole text matches. Adds the number of visited steps to `work`.
    pub(super) fn matches(&self, text: &[u8], work: &mut u64) -> bool {
        match &self.after {
            Some(after) => self.narrow(after, text, work),
            None => self.wide(text, work),
        }
    }

    fn narrow(&self, after: &[u64], text: &[u8], work: &mut u64) -> bool {
        let last = after.len() - 1;
        let mut now = after[last];
        for character in Characters(text) {
            let mut rest = now;
            *work += 1 + u64::from(rest.count_ones());
            now = 0;
            while rest != 0 {
                let at = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                if self.steps[at].takes(character) {
                    now |= after[at];
                }
            }
            if now == 0 {
                return false;
            }
        }
        now >> last & 1 == 1
    }

    fn wide(&self, text: &[u8], work: &mut u64) -> bool {
        let mut wide = self.wide.borrow_mut();
        let Wide { now, next, seen, todo } = &mut *wide;
        seen.resize(self.steps.len(), false);
        now.clear();
        *work += self.reach(0, seen, todo, now);
        seen.fill(false);
        for character in Characters(text) {
            // Clearing the marks has a cost for all steps.
            *work += 1 + now.len() as u64 + self.steps.len() as u64 / 16;
            next.clear();
            for at in now.drain(..) {
                if self.steps[at as usize].takes(character) {
                    *work += self.reach(at + 1, seen, todo, next);
                }
            }
            seen.fill(false);
            std::mem::swap(now, next);
            if now.is_empty() {
                return false;
            }
        }
        now.iter().any(|at| matches!(self.steps[*at as usize], Step::Match))
    }

    /// Adds a step and those reached from it without a character. Returns the number of visits.
    fn reach(&self, at: u32, seen: &mut [bool], todo: &mut Vec<u32>, reached: &mut Vec<u32>) -> u64 {
        let mut visits = 0;
        todo.push(at);
        while let Some(at) = todo.pop() {
            visits += 1;
            if std::mem::replace(&mut seen[at as usize], true) {
                continue;
            }
            match self.steps[at as usize] {
                Step::Fork(one, other) => todo.extend([other, one]),
                Step::Jump(to) => todo.push(to),
                _ => reached.push(at),
            }
        }
        visits
    }
}

/// The characters of a text.
struct Characters<'a>(&'a [u8]);

impl Iterator for Characters<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let first = *self.0.first()?;
        if first < 0x80 {
            self.0 = &self.0[1..];
            return Some(u32::from(first));
        }
        let (character, len) = character(self.0);
        self.0 = &self.0[len..];
        Some(character)
    }
}

/// The first character of a text that is not empty, and its length.
fn character(text: &[u8]) -> (u32, usize) {
    let begin = &text[..text.len().min(4)];
    let valid = match std::str::from_utf8(begin) {
        Ok(valid) => valid,
        Err(error) => std::str::from_utf8(&begin[..error.valid_up_to()]).unwrap_or_default(),
    };
    match valid.chars().next() {
        Some(character) => (u32::from(character), character.len_utf8()),
        // Above all characters, so that no class takes it by chance.
        None => (0x11_0000 + u32::from(text[0]), 1),
    }
}

/// An open brace: the fork before its current branch, and the jumps after its finished branches.
struct Brace {
    end: usize,
    fork: usize,
    jumps: Vec<usize>,
}

struct Compiler<'a> {
    pattern: &'a [u8],
    at: usize,
    steps: Vec<Step>,
    open: Vec<Brace>,
}

impl Compiler<'_> {
    fn run(&mut self) {
        let ends = brace_ends(self.pattern);
        while let Some(byte) = self.pattern.get(self.at).copied() {
            let end = ends.get(self.at).copied().unwrap_or_default();
            let branch_ends = self.open.last().is_some_and(|brace| brace.end == self.at);
            match byte {
                b'*' => self.star(),
                b'?' => self.push(Step::Any),
                b'[' => self.class(),
                b'{' if end > 0 => {
                    self.open.push(Brace { end, fork: self.steps.len(), jumps: Vec::new() });
                    self.push(Step::Fork(self.steps.len() as u32 + 1, 0));
                }
                b',' if !self.open.is_empty() => self.branch(),
                b'}' if branch_ends => self.close(),
                b'\\' if self.at + 1 < self.pattern.len() => {
                    self.at += 1;
                    self.literal();
                }
                _ => self.literal(),
            }
        }
        self.steps.push(Step::Match);
    }

    fn push(&mut self, step: Step) {
        self.steps.push(step);
        self.at += 1;
    }

    fn literal(&mut self) {
        let (character, len) = character(&self.pattern[self.at..]);
        self.steps.push(Step::One(character));
        self.at += len;
    }

    /// A loop over any character. Several stars in a row are one.
    fn star(&mut self) {
        while self.pattern.get(self.at) == Some(&b'*') {
            self.at += 1;
        }
        let at = self.steps.len() as u32;
        self.steps.extend([Step::Fork(at + 1, at + 3), Step::Any, Step::Jump(at)]);
    }

    fn class(&mut self) {
        let Some((ranges, inverted, len)) = class(&self.pattern[self.at..]) else { return self.literal() };
        self.steps.push(Step::Class { ranges, inverted });
        self.at += len;
    }

    fn branch(&mut self) {
        let jump = self.steps.len();
        self.push(Step::Jump(0));
        let next = self.steps.len();
        self.steps.push(Step::Fork(next as u32 + 1, 0));
        let brace = self.open.last_mut().expect("a brace is open");
        brace.jumps.push(jump);
        self.steps[brace.fork] = Step::Fork(brace.fork as u32 + 1, next as u32);
        brace.fork = next;
    }

    fn close(&mut self) {
        let brace = self.open.pop().expect("a brace is open");
        let end = self.steps.len() as u32;
        // The last branch has no other one to try.
        self.steps[brace.fork] = Step::Jump(brace.fork as u32 + 1);
        for jump in brace.jumps {
            self.steps[jump] = Step::Jump(end);
        }
        self.at += 1;
    }
}

/// For each `{` the position of its `}`; 0 for one that has none.
fn brace_ends(pattern: &[u8]) -> Vec<usize> {
    if !pattern.contains(&b'{') {
        return Vec::new();
    }
    let (mut ends, mut open, mut at) = (vec![0; pattern.len()], Vec::new(), 0);
    while at < pattern.len() {
        match pattern[at] {
            b'\\' => at += 1,
            b'[' => at += class(&pattern[at..]).map_or(0, |(_, _, len)| len - 1),
            b'{' => open.push(at),
            b'}' => {
                if let Some(begin) = open.pop() {
                    ends[begin] = at;
                }
            }
            _ => {}
        }
        at += 1;
    }
    ends
}

/// Longest class that is read as one, so that many `[` without `]` cost no more than their bytes times this.
const CLASS_BYTES_MAX: usize = 256;

/// A class at the start of the text: its ranges, whether it is inverted, its length. None without a `]`.
#[expect(clippy::type_complexity, reason = "the parts of one step")]
fn class(text: &[u8]) -> Option<(Box<[(u32, u32)]>, bool, usize)> {
    let inverted = text.get(1) == Some(&b'!');
    let begin = if inverted { 2 } else { 1 };
    let window = &text[..text.len().min(CLASS_BYTES_MAX)];
    // A `]` at the start is a member.
    let end = (begin + 1..window.len()).find(|at| window[*at] == b']')?;
    let members: Vec<u32> = Characters(&text[begin..end]).collect();
    let mut ranges = Vec::new();
    let mut rest = members.as_slice();
    while let Some(first) = rest.first() {
        if let [from, minus, to, ..] = rest
            && *minus == u32::from(b'-')
        {
            // A range that runs backwards has no members.
            if from <= to {
                ranges.push((*from, *to));
            }
            rest = &rest[3..];
        } else {
            ranges.push((*first, *first));
            rest = &rest[1..];
        }
    }
    Some((ranges.into(), inverted, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Matches in both ways.
    fn matches(pattern: &str, text: &str) -> bool {
        let nfa = Nfa::new(pattern.as_bytes());
        let (mut work, mut wide_work) = (0, 0);
        let found = nfa.matches(text.as_bytes(), &mut work);
        assert_eq!(found, nfa.wide(text.as_bytes(), &mut wide_work), "{pattern} {text}");
        let most = (text.len() as u64 + 1) * (4 * nfa.steps.len() as u64 + 2);
        assert!(work <= most && wide_work <= most, "{work} {wide_work} {most}");
        found
    }

    #[test]
    fn each_element_of_a_component_matches_what_it_says() {
        let table = [
            ("abc", "abc", "ab abcd"),
            ("a*c", "ac abc axxc", "a acb"),
            ("a?c", "abc aéc a?c", "ac abbc"),
            ("**", "x xx", ""),
            ("[abc]", "a b", "d ab"),
            ("[a-c]x", "ax cx", "dx"),
            ("[!a-c]", "d é", "a"),
            ("[^a]", "^ a", "b"),
            ("[]a]", "] a", "b"),
            ("[!]]", "a", "]"),
            ("[a-]", "a -", "b"),
            ("[z-a]", "", "a z m -"),
            ("[é-ü]", "ö é", "e"),
            ("web{1,2}x", "web1x web2x", "web3x webx"),
            ("a{b,c{d,e*}}f", "abf acdf acef acexxf", "acf abdf"),
            ("{a}", "a", "{a}"),
            ("x{}", "x", "x{}"),
            ("{a,b", "{a,b", "a b"),
            ("a,b}", "a,b}", "a"),
            ("{a,b}}", "a} b}", "a"),
            ("{{a,b}", "{a {b", "a"),
            ("[a", "[a", "a"),
            ("{[,],b}", ", b", "a []"),
            (r"\*", "*", "a"),
            (r"a\{b,c}", "a{b,c}", "ab"),
            (r"{a\,b,c}", "a,b c", "a b"),
            (r"\[a]", "[a]", "a"),
            (r"a\", r"a\", "a"),
        ];
        for (pattern, good, bad) in table {
            for text in good.split(' ').filter(|text| !text.is_empty()) {
                assert!(matches(pattern, text), "`{pattern}` should match `{text}`");
            }
            for text in bad.split(' ').filter(|text| !text.is_empty()) {
                assert!(!matches(pattern, text), "`{pattern}` should not match `{text}`");
            }
        }
        let nfa = Nfa::new(b"a?c");
        assert!(nfa.matches(b"a\xffc", &mut 0) && !nfa.matches(b"a\xc3\x28\xa9c", &mut 0));
    }

    #[test]
    fn hostile_components_cost_steps_times_characters() {
        let text = "a".repeat(200);
        for pattern in
            ["*a".repeat(150) + "b", "{a,b}".repeat(500), "{{a,a},{a,a}}*".repeat(60) + "b", "[".repeat(5000)]
        {
            assert!(!matches(&pattern, &text), "{pattern}");
        }
        assert_eq!(Nfa::new(&[b'*'; 60_000]).steps, Nfa::new(b"*").steps);
    }
}

//! Shell-style patterns on bytes, for filters of the API and of endpoints: `*`, `?`, `[a-z]`, `[!a-z]`, `{a,b}`,
//! and `\` before a literal byte.
//!
//! A pattern is compiled to a list of steps (an NFA), and matched by keeping the set of active steps: time is at
//! most steps × bytes for any pattern. Several stars in a row are one. `*` and `?` match any byte, including dots.
//! Patterns of up to 64 steps, as nearly all are, keep the set in one word and allocate nothing.

/// Maximum length of a pattern in bytes.
pub const PATTERN_BYTES_MAX: usize = 1024;

/// Why a pattern is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GlobError {
    /// Longer than [`PATTERN_BYTES_MAX`].
    TooLong,
    /// A `[` without `]`, at this byte.
    OpenClass(usize),
    /// A `{` without `}`, at this byte.
    OpenBrace(usize),
    /// An empty range such as `z-a`, at this byte.
    EmptyRange(usize),
    /// A `\` at the end.
    EndsInBackslash,
}

impl std::fmt::Display for GlobError {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            GlobError::TooLong => write!(to, "the pattern is longer than {PATTERN_BYTES_MAX} bytes"),
            GlobError::OpenClass(at) => write!(to, "the `[` at byte {at} of the pattern has no `]`"),
            GlobError::OpenBrace(at) => write!(to, "the `{{` at byte {at} of the pattern has no `}}`"),
            GlobError::EmptyRange(at) => write!(to, "the range at byte {at} of the pattern runs backwards"),
            GlobError::EndsInBackslash => {
                write!(to, "the pattern ends in `\\`: write `\\\\` for the byte itself")
            }
        }
    }
}

impl std::error::Error for GlobError {}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Byte(u8),
    Any,
    /// A bit for each of 256 bytes.
    Class(Box<[u64; 4]>),
    /// Continue at both steps without reading a byte.
    Fork(usize, usize),
    /// Continue at this step.
    Jump(usize),
    Match,
}

impl Step {
    /// True when the step matches this byte.
    #[inline]
    fn takes(&self, byte: u8) -> bool {
        match self {
            Step::Byte(wanted) => *wanted == byte,
            Step::Any => true,
            Step::Class(bits) => bits[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1,
            Step::Fork(..) | Step::Jump(_) | Step::Match => false,
        }
    }
}

/// A compiled pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    pattern: Box<[u8]>,
    steps: Vec<Step>,
    /// None when a word has too few bits.
    narrow: Option<Narrow>,
}

/// Sets of steps, each in one word.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Narrow {
    /// For each step the set that is active after it has matched a byte. The last entry is the start set.
    after: Box<[u64]>,
    /// Steps of a trailing `*`: once active, the text matches whatever follows.
    forever: u64,
}

impl Narrow {
    fn start(&self) -> u64 {
        self.after[self.after.len() - 1]
    }

    fn is_match(&self, now: u64) -> bool {
        now >> (self.after.len() - 1) & 1 == 1
    }

    /// Matches a piece of the text. `Ok` when the result no longer depends on the rest, otherwise the active steps.
    #[inline]
    fn over(&self, steps: &[Step], start: u64, text: &[u8], mut spend: impl FnMut(u32)) -> Result<bool, u64> {
        let mut now = start;
        for &byte in text {
            if now & self.forever != 0 {
                return Ok(true);
            }
            let mut rest = now;
            spend(1 + rest.count_ones());
            now = 0;
            while rest != 0 {
                let at = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                if steps[at].takes(byte) {
                    now |= self.after[at];
                }
            }
            if now == 0 {
                return Ok(false);
            }
        }
        Err(now)
    }
}

/// Matches a text piece by piece, for callers that do other work in between.
#[derive(Debug)]
pub struct Search<'a> {
    glob: &'a Glob,
    reached: Found,
}

#[derive(Debug)]
enum Found {
    Narrow(u64),
    Wide(Box<[Reached; 2]>),
    /// The result, whatever follows.
    Decided(bool),
}

impl Search<'_> {
    /// Matches the next piece of the text, and adds the cost to `work`: the number of steps visited, some
    /// nanoseconds each, at most [`Glob::work_per_byte`] for each byte.
    pub fn feed(&mut self, text: &[u8], work: &mut u64) {
        let spend = |steps| *work += u64::from(steps);
        match (&mut self.reached, &self.glob.narrow) {
            (Found::Narrow(now), Some(narrow)) => match narrow.over(&self.glob.steps, *now, text, spend) {
                Ok(matches) => self.reached = Found::Decided(matches),
                Err(after) => *now = after,
            },
            (Found::Wide(both), _) => self.glob.wide_over(both, text, spend),
            (Found::Narrow(_) | Found::Decided(_), _) => {}
        }
    }

    /// True when the text matches if it ends here.
    pub fn matches(&self) -> bool {
        match (&self.reached, &self.glob.narrow) {
            (Found::Narrow(now), Some(narrow)) => narrow.is_match(*now),
            (Found::Wide(both), _) => {
                both[0].list.iter().any(|at| matches!(self.glob.steps[*at], Step::Match))
            }
            (Found::Decided(matches), _) => *matches,
            (Found::Narrow(_), None) => false,
        }
    }
}

impl Glob {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// [`GlobError`] with the reason and the position.
    pub fn new(pattern: &[u8]) -> Result<Glob, GlobError> {
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(GlobError::TooLong);
        }
        let mut compiler =
            Compiler { pattern, at: 0, steps: Vec::new(), open: Vec::new(), after_star: false };
        compiler.run()?;
        let mut glob = Glob { pattern: pattern.into(), steps: compiler.steps, narrow: None };
        if glob.steps.len() <= u64::BITS as usize {
            // The last step is the match, which reads nothing: its entry holds the start set.
            let last = glob.steps.len() - 1;
            let after: Box<[u64]> = (1..=last).chain([0]).map(|at| glob.reached_from(at)).collect();
            let is_forever = |at: &usize| {
                matches!(glob.steps[*at], Step::Any)
                    && after[*at] & (1 << at | 1 << last) == 1 << at | 1 << last
            };
            let forever = (0..last).filter(is_forever).fold(0, |bits, at| bits | 1 << at);
            glob.narrow = Some(Narrow { after, forever });
        }
        Ok(glob)
    }

    /// The source of the pattern.
    pub fn pattern(&self) -> &[u8] {
        &self.pattern
    }

    /// True when the whole `text` matches.
    pub fn matches(&self, text: &[u8]) -> bool {
        self.run(text, |_| {})
    }

    /// Starts matching a text that arrives in pieces.
    pub fn search(&self) -> Search<'_> {
        let reached = match &self.narrow {
            Some(narrow) => Found::Narrow(narrow.start()),
            None => {
                let mut now = Reached::new(self.steps.len());
                self.reach(0, &mut now);
                Found::Wide(Box::new([now, Reached::new(self.steps.len())]))
            }
        };
        Search { glob: self, reached }
    }

    /// Maximum work per byte of a text ([`Search::feed`]).
    pub fn work_per_byte(&self) -> u64 {
        // Each step is left and entered; forks are entered from two sides.
        4 * self.steps.len() as u64
    }

    #[inline]
    fn run(&self, text: &[u8], spend: impl FnMut(u32)) -> bool {
        let Some(narrow) = &self.narrow else {
            let mut work = 0;
            let mut search = self.search();
            search.feed(text, &mut work);
            return search.matches();
        };
        narrow.over(&self.steps, narrow.start(), text, spend).unwrap_or_else(|now| narrow.is_match(now))
    }

    /// Steps reachable from `at` without reading a byte, as bits.
    fn reached_from(&self, at: usize) -> u64 {
        let mut reached = Reached::new(self.steps.len());
        self.reach(at, &mut reached);
        reached.list.iter().fold(0, |bits, at| bits | 1 << at)
    }

    /// Matches a piece of the text with any number of steps. The first of the two sets holds the active steps
    /// afterwards.
    fn wide_over(&self, [now, next]: &mut [Reached; 2], text: &[u8], mut spend: impl FnMut(u32)) {
        for byte in text {
            if now.list.is_empty() {
                return;
            }
            // Clearing the visited flags has a cost for all steps.
            spend((now.list.len() + self.steps.len() / 16) as u32);
            for at in now.list.drain(..) {
                if self.steps[at].takes(*byte) {
                    self.reach(at + 1, next);
                }
            }
            spend(next.visits);
            next.visits = 0;
            now.seen.fill(false);
            std::mem::swap(now, next);
        }
    }

    /// Adds a step, and all steps reachable from it without reading a byte.
    fn reach(&self, at: usize, reached: &mut Reached) {
        reached.todo.push(at);
        while let Some(at) = reached.todo.pop() {
            reached.visits += 1;
            if std::mem::replace(&mut reached.seen[at], true) {
                continue;
            }
            match self.steps[at] {
                Step::Fork(one, other) => reached.todo.extend([other, one]),
                Step::Jump(to) => reached.todo.push(to),
                _ => reached.list.push(at),
            }
        }
    }
}

/// A set of steps.
#[derive(Debug)]
struct Reached {
    list: Vec<usize>,
    seen: Vec<bool>,
    todo: Vec<usize>,
    /// Number of visits of a step.
    visits: u32,
}

impl Reached {
    fn new(steps: usize) -> Reached {
        Reached { list: Vec::new(), seen: vec![false; steps], todo: Vec::new(), visits: 0 }
    }
}

/// An open brace: its position in the pattern, the fork before its current branch, and the jumps after its finished
/// branches.
struct Brace {
    at: usize,
    fork: usize,
    jumps: Vec<usize>,
}

struct Compiler<'a> {
    pattern: &'a [u8],
    at: usize,
    steps: Vec<Step>,
    open: Vec<Brace>,
    /// The previous item is a `*`: another one has no effect.
    after_star: bool,
}

impl Compiler<'_> {
    fn run(&mut self) -> Result<(), GlobError> {
        while let Some(byte) = self.pattern.get(self.at).copied() {
            let at = self.at;
            self.at += 1;
            let after_star = std::mem::replace(&mut self.after_star, byte == b'*');
            match byte {
                b'*' if after_star => {}
                b'*' => self.star(),
                b'?' => self.steps.push(Step::Any),
                b'[' => self.class(at)?,
                b'{' => {
                    self.open.push(Brace { at, fork: self.steps.len(), jumps: Vec::new() });
                    self.steps.push(Step::Fork(self.steps.len() + 1, 0));
                }
                b',' if !self.open.is_empty() => self.branch(),
                b'}' if !self.open.is_empty() => self.close(),
                b'\\' => {
                    let escaped = self.pattern.get(self.at).ok_or(GlobError::EndsInBackslash)?;
                    self.steps.push(Step::Byte(*escaped));
                    self.at += 1;
                }
                byte => self.steps.push(Step::Byte(byte)),
            }
        }
        if let Some(brace) = self.open.first() {
            return Err(GlobError::OpenBrace(brace.at));
        }
        self.steps.push(Step::Match);
        Ok(())
    }

    fn star(&mut self) {
        let fork = self.steps.len();
        self.steps.extend([Step::Fork(fork + 1, fork + 3), Step::Any, Step::Jump(fork)]);
    }

    /// Ends a branch and begins the next; the fork before the ended branch leads to the next as well.
    fn branch(&mut self) {
        let end = self.steps.len();
        let Some(brace) = self.open.last_mut() else { return };
        brace.jumps.push(end);
        self.steps.push(Step::Jump(0));
        self.steps[brace.fork] = Step::Fork(brace.fork + 1, end + 1);
        brace.fork = end + 1;
        self.steps.push(Step::Fork(end + 2, 0));
    }

    fn close(&mut self) {
        let end = self.steps.len();
        let Some(brace) = self.open.pop() else { return };
        // The last branch has no other after it.
        self.steps[brace.fork] = Step::Jump(brace.fork + 1);
        for jump in brace.jumps {
            self.steps[jump] = Step::Jump(end);
        }
    }

    /// `[abc]`, `[a-z]`, `[!a-z]` or `[^a-z]`; a `]` that comes first is literal.
    fn class(&mut self, open: usize) -> Result<(), GlobError> {
        let next = |at: usize| self.pattern.get(at).copied().ok_or(GlobError::OpenClass(open));
        let negated = matches!(next(self.at)?, b'!' | b'^');
        let first = self.at + usize::from(negated);
        let (mut at, mut bits) = (first, [0u64; 4]);
        loop {
            let low = next(at)?;
            if low == b']' && at > first {
                break;
            }
            let is_range = next(at + 1)? == b'-' && next(at + 2)? != b']';
            let high = if is_range { next(at + 2)? } else { low };
            if high < low {
                return Err(GlobError::EmptyRange(at));
            }
            (low..=high).for_each(|byte| bits[usize::from(byte >> 6)] |= 1 << (byte & 63));
            at += if is_range { 3 } else { 1 };
        }
        if negated {
            bits.iter_mut().for_each(|word| *word = !*word);
        }
        self.at = at + 1;
        self.steps.push(Step::Class(Box::new(bits)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn patterns_match_as_in_a_shell() {
        let table = [
            ("", "", "a"),
            ("*", " a a.b.c", ""),
            ("a?c", "abc a.c", "ac abbc"),
            ("a*c", "ac abc a.b.c", "a acd"),
            ("*a*b*", "ab xaxbx aabb", "ba a"),
            ("[a-c]x", "ax bx cx", "dx x -x"),
            ("[!a-c]x", "dx -x", "ax x"),
            ("[^a]", "b ^", "a"),
            ("[]x]", "] x", "a"),
            ("[a-]", "a -", "b"),
            ("{a,b}", "a b", "c ab"),
            ("{a,bc,}.x", "a.x bc.x .x", "b.x"),
            ("x{a,b{c,d*}}y", "xay xbcy xbdy xbdqqy", "xby xbdq"),
            ("{,a}{,b}", " a b ab", "ba"),
            (
                "stats.{api,web}.*.req[0-9]",
                "stats.api.h1.req7 stats.web..req0",
                "stats.db.h.req1 stats.api.h.reqx",
            ),
            ("\\*\\{", "*{", "a{"),
            ("a,b}", "a,b}", "a"),
        ];
        for (pattern, good, bad) in table {
            let glob = Glob::new(pattern.as_bytes()).expect(pattern);
            assert_eq!(glob.pattern(), pattern.as_bytes());
            for text in good.split(' ') {
                assert!(glob.matches(text.as_bytes()), "`{pattern}` should match `{text}`");
                assert!(wide(&glob, text.as_bytes()), "`{pattern}` should match `{text}` with the wide set");
            }
            for text in bad.split(' ').filter(|text| !text.is_empty()) {
                assert!(!glob.matches(text.as_bytes()), "`{pattern}` should not match `{text}`");
            }
        }
    }

    #[test]
    fn invalid_patterns_are_rejected_with_their_position() {
        for (pattern, want) in [
            ("a[b", GlobError::OpenClass(1)),
            ("[", GlobError::OpenClass(0)),
            ("[]", GlobError::OpenClass(0)),
            ("a{b,{c}", GlobError::OpenBrace(1)),
            ("[z-a]", GlobError::EmptyRange(1)),
            ("a\\", GlobError::EndsInBackslash),
        ] {
            let error = Glob::new(pattern.as_bytes()).expect_err(pattern);
            assert_eq!(error, want);
            assert!(error.to_string().contains("pattern"));
        }
        assert!(Glob::new(&[b'a'; PATTERN_BYTES_MAX]).is_ok(), "at the limit");
        assert_eq!(Glob::new(&[b'a'; PATTERN_BYTES_MAX + 1]).expect_err("past it"), GlobError::TooLong);
    }

    #[test]
    fn patterns_of_up_to_64_steps_use_one_word() {
        // 62 bytes and the match make 63 steps; each further byte is one more.
        for (bytes, narrow) in [(62, true), (63, true), (64, false), (65, false)] {
            let pattern = "a".repeat(bytes);
            let glob = Glob::new(pattern.as_bytes()).expect("a pattern");
            assert_eq!(glob.narrow.is_some(), narrow, "{bytes}");
            assert!(glob.matches(pattern.as_bytes()), "{bytes}");
            assert!(
                !glob.matches(&pattern.as_bytes()[1..]) && !glob.matches("a".repeat(bytes + 1).as_bytes())
            );
        }
    }

    #[test]
    fn matching_time_is_bounded_for_hostile_patterns() {
        let glob = Glob::new("*a".repeat(200).as_bytes()).expect("a pattern");
        assert!(!glob.matches(&[b'a'; 199]));
        assert!(glob.matches(&[b'a'; 2000]));
        assert!(Glob::new("{{a,a},{a,a}}*".repeat(60).as_bytes()).expect("a pattern").matches(&[b'a'; 300]));
    }

    #[test]
    fn repeated_stars_are_merged() {
        let one = Glob::new(b"*x").expect("a pattern");
        let many = Glob::new(format!("{}x", "*".repeat(1000)).as_bytes()).expect("a pattern");
        assert_eq!(one.steps, many.steps);
        for (pattern, good, bad) in [("{a,**}**b", "ab b xxb", "a"), ("{a,b*}*c", "ac bc axc", "c xc")] {
            let glob = Glob::new(pattern.as_bytes()).expect("a pattern");
            assert!(good.split(' ').all(|text| glob.matches(text.as_bytes())), "{pattern}");
            assert!(!bad.split(' ').any(|text| glob.matches(text.as_bytes())), "{pattern}");
        }
    }

    #[test]
    fn work_is_bounded_by_steps_times_bytes() {
        let patterns = ["*a".repeat(500), "*".repeat(1000), "{a,b}*".repeat(170), "*a".repeat(20)];
        for pattern in patterns {
            let glob = Glob::new(pattern.as_bytes()).expect("a pattern");
            for bytes in [10, 100, 1000] {
                let mut work = 0;
                let text = vec![b'a'; bytes];
                let mut search = glob.search();
                text.chunks(7).for_each(|piece| search.feed(piece, &mut work));
                assert_eq!(search.matches(), glob.matches(&text));
                let bound = glob.work_per_byte() * bytes as u64;
                // Patterns of stars only are decided before the first byte.
                assert!(
                    (work > 0) == pattern.contains('a') && work <= bound,
                    "{work} of {bound} for `{pattern}`"
                );
            }
        }
    }

    /// Matches in the way used for patterns of many steps.
    fn wide(glob: &Glob, text: &[u8]) -> bool {
        let wide = Glob { narrow: None, ..glob.clone() };
        let mut search = wide.search();
        text.chunks(3).for_each(|piece| search.feed(piece, &mut 0));
        search.matches()
    }

    /// A naive backtracking matcher, for patterns of `*`, `?` and plain bytes.
    fn naive(pattern: &[u8], text: &[u8]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((b'*', rest)) => (0..=text.len()).any(|skip| naive(rest, &text[skip..])),
            Some((b'?', rest)) => !text.is_empty() && naive(rest, &text[1..]),
            Some((byte, rest)) => text.first() == Some(byte) && naive(rest, &text[1..]),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn stars_and_question_marks_agree_with_a_naive_matcher(pattern in "[ab*?]{0,8}", text in "[ab]{0,8}") {
            let glob = Glob::new(pattern.as_bytes()).expect("a pattern");
            prop_assert_eq!(glob.matches(text.as_bytes()), naive(pattern.as_bytes(), text.as_bytes()));
        }

        #[test]
        fn any_bytes_compile_or_give_an_error(
            pattern in prop::collection::vec(prop_oneof![Just(b'{'), Just(b'}'), Just(b','), Just(b'['), Just(b']'),
                Just(b'-'), Just(b'!'), Just(b'*'), Just(b'\\'), any::<u8>()], 0..40),
            text in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            if let Ok(glob) = Glob::new(&pattern) {
                prop_assert_eq!(glob.matches(&text), wide(&glob, &text));
                let mut search = glob.search();
                text.chunks(3).for_each(|piece| search.feed(piece, &mut 0));
                prop_assert_eq!(glob.matches(&text), search.matches());
            }
        }
    }
}

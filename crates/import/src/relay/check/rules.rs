//! Checks `match`, `rewrite` and `aggregate`: expressions, replacements, and rules that are probably mistakes.

use process::relay::{NoteAbout, To, lost_references};

use super::Check;
use crate::relay::document::*;
use crate::relay::pattern::{self, Pattern};
use crate::relay::syntax::{AggregateSyntax, MatchSyntax, Word};
use config::diagnostic::{Code, Place};

/// Most rules of one configuration.
pub(super) const RULES_MAX: usize = 65_535;
/// Most clusters in one `send to`: a record has at most so many endpoints.
const DESTINATIONS_MAX: usize = 128;

impl Check<'_> {
    pub(super) fn match_rule(&mut self, syntax: MatchSyntax, span: Span) {
        self.note_unreachable("match", &syntax.patterns);
        let captures = syntax.route_using.is_some();
        let patterns: Vec<Pattern> =
            syntax.patterns.iter().filter_map(|word| self.pattern(word, captures)).collect();
        let validate = syntax.validate.and_then(|validate| {
            let pattern = self.pattern(&validate.pattern, false)?;
            Some(Validate { pattern, log: validate.log })
        });
        let route_using = syntax.route_using.as_ref().map(|using| {
            // `*` matches the whole name, and has no groups.
            let groups = patterns.iter().map(|pattern| pattern.groups).max().unwrap_or(0);
            self.replacement(using, groups)
        });
        let send = self.send_to(syntax.send.as_ref());
        self.check_destinations(&send, span);
        if syntax.send.is_none() && validate.is_none() {
            let place = first_line(span, &syntax.patterns);
            let report = self.mistakes.warning(Code::ImportNoEffect, place, "this rule does nothing");
            let report = report.label("it neither sends nor validates");
            report.hint("add `send to CLUSTER`, or `send to blackhole` to drop what it matches");
        } else if syntax.send.is_none() && syntax.stop {
            let message = "`stop` without `send to` has no effect";
            self.mistakes.warning(Code::ImportNoEffect, first_line(span, &syntax.patterns), message);
        }
        let stop = syntax.stop || send == To::Blackhole;
        let is_all = patterns.iter().any(|pattern| pattern.class.is_none());
        // Regardless of `validate`: a name that fails it stops here as well.
        if is_all && stop && send != To::Nowhere && self.all_stops.is_none() {
            self.all_stops = Some(span);
        }
        self.push(Rule::Match(MatchRule { patterns, validate, route_using, send, stop, span }));
    }

    pub(super) fn rewrite(&mut self, pattern: &Word, into: &Word, span: Span) {
        self.note_unreachable("rewrite", std::slice::from_ref(pattern));
        if pattern.text == "*" {
            let message = "a rewrite needs an expression";
            let report = self.mistakes.error(Code::BadExpression, pattern.span, message);
            let report = report.label("no part of the name to replace");
            let report = report.hint("use `^(.*)$` for the whole name, and \\1 to refer to it");
            report.upstream("invalid expression '*': Invalid preceding regular expression");
            return;
        }
        let Some(pattern) = self.pattern(pattern, true) else { return };
        let into = self.replacement(into, pattern.groups);
        self.push(Rule::Rewrite(RewriteRule { pattern, into, span }));
    }

    pub(super) fn aggregate(&mut self, syntax: AggregateSyntax, span: Span) {
        self.note_unreachable("aggregate", &syntax.patterns);
        let patterns: Vec<Pattern> =
            syntax.patterns.iter().filter_map(|word| self.pattern(word, true)).collect();
        let (every, expire) = (self.seconds(&syntax.every), self.seconds(&syntax.expire));
        if let (Some(every), Some(expire)) = (every, expire)
            && expire <= every
        {
            let message = format!("buckets of {every} seconds cannot expire after {expire} seconds");
            let report = self.mistakes.error(Code::ImportBadValue, syntax.expire.span, message);
            let hint = format!("points arrive late: use {} seconds or more", every.saturating_mul(2));
            let report = report.label("not more than `every`").hint(hint);
            report.upstream_at(self.semicolon, "expire must be greater than interval");
        }
        let groups = patterns.iter().map(|pattern| pattern.groups).max().unwrap_or(0);
        let mut computes: Vec<Compute> = Vec::new();
        for (word, what, name) in syntax.computes {
            let name = self.result_name(&name, groups, &computes, &patterns, syntax.send.is_some());
            computes.push(Compute { word, what, name });
        }
        let send = self.send_to(syntax.send.as_ref());
        self.check_destinations(&send, span);
        let (Some(every_s), Some(expire_s)) = (every, expire) else { return };
        self.push(Rule::Aggregate(AggregateRule {
            patterns,
            every_s,
            expire_s,
            timestamp: syntax.timestamp,
            computes,
            send,
            stop: syntax.stop,
            span,
        }));
    }

    /// The name that a compute writes to. Warns if another one writes to it, or if its own aggregate matches it.
    fn result_name(
        &mut self,
        word: &Word,
        groups: usize,
        before: &[Compute],
        patterns: &[Pattern],
        is_sent: bool,
    ) -> String {
        if before.iter().any(|compute| compute.name == word.text) {
            let message = "two computations write to one name";
            let report = self.mistakes.warning(Code::Repeated, word.span, message).label("written to above");
            report.hint(
                "give each result a name of its own; of two points of one time only the last one counts",
            );
        }
        let plain = groups == 0 || !word.text.contains('\\');
        let comes_back = |pattern: &Pattern| pattern.is_met(&word.text).unwrap_or(false);
        if !is_sent && plain && patterns.iter().any(comes_back) {
            let message = "the result is matched by its own aggregate";
            let hint = "set the target of results with `send to`, or choose a name that the expression does not match";
            self.mistakes.warning(Code::Loop, word.span, message).label("matched again").hint(hint);
        }
        self.replacement(word, groups)
    }

    fn push(&mut self, rule: Rule) {
        if self.conf.rules.len() < RULES_MAX {
            self.conf.rules.push(rule);
            return;
        }
        self.too_many(rule.span(), RULES_MAX, "rules");
    }

    fn check_destinations(&mut self, send: &To, span: Span) {
        let To::Clusters(clusters) = send else { return };
        if clusters.len() > DESTINATIONS_MAX {
            let message = format!("a record goes to at most {DESTINATIONS_MAX} endpoints");
            self.mistakes.error(Code::TooMany, span, message);
        }
    }

    fn note_unreachable(&mut self, keyword: &str, patterns: &[Word]) {
        if self.all_stops.is_none() {
            return;
        }
        for word in patterns {
            let message = format!("{} will never match due to preceding match * ... stop", word.text);
            let upstream = format!("{keyword} {message}");
            let report = self.mistakes.warning(Code::Unreachable, word.span, message);
            let report = report.label("no name reaches this rule").upstream(upstream);
            report.hint("move it above the `match *` that stops, or remove that `stop`");
        }
    }

    pub(super) fn pattern(&mut self, word: &Word, captures: bool) -> Option<Pattern> {
        match pattern::read(&word.text, captures, word.span) {
            Ok((pattern, notes)) => {
                for note in notes {
                    let code = match note.about {
                        NoteAbout::Reading => Code::ReadsTwoWays,
                        NoteAbout::Backtracking => Code::Backtracks,
                    };
                    self.mistakes.warning(code, inside(word, note.at), note.message).hint(note.hint);
                }
                Some(pattern)
            }
            Err(refusal) => {
                let upstream = format!("invalid expression '{}': {}", word.text, refusal.upstream);
                let place = inside(word, refusal.at);
                let report = self.mistakes.error(Code::BadExpression, place, refusal.message);
                report.label("in this expression").hint_if(refusal.hint).upstream(upstream);
                None
            }
        }
    }

    pub(super) fn replacement(&mut self, word: &Word, groups: usize) -> String {
        for reference in lost_references(&word.text, groups) {
            let place = inside(word, reference.at);
            if groups == 0 {
                let message = "the expression has no group to refer to";
                let hint = "put ( ) around the part of the expression that is meant: `^sys\\.([^.]+)` has one group, \\1";
                let report = self.mistakes.warning(Code::ImportNoEffect, place, message);
                report.label("used literally").hint(hint);
                continue;
            }
            let message = match reference.number {
                0 | usize::MAX => "this reference names no group, and gives nothing".to_owned(),
                number => format!("there is no group {number}: this reference gives nothing"),
            };
            let hint = match groups {
                1 => "the expression has 1 group: \\1".to_owned(),
                groups => format!("the expression has {groups} groups: \\1 to \\{groups}"),
            };
            self.mistakes.warning(Code::ImportNoEffect, place, message).label("empty").hint(hint);
        }
        word.text.clone()
    }
}

/// The place of some bytes of a word in its file. In quotes, each escape has one more byte there.
fn inside(word: &Word, at: std::ops::Range<usize>) -> Span {
    let place = word.span.place;
    let quoted = place.end - place.start > word.text.len();
    let place = if !quoted {
        Place::new(place.start + at.start, place.start + at.end)
    } else {
        Place::new(
            place.start + 1 + escaped(&word.text, at.start),
            place.start + 1 + escaped(&word.text, at.end),
        )
    };
    Span { file: word.span.file, place }
}

/// Bytes that the first `bytes` of a text take in quotes, with only the necessary escapes.
fn escaped(text: &str, bytes: usize) -> usize {
    bytes + text.bytes().take(bytes).filter(|byte| *byte == b'"' || *byte == b'\\').count()
}

/// The keyword and its first expression: a warning about a rule needs only its first line.
fn first_line(span: Span, patterns: &[Word]) -> Span {
    patterns.first().map_or(span, |word| word.span)
}

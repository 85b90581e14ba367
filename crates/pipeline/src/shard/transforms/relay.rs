//! A relay at work: its statements route each point by its name (spec graphite §2.5).
//!
//! Path of a point: `Relays::push` -> **[`Relay::points`]** -> `process::relay` (the decision for the name, remembered)
//! -> a copy in the open block of each output it goes to, or a value in an aggregation rule. Some time after an
//! aggregation rule's window is over `Relays::tick` routes its result in the same way. Not here: statements and rings
//! (`process`), which endpoints are up (`staunch` reports it), queues.
//! Invariants: a point without changes is copied as it stands, and never read beyond its name unless a statement needs
//! that; every record of a batch has one outcome, whatever its copies and values have.

use std::ops::AddAssign;
use std::sync::Arc;

use config::plan::RelayTransform;
use model::{
    Dropped, Figure, Now, Outcome, OutputId, Point, Receipt, RecordAccount, Reject, SECOND_NS, Span,
    TransformId,
};
use process::aggregation_rules::{
    AggregationRuleFigures, AggregationRules, Emitted, Fed, Feed, NotRestored, Restored, matched,
};
use process::relay::{
    Act, CacheFigures, CacheLimits, CachedRouter, End, Entry, Line, Router, RouterSnapshot,
};

use crate::Routed;
use crate::encode::OutputEncoder;

/// Memory for each remembered name: name, index and a share of the decisions. With the default of `max_names` 512 MiB,
/// as docs/security.md says.
const NAME_COST_BYTES: u64 = 128;

/// Time between two checks for windows that are over.
pub(crate) const LOOK_EVERY_NS: u64 = SECOND_NS / 4;

/// Series of aggregation rules that are computed at once: the names of their results may each need long searches, and
/// computed results are routed before more are computed.
const SERIES_AT_ONCE: usize = 64;

/// Longest shown piece of an unusable line.
const SHOWN_BYTES_MAX: usize = 400;

/// Most such lines that are shown within a second.
const SHOWN_MAX: u32 = 32;

/// One relay, with its remembered names and the state of its aggregation rules.
#[derive(Debug)]
pub(crate) struct Relay {
    pub(crate) name: String,
    made_of: Arc<RelayTransform>,
    router: CachedRouter,
    aggregation_rules: AggregationRules,
    figures: RelayFigures,
    results: Results,
    shown: Shown,
}

/// The state of a relay before its end.
#[derive(Debug)]
pub(crate) struct HeldByRelay {
    aggregation_rules: AggregationRules,
    figures: RelayFigures,
}

/// When there are results of aggregation rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// There are no aggregation rules.
    Never,
    /// No window is over.
    Later,
    /// Some wait to be routed, and there may be more.
    Now { is_more: bool },
}

/// What became of one point at a relay, or at several.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PointEnd {
    /// Copies, including those for further relays.
    copies: u32,
    handed: u32,
    /// The best outcome of a value of it.
    fed: Option<Fed>,
    invalid: bool,
    /// Copies above the limit of copies for one point.
    too_many: bool,
}

impl PointEnd {
    /// The same without copies for further relays, which end there.
    pub(crate) fn without_handed(self) -> PointEnd {
        PointEnd { copies: self.copies - self.handed, handed: 0, ..self }
    }

    /// Adds what became of a copy of it elsewhere.
    pub(crate) fn add(&mut self, other: PointEnd) {
        self.copies += other.copies;
        self.handed += other.handed;
        self.fed = self.fed.into_iter().chain(other.fed).min();
        self.invalid |= other.invalid;
        self.too_many |= other.too_many;
    }
}

/// How many lines have been shown in this second.
#[derive(Debug, Default)]
struct Shown {
    second: u64,
    lines: u32,
}

/// Figures of a relay since the start, including reloads and hot restarts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelayFigures {
    /// Points that were routed by its statements, including results and statistics.
    pub points: u64,
    /// Points that went to the blackhole.
    pub blackholed: u64,
    /// Points that no statement matched.
    pub unmatched: u64,
    /// Points that failed a `validate`.
    pub invalid: u64,
    /// Points that were copied nowhere and fed no aggregation rule, and those in the blackhole: the original's
    /// `metricsBlackholed`.
    pub nowhere: u64,
    /// Copies above the maximum for one point.
    pub copies_refused: u64,
    /// Names made by statements that cannot be sent: too long, empty, or with white space in them.
    pub names_refused: u64,
    /// Searches for an expression that exceeded their limit, which counts as no match.
    pub gave_up: u64,
    /// Points handed to aggregation rules, once for each aggregation rule, however much it computes from them.
    pub rolled_up: u64,
    /// Values handed to aggregation rules, one for each thing computed, by outcome.
    pub fed: FedFigures,
    /// Results of aggregation rules.
    pub results: u64,
    /// Infinite results, which went nowhere.
    pub results_not_finite: u64,
    /// Results that a stop had no time to route.
    pub results_stopped: u64,
    /// Values of windows that were not over when their aggregation rule ended.
    pub values_left: u64,
}

/// Values by outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FedFigures([u64; Fed::ALL.len()]);

impl FedFigures {
    fn count(&mut self, fed: Fed) {
        self.0[fed as usize] += 1;
    }

    /// Each with its count.
    pub fn iter(&self) -> impl Iterator<Item = (Fed, u64)> + '_ {
        Fed::ALL.iter().map(|fed| (*fed, self.0[*fed as usize]))
    }
}

impl RelayFigures {
    /// Each with its name, and its reason if there are several, for another process.
    fn named(&mut self) -> Vec<(&'static str, &'static str, &mut u64)> {
        let RelayFigures {
            points,
            blackholed,
            unmatched,
            invalid,
            nowhere,
            copies_refused,
            names_refused,
            gave_up,
            rolled_up,
            fed: FedFigures(fed),
            results,
            results_not_finite,
            results_stopped,
            values_left,
        } = self;
        let mut named = vec![
            ("points", "", points),
            ("blackholed", "", blackholed),
            ("unmatched", "", unmatched),
            ("invalid", "", invalid),
            ("nowhere", "", nowhere),
            ("copies_refused", "", copies_refused),
            ("names_refused", "", names_refused),
            ("gave_up", "", gave_up),
            ("rolled_up", "", rolled_up),
            ("results", "", results),
            ("results_not_finite", "", results_not_finite),
            ("results_stopped", "", results_stopped),
            ("values_left", "", values_left),
        ];
        named.extend(Fed::ALL.iter().zip(fed).map(|(fed, count)| ("fed", fed.word(), count)));
        named
    }
}

/// A relay's figures with those of its remembered names and aggregation rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayState {
    /// Name of the transform.
    pub transform: String,
    /// What it has done.
    pub figures: RelayFigures,
    /// Figures of its memory of names.
    pub cache: CacheFigures,
    /// Remembered names.
    pub names: u64,
    /// Memory for them, in bytes.
    pub names_bytes: u64,
    /// Figures of its aggregation rules.
    pub aggregation_rules: AggregationRuleFigures,
}

/// Results that are being routed.
#[derive(Debug, Default)]
pub(crate) struct Results {
    /// Their lines, each with its LF.
    bytes: Vec<u8>,
    points: Vec<(u16, Point)>,
    /// How many of them have been routed.
    routed: usize,
}

/// How the records of a batch ended, for the receipt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ended {
    routed: u64,
    aggregated: u64,
    filtered: u64,
    invalid: u64,
    non_finite: u64,
    late: u64,
    early: u64,
    series_max: u64,
    aggregation_rule_full: u64,
    too_many_copies: u64,
}

impl Ended {
    /// Settles so many records of `receipt`.
    pub(crate) fn settle(self, receipt: &mut Receipt) {
        for (outcome, records) in self.parts() {
            receipt.split(records).settle(outcome);
        }
    }

    /// The same for records that were counted as received on an edge.
    pub(crate) fn settle_on(self, edge: &RecordAccount) {
        for (outcome, records) in self.parts() {
            edge.settle(outcome, records);
        }
    }

    fn parts(self) -> impl Iterator<Item = (Outcome, u64)> {
        let parts = [
            (Outcome::Routed, self.routed),
            (Outcome::Aggregated, self.aggregated),
            (Outcome::Filtered, self.filtered),
            (Outcome::Rejected(Reject::Invalid), self.invalid),
            (Outcome::Rejected(Reject::NonFinite), self.non_finite),
            (Outcome::Dropped(Dropped::Late), self.late),
            (Outcome::Dropped(Dropped::Early), self.early),
            (Outcome::Dropped(Dropped::SeriesMax), self.series_max),
            (Outcome::Dropped(Dropped::AggregationRuleFull), self.aggregation_rule_full),
            (Outcome::Dropped(Dropped::TooManyCopies), self.too_many_copies),
        ];
        parts.into_iter().filter(|(_, records)| *records > 0)
    }

    /// Adds those of further records.
    pub(crate) fn add(&mut self, more: Ended) {
        let Ended {
            routed,
            aggregated,
            filtered,
            invalid,
            non_finite,
            late,
            early,
            series_max,
            aggregation_rule_full,
            too_many_copies,
        } = more;
        self.routed += routed;
        self.aggregated += aggregated;
        self.filtered += filtered;
        self.invalid += invalid;
        self.non_finite += non_finite;
        self.late += late;
        self.early += early;
        self.series_max += series_max;
        self.aggregation_rule_full += aggregation_rule_full;
        self.too_many_copies += too_many_copies;
    }

    /// Counts one record.
    #[inline]
    pub(crate) fn count(&mut self, end: PointEnd) {
        if end.copies > 0 {
            self.routed += 1;
        } else {
            self.count_not_copied(end);
        }
    }

    /// One record that was copied nowhere: the best outcome of its values counts.
    fn count_not_copied(&mut self, end: PointEnd) {
        let place = match end.fed {
            Some(Fed::Counted | Fed::CountedLate) => &mut self.aggregated,
            Some(Fed::Late) => &mut self.late,
            Some(Fed::Early) => &mut self.early,
            Some(Fed::SeriesMax) => &mut self.series_max,
            Some(Fed::BytesMax) => &mut self.aggregation_rule_full,
            Some(Fed::NotFinite) => &mut self.non_finite,
            None if end.invalid => &mut self.invalid,
            None if end.too_many => &mut self.too_many_copies,
            None => &mut self.filtered,
        };
        place.add_assign(1);
    }
}

impl Relay {
    /// A relay without remembered names. `down` are the outputs whose endpoints are down.
    pub(crate) fn new(name: &str, plan: &RelayTransform, down: &[OutputId], seed: u64) -> Relay {
        let router = Router::new(&plan.plan).expect("config has checked the relay");
        let aggregation_rules =
            AggregationRules::new(router.aggregation_rules().to_vec(), plan.aggregation_rules, seed);
        let limits = CacheLimits {
            names_max: usize::try_from(plan.names_max).unwrap_or(usize::MAX),
            bytes_max: usize::try_from(plan.names_max.saturating_mul(NAME_COST_BYTES)).unwrap_or(usize::MAX),
        };
        let mut router = CachedRouter::new(router, limits, seed);
        down.iter().for_each(|output| router.set_live(*output, false));
        Relay {
            name: name.to_owned(),
            made_of: Arc::new(plan.clone()),
            router,
            aggregation_rules,
            figures: RelayFigures::default(),
            results: Results::default(),
            shown: Shown::default(),
        }
    }

    /// Computes, for a new plan, the results of its aggregation rules whose statement is gone, for windows that are
    /// over. The others continue, under the numbers of the new plan: [`Relay::replan`] comes next.
    pub(crate) fn close_rules(&mut self, plan: &RelayTransform, now: Now) {
        if *self.made_of == *plan {
            return;
        }
        let to = matched(&self.made_of.plan.aggregation_rule_keys(), &plan.plan.aggregation_rule_keys());
        let Relay { aggregation_rules, results, .. } = self;
        let plans = plan.plan.aggregation_rules();
        let emitted =
            aggregation_rules.replan(plans, plan.aggregation_rules, &to, now, |rolled| results.add(rolled));
        self.count_emitted(emitted);
    }

    /// Applies a new plan. The remembered names are forgotten when any statement or cluster has changed.
    pub(crate) fn replan(&mut self, plan: &RelayTransform, down: &[OutputId], seed: u64) {
        if *self.made_of == *plan {
            return;
        }
        debug_assert!(self.results.points.is_empty(), "they are numbered by the old statements");
        if self.made_of.plan != plan.plan || self.made_of.names_max != plan.names_max {
            let figures = self.router.figures();
            self.router = Relay::new(&self.name, plan, down, seed).router;
            self.router.go_on_with(figures);
        }
        self.made_of = Arc::new(plan.clone());
    }

    /// The state of its aggregation rules, for [`Relay::import`] in another process; none when there are none.
    pub(crate) fn export(&self, id: u64) -> Option<Vec<u8>> {
        let keys = self.made_of.plan.aggregation_rule_keys();
        (!keys.is_empty()).then(|| self.aggregation_rules.save(&keys, id))
    }

    /// Continues from the state of another process.
    pub(crate) fn import(&mut self, bytes: &[u8]) -> Result<Restored, NotRestored> {
        let restored = self.aggregation_rules.restore(&self.made_of.plan.aggregation_rule_keys(), bytes)?;
        self.figures.values_left += restored.values_left;
        Ok(restored)
    }

    /// Its figures, for [`Relay::go_on_with`] in another process.
    pub(crate) fn counted(&self) -> Vec<Figure> {
        let (mut figures, mut cache) = (self.figures.clone(), self.router.figures());
        let all = figures.named().into_iter().chain(named_of(&mut cache));
        all.filter(|(_, _, count)| **count > 0)
            .map(|(family, reason, count)| Figure::new(family, reason, *count, 0))
            .collect()
    }

    /// Continues the figures of another process.
    pub(crate) fn go_on_with(&mut self, counted: &[Figure]) {
        let mut cache = CacheFigures::default();
        for (family, reason, count) in self.figures.named().into_iter().chain(named_of(&mut cache)) {
            let same = |figure: &&Figure| figure.family == family && figure.reason == reason;
            *count += counted.iter().find(same).map_or(0, |figure| figure.count);
        }
        self.router.go_on_with(cache);
    }

    /// Its state, for [`Relay::take_back`].
    pub(crate) fn held(&self) -> HeldByRelay {
        HeldByRelay { aggregation_rules: self.aggregation_rules.clone(), figures: self.figures.clone() }
    }

    /// Restores that state, as if it had not been finished since.
    pub(crate) fn take_back(&mut self, held: HeldByRelay) {
        (self.aggregation_rules, self.figures) = (held.aggregation_rules, held.figures);
    }

    fn count_emitted(&mut self, emitted: Emitted) {
        let figures = &mut self.figures;
        figures.results += emitted.results;
        figures.results_not_finite += emitted.not_finite;
        figures.values_left += emitted.values_left;
    }

    pub(crate) fn set_live(&mut self, output: OutputId, live: bool) {
        self.router.set_live(output, live);
    }

    /// Its figures, including those of its state.
    pub(crate) fn state(&self) -> RelayState {
        RelayState {
            transform: self.name.clone(),
            figures: self.figures.clone(),
            cache: self.router.figures(),
            names: self.router.len() as u64,
            names_bytes: self.router.memory_bytes() as u64,
            aggregation_rules: self.aggregation_rules.figures(),
        }
    }

    /// Its statements, and the router made of them, for queries on another thread.
    pub(crate) fn to_ask(&self) -> (Arc<RelayTransform>, RouterSnapshot) {
        (Arc::clone(&self.made_of), self.router.router().snapshot())
    }

    /// Its hash of a name.
    pub(crate) fn hash(&self, name: &[u8]) -> u64 {
        self.router.hash(name)
    }

    pub(crate) fn router(&self) -> &Router {
        self.router.router()
    }

    /// Routes points, whose lines lie in `bytes`, and returns how many. After those whose names need long searches,
    /// `go_on` is called: if it returns false, the rest is left.
    #[expect(clippy::too_many_arguments, reason = "what it works on, once for each batch")]
    pub(crate) fn points(
        &mut self,
        entry: Entry,
        bytes: &[u8],
        points: &[Point],
        outputs: &mut [OutputEncoder],
        now: Now,
        out: &mut Routed,
        go_on: &mut dyn FnMut() -> bool,
    ) -> (Ended, usize) {
        let mut ended = Ended::default();
        let mut left = points;
        'all: while !left.is_empty() {
            let (some, later) = left.split_at(left.len().min(CachedRouter::FETCH_MAX));
            left = later;
            self.router.fetch(some.iter().map(|point| point.hash));
            for (at, point) in some.iter().enumerate() {
                let end = self.point(entry, bytes, *point, outputs, now, out, &mut |_, _| {
                    debug_assert!(false, "it sends to no other relay");
                    false
                });
                ended.count(end);
                if self.router.has_worked_much() && !go_on() {
                    left = &points[points.len() - later.len() - some.len() + at + 1..];
                    break 'all;
                }
            }
        }
        let taken = points.len() - left.len();
        self.count_points(taken);
        (ended, taken)
    }

    /// One point. `hand` receives copies for other relays, and returns whether it has taken one.
    #[expect(clippy::too_many_arguments, reason = "what it works on, once for each point")]
    #[inline]
    pub(crate) fn point(
        &mut self,
        entry: Entry,
        bytes: &[u8],
        point: Point,
        outputs: &mut [OutputEncoder],
        now: Now,
        out: &mut Routed,
        hand: &mut impl FnMut(TransformId, Option<&[u8]>) -> bool,
    ) -> PointEnd {
        let Relay { router, aggregation_rules, figures, shown, .. } = self;
        let line = Line { name: point.name(bytes), rest: point.rest(bytes) };
        let (mut best, mut invalid, mut fed_values) = (None, false, 0);
        let (mut handed, mut not_handed) = (0, 0);
        let mut number = None;
        let routing = router.route(entry, point.hash, line, &mut |act| match act {
            Act::Copy { output, renamed: None } => outputs[output.index()].point(bytes, point, now, out),
            Act::Copy { output, renamed: Some(name) } => {
                outputs[output.index()].renamed_point(name, bytes, point, now, out);
            }
            Act::Relay { relay, renamed } => {
                if hand(relay, renamed) {
                    handed += 1;
                } else {
                    not_handed += 1;
                }
            }
            Act::Feed { aggregation_rule, compute, name } => {
                figures.rolled_up += u64::from(compute == 0);
                fed_values += 1;
                let fed = match number.get_or_insert_with(|| value_and_time(bytes, point)) {
                    Some((value, timestamp)) => {
                        let feed =
                            Feed { aggregation_rule, compute, name, value: *value, timestamp: *timestamp };
                        aggregation_rules.feed(feed, now)
                    }
                    None => {
                        // One line for each aggregation rule, as the original prints them.
                        if compute == 0 && point.time(bytes).is_empty() && shown.one_more(now) {
                            out.untimed.push(beginning(point.line.of(bytes)));
                        }
                        Fed::NotFinite
                    }
                };
                figures.fed.count(fed);
                best = Some(best.map_or(fed, |best: Fed| best.min(fed)));
            }
            Act::Invalid { log } => {
                invalid = true;
                if log && shown.one_more(now) {
                    out.invalid.push(beginning(point.line.of(bytes)));
                }
            }
        });
        router.has_fed(fed_values);
        let copies = routing.copies - not_handed;
        figures.copies_refused += u64::from(routing.copies_refused + not_handed);
        figures.names_refused += u64::from(routing.names_refused);
        figures.gave_up += u64::from(routing.gave_up);
        if invalid {
            figures.invalid += 1;
        }
        let too_many = routing.copies_refused + not_handed > 0;
        let end = PointEnd { copies, handed, fed: best, invalid, too_many };
        if copies > 0 {
            return end;
        }
        figures.nowhere += u64::from(best.is_none() || routing.end == End::Blackholed);
        match routing.end {
            End::Blackholed => figures.blackholed += 1,
            End::Exhausted | End::Stopped if best.is_none() && !invalid => figures.unmatched += 1,
            End::Exhausted | End::Stopped | End::Invalid => {}
        }
        end
    }

    /// Counts points that [`Relay::point`] was called for.
    pub(crate) fn count_points(&mut self, points: usize) {
        self.figures.points += points as u64;
    }

    /// Whether names or values since the last call needed long searches.
    #[inline]
    pub(crate) fn has_worked_much(&mut self) -> bool {
        self.router.has_worked_much()
    }

    /// Computes results that are due, of at most `series_max` series, unless some wait to be routed.
    pub(crate) fn compute_results(&mut self, now: Now, series_max: usize) -> Due {
        let Relay { router, aggregation_rules, results, .. } = self;
        if router.router().aggregation_rules().is_empty() {
            return Due::Never;
        }
        if !results.points.is_empty() {
            return Due::Now { is_more: true };
        }
        if !aggregation_rules.is_due(now) {
            return Due::Later;
        }
        let emitted =
            aggregation_rules.tick(now, series_max.min(SERIES_AT_ONCE), |rolled| results.add(rolled));
        self.count_emitted(emitted);
        Due::Now { is_more: emitted.more }
    }

    /// Computes the results of all windows that are over; the values of later windows are counted as left.
    pub(crate) fn compute_last_results(&mut self, now: Now) {
        let Relay { aggregation_rules, results, .. } = self;
        let emitted = aggregation_rules.finish(now, |rolled| results.add(rolled));
        self.count_emitted(emitted);
    }

    /// Drops the remaining results: there is no time to route them.
    pub(crate) fn drop_results(&mut self) {
        self.figures.results_stopped += (self.results.points.len() - self.results.routed) as u64;
        self.results = Results::default();
    }

    /// Takes out the computed results that have not been routed yet, to be put back. None when there are none.
    pub(crate) fn take_results(&mut self) -> Option<Results> {
        (!self.results.points.is_empty()).then(|| std::mem::take(&mut self.results))
    }

    /// The next of them, which is counted as routed.
    pub(crate) fn next_result(&mut self, results: &mut Results) -> Option<(Entry, Point)> {
        let (aggregation_rule, point) = results.points.get_mut(results.routed)?;
        point.hash = self.router.hash(point.name(&results.bytes));
        results.routed += 1;
        Some((Entry::Result(*aggregation_rule), *point))
    }

    /// Returns whether all of them have been routed.
    pub(crate) fn put_results_back(&mut self, mut results: Results) -> bool {
        let all = results.routed == results.points.len();
        if all {
            results.bytes.clear();
            results.points.clear();
            results.routed = 0;
        }
        self.results = results;
        all
    }
}

/// As [`RelayFigures::named`].
fn named_of(cache: &mut CacheFigures) -> [(&'static str, &'static str, &mut u64); 3] {
    let CacheFigures { hits, misses, turned } = cache;
    [("names", "found", hits), ("names", "decided", misses), ("names", "forgotten", turned)]
}

fn beginning(line: &[u8]) -> Vec<u8> {
    line[..line.len().min(SHOWN_BYTES_MAX)].to_vec()
}

impl Shown {
    /// Whether another line may be shown, which then counts as shown.
    fn one_more(&mut self, now: Now) -> bool {
        let second = now.mono_ns / SECOND_NS;
        if self.second != second {
            *self = Shown { second, lines: 0 };
        }
        self.lines += 1;
        self.lines <= SHOWN_MAX
    }
}

impl Results {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn add(&mut self, rolled: process::aggregation_rules::RuleResult<'_>) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(rolled.name);
        rolled.write_rest(&mut self.bytes);
        let line = Span::new(begin, self.bytes.len() - begin);
        self.bytes.push(b'\n');
        let point = Point { hash: 0, line, name_len: rolled.name.len() as u32, tags_len: 0 };
        self.points.push((rolled.aggregation_rule, point));
    }
}

/// The number and time of a line for an aggregation rule: none if either is not a number. The original reads as much of
/// them as it can, and 0 for the rest (spec graphite §2.7).
fn value_and_time(bytes: &[u8], point: Point) -> Option<(f64, i64)> {
    let text = |bytes| std::str::from_utf8(bytes).ok();
    let value = text(point.value(bytes))?.parse().ok()?;
    let time = text(point.time(bytes))?;
    let seconds = time.parse().ok().or_else(|| {
        let seconds: f64 = time.parse().ok()?;
        seconds.is_finite().then_some(seconds.floor() as i64)
    });
    Some((value, seconds?))
}

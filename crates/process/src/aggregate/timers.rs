//! Timers: all values of a window (spec statsd §7.3), or a sketch of them beyond the exact limit.

use model::{FlushInfo, Flushed, Kind, SeriesRef, limits};

use super::context::{Context, Tally};
use super::plan::{ExpiryPlan, SeriesExpiry};
use super::sketch::Sketch;
use super::state::{AddResult, Closing, State};
use super::timer_maths::{self, Counted};
use crate::bytes::{Bytes, put_f64, put_varint};

/// State that only few timers need.
#[derive(Clone, Debug, Default)]
struct Rare {
    /// Weight of each value; empty while all are 1.
    weights: Vec<f64>,
    /// Replaces the values once there are too many.
    sketch: Option<Box<Sketch>>,
}

/// The values of a window.
#[derive(Clone, Debug, Default)]
pub(super) struct Timer {
    values: Vec<f64>,
    /// Number of observations, scaled by sample rates.
    count: f64,
    more: Option<Box<Rare>>,
}

impl Timer {
    /// Adds a value that counts as `weight` observations.
    #[inline]
    pub(super) fn add(&mut self, value: f64, weight: f64, context: &mut Context) -> AddResult {
        let weight = if context.timer_rate_ignored { 1.0 } else { weight };
        let count = self.count + weight;
        let simple = weight == 1.0 || !context.timer_weights;
        if count.is_finite()
            && simple
            && self.more.is_none()
            && self.values.len() < self.values.capacity().min(exact_max(context))
        {
            self.values.push(value);
            self.count = count;
            context.tally.timer_values += 1;
            return AddResult::Added;
        }
        self.add_slowly(value, weight, context)
    }

    #[inline(never)]
    fn add_slowly(&mut self, value: f64, weight: f64, context: &mut Context) -> AddResult {
        let count = self.count + weight;
        if !count.is_finite() && !context.allow_non_finite {
            return AddResult::NonFinite;
        }
        let value_weight = if context.timer_weights { weight } else { 1.0 };
        if self.grows_with(value_weight) && !context.has_room() {
            return AddResult::NoRoom;
        }
        let before = self.memory_bytes();
        if self.sketch().is_none() && self.values.len() >= exact_max(context) {
            if context.timer_exact_max == 0 {
                return AddResult::Full;
            }
            self.convert_to_sketch(&mut context.tally);
        }
        if let Some(Some(sketch)) = self.more.as_mut().map(|more| more.sketch.as_mut()) {
            sketch.add(value, value_weight);
        } else {
            self.keep(value, value_weight, exact_max(context));
            context.tally.timer_values += 1;
        }
        self.count = count;
        context.tally.heap(before, self.memory_bytes());
        AddResult::Added
    }

    /// True when one more value may need more memory. A sketch is bounded in itself.
    fn grows_with(&self, weight: f64) -> bool {
        let weighs = |more: &Rare| !more.weights.is_empty();
        let first_weight = weight != 1.0 && !self.more.as_deref().is_some_and(weighs);
        self.sketch().is_none() && (first_weight || self.values.len() == self.values.capacity())
    }

    /// Stores a value with its weight. Capacity doubles, up to the maximum.
    fn keep(&mut self, value: f64, weight: f64, values_max: usize) {
        let len = self.values.len();
        if len == self.values.capacity() {
            self.values.reserve_exact((len * 2).clamp(4, values_max.max(4)).max(len + 1) - len);
        }
        if weight != 1.0 || self.more.as_ref().is_some_and(|more| !more.weights.is_empty()) {
            let weights = &mut self.more.get_or_insert_default().weights;
            // Weights of the values before the first one that differs.
            weights.resize(len, 1.0);
            weights.push(weight);
        }
        self.values.push(value);
    }

    fn convert_to_sketch(&mut self, tally: &mut Tally) {
        let mut sketch = Box::new(Sketch::new());
        let more = self.more.get_or_insert_default();
        for (at, value) in self.values.iter().enumerate() {
            sketch.add(*value, more.weights.get(at).copied().unwrap_or(1.0));
        }
        more.sketch = Some(sketch);
        more.weights = Vec::new();
        tally.timer_values -= self.values.len() as u64;
        tally.timer_sketches += 1;
        self.values = Vec::new();
    }

    fn sketch(&self) -> Option<&Sketch> {
        self.more.as_ref()?.sketch.as_deref()
    }

    /// The values in order of arrival; empty once they are in a sketch.
    pub(super) fn values(&self) -> &[f64] {
        &self.values
    }

    /// Number of observations, scaled by sample rates.
    pub(super) fn count(&self) -> f64 {
        self.count
    }

    fn memory_bytes(&self) -> usize {
        let more = self.more.as_ref().map_or(0, |more| {
            size_of::<Rare>()
                + more.weights.capacity() * size_of::<f64>()
                + more.sketch.as_ref().map_or(0, |sketch| sketch.memory_bytes())
        });
        self.values.capacity() * size_of::<f64>() + more
    }

    /// Computes all aggregates into `context.scratch`, and sorts the values.
    fn compute(&mut self, name: &[u8], divisor: f64, context: &mut Context) {
        let counted = Counted { count: self.count, divisor };
        let Context { labels, scratch, timer_weights, .. } = context;
        if let Some(sketch) = self.sketch() {
            return timer_maths::sketched(sketch, counted, name, labels, scratch);
        }
        if self.values.is_empty() {
            return timer_maths::idle(labels, &mut scratch.aggregates);
        }
        let weights = self.more.as_ref().map_or(&[][..], |more| &more.weights);
        if weights.is_empty() || !*timer_weights {
            self.values.sort_unstable_by(f64::total_cmp);
            return timer_maths::plain(&self.values, counted, name, labels, scratch);
        }
        scratch.pairs.clear();
        scratch.pairs.extend(self.values.iter().copied().zip(weights.iter().copied()));
        scratch.pairs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        for (value, pair) in self.values.iter_mut().zip(&scratch.pairs) {
            *value = pair.0;
        }
        timer_maths::weighted(&self.values, counted, name, labels, scratch);
    }
}

/// Maximum number of values kept exactly.
#[inline]
fn exact_max(context: &Context) -> usize {
    if context.timer_exact_max == 0 { limits::TIMER_VALUES_MAX } else { context.timer_exact_max }
}

impl State for Timer {
    const KIND: Kind = Kind::Timer;

    fn idle(plan: &ExpiryPlan) -> SeriesExpiry {
        plan.timers
    }

    fn emit(
        &mut self,
        series: SeriesRef<'_>,
        _active: bool,
        closing: &Closing,
        context: &mut Context,
        emit: &mut impl FnMut(&FlushInfo, Flushed<'_>),
    ) {
        context.scratch.aggregates.clear();
        self.compute(series.name, closing.divisor, context);
        let (labels, aggregates) = (context.names(), &context.scratch.aggregates);
        emit(&closing.info, Flushed::Timer { series, labels, aggregates, values: &self.values });
    }

    fn clear(&mut self, tally: &mut Tally) {
        if self.values.is_empty() && self.more.is_none() {
            self.count = 0.0;
            return;
        }
        let before = self.memory_bytes();
        let used = self.values.len();
        tally.timer_values -= used as u64;
        self.values.clear();
        self.count = 0.0;
        self.more = None;
        if self.values.capacity() > 64 && used < self.values.capacity() / 4 {
            self.values.shrink_to(used * 2);
        }
        tally.heap(before, self.memory_bytes());
    }

    fn reset(&mut self, tally: &mut Tally) {
        tally.heap(self.memory_bytes(), 0);
        tally.timer_values -= self.values.len() as u64;
        *self = Timer::default();
    }

    fn save(&self, to: &mut Vec<u8>) {
        put_f64(self.count, to);
        if let Some(sketch) = self.sketch() {
            to.push(2);
            return sketch.save(to);
        }
        let weights = self.more.as_ref().map_or(&[][..], |more| &more.weights);
        to.push(u8::from(!weights.is_empty()));
        put_varint(self.values.len() as u64, to);
        self.values.iter().chain(weights).for_each(|number| put_f64(*number, to));
    }

    fn load(&mut self, from: &mut Bytes<'_>, _seed: u32, context: &mut Context) -> Option<()> {
        self.count = from.f64()?;
        let form = from.u8()?;
        match form {
            0 | 1 => {
                let len = from.len_of(8)?;
                let values = from.f64s(len)?;
                if form == 1 {
                    let weights = from.f64s(len)?;
                    self.more = Some(Box::new(Rare { weights, sketch: None }));
                }
                self.values = values;
                context.tally.timer_values += len as u64;
            }
            2 => {
                let sketch = Some(Box::new(Sketch::load(from)?));
                self.more = Some(Box::new(Rare { weights: Vec::new(), sketch }));
            }
            _ => return None,
        }
        context.tally.heap(0, self.memory_bytes());
        Some(())
    }

    fn work(&self) -> usize {
        1 + self.values.len() / 16 + if self.sketch().is_some() { 64 } else { 0 }
    }
}

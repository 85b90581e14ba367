//! The labels of timer aggregates, built once per plan (spec statsd §7.3, §7.5, §7.7).

use model::Label;

use super::plan::{AggregatePlan, HistogramPlan, PercentLabel};

/// Aggregates that every timer has, in the order of §7.3.
const FIXED: [&str; 9] =
    ["std", "upper", "lower", "count", "count_ps", "sum", "sum_squares", "mean", "median"];

/// One percentile threshold. Its five labels are adjacent: count, mean, upper or lower, sum, sum_squares.
#[derive(Clone, Copy, Debug)]
pub(super) struct Threshold {
    pub(super) percent: f64,
    pub(super) first: usize,
}

/// One histogram. The labels of its bins are adjacent.
#[derive(Clone, Debug)]
pub(super) struct Bins {
    name_contains: Vec<u8>,
    pub(super) limits: Vec<f64>,
    pub(super) first: usize,
}

/// Maximum number of labels of a plan: indexes are 16 bits wide. Further labels are left out.
pub(super) const LABELS_MAX: usize = u16::MAX as usize;

/// All labels of a plan, and the index of the first label of each family.
#[derive(Clone, Debug)]
pub(super) struct Labels {
    names: Vec<Label>,
    /// True for labels that `calculatedTimerMetrics` leaves out. Empty when it selects all.
    unwanted: Vec<bool>,
    pub(super) thresholds: Vec<Threshold>,
    histograms: Vec<Bins>,
    fixed: usize,
}

impl Labels {
    pub(super) fn new(plan: &AggregatePlan) -> Labels {
        let wants = |form: &str| {
            plan.timer_aggregates.is_empty() || plan.timer_aggregates.iter().any(|wanted| wanted == form)
        };
        let mut labels = Labels {
            names: Vec::new(),
            unwanted: Vec::new(),
            thresholds: Vec::new(),
            histograms: Vec::new(),
            fixed: 0,
        };
        for (percent, text) in &plan.percentiles {
            labels.add_threshold(*percent, &percent_text(text, plan.percent_label), &wants);
        }
        labels.fixed = labels.names.len();
        for name in FIXED {
            labels.add(name.to_owned(), wants(name));
        }
        for histogram in &plan.histograms {
            labels.add_histogram(histogram, wants("histogram"));
        }
        labels
    }

    fn add(&mut self, name: String, wanted: bool) {
        self.names.push(name.into());
        self.unwanted.push(!wanted);
    }

    fn add_threshold(&mut self, percent: f64, text: &str, wants: &impl Fn(&str) -> bool) {
        let count = format!("count_{text}");
        // A threshold that is listed twice is one series. Room for the fixed labels is reserved.
        if self.names.iter().any(|name| **name == *count) || self.names.len() + 5 + FIXED.len() > LABELS_MAX {
            return;
        }
        let first = self.names.len();
        let boundary = if percent > 0.0 { "upper" } else { "lower" };
        for base in ["count", "mean", boundary, "sum", "sum_squares"] {
            self.add(format!("{base}_{text}"), wants(&format!("{base}_percent")));
        }
        if self.unwanted[first..].contains(&false) {
            self.thresholds.push(Threshold { percent, first });
        }
    }

    fn add_histogram(&mut self, histogram: &HistogramPlan, wanted: bool) {
        if self.names.len() + histogram.bins.len() > LABELS_MAX {
            return;
        }
        let first = self.names.len();
        for (_, text) in &histogram.bins {
            self.add(format!("histogram.bin_{}", text.replacen('.', "_", 1)), wanted);
        }
        let limits =
            if wanted { histogram.bins.iter().map(|(limit, _)| *limit).collect() } else { Vec::new() };
        self.histograms.push(Bins { name_contains: histogram.name_contains.clone().into(), limits, first });
    }

    pub(super) fn names(&self) -> &[Label] {
        &self.names
    }

    /// Index of the first aggregate that every timer has; the others follow in the order of §7.3.
    pub(super) fn fixed(&self) -> usize {
        self.fixed
    }

    /// Indexes of `count` and `count_ps`.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.fixed + 3, self.fixed + 4)
    }

    /// Appends the aggregate unless the plan leaves it out.
    pub(super) fn push(&self, label: usize, value: f64, to: &mut Vec<(u16, f64)>) {
        if !self.unwanted[label] {
            to.push((label as u16, value));
        }
    }

    /// The first histogram whose text is part of the name.
    pub(super) fn histogram(&self, name: &[u8]) -> Option<&Bins> {
        self.histograms.iter().find(|bins| memchr::memmem::find(name, &bins.name_contains).is_some())
    }
}

fn percent_text(text: &str, how: PercentLabel) -> String {
    match how {
        PercentLabel::First => text.replacen('.', "_", 1).replacen('-', "top", 1),
        PercentLabel::Every => text.replace('.', "_").replace('-', "top"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(plan: &AggregatePlan) -> Vec<String> {
        let labels = Labels::new(plan);
        let mut all = Vec::new();
        (0..labels.names().len()).for_each(|label| labels.push(label, 0.0, &mut all));
        all.iter().map(|(label, _)| labels.names()[usize::from(*label)].to_string()).collect()
    }

    fn plan(percentiles: &[&str], aggregates: &[&str]) -> AggregatePlan {
        AggregatePlan {
            percentiles: percentiles
                .iter()
                .map(|text| (text.parse().expect("a number"), (*text).to_owned()))
                .collect(),
            timer_aggregates: aggregates.iter().map(|text| (*text).to_owned()).collect(),
            histograms: vec![HistogramPlan {
                name_contains: "lat".into(),
                bins: vec![(0.01, "0.01".into()), (10.0, "10".into()), (f64::INFINITY, "inf".into())],
            }],
            ..AggregatePlan::default()
        }
    }

    #[test]
    fn labels_are_in_the_order_of_the_spec() {
        assert_eq!(
            wanted(&plan(&["99.9", "-25", "99.9"], &[])),
            [
                "count_99_9",
                "mean_99_9",
                "upper_99_9",
                "sum_99_9",
                "sum_squares_99_9",
                "count_top25",
                "mean_top25",
                "lower_top25",
                "sum_top25",
                "sum_squares_top25",
                "std",
                "upper",
                "lower",
                "count",
                "count_ps",
                "sum",
                "sum_squares",
                "mean",
                "median",
                "histogram.bin_0_01",
                "histogram.bin_10",
                "histogram.bin_inf",
            ]
        );
    }

    #[test]
    fn only_listed_aggregates_are_kept() {
        let table: &[(&[&str], &[&str])] = &[
            (&["count", "upper_percent"], &["upper_90", "upper_99_9", "count"]),
            (&["lower_percent", "mean"], &["lower_top10_5", "mean"]),
            (&["histogram"], &["histogram.bin_0_01", "histogram.bin_10", "histogram.bin_inf"]),
            (&["upper_90", "bin_10"], &[]),
        ];
        for (listed, want) in table {
            assert_eq!(wanted(&plan(&["90", "99.9", "-10.5"], listed)), *want, "{listed:?}");
        }
    }

    #[test]
    fn percent_labels_replace_the_first_or_every_dot_and_minus() {
        let labels = Labels::new(&plan(&["50"], &[]));
        let (count, count_ps) = labels.counts();
        assert_eq!((&*labels.names()[count], &*labels.names()[count_ps]), ("count", "count_ps"));
        for (text, first, every) in [
            ("90", "90", "90"),
            ("-99.9", "top99_9", "top99_9"),
            ("1.2.3-4-5", "1_2.3top4-5", "1_2_3top4top5"),
        ] {
            assert_eq!(percent_text(text, PercentLabel::First), first);
            assert_eq!(percent_text(text, PercentLabel::Every), every);
        }
    }
}

//! Which layout and aggregation a new series gets: the rules of storage-schemas.conf and storage-aggregation.conf as
//! checked values (spec graphite §4.3). The first rule whose pattern is found in the name wins.
//!
//! Not here: the files (`import`). Rules apply when a file is created; existing files keep what they have.

mod pattern;
#[cfg(test)]
mod tests;

use crate::whisper::format::{AggregationMethod, ArchivePlan, Header, Layout, LayoutError};

pub use pattern::{
    COMPILED_BYTES_MAX, PATTERN_BYTES_MAX, PATTERNS_MAX, PatternError, PatternFault, Patterns,
};

/// Archives of a series that no rule matches: a week of minutes.
pub const FALLBACK: ArchivePlan = ArchivePlan { step: 60, points: 10_080 };

/// The xFilesFactor of a series for which no rule has one.
pub const FALLBACK_X_FILES_FACTOR: f32 = 0.5;

/// A rule of storage-schemas.conf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaRule {
    /// Name of its section.
    pub section: String,
    /// Python's regular expression.
    pub pattern: String,
    /// The archives.
    pub layout: Layout,
}

/// A rule of storage-aggregation.conf.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregationRule {
    /// Name of its section.
    pub section: String,
    /// Python's regular expression.
    pub pattern: String,
    /// The xFilesFactor, 0 to 1; none for [`FALLBACK_X_FILES_FACTOR`].
    pub x_files_factor: Option<f32>,
    /// The method; none for average.
    pub method: Option<AggregationMethod>,
}

/// Checked rules of storage-schemas.conf.
#[derive(Clone, Debug)]
pub struct Schemas {
    rules: Vec<SchemaRule>,
    patterns: Patterns,
    fallback: Layout,
}

/// The compiled patterns follow from the rules.
impl PartialEq for Schemas {
    fn eq(&self, other: &Schemas) -> bool {
        (&self.rules, &self.fallback) == (&other.rules, &other.fallback)
    }
}

/// Checked rules of storage-aggregation.conf.
#[derive(Clone, Debug)]
pub struct Aggregations {
    rules: Vec<AggregationRule>,
    patterns: Patterns,
}

/// The compiled patterns follow from the rules.
impl PartialEq for Aggregations {
    fn eq(&self, other: &Aggregations) -> bool {
        self.rules == other.rules
    }
}

/// Why rules are invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleError {
    /// A pattern cannot be used.
    Pattern(PatternError),
    /// The xFilesFactor of a rule is not between 0 and 1.
    XFilesFactor {
        /// Number of the rule, from 0.
        rule: usize,
    },
}

impl std::fmt::Display for RuleError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RuleError::Pattern(error) => write!(f, "{error}"),
            RuleError::XFilesFactor { rule } => {
                write!(f, "the xFilesFactor of rule {} is not between 0 and 1", rule + 1)
            }
        }
    }
}

impl std::error::Error for RuleError {}

impl Schemas {
    /// Checks rules, in the order of the file.
    ///
    /// # Errors
    /// The first pattern that cannot be used.
    pub fn new(rules: Vec<SchemaRule>) -> Result<Schemas, RuleError> {
        let patterns = Patterns::new(rules.iter().map(|rule| &*rule.pattern)).map_err(RuleError::Pattern)?;
        let fallback = Layout::new(&[FALLBACK]).expect("one archive of a week breaks no rule");
        Ok(Schemas { rules, patterns, fallback })
    }

    /// The rules.
    pub fn rules(&self) -> &[SchemaRule] {
        &self.rules
    }

    /// The rule for a series; none when it gets the fallback.
    pub fn rule_of(&self, name: &[u8]) -> Option<&SchemaRule> {
        self.rules.get(self.patterns.first_in(name)?)
    }

    /// The archives of a new series.
    pub fn layout_of(&self, name: &[u8]) -> &Layout {
        self.rule_of(name).map_or(&self.fallback, |rule| &rule.layout)
    }
}

impl Aggregations {
    /// Checks rules, in the order of the file.
    ///
    /// # Errors
    /// The first factor or pattern that cannot be used.
    pub fn new(rules: Vec<AggregationRule>) -> Result<Aggregations, RuleError> {
        let bad =
            |rule: &AggregationRule| rule.x_files_factor.is_some_and(|factor| !(0.0..=1.0).contains(&factor));
        if let Some(rule) = rules.iter().position(bad) {
            return Err(RuleError::XFilesFactor { rule });
        }
        let patterns = Patterns::new(rules.iter().map(|rule| &*rule.pattern)).map_err(RuleError::Pattern)?;
        Ok(Aggregations { rules, patterns })
    }

    /// The rules.
    pub fn rules(&self) -> &[AggregationRule] {
        &self.rules
    }

    /// The rule for a series; none when it gets the fallbacks.
    pub fn rule_of(&self, name: &[u8]) -> Option<&AggregationRule> {
        self.rules.get(self.patterns.first_in(name)?)
    }

    /// Method and xFilesFactor of a new series.
    pub fn aggregation_of(&self, name: &[u8]) -> (AggregationMethod, f32) {
        let rule = self.rule_of(name);
        let method = rule.and_then(|rule| rule.method).unwrap_or_default();
        (method, rule.and_then(|rule| rule.x_files_factor).unwrap_or(FALLBACK_X_FILES_FACTOR))
    }
}

/// The header of a new series' file.
///
/// # Errors
/// Never with rules that were checked: the error is that of [`Header::new`].
pub fn header_of(schemas: &Schemas, aggregations: &Aggregations, name: &[u8]) -> Result<Header, LayoutError> {
    let (method, x_files_factor) = aggregations.aggregation_of(name);
    Header::new(schemas.layout_of(name), method, x_files_factor)
}

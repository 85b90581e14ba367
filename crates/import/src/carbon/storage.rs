//! storage-schemas.conf and storage-aggregation.conf: how series are stored, by expressions on their names.

use super::{RULES_MAX, expression, ini};
use config::diagnostic::{Code, Diagnostic, has_errors, nearest};

/// One section of storage-schemas.conf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// Its name.
    pub name: String,
    /// Searched in the name; the first matching section applies.
    pub pattern: String,
    /// The finest first; at least one, and each must fit the next one (spec graphite §5.2).
    pub archives: Vec<Archive>,
}

/// One archive of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Archive {
    /// Seconds for each point, at least 1.
    pub every_s: u32,
    /// Number of points kept, at least 1.
    pub points: u32,
}

/// One section of storage-aggregation.conf.
#[derive(Clone, Debug, PartialEq)]
pub struct StorageAggregation {
    /// Its name.
    pub name: String,
    /// Searched in the name; the first matching section applies.
    pub pattern: String,
    /// Share of points that must be known, 0 to 1; none for 0.5.
    pub x_files_factor: Option<f64>,
    /// How points are aggregated; none for the average.
    pub method: Option<WhisperMethod>,
}

/// How several points become one of a coarser archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhisperMethod {
    /// `average`, `avg`
    Average,
    /// `sum`
    Sum,
    /// `last`
    Last,
    /// `max`
    Max,
    /// `min`
    Min,
    /// `avg_zero`
    AverageZero,
    /// `absmax`
    AbsoluteMax,
    /// `absmin`
    AbsoluteMin,
}

const METHODS: [(&str, WhisperMethod); 9] = [
    ("average", WhisperMethod::Average),
    ("avg", WhisperMethod::Average),
    ("sum", WhisperMethod::Sum),
    ("last", WhisperMethod::Last),
    ("max", WhisperMethod::Max),
    ("min", WhisperMethod::Min),
    ("avg_zero", WhisperMethod::AverageZero),
    ("absmax", WhisperMethod::AbsoluteMax),
    ("absmin", WhisperMethod::AbsoluteMin),
];

/// Reads storage-schemas.conf.
pub fn storage_schemas(text: &str) -> (Option<Vec<Schema>>, Vec<Diagnostic>) {
    let (mut schemas, mut wrong) = (Vec::new(), Vec::new());
    for section in ini::sections(text, &mut wrong).into_iter().take(RULES_MAX) {
        section.warn_unknown(&["pattern", "retentions", "priority"], &mut wrong);
        let Some(pattern) = pattern(&section, &mut wrong) else { continue };
        let Some(entry) = section.get("retentions") else {
            missing(&section, "retentions", "for example 10s:6h,1m:30d", &mut wrong);
            continue;
        };
        let archives: Result<Vec<Archive>, String> =
            entry.value.split(',').map(|text| archive(text.trim())).collect();
        match archives.and_then(fitting) {
            Ok(archives) => schemas.push(Schema { name: section.name.to_owned(), pattern, archives }),
            Err(why) => {
                let diagnostic = Diagnostic::error(Code::ImportBadValue, why).at(entry.place);
                wrong.push(
                    diagnostic
                        .label("cannot be stored")
                        .hint("PRECISION:LENGTH, …, the finest first: 10s:6h,1m:30d"),
                );
            }
        }
    }
    (Some(schemas).filter(|_| !has_errors(&wrong)), wrong)
}

fn missing(section: &ini::Section<'_>, key: &str, example: &str, wrong: &mut Vec<Diagnostic>) {
    let message = format!("section `{}` has no `{key}`", section.name);
    wrong.push(
        Diagnostic::error(Code::MissingKey, message).at(section.place).hint(format!("{key} = …, {example}")),
    );
}

fn pattern(section: &ini::Section<'_>, wrong: &mut Vec<Diagnostic>) -> Option<String> {
    let Some(entry) = section.get("pattern") else {
        missing(section, "pattern", "an expression that is looked for in names", wrong);
        return None;
    };
    Some(expression::read(&entry.value, entry.place.start, false, wrong)?.text)
}

/// `10s:6h`, `60:1440`: seconds and points, or durations.
fn archive(text: &str) -> Result<Archive, String> {
    let (precision, length) = text.split_once(':').ok_or_else(|| format!("`{text}` has no `:`"))?;
    let every_s = match number(precision)? {
        (seconds, None) => seconds,
        (count, Some(unit)) => count.saturating_mul(unit),
    };
    if every_s == 0 {
        return Err(format!("`{text}` has a precision of 0"));
    }
    let points = match number(length)? {
        (points, None) => points,
        (count, Some(unit)) => count.saturating_mul(unit) / every_s,
    };
    match (u32::try_from(every_s), u32::try_from(points)) {
        (Ok(every_s), Ok(points)) if points > 0 => Ok(Archive { every_s, points }),
        (_, Ok(0)) => Err(format!("`{text}` keeps no point")),
        _ => Err(format!("`{text}` is too long to be stored")),
    }
}

/// A number, and the seconds of its unit.
fn number(text: &str) -> Result<(u64, Option<u64>), String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number = text[..digits].parse().map_err(|_| format!("`{text}` does not begin with a number"))?;
    let unit = match text[digits..].chars().next() {
        None => return Ok((number, None)),
        Some('s') => 1,
        Some('m') => 60,
        Some('h') => 3600,
        Some('d') => 86_400,
        Some('w') => 7 * 86_400,
        Some('y') => 365 * 86_400,
        Some(_) => return Err(format!("`{text}` has no unit out of s, m, h, d, w, y")),
    };
    Ok((number, Some(unit)))
}

/// The archives, if each fits the next one.
fn fitting(mut archives: Vec<Archive>) -> Result<Vec<Archive>, String> {
    archives.sort_by_key(|archive| archive.every_s);
    let retention = |archive: &Archive| u64::from(archive.every_s) * u64::from(archive.points);
    for pair in archives.windows(2) {
        let (fine, coarse) = (&pair[0], &pair[1]);
        let (one, other) = (fine.every_s, coarse.every_s);
        if one == other {
            return Err(format!("two archives have a point every {one} seconds"));
        }
        if other % one != 0 {
            return Err(format!("{other} seconds are no multiple of {one} seconds"));
        }
        if retention(coarse) <= retention(fine) {
            return Err(format!("points of {other} seconds are kept no longer than those of {one} seconds"));
        }
        if fine.points < other / one {
            return Err(format!("{} points of {one} seconds make no point of {other} seconds", fine.points));
        }
    }
    Ok(archives)
}

/// Reads storage-aggregation.conf.
pub fn storage_aggregation(text: &str) -> (Option<Vec<StorageAggregation>>, Vec<Diagnostic>) {
    let (mut rules, mut wrong) = (Vec::new(), Vec::new());
    for section in ini::sections(text, &mut wrong).into_iter().take(RULES_MAX) {
        section.warn_unknown(&["pattern", "xfilesfactor", "aggregationmethod"], &mut wrong);
        let Some(pattern) = pattern(&section, &mut wrong) else { continue };
        let x_files_factor = section.get("xfilesfactor").and_then(|entry| {
            let factor = entry.value.parse::<f64>().ok().filter(|factor| (0.0..=1.0).contains(factor));
            if factor.is_none() {
                let message = format!("`{}` is not a fraction from 0 to 1", entry.value);
                let diagnostic = Diagnostic::error(Code::ImportBadValue, message).at(entry.place);
                wrong.push(diagnostic.hint("0.5 requires half of the points"));
            }
            factor
        });
        let method = section.get("aggregationmethod").and_then(|entry| {
            let found = METHODS.iter().find(|(word, _)| *word == entry.value).map(|(_, method)| *method);
            if found.is_none() {
                let words = METHODS.map(|(word, _)| word);
                let hint = match nearest(&entry.value, words.into_iter()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("methods are {}", words.join(", ")),
                };
                let message = format!("there is no method `{}`", entry.value);
                wrong.push(Diagnostic::error(Code::ImportBadValue, message).at(entry.place).hint(hint));
            }
            found
        });
        rules.push(StorageAggregation { name: section.name.to_owned(), pattern, x_files_factor, method });
    }
    (Some(rules).filter(|_| !has_errors(&wrong)), wrong)
}

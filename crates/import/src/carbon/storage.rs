//! storage-schemas.conf and storage-aggregation.conf: the archives of new whisper files, and how their points are aggregated (spec
//! graphite §4.3).
//!
//! Sections are rules, in the order of the file; the first one whose pattern is found in a name applies. carbon skips a section that it
//! cannot use, and so do these readers, with a warning: only what ends carbon's process is an error.

use graphite::whisper::rules::{AggregationRule, Patterns, SchemaRule};
use graphite::whisper::{AggregationMethod, Layout, parse_retentions};

use super::RULES_MAX;
use super::ini::{self, Section};
use crate::report::{Reports, did_you_mean};
use config::diagnostic::{Code, Diagnostic, has_errors};

/// Reads storage-schemas.conf.
pub fn storage_schemas(text: &str) -> (Option<Vec<SchemaRule>>, Vec<Diagnostic>) {
    let mut wrong = Vec::new();
    let mut rules = Vec::new();
    for section in sections(text, &mut wrong) {
        section.warn_unknown(&["pattern", "retentions"], &mut wrong);
        let Some(pattern) = pattern(&section, &mut wrong) else { continue };
        let Some(entry) = section.get("retentions") else {
            skipped(&section, "it has no `retentions`", "add `retentions = STEP:LENGTH, …`", &mut wrong);
            continue;
        };
        let archives = match parse_retentions(&entry.value) {
            Ok(archives) => archives,
            Err(error) => {
                let message = format!("section `{}` has invalid retentions", section.name);
                let place = entry.place_in(error.at.clone());
                let report = wrong.error(Code::ImportBadValue, place, message);
                report
                    .label(error.fault.to_string())
                    .hint("write STEP:LENGTH for each archive, such as 10s:6h,1m:7d");
                continue;
            }
        };
        match Layout::new(&archives) {
            Ok(layout) => rules.push(SchemaRule { section: section.name.to_owned(), pattern, layout }),
            Err(error) => {
                let message = format!("section `{}` is skipped: {error}", section.name);
                let report = wrong.warning(Code::ImportSkipped, entry.place, message);
                report
                    .label("carbon skips the section")
                    .hint("correct the archives, or its names get those of a later section");
            }
        }
    }
    (Some(rules).filter(|_| !has_errors(&wrong)), wrong)
}

/// Reads storage-aggregation.conf.
pub fn storage_aggregations(text: &str) -> (Option<Vec<AggregationRule>>, Vec<Diagnostic>) {
    let mut wrong = Vec::new();
    let mut rules = Vec::new();
    for section in sections(text, &mut wrong) {
        section.warn_unknown(&["pattern", "xfilesfactor", "aggregationmethod"], &mut wrong);
        let Some(pattern) = pattern(&section, &mut wrong) else { continue };
        let (Ok(x_files_factor), Ok(method)) = (factor(&section, &mut wrong), method(&section, &mut wrong))
        else {
            continue;
        };
        rules.push(AggregationRule { section: section.name.to_owned(), pattern, x_files_factor, method });
    }
    (Some(rules).filter(|_| !has_errors(&wrong)), wrong)
}

fn sections<'a>(text: &'a str, wrong: &mut Vec<Diagnostic>) -> Vec<Section<'a>> {
    let mut sections = ini::sections(text, wrong);
    sections.truncate(RULES_MAX);
    sections
}

/// The pattern of a section, as Python's `re` reads it.
fn pattern(section: &Section<'_>, wrong: &mut Vec<Diagnostic>) -> Option<String> {
    let Some(entry) = section.get("pattern") else {
        skipped(section, "it has no `pattern`", "add `pattern = EXPRESSION`", wrong);
        return None;
    };
    if let Err(error) = Patterns::new(std::iter::once(&*entry.value)) {
        let message = format!("section `{}` has an invalid pattern", section.name);
        wrong.error(Code::BadPattern, entry.place, message).label(error.fault.to_string());
        return None;
    }
    Some(entry.value.clone())
}

fn skipped(section: &Section<'_>, why: &str, hint: &str, wrong: &mut Vec<Diagnostic>) {
    let message = format!("section `{}` is skipped: {why}", section.name);
    wrong.warning(Code::ImportSkipped, section.place, message).label("skipped by carbon").hint(hint);
}

/// None without the key; an error for a section that carbon skips.
fn factor(section: &Section<'_>, wrong: &mut Vec<Diagnostic>) -> Result<Option<f32>, ()> {
    let Some(entry) = section.get("xfilesfactor") else { return Ok(None) };
    match entry.value.trim().parse::<f32>() {
        Ok(factor) if (0.0..=1.0).contains(&factor) => Ok(Some(factor)),
        _ => {
            let message = format!(
                "section `{}` is skipped: its xFilesFactor is not a number from 0 to 1",
                section.name
            );
            let report = wrong.warning(Code::ImportSkipped, entry.place, message);
            report.label("carbon skips the section").hint("write a share of the points, such as 0.5");
            Err(())
        }
    }
}

fn method(section: &Section<'_>, wrong: &mut Vec<Diagnostic>) -> Result<Option<AggregationMethod>, ()> {
    let Some(entry) = section.get("aggregationmethod") else { return Ok(None) };
    if let Some(method) = AggregationMethod::of_name(&entry.value) {
        return Ok(Some(method));
    }
    let message = format!(
        "section `{}` is skipped: whisper knows no aggregationMethod `{}`",
        section.name, entry.value
    );
    let known = AggregationMethod::ALL.iter().map(|method| method.name());
    let report = wrong.warning(Code::ImportSkipped, entry.place, message);
    report.label("carbon skips the section").hint(did_you_mean(&entry.value, known, "methods"));
    Err(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_rules_in_the_order_of_the_file() {
        let text = "# a comment\n[carbon]\npattern = ^carbon\\.\nretentions = 60:90d\n\n[all]\nPATTERN = .*\nretentions = 10s:6h, 1min:7d,\n  10min:5y\n";
        let (rules, wrong) = storage_schemas(text);
        assert_eq!(wrong, []);
        let rules: Vec<String> = rules
            .expect("valid")
            .iter()
            .map(|rule| format!("{} {} {}", rule.section, rule.pattern, rule.layout))
            .collect();
        assert_eq!(rules, ["carbon ^carbon\\. 60:129600", "all .* 10:2160,60:10080,600:262800"]);
        let text =
            "[min]\npattern = \\.min$\nxFilesFactor = 0.1\naggregationMethod = min\n[rest]\npattern = .*\n";
        let (rules, wrong) = storage_aggregations(text);
        let rules = rules.expect("valid");
        assert_eq!((wrong.len(), rules.len()), (0, 2));
        assert_eq!((rules[0].method, rules[0].x_files_factor), (Some(AggregationMethod::Min), Some(0.1)));
        assert_eq!((rules[1].method, rules[1].x_files_factor), (None, None));
    }

    #[test]
    fn sections_that_carbon_skips_are_warnings_and_what_ends_carbon_is_an_error() {
        for (text, warnings, rules) in [
            ("[a]\nretentions = 60:1d\n", 1, 0),
            ("[a]\npattern = a\n", 1, 0),
            ("[a]\npattern = a\nretentions = 60:1d,90:7d\n[b]\npattern = b\nretentions = 60:1d\n", 1, 1),
            ("[a]\npattern = a\nretentions = 60:1d\npriority = 5\n", 1, 1),
        ] {
            let (found, wrong) = storage_schemas(text);
            assert_eq!((found.expect("no error").len(), wrong.len()), (rules, warnings), "{text}");
        }
        for text in
            ["[a]\npattern = a\nretentions = nonsense\n", "[a]\npattern = (\nretentions = 60:1d\n", "x\n"]
        {
            let (found, wrong) = storage_schemas(text);
            assert!(found.is_none() && has_errors(&wrong), "{text}");
        }
        for text in ["[a]\npattern = a\nxFilesFactor = 2\n", "[a]\npattern = a\naggregationMethod = summ\n"] {
            let (found, wrong) = storage_aggregations(text);
            assert_eq!((found.expect("no error").len(), wrong.len()), (0, 1), "{text}");
        }
    }
}

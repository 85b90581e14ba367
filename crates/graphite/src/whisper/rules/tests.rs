use super::*;
use crate::RegexFault;

fn patterns(list: &[&str]) -> Result<Patterns, PatternError> {
    Patterns::new(list.iter().copied())
}

#[test]
fn patterns_match_as_in_python() {
    let table = [
        ("^carbon\\.", "carbon.agents.a", true),
        ("^carbon\\.", "my.carbon.agents", false),
        (".*", "", true),
        ("", "anything", true),
        ("\\.count$", "a.count", true),
        ("\\.count\\Z", "a.counts", false),
        ("^[^.]+\\.web\\d{2,}", "x.web12", true),
        ("^x{,2}$", "xx", true),
        ("^x{,2}$", "xxx", false),
        ("a{b", "a{b", true),
        ("a{}", "a{}", true),
        ("a{,}", "aaa", true),
        ("[[]", "a[b", true),
        ("[]x]", "]", true),
        ("[a&&b]", "&", true),
        ("[a~~b]", "~", true),
        ("[+--]", ",", true),
        ("[--/]", ".", true),
        ("[a-]", "-", true),
        ("^[a-c-]$", "-", true),
        ("^[a-c-e]$", "d", false),
        ("\\<a\\>", "<a>", true),
        ("(?i)LOAD", "a.load", true),
        ("(?u)load", "a.load", true),
        ("(?#comment)b", "b", true),
        ("(?P<host>web)", "web", true),
        ("(?:a|b)c", "bc", true),
        ("caf\u{e9}", "x.caf\u{e9}", true),
        ("a\\;b", "a;b", true),
        ("^[\\0560]$", "0", true),
        ("^a\\056b$", "a.b", true),
        ("[\\w.]+;dc=(eu|us)", "cpu.load;dc=eu", true),
    ];
    for (pattern, name, want) in table {
        let found = patterns(&[pattern]).unwrap_or_else(|error| panic!("{pattern:?}: {error}"));
        assert_eq!(found.first_in(name.as_bytes()).is_some(), want, "{pattern:?} in {name:?}");
    }
}

#[test]
fn patterns_that_cannot_be_used_have_a_reason() {
    let table = [
        ("(a)\\1", "a reference to a group at column 4 is not supported"),
        ("a++", "a possessive repetition at column 2 is not supported"),
        ("a\\q", "an unknown escape at column 2"),
        ("[\u{e9}]", "a character of a class that is not ASCII at column 2 is not supported"),
        ("^+", "a repetition of nothing at column 2"),
        ("(", "the `(` has no `)` at column 1"),
        ("(((a{1000}){1000}){1000}){1000}", "it needs more than 16384 KiB once it is compiled"),
    ];
    for (pattern, want) in table {
        let error = patterns(&["a", pattern]).expect_err(pattern);
        assert_eq!(error.fault.to_string(), want, "{pattern:?}");
        assert_eq!(error.pattern.unwrap_or(1), 1, "{pattern:?}");
    }
    let error = patterns(&["a", "[b-a]"]).expect_err("a wrong range");
    assert!(matches!(error.fault, PatternFault::Regex(RegexFault::Syntax(_))), "{error}");
}

#[test]
fn patterns_have_limits() {
    assert!(patterns(&["a".repeat(PATTERN_BYTES_MAX).as_str()]).is_ok());
    let error = patterns(&["a".repeat(PATTERN_BYTES_MAX + 1).as_str()]).expect_err("too long");
    assert_eq!(
        error,
        PatternError { pattern: Some(0), fault: PatternFault::Regex(RegexFault::TooLong(PATTERN_BYTES_MAX)) }
    );
    let most = patterns(&["b.*c"; PATTERNS_MAX]).expect("as many as allowed");
    assert_eq!(most.first_in(b"abxc"), Some(0));
    let error = patterns(&["b"; PATTERNS_MAX + 1]).expect_err("too many");
    assert_eq!(error, PatternError { pattern: None, fault: PatternFault::TooMany });
}

#[test]
fn the_first_rule_that_matches_wins() {
    let layout = |step| Layout::new(&[ArchivePlan { step, points: 10 }]).expect("one archive");
    let rule = |section: &str, pattern: &str, step| SchemaRule {
        section: section.into(),
        pattern: pattern.into(),
        layout: layout(step),
    };
    let rules = vec![rule("carbon", "^carbon\\.", 60), rule("ten", "^web", 10), rule("web", "web", 5)];
    let schemas = Schemas::new(rules).expect("valid rules");
    for (name, step) in [("carbon.web", 60), ("web.a", 10), ("a.web", 5), ("other", FALLBACK.step)] {
        assert_eq!(schemas.layout_of(name.as_bytes()).archives()[0].step, step, "{name}");
    }
    assert_eq!(schemas.rule_of(b"a.web").map(|rule| &*rule.section), Some("web"));
    let rule = |pattern: &str, x_files_factor, method| AggregationRule {
        section: String::new(),
        pattern: pattern.into(),
        x_files_factor,
        method,
    };
    let min = Some(AggregationMethod::Min);
    let rules =
        vec![rule("\\.min$", Some(0.1), min), rule("\\.count$", Some(0.0), None), rule("\\.max$", None, min)];
    let aggregations = Aggregations::new(rules).expect("valid rules");
    let average = AggregationMethod::Average;
    let wants = [
        ("a.min", (AggregationMethod::Min, 0.1)),
        ("a.count", (average, 0.0)),
        ("a.max", (AggregationMethod::Min, 0.5)),
        ("a", (average, 0.5)),
    ];
    for (name, want) in wants {
        assert_eq!(aggregations.aggregation_of(name.as_bytes()), want, "{name}");
    }
    let header = header_of(&schemas, &aggregations, b"web.min").expect("checked rules");
    assert_eq!((header.method, header.archives()[0].step), (AggregationMethod::Min, 10));
    for factor in [-0.1, 1.1, f32::NAN] {
        let error = Aggregations::new(vec![rule("a", Some(factor), None)]).expect_err("no factor");
        assert_eq!(error, RuleError::XFilesFactor { rule: 0 });
    }
    assert_eq!(Schemas::new(Vec::new()).expect("no rules").layout_of(b"a").to_string(), "60:10080");
}

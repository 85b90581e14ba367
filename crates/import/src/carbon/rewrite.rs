//! rewrite-rules.conf: changes names by expressions, before and after aggregation.

use process::relay::{ExpressionPlan, RewritePlan, Statement};

use super::expression::Read;
use super::{RULES_MAX, expression, lines};
use crate::report::Reports;
use config::diagnostic::{Code, Diagnostic, Place, has_errors, nearest};

/// Content of a rewrite-rules.conf.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RewriteRules {
    /// `[pre]`: before aggregation.
    pub pre: Vec<CarbonRewrite>,
    /// `[post]`: after aggregation.
    pub post: Vec<CarbonRewrite>,
}

/// `EXPRESSION = REPLACEMENT`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarbonRewrite {
    /// Every match in the name is replaced; in the relay's syntax.
    pub pattern: String,
    /// The replacement in the relay's syntax: `\1`, or `\g{1}` before a digit.
    pub into: String,
}

/// Reads the file.
pub fn rewrite_rules(text: &str) -> (Option<RewriteRules>, Vec<Diagnostic>) {
    let (mut rules, mut wrong) = (RewriteRules::default(), Vec::new());
    let mut section: Option<&mut Vec<CarbonRewrite>> = None;
    for (line, start) in lines(text).take(RULES_MAX) {
        let place = Place::new(start, start + line.len());
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = match name.to_ascii_lowercase().as_str() {
                "pre" => Some(&mut rules.pre),
                "post" => Some(&mut rules.post),
                _ => {
                    wrong
                        .error(Code::ImportSyntax, place, format!("there is no section `{name}`"))
                        .label("carbon ignores its rules")
                        .hint(match nearest(name, ["pre", "post"].into_iter()) {
                            Some(near) => format!("did you mean [{near}]?"),
                            None => "sections are [pre] and [post]".to_owned(),
                        });
                    None
                }
            };
            continue;
        }
        let Some((pattern, replacement)) = line.split_once('=') else {
            let report = wrong.error(Code::ImportSyntax, place, "this line is not a rule");
            report.label("no `=`").hint("write EXPRESSION = REPLACEMENT");
            continue;
        };
        let into_start = place.end - replacement.trim_start().len();
        let read = expression::read(pattern.trim(), start, false, &mut wrong);
        let into = self::replacement(replacement.trim(), into_start, read.as_ref(), &mut wrong);
        match (&mut section, read, into) {
            (Some(section), Some(read), Some(into)) => {
                section.push(CarbonRewrite { pattern: read.text, into });
            }
            (None, ..) => {
                let report = wrong.error(Code::ImportSyntax, place, "this rule is in no section");
                report.label("carbon ignores it").hint("put [pre] or [post] above it");
            }
            _ => {}
        }
    }
    (Some(rules).filter(|_| !has_errors(&wrong)), wrong)
}

/// Translates a Python template to the relay's syntax.
fn replacement(text: &str, start: usize, read: Option<&Read>, wrong: &mut Vec<Diagnostic>) -> Option<String> {
    let mut out = String::new();
    let mut at = 0;
    while let Some(found) = text[at..].find('\\') {
        let escape = at + found;
        out.push_str(&text[at..escape]);
        let rest = &text[escape + 1..];
        let digits = rest.bytes().take(2).take_while(u8::is_ascii_digit).count();
        let (number, bytes) = if digits > 0 {
            (rest[..digits].parse().ok(), digits)
        } else if let Some((name, _)) = rest.strip_prefix("g<").and_then(|rest| rest.split_once('>')) {
            let named = || read?.names.iter().find(|(known, _)| known == name).map(|(_, number)| *number);
            (name.parse().ok().or_else(named), name.len() + 3)
        } else {
            (None, rest.chars().next().map_or(0, char::len_utf8))
        };
        let place = Place::new(start + escape, start + escape + 1 + bytes);
        let refused = match number {
            None => Some("this escape is not supported"),
            Some(0) => Some("group 0, the whole match, is not supported"),
            Some(number) if read.is_some_and(|read| number > read.groups) => {
                Some("the expression has no such group")
            }
            Some(number) => {
                out.push_str(&format!("\\g{{{number}}}"));
                None
            }
        };
        if let Some(message) = refused {
            let report = wrong.error(Code::ImportBadValue, place, message);
            report.label("no group of the expression").hint("groups are \\1, \\2, …, or \\g<1>");
            return None;
        }
        at = escape + 1 + bytes;
    }
    out.push_str(&text[at..]);
    Some(out)
}

/// The rules as statements.
pub fn rewrite_statements(rules: &[CarbonRewrite]) -> Vec<Statement> {
    let statement = |rule: &CarbonRewrite| {
        Statement::Rewrite(RewritePlan {
            expression: ExpressionPlan::from(&*rule.pattern),
            into: rule.into.clone(),
            every_occurrence: true,
        })
    };
    rules.iter().map(statement).collect()
}

//! blacklist.conf and whitelist.conf: one expression per line, searched in incoming names.

use process::relay::{ExpressionPlan, MatchPlan, Statement, To};

use super::{RULES_MAX, expression, lines};
use config::diagnostic::{Diagnostic, has_errors};

/// Reads one of them: its expressions in the relay's syntax.
pub fn list(text: &str) -> (Option<Vec<String>>, Vec<Diagnostic>) {
    let mut wrong = Vec::new();
    let read = |(line, start)| expression::read(line, start, false, &mut wrong).map(|read| read.text);
    let expressions = lines(text).take(RULES_MAX).filter_map(read).collect();
    (Some(expressions).filter(|_| !has_errors(&wrong)), wrong)
}

/// Drops names that the blacklist matches, then names that a non-empty whitelist does not match.
pub fn list_statements(blacklist: &[String], whitelist: &[String]) -> Vec<Statement> {
    let plans = |texts: &[String]| texts.iter().map(|text| ExpressionPlan::from(&**text)).collect();
    let mut statements = Vec::new();
    if !blacklist.is_empty() {
        let expressions = plans(blacklist);
        statements.push(MatchPlan { expressions, to: To::Blackhole, ..MatchPlan::default() });
    }
    if !whitelist.is_empty() {
        let unless = plans(whitelist);
        statements.push(MatchPlan { unless, to: To::Blackhole, ..MatchPlan::default() });
    }
    statements.into_iter().map(Statement::Match).collect()
}

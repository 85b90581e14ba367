//! `check` of an output of packets: one plan for each endpoint.

use process::sharding::HealthPlan;

use super::fields::Fields;
use super::value::Checked;
use crate::address::parse_host_port;
use crate::diagnostic::{Code, Diagnostic, Place};
use crate::options::Section;
use crate::plan::{CheckKind, CheckPlan, Destination, Endpoint};

/// Default of `every`, in milliseconds.
pub(super) const EVERY_MS: u64 = 10_000;

/// A check for each of `to`, in their order; empty without checks, or after a mistake.
pub(super) fn of_endpoints(
    name: &str,
    fields: &Fields,
    to: &[(Destination, Place)],
    wrong: &mut Vec<Diagnostic>,
) -> Vec<CheckPlan> {
    let whose = format!("the check of output `{name}`");
    let Some(fields) = fields.table("check", Section::Check, &whose, wrong) else { return Vec::new() };
    let Some(word) = fields.word("kind") else { return Vec::new() };
    let kind = match word {
        "management" => CheckKind::Management,
        "connect" => CheckKind::Connect,
        _ => CheckKind::Http(path(&fields, wrong)),
    };
    if word != "http" {
        fields.ignored("path", format!("`path` has no effect in a check of kind \"{word}\""), wrong);
    }
    let every_ms = fields.value("every").unwrap_or(EVERY_MS);
    let Some(health) = health(&fields, wrong) else { return Vec::new() };
    let Some(at) = places(&fields, &kind, to, wrong) else { return Vec::new() };
    at.into_iter().map(|at| CheckPlan { kind: kind.clone(), at, every_ms, health }).collect()
}

fn path(fields: &Fields, wrong: &mut Vec<Diagnostic>) -> String {
    let path: String = fields.value("path").unwrap_or_else(|| "/".into());
    let fits = path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic());
    if !fits {
        let label = "begins with `/` and has neither blanks nor characters beyond ASCII";
        fields.wrong("path", Code::BadValue, "`path` is not a valid request path", label, wrong);
    }
    path
}

fn health(fields: &Fields, wrong: &mut Vec<Diagnostic>) -> Option<HealthPlan> {
    let count = |key| fields.value(key).unwrap_or(1);
    let checks = count("checks");
    let plan = HealthPlan::new(checks, count("down_after"), count("up_after"));
    if plan.is_none() {
        let key = if count("down_after") > checks { "down_after" } else { "up_after" };
        let message = format!("`{key}` is more than the number of checks");
        fields.wrong(key, Code::OutOfRange, message, format!("`checks` is {checks}"), wrong);
    }
    plan
}

/// Where to ask about each endpoint.
fn places(
    fields: &Fields,
    kind: &CheckKind,
    to: &[(Destination, Place)],
    wrong: &mut Vec<Diagnostic>,
) -> Option<Vec<Endpoint>> {
    if fields.place_of("at").is_some() {
        return listed(fields, to.len(), wrong);
    }
    let port = fields.value("port").and_then(|port: u32| u16::try_from(port).ok());
    if port.is_none() && fields.place_of("port").is_some() {
        return None;
    }
    let mut at = Vec::with_capacity(to.len());
    for (to, _) in to {
        at.push(match (to, port) {
            (Destination::Udp(to) | Destination::Tcp(to), Some(port)) => {
                Endpoint { host: to.host.clone(), port }
            }
            (Destination::Tcp(to), None) if *kind == CheckKind::Connect => to.clone(),
            (to, _) => {
                let missing = if to.is_host() { "`port` or `at`" } else { "`at`" };
                let message = format!("the check has no address for {to}");
                let diagnostic = Diagnostic::error(Code::MissingKey, message).at(fields.place);
                wrong.push(diagnostic.label(format!("{missing} is missing")));
                return None;
            }
        });
    }
    Some(at)
}

fn listed(fields: &Fields, endpoints: usize, wrong: &mut Vec<Diagnostic>) -> Option<Vec<Endpoint>> {
    let Some(Checked::Texts(texts)) = fields.other("at") else { return None };
    fields.ignored("port", "`port` has no effect beside `at`", wrong);
    let before = wrong.len();
    let mut at = Vec::with_capacity(texts.len());
    for (text, place) in texts {
        match parse_host_port(text) {
            Ok(endpoint) => at.push(endpoint),
            Err(bad) => {
                let message = "`at` has an address that cannot be used";
                let diagnostic = Diagnostic::error(Code::BadValue, message).at(*place).label(bad.label);
                wrong.push(Diagnostic { hint: bad.hint, ..diagnostic });
            }
        }
    }
    if wrong.len() == before && at.len() != endpoints {
        let message = format!("`at` has {} entries for {endpoints} endpoints", at.len());
        fields.wrong("at", Code::BadValue, message, "one for each entry of `to`, in that order", wrong);
    }
    (wrong.len() == before).then_some(at)
}

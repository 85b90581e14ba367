//! `check` of an output of packets: one plan for each endpoint.

use process::sharding::HealthPlan;

use super::fields::Fields;
use crate::address::{host_port_text, parse_host_port};
use crate::diagnostic::{Code, Diagnostic, Place};
use crate::options::table::endpoints::CheckOptions;
use crate::plan::{CheckKind, CheckPlan, Destination, Endpoint, OutputPlan};

/// A check for each of `to`, in their order; empty without checks, or after a mistake.
pub(super) fn of_endpoints(
    fields: &Fields,
    to: &[(Destination, Place)],
    wrong: &mut Vec<Diagnostic>,
) -> Vec<CheckPlan> {
    let Some(fields) = fields.table("check") else { return Vec::new() };
    let Some(word) = fields.word("kind") else { return Vec::new() };
    let options: CheckOptions = fields.read();
    if word != "http" {
        fields.ignored("path", format!("`path` has no effect in a check of kind \"{word}\""), wrong);
    } else if !options.path.starts_with('/') || !options.path.bytes().all(|byte| byte.is_ascii_graphic()) {
        let label = "begins with `/` and has neither spaces nor characters beyond ASCII";
        fields.wrong("path", Code::BadValue, "`path` is not a valid request path", label, wrong);
    }
    let kind = match word {
        "management" => CheckKind::Management,
        "connect" => CheckKind::Connect,
        _ => CheckKind::Http(options.path.clone()),
    };
    let Some(health) = HealthPlan::new(options.checks, options.down_after, options.up_after) else {
        let key = if options.down_after > options.checks { "down_after" } else { "up_after" };
        let message = format!("`{key}` is more than the number of checks");
        fields.wrong(key, Code::OutOfRange, message, format!("`checks` is {}", options.checks), wrong);
        return Vec::new();
    };
    let Some(at) = places(fields, &kind, to, wrong) else { return Vec::new() };
    at.into_iter()
        .map(|at| CheckPlan { kind: kind.clone(), at, every_ms: options.every_ms, health })
        .collect()
}

/// The table of the health checks of a section's outputs; `None` without checks.
pub(super) fn options(outputs: &[OutputPlan]) -> Option<CheckOptions> {
    let checks = || outputs.iter().filter_map(|output| Some((output, output.check.as_ref()?)));
    let (_, CheckPlan { kind, at: Endpoint { port, .. }, every_ms, health }) = checks().next()?;
    let (kind, path) = match kind {
        CheckKind::Management => ("management", "/"),
        CheckKind::Connect => ("connect", "/"),
        CheckKind::Http(path) => ("http", path.as_str()),
    };
    let same = checks().all(|(output, check)| {
        let to = output.kind.destination();
        check.at.port == *port && to.is_some_and(|to| to.host().is_some_and(|to| to.host == check.at.host))
    });
    Some(CheckOptions {
        kind,
        port: same.then_some(*port),
        at: if same { Vec::new() } else { checks().map(|(_, check)| host_port_text(&check.at)).collect() },
        path: path.to_owned(),
        every_ms: *every_ms,
        checks: health.checks(),
        down_after: health.down_after(),
        up_after: health.up_after(),
    })
}

/// The address of each endpoint's check.
fn places(
    fields: &Fields,
    kind: &CheckKind,
    to: &[(Destination, Place)],
    wrong: &mut Vec<Diagnostic>,
) -> Option<Vec<Endpoint>> {
    if fields.place_of("at").is_some() {
        return listed(fields, to.len(), wrong);
    }
    let port = fields.value("port");
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
    fields.other("at")?;
    fields.ignored("port", "`port` has no effect beside `at`", wrong);
    let before = wrong.len();
    let mut at = Vec::with_capacity(endpoints);
    for (text, place) in fields.texts("at") {
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

/// Whether two checks differ only in their address, so that one section can contain both.
pub(super) fn alike(one: Option<&CheckPlan>, other: Option<&CheckPlan>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => CheckPlan { at: other.at.clone(), ..one.clone() } == *other,
        _ => false,
    }
}

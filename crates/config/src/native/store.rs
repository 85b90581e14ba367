//! The options of an output that stores points, beyond those that a row checks by itself: expressions and archives of its rules, and its
//! queue.

use deliver::plan::{QueueKind, QueueLimits};
use graphite::whisper::rules::Patterns;
use graphite::whisper::{Layout, parse_retentions};

use super::fields::Fields;
use super::value::Checked;
use super::wiring::Named;
use crate::diagnostic::{Code, Diagnostic};
use crate::options::Family;
use crate::options::table::whisper::STORE;
use crate::plan::{Feed, OutputKind, OutputPlan, Plan, SYNC_WINDOW_MS, WhisperPlan};
use crate::text::duration;

/// Reads the options of a store.
pub(super) fn fill(plan: &mut WhisperPlan, fields: &Fields, wrong: &mut Vec<Diagnostic>) {
    fields.fill(plan, &STORE);
    for key in ["max_bytes", "online_migration"] {
        let is_on = if key == "max_bytes" { plan.files_bytes_max > 0 } else { plan.online_migration };
        if plan.lock && is_on {
            let message = format!("{} has `{key}` and `lock`", fields.whose);
            let label = "it replaces or removes files that the other programs of `lock` may have open";
            fields.wrong(key, Code::BadValue, message, label, wrong);
        }
    }
    for table in tables(fields, "schemas") {
        check_pattern(table, wrong);
        check_retentions(table, wrong);
    }
    tables(fields, "aggregations").iter().for_each(|table| check_pattern(table, wrong));
    let faults = [plan.schemas(Vec::new()).err(), plan.aggregations(Vec::new()).err()];
    // Rules that are right one by one can be too many or too large together.
    if wrong.is_empty()
        && let Some(fault) = faults.into_iter().flatten().next()
    {
        wrong.push(
            Diagnostic::error(Code::BadPattern, fault).at(fields.place).label("the rules of this output"),
        );
    }
}

fn tables<'a>(fields: &'a Fields, key: &str) -> &'a [Fields] {
    match fields.other(key) {
        Some(Checked::Tables(tables)) => tables,
        _ => &[],
    }
}

fn check_pattern(table: &Fields, wrong: &mut Vec<Diagnostic>) {
    let Some(pattern) = table.value::<String>("pattern") else { return };
    if let Err(error) = Patterns::new(std::iter::once(&*pattern)) {
        let message = format!("{} has an invalid pattern", table.whose);
        table.wrong("pattern", Code::BadPattern, message, error.fault.to_string(), wrong);
    }
}

fn check_retentions(table: &Fields, wrong: &mut Vec<Diagnostic>) {
    let Some(text) = table.value::<String>("retentions") else { return };
    let fault = match parse_retentions(&text) {
        Ok(archives) => Layout::new(&archives).err().map(|error| error.to_string()),
        Err(error) => Some(error.to_string()),
    };
    if let Some(fault) = fault {
        let message = format!("{} has invalid retentions", table.whose);
        let mistake = Diagnostic::error(Code::BadValue, message).at(table.at("retentions")).label(fault);
        wrong
            .push(mistake.hint("write step:length for each archive, finest first, such as \"10s:6h,1m:7d\""));
    }
}

/// Warns of aggregations that flush more often than any file of the store has points.
pub(super) fn check_flushes(named: &[Named], plan: &Plan, wrong: &mut Vec<Diagnostic>) {
    for output in &plan.outputs {
        let OutputKind::Whisper(store) = &output.kind else { continue };
        let Some(step_s) = finest_step_s(store) else { continue };
        for (name, window_ms) in windows(plan, &output.from) {
            if window_ms >= u64::from(step_s) * 1000 {
                continue;
            }
            let section = named.iter().find(|one| one.family == Family::Outputs && one.name == output.name);
            let place = section.and_then(|one| Some(one.from().iter().find(|(from, _)| from == name)?.1));
            let every = duration(window_ms);
            let message = format!(
                "`{name}` flushes every {every}, and files of output `{}` have a point each {}",
                output.name,
                duration(u64::from(step_s) * 1000)
            );
            let hint = format!("begin the archives with that step: retentions = \"{every}:6h,1m:7d\"");
            let warning = Diagnostic::warning(Code::FinerThanFiles, message);
            wrong.push(
                Diagnostic { place, ..warning }.label("only the last flush of a step is kept").hint(hint),
            );
        }
    }
}

/// The finest step of all files that the store creates, in seconds. None when its rules are in a file.
fn finest_step_s(store: &WhisperPlan) -> Option<u32> {
    if store.schemas_file.is_some() {
        return None;
    }
    let own = store.schemas.iter().map(|schema| &*schema.retentions);
    let default = store.schemas.is_empty().then_some(WhisperPlan::RETENTIONS);
    let first = |text: &str| parse_retentions(text).ok()?.first().map(|archive| archive.step);
    own.chain(default).filter_map(first).min()
}

/// The aggregations among these nodes, and their windows.
fn windows<'a>(plan: &'a Plan, from: &'a [Feed]) -> impl Iterator<Item = (&'a str, u64)> {
    from.iter().filter_map(|feed| {
        let Feed::Transform(id) = feed else { return None };
        let transform = plan.transforms.get(usize::from(id.0))?;
        Some((&*transform.name, transform.kind.as_aggregate()?.plan.window_ms))
    })
}

/// The queue of a store is on disk, because it keeps the points that are not in their files yet.
pub(super) fn keep_on_disk(output: &mut OutputPlan, fields: &Fields, wrong: &mut Vec<Diagnostic>) {
    let queue = fields.table("queue");
    if let Some(queue) = queue.filter(|queue| queue.word("kind") == Some("memory")) {
        let message = format!("{} needs a queue on disk", fields.whose);
        let label = "points would be lost with the process before they are in their files";
        let mistake = Diagnostic::error(Code::BadValue, message).at(queue.at("kind")).label(label);
        wrong.push(mistake.hint("remove the line: \"disk\" is the default here"));
    }
    if output.queue_kind == QueueKind::Memory {
        output.queue_kind = QueueKind::Disk { sync_window_ms: SYNC_WINDOW_MS };
        if queue.is_none_or(|queue| queue.place_of("max_bytes").is_none()) {
            output.queue.bytes_max = QueueLimits::default_of(output.queue_kind).bytes_max;
        }
    }
}

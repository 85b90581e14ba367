//! Reload: all files are read and checked; then only the changed parts are replaced.
//!
//! Ids of sources and outputs keep their meaning: a new plan is merged with the current one by name. Removed nodes stay
//! as rows without listeners or edges, so that their accounts stay balanced.

pub mod change;
pub mod opening;
pub mod reread;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use config::plan::{Against, Listen, ManagementPlan, OutputPlan, Plan};
use model::limits::OUTPUTS_MAX;
use model::{OutputId, SECOND_NS, SourceId};
use pipeline::{Accounts, merge_plans, predecessor};
use tokio::sync::watch;

use crate::carbon_c_relay::log_targets::{NOT_AN_ERROR, OURS};
use crate::daemon::outlet::{Outlet, is_retired};
use crate::daemon::queues::syncs;
use crate::daemon::reload::reread::{Reread, Rereading};
use crate::daemon::running::Running;
use crate::daemon::shared::reloads::Reloads;
use crate::daemon::shared::{SOURCES_MAX, Shared, Wiring};
use crate::daemon::start::data_dir::take_data_dir;
use crate::daemon::start::kept;
use crate::daemon::{listeners, queues, supervisor};
use crate::kernel::Drops;
use crate::outputs;
use client::top::figure::time_of_day;
use sys::clock::Clock;
use sys::data_dir::DataDir;
use tls::Certificates;

const SHARD_ENDED: &str = "the shard has ended, and the daemon ends";

/// How long a removed output may send its queue: ten minutes. Otherwise an endpoint that is gone would keep memory, and
/// an alert, as long as the daemon runs.
const RETIRED_DRAIN_NS: u64 = 600 * SECOND_NS;

/// The same for people.
const RETIRED_DRAIN: &str = "ten minutes";

/// Why a reload failed, completely or in part.
#[derive(Debug)]
enum Failure {
    /// The previous plan is in force, unchanged.
    Unchanged(String),
    /// The new plan is in force, but these parts of it do not work.
    InPart(Vec<String>),
}

impl Failure {
    /// For the log.
    fn message(&self) -> String {
        match self {
            Failure::Unchanged(mistakes) => format!("reload refused, nothing changed:\n{mistakes}"),
            Failure::InPart(parts) => format!(
                "reload failed in part: the new configuration is in force, and these parts of it do not work:\n{}\n\
                 remove the cause, change the configuration of these parts and send SIGHUP again, or restart",
                parts.join("\n")
            ),
        }
    }
}

/// Begins a reload; [`end`] continues it when the file has been read.
pub(super) fn begin(running: &Running, reread: Option<&Reread>, rereading: &mut Rereading) {
    reopen_files(&running.shared);
    let Some(reread) = reread else {
        tracing::info!("SIGHUP: there is no config file to reload");
        return;
    };
    supervisor::reloading();
    if rereading.begin(reread) {
        running.shared.reloads.begin();
    }
}

/// Ends a reload with the plan or errors that were read, and logs the result: true when a new plan is in force. A
/// rejected reload changes nothing.
pub(crate) async fn end(
    running: &mut Running,
    read: Result<Plan, String>,
    stop_asked: watch::Receiver<bool>,
) -> bool {
    let mut config = None;
    let result = match read {
        Ok(plan) => {
            let applied = apply(running, &plan, stop_asked).await;
            config = Some(config::print_shown(&plan));
            applied
        }
        Err(mistakes) => Err(Failure::Unchanged(mistakes)),
    };
    counter(&running.shared.reloads, &result).fetch_add(1, Relaxed);
    let done = !matches!(result, Err(Failure::Unchanged(_)));
    let refused = match &result {
        Err(Failure::Unchanged(mistakes)) => {
            let at = time_of_day(Clock::now().wall_ns / 1_000_000);
            Some(format!("{at}: {}", in_short(mistakes)))
        }
        Ok(()) | Err(Failure::InPart(_)) => None,
    };
    running.shared.reloads.note(refused, Clock::now());
    config.filter(|_| done).into_iter().for_each(|config| running.shared.reloads.in_force(config));
    let (word, message) = match &result {
        Ok(()) => ("done", String::new()),
        Err(Failure::InPart(parts)) => ("partial", parts.join("\n")),
        Err(Failure::Unchanged(mistakes)) => ("refused", mistakes.clone()),
    };
    running.shared.reloads.end(word, message);
    match result {
        Ok(()) => tracing::info!(target: OURS, "reloaded: the new configuration is in force"),
        Err(failure) => tracing::error!("{}", failure.message()),
    }
    supervisor::ready(&running.shared, None);
    done
}

/// The first error of a rejected reload: its code and place, or its first line if it is not about a file.
fn in_short(mistakes: &str) -> String {
    let mut lines = mistakes.lines().skip_while(|line| !line.starts_with("error["));
    let code = lines.next().and_then(|line| line.strip_prefix("error[")?.split(']').next());
    let place = lines.next().and_then(|line| line.trim_start().strip_prefix("--> "));
    let without_column = |place: &str| match place.rsplit_once(':') {
        Some((line, _)) if line.contains(':') => line.to_owned(),
        _ => place.to_owned(),
    };
    match (code, place) {
        (Some(code), Some(place)) => format!("{code} at {}", without_column(place)),
        (Some(code), None) => code.to_owned(),
        (None, _) => mistakes.lines().next().unwrap_or_default().to_owned(),
    }
}

#[test]
fn a_rejected_reload_is_logged_in_one_line() {
    for (mistakes, want) in [
        ("error[C004]: bad\n  --> relay.toml:13:9\n   |", "C004 at relay.toml:13"),
        ("warning[C017]: x\n --> a:1:1\nerror[C023]: no source\n  --> relay.toml\n", "C023 at relay.toml"),
        ("error[C001]: x", "C001"),
        ("cannot read a.toml\nmore", "cannot read a.toml"),
        ("", ""),
    ] {
        assert_eq!(in_short(mistakes), want, "{mistakes}");
    }
}

/// The counter for this result.
fn counter<'a>(reloads: &'a Reloads, result: &Result<(), Failure>) -> &'a AtomicU64 {
    match result {
        Ok(()) => &reloads.done,
        Err(Failure::InPart(_)) => &reloads.partial,
        Err(Failure::Unchanged(_)) => &reloads.refused,
    }
}

/// Another program rotates the files that we never rotate, and sends SIGHUP: they are reopened even if the config file
/// has errors or did not change.
fn reopen_files(shared: &Shared) {
    let wiring = shared.wiring.load();
    let outlets = wiring.outlets.iter().zip(&wiring.plan.outputs);
    outlets.filter(|(_, plan)| plan.kind.moved_by_others()).for_each(|(outlet, _)| outlet.reopen());
}

async fn apply(running: &mut Running, new: &Plan, stop_asked: watch::Receiver<bool>) -> Result<(), Failure> {
    let (wiring, opened) = prepared(running, new, stop_asked).await.map_err(Failure::Unchanged)?;
    let failed = put_in_force(running, wiring, opened).await;
    if failed.is_empty() { Ok(()) } else { Err(Failure::InPart(failed)) }
}

/// The new wiring and its new listeners: all steps that may be rejected.
async fn prepared(
    running: &mut Running,
    new: &Plan,
    stop_asked: watch::Receiver<bool>,
) -> Result<(Wiring, Vec<listeners::Opened>), String> {
    let shared = Arc::clone(&running.shared);
    let before = shared.wiring.load_full();
    let plan = merge_plans(&before.plan, new);
    fits(plan.sources.len(), plan.outputs.len())?;
    let broken = broken_promises(&plan);
    if !broken.is_empty() {
        return Err(broken.join("\n"));
    }
    for note in unchanged_until_restart(&before.plan, &plan).into_iter().chain(kept_queues(&before.plan, new))
    {
        tracing::warn!("{note} takes effect at the next start only");
    }
    let to_open = ToOpen {
        accounts: before.accounts.carried_to(&plan),
        before: Arc::clone(&before),
        plan,
        places: running.listeners.places(),
        data_dir: running.data_dir.clone(),
        http: shared.http,
        readers: shared.readers.number(),
    };
    let ready = running.opening.in_time(move || to_open.open(), stop_asked).await??;
    let had_data_dir = running.data_dir.is_some();
    let Ready { mut plan, certificates, listeners: opened, data_dir, accounts, outlets } = ready;
    running.data_dir = data_dir;
    keep_what_stays(&before.plan, &mut plan, had_data_dir);
    let listening = running.listeners.listening(&plan, &opened);
    let (plan, generation) = (Arc::new(plan), before.generation + 1);
    Ok((Wiring { certificates, plan, accounts, outlets, generation, listening }, opened))
}

/// Files and sockets that a reload has to open.
struct ToOpen {
    before: Arc<Wiring>,
    plan: Plan,
    accounts: Accounts,
    places: Vec<(String, Listen)>,
    data_dir: Option<Arc<DataDir>>,
    http: Option<SocketAddr>,
    readers: usize,
}

/// The same, open.
struct Ready {
    plan: Plan,
    certificates: Certificates,
    listeners: Vec<listeners::Opened>,
    data_dir: Option<Arc<DataDir>>,
    accounts: Accounts,
    outlets: Vec<Arc<Outlet>>,
}

impl ToOpen {
    /// May wait for a disk.
    fn open(self) -> Result<Ready, String> {
        let ToOpen { before, plan, accounts, places, mut data_dir, http, readers } = self;
        let certificates =
            Certificates::load(&plan, Some(&before.certificates)).map_err(|wrong| tls::joined(&wrong))?;
        let (listeners, failures) = listeners::open(&plan, &places, None, readers);
        if !failures.is_empty() {
            return Err(failures.join("\n"));
        }
        if data_dir.is_none() {
            let taken = take_data_dir(&plan, http, None).map_err(|error| format!("{error:#}"))?;
            data_dir = taken.map(Arc::new);
        }
        let outlets =
            outlets(&before, &plan, &accounts, data_dir.as_deref()).map_err(|error| format!("{error:#}"))?;
        Ok(Ready { plan, certificates, listeners, data_dir, accounts, outlets })
    }
}

/// Sources whose `ack_when` is impossible with options that only change at the next start: each of their connections
/// would fail forever.
fn broken_promises(plan: &Plan) -> Vec<String> {
    let promising = plan.sources.iter().enumerate().filter(|(_, source)| !source.listen.is_empty());
    let broken = promising.filter_map(|(at, source)| {
        let when = source.ack_when?;
        let why = match plan.against(SourceId(at as u16), when)? {
            Against::InMemory(output) => {
                format!("the queue of output `{}` stays in memory until the next start", output.name)
            }
            Against::Aggregated(transform) => format!("`{}` is an aggregation", transform.name),
            Against::Datagrams(output) => format!("output `{}` sends datagrams", output.name),
        };
        Some(format!(
            "source `{}` cannot acknowledge \"{}\": {why}\n  hint: restart the daemon, or hot restart it (`--hot-restart`)",
            source.name,
            when.word()
        ))
    });
    broken.collect()
}

/// Rows of removed sources and outputs are kept, so that their accounts stay balanced.
fn fits(sources: usize, outputs: usize) -> Result<(), String> {
    if sources <= SOURCES_MAX && outputs <= OUTPUTS_MAX {
        return Ok(());
    }
    Err(format!("more than {SOURCES_MAX} sources or {OUTPUTS_MAX} outputs since the start; restart instead"))
}

/// From here on, failures are only reported: the result names the parts that do not work.
async fn put_in_force(running: &mut Running, wiring: Wiring, opened: Vec<listeners::Opened>) -> Vec<String> {
    let shared = Arc::clone(&running.shared);
    let before = shared.wiring.load_full().outlets.len();
    let mut failed = Vec::new();
    let (plan, wiring) = (Arc::clone(&wiring.plan), Arc::new(wiring));
    // Before new outputs open anything.
    #[cfg(unix)]
    crate::daemon::start::open_files::make_room(
        &plan,
        wiring.outlets.iter().filter(|outlet| !outlet.has_ended()).count(),
    );
    for (outlet, output) in wiring.outlets.iter().zip(&plan.outputs) {
        outlet.set_plan(output);
    }
    shared.directory.own.set(running.listeners.really_at(&opened));
    shared.wiring.store(Arc::clone(&wiring));
    for (at, outlet) in wiring.outlets.iter().enumerate().skip(before) {
        let id = OutputId(at as u16);
        let earlier = predecessor(&plan, at).map(|earlier| &wiring.outlets[earlier.index()]);
        if let Some(earlier) = earlier.filter(|earlier| earlier.shares_queue_with(outlet)) {
            outlet.disk().into_iter().for_each(|disk| disk.set_retired(false));
            outputs::spawn_after(&mut running.outputs, &shared, id, earlier);
            continue;
        }
        let spawned = syncs::spawn(&mut running.syncs, outlet)
            .and_then(|()| outputs::spawn(&mut running.outputs, &shared, id));
        failed.extend(spawned.err().map(|error| format!("output `{}` cannot send: {error}", outlet.name)));
    }
    let kept = keep_state(&shared, running.data_dir.as_deref(), &plan);
    failed.extend(kept.err().map(|error| format!("the end of each window cannot be recorded: {error}")));
    match rewire_worker(&shared, &wiring, &opened, &mut failed).await {
        Some(makers) => {
            let gone = running.listeners.update(&plan, &makers, &shared);
            let added = running.listeners.add(opened, &plan, &makers, &shared);
            failed
                .extend(added.err().map(|error| format!("not all of the new listeners are served: {error}")));
            shared.directory.own.set(running.listeners.really_at(&[]));
            let closed = shared.shard.call(move |worker| worker.close_sockets(&gone));
            failed.extend(closed.await.err().map(|_gone| SHARD_ENDED.to_owned()));
        }
        None => failed.push(SHARD_ENDED.to_owned()),
    }
    outputs::check::spawn(&mut running.checks, &shared);
    // A removed output gets no more blocks: it sends its queue, and ends.
    let deadline_ns = Clock::mono_ns().saturating_add(RETIRED_DRAIN_NS);
    let retired = wiring.outlets.iter().zip(&plan.outputs).filter(|(_, output)| is_retired(output));
    for (outlet, _) in retired.filter(|(outlet, _)| !outlet.is_stopping()) {
        tell_retired(outlet);
        outlet.retire(deadline_ns);
    }
    failed
}

/// One log line for an output that was removed, or has another endpoint.
fn tell_retired(outlet: &Outlet) {
    let name = &outlet.name;
    match outlet.left_behind(RETIRED_DRAIN) {
        Some(left) => {
            tracing::warn!(target: NOT_AN_ERROR, "output `{name}` was removed or changed by the reload: {left}");
        }
        None => {
            tracing::info!(target: OURS, "output `{name}` was removed or changed by the reload: its queue is empty");
        }
    }
}

/// Existing outlets, and one for each new output: with a new queue, or with the queue on disk of an earlier output with
/// its name. A folder is never open twice.
fn outlets(
    before: &Wiring,
    plan: &Plan,
    accounts: &Accounts,
    data_dir: Option<&DataDir>,
) -> anyhow::Result<Vec<Arc<Outlet>>> {
    let mut outlets = before.outlets.clone();
    for (at, output) in plan.outputs.iter().enumerate().skip(outlets.len()) {
        outlets.push(match predecessor(plan, at) {
            Some(earlier) => queues::successor(output, &outlets[earlier.index()], data_dir)?,
            None => {
                let account = accounts.output(OutputId(at as u16));
                queues::open_at_once(output, account, data_dir)?
            }
        });
    }
    Ok(outlets)
}

/// Stores checkpoints and labels where the next start reads them.
fn keep_state(shared: &Shared, data_dir: Option<&DataDir>, plan: &Plan) -> Result<(), String> {
    shared.handover.in_force(plan);
    match data_dir {
        Some(data_dir) => {
            shared.checkpoints.keep_in(data_dir.state_dir());
            shared.handover.keep_in(data_dir.path());
            shared.handover.keep(plan).map_err(|error| error.to_string())
        }
        // As at a start: a directory that another daemon owns is not used.
        None if kept::is_wanted(plan) => Ok(()),
        None => {
            shared.handover.keep_in(&plan.data_dir);
            Ok(())
        }
    }
}

/// Passes the new plan to the shard. `None` when the shard, and with it the daemon, has ended.
async fn rewire_worker(
    shared: &Shared,
    wiring: &Wiring,
    opened: &[listeners::Opened],
    failed: &mut Vec<String>,
) -> Option<Vec<pipeline::IntakeMaker>> {
    let (for_worker, outlets) = (Arc::clone(&wiring.plan), wiring.outlets.clone());
    let their_accounts = wiring.accounts.clone();
    let makers = shared.shard.call(move |worker| {
        worker.pause_reading();
        worker.reconfigure(&for_worker, &their_accounts, outlets);
        let makers = listeners::makers(&for_worker, &worker.turn.shard, &their_accounts);
        worker.follow(&makers);
        makers
    });
    let makers = makers.await.ok()?;
    let (plan, accounts, kernel) = (&wiring.plan, &wiring.accounts, &shared.kernel);
    match listeners::datagram_sockets(plan, opened, &makers, accounts, kernel, &|_| Drops::default()) {
        Ok(sockets) => {
            let added = shared.shard.call(move |worker| worker.add_sockets(sockets));
            added.await.ok()?;
        }
        Err(error) => failed.push(format!("the new datagram sockets are not read: {error}")),
    }
    Some(makers)
}

/// Keeps options in `plan` that only change at the next start, so that the next reload compares with the running state.
fn keep_what_stays(old: &Plan, plan: &mut Plan, has_data_dir: bool) {
    plan.http = old.http;
    plan.readers = old.readers;
    plan.carbonlink = old.carbonlink;
    // Other options of a port have changed.
    let now = |old: &ManagementPlan| {
        plan.management.iter().find(|new| new.listen == old.listen).unwrap_or(old).clone()
    };
    plan.management = old.management.iter().map(now).collect();
    for (before, after) in old.sources.iter().zip(&mut plan.sources) {
        if after.listen.iter().any(|place| before.listen.contains(place)) {
            after.receive_buffer_bytes = before.receive_buffer_bytes;
        }
    }
    if has_data_dir {
        plan.data_dir.clone_from(&old.data_dir);
    }
}

fn unchanged_until_restart(old: &Plan, new: &Plan) -> Vec<String> {
    let mut notes = Vec::new();
    if old.http != new.http {
        notes.push("the new address of `http`".to_owned());
    }
    if old.carbonlink != new.carbonlink {
        notes.push("the new `carbonlink`".to_owned());
    }
    if old.readers != new.readers {
        notes.push("the new `readers`".to_owned());
    }
    // Clients of a management port get the other changes with their next connection.
    let addresses = |plan: &Plan| plan.management.iter().map(|port| port.listen).collect::<Vec<_>>();
    if addresses(old) != addresses(new) {
        notes.push("the new address of `management`".to_owned());
    }
    // An open socket keeps its buffer; ids are equal in both plans.
    for (before, after) in old.sources.iter().zip(&new.sources) {
        let stays = after.listen.iter().any(|place| before.listen.contains(place));
        if stays && before.receive_buffer_bytes != after.receive_buffer_bytes {
            notes.push(format!("the new `receive_buffer` of source `{}`", after.name));
        }
    }
    notes
}

/// Unchanged options of queues and checkpoints; `new` is the plan as read.
fn kept_queues(old: &Plan, new: &Plan) -> Vec<String> {
    let mut notes = Vec::new();
    if old.data_dir != new.data_dir {
        let kept = [
            (kept::is_needed(old), "the new `data_dir`, for queues on disk,"),
            (kept::is_wanted(old), "the new `data_dir`, for checkpoints,"),
        ];
        notes.extend(kept.iter().filter(|(is_kept, _)| *is_kept).map(|(_, note)| (*note).to_owned()));
    }
    for output in &new.outputs {
        let is_known = |known: &&OutputPlan| known.name == output.name && known.kind == output.kind;
        let moves = |known: &OutputPlan| known.queue_kind.is_disk() != output.queue_kind.is_disk();
        if old.outputs.iter().find(is_known).is_some_and(moves) {
            notes.push(format!("the new `queue.kind` of output `{}`", output.name));
        }
    }
    notes
}

#[test]
fn options_that_a_reload_cannot_change_are_logged() {
    let old = config::defaults(std::path::Path::new("."));
    assert_eq!(unchanged_until_restart(&old, &old), [""; 0]);
    let mut new = old.clone();
    new.sources[0].receive_buffer_bytes += 1;
    assert_eq!(unchanged_until_restart(&old, &new), ["the new `receive_buffer` of source `statsd`"]);
    new.sources[0].listen.clear();
    assert_eq!(unchanged_until_restart(&old, &new), [""; 0], "no socket stays");
    new.http = None;
    new.readers = Some(3);
    new.carbonlink = Some(config::plan::CarbonLinkPlan::default());
    let notes = ["the new address of `http`", "the new `carbonlink`", "the new `readers`"];
    assert_eq!(unchanged_until_restart(&old, &new), notes);
}

/// A plan without a queue on disk.
#[cfg(test)]
fn in_memory() -> Plan {
    let mut plan = config::defaults(std::path::Path::new("."));
    plan.outputs.retain(|output| !output.queue_kind.is_disk());
    plan
}

#[test]
fn options_that_a_reload_cannot_change_are_logged_until_they_agree() {
    let old = in_memory();
    let mut new = old.clone();
    (new.http, new.data_dir) = (None, "elsewhere".into());
    new.sources[0].receive_buffer_bytes += 1;
    let notes = |in_force: &Plan, new: &Plan| {
        let notes = unchanged_until_restart(in_force, &merge_plans(in_force, new));
        notes.into_iter().chain(kept_queues(in_force, new)).collect::<Vec<_>>()
    };
    let mut in_force = old.clone();
    for (file, want) in [(&new, 3), (&new, 3), (&old, 0), (&old, 0), (&new, 3)] {
        assert_eq!(notes(&in_force, file).len(), want);
        let mut plan = merge_plans(&in_force, file);
        keep_what_stays(&in_force, &mut plan, true);
        in_force = plan;
    }
    let mut plan = new.clone();
    keep_what_stays(&old, &mut plan, false);
    assert_eq!(plan.data_dir, new.data_dir, "nothing is in the one before");
}

#[test]
fn a_queue_whose_kind_changes_at_the_next_start_is_logged() {
    let mut old = in_memory();
    let mut new = old.clone();
    new.data_dir = "elsewhere".into();
    assert_eq!(kept_queues(&old, &new), ["the new `data_dir`, for checkpoints,"]);
    for plan in [&mut old, &mut new] {
        let config::plan::TransformKind::Aggregate(aggregate) = &mut plan.transforms[0].kind else {
            panic!("an aggregation")
        };
        aggregate.checkpoint_ms = 0;
    }
    assert_eq!(kept_queues(&old, &new), [""; 0], "nothing is kept there");
    let name = new.outputs[0].name.clone();
    new.outputs[0].queue_kind = deliver::plan::QueueKind::Disk { sync_window_ms: 10 };
    let kind = format!("the new `queue.kind` of output `{name}`");
    assert_eq!(kept_queues(&old, &new), [&*kind]);
    assert_eq!(kept_queues(&new, &old), ["the new `data_dir`, for queues on disk,", &*kind]);
}

#[test]
fn a_failed_reload_reports_whether_anything_changed() {
    let refused = Failure::Unchanged("`from` is missing".to_owned());
    assert_eq!(refused.message(), "reload refused, nothing changed:\n`from` is missing");
    let in_part =
        Failure::InPart(vec!["the new datagram sockets are not read: too many".to_owned()]).message();
    assert!(in_part.contains("is in force") && in_part.contains("are not read: too many"), "{in_part}");
    assert!(!in_part.contains("nothing changed"), "{in_part}");
}

#[test]
fn each_result_of_a_reload_has_its_own_counter() {
    let reloads = Reloads::default();
    let part = || vec!["output `copy` cannot send: no thread".to_owned()];
    for result in [Ok(()), Err(Failure::InPart(part())), Err(Failure::Unchanged(String::new()))] {
        counter(&reloads, &result).fetch_add(1, Relaxed);
    }
    let Reloads { done, partial, refused, .. } = reloads;
    assert_eq!([done, partial, refused].map(AtomicU64::into_inner), [1, 1, 1]);
}

#[test]
fn ack_when_that_a_queue_in_memory_cannot_meet_is_rejected() {
    let plan = |more: &str, queue: &str| {
        let text = format!(
            "[sources.s]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:2003\"]\n{more}\
             [outputs.o]\ntype = \"tcp\"\nfrom = [\"s\"]\nto = [\"tcp://127.0.0.1:2004\"]\n{queue}"
        );
        let source = config::diagnostic::Source { name: "t.toml", text: &text };
        let (plan, diagnostics) = config::check(source, config::Format::Toml);
        plan.unwrap_or_else(|| panic!("{diagnostics:?}"))
    };
    let (safe, on_disk) = ("ack_when = \"safe\"\n", "queue = { kind = \"disk\" }\n");
    let new = plan(safe, on_disk);
    assert_eq!(broken_promises(&merge_plans(&new, &new)), [""; 0]);
    let broken = broken_promises(&merge_plans(&plan("", ""), &new));
    assert!(broken.len() == 1 && broken[0].contains("output `o` stays in memory"), "{broken:?}");
    // The source and its listener are removed.
    let without = plan("", "");
    let mut renamed = without.clone();
    renamed.sources[0].name = "other".to_owned();
    let mut promised = new;
    promised.outputs[0].queue_kind = deliver::plan::QueueKind::Memory;
    assert_eq!(broken_promises(&merge_plans(&promised, &renamed)), [""; 0]);
}

#[test]
fn a_reload_accepts_as_many_outputs_as_a_start() {
    for (sources, outputs, fit) in [
        (1, 5_000, true),
        (SOURCES_MAX, OUTPUTS_MAX, true),
        (SOURCES_MAX + 1, 1, false),
        (1, OUTPUTS_MAX + 1, false),
    ] {
        assert_eq!(fits(sources, outputs).is_ok(), fit, "{sources} {outputs}");
    }
    assert_eq!(OutputId((OUTPUTS_MAX - 1) as u16).index(), OUTPUTS_MAX - 1, "each has an id of its own");
}

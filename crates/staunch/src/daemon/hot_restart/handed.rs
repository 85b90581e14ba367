//! The state received from another process, and its use here.
//!
//! Accounts and aggregation states are restored before that process may end, since they may be rejected. Queues are
//! opened afterwards, because a queue on disk has one owner at a time; [`Handed::prepare_queues`] checks before whether
//! they can be opened.

use std::collections::BTreeSet;
use std::sync::Arc;
#[cfg(target_os = "linux")]
use std::sync::atomic::Ordering::Relaxed;

use anyhow::Context;
use deliver::disk_queue::Unsettled;
use deliver::queue::QueuedBlock;
use model::{AckMark, ConnectionId, Figure, Now, OutputId, Unacked};
use pipeline::checkpoints::Note;
use pipeline::{Accounts, Inherited, Shard, Unfinished};
use process::aggregate::checkpoint::{LastFlush, Restored};
use tokio::task::JoinSet;

use super::message::Owner;
use crate::carbon_c_relay::statistics::Reports;
use crate::daemon::checkpoint;
use crate::daemon::checkpoint::handover::Handover;
use crate::daemon::outlet::Outlet;
use crate::daemon::queues::{self, syncs};
use crate::daemon::shared::{Shared, Wiring};
use crate::kernel::Drops;
use crate::sources::listener::StreamSource;
use crate::sources::parked::Parked;
use sys::OwnedFd;
use sys::data_dir::DataDir;

/// Advice when the state of another process cannot be read.
const STOP_INSTEAD: &str = "the running process continues; stop it, then start without `--hot-restart`";

/// Everything that was received.
#[derive(Debug)]
pub struct Handed {
    /// Accounts.
    pub accounts: Vec<(Owner, String, Vec<Figure>)>,
    /// The counted kernel drops, by number of the socket.
    pub drops: Vec<(usize, Drops)>,
    /// The state of each aggregation, by name.
    pub states: Vec<(String, Vec<u8>)>,
    /// The blocks of its queues in memory.
    pub left: Vec<(OutputId, QueuedBlock)>,
    /// The reading positions of its queues on disk, by output.
    pub unsettled: Vec<(String, Unsettled)>,
    /// Connections that continue here.
    pub connections: Vec<HandedConnection>,
    /// Connections whose clients wait for acknowledgements of lines that another process accepted.
    pub waiting: Vec<Waiting>,
    /// The start of the pause (monotonic), if the other process has sent it.
    pub paused_ns: Option<u64>,
    /// No other process owns the queues on disk: they may be opened before the other process may end.
    pub owns_queues: bool,
}

/// A queue on disk that can be opened as soon as the other process has released it.
pub struct PreparedQueue<'a> {
    outlet: &'a Arc<Outlet>,
    queue: queues::Prepared<'a>,
    sync: syncs::Prepared,
}

/// A connection that another process had accepted.
#[derive(Debug)]
pub struct HandedConnection {
    /// Number of the listening socket.
    pub socket: usize,
    /// Its own socket.
    pub fd: OwnedFd,
    /// Its incomplete data.
    pub unfinished: Unfinished,
    /// Outputs for which its lines wait.
    pub outputs: Vec<OutputId>,
}

/// A continued connection whose client waits.
#[derive(Debug)]
pub struct Waiting {
    mark: AckMark,
    outputs: Vec<OutputId>,
}

impl Handed {
    /// From a process that was not asked, or has died: it owns nothing any more.
    pub fn nothing() -> Handed {
        let (accounts, drops, states, left, unsettled, connections, waiting) = Default::default();
        let paused_ns = None;
        Handed {
            accounts,
            drops,
            states,
            left,
            unsettled,
            connections,
            waiting,
            paused_ns,
            owns_queues: true,
        }
    }

    /// The counted kernel drops of a socket, by its number.
    pub fn drops_of(&self, number: usize) -> Drops {
        let counted = self.drops.iter().find(|(of, _)| *of == number);
        counted.map(|(_, drops)| *drops).unwrap_or_default()
    }

    /// The connections of socket `number`, for the source that has it now; those above its `max_connections` are
    /// rejected.
    #[cfg(target_os = "linux")]
    pub fn adopt(&mut self, number: usize, source: &StreamSource, shared: &Shared) -> Vec<Parked> {
        let (mut adopted, mut refused) = (Vec::new(), 0);
        for HandedConnection { fd, unfinished, outputs, .. } in
            self.connections.extract_if(.., |connection| connection.socket == number)
        {
            // Their peers do not matter: limits per peer apply to new connections only.
            if adopted.len() >= source.plan.connections_max {
                refused += 1;
                continue;
            }
            match Parked::adopted(fd, source.clone(), shared, &unfinished) {
                Ok(parked) => {
                    let waits = unfinished.acks.filter(|acks| acks.acked < acks.lines);
                    if let (Some(acks), Some(connection)) = (waits, parked.id()) {
                        let pipeline::AckProgress { when, lines, rejected, .. } = acks;
                        let mark = AckMark { connection, up_to: lines, rejected, when };
                        self.waiting.push(Waiting { mark, outputs });
                    }
                    adopted.push(parked);
                }
                Err(error) => {
                    source.account.connections_broken.fetch_add(1, Relaxed);
                    tracing::warn!("cannot continue a connection of the previous process: {error}");
                }
            }
        }
        source.refuse_handed_over(refused);
        adopted
    }

    /// Not available on this system.
    #[cfg(not(target_os = "linux"))]
    pub fn adopt(&mut self, _number: usize, _source: &StreamSource, _shared: &Shared) -> Vec<Parked> {
        Vec::new()
    }

    /// Continues the accounts with names in both processes.
    pub fn take_up_accounts(&self, accounts: &Accounts) {
        for (owner, name, figures) in &self.accounts {
            match owner {
                Owner::Source => {
                    let known = accounts.sources().find(|(_, known, _)| known == name);
                    known.into_iter().for_each(|(_, _, account)| account.go_on_with(figures));
                }
                // These belong to the shard, and to the sources of reports.
                Owner::Relay | Owner::Reports => {}
                Owner::Edge => {
                    let known = name.split_once('\n').and_then(|(to, from)| accounts.edge(to, from));
                    known.into_iter().for_each(|account| {
                        figures.iter().for_each(|figure| {
                            let _known = account.go_on_with(figure);
                        });
                    });
                }
                Owner::Output => {
                    let known = accounts.outputs().find(|(_, known, _)| known == name);
                    known.into_iter().for_each(|(_, _, account)| account.go_on_with(figures));
                }
            }
        }
    }

    /// Last reports of the sources of relays' statistics, by name.
    pub fn reports(&self) -> Reports {
        let reports = self.accounts.iter().filter(|(owner, ..)| *owner == Owner::Reports);
        let reports = reports.map(|(_, name, figures)| (name.clone(), figures.clone()));
        Reports::of(reports, self.accounts.is_empty())
    }

    /// Continues the aggregations and relays.
    ///
    /// # Errors
    /// When one of them cannot be read: the other process still has it.
    pub fn take_up_states(&self, shard: &mut Shard, handover: &Handover, now: Now) -> anyhow::Result<()> {
        for (_, name, counted) in self.accounts.iter().filter(|(owner, ..)| *owner == Owner::Relay) {
            shard.go_on_with_relay(name, counted);
        }
        for (name, bytes) in &self.states {
            if let Some(restored) = shard.import_aggregation_rules(name, bytes) {
                let restored = restored.map_err(|why| {
                    anyhow::anyhow!(
                        "hot restart failed: cannot restore the aggregation rules of `{name}`: {}; {STOP_INSTEAD}",
                        why.why()
                    )
                })?;
                if restored.values_left > 0 {
                    tracing::warn!(
                        "aggregation_rules of `{name}`: {} values are of statements that are not there any more, or past a \
                         bound, and are left out",
                        restored.values_left
                    );
                }
                continue;
            }
            if let Some(restored) = shard.import_streams(name, bytes) {
                let is_whole = restored.as_ref().is_ok_and(|restored| !restored.is_damaged);
                let why = restored.err().map_or("its data is damaged", |why| why.why());
                anyhow::ensure!(
                    is_whole,
                    "hot restart failed: cannot restore the streams of `{name}`: {why}; {STOP_INSTEAD}"
                );
                continue;
            }
            // Only existing ones were requested.
            let Some(restored) = shard.import(name, bytes, LastFlush::default(), now) else { continue };
            if let Ok(Restored { last_flush_s: Some(label_s), .. }) = &restored {
                handover.note(name, Note { label_s: *label_s, number: None });
            }
            let left_out = restored.as_ref().map_or(0, |restored| restored.dropped_series_max);
            if left_out > 0 {
                tracing::warn!(
                    "aggregation `{name}`: {left_out} series are past `max_series` now and left out"
                );
            }
            let whole = restored.as_ref().is_ok_and(|restored| restored.damaged == 0 && !restored.cut_short);
            let why = restored.err().map_or("its data is damaged", |why| why.why());
            anyhow::ensure!(
                whole,
                "hot restart failed: cannot restore aggregation `{name}`: {why}; {STOP_INSTEAD}"
            );
        }
        Ok(())
    }

    /// True when the state of the aggregation `name` was received.
    pub fn has_state(&self, name: &str) -> bool {
        self.states.iter().any(|(known, _)| known == name)
    }

    /// Tests everything that could prevent opening queues on disk, before another process releases them: afterwards
    /// only [`Self::go_on`] is called. Returns one for each output with such a queue.
    ///
    /// # Errors
    /// When one cannot be opened: that process then continues with it.
    pub fn prepare_queues<'a>(
        &self,
        wiring: &'a Wiring,
        data_dir: Option<&'a DataDir>,
        syncs: &mut JoinSet<()>,
    ) -> anyhow::Result<Vec<PreparedQueue<'a>>> {
        let data_dir = data_dir.filter(|_| !self.owns_queues);
        let mut prepared = Vec::new();
        for (output, outlet) in wiring.plan.outputs.iter().zip(&wiring.outlets) {
            let Some(queue) = queues::prepare(output, data_dir)? else { continue };
            let sync = syncs::prepare(syncs, outlet).context("cannot start a thread for a queue on disk")?;
            prepared.push(PreparedQueue { outlet, queue, sync });
        }
        Ok(prepared)
    }

    /// Continues the queues: those on disk, which no other process uses any more, and blocks from memory.
    pub fn go_on(mut self, shared: &Shared, data_dir: Option<&DataDir>, queues: Vec<PreparedQueue<'_>>) {
        let wiring = shared.wiring.load_full();
        // Before queues are opened, so that their losses are noticed.
        let inherited = |output: &OutputId| Inherited::new(*output, &wiring.outlets[output.index()].account);
        let waiting: Vec<(AckMark, Vec<Inherited>)> = self
            .waiting
            .iter()
            .map(|Waiting { mark, outputs }| (*mark, outputs.iter().map(inherited).collect()))
            .collect();
        let mut without_disk = BTreeSet::new();
        for PreparedQueue { outlet, queue, sync } in queues {
            let found = self.unsettled.iter().position(|(output, _)| *output == outlet.name);
            let unsettled = found.map(|at| self.unsettled.swap_remove(at).1);
            match queue.open(outlet, unsettled) {
                Ok(()) => sync.begin(),
                Err(error) => {
                    // The other process has ended: this one can only continue without the queue.
                    let name = &outlet.name;
                    tracing::error!(
                        "{error:#}; output `{name}` has its queue in memory until the next start, and what waits on disk \
                         stays there"
                    );
                    without_disk.insert(name.clone());
                }
            }
        }
        for (output, left) in self.left {
            let outlet = &wiring.outlets[output.index()];
            outlet.go_on_with(left);
            outlet.wake();
        }
        let lost = |Waiting { mark, outputs }: &Waiting| {
            let without =
                |output: &OutputId| without_disk.contains(&wiring.plan.outputs[output.index()].name);
            outputs.iter().any(without).then_some(mark.connection)
        };
        let lost: Vec<ConnectionId> = self.waiting.iter().filter_map(lost).collect();
        for (mark, inherited) in waiting {
            if lost.contains(&mark.connection) {
                shared.acks.fail(mark.connection, Unacked::Stopped);
            } else {
                shared.acks.go_on(mark, &inherited, &wiring.outlets);
            }
        }
        checkpoint::remove_unwanted(&wiring.plan, &shared.checkpoints);
        if let Some(data_dir) = data_dir {
            queues::log_orphans(&wiring.plan, data_dir);
            if let Err(error) = data_dir.sign(shared.http) {
                tracing::warn!("cannot write the owner of the data directory: {error}");
            }
        }
    }
}

//! Clusters: each line goes to the endpoint that owns its key (spec statsd §13, §14 R6).
//!
//! Path of a line: `Shard::push` -> **[`ClusterState::lines`]** -> `OutputEncoder::line` of its owner. Not here: the
//! sharding of keys (`process::sharding`), and the detection of failed endpoints (`staunch`).
//! Invariant: a line without a live endpoint is counted at the output that would own it if all were live.

use config::plan::ClusterPlan;
use model::{CopyOutcome, Dropped, Now, OutputId, Span};
use process::sharding::{Cluster, KeyReader};

use crate::Routed;
use crate::encode::OutputEncoder;
use crate::packet_lines::lines;

/// One cluster's state.
#[derive(Debug)]
pub(crate) struct ClusterState {
    plan: ClusterPlan,
    live: Cluster,
    /// As if all endpoints were live.
    whole: Cluster,
    keys: KeyReader,
}

impl ClusterState {
    /// A cluster whose endpoints are all live.
    pub(crate) fn new(plan: &ClusterPlan) -> ClusterState {
        let whole = Cluster::new(&plan.sharding, &plan.labels).expect("config has checked the cluster");
        let keys = KeyReader::new(plan.key);
        ClusterState { plan: plan.clone(), live: whole.clone(), whole, keys }
    }

    /// The same under a new plan: failed endpoints stay failed.
    pub(crate) fn replanned(before: Option<ClusterState>, plan: &ClusterPlan) -> ClusterState {
        let Some(before) = before else { return ClusterState::new(plan) };
        if before.plan == *plan {
            return before;
        }
        let mut state = ClusterState::new(plan);
        for (at, label) in before.plan.labels.iter().enumerate() {
            let place = plan.labels.iter().position(|known| known == label);
            if let Some(place) = place.filter(|_| !before.live.is_live(at)) {
                state.live.set_live(place, false);
            }
        }
        state
    }

    pub(crate) fn name(&self) -> &str {
        &self.plan.name
    }

    /// Removes an endpoint from the sharding, or adds it again. False when the output does not belong to this cluster,
    /// or nothing changes.
    pub(crate) fn set_live(&mut self, output: OutputId, live: bool) -> bool {
        let place = self.plan.members.iter().position(|member| *member == output);
        place.is_some_and(|place| self.live.set_live(place, live))
    }

    /// The labels of the live endpoints in the sharding, in its own order.
    pub(crate) fn live_labels(&self) -> impl Iterator<Item = String> + '_ {
        self.live.listed().map(|place| self.plan.labels[place].clone())
    }

    /// Routes the lines of some packets; empty ones are ignored.
    pub(crate) fn lines(
        &mut self,
        bytes: &[u8],
        packets: &[Span],
        outputs: &mut [OutputEncoder],
        now: Now,
        out: &mut Routed,
    ) {
        for packet in packets {
            let packet = packet.of(bytes);
            for line in lines(packet) {
                self.line(line.of(packet), outputs, now, out);
            }
        }
    }

    fn line(&mut self, line: &[u8], outputs: &mut [OutputEncoder], now: Now, out: &mut Routed) {
        let key = self.keys.key(line);
        if let Some(owner) = self.live.owner(key) {
            return outputs[self.plan.members[owner].index()].line(line, now, out);
        }
        if let Some(owner) = self.whole.owner(key) {
            let lost = CopyOutcome::Dropped(Dropped::NoEndpoint);
            outputs[self.plan.members[owner].index()].account().pass(lost, 1, line.len() as u64);
        }
    }
}

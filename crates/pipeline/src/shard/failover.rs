//! Whose endpoints are down, who stands in for them, and who takes over what waits for them.
//!
//! Not here: finding that out (`staunch`, `sim`), and what moves then (`moves`).

use deliver::failover::FailoverDelay;
use model::OutputId;
use process::relay::{Distribution, Successors};

use super::{Shard, SourceState};
use crate::encode::OutputEncoder;
use crate::shard::aggregation::Aggregation;

impl Shard {
    /// Takes the endpoint of a cluster's output out of the sharding, or back in. False when nothing changed.
    pub fn set_member_live(&mut self, output: OutputId, live: bool) -> bool {
        let was_live = !self.down.contains(&output);
        if live {
            self.down.retain(|known| *known != output);
        } else if was_live {
            self.down.push(output);
        }
        self.relays.iter_mut().for_each(|relay| relay.set_live(output, live));
        let changed = self.clusters.iter_mut().any(|cluster| cluster.set_live(output, live));
        changed || (was_live != live && !self.relays.is_empty())
    }

    /// How long the output's endpoint may fail until others stand in for it; none when nobody does.
    pub fn failover_delay(&self, output: OutputId) -> Option<FailoverDelay> {
        if !self.outputs.get(output.index()).is_some_and(OutputEncoder::has_connections) {
            // A datagram or a file tells too little of who is there.
            return None;
        }
        let clusters = self.relays.iter().flat_map(|relay| relay.router().distributions_with_others(output));
        let delay = clusters.map(|distribution| match distribution {
            Distribution::Failover => FailoverDelay::None,
            Distribution::Copies | Distribution::Sharded { .. } | Distribution::RoundRobin => {
                FailoverDelay::Grace
            }
        });
        delay.min()
    }

    /// True when others take everything new that would go to the output, since its endpoint is down.
    pub fn has_failover(&self, output: OutputId) -> bool {
        let mut relays = self.relays.of_output(output).peekable();
        self.down.contains(&output)
            && relays.peek().is_some()
            && relays.all(|relay| relay.router().has_failover(output))
            && !self.is_fed_without_relay(output)
    }

    /// Whether a source or an aggregation feeds the output: what comes from there has nobody else to go to.
    fn is_fed_without_relay(&self, output: OutputId) -> bool {
        let from_source = |source: &SourceState| source.routes.points.contains(&output);
        let from_aggregation = |state: &Aggregation| state.to.outputs.contains(&output.index());
        self.sources.iter().any(from_source) || self.aggregations.iter().any(from_aggregation)
    }

    /// Who takes over what waits for an output that is down; none when that waits until it is back. Clients that are told of
    /// deliveries were told of this output's.
    pub(crate) fn successors(&self, output: OutputId) -> Option<Successors<'_>> {
        let answers =
            |source: &SourceState| source.routes.reached.contains(&output) && source.tells_of_delivery;
        let mut relays = self.relays.of_output(output);
        let (relay, another) = (relays.next()?, relays.next());
        // What is queued does not say who sent it there.
        let from_others = another.is_some() || self.is_fed_without_relay(output);
        if from_others || self.sources.iter().any(answers) {
            return None;
        }
        relay.router().successors(output)
    }

    /// Outputs whose endpoints are down and that others stand in for.
    pub fn down(&self) -> &[OutputId] {
        &self.down
    }

    /// Labels of the live members of a cluster, by its place in the plan, in the order that decides between equal
    /// places on its ring; none when there is no such cluster.
    pub fn live_labels(&self, cluster: usize) -> Vec<String> {
        self.clusters.get(cluster).map(|cluster| cluster.live_labels().collect()).unwrap_or_default()
    }
}

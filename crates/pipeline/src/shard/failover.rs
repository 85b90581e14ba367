//! Which endpoints are down, which outputs they fail over to, and which outputs receive the blocks in their queues.
//!
//! Not here: the detection (`staunch`, `sim`), and the moves (`moves`).

use deliver::failover::FailoverDelay;
use model::OutputId;
use process::relay::{Distribution, Successors};

use super::{Shard, SourceState};
use crate::encode::OutputEncoder;

impl Shard {
    /// Removes the endpoint of a cluster's output from the sharding, or adds it again. False when nothing changed.
    pub fn set_member_live(&mut self, output: OutputId, live: bool) -> bool {
        let was_live = !self.down.contains(&output);
        if live {
            self.down.retain(|known| *known != output);
        } else if was_live {
            self.down.push(output);
        }
        self.transforms.relays.iter_mut().for_each(|relay| relay.set_live(output, live));
        let changed = self.clusters.iter_mut().any(|cluster| cluster.set_live(output, live));
        changed || (was_live != live && !self.transforms.relays.is_empty())
    }

    /// How long the output's endpoint may fail before others receive its lines; none when it has no failover.
    pub fn failover_delay(&self, output: OutputId) -> Option<FailoverDelay> {
        if !self.outputs.get(output.index()).is_some_and(OutputEncoder::has_connections) {
            // A datagram or a file gives too little information about the other side.
            return None;
        }
        let clusters =
            self.transforms.relays.iter().flat_map(|relay| relay.router().distributions_with_others(output));
        let delay = clusters.map(|distribution| match distribution {
            Distribution::Failover => FailoverDelay::None,
            Distribution::Copies | Distribution::Sharded { .. } | Distribution::RoundRobin => {
                FailoverDelay::Grace
            }
        });
        delay.min()
    }

    /// True when others receive all new lines of the output, since its endpoint is down.
    pub fn has_failover(&self, output: OutputId) -> bool {
        let mut relays = self.transforms.relays.of_output(output).peekable();
        self.down.contains(&output)
            && relays.peek().is_some()
            && relays.all(|relay| relay.router().has_failover(output))
            && !self.is_fed_without_relay(output)
    }

    /// Whether a source or a transform that is no relay feeds the output: their lines have no other output.
    fn is_fed_without_relay(&self, output: OutputId) -> bool {
        let from_source = |source: &SourceState| source.routes.points.contains(&output);
        self.sources.iter().any(from_source) || self.transforms.feed_without_relay(output)
    }

    /// The outputs that receive the blocks of an output that is down; none when these wait until it is back. Clients
    /// that get acknowledgements of deliveries have been promised delivery by this output.
    pub(crate) fn successors(&self, output: OutputId) -> Option<Successors<'_>> {
        let answers = |source: &SourceState| source.routes.reached.contains(&output) && source.acks_delivery;
        let mut relays = self.transforms.relays.of_output(output);
        let (relay, another) = (relays.next()?, relays.next());
        // Queued blocks do not record who sent them.
        let from_others = another.is_some() || self.is_fed_without_relay(output);
        if from_others || self.sources.iter().any(answers) {
            return None;
        }
        relay.router().successors(output)
    }

    /// Outputs whose endpoints are down and that have failed over.
    pub fn down(&self) -> &[OutputId] {
        &self.down
    }

    /// Labels of the live members of a cluster, by its index in the plan, in the order that decides between equal
    /// positions on its ring; none when there is no such cluster.
    pub fn live_labels(&self, cluster: usize) -> Vec<String> {
        self.clusters.get(cluster).map(|cluster| cluster.live_labels().collect()).unwrap_or_default()
    }
}

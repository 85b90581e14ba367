//! Failover of queued lines: which member gets the lines that are queued for a failed one.
//!
//! A queued line has only its name; the statement that sent it there is unknown. So a line moves only when the name
//! is enough: from an output that is named by one cluster, whose members fail over to each other and shard by the
//! name.
//! Not here: new lines (`decision`), queues, and the detection that a member is down (`staunch` calls `set_live`).
//! Invariants: a line moves to the member that new lines of its name go to while its own is down. When there is
//! none it stays queued. So when a name has several owners, no copy is lost by moving it to a member that has one
//! already.

use std::sync::Arc;

use model::OutputId;

use crate::sharding::Cluster;

use super::router::{Action, ClusterState, Router};
use super::{Distribution, MemberNode, To};

/// Chooses the receivers of lines queued for one output.
#[derive(Debug)]
pub struct Successors<'a> {
    cluster: &'a ClusterState,
    /// The output's index among the members.
    member: usize,
}

impl ClusterState {
    /// True when its members fail over to each other.
    fn fails_over(&self) -> bool {
        let fails_over = match self.distribution {
            Distribution::Failover | Distribution::RoundRobin => true,
            Distribution::Sharded { fail_over, .. } => fail_over,
            Distribution::Copies => false,
        };
        fails_over && self.nodes.len() > 1
    }

    fn index_of(&self, output: OutputId) -> Option<usize> {
        self.nodes.iter().position(|known| *known == MemberNode::Output(output))
    }
}

impl Router {
    /// The distribution of all clusters that name the output and whose members fail over to each other.
    pub fn distributions_with_others(&self, output: OutputId) -> impl Iterator<Item = &Distribution> {
        let clusters = self.clusters.iter().filter(move |cluster| cluster.index_of(output).is_some());
        clusters.filter(|cluster| cluster.fails_over()).map(|cluster| &cluster.distribution)
    }

    /// True when a cluster names the output.
    pub fn names(&self, output: OutputId) -> bool {
        self.clusters.iter().any(|cluster| cluster.index_of(output).is_some())
    }

    /// True when new lines go to other members while the output is down: each cluster that names it has a member up
    /// for each copy of a line.
    pub fn has_failover(&self, output: OutputId) -> bool {
        let mut clusters =
            self.clusters.iter().filter(|cluster| cluster.index_of(output).is_some()).peekable();
        let others = |cluster: &Arc<ClusterState>| {
            let up = |(other, up): &(&MemberNode, &bool)| **up && **other != MemberNode::Output(output);
            let copies = match cluster.distribution {
                Distribution::Sharded { replication, .. } => usize::from(replication),
                Distribution::Copies | Distribution::Failover | Distribution::RoundRobin => 1,
            };
            cluster.fails_over() && cluster.nodes.iter().zip(&cluster.up).filter(up).count() >= copies
        };
        clusters.peek().is_some() && clusters.all(others)
    }

    /// The receivers of lines queued for a failed output; None when those lines stay queued until it is back.
    pub fn successors(&self, output: OutputId) -> Option<Successors<'_>> {
        let mut clusters = self
            .clusters
            .iter()
            .enumerate()
            .filter_map(|(at, known)| Some((at, known, known.index_of(output)?)));
        let (at, cluster, member) = clusters.next()?;
        if clusters.next().is_some() || !cluster.fails_over() || self.is_sharded_by_other_keys(at) {
            return None;
        }
        let others_are_up = cluster.up.iter().enumerate().any(|(other, up)| *up && other != member);
        (!cluster.up[member] && others_are_up).then_some(Successors { cluster, member })
    }

    /// True when a statement sends to the cluster with another sharding key than the name.
    fn is_sharded_by_other_keys(&self, cluster: usize) -> bool {
        let sends_by_key = self.statements.rules.iter().any(|rule| match &rule.action {
            Action::Send { key: Some(_), to: To::Clusters(clusters), .. } => {
                clusters.iter().any(|known| known.index() == cluster)
            }
            _ => false,
        });
        sends_by_key && self.clusters[cluster].distribution.follows_route_using()
    }
}

impl Successors<'_> {
    /// The outputs that get a queued line of this name: one, or several when it is unknown whose copy it is. Empty
    /// when the line stays queued. `turn` is the line's number, for `lb`.
    pub fn of(&self, name: &[u8], turn: u64) -> Vec<OutputId> {
        let Successors { cluster, .. } = self;
        let members = match (&cluster.distribution, &cluster.sharding) {
            (Distribution::Sharded { .. }, Some(sharding)) => self.queued_receivers(sharding, name),
            (Distribution::RoundRobin, _) => vec![cluster.at_turn(turn)],
            _ => vec![cluster.first_up()],
        };
        members.into_iter().filter_map(|member| cluster.nodes[member].output()).collect()
    }

    fn queued_receivers(&self, sharding: &Cluster, name: &[u8]) -> Vec<usize> {
        let Successors { cluster, member } = *self;
        let mut owners = Vec::new();
        sharding.owners(name, &mut owners);
        let mut takes = Vec::with_capacity(owners.len());
        cluster.owners_or_failovers(&owners, name, |taker, owner| takes.push((taker, owner)));
        // A line of an owner moves to that owner's failover member. A line that is here because its owner was down
        // moves back to the owner if it is up, otherwise to the current failover member. The line does not say
        // which owner that was. An owner that was never down has its copy; each of the others gets one, because a
        // duplicate is better than a loss.
        let is_owner = takes.iter().any(|(_, owner)| *owner == member);
        let unknown = !is_owner && !takes.iter().any(|(_, owner)| cluster.been_down[*owner]);
        takes.retain(|(_, owner)| match is_owner {
            true => *owner == member,
            false => unknown || cluster.been_down[*owner],
        });
        // Without a failover member a line stays queued, as new ones do.
        if takes.iter().all(|(taker, _)| cluster.up[*taker]) {
            takes.into_iter().map(|(taker, _)| taker).collect()
        } else {
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MatchPlan, Statement};
    use super::super::{Member, RelayCluster, RelayPlan};
    use super::*;
    use crate::relay::{Act, ClusterId, Entry, Line};
    use crate::sharding::Sharding;

    fn cluster(distribution: Distribution, outputs: &[u16]) -> RelayCluster {
        let member = |at: &u16| Member {
            node: MemberNode::Output(OutputId(*at)),
            host: format!("h{at}"),
            port: 1,
            instance: None,
        };
        RelayCluster { name: "c".into(), members: outputs.iter().map(member).collect(), distribution }
    }

    fn sharded(sharding: Sharding, replication: u8, fail_over: bool) -> Distribution {
        Distribution::Sharded { sharding, replication, fail_over }
    }

    fn router(clusters: Vec<RelayCluster>, route_using: Option<&str>) -> Router {
        let all = (0..clusters.len()).map(|at| ClusterId(at as u16)).collect();
        let send = MatchPlan {
            to: To::Clusters(all),
            route_using: route_using.map(str::to_owned),
            ..MatchPlan::default()
        };
        let statements = vec![Statement::Match(send)];
        Router::new(&RelayPlan { clusters, statements, ..RelayPlan::default() }).expect("a valid plan")
    }

    fn sent(router: &Router, name: &str) -> Vec<OutputId> {
        let line = Line { name: name.as_bytes(), rest: b" 1 2" };
        let mut outputs = Vec::new();
        router.decide(Entry::Records, line.name).run(router, line, 0, &mut |act| {
            if let Act::Copy { output, .. } = act {
                outputs.push(output);
            }
        });
        outputs
    }

    /// The output that gets the queued line.
    fn successor(router: &Router, from: OutputId, name: &str) -> OutputId {
        let successors = router.successors(from).expect("others are up").of(name.as_bytes(), 0);
        assert_eq!(successors.len(), 1, "{name}: {successors:?}");
        successors[0]
    }

    #[test]
    fn a_queued_copy_never_moves_to_a_member_that_has_one() {
        let outputs = [0, 1, 2, 3].map(OutputId);
        for name in (0..200).map(|number| format!("a.b{number}")) {
            let fresh = || router(vec![cluster(sharded(Sharding::Fnv1aCh, 2, true), &[0, 1, 2, 3])], None);
            let mut router = fresh();
            let owners = sent(&router, &name);
            for (gone, stays) in [(owners[0], owners[1]), (owners[1], owners[0])] {
                router = fresh();
                router.set_live(gone, false);
                let now = sent(&router, &name);
                let fail_over =
                    *now.iter().find(|output| !owners.contains(output)).expect("there is a failover member");
                // The failover member fails too: its lines move to the next one.
                router.set_live(fail_over, false);
                let next = successor(&router, fail_over, &name);
                assert!(!owners.contains(&next) && next != fail_over, "{name}: {next:?}");
                assert!(router.has_failover(fail_over), "two are up for two copies");
                // That one fails too: one is left, which has its copy.
                router.set_live(next, false);
                for output in [gone, fail_over, next] {
                    let successors = router.successors(output).expect("one is up");
                    assert_eq!(successors.of(name.as_bytes(), 0), [], "{name}: from {output:?} to {stays:?}");
                    assert!(!router.has_failover(output), "its copies stay queued");
                }
                // The owner is back. It was down before, and the other one was not.
                router.set_live(gone, true);
                assert_eq!(
                    [fail_over, next].map(|from| successor(&router, from, &name)),
                    [gone, gone],
                    "{name}"
                );
                // With both up it is unknown which owner the copy is for.
                router.set_live(stays, false);
                router.set_live(stays, true);
                let successors = router.successors(next).expect("owners are up").of(name.as_bytes(), 0);
                assert_eq!(successors, owners, "{name}");
            }
            // The same for lines that an earlier process left.
            router = fresh();
            let other = outputs.into_iter().find(|output| !owners.contains(output)).expect("there are four");
            router.set_live(other, false);
            assert_eq!(
                router.successors(other).expect("owners are up").of(name.as_bytes(), 0),
                owners,
                "{name}"
            );
        }
    }

    #[test]
    fn queued_lines_move_to_the_member_that_new_lines_go_to() {
        let distributions = [
            Distribution::Failover,
            Distribution::RoundRobin,
            sharded(Sharding::AnyOf, 1, true),
            sharded(Sharding::Fnv1aCh, 1, true),
            sharded(Sharding::CarbonCh, 2, true),
        ];
        for distribution in distributions {
            let mut router = router(vec![cluster(distribution.clone(), &[0, 1, 2, 3])], None);
            assert!(router.successors(OutputId(0)).is_none(), "it is up");
            for name in (0..200).map(|number| format!("a.b{number}")) {
                let before = sent(&router, &name);
                let gone = before[0];
                router.set_live(gone, false);
                let now = sent(&router, &name);
                let takes = successor(&router, gone, &name);
                assert!(
                    takes != gone && now.contains(&takes),
                    "{distribution:?} {name}: {takes:?} of {now:?}"
                );
                assert!(!before.contains(&takes), "{distribution:?} {name}: {takes:?} has it already");
                assert!(router.has_failover(gone));
                if matches!(distribution, Distribution::Sharded { replication: 1, .. }) {
                    // Its failover member fails too, and then the owner comes back.
                    router.set_live(takes, false);
                    assert_eq!(
                        [successor(&router, takes, &name)],
                        *sent(&router, &name),
                        "{distribution:?} {name}"
                    );
                    router.set_live(gone, true);
                    assert_eq!(successor(&router, takes, &name), gone, "{distribution:?} {name}");
                    router.set_live(takes, true);
                }
                (0..4).for_each(|output| router.set_live(OutputId(output), true));
            }
            (1..4).for_each(|output| router.set_live(OutputId(output), false));
            router.set_live(OutputId(0), false);
            assert!(
                router.successors(OutputId(0)).is_none() && !router.has_failover(OutputId(0)),
                "no member is up"
            );
        }
    }

    #[test]
    fn lines_stay_queued_when_their_name_does_not_identify_the_receiver() {
        let any_of = || sharded(Sharding::AnyOf, 1, true);
        let dynamic = || sharded(Sharding::Fnv1aCh, 1, true);
        // (clusters, `route using`, whether new lines fail over, whether queued lines do)
        let table = [
            (vec![cluster(any_of(), &[0, 1])], None, true, true),
            (vec![cluster(any_of(), &[0, 1])], Some("\\0"), true, true),
            (vec![cluster(dynamic(), &[0, 1])], Some("\\0"), true, false),
            (vec![cluster(sharded(Sharding::Fnv1aCh, 1, false), &[0, 1])], None, false, false),
            (vec![cluster(Distribution::Copies, &[0, 1])], None, false, false),
            (vec![cluster(Distribution::Failover, &[0])], None, false, false),
            (vec![cluster(any_of(), &[0, 1]), cluster(any_of(), &[0, 2])], None, true, false),
            (vec![cluster(any_of(), &[0, 1]), cluster(Distribution::Copies, &[0])], None, false, false),
        ];
        for (clusters, route_using, spared, moves) in table {
            let shown = format!("{clusters:?} {route_using:?}");
            let mut router = router(clusters, route_using);
            router.set_live(OutputId(0), false);
            assert_eq!(router.has_failover(OutputId(0)), spared, "{shown}");
            assert_eq!(router.successors(OutputId(0)).is_some(), moves, "{shown}");
        }
    }
}

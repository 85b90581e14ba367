//! The way of a name through a relay and those behind it: what [`chain`](super::transforms::chain) does with a point, without sending one.
//!
//! Called for `staunch check --keys` with the routers of a plan, and for the HTTP API with those of a running shard.
//! Not here: one relay (`process::relay::Explanation`), the texts and documents (`staunch`).
//! Invariant: the copies of a [`ChainExplanation`] are those that the shard sends, unless it is cut at [`MATCHES_MAX`].

use std::collections::VecDeque;
use std::sync::Arc;

use config::plan::RelayTransform;
use model::{OutputId, TransformId};
use process::relay::{Explanation, Line, MemberNode, RouterSnapshot, RuleMatch};

use super::transforms::chain::VISITS_MAX;
use super::transforms::relay::Relay;

/// Matches of all visits together, after which no further visit is explained: memory and time for an answer.
pub const MATCHES_MAX: usize = 10_000;

/// A relay of a running shard.
#[derive(Debug)]
pub struct RelayToAsk {
    /// The number that statements of other relays have for it. None for the first one.
    pub id: Option<TransformId>,
    /// Its name.
    pub name: String,
    /// Its statements.
    pub made_of: Arc<RelayTransform>,
    /// Its router.
    pub router: RouterSnapshot,
}

impl RelayToAsk {
    pub(super) fn new(id: Option<TransformId>, relay: &Relay) -> RelayToAsk {
        let (made_of, router) = relay.to_ask();
        RelayToAsk { id, name: relay.name.clone(), made_of, router }
    }
}

/// A rule of the relay of another visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentBy {
    /// The visit.
    pub visit: usize,
    /// As of a [`RuleMatch`].
    pub statement: usize,
    /// Likewise.
    pub expression: usize,
}

/// A line at one relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainVisit {
    /// The relay. None for the first one.
    pub relay: Option<TransformId>,
    /// The rule that sent the line here. None for the first one.
    pub by: Option<SentBy>,
    /// The line's name here.
    pub name: Vec<u8>,
    /// What its statements do.
    pub explanation: Explanation,
    /// Copies for other relays that are refused: the line has made as many visits as it may.
    pub refused: u32,
}

/// A line at all relays that it passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainExplanation {
    /// In the order in which the shard makes them: each is behind the visit that sent it.
    pub visits: Vec<ChainVisit>,
    /// Visits that are not explained: see [`MATCHES_MAX`].
    pub unexplained: u32,
}

impl ChainExplanation {
    /// Copies for outputs, by visit, with the rule and the name under which each is sent.
    pub fn sent(&self) -> impl Iterator<Item = (usize, Option<&RuleMatch>, OutputId, &[u8])> {
        self.visits.iter().enumerate().flat_map(|(at, visit)| {
            let copies = visit.explanation.copies();
            copies.filter_map(move |(rule, chosen)| {
                let name = rule.map_or(&visit.name, |rule| &rule.name);
                Some((at, rule, chosen.node.output()?, &name[..]))
            })
        })
    }

    /// The visits on the way to one of them, itself included.
    pub fn way_to(&self, visit: usize) -> Vec<usize> {
        let mut way = vec![visit];
        while let Some(by) = way.last().and_then(|at| self.visits[*at].by) {
            way.push(by.visit);
        }
        way.reverse();
        way
    }
}

/// The way of a line that enters at the first relay. `explain` asks one relay, the first one being None; the whole answer is
/// None when it gives none.
pub fn explain_chain(
    line: Line<'_>,
    explain: &mut dyn FnMut(Option<TransformId>, Line<'_>) -> Option<Explanation>,
) -> Option<ChainExplanation> {
    let mut chain = ChainExplanation { visits: Vec::new(), unexplained: 0 };
    // What is left to visit, as a level of the shard is behind the one before it.
    let mut next = VecDeque::from([(None, None, line.name.to_vec())]);
    let (mut left, mut matches) = (VISITS_MAX, 0);
    while let Some((relay, by, name)) = next.pop_front() {
        if matches >= MATCHES_MAX {
            chain.unexplained += 1;
            continue;
        }
        let explanation = explain(relay, Line { name: &name, rest: line.rest })?;
        matches += explanation.matches.len();
        let (at, mut refused) = (chain.visits.len(), 0);
        for (rule, chosen) in explanation.copies() {
            let (Some(rule), MemberNode::Relay(id)) = (rule, chosen.node) else { continue };
            if left == 0 {
                refused += 1;
                continue;
            }
            left -= 1;
            let by = SentBy { visit: at, statement: rule.statement, expression: rule.expression };
            next.push_back((Some(id), Some(by), rule.name.clone()));
        }
        chain.visits.push(ChainVisit { relay, by, name, explanation, refused });
    }
    Some(chain)
}

#[cfg(test)]
mod tests {
    use process::relay::{Chosen, ClusterId, End, Routing, RuleAction, Sent, Why};

    use super::*;

    /// So many matches, each of which sends a copy to relay 0.
    fn explanation(matches: usize) -> Explanation {
        let chosen = Chosen { member: 0, node: MemberNode::Relay(TransformId(0)), why: Why::AllMembers };
        let sent = Sent { cluster: ClusterId(0), key: None, position: None, chosen: vec![chosen] };
        let one = RuleMatch {
            statement: 0,
            expression: 0,
            name: b"n".to_vec(),
            valid: None,
            action: RuleAction::Sent(vec![sent]),
            stopped: false,
        };
        let copies = matches.min(process::relay::COPIES_MAX) as u32;
        let end = End::Exhausted;
        let routing = Routing { copies, copies_refused: 0, feeds: 0, names_refused: 0, gave_up: 0, end };
        Explanation { matches: vec![one; matches], direct: Vec::new(), gave_up: Vec::new(), routing }
    }

    #[test]
    fn visits_past_the_limit_of_matches_are_counted_and_not_explained() {
        // The first one asks for two more visits.
        for (matches, visits, unexplained) in [(MATCHES_MAX - 1, 2, 1), (MATCHES_MAX, 1, 2)] {
            let mut explain = |relay: Option<TransformId>, _: Line<'_>| {
                let mut of_first = explanation(matches);
                of_first.routing.copies = 2;
                Some(if relay.is_none() {
                    of_first
                } else {
                    Explanation { routing: Routing { copies: 0, ..explanation(1).routing }, ..explanation(1) }
                })
            };
            let line = Line { name: b"n", rest: b"" };
            let chain = explain_chain(line, &mut explain).expect("nothing ends it");
            assert_eq!((chain.visits.len(), chain.unexplained), (visits, unexplained), "{matches}");
        }
    }

    #[test]
    fn visits_past_those_of_a_point_are_refused() {
        let line = Line { name: b"n", rest: b"" };
        let mut asked = 0;
        let mut explain = |_: Option<TransformId>, _: Line<'_>| {
            asked += 1;
            Some(explanation(2))
        };
        let chain = explain_chain(line, &mut explain).expect("nothing ends it");
        let refused: u32 = chain.visits.iter().map(|visit| visit.refused).sum();
        assert_eq!((asked, refused), (1 + VISITS_MAX, 2 * (1 + VISITS_MAX as u32) - VISITS_MAX as u32));
    }
}

//! Which rules a name meets, where each copy goes, and why: for `staunch relay --explain` and the test mode.
//!
//! The plain reading of the specification: rule after rule, with the line at hand, nothing prepared and nothing left
//! open. So it is also what tests hold `Decision` and the cache to.
//! Not here: how it is printed.

use model::OutputId;

use super::decision::{COPIES_MAX, End, Line, Routing};
use super::expression::GaveUp;
use super::replacement::Replacement;
use super::router::{Action, Check, Entry, Router, Rule, can_be_sent};
use super::{ClusterId, MistakeAt, Sharing, To};

/// The way of one line through the statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The rules that matched, in order. A line that goes straight to clusters meets none.
    pub meetings: Vec<Meeting>,
    /// What was sent without a rule: results and statistics with a `send to` of their own.
    pub straight: Vec<Sent>,
    /// Expressions whose search gave up, which counts as no match: see [`GaveUp`].
    pub gave_up: Vec<MistakeAt>,
    /// In numbers.
    pub routing: Routing,
}

/// A rule that matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meeting {
    /// The statement's place in the plan.
    pub statement: usize,
    /// Which of its expressions matched, by place; 0 for `*`.
    pub expression: usize,
    /// The name that it matched.
    pub name: Vec<u8>,
    /// How its `validate` found the rest; none without one.
    pub valid: Option<bool>,
    /// What it brought about.
    pub did: Did,
    /// No later rule was looked at.
    pub stopped: bool,
}

/// What a rule brought about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Did {
    /// Nothing: it has nowhere to send, or its `validate` was against it.
    Nothing,
    /// Copies, for each cluster.
    Sent(Vec<Sent>),
    /// It swallowed the line.
    Blackholed,
    /// Another name.
    Renamed(Vec<u8>),
    /// A name that cannot be sent, so that the old one stayed.
    NotRenamed(Vec<u8>),
    /// The names of the results that the value counts in, in the order of the aggregation rule's computes; none for one that
    /// cannot be sent.
    Fed {
        /// Place in [`Router::aggregation rules`].
        aggregation_rule: u16,
        /// A name for each compute.
        names: Vec<Option<Vec<u8>>>,
    },
}

/// Copies for one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The cluster.
    pub cluster: ClusterId,
    /// What was placed: the name, or what `route using` makes of it. None in clusters that place no keys.
    pub key: Option<Vec<u8>>,
    /// Where it lies on the cluster's ring, or the number of its shard: what the original's `-d` calls `hash_pos`.
    pub position: Option<i64>,
    /// Who gets a copy. Copies past [`COPIES_MAX`] are among them and not sent.
    pub chosen: Vec<Chosen>,
}

/// A member that gets a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Its place in the cluster.
    pub member: usize,
    /// Its output.
    pub output: OutputId,
    /// The reason.
    pub why: Why,
}

/// Why a member gets a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// All members do.
    Everyone,
    /// It owns the key.
    Owner,
    /// The member of that place owns the key and is down.
    StandsIn {
        /// The owner.
        owner: usize,
    },
    /// The first that is up.
    FirstUp,
    /// It is its turn.
    Turn,
    /// None that could stand in is up; the copy waits.
    NoneUp,
}

impl Router {
    /// The way of one line, with the endpoints up that are up now. `turn` is what [`Decision::run`] is given.
    ///
    /// [`Decision::run`]: super::Decision::run
    pub fn explain(&self, entry: Entry, line: Line<'_>, turn: u64) -> Explanation {
        self.explain_while(entry, line, turn, &mut || true).expect("it goes on to its end")
    }

    /// The same for as long as `goes_on` says so, which is asked before each search; none when it ended before the way did.
    pub fn explain_while(
        &self,
        entry: Entry,
        line: Line<'_>,
        turn: u64,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Option<Explanation> {
        self.begin_name();
        self.begin_rest();
        let mut way = Way {
            router: self,
            line,
            turn,
            name: line.name.to_vec(),
            copies: 0,
            given: Vec::new(),
            replaced: false,
            feeds: 0,
            names_refused: 0,
            gave_up: Vec::new(),
        };
        let mut meetings = Vec::new();
        let mut straight = Vec::new();
        let end = match self.straight(entry) {
            Some(To::Blackhole) => End::Blackholed,
            Some(to) => {
                straight = way.send(to, None);
                End::Stopped
            }
            None => loop {
                let next = meetings.last().map_or(0, |(at, _)| at + 1);
                let Some((at, meeting, end)) = way.next(next, goes_on)? else {
                    break if way.replaced { End::Stopped } else { End::Exhausted };
                };
                meetings.push((at, meeting));
                if let Some(end) = end {
                    break end;
                }
            },
        };
        let sent = way.copies.min(COPIES_MAX);
        let routing = Routing {
            copies: sent as u32,
            copies_refused: (way.copies - sent) as u32,
            feeds: way.feeds,
            names_refused: way.names_refused,
            gave_up: way.gave_up.len() as u32,
            end,
        };
        let meetings = meetings.into_iter().map(|(_, meeting)| meeting).collect();
        Some(Explanation { meetings, straight, gave_up: way.gave_up, routing })
    }
}

/// The place of a rule's expression; of a rule for every name the first that leaves names out, as no other can give up.
fn place(rule: &Rule) -> MistakeAt {
    let statement = rule.statement;
    match rule.is_for_all() {
        true => MistakeAt::Unless { statement, expression: 0 },
        false => MistakeAt::Statement { statement, expression: Some(rule.expression) },
    }
}

/// A rule that matches, by its place, with how the way ends if it does.
type Next = (usize, Meeting, Option<End>);

/// A line on its way.
struct Way<'a> {
    router: &'a Router,
    line: Line<'a>,
    turn: u64,
    name: Vec<u8>,
    copies: usize,
    /// Outputs that have a copy.
    given: Vec<OutputId>,
    /// It counts in a result of its own name, which takes its place.
    replaced: bool,
    feeds: u32,
    names_refused: u32,
    gave_up: Vec<MistakeAt>,
}

impl Way<'_> {
    /// The next rule that matches: its place, what it brings about, and how the way ends if it does. None in the outer place
    /// when it does not go on.
    fn next(&mut self, from: usize, goes_on: &mut dyn FnMut() -> bool) -> Option<Option<Next>> {
        let router = self.router;
        let mut rules = router.statements.rules.iter().enumerate().skip(from);
        let (at, rule, found) = loop {
            let Some((at, rule)) = rules.find(|(_, rule)| !self.replaced || rule.feeds()) else {
                return Some(None);
            };
            if !goes_on() {
                return None;
            }
            match rule.find(&self.name) {
                Ok(Some(found)) => break (at, rule, found),
                Ok(None) => {}
                Err(GaveUp) => self.gave_up.push(place(rule)),
            }
        };
        let mut meeting = Meeting {
            statement: rule.statement,
            expression: rule.expression,
            name: self.name.clone(),
            valid: None,
            did: Did::Nothing,
            stopped: false,
        };
        let end = match &rule.action {
            Action::Rewrite { into, every_occurrence } => {
                match rule.rewritten(&self.name, found, into, *every_occurrence) {
                    Ok(name) => meeting.did = self.rename(name),
                    Err(GaveUp) => self.gave_up.push(place(rule)),
                }
                None
            }
            Action::Feed { aggregation_rule, names, stop, replaces } => {
                let name = |name: &Replacement| {
                    Some(name.replace(&self.name, &found)).filter(|name| can_be_sent(name))
                };
                let names: Vec<Option<Vec<u8>>> = names.iter().map(name).collect();
                let fed = names.iter().flatten().count();
                self.feeds += fed as u32;
                self.names_refused += (names.len() - fed) as u32;
                self.replaced |= *replaces && names.iter().flatten().any(|name| *name == self.name);
                meeting.did = Did::Fed { aggregation_rule: *aggregation_rule, names };
                stop.then_some(End::Stopped)
            }
            Action::Send { check, key, to, stop } => {
                meeting.valid = check.map(|check| self.is_valid(check, rule.statement));
                let key = key.as_ref().map(|key| key.replace(&self.name, &found));
                let ends = match (to, meeting.valid) {
                    (To::Nowhere, Some(false)) => Some(End::Invalid),
                    (To::Nowhere, _) => None,
                    (To::Blackhole, _) => Some(End::Blackholed),
                    (To::Clusters(_), _) => stop.then_some(End::Stopped),
                };
                meeting.did = match (to, meeting.valid) {
                    (_, Some(false)) | (To::Nowhere, _) => Did::Nothing,
                    (To::Blackhole, _) => Did::Blackholed,
                    (To::Clusters(_), _) => Did::Sent(self.send(to, key)),
                };
                ends
            }
        };
        meeting.stopped = end.is_some();
        Some(Some((at, meeting, end)))
    }

    fn rename(&mut self, name: Vec<u8>) -> Did {
        if !can_be_sent(&name) {
            self.names_refused += 1;
            return Did::NotRenamed(name);
        }
        self.name.clone_from(&name);
        Did::Renamed(name)
    }

    fn is_valid(&mut self, check: Check, statement: usize) -> bool {
        let found = self.router.statements.checks[check.expression as usize].is_in(self.line.rest);
        if found.is_err() {
            self.gave_up.push(MistakeAt::Validate { statement });
        }
        found == Ok(true)
    }

    fn send(&mut self, to: &To, key: Option<Vec<u8>>) -> Vec<Sent> {
        let To::Clusters(clusters) = to else { return Vec::new() };
        let key_of = |cluster: &ClusterId| {
            let watches = self.router.clusters[cluster.index()].sharing.watches_route_using();
            key.as_deref().filter(|_| watches).unwrap_or(&self.name)
        };
        let mut sent: Vec<Sent> =
            clusters.iter().map(|cluster| self.sent(*cluster, key_of(cluster))).collect();
        if self.router.statements.once {
            let given = &mut self.given;
            for chosen in sent.iter_mut().map(|sent| &mut sent.chosen) {
                chosen.retain(|chosen| {
                    let first = !given.contains(&chosen.output);
                    given.push(chosen.output);
                    first
                });
            }
        }
        self.copies += sent.iter().map(|sent| sent.chosen.len()).sum::<usize>();
        sent
    }

    fn sent(&self, cluster: ClusterId, key: &[u8]) -> Sent {
        let state = &self.router.clusters[cluster.index()];
        let all_down = state.up.iter().all(|up| !up);
        let mut chosen = Vec::new();
        let mut choose = |member: usize, why| {
            chosen.push(Chosen { member, output: state.outputs[member], why });
        };
        let mut position = None;
        match &state.sharing {
            Sharing::Copies => (0..state.outputs.len()).for_each(|member| choose(member, Why::Everyone)),
            Sharing::Failover => {
                choose(state.first_up(), if all_down { Why::NoneUp } else { Why::FirstUp });
            }
            Sharing::Turns => {
                choose(state.at_turn(self.turn), if all_down { Why::NoneUp } else { Why::Turn });
            }
            Sharing::Placed { fail_over, .. } => {
                let placed = self.router.placed(cluster).expect("a cluster whose keys are placed");
                position = placed.position(key);
                let mut owners = Vec::new();
                placed.placed(key, &mut owners);
                if *fail_over {
                    state.owners_or_failovers(&owners, key, |member, owner| {
                        let why = match state.up[member] {
                            true if member == owner => Why::Owner,
                            true => Why::StandsIn { owner },
                            false => Why::NoneUp,
                        };
                        choose(member, why);
                    });
                } else {
                    owners.iter().for_each(|owner| choose(usize::from(*owner), Why::Owner));
                }
            }
        }
        let key = matches!(state.sharing, Sharing::Placed { .. }).then(|| key.to_vec());
        Sent { cluster, key, position, chosen }
    }
}

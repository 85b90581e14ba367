//! The decision for a name: the steps that every line of that name takes, without evaluating rules again.
//!
//! Most decisions are only a list of outputs (`plain`). Other steps depend on the rest of the line (`validate`), on
//! endpoints being up (`any_of`, `failover`, `dynamic`, `lb`), send to another relay, or feed the value to an
//! aggregation rule.
//! Not here: how a decision is made (`Router::decide`) and cached (`cache`).
//! Invariants: a line gives at most `COPIES_MAX` copies, and further copies are counted; the same decision with the
//! same endpoints up gives the same copies.

use model::{OutputId, TransformId};

use crate::sharding::key_hash;

use super::prefilter::Candidates;
use super::replacement::can_be_sent;
use super::router::{Check, ClusterState, Router};
use super::{ClusterId, Distribution, MemberNode};

/// Maximum copies of one line.
pub const COPIES_MAX: usize = 128;

/// A line, split for the router.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// The part that statements match: up to the first `;` or white space.
    pub name: &'a [u8],
    /// The part that `validate` matches: tags if any, value and timestamp.
    pub rest: &'a [u8],
}

/// One action for a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act<'a> {
    /// Send a copy to an output.
    Copy {
        /// The output.
        output: OutputId,
        /// A new name that replaces the line's own.
        renamed: Option<&'a [u8]>,
    },
    /// Send a copy to another relay.
    Relay {
        /// The relay.
        relay: TransformId,
        /// A new name that replaces the line's own.
        renamed: Option<&'a [u8]>,
    },
    /// Feed the value to an aggregation rule.
    Feed {
        /// Index in [`Router::aggregation_rules`].
        aggregation_rule: u16,
        /// Index of the compute in the aggregation rule.
        compute: u16,
        /// Name of the result.
        name: &'a [u8],
    },
    /// The line failed a `validate`.
    Invalid {
        /// Log it (`else log`).
        log: bool,
    },
}

/// Why the evaluation of statements ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// After the last statement.
    Exhausted,
    /// At a `stop`, or the line bypassed the statements.
    Stopped,
    /// At the blackhole.
    Blackholed,
    /// It failed a `validate` without a destination.
    Invalid,
}

/// Counts of one routed line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routing {
    /// Copies sent.
    pub copies: u32,
    /// Copies beyond [`COPIES_MAX`], not sent.
    pub copies_refused: u32,
    /// Results that the value was fed to.
    pub feeds: u32,
    /// Rewritten names and names of results that cannot be sent (see [`NAME_BYTES_MAX`](super::NAME_BYTES_MAX)).
    /// The line kept its name, or the result was not fed.
    pub names_refused: u32,
    /// Searches in the name or the rest that gave up: see [`GaveUp`](super::GaveUp).
    pub gave_up: u32,
    /// Why the evaluation ended.
    pub end: End,
}

/// The routing of all lines of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The outputs, when the decision is only that: names unchanged, at most [`COPIES_MAX`] copies.
    plain: Option<Box<[OutputId]>>,
    content: Content,
}

/// The content of a decision, also while it is built: an equal decision that exists is reused.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Content {
    steps: Vec<Step>,
    /// Members that own keys; [`Step::Owners`] refers to ranges of it.
    owners: Vec<u16>,
    /// New names and keys, as end offsets in `bytes`.
    texts: Vec<u32>,
    bytes: Vec<u8>,
    end: End,
}

/// The name of a copy or the key of a cluster: 0 for the line's own name, otherwise the number of the text, from 1.
type TextId = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Copy {
        node: MemberNode,
        name: TextId,
    },
    /// Copies to the `count` owners from `begin`, or to their failover members.
    Owners {
        cluster: ClusterId,
        name: TextId,
        key: TextId,
        begin: u32,
        count: u8,
    },
    FirstUp {
        cluster: ClusterId,
        name: TextId,
    },
    Turn {
        cluster: ClusterId,
        name: TextId,
    },
    /// Unless the rest is valid, skips the next `skip` steps or ends.
    Check {
        check: Checked,
        skip: u32,
    },
    Feed {
        aggregation_rule: u16,
        compute: u16,
        name: TextId,
    },
    /// Counts a new name that cannot be sent.
    NameRefused,
    /// Counts a search that gave up.
    GaveUp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Checked {
    expression: u32,
    log: bool,
    ends: bool,
}

impl Decision {
    /// The outputs, when every line goes to them unchanged and nothing else happens.
    #[inline]
    pub fn plain(&self) -> Option<&[OutputId]> {
        self.plain.as_deref()
    }

    /// True when the rest of the line is needed: for a `validate`, or for the value of an aggregation rule.
    pub fn needs_rest(&self) -> bool {
        self.content.steps.iter().any(|step| matches!(step, Step::Check { .. } | Step::Feed { .. }))
    }

    pub(super) fn content(&self) -> &Content {
        &self.content
    }

    /// Reports each action for a line of this name. `turn` is the line's number, for `lb`.
    #[inline]
    pub fn run<'a>(
        &'a self,
        router: &Router,
        line: Line<'a>,
        turn: u64,
        act: &mut impl FnMut(Act<'a>),
    ) -> Routing {
        self.run_plain(act).unwrap_or_else(|| self.run_steps(router, line, turn, act))
    }

    /// As `run`, for decisions that are only outputs. None, without any action, for others.
    #[inline]
    pub(super) fn run_plain<'a>(&'a self, act: &mut impl FnMut(Act<'a>)) -> Option<Routing> {
        let outputs = self.plain()?;
        outputs.iter().for_each(|output| act(Act::Copy { output: *output, renamed: None }));
        Some(Routing { copies: outputs.len() as u32, ..Routing::new(self.content.end) })
    }

    /// Kept out of line, because most decisions have no steps.
    #[cold]
    #[inline(never)]
    pub(super) fn run_steps<'a>(
        &'a self,
        router: &Router,
        line: Line<'a>,
        turn: u64,
        act: &mut impl FnMut(Act<'a>),
    ) -> Routing {
        let content = &self.content;
        let mut routing = Routing::new(content.end);
        let mut has_looked = false;
        let mut copied =
            Copied(router.statements.once.then_some([MemberNode::Output(OutputId(0)); COPIES_MAX]));
        let mut at = 0;
        while let Some(step) = content.steps.get(at) {
            at += 1;
            match *step {
                Step::Copy { node, name } => routing.copy(&mut copied, node, content.text(name), act),
                Step::FirstUp { cluster, name } => {
                    let cluster = &router.clusters[cluster.index()];
                    let node = cluster.nodes[cluster.first_up()];
                    routing.copy(&mut copied, node, content.text(name), act);
                }
                Step::Turn { cluster, name } => {
                    let cluster = &router.clusters[cluster.index()];
                    let node = cluster.nodes[cluster.at_turn(turn)];
                    routing.copy(&mut copied, node, content.text(name), act);
                }
                Step::Owners { cluster, name, key, begin, count } => {
                    let cluster = &router.clusters[cluster.index()];
                    let owners = &content.owners[begin as usize..][..usize::from(count)];
                    let key = content.text(key).unwrap_or(line.name);
                    cluster.owners_or_failovers(owners, key, |member, _| {
                        routing.copy(&mut copied, cluster.nodes[member], content.text(name), act);
                    });
                }
                Step::Feed { aggregation_rule, compute, name } => {
                    routing.feeds += 1;
                    let name = content.text(name).unwrap_or(line.name);
                    act(Act::Feed { aggregation_rule, compute, name });
                }
                Step::NameRefused => routing.names_refused += 1,
                Step::GaveUp => routing.gave_up += 1,
                Step::Check { check, skip } => {
                    if !std::mem::replace(&mut has_looked, true) {
                        router.begin_rest();
                    }
                    let found = router.statements.checks[check.expression as usize].is_in(line.rest);
                    if found == Ok(true) {
                        continue;
                    }
                    routing.gave_up += u32::from(found.is_err());
                    act(Act::Invalid { log: check.log });
                    if check.ends {
                        return Routing { end: End::Invalid, ..routing };
                    }
                    at += skip as usize;
                }
            }
        }
        routing
    }
}

/// The nodes that already have a copy, one for each copy. None unless the plan sends each line once per node.
struct Copied(Option<[MemberNode; COPIES_MAX]>);

impl Routing {
    fn new(end: End) -> Routing {
        Routing { copies: 0, copies_refused: 0, names_refused: 0, feeds: 0, gave_up: 0, end }
    }

    /// Reports a copy, up to the limit.
    fn copy<'a>(
        &mut self,
        copied: &mut Copied,
        node: MemberNode,
        renamed: Option<&'a [u8]>,
        act: &mut impl FnMut(Act<'a>),
    ) {
        let copies = self.copies as usize;
        if copied.0.as_ref().is_some_and(|copied| copied[..copies].contains(&node)) {
            return;
        }
        if copies == COPIES_MAX {
            self.copies_refused += 1;
            return;
        }
        if let Some(copied) = &mut copied.0 {
            copied[copies] = node;
        }
        self.copies += 1;
        act(match node {
            MemberNode::Output(output) => Act::Copy { output, renamed },
            MemberNode::Relay(relay) => Act::Relay { relay, renamed },
        });
    }
}

impl ClusterState {
    /// The first member that is up; the first of all when none is.
    pub(super) fn first_up(&self) -> usize {
        self.up.iter().position(|up| *up).unwrap_or(0)
    }

    /// The member whose turn it is: of those that are up, or of all when none is.
    pub(super) fn at_turn(&self, turn: u64) -> usize {
        let up = self.up.iter().filter(|up| **up).count();
        if up == 0 {
            return (turn % self.nodes.len() as u64) as usize;
        }
        let live = self.up.iter().enumerate().filter(|(_, up)| **up).map(|(at, _)| at);
        live.cycle().nth((turn % up as u64) as usize).expect("one is up")
    }

    /// Calls `each` with every (receiver, owner) of a key. The receiver is the owner, or its failover member: one
    /// that is up, is no owner of the key, and replaces no other owner. When there is none, records are queued for
    /// the owner.
    pub(super) fn owners_or_failovers(&self, owners: &[u16], key: &[u8], mut each: impl FnMut(usize, usize)) {
        let sharding = self.sharding.as_ref().expect("a cluster with sharding");
        if owners.iter().all(|owner| self.up[usize::from(*owner)]) {
            owners.iter().for_each(|owner| each(usize::from(*owner), usize::from(*owner)));
            return;
        }
        let hash = key_hash(key);
        let mut taken = owners.to_vec();
        for owner in owners.iter().map(|owner| usize::from(*owner)) {
            let fail_over = if self.up[owner] { None } else { sharding.fail_over(hash, &taken) };
            taken.extend(fail_over.map(|member| member as u16));
            each(fail_over.unwrap_or(owner), owner);
        }
    }
}

impl Default for Content {
    fn default() -> Content {
        let (steps, owners, texts, bytes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Content { steps, owners, texts, bytes, end: End::Exhausted }
    }
}

impl Content {
    /// The decision with this content, without spare capacity.
    pub(super) fn decision(&self) -> Decision {
        let output = |step: &Step| match step {
            Step::Copy { node: MemberNode::Output(output), name: 0 } => Some(*output),
            _ => None,
        };
        let plain = (self.steps.len() <= COPIES_MAX).then(|| self.steps.iter().map(output).collect());
        Decision { plain: plain.flatten(), content: self.clone() }
    }

    /// Maximum heap memory of that decision.
    pub(super) fn heap_bytes(&self) -> usize {
        let plain = self.steps.len() * size_of::<OutputId>();
        size_of_val(&*self.steps)
            + size_of_val(&*self.owners)
            + size_of_val(&*self.texts)
            + self.bytes.len()
            + plain
    }

    /// The text with this id; None for the line's own name.
    fn text(&self, text: TextId) -> Option<&[u8]> {
        let at = text.checked_sub(1)? as usize;
        let begin = at.checked_sub(1).map_or(0, |before| self.texts[before] as usize);
        Some(&self.bytes[begin..self.texts[at] as usize])
    }

    fn clear(&mut self) {
        let Content { steps, owners, texts, bytes, end } = self;
        steps.clear();
        owners.clear();
        texts.clear();
        bytes.clear();
        *end = End::Exhausted;
    }
}

/// A decision that is being built. Its buffers are reused.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    /// The name after the rewrites so far.
    name: Vec<u8>,
    name_id: TextId,
    content: Content,
    /// Buffer for the rules that can match.
    pub(super) candidates: Candidates,
}

impl Draft {
    /// Starts with a name and clears the previous content.
    pub(super) fn begin(&mut self, name: &[u8]) {
        self.name.clear();
        self.name.extend_from_slice(name);
        self.name_id = 0;
        self.content.clear();
    }

    /// Ends the decision. When each output gets a line once, later copies for the same output are removed here as
    /// far as possible: copies after a check depend on the line.
    pub(super) fn finish(&mut self, end: End, once: bool) {
        self.content.end = end;
        let steps = &mut self.content.steps;
        if once && steps.iter().all(|step| matches!(step, Step::Copy { .. })) {
            let mut copied: Vec<MemberNode> = Vec::with_capacity(steps.len());
            steps.retain(|step| {
                let Step::Copy { node, .. } = step else { return true };
                let first = !copied.contains(node);
                copied.push(*node);
                first
            });
        }
    }

    pub(super) fn content(&self) -> &Content {
        &self.content
    }

    /// The name that statements see now.
    pub(super) fn name(&self) -> &[u8] {
        &self.name
    }

    /// Stores a text.
    pub(super) fn text(&mut self, text: Vec<u8>) -> TextId {
        self.content.bytes.extend_from_slice(&text);
        self.content.texts.push(self.content.bytes.len() as u32);
        self.content.texts.len() as TextId
    }

    pub(super) fn rename(&mut self, name: Vec<u8>) {
        if !can_be_sent(&name) {
            self.content.steps.push(Step::NameRefused);
        } else if name != self.name {
            self.name_id = self.text(name.clone());
            self.name = name;
        }
    }

    /// Counts a search that came to a limit.
    pub(super) fn gave_up(&mut self) {
        self.content.steps.push(Step::GaveUp);
    }

    pub(super) fn feed(&mut self, aggregation_rule: u16, compute: u16, name: Vec<u8>) {
        if !can_be_sent(&name) {
            self.content.steps.push(Step::NameRefused);
            return;
        }
        let name = self.text(name);
        self.content.steps.push(Step::Feed { aggregation_rule, compute, name });
    }

    /// Begins a section that a check can skip. Returns its index for [`Draft::checked`].
    pub(super) fn check(&mut self, check: Check, ends: bool) -> usize {
        let Check { expression, log } = check;
        self.content.steps.push(Step::Check { check: Checked { expression, log, ends }, skip: 0 });
        self.content.steps.len() - 1
    }

    /// Ends the section.
    pub(super) fn checked(&mut self, at: usize) {
        let behind = (self.content.steps.len() - at - 1) as u32;
        if let Step::Check { skip, .. } = &mut self.content.steps[at] {
            *skip = behind;
        }
    }

    /// Adds copies for one cluster, with `key` or else the name as sharding key.
    pub(super) fn send(&mut self, router: &Router, cluster: ClusterId, key: Option<TextId>) {
        let name = self.name_id;
        let state = &router.clusters[cluster.index()];
        let (sharding, fail_over) = match (&state.distribution, &state.sharding) {
            (Distribution::Failover, _) => return self.content.steps.push(Step::FirstUp { cluster, name }),
            (Distribution::RoundRobin, _) => return self.content.steps.push(Step::Turn { cluster, name }),
            (Distribution::Sharded { fail_over, .. }, Some(sharding)) => (sharding, *fail_over),
            (Distribution::Copies | Distribution::Sharded { .. }, _) => {
                self.content.steps.extend(state.nodes.iter().map(|node| Step::Copy { node: *node, name }));
                return;
            }
        };
        let begin = self.content.owners.len();
        let key = key.filter(|_| state.distribution.follows_route_using()).unwrap_or(name);
        // Taken out, because the text is borrowed while it is written to.
        let mut owners = std::mem::take(&mut self.content.owners);
        sharding.owners(self.content.text(key).unwrap_or(&self.name), &mut owners);
        self.content.owners = owners;
        if fail_over {
            let count = (self.content.owners.len() - begin) as u8;
            self.content.steps.push(Step::Owners { cluster, name, key, begin: begin as u32, count });
            return;
        }
        let nodes = self.content.owners.drain(begin..).map(|member| state.nodes[usize::from(member)]);
        self.content.steps.extend(nodes.map(|node| Step::Copy { node, name }));
    }
}

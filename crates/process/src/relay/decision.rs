//! What becomes of the lines of one name: steps that need no rule looked at again.
//!
//! Most decisions are nothing but outputs, which `plain` has as a list. Steps that are not look at the line's rest
//! (`validate`), at who is up (`any_of`, `failover`, `dynamic`, `lb`), or hand the value to an aggregation rule.
//! Not here: which steps (`Router::decide`), and whether a decision is known already (`cache`).
//! Invariants: a line gives at most `COPIES_MAX` copies, and what is more is counted; the same decision with the same
//! endpoints up gives the same copies.

use model::OutputId;

use crate::sharding::key_hash;

use super::router::{Check, ClusterState, Router, can_be_sent};
use super::sieve::Candidates;
use super::{ClusterId, Sharing};

/// Most copies of one line.
pub const COPIES_MAX: usize = 128;

/// A line as the router sees it.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// What statements match: up to the first `;` or white space.
    pub name: &'a [u8],
    /// What `validate` looks at: tags if there are any, value and timestamp.
    pub rest: &'a [u8],
}

/// One thing that becomes of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act<'a> {
    /// A copy for an output.
    Copy {
        /// Whose queue it goes to.
        output: OutputId,
        /// Another name in place of the line's own.
        renamed: Option<&'a [u8]>,
    },
    /// Its value counts in a result.
    Feed {
        /// Place in [`Router::aggregation rules`].
        aggregation_rule: u16,
        /// Place in the aggregation rule's computes.
        compute: u16,
        /// The result's name.
        name: &'a [u8],
    },
    /// It did not pass a `validate`.
    Invalid {
        /// The user wants to see it.
        log: bool,
    },
}

/// How the walk through the statements ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// There were no more.
    Exhausted,
    /// At a `stop`, or it went straight to its clusters.
    Stopped,
    /// In the blackhole.
    Blackholed,
    /// It did not pass a `validate` that has nowhere to send it.
    Invalid,
}

/// What became of a line, in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routing {
    /// Copies that were handed out.
    pub copies: u32,
    /// Copies past [`COPIES_MAX`] that were not.
    pub copies_refused: u32,
    /// Results that it counts in.
    pub feeds: u32,
    /// Names that rewrites and aggregations made and that cannot be sent (see
    /// [`NAME_BYTES_MAX`](super::NAME_BYTES_MAX)); the name stayed what it was, or the result got nothing.
    pub names_refused: u32,
    /// Expressions whose search for the name, or for the rest of the line, gave up: see [`GaveUp`](super::GaveUp).
    pub gave_up: u32,
    /// How the walk ended.
    pub end: End,
}

/// What becomes of lines of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The outputs, when that is all there is to it: names unchanged, no more than [`COPIES_MAX`].
    plain: Option<Box<[OutputId]>>,
    content: Content,
}

/// All that a decision is made of, also while it is made: one that is known is not made again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Content {
    steps: Vec<Step>,
    /// Members that own keys: [`Step::Owners`] has ranges of it.
    placed: Vec<u16>,
    /// Names and keys that were made: ends in `bytes`.
    texts: Vec<u32>,
    bytes: Vec<u8>,
    end: End,
}

/// The name of a copy or the key of a cluster: 0 for the line's own name, else the text of that number, from 1.
type TextId = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Copy {
        output: OutputId,
        name: TextId,
    },
    /// To the `count` owners from `begin`, or those who stand in for them.
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
    /// Leaves out the `skip` steps that follow, or ends, unless the rest is found good.
    Check {
        check: Checked,
        skip: u32,
    },
    Feed {
        aggregation_rule: u16,
        compute: u16,
        name: TextId,
    },
    /// A name that was made and that cannot be sent: it is counted.
    NameRefused,
    /// A search that gave up: likewise.
    GaveUp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Checked {
    expression: u32,
    log: bool,
    ends: bool,
}

impl Decision {
    /// Outputs that get each line as it is, when nothing else becomes of it.
    #[inline]
    pub fn plain(&self) -> Option<&[OutputId]> {
        self.plain.as_deref()
    }

    /// Whether something looks at what stands behind the name: a `validate`, or an aggregation rule that wants the value.
    pub fn needs_rest(&self) -> bool {
        self.content.steps.iter().any(|step| matches!(step, Step::Check { .. } | Step::Feed { .. }))
    }

    pub(super) fn content(&self) -> &Content {
        &self.content
    }

    /// Tells each thing that becomes of a line of this name. `turn` counts lines: `lb` goes by it.
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

    /// The same of a line that only goes to outputs; none of others, for which nothing was done.
    #[inline]
    pub(super) fn run_plain<'a>(&'a self, act: &mut impl FnMut(Act<'a>)) -> Option<Routing> {
        let outputs = self.plain()?;
        outputs.iter().for_each(|output| act(Act::Copy { output: *output, renamed: None }));
        Some(Routing { copies: outputs.len() as u32, ..Routing::new(self.content.end) })
    }

    /// Most lines have no steps: these stay out of their way.
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
        let mut given = Given { once: router.statements.once, outputs: [OutputId(0); COPIES_MAX] };
        let mut at = 0;
        while let Some(step) = content.steps.get(at) {
            at += 1;
            match *step {
                Step::Copy { output, name } => routing.copy(&mut given, output, content.text(name), act),
                Step::FirstUp { cluster, name } => {
                    let cluster = &router.clusters[cluster.index()];
                    let output = cluster.outputs[cluster.first_up()];
                    routing.copy(&mut given, output, content.text(name), act);
                }
                Step::Turn { cluster, name } => {
                    let cluster = &router.clusters[cluster.index()];
                    let output = cluster.outputs[cluster.at_turn(turn)];
                    routing.copy(&mut given, output, content.text(name), act);
                }
                Step::Owners { cluster, name, key, begin, count } => {
                    let cluster = &router.clusters[cluster.index()];
                    let owners = &content.placed[begin as usize..][..usize::from(count)];
                    let key = content.text(key).unwrap_or(line.name);
                    cluster.owners_or_failovers(owners, key, |member, _| {
                        routing.copy(&mut given, cluster.outputs[member], content.text(name), act);
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

/// The outputs that have a copy of a line, where that counts.
struct Given {
    once: bool,
    /// As many as there are copies.
    outputs: [OutputId; COPIES_MAX],
}

impl Routing {
    fn new(end: End) -> Routing {
        Routing { copies: 0, copies_refused: 0, names_refused: 0, feeds: 0, gave_up: 0, end }
    }

    /// Tells of a copy, up to the limit.
    fn copy<'a>(
        &mut self,
        given: &mut Given,
        output: OutputId,
        renamed: Option<&'a [u8]>,
        act: &mut impl FnMut(Act<'a>),
    ) {
        let copies = self.copies as usize;
        if given.once && given.outputs[..copies].contains(&output) {
            return;
        }
        if copies == COPIES_MAX {
            self.copies_refused += 1;
            return;
        }
        given.outputs[copies] = output;
        self.copies += 1;
        act(Act::Copy { output, renamed });
    }
}

impl ClusterState {
    /// The first member that is up; the first of all when none is.
    pub(super) fn first_up(&self) -> usize {
        self.up.iter().position(|up| *up).unwrap_or(0)
    }

    /// The member whose turn it is, of those that are up, or of all when none is.
    pub(super) fn at_turn(&self, turn: u64) -> usize {
        let up = self.up.iter().filter(|up| **up).count();
        if up == 0 {
            return (turn % self.outputs.len() as u64) as usize;
        }
        let live = self.up.iter().enumerate().filter(|(_, up)| **up).map(|(at, _)| at);
        live.cycle().nth((turn % up as u64) as usize).expect("one is up")
    }

    /// Each owner of a key, or the member that stands in for it, with the owner: one that is up, owns no copy of the key
    /// itself and stands in for no other owner. When there is none, records wait for the owner.
    pub(super) fn owners_or_failovers(&self, owners: &[u16], key: &[u8], mut each: impl FnMut(usize, usize)) {
        let placed = self.placed.as_ref().expect("a cluster whose keys are placed");
        if owners.iter().all(|owner| self.up[usize::from(*owner)]) {
            owners.iter().for_each(|owner| each(usize::from(*owner), usize::from(*owner)));
            return;
        }
        let hash = key_hash(key);
        let mut taken = owners.to_vec();
        for owner in owners.iter().map(|owner| usize::from(*owner)) {
            let fail_over = if self.up[owner] { None } else { placed.fail_over(hash, &taken) };
            taken.extend(fail_over.map(|member| member as u16));
            each(fail_over.unwrap_or(owner), owner);
        }
    }
}

impl Default for Content {
    fn default() -> Content {
        let (steps, placed, texts, bytes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Content { steps, placed, texts, bytes, end: End::Exhausted }
    }
}

impl Content {
    /// The decision with this content, and no room for more.
    pub(super) fn decision(&self) -> Decision {
        let output = |step: &Step| match step {
            Step::Copy { output, name: 0 } => Some(*output),
            _ => None,
        };
        let plain = (self.steps.len() <= COPIES_MAX).then(|| self.steps.iter().map(output).collect());
        Decision { plain: plain.flatten(), content: self.clone() }
    }

    /// Memory of that decision outside the struct itself, at most.
    pub(super) fn heap_bytes(&self) -> usize {
        let plain = self.steps.len() * size_of::<OutputId>();
        size_of_val(&*self.steps)
            + size_of_val(&*self.placed)
            + size_of_val(&*self.texts)
            + self.bytes.len()
            + plain
    }

    /// A text that was made; none for the line's own name.
    fn text(&self, text: TextId) -> Option<&[u8]> {
        let at = text.checked_sub(1)? as usize;
        let begin = at.checked_sub(1).map_or(0, |before| self.texts[before] as usize);
        Some(&self.bytes[begin..self.texts[at] as usize])
    }

    fn clear(&mut self) {
        let Content { steps, placed, texts, bytes, end } = self;
        steps.clear();
        placed.clear();
        texts.clear();
        bytes.clear();
        *end = End::Exhausted;
    }
}

/// A decision in the making; its room is used again.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    /// As it is now.
    name: Vec<u8>,
    name_id: TextId,
    content: Content,
    /// Room for the rules that can match.
    pub(super) candidates: Candidates,
}

impl Draft {
    /// Begins with a name, and nothing of what was before.
    pub(super) fn begin(&mut self, name: &[u8]) {
        self.name.clear();
        self.name.extend_from_slice(name);
        self.name_id = 0;
        self.content.clear();
    }

    /// How the walk ended. Where an output gets a line once, copies that it has already go here as far as they can: those
    /// behind a check depend on the line.
    pub(super) fn finish(&mut self, end: End, once: bool) {
        self.content.end = end;
        let steps = &mut self.content.steps;
        if once && steps.iter().all(|step| matches!(step, Step::Copy { .. })) {
            let mut given: Vec<OutputId> = Vec::with_capacity(steps.len());
            steps.retain(|step| {
                let Step::Copy { output, .. } = step else { return true };
                let first = !given.contains(output);
                given.push(*output);
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

    /// Keeps a text.
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

    /// An expression's search came to a limit.
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

    /// Begins what a check can have left out; gives its place for [`Draft::checked`].
    pub(super) fn check(&mut self, check: Check, ends: bool) -> usize {
        let Check { expression, log } = check;
        self.content.steps.push(Step::Check { check: Checked { expression, log, ends }, skip: 0 });
        self.content.steps.len() - 1
    }

    /// Ends it.
    pub(super) fn checked(&mut self, at: usize) {
        let behind = (self.content.steps.len() - at - 1) as u32;
        if let Step::Check { skip, .. } = &mut self.content.steps[at] {
            *skip = behind;
        }
    }

    /// Copies for one cluster, placed by `key`, or else by the name.
    pub(super) fn send(&mut self, router: &Router, cluster: ClusterId, key: Option<TextId>) {
        let name = self.name_id;
        let state = &router.clusters[cluster.index()];
        let (placed, fail_over) = match (&state.sharing, &state.placed) {
            (Sharing::Failover, _) => return self.content.steps.push(Step::FirstUp { cluster, name }),
            (Sharing::Turns, _) => return self.content.steps.push(Step::Turn { cluster, name }),
            (Sharing::Placed { fail_over, .. }, Some(placed)) => (placed, *fail_over),
            (Sharing::Copies | Sharing::Placed { .. }, _) => {
                self.content
                    .steps
                    .extend(state.outputs.iter().map(|output| Step::Copy { output: *output, name }));
                return;
            }
        };
        let begin = self.content.placed.len();
        let key = key.filter(|_| state.sharing.watches_route_using()).unwrap_or(name);
        // `placed` is written to while the text is read.
        let mut owners = std::mem::take(&mut self.content.placed);
        placed.placed(self.content.text(key).unwrap_or(&self.name), &mut owners);
        self.content.placed = owners;
        if fail_over {
            let count = (self.content.placed.len() - begin) as u8;
            self.content.steps.push(Step::Owners { cluster, name, key, begin: begin as u32, count });
            return;
        }
        let outputs = self.content.placed.drain(begin..).map(|member| state.outputs[usize::from(member)]);
        self.content.steps.extend(outputs.map(|output| Step::Copy { output, name }));
    }
}

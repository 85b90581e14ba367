//! `clusters` of a relay: outputs and relays by name, and the sharding of points among them.
//!
//! Not here: hashing of keys (`process::sharding`), whether a relay can feed the outputs (`feeds`).

use foldhash::HashSet;
use model::{OutputId, TransformId};
use process::relay::{Distribution, Member, MemberNode, RelayCluster};
use process::sharding::{CarbonHash, Sharding};

use super::names::File;
use crate::address::host_port_text;
use crate::diagnostic::{Code, Diagnostic, Place, did_you_mean, listed};
use crate::native::endpoint_name;
use crate::native::fields::Fields;
use crate::native::value::{empty, repeated};
use crate::native::wiring::Named;
use crate::options::Section;
use crate::options::field::Words;
use crate::plan::{BLACKHOLE, Destination, Endpoint, Feed, OutputPlan, Plan};

/// Longest name of a cluster.
const NAME_BYTES_MAX: usize = 1024;

/// The value of `type` for a plan; `None` for rings of StatsD proxies, which relays do not have.
pub(super) fn distribution_word(distribution: &Distribution) -> Option<&'static str> {
    let mut plain = distribution.clone();
    if let Distribution::Sharded { sharding, replication, fail_over } = &mut plain {
        (*replication, *fail_over) = (1, *sharding == Sharding::AnyOf);
        if let Sharding::CarbonPython { diverse, .. } = sharding {
            *diverse = true;
        }
    }
    Distribution::word(&plain)
}

/// Clusters in the order of the file.
pub(super) fn read(
    file: File<'_>,
    fields: &Fields,
    relay: TransformId,
    plan: &Plan,
    wrong: &mut Vec<Diagnostic>,
) -> Vec<RelayCluster> {
    let members = Members { file, relay, plan };
    let mut clusters = Vec::new();
    let mut used: HashSet<MemberNode> = HashSet::default();
    let mut is_unclear = false;
    for (name, fields) in fields.named_tables("clusters") {
        let whose = &fields.whose;
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name == BLACKHOLE {
            let label = match &**name {
                BLACKHOLE => "this name is reserved for dropping points".to_owned(),
                _ => format!("1 to {NAME_BYTES_MAX} bytes"),
            };
            let message = format!("{whose} has an invalid name");
            wrong.push(Diagnostic::error(Code::BadName, message).at(fields.place).label(label));
        }
        let distribution = distribution(fields, wrong);
        let before = wrong.len();
        let (cluster_members, written) = members.of(fields, wrong);
        is_unclear |= wrong.len() > before || fields.other("to").is_none();
        used.extend(cluster_members.iter().map(|member| member.node));
        if wrong.len() == before {
            check_replication(fields, &distribution, cluster_members.len(), wrong);
            note_collision(whose, &distribution, &cluster_members, &written, wrong);
        }
        clusters.push(RelayCluster { name: name.clone(), members: cluster_members, distribution });
    }
    if !is_unclear {
        members.unused(&used, wrong);
    }
    clusters
}

fn distribution(fields: &Fields, wrong: &mut Vec<Diagnostic>) -> Distribution {
    let word = fields.word("type").unwrap_or("forward");
    let mut distribution = fields.value("type").unwrap_or(Distribution::Copies);
    let (is_ring, is_python) = (word.ends_with("_ch"), word.starts_with("python_"));
    let watched = [("replication", is_ring), ("dynamic", is_ring), ("diverse_replicas", is_python)];
    for (key, watched) in watched {
        if !watched && fields.word("type").is_some() {
            let message = format!("`{key}` of {} has no effect with type = \"{word}\"", fields.whose);
            fields.ignored(key, message, wrong);
        }
    }
    if let Distribution::Sharded { sharding, replication, fail_over } = &mut distribution
        && is_ring
    {
        *replication = fields.value("replication").unwrap_or(*replication);
        *fail_over = fields.value("dynamic").unwrap_or(*fail_over);
        if let Sharding::CarbonPython { diverse, .. } = sharding {
            *diverse = fields.value("diverse_replicas").unwrap_or(*diverse);
        }
    }
    distribution
}

fn check_replication(
    fields: &Fields,
    distribution: &Distribution,
    members: usize,
    wrong: &mut Vec<Diagnostic>,
) {
    let Distribution::Sharded { replication, .. } = distribution else { return };
    if usize::from(*replication) > members.max(1) {
        let message = format!("{} has fewer members than each point has copies", fields.whose);
        let label = format!("it has {members} {}", if members == 1 { "member" } else { "members" });
        fields.wrong("replication", Code::NoCluster, message, label, wrong);
    }
}

/// Some rings ignore ports: of two members on one host without instances, the second one gets nothing. Warns once for
/// each cluster.
fn note_collision(
    whose: &str,
    distribution: &Distribution,
    members: &[Member],
    written: &[(String, Place)],
    wrong: &mut Vec<Diagnostic>,
) {
    let Distribution::Sharded { sharding, .. } = distribution else { return };
    let (by_host, why) = match sharding {
        Sharding::CarbonPython { fast: false, hash: CarbonHash::Fnv1aCh, .. } => {
            (false, "this ring uses instances only")
        }
        Sharding::CarbonCh | Sharding::CarbonPython { fast: false, .. } => (true, "this ring ignores ports"),
        _ => return,
    };
    let mut seen = HashSet::default();
    let second = members.iter().position(|member| {
        member.instance.is_none() && !seen.insert(if by_host { member.host.as_str() } else { "" })
    });
    let Some(at) = second else { return };
    let member = &members[at];
    let (output, place) = &written[at];
    let message = format!(
        "two members of {whose} have the same position on the hash ring, and one of them gets nothing"
    );
    let address = host_port_text(&Endpoint { host: member.host.clone(), port: member.port });
    let hint = format!("{why}: give each an instance, here such as \"{output}/{address}=b\"");
    let diagnostic = Diagnostic::warning(Code::RingCollision, message).at(*place);
    wrong.push(diagnostic.label(format!("{address} gets nothing")).hint(hint));
}

/// The outputs and relays that take from one relay.
struct Members<'a> {
    file: File<'a>,
    relay: TransformId,
    plan: &'a Plan,
}

impl<'a> Members<'a> {
    /// The members in `to` of a cluster, with the section and the entry of each.
    fn of(&self, fields: &Fields, wrong: &mut Vec<Diagnostic>) -> (Vec<Member>, Vec<(String, Place)>) {
        let (whose, texts) = (&fields.whose, fields.texts("to"));
        if fields.other("to").is_some() && texts.is_empty() {
            wrong.push(empty("to", fields.at("to")));
        }
        let mut members: Vec<Member> = Vec::with_capacity(texts.len());
        let mut written = Vec::with_capacity(texts.len());
        for (text, place) in texts {
            let (name, instance) = match text.split_once('=') {
                Some((name, instance)) => (name, Some(instance)),
                None => (&**text, None),
            };
            let found = match self.found(whose, name, *place) {
                Ok(found) => found,
                Err(diagnostic) => {
                    wrong.push(diagnostic);
                    continue;
                }
            };
            if instance.is_some_and(str::is_empty) || instance.is_some() && found.len() > 1 {
                let message = format!("{whose} has an invalid instance");
                let label = if found.len() > 1 {
                    format!("`{name}` has {} endpoints: write `{name}/host:port=INSTANCE`", found.len())
                } else {
                    "no instance after `=`".to_owned()
                };
                wrong.push(Diagnostic::error(Code::NoCluster, message).at(*place).label(label));
                continue;
            }
            for node in found {
                let (host, port) = self.host_and_port(node);
                let instance = instance.map(str::to_owned);
                if members.iter().any(|known| known.node == node && known.instance == instance) {
                    wrong.push(repeated("to", *place));
                    break;
                }
                members.push(Member { node, host, port, instance });
                written.push((self.section_of(node).to_owned(), *place));
            }
        }
        (members, written)
    }

    /// The host and port of a node in the hash ring.
    fn host_and_port(&self, node: MemberNode) -> (String, u16) {
        match node {
            MemberNode::Output(id) => host_and_port(&self.plan.outputs[id.index()]),
            MemberNode::Relay(id) => (self.plan.transforms[id.index()].name.clone(), 0),
        }
    }

    /// The name of a node's section.
    fn section_of(&self, node: MemberNode) -> &str {
        match node {
            MemberNode::Output(id) => {
                let section = self.file.outputs().find(|(_, made)| made.contains(&id.index()));
                section.map_or("", |(named, _)| &*named.name)
            }
            MemberNode::Relay(id) => &self.plan.transforms[id.index()].name,
        }
    }

    /// The relay with a name, whether it takes from this one or not.
    fn relay_of(&self, name: &str) -> Option<(&'a Named, TransformId)> {
        let named = self.file.named.iter();
        let mut named = named.filter(|named| named.section == Some(Section::TransformRelay));
        let id = self.plan.transforms.iter().position(|transform| transform.name == name)?;
        Some((named.find(|named| named.name == name)?, TransformId(id as u16)))
    }

    fn takes(&self, relay: TransformId) -> bool {
        self.plan.transforms[relay.index()].from.contains(&Feed::Transform(self.relay))
    }

    /// The nodes with a name, in their order. If an output and a relay have the same name, the one that takes from this
    /// relay.
    fn found(&self, whose: &str, name: &str, place: Place) -> Result<Vec<MemberNode>, Diagnostic> {
        let output = |at: usize| MemberNode::Output(OutputId(at as u16));
        let section = self.file.outputs().find(|(named, _)| named.name == name);
        // An unreadable section has been reported, and so has an edge from the relay that carries no records.
        let is_fed = |(named, made): &(&Named, std::ops::Range<usize>)| {
            let names_relay = || {
                let relay = &self.plan.transforms[self.relay.index()].name;
                named.from().iter().any(|(from, _)| from == relay)
            };
            made.is_empty() || self.is_fed(&self.plan.outputs[made.start]) || names_relay()
        };
        let relay = self.relay_of(name);
        let fed_relay = relay.filter(|(_, id)| self.takes(*id));
        if let Some((named, made)) = section {
            let fed = is_fed(&(named, made.clone()));
            return match fed_relay {
                Some(_) if fed => Err(both(whose, name, place)),
                Some((_, id)) => Ok(vec![MemberNode::Relay(id)]),
                None if fed => Ok(made.map(output).collect()),
                None => Err(self.not_fed(whose, named, place)),
            };
        }
        if let Some((named, id)) = relay {
            let node = MemberNode::Relay(id);
            return if self.takes(id) { Ok(vec![node]) } else { Err(self.not_fed(whose, named, place)) };
        }
        for (named, made) in self.file.outputs() {
            let endpoint = |at: &usize| {
                let one = &self.plan.outputs[*at];
                let alone = || one.kind.destination().map(|to| endpoint_name(&named.name, &to));
                one.name == name || made.len() == 1 && alone().as_deref() == Some(name)
            };
            if let Some(at) = made.clone().find(endpoint) {
                let fed = self.is_fed(&self.plan.outputs[at]);
                return if fed { Ok(vec![output(at)]) } else { Err(self.not_fed(whose, named, place)) };
            }
        }
        Err(self.unknown(whose, name, place))
    }

    fn is_fed(&self, output: &OutputPlan) -> bool {
        output.from.contains(&Feed::Transform(self.relay))
    }

    fn not_fed(&self, whose: &str, named: &Named, place: Place) -> Diagnostic {
        let relay = &self.plan.transforms[self.relay.index()].name;
        let node = named.family.one();
        let message = format!("{whose} names {} {node} that does not read from the relay", article(node));
        let label = format!("`from` of {} does not name `{relay}`", named.whose);
        let hint = format!("write from = [\"{relay}\"] there");
        Diagnostic::error(Code::NoCluster, message).at(place).label(label).hint(hint)
    }

    fn unknown(&self, whose: &str, name: &str, place: Place) -> Diagnostic {
        let outputs = self.file.outputs().map(|(named, _)| &*named.name);
        let relays = self.plan.relays().filter(|(id, ..)| self.takes(*id));
        let names: Vec<&str> = outputs.chain(relays.map(|(_, relay, _)| &*relay.name)).collect();
        let of = self.plan.outputs.iter().filter(|output| self.is_fed(output)).map(|output| &*output.name);
        let hint = did_you_mean(name, names.iter().copied().chain(of));
        if self.plan.transforms.iter().any(|transform| transform.name == name) {
            let message = format!("{whose} names a transform that is no relay");
            let diagnostic = Diagnostic::error(Code::NoCluster, message).at(place);
            return diagnostic.label("a cluster has outputs and relays");
        }
        if let Some((output, endpoint)) = name.split_once('/').filter(|(output, _)| names.contains(output)) {
            let message = format!("{whose} names an endpoint that output `{output}` does not have");
            let before = format!("{output}/");
            let endpoints = self.plan.outputs.iter().filter_map(|output| output.name.strip_prefix(&before));
            let endpoints: Vec<&str> = endpoints.collect();
            let hint = did_you_mean(endpoint, endpoints.iter().copied());
            let mistake = Diagnostic::error(Code::UnknownReference, message).at(place);
            return Diagnostic { hint, ..mistake.label(listed("endpoints", &endpoints)) };
        }
        let message = format!("{whose} names a node that does not exist");
        let mistake = Diagnostic::error(Code::UnknownReference, message).at(place);
        Diagnostic { hint, ..mistake.label(listed("nodes", &names)) }
    }

    /// Warns about outputs and relays that take from the relay and are in no cluster.
    fn unused(&self, used: &HashSet<MemberNode>, wrong: &mut Vec<Diagnostic>) {
        let relay = &self.plan.transforms[self.relay.index()].name;
        let mut warn = |named: &Named, name: &str| {
            let node = named.family.one();
            let message = format!("no cluster of transform `{relay}` names {node} `{name}`");
            let diagnostic = Diagnostic::warning(Code::Unused, message).at(named.place);
            let hint = format!("name \"{name}\" in the `to` of a cluster");
            wrong.push(diagnostic.label(format!("gets nothing from `{relay}`")).hint(hint));
        };
        for (named, made) in self.file.outputs() {
            let is_used = |at: &usize| used.contains(&MemberNode::Output(OutputId(*at as u16)));
            let idle = |at: &usize| !is_used(at) && self.is_fed(&self.plan.outputs[*at]);
            if let Some(first) = made.clone().find(idle) {
                warn(named, &self.plan.outputs[first].name);
            }
        }
        for (id, transform, _) in self.plan.relays() {
            if self.takes(id) && !used.contains(&MemberNode::Relay(id)) {
                let named = self.relay_of(&transform.name).map(|(named, _)| named);
                named.into_iter().for_each(|named| warn(named, &transform.name));
            }
        }
    }
}

fn both(whose: &str, name: &str, place: Place) -> Diagnostic {
    let message = format!("{whose} could mean the output `{name}` or the transform `{name}`");
    let diagnostic = Diagnostic::error(Code::DuplicateName, message).at(place);
    diagnostic.label("both read from the relay").hint("rename one of the two")
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

/// The host and port of an output in the hash ring.
fn host_and_port(output: &OutputPlan) -> (String, u16) {
    if let Some(to) = output.kind.destination().as_ref().and_then(Destination::host) {
        return (to.host.clone(), to.port);
    }
    // `feeds` reports outputs that are not files either.
    let file = output.kind.file().map(|(path, _)| path.to_string_lossy().into_owned());
    (file.unwrap_or_else(|| output.name.clone()), 0)
}

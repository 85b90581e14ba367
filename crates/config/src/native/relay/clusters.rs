//! `clusters` of a relay: outputs by name, and how points are shared out among them.
//!
//! Not here: where a key lies (`process::sharding`), whether the outputs are such as a relay can feed (`feeds`).

use foldhash::HashSet;
use model::{OutputId, TransformId};
use process::relay::{Distribution, Member, RelayCluster};
use process::sharding::{CarbonHash, Sharding};

use super::{BLACKHOLE, File};
use crate::address::host_port_text;
use crate::diagnostic::{Code, Diagnostic, Place, did_you_mean, listed};
use crate::native::endpoint_name;
use crate::native::fields::Fields;
use crate::native::value::{empty, repeated};
use crate::native::wiring::Named;
use crate::options::field::Words;
use crate::plan::{Destination, Endpoint, Feed, OutputPlan, Plan};

/// Longest name of a cluster.
const NAME_BYTES_MAX: usize = 1024;

/// The word of `type` for a plan; none for rings of StatsD's proxies, which no relay has.
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
    let mut used = vec![false; plan.outputs.len()];
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
        cluster_members.iter().for_each(|member| used[member.output.index()] = true);
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

/// Some rings do not look at ports: of two members on one host without instances the second one gets nothing. Told once
/// for each cluster.
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

/// The outputs that take from one relay.
struct Members<'a> {
    file: File<'a>,
    relay: TransformId,
    plan: &'a Plan,
}

impl Members<'_> {
    /// The members that `to` of a cluster names, and for each the output's section and the entry that names it.
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
            for id in found {
                let output = &self.plan.outputs[id.index()];
                let (host, port) = host_and_port(output);
                let instance = instance.map(str::to_owned);
                if members.iter().any(|known| known.output == id && known.instance == instance) {
                    wrong.push(repeated("to", *place));
                    break;
                }
                members.push(Member { output: id, host, port, instance });
                let section = self.file.outputs().find(|(_, made)| made.contains(&id.index()));
                written.push((section.map_or("", |(named, _)| &*named.name).to_owned(), *place));
            }
        }
        (members, written)
    }

    /// The outputs of a name, in their order.
    fn found(&self, whose: &str, name: &str, place: Place) -> Result<Vec<OutputId>, Diagnostic> {
        let ids = |made: std::ops::Range<usize>| made.map(|at| OutputId(at as u16)).collect::<Vec<_>>();
        let section = self.file.outputs().find(|(named, _)| named.name == name);
        if let Some((named, made)) = section {
            // One that could not be read has been told of.
            let fed = made.is_empty() || self.is_fed(&self.plan.outputs[made.start]);
            return if fed { Ok(ids(made)) } else { Err(self.not_fed(whose, named, place)) };
        }
        for (named, made) in self.file.outputs() {
            let endpoint = |at: &usize| {
                let output = &self.plan.outputs[*at];
                let alone = || output.kind.destination().map(|to| endpoint_name(&named.name, &to));
                output.name == name || made.len() == 1 && alone().as_deref() == Some(name)
            };
            if let Some(at) = made.clone().find(endpoint) {
                let fed = self.is_fed(&self.plan.outputs[at]);
                return if fed { Ok(ids(at..at + 1)) } else { Err(self.not_fed(whose, named, place)) };
            }
        }
        Err(self.unknown(whose, name, place))
    }

    fn is_fed(&self, output: &OutputPlan) -> bool {
        output.from.contains(&Feed::Transform(self.relay))
    }

    fn not_fed(&self, whose: &str, named: &Named, place: Place) -> Diagnostic {
        let relay = &self.plan.transforms[self.relay.index()].name;
        let message = format!("{whose} names an output that does not read from the relay");
        let label = format!("`from` of {} does not name `{relay}`", named.whose);
        let hint = format!("write from = [\"{relay}\"] there");
        Diagnostic::error(Code::NoCluster, message).at(place).label(label).hint(hint)
    }

    fn unknown(&self, whose: &str, name: &str, place: Place) -> Diagnostic {
        let names: Vec<&str> = self.file.outputs().map(|(named, _)| &*named.name).collect();
        let of = self.plan.outputs.iter().filter(|output| self.is_fed(output)).map(|output| &*output.name);
        let hint = did_you_mean(name, names.iter().copied().chain(of));
        let message = format!("{whose} names an output that does not exist");
        let mistake = Diagnostic::error(Code::UnknownReference, message).at(place);
        Diagnostic { hint, ..mistake.label(listed("outputs", &names)) }
    }

    /// Warns of outputs that take from the relay and are in no cluster.
    fn unused(&self, used: &[bool], wrong: &mut Vec<Diagnostic>) {
        for (named, made) in self.file.outputs() {
            let idle = |at: &usize| !used[*at] && self.is_fed(&self.plan.outputs[*at]);
            let Some(first) = made.clone().find(idle) else { continue };
            let relay = &self.plan.transforms[self.relay.index()].name;
            let output = &self.plan.outputs[first].name;
            let message = format!("no cluster of transform `{relay}` names output `{output}`");
            let diagnostic = Diagnostic::warning(Code::Unused, message).at(named.place);
            let hint = format!("name \"{output}\" in the `to` of a cluster");
            wrong.push(diagnostic.label("gets nothing").hint(hint));
        }
    }
}

/// What sharding knows an output as.
fn host_and_port(output: &OutputPlan) -> (String, u16) {
    if let Some(to) = output.kind.destination().as_ref().and_then(Destination::host) {
        return (to.host.clone(), to.port);
    }
    // `feeds` reports outputs that are no file either.
    let file = output.kind.file().map(|(path, _)| path.to_string_lossy().into_owned());
    (file.unwrap_or_else(|| output.name.clone()), 0)
}

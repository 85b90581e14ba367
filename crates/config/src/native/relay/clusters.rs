//! `clusters` of a relay: outputs by name, and how points are shared out among them.
//!
//! Not here: where a key lies (`process::sharding`), whether the outputs are such as a relay can feed (`feeds`).

use foldhash::HashSet;
use model::{OutputId, TransformId};
use process::relay::{Distribution, Member, RelayCluster};
use process::sharding::{CarbonHash, Sharding};

use super::{BLACKHOLE, File};
use crate::address::{destination_name, host_port_text};
use crate::diagnostic::{Code, Diagnostic, Place, nearest};
use crate::native::fields::{Fields, table};
use crate::native::value::{Checked, empty, repeated};
use crate::native::wiring::Named;
use crate::options::Section;
use crate::options::field::Words;
use crate::plan::{Destination, Endpoint, Feed, OutputKind, OutputPlan, Plan};

/// Most clusters of one relay.
const CLUSTERS_MAX: usize = 10_000;

/// Longest name of a cluster.
const NAME_BYTES_MAX: usize = 1024;

/// The word of `type` for a plan; none for rings of StatsD's proxies, which no relay has.
pub(in crate::native) fn distribution_word(distribution: &Distribution) -> Option<&'static str> {
    let mut plain = distribution.clone();
    if let Distribution::Sharded { sharding, replication, fail_over } = &mut plain {
        (*replication, *fail_over) = (1, *sharding == Sharding::AnyOf);
        if let Sharding::CarbonPython { diverse, .. } = sharding {
            *diverse = true;
        }
    }
    Distribution::word(&plain)
}

/// Where a cluster stands in the file.
pub(super) struct ClusterPlaces {
    pub(super) name: Place,
    pub(super) to: Place,
    pub(super) replication: Option<Place>,
}

/// Clusters in the order of the file, and where they stand.
pub(super) fn read(
    file: File<'_>,
    (named, fields): (&Named, &Fields),
    id: TransformId,
    plan: &Plan,
    wrong: &mut Vec<Diagnostic>,
) -> (Vec<RelayCluster>, Vec<ClusterPlaces>) {
    let members = Members::new(file, id, plan);
    let (mut clusters, mut places) = (Vec::new(), Vec::new());
    let entries = fields.node("clusters").and_then(|node| table("clusters", node, wrong)).unwrap_or_default();
    if let Some(past) = entries.get(CLUSTERS_MAX) {
        let message = format!("{} has {} clusters", named.whose, entries.len());
        let label = format!("at most {CLUSTERS_MAX}");
        wrong.push(Diagnostic::error(Code::TooMany, message).at(past.key_place).label(label));
    }
    let mut used = vec![false; plan.outputs.len()];
    let mut is_unclear = false;
    for entry in entries.iter().take(CLUSTERS_MAX) {
        let whose = format!("cluster `{}` of {}", entry.key, named.whose);
        let fits = !entry.key.is_empty() && entry.key.len() <= NAME_BYTES_MAX && entry.key != BLACKHOLE;
        if !fits {
            let label = match &*entry.key {
                BLACKHOLE => "this name is reserved for dropping points".to_owned(),
                _ => format!("1 to {NAME_BYTES_MAX} bytes"),
            };
            let message = format!("{whose} has an invalid name");
            wrong.push(Diagnostic::error(Code::BadName, message).at(entry.key_place).label(label));
        }
        let Some(entries) = table(&entry.key, &entry.node, wrong) else { continue };
        let fields = Fields::read(Section::RelayCluster, &whose, entry.key_place, entries, wrong);
        let distribution = distribution(&whose, &fields, wrong);
        let before = wrong.len();
        let (cluster_members, written) = members.of(&whose, &fields, wrong);
        is_unclear |= wrong.len() > before || fields.other("to").is_none();
        cluster_members.iter().for_each(|member| used[member.output.index()] = true);
        let at = ClusterPlaces {
            name: entry.key_place,
            to: fields.place_of("to").unwrap_or(entry.key_place),
            replication: fields.place_of("replication"),
        };
        if wrong.len() == before {
            check_replication(&whose, &distribution, cluster_members.len(), &at, wrong);
            note_collision(&whose, &distribution, &cluster_members, &written, wrong);
        }
        clusters.push(RelayCluster { name: entry.key.clone(), members: cluster_members, distribution });
        places.push(at);
    }
    if !is_unclear {
        members.unused(&used, wrong);
    }
    (clusters, places)
}

fn distribution(whose: &str, fields: &Fields, wrong: &mut Vec<Diagnostic>) -> Distribution {
    let word = fields.word("type").unwrap_or("forward");
    let mut distribution = fields.value("type").unwrap_or(Distribution::Copies);
    let (is_ring, is_python) = (word.ends_with("_ch"), word.starts_with("python_"));
    let watched = [("replication", is_ring), ("dynamic", is_ring), ("diverse_replicas", is_python)];
    for (key, watched) in watched {
        if !watched && fields.word("type").is_some() {
            let message = format!("`{key}` of {whose} has no effect with type = \"{word}\"");
            fields.ignored(key, message, wrong);
        }
    }
    if let Distribution::Sharded { sharding, replication, fail_over } = &mut distribution
        && is_ring
    {
        let written = fields.value("replication");
        Fields::set(replication, written);
        Fields::set(fail_over, fields.value("dynamic"));
        if let Sharding::CarbonPython { diverse, .. } = sharding {
            Fields::set(diverse, fields.value("diverse_replicas"));
        }
    }
    distribution
}

fn check_replication(
    whose: &str,
    distribution: &Distribution,
    members: usize,
    at: &ClusterPlaces,
    wrong: &mut Vec<Diagnostic>,
) {
    let Distribution::Sharded { replication, .. } = distribution else { return };
    if usize::from(*replication) > members.max(1) {
        let message = format!("{whose} has fewer members than each point has copies");
        let label = match members {
            1 => "it has 1 member".to_owned(),
            members => format!("it has {members} members"),
        };
        let place = at.replication.unwrap_or(at.name);
        wrong.push(Diagnostic::error(Code::NoCluster, message).at(place).label(label));
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

impl<'a> Members<'a> {
    fn new(file: File<'a>, relay: TransformId, plan: &'a Plan) -> Members<'a> {
        Members { file, relay, plan }
    }

    /// The members that `to` of a cluster names, and for each the output's section and the entry that names it.
    fn of(
        &self,
        whose: &str,
        fields: &Fields,
        wrong: &mut Vec<Diagnostic>,
    ) -> (Vec<Member>, Vec<(String, Place)>) {
        let Some(Checked::Texts(texts)) = fields.other("to") else { return Default::default() };
        if texts.is_empty() {
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
                let alone =
                    || endpoint_of(output).map(|to| format!("{}/{}", named.name, destination_name(&to)));
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
        const SHOWN_MAX: usize = 8;
        let names: Vec<&str> = self.file.outputs().map(|(named, _)| &*named.name).collect();
        let of = self.plan.outputs.iter().filter(|output| self.is_fed(output)).map(|output| &*output.name);
        let all: Vec<&str> = names.iter().copied().chain(of).collect();
        let label = match &names[..names.len().min(SHOWN_MAX)] {
            [] => "there are no outputs".to_owned(),
            shown if names.len() > SHOWN_MAX => {
                format!("outputs are: {}, … ({} in all)", shown.join(", "), names.len())
            }
            shown => format!("outputs are: {}", shown.join(", ")),
        };
        let message = format!("{whose} names an output that does not exist");
        let diagnostic = Diagnostic::error(Code::UnknownReference, message).at(place).label(label);
        let near = nearest(name, all.into_iter()).map(|near| format!("did you mean \"{near}\"?"));
        Diagnostic { hint: near, ..diagnostic }
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
    match &output.kind {
        OutputKind::GraphiteFile { path, .. } => (path.to_string_lossy().into_owned(), 0),
        _ => match endpoint_of(output) {
            Some(Destination::Tcp(to) | Destination::Udp(to)) => {
                let Endpoint { host, port } = to;
                (host, port)
            }
            // `feeds` tells that no relay feeds such an output.
            _ => (output.name.clone(), 0),
        },
    }
}

fn endpoint_of(output: &OutputPlan) -> Option<Destination> {
    match &output.kind {
        OutputKind::Graphite { to, .. } => Some(Destination::Tcp(to.clone())),
        OutputKind::GraphiteDatagrams { to, .. } => Some(Destination::Udp(to.clone())),
        _ => None,
    }
}

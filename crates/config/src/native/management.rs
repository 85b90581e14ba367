//! `[management]` and `[[management]]`: the StatsD management ports.

use super::conflicts::Claims;
use super::fields::Fields;
use crate::diagnostic::{Code, Diagnostic, did_you_mean, listed};
use crate::exposure;
use crate::options::Section;
use crate::options::checked::Checked;
use crate::plan::{ClusterPlan, ManagementPlan, ManagementReplies, Plan};

/// Reads all ports. `whole` is false when a cluster could not be read.
pub(super) fn read(
    top: &Fields,
    plan: &mut Plan,
    whole: bool,
    claims: &mut Claims,
    wrong: &mut Vec<Diagnostic>,
) {
    for fields in top.tables("management") {
        let mut management: ManagementPlan = fields.read();
        match fields.value("listen") {
            Some(listen) => management.listen = listen,
            None if fields.place_of("listen").is_some() => continue,
            None => {}
        }
        management.replies = match fields.word("replies") {
            Some("perl") => ManagementReplies::Perl,
            Some("proxy") if !whole => continue,
            Some("proxy") => match proxied(fields, &plan.clusters, wrong) {
                Some(cluster) => ManagementReplies::Proxy { cluster },
                None => continue,
            },
            _ => ManagementReplies::Node,
        };
        if fields.word("replies") != Some("proxy") {
            fields.ignored("cluster", "`cluster` has no effect without replies = \"proxy\"", wrong);
        }
        let place = fields.at("listen");
        fields.peer_has_no_more(management.connections_max, "max_connections", wrong);
        wrong.extend(exposure::management(&management).map(|warning| warning.at(place)));
        claims.tcp("a management port", management.listen, Some(place));
        plan.management.push(management);
    }
}

/// The cluster of a management port with `replies = "proxy"`.
fn proxied(fields: &Fields, clusters: &[ClusterPlan], wrong: &mut Vec<Diagnostic>) -> Option<usize> {
    let names: Vec<&str> = clusters.iter().map(|cluster| &*cluster.name).collect();
    let list = || match names.as_slice() {
        [] => "there is no output with a `sharding` other than \"copy\"".to_owned(),
        _ => listed("clusters", &names),
    };
    let Some(name) = fields.value::<String>("cluster") else {
        if fields.place_of("cluster").is_none() && names.len() != 1 {
            let message = "`replies = \"proxy\"` needs `cluster`";
            fields.wrong("replies", Code::MissingKey, message, list(), wrong);
        }
        return (names.len() == 1).then_some(0);
    };
    let found = names.iter().position(|known| *known == name);
    if found.is_none() {
        let mistake = Diagnostic::error(Code::UnknownReference, "`cluster` names no cluster");
        let mistake = mistake.at(fields.at("cluster")).label(list());
        wrong.push(Diagnostic { hint: did_you_mean(&name, names.iter().copied()), ..mistake });
    }
    found
}

/// The section of a port.
pub(super) fn fields(plan: &Plan, management: &ManagementPlan) -> Fields {
    let mut fields = Fields::empty(Section::Management);
    if management.listen != ManagementPlan::default().listen {
        fields.give_value("listen", Checked::Address(management.listen));
    }
    match management.replies {
        ManagementReplies::Node => {}
        ManagementReplies::Perl => fields.give_value("replies", Checked::Word("perl")),
        ManagementReplies::Proxy { cluster } => {
            fields.give_value("replies", Checked::Word("proxy"));
            let name = plan.clusters.get(cluster).map(|cluster| cluster.name.clone());
            fields.give_value("cluster", Checked::Text(name.unwrap_or_default()));
        }
    }
    fields.give_table(management);
    fields
}

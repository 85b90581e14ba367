//! Resolves server names when a relay starts: the members of `useall`, and servers that turn out to be the same
//! (spec graphite §2.4).
//!
//! Path: a [`RelayConf`] -> [`names`] (the caller resolves them) -> **[`with_addresses`]** -> a [`RelayConf`] in which
//! every address of a `useall` is a server of its own, as if it had been written.
//! Not here: the lookups and their timeouts (`staunch`). Other names are not replaced: the relay resolves them again
//! while it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::document::{Cluster, ClusterKind, Proto, RelayConf, Server};
use super::host::bracketed;
use config::diagnostic::{Code, Diagnostic};

/// Result of resolving a name: its addresses in the system's order, or why there are none.
pub type Known<'a> = &'a dyn Fn(&str) -> Result<Vec<IpAddr>, String>;

/// The names of servers, each once.
pub fn names(conf: &RelayConf) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    let hosts = conf.servers.iter().map(|server| &*server.host);
    hosts.filter(|host| host.parse::<IpAddr>().is_err() && seen.insert(*host)).collect()
}

/// The names of servers in clusters with `useall`, each once: test mode resolves only those.
pub fn names_of_use_all(conf: &RelayConf) -> Vec<&str> {
    let members = conf.clusters.iter().filter_map(|cluster| match &cluster.kind {
        ClusterKind::Servers { use_all: true, members, .. } => Some(members),
        ClusterKind::Servers { .. } | ClusterKind::File { .. } => None,
    });
    let hosts: BTreeSet<&str> = members.flatten().map(|at| &*conf.servers[*at].host).collect();
    names(conf).into_iter().filter(|name| hosts.contains(name)).collect()
}

/// The document with each address of a `useall` as a member, and warnings: about names without addresses, which stay one
/// member each, and about servers that are the same under two names.
pub fn with_addresses(conf: &RelayConf, known: Known<'_>) -> (RelayConf, Vec<Diagnostic>) {
    let (conf, mut wrong) = with_all_used(conf, known);
    wrong.extend(shared(&conf.servers, known));
    (conf, wrong)
}

/// As [`with_addresses`], for `useall` alone. If all names resolve, the cluster has the addresses, and no `useall`.
pub fn with_all_used(conf: &RelayConf, known: Known<'_>) -> (RelayConf, Vec<Diagnostic>) {
    let mut wrong = Vec::new();
    let mut conf = conf.clone();
    let RelayConf { clusters, servers, .. } = &mut conf;
    let places = servers.iter().enumerate().map(|(at, server)| (place(server), at));
    // The first of equal ones counts.
    let mut places: BTreeMap<Place, usize> = places.rev().collect();
    for Cluster { name, kind, .. } in clusters {
        let ClusterKind::Servers { use_all: use_all @ true, members, .. } = kind else { continue };
        let (mut all, mut seen) = (Vec::with_capacity(members.len()), BTreeSet::new());
        *use_all = false;
        for at in &*members {
            let of_one = addresses_of(*at, servers, &mut places, known).unwrap_or_else(|why| {
                *use_all = true;
                let host = &servers[*at].host;
                let message = format!("`useall` of cluster `{name}`: `{host}` has no addresses: {why}");
                let hint = "it is one member until the next reload that finds them";
                wrong.push(Diagnostic::warning(Code::ImportBadValue, message).hint(hint));
                vec![*at]
            });
            all.extend(of_one.into_iter().filter(|at| seen.insert(*at)));
        }
        *members = all;
    }
    forget_unused(&mut conf);
    (conf, wrong)
}

/// What two servers may not have in common.
type Place = (String, u16, Proto);

fn place(server: &Server) -> Place {
    (server.host.clone(), server.port, server.proto)
}

/// Servers for all addresses of the server at `at`; missing ones are added.
fn addresses_of(
    at: usize,
    servers: &mut Vec<Server>,
    places: &mut BTreeMap<Place, usize>,
    known: Known<'_>,
) -> Result<Vec<usize>, String> {
    let named = servers[at].clone();
    if named.host.parse::<IpAddr>().is_ok() {
        return Ok(vec![at]);
    }
    let addresses = known(&named.host)?;
    if addresses.is_empty() {
        return Err("none were found".to_owned());
    }
    let one = |address: IpAddr| {
        let server = Server { host: address.to_string(), ..named.clone() };
        *places.entry(place(&server)).or_insert_with(|| {
            servers.push(server);
            servers.len() - 1
        })
    };
    Ok(addresses.into_iter().map(one).collect())
}

/// Removes servers whose names were only members of `useall`.
fn forget_unused(conf: &mut RelayConf) {
    let RelayConf { clusters, servers, .. } = conf;
    let mut kept: Vec<Option<usize>> = vec![None; servers.len()];
    clusters.iter().flat_map(|cluster| cluster.kind.members()).for_each(|at| kept[*at] = Some(0));
    kept.iter_mut().flatten().enumerate().for_each(|(next, place)| *place = next);
    let mut places = kept.iter();
    servers.retain(|_| places.next().is_some_and(Option::is_some));
    for cluster in clusters {
        if let ClusterKind::Servers { members, .. } = &mut cluster.kind {
            members.iter_mut().for_each(|at| *at = kept[*at].expect("a member is used"));
        }
    }
}

/// A warning for each server with the same first address as an earlier one.
fn shared(servers: &[Server], known: Known<'_>) -> Vec<Diagnostic> {
    let first =
        |server: &Server| server.host.parse().ok().or_else(|| known(&server.host).ok()?.first().copied());
    let mut wrong = Vec::new();
    let mut seen: BTreeMap<(IpAddr, u16, Proto), &Server> = BTreeMap::new();
    for server in servers {
        let Some(address) = first(server) else { continue };
        let other = *seen.entry((address, server.port, server.proto)).or_insert(server);
        if std::ptr::eq(other, server) {
            continue;
        }
        let place = |host: &str| format!("{}:{}", bracketed(host), server.port);
        let message = format!(
            "`{}` and `{}` are one server, {}",
            place(&other.host),
            place(&server.host),
            place(&address.to_string())
        );
        let hint = "each name has a queue and a connection of its own here; the original has one for both";
        wrong.push(Diagnostic::warning(Code::ServerShared, message).hint(hint));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relay::{Form, Surroundings, print, read_text};

    fn known(name: &str) -> Result<Vec<IpAddr>, String> {
        let addresses: &[&str] = match name {
            "two" => &["10.0.0.1", "fe80::1"],
            "one" => &["10.0.0.1"],
            "none" => &[],
            _ => return Err("nobody knows it".into()),
        };
        Ok(addresses.iter().map(|address| address.parse().expect("an address")).collect())
    }

    fn owned(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    /// Each cluster with its members, and the warnings.
    fn resolved(text: &str) -> (Vec<String>, Vec<String>) {
        let conf = read_text("t", text).conf.expect("the configuration is valid");
        let (conf, wrong) = with_addresses(&conf, &known);
        let members = |cluster: &Cluster| {
            let server = |at: &usize| format!("{} {}", conf.servers[*at].host, conf.servers[*at].port);
            cluster.kind.members().iter().map(server).collect::<Vec<_>>().join(", ")
        };
        let used = |at: usize| conf.clusters.iter().any(|cluster| cluster.kind.members().contains(&at));
        assert!((0..conf.servers.len()).all(used), "{text}");
        let again = print(&conf, &Surroundings { port: 2003, prefix: None, form: Form::Readable });
        assert!(read_text("again", &again).conf.is_some(), "{again}");
        (conf.clusters.iter().map(members).collect(), wrong.into_iter().map(|wrong| wrong.message).collect())
    }

    #[test]
    fn every_address_of_useall_is_a_member() {
        let one_server = "`10.0.0.1:1` and `one:1` are one server, 10.0.0.1:1";
        let table: &[(&str, &[&str], &[&str])] = &[
            ("cluster a forward two:1;", &["two 1"], &[]),
            ("cluster a forward useall two:1;", &["10.0.0.1 1, fe80::1 1"], &[]),
            (
                "cluster a forward useall 10.0.0.2:1 two:1 two:2;",
                &["10.0.0.2 1, 10.0.0.1 1, fe80::1 1, 10.0.0.1 2, fe80::1 2"],
                &[],
            ),
            ("cluster a forward useall two:1 one:1;", &["10.0.0.1 1, fe80::1 1"], &[]),
            (
                "cluster a forward useall two:1; cluster b forward two:1 9.9.9.9;",
                &["10.0.0.1 1, fe80::1 1", "two 1, 9.9.9.9 2003"],
                &["`two:1` and `10.0.0.1:1` are one server, 10.0.0.1:1"],
            ),
            ("cluster a carbon_ch 10.0.0.1:1 one:1 proto udp;", &["10.0.0.1 1, one 1"], &[]),
            ("cluster a carbon_ch 10.0.0.1:1 one:1;", &["10.0.0.1 1, one 1"], &[one_server]),
            (
                "cluster a any_of useall none:1 x:1;",
                &["none 1, x 1"],
                &[
                    "`useall` of cluster `a`: `none` has no addresses: none were found",
                    "`useall` of cluster `a`: `x` has no addresses: nobody knows it",
                ],
            ),
        ];
        for (text, members, said) in table {
            let (got, warnings) = resolved(text);
            assert_eq!((got, warnings), (owned(members), owned(said)), "{text}");
        }
    }

    #[test]
    fn names_are_listed_once() {
        let conf = read_text("t", "cluster a forward two:1 10.0.0.1 [::1]:2 two:2 one;").conf;
        assert_eq!(names(&conf.expect("the configuration is valid")), ["two", "one"]);
        let text = "cluster a forward one:1; cluster b any_of useall two:1 9.9.9.9 x; cluster c forward useall two:2;";
        let conf = read_text("t", text).conf;
        assert_eq!(names_of_use_all(&conf.expect("the configuration is valid")), ["two", "x"]);
    }

    #[test]
    fn useall_is_removed_when_all_names_resolve() {
        let text = "cluster a any_of useall two:1 9.9.9.9:1; cluster b any_of useall none:1;";
        let (conf, wrong) =
            with_all_used(&read_text("t", text).conf.expect("the configuration is valid"), &known);
        let printed = print(&conf, &Surroundings { port: 2003, prefix: None, form: Form::Original });
        let a = "cluster a\n    any_of\n        10.0.0.1:1\n        [fe80::1]:1\n        9.9.9.9:1\n    ;\n";
        let b = "cluster b\n    any_of useall\n        none:1\n    ;\n";
        assert!(printed.contains(a) && printed.contains(b) && wrong.len() == 1, "{printed} {wrong:?}");
    }
}

//! The way of one name through relays that feed each other, as a document and as rows: source, relays, endpoints, with the name
//! that each of them gets.
//!
//! Path: `pipeline::explain_chain` -> **[`ChainWay::new`]** -> JSON (`staunch check --keys --json`, `/api/v1/relay/explain`).
//! Its [`Rows`] are the lines of `staunch check --keys`.
//! Not here: what one relay does with a name (`route_explanation`), which relays come next (`pipeline`).

use config::plan::{Feed, Plan, RELAYS_IN_A_ROW_MAX, TransformKind};
use model::TransformId;
use pipeline::{ChainExplanation, ChainVisit};
use process::relay::{Line, RelayPlan, RuleAction};
use serde::Serialize;

use crate::route_explanation::{Way, endpoint, text};

/// The way of one name from the first relay to endpoints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChainWay {
    /// The first relay.
    pub relay: String,
    /// Sources and aggregations that feed it.
    pub from: Vec<String>,
    /// What it does with the name.
    #[serde(flatten)]
    pub way: Way,
    /// Visits to other relays, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<FurtherWay>,
    /// Copies at endpoints, of all relays.
    pub endpoints: Vec<EndpointCopy>,
    /// Copies for other relays past the most visits that a point makes.
    #[serde(skip_serializing_if = "is_none")]
    pub visits_refused: u32,
    /// Visits that are left out, since the others are long enough.
    #[serde(skip_serializing_if = "is_none")]
    pub visits_left_out: u32,
}

fn is_none(count: &u32) -> bool {
    *count == 0
}

/// A name at a relay behind the first one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FurtherWay {
    /// The relay.
    pub relay: String,
    /// What sent it here: 0 for the first relay, otherwise the number of an entry of `further`, from 1 on.
    pub by: usize,
    /// What this relay does with it.
    #[serde(flatten)]
    pub way: Way,
}

/// A copy at an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EndpointCopy {
    /// `host:port`, or the path of a file.
    pub endpoint: String,
    /// The name that it is sent under.
    pub name: String,
    /// The relays that it has passed, from the first to the last.
    pub relays: Vec<String>,
}

/// A relay with its statements.
#[derive(Clone, Copy)]
pub struct Passed<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its statements.
    pub plan: &'a RelayPlan,
}

impl ChainWay {
    /// What `chain` says of a line. `relay` gives each relay that it passed, and `place` as for [`Way::new`].
    pub fn new<'a>(
        chain: &ChainExplanation,
        line: Line<'_>,
        from: Vec<String>,
        relay: &dyn Fn(Option<TransformId>) -> Passed<'a>,
        place: &dyn Fn(usize, usize) -> String,
    ) -> ChainWay {
        let way = |visit: &ChainVisit| {
            let line = Line { name: &visit.name, rest: line.rest };
            Way::new(relay(visit.relay).plan, line, &visit.explanation, place)
        };
        let (first, others) = chain.visits.split_first().expect("the first relay is always asked");
        let further = others.iter().map(|visit| FurtherWay {
            relay: relay(visit.relay).name.to_owned(),
            by: visit.by.map_or(0, |by| by.visit),
            way: way(visit),
        });
        let endpoints = chain.visits.iter().enumerate().flat_map(|(at, visit)| {
            let plan = relay(visit.relay).plan;
            let relays = chain.way_to(at).into_iter().map(|at| relay(chain.visits[at].relay).name.to_owned());
            let relays: Vec<String> = relays.collect();
            debug_assert!(relays.len() <= RELAYS_IN_A_ROW_MAX, "the plan has no longer row");
            visit.explanation.copies().filter_map(move |(rule, chosen)| {
                chosen.node.output()?;
                let members = plan.clusters.iter().flat_map(|cluster| &cluster.members);
                let member = members.into_iter().find(|member| member.node == chosen.node)?;
                let name = text(rule.map_or(&visit.name, |rule| &rule.name));
                Some(EndpointCopy { endpoint: endpoint(member), name, relays: relays.clone() })
            })
        });
        ChainWay {
            relay: relay(first.relay).name.to_owned(),
            from,
            way: way(first),
            further: further.collect(),
            endpoints: endpoints.collect(),
            visits_refused: chain.visits.iter().map(|visit| visit.refused).sum(),
            visits_left_out: chain.unexplained,
        }
    }
}

/// Sources and aggregations that feed a relay: where names come from that no relay has changed.
pub fn outside_feeds(plan: &Plan, relay: &str) -> Vec<String> {
    let Some(transform) = plan.transforms.iter().find(|transform| transform.name == relay) else {
        return Vec::new();
    };
    let is_outside = |feed: &&Feed| match feed {
        Feed::Source(_) => true,
        Feed::Transform(id) => {
            plan.transforms.get(id.index()).is_some_and(|giver| giver.kind.as_relay().is_none())
        }
    };
    transform.from.iter().filter(is_outside).map(|feed| plan.name_of(*feed).to_owned()).collect()
}

/// The relays that names enter at, in the order of the plan.
pub fn entries(plan: &Plan) -> Vec<&str> {
    let relays = plan.transforms.iter().filter(|transform| matches!(transform.kind, TransformKind::Relay(_)));
    relays.map(|relay| &*relay.name).filter(|relay| !outside_feeds(plan, relay).is_empty()).collect()
}

/// A row of `staunch check --keys`: what happens at the end of one way.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// An output, `counts in NAME`, or `-`.
    pub(crate) end: String,
    /// The rules on the way.
    pub(crate) way: String,
    /// The name at the end, where it is not the one that was asked for.
    pub(crate) renamed: Option<String>,
}

/// Writes rows of one chain.
pub(crate) struct Rows<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) chain: &'a ChainExplanation,
    /// The first relay.
    pub(crate) first: &'a str,
    /// Its place as of [`Way::new`].
    pub(crate) place: &'a dyn Fn(usize, usize) -> String,
}

impl Rows<'_> {
    /// A row for each copy at an output, each result that the value counts in, and each relay that lets it go nowhere.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for (at, visit) in self.chain.visits.iter().enumerate() {
            let before = rows.len();
            let mut left = visit.explanation.routing.copies;
            for rule in &visit.explanation.matches {
                let place = (self.place)(rule.statement, rule.expression);
                match &rule.action {
                    RuleAction::Sent(sent) => {
                        for chosen in sent.iter().flat_map(|sent| &sent.chosen) {
                            let is_sent = left > 0;
                            left = left.saturating_sub(1);
                            if is_sent && chosen.node.output().is_some() {
                                let output = self.plan.member_name(chosen.node).to_owned();
                                rows.push(self.row(at, output, &place, &rule.name));
                            }
                        }
                    }
                    RuleAction::Fed { names, .. } => {
                        for name in names.iter().flatten() {
                            let end = format!("counts in {}", String::from_utf8_lossy(name));
                            rows.push(self.row(at, end, &place, &rule.name));
                        }
                    }
                    RuleAction::Nothing
                    | RuleAction::Blackholed
                    | RuleAction::Renamed(_)
                    | RuleAction::NotRenamed(_) => {}
                }
            }
            let goes_on = self.chain.visits.iter().any(|next| next.by.is_some_and(|by| by.visit == at));
            if visit.refused > 0 {
                let end = format!("- ({} past the most visits to relays)", visit.refused);
                rows.push(self.row(at, end, "-", &visit.name));
            } else if rows.len() == before && !goes_on {
                let last = visit.explanation.matches.last();
                // The rule that let nothing through to the next one.
                let by = last.filter(|rule| rule.stopped);
                let by = by.map_or("-".into(), |rule| (self.place)(rule.statement, rule.expression));
                rows.push(self.row(at, "-".into(), &by, last.map_or(&visit.name, |rule| &rule.name)));
            }
        }
        rows
    }

    fn row(&self, visit: usize, end: String, rule: &str, name: &[u8]) -> Row {
        let asked = &self.chain.visits[0].name;
        let renamed = (name != &asked[..]).then(|| text(name));
        Row { end, way: self.way(visit, rule), renamed }
    }

    /// `rule 2` for the only relay of a plan; `lines > entry rule 1 > storage rule 2` where there are several.
    fn way(&self, visit: usize, rule: &str) -> String {
        if self.plan.relays().nth(1).is_none() {
            return rule.to_owned();
        }
        let mut way = outside_feeds(self.plan, self.first).join(",");
        let visits = self.chain.way_to(visit);
        for (step, at) in visits.iter().enumerate() {
            let relay = self.chain.visits[*at].relay;
            let name = relay.map_or(self.first, |id| &self.plan.transforms[id.index()].name);
            let by = visits.get(step + 1).and_then(|next| self.chain.visits[*next].by);
            let of_step = by.map(|by| (self.place)(by.statement, by.expression));
            way.push_str(&format!(" > {name} {}", of_step.as_deref().unwrap_or(rule)));
        }
        way
    }
}

#[cfg(test)]
mod tests {
    use config::diagnostic::Source;
    use process::relay::{Entry, Router};

    use super::*;
    use crate::route_explanation::line;

    const CHAIN: &str = r#"
        [sources.lines]
        type = "graphite"
        [sources.app]
        type = "statsd"
        [transforms.stats]
        type = "aggregate"
        from = ["app"]
        [transforms.entry]
        type = "relay"
        from = ["lines", "stats"]
        clusters = { next = { type = "forward", to = ["storage"] }, copy = { type = "forward", to = ["log"] } }
        rules = [
            { match = "^old.", into = "new." },
            { match = "^new", to = "next" },
            { match = "^new.a", to = "copy" },
            { match = "^gone", to = "next" },
            { match = "^no", to = "blackhole" },
        ]
        [transforms.storage]
        type = "relay"
        from = ["entry"]
        clusters = { ring = { type = "jump_fnv1a_ch", replication = 2, to = ["carbon"] } }
        rules = [
            { match = "^new.[abc]", into = "newer." },
            { match = "^newer", to = "ring", stop = true },
            { match = "^gone", compute = { sum = "sums.x" }, every = "10s", expire = "20s", to = "ring" },
            { match = "^new.x", to = "blackhole" },
        ]
        [outputs.log]
        type = "graphite_file"
        from = ["entry"]
        path = "/tmp/points"
        [outputs.carbon]
        type = "graphite"
        from = ["storage"]
        to = ["tcp://10.0.0.5:2003", "tcp://10.0.0.6:2003"]
    "#;

    fn plan(text: &str) -> Plan {
        config::check(Source { name: "test", text }, config::Format::Toml).0.expect("a good file")
    }

    fn place(statement: usize, _: usize) -> String {
        format!("rule {}", statement + 1)
    }

    /// The chain of a line from `entry`, with its document.
    fn asked(plan: &Plan, text: &str) -> (ChainExplanation, ChainWay) {
        let relays: Vec<_> = plan.relays().collect();
        let of = |id: Option<TransformId>| {
            let is_it = |known: &TransformId, name: &str| id.map_or(name == "entry", |id| id == *known);
            let found = relays.iter().find(|(known, transform, _)| is_it(known, &transform.name));
            let (_, transform, relay) = found.expect("it is there");
            Passed { name: &transform.name, plan: &relay.plan }
        };
        let line = line(text.as_bytes(), false);
        let chain = pipeline::explain_chain(line, &mut |id, line| {
            Some(Router::new(of(id).plan).expect("a good plan").explain(Entry::Records, line, 0))
        });
        let chain = chain.expect("nothing ends it");
        let way = ChainWay::new(&chain, line, outside_feeds(plan, "entry"), &of, &place);
        (chain, way)
    }

    fn rows(plan: &Plan, text: &str) -> Vec<String> {
        let (chain, _) = asked(plan, text);
        let rows = Rows { plan, chain: &chain, first: "entry", place: &place }.rows();
        let shown = |row: Row| [row.end, row.way, row.renamed.unwrap_or_default()].join(" | ");
        rows.into_iter().map(shown).collect()
    }

    #[test]
    fn rows_have_the_whole_way_and_the_name_at_its_end() {
        let plan = plan(CHAIN);
        let table: &[(&str, &[&str])] = &[
            (
                "old.a 1 2",
                &[
                    "log | lines,stats > entry rule 3 | new.a",
                    "carbon/10.0.0.6:2003 | lines,stats > entry rule 2 > storage rule 2 | newer.",
                    "carbon/10.0.0.5:2003 | lines,stats > entry rule 2 > storage rule 2 | newer.",
                ],
            ),
            ("gone.x", &["counts in sums.x | lines,stats > entry rule 4 > storage rule 3 | "]),
            ("new.x", &["- | lines,stats > entry rule 2 > storage rule 4 | "]),
            ("new.y", &["- | lines,stats > entry rule 2 > storage - | "]),
            ("nobody", &["- | lines,stats > entry rule 5 | "]),
            ("other", &["- | lines,stats > entry - | "]),
        ];
        for (line, want) in table {
            assert_eq!(rows(&plan, line), *want, "{line}");
        }
        assert_eq!(entries(&plan), ["entry"]);
    }

    #[test]
    fn the_document_has_each_relay_that_is_passed_and_each_endpoint() {
        let (_, way) = asked(&plan(CHAIN), "old.a 1 2");
        assert_eq!((&*way.relay, &way.from[..]), ("entry", &["lines".to_owned(), "stats".to_owned()][..]));
        assert_eq!((way.way.name.as_str(), way.way.copies), ("old.a", 2));
        let [further] = &way.further[..] else { panic!("{way:?}") };
        assert_eq!((&*further.relay, further.by, &*further.way.name), ("storage", 0, "new.a"));
        let ends: Vec<_> =
            way.endpoints.iter().map(|end| (&*end.endpoint, &*end.name, end.relays.len())).collect();
        assert_eq!(
            ends,
            [("/tmp/points", "new.a", 1), ("10.0.0.6:2003", "newer.", 2), ("10.0.0.5:2003", "newer.", 2)]
        );
        let json = serde_json::to_value(&way).expect("it has only text and numbers");
        assert_eq!(
            (&json["further"][0]["relay"], &json["rules"][1]["kind"]),
            (&"storage".into(), &"match".into())
        );
        assert!(json.get("visits_refused").is_none() && json.get("visits_left_out").is_none());
    }

    #[test]
    fn the_page_on_the_api_shows_this_document() {
        let page = include_str!("../../../docs/api.md");
        let shown = page.split("```json\n").find(|rest| rest.contains("\"further\"")).expect("it is shown");
        let shown = shown.split("```").next().expect("a first part");
        let shown: serde_json::Value = serde_json::from_str(shown).expect("the example is JSON");
        let (_, way) = asked(&plan(CHAIN), "old.a 1 2");
        let ours = serde_json::to_value(&way).expect("it has only text and numbers");
        let members = |value: &serde_json::Value| -> Vec<String> {
            value.as_object().into_iter().flat_map(|object| object.keys().cloned()).collect()
        };
        assert_eq!(members(&shown), members(&ours));
        for list in ["further", "endpoints"] {
            let first = |value: &serde_json::Value| members(&value[list][0]);
            let without_rest =
                |names: Vec<String>| names.into_iter().filter(|name| name != "rest").collect::<Vec<_>>();
            assert_eq!(without_rest(first(&shown)), without_rest(first(&ours)), "{list}");
        }
    }

    #[test]
    fn copies_past_the_most_visits_have_a_row_and_a_count() {
        // Each relay sends two copies to the next one.
        let mut text = "[sources.lines]\ntype = \"graphite\"\n".to_owned();
        let names = ["entry", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8"];
        for (at, name) in names.iter().enumerate() {
            let from = if at == 0 { "lines" } else { names[at - 1] };
            let next = names.get(at + 1).copied().unwrap_or("o");
            text += &format!(
                "[transforms.{name}]\ntype = \"relay\"\nfrom = [\"{from}\"]\n\
                 clusters = {{ c = {{ type = \"forward\", to = [\"{next}\"] }} }}\nrules = [{{ to = \"c\" }}, {{ to = \"c\" }}]\n"
            );
        }
        text += "[outputs.o]\ntype = \"graphite\"\nfrom = [\"r8\"]\nto = [\"tcp://10.0.0.5:2003\"]\n";
        let (plan, refused) = (plan(&text), 2 * 62 + 2 * 2);
        let (_, way) = asked(&plan, "a");
        assert_eq!((way.further.len(), way.visits_refused, way.endpoints.len()), (128, refused + 2, 0));
        let rows = rows(&plan, "a");
        assert!(
            rows.iter().all(|row| row.starts_with("- (2 past the most visits to relays) | ")),
            "{rows:?}"
        );
        assert_eq!(rows.len(), (refused as usize + 2) / 2);
    }
}

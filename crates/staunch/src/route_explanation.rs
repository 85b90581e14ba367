//! The route of one name through a relay, for people and programs: the rules that apply, the copies, and the reasons.
//!
//! Path: `process::relay::Router::explain` -> **[`Way::new`]** -> text on a terminal (`staunch relay --explain`), or
//! JSON (`--json`, `/api/v1/relay/explain`). Not here: the rules (`process::relay`); carbon-c-relay's own test mode
//! (`carbon_c_relay::test_mode::meetings`).

use client::stdio::shown;
use process::aggregation_rules::Compute;
use process::relay::{
    Chosen, Class, ClusterId, Distribution, End, Explanation, ExpressionPlan, Line, Member, MistakeAt,
    RelayCluster, RelayPlan, RuleAction, RuleMatch, Sent, Statement, To, Why,
};
use process::sharding::{CarbonHash, Sharding};
use serde::Serialize;

/// Columns of the text.
const COLUMNS: usize = 80;
/// Least columns of an expression, even with a long path of its file.
const EXPRESSION_COLUMNS_MIN: usize = 20;

/// The route of one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Way {
    /// The name.
    pub name: String,
    /// The text after it on its line; absent when there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rest: String,
    /// The rules that apply, in order.
    pub rules: Vec<RuleMet>,
    /// Expressions whose search reached a limit, which counts as no match.
    pub gave_up: Vec<GaveUpAt>,
    /// Copies sent.
    pub copies: u32,
    /// Copies above the maximum for one record.
    pub copies_refused: u32,
    /// Results of aggregations with its value.
    pub results: u32,
    /// How the route ends: `no_more_rules`, `stopped`, `blackholed`, `invalid`.
    pub end: &'static str,
}

/// A rule that applies to the name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleMet {
    /// Its place: `FILE:LINE`, or its number among the rules.
    pub at: String,
    /// `match`, `rewrite`, `aggregate`.
    pub kind: &'static str,
    /// The expression that matches; `*` for every name.
    pub expression: String,
    /// How it is searched: `all`, `contains`, `begins`, `ends`, `equals`, `regex`.
    pub how: &'static str,
    /// The matched name; after a rewrite, it differs from the line's.
    pub name: String,
    /// The `validate` of the rule, and its result for the line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validate: Option<Validation>,
    /// The new name after a rewrite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed: Option<Renamed>,
    /// Copies by cluster.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sent: Vec<SentTo>,
    /// Results with its value.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fed: Vec<FedTo>,
    /// The line is dropped here.
    pub blackholed: bool,
    /// Later rules do not apply.
    pub stops: bool,
}

/// An expression that may match the name or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GaveUpAt {
    /// The place of its rule.
    pub at: String,
    /// `match`, `rewrite`, `aggregate`, `validate`.
    pub kind: &'static str,
    /// The expression.
    pub expression: String,
}

/// A `validate` and its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Validation {
    /// The expression.
    pub expression: String,
    /// Whether the line passes.
    pub passes: bool,
    /// Whether lines that fail are logged.
    pub logs: bool,
}

/// The name after a rewrite.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Renamed {
    /// The name.
    pub to: String,
    /// Later rules use it. An invalid name (empty, too long, with spaces) is not used.
    pub used: bool,
}

/// Copies for one cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SentTo {
    /// The cluster.
    pub cluster: String,
    /// Its sharding.
    pub sharing: &'static str,
    /// What is hashed; absent where nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Where the key lies on the ring, or the number of its shard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<i64>,
    /// Who gets a copy.
    pub to: Vec<CopyTo>,
}

/// One copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CopyTo {
    /// `host:port`, or the path of a file.
    pub endpoint: String,
    /// `all_do`, `owner`, `fails_over`, `first_up`, `its_turn`, `none_up`.
    pub why: &'static str,
    /// For `fails_over`: whose place it takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// One result of an aggregation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FedTo {
    /// What is computed.
    pub compute: String,
    /// Its name; absent when the one that is made cannot be sent, and nothing is computed.
    pub name: Option<String>,
    /// Length of a window in seconds.
    pub every_s: u32,
    /// Age at which a window is over, in seconds.
    pub expire_s: u32,
    /// Clusters that results go to; `rules` alone when they meet the rules from the top, `blackhole` when they are swallowed.
    pub to: Vec<String>,
}

impl Way {
    /// What `explanation` says of a line. `place` says where an expression stands, by the places of its statement and of
    /// itself in that.
    pub fn new(
        plan: &RelayPlan,
        line: Line<'_>,
        explanation: &Explanation,
        place: &dyn Fn(usize, usize) -> String,
    ) -> Way {
        let routing = &explanation.routing;
        Way {
            name: text(line.name),
            rest: text(line.rest),
            rules: (explanation.matches.iter())
                .map(|met| rule_met(plan, met, place(met.statement, met.expression)))
                .collect(),
            gave_up: explanation.gave_up.iter().filter_map(|at| gave_up_at(plan, *at, place)).collect(),
            copies: routing.copies,
            copies_refused: routing.copies_refused,
            results: routing.feeds,
            end: match routing.end {
                End::Exhausted => "no_more_rules",
                End::Stopped => "stopped",
                End::Blackholed => "blackholed",
                End::Invalid => "invalid",
            },
        }
    }

    /// For a terminal: what is longer than a line is cut where it is an expression, and never where it is a name.
    pub fn text(&self, colour: bool) -> String {
        let mut page = Page { out: String::new(), colour, has_value: self.has_value() };
        page.headed(&self.name, &self.rest_shown());
        self.rules.iter().for_each(|rule| page.rule(rule));
        self.gave_up.iter().for_each(|gave_up| page.gave_up(gave_up));
        page.line(0, &format!("= {}", self.sum()));
        page.out
    }

    /// Whether more than a name, with its tags, was asked for.
    fn has_value(&self) -> bool {
        !matches!(self.rest.as_bytes().first(), None | Some(b';'))
    }

    fn rest_shown(&self) -> String {
        match &*self.rest {
            "" => String::new(),
            tags if tags.starts_with(';') => tags.to_owned(),
            rest => format!(" {rest}"),
        }
    }

    /// In one sentence.
    fn sum(&self) -> String {
        let refused = match self.copies_refused {
            0 => String::new(),
            many => format!(", {many} more than a record may have"),
        };
        let copies = match self.copies {
            0 => String::new(),
            1 => "1 copy".into(),
            many => format!("{many} copies"),
        };
        let results = match self.results {
            0 => String::new(),
            1 => "counts in 1 result".into(),
            many => format!("counts in {many} results"),
        };
        let did =
            [copies, results].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
        let why_not = match (self.end, self.rules.is_empty()) {
            ("blackholed", _) => "dropped by the blackhole",
            ("invalid", _) if !self.has_value() => {
                "dropped if `validate` fails: ask with NAME VALUE TIMESTAMP"
            }
            ("invalid", _) => "dropped: it does not pass `validate`",
            (_, true) => "matches no rule and is not sent",
            _ => "no rule sends it anywhere",
        };
        match (did.is_empty(), self.end) {
            (true, _) => why_not.to_owned(),
            (false, "blackholed" | "invalid") => format!("{did}{refused}; the rest is {why_not}"),
            (false, _) => format!("{did}{refused}"),
        }
    }
}

/// What kind of statement it is, and its expression at that place; none for `*`.
pub(crate) fn kind_and_expression(
    statement: &Statement,
    expression: usize,
) -> (&'static str, Option<&ExpressionPlan>) {
    match statement {
        Statement::Match(rule) => ("match", rule.expressions.get(expression)),
        Statement::Rewrite(rule) => ("rewrite", Some(&rule.expression)),
        Statement::Aggregate(rule) => ("aggregate", rule.expressions.get(expression)),
    }
}

/// An expression that gave up, in words; none for what is no expression.
pub(crate) fn gave_up_at(
    plan: &RelayPlan,
    at: MistakeAt,
    place: &dyn Fn(usize, usize) -> String,
) -> Option<GaveUpAt> {
    let (kind, expression, at) = match at {
        MistakeAt::Statement { statement, expression } => {
            let expression = expression.unwrap_or(0);
            let (kind, found) = kind_and_expression(&plan.statements[statement], expression);
            (kind, found?, place(statement, expression))
        }
        MistakeAt::Unless { statement, expression } => {
            let Statement::Match(rule) = &plan.statements[statement] else { return None };
            ("unless", rule.unless.get(expression)?, place(statement, 0))
        }
        MistakeAt::Validate { statement } => {
            let Statement::Match(rule) = &plan.statements[statement] else { return None };
            ("validate", &rule.validate.as_ref()?.expression, place(statement, 0))
        }
        MistakeAt::Plan | MistakeAt::Cluster(_) | MistakeAt::Statistics => return None,
    };
    Some(GaveUpAt { at, kind, expression: expression.text.clone() })
}

fn rule_met(plan: &RelayPlan, met: &RuleMatch, at: String) -> RuleMet {
    let statement = &plan.statements[met.statement];
    let (kind, expression) = kind_and_expression(statement, met.expression);
    let validate = match statement {
        Statement::Match(rule) => rule.validate.as_ref().zip(met.valid).map(|(validate, passes)| {
            Validation { expression: validate.expression.text.clone(), passes, logs: validate.log }
        }),
        Statement::Rewrite(_) | Statement::Aggregate(_) => None,
    };
    let mut rule = RuleMet {
        at,
        kind,
        expression: expression.map_or("*".into(), |expression| expression.text.clone()),
        how: how(expression),
        name: text(&met.name),
        validate,
        renamed: None,
        sent: Vec::new(),
        fed: Vec::new(),
        blackholed: met.action == RuleAction::Blackholed,
        stops: met.stopped,
    };
    match &met.action {
        RuleAction::Nothing | RuleAction::Blackholed => {}
        RuleAction::Sent(sent) => rule.sent = sent.iter().map(|sent| sent_to(plan, sent)).collect(),
        RuleAction::Renamed(name) => rule.renamed = Some(Renamed { to: text(name), used: true }),
        RuleAction::NotRenamed(name) => rule.renamed = Some(Renamed { to: text(name), used: false }),
        RuleAction::Fed { names, .. } => rule.fed = fed_to(plan, statement, names),
    }
    rule
}

/// How an expression is looked for.
pub(crate) fn how(expression: Option<&ExpressionPlan>) -> &'static str {
    let Some(expression) = expression else { return "all" };
    match expression.outline(false).map(|outline| outline.class) {
        Ok(Class::Contains(_)) => "contains",
        Ok(Class::Begins(_)) => "begins",
        Ok(Class::Ends(_)) => "ends",
        Ok(Class::Equals(_)) => "equals",
        Ok(Class::Regex) | Err(_) => "regex",
    }
}

fn sent_to(plan: &RelayPlan, sent: &Sent) -> SentTo {
    let cluster = cluster(plan, sent.cluster);
    let copy = |chosen: &Chosen| {
        let (why, owner) = match chosen.why {
            Why::AllMembers => ("all_do", None),
            Why::Owner => ("owner", None),
            Why::Failover { owner } => ("fails_over", Some(endpoint(&cluster.members[owner]))),
            Why::FirstUp => ("first_up", None),
            Why::Turn => ("its_turn", None),
            Why::NoneUp => ("none_up", None),
        };
        CopyTo { endpoint: endpoint(&cluster.members[chosen.member]), why, owner }
    };
    SentTo {
        cluster: cluster.name.clone(),
        sharing: sharing(cluster),
        key: sent.key.as_deref().map(text),
        position: sent.position,
        to: sent.chosen.iter().map(copy).collect(),
    }
}

fn fed_to(plan: &RelayPlan, statement: &Statement, names: &[Option<Vec<u8>>]) -> Vec<FedTo> {
    let Statement::Aggregate(rule) = statement else { return Vec::new() };
    let to = match &rule.to {
        To::Nowhere => vec!["rules".to_owned()],
        To::Blackhole => vec!["blackhole".to_owned()],
        To::Clusters(clusters) => clusters.iter().map(|at| cluster(plan, *at).name.clone()).collect(),
    };
    let fed = rule.aggregation_rule.computes.iter().zip(names).map(|(compute, name)| FedTo {
        compute: compute_word(compute.compute),
        name: name.as_deref().map(text),
        every_s: rule.aggregation_rule.every_s,
        expire_s: rule.aggregation_rule.expire_s,
        to: to.clone(),
    });
    fed.collect()
}

/// What is computed, in a word.
pub(crate) fn compute_word(compute: Compute) -> String {
    match compute {
        Compute::Sum => "sum".into(),
        Compute::Count => "count".into(),
        Compute::Max => "max".into(),
        Compute::Min => "min".into(),
        Compute::Average => "average".into(),
        Compute::Percentile(percent) => format!("percentile{percent}"),
        Compute::Interpolated(permille) => format!("p{}", f64::from(permille) / 10.0).replace('.', ""),
        Compute::Variance => "variance".into(),
        Compute::Stddev => "stddev".into(),
    }
}

fn cluster(plan: &RelayPlan, id: ClusterId) -> &RelayCluster {
    &plan.clusters[id.index()]
}

/// How a cluster shares records out, in the configuration's word.
pub(crate) fn sharing(cluster: &RelayCluster) -> &'static str {
    match &cluster.distribution {
        // Of outputs only files have no port.
        Distribution::Copies if cluster.members.iter().any(is_file) => "file",
        Distribution::Copies => "forward",
        Distribution::Sharded { sharding: Sharding::CarbonPython { hash, .. }, .. } => match hash {
            CarbonHash::CarbonCh => "python_carbon_ch",
            CarbonHash::Fnv1aCh => "python_fnv1a_ch",
            CarbonHash::Mmh3Ch => "python_mmh3_ch",
        },
        Distribution::Sharded { sharding, .. } => sharding.name(),
        Distribution::Failover => "failover",
        Distribution::RoundRobin => "lb",
    }
}

fn is_file(member: &Member) -> bool {
    member.port == 0 && member.node.output().is_some()
}

/// `host:port`, the path of a file, or the name of a relay.
pub(crate) fn endpoint(member: &Member) -> String {
    match (member.port, member.host.contains(':')) {
        (0, _) => member.host.clone(),
        (port, true) => format!("[{}]:{port}", member.host),
        (port, false) => format!("{}:{port}", member.host),
    }
}

/// A line as relays see it: the name ends at the first space or, unless tags are part of it, the first `;`.
pub(crate) fn line(text: &[u8], tags_are_named: bool) -> Line<'_> {
    let ends = |byte: &u8| matches!(byte, b' ' | b'\t') || *byte == b';' && !tags_are_named;
    let end = text.iter().position(ends).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    Line { name, rest: rest.strip_prefix(b" ").or(rest.strip_prefix(b"\t")).unwrap_or(rest) }
}

/// A name for people and programs.
pub(crate) fn text(bytes: &[u8]) -> String {
    // Names are bytes; what is no character is shown as what it is not.
    String::from_utf8_lossy(bytes).into_owned()
}

/// Lines of a text in the making.
struct Page {
    out: String,
    colour: bool,
    has_value: bool,
}

impl Page {
    fn line(&mut self, depth: usize, text: &str) {
        self.out.push_str(&format!("{:1$}{2}\n", "", depth * 2, shown(text)));
    }

    /// A line that begins with something to look at.
    fn headed(&mut self, head: &str, rest: &str) {
        let (head, rest) = (shown(head), shown(rest));
        let line =
            if self.colour { format!("\u{1b}[1m{head}\u{1b}[0m{rest}\n") } else { format!("{head}{rest}\n") };
        self.out.push_str(&line);
    }

    fn rule(&mut self, rule: &RuleMet) {
        let how = match rule.how {
            "all" | "regex" => String::new(),
            how => format!("  ({how})"),
        };
        let taken = rule.at.chars().count() + rule.kind.len() + how.len() + 3;
        let expression = cut(&rule.expression, COLUMNS.saturating_sub(taken).max(EXPRESSION_COLUMNS_MIN));
        self.headed(&rule.at, &format!(": {} {expression}{how}", rule.kind));
        if let Some(validate) = &rule.validate {
            let verdict = match (validate.passes, validate.logs) {
                (true, _) => "passes",
                (false, _) if !self.has_value => "needs the value, and none was given",
                (false, true) => "fails: not sent here, and logged",
                (false, false) => "fails: not sent here",
            };
            let room = COLUMNS.saturating_sub(4 + "validate : ".len() + verdict.len());
            self.line(2, &format!("validate {}: {verdict}", cut(&validate.expression, room)));
        }
        match &rule.renamed {
            Some(Renamed { to, used: true }) => self.line(2, &format!("becomes {to}")),
            Some(Renamed { to, used: false }) => {
                self.line(2, &format!("keeps its name: `{to}` cannot be sent"));
            }
            None => {}
        }
        rule.fed.iter().for_each(|fed| self.fed(fed));
        rule.sent.iter().for_each(|sent| self.sent(sent));
        if rule.blackholed {
            self.line(2, "dropped: send to blackhole");
        } else if rule.stops {
            self.line(2, "stop: no later rule is looked at");
        }
    }

    fn gave_up(&mut self, gave_up: &GaveUpAt) {
        let taken = gave_up.at.chars().count() + gave_up.kind.len() + " gave up".len() + 3;
        let room = COLUMNS.saturating_sub(taken).max(EXPRESSION_COLUMNS_MIN);
        self.headed(&gave_up.at, &format!(": {} {} gave up", gave_up.kind, cut(&gave_up.expression, room)));
        self.line(2, "its search reached a limit (I016), which counts as no match");
    }

    fn fed(&mut self, fed: &FedTo) {
        let Some(name) = &fed.name else {
            self.line(2, &format!("{}: nothing, because its name cannot be sent", fed.compute));
            return;
        };
        let goes = match &fed.to[..] {
            [one] if one == "rules" => "then from the first rule on".to_owned(),
            [one] if one == "blackhole" => "dropped".to_owned(),
            clusters => format!("to {}", clusters.join(", ")),
        };
        self.line(2, &format!("counts in {name}"));
        self.line(
            3,
            &format!("{} of {} s, emitted after {} s, {goes}", fed.compute, fed.every_s, fed.expire_s),
        );
    }

    fn sent(&mut self, sent: &SentTo) {
        self.line(2, &format!("to {} ({})", sent.cluster, sent.sharing));
        if let (Some(key), Some(position)) = (&sent.key, sent.position) {
            self.line(3, &format!("key {key} at {position}"));
        }
        for copy in &sent.to {
            let why = match (copy.why, &copy.owner) {
                ("owner", _) => "  owns it".to_owned(),
                ("fails_over", Some(owner)) => format!("  for {owner}, which is down"),
                ("first_up", _) => "  the first that is up".to_owned(),
                ("its_turn", _) => "  in turn".to_owned(),
                ("none_up", _) => "  none is up; queued".to_owned(),
                _ => String::new(),
            };
            self.line(3, &format!("-> {}{why}", copy.endpoint));
        }
    }
}

/// As much of a text as fits.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    text.chars().take(columns.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use import::relay::{lower, read_text};
    use process::relay::{Entry, Router};

    use super::*;

    const CONF: &str = r#"
cluster ring carbon_ch replication 2 10.0.0.1 10.0.0.2 10.0.0.3;
cluster pair any_of 10.0.1.1 10.0.1.2;
cluster spare failover 10.0.2.1 [::2]:2004;
cluster copy forward 10.0.3.1;
cluster logs file /tmp/a;
match ^web\.([a-z]+) validate "^[0-9.]+ " else log route using \1 send to ring pair spare;
rewrite ^web\. into "www.";
rewrite ^bad into "b d";
aggregate ^www\.(.*)$ every 10 seconds expire after 30 seconds compute sum write to s.\1 compute max write to m.\1 send to copy;
aggregate load every 60 seconds expire after 90 seconds compute count write to loads;
match disk$ send to logs stop;
match ^old validate ^1 else drop;
match ^gone send to blackhole;
"#;

    fn way(line: &str, down: &[&str]) -> Way {
        let conf = read_text("relay.conf", CONF).conf.expect("a good configuration");
        let plan = lower(&conf).plan;
        let mut router = Router::new(&plan).expect("a good plan");
        for member in plan.clusters.iter().flat_map(|cluster| &cluster.members) {
            let output = member.node.output().expect("a relay.conf has outputs only");
            router.set_live(output, !down.contains(&&*member.host));
        }
        let end = line.find([' ', ';']).unwrap_or(line.len());
        let line = Line { name: &line.as_bytes()[..end], rest: line[end..].trim_start().as_bytes() };
        let place = |statement: usize, _: usize| format!("relay.conf:{statement}");
        Way::new(&plan, line, &router.explain(Entry::Records, line, 0), &place)
    }

    #[test]
    fn people_read_what_becomes_of_a_name() {
        let table = [
            (
                "web.load 1.5 2",
                r"web.load 1.5 2
relay.conf:0: match ^web\.([a-z]+)
    validate ^[0-9.]+ : passes
    to ring (carbon_ch)
      key load at 60493
      -> 10.0.0.3:2003  owns it
      -> 10.0.0.2:2003  owns it
    to pair (any_of)
      key web.load at 1
      -> 10.0.1.2:2003  owns it
    to spare (failover)
      -> 10.0.2.1:2003  the first that is up
relay.conf:1: rewrite ^web\.  (begins)
    becomes www.load
relay.conf:3: aggregate ^www\.(.*)$
    counts in s.load
      sum of 10 s, emitted after 30 s, to copy
    counts in m.load
      max of 10 s, emitted after 30 s, to copy
relay.conf:4: aggregate load  (contains)
    counts in loads
      count of 60 s, emitted after 90 s, then from the first rule on
= 4 copies, counts in 3 results
",
            ),
            (
                "x.disk;host=a 1 2",
                "x.disk;host=a 1 2
relay.conf:5: match disk$  (ends)
    to logs (file)
      -> /tmp/a
    stop: no later rule is looked at
= 1 copy
",
            ),
            (
                "bad",
                "bad
relay.conf:2: rewrite ^bad  (begins)
    keeps its name: `b d` cannot be sent
= no rule sends it anywhere
",
            ),
            (
                "old 2 3",
                "old 2 3
relay.conf:6: match ^old  (begins)
    validate ^1: fails: not sent here
    stop: no later rule is looked at
= dropped: it does not pass `validate`
",
            ),
            (
                "gone",
                "gone
relay.conf:7: match ^gone  (begins)
    dropped: send to blackhole
= dropped by the blackhole
",
            ),
            ("nothing", "nothing\n= matches no rule and is not sent\n"),
        ];
        for (line, want) in table {
            assert_eq!(way(line, &[]).text(false), want, "{line}");
        }
    }

    #[test]
    fn a_validate_that_was_given_no_value_says_so() {
        let want = "old
relay.conf:6: match ^old  (begins)
    validate ^1: needs the value, and none was given
    stop: no later rule is looked at
= dropped if `validate` fails: ask with NAME VALUE TIMESTAMP
";
        assert_eq!(way("old", &[]).text(false), want);
    }

    #[test]
    fn the_member_of_a_failover_is_shown() {
        let text = way("web.load 1 2", &["10.0.1.2", "10.0.2.1"]).text(false);
        assert!(text.contains("-> 10.0.1.1:2003  for 10.0.1.2:2003, which is down\n"), "{text}");
        assert!(text.contains("-> [::2]:2004  the first that is up\n"), "{text}");
        let text = way("web.load 1 2", &["10.0.1.1", "10.0.1.2"]).text(false);
        assert!(text.contains("-> 10.0.1.2:2003  none is up; queued\n"), "{text}");
    }

    #[test]
    fn programs_read_the_same() {
        let json = serde_json::to_value(way("web.load 1.5 2", &[])).expect("it has only text and numbers");
        assert_eq!(
            (&json["copies"], &json["results"], &json["end"]),
            (&4.into(), &3.into(), &"no_more_rules".into())
        );
        let first = &json["rules"][0];
        assert_eq!((&first["kind"], &first["how"]), (&"match".into(), &"regex".into()));
        assert_eq!(first["validate"]["passes"], true);
        assert_eq!(first["sent"][0]["to"][0]["why"], "owner");
        assert_eq!(first["sent"][0]["position"], 60493);
        assert_eq!(json["rules"][1]["renamed"]["to"], "www.load");
        assert_eq!(json["rules"][2]["fed"][1]["name"], "m.load");
        assert_eq!(json["rules"][3]["fed"][0]["to"][0], "rules");
    }

    #[test]
    fn a_search_that_gave_up_is_shown() {
        let conf = "cluster c forward 10.0.0.1;\nmatch (x+x+)+\\1z validate (y+y+)+\\1z else drop send to c;\n\
                    match ^xx validate (x+x+)+\\1z else drop send to c;\n";
        let conf = read_text("relay.conf", conf).conf.expect("a good configuration");
        let plan = lower(&conf).plan;
        let router = Router::new(&plan).expect("a good plan");
        let text = format!("{}cz", "x".repeat(60));
        let line = Line { name: text.as_bytes(), rest: text.as_bytes() };
        let place = |statement: usize, expression: usize| format!("relay.conf:{statement}.{expression}");
        let way = Way::new(&plan, line, &router.explain(Entry::Records, line, 0), &place);
        let want = r"relay.conf:1: match ^xx  (begins)
    validate (x+x+)+\1z: fails: not sent here
relay.conf:0.0: match (x+x+)+\1z gave up
    its search reached a limit (I016), which counts as no match
relay.conf:1.0: validate (x+x+)+\1z gave up
    its search reached a limit (I016), which counts as no match
= no rule sends it anywhere
";
        let shown = way.text(false);
        let (_, shown) = shown.split_once('\n').expect("the name stands first");
        assert_eq!(shown, want.replace("relay.conf:1: ", "relay.conf:1.0: "));
    }

    #[test]
    fn long_and_odd_texts_stay_on_their_lines() {
        let mut way = way("web.load 1 2", &[]);
        way.rules[0].expression = "x".repeat(300);
        way.name = "a\u{1b}[31mred\nline".into();
        let text = way.text(true);
        assert!(
            text.lines()
                .all(|line| line.replace("\u{1b}[1m", "").replace("\u{1b}[0m", "").chars().count() <= 80),
            "{text}"
        );
        assert!(
            !text.contains("\u{1b}[31m") && text.starts_with("\u{1b}[1ma\u{fffd}[31mred\u{fffd}line"),
            "{text}"
        );
    }

    #[test]
    fn nothing_of_a_name_or_a_file_steers_a_terminal() {
        let odd = || "a\u{1b}]0;x\u{7}\u{9b}1m".to_owned();
        let mut way = way("web.load 1 2", &[]);
        (way.name, way.rest) = (odd(), odd());
        way.gave_up = vec![GaveUpAt { at: odd(), kind: "match", expression: odd() }];
        for rule in &mut way.rules {
            (rule.at, rule.expression, rule.name) = (odd(), odd(), odd());
            rule.renamed = Some(Renamed { to: odd(), used: true });
            rule.validate = Some(Validation { expression: odd(), passes: true, logs: false });
            for sent in &mut rule.sent {
                (sent.cluster, sent.key, sent.position) = (odd(), Some(odd()), Some(1));
                sent.to.iter_mut().for_each(|copy| copy.endpoint = odd());
            }
            for fed in &mut rule.fed {
                (fed.name, fed.to) = (Some(odd()), vec![odd()]);
            }
        }
        for colour in [false, true] {
            let text = way.text(colour).replace("\u{1b}[1m", "").replace("\u{1b}[0m", "");
            assert!(
                text.contains('\u{fffd}') && !text.contains(|c: char| c.is_control() && c != '\n'),
                "{text:?}"
            );
        }
    }

    #[test]
    fn a_line_is_a_name_and_what_is_validated() {
        for (text, name, rest) in [
            ("a.b", "a.b", ""),
            ("a.b 1 2", "a.b", "1 2"),
            ("a.b\t1 2", "a.b", "1 2"),
            ("a;t=x 1 2", "a", ";t=x 1 2"),
            ("", "", ""),
        ] {
            let line = line(text.as_bytes(), false);
            assert_eq!((line.name, line.rest), (name.as_bytes(), rest.as_bytes()), "{text}");
        }
        assert_eq!(line(b"a;t=x 1 2", true).name, b"a;t=x");
    }
}

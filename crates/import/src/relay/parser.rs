//! Parses tokens into statements (spec graphite §2.3): every keyword, alias and clause, in the original's order.
//!
//! A mistake ends only its statement: the parser continues after the next `;`, or where a line begins like a statement
//! (the `;` is missing). Words are keywords where the grammar has one; elsewhere `match` is a valid name.
//! Path: `statements` -> `statement` -> a function per kind, those of listeners in `listen`.
//! Not here: whether a statement makes sense (`check`).
//! Invariant: any tokens give statements and mistakes in time proportional to their number.

use process::aggregation_rules::{Compute, Stamp};

use super::document::{Compression, DISTRIBUTIONS, Lines, PemFile, Proto, STAMPS, ServerTls, Span, hashes};
use super::lexer::{Kind, Token};
use super::mistakes::Mistakes;
use super::syntax::*;
use crate::report::one_of;
use config::diagnostic::{Code, Place, nearest};

mod listen;

/// Words that begin a statement.
const STATEMENTS: [&str; 8] =
    ["cluster", "match", "rewrite", "aggregate", "statistics", "send", "listen", "include"];
/// Words that are no host and cluster names without quotes.
pub(super) const RESERVED: [&str; 19] = [
    "useall",
    "replication",
    "dynamic",
    "ip",
    "proto",
    "udp",
    "tcp",
    "type",
    "linemode",
    "syslog",
    "transport",
    "plain",
    "gzip",
    "lz4",
    "snappy",
    "ssl",
    "mtls",
    "blackhole",
    "stop",
];

/// Words that are no expressions and replacements in `match` and `rewrite` without quotes.
const CLAUSES: [&str; 4] = ["validate", "route", "send", "*"];

/// Words that continue a statement where it could end.
const CLAUSE_WORDS: [&str; 5] = ["validate", "route", "send", "stop", "write"];

/// The mistake has been reported; its statement is left out.
pub(super) struct Reported;

type Parsed<T> = Result<T, Reported>;

/// All statements of one file.
pub(super) fn statements(text: &str, tokens: &[Token], mistakes: &mut Mistakes) -> Vec<Statement> {
    let mut parser = Parser { text, tokens, at: 0, mistakes };
    let mut statements = Vec::new();
    while parser.kind() != &Kind::End {
        let start = parser.at;
        match parser.statement() {
            Ok(kind) => {
                let end = parser.tokens[parser.at.saturating_sub(1).max(start)].place.end;
                let place = Place::new(parser.tokens[start].place.start, end);
                statements.push(Statement { kind, span: parser.span(place) });
            }
            Err(Reported) => parser.recover(start),
        }
    }
    statements
}

struct Parser<'a, 'm> {
    text: &'a str,
    tokens: &'a [Token],
    at: usize,
    mistakes: &'m mut Mistakes,
}

impl Parser<'_, '_> {
    fn token(&self) -> &Token {
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn kind(&self) -> &Kind {
        &self.token().kind
    }

    fn span(&self, place: Place) -> Span {
        Span { file: self.mistakes.file, place }
    }

    /// The text of a bare word at a distance; empty for other tokens.
    fn bare_at(&self, distance: usize) -> &str {
        match self.tokens.get(self.at + distance) {
            Some(Token { kind: Kind::Word, place, .. }) => &self.text[place.start..place.end],
            _ => "",
        }
    }

    fn is(&self, keyword: &str) -> bool {
        self.bare_at(0) == keyword
    }

    /// Reads the keyword if it is next.
    fn take(&mut self, keyword: &str) -> bool {
        let is = self.is(keyword);
        self.at += usize::from(is);
        is
    }

    /// Reads keywords that must follow each other.
    fn keywords(&mut self, words: &[&str]) -> Parsed<()> {
        words.iter().try_for_each(|word| if self.take(word) { Ok(()) } else { self.unexpected(&[word], "") })
    }

    /// Reads a word or string that is no keyword.
    fn word(&mut self, what: &str, keywords: &[&str]) -> Parsed<Word> {
        let place = self.token().place;
        let text = match self.kind() {
            Kind::Word if !keywords.contains(&self.bare_at(0)) => self.bare_at(0).to_owned(),
            Kind::Quoted(text) => text.clone(),
            _ => return self.unexpected(&[], what),
        };
        self.at += 1;
        Ok(Word { text, span: self.span(place) })
    }

    /// The path of a file of certificates or a key.
    fn pem(&mut self, what: &str, keywords: &[&str]) -> Parsed<PemFile> {
        let Word { text, span } = self.word(what, keywords)?;
        Ok(PemFile { path: text.into(), place: Some(span.place), file: span.file })
    }

    /// True when the next token is a word or string and none of the keywords.
    fn word_comes(&self, keywords: &[&str]) -> bool {
        match self.kind() {
            Kind::Word => !keywords.contains(&self.bare_at(0)) && !self.statement_begins(),
            Kind::Quoted(_) => true,
            _ => false,
        }
    }

    /// One of several keywords.
    fn choice<T: Copy>(&mut self, choices: &[(&str, T)]) -> Parsed<T> {
        let found = choices.iter().find(|(word, _)| self.is(word)).map(|(_, value)| *value);
        let Some(value) = found else {
            let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
            return self.unexpected(&words, "");
        };
        self.at += 1;
        Ok(value)
    }

    /// A line that begins as only a statement does: the `;` before it is missing.
    fn statement_begins(&self) -> bool {
        if !self.token().first_on_line {
            return false;
        }
        let (second, third) = (self.bare_at(1), self.bare_at(2));
        let same_line = self.tokens.get(self.at + 1).is_some_and(|next| !next.first_on_line);
        match self.bare_at(0) {
            "cluster" => third == "file" || DISTRIBUTIONS.iter().any(|(word, _)| *word == third),
            "match" => same_line && !matches!(second, "" | "send" | "route" | "validate" | "every"),
            "rewrite" => third == "into",
            "aggregate" => same_line && !matches!(second, "" | "send" | "route" | "validate" | "every"),
            "statistics" => matches!(second, "submit" | "reset" | "prefix" | "send"),
            "send" => second == "statistics",
            "listen" => second == "type",
            "include" => {
                same_line && matches!(self.tokens.get(self.at + 2), Some(Token { kind: Kind::Semicolon, .. }))
            }
            _ => false,
        }
    }

    /// Continues after the next `;`, or where the next statement begins.
    fn recover(&mut self, start: usize) {
        self.at = self.at.max(start);
        loop {
            match self.kind() {
                Kind::End => return,
                Kind::Semicolon => {
                    self.at += 1;
                    return;
                }
                _ if self.at > start && self.statement_begins() => return,
                _ => self.at += 1,
            }
        }
    }

    /// Reports that keywords, or `what`, were expected here.
    fn unexpected<T>(&mut self, keywords: &[&str], what: &str) -> Parsed<T> {
        let token = self.token().clone();
        if token.kind == Kind::Broken {
            return Err(Reported);
        }
        let written = &self.text[token.place.start..token.place.end];
        let (found, upstream) = match token.kind {
            Kind::End => ("the file ends".to_owned(), "end of file".to_owned()),
            _ if self.statement_begins() => ("the next statement begins".to_owned(), "string".to_owned()),
            Kind::Word if is_keyword(written) => (format!("`{written}` stands"), format!("'{written}'")),
            Kind::Word | Kind::Quoted(_) => (format!("`{}` stands", short(written)), "string".to_owned()),
            _ => (format!("`{written}` stands"), format!("'{written}'")),
        };
        let mut wanted: Vec<String> = keywords.iter().map(|word| format!("`{word}`")).collect();
        wanted.extend((!what.is_empty()).then(|| what.to_owned()));
        let mut expected: Vec<String> = keywords.iter().map(|word| format!("'{word}'")).collect();
        expected.extend((!what.is_empty()).then(|| "string".to_owned()));
        let upstream = if expected.len() > 4 {
            "syntax error".to_owned()
        } else {
            format!("syntax error, unexpected {upstream}, expecting {}", expected.join(" or "))
        };
        let many = wanted.len() > WANTED_MAX;
        let message = if many {
            format!("{found} where one of {} keywords should", wanted.len())
        } else {
            format!("{found} where {} should", one_of(&wanted))
        };
        let near = nearest(written, keywords.iter().copied())
            .filter(|near| !is_keyword(written) || *near != written);
        let place = match token.kind {
            // For something missing, the caret is after the last token.
            Kind::End if self.at > 0 => {
                let end = self.tokens[self.at - 1].place.end;
                Place::new(end, end)
            }
            _ => token.place,
        };
        let hint = match near {
            Some(near) => Some(format!("did you mean `{near}`?")),
            None if keywords == [";"] && token.kind == Kind::Equals => {
                Some("put quotes around an expression with a `=` in it".to_owned())
            }
            None if keywords == [";"] && token.first_on_line => {
                Some("each statement ends in `;`: is one missing before this?".to_owned())
            }
            None if keywords == [";"] => {
                nearest(written, CLAUSE_WORDS.into_iter()).map(|near| format!("did you mean `{near}`?"))
            }
            None if many => Some(format!("write {}", one_of(&wanted))),
            None if !what.is_empty() && is_keyword(written) => {
                Some(format!("`{written}` is a keyword here; in quotes it is a name: \"{written}\""))
            }
            None => None,
        };
        let label = if many { String::new() } else { format!("expected {}", one_of(&wanted)) };
        let report = self.mistakes.error_at(Code::ImportSyntax, place, message);
        report.label(label).hint_if(hint).upstream(upstream);
        Err(Reported)
    }

    /// The `;` at the end. `order` is the order of this statement's clauses.
    fn end(&mut self, order: &[&str]) -> Parsed<()> {
        if self.kind() == &Kind::Semicolon {
            self.at += 1;
            return Ok(());
        }
        let place = self.token().place;
        if let Some(word) = order.iter().find(|word| self.is(word)) {
            let message = format!("`{word}` cannot stand here");
            let report = self.mistakes.error_at(Code::ImportSyntax, place, message);
            let report = report.hint(format!("clauses stand once, and in this order: {}", order.join(", ")));
            let upstream = format!("syntax error, unexpected '{word}', expecting ';'");
            report.label("too late, or twice").upstream(upstream);
            return Err(Reported);
        }
        self.unexpected(&[";"], "")
    }

    fn statement(&mut self) -> Parsed<StatementKind> {
        let kind = match self.bare_at(0) {
            "cluster" => Parser::cluster,
            "match" => Parser::match_rule,
            "rewrite" => Parser::rewrite,
            "aggregate" => Parser::aggregate,
            "statistics" => Parser::statistics,
            "send" => Parser::send_statistics,
            "listen" => Parser::listen,
            "include" => Parser::include,
            _ => return self.no_statement(),
        };
        self.at += 1;
        kind(self)
    }

    fn no_statement<T>(&mut self) -> Parsed<T> {
        let token = self.token().clone();
        if token.kind == Kind::Broken {
            return Err(Reported);
        }
        let written = short(&self.text[token.place.start..token.place.end]).to_owned();
        let hint = match nearest(&written, STATEMENTS.into_iter()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if token.kind == Kind::Semicolon => "remove this `;`".into(),
            None => format!("statements are {}", STATEMENTS.join(", ")),
        };
        let message = format!("no statement begins with `{written}`");
        let report = self.mistakes.error_at(Code::ImportSyntax, token.place, message);
        let report = report.label("a statement should begin here").hint(hint);
        report.upstream("syntax error, expecting end of file");
        Err(Reported)
    }

    fn cluster(&mut self) -> Parsed<StatementKind> {
        let name = self.new_name("a name")?;
        let kind = self.cluster_kind().inspect_err(|_| {
            self.mistakes.lost_clusters.insert(name.text.clone());
        })?;
        Ok(StatementKind::Cluster { name, kind })
    }

    /// The rest of a cluster, `;` included.
    fn cluster_kind(&mut self) -> Parsed<ClusterSyntax> {
        let kind = if self.take("file") {
            let ip = self.take("ip");
            let mut paths = vec![self.new_name("a path")?];
            while self.word_comes(&RESERVED) {
                paths.push(self.new_name("a path")?);
            }
            ClusterSyntax::File { ip, paths }
        } else if let Some((word, distribution)) = DISTRIBUTIONS.into_iter().find(|(word, _)| self.is(word)) {
            self.at += 1;
            let use_all = !hashes(word) && self.take("useall");
            let is_replicated = hashes(word) && self.take("replication");
            let replication = if is_replicated { Some(self.number()?) } else { None };
            let dynamic = hashes(word) && self.take("dynamic");
            let hosts = self.hosts()?;
            ClusterSyntax::Servers { word, distribution, use_all, replication, dynamic, hosts }
        } else {
            let words: Vec<&str> =
                ["forward", "any_of", "failover", "carbon_ch", "fnv1a_ch", "jump_fnv1a_ch", "file"].into();
            return self.unexpected(&words, "");
        };
        self.end(&["useall", "replication", "dynamic"])?;
        Ok(kind)
    }

    fn hosts(&mut self) -> Parsed<Vec<HostSyntax>> {
        let mut hosts = vec![self.host()?];
        while self.word_comes(&RESERVED) {
            hosts.push(self.host()?);
        }
        Ok(hosts)
    }

    fn host(&mut self) -> Parsed<HostSyntax> {
        let address = self.new_name("a host")?;
        let start = address.span.place.start;
        let instance = if self.kind() == &Kind::Equals {
            self.at += 1;
            Some(self.word("an instance", &RESERVED)?)
        } else {
            None
        };
        let proto = self.clause("proto", &[("udp", Proto::Udp), ("tcp", Proto::Tcp)])?;
        let lines = self.clause("type", &[("linemode", Lines::Plain), ("syslog", Lines::Syslog)])?;
        let compression = self.clause("transport", &PACKINGS)?;
        let tls = match compression {
            Some(_) if self.take("ssl") => ServerTls::Tls,
            Some(_) if self.take("mtls") => {
                let cert = self.pem("the path of a certificate", &RESERVED)?;
                ServerTls::Mutual { cert, key: self.pem("the path of its key", &RESERVED)? }
            }
            _ => ServerTls::None,
        };
        for word in ["proto", "type", "transport", "ssl", "mtls"] {
            if self.is(word) {
                self.end(&["proto", "type", "transport", "ssl", "mtls"])?;
            }
        }
        let end = self.tokens[self.at - 1].place.end;
        Ok(HostSyntax {
            address,
            instance,
            proto: proto.unwrap_or_default(),
            lines: lines.unwrap_or_default(),
            compression: compression.unwrap_or_default(),
            tls,
            span: self.span(Place::new(start, end)),
        })
    }

    /// A keyword and one of its values, when the keyword is there.
    fn clause<T: Copy>(&mut self, keyword: &str, choices: &[(&str, T)]) -> Parsed<Option<T>> {
        if self.take(keyword) { self.choice(choices).map(Some) } else { Ok(None) }
    }

    /// A new name: digits alone are a name only in quotes.
    fn new_name(&mut self, what: &str) -> Parsed<Word> {
        if self.digits_come() {
            let written = self.bare_at(0);
            let message = format!("`{written}` is a number where {what} should be");
            let hint = format!("in quotes it is a name: \"{written}\"");
            let report = self.mistakes.error_at(Code::ImportSyntax, self.token().place, message);
            report.label("no name").hint(hint).upstream("syntax error, unexpected intval, expecting string");
            return Err(Reported);
        }
        self.word(what, &RESERVED)
    }

    fn digits_come(&self) -> bool {
        !self.bare_at(0).is_empty() && self.bare_at(0).bytes().all(|byte| byte.is_ascii_digit())
    }

    fn number(&mut self) -> Parsed<Word> {
        if self.digits_come() { self.word("a number", &[]) } else { self.no_number() }
    }

    fn no_number<T>(&mut self) -> Parsed<T> {
        let token = self.token().clone();
        if token.kind == Kind::Broken {
            return Err(Reported);
        }
        let written = short(&self.text[token.place.start..token.place.end]).to_owned();
        let message = format!("`{written}` is no whole number");
        let report = self.mistakes.error_at(Code::ImportSyntax, token.place, message);
        report.label("expected digits").upstream("syntax error, expecting intval");
        Err(Reported)
    }

    /// Expressions up to one of the clauses' keywords.
    fn patterns(&mut self, clauses: &[&str]) -> Parsed<Vec<Word>> {
        let first = self.word("an expression or `*`", clauses)?;
        let is_all = first.text == "*" && first.span.place.end - first.span.place.start == 1;
        let mut patterns = vec![first];
        while !is_all && self.word_comes(clauses) {
            let star = self.is("*");
            let word = self.word("an expression", clauses)?;
            if star {
                let message = "`*` stands alone, or not at all";
                let report = self.mistakes.error(Code::ImportSyntax, word.span, message);
                let report = report.hint("leave out the other expressions, or this one");
                report.label("matches every name").upstream("syntax error, unexpected '*', expecting ';'");
                return Err(Reported);
            }
            patterns.push(word);
        }
        self.note_clause_words(&patterns);
        Ok(patterns)
    }

    /// Keywords of later clauses are ordinary words among expressions, which is probably a mistake.
    fn note_clause_words(&mut self, patterns: &[Word]) {
        for pair in patterns.windows(2) {
            if pair[1].text == "to" && nearest(&pair[0].text, ["send"].into_iter()).is_some() {
                let message = format!("`{}` and all that follows is read as expressions", pair[0].text);
                let report = self.mistakes.warning(Code::ImportNoEffect, pair[0].span, message);
                report.label("not a keyword").hint("did you mean `send`?");
            }
        }
        for word in patterns {
            let bare = word.span.place.end - word.span.place.start == word.text.len();
            if bare && ["stop", "into", "blackhole", "else", "drop"].contains(&word.text.as_str()) {
                let message = format!("`{}` is read as an expression here", word.text);
                let report = self.mistakes.warning(Code::ImportNoEffect, word.span, message);
                let hint = "what is done stands behind `send to`: match EXPRESSION send to CLUSTER stop;";
                report.label("not a keyword in this place").hint(hint);
            }
        }
    }

    fn match_rule(&mut self) -> Parsed<StatementKind> {
        let clauses = ["validate", "route", "send"];
        let patterns = self.patterns(&clauses)?;
        let validate = if self.take("validate") {
            let pattern = self.word("an expression", &CLAUSES)?;
            self.keywords(&["else"])?;
            Some(ValidateSyntax { pattern, log: self.choice(&[("log", true), ("drop", false)])? })
        } else {
            None
        };
        let route_using = if self.take("route") {
            self.keywords(&["using"])?;
            Some(self.word("a replacement", &CLAUSES)?)
        } else {
            None
        };
        let send = self.send_to()?;
        let stop = self.take("stop");
        self.end(&["validate", "route", "send", "stop"])?;
        Ok(StatementKind::Match(MatchSyntax { patterns, validate, route_using, send, stop }))
    }

    fn send_to(&mut self) -> Parsed<Option<SendSyntax>> {
        if !self.take("send") {
            return Ok(None);
        }
        self.keywords(&["to"])?;
        self.destinations().map(Some)
    }

    fn destinations(&mut self) -> Parsed<SendSyntax> {
        if self.take("blackhole") {
            if self.word_comes(&["stop"]) {
                return self.blackhole_among_clusters();
            }
            return Ok(SendSyntax::Blackhole);
        }
        let mut clusters = vec![self.new_name("the name of a cluster")?];
        while self.word_comes(&RESERVED) {
            clusters.push(self.new_name("the name of a cluster")?);
        }
        if self.is("blackhole") {
            return self.blackhole_among_clusters();
        }
        Ok(SendSyntax::Clusters(clusters))
    }

    fn blackhole_among_clusters<T>(&mut self) -> Parsed<T> {
        let message = "`blackhole` cannot be listed with clusters";
        let report = self.mistakes.error_at(Code::ImportSyntax, self.token().place, message);
        let report = report.label("expected `;` or `stop`");
        let report = report.hint("send to the clusters and stop, or to `blackhole` alone");
        report.upstream("syntax error, unexpected 'blackhole', expecting ';'");
        Err(Reported)
    }

    fn rewrite(&mut self) -> Parsed<StatementKind> {
        // The check reports `*`, with a better message.
        let pattern = self.word("an expression", &CLAUSES[..3])?;
        self.keywords(&["into"])?;
        let into = self.word("a replacement", &CLAUSES)?;
        self.end(&["into"])?;
        Ok(StatementKind::Rewrite { pattern, into })
    }

    fn aggregate(&mut self) -> Parsed<StatementKind> {
        let patterns = self.patterns(&["every"])?;
        self.keywords(&["every"])?;
        let every = self.number()?;
        self.keywords(&["seconds", "expire", "after"])?;
        let expire = self.number()?;
        self.keywords(&["seconds"])?;
        let mut timestamp = Stamp::default();
        if self.take("timestamp") {
            self.keywords(&["at"])?;
            timestamp = self.choice(&STAMPS)?;
            self.keywords(&["of", "bucket"])?;
        }
        if !self.is("compute") {
            return self.unexpected(&["compute"], "");
        }
        let mut computes = Vec::new();
        while self.take("compute") {
            let (word, compute) = self.compute_type()?;
            self.keywords(&["write", "to"])?;
            computes.push((word, compute, self.word("the name of the result", &[])?));
        }
        let send = self.send_to()?;
        let stop = self.take("stop");
        self.end(&["every", "expire", "timestamp", "compute", "send", "stop"])?;
        Ok(StatementKind::Aggregate(AggregateSyntax {
            patterns,
            every,
            expire,
            timestamp,
            computes,
            send,
            stop,
        }))
    }

    fn compute_type(&mut self) -> Parsed<(String, Compute)> {
        let span = self.span(self.token().place);
        if let Some(percent) = self.bare_at(0).strip_prefix("percentile") {
            let Some(percent) = percent.parse::<u8>().ok().filter(|percent| (1..=99).contains(percent))
            else {
                let message = "a percentile is a whole number from 1 to 99";
                let report = self.mistakes.error(Code::ImportBadValue, span, message);
                let report = report.label("no such percentile").hint("for example percentile95");
                report.upstream("percentile<x>: value x must be between 1 and 99");
                self.at += 1;
                // The rest of the statement is checked all the same.
                return Ok((String::new(), Compute::Percentile(50)));
            };
            self.at += 1;
            return Ok((format!("percentile{percent}"), Compute::Percentile(percent)));
        }
        let (word, compute) = self.choice(&COMPUTES)?;
        Ok((word.to_owned(), compute))
    }

    fn statistics(&mut self) -> Parsed<StatementKind> {
        let mut statistics = StatisticsSyntax::default();
        if self.take("submit") {
            self.keywords(&["every"])?;
            statistics.every = Some(self.number()?);
            self.keywords(&["seconds"])?;
        }
        if self.take("reset") {
            self.keywords(&["counters", "after", "interval"])?;
            statistics.reset = true;
        }
        if self.take("prefix") {
            self.keywords(&["with"])?;
            statistics.prefix = Some(self.word("a prefix", &["every"])?);
        }
        let place = self.token().place;
        statistics.send = self.send_to()?.map(|send| (send, self.span(place)));
        statistics.stop = self.take("stop");
        self.end(&["submit", "reset", "prefix", "send", "stop"])?;
        Ok(StatementKind::Statistics(statistics))
    }

    fn send_statistics(&mut self) -> Parsed<StatementKind> {
        let place = self.tokens[self.at - 1].place;
        self.keywords(&["statistics", "to"])?;
        let send = self.destinations()?;
        let stop = self.take("stop");
        self.end(&["stop"])?;
        let message = "`send statistics to` is an old form";
        let report = self.mistakes.warning(Code::ImportDeprecated, self.span(place), message);
        report.hint("write `statistics send to CLUSTER;`").upstream(
            "'send statistics to ...' is deprecated and will be removed in a future version, \
             use 'statistics send to ...' instead",
        );
        Ok(StatementKind::Statistics(StatisticsSyntax {
            send: Some((send, self.span(place))),
            stop,
            old_form: true,
            ..StatisticsSyntax::default()
        }))
    }

    fn include(&mut self) -> Parsed<StatementKind> {
        let path = self.word("a path", &[])?;
        self.end(&[])?;
        Ok(StatementKind::Include(path))
    }
}

/// Most words listed in a message; more go into the hint.
const WANTED_MAX: usize = 4;

const PACKINGS: [(&str, Compression); 4] = [
    ("plain", Compression::Plain),
    ("gzip", Compression::Gzip),
    ("lz4", Compression::Lz4),
    ("snappy", Compression::Snappy),
];

/// Keywords of aggregates, and how the original prints them.
const COMPUTES: [(&str, (&str, Compute)); 13] = [
    ("sum", ("sum", Compute::Sum)),
    ("summary", ("sum", Compute::Sum)),
    ("count", ("count", Compute::Count)),
    ("cnt", ("count", Compute::Count)),
    ("max", ("max", Compute::Max)),
    ("maximum", ("max", Compute::Max)),
    ("min", ("min", Compute::Min)),
    ("minimum", ("min", Compute::Min)),
    ("average", ("average", Compute::Average)),
    ("avg", ("average", Compute::Average)),
    ("median", ("median", Compute::Percentile(50))),
    ("variance", ("variance", Compute::Variance)),
    ("stddev", ("stddev", Compute::Stddev)),
];

/// Words that the original names in its messages instead of `string`.
fn is_keyword(word: &str) -> bool {
    RESERVED.contains(&word)
        || STATEMENTS.contains(&word)
        || ["validate", "route", "into", "*"].contains(&word)
}

/// The beginning of a text that may be long.
fn short(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default();
    &line[..line.floor_char_boundary(60)]
}

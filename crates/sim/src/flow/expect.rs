//! Checks of arrivals, accounts and the shard's series.

use config::diagnostic::nearest;
use pipeline::SeriesRow;

use super::escape::escape;
use super::figures::{self, Line};
use super::names::{known_output, listed};
use super::step::{At, Expected, Figure, Figures, Held, What};
use crate::glob::Glob;
use crate::world::arrivals::{Arrival, Arrived};
use crate::world::{START_S, World};

/// Most names or lines that one message lists.
const SHOWN_MAX: usize = 8;

/// Longest line that a message shows.
const SHOWN_BYTES_MAX: usize = 400;

/// Whether a step is a check, and changes nothing.
pub(crate) fn is_check(what: &What) -> bool {
    matches!(
        what,
        What::Expect { .. }
            | What::Absent { .. }
            | What::Only { .. }
            | What::Count { .. }
            | What::Reply { .. }
            | What::Outcomes { .. }
            | What::Copies { .. }
            | What::Series { .. }
    )
}

/// Does one check.
///
/// # Errors
/// The expected and the actual state.
pub(crate) fn check(world: &mut World, what: &What) -> Result<(), String> {
    match what {
        What::Expect { output, expected } => {
            let mailbox = &mut known_output(world, output)?.mailbox;
            match expected {
                Expected::Point { name, value, at } => point(mailbox, name, value, *at),
                Expected::Line(line) => whole(mailbox, line, false),
                Expected::Packet(packet) => whole(mailbox, packet, true),
                Expected::Event(title) => event(mailbox, title),
                Expected::Contains(text) => contains(mailbox, text),
                Expected::Member { path, value } => member(mailbox, path, value),
            }
        }
        What::Absent { output, names } => absent(&known_output(world, output)?.mailbox, names),
        What::Only { output, all } => {
            let own = if *all { Vec::new() } else { own_parts(world) };
            only(&known_output(world, output)?.mailbox, &own)
        }
        What::Count { output, number, names } => count(&known_output(world, output)?.mailbox, *number, names),
        What::Reply { source, connection, text } => {
            let source = world.source(source).ok_or("there is no such source")?;
            reply(&source.take_replies(connection), text.as_deref())
        }
        What::Outcomes { source, figures } => {
            if let Some((from, transform)) = source.split_once("->") {
                let edge = world.edge(transform, from).ok_or_else(|| {
                    format!("there is no such edge; there are: {}", world.edges().join(", "))
                })?;
                return compare(figures, &figures::of_edge(edge));
            }
            let source = world.source(source).map(|source| source.id);
            let Some(source) = source.map(|id| &world.sources[id.index()]) else {
                let names: Vec<&str> = world.sources.iter().map(|source| source.plan.name.as_str()).collect();
                return Err(format!("there is no such source; there are: {}", listed(&names)));
            };
            compare(figures, &figures::of_source(&source.account, world.source_sum(source)))
        }
        What::Copies { output, figures } => {
            known_output(world, output)?;
            let at = world.outlet_at(output).ok_or("the output was just there")?;
            let outlet = &world.outlets[at];
            compare(figures, &figures::of_output(&outlet.account, world.output_sum(outlet)))
        }
        What::Series { names, held } => series(&world.series(), names, held),
        _ => Err("this step is no check".into()),
    }
}

/// The last reply since the previous check: earlier ones say less.
fn reply(replies: &[String], text: Option<&str>) -> Result<(), String> {
    match (replies.last(), text) {
        (got, want) if got.map(String::as_str) == want => Ok(()),
        (None, Some(want)) => {
            Err(format!("no reply has arrived since the previous check; expected `{want}`"))
        }
        (Some(got), _) => Err(format!("the reply was `{got}`; expected `{}`", text.unwrap_or("none"))),
        (None, None) => Ok(()),
    }
}

fn fits(wanted: &Figure, got: &str) -> bool {
    match wanted {
        Figure::Any => true,
        Figure::Text(text) => {
            let number = |text: &str| text.parse::<f64>().ok();
            text == got || number(text).is_some_and(|wanted| number(got) == Some(wanted))
        }
    }
}

fn shown(figure: &Figure) -> &str {
    match figure {
        Figure::Any => "any",
        Figure::Text(text) => text,
    }
}

/// Points of one name are matched in order of arrival.
fn point(mailbox: &mut [Arrival], name: &str, value: &Figure, at: Option<At>) -> Result<(), String> {
    let second = at.map(|at| match at {
        At::Second(second) => second,
        At::After { ms } => START_S + ms / 1000,
    });
    let named = mailbox.iter_mut().filter(|arrival| !arrival.seen).find(|arrival| match &arrival.what {
        Arrived::Point { name: got, time_s, .. } => got == name && second.is_none_or(|at| at == *time_s),
        Arrived::Line(_) | Arrived::Packet(_) => false,
    });
    let Some(arrival) = named else { return Err(no_point(mailbox, name, second)) };
    arrival.seen = true;
    let Arrived::Point { value: got, time_s, .. } = &arrival.what else { return Ok(()) };
    if fits(value, got) {
        return Ok(());
    }
    Err(format!("`{name}` should be {}, and is {got} at {time_s}{}", shown(value), after_start(*time_s)))
}

fn after_start(time_s: u64) -> String {
    match time_s.checked_sub(START_S) {
        Some(after) => format!(" (+{after}s)"),
        None => String::new(),
    }
}

fn no_point(mailbox: &[Arrival], name: &str, second: Option<u64>) -> String {
    let mut others = Vec::new();
    for arrival in mailbox {
        if let Arrived::Point { name: got, value, time_s } = &arrival.what
            && got == name
        {
            let seen = if arrival.seen { ", expected before" } else { "" };
            others.push(format!("{value} at {time_s}{}{seen}", after_start(*time_s)));
        }
    }
    let at = second.map_or_else(String::new, |at| format!(" at {at}{}", after_start(at)));
    if !others.is_empty() {
        return format!("no further `{name}`{at} arrived; there was: {}", cut_list(&others));
    }
    let names = distinct(mailbox);
    let near = near_names(name, &names);
    if near.is_empty() {
        return format!("no `{name}`{at} arrived; there {}", all_of(&names));
    }
    format!("no `{name}`{at} arrived; did you mean {}?", listed(&near))
}

fn distinct(mailbox: &[Arrival]) -> Vec<&str> {
    let mut names: Vec<&str> = mailbox
        .iter()
        .filter_map(|arrival| match &arrival.what {
            Arrived::Point { name, .. } => Some(name.as_str()),
            Arrived::Line(_) | Arrived::Packet(_) => None,
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Names with a similar spelling, or that contain the wanted one.
fn near_names<'a>(name: &str, names: &[&'a str]) -> Vec<&'a str> {
    let mut near: Vec<&str> = nearest(name, names.iter().copied()).into_iter().collect();
    near.extend(names.iter().filter(|known| known.contains(name)));
    near.truncate(SHOWN_MAX);
    near
}

fn all_of(names: &[&str]) -> String {
    match names.len() {
        0 => "arrived nothing".into(),
        all if all <= SHOWN_MAX => format!("arrived: {}", listed(names)),
        all => format!("arrived {all} other names, such as {}", listed(&names[..SHOWN_MAX])),
    }
}

fn cut_list(texts: &[String]) -> String {
    let shown = texts[..texts.len().min(SHOWN_MAX)].join("; ");
    if texts.len() > SHOWN_MAX { format!("{shown}; and {} more", texts.len() - SHOWN_MAX) } else { shown }
}

fn quoted(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(SHOWN_BYTES_MAX)];
    format!("`{}{}`", escape(cut), if cut.len() < bytes.len() { "…" } else { "" })
}

fn what_arrived(mailbox: &[Arrival]) -> String {
    let unseen: Vec<String> =
        mailbox.iter().filter(|arrival| !arrival.seen).map(|arrival| quoted(&arrival.what.bytes())).collect();
    if unseen.is_empty() {
        "nothing else arrived".into()
    } else {
        format!("there arrived:\n  {}", unseen[..unseen.len().min(SHOWN_MAX)].join("\n  "))
    }
}

fn whole(mailbox: &mut [Arrival], wanted: &[u8], packet: bool) -> Result<(), String> {
    let fits = |arrival: &&mut Arrival| {
        !arrival.seen
            && matches!(arrival.what, Arrived::Packet(_)) == packet
            && arrival.what.bytes() == wanted
    };
    if let Some(arrival) = mailbox.iter_mut().find(fits) {
        arrival.seen = true;
        return Ok(());
    }
    let what = if packet { "packet" } else { "line" };
    Err(format!("no {what} {} arrived; {}", quoted(wanted), what_arrived(mailbox)))
}

fn event(mailbox: &mut [Arrival], title: &[u8]) -> Result<(), String> {
    let title = String::from_utf8_lossy(title);
    let named = |arrival: &&mut Arrival| {
        let parsed = serde_json::from_slice::<serde_json::Value>(&arrival.what.bytes());
        !arrival.seen && parsed.is_ok_and(|event| event["service"] == *title)
    };
    if let Some(arrival) = mailbox.iter_mut().find(named) {
        arrival.seen = true;
        return Ok(());
    }
    Err(format!("no event `{title}` arrived; {}", what_arrived(mailbox)))
}

/// Marks the arrival that it finds, and also finds marked ones: a document can be checked several times.
fn contains(mailbox: &mut [Arrival], text: &[u8]) -> Result<(), String> {
    let holds = |bytes: &[u8]| text.is_empty() || bytes.windows(text.len()).any(|window| window == text);
    let Some(arrival) = mailbox.iter_mut().find(|arrival| holds(&arrival.what.bytes())) else {
        return Err(format!("nothing with {} in it arrived; {}", quoted(text), what_arrived(mailbox)));
    };
    arrival.seen = true;
    Ok(())
}

/// A member of the JSON document that arrived last.
fn member(mailbox: &mut [Arrival], path: &str, value: &str) -> Result<(), String> {
    let text: Vec<Vec<u8>> = mailbox.iter().map(|arrival| arrival.what.bytes()).collect();
    let document = last_document(&text).ok_or("no JSON document arrived")?;
    mailbox.iter_mut().for_each(|arrival| arrival.seen = true);
    let Some(got) = resolve(&document, path) else {
        return Err(format!("the document has no `{path}`: {}", quoted(document.to_string().as_bytes())));
    };
    let wanted: serde_json::Value =
        serde_json::from_str(value).unwrap_or_else(|_| serde_json::Value::String(value.to_owned()));
    let equal = *got == wanted || got.as_f64().is_some_and(|got| wanted.as_f64() == Some(got));
    if equal { Ok(()) } else { Err(format!("`{path}` should be {wanted}, and is {got}")) }
}

/// A document on one line, or one whose first and last line is a single brace.
fn last_document(lines: &[Vec<u8>]) -> Option<serde_json::Value> {
    let one_line = |line: &Vec<u8>| serde_json::from_slice(line).ok().filter(serde_json::Value::is_object);
    if let Some(document) = lines.iter().rev().find_map(one_line) {
        return Some(document);
    }
    let from = lines.iter().rposition(|line| line == b"{")?;
    serde_json::from_slice(&lines[from..].join(&b'\n')).ok()
}

/// Names may contain dots, so it tries every split of the path, longest keys first.
fn resolve<'a>(value: &'a serde_json::Value, path: &str) -> Option<&'a serde_json::Value> {
    if let Some(found) = value.get(path) {
        return Some(found);
    }
    let dots = path.char_indices().filter(|(_, c)| *c == '.').map(|(at, _)| at);
    dots.collect::<Vec<_>>().into_iter().rev().find_map(|at| {
        let inner = value.get(&path[..at])?;
        resolve(inner, &path[at + 1..])
    })
}

fn absent(mailbox: &[Arrival], names: &Glob) -> Result<(), String> {
    let found = mailbox.iter().filter(|arrival| !arrival.seen && names.matches(&name_of(arrival)));
    let found: Vec<String> = found.map(|arrival| quoted(&arrival.what.bytes())).collect();
    if found.is_empty() {
        return Ok(());
    }
    Err(format!("nothing that fits `{}` should have arrived; there was: {}", names.text(), cut_list(&found)))
}

/// The name of a point; the text of any other arrival.
fn name_of(arrival: &Arrival) -> String {
    match &arrival.what {
        Arrived::Point { name, .. } => name.clone(),
        Arrived::Line(bytes) | Arrived::Packet(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// Parts of names that identify the daemon's own points: the plan's stats prefixes.
fn own_parts(world: &World) -> Vec<String> {
    let namespaces = world.plan.outputs.iter().filter_map(|output| output.kind.facts().namespace);
    let outputs = namespaces.map(|namespace| namespace.stats_prefix.clone());
    let transforms = world.plan.aggregates().map(|(_, _, aggregate)| aggregate.stats_prefix.clone());
    let prefixes = outputs.chain(transforms).filter(|prefix| !prefix.is_empty());
    prefixes.map(|prefix| format!(".{prefix}.")).collect()
}

fn only(mailbox: &[Arrival], own: &[String]) -> Result<(), String> {
    let is_own = |arrival: &Arrival| match &arrival.what {
        Arrived::Point { name, .. } => own.iter().any(|part| format!(".{name}").contains(part.as_str())),
        Arrived::Line(_) | Arrived::Packet(_) => false,
    };
    let left = mailbox.iter().filter(|arrival| !arrival.seen && !is_own(arrival));
    let left: Vec<String> = left.map(|arrival| quoted(&arrival.what.bytes())).collect();
    if left.is_empty() {
        Ok(())
    } else {
        Err(format!("nothing else should have arrived; there was: {}", cut_list(&left)))
    }
}

fn count(mailbox: &[Arrival], number: u64, names: &Glob) -> Result<(), String> {
    let fitting: Vec<String> =
        mailbox.iter().filter(|arrival| names.matches(&name_of(arrival))).map(name_of).collect();
    if fitting.len() as u64 == number {
        return Ok(());
    }
    let what = if names.text() == "*" { String::new() } else { format!(" that fit `{}`", names.text()) };
    Err(format!("{number}{what} should have arrived, and {} did: {}", fitting.len(), cut_list(&fitting)))
}

fn compare(figures: &Figures, lines: &[Line]) -> Result<(), String> {
    let mut wrong = Vec::new();
    for (word, number) in &figures.numbers {
        let Some(line) = lines.iter().find(|line| line.word == *word) else {
            return Err(format!("`{word}` is not counted here"));
        };
        match number {
            Some(number) if line.number != *number => {
                wrong.push(format!("{word} should be {number}, and is {}", line.number));
            }
            None if line.number == 0 => wrong.push(format!("{word} should be above 0, and is 0")),
            _ => {}
        }
    }
    let named = |word: &str| {
        let family = word.split_once('.').map_or(word, |(family, _)| family);
        let reason_named = || figures.numbers.iter().any(|(other, _)| other.starts_with(&format!("{word}.")));
        figures.numbers.iter().any(|(other, _)| other == word || other == family) || reason_named()
    };
    if figures.exactly {
        let others = lines.iter().filter(|line| line.outcome && line.number > 0 && !named(&line.word));
        wrong.extend(others.map(|line| format!("{} should be 0, and is {}", line.word, line.number)));
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let all: Vec<String> = lines
        .iter()
        .filter(|line| line.number > 0)
        .map(|line| format!("{} {}", line.word, line.number))
        .collect();
    Err(format!("{}\n  the account: {}", wrong.join("; "), all.join("  ")))
}

/// A series as written in flow files: the name, then the tags as on the wire.
fn written(row: &SeriesRow) -> String {
    if row.tags.is_empty() { row.name.clone() } else { format!("{}|#{}", row.name, row.tags.join(",")) }
}

fn series(rows: &[SeriesRow], names: &Glob, held: &Held) -> Result<(), String> {
    let kind = match held {
        Held::One { kind, .. } => Some(*kind),
        Held::Number(_) => None,
    };
    let fits_kind = |row: &&SeriesRow| kind.is_none_or(|kind| kind == row.kind);
    let found: Vec<&SeriesRow> =
        rows.iter().filter(|row| names.matches(&written(row))).filter(fits_kind).collect();
    let show = |row: &&SeriesRow| format!("{} {} {}", row.kind.word(), written(row), row.value);
    let shown_rows = |rows: &[&SeriesRow]| cut_list(&rows.iter().map(show).collect::<Vec<_>>());
    match held {
        Held::Number(number) if found.len() as u64 == *number => Ok(()),
        Held::Number(number) => Err(format!(
            "{number} series should fit `{}`, and {} do: {}",
            names.text(),
            found.len(),
            shown_rows(&found)
        )),
        Held::One { value, .. } => match found[..] {
            [row] if fits(value, &row.value.to_string()) => Ok(()),
            [row] => Err(format!("`{}` should be {}, and is {}", written(row), shown(value), row.value)),
            [] => Err(format!(
                "no such series fits `{}`; there are: {}",
                names.text(),
                shown_rows(&rows.iter().collect::<Vec<_>>())
            )),
            _ => Err(format!("several series fit `{}`: {}", names.text(), shown_rows(&found))),
        },
    }
}

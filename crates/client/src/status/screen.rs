//! A report as text of 80 columns. Pure.
//!
//! Tables of listeners, sources, transforms, outputs, queues that are not empty and losses, then the warnings. Names, sums and
//! sentences are wrapped, not shortened, unless a name alone is wider than its column.
//! Not here: figures (`report`).

use super::report::{Balance, Outcomes, OutputRow, RecordRow, Report};
use crate::stdio::shown;
use crate::top::figure::{age, bytes, count, percent, rate};
use crate::top::sample::DiskState;
use crate::top::screen::clipped;

/// Columns of a terminal.
const COLUMNS: usize = 80;

/// Columns of names, at least and at most.
const NAME_COLUMNS: (usize, usize) = (10, 28);

/// Rows of one table. All of them are in `--json`.
const ROWS_MAX: usize = 20;

/// The screen.
pub(super) fn text(report: &Report) -> String {
    let mut out = Screen { text: String::new(), name_columns: name_columns(report) };
    title(&mut out, report);
    out.heading("listener", "address");
    for listener in report.listeners.iter().take(ROWS_MAX) {
        out.row(&listener.name, "", &listener.listen, "  ");
    }
    out.more(report.listeners.len());
    records(&mut out, "source", &report.sources);
    records(&mut out, "transform", &report.transforms);
    outputs(&mut out, &report.outputs);
    queues(&mut out, &report.outputs);
    losses(&mut out, report);
    warnings(&mut out, report);
    out.text
}

struct Screen {
    text: String,
    name_columns: usize,
}

fn name_columns(report: &Report) -> usize {
    let listeners = report.listeners.iter().map(|row| &row.name);
    let records = report.sources.iter().chain(&report.transforms).map(|row| &row.name);
    let outputs = report.outputs.iter().map(|row| &row.name);
    let losses = report.losses.iter().map(|row| &row.node);
    let names = listeners.chain(records).chain(outputs).chain(losses);
    let widest = names.map(|name| name.chars().count()).max().unwrap_or(0);
    widest.clamp(NAME_COLUMNS.0, NAME_COLUMNS.1)
}

impl Screen {
    fn heading(&mut self, name: &str, rest: &str) {
        let width = self.name_columns;
        self.text.push_str(&format!("\n{name:<width$}  {rest}\n"));
    }

    /// A name, cells that are already as wide as their columns, and parts that may take more lines.
    fn row(&mut self, name: &str, cells: &str, parts: &[String], between: &str) {
        let name = clipped(name, self.name_columns);
        let pad = self.name_columns.saturating_sub(crate::top::screen::width(&name));
        let prefix = format!("{name}{}  {cells}", " ".repeat(pad));
        let indent = self.name_columns + 2 + cells.len();
        self.flow(&prefix, indent, parts, between);
    }

    /// Parts one after the other, in as many lines as they take. A part that is wider than a line is not broken: it may be an address
    /// to copy.
    fn flow(&mut self, prefix: &str, indent: usize, parts: &[String], between: &str) {
        let (mut line, mut used, mut is_first) = (prefix.to_owned(), indent, true);
        for part in parts.iter().map(|part| shown(part)) {
            let wide = part.chars().count();
            if !is_first && used + between.len() + wide > COLUMNS {
                self.text.push_str(line.trim_end());
                self.text.push('\n');
                (line, used, is_first) = (" ".repeat(indent), indent, true);
            }
            if !is_first {
                line.push_str(between);
                used += between.len();
            }
            line.push_str(&part);
            used += wide;
            is_first = false;
        }
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// A sentence, wrapped between words.
    fn sentence(&mut self, prefix: &str, sentence: &str) {
        let words: Vec<String> = sentence.split(' ').map(str::to_owned).collect();
        self.flow(prefix, prefix.chars().count(), &words, " ");
    }

    /// Says that rows were left out, if any.
    fn more(&mut self, rows: usize) {
        if rows > ROWS_MAX {
            self.text.push_str(&format!("... and {} more; --json lists all\n", rows - ROWS_MAX));
        }
    }
}

fn title(out: &mut Screen, report: &Report) {
    let version = if report.version.is_empty() { String::new() } else { format!(" {}", report.version) };
    let ready = if report.ready { "ready" } else { "NOT READY" };
    let balance = match report.balance {
        Balance::Balanced => "balanced",
        Balance::Moving => "records moving",
        Balance::NotBalanced => "NOT BALANCED",
    };
    let up = age(report.uptime_s as f64);
    out.sentence("", &format!("staunch{version} at {}, up {up}: {ready}, {balance}", report.api));
}

fn records(out: &mut Screen, what: &str, rows: &[RecordRow]) {
    if rows.is_empty() {
        return;
    }
    out.heading(what, " rec/s  since the start");
    for row in rows.iter().take(ROWS_MAX) {
        let from = row.from.as_ref().map(|from| format!("from {from}:"));
        let whole = from.into_iter().chain([format!("received {}", row.received)]);
        let sum = sum(whole.collect(), &row.outcomes, row.balance);
        out.row(&row.name, &format!("{:>6}  ", rate(row.records_per_s)), &sum, " ");
    }
    out.more(rows.len());
}

/// `received 5`, `= rejected 1`, `+ aggregated 4`: parts of which each stays on one line.
fn sum(whole: Vec<String>, outcomes: &Outcomes, balance: Balance) -> Vec<String> {
    let signs = std::iter::once("=").chain(std::iter::repeat("+"));
    let outcomes = signs.zip(outcomes).map(|(sign, (word, count))| format!("{sign} {word} {count}"));
    let unbalanced = match balance {
        Balance::Balanced => None,
        Balance::Moving => Some("(moving)".to_owned()),
        Balance::NotBalanced => Some("NOT BALANCED".to_owned()),
    };
    whole.into_iter().chain(outcomes).chain(unbalanced).collect()
}

/// The outputs; those that fail come first where not all of them are shown.
fn outputs(out: &mut Screen, rows: &[OutputRow]) {
    if rows.is_empty() {
        return;
    }
    out.heading("output", "copy/s  since the start");
    for row in most_urgent(rows, |row| row.fails) {
        let state = match row.state.as_str() {
            "down" => format!("down for {}, {}:", age(row.state_for_s as f64), row.last_error),
            state => format!("{state}:"),
        };
        let sum = sum(vec![state, format!("copies {}", row.copies)], &row.outcomes, row.balance);
        out.row(&row.name, &format!("{:>6}  ", rate(row.copies_per_s)), &sum, " ");
    }
    out.more(rows.len());
}

fn most_urgent(rows: &[OutputRow], urgent: fn(&OutputRow) -> bool) -> impl Iterator<Item = &OutputRow> {
    let mut rows: Vec<&OutputRow> = rows.iter().collect();
    if rows.len() > ROWS_MAX {
        rows.sort_by_key(|row| !urgent(row));
    }
    rows.into_iter().take(ROWS_MAX)
}

fn queues(out: &mut Screen, rows: &[OutputRow]) {
    let mut filled: Vec<&OutputRow> = rows.iter().filter(|row| row.queue.copies > 0).collect();
    if filled.is_empty() {
        out.text.push_str("\nqueues: empty\n");
        return;
    }
    out.heading("queue", "copies       bytes  fill  oldest  place");
    let all = filled.len();
    if all > ROWS_MAX {
        filled.sort_by(|one, other| other.queue.fill.total_cmp(&one.queue.fill));
    }
    for row in filled.into_iter().take(ROWS_MAX) {
        let queue = &row.queue;
        let place = match queue.disk {
            None => "memory",
            Some(DiskState::Safe) => "disk, safe",
            Some(DiskState::Unsynced) => "disk, unsynced",
            Some(DiskState::Failing) => "disk, FAILING",
        };
        let cells = format!(
            "{:>6}  {:>10}  {:>4}  {:>6}  {place}",
            count(queue.copies as f64),
            bytes(queue.bytes),
            percent(queue.fill),
            age(queue.oldest_s)
        );
        out.row(&row.name, &cells, &[], "");
    }
    out.more(all);
}

fn losses(out: &mut Screen, report: &Report) {
    if report.losses.is_empty() {
        out.text.push_str("\nlosses: none since the start\n");
        return;
    }
    out.heading("losses", "since the start; more: staunch explain REASON");
    for loss in report.losses.iter().take(ROWS_MAX) {
        let reason = if loss.reason.is_empty() { String::new() } else { format!("{} ", loss.reason) };
        out.row(&loss.node, "", &[format!("{} {reason}{}", loss.outcome, loss.count)], " ");
    }
    out.more(report.losses.len());
}

fn warnings(out: &mut Screen, report: &Report) {
    if report.warnings.is_empty() {
        out.text.push_str("\nwarnings: none\n");
        return;
    }
    out.text.push_str("\nwarnings\n");
    for warning in report.warnings.iter().take(ROWS_MAX) {
        out.sentence("  ", warning);
    }
    out.more(report.warnings.len());
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::{document, ready, report};
    use super::*;
    use crate::top::api_client::Readiness;
    use crate::top::document::Output;

    #[test]
    fn a_screen_has_listeners_rates_sums_queues_losses_and_warnings() {
        let trouble = "output `carbon/10.0.0.1:2003` is down: connect_failed, for 80 s: The endpoint could not be reached \
                       (Connection refused (os error 111))";
        let readiness = Readiness { ready: true, lines: vec![trouble.to_owned()] };
        let want = "\
staunch 0.1.0 at 127.0.0.1:8680, up 2m: ready, balanced

listener              address
app                   udp://127.0.0.1:8125  tcp://127.0.0.1:8125
management            tcp://127.0.0.1:8126
carbonlink            tcp://127.0.0.1:7002
http                  http://127.0.0.1:8680

source                 rec/s  since the start
app                       10  received 20 = rejected 1 + dropped 2
                              + aggregated 17

transform              rec/s  since the start
stats                     10  from app: received 19 = dropped 2 + aggregated 17

output                copy/s  since the start
points                     0  up: copies 33 = delivered 30 + filtered 3
carbon/10.0.0.1:2003       0  down for 1m, connect_failed: copies 40
                              = dropped 10 + queued 30

queue                 copies       bytes  fill  oldest  place
carbon/10.0.0.1:2003      30    2.93 KiB   30%     42s  disk, safe

losses                since the start; more: staunch explain REASON
app                   dropped series_max 2
app                   rejected no_type 1
app                   kernel_dropped 7
carbon/10.0.0.1:2003  dropped queue_full 10

warnings
  output `carbon/10.0.0.1:2003` is down: connect_failed, for 80 s: The endpoint
  could not be reached (Connection refused (os error 111))
";
        assert_eq!(text(&report(&[document(10), document(20)], readiness)), want);
    }

    #[test]
    fn a_daemon_without_trouble_says_so_and_one_look_has_no_rates() {
        let mut document = document(10);
        document.outputs.truncate(1);
        document.sources[0].losses.clear();
        document.sources[0].kernel_dropped = 0;
        document.transforms.clear();
        let text = text(&report(&[document], ready()));
        let ends = "\nqueues: empty\n\nlosses: none since the start\n\nwarnings: none\n";
        assert!(text.ends_with(ends), "{text}");
        assert!(text.contains("\napp              -  received 10 = "), "{text}");
    }

    #[test]
    fn tables_are_cut_at_the_limit_and_failing_outputs_come_first() {
        let with = |outputs: usize| {
            let mut document = document(10);
            document.outputs = (0..outputs)
                .map(|at| Output { name: format!("o{at}"), state: "up".into(), ..Output::default() })
                .collect();
            document.outputs[outputs - 1].state = "down".into();
            text(&report(&[document], ready()))
        };
        assert!(!with(ROWS_MAX).contains("more; --json"));
        let past = with(ROWS_MAX + 1);
        assert!(past.contains("... and 1 more; --json lists all\n"), "{past}");
        assert!(past.contains("\no20 ") && !past.contains("\no19 "), "{past}");
    }

    #[test]
    fn no_line_is_wider_than_a_terminal_and_control_characters_are_replaced() {
        let mut document = document(u64::MAX);
        document.sources[0].name = "a".repeat(100);
        document.sources[0].routed = u64::MAX;
        document.sources[0].filtered = u64::MAX;
        document.outputs[0].state = "x\x1b[2J".into();
        let lines = vec!["word ".repeat(50)];
        let text = text(&report(&[document], Readiness { ready: false, lines }));
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
        assert!(!text.contains('\x1b') && text.contains("NOT READY"), "{text}");
    }
}

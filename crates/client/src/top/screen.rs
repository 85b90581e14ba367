//! One frame, from what is shown to cells. Pure.
//!
//! For 80 columns and 24 rows: title, status, sources, relays if there are any, outputs, lines about the selected row (`about`), keys. What a colour
//! says is said by a word, a number or a mark too. Wider terminals give their width to names, higher ones to rows.
//! Not here: figures (`sample`), what keys do (`view`), the terminal.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::Span;

use super::about;
use super::figure::{age, count, percent, rate, time_of_day};
use super::relays::{ClusterSample, RelaySample};
use super::sample::{DiskState, OutputSample, Sample, SourceSample, Sums};
use super::view::{Focus, Shown};

/// From here on a queue counts as filling, in the API's words degraded.
const FILL_HIGH: f64 = 0.8;

/// Rows that are no rows of a table: title, status, two headings, keys.
const ROWS_AROUND: usize = 5;

/// Rows that are always kept for the lines about the selected row.
const ABOUT_ROWS_MIN: usize = 2;

/// A column behind the name: heading, width, whether it stands at the right.
type Column = (&'static str, usize, bool);

const SOURCE_COLUMNS: [Column; 8] = [
    ("pkt/s", 6, true),
    ("rec/s", 6, true),
    ("kdrop/s", 7, true),
    ("kdrops", 6, true),
    ("queue", 5, true),
    ("rej/s", 6, true),
    ("reject", 6, true),
    ("drop/s", 6, true),
];

const RELAY_COLUMNS: [Column; 6] = [
    ("pts/s", 6, true),
    ("rtd/s", 6, true),
    ("unmat/s", 7, true),
    ("black/s", 7, true),
    ("inval/s", 7, true),
    ("names", 6, true),
];

const CLUSTER_COLUMNS: [Column; 7] = [
    ("share", 16, false),
    ("up", 4, true),
    ("down", 4, true),
    ("out", 4, true),
    ("queue", 5, true),
    ("fill", 5, true),
    ("old", 4, true),
];

const OUTPUT_COLUMNS: [Column; 9] = [
    ("state", 8, false),
    ("copy/s", 6, true),
    ("dlvd/s", 6, true),
    ("lost/s", 6, true),
    ("reason", 10, false),
    ("queue", 5, true),
    ("disk", 5, true),
    ("fill", 5, true),
    ("old", 4, true),
];

const HELP: &[&str] = &[
    "SOURCES  pkt/s, rec/s  datagrams (or reads) and records received a second",
    "         kdrop/s       datagrams that the kernel drops a second; kdrops: total",
    "         queue         how full the fullest receive buffer is",
    "         rej/s         invalid records rejected a second; reject: total",
    "         drop/s        records lost at a limit a second",
    "RELAYS   pts/s, rtd/s  points processed by the rules, and routed to an output",
    "         unmat/s ...   unmatched, sent to the blackhole, failed validate",
    "CLUSTERS up, down, out members; out: failed over to other members",
    "OUTPUTS  copy/s        copies routed to it a second",
    "         dlvd/s        copies that the endpoint has, a second",
    "         lost/s        copies lost a second; reason: the one that loses most",
    "         queue         copies that are queued",
    "         disk          queued on disk: safe, or blocks not synced; FAIL!",
    "         fill, old     share of the queue's limit; age of the oldest copy",
    "`!` marks values over 80 %; `staunch explain REASON` says what to do",
    "balanced: every record has exactly one outcome",
    "",
    "q quit   s sources   c clusters   o outputs   p pause   ? closes this",
    "arrows, page keys, home, end: select the row of the last lines",
];

/// Draws the frame. What does not fit is left out.
pub(super) fn draw(buffer: &mut Buffer, area: Rect, shown: &Shown) {
    let mut canvas = Canvas { buffer, area, colour: shown.view.colour };
    title(&mut canvas, shown);
    let last = canvas.rows().saturating_sub(1);
    if shown.view.help {
        for (row, text) in (3..last).zip(HELP) {
            canvas.put(1, row, text, Style::new());
        }
    } else if let Some(sample) = &shown.sample {
        tables(&mut canvas, sample, shown);
        if shown.away.is_some() {
            canvas.grey(2, last);
        }
    }
    let has_clusters = shown.sample.as_ref().is_some_and(|sample| sample.clusters().next().is_some());
    keys(&mut canvas, last, has_clusters);
}

/// The frame as text, for a terminal that is not taken over.
pub(super) fn text(shown: &Shown, (columns, rows): (u16, u16)) -> String {
    let area = Rect::new(0, 0, columns, rows);
    let mut buffer = Buffer::empty(area);
    draw(&mut buffer, area, shown);
    let mut lines: Vec<String> = Vec::new();
    // The last row is about keys, which nobody reads here.
    for y in 0..rows.saturating_sub(1) {
        let line: String = (0..columns).map(|x| buffer[(x, y)].symbol()).collect();
        lines.push(line.trim_end().to_owned() + "\n");
    }
    let used = lines.iter().rposition(|line| line != "\n").map_or(0, |last| last + 1);
    lines[..used].concat()
}

struct Canvas<'a> {
    buffer: &'a mut Buffer,
    area: Rect,
    colour: bool,
}

impl Canvas<'_> {
    fn columns(&self) -> usize {
        usize::from(self.area.width)
    }

    fn rows(&self) -> usize {
        usize::from(self.area.height)
    }

    /// Writes text from a cell on, as far as the row goes. Gives the column behind it.
    fn put(&mut self, column: usize, row: usize, text: &str, style: Style) -> usize {
        if row >= self.rows() || column >= self.columns() {
            return column;
        }
        // Both are below a u16 that they were compared with.
        let (x, y) = (self.area.x + column as u16, self.area.y + row as u16);
        let (end, _) = self.buffer.set_stringn(x, y, text, self.columns() - column, style);
        usize::from(end - self.area.x)
    }

    fn put_right(&mut self, row: usize, text: &str, style: Style) {
        self.put(self.columns().saturating_sub(width(text)), row, text, style);
    }

    /// Rows of a daemon that is away: what they say was so once.
    fn grey(&mut self, from: usize, to: usize) {
        let to = to.min(self.rows());
        if from >= to {
            return;
        }
        let rows = Rect { y: self.area.y + from as u16, height: (to - from) as u16, ..self.area };
        self.buffer.set_style(rows, Style::reset().add_modifier(Modifier::DIM));
    }

    fn good(&self) -> Style {
        self.coloured(Color::Green)
    }

    fn warning(&self) -> Style {
        self.coloured(Color::Yellow)
    }

    fn bad(&self) -> Style {
        self.coloured(Color::Red).add_modifier(Modifier::BOLD)
    }

    fn coloured(&self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }
}

fn title(canvas: &mut Canvas<'_>, shown: &Shown) {
    let end = canvas.put(0, 0, "staunch top", Style::new().add_modifier(Modifier::BOLD));
    let room = canvas.columns().saturating_sub(end + 2 + "  NOT BALANCED".len());
    canvas.put(end + 2, 0, &clipped(&shown.api, room), Style::new());
    if shown.away.is_none() {
        let (word, style) = match shown.sample.as_ref().and_then(|sample| sample.sums) {
            Some(Sums::Hold) => ("balanced", canvas.good()),
            Some(Sums::Moving) => ("records moving", Style::new()),
            Some(Sums::Broken) => ("NOT BALANCED", canvas.bad()),
            None => ("", Style::new()),
        };
        canvas.put_right(0, word, style);
    }
    let (status, style) = status(canvas, shown);
    canvas.put(0, 1, &clipped(&status, canvas.columns()), style);
}

fn status(canvas: &Canvas<'_>, shown: &Shown) -> (String, Style) {
    if let Some(away) = &shown.away {
        let since_ms = away.away_since_ms.unwrap_or(away.time_ms);
        let for_s = away.time_ms.saturating_sub(since_ms) / 1000;
        let why = away.error.as_deref().unwrap_or("no answer");
        let since = time_of_day(since_ms);
        return (format!("AWAY since {since} ({}): {why}", age(for_s as f64)), canvas.bad());
    }
    let Some(sample) = &shown.sample else { return ("no answer yet".to_owned(), Style::new()) };
    let at = time_of_day(sample.time_ms);
    if shown.view.paused {
        return (format!("PAUSED at {at}; p resumes"), Style::new().add_modifier(Modifier::BOLD));
    }
    let totals = sample.totals.as_ref().map_or_else(|| "every second".to_owned(), |totals| totals.short());
    (format!("{at}, {totals}"), Style::new())
}

fn tables(canvas: &mut Canvas<'_>, sample: &Sample, shown: &Shown) {
    let (sources, outputs) = (sample.sources.len(), sample.outputs.len());
    let clusters: Vec<_> = sample.clusters().collect();
    let about = about(sample, shown, canvas.columns());
    // Full tables leave the lines about a row a quarter of the screen.
    let about_rows = about.len().clamp(ABOUT_ROWS_MIN, (canvas.rows() / 4).max(ABOUT_ROWS_MIN));
    let room = canvas.rows().saturating_sub(ROWS_AROUND + about_rows);
    // Relays and their clusters get at most half, with their headings; most daemons have none, or one.
    let relay_room = if sample.relays.is_empty() { 0 } else { (room / 2).saturating_sub(2) };
    let relay_rows = sample.relays.len().min(relay_room.div_ceil(3));
    let cluster_rows = clusters.len().min(relay_room - relay_rows);
    let relays_shown = relay_rows > 0;
    let room = if relays_shown { room - relay_rows - cluster_rows - 2 } else { room };
    // The outputs get what the sources leave, but never less than two thirds while they need it.
    let source_rows = sources.min(room.saturating_sub(outputs).max(room / 3));
    let output_rows = outputs.min(room - source_rows);
    let in_focus = |focus| shown.view.focus == focus;
    let mut row = 2;
    heading(canvas, row, "SOURCES", sources, in_focus(Focus::Sources), &SOURCE_COLUMNS);
    let selected = shown.view.source.min(sources.saturating_sub(1));
    for line in lines(sources, source_rows, selected, in_focus(Focus::Sources)) {
        row += 1;
        source_row(canvas, row, line.mark, &sample.sources[line.at]);
    }
    let at_cluster = shown.view.cluster.min(clusters.len().saturating_sub(1));
    if relays_shown {
        row += 1;
        heading(canvas, row, "RELAYS", sample.relays.len(), false, &RELAY_COLUMNS);
        for line in lines(sample.relays.len(), relay_rows, 0, false) {
            row += 1;
            relay_row(canvas, row, line.mark, &sample.relays[line.at]);
        }
        row += 1;
        heading(canvas, row, "CLUSTERS", clusters.len(), in_focus(Focus::Clusters), &CLUSTER_COLUMNS);
        for line in lines(clusters.len(), cluster_rows, at_cluster, in_focus(Focus::Clusters)) {
            row += 1;
            cluster_row(canvas, row, line.mark, clusters[line.at].1);
        }
    }
    row += 1;
    heading(canvas, row, "OUTPUTS", outputs, in_focus(Focus::Outputs), &OUTPUT_COLUMNS);
    let chosen = shown.view.output.min(outputs.saturating_sub(1));
    for line in lines(outputs, output_rows, chosen, in_focus(Focus::Outputs)) {
        row += 1;
        output_row(canvas, row, line.mark, &sample.outputs[line.at]);
    }
    let details_from = canvas.rows().saturating_sub(1 + about.len()).max(row + 1);
    // The last row is that of the keys.
    for (row, text) in (details_from..canvas.rows().saturating_sub(1)).zip(about) {
        canvas.put(0, row, &text, Style::new());
    }
}

/// The lines about the selected row, the most important first.
fn about(sample: &Sample, shown: &Shown, columns: usize) -> Vec<String> {
    let at = |row: usize, rows: usize| row.min(rows.saturating_sub(1));
    match shown.view.focus {
        Focus::Sources => {
            let source = sample.sources.get(at(shown.view.source, sample.sources.len()));
            source.map(|source| about::source(source, columns))
        }
        Focus::Clusters => {
            let clusters: Vec<_> = sample.clusters().collect();
            let cluster = clusters.get(at(shown.view.cluster, clusters.len()));
            cluster.map(|(relay, cluster)| about::cluster(relay, cluster, columns))
        }
        Focus::Outputs => {
            let output = sample.outputs.get(at(shown.view.output, sample.outputs.len()));
            output.map(|output| about::output(output, sample.time_ms, columns))
        }
    }
    .unwrap_or_default()
}

/// A row of a table that is visible.
struct Line {
    at: usize,
    mark: &'static str,
}

/// The rows around the selected one. `^` and `v` mark that there are more.
fn lines(rows: usize, visible: usize, selected: usize, in_focus: bool) -> impl Iterator<Item = Line> {
    let first = selected.saturating_sub(visible / 2).min(rows - visible.min(rows));
    let last = first + visible;
    (first..last).map(move |at| {
        let mark = match at {
            _ if in_focus && at == selected => ">",
            _ if at == first && first > 0 => "^",
            _ if at + 1 == last && last < rows => "v",
            _ => " ",
        };
        Line { at, mark }
    })
}

fn heading(canvas: &mut Canvas<'_>, row: usize, name: &str, rows: usize, in_focus: bool, columns: &[Column]) {
    let name = if in_focus { format!("[{name}] {rows}") } else { format!(" {name}  {rows}") };
    let style = Style::new().add_modifier(Modifier::BOLD);
    let cells = columns.iter().map(|(heading, _, _)| ((*heading).to_owned(), style));
    let cells: Vec<_> = cells.collect();
    table_row(canvas, row, ("", &name, style), columns, &cells);
}

fn source_row(canvas: &mut Canvas<'_>, row: usize, mark: &str, source: &SourceSample) {
    let plain = Style::new();
    let loss = |per_s: Option<f64>| if per_s.is_some_and(|per_s| per_s > 0.0) { canvas.bad() } else { plain };
    let queue =
        source.receive_queue_fill.map_or_else(|| ("-".to_owned(), plain), |fill| filled(canvas, fill));
    let cells = [
        (rate(source.packets_per_s), plain),
        (rate(source.records_per_s), plain),
        (rate(source.kernel_dropped_per_s), loss(source.kernel_dropped_per_s)),
        (count(source.kernel_dropped as f64), plain),
        queue,
        (rate(source.rejected_per_s), loss(source.rejected_per_s)),
        (count(source.rejected as f64), plain),
        (rate(source.dropped_per_s), loss(source.dropped_per_s)),
    ];
    table_row(canvas, row, (mark, &source.name, plain), &SOURCE_COLUMNS, &cells);
}

fn relay_row(canvas: &mut Canvas<'_>, row: usize, mark: &str, relay: &RelaySample) {
    let plain = Style::new();
    let cells = [
        (rate(relay.points_per_s), plain),
        (rate(relay.routed_per_s), plain),
        (rate(relay.unmatched_per_s), plain),
        (rate(relay.blackholed_per_s), plain),
        (rate(relay.invalid_per_s), plain),
        (count(relay.names as f64), plain),
    ];
    table_row(canvas, row, (mark, &relay.name, plain), &RELAY_COLUMNS, &cells);
}

fn cluster_row(canvas: &mut Canvas<'_>, row: usize, mark: &str, cluster: &ClusterSample) {
    let plain = Style::new();
    let down = cluster.down.len() as u64;
    let down_style = if down > 0 { canvas.bad() } else { plain };
    let out_style = if cluster.out.is_empty() { plain } else { canvas.warning() };
    let cells = [
        (cluster.sharing.clone(), plain),
        (count(cluster.members.saturating_sub(down) as f64), plain),
        (count(down as f64), down_style),
        (count(cluster.out.len() as f64), out_style),
        (count(cluster.queued as f64), plain),
        filled(canvas, cluster.queue_fill),
        (if cluster.queued == 0 { "-".to_owned() } else { age(cluster.oldest_s) }, plain),
    ];
    table_row(canvas, row, (mark, &cluster.name, plain), &CLUSTER_COLUMNS, &cells);
}

fn output_row(canvas: &mut Canvas<'_>, row: usize, mark: &str, output: &OutputSample) {
    let plain = Style::new();
    let state = match output.state.as_str() {
        "up" => canvas.good(),
        "down" => canvas.bad(),
        _ => canvas.warning(),
    };
    let loses = output.lost_per_s.is_some_and(|per_s| per_s > 0.0);
    let loss = if loses { canvas.bad() } else { plain };
    let cells = [
        (output.state.clone(), state),
        (rate(output.copies_per_s), plain),
        (rate(output.delivered_per_s), plain),
        (rate(output.lost_per_s), loss),
        (output.lost_reason.clone().unwrap_or_default(), loss),
        (count(output.queued as f64), plain),
        on_disk(canvas, output),
        filled(canvas, output.queue_fill),
        (if output.queued == 0 { "-".to_owned() } else { age(output.oldest_s) }, plain),
    ];
    table_row(canvas, row, (mark, &output.name, plain), &OUTPUT_COLUMNS, &cells);
}

/// What a crash of the machine would find: all of it, or not yet the last so many blocks.
fn on_disk(canvas: &Canvas<'_>, output: &OutputSample) -> (String, Style) {
    let Some(disk) = &output.disk else { return ("-".to_owned(), Style::new()) };
    match disk.state {
        DiskState::Safe => ("safe".to_owned(), Style::new()),
        DiskState::Unsynced => (count(disk.blocks_unsynced as f64), Style::new()),
        DiskState::Failing => ("FAIL!".to_owned(), canvas.bad()),
    }
}

fn filled(canvas: &Canvas<'_>, fill: f64) -> (String, Style) {
    if fill < FILL_HIGH {
        return (percent(fill), Style::new());
    }
    (percent(fill) + "!", canvas.warning().add_modifier(Modifier::BOLD))
}

fn table_row(
    canvas: &mut Canvas<'_>,
    row: usize,
    (mark, name, style): (&str, &str, Style),
    columns: &[Column],
    cells: &[(String, Style)],
) {
    debug_assert_eq!(columns.len(), cells.len());
    let taken: usize = columns.iter().map(|(_, width, _)| width + 1).sum();
    let mark_width = usize::from(!mark.is_empty());
    let name_width = canvas.columns().saturating_sub(taken + 1).max(6);
    canvas.put(0, row, mark, Style::new().add_modifier(Modifier::BOLD));
    canvas.put(mark_width, row, &clipped(name, name_width + 1 - mark_width), style);
    let mut column = name_width + 1;
    for ((_, wide, right), (text, style)) in columns.iter().zip(cells) {
        let text = clipped(text, *wide);
        let pad = if *right { wide - width(&text) } else { 0 };
        canvas.put(column + 1 + pad, row, &text, *style);
        column += wide + 1;
    }
}

/// The keys are the marked letters.
fn keys(canvas: &mut Canvas<'_>, row: usize, has_clusters: bool) {
    let key = Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED);
    let mut column = 0;
    let keys =
        [("q", "uit"), ("s", "ources"), ("c", "lusters"), ("o", "utputs"), ("p", "ause"), ("?", " help")];
    for (letter, rest) in keys.into_iter().filter(|(letter, _)| has_clusters || *letter != "c") {
        column = canvas.put(column, row, letter, key);
        column = canvas.put(column, row, rest, Style::new()) + 3;
    }
}

/// Columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// The text in at most `columns`: what is left out is in the middle, since names often differ at their ends. What is
/// no character of text is shown as `?`.
pub(crate) fn clipped(text: &str, columns: usize) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    if width(&clean) <= columns {
        return clean;
    }
    let tail_max = columns.saturating_sub(1) / 2;
    let mut tail = clean.as_str();
    while width(tail) > tail_max {
        let mut rest = tail.chars();
        rest.next();
        tail = rest.as_str();
    }
    let mut head = String::new();
    for c in clean.chars() {
        head.push(c);
        if width(&head) + 1 + width(tail) > columns {
            head.pop();
            break;
        }
    }
    let gap = if columns == 0 { "" } else { "~" };
    head + gap + tail
}

#[cfg(test)]
#[path = "screen_tests.rs"]
mod tests;

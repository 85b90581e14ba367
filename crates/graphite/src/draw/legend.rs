//! The legend: names with their colours in columns at the bottom (spec graphite §6.5).

use super::canvas::{Anchor, Area, Canvas};
use super::color::Color;
use super::options::Options;
use super::text::{TEXT_CHARS_MAX, clean, fit, width};

/// More series than this have no legend, unless the client wants one.
const SERIES_MAX: usize = 10;

/// One name.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) color: Color,
    /// True for a series of the second axis: it is at the right side.
    pub(super) is_right: bool,
}

impl Entry {
    /// An entry with the name cleaned and shortened.
    pub(super) fn new(name: &str, color: Color, is_right: bool) -> Entry {
        Entry { name: clean(name, TEXT_CHARS_MAX), color, is_right }
    }
}

/// Names of one side in columns.
#[derive(Debug)]
struct Block<'e> {
    entries: Vec<&'e Entry>,
    columns: usize,
    rows: usize,
}

/// Draws the legend at the bottom of an area, and takes its height from the area.
pub(super) fn draw(canvas: &mut Canvas, area: &mut Area, entries: &[Entry], options: &Options) {
    let mut shown: Vec<&Entry> = Vec::new();
    let mut names = std::collections::BTreeSet::new();
    for entry in entries {
        if !options.is_legend_unique || names.insert((&entry.name, entry.is_right)) {
            shown.push(entry);
        }
    }
    let line = options.font.line_height() + 1.0;
    let is_small = area.height() < line * 6.0;
    if options.hidden.legend.unwrap_or(shown.len() > SERIES_MAX || is_small) || shown.is_empty() {
        return;
    }
    let is_two_sided = shown.iter().any(|entry| entry.is_right);
    let side_width = if is_two_sided { area.width() / 2.0 } else { area.width() };
    // The graph keeps half of the image.
    let rows_max = ((area.height() / 2.0 / line).floor() as usize).max(1);
    let block = |is_right: bool| {
        let entries: Vec<&Entry> = shown.iter().filter(|entry| entry.is_right == is_right).copied().collect();
        let widest = entries.iter().map(|entry| width(&entry.name, &options.font)).fold(1.0, f64::max);
        let column = widest + options.font.size * 2.2;
        let columns = ((side_width / column).floor() as usize).clamp(1, entries.len().max(1));
        let rows = entries.len().div_ceil(columns).min(rows_max);
        Block { entries, columns, rows }
    };
    let blocks = [block(false), block(true)];
    let rows = blocks.iter().map(|block| block.rows).max().unwrap_or(0);
    let top = area.bottom - rows as f64 * line;
    let left = Area { top, right: area.left + side_width, ..*area };
    let right = Area { top, left: area.right - side_width, ..*area };
    block_at(canvas, &blocks[0], left, options);
    block_at(canvas, &blocks[1], right, options);
    area.bottom = top - options.font.size * 0.4;
}

/// Draws one block. What has no room is counted in the last place.
fn block_at(canvas: &mut Canvas, block: &Block<'_>, area: Area, options: &Options) {
    let font = &options.font;
    let line = font.line_height() + 1.0;
    let places = block.rows * block.columns;
    let cut = block.entries.len() > places;
    let named = if cut { places.saturating_sub(1) } else { block.entries.len() };
    let column_width = area.width() / block.columns as f64;
    let room = (column_width - font.size * 1.8).max(font.size);
    let place = |number: usize| {
        let (row, column) = (number / block.columns, number % block.columns);
        let left = area.left + column as f64 * column_width;
        (left, left + column_width, area.top + (row as f64 + 1.0) * line - font.size * 0.35)
    };
    let style = (font, options.colors.foreground, 0.0);
    for (number, entry) in block.entries.iter().take(named).enumerate() {
        let (left, right, baseline) = place(number);
        let side = font.size * 0.9;
        let name = fit(&entry.name, font, room);
        let (square, at, anchor) = if entry.is_right {
            (right - side, right - font.size * 1.3, Anchor::End)
        } else {
            (left, left + font.size * 1.3, Anchor::Start)
        };
        let top = baseline - side + font.size * 0.1;
        canvas.rect(Area { left: square, top, right: square + side, bottom: top + side }, entry.color);
        canvas.text(&name, (at, baseline), anchor, style);
    }
    if cut {
        let (left, _, baseline) = place(named);
        let more = format!("… and {} more", block.entries.len() - named);
        canvas.text(&fit(&more, font, room), (left, baseline), Anchor::Start, style);
    }
}

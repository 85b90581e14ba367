//! Line graphs: titles, axes, grid and curves (spec graphite §6.5).

use super::canvas::{Anchor, Area, Canvas, Faces, Stroke};
use super::data::{self, Curve, Kind};
use super::legend::{self, Entry};
use super::metadata;
use super::options::{LINE_WIDTH_MAX, LineMode, Options};
use super::request::{DrawError, KeepGoing, View};
use super::text::{TEXT_CHARS_MAX, clean, fit, width};
use super::titles::{no_data, title};
use super::x_axis::Times;
use super::y_axis::Scale;

use crate::query::Series;

/// Everything that places a value on the image.
struct Graph<'g> {
    options: &'g Options,
    area: Area,
    span: (i64, i64),
    left: Scale,
    /// The second axis.
    right: Option<Scale>,
}

/// Draws the whole graph; gives the script with its data.
pub(super) fn draw(
    canvas: &mut Canvas,
    mut area: Area,
    all: &[Series],
    (options, view): (&Options, &View<'_>),
    keep_going: &mut KeepGoing<'_>,
) -> Result<String, DrawError> {
    let span = span(all, view);
    let curves = data::curves(all, options, (span, area.width()), keep_going)?;
    if curves.iter().all(Curve::is_null) {
        no_data(canvas, options);
        return Ok(String::new());
    }
    title(canvas, &mut area, options);
    let is_shown =
        |curve: &&Curve<'_>| curve.kind != Kind::Hidden && !(options.hidden.null_names && curve.is_null());
    let entries: Vec<Entry> = curves
        .iter()
        .filter(is_shown)
        .map(|curve| Entry::new(&curve.series.name, curve.color, curve.is_right))
        .collect();
    legend::draw(canvas, &mut area, &entries, options);
    side_titles(canvas, &mut area, options);
    if !options.hidden.x_axis {
        area.bottom -= options.font.line_height() + 2.0;
        // Half of the label at the top.
        area.top += options.font.size * 0.4;
    }
    area.bottom = area.bottom.max(area.top + 1.0);
    let graph = Graph::new(&curves, options, area, span);
    let times = Times::new(span, graph.area.width(), options, view);
    graph.grid(canvas, &times);
    canvas.clip(graph.area);
    for kind in [Kind::Area, Kind::Line, Kind::Infinite] {
        for curve in curves.iter().filter(|curve| curve.kind == kind) {
            keep_going().map_err(DrawError::Stopped)?;
            graph.curve(canvas, curve);
        }
    }
    canvas.unclip();
    graph.axes(canvas, &times);
    Ok(match canvas.faces() {
        Faces::All => metadata::script(&curves, span, graph.area, options),
        Faces::Regular => String::new(),
    })
}

/// The time that the graph shows: that of the series, or of the request if they have none.
fn span(all: &[Series], view: &View<'_>) -> (i64, i64) {
    let start = all.iter().map(|one| one.start).min().unwrap_or(view.from);
    let end = all.iter().map(|one| one.end).max().unwrap_or(view.until);
    if end > start { (start, end) } else { (view.from, view.until.max(view.from.saturating_add(1))) }
}

/// Titles along the axes.
fn side_titles(canvas: &mut Canvas, area: &mut Area, options: &Options) {
    let font = &options.font;
    let middle = f64::midpoint(area.top, area.bottom);
    let style = |degrees: f64| (font, options.colors.foreground, degrees);
    let text = |text: &str| fit(&clean(text, TEXT_CHARS_MAX), font, area.height());
    let (left, right) = (text(&options.vtitle), text(&options.vtitle_right));
    if !left.is_empty() && !options.vtitle.is_empty() {
        canvas.text(&left, (area.left + font.size, middle), Anchor::Middle, style(-90.0));
        area.left += font.line_height() + 2.0;
    }
    if !right.is_empty() && !options.vtitle_right.is_empty() {
        canvas.text(&right, (area.right - font.size, middle), Anchor::Middle, style(90.0));
        area.right -= font.line_height() + 2.0;
    }
}

impl<'g> Graph<'g> {
    fn new(curves: &[Curve<'_>], options: &'g Options, area: Area, span: (i64, i64)) -> Graph<'g> {
        let is_log = options.log_base.is_some();
        let height = area.height();
        let has_right = curves.iter().any(|curve| curve.is_right);
        let scale =
            |is_right: bool, side| Scale::new(data::range(curves, is_right, is_log), side, options, height);
        let left = scale(false, &options.left);
        let right = has_right.then(|| scale(true, &options.right));
        let mut graph = Graph { options, area, span, left, right };
        if !options.hidden.y_axis {
            let room = |scale: &Scale| {
                let widest =
                    scale.ticks.iter().map(|(_, label)| width(label, &options.font)).fold(0.0, f64::max);
                (widest + options.font.size * 0.7).min(area.width() / 3.0)
            };
            let first = room(&graph.left);
            if options.is_axis_right && graph.right.is_none() {
                graph.area.right -= first;
            } else {
                graph.area.left += first;
            }
            graph.area.right -= graph.right.as_ref().map_or(0.0, room);
        }
        graph
    }

    fn x(&self, time: i64) -> f64 {
        let length = self.span.1.saturating_sub(self.span.0).max(1) as f64;
        let share = time.saturating_sub(self.span.0) as f64 / length;
        self.area.left + share.clamp(-1.0, 2.0) * self.area.width()
    }

    fn y(&self, share: f64) -> f64 {
        self.area.bottom - share * self.area.height()
    }

    fn scale(&self, curve: &Curve<'_>) -> &Scale {
        self.right.as_ref().filter(|_| curve.is_right).unwrap_or(&self.left)
    }

    /// Lines behind the curves.
    fn grid(&self, canvas: &mut Canvas, times: &Times) {
        if self.options.hidden.grid {
            return;
        }
        let colors = &self.options.colors;
        let minor = Stroke { color: colors.minor.faded(0.25), width: 0.5, dash: None };
        let major = Stroke { color: colors.major.faded(0.45), width: 0.6, dash: None };
        let level = |canvas: &mut Canvas, share: f64, stroke: Stroke| {
            let y = self.y(share);
            canvas.line((self.area.left, y), (self.area.right, y), stroke);
        };
        let upright = |canvas: &mut Canvas, time: i64, stroke: Stroke| {
            let x = self.x(time);
            canvas.line((x, self.area.top), (x, self.area.bottom), stroke);
        };
        for share in self.left.minor(self.options.minor_y, self.area.height()) {
            level(canvas, share, minor);
        }
        let length = (self.span.1 - self.span.0).max(1) as f64;
        let gap = |times: &[i64]| match times {
            [first, second, ..] => (second - first) as f64 / length * self.area.width(),
            _ => f64::INFINITY,
        };
        // Lines closer than this would be a grey area.
        let is_wide = |times: &[i64]| gap(times) > 3.0;
        for time in times.minor.iter().filter(|_| is_wide(&times.minor)) {
            if !times.major.contains(time) {
                upright(canvas, *time, minor);
            }
        }
        for (value, _) in &self.left.ticks {
            if let Some(share) = self.left.share(*value).filter(|share| (-1e-6..=1.0 + 1e-6).contains(share))
            {
                level(canvas, share, major);
            }
        }
        for time in times.major.iter().filter(|_| is_wide(&times.major)) {
            upright(canvas, *time, major);
        }
    }

    /// Axes and their labels.
    fn axes(&self, canvas: &mut Canvas, times: &Times) {
        let options = self.options;
        let color = options.colors.foreground;
        let stroke = Stroke { color: color.faded(0.7), width: 0.8, dash: None };
        let Area { left, top, right, bottom } = self.area;
        if !options.hidden.x_axis {
            canvas.line((left, bottom), (right, bottom), stroke);
            let baseline = bottom + options.font.size * 1.25 + 1.0;
            for (time, label) in &times.labels {
                let (x, half) = (self.x(*time), width(label, &options.font) / 2.0);
                // A label that would be cut off at the edge of the image is left out.
                if x - half >= 1.0 && x + half <= f64::from(options.width) - 1.0 {
                    canvas.line((x, bottom), (x, bottom + 3.0), stroke);
                    canvas.text(label, (x, baseline), Anchor::Middle, (&options.font, color, 0.0));
                }
            }
        }
        if options.hidden.y_axis {
            return;
        }
        let is_right = options.is_axis_right && self.right.is_none();
        let x = if is_right { right } else { left };
        canvas.line((x, top), (x, bottom), stroke);
        self.labels(canvas, &self.left, is_right);
        if let Some(scale) = &self.right {
            canvas.line((right, top), (right, bottom), stroke);
            self.labels(canvas, scale, true);
        }
    }

    /// Labels of a y axis, with room between them.
    fn labels(&self, canvas: &mut Canvas, scale: &Scale, is_right: bool) {
        let font = &self.options.font;
        let gap = font.size * 0.4;
        let (x, anchor) = match is_right {
            true => (self.area.right + gap, Anchor::Start),
            false => (self.area.left - gap, Anchor::End),
        };
        let edge = if is_right { f64::from(self.options.width) - x } else { x };
        let mut free = f64::INFINITY;
        for (value, label) in &scale.ticks {
            let Some(share) = scale.share(*value).filter(|share| (-1e-6..=1.0 + 1e-6).contains(share)) else {
                continue;
            };
            let y = self.y(share);
            if y > free {
                continue;
            }
            free = y - font.size * 1.15;
            let label = fit(label, font, edge - 1.0);
            canvas.text(
                &label,
                (x, y + font.size * 0.35),
                anchor,
                (font, self.options.colors.foreground, 0.0),
            );
        }
    }

    /// One curve.
    fn curve(&self, canvas: &mut Canvas, curve: &Curve<'_>) {
        let scale = self.scale(curve);
        let side = if curve.is_right { &self.options.right } else { &self.options.left };
        let of_side = |value: Option<f64>| value.filter(|_| self.right.is_some());
        let drawing = &curve.series.drawing;
        let width =
            drawing.line_width.or_else(|| of_side(side.line_width)).unwrap_or(self.options.line_width);
        let dash = drawing.dashed.or_else(|| of_side(side.dash)).filter(|dash| *dash > 0.0);
        let stroke = Stroke {
            color: curve.color.faded(drawing.alpha.unwrap_or(1.0)),
            width: if width.is_finite() { width.clamp(0.0, LINE_WIDTH_MAX) } else { self.options.line_width },
            dash: dash.map(|dash| dash.clamp(1.0, 1_000.0)),
        };
        if curve.kind == Kind::Infinite {
            return self.upright(canvas, curve, stroke);
        }
        let height = |value: &f64| scale.share(*value).map_or(f64::NAN, |share| self.y(share));
        let tops: Vec<f64> = curve.values.iter().map(height).collect();
        let runs = self.runs(&tops);
        let lines: Vec<Vec<(f64, f64)>> = runs.iter().map(|run| self.trace(curve, run, &tops)).collect();
        if curve.kind == Kind::Area {
            let zero = self.y(scale.base());
            let base = |value: &f64| {
                if value.is_nan() { zero } else { scale.share(*value).map_or(zero, |s| self.y(s)) }
            };
            let bases: Vec<f64> = match &curve.base {
                Some(values) => values.iter().map(base).collect(),
                None => vec![zero; tops.len()],
            };
            let areas = runs.iter().zip(&lines).map(|(run, line)| {
                let back = self.trace(curve, run, &bases);
                line.iter().copied().chain(back.into_iter().rev()).collect()
            });
            let areas: Vec<Vec<(f64, f64)>> = areas.collect();
            let fill = curve.color.faded(drawing.alpha.or(self.options.area_alpha).unwrap_or(1.0));
            canvas.fill(&areas, fill);
            // An opaque area needs no line; a clear one is recognised by it.
            if fill.alpha >= 1.0 && dash.is_none() {
                return;
            }
        }
        let stroke = if curve.kind == Kind::Area { Stroke { color: curve.color, ..stroke } } else { stroke };
        canvas.outline(&lines, stroke, weight(&lines, stroke));
    }

    /// Vertical lines where the values are not zero.
    fn upright(&self, canvas: &mut Canvas, curve: &Curve<'_>, stroke: Stroke) {
        let known = curve.values.iter().enumerate().filter(|(_, value)| !value.is_nan() && **value != 0.0);
        let mut lines: Vec<Vec<(f64, f64)>> = known
            .map(|(number, _)| {
                let x = self.x(curve.time(number));
                vec![(x, self.area.bottom), (x, self.area.top)]
            })
            .collect();
        // Lines at one place are one line: opacity would add up, and they cost.
        lines.dedup_by(|one, other| (one[0].0 - other[0].0).abs() < 0.5);
        canvas.outline(&lines, stroke, weight(&lines, stroke));
    }

    /// Numbers of values that one line goes through.
    fn runs(&self, heights: &[f64]) -> Vec<Vec<usize>> {
        let bridged = match self.options.line_mode {
            LineMode::Connected => self.options.connected_limit,
            LineMode::Slope | LineMode::Staircase => 0,
        };
        let mut runs: Vec<Vec<usize>> = Vec::new();
        for (number, _) in heights.iter().enumerate().filter(|(_, height)| !height.is_nan()) {
            match runs.last_mut() {
                Some(run) if run.last().is_some_and(|last| number - last - 1 <= bridged) => run.push(number),
                _ => runs.push(vec![number]),
            }
        }
        runs
    }

    /// The points of a run.
    fn trace(&self, curve: &Curve<'_>, run: &[usize], heights: &[f64]) -> Vec<(f64, f64)> {
        let is_staircase = self.options.line_mode == LineMode::Staircase || heights.len() == 1;
        let at =
            |number: usize| (self.x(curve.time(number)), self.x(curve.time(number + 1)), heights[number]);
        let mut points = Vec::with_capacity(run.len() * if is_staircase { 2 } else { 1 });
        for number in run {
            let (x, next, y) = at(*number);
            points.push((x, y));
            if is_staircase {
                points.push((next, y));
            }
        }
        // A value between two nulls is a dot.
        if let ([(x, y)], false) = (&points[..], is_staircase) {
            points = vec![(x - 1.0, *y), (x + 1.0, *y)];
        }
        points
    }
}

/// The work of drawing lines, in points: dashes are lines of their own.
fn weight(lines: &[Vec<(f64, f64)>], stroke: Stroke) -> usize {
    let points: usize = lines.iter().map(Vec::len).sum();
    let Some(dash) = stroke.dash else { return points };
    let length = |line: &Vec<(f64, f64)>| -> f64 {
        line.windows(2).map(|pair| (pair[1].0 - pair[0].0).abs() + (pair[1].1 - pair[0].1).abs()).sum()
    };
    points + (lines.iter().map(length).sum::<f64>() / dash) as usize
}

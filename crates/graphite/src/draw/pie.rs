//! Pie charts: one slice for each series (spec graphite §6.5).

use std::f64::consts::{PI, TAU};

use super::canvas::{Anchor, Area, Canvas};
use super::color::Color;
use super::legend::{self, Entry};
use super::options::{Options, PieMode, Units, ValueLabels};
use super::request::{DrawError, KeepGoing};
use super::titles::{no_data, title};
use super::y_axis::label;

use crate::query::Series;

/// One slice.
struct Slice<'s> {
    series: &'s Series,
    value: f64,
    color: Color,
}

/// The value of a series; nothing for one that has no share of a pie.
fn value(series: &Series, mode: PieMode) -> Option<f64> {
    // Sums of these stay finite.
    let known =
        || series.values.iter().copied().filter(|value| value.is_finite()).map(|v| v.clamp(-1e290, 1e290));
    let count = known().count();
    let value = match mode {
        PieMode::Average => known().sum::<f64>() / count as f64,
        PieMode::Maximum => known().fold(f64::NEG_INFINITY, f64::max),
        PieMode::Minimum => known().fold(f64::INFINITY, f64::min),
    };
    (count > 0 && value > 0.0).then_some(value)
}

/// Draws the whole chart.
pub(super) fn draw(
    canvas: &mut Canvas,
    mut area: Area,
    all: &[Series],
    options: &Options,
    keep_going: &mut KeepGoing<'_>,
) -> Result<(), DrawError> {
    let mut slices = Vec::new();
    for (number, series) in all.iter().filter(|one| !one.drawing.is_invisible).enumerate() {
        keep_going().map_err(DrawError::Stopped)?;
        let named = series.drawing.color.as_deref().and_then(Color::parse);
        let color = named.unwrap_or_else(|| options.colors.line(number));
        let color = color.faded(series.drawing.alpha.or(options.area_alpha).unwrap_or(1.0));
        if let Some(value) = value(series, options.pie.mode) {
            slices.push(Slice { series, value, color });
        }
    }
    if slices.is_empty() {
        no_data(canvas, options);
        return Ok(());
    }
    title(canvas, &mut area, options);
    let entries: Vec<Entry> =
        slices.iter().map(|slice| Entry::new(&slice.series.name, slice.color, false)).collect();
    legend::draw(canvas, &mut area, &entries, options);
    let radius = (area.width().min(area.height()) / 2.0 - 2.0).max(1.0);
    let center = (f64::midpoint(area.left, area.right), f64::midpoint(area.top, area.bottom));
    let total: f64 = slices.iter().map(|slice| slice.value).sum();
    let mut angle = 1.5 * PI;
    let mut labels = Vec::new();
    for slice in &slices {
        let share = slice.value / total;
        let next = angle + share * TAU;
        let fill = slice.color;
        canvas.fill_data(&sector(center, radius, (angle, next), share), fill, options.colors.background);
        if share * 100.0 >= options.pie.labels_min {
            labels.push((f64::midpoint(angle, next), share, slice.value));
        }
        angle = next;
    }
    for (angle, share, value) in labels {
        let text = match options.pie.labels {
            ValueLabels::Percent => format!("{}%", label(share * 100.0, 0.1, Units::None)),
            ValueLabels::Number => label(value, hundredth(value), options.units),
            ValueLabels::None => continue,
        };
        let is_flipped = options.pie.is_rotated && angle.cos() < 0.0;
        let degrees = if options.pie.is_rotated {
            angle.to_degrees() + if is_flipped { 180.0 } else { 0.0 }
        } else {
            0.0
        };
        let distance = radius * if share > 0.999 { 0.0 } else { 0.65 };
        // The middle of the text is at the point, not its baseline.
        let down = options.font.size * 0.35;
        let (sin, cos) = degrees.to_radians().sin_cos();
        let at =
            (center.0 + distance * angle.cos() - sin * down, center.1 + distance * angle.sin() + cos * down);
        canvas.text(&text, at, Anchor::Middle, (&options.font, options.pie.labels_color, degrees));
    }
    Ok(())
}

/// The power of ten that is a hundredth of a value: its third digit.
fn hundredth(value: f64) -> f64 {
    10.0_f64.powi(value.log10().floor().clamp(-290.0, 290.0) as i32 - 2)
}

/// Path data of a sector; of a circle for all of the pie.
fn sector(center: (f64, f64), radius: f64, (from, to): (f64, f64), share: f64) -> String {
    let point = |angle: f64| (center.0 + radius * angle.cos(), center.1 + radius * angle.sin());
    if share > 0.9999 {
        let ((left, right), y) = ((center.0 - radius, center.0 + radius), center.1);
        return format!(
            "M{left:.2} {y:.2}A{radius:.2} {radius:.2} 0 1 1 {right:.2} {y:.2}A{radius:.2} {radius:.2} 0 1 1 {left:.2} {y:.2}Z"
        );
    }
    let ((x1, y1), (x2, y2)) = (point(from), point(to));
    let is_large = u8::from(share > 0.5);
    let (x, y) = center;
    format!("M{x:.2} {y:.2}L{x1:.2} {y1:.2}A{radius:.2} {radius:.2} 0 {is_large} 1 {x2:.2} {y2:.2}Z")
}

//! The title of an image, and what an image without data says.

use super::canvas::{Anchor, Area, Canvas};
use super::color::Color;
use super::options::Options;
use super::text::{fit, lines};

/// Draws the title at the top, and takes its height from the area.
pub(super) fn title(canvas: &mut Canvas, area: &mut Area, options: &Options) {
    let font = options.font.title();
    for line in lines(&options.title) {
        let at = (f64::midpoint(area.left, area.right), area.top + font.size);
        let line = fit(&line, &font, area.width());
        canvas.text(&line, at, Anchor::Middle, (&font, options.colors.foreground, 0.0));
        area.top += font.line_height();
    }
    if !options.title.is_empty() {
        area.top += font.size * 0.3;
    }
}

/// Says that there is nothing to draw.
pub(super) fn no_data(canvas: &mut Canvas, options: &Options) {
    const TEXT: &str = "No Data";
    let (width, height) = (f64::from(options.width), f64::from(options.height));
    let size = (height / 6.0).min(width / 6.0).clamp(6.0, options.font.size.max(12.0) * 2.0);
    let font = options.font.sized(size);
    let at = (width / 2.0, height / 2.0 + size * 0.35);
    canvas.text(TEXT, at, Anchor::Middle, (&font, Color::RED, 0.0));
    let mut area = Area { left: 0.0, top: options.margin, right: width, bottom: height };
    title(canvas, &mut area, options);
}

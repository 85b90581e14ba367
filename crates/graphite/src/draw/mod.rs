//! Images of series: line graphs and pie charts as SVG (spec graphite §6.5).
//!
//! Path of an image: series of [`render`](crate::query::render) -> `data` (curves by pixels) -> `y_axis`, `x_axis` -> `lines` or `pie` ->
//! `canvas` -> a [`Picture`], which is one SVG document, or several to be drawn one on the other.
//! Pure: the font is not known here, texts are measured from above. Not here: PNG, HTTP.
//! Invariant: the number of points and the length of texts are limited whatever the series and options are, no number is NaN,
//! and names are escaped.
//!
//! | file | job |
//! |---|---|
//! | `options` | options as text to values, with limits |
//! | `color` | names, hex, templates |
//! | `text` | texts cleaned, shortened, measured, escaped |
//! | `canvas` | elements of SVG in layers |
//! | `data` | series consolidated, coloured, stacked |
//! | `y_axis`, `x_axis` | limits, lines of the grid, labels |
//! | `lines`, `pie` | the two graphs |
//! | `titles` | the title, and what an empty image says |
//! | `request` | the time range, limits, and why there is no image |
//! | `legend` | names in columns |
//! | `metadata` | the data as a script, for tools |

mod canvas;
mod color;
mod data;
mod legend;
mod lines;
mod metadata;
mod options;
mod pie;
mod request;
#[cfg(test)]
mod tests;
mod text;
mod titles;
mod x_axis;
mod y_axis;

pub use canvas::{Faces, Picture};
pub use options::{Options, PIXELS_MAX, SIDE_MAX};
pub use request::{DrawError, KeepGoing, SERIES_MAX, View};

use canvas::{Area, Canvas};
use options::GraphType;

use crate::query::Series;

/// Draws series. Without any value the image says "No Data".
///
/// # Errors
/// [`DrawError`]: too many series, or what `keep_going` says.
pub fn draw(
    all: &[Series],
    options: &Options,
    view: &View<'_>,
    faces: Faces,
    keep_going: &mut KeepGoing<'_>,
) -> Result<Picture, DrawError> {
    if all.len() > SERIES_MAX {
        return Err(DrawError::TooManySeries(all.len()));
    }
    let (width, height) = (options.width, options.height);
    let mut canvas = Canvas::new(faces);
    let whole = Area { left: 0.0, top: 0.0, right: f64::from(width), bottom: f64::from(height) };
    canvas.rect(whole, options.colors.background);
    let margin = options.margin;
    let area = Area { left: margin, top: margin, right: whole.right - margin, bottom: whole.bottom - margin };
    let metadata = match options.graph_type {
        GraphType::Line => lines::draw(&mut canvas, area, all, (options, view), keep_going)?,
        GraphType::Pie => {
            pie::draw(&mut canvas, area, all, options, keep_going)?;
            String::new()
        }
    };
    Ok(Picture { metadata, ..canvas.finish((width, height)) })
}

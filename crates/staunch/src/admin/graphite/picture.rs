//! Images as PNG: layers of SVG to pixels (spec graphite §6.5).
//!
//! Between two layers the query can end: a layer has few elements (`graphite::draw`), so its time is short.
//! Not here: what an image shows (`graphite::draw`).

use std::sync::{Arc, LazyLock};

use axum::http::StatusCode;
use graphite::draw::Picture;
use graphite::query::Stop;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};

use crate::admin::refusal::Refusal;

/// The fonts of all images, read once.
static FONTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let mut fonts = Database::new();
    fonts.load_font_data(epaint_default_fonts::UBUNTU_LIGHT.to_vec());
    let family = |fonts: &Database, number: usize| {
        let face = fonts.faces().nth(number);
        face.and_then(|face| face.families.first()).map(|(name, _)| name.clone()).unwrap_or_default()
    };
    let sans = family(&fonts, 0);
    fonts.load_font_data(epaint_default_fonts::HACK_REGULAR.to_vec());
    let mono = family(&fonts, 1);
    fonts.set_sans_serif_family(&sans);
    fonts.set_serif_family(&sans);
    fonts.set_monospace_family(mono);
    Arc::new(fonts)
});

/// Draws a picture as PNG.
///
/// # Errors
/// When `goes_on` says that the query has to end.
pub(super) fn png(picture: &Picture, goes_on: impl Fn() -> Result<(), Stop>) -> Result<Vec<u8>, Refusal> {
    let bug = |what: &str| {
        tracing::error!("an image cannot be drawn: {what}");
        (StatusCode::INTERNAL_SERVER_ERROR, "the image cannot be drawn: this is a bug of Staunch".to_owned())
    };
    let mut pixels =
        Pixmap::new(picture.width(), picture.height()).ok_or_else(|| bug("its size is wrong"))?;
    let options = Options { fontdb: Arc::clone(&FONTS), ..Options::default() };
    for layer in picture.layers() {
        goes_on().map_err(|why| (StatusCode::UNPROCESSABLE_ENTITY, why.to_string()))?;
        let tree = Tree::from_str(&layer, &options).map_err(|error| bug(&error.to_string()))?;
        resvg::render(&tree, Transform::identity(), &mut pixels.as_mut());
    }
    pixels.encode_png().map_err(|error| bug(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use graphite::draw::{Faces, Options, View, draw};
    use graphite::query::TimeZone;

    use super::*;

    fn picture(query: &'static [(&'static str, &'static str)]) -> Picture {
        let value =
            |name: &str| query.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned());
        let options = Options::read(&value).expect("right options");
        let view = View { from: 0, until: 60, zone: &TimeZone::UTC };
        draw(&[], &options, &view, Faces::Regular, &mut || Ok(())).expect("no series")
    }

    /// Pixels that are not black.
    fn lit(png: &[u8]) -> usize {
        let pixels = Pixmap::decode_png(png).expect("a PNG");
        pixels
            .pixels()
            .iter()
            .filter(|pixel| pixel.red() > 0 || pixel.green() > 0 || pixel.blue() > 0)
            .count()
    }

    #[test]
    fn texts_are_drawn_in_every_face() {
        let faces: [&[(&str, &str)]; 4] =
            [&[], &[("fontName", "Courier")], &[("fontBold", "true")], &[("fontItalic", "true")]];
        let images: Vec<Vec<u8>> =
            faces.iter().map(|query| png(&picture(query), || Ok(())).expect("not stopped")).collect();
        for (number, image) in images.iter().enumerate() {
            assert!(lit(image) > 200, "face {number}: {} pixels", lit(image));
            assert!(images[..number].iter().all(|other| other != image), "face {number} is as another");
        }
    }

    #[test]
    fn drawing_ends_with_the_query() {
        let calls = Cell::new(0);
        let late = || {
            calls.set(calls.get() + 1);
            Err(Stop::Deadline)
        };
        let (status, why) = png(&picture(&[]), late).expect_err("the time is over");
        assert_eq!(
            (status, why, calls.get()),
            (StatusCode::UNPROCESSABLE_ENTITY, Stop::Deadline.to_string(), 1)
        );
    }
}

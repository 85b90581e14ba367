//! SVG elements, in layers that can be drawn one after the other.

use super::color::Color;
use super::text::{Font, is_monospace, push_escaped, push_number};

/// Points of one layer before another begins: a drawing program can stop between layers.
const LAYER_POINTS: usize = 10_000;

/// Elements of one layer before another begins.
const LAYER_ELEMENTS: usize = 200;

/// Which faces of a font the program has that will draw the texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Faces {
    /// All, as browsers.
    All,
    /// Only the regular ones of the families `sans-serif` and `monospace`: bold is drawn with an outline, italic with a slant.
    Regular,
}

/// A finished drawing.
#[derive(Debug)]
pub struct Picture {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) defs: String,
    pub(super) layers: Vec<String>,
    /// Script with the data of the graph; empty for a picture that is not for viewers.
    pub(super) metadata: String,
}

impl Picture {
    /// Width in pixels.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Height in pixels.
    #[must_use]
    pub fn height(&self) -> u32 {
        self.height
    }

    /// The whole drawing as one SVG document.
    #[must_use]
    pub fn svg(&self) -> String {
        let mut out = self.head();
        self.layers.iter().for_each(|layer| out.push_str(layer));
        out.push_str(&self.metadata);
        out.push_str("</svg>\n");
        out
    }

    /// The drawing as SVG documents to be drawn one on the other.
    pub fn layers(&self) -> impl Iterator<Item = String> + '_ {
        self.layers.iter().map(|layer| self.head() + layer + "</svg>\n")
    }

    fn head(&self) -> String {
        let (width, height, defs) = (self.width, self.height, &self.defs);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\">\n{defs}"
        )
    }
}

/// A part of the image in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

impl Area {
    pub(super) fn width(&self) -> f64 {
        self.right - self.left
    }

    pub(super) fn height(&self) -> f64 {
        self.bottom - self.top
    }
}

/// Where a text stands at its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// How an outline is drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stroke {
    pub(super) color: Color,
    pub(super) width: f64,
    /// Length of dashes and gaps in pixels.
    pub(super) dash: Option<f64>,
}

/// What is drawn so far.
#[derive(Debug)]
pub(super) struct Canvas {
    faces: Faces,
    layers: Vec<String>,
    current: String,
    defs: String,
    points: usize,
    elements: usize,
    is_clipped: bool,
}

const CLIP: &str = "<g clip-path=\"url(#area)\">\n";

impl Canvas {
    pub(super) fn new(faces: Faces) -> Canvas {
        Canvas {
            faces,
            layers: Vec::new(),
            current: String::new(),
            defs: String::new(),
            points: 0,
            elements: 0,
            is_clipped: false,
        }
    }

    pub(super) fn finish(mut self, size: (u32, u32)) -> Picture {
        self.new_layer();
        let (width, height) = size;
        Picture { width, height, defs: self.defs, layers: self.layers, metadata: String::new() }
    }

    pub(super) fn faces(&self) -> Faces {
        self.faces
    }

    /// From here on only what is in the area is shown, until [`Canvas::unclip`].
    pub(super) fn clip(&mut self, area: Area) {
        self.defs = String::from("<defs><clipPath id=\"area\"><rect");
        push_rect(area, &mut self.defs);
        self.defs.push_str("/></clipPath></defs>\n");
        self.new_layer();
        self.current.push_str(CLIP);
        self.is_clipped = true;
    }

    pub(super) fn unclip(&mut self) {
        self.new_layer();
        self.current.clear();
        self.is_clipped = false;
    }

    fn new_layer(&mut self) {
        if self.is_clipped {
            self.current.push_str("</g>\n");
        }
        let next = if self.is_clipped { CLIP.to_owned() } else { String::new() };
        let done = std::mem::replace(&mut self.current, next);
        if self.elements > 0 {
            self.layers.push(done);
        }
        (self.points, self.elements) = (0, 0);
    }

    fn count(&mut self, points: usize) {
        self.points += points;
        self.elements += 1;
        if self.points >= LAYER_POINTS || self.elements >= LAYER_ELEMENTS {
            self.new_layer();
        }
    }

    fn attribute(&mut self, name: &str, value: f64) {
        self.current.push(' ');
        self.current.push_str(name);
        self.current.push_str("=\"");
        push_number(value, &mut self.current);
        self.current.push('"');
    }

    fn paint(&mut self, kind: &str, color: Color) {
        self.current.push_str(&format!(" {kind}=\"{}\"", color.hex()));
        if color.alpha < 1.0 {
            self.attribute(&format!("{kind}-opacity"), color.alpha);
        }
    }

    /// A filled rectangle.
    pub(super) fn rect(&mut self, area: Area, fill: Color) {
        self.current.push_str("<rect");
        push_rect(area, &mut self.current);
        self.paint("fill", fill);
        self.current.push_str("/>\n");
        self.count(4);
    }

    /// A straight line.
    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), stroke: Stroke) {
        self.outline(&[vec![from, to]], stroke, 2);
    }

    /// Lines through the points of each run. `weight` is the work of drawing them, in points.
    pub(super) fn outline(&mut self, runs: &[Vec<(f64, f64)>], stroke: Stroke, weight: usize) {
        self.current.push_str("<path fill=\"none\" stroke-linejoin=\"round\"");
        self.paint("stroke", stroke.color);
        self.attribute("stroke-width", stroke.width);
        if let Some(dash) = stroke.dash {
            self.current.push_str(" stroke-dasharray=\"");
            push_number(dash, &mut self.current);
            self.current.push(' ');
            push_number(dash, &mut self.current);
            self.current.push('"');
        }
        self.data(runs, false);
        self.count(weight);
    }

    /// Closed areas, filled.
    pub(super) fn fill(&mut self, runs: &[Vec<(f64, f64)>], fill: Color) {
        self.current.push_str("<path");
        self.paint("fill", fill);
        self.data(runs, true);
        self.count(runs.iter().map(Vec::len).sum());
    }

    /// A path by its own data, filled: for the sectors of a pie.
    pub(super) fn fill_data(&mut self, data: &str, fill: Color, stroke: Color) {
        self.current.push_str("<path");
        self.paint("fill", fill);
        self.paint("stroke", stroke);
        self.current.push_str(&format!(" d=\"{data}\"/>\n"));
        self.count(16);
    }

    fn data(&mut self, runs: &[Vec<(f64, f64)>], is_closed: bool) {
        self.current.push_str(" d=\"");
        for run in runs {
            for (number, (x, y)) in run.iter().enumerate() {
                self.current.push(if number == 0 { 'M' } else { 'L' });
                push_number(*x, &mut self.current);
                self.current.push(' ');
                push_number(*y, &mut self.current);
            }
            if is_closed && !run.is_empty() {
                self.current.push('Z');
            }
        }
        self.current.push_str("\"/>\n");
    }

    /// A text at a point of its baseline, turned by degrees.
    pub(super) fn text(&mut self, text: &str, at: (f64, f64), anchor: Anchor, style: (&Font, Color, f64)) {
        let (font, color, degrees) = style;
        if text.trim().is_empty() {
            return;
        }
        self.current.push_str("<text font-family=\"");
        if self.faces == Faces::All {
            push_escaped(&font.family, &mut self.current);
            self.current.push_str(", ");
        }
        self.current.push_str(if is_monospace(&font.family) { "monospace\"" } else { "sans-serif\"" });
        self.attribute("font-size", font.size);
        self.paint("fill", color);
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        self.current.push_str(anchor);
        let is_slanted = font.italic && self.faces == Faces::Regular;
        match self.faces {
            Faces::All if font.bold => self.current.push_str(" font-weight=\"bold\""),
            Faces::Regular if font.bold => {
                self.paint("stroke", color);
                self.attribute("stroke-width", font.size * 0.07);
            }
            Faces::All | Faces::Regular => {}
        }
        if font.italic && self.faces == Faces::All {
            self.current.push_str(" font-style=\"italic\"");
        }
        if degrees == 0.0 && !is_slanted {
            self.attribute("x", at.0);
            self.attribute("y", at.1);
        } else {
            self.current.push_str(" transform=\"translate(");
            push_number(at.0, &mut self.current);
            self.current.push(' ');
            push_number(at.1, &mut self.current);
            self.current.push_str(") rotate(");
            push_number(degrees, &mut self.current);
            self.current.push_str(if is_slanted { ") skewX(-12)\"" } else { ")\"" });
        }
        self.current.push('>');
        push_escaped(text, &mut self.current);
        self.current.push_str("</text>\n");
        self.count(text.len() * 8);
    }
}

fn push_rect(area: Area, out: &mut String) {
    let parts = [
        ("x", area.left),
        ("y", area.top),
        ("width", area.width().max(0.0)),
        ("height", area.height().max(0.0)),
    ];
    for (name, value) in parts {
        out.push(' ');
        out.push_str(name);
        out.push_str("=\"");
        push_number(value, out);
        out.push('"');
    }
}

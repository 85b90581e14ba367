//! The options of images as text, read once and with limits (spec graphite §6.5).
//!
//! Numbers out of range are brought into it, and unknown values are ignored, except where the image would be another one
//! than the client meant: sizes and the words of modes.

use super::color::{Color, Colors};
use super::text::{Font, TEXT_CHARS_MAX, clean};

/// Largest width and height in pixels.
pub const SIDE_MAX: u32 = 4_000;

/// Most pixels of an image: the memory of a PNG before it is packed is 4 bytes for each.
pub const PIXELS_MAX: u32 = 4_000_000;

/// Smallest width and height in pixels.
const SIDE_MIN: u32 = 10;

/// Most numbers of `yDivisors`, and the largest.
const DIVISORS_MAX: usize = 10;
const DIVISOR_MAX: u32 = 50;

/// `graphType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GraphType {
    Line,
    Pie,
}

/// `pieMode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieMode {
    Average,
    Maximum,
    Minimum,
}

/// `lineMode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineMode {
    Slope,
    Staircase,
    Connected,
}

/// `areaMode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AreaMode {
    None,
    First,
    All,
    Stacked,
}

/// `yUnitSystem`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Units {
    Si,
    Binary,
    Sec,
    Msec,
    None,
}

/// `valueLabels` of a pie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueLabels {
    Percent,
    Number,
    None,
}

/// One of the two y axes and the series on it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Side {
    pub(super) min: Option<f64>,
    pub(super) max: Option<f64>,
    /// `yMax=max`: the axis ends at the largest value.
    pub(super) ends_at_data: bool,
    pub(super) limit: Option<f64>,
    pub(super) step: Option<f64>,
    pub(super) line_width: Option<f64>,
    pub(super) color: Option<Color>,
    pub(super) dash: Option<f64>,
}

/// What is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hidden {
    /// None: hidden if there are many series.
    pub(super) legend: Option<bool>,
    pub(super) x_axis: bool,
    pub(super) y_axis: bool,
    pub(super) grid: bool,
    /// Series without values are not in the legend.
    pub(super) null_names: bool,
}

/// Options of a pie chart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pie {
    pub(super) mode: PieMode,
    pub(super) labels: ValueLabels,
    /// Percent below which a slice has no label.
    pub(super) labels_min: f64,
    pub(super) labels_color: Color,
    pub(super) is_rotated: bool,
}

/// All options of an image.
#[derive(Clone, Debug)]
pub struct Options {
    pub(super) graph_type: GraphType,
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) margin: f64,
    pub(super) colors: Colors,
    pub(super) font: Font,
    pub(super) title: String,
    pub(super) vtitle: String,
    pub(super) vtitle_right: String,
    pub(super) line_mode: LineMode,
    pub(super) connected_limit: usize,
    pub(super) line_width: f64,
    pub(super) area_mode: AreaMode,
    pub(super) area_alpha: Option<f64>,
    pub(super) null_is_zero: bool,
    pub(super) left: Side,
    pub(super) right: Side,
    /// Empty: chosen by the height.
    pub(super) divisors: Vec<u32>,
    pub(super) units: Units,
    pub(super) is_axis_right: bool,
    pub(super) log_base: Option<f64>,
    pub(super) hidden: Hidden,
    pub(super) is_legend_unique: bool,
    pub(super) x_step_min: f64,
    pub(super) minor_y: usize,
    pub(super) x_format: Option<String>,
    pub(super) pie: Pie,
}

/// The parameters of a request by name, with the reading of graphite-web.
struct Values<'v>(&'v dyn Fn(&str) -> Option<String>);

impl Values<'_> {
    /// A value; empty ones and `default` are as none.
    fn text(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|text| !text.trim().is_empty() && text != "default")
    }

    /// A finite number.
    fn number(&self, name: &str) -> Option<f64> {
        self.text(name)?.trim().parse().ok().filter(|number: &f64| number.is_finite())
    }

    fn number_in(&self, name: &str, least: f64, most: f64) -> Option<f64> {
        self.number(name).map(|number| number.clamp(least, most))
    }

    /// `true` or `false` in any case, or a number.
    fn flag(&self, name: &str) -> Option<bool> {
        let text = self.text(name)?.trim().to_ascii_lowercase();
        match text.as_str() {
            "true" => Some(true),
            "false" => Some(false),
            text => text.parse().ok().map(|number: f64| number != 0.0),
        }
    }

    fn color(&self, name: &str) -> Option<Color> {
        Color::parse(&self.text(name)?)
    }

    /// A word of a mode, which has to be known.
    fn word<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<T, String> {
        let Some(given) = self.text(name) else { return Ok(words[0].1) };
        let known = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(&given));
        known.map(|(_, value)| *value).ok_or_else(|| {
            let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            format!("`{name}` is one of {}, not `{}`", all.join(", "), clean(&given, 40))
        })
    }

    fn side_length(&self, name: &str, default: u32) -> Result<u32, String> {
        let Some(given) = self.text(name) else { return Ok(default) };
        let length = given.trim().parse().ok().filter(|length| (SIDE_MIN..=SIDE_MAX).contains(length));
        length.ok_or_else(|| {
            let given = clean(&given, 40);
            format!("`{name}` is a whole number of pixels from {SIDE_MIN} to {SIDE_MAX}, not `{given}`")
        })
    }

    fn side(&self, names: (&str, &str), is_only: bool) -> Side {
        let (end, start) = names;
        let named = |name: &str| {
            let of_side = self.text(&format!("{name}{end}"));
            let general = || if is_only { self.text(name) } else { None };
            of_side.or_else(general)
        };
        let number = |name: &str| named(name)?.trim().parse().ok().filter(|number: &f64| number.is_finite());
        let old = |name: &str| if is_only { self.number(name) } else { None };
        let dashed = format!("{start}Dashed");
        let dash = match self.flag(&dashed) {
            Some(true) => Some(self.number_in(&dashed, 1.0, 100.0).unwrap_or(5.0)),
            _ => None,
        };
        Side {
            min: number("yMin").or_else(|| old("min")),
            max: number("yMax").or_else(|| old("max")),
            ends_at_data: named("yMax").is_some_and(|text| text == "max"),
            limit: number("yLimit"),
            step: number("yStep").filter(|step| *step > 0.0),
            line_width: self.number_in(&format!("{start}Width"), 0.0, LINE_WIDTH_MAX),
            color: self.color(&format!("{start}Color")),
            dash,
        }
    }

    fn colors(&self) -> Colors {
        let mut colors = Colors::template(&self.text("template").unwrap_or_default());
        let parts = [
            ("bgcolor", &mut colors.background),
            ("fgcolor", &mut colors.foreground),
            ("majorGridLineColor", &mut colors.major),
            ("minorGridLineColor", &mut colors.minor),
        ];
        for (name, part) in parts {
            *part = self.color(name).unwrap_or(*part);
        }
        let lines = self.text("colorList").map(|list| Colors::list(&list)).filter(|list| !list.is_empty());
        colors.lines = lines.unwrap_or(colors.lines);
        colors
    }

    fn font(&self) -> Font {
        Font {
            family: clean(&self.text("fontName").unwrap_or_else(|| "Sans".to_owned()), 50)
                .replace([',', ';'], " "),
            size: self.number_in("fontSize", 4.0, 72.0).unwrap_or(10.0),
            bold: self.flag("fontBold").unwrap_or(false),
            italic: self.flag("fontItalic").unwrap_or(false),
        }
    }

    fn hidden(&self) -> Hidden {
        let is_only_graph = self.flag("graphOnly").unwrap_or(false);
        let flag = |name: &str| is_only_graph || self.flag(name).unwrap_or(false);
        let no_axes = flag("hideAxes");
        Hidden {
            legend: if is_only_graph { Some(true) } else { self.flag("hideLegend") },
            x_axis: no_axes || flag("hideXAxis"),
            y_axis: no_axes || flag("hideYAxis"),
            grid: flag("hideGrid"),
            null_names: self.flag("hideNullFromLegend").unwrap_or(false),
        }
    }

    fn log_base(&self) -> Option<f64> {
        let text = self.text("logBase")?;
        let base = if text.trim() == "e" { std::f64::consts::E } else { text.trim().parse().ok()? };
        (1.01..=1e9).contains(&base).then_some(base)
    }

    fn divisors(&self) -> Vec<u32> {
        let text = self.text("yDivisors").unwrap_or_default();
        let numbers = text.split(',').filter_map(|part| part.trim().parse().ok());
        numbers.filter(|number| (1..=DIVISOR_MAX).contains(number)).take(DIVISORS_MAX).collect()
    }

    fn pie(&self) -> Result<Pie, String> {
        let modes =
            [("average", PieMode::Average), ("maximum", PieMode::Maximum), ("minimum", PieMode::Minimum)];
        let labels =
            [("percent", ValueLabels::Percent), ("number", ValueLabels::Number), ("none", ValueLabels::None)];
        Ok(Pie {
            mode: self.word("pieMode", &modes)?,
            labels: self.word("valueLabels", &labels)?,
            labels_min: self.number_in("valueLabelsMin", 0.0, 100.0).unwrap_or(5.0),
            labels_color: self.color("valueLabelsColor").unwrap_or(Color::BLACK),
            is_rotated: self.word("pieLabels", &[("horizontal", false), ("rotated", true)])?,
        })
    }
}

/// Widest line in pixels.
pub(super) const LINE_WIDTH_MAX: f64 = 50.0;

impl Options {
    /// Reads the options that `value` has by name.
    ///
    /// # Errors
    /// A sentence that names the option: a size out of range, or an unknown word of a mode.
    pub fn read(value: &dyn Fn(&str) -> Option<String>) -> Result<Options, String> {
        let values = Values(value);
        let graph_types = [("line", GraphType::Line), ("pie", GraphType::Pie)];
        let line_modes = [
            ("slope", LineMode::Slope),
            ("staircase", LineMode::Staircase),
            ("connected", LineMode::Connected),
        ];
        let area_modes = [
            ("none", AreaMode::None),
            ("first", AreaMode::First),
            ("all", AreaMode::All),
            ("stacked", AreaMode::Stacked),
        ];
        let (width, height) = (values.side_length("width", 330)?, values.side_length("height", 250)?);
        if width * height > PIXELS_MAX {
            return Err(format!("an image has at most {PIXELS_MAX} pixels, not {width} x {height}"));
        }
        let side = f64::from(width.min(height));
        Ok(Options {
            graph_type: values.word("graphType", &graph_types)?,
            width,
            height,
            margin: values.number_in("margin", 0.0, side / 3.0).unwrap_or(10.0_f64.min(side / 10.0)),
            colors: values.colors(),
            font: values.font(),
            title: values.text("title").unwrap_or_default(),
            vtitle: values.text("vtitle").unwrap_or_default(),
            vtitle_right: values.text("vtitleRight").unwrap_or_default(),
            line_mode: values.word("lineMode", &line_modes)?,
            connected_limit: values.number_in("connectedLimit", 0.0, 1e9).map_or(usize::MAX, |n| n as usize),
            line_width: {
                let width = |name: &str| values.number_in(name, 0.0, LINE_WIDTH_MAX);
                width("lineWidth").or_else(|| width("thickness")).unwrap_or(1.2)
            },
            area_mode: values.word("areaMode", &area_modes)?,
            area_alpha: values.number_in("areaAlpha", 0.0, 1.0),
            null_is_zero: values.flag("drawNullAsZero").unwrap_or(false),
            left: values.side(("Left", "left"), true),
            right: values.side(("Right", "right"), false),
            divisors: values.divisors(),
            units: match values.text("yUnitSystem").unwrap_or_default().to_ascii_lowercase().as_str() {
                "binary" => Units::Binary,
                "sec" => Units::Sec,
                "msec" => Units::Msec,
                "none" => Units::None,
                _ => Units::Si,
            },
            is_axis_right: values.word("yAxisSide", &[("left", false), ("right", true)])?,
            log_base: values.log_base(),
            hidden: values.hidden(),
            is_legend_unique: values.flag("uniqueLegend").unwrap_or(false),
            x_step_min: values.number_in("minXStep", 0.25, 1_000.0).unwrap_or(1.0),
            minor_y: values.number_in("minorY", 0.0, 20.0).map_or(1, |n| n as usize),
            x_format: values.text("xFormat").filter(|format| format.len() <= TEXT_CHARS_MAX),
            pie: values.pie()?,
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Options of a query string without escapes.
    pub(crate) fn options(query: &str) -> Result<Options, String> {
        let value = |name: &str| {
            let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.filter(|(other, _)| *other == name).map(|(_, value)| value.to_owned()).next_back()
        };
        Options::read(&value)
    }

    #[test]
    fn defaults_are_those_of_graphite_web() {
        for query in ["", "width=default&height=&lineMode=default&areaMode="] {
            let read = options(query).expect("nothing wrong");
            assert_eq!((read.width, read.height, read.margin, read.line_width), (330, 250, 10.0, 1.2));
            assert_eq!((read.colors.background, read.font.size), (Color::rgb([255, 255, 255]), 10.0));
            assert_eq!(
                (read.line_mode, read.area_mode, read.units),
                (LineMode::Slope, AreaMode::None, Units::Si)
            );
            assert_eq!((read.hidden, read.minor_y), (Hidden::default(), 1));
        }
    }

    #[test]
    fn sizes_have_limits_and_modes_are_words() {
        for (query, want) in [
            ("width=4000&height=1000", ""),
            ("width=2000&height=2000", ""),
            ("width=4001", "from 10 to 4000, not `4001`"),
            ("height=9", "`height` is a whole number"),
            ("width=2000&height=2001", "at most 4000000 pixels, not 2000 x 2001"),
            ("width=99999999999999999999", "whole number"),
            ("width=-5", "whole number"),
            ("width=a\u{7}b", "not `a\u{fffd}b`"),
            ("areaMode=some", "`areaMode` is one of none, first, all, stacked, not `some`"),
            ("lineMode=curve", "`lineMode` is one of"),
            ("graphType=bar", "`graphType` is one of"),
            ("pieMode=median", "`pieMode` is one of"),
        ] {
            match options(query) {
                Ok(_) => assert_eq!(want, "", "{query}"),
                Err(why) => assert!(!want.is_empty() && why.contains(want), "{query}: {why}"),
            }
        }
    }

    #[test]
    fn values_that_are_nothing_are_ignored() {
        let query = "margin=inf&fontSize=NaN&logBase=1&yMin=nan&yStep=-1&yDivisors=0,x,4,99&minXStep=x&yUnitSystem=furlong\
                     &template=none&bgcolor=nothing&colorList=,&hideLegend=maybe&lineWidth=1e9";
        let read = options(query).expect("ignored");
        assert_eq!((read.margin, read.font.size, read.log_base, read.left.min), (10.0, 10.0, None, None));
        assert_eq!((read.left.step, read.divisors.as_slice(), read.x_step_min), (None, &[4][..], 1.0));
        assert_eq!((read.units, read.colors.lines.len(), read.hidden.legend), (Units::Si, 12, None));
        assert_eq!(read.line_width, LINE_WIDTH_MAX, "brought into its range");
    }

    #[test]
    fn sides_and_hiding_are_read() {
        let read = options("min=1&yMax=max&yMinRight=-2&rightDashed=true&leftDashed=7&graphOnly=TRUE")
            .expect("right");
        assert_eq!((read.left.min, read.left.ends_at_data, read.right.min), (Some(1.0), true, Some(-2.0)));
        assert_eq!((read.right.dash, read.left.dash), (Some(5.0), Some(7.0)));
        let hidden = read.hidden;
        assert_eq!(
            (hidden.legend, hidden.x_axis, hidden.y_axis, hidden.grid),
            (Some(true), true, true, true)
        );
    }
}

//! Colours by name and in hex, and the templates that set all colours of a graph (spec graphite §6.5).

/// A colour with its opacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Color {
    red: u8,
    green: u8,
    blue: u8,
    /// From 0 to 1.
    pub(super) alpha: f64,
}

/// The names of graphite-web with their red, green and blue.
const NAMES: [(&str, [u8; 3]); 22] = [
    ("black", [0, 0, 0]),
    ("white", [255, 255, 255]),
    ("blue", [100, 100, 255]),
    ("green", [0, 200, 0]),
    ("red", [200, 0, 50]),
    ("yellow", [255, 255, 0]),
    ("orange", [255, 165, 0]),
    ("purple", [200, 100, 255]),
    ("brown", [150, 100, 50]),
    ("cyan", [0, 255, 255]),
    ("aqua", [0, 150, 150]),
    ("gray", [175, 175, 175]),
    ("grey", [175, 175, 175]),
    ("magenta", [255, 0, 255]),
    ("pink", [255, 100, 100]),
    ("gold", [200, 200, 0]),
    ("rose", [200, 150, 200]),
    ("darkblue", [0, 0, 255]),
    ("darkgreen", [0, 255, 0]),
    ("darkred", [255, 0, 0]),
    ("darkgray", [111, 111, 111]),
    ("darkgrey", [111, 111, 111]),
];

impl Color {
    pub(super) const BLACK: Color = Color::rgb([0, 0, 0]);
    pub(super) const RED: Color = Color::rgb([200, 0, 50]);

    pub(super) const fn rgb([red, green, blue]: [u8; 3]) -> Color {
        Color { red, green, blue, alpha: 1.0 }
    }

    /// A name, `RRGGBB` or `RRGGBBAA`; `#` or `%23` in front is allowed. None for any other text.
    pub(super) fn parse(text: &str) -> Option<Color> {
        let text = text.trim();
        if let Some((_, rgb)) = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)) {
            return Some(Color::rgb(*rgb));
        }
        let hex = text.strip_prefix("%23").or_else(|| text.strip_prefix('#')).unwrap_or(text);
        if !matches!(hex.len(), 6 | 8) || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let part = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
        let alpha = part(6).map_or(1.0, |alpha| f64::from(alpha) / 255.0);
        Some(Color { red: part(0)?, green: part(2)?, blue: part(4)?, alpha })
    }

    /// The same colour with its opacity multiplied.
    pub(super) fn faded(self, alpha: f64) -> Color {
        Color { alpha: self.alpha * alpha.clamp(0.0, 1.0), ..self }
    }

    /// `#rrggbb`.
    pub(super) fn hex(self) -> String {
        format!("#{:02x}{:02x}{:02x}", self.red, self.green, self.blue)
    }
}

/// Colours of all parts of a graph.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Colors {
    pub(super) background: Color,
    pub(super) foreground: Color,
    pub(super) major: Color,
    pub(super) minor: Color,
    /// Colours of series in turn; never empty.
    pub(super) lines: Vec<Color>,
}

/// Most colours of `colorList`.
const COLORS_MAX: usize = 1_000;

/// Name; background, foreground, major and minor grid lines; series.
type Template = (&'static str, [&'static str; 4], &'static str);

const LINES: &str = "blue,green,red,purple,brown,yellow,aqua,grey,magenta,pink,gold,rose";

/// graphite-web's built-in colours, and the other sections of its example of graphTemplates.conf.
const TEMPLATES: [Template; 5] = [
    ("default", ["white", "black", "rose", "grey"], LINES),
    (
        "noc",
        ["black", "white", "white", "grey"],
        "blue,green,yellow,red,purple,brown,aqua,grey,magenta,pink,gold,rose",
    ),
    ("plain", ["white", "black", "rose", "grey"], LINES),
    ("summary", ["black", "white", "rose", "grey"], "6666ff,66ff66,ff6666"),
    ("alphas", ["white", "black", "grey", "rose"], "00ff00aa,ff000077,00337799"),
];

impl Colors {
    /// The colours of a template; those of `default` for an unknown name.
    pub(super) fn template(name: &str) -> Colors {
        let named = TEMPLATES.iter().find(|(known, ..)| *known == name);
        let (_, parts, lines) = named.unwrap_or(&TEMPLATES[0]);
        let [background, foreground, major, minor] =
            parts.map(|part| Color::parse(part).unwrap_or(Color::BLACK));
        Colors { background, foreground, major, minor, lines: Colors::list(lines) }
    }

    /// The colours of a list with commas; unknown ones are left out.
    pub(super) fn list(text: &str) -> Vec<Color> {
        text.split(',').filter_map(Color::parse).take(COLORS_MAX).collect()
    }

    /// The colour of the series of a number.
    pub(super) fn line(&self, number: usize) -> Color {
        self.lines.get(number % self.lines.len().max(1)).copied().unwrap_or(self.foreground)
    }
}

#[test]
fn colors_are_names_and_hex() {
    let color = |red, green, blue, alpha| Some(Color { red, green, blue, alpha });
    for (text, want) in [
        ("blue", color(100, 100, 255, 1.0)),
        (" Red ", color(200, 0, 50, 1.0)),
        ("01fF10", color(1, 255, 16, 1.0)),
        ("#01ff10", color(1, 255, 16, 1.0)),
        ("%2301ff10", color(1, 255, 16, 1.0)),
        ("01ff1000", color(1, 255, 16, 0.0)),
        ("#fff", None),
        ("", None),
        ("+1ff10", None),
        ("éééé", None),
        ("\"><script>", None),
    ] {
        assert_eq!(Color::parse(text), want, "{text}");
    }
    assert_eq!(Colors::list("red,nothing,,#00ff00").len(), 2);
    for (name, _, lines) in TEMPLATES {
        assert_eq!(Colors::template(name).lines.len(), lines.split(',').count(), "{name}");
    }
}

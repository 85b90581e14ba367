//! Texts of a graph: cleaned, shortened, measured and escaped.
//!
//! Invariant: what [`clean`] returns has no character that XML forbids and none that reorders the text around it.

use std::fmt::Write;

/// Most characters of one text in a graph.
pub(super) const TEXT_CHARS_MAX: usize = 200;

/// Most lines of a title.
const LINES_MAX: usize = 5;

/// Font of a text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Font {
    pub(super) family: String,
    /// Pixels.
    pub(super) size: f64,
    pub(super) bold: bool,
    pub(super) italic: bool,
}

impl Font {
    /// The same font in another size.
    pub(super) fn sized(&self, size: f64) -> Font {
        Font { size, ..self.clone() }
    }

    /// Pixels between two lines.
    pub(super) fn line_height(&self) -> f64 {
        (self.size * 1.3).ceil()
    }

    /// Size of titles.
    pub(super) fn title(&self) -> Font {
        self.sized(self.size + self.size.ln().floor().max(0.0))
    }
}

/// Advances of the characters from space to `~` in thousandths of the size. They are those of wide fonts, so that a text
/// has room whichever font a viewer has.
const ADVANCES: [u16; 95] = [
    300, 380, 440, 780, 620, 900, 740, 260, 370, 370, 490, 780, 300, 350, 300, 337, 620, 620, 620, 620, 620,
    620, 620, 620, 620, 620, 320, 320, 780, 780, 780, 510, 1000, 670, 670, 680, 750, 620, 570, 760, 740, 290,
    430, 650, 550, 860, 740, 780, 600, 780, 680, 620, 600, 720, 670, 970, 670, 610, 660, 380, 337, 380, 780,
    500, 480, 600, 620, 540, 620, 610, 370, 620, 620, 270, 270, 560, 270, 950, 620, 610, 620, 620, 410, 510,
    390, 620, 570, 810, 570, 570, 510, 600, 330, 600, 780,
];

/// Width of a text in pixels, from above.
pub(super) fn width(text: &str, font: &Font) -> f64 {
    let is_mono = is_monospace(&font.family);
    let advance = |c: char| match c {
        ' '..='~' if !is_mono => ADVANCES[c as usize - ' ' as usize],
        '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{ffdc}' | '\u{10000}'.. => 1_000,
        _ if is_mono => 610,
        _ => 700,
    };
    let thousandths: u64 = text.chars().map(|c| u64::from(advance(c))).sum();
    thousandths as f64 / 1000.0 * font.size * if font.bold { 1.1 } else { 1.0 }
}

/// True for the families whose characters all have one width.
pub(super) fn is_monospace(family: &str) -> bool {
    let family = family.to_ascii_lowercase();
    ["mono", "courier", "consolas", "hack", "fixed"].iter().any(|part| family.contains(part))
}

/// One line of at most `chars_max` characters, without those that a graph cannot show.
pub(super) fn clean(text: &str, chars_max: usize) -> String {
    let shown = |c: char| match c {
        '\t' | '\n' | '\r' | '\u{2028}' | '\u{2029}' => ' ',
        // Those of control, those that change the direction of what follows, and what XML forbids.
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}' => '\u{fffd}',
        '\u{feff}' | '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    // One more than allowed shows that it is too long.
    let start: String = text.chars().take(chars_max.saturating_add(1)).map(shown).collect();
    if start.chars().count() <= chars_max {
        return start;
    }
    let head: String = start.chars().take(chars_max.saturating_sub(1)).collect();
    head + "…"
}

/// The lines of a title: newlines, also written as `\n`, begin a new one.
pub(super) fn lines(text: &str) -> Vec<String> {
    let text = text.replace("\\n", "\n");
    text.lines().take(LINES_MAX).map(|line| clean(line, TEXT_CHARS_MAX)).collect()
}

/// The text within a width in pixels: the middle is left out of a longer one, as names differ at both ends.
pub(super) fn fit(text: &str, font: &Font, width_max: f64) -> String {
    if width(text, font) <= width_max {
        return text.to_owned();
    }
    let chars: Vec<char> = text.chars().collect();
    let shortened = |kept: usize| -> String {
        let tail = kept / 2;
        let head = chars.iter().take(kept - tail);
        head.chain(std::iter::once(&'…')).chain(chars.iter().skip(chars.len() - tail)).collect()
    };
    // The longest that fits, by halving: `low` fits, or it is nothing but the dots.
    let (mut low, mut high) = (0, chars.len());
    while high - low > 1 {
        let middle = usize::midpoint(low, high);
        if width(&shortened(middle), font) <= width_max {
            low = middle;
        } else {
            high = middle;
        }
    }
    shortened(low)
}

/// Appends a text for an element or an attribute of XML.
pub(super) fn push_escaped(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
}

/// Appends a coordinate with at most two decimals. What is not finite becomes 0, as no SVG may have it.
pub(super) fn push_number(value: f64, out: &mut String) {
    let hundredths = if value.is_finite() { (value * 100.0).round() } else { 0.0 };
    let hundredths = hundredths.clamp(-1e9, 1e9) as i64;
    if hundredths < 0 {
        out.push('-');
    }
    let (whole, part) = (hundredths.unsigned_abs() / 100, hundredths.unsigned_abs() % 100);
    out.push_str(itoa::Buffer::new().format(whole));
    let written = match (part, part % 10) {
        (0, _) => Ok(()),
        (_, 0) => write!(out, ".{}", part / 10),
        _ => write!(out, ".{part:02}"),
    };
    written.expect("a String takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn font(size: f64) -> Font {
        Font { family: "Sans".into(), size, bold: false, italic: false }
    }

    #[test]
    fn texts_are_cleaned_and_shortened() {
        for (text, chars, want) in [
            ("a.b", 10, "a.b"),
            ("a\u{0}b\u{1b}[1m\n", 10, "a\u{fffd}b\u{fffd}[1m "),
            ("\u{202e}abc\u{2066}", 10, "\u{fffd}abc\u{fffd}"),
            ("\u{ffff}\u{feff}", 10, "\u{fffd}\u{fffd}"),
            ("abcdef", 6, "abcdef"),
            ("abcdefg", 6, "abcde…"),
            ("abc", 0, "…"),
        ] {
            assert_eq!(clean(text, chars), want, "{text:?}");
        }
        assert_eq!(clean(&"x".repeat(10_000), TEXT_CHARS_MAX).chars().count(), TEXT_CHARS_MAX);
        assert_eq!(lines("a\\nb\nc"), ["a", "b", "c"]);
        assert_eq!(lines(&"\n".repeat(100)).len(), LINES_MAX);
    }

    #[test]
    fn a_text_fits_its_width_and_keeps_both_ends() {
        let long = "servers.web1.very.long.name.of.a.series.cpu";
        for room in [20.0, 60.0, 100.0, 200.0] {
            let short = fit(long, &font(10.0), room);
            assert!(width(&short, &font(10.0)) <= room && short.contains('…'), "{short}");
        }
        assert!(
            fit(long, &font(10.0), 100.0).starts_with("serv")
                && fit(long, &font(10.0), 100.0).ends_with("cpu")
        );
        assert_eq!(fit(long, &font(10.0), 1_000.0), long);
        assert_eq!(fit("ab", &font(10.0), 0.0), "…", "no room at all");
    }

    #[test]
    fn numbers_are_finite_and_short() {
        for (value, want) in [
            (1.0, "1"),
            (-1.5, "-1.5"),
            (0.049, "0.05"),
            (-0.001, "0"),
            (f64::NAN, "0"),
            (f64::INFINITY, "0"),
            (1e300, "10000000"),
        ] {
            let mut out = String::new();
            push_number(value, &mut out);
            assert_eq!(out, want);
        }
    }
}

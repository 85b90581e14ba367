//! Mistakes as the original prints them, for scripts that search for its messages (spec graphite §2.13).

use super::lexer;
use super::mistakes::{FileText, Mistake, Mistakes, Upstream, UpstreamAt};
use config::diagnostic::{Place, Severity};

/// The original's output for the first error: `FILE:LINE:COLUMN: MESSAGE` (the column from 0, in bytes), the source
/// line, a line with carets, and `failed to read configuration 'FILE'`. Empty without errors.
pub fn upstream_lines(files: &[FileText], mistakes: &[Mistake]) -> String {
    let is_error = |mistake: &&Mistake| mistake.diagnostic.severity == Severity::Error;
    let Some(mistake) = mistakes.iter().find(is_error) else { return String::new() };
    let Some(root) = files.first() else { return String::new() };
    let file = files.get(mistake.file).unwrap_or(root);
    let message = mistake.upstream.as_ref().map_or(&mistake.diagnostic.message, |upstream| &upstream.words);
    let failed = format!("failed to read configuration '{}'\n", root.name);
    let Some(place) = upstream_place(&file.text, mistake) else { return format!("{message}\n{failed}") };
    let start = file.text.floor_char_boundary(place.start.min(file.text.len()));
    let line_start = file.text[..start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = file.text[start..].find('\n').map_or(file.text.len(), |at| start + at);
    let line = file.text[..start].matches('\n').count() + 1;
    let carets = place.end.clamp(start + 1, line_end.max(start + 1)) - start;
    // Tabs stay tabs, so that the carets are below the right characters.
    let indent: String =
        file.text[line_start..start].bytes().map(|byte| if byte == b'\t' { '\t' } else { ' ' }).collect();
    format!(
        "{}:{line}:{}: {message}\n{}\n{indent}{}\n{failed}",
        file.name,
        start - line_start,
        &file.text[line_start..line_end],
        "^".repeat(carets),
    )
}

/// The original's output when it continues: `warning: …` for each of its own warnings.
pub fn upstream_warnings(mistakes: &[Mistake]) -> String {
    let warnings = mistakes.iter().filter(|mistake| mistake.diagnostic.severity == Severity::Warning);
    let known = warnings.filter_map(|warning| warning.upstream.as_ref());
    known.map(|upstream| format!("warning: {}\n", upstream.words)).collect()
}

/// The token that the original points at.
fn upstream_place(text: &str, mistake: &Mistake) -> Option<Place> {
    let here = mistake.diagnostic.place?;
    let Some(Upstream { at: UpstreamAt::From(from), .. }) = mistake.upstream else { return Some(here) };
    let tokens = lexer::tokens(text, &mut Mistakes::default());
    tokens.iter().map(|token| token.place).find(|place| place.start >= from).or(Some(here))
}

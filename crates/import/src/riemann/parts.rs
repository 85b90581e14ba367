//! The report of an import: which streams run natively, and which call functions of the config, each with its place.

use std::fmt::Write;

use streams::riemann::parts::Part;

/// A summary, and a line for each stream. Empty for a config without streams.
pub fn parts_text(parts: &[Part]) -> String {
    if parts.is_empty() {
        return String::new();
    }
    let calling = parts.iter().filter(|part| part.calls.is_some()).count();
    let native = parts.len() - calling;
    let mut text = format!("{native} of {} run natively", counted(parts.len(), "stream"));
    if calling > 0 {
        let call = if calling == 1 { "calls" } else { "call" };
        write!(text, ", {calling} {call} functions of the config for each event").expect(ANY_TEXT);
    }
    text.push_str(":\n");
    let place = |part: &Part| format!("{}:{}:{}", part.at.file, part.at.line, part.at.column);
    let width = parts.iter().map(|part| place(part).len()).max().unwrap_or_default();
    for part in parts {
        let (place, name) = (place(part), &part.name);
        let written = match &part.calls {
            None => writeln!(text, "  {place:width$}  native       {name}"),
            Some(called) => match &called.name {
                Some(function) => {
                    writeln!(text, "  {place:width$}  interpreter  {name}, which calls `{function}`")
                }
                None if name == "function" => writeln!(text, "  {place:width$}  interpreter  a function"),
                None => writeln!(text, "  {place:width$}  interpreter  {name}, which calls a function"),
            },
        };
        written.expect(ANY_TEXT);
    }
    text
}

const ANY_TEXT: &str = "a String takes any text";

fn counted(number: usize, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

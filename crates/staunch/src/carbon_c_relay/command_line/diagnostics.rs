//! Errors and warnings about flags and files, as text for people.

use std::io::IsTerminal;

use client::stdio::wants_colour;
use config::diagnostic::Severity;
use import::relay::flags::FlagMistake;
use import::relay::{Reading, render_mistakes};

/// Mistakes in the flags; empty without any.
pub(super) fn report(mistakes: &[FlagMistake]) -> String {
    let text = |mistake: &FlagMistake| {
        let severity = if mistake.severity == Severity::Error { "error" } else { "warning" };
        format!("{severity}: {}\n  hint: {}\n", mistake.message, mistake.hint)
    };
    mistakes.iter().map(text).collect()
}

/// Whether a person reads stderr: errors are then shown in our longer format.
pub(in crate::carbon_c_relay) fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Whether stderr is in colour.
pub(in crate::carbon_c_relay) fn colour() -> bool {
    wants_colour(stderr_is_terminal())
}

/// Errors and warnings for people; empty without any.
pub(in crate::carbon_c_relay) fn rendered(reading: &Reading, colour: bool) -> String {
    if reading.mistakes.is_empty() {
        return String::new();
    }
    render_mistakes(&reading.files, &reading.mistakes, colour)
}

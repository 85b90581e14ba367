//! A family of self-metrics as Prometheus text: its head and its rows.

use std::fmt::Write;

use crate::admin::accounts::LossTable;

/// A family of self-metrics that is being written.
pub(super) struct Family<'a> {
    out: &'a mut String,
    name: &'static str,
}

/// Begins a family: its help and its type.
pub(super) fn family<'a>(out: &'a mut String, name: &'static str, kind: &str, help: &str) -> Family<'a> {
    // Writing to a String cannot fail.
    let _ok = write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    Family { out, name }
}

impl Family<'_> {
    /// A row with these labels.
    pub(super) fn row(&mut self, labels: &[(&str, &str)], value: f64) {
        self.part("", labels, value);
    }

    /// A row with a suffix after the family's name: `_bucket`, `_sum`, `_count`.
    pub(super) fn part(&mut self, suffix: &str, labels: &[(&str, &str)], value: f64) {
        self.out.push_str(self.name);
        self.out.push_str(suffix);
        for (at, (label, text)) in labels.iter().enumerate() {
            let open = if at == 0 { '{' } else { ',' };
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ok = write!(self.out, "{open}{label}=\"{text}\"");
        }
        if !labels.is_empty() {
            self.out.push('}');
        }
        let _ok = writeln!(self.out, " {value}");
    }
}

/// Losses of a source or output, by outcome and reason.
pub(super) fn loss_rows(family: &mut Family<'_>, of: (&str, &str), losses: &LossTable) {
    loss_rows_of(family, &[of], losses);
}

/// The same with several labels.
pub(super) fn loss_rows_of(family: &mut Family<'_>, of: &[(&str, &str)], losses: &LossTable) {
    for (group, reasons) in losses {
        for (reason, count) in reasons {
            let labels: Vec<_> =
                of.iter().copied().chain([("outcome", *group), ("reason", *reason)]).collect();
            family.row(&labels, *count as f64);
        }
    }
}

//! `diff`.

use std::fmt::Write as _;
use std::process::ExitCode;

use graphite::query::numbers::repr;
use graphite::whisper::tools::{self, ArchiveDifference, DiffOptions};

use super::args::Diff;
use super::files::{now, to_read};
use super::python::optional;
use client::stdio;

/// `staunch whisper diff`
pub(super) fn diff(args: &Diff) -> anyhow::Result<ExitCode> {
    let (left, right) = (to_read(&args.left)?, to_read(&args.right)?);
    let options = DiffOptions { ignore_empty: args.ignore_empty, until: args.until };
    let archives = tools::diff(&left, &right, options, now())?;
    let out = match (args.summary, args.json) {
        (summary, true) => json(args, &archives, summary),
        (true, false) => summary(args, &archives),
        (false, false) => points(args, &archives),
    };
    stdio::data(out.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn summary(args: &Diff, archives: &[ArchiveDifference]) -> String {
    let row = |cells: [&str; 3]| match args.columns {
        true => cells.join(" ") + "\n",
        false => format!("{:>7} {:>9} {:>9}\n", cells[0], cells[1], cells[2]),
    };
    let mut out = if args.no_headers { String::new() } else { row(["archive", "total", "differing"]) };
    for (number, one) in archives.iter().enumerate() {
        let cells = [number, one.compared, one.differences.len()].map(|cell| cell.to_string());
        out += &row([&cells[0], &cells[1], &cells[2]]);
    }
    out
}

fn points(args: &Diff, archives: &[ArchiveDifference]) -> String {
    let row = |cells: [&str; 4]| match args.columns {
        true => cells.join(" ") + "\n",
        false => format!("{:>7} {:>11} {:>13} {:>13}\n", cells[0], cells[1], cells[2], cells[3]),
    };
    let heading = ["archive", "timestamp", "value_a", "value_b"];
    let mut out = if args.no_headers { String::new() } else { row(heading) };
    for (number, one) in archives.iter().enumerate() {
        let number_text = number.to_string();
        if !args.columns {
            let (differ, total) = (one.differences.len(), one.compared);
            let _ = writeln!(out, "Archive {number} ({differ} of {total} datapoints differ)");
            out += &row(["", "timestamp", "value_a", "value_b"]);
        }
        for point in &one.differences {
            let (time, left, right) = (point.time.to_string(), optional(point.left), optional(point.right));
            out += &row([if args.columns { &number_text } else { "" }, &time, &left, &right]);
        }
    }
    out
}

/// Members are sorted, with a space before each colon.
fn json(args: &Diff, archives: &[ArchiveDifference], is_summary: bool) -> String {
    let number = |value: Option<f64>| value.map_or_else(|| "null".to_owned(), repr);
    let one = |(at, one): (usize, &ArchiveDifference)| {
        let mut out = format!("    {{\n      \"archive\" : {at},\n");
        if !is_summary {
            let rows: Vec<String> = one
                .differences
                .iter()
                .map(|point| {
                    format!(
                        "        {{\n          \"timestamp\" : {},\n          \"value_a\" : {},\n          \"value_b\" : {}\n        }}",
                        point.time,
                        number(point.left),
                        number(point.right)
                    )
                })
                .collect();
            out += &match rows.is_empty() {
                true => "      \"datapoint\" : [],\n".to_owned(),
                false => format!("      \"datapoint\" : [\n{}\n      ],\n", rows.join(",\n")),
            };
        }
        let (differ, total) = (one.differences.len(), one.compared);
        out + &format!("      \"points\" : {differ},\n      \"total\" : {total}\n    }}")
    };
    let archives: Vec<String> = archives.iter().enumerate().map(one).collect();
    let path = |path: &std::path::Path| serde_json::Value::from(path.display().to_string()).to_string();
    format!(
        "{{\n  \"archives\" : [\n{}\n  ],\n  \"path_a\" : {},\n  \"path_b\" : {}\n}}\n",
        archives.join(",\n"),
        path(&args.left),
        path(&args.right)
    )
}

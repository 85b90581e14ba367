//! The options table and the codes as pages of the documentation.

use std::fmt::Write;

use super::row::{Default, Row, Type};
use super::section::Section;
use crate::diagnostic::Code;

const EXPECT: &str = "a String takes all that is written";

/// `docs/reference.md`: every option of the native file.
pub fn reference_markdown() -> String {
    let mut out = String::from(
        "# Reference of the configuration file\n\n\
         <!-- Generated from the options table in crates/config/src/options/table.rs: \
         UPDATE=1 cargo test -p config --test docs -->\n\n\
         A file is TOML, or YAML when its name ends in `.yaml`, `.yml` or `.json`. `staunch check FILE` shows all\n\
         its mistakes at once; the codes are explained in [config-codes.md](config-codes.md).\n\n\
         Durations are texts such as `\"250ms\"`, `\"10s\"`, `\"5m\"`, `\"1h\"`, `\"7d\"`; sizes such as `\"512B\"`,\n\
         `\"64KiB\"`, `\"4GiB\"`.\n\n\
         ```toml\n[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:8125\"]\n\n\
         [transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"10s\"\n\n\
         [outputs.carbon]\ntype = \"graphite\"\nfrom = [\"stats\"]\nto = [\"tcp://10.0.0.5:2003\"]\n```\n",
    );
    for section in Section::ALL.iter().copied() {
        writeln!(out, "\n## {}\n\n{}\n", heading(section), section.about()).expect(EXPECT);
        for row in section.rows() {
            option(&mut out, section, row);
        }
    }
    out
}

fn heading(section: Section) -> String {
    if section == Section::Top { section.heading() } else { format!("`{}`", section.heading()) }
}

fn option(out: &mut String, section: Section, row: &Row) {
    let limits = row.value.limits();
    let limits = if limits.is_empty() { limits } else { format!(", {limits}") };
    let default = match row.default {
        Default::Required => "required".to_owned(),
        Default::Toml(toml) => format!("default `{toml}`"),
        Default::Depends(words) | Default::Absent(words) => format!("default: {words}"),
    };
    writeln!(out, "- **`{}`**: {}", row.key, row.help).expect(EXPECT);
    writeln!(out, "  {}{limits}; {default}.", wanted(section, row)).expect(EXPECT);
    if !row.long.is_empty() {
        writeln!(out, "  {}", row.long).expect(EXPECT);
    }
    if !row.example.is_empty() {
        writeln!(out, "  Example: `{} = {}`.", row.key, row.example).expect(EXPECT);
    }
}

fn wanted(section: Section, row: &Row) -> String {
    let wanted = match (row.value, section.word()) {
        (Type::Text, Some(word)) if row.key == "type" => format!("\"{word}\""),
        (wanted, _) => wanted.wanted(),
    };
    let mut letters = wanted.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// `docs/config-codes.md`: every code with cause, example, and correction.
pub fn explain_markdown() -> String {
    let mut out = String::from(
        "# Mistakes in configuration files\n\n\
         <!-- Generated from crates/config/src/code.rs: UPDATE=1 cargo test -p config --test docs -->\n\n\
         What `staunch check` and `staunch import` find. `staunch explain CODE` shows the same on the terminal.\n\
         `C…` are of native files, `I…` of the originals' files.\n",
    );
    for code in Code::ALL {
        let (word, title, cause, example, mend) =
            (code.word(), code.title(), code.cause(), code.example(), code.mend());
        writeln!(out, "\n## {word}\n\n**{title}.** {cause}\n\n```\n{example}\n```\n\n{mend}").expect(EXPECT);
    }
    out
}

//! Canonical names and tags, character by character.

use super::super::{Dialect, Options};
use super::line::split;
use super::number::js_blank;

/// Canonical name and tags of a raw key.
pub(super) fn canonical(options: &Options, name: &[u8], tags: &[u8]) -> (Vec<u8>, Vec<u8>) {
    match options.dialect {
        Dialect::Etsy => {
            let mut key = decoded(name);
            if !tags.is_empty() {
                let tags: Vec<String> = decoded(tags)
                    .split(',')
                    .map(|tag| tag.replacen(';', "_", 1).replacen(':', "=", 1))
                    .collect();
                key = format!("{key};{}", tags.join(";"));
            }
            (if options.sanitize { sanitized(&key) } else { key }.into_bytes(), Vec::new())
        }
        Dialect::Perl if options.sanitize => (perl_sanitized(name), Vec::new()),
        Dialect::Perl => (name.to_vec(), Vec::new()),
        Dialect::Union if options.sanitize => (sanitized(&decoded(name)).into_bytes(), tag_set(tags)),
        Dialect::Union | Dialect::Dogstatsd => (name.to_vec(), tag_set(tags)),
    }
}

/// Checks [`model::Canonical::clean`]: the parts of a tag are not empty and contain no `;` and `=`.
pub(super) fn clean(name: &[u8], tags: &[u8]) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.;=".contains(byte);
    let tag_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.".contains(byte);
    let tag_clean = |tag: &Vec<u8>| {
        let parts = split(tag, b":");
        parts.len() == 2 && parts.iter().all(|part| !part.is_empty() && part.iter().all(tag_allowed))
    };
    name.iter().all(allowed) && (tags.is_empty() || split(tags, b",").iter().all(tag_clean))
}

fn decoded(text: &[u8]) -> String {
    String::from_utf8_lossy(text).to_string()
}

fn sanitized(key: &str) -> String {
    let mut blanks_joined = String::new();
    let mut in_blanks = false;
    for char in key.chars() {
        if !js_blank(char) {
            blanks_joined.push(char);
        } else if !in_blanks {
            blanks_joined.push('_');
        }
        in_blanks = js_blank(char);
    }
    blanks_joined
        .replace('/', "-")
        .chars()
        .filter(|char| char.is_ascii_alphanumeric() || "_-.;=".contains(*char))
        .collect()
}

fn perl_sanitized(name: &[u8]) -> Vec<u8> {
    let mut text: String = name.iter().map(|&byte| char::from(byte)).collect();
    for (run, with) in [("/", "_"), (" ", "-")] {
        let double = run.repeat(2);
        while text.contains(&double) {
            text = text.replace(&double, run);
        }
        text = text.replace(run, with);
    }
    text.chars()
        .filter(|char| char.is_ascii_alphanumeric() || "_-.,=".contains(*char))
        .collect::<String>()
        .into_bytes()
}

fn tag_set(tags: &[u8]) -> Vec<u8> {
    let set: std::collections::BTreeSet<Vec<u8>> = split(tags, b",").into_iter().collect();
    set.into_iter().filter(|tag| !tag.is_empty()).collect::<Vec<_>>().join(&b","[..])
}

//! A printed config without secrets: the contents of `${file:PATH}` are `***`, wherever they stand in a string, a key, a number or a comment.
//!
//! A secret is looked for in what a string means, not in how it is written: quotes, backslashes and control characters are escaped there.
//! It is also found as a part of a longer word, and in another case, as host names may be printed.

use super::print::text;

/// What is shown instead of a secret.
const MASK: &str = "***";

/// Shortest secret that is looked for within keys, numbers and comments. A shorter one is hidden there when it is the whole word.
const WITHIN_WORDS_MIN: usize = 4;

/// The text of a TOML file, as `print` writes it, without the secrets.
pub(super) fn masked(printed: &str, secrets: &[String]) -> String {
    let mut secrets: Vec<String> = secrets
        .iter()
        .map(|secret| secret.to_ascii_lowercase())
        .filter(|secret| !secret.is_empty())
        .collect();
    // A longer one may contain a shorter one.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    if secrets.is_empty() {
        return printed.to_owned();
    }
    let mut out = String::with_capacity(printed.len());
    let mut rest = printed;
    while let Some(at) = rest.find(['"', '\'', '#']) {
        let (words, from) = rest.split_at(at);
        push_words(words, &secrets, &mut out);
        rest = match from.as_bytes()[0] {
            b'#' => {
                let (comment, behind) = from.split_at(from.find('\n').unwrap_or(from.len()));
                push_words(comment, &secrets, &mut out);
                behind
            }
            quote => {
                let (meaning, behind) = string(from, quote == b'"');
                let shown = without(&meaning, &secrets);
                out.push_str(&if shown == meaning {
                    from[..from.len() - behind.len()].to_owned()
                } else {
                    text(&shown)
                });
                behind
            }
        };
    }
    push_words(rest, &secrets, &mut out);
    out
}

/// The meaning of the string at the start of `from`, and what is behind it.
fn string(from: &str, has_escapes: bool) -> (String, &str) {
    let mut meaning = String::new();
    let mut characters = from.char_indices().skip(1).peekable();
    let quote = if has_escapes { '"' } else { '\'' };
    while let Some((at, c)) = characters.next() {
        match c {
            c if c == quote => return (without_doubled_dollars(&meaning), &from[at + 1..]),
            '\\' if has_escapes => match characters.next() {
                Some((_, 'n')) => meaning.push('\n'),
                Some((_, 't')) => meaning.push('\t'),
                Some((at, 'u')) => {
                    let digits = from.get(at + 1..at + 5).unwrap_or("");
                    meaning.extend(u32::from_str_radix(digits, 16).ok().and_then(char::from_u32));
                    for _ in digits.chars() {
                        characters.next();
                    }
                }
                Some((_, c)) => meaning.push(c),
                None => {}
            },
            c => meaning.push(c),
        }
    }
    (meaning, "")
}

/// Undoes the escape of references to variables.
fn without_doubled_dollars(meaning: &str) -> String {
    meaning.replace("$$", "$")
}

fn push_words(words: &str, secrets: &[String], out: &mut String) {
    for word in words.split_inclusive([' ', '\n', ',', '.', '[', ']', '{', '}', '=']) {
        let end = word.trim_end_matches([' ', '\n', ',', '.', '[', ']', '{', '}', '=']).len();
        let (word, mark) = word.split_at(end);
        let long = |secret: &&String| secret.len() >= WITHIN_WORDS_MIN || secret.len() == word.len();
        let fitting: Vec<String> = secrets.iter().filter(long).cloned().collect();
        out.push_str(&without(word, &fitting));
        out.push_str(mark);
    }
}

/// `secrets` are in lower case.
fn without(meaning: &str, secrets: &[String]) -> String {
    let mut meaning = meaning.to_owned();
    for secret in secrets {
        let mut from = 0;
        while let Some(at) = meaning[from..].to_ascii_lowercase().find(secret) {
            meaning.replace_range(from + at..from + at + secret.len(), MASK);
            from += at + MASK.len();
        }
    }
    meaning
}

#[test]
fn secrets_are_hidden_in_words_strings_keys_and_comments() {
    let secrets = |all: &[&str]| all.iter().map(|secret| (*secret).to_owned()).collect::<Vec<_>>();
    for (printed, hidden, want) in [
        ("a = \"s3cr3t\"\n", &["s3cr3t"][..], "a = \"***\"\n"),
        ("a = \"xs3cr3ty\"\n", &["s3cr3t"], "a = \"x***y\"\n"),
        ("a = [\"tcp://S3CR3T.example:1\", \"b\"]\n", &["s3cr3t"], "a = [\"tcp://***.example:1\", \"b\"]\n"),
        ("a = 'q\"u\\o'\n", &["q\"u\\o"], "a = \"***\"\n"),
        ("a = \"q\\\"\\u0001\\nx\" # q\n", &["\"\u{1}\n"], "a = \"q***x\" # q\n"),
        ("a = \"$${x\"\n", &["${x"], "a = \"***\"\n"),
        ("[sources.s3cr3t]\n\"s3cr3t é\" = 1\n", &["s3cr3t"], "[sources.***]\n\"*** é\" = 1\n"),
        ("a = 12345 # 12345\nb = 7\n", &["12345", "7"], "a = *** # ***\nb = ***\n"),
        ("port = 70\n", &["7"], "port = 70\n"),
        ("a = \"long-secret\"\n", &["secret", "long-secret"], "a = \"***\"\n"),
        ("a = \"b\"\n", &[""], "a = \"b\"\n"),
        ("a = \"unfinished", &["unfinished"], "a = \"***\""),
    ] {
        assert_eq!(masked(printed, &secrets(hidden)), want, "{printed:?}");
    }
}

//! Fuzzes import of carbon-c-relay configurations: the result is errors that can be displayed, or a document that
//! prints as itself and that the router accepts. Files are separated by lines of `%%`; an `include` selects the file
//! by the length of its path.

#![no_main]

use std::cell::Cell;

use import::relay::{
    Files, Form, Surroundings, lower, print, read, read_text, render_mistakes, upstream_lines,
};
use libfuzzer_sys::fuzz_target;
use process::relay::Router;

/// Files that include each other without end are rejected by their number; well below that limit they are only slow.
const READS_MAX: usize = 64;

fuzz_target!(|bytes: &[u8]| {
    let texts: Vec<&[u8]> = split(bytes);
    let reads = Cell::new(0);
    let file = |name: &str| {
        reads.set(reads.get() + 1);
        let at = if reads.get() == 1 { 0 } else { name.len() % texts.len() };
        if reads.get() > READS_MAX { Err("too many".to_owned()) } else { Ok(texts[at].to_vec()) }
    };
    let files = Files { read: &file, matching: &|pattern| vec!["a".to_owned(), pattern.to_owned()] };
    let reading = read("relay.conf", &files);
    let _ = render_mistakes(&reading.files, &reading.mistakes, false);
    let _ = upstream_lines(&reading.files, &reading.mistakes);
    let Some(conf) = reading.conf else { return };
    assert!(Router::new(&lower(&conf).plan).is_ok());
    let text = print(&conf, &Surroundings { port: 2003, prefix: None, form: Form::Readable });
    let mut again = read_text("printed", &text).conf.unwrap_or_else(|| panic!("cannot be read again: {text}"));
    if conf.listen.is_empty() {
        again.listen.clear();
    }
    assert_eq!(again, conf, "{text}");
});

fn split(bytes: &[u8]) -> Vec<&[u8]> {
    let mut texts = Vec::new();
    let mut rest = bytes;
    while let Some(at) = rest.windows(4).position(|four| four == b"\n%%\n") {
        texts.push(&rest[..at]);
        rest = &rest[at + 4..];
    }
    texts.push(rest);
    texts
}

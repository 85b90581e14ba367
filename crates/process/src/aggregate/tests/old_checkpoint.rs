//! A checkpoint as version 0.1.0 wrote it, put together here from the description of its format, without the code that writes
//! checkpoints today. If reading it breaks, the format has changed, and its version number must say so.

use twox_hash::XxHash3_64;

use super::rig::{Rig, T0_S, at, canonical, plan};
use crate::aggregate::checkpoint::{LastFlush, Window};

const ID: u64 = 0x0123_4567_89ab_cdef;

fn numbers(to: &mut Vec<u8>, numbers: &[u64]) {
    numbers.iter().for_each(|number| to.extend_from_slice(&number.to_le_bytes()));
}

fn small_numbers(to: &mut Vec<u8>, numbers: &[u32]) {
    numbers.iter().for_each(|number| to.extend_from_slice(&number.to_le_bytes()));
}

fn header() -> Vec<u8> {
    let start_ns = T0_S * 1_000_000_000;
    let mut bytes = b"STNAGG\r\n".to_vec();
    small_numbers(&mut bytes, &[1, 96]);
    // Number of the save, its time, window, grid, slot 0, planned end, opened at, no label before.
    let window = [2_000_000_000, 1, start_ns, start_ns + 2_000_000_000, start_ns, u64::MAX];
    numbers(&mut bytes, &[ID, 7, start_ns + 500_000_000]);
    numbers(&mut bytes, &window);
    let checksum = XxHash3_64::oneshot(&bytes);
    numbers(&mut bytes, &[checksum]);
    assert_eq!(bytes.len(), 96);
    bytes
}

/// Form 0: series. 2: the end.
fn put_block(to: &mut Vec<u8>, form: u32, count: u32, body: &[u8]) {
    let mut bytes = vec![0xf1, 0x53, 0x61, 0x1a];
    small_numbers(&mut bytes, &[form, count, body.len() as u32]);
    numbers(&mut bytes, &[XxHash3_64::oneshot_with_seed(ID, body)]);
    let checksum = XxHash3_64::oneshot_with_seed(ID, &bytes);
    numbers(&mut bytes, &[checksum]);
    to.extend(bytes);
    to.extend_from_slice(body);
}

/// Kind 0 counter, 1 gauge, 2 timer, 3 set; all of them saw a sample. Texts are short: a length is one byte.
fn put_series(to: &mut Vec<u8>, kind: u8, name: &str, tags: &str, state: &[&[u8]]) {
    to.extend([kind + 4, 0, name.len() as u8, tags.len() as u8]);
    to.extend_from_slice(name.as_bytes());
    to.extend_from_slice(tags.as_bytes());
    state.iter().for_each(|part| to.extend_from_slice(part));
}

#[test]
fn a_checkpoint_of_version_0_1_0_goes_on_in_its_window() {
    let mut series = Vec::new();
    put_series(&mut series, 0, "hits", "", &[&3f64.to_le_bytes()]);
    put_series(&mut series, 0, "hits", "env:a", &[&4f64.to_le_bytes()]);
    put_series(&mut series, 1, "load", "", &[&2.5f64.to_le_bytes(), &[0]]);
    let values = [&2f64.to_le_bytes()[..], &[0, 2], &7f64.to_le_bytes(), &9f64.to_le_bytes()];
    put_series(&mut series, 2, "lat", "", &values);
    put_series(&mut series, 3, "users", "", &[&[1, 6], b"al\nbob"]);
    let mut bytes = header();
    put_block(&mut bytes, 0, 5, &series);
    put_block(&mut bytes, 2, 1, &5u64.to_le_bytes());

    let mut restored = Rig::new(plan());
    let hash = restored.hash;
    let found = restored
        .aggregator
        .restore(&bytes, LastFlush::default(), at(600), |kind, raw, out| canonical(hash, kind, raw, out));
    let found = found.expect("it can be read");
    assert_eq!((found.series, found.active, found.damaged, found.cut_short), (5, 5, 0, false));
    assert_eq!(found.window, Window::Continued);
    let mut never_saved = Rig::new(plan());
    never_saved
        .add(10, "hits:3|c\nhits:4|c|#env:a\nload:2.5|g\nlat:7|ms\nlat:9|ms\nusers:al|s\nusers:bob|s\n");
    for rig in [&mut restored, &mut never_saved] {
        rig.add(700, "hits:1|c\nlat:8|ms\nusers:al|s\nload:+1|g\n");
    }
    let want = never_saved.flushed(2000);
    assert!(want.contains("hits"), "{want}");
    assert_eq!(restored.flushed(2000), want);
}

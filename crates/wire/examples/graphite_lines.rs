//! The workload of `cargo xtask instructions`: Graphite lines of about 48 bytes through the parser, including the
//! hash.
//!
//! `graphite_lines COMPATIBILITY KIND LINES`: LINES lines of 10,000 names, in packets as a stream source reads them.
//! KIND is `plain`, or `tagged` and `dotted` for lines that take the slow path. No clock and no socket: the same
//! arguments cost the same instructions.
#![allow(clippy::print_stderr, reason = "an example says how to call it")]

use std::hint::black_box;
use std::process::ExitCode;

use model::Span;
use wire::graphite::input::{Compatibility, Options, Parsed, Reader};

const NAMES: usize = 10_000;

/// Bytes of one read.
const READ_BYTES: usize = 64 * 1024;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [compatibility, form, lines] = args.as_slice() else {
        eprintln!("usage: graphite_lines COMPATIBILITY KIND LINES");
        return ExitCode::FAILURE;
    };
    let compatibility = Compatibility::ALL.into_iter().find(|known| known.word() == compatibility);
    let (Some(compatibility), Ok(lines)) = (compatibility, lines.parse::<usize>()) else {
        eprintln!("COMPATIBILITY is strict, carbon, c-relay or go-carbon; LINES is a number");
        return ExitCode::FAILURE;
    };
    let packets = packets(form);
    let reader = Reader::new(Options::of(compatibility), 7);
    let mut parsed = Parsed::default();
    let mut read = 0;
    for packet in packets.iter().cycle() {
        parsed.clear();
        reader.packet(black_box(packet), Span::new(0, packet.len()), 0, &mut parsed);
        black_box(&parsed);
        assert_eq!(parsed.rejected(), 0, "every line is good");
        read += parsed.points.len();
        if read >= lines {
            break;
        }
    }
    ExitCode::SUCCESS
}

fn packets(form: &str) -> Vec<Vec<u8>> {
    let mut packets = vec![Vec::new()];
    for number in 0..NAMES {
        let line = line(number * 2_654_435_761 % NAMES, form);
        let last = packets.len() - 1;
        if packets[last].len() + line.len() > READ_BYTES {
            packets.push(line.into_bytes());
        } else {
            packets[last].extend_from_slice(line.as_bytes());
        }
    }
    packets
}

fn line(number: usize, form: &str) -> String {
    let (host, value) = (number % 97, number % 1000);
    match form {
        "tagged" => format!("requests.count;host=web{host:02};route=r{number:05} {value}.5 1700000000\n"),
        "dotted" => format!("servers.web{host:02}..endpoint{number:05}.count {value}.5 1700000000\n"),
        _ => format!("servers.web{host:02}.endpoint{number:05}.count {value}.5 1700000000\n"),
    }
}

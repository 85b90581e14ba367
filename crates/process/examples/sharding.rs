//! Maps keys to endpoints, as commanded on standard input; used by `compat/rings.js`.
//!
//! `cluster FORM LABEL…`   a cluster with all endpoints live; forms: statsd-node, statsd-node-4, ketama, jump,
//!                         murmur3-statsrelay
//! `out N`, `in N`         marks endpoint N as down, or up
//! `listed`                prints the live endpoints in order
//! `keys COUNT`            reads the next COUNT lines as keys, any bytes but LF
//! `owners COUNT`          prints the owner of each of the first COUNT keys, `-` for none
#![allow(clippy::print_stdout, reason = "an example prints to its user")]

use std::fmt::Write as _;
use std::io::{self, BufRead};

use process::sharding::{Cluster, RingReplicas, Sharding};

fn sharding(form: &str) -> Option<Sharding> {
    Some(match form {
        "statsd-node" => Sharding::StatsdNode(RingReplicas::One),
        "statsd-node-4" => Sharding::StatsdNode(RingReplicas::Four),
        "ketama" => Sharding::Ketama,
        "jump" => Sharding::Jump(Vec::new()),
        "murmur3-statsrelay" => Sharding::Murmur3Statsrelay(Vec::new()),
        _ => return None,
    })
}

fn mistake(text: impl ToString) -> io::Error {
    io::Error::other(text.to_string())
}

fn line_of(input: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    input.read_until(b'\n', &mut line)?;
    Ok(line.pop().map(|_| line))
}

fn main() -> io::Result<()> {
    let mut input = io::stdin().lock();
    let mut cluster = Cluster::new(&Sharding::Jump(Vec::new()), &[""; 0]).map_err(mistake)?;
    let mut keys: Vec<Vec<u8>> = Vec::new();
    while let Some(line) = line_of(&mut input)? {
        let line = String::from_utf8(line).map_err(mistake)?;
        let (command, words) = line.split_once(' ').unwrap_or((&line, ""));
        let number = || words.parse::<usize>().map_err(mistake);
        match command {
            "cluster" => {
                let (form, labels) = words.split_once(' ').unwrap_or((words, ""));
                let labels: Vec<&str> = labels.split_ascii_whitespace().collect();
                let sharding = sharding(form).ok_or_else(|| mistake(format!("no form {form:?}")))?;
                cluster = Cluster::new(&sharding, &labels).map_err(mistake)?;
            }
            "out" | "in" => {
                cluster.set_live(number()?, command == "in");
            }
            "listed" => println!("{}", joined(cluster.listed().map(Some))),
            "keys" => {
                keys.clear();
                for _ in 0..number()? {
                    keys.push(line_of(&mut input)?.ok_or_else(|| mistake("fewer keys than COUNT"))?);
                }
            }
            "owners" => println!("{}", joined(keys.iter().take(number()?).map(|key| cluster.owner(key)))),
            _ => return Err(mistake(format!("no command {command:?}"))),
        }
    }
    Ok(())
}

fn joined(numbers: impl Iterator<Item = Option<usize>>) -> String {
    let mut text = String::new();
    for number in numbers {
        match number {
            Some(number) => write!(text, "{number} ").expect("writing to a string cannot fail"),
            None => text.push_str("- "),
        }
    }
    text
}

//! Measures routing of lines through a relay with one ring over three endpoints.
//!
//! `route_lines NAMES RULES LINES`: LINES lines of NAMES names in random order, with RULES regular expressions
//! before the `match` that applies. With 0 NAMES each line has a new name. `bench/instructions.toml` has limits for
//! it. Parsing of lines and filling of queues are not included, nor the hashing of known names, which the intake
//! does.
#![allow(clippy::print_stdout, reason = "an example prints to its user")]

use model::OutputId;
use process::relay::{
    Act, CacheLimits, CachedRouter, ClusterId, Distribution, Entry, Line, MatchPlan, Member, MemberNode,
    RelayCluster, RelayPlan, Router, Statement, To,
};
use process::sharding::Sharding;

fn plan(rules: usize) -> RelayPlan {
    let member = |output| Member {
        node: MemberNode::Output(OutputId(output)),
        host: format!("10.0.0.{output}"),
        port: 2003,
        instance: None,
    };
    let ring = Distribution::Sharded { sharding: Sharding::CarbonCh, replication: 1, fail_over: false };
    let cluster =
        RelayCluster { name: "ring".into(), members: (0..3).map(member).collect(), distribution: ring };
    let to = || To::Clusters(vec![ClusterId(0)]);
    let rule = |at: usize| {
        let text = format!(r"^stats\.team{at}\.[a-z]+[0-9]*\.(timers|gauges)\.");
        let expressions = vec![text.as_str().into()];
        Statement::Match(MatchPlan { expressions, to: to(), stop: true, ..MatchPlan::default() })
    };
    let mut statements: Vec<Statement> = (0..rules).map(rule).collect();
    statements.push(Statement::Match(MatchPlan { to: to(), stop: true, ..MatchPlan::default() }));
    RelayPlan { clusters: vec![cluster], statements, ..RelayPlan::default() }
}

fn main() {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse::<u64>().expect("NAMES RULES LINES"));
    let mut number = || numbers.next().expect("NAMES RULES LINES");
    let (names, rules, lines) = (number(), number(), number());
    let router = Router::new(&plan(rules as usize)).expect("a valid plan");
    let mut relay = CachedRouter::new(router, CacheLimits::default(), 7);
    let mut copies = [0u64; 3];
    let mut route = |relay: &mut CachedRouter, name: &[u8], hash| {
        let line = Line { name, rest: b"1 1700000000" };
        relay.route(Entry::Records, hash, line, &mut |act| {
            if let Act::Copy { output, .. } = act {
                copies[output.index()] += 1;
            }
        });
    };
    let mut name = *b"servers.web0000.interface-eth0.if_octets.0000000";
    let mut named = |number: u64| {
        let length = name.len();
        write_digits(&mut name[11..15], number % 997);
        write_digits(&mut name[length - 7..], number);
        name
    };
    if names == 0 {
        for name in (0..lines).map(&mut named) {
            let hash = relay.hash(&name);
            route(&mut relay, &name, hash);
        }
    } else {
        let names: Vec<_> = (0..names).map(&mut named).map(|name| (name, relay.hash(&name))).collect();
        names.iter().for_each(|(name, hash)| route(&mut relay, name, *hash));
        let mut random = 0x9e37_79b9_7f4a_7c15u64;
        for _ in 0..lines {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let (name, hash) = &names[(random % names.len() as u64) as usize];
            route(&mut relay, name, *hash);
        }
    }
    println!("{copies:?} {:?} {} bytes", relay.figures(), relay.memory_bytes());
}

/// The last digits of a number.
fn write_digits(to: &mut [u8], mut number: u64) {
    for digit in to.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

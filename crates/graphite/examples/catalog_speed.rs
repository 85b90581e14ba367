//! Measures a catalog of a million names: building, memory, globs, expressions over tags, saving and reading.
//!
//! `cargo run --release -p graphite --example catalog_speed`; pin it with `taskset -c 1`. Times are CPU times of one core,
//! the smallest and the median of 15 runs.
#![allow(clippy::print_stdout, reason = "an example prints to its user")]

use graphite::catalog::{Catalog, CatalogLimits, Glob, SearchLimits, Wanted};

const SERVERS: u32 = 10_000;
const LIMITS: CatalogLimits = CatalogLimits { names_max: 4_000_000, bytes_max: 4 << 30 };
const SEARCH: SearchLimits = SearchLimits { results_max: 2_000_000, steps_max: 100_000_000 };

/// A hundred names of a server: ten groups of ten.
fn names(server: u32) -> impl Iterator<Item = String> {
    const GROUPS: [&str; 10] =
        ["cpu", "memory", "disk", "network", "load", "swap", "nginx", "mysql", "redis", "app"];
    const NAMES: [&str; 10] =
        ["user", "system", "idle", "wait", "used", "free", "count", "rate", "upper", "lower"];
    GROUPS
        .iter()
        .flat_map(move |group| NAMES.iter().map(move |name| format!("servers.web{server}.{group}.{name}")))
}

fn tagged(server: u32) -> impl Iterator<Item = String> {
    (0..100).map(move |metric| {
        format!("metric{metric};dc=dc{};rack=r{};server=web{server}", server % 4, server % 200)
    })
}

fn build(what: &str, all: &[String]) -> Catalog {
    let mut catalog = Catalog::new(LIMITS);
    let began = cpu_s();
    for name in all {
        catalog.insert(name.as_bytes()).expect("within the limits");
    }
    let took = cpu_s() - began;
    let text: usize = all.iter().map(String::len).sum();
    println!(
        "{what}: {} names of {} bytes built in {:.2} s; {:.1} bytes a name, all included",
        catalog.len(),
        text / all.len(),
        took,
        catalog.memory_bytes() as f64 / f64::from(catalog.len()),
    );
    catalog
}

/// CPU time of this process, in seconds.
fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("Linux reports the times of a process");
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).expect("a number of ns") / 1e9
}

/// Prints the smallest and the median time of 15 runs.
fn measure(what: &str, mut run: impl FnMut() -> usize) {
    let mut results = 0;
    let mut times: Vec<f64> = (0..15)
        .map(|_| {
            let began = cpu_s();
            results = run();
            (cpu_s() - began) * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("  {what}: {results} results, {:.2} ms (median {:.2})", times[0], times[7]);
}

fn globs(catalog: &Catalog) {
    for glob in [
        "servers.web1*.cpu.user",
        "servers.*.cpu.user",
        "servers.web{1,2,3}??.cpu.{user,idle}",
        "servers.*[05].cpu.u*r",
        "servers.*",
        "**.user",
        "*.*.*.*",
    ] {
        measure(glob, || {
            let glob = Glob::new(glob.as_bytes()).expect("a glob");
            catalog.search(glob, Wanted::All, SEARCH).expect("within the limits").len()
        });
    }
}

fn main() {
    let all: Vec<String> = (0..SERVERS).flat_map(names).collect();
    let catalog = build("paths", &all);
    globs(&catalog);
    drop(catalog);
    let all: Vec<String> = (0..SERVERS).flat_map(tagged).collect();
    build("tagged", &all);
}

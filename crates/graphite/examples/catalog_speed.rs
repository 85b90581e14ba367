//! Measures a catalog of a million names: building, memory, globs, expressions over tags, saving and reading.
//!
//! `cargo run --release -p graphite --example catalog_speed`; pin it with `taskset -c 1`. Times are CPU times of one core.
#![allow(clippy::print_stdout, reason = "an example prints to its user")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::time::Instant;

use graphite::catalog::saved::{Reader, Snapshot};
use graphite::catalog::{
    Catalog, CatalogLimits, Expressions, NameGlob, Progress, Search, SearchLimits, TagList, Wanted,
};

const SEED: u64 = 1;
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

/// A container of its own for each name.
fn unlike(at: u32) -> String {
    let id = u64::from(at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!("kubernetes.pods.{id:016x}.requests.{}", at % 7)
}

fn unlike_tags(at: u32) -> String {
    let id = u64::from(at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!("requests;dc=dc{};pod={id:016x};status={};zone=z{}", at % 4, at % 5, at % 9)
}

fn build(what: &str, all: &[String]) -> Catalog {
    let mut catalog = Catalog::new(LIMITS, SEED);
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

/// Prints the mean time of a run: the kernel counts CPU time in steps of up to 4 ms.
fn measure(what: &str, mut run: impl FnMut() -> usize) {
    let (began, mut runs, mut results) = (cpu_s(), 0u32, 0);
    while cpu_s() - began < 0.3 {
        results = run();
        runs += 1;
    }
    println!("  {what}: {results} results, {:.2} ms", (cpu_s() - began) * 1e3 / f64::from(runs));
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
            let glob = NameGlob::new(glob.as_bytes()).expect("a glob");
            catalog.search(glob, Wanted::All, SEARCH).expect("within the limits").len()
        });
    }
}

fn tags(catalog: &Catalog) {
    for texts in ["name=metric7", "dc=dc1 name=metric7", "server=~web1 name=metric7", "rack=~r1", "dc=dc1"] {
        measure(texts, || {
            let expressions =
                Expressions::parse(texts.split(' ').map(str::as_bytes)).expect("good expressions");
            catalog.find_series(expressions, SEARCH).expect("within the limits").len()
        });
    }
    measure("values of server that begin with web1, 100", || {
        let mut list = TagList::new(Some(b"server"), None, b"web1", Some(100), SEARCH);
        while list.step(catalog, 10_000).expect("within the limits") == Progress::More {}
        list.finish().len()
    });
}

fn saved(catalog: &Catalog) {
    let (mut snapshot, mut file) = (Snapshot::new(1), Vec::new());
    let began = cpu_s();
    while snapshot.next(catalog, &mut file) {}
    let written = cpu_s();
    let mut reader = Reader::new(LIMITS, SEED);
    reader.begin();
    file.chunks(1 << 20).for_each(|portion| reader.push(portion));
    let report = reader.end();
    let read = reader.finish();
    assert!(report.ended && report.damages == 0 && read.len() == catalog.len());
    println!(
        "  saved: {:.1} bytes a name, written in {:.2} s, read in {:.2} s",
        file.len() as f64 / f64::from(catalog.len()),
        written - began,
        cpu_s() - written
    );
}

/// The slices of 1,000 steps of a search over everything, by the wall clock.
fn slices(catalog: &Catalog) {
    let mut search = Search::new(NameGlob::new(b"**.user").expect("a glob"), Wanted::Leaves, SEARCH);
    let (mut times, mut more) = (Vec::new(), true);
    while more {
        let began = Instant::now();
        more = search.step(catalog, 1000).expect("within the limits") == Progress::More;
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    let at = |share: usize| times[(times.len() - 1) * share / 100];
    println!("  {} slices of 1,000 steps: median {:.2} ms, p90 {:.2} ms", times.len(), at(50), at(90));
}

fn main() {
    let all: Vec<String> = (0..SERVERS).flat_map(names).collect();
    let catalog = build("paths", &all);
    globs(&catalog);
    slices(&catalog);
    saved(&catalog);
    drop(catalog);
    let all: Vec<String> = (0..SERVERS).flat_map(tagged).collect();
    let catalog = build("tagged", &all);
    tags(&catalog);
    saved(&catalog);
    drop(catalog);
    let all: Vec<String> = (0..1_000_000).map(unlike).collect();
    build("paths that share little", &all);
    let all: Vec<String> = (0..1_000_000).map(unlike_tags).collect();
    saved(&build("tagged, one value of its own each", &all));
}

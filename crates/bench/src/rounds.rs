//! The order of the runs: every contestant once in each round, so that a slow minute of the machine affects all of
//! them.

use crate::BenchError;

/// Share of a run's packets or lines that is sent before it, and the most of them, to warm up caches, page tables and
/// compilers.
const WARM_UP_SHARE: u64 = 10;
const WARM_UP_MAX: u64 = 100_000;

/// Most runs of the long scenarios.
pub(crate) const LONG_RUNS_MAX: u64 = 3;

/// Runs each of `entrants` once in each of `rounds` rounds. `run` gets the number of the round, from 1. Returns the
/// results by entrant. `name` is for the lines of progress.
///
/// # Errors
/// Those of `run`.
pub(crate) fn rounds<E, R>(
    talk: &mut dyn FnMut(&str),
    name: &str,
    rounds: u64,
    entrants: &[E],
    mut run: impl FnMut(&E, u64) -> Result<R, BenchError>,
) -> Result<Vec<Vec<R>>, BenchError> {
    let mut results: Vec<Vec<R>> = entrants.iter().map(|_entrant| Vec::new()).collect();
    for round in 1..=rounds {
        talk(&format!("{name}: run {round} of {rounds}"));
        for (entrant, results) in entrants.iter().zip(&mut results) {
            results.push(run(entrant, round)?);
        }
    }
    Ok(results)
}

/// Packets or lines of the warm-up before a run of `count`.
pub(crate) fn warm_up(count: u64) -> u64 {
    (count / WARM_UP_SHARE).clamp(1, WARM_UP_MAX)
}

#[test]
fn each_round_runs_all_entrants_and_an_error_ends_it() {
    let (mut said, mut turns) = (Vec::new(), Vec::new());
    let results = rounds(&mut |line| said.push(line.to_owned()), "x", 2, &["a", "b"], |entrant, round| {
        turns.push((*entrant, round));
        Ok(turns.len())
    });
    assert_eq!(results.expect("none fails"), [[1, 3], [2, 4]]);
    assert_eq!(turns, [("a", 1), ("b", 1), ("a", 2), ("b", 2)]);
    assert_eq!(said, ["x: run 1 of 2", "x: run 2 of 2"]);
    let failing =
        rounds(&mut |_line| {}, "x", 2, &[1], |_one, _round| Err::<(), _>(BenchError::Argument("no".into())));
    assert!(failing.is_err());
    assert_eq!([0, 50, 5_000_000].map(warm_up), [1, 5, 100_000]);
}

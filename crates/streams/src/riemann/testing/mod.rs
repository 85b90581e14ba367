//! Test mode: taps, tests of a config, and running them under a virtual clock (spec riemann §13).
//!
//! Path of a test: `deftest` keeps its function while the config is loaded -> [`run`] loads the config anew for each test, so that none
//! sees the state of another -> the function calls `inject!` -> `is` counts what holds and what does not.

mod functions;
pub mod recorded;
mod report;

pub use recorded::{Failure, TAPPED_MAX, TESTS_MAX};
pub use report::Report;

use recorded::Test;

use super::engine::{Engine, Setup};
use crate::language::budget;
use crate::language::host::Host;
use crate::language::load::LoadError;
use crate::language::machine::Machine;

pub(super) use functions::{CONTROLLED, FUNCTIONS, MACROS};

/// What a test may use: as much as loading.
const TEST_LIMITS: budget::Limits = budget::Limits::LOAD;

/// Runs the tests of a config whose namespaces match; `host` makes a host for each test.
///
/// # Errors
/// If the config cannot be loaded.
pub fn run(
    file: &str,
    host: &mut dyn FnMut() -> Box<dyn Host>,
    is_wanted: &dyn Fn(&str) -> bool,
) -> Result<Report, LoadError> {
    let setup = Setup { testing: true, event: TEST_LIMITS, ..Setup::DEFAULT };
    let first = Engine::load(file, host(), setup)?;
    let tests = tests_of(&first);
    let wanted = |test: &&Test| is_wanted(&test.namespace);
    let mut report = Report::default();
    for test in tests.iter().filter(wanted) {
        let mut engine = Engine::load(file, host(), setup)?;
        // The same config has the same tests in the same order.
        let found = tests_of(&engine)
            .into_iter()
            .find(|one| (&one.namespace, &one.name) == (&test.namespace, &test.name));
        let Some(found) = found else { continue };
        let result = {
            let mut machine = Machine::new(&mut engine.graph, TEST_LIMITS);
            machine.namespace = test.namespace.clone();
            machine.call(&found.function, &mut [])
        };
        let (lines, _) = engine.take_lines();
        let Some(testing) = engine.graph.surroundings.testing.take() else { continue };
        report.add(&found, testing.assertions, testing.failures, result.err(), lines);
    }
    Ok(report)
}

fn tests_of(engine: &Engine) -> Vec<Test> {
    engine.graph.surroundings.testing.as_ref().map_or(Vec::new(), |testing| testing.tests.clone())
}

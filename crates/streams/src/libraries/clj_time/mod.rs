//! `clj-time`: dates, durations and their texts, as far as configs use them.
//!
//! A date is a `Moment`. What else is an object in Joda is plain data here: a duration `{:hours 2}`, an interval `{:start … :end …}`, a
//! formatter `{:patterns […] :zone …}`, a zone its name.
//!
//! - [`dates`]: `clj-time.core`. [`durations`]: its durations and intervals. [`coerce`], [`mod@format`]: the namespaces of these names.
//! - [`moments`]: values as times. [`pattern`]: Joda's patterns.

mod coerce;
mod dates;
mod durations;
mod format;
mod moments;
mod pattern;

pub(super) use format::usual;

#[cfg(test)]
mod tests;

use crate::language::world::World;
use crate::value::Value;

/// Adds the namespaces.
pub(super) fn add(world: &World) {
    for natives in
        [dates::NATIVES, dates::PARTS, dates::ZONES, durations::NATIVES, durations::MADE, durations::MEASURES]
    {
        world.add_functions("clj-time.core", natives);
    }
    world.add_functions("clj-time.coerce", coerce::NATIVES);
    world.add_functions("clj-time.format", format::NATIVES);
    world.add_constant("clj-time.core", "utc", Value::text("UTC"));
    world.add_constant("clj-time.format", "formatters", format::formatters());
}

//! Whole targets over a store in memory.

mod limits;
mod names;
mod ranges;
mod values;

use jiff::tz::TimeZone;

use super::*;

/// Series in memory, and what was fetched of them.
#[derive(Default)]
pub(super) struct Store {
    series: Vec<Fetched>,
    events: Vec<i64>,
    /// Paths and ranges of each fetch.
    fetches: Vec<Vec<Ask>>,
}

/// Numbers and `-` for null, separated by commas.
pub(super) fn numbers(text: &str) -> Vec<f64> {
    let number = |part: &str| if part == "-" { f64::NAN } else { part.parse().expect("a number") };
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(number).collect()
}

impl Store {
    pub(super) fn with(mut self, name: &str, start: i64, step: i64, values: &str) -> Store {
        let values = numbers(values);
        let end = start + step * values.len() as i64;
        self.series.push(Fetched { name: name.to_owned(), start, end, step, values });
        self
    }

    /// A path matches names of as many nodes: `*` is any node, `{a,b}` one of some.
    fn matches(selector: &Selector, name: &str) -> bool {
        let Selector::Glob(path) = selector else { return name.contains(';') };
        let is_match = |glob: &str, node: &str| match glob.strip_prefix('{').and_then(|g| g.strip_suffix('}'))
        {
            Some(names) => names.split(',').any(|one| one == node),
            None => glob == "*" || glob == node,
        };
        let (globs, nodes): (Vec<&str>, Vec<&str>) = (path.split('.').collect(), name.split('.').collect());
        globs.len() == nodes.len() && globs.iter().zip(nodes).all(|(glob, node)| is_match(glob, node))
    }
}

impl Fetch for Store {
    fn keep_going(&mut self) -> Result<(), Stop> {
        Ok(())
    }

    fn fetch(&mut self, asks: &[Ask], room: Room) -> Result<Vec<Vec<Fetched>>, FetchError> {
        self.fetches.push(asks.to_vec());
        let points = |ask: &Ask| {
            let seconds = usize::try_from(ask.range.until - ask.range.from).unwrap_or(0);
            let matching = self.series.iter().filter(|one| Store::matches(&ask.selector, &one.name));
            matching.map(|one| seconds / one.step as usize).sum::<usize>()
        };
        if asks.iter().map(points).sum::<usize>() > room.points.max(10_000) {
            return Err(FetchError::Limit("too many points".to_owned()));
        }
        let cut = |one: &Fetched, range: Range| {
            let next = |time: i64| time - time.rem_euclid(one.step) + one.step;
            let (start, end) = (next(range.from), next(range.until));
            let at = |time: i64| usize::try_from((time - one.start).div_euclid(one.step)).ok();
            let value = |time: i64| at(time).and_then(|at| one.values.get(at)).copied().unwrap_or(f64::NAN);
            let times = (start..end).step_by(one.step as usize);
            Fetched { name: one.name.clone(), start, end, step: one.step, values: times.map(value).collect() }
        };
        let found = |ask: &Ask| {
            let matching = self.series.iter().filter(|one| Store::matches(&ask.selector, &one.name));
            matching.map(|one| cut(one, ask.range)).collect()
        };
        Ok(asks.iter().map(found).collect())
    }

    fn events(&mut self, range: Range, _: Option<&[String]>) -> Result<Vec<i64>, FetchError> {
        Ok(self.events.iter().copied().filter(|time| (range.from..range.until).contains(time)).collect())
    }
}

static UTC: TimeZone = TimeZone::UTC;

/// A request of a range, with defaults.
pub(super) fn request(from: i64, until: i64) -> Request<'static> {
    Request {
        range: Range { from, until },
        now: 1_710_003_600,
        zone: &UTC,
        x_files_factor: None,
        template: &[],
        compat: Compat::default(),
        limits: Limits::default(),
        seed: 1,
    }
}

pub(super) fn close(got: f64, want: f64) -> bool {
    got.is_nan() && want.is_nan() || got == want || (got - want).abs() <= 6e-7 * want.abs().max(1.0)
}

/// Compares values with a text of them.
#[track_caller]
pub(super) fn assert_values(got: &[f64], want: &str, context: &str) {
    let want = numbers(want);
    let is_equal = got.len() == want.len() && got.iter().zip(&want).all(|(got, want)| close(*got, *want));
    assert!(is_equal, "{context}: {got:?}, not {want:?}");
}

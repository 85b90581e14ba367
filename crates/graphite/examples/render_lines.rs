//! Evaluates targets over series that come with them: the side of `compat/render.py` that is ours.
//!
//! Reads a job as JSON from each line of stdin: `series` (name, start, step, values), `from`, `until`, `now`, `targets`,
//! and `times`, how often to evaluate them (1).
//! Answers each with a line: `results` (name, start, end, step, values, tags), or `error`.

use std::io::{self, BufRead, Write};

use graphite::query::{
    Ask, Compat, Fetch, FetchError, Fetched, Limits, Range, Request, Room, Selector, Series, Stop, TimeZone,
    render,
};
use serde_json::{Value, json};

/// The series of a job.
struct Job {
    series: Vec<Fetched>,
}

impl Job {
    fn new(job: &Value) -> Option<Job> {
        let mut series = Vec::new();
        for one in job["series"].as_array()? {
            let values: Vec<f64> =
                one["values"].as_array()?.iter().map(|value| value.as_f64().unwrap_or(f64::NAN)).collect();
            let (start, step) = (one["start"].as_i64()?, one["step"].as_i64()?);
            let end = start + step * i64::try_from(values.len()).ok()?;
            series.push(Fetched { name: one["name"].as_str()?.to_owned(), start, end, step, values });
        }
        Some(Job { series })
    }
}

/// The part of a series in a range, as whisper gives it.
fn cut(one: &Fetched, range: Range) -> Fetched {
    let next = |time: i64| time - time.rem_euclid(one.step) + one.step;
    let (start, end) = (next(range.from), next(range.until));
    let count = (end - start) / one.step;
    let value = |index: i64| {
        let at = usize::try_from((start - one.start) / one.step + index).ok();
        at.and_then(|at| one.values.get(at)).copied().unwrap_or(f64::NAN)
    };
    Fetched { name: one.name.clone(), start, end, step: one.step, values: (0..count).map(value).collect() }
}

fn matches(selector: &Selector, name: &str) -> bool {
    let Selector::Glob(path) = selector else { return name.contains(';') };
    let (globs, nodes): (Vec<&str>, Vec<&str>) = (path.split('.').collect(), name.split('.').collect());
    globs.len() == nodes.len() && globs.iter().zip(nodes).all(|(glob, node)| *glob == "*" || *glob == node)
}

impl Fetch for Job {
    fn keep_going(&mut self) -> Result<(), Stop> {
        Ok(())
    }

    fn fetch(&mut self, asks: &[Ask], _: Room) -> Result<Vec<Vec<Fetched>>, FetchError> {
        let found = |ask: &Ask| {
            let matching = self.series.iter().filter(|one| matches(&ask.selector, &one.name));
            matching.map(|one| cut(one, ask.range)).collect()
        };
        Ok(asks.iter().map(found).collect())
    }
}

fn shown(one: &Series) -> Value {
    let value = |value: &f64| match value {
        value if value.is_nan() => Value::Null,
        value if value.is_infinite() => json!(value.to_string()),
        value => json!(value),
    };
    let tags: serde_json::Map<String, Value> =
        one.tags.iter().map(|(tag, value)| (tag.to_owned(), json!(value))).collect();
    let values: Vec<Value> = one.values.iter().map(value).collect();
    json!({"name": one.name, "start": one.start, "end": one.end, "step": one.step, "values": values, "tags": tags})
}

fn answer(line: &str) -> Option<Value> {
    let job: Value = serde_json::from_str(line).ok()?;
    let targets: Vec<&str> = job["targets"].as_array()?.iter().filter_map(Value::as_str).collect();
    let request = Request {
        range: Range { from: job["from"].as_i64()?, until: job["until"].as_i64()? },
        now: job["now"].as_i64()?,
        zone: &TimeZone::UTC,
        x_files_factor: None,
        template: &[],
        compat: Compat::default(),
        limits: Limits::default(),
        seed: 1,
    };
    let mut series = Job::new(&job)?;
    for _ in 1..job["times"].as_u64().unwrap_or(1) {
        let _ = render(&targets, &request, &mut series);
    }
    Some(match render(&targets, &request, &mut series) {
        Ok(results) => json!({"results": results.iter().map(shown).collect::<Vec<_>>()}),
        Err(mistake) => json!({"error": mistake.to_string()}),
    })
}

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let answer = answer(&line?).unwrap_or_else(|| json!({"error": "the line is no job"}));
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

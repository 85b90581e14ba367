//! The answer to one request of CarbonLink.

use std::collections::HashSet;
use std::sync::Arc;

use graphite::catalog::normal_name;
use graphite::query::Stop;
use graphite::store::Reader;
use graphite::whisper::{AggregationMethod, Point};
use sys::clock::Clock;
use wire::carbonlink::{Reply, Request};

use crate::daemon::shared::stores::OpenStore;

/// The only property of a file that can be asked for.
const METHOD: &str = "aggregationMethod";

/// Most points of one reply: some 60 MB.
const POINTS_MAX: usize = 3_000_000;

/// Most points that one request looks at: some of the same time count once in its reply.
const LOOKED_AT_MAX: usize = 10 * POINTS_MAX;

/// A request's surroundings.
pub(super) struct Asked {
    pub(super) stores: Arc<Vec<Arc<OpenStore>>>,
    /// The client is on this machine.
    pub(super) is_local: bool,
}

impl Asked {
    /// The frame of the reply.
    pub(super) fn answer(&self, request: &Request) -> Vec<u8> {
        match request {
            Request::Points(name) => Reply::points(pairs(&self.points(name))),
            Request::PointsOfMany(names) => self.points_of_many(names),
            Request::GetMetadata { name, key } => self.get(name, key),
            Request::SetMetadata { name, key, value } => self.set(name, key, value),
        }
    }

    /// The points in memory, of the first store that has any.
    fn points(&self, name: &[u8]) -> Vec<Point> {
        // A name that is none has no points.
        let Ok(name) = normal_name(name) else { return Vec::new() };
        let points = self.stores.iter().map(|open| open.store.points_in_memory(&name));
        points.into_iter().find(|points| !points.is_empty()).unwrap_or_default()
    }

    fn points_of_many(&self, names: &[Vec<u8>]) -> Vec<u8> {
        let mut reply = Reply::of_many();
        let (mut left, mut look) = (POINTS_MAX, LOOKED_AT_MAX);
        // The reply has each name once.
        let mut asked = HashSet::new();
        for name in names.iter().filter(|name| asked.insert(name.as_slice())) {
            let enough = look.checked_sub(self.count(name)).and_then(|rest| {
                look = rest;
                let points = self.points(name);
                left = left.checked_sub(points.len())?;
                reply.add(name, pairs(&points));
                Some(())
            });
            if enough.is_none() {
                let why = format!(
                    "the series have more than {POINTS_MAX} points, or more than {LOOKED_AT_MAX} with those of equal times: \
                     ask for fewer"
                );
                return Reply::texts(&[("error", &why)]);
            }
        }
        reply.finish()
    }

    /// The points that a look at a name's points looks at.
    fn count(&self, name: &[u8]) -> usize {
        let Ok(name) = normal_name(name) else { return 0 };
        self.stores.iter().map(|open| open.store.count_in_memory(&name)).sum()
    }

    fn get(&self, name: &[u8], key: &[u8]) -> Vec<u8> {
        match self.method(name, key) {
            Ok(method) => Reply::texts(&[("value", method.name())]),
            Err(why) => Reply::texts(&[("error", &why)]),
        }
    }

    fn method(&self, name: &[u8], key: &[u8]) -> Result<AggregationMethod, String> {
        check_key(key)?;
        let normal = normal_name(name).map_err(|_| unknown(name))?;
        let now = Clock::now().unix_seconds();
        for open in self.stores.iter() {
            let reader = Reader::new(&open.store, &open.tree, now, || Ok::<(), Stop>(()));
            if let Some(header) = reader.header(&normal).map_err(|error| error.to_string())? {
                return Ok(header.method);
            }
        }
        Err(unknown(name))
    }

    fn set(&self, name: &[u8], key: &[u8], value: &[u8]) -> Vec<u8> {
        match self.set_method(name, key, value) {
            Ok((old, new)) => Reply::texts(&[("old_value", old.name()), ("new_value", new.name())]),
            Err(why) => Reply::texts(&[("error", &why)]),
        }
    }

    fn set_method(
        &self,
        name: &[u8],
        key: &[u8],
        value: &[u8],
    ) -> Result<(AggregationMethod, AggregationMethod), String> {
        check_key(key)?;
        if !self.is_local {
            return Err("only clients on this machine can change a file".to_owned());
        }
        let method = std::str::from_utf8(value).ok().and_then(AggregationMethod::of_name);
        let method = method.ok_or_else(|| {
            let value = String::from_utf8_lossy(value);
            format!("`{}` is no aggregation method", value.chars().take(100).collect::<String>())
        })?;
        let normal = normal_name(name).map_err(|_| unknown(name))?;
        for open in self.stores.iter() {
            let set = open.check_may_write().and_then(|()| {
                open.store.set_method(&open.tree, &normal, method).map_err(|error| error.to_string())
            })?;
            if let Some(old) = set {
                tracing::info!(
                    "output `{}`: CarbonLink set the method of {} from {} to {}",
                    open.name,
                    String::from_utf8_lossy(&normal),
                    old.name(),
                    method.name()
                );
                return Ok((old, method));
            }
        }
        Err(unknown(name))
    }
}

fn pairs(points: &[Point]) -> impl Iterator<Item = (i64, f64)> + '_ {
    points.iter().map(|point| (point.time, point.value))
}

fn check_key(key: &[u8]) -> Result<(), String> {
    if key == METHOD.as_bytes() {
        return Ok(());
    }
    let key: String = String::from_utf8_lossy(key).chars().take(100).collect();
    Err(format!("Unsupported metadata key \"{key}\": the only one is {METHOD}"))
}

fn unknown(name: &[u8]) -> String {
    format!("there is no file of {}", String::from_utf8_lossy(name).chars().take(200).collect::<String>())
}

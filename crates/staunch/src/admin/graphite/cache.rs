//! Answers of `/render` that are given again to the same request (spec graphite §6.2).
//!
//! Off unless the config or the request says how long: answers then lack the points that came since. Limit: bytes of all answers; the one
//! that was used least recently makes room.

use std::sync::{Mutex, PoisonError};

use config::plan::GraphiteApiPlan;
use hyper::body::Bytes;
use lru::LruCache;
use model::SECOND_NS;

use super::parameters::{Parameters, bad};
use crate::admin::refusal::Refusal;

/// Longest time that a request can ask for, in seconds.
const SECONDS_MAX: i64 = 86_400;

/// An answer takes at most this share of the memory for all.
const SHARE: u64 = 4;

/// The answers.
#[derive(Debug, Default)]
pub(super) struct Answers(Mutex<Kept>);

#[derive(Debug)]
struct Kept {
    answers: LruCache<String, Answer>,
    bytes: u64,
}

impl Default for Kept {
    fn default() -> Kept {
        Kept { answers: LruCache::unbounded(), bytes: 0 }
    }
}

#[derive(Clone, Debug)]
struct Answer {
    kind: &'static str,
    bytes: Bytes,
    made_ns: u64,
    made_s: i64,
}

/// An answer that is kept, or was.
#[derive(Debug)]
pub(super) struct Hit {
    pub(super) page: (&'static str, Bytes),
    /// When it was made, in Unix seconds.
    pub(super) made_s: i64,
}

/// How long the answer to a request may be given again, in seconds. None: not at all.
///
/// # Errors
/// `cacheTimeout` is not a number.
pub(super) fn seconds(parameters: &Parameters, plan: &GraphiteApiPlan) -> Result<Option<u64>, Refusal> {
    let default = i64::try_from(plan.cache_ms / 1000).unwrap_or(0);
    let asked = parameters.number("cacheTimeout", default)?;
    if !(0..=SECONDS_MAX).contains(&asked) {
        return Err(bad(format!("`cacheTimeout` is 0 to {SECONDS_MAX} seconds")));
    }
    let never = asked == 0 || parameters.get("noCache").is_some();
    Ok(u64::try_from(asked).ok().filter(|_| !never))
}

/// What makes two requests the same: all parameters but those about the cache, and those that scripts add against caches.
pub(super) fn key(parameters: &Parameters) -> String {
    let of_answer = |name: &str| !matches!(name, "cacheTimeout" | "noCache") && !name.starts_with('_');
    let mut pairs: Vec<(&str, &str)> = parameters.pairs().filter(|(name, _)| of_answer(name)).collect();
    // Values of one name keep their order: targets are answered in it, and of others the last one counts.
    pairs.sort_by_key(|(name, _)| *name);
    let pairs = pairs.iter().map(|(name, value)| format!("{}:{name}{}:{value}", name.len(), value.len()));
    pairs.collect()
}

impl Answers {
    /// An answer that was made less than `seconds` ago.
    pub(super) fn get(&self, key: &str, seconds: u64, now_ns: u64) -> Option<Hit> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Answer { kind, bytes, made_ns, made_s } = kept.answers.get(key)?.clone();
        let is_fresh = now_ns.saturating_sub(made_ns) < seconds.saturating_mul(SECOND_NS);
        is_fresh.then_some(Hit { page: (kind, bytes), made_s })
    }

    /// Keeps an answer, if there is room for it.
    pub(super) fn put(
        &self,
        key: String,
        (kind, bytes): (&'static str, Bytes),
        (now_ns, now_s): (u64, i64),
        bytes_max: u64,
    ) {
        let size = cost(&key, &bytes);
        if size > bytes_max / SHARE {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = kept.answers.pop(&key) {
            kept.bytes -= cost(&key, &before.bytes);
        }
        while kept.bytes + size > bytes_max {
            let Some((oldest, answer)) = kept.answers.pop_lru() else { break };
            kept.bytes -= cost(&oldest, &answer.bytes);
        }
        kept.bytes += size;
        kept.answers.put(key, Answer { kind, bytes, made_ns: now_ns, made_s: now_s });
    }
}

/// Its memory.
fn cost(key: &str, bytes: &[u8]) -> u64 {
    (key.len() + bytes.len() + 256) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(query: &str) -> Parameters {
        Parameters::new(query, b"").expect("few")
    }

    #[test]
    fn answers_are_given_again_until_they_are_too_old() {
        let answers = Answers::default();
        answers.put("a".into(), ("text/plain", Bytes::from_static(b"1")), (5 * SECOND_NS, 100), 10_000);
        let at = |seconds| answers.get("a", seconds, 15 * SECOND_NS).map(|hit| (hit.page.1, hit.made_s));
        assert_eq!((at(10), at(11)), (None, Some((Bytes::from_static(b"1"), 100))));
        assert!(answers.get("b", 100, 0).is_none());
    }

    #[test]
    fn the_answer_that_was_used_least_recently_makes_room() {
        let answers = Answers::default();
        let page = ("text/plain", Bytes::from(vec![0; 1000]));
        for key in ["a", "b", "c"] {
            answers.put(key.into(), page.clone(), (0, 0), 6_000);
        }
        assert!(answers.get("a", 1, 0).is_some());
        for key in ["d", "e"] {
            answers.put(key.into(), page.clone(), (0, 0), 6_000);
        }
        let known: String =
            ["a", "b", "c", "d", "e"].into_iter().filter(|key| answers.get(key, 1, 0).is_some()).collect();
        assert_eq!(known, "acde");
        answers.put("large".into(), ("text/plain", Bytes::from(vec![0; 2000])), (0, 0), 6_000);
        assert!(answers.get("large", 1, 0).is_none());
        let kept = answers.0.lock().expect("no panic");
        assert_eq!(kept.answers.len(), 4);
        assert!(kept.bytes <= 6_000);
    }

    #[test]
    fn the_request_or_the_config_says_how_long() {
        let on = GraphiteApiPlan { cache_ms: 60_000, ..GraphiteApiPlan::default() };
        let off = GraphiteApiPlan::default();
        for (query, with, without) in [
            ("target=a", Some(60), None),
            ("target=a&noCache=1", None, None),
            ("target=a&cacheTimeout=0", None, None),
            ("target=a&cacheTimeout=7", Some(7), Some(7)),
        ] {
            let all = parameters(query);
            assert_eq!(
                (seconds(&all, &on).ok(), seconds(&all, &off).ok()),
                (Some(with), Some(without)),
                "{query}"
            );
        }
        assert!(seconds(&parameters("cacheTimeout=x"), &on).is_err());
        assert!(seconds(&parameters("cacheTimeout=-1"), &on).is_err());
    }

    #[test]
    fn the_order_of_targets_counts_and_that_of_other_parameters_does_not() {
        let key = |query: &str| key(&parameters(query));
        assert_eq!(key("target=a&from=-1h&_salt=1"), key("from=-1h&target=a&_salt=2&noCache=1"));
        assert_ne!(key("target=a&target=b"), key("target=b&target=a"));
        assert_ne!(key("target=a&from=1"), key("target=a&from=12"));
    }
}

//! Queries of clients, compiled before the shard gets them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use streams::query::Query;

/// Compiled queries that are kept (spec riemann §5.5).
const QUERIES_MAX: usize = 64;

/// Longest query without a regular expression that is compiled where it is asked: in some microseconds.
const SHORT_BYTES: usize = 1 << 10;

/// Compiles the queries of clients. A regular expression takes milliseconds, which the shard must not wait for, and anybody who connects
/// can send any number: they are compiled on a thread beside the others, one after the other. Those of late are known.
#[derive(Debug, Default)]
pub(crate) struct Queries {
    known: Mutex<VecDeque<(Box<str>, Arc<Query>)>>,
    turn: tokio::sync::Mutex<()>,
}

impl Queries {
    /// The query of a text.
    ///
    /// # Errors
    /// What is wrong with it, in words for the client.
    pub(crate) async fn compiled(&self, text: &str) -> Result<Arc<Query>, String> {
        let new = |text: &str| Query::new(text).map(Arc::new).map_err(|error| error.to_string());
        if text.len() <= SHORT_BYTES && !text.contains("~=") {
            return new(text);
        }
        if let Some(known) = self.find(text) {
            return Ok(known);
        }
        let _turn = self.turn.lock().await;
        // Another client may have asked for it meanwhile.
        if let Some(known) = self.find(text) {
            return Ok(known);
        }
        let owned: Box<str> = text.into();
        let done = tokio::task::spawn_blocking(move || new(&owned).map(|query| (owned, query))).await;
        let (text, query) = done.map_err(|_ended| "the daemon stops".to_owned())??;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.truncate(QUERIES_MAX - 1);
        known.push_front((text, Arc::clone(&query)));
        Ok(query)
    }

    fn find(&self, text: &str) -> Option<Arc<Query>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let at = known.iter().position(|(known, _)| **known == *text)?;
        let found = known.remove(at)?;
        let query = Arc::clone(&found.1);
        known.push_front(found);
        Some(query)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn queries_with_expressions_are_compiled_once_and_the_latest_are_kept() {
        let queries = Queries::default();
        let text = |number: usize| format!("service ~= \"a{number}\"");
        let first = queries.compiled(&text(0)).await.expect("a query");
        for number in 1..QUERIES_MAX {
            queries.compiled(&text(number)).await.expect("a query");
            assert!(Arc::ptr_eq(&queries.compiled(&text(0)).await.expect("a query"), &first), "{number}");
        }
        for number in QUERIES_MAX..2 * QUERIES_MAX {
            queries.compiled(&text(number)).await.expect("a query");
        }
        assert!(!Arc::ptr_eq(&queries.compiled(&text(0)).await.expect("a query"), &first), "it is forgotten");
        assert!(queries.known.lock().expect("nobody panicked").len() <= QUERIES_MAX);
    }

    #[tokio::test]
    async fn what_is_no_query_is_an_error_whatever_its_length() {
        let queries = Queries::default();
        for text in ["oh no".to_owned(), "service ~= \"(\"".to_owned(), "x".repeat(100_000)] {
            assert!(queries.compiled(&text).await.is_err(), "{text}");
        }
        assert!(queries.compiled("true").await.is_ok());
    }
}

//! What nodes are asked, and how their answers are read.

use graphite::catalog::{Found, Wanted};
use graphite::peer::{self, BadAnswer, Encoding};
use graphite::query::{Ask, Fetched, Room, Selector};

use crate::admin::graphite::limits::NAMES_MAX;

/// A question to a node of graphite-web's API.
pub(in crate::admin::graphite) trait Question: Send + Sync + 'static {
    /// What comes back.
    type Answer: Send + 'static;

    /// Whether it is asked for in an encoding. Otherwise the answer is JSON.
    const IS_ENCODED: bool;

    /// Path of the request. go-carbon redirects requests of the first two without their slash.
    fn path(&self) -> &'static str;

    /// Its parameters, but for the encoding.
    fn parameters(&self) -> Vec<(String, String)>;

    /// The answer from its bytes.
    ///
    /// # Errors
    /// What is wrong with them.
    fn read(&self, encoding: Encoding, bytes: &[u8]) -> Result<Self::Answer, String>;

    /// The answer of a node that has found nothing.
    fn nothing(&self) -> Self::Answer;
}

/// Points of series.
#[derive(Clone, Debug)]
pub(in crate::admin::graphite) struct SeriesOf {
    pub(in crate::admin::graphite) ask: Ask,
    /// The time that the request counts from, in Unix seconds: which archive answers depends on it.
    pub(in crate::admin::graphite) now: i64,
    pub(in crate::admin::graphite) room: Room,
}

impl Question for SeriesOf {
    type Answer = Vec<Fetched>;
    const IS_ENCODED: bool = true;

    fn path(&self) -> &'static str {
        "/render/"
    }

    fn parameters(&self) -> Vec<(String, String)> {
        let Ask { selector, range } = &self.ask;
        let pairs = [
            ("target", target(selector)),
            ("from", range.from.to_string()),
            ("until", range.until.to_string()),
            ("now", self.now.to_string()),
            ("noCache", "1".to_owned()),
        ];
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn read(&self, encoding: Encoding, bytes: &[u8]) -> Result<Vec<Fetched>, String> {
        peer::series(encoding, bytes, self.room).map_err(|bad| bad.to_string())
    }

    fn nothing(&self) -> Vec<Fetched> {
        Vec::new()
    }
}

/// A selector as a target. Texts have no escapes there: each stands in the quotes that it does not contain.
fn target(selector: &Selector) -> String {
    match selector {
        Selector::Glob(path) => path.clone(),
        Selector::Tags(expressions) => {
            let quoted = |text: &String| {
                let quote = if text.contains('\'') { '"' } else { '\'' };
                format!("{quote}{text}{quote}")
            };
            let all: Vec<String> = expressions.iter().map(quoted).collect();
            format!("seriesByTag({})", all.join(", "))
        }
    }
}

/// Paths with globs.
#[derive(Clone, Debug)]
pub(in crate::admin::graphite) struct PathsOf {
    pub(in crate::admin::graphite) query: String,
    pub(in crate::admin::graphite) wanted: Wanted,
}

impl Question for PathsOf {
    type Answer = Found;
    const IS_ENCODED: bool = true;

    fn path(&self) -> &'static str {
        "/metrics/find/"
    }

    fn parameters(&self) -> Vec<(String, String)> {
        let mut pairs = vec![("query".to_owned(), self.query.clone())];
        if self.wanted == Wanted::Leaves {
            pairs.push(("leavesOnly".to_owned(), "1".to_owned()));
        }
        pairs
    }

    fn read(&self, encoding: Encoding, bytes: &[u8]) -> Result<Found, String> {
        peer::paths(encoding, bytes, NAMES_MAX).map_err(|bad| bad.to_string())
    }

    fn nothing(&self) -> Found {
        Found::default()
    }
}

/// A list of texts: names of series with tags, tags, values.
#[derive(Clone, Debug)]
pub(in crate::admin::graphite) struct TextsOf {
    pub(in crate::admin::graphite) path: &'static str,
    pub(in crate::admin::graphite) parameters: Vec<(String, String)>,
}

impl Question for TextsOf {
    type Answer = Vec<String>;
    const IS_ENCODED: bool = false;

    fn path(&self) -> &'static str {
        self.path
    }

    fn parameters(&self) -> Vec<(String, String)> {
        self.parameters.clone()
    }

    fn read(&self, _: Encoding, bytes: &[u8]) -> Result<Vec<String>, String> {
        let texts: Vec<String> = serde_json::from_slice(bytes)
            .map_err(|error| BadAnswer::Malformed(error.to_string()).to_string())?;
        if texts.len() > NAMES_MAX {
            return Err(BadAnswer::TooManyPaths.to_string());
        }
        Ok(texts)
    }

    fn nothing(&self) -> Vec<String> {
        Vec::new()
    }
}

#[test]
fn a_selector_is_asked_as_a_target() {
    let tags = |all: &[&str]| target(&Selector::Tags(all.iter().map(|one| (*one).to_owned()).collect()));
    assert_eq!(target(&Selector::Glob("a.{b,c}.*".to_owned())), "a.{b,c}.*");
    assert_eq!(tags(&["name=cpu", "host=~w'b"]), "seriesByTag('name=cpu', \"host=~w'b\")");
}

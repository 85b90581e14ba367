//! What nodes are asked, and how their answers are read.

use graphite::catalog::{Counted, Found, Wanted};
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
    fn path(&self) -> &str;

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

    fn path(&self) -> &str {
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

/// A selector as a target. Texts have no escapes there: each is between the quotes that it does not contain.
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

    fn path(&self) -> &str {
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

    fn path(&self) -> &str {
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

/// Tags, or the values of one, with how often each is used.
#[derive(Clone, Debug)]
pub(in crate::admin::graphite) struct CountsOf {
    pub(in crate::admin::graphite) path: String,
    pub(in crate::admin::graphite) parameters: Vec<(String, String)>,
    /// True: of the values of a tag. Otherwise of tags.
    pub(in crate::admin::graphite) of_values: bool,
}

impl CountsOf {
    /// Number of a tag or a value that this node has not.
    pub(in crate::admin::graphite) const ELSEWHERE: u32 = 0;
}

/// `/tags`
#[derive(serde::Deserialize)]
struct TagRow {
    tag: String,
}

/// `/tags/TAG`
#[derive(serde::Deserialize)]
struct TagValues {
    values: Vec<ValueRow>,
}

#[derive(serde::Deserialize)]
struct ValueRow {
    value: String,
    count: u32,
}

impl Question for CountsOf {
    type Answer = Vec<Counted>;
    const IS_ENCODED: bool = false;

    fn path(&self) -> &str {
        &self.path
    }

    fn parameters(&self) -> Vec<(String, String)> {
        self.parameters.clone()
    }

    fn read(&self, _: Encoding, bytes: &[u8]) -> Result<Vec<Counted>, String> {
        let of = |text: String, count| Counted { id: CountsOf::ELSEWHERE, text: text.into_bytes(), count };
        let all: serde_json::Result<Vec<Counted>> = if self.of_values {
            // An unknown tag is `null`.
            let read = serde_json::from_slice::<Option<TagValues>>(bytes);
            let rows = |read: Option<TagValues>| read.map(|tag| tag.values).unwrap_or_default();
            read.map(|read| rows(read).into_iter().map(|row| of(row.value, row.count)).collect())
        } else {
            let read = serde_json::from_slice::<Vec<TagRow>>(bytes);
            read.map(|rows| rows.into_iter().map(|row| of(row.tag, 0)).collect())
        };
        let all = all.map_err(|error| BadAnswer::Malformed(error.to_string()).to_string())?;
        if all.len() > NAMES_MAX {
            return Err(BadAnswer::TooManyPaths.to_string());
        }
        Ok(all)
    }

    fn nothing(&self) -> Vec<Counted> {
        Vec::new()
    }
}

#[test]
fn a_selector_is_asked_as_a_target() {
    let tags = |all: &[&str]| target(&Selector::Tags(all.iter().map(|one| (*one).to_owned()).collect()));
    assert_eq!(target(&Selector::Glob("a.{b,c}.*".to_owned())), "a.{b,c}.*");
    assert_eq!(tags(&["name=cpu", "host=~w'b"]), "seriesByTag('name=cpu', \"host=~w'b\")");
}

//! Parameters of a request: those of its query and of its form, in order.

use axum::http::StatusCode;
use graphite::query::TimeZone;

use crate::admin::refusal::Refusal;

/// Most parameters of a request.
const PARAMETERS_MAX: usize = 10_000;

/// Names and values as text.
#[derive(Debug, Default)]
pub(super) struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Those of a query string and of a form; the form's come later.
    pub(super) fn new(query: &str, form: &[u8]) -> Result<Parameters, Refusal> {
        let all = [query.as_bytes(), form].into_iter().flat_map(form_urlencoded::parse);
        let pairs: Vec<(String, String)> = all
            .take(PARAMETERS_MAX + 1)
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .collect();
        if pairs.len() > PARAMETERS_MAX {
            return Err(bad(format!("the request has more than {PARAMETERS_MAX} parameters")));
        }
        Ok(Parameters(pairs))
    }

    /// All names and values, in order.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Those that a question to other nodes repeats: all but how the answer is written.
    pub(super) fn repeated(&self) -> Vec<(String, String)> {
        let kept = self.0.iter().filter(|(name, _)| !matches!(name.as_str(), "jsonp" | "pretty" | "local"));
        kept.cloned().collect()
    }

    /// The last value of a name.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// All values of a name, or those of `NAME[]` if there is none.
    pub(super) fn all(&self, name: &str) -> Vec<&str> {
        let of = |name: &str| -> Vec<&str> {
            self.0.iter().filter(|(other, _)| other == name).map(|(_, value)| value.as_str()).collect()
        };
        let found = of(name);
        if found.is_empty() { of(&format!("{name}[]")) } else { found }
    }

    /// Values such as `template[x]`, by what is in the brackets.
    pub(super) fn in_brackets(&self, name: &str) -> Vec<(String, String)> {
        let inner =
            |key: &str| key.strip_prefix(name)?.strip_prefix('[')?.strip_suffix(']').map(str::to_owned);
        self.0.iter().filter_map(|(key, value)| Some((inner(key)?, value.clone()))).collect()
    }

    /// A whole number; `default` if it is missing or empty.
    pub(super) fn number(&self, name: &str, default: i64) -> Result<i64, Refusal> {
        match self.get(name).map(str::trim) {
            None | Some("") => Ok(default),
            Some(text) => text.parse().map_err(|_| bad(format!("`{name}` is not a whole number: `{text}`"))),
        }
    }

    /// True for any value but `0`, `false` and nothing.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| !matches!(value, "" | "0" | "false" | "False"))
    }
}

/// A request that has to change.
pub(super) fn bad(why: impl Into<String>) -> Refusal {
    (StatusCode::BAD_REQUEST, why.into())
}

/// The zone of a request; UTC for an unknown one, as in graphite-web.
pub(super) fn zone(parameters: &Parameters) -> TimeZone {
    let named = parameters.get("tz").filter(|name| !name.is_empty());
    named.and_then(|name| TimeZone::get(name).ok()).unwrap_or(TimeZone::UTC)
}

#[test]
fn parameters_of_query_and_form_are_one_list() {
    let all =
        Parameters::new("target=a.b&from=-1h&template[x]=1&x=0", b"target=sum%28c%29&from=-2h&e[]=1&e[]=2");
    let all = all.expect("few");
    assert_eq!((all.all("target"), all.get("from")), (vec!["a.b", "sum(c)"], Some("-2h")));
    assert_eq!(all.all("e"), ["1", "2"]);
    assert_eq!(all.in_brackets("template"), [("x".to_owned(), "1".to_owned())]);
    assert_eq!(
        (all.flag("x"), all.flag("from"), all.number("x", 7).ok(), all.number("y", 7).ok()),
        (false, true, Some(0), Some(7))
    );
    assert!(all.number("target", 0).is_err());
}

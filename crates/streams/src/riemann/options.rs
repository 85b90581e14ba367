//! Options of the functions that make servers and outputs: one map, or keys and values (spec riemann §2).

use arcstr::ArcStr;

use super::declared::TlsFiles;
use crate::language::diagnostic::nearest;
use crate::language::error::{EvalError, Outcome};
use crate::language::machine::Machine;
use crate::nodes::fields;
use crate::number::Number;
use crate::position::Position;
use crate::value::Value;

/// Options of Riemann that set its threads, buffers and connections, for which Staunch has its own.
const WITHOUT_EFFECT: &[&str] = &[
    "block-start",
    "claim-timeout",
    "core",
    "http-options",
    "initializer",
    "max-pools-size",
    "max-size",
    "pool-size",
    "reconnect-interval",
    "so-backlog",
    "so-rcvbuf",
    "timeout",
];

/// The options of one call.
#[derive(Debug)]
pub(super) struct Options {
    /// The function's name, for errors.
    pub(super) function: &'static str,
    /// Keys and values, in the order of the call.
    entries: Vec<(ArcStr, Value)>,
    /// Where it is called.
    pub(super) at: Position,
}

impl Options {
    /// Reads the arguments of a call. Keys that the function does not have are noted, with the nearest one that it has: Riemann
    /// ignores them.
    pub(super) fn of(
        machine: &mut Machine<'_>,
        function: &'static str,
        arguments: &[Value],
        known: &[&str],
    ) -> Outcome<Options> {
        let at = machine.graph.evaluation.here().cloned().unwrap_or_default();
        let pairs: Vec<(Value, Value)> = match arguments {
            [Value::Map(map)] => map.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
            [Value::Nil] | [] => Vec::new(),
            arguments => {
                let (pairs, rest) = arguments.as_chunks::<2>();
                if !rest.is_empty() {
                    let message = format!("({function} …) takes a map, or keys with values");
                    return Err(EvalError::illegal_argument(message));
                }
                pairs.iter().map(|[key, value]| (key.clone(), value.clone())).collect()
            }
        };
        let mut entries = Vec::new();
        for (key, value) in pairs {
            let Value::Keyword(key) = key else {
                let message = format!("({function} …): options have keywords such as :{}", known[0]);
                return Err(EvalError::illegal_argument(message));
            };
            if !known.contains(&key.as_str()) {
                let near = nearest(&key, known.iter().copied());
                let hint = near.map(|near| format!(": did you mean :{near}?")).unwrap_or_default();
                let text = format!("{function} has no option :{key}{hint}");
                machine.graph.surroundings.declared.note(at.clone(), text);
            } else if WITHOUT_EFFECT.contains(&key.as_str()) {
                let text = format!("{function}: :{key} has no effect");
                machine.graph.surroundings.declared.note(at.clone(), text);
            }
            entries.push((key, value));
        }
        Ok(Options { function, entries, at })
    }

    /// An exception about them.
    pub(super) fn wrong(&self, what: impl std::fmt::Display) -> EvalError {
        EvalError::illegal_argument(format!("({} …): {what}", self.function)).within(&self.at)
    }

    /// The value of an option; the last one, if it is there twice. Nil counts as absent.
    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        let found = self.entries.iter().rev().find(|(known, _)| known == key).map(|(_, value)| value);
        found.filter(|value| !value.is_nil())
    }

    /// A text.
    ///
    /// # Errors
    /// If it is something else.
    pub(super) fn text(&self, key: &str) -> Outcome<Option<ArcStr>> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text.clone())),
            Some(_) => Err(self.wrong(format_args!(":{key} must be a text"))),
        }
    }

    /// The name or the address of a host, of the option `:host`.
    ///
    /// # Errors
    /// If it is something else.
    pub(super) fn host(&self) -> Outcome<Option<ArcStr>> {
        let host = self.text("host")?;
        // A host has neither a scheme, a port nor spaces; an IPv6 address has at least two colons.
        let is_host = |host: &str| {
            let has_port = host.matches(':').count() == 1;
            !host.is_empty()
                && !has_port
                && !host.contains(|part: char| part.is_whitespace() || "/@[]".contains(part))
        };
        match &host {
            Some(given) if !is_host(given) => {
                let given: String = given.chars().take(100).collect();
                Err(self.wrong(format_args!(":host must be a name or an IP address, not {given:?}")))
            }
            _ => Ok(host),
        }
    }

    /// A port.
    ///
    /// # Errors
    /// If it is something else.
    pub(super) fn port(&self, default: u16) -> Outcome<u16> {
        self.port_of("port", default)
    }

    /// A port, by another option.
    ///
    /// # Errors
    /// If it is something else.
    pub(super) fn port_of(&self, key: &str, default: u16) -> Outcome<u16> {
        match self.get(key) {
            None => Ok(default),
            Some(Value::Number(Number::Int(port))) => {
                u16::try_from(*port).map_err(|_| self.wrong(format_args!(":{key} must be from 0 to 65535")))
            }
            Some(_) => Err(self.wrong(format_args!(":{key} must be a whole number"))),
        }
    }

    /// A duration over zero, in microseconds.
    ///
    /// # Errors
    /// If it is something else.
    pub(super) fn seconds(&self, key: &str, default_us: i64) -> Outcome<i64> {
        match self.get(key) {
            None => Ok(default_us),
            Some(Value::Number(seconds)) => match fields::to_us(seconds) {
                us @ 1.. => Ok(us),
                ..=0 => Err(self.wrong(format_args!(":{key} must be over zero"))),
            },
            Some(_) => Err(self.wrong(format_args!(":{key} must be a number of seconds"))),
        }
    }

    /// Whether an option is there and neither false nor nil.
    pub(super) fn is_set(&self, key: &str) -> bool {
        self.get(key).is_some_and(Value::is_true)
    }

    /// The TLS options (spec riemann §1.5); none unless `:tls?` is true.
    ///
    /// # Errors
    /// If one of them is missing.
    pub(super) fn tls(&self) -> Outcome<Option<TlsFiles>> {
        if !self.is_set("tls?") {
            return Ok(None);
        }
        let file = |key: &str| {
            self.text(key)?.ok_or_else(|| {
                self.wrong(format_args!(":tls? needs :key, :cert and :ca-cert; :{key} is missing"))
            })
        };
        Ok(Some(TlsFiles { key: file("key")?, cert: file("cert")?, ca_cert: file("ca-cert")? }))
    }
}

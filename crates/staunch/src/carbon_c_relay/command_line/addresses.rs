//! Resolves the names of a relay's servers at the start and at each reload: all at once, with a timeout.
//!
//! The system's resolver (getaddrinfo) has no timeout of its own: a name without an answer in time counts as
//! unresolved, and an option that needs its addresses has no effect. Not here: the use of the addresses
//! (`import::relay::addresses`), resolving while the relay runs (`outputs::addresses::names`).

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use model::SECOND_NS;

use sys::clock::Clock;

/// Timeout for all answers together.
const WAIT_MAX_NS: u64 = 2 * SECOND_NS;

/// Most names that are resolved at the same time.
const AT_ONCE: usize = 16;

pub(crate) type Answer = Result<Vec<IpAddr>, String>;

/// The addresses of each name.
pub(crate) fn of(names: &[&str]) -> HashMap<String, Answer> {
    of_by(names, WAIT_MAX_NS, |name| {
        let found = (name, 0).to_socket_addrs().map_err(|error| error.to_string())?;
        let mut addresses = Vec::new();
        for address in found.map(|address| address.ip()) {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        Ok(addresses)
    })
}

/// The answer for one name.
pub(crate) fn among(known: &HashMap<String, Answer>, name: &str) -> Answer {
    known.get(name).cloned().unwrap_or_else(|| Err("nobody asked for it".to_owned()))
}

fn of_by(names: &[&str], wait_max_ns: u64, ask: fn(&str) -> Answer) -> HashMap<String, Answer> {
    let late = || Err(format!("there was no answer within {} s", WAIT_MAX_NS / SECOND_NS));
    let mut known: HashMap<String, Answer> = names.iter().map(|name| ((*name).to_owned(), late())).collect();
    let open: VecDeque<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let open = Arc::new(Mutex::new(open));
    let (answers, answered) = mpsc::channel();
    for _asker in 0..AT_ONCE.min(names.len()) {
        let (open, answers) = (Arc::clone(&open), answers.clone());
        let next = move || open.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let asking = std::thread::Builder::new().name("names".into()).spawn(move || {
            while let Some(name) = next() {
                let answer = ask(&name);
                if answers.send((name, answer)).is_err() {
                    // The receiver has reached its timeout.
                    return;
                }
            }
        });
        if let Err(error) = asking {
            tracing::warn!("no thread to ask for names: {error}");
        }
    }
    drop(answers);
    let until_ns = Clock::mono_ns() + wait_max_ns;
    loop {
        let rest = Duration::from_nanos(until_ns.saturating_sub(Clock::mono_ns()));
        // All have answered, or at the timeout.
        let Ok((name, answer)) = answered.recv_timeout(rest) else { return known };
        known.insert(name, answer);
    }
}

#[test]
fn a_name_without_an_answer_does_not_delay_others() {
    fn ask(name: &str) -> Answer {
        match name {
            "slow" => loop {
                std::thread::park();
            },
            "none" => Err("nobody knows it".into()),
            _ => Ok(vec![[10, 0, 0, 1].into()]),
        }
    }
    assert!(of_by(&[], 0, ask).is_empty());
    let names: Vec<String> = (0..40).map(|number| format!("n{number}")).collect();
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.push("none");
    let known = of_by(&names, 60 * SECOND_NS, ask);
    assert_eq!(known.len(), 41);
    assert_eq!(known["n7"], Ok(vec![[10, 0, 0, 1].into()]));
    assert_eq!(known["none"], Err("nobody knows it".into()));
    let known = of_by(&["slow"], SECOND_NS / 100, ask);
    assert_eq!(known["slow"], Err("there was no answer within 2 s".into()));
}

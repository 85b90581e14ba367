//! The attributes of an event, or the entries of a map, each key once.

use model::{Entries, ValueRef};
use smallvec::SmallVec;

use crate::steps::touch;

/// Attributes without an allocation, and up to which each is compared with all others.
const FEW: usize = 8;

/// Attributes: keys and values.
type Found<'a> = SmallVec<[(&'a str, ValueRef<'a>); FEW]>;

/// The entries in order, of each key the last one: the one that counts.
pub(super) fn last_of_each(entries: Entries<'_>) -> Found<'_> {
    let mut all: Found<'_> = entries.collect();
    if all.len() <= FEW {
        let mut at = 0;
        while at < all.len() {
            touch(all.len() - at);
            let is_last = all[at + 1..].iter().all(|(key, _)| *key != all[at].0);
            if is_last {
                at += 1;
            } else {
                all.remove(at);
            }
        }
        return all;
    }
    let mut places: Vec<usize> = (0..all.len()).collect();
    touch(all.iter().map(|(key, _)| key.len()).sum());
    // By key and then the last one first, so that it is the one that stays.
    places.sort_unstable_by_key(|place| (all[*place].0, std::cmp::Reverse(*place)));
    places.dedup_by_key(|place| all[*place].0);
    if places.len() == all.len() {
        return all;
    }
    places.sort_unstable();
    places.iter().map(|place| all[*place].clone()).collect()
}

/// Keys with their values.
#[cfg(test)]
type Pairs = &'static [(&'static str, &'static str)];

#[test]
fn of_each_key_the_last_attribute_stays() {
    let table: &[(Pairs, Pairs)] = &[
        (&[], &[]),
        (&[("a", "1"), ("b", "2")], &[("a", "1"), ("b", "2")]),
        (&[("a", "1"), ("b", "2"), ("a", "3")], &[("b", "2"), ("a", "3")]),
        (&[("", "1"), ("", "2"), ("", "3")], &[("", "3")]),
    ];
    for (attributes, want) in table {
        // The same with more attributes than are compared with each other.
        for others in [0, FEW, 1000] {
            let mut batch = model::EventsBuilder::default();
            let mut event = batch.event();
            let others: Vec<String> = (0..others).map(|n| format!("other{}", n * 7919 % 1000)).collect();
            for (key, value) in attributes.iter().copied().chain(others.iter().map(|key| (&**key, "x"))) {
                event.plain_attribute(key, value).expect("they are few");
            }
            event.finish();
            let event = batch.view().iter().next().expect("one event");
            let got = last_of_each(event.attributes());
            let got: Vec<_> = got.iter().map(|(key, value)| (*key, value.clone())).collect();
            let others = others.iter().map(|key| (&**key, "x"));
            let want: Vec<_> =
                want.iter().copied().chain(others).map(|(key, value)| (key, ValueRef::Text(value))).collect();
            assert_eq!(got, want);
        }
    }
}

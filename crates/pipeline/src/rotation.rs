//! Round robin: a queue for each key, and keys take turns in the order of their arrival.
//!
//! [`crate::Exchange`] uses it for batches by peer, and the binary for peers that want to read. A key is kept only
//! while it has something queued.

use std::collections::{BTreeMap, VecDeque};

/// The first turn. There are as many before it as after it.
const FIRST_TURN: u64 = 1 << 63;

/// See the module's header.
#[derive(Debug)]
pub struct Rotation<K, T> {
    of: BTreeMap<K, Line<T>>,
    /// By turn: each key of `of` once.
    order: BTreeMap<u64, K>,
    /// Turn of the next new key.
    next: u64,
    /// The last turn that was given to a key in front.
    front: u64,
}

/// What is queued of one key.
#[derive(Debug)]
struct Line<T> {
    turn: u64,
    queued: VecDeque<T>,
}

impl<K, T> Default for Rotation<K, T> {
    fn default() -> Rotation<K, T> {
        Rotation { of: BTreeMap::new(), order: BTreeMap::new(), next: FIRST_TURN, front: FIRST_TURN }
    }
}

impl<K: Copy + Ord, T> Rotation<K, T> {
    /// True when nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Queues `one` behind the others of `key`.
    pub fn push(&mut self, key: K, one: T) {
        self.line(key).push_back(one);
    }

    /// Queues `one` before all others, and gives `key` the next turn.
    pub fn push_front(&mut self, key: K, one: T) {
        self.line(key).push_front(one);
        self.front -= 1;
        if let Some(line) = self.of.get_mut(&key) {
            self.order.remove(&line.turn);
            line.turn = self.front;
            self.order.insert(self.front, key);
        }
    }

    /// Queues `one` before the others of `key`, which keeps its turn.
    pub fn put_back(&mut self, key: K, one: T) {
        self.line(key).push_front(one);
    }

    fn line(&mut self, key: K) -> &mut VecDeque<T> {
        let Rotation { of, order, next, .. } = self;
        let line = of.entry(key).or_insert_with(|| {
            let turn = *next;
            *next += 1;
            order.insert(turn, key);
            Line { turn, queued: VecDeque::new() }
        });
        &mut line.queued
    }

    /// What [`Self::pop`] would return.
    pub fn front(&self) -> Option<&T> {
        let (_, key) = self.order.first_key_value()?;
        self.of.get(key)?.queued.front()
    }

    /// The first entry of the key whose turn it is; that key's next turn comes after one of each other key.
    pub fn pop(&mut self) -> Option<(K, T)> {
        self.pop_where(|_| true)
    }

    /// The same, without unwanted entries: a key with no others passes its turn to the next.
    pub fn pop_where(&mut self, is_wanted: impl Fn(&T) -> bool) -> Option<(K, T)> {
        while let Some((_, key)) = self.order.pop_first() {
            let line = self.of.get_mut(&key)?;
            let taken = std::iter::from_fn(|| line.queued.pop_front()).find(&is_wanted);
            if line.queued.is_empty() {
                self.of.remove(&key);
            } else {
                line.turn = self.next;
                self.order.insert(self.next, key);
                self.next += 1;
            }
            if let Some(taken) = taken {
                return Some((key, taken));
            }
        }
        None
    }

    /// The first entry of `key`, out of turn. The rest of it keeps its turn.
    pub fn pop_of(&mut self, key: K) -> Option<T> {
        let line = self.of.get_mut(&key)?;
        let taken = line.queued.pop_front();
        if line.queued.is_empty() {
            self.order.remove(&line.turn);
            self.of.remove(&key);
        }
        taken
    }

    /// The first of `key`.
    pub fn first_of(&self, key: K) -> Option<&T> {
        self.of.get(&key)?.queued.front()
    }

    /// The last of `key`.
    pub fn last_of(&mut self, key: K) -> Option<&mut T> {
        self.of.get_mut(&key)?.queued.back_mut()
    }

    /// Removes unwanted entries at the front of `key`.
    pub fn forget_first_of(&mut self, key: K, is_wanted: impl Fn(&T) -> bool) {
        while self.of.get(&key).is_some_and(|line| line.queued.front().is_some_and(|front| !is_wanted(front)))
        {
            let _unwanted = self.pop_of(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(queued: &[(u8, u8)]) -> Rotation<u8, u8> {
        let mut rotation = Rotation::default();
        queued.iter().for_each(|(key, one)| rotation.push(*key, *one));
        rotation
    }

    fn all(mut rotation: Rotation<u8, u8>) -> Vec<u8> {
        let all = std::iter::from_fn(|| rotation.pop()).map(|(_, one)| one).collect();
        assert!(rotation.is_empty() && rotation.of.is_empty() && rotation.front().is_none());
        all
    }

    #[test]
    fn keys_take_turns_whatever_their_lengths() {
        assert_eq!(all(of(&[(9, 1), (9, 2), (9, 3), (5, 4), (7, 5), (5, 6)])), [1, 4, 5, 2, 6, 3]);
        let mut rotation = of(&[(1, 1), (1, 2), (2, 3)]);
        assert_eq!((rotation.front().copied(), rotation.pop()), (Some(1), Some((1, 1))));
        rotation.push(3, 4);
        assert_eq!(all(rotation), [3, 2, 4], "who comes is behind those that were there");
    }

    #[test]
    fn one_that_is_put_in_front_is_next() {
        let mut rotation = of(&[(1, 1), (2, 2), (2, 3)]);
        rotation.push_front(2, 4);
        rotation.push_front(3, 5);
        assert_eq!(all(rotation), [5, 4, 1, 2, 3]);
    }

    #[test]
    fn an_entry_put_back_is_the_next_of_its_key_and_changes_no_turn() {
        let mut rotation = of(&[(1, 1), (2, 2), (2, 3)]);
        rotation.put_back(2, 4);
        rotation.put_back(3, 5);
        assert_eq!((rotation.first_of(2), rotation.first_of(4)), (Some(&4), None));
        assert_eq!(all(rotation), [1, 4, 5, 2, 3]);
    }

    #[test]
    fn what_is_taken_out_of_turn_leaves_nothing_behind() {
        let mut rotation = of(&[(1, 1), (2, 2), (2, 3), (2, 4)]);
        assert_eq!((rotation.pop_of(1), rotation.pop_of(1), rotation.pop_of(2)), (Some(1), None, Some(2)));
        *rotation.last_of(2).expect("two are left") = 5;
        assert_eq!((rotation.order.len(), rotation.last_of(1)), (1, None));
        rotation.forget_first_of(2, |one| *one == 5);
        assert_eq!(all(rotation), [5]);
        let mut rotation = of(&[(1, 1), (1, 1), (2, 2), (1, 3)]);
        assert_eq!(rotation.pop_where(|one| *one != 1), Some((1, 3)));
        assert_eq!(rotation.pop_where(|one| *one != 2), None);
        assert!(rotation.is_empty() && rotation.of.is_empty());
    }
}

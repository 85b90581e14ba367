//! How much of the thread's time each datagram socket has: a turn goes round the sockets, and each gives so many bytes a round.
//!
//! Work grows with bytes, so bytes are what is shared out; a packet counts as some more, so that tiny ones have their price.
//! A call that brought more than the share is paid for with the rounds after it. A pure decision: the caller reads.
//! Invariant: a turn asks every socket that owes nothing, and handles no more than [`TURN_COST`] and what the last round
//! brings, so that none waits long while another is flooded.

use super::super::limits::READER_PACKETS;

/// What a packet costs beside its bytes: the work that even an empty one makes.
const PACKET_COST: usize = 64;

/// What a socket may give in a row before the others have their turn: a millisecond or two of the costliest bytes there are,
/// and 1,600 small packets.
const ROUND_COST: usize = 128 * 1024;

/// A turn with more rounds than one ends behind this, for connections, flushes and questions.
const TURN_COST: usize = 2 * ROUND_COST;

/// Packets that a call takes at a socket that few came to: nobody knows how long the next ones are.
const SLOTS_FIRST: usize = 4;

/// The share of one socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// What it may still give this round; negative when it gave too much.
    left: isize,
    /// Packets that the next call takes at most.
    slots: usize,
    /// More may wait.
    waiting: bool,
}

impl Default for Share {
    fn default() -> Share {
        Share { left: 0, slots: SLOTS_FIRST, waiting: false }
    }
}

impl Share {
    /// Packets that the next call should take at most; the shard's thread has fewer slots than this may be.
    pub(in crate::daemon::worker) fn slots(&self) -> usize {
        self.slots
    }

    /// Another round: says whether it may be read.
    fn begin_round(&mut self) -> bool {
        self.left = (self.left + ROUND_COST as isize).min(ROUND_COST as isize);
        self.left > 0
    }

    /// A call brought something: gives what it cost. Calls take as many packets of that length as a round has room for, but no more
    /// than twice of what came last: after few, or long ones, that grows from call to call.
    #[inline]
    fn charge(&mut self, read: Read) -> usize {
        let cost = read.bytes + read.packets * PACKET_COST;
        self.left -= cost as isize;
        self.waiting = read.more;
        if let Some(one) = cost.checked_div(read.packets) {
            let grown = if read.more { self.slots } else { read.packets.max(SLOTS_FIRST / 2) };
            self.slots = (ROUND_COST / one).clamp(1, READER_PACKETS.min(2 * grown));
        }
        cost
    }
}

/// What a call brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::daemon::worker) struct Read {
    /// Packets; none when the socket cannot be read.
    pub(in crate::daemon::worker) packets: usize,
    /// In all of them.
    pub(in crate::daemon::worker) bytes: usize,
    /// It took as many as it was to take.
    pub(in crate::daemon::worker) more: bool,
}

impl Read {
    /// No packet, and the whole round is used up: there is more to do with what came before.
    pub(in crate::daemon::worker) fn spent() -> Read {
        Read { packets: 0, bytes: ROUND_COST, more: true }
    }
}

/// What a turn brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::daemon::worker) struct Round {
    /// Packets.
    pub(in crate::daemon::worker) packets: usize,
    /// More may wait: the next turn should follow at once.
    pub(in crate::daemon::worker) more: bool,
}

impl Round {
    /// False when nothing came and nothing waits.
    pub(in crate::daemon::worker) fn brought(self) -> bool {
        self.packets > 0 || self.more
    }
}

/// One turn over the sockets. `share` gives the share of one, `read` makes one call.
pub(in crate::daemon::worker) fn turn<S>(
    sockets: &mut [S],
    share: impl Fn(&mut S) -> &mut Share,
    mut read: impl FnMut(&mut S) -> Read,
) -> Round {
    let (mut packets, mut cost) = (0, 0);
    sockets.iter_mut().for_each(|socket| share(socket).waiting = true);
    loop {
        let mut more = false;
        for socket in &mut *sockets {
            if !share(socket).waiting {
                continue;
            }
            let mut may = share(socket).begin_round();
            while may {
                let got = read(socket);
                packets += got.packets;
                let share = share(socket);
                cost += share.charge(got);
                may = share.waiting && share.left > 0;
            }
            more |= share(socket).waiting;
        }
        if !more || cost >= TURN_COST {
            return Round { packets, more };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    /// A socket with the lengths of the packets that wait.
    #[derive(Debug, Default)]
    struct Waits {
        share: Share,
        packets: VecDeque<usize>,
        taken: usize,
    }

    impl Waits {
        fn of(packets: impl IntoIterator<Item = usize>) -> Waits {
            Waits { packets: packets.into_iter().collect(), ..Waits::default() }
        }

        fn read(&mut self) -> Read {
            let count = self.share.slots().min(self.packets.len());
            let bytes = self.packets.drain(..count).sum();
            self.taken += count;
            Read { packets: count, bytes, more: count == self.share.slots() }
        }
    }

    fn turn_of(sockets: &mut [Waits]) -> (Round, usize) {
        let mut cost = 0;
        let turn = turn(
            sockets,
            |socket| &mut socket.share,
            |socket| {
                let read = socket.read();
                cost += read.bytes + read.packets * PACKET_COST;
                read
            },
        );
        (turn, cost)
    }

    #[test]
    fn a_flood_of_the_longest_packets_leaves_the_others_their_turn() {
        let flood = || Waits::of(std::iter::repeat_n(65_507, 2_000));
        let innocent = Waits::of(std::iter::repeat_n(15, 1_000));
        let mut sockets = [flood(), innocent, flood()];
        let (turn, cost) = turn_of(&mut sockets);
        assert!(turn.more);
        assert_eq!(sockets[1].taken, 1_000, "all that waited there");
        // The first calls knew nothing of the length.
        assert!(cost <= TURN_COST + 2 * SLOTS_FIRST * 65_571, "{cost}");
        for _turn in 0..100 {
            sockets[1].packets.push_back(15);
            let before = sockets[1].taken;
            let (_turn, cost) = turn_of(&mut sockets);
            assert_eq!(sockets[1].taken, before + 1);
            assert!(cost <= TURN_COST + 3 * ROUND_COST, "{cost}");
        }
        assert!(sockets[0].taken.abs_diff(sockets[2].taken) <= 4, "and the floods theirs");
    }

    #[test]
    fn what_a_call_brought_too_much_is_paid_for() {
        // Calls of tiny packets are long ones; then each is the longest.
        let mut sockets = [Waits::of(std::iter::repeat_n(0, 10_000)), Waits::default()];
        turn_of(&mut sockets[..1]);
        assert_eq!(sockets[0].share.slots(), READER_PACKETS);
        sockets[0].packets = std::iter::repeat_n(65_507, 200).collect();
        sockets[1].packets = std::iter::repeat_n(15, 100_000).collect();
        turn_of(&mut sockets);
        let (taken, owed) = (sockets[1].taken, sockets[0].share.left);
        assert!(owed < -20 * ROUND_COST as isize, "{owed}");
        let flooded = sockets[0].taken;
        turn_of(&mut sockets);
        assert!(sockets[1].taken - taken >= TURN_COST / (15 + PACKET_COST), "the others go on");
        assert_eq!(sockets[0].taken, flooded, "while it owes");
        assert!(sockets[0].share.slots() <= 2);
    }

    #[test]
    fn calls_take_as_many_packets_as_fit_into_a_round() {
        for (bytes, slots) in
            [(0, 256), (15, 256), (448, 256), (450, 255), (1_432, 87), (2_000, 63), (8_128, 16), (65_507, 1)]
        {
            let mut share = Share { slots: READER_PACKETS, ..Share::default() };
            share.charge(Read { packets: 3, bytes: 3 * bytes, more: true });
            assert_eq!(share.slots(), slots, "{bytes}");
            share.charge(Read::default());
            assert_eq!(share.slots(), slots, "nothing says nothing");
        }
        let mut share = Share { slots: READER_PACKETS, ..Share::default() };
        for (packets, slots) in [(255, 256), (100, 200), (30, 60), (1, 4), (4, 8)] {
            share.charge(Read { packets, bytes: packets, more: false });
            assert_eq!(share.slots(), slots, "after {packets}");
        }
        let mut share = Share { slots: 1, ..Share::default() };
        for slots in [2, 4, 8, 16, 32, 64, 128, 256, 256] {
            share.charge(Read { packets: 1, bytes: 1, more: true });
            assert_eq!(share.slots(), slots);
        }
    }

    proptest! {
        #[test]
        fn every_packet_is_read_and_no_turn_is_long(
            sockets in proptest::collection::vec(
                proptest::collection::vec(prop_oneof![0usize..100, 0usize..65_508], 0..300), 1..6),
        ) {
            let mut sockets: Vec<Waits> = sockets.into_iter().map(Waits::of).collect();
            let all: usize = sockets.iter().map(|socket| socket.packets.len()).sum();
            let (mut got, mut turns) = (0, 0);
            loop {
                let (turn, cost) = turn_of(&mut sockets);
                got += turn.packets;
                // One call of each socket may be of longer packets than the calls before it.
                prop_assert!(cost < TURN_COST + sockets.len() * (ROUND_COST + READER_PACKETS * 65_571));
                prop_assert!(sockets.iter().all(|socket| socket.share.left <= ROUND_COST as isize));
                if !turn.more {
                    break;
                }
                turns += 1;
                prop_assert!(turns < 10_000, "it ends");
            }
            prop_assert_eq!(got, all);
        }
    }
}

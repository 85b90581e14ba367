//! How a reader of datagrams rests between two calls, so that a wake-up brings many packets instead of a few.
//!
//! A reader that is faster than its senders and sleeps in poll is woken for nearly every packet, and a wake-up
//! costs both sides more than the packet. So while packets keep coming it sleeps for a fixed short time
//! instead, and takes what gathered meanwhile. A pure decision: the caller does the sleeping.

use std::time::Duration;

/// What to do before the next receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Receive again at once.
    Never,
    /// Sleep for so long (`thread::sleep`), then receive.
    Nap(Duration),
    /// Sleep until a socket can be read ([`super::wait_readable`]), then receive.
    UntilReadable,
}

/// When to nap, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gather {
    /// A receive that brought at least so many packets is followed by a nap.
    pub packets_min: usize,
    /// Length of the nap: the longest time that gathering adds to a packet's way. Must be so short that the receive
    /// buffer holds what comes meanwhile.
    pub nap: Duration,
}

impl Default for Gather {
    /// Naps of 200 µs after two packets or more. At a million packets a second that gathers 250 small packets,
    /// some 190 KiB as the kernel counts them: less than its smallest usual buffer.
    fn default() -> Self {
        Gather { packets_min: 2, nap: Duration::from_micros(200) }
    }
}

impl Gather {
    /// What to do after a receive that brought `packets` packets, with [`super::Packets::more`] as it said.
    #[inline]
    pub fn after(&self, packets: usize, more: bool) -> Rest {
        if more {
            Rest::Never
        } else if packets >= self.packets_min.max(1) {
            Rest::Nap(self.nap)
        } else {
            Rest::UntilReadable
        }
    }
}

#[test]
fn a_reader_naps_only_while_packets_keep_coming() {
    let gather = Gather { packets_min: 2, nap: Duration::from_micros(50) };
    for (packets, more, want) in [
        (64, true, Rest::Never),
        (63, false, Rest::Nap(gather.nap)),
        (2, false, Rest::Nap(gather.nap)),
        (1, false, Rest::UntilReadable),
        (0, false, Rest::UntilReadable),
    ] {
        assert_eq!(gather.after(packets, more), want, "{packets} packets, more: {more}");
    }
    let zero = Gather { packets_min: 0, ..gather };
    assert_eq!(zero.after(0, false), Rest::UntilReadable, "nothing is never a reason to nap");
}

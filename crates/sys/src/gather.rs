//! Batches datagrams by sleeping between two receives, so that a wake-up delivers many packets instead of a few.
//!
//! A reader that is faster than its senders and sleeps in poll is woken for nearly every packet, and a wake-up costs
//! both sides more than the packet. So while packets keep arriving it sleeps for a fixed short time instead, and
//! receives the packets of that time at once. This module only decides: the caller sleeps.

use std::time::Duration;

/// What to do before the next receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Receive again at once.
    Never,
    /// Sleep for this time (`thread::sleep`), then receive.
    Nap(Duration),
    /// Sleep until a socket can be read ([`super::wait_readable`]), then receive.
    UntilReadable,
}

/// When to nap, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gather {
    /// A receive with at least this many packets is followed by a nap.
    pub packets_min: usize,
    /// Length of the nap: the latency that it adds to a packet at most. Must be short enough that the receive buffer
    /// can hold the packets of that time.
    pub nap: Duration,
}

impl Default for Gather {
    /// Naps of 200 µs after two packets or more. At a million packets a second a nap collects 250 small packets, some
    /// 190 KiB in the kernel's accounting: less than its smallest usual buffer.
    fn default() -> Self {
        Gather { packets_min: 2, nap: Duration::from_micros(200) }
    }
}

impl Gather {
    /// What to do after a receive of `packets` packets with this value of [`super::Packets::more`].
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
fn a_reader_naps_only_while_packets_keep_arriving() {
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

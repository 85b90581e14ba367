//! Who sent a bad datagram, for the complaint about it.
//!
//! While a socket is flooded, the kernel is not asked to note who sent what: good packets pay nothing for bad ones. A complaint
//! that so has no name waits for the next bad line of its kind, for a second at most, and meanwhile senders are noted.
//! Invariant: at most one complaint waits for each reason.

use config::plan::Listen;
use model::SourceAccount;
use pipeline::Complaint;

use super::super::limits::BATCH_PACKETS;
use crate::daemon::shared::complaints::Complaints;
use crate::daemon::shared::names::shown;

/// Of one socket.
#[derive(Debug, Default)]
pub struct Senders {
    unnamed: Vec<Complaint>,
}

impl Senders {
    /// Whether the kernel should note them in a call of so many packets.
    pub(in crate::daemon::worker) fn are_noted(&self, slots: usize) -> bool {
        slots < BATCH_PACKETS || !self.unnamed.is_empty()
    }

    /// Makes a complaint about one of `packets`, or keeps it.
    pub(in crate::daemon::worker) fn tell(
        &mut self,
        complaint: Complaint,
        packets: &sys::Packets<'_>,
        listen: &Listen,
        account: &SourceAccount,
        complaints: Complaints,
    ) {
        let place = complaint.at.and_then(|at| {
            let begins = packets.spans.partition_point(|packet| packet.at <= at);
            begins.checked_sub(1)
        });
        match (place.and_then(|place| packets.sender(place)), listen) {
            (Some(from), _) => {
                self.unnamed.retain(|unnamed| unnamed.reason != complaint.reason);
                complaints(&complaint, &format!("{from} at {}", shown(listen)));
            }
            (None, Listen::Udp(_)) => {
                account.put_complaint_back(complaint.reason);
                if self.unnamed.iter().all(|unnamed| unnamed.reason != complaint.reason) {
                    self.unnamed.push(complaint);
                }
            }
            (None, _) => complaints(&complaint, &format!("a client of {}", shown(listen))),
        }
    }

    /// Makes the complaints that still have no name.
    pub(in crate::daemon::worker) fn tell_rest(
        &mut self,
        listen: &Listen,
        account: &SourceAccount,
        complaints: Complaints,
    ) {
        for complaint in self.unnamed.drain(..) {
            if account.first_complaint(complaint.reason) {
                complaints(&complaint, &format!("an unknown sender at {}", shown(listen)));
            }
        }
    }
}

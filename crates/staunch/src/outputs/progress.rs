//! What the sender of every output reports of itself: what it holds, how long it worked, that it has ended.

use std::sync::atomic::Ordering::Relaxed;

use deliver::EndpointState;

use crate::daemon::outlet::Outlet;
use sys::clock::Clock;

/// The last step of the task of connection `number`.
pub(super) fn end(outlet: &Outlet, number: usize, state: EndpointState) {
    publish(outlet, number, 0, 0, state);
    if outlet.ends_with(number)
        && let Some((disk, copies)) = outlet.left_on_disk()
    {
        tracing::warn!(
            "output `{}` was removed and its drain time is over; {} stay in {} until an output of that name has a queue \
             on disk again",
            outlet.name,
            client::stdio::records(copies),
            disk.folder().path().display()
        );
    }
    outlet.set_ended(number);
}

/// Adds the time since `since_ns` to the output's busy time.
pub(super) fn worked(outlet: &Outlet, since_ns: u64) {
    let busy_ns = Clock::mono_ns().saturating_sub(since_ns);
    outlet.account.busy_ns.fetch_add(busy_ns, Relaxed);
}

/// Publishes what the sender of connection `number` holds, and when its endpoint last failed.
pub(super) fn publish(outlet: &Outlet, number: usize, copies: u64, bytes: u64, state: EndpointState) {
    if let Some((_, at)) = state.last_failure {
        outlet.account.last_error_s.store(at.wall_seconds(), Relaxed);
    }
    outlet.publish(number, copies, bytes, state);
}

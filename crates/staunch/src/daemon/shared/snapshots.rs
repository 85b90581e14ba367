//! The memory of events that were found for subscribers and not sent yet.

use tokio::sync::{Semaphore, SemaphorePermit};

/// Events of all subscribers that are found and not sent yet, at most: 8 bytes each, and each keeps its event in memory.
const SNAPSHOT_EVENTS_MAX: u32 = 4_000_000;

/// Those of this process.
static OURS: Snapshots = Snapshots::new();

/// See the file's header.
struct Snapshots(Semaphore);

/// Room for the events of one subscriber. Dropping it gives it back.
#[derive(Debug)]
pub struct Room {
    _permit: Option<SemaphorePermit<'static>>,
}

/// Room for so many events.
///
/// # Errors
/// There is none, in words for the client.
pub fn room(events: usize) -> Result<Room, String> {
    OURS.room(events)
}

impl Snapshots {
    const fn new() -> Snapshots {
        Snapshots(Semaphore::const_new(SNAPSHOT_EVENTS_MAX as usize))
    }

    fn room(&'static self, events: usize) -> Result<Room, String> {
        let events = u32::try_from(events).unwrap_or(u32::MAX);
        if events == 0 {
            return Ok(Room { _permit: None });
        }
        let permit = self.0.try_acquire_many(events).map_err(|_full| {
            format!(
                "other subscribers have not read {SNAPSHOT_EVENTS_MAX} events of the index: try again later"
            )
        })?;
        Ok(Room { _permit: Some(permit) })
    }
}

#[test]
fn events_that_were_not_read_have_a_limit() {
    static SNAPSHOTS: Snapshots = Snapshots::new();
    let half = SNAPSHOT_EVENTS_MAX as usize / 2;
    let (first, second) = (SNAPSHOTS.room(half), SNAPSHOTS.room(half));
    assert!(first.is_ok() && second.is_ok());
    assert!(SNAPSHOTS.room(1).is_err_and(|why| why.contains("try again")));
    assert!(SNAPSHOTS.room(0).is_ok(), "nothing needs no room");
    drop(first);
    assert!(SNAPSHOTS.room(half + 1).is_err());
    assert!(SNAPSHOTS.room(half).is_ok());
}

//! The memory of events that were found for subscribers and not sent yet.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Events of all subscribers that are found and not sent yet, at most: 8 bytes each, and each keeps its event in memory.
const SNAPSHOT_EVENTS_MAX: u32 = 4_000_000;

/// See the file's header.
#[derive(Debug)]
pub struct Snapshots(Arc<Semaphore>);

/// Room for the events of one subscriber. Dropping it gives it back.
#[derive(Debug)]
pub struct Room {
    _permit: Option<OwnedSemaphorePermit>,
}

impl Default for Snapshots {
    fn default() -> Snapshots {
        Snapshots(Arc::new(Semaphore::new(SNAPSHOT_EVENTS_MAX as usize)))
    }
}

impl Snapshots {
    /// Room for so many events.
    ///
    /// # Errors
    /// There is none, in words for the client.
    pub fn room(&self, events: usize) -> Result<Room, String> {
        let events = u32::try_from(events).unwrap_or(u32::MAX);
        if events == 0 {
            return Ok(Room { _permit: None });
        }
        let permit = Arc::clone(&self.0).try_acquire_many_owned(events).map_err(|_full| {
            format!(
                "other subscribers have not read {SNAPSHOT_EVENTS_MAX} events of the index: try again later"
            )
        })?;
        Ok(Room { _permit: Some(permit) })
    }
}

#[test]
fn events_that_were_not_read_have_a_limit() {
    let snapshots = Snapshots::default();
    let half = SNAPSHOT_EVENTS_MAX as usize / 2;
    let (first, second) = (snapshots.room(half), snapshots.room(half));
    assert!(first.is_ok() && second.is_ok());
    assert!(snapshots.room(1).is_err_and(|why| why.contains("try again")));
    assert!(snapshots.room(0).is_ok(), "nothing needs no room");
    drop(first);
    assert!(snapshots.room(half).is_ok());
    assert!(snapshots.room(half + 1).is_err());
}

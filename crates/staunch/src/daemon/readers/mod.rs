//! Reader threads: they receive, decrypt, decompress and parse, and hand owned batches to the shard, which only aggregates and
//! routes.
//!
//! `readers = N` in the configuration; by default the cores less the shard's one, between 1 and 8.
//!
//! - **N = 1**: no thread of this folder. The shard's thread reads the datagram sockets (`daemon::worker`), and the runtime `main`
//!   reads the connections. Nothing crosses threads that need not.
//! - **N > 1, connections**: N runtimes of one thread each, `reader-0` to `reader-N`. The listeners stay on `main`: one place accepts,
//!   so the limits of a listener and of a peer are counted in one place. Each connection goes to the reader that has the fewest ([`Readers::deal`])
//!   and stays there, so that its records keep their order. Each reader has a [`Floor`](crate::daemon::shared::turns::Floor) of its own: who
//!   is read next is decided per thread, and the room in the exchange is shared by all.
//! - **N > 1, datagrams**: N threads `packets-0` to `packets-N` (`daemon::worker::readers`). Each UDP address has a socket for
//!   each of them, and the kernel deals packets out by their sender. A unix socket has one of them.
//! - **Change of N**: takes effect at the next start. A hot restart deals its connections and sockets out to the readers of the new
//!   process.
//!
//! Invariant: a connection is read on one thread from its first byte to its last, unless the process is restarted in between.

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::daemon::shared::heartbeat::{Beat, Pulse};

/// How often memory that was freed is given back to the system: on a thread of its own, since gigabytes take a while.
pub(crate) const GIVE_BACK_EVERY: std::time::Duration = std::time::Duration::from_secs(1);

thread_local! {
    static HERE: Cell<usize> = const { Cell::new(0) };
}

/// The number of the reader that runs on this thread; 0 on threads that are none.
pub fn here() -> usize {
    HERE.get()
}

/// Keeps a reader's runtime going until the other half of `ended` is dropped. What its connections have freed goes back to the
/// system, which the allocator does on the thread that had it.
async fn until(mut ended: oneshot::Receiver<()>) {
    // Cancel-safe: both only wait. A receiver can be asked again after a time-out.
    while tokio::time::timeout(GIVE_BACK_EVERY, &mut ended).await.is_err() {
        sys::release_freed_memory();
    }
}

/// CPU cores that this process may use.
pub fn cores() -> usize {
    // Where the system does not say: as on a machine with one.
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The readers of connections.
#[derive(Debug)]
pub struct Readers {
    /// At least one.
    all: Box<[Reader]>,
    /// Dropped with this: then their threads end.
    _ends: Vec<oneshot::Sender<()>>,
}

#[derive(Debug)]
struct Reader {
    runtime: Handle,
    pulse: Pulse,
    /// Connections that it has.
    connections: Arc<AtomicUsize>,
}

/// A connection's place at a reader.
#[derive(Debug)]
pub struct Dealt {
    runtime: Handle,
    /// It is not the runtime that accepts connections.
    elsewhere: bool,
    connections: Arc<AtomicUsize>,
}

impl Readers {
    /// So many, or one at least. One alone is the runtime of the caller.
    ///
    /// # Errors
    /// When the system has no thread or no descriptors for it.
    pub fn start(number: usize) -> io::Result<Readers> {
        let reader = |runtime: Handle| Reader {
            pulse: Pulse::of(runtime.clone()),
            runtime,
            connections: Arc::default(),
        };
        if number <= 1 {
            return Ok(Readers { all: [reader(Handle::current())].into(), _ends: Vec::new() });
        }
        let (mut all, mut ends) = (Vec::with_capacity(number), Vec::with_capacity(number));
        for at in 0..number {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let (end, ended) = oneshot::channel::<()>();
            all.push(reader(runtime.handle().clone()));
            ends.push(end);
            std::thread::Builder::new().name(format!("reader-{at}")).spawn(move || {
                HERE.set(at);
                runtime.block_on(until(ended));
                runtime.shutdown_background();
            })?;
        }
        Ok(Readers { all: all.into(), _ends: ends })
    }

    /// How many there are.
    pub fn number(&self) -> usize {
        self.all.len()
    }

    /// A place for a connection at the reader that has the fewest.
    pub fn deal(&self) -> Dealt {
        let fewest = self.all.iter().min_by_key(|reader| reader.connections.load(Relaxed));
        let Reader { runtime, connections, pulse: _ } = fewest.expect("there is at least one reader");
        connections.fetch_add(1, Relaxed);
        Dealt {
            runtime: runtime.clone(),
            elsewhere: self.all.len() > 1,
            connections: Arc::clone(connections),
        }
    }

    /// The name of a thread of them that does not answer for so long, if there is one. With one reader, that is `main`.
    pub async fn late(&self, at_most: Duration) -> Option<String> {
        for (number, reader) in self.all.iter().enumerate() {
            if reader.pulse.beat(at_most).await == Beat::Late {
                return Some(if self.all.len() == 1 {
                    "main".to_owned()
                } else {
                    format!("reader-{number}")
                });
            }
        }
        None
    }

    /// The runtime of each, by number.
    pub fn runtimes(&self) -> impl Iterator<Item = &Handle> {
        self.all.iter().map(|reader| &reader.runtime)
    }

    /// Returns when each of them has looked at its sockets: for a pause a runtime has to.
    pub async fn look_around(&self, pause: Duration) {
        let looks: Vec<_> = self.runtimes().map(|runtime| runtime.spawn(tokio::time::sleep(pause))).collect();
        for look in looks {
            // A runtime that has ended reads nothing any more.
            let _looked = look.await;
        }
    }
}

impl Dealt {
    /// Where the connection's task runs.
    pub fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// The same, if the connection has to be registered there first.
    pub fn elsewhere(&self) -> Option<&Handle> {
        self.elsewhere.then_some(&self.runtime)
    }
}

impl Drop for Dealt {
    fn drop(&mut self) {
        self.connections.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn connections_go_to_the_reader_with_the_fewest() {
        let readers = Readers::start(3).expect("threads are free");
        let has =
            || -> Vec<usize> { readers.all.iter().map(|reader| reader.connections.load(Relaxed)).collect() };
        let mut dealt: Vec<Dealt> = (0..7).map(|_| readers.deal()).collect();
        assert_eq!(has(), [3, 2, 2]);
        // Those of the second reader end.
        drop((dealt.remove(4), dealt.remove(1)));
        assert_eq!(has(), [3, 0, 2]);
        dealt.extend((0..2).map(|_| readers.deal()));
        assert_eq!(has(), [3, 2, 2]);
        for (at, runtime) in readers.runtimes().enumerate() {
            assert_eq!(runtime.spawn(async { here() }).await.expect("it runs"), at);
        }
        readers.look_around(Duration::ZERO).await;
    }

    #[tokio::test]
    async fn reader_that_does_not_answer_is_named() {
        let readers = Readers::start(2).expect("threads are free");
        assert_eq!(readers.late(Duration::from_secs(30)).await, None);
        let (go_on, waits) = std::sync::mpsc::channel::<()>();
        // Holds the thread up, as a bug would.
        let busy = readers.all[1].runtime.spawn(async move { waits.recv() });
        assert_eq!(readers.late(Duration::from_millis(50)).await.as_deref(), Some("reader-1"));
        drop(go_on);
        assert!(busy.await.expect("it goes on").is_err());
        assert_eq!(readers.late(Duration::from_secs(30)).await, None);
    }

    #[tokio::test]
    async fn one_reader_is_the_runtime_that_accepts() {
        let readers = Readers::start(1).expect("nothing is started");
        let dealt = readers.deal();
        assert!(dealt.elsewhere().is_none());
        let ours = std::thread::current().id();
        let theirs = dealt.runtime().spawn(async { std::thread::current().id() }).await.expect("it runs");
        assert_eq!((theirs, here(), readers.number()), (ours, 0, 1));
    }
}

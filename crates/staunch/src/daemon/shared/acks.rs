//! Acknowledgements between the threads: the shard reports accepted batches, outputs report progress, connections are
//! notified.
//!
//! Path: `pipeline::Turn` -> [`AckRegistry::taken`] -> [`Outlet::progressed`] wakes `Shared::resolve_acks` ->
//! [`AckRegistry::resolve`] -> [`AckSlot::changed`] -> the connection writes the replies of `Intake::replies`. Not
//! here: the conditions (`pipeline::Acks`), sockets (`sources::answered`).
//! Locks: the registry, then at most one queue at a time. A thread that has locked a queue never locks the registry.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::{AckMark, ConnectionId, OutputId, Unacked};
use pipeline::{Acks, Answer, Inherited, Taking};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::daemon::outlet::{Outlet, Outlets};

/// The shared state of all connections with acknowledgements.
#[derive(Debug, Default)]
pub struct AckRegistry {
    inner: Mutex<Inner>,
    /// Notified by every output that a connection waits for.
    progress: Arc<Notify>,
    /// Connections that we have closed, at a stop or with their listener, and that still wait for acknowledgements.
    last: Mutex<JoinSet<()>>,
}

#[derive(Debug, Default)]
struct Inner {
    acks: Acks,
    slots: HashMap<ConnectionId, Arc<Notify>>,
    /// Nothing will be settled or synced any more.
    over: bool,
}

impl Inner {
    fn tell_changed(&mut self) {
        for id in self.acks.take_changed() {
            if let Some(slot) = self.slots.get(&id) {
                slot.notify_one();
            }
        }
    }
}

impl AckRegistry {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A slot for a connection, which is free again when this is dropped.
    pub fn open(self: &Arc<Self>) -> AckSlot {
        let mut inner = self.inner();
        let id = inner.acks.open();
        let changed = Arc::new(Notify::new());
        inner.slots.insert(id, Arc::clone(&changed));
        AckSlot { registry: Arc::clone(self), id, changed }
    }

    /// The batch was pushed, and its blocks are in the queues or were dropped.
    pub fn taken(&self, taking: Taking, outlets: &[Arc<Outlet>]) {
        let mut inner = self.inner();
        let waits_for = inner.acks.taken(taking, &mut Outlets(outlets));
        inner.tell_changed();
        drop(inner);
        for output in &waits_for {
            outlets[output.index()].notify_progress(&self.progress);
        }
        if !waits_for.is_empty() {
            // For progress of an output before it knew of the waiting connection.
            self.progress.notify_one();
        }
    }

    /// Continues a connection whose lines another process has accepted: see [`Acks::go_on`].
    pub fn go_on(&self, mark: AckMark, inherited: &[Inherited], outlets: &[Arc<Outlet>]) {
        let waits_for = self.inner().acks.go_on(mark, inherited, &mut Outlets(outlets));
        for output in &waits_for {
            outlets[output.index()].notify_progress(&self.progress);
        }
        self.progress.notify_one();
    }

    /// Nothing after the last reply of a connection can be acknowledged.
    pub fn fail(&self, connection: ConnectionId, why: Unacked) {
        let mut inner = self.inner();
        inner.acks.fail(connection, why);
        inner.tell_changed();
    }

    /// The outputs that each connection waits for.
    pub fn waiting(&self) -> HashMap<ConnectionId, Vec<OutputId>> {
        self.inner().acks.waiting()
    }

    /// Resolves when an output that a connection waits for has made progress. Cancel-safe.
    pub(super) async fn progressed(&self) {
        self.progress.notified().await;
    }

    /// Reads the progress of the outputs.
    pub fn resolve(&self, outlets: &[Arc<Outlet>]) {
        let mut inner = self.inner();
        inner.acks.resolve(&mut Outlets(outlets));
        inner.tell_changed();
    }

    /// Lets a connection that we have closed wait for its acknowledgements.
    pub fn wait_on(&self, answers: impl Future<Output = ()> + Send + 'static) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        // A reload that removes a listener calls this, too: finished ones are removed.
        while last.try_join_next().is_some() {}
        last.spawn(answers);
    }

    /// The outputs have ended: sends the final replies, and waits for at most this long until they are written.
    pub async fn finish(&self, outlets: &[Arc<Outlet>], at_most: Duration) {
        self.resolve(outlets);
        {
            let mut inner = self.inner();
            inner.over = true;
            inner.slots.values().for_each(|slot| slot.notify_one());
        }
        let mut last = std::mem::take(&mut *self.last.lock().unwrap_or_else(PoisonError::into_inner));
        let ended = async { while last.join_next().await.is_some() {} };
        if tokio::time::timeout(at_most, ended).await.is_err() {
            tracing::debug!("a client did not read its last acknowledgement");
        }
    }
}

/// A connection's slot in the registry.
#[derive(Debug)]
pub struct AckSlot {
    registry: Arc<AckRegistry>,
    id: ConnectionId,
    changed: Arc<Notify>,
}

impl AckSlot {
    /// Its connection.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// Resolves when the reply may have changed. Cancel-safe.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The current reply.
    pub fn answer(&self) -> Answer {
        self.registry.inner().acks.answer(self.id)
    }

    /// True when the reply is final.
    pub fn is_over(&self) -> bool {
        self.registry.inner().over
    }

    /// Nothing after the last reply can be acknowledged.
    pub fn fail(&self, why: Unacked) {
        self.registry.fail(self.id, why);
    }
}

impl Drop for AckSlot {
    fn drop(&mut self) {
        let mut inner = self.registry.inner();
        inner.acks.close(self.id);
        inner.slots.remove(&self.id);
    }
}

#[test]
fn the_reasons_of_err_are_in_the_docs() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/acks.md");
    let mut stored = std::fs::read_to_string(path).expect("the page is there");
    let (begin, end) = ("<!-- unacked:begin -->\n", "<!-- unacked:end -->");
    let (head, rest) = stored.split_once(begin).expect("the table has a begin");
    let (_, tail) = rest.split_once(end).expect("the table has an end");
    let row = |why: &Unacked| format!("| `{}` | {} |\n", why.word(), why.why());
    let rows: String = Unacked::ALL.iter().map(row).collect();
    let text = format!("{head}{begin}| reason | meaning |\n|---|---|\n{rows}{end}{tail}");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &text).expect("the docs can be written");
        stored.clone_from(&text);
    }
    assert!(stored == text, "docs/acks.md is out of step: UPDATE=1 cargo test -p staunch reasons_of_err");
}

//! Acknowledgements between the threads: the shard says what it took, outputs that they got on, connections are told.
//!
//! Path: `pipeline::Turn` -> [`AckRegistry::taken`] -> [`Outlet::progressed`] wakes [`resolve_on_progress`] ->
//! [`AckRegistry::resolve`] -> [`AckSlot::told`] -> the connection writes what `Intake::replies` gives.
//! Not here: what is met (`pipeline::Acks`), sockets (`sources::answered`).
//! Locks: the registry, then at most one queue at a time; nobody who holds a queue asks for the registry.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::{AckMark, ConnectionId, OutputId, Unacked};
use pipeline::{Acks, Answer, Inherited, Taking};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::daemon::outlet::{Outlet, Outlets};
use crate::daemon::shared::Shared;
use crate::sources::stream::stopped;

/// What all connections that are answered share.
#[derive(Debug, Default)]
pub struct AckRegistry {
    inner: Mutex<Inner>,
    /// Told by every output that somebody waits for.
    progress: Arc<Notify>,
    /// Connections that we have ended, at a stop or because their listener is gone, and that still wait for answers.
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

    /// A place for a connection; it is given back when it is dropped.
    pub fn open(self: &Arc<Self>) -> AckSlot {
        let mut inner = self.inner();
        let id = inner.acks.open();
        let told = Arc::new(Notify::new());
        inner.slots.insert(id, Arc::clone(&told));
        AckSlot { registry: Arc::clone(self), id, told }
    }

    /// The batch was pushed and its blocks are in the queues, or were dropped.
    pub fn taken(&self, taking: Taking, outlets: &[Arc<Outlet>]) {
        let mut inner = self.inner();
        let waits_for = inner.acks.taken(taking, &mut Outlets(outlets));
        inner.tell_changed();
        drop(inner);
        for output in &waits_for {
            outlets[output.index()].tell_progress_to(&self.progress);
        }
        if !waits_for.is_empty() {
            // What an output did before it knew that somebody waits.
            self.progress.notify_one();
        }
    }

    /// Goes on with a connection whose lines another process has taken: see [`Acks::go_on`].
    pub fn go_on(&self, mark: AckMark, inherited: &[Inherited], outlets: &[Arc<Outlet>]) {
        let waits_for = self.inner().acks.go_on(mark, inherited, &mut Outlets(outlets));
        for output in &waits_for {
            outlets[output.index()].tell_progress_to(&self.progress);
        }
        self.progress.notify_one();
    }

    /// Nothing after the last answer of a connection can be acknowledged any more.
    pub fn fail(&self, connection: ConnectionId, why: Unacked) {
        let mut inner = self.inner();
        inner.acks.fail(connection, why);
        inner.tell_changed();
    }

    /// The outputs that each connection waits for.
    pub fn waiting(&self) -> HashMap<ConnectionId, Vec<OutputId>> {
        self.inner().acks.waiting()
    }

    /// Looks how far the outputs have got.
    pub fn resolve(&self, outlets: &[Arc<Outlet>]) {
        let mut inner = self.inner();
        inner.acks.resolve(&mut Outlets(outlets));
        inner.tell_changed();
    }

    /// Lets a connection that we have ended wait for its answers beside everything else.
    pub fn wait_on(&self, answers: impl Future<Output = ()> + Send + 'static) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        // A reload that takes a listener away comes here as well: those that are done are forgotten.
        while last.try_join_next().is_some() {}
        last.spawn(answers);
    }

    /// The outputs have ended: says what can be said, and waits at most so long until it is written.
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

/// Resolves acknowledgements as outputs get on, until the daemon has stopped.
pub async fn resolve_on_progress(shared: Arc<Shared>, mut stop: watch::Receiver<bool>) {
    loop {
        // Both branches are cancel-safe: a notice that is not taken leaves its permit behind.
        tokio::select! {
            biased;
            () = stopped(&mut stop) => return,
            () = shared.acks.progress.notified() => shared.acks.resolve(&shared.wiring.load().outlets),
        }
    }
}

/// A connection's place at the registry.
#[derive(Debug)]
pub struct AckSlot {
    registry: Arc<AckRegistry>,
    id: ConnectionId,
    told: Arc<Notify>,
}

impl AckSlot {
    /// Who it is.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// Resolves when the answer may have changed. Cancel-safe.
    pub async fn told(&self) {
        self.told.notified().await;
    }

    /// What may be told now.
    pub fn answer(&self) -> Answer {
        self.registry.inner().acks.answer(self.id)
    }

    /// True when no more will be met than is.
    pub fn is_over(&self) -> bool {
        self.registry.inner().over
    }

    /// Nothing after the last answer can be acknowledged any more.
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
fn the_reasons_of_err_stand_in_the_docs() {
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

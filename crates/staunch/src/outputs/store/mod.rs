//! One store of whisper files: takes blocks of its queue, writes points to files, and answers queries meanwhile.
//!
//! Path of a point: the queue -> [`feed`] (the thread `store NAME`) -> `graphite::store::Store` -> [`writing`] (the thread `whisper NAME`) ->
//! its file -> the tree is synced -> its block is settled. Queries find the open stores in [`Stores`].
//! Not here: memory, files and answers (`graphite::store`), blocks (`deliver::store`).
//! Invariant: a block is settled only after a sync that began when all of its points were in their files.

mod example_log;
mod feed;
mod opening;
mod running;
mod saved_names;
mod upkeep;
mod writer_lock;
mod writing;

use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use config::plan::WhisperPlan;
use deliver::Failure;
use deliver::store::StoreSender;
use sys::clock::Clock;

use self::opening::Opened;
use self::running::{Running, report};
use crate::daemon::outlet::{Outlet, Seen};
use crate::daemon::shared::stores::{OpenStore, StoreFigures, Stores};
use crate::outputs::progress::{end, publish};
use crate::outputs::telling::Teller;

/// First and longest pause between two attempts to open the folder.
const RETRY: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(30));

/// Runs a store until its outlet stops.
pub fn run(plan: &WhisperPlan, data_dir: &Path, outlet: &Arc<Outlet>, stores: &Stores) {
    let mut sender = StoreSender::new(Arc::clone(&outlet.account));
    let mut teller = Teller::new(plan.path.display().to_string());
    let names = data_dir.join(&outlet.name).join("catalog");
    while let Some(opened) = open(plan, &names, (outlet, stores), &mut sender, &mut teller) {
        (sender, teller) = serve(plan, opened, outlet, stores, (sender, teller));
        if outlet.is_stopping() {
            break;
        }
        sender.begin_anew();
    }
    sender.finish_stop(&mut *outlet.queue(), Clock::now());
    end(outlet, 0, sender.state());
}

/// Runs an open store until its outlet stops, or a sync fails.
fn serve(
    plan: &WhisperPlan,
    opened: Opened,
    outlet: &Arc<Outlet>,
    stores: &Stores,
    (sender, teller): (StoreSender, Teller),
) -> (StoreSender, Teller) {
    let Opened { store, tree, names, lock } = opened;
    let (name, figures) = (outlet.name.clone(), StoreFigures::default());
    let (walk, bad_files, drains) = (Mutex::default(), Mutex::default(), AtomicUsize::new(0));
    let may_write = AtomicBool::new(lock.is_held());
    let open = Arc::new(OpenStore { name, store, tree, walk, figures, bad_files, drains, may_write });
    stores.add(&open);
    let (ends, has_written, sync_failed) = Default::default();
    let sender = Mutex::new(sender);
    let running = Running { plan, outlet, open: &open, sender, ends, has_written, sync_failed };
    let teller = Mutex::new(teller);
    let is_started = std::thread::scope(|scope| {
        let writing = std::thread::Builder::new().name(format!("whisper {}", outlet.name));
        let started = writing.spawn_scoped(scope, || writing::run(&running, names, lock, &teller));
        if let Err(error) = &started {
            let words = format!("its thread cannot be started: {error}");
            let mut teller = teller.lock().unwrap_or_else(PoisonError::into_inner);
            running.failed(Failure::OpenFailed, &words, &mut teller);
            running.ends.store(true, Relaxed);
            running.has_written.store(true, Relaxed);
        }
        feed::run(&running);
        started.is_ok()
    });
    stores.remove(&open);
    if !is_started {
        rest(outlet, RETRY.1);
    }
    let sender = running.sender.into_inner().unwrap_or_else(PoisonError::into_inner);
    (sender, teller.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Opens the folder, again and again until it succeeds. None when the outlet stops before.
fn open(
    plan: &WhisperPlan,
    names: &Path,
    (outlet, stores): (&Arc<Outlet>, &Stores),
    sender: &mut StoreSender,
    teller: &mut Teller,
) -> Option<Opened> {
    let mut pause = RETRY.0;
    loop {
        match opening::open(plan, names, &outlet.name) {
            Ok(opened) => {
                sender.on_written(Clock::now());
                report(sender, outlet, teller, None);
                publish(outlet, 0, 0, 0, sender.state());
                return Some(opened);
            }
            Err(error) => {
                outlet.errors.count(&error);
                stores.not_open(&outlet.name, &error);
                sender.on_error(Failure::OpenFailed, Clock::now());
                report(sender, outlet, teller, Some(error.to_string()));
                publish(outlet, 0, 0, 0, sender.state());
            }
        }
        if !rest(outlet, pause) {
            return None;
        }
        pause = (pause * 2).min(RETRY.1);
    }
}

/// Waits. False when the outlet stops before.
fn rest(outlet: &Outlet, pause: Duration) -> bool {
    let until_ns = Clock::mono_ns() + pause.as_nanos() as u64;
    while Clock::mono_ns() < until_ns {
        if outlet.is_stopping() {
            return false;
        }
        outlet.wait(Seen { records: true, stop: false }, Duration::from_millis(250));
    }
    true
}

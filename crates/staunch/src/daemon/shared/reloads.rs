//! Reloads: requests for one, and their results.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use model::Now;
use tokio::sync::{Notify, watch};

/// Counts of reloads by result.
#[derive(Debug, Default)]
pub struct Reloads {
    /// In force.
    pub done: AtomicU64,
    /// In force, but parts of the new plan do not work.
    pub partial: AtomicU64,
    /// Rejected because of an error in the file; nothing changed.
    pub refused: AtomicU64,
    /// When and why the last one was rejected; `None` since one took effect.
    last_refused: Mutex<Option<String>>,
    /// Unix seconds of the last one; 0 before the first.
    last_s: AtomicU64,
    /// There is a file to reload.
    has_file: AtomicBool,
    /// Notified for a reload without a signal.
    asked: Notify,
    /// Number of readings begun.
    begun: AtomicU64,
    /// The result of the last one.
    ended: watch::Sender<ReloadEnd>,
    /// The config in force, as a native file without secrets.
    config: Mutex<String>,
}

/// The result of a reload.
#[derive(Clone, Debug, Default)]
pub struct ReloadEnd {
    /// Its number.
    pub number: u64,
    /// `done`, `partial` or `refused`.
    pub result: &'static str,
    /// Diagnostics of a rejected one, or the parts that do not work.
    pub message: String,
}

impl Reloads {
    /// From now on reloads can be requested, if there is a file.
    pub fn start(&self, has_file: bool, config: String) {
        self.has_file.store(has_file, Relaxed);
        self.in_force(config);
    }

    /// Requests a reload. Its result is the first one with a number above the returned one; `None` without a file.
    pub fn ask(&self) -> Option<u64> {
        let number = self.begun.load(Relaxed);
        self.has_file.load(Relaxed).then(|| {
            self.asked.notify_one();
            number
        })
    }

    /// Waits for a request. Cancel-safe.
    pub async fn asked(&self) {
        self.asked.notified().await;
    }

    /// The results of reloads.
    pub fn ends(&self) -> watch::Receiver<ReloadEnd> {
        self.ended.subscribe()
    }

    /// Notes the begin of a reading.
    pub fn begin(&self) {
        self.begun.fetch_add(1, Relaxed);
    }

    /// Reports the result of the last reading.
    pub fn end(&self, result: &'static str, message: String) {
        self.ended.send_replace(ReloadEnd { number: self.begun.load(Relaxed), result, message });
    }

    /// Notes the config in force.
    pub fn in_force(&self, config: String) {
        *self.config.lock().unwrap_or_else(PoisonError::into_inner) = config;
    }

    /// The config in force, as a native file without secrets.
    pub fn config(&self) -> String {
        self.config.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes the result: rejected at a time for a short reason, or not.
    pub fn note(&self, refused: Option<String>, now: Now) {
        self.last_s.store(now.wall_seconds(), Relaxed);
        *self.last_refused.lock().unwrap_or_else(PoisonError::into_inner) = refused;
    }

    /// Whether the last one took effect, and its Unix seconds; 0 before the first, when the start's config is in force.
    pub fn last(&self) -> (bool, u64) {
        (self.last_refused().is_none(), self.last_s.load(Relaxed))
    }

    /// When and why the last one was rejected; `None` since one took effect.
    pub fn last_refused(&self) -> Option<String> {
        self.last_refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

//! Slow work on the files beside writing: other archives for existing files, and the limit on disk space.

use std::sync::atomic::Ordering::Relaxed;

use config::plan::WhisperPlan;
use graphite::store::{Expire, ExpiryReport, Migrate, MigrationReport};
use model::SECOND_NS;
use sys::clock::Clock;

use crate::daemon::shared::stores::OpenStore;

/// Time between two lines of the log about a migration.
const LOG_EVERY_NS: u64 = 10 * SECOND_NS;

/// Time between two looks at the size of the files, and the shortest one when new files reach the limit.
const LOOK_EVERY_NS: u64 = 600 * SECOND_NS;
const LOOK_AGAIN_NS: u64 = SECOND_NS;

/// See the module's header.
pub(super) struct Upkeep {
    migrates: bool,
    files_bytes_max: u64,
    migrate: Option<Migrate>,
    logged_ns: u64,
    expire: Option<Expire>,
    /// The last look, and what it had found.
    looked: Option<(u64, ExpiryReport)>,
    /// Size of all files that were created since the start, at the last look.
    created_bytes: u64,
}

impl Upkeep {
    pub(super) fn new(plan: &WhisperPlan) -> Upkeep {
        Upkeep {
            migrates: plan.online_migration,
            files_bytes_max: plan.files_bytes_max,
            migrate: plan.online_migration.then(Migrate::default),
            logged_ns: Clock::mono_ns(),
            expire: None,
            looked: None,
            created_bytes: 0,
        }
    }

    /// The rules differ from those of the last migration.
    pub(super) fn rules_differ(&mut self) {
        if self.migrates {
            self.migrate = Some(Migrate::default());
        }
    }

    /// Takes a step. False when nothing is to be done now. The names of all files have to be known.
    pub(super) fn step(&mut self, open: &OpenStore, at: i64) -> bool {
        let now_ns = Clock::mono_ns();
        let migrated = self.migrate(open, at, now_ns);
        self.expire(open, now_ns) || migrated
    }

    fn migrate(&mut self, open: &OpenStore, at: i64, now_ns: u64) -> bool {
        let Some(migrate) = &mut self.migrate else { return false };
        let before = migrate.report().changed;
        let more = migrate.step(&open.store, &open.tree, at);
        let report = migrate.report();
        open.figures.migrated.fetch_add(report.changed - before, Relaxed);
        if !more || now_ns.saturating_sub(self.logged_ns) >= LOG_EVERY_NS {
            self.logged_ns = now_ns;
            log_migration(open, report, more);
        }
        if !more {
            self.migrate = None;
        }
        true
    }

    fn expire(&mut self, open: &OpenStore, now_ns: u64) -> bool {
        if self.files_bytes_max == 0 {
            return false;
        }
        let Some(expire) = &mut self.expire else {
            if self.is_look_due(open, now_ns) {
                self.created_bytes = open.figures.created_bytes.load(Relaxed);
                self.expire = Some(Expire::new(self.files_bytes_max));
            }
            return self.expire.is_some();
        };
        let before = expire.report().removed;
        let more = expire.step(&open.store, &open.tree);
        let report = *expire.report();
        open.figures.expired.fetch_add(report.removed - before, Relaxed);
        if !more {
            open.figures.files_bytes.store(report.bytes, Relaxed);
            log_expiry(open, &report, self.files_bytes_max);
            (self.expire, self.looked) = (None, Some((now_ns, report)));
        }
        true
    }

    fn is_look_due(&self, open: &OpenStore, now_ns: u64) -> bool {
        let Some((at_ns, report)) = &self.looked else { return true };
        let created = open.figures.created_bytes.load(Relaxed) - self.created_bytes;
        // Files that could not be removed are not tried again at once.
        let is_above = created > 0 && report.bytes + created > self.files_bytes_max && report.failed == 0;
        let pause = if is_above { LOOK_AGAIN_NS } else { LOOK_EVERY_NS };
        now_ns.saturating_sub(*at_ns) >= pause
    }
}

fn log_migration(open: &OpenStore, report: &MigrationReport, more: bool) {
    let MigrationReport { looked_at, changed, failed, .. } = report;
    let name = &open.name;
    if more {
        let all = open.store.catalog().len();
        tracing::info!(
            "output `{name}`: migration: {looked_at} of about {all} files looked at, {changed} changed, {failed} failed"
        );
        return;
    }
    tracing::info!(
        "output `{name}`: migration ended: {looked_at} files looked at, {changed} changed, {failed} failed"
    );
    if let Some((path, error)) = &report.last_error {
        let rest = if report.is_given_up { "; the rest is left for the next start" } else { "" };
        tracing::warn!(
            "output `{name}`: {failed} files keep their archives, the last one is {path}: {error}{rest}"
        );
    }
}

fn log_expiry(open: &OpenStore, report: &ExpiryReport, files_bytes_max: u64) {
    let ExpiryReport { bytes, removed, failed, last_error } = report;
    let name = &open.name;
    if *removed > 0 {
        tracing::warn!(
            "output `{name}`: `max_bytes` was reached: {removed} files that were written least recently have been removed, \
             {} MiB of {} MiB are used",
            bytes >> 20,
            files_bytes_max >> 20
        );
    }
    if let Some(error) = last_error {
        tracing::warn!("output `{name}`: {failed} files could not be removed: {error}");
    }
}

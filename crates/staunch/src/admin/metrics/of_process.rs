//! Metrics of the process, as in all Prometheus clients, and the state of the config.

use super::family::family;
use crate::daemon::shared::Shared;

pub(super) fn all(out: &mut String, shared: &Shared) {
    let started_s = shared.started.wall_seconds();
    let help = "Unix time at which the process started.";
    family(out, "process_start_time_seconds", "gauge", help).row(&[], started_s as f64);
    let pid = std::process::id();
    // Rows are missing where the system does not report them.
    if let Ok(cpu_ns) = sys::process_cpu_ns(pid) {
        let help = "CPU time of the process, user and system.";
        family(out, "process_cpu_seconds_total", "counter", help).row(&[], cpu_ns as f64 / 1e9);
    }
    if let Ok(memory) = sys::memory_of(pid) {
        family(out, "process_resident_memory_bytes", "gauge", "Resident memory.")
            .row(&[], memory.resident as f64);
    }
    if let Ok(files) = sys::open_files() {
        family(out, "process_open_fds", "gauge", "Open file descriptors.").row(&[], files as f64);
    }
    if let Ok(most) = sys::open_file_limit() {
        family(out, "process_max_fds", "gauge", "Limit on open file descriptors.").row(&[], most as f64);
    }
    let (successful, at_s) = shared.reloads.last();
    let help = "1 when the last start or reload of the config took effect.";
    family(out, "staunch_config_last_reload_successful", "gauge", help)
        .row(&[], f64::from(u8::from(successful)));
    let help = "Unix time of the last start or reload of the config.";
    family(out, "staunch_config_last_reload_timestamp_seconds", "gauge", help)
        .row(&[], at_s.max(started_s) as f64);
}

//! The original's first output: its name, the settings, and the parsed configuration (spec graphite §2.11). A daemon
//! logs it, test mode prints it on stdout.

use std::fmt::Write as _;

use import::relay::flags::{Flags, Settings, Submission};
use import::relay::{Form, RelayConf, Surroundings, TestView, print_test};

use crate::carbon_c_relay::command_line::version;

/// The first line of the log.
pub(crate) fn starting() -> String {
    format!("starting {}, pid={}", version::name(), std::process::id())
}

/// The settings.
pub(crate) fn settings_text(flags: &Flags, settings: &Settings) -> String {
    let mut out = "configuration:\n".to_owned();
    let mut row = |name: &str, value: &dyn std::fmt::Display| {
        let _ = writeln!(out, "    {name} = {value}");
    };
    row("relay hostname", &settings.hostname);
    row("workers", &settings.workers);
    row("send batch size", &settings.batch);
    row("server queue size", &settings.queue);
    row("server max stalls", &settings.stalls);
    row("listen backlog", &settings.backlog);
    if let Some(bytes) = settings.buffer_bytes {
        row("socket bufsize", &bytes);
    }
    if let Some(path) = &settings.ca {
        row("tls/ssl CA", &path.display());
    }
    row("server connection IO timeout", &format_args!("{}ms", settings.timeout_ms));
    let idle = if settings.idle_timeout_ms == 0 { "never" } else { "10m" };
    row("idle connections disconnect timeout", &idle);
    if let Some(allowed) = &flags.allowed {
        row("extra allowed characters", allowed);
    }
    if settings.line_bytes_max != Settings::LINE_BYTES_MAX {
        row("max input length", &settings.line_bytes_max);
    }
    if flags.name_bytes_max.is_some() {
        row("max metric length", &settings.name_bytes_max);
    }
    if settings.debug {
        row("debug", &true);
    } else if settings.submission != Submission::No {
        row("submission", &true);
    }
    row("configuration", &settings.config);
    out.push('\n');
    out
}

/// The configuration in canonical form.
pub(crate) fn configuration_text(conf: &RelayConf, settings: &Settings) -> String {
    let prefix = conf.statistics.prefix_for(&settings.hostname);
    let surroundings = Surroundings { port: settings.port, prefix: Some(&prefix), form: Form::Original };
    let view = TestView { debug: settings.debug, group_from: settings.optimise };
    format!("parsed configuration follows:\n{}\n", print_test(conf, &surroundings, view))
}

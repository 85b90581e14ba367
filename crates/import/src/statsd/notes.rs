//! Options of the originals without effect here: each is reported when it is set.

use super::values::{Import, Section};
use crate::javascript::Value;
use config::diagnostic::Code;

/// Options without a counterpart: whether only Net::Statsd::Server has it, and how the message ends.
const NO_COUNTERPART: [(&str, bool, &str); 4] = [
    ("title", false, ": the process keeps its name"),
    ("debugInterval", true, ": there is no debug report"),
    ("test", true, ": there is no such backend here"),
    ("rrdtool", true, ": there is no such backend here"),
];

/// Reports options that are set to something unsupported.
pub(super) fn without_effect(import: &mut Import<'_>, root: &mut Section<'_>) {
    for (key, hint) in [
        ("debug", "the command line sets how much is logged"),
        (
            "dumpMessages",
            "the log quotes the first bad line of each kind, and `/api/v1/series` shows what is counted",
        ),
    ] {
        if import.switch(root, key) == Some(true)
            && let Some(member) = root.get(key)
        {
            import.no_counterpart(key, member, "").hint(hint);
        }
    }
    log(import, root);
    for (key, is_perls, instead) in NO_COUNTERPART {
        if (import.perl() || !is_perls)
            && let Some(member) = root.set(key)
        {
            import.no_counterpart(key, member, instead);
        }
    }
}

/// `log`: syslog is not supported; the other two options only matter for syslog.
pub(crate) fn log(import: &mut Import<'_>, root: &mut Section<'_>) {
    let Some(mut section) = import.section(root, "log") else { return };
    let backends = [("stdout", false), ("syslog", true)];
    let is_syslog = import.keyword(&mut section, "backend", &backends).unwrap_or(false);
    if let Some(member) = section.set("backend").filter(|_| is_syslog) {
        let message = "`log.backend` has no counterpart: the log goes to stderr";
        let report = import.warn(Code::NotCarriedOver, member.value.place, message);
        report.hint("under systemd it is in the journal, which can forward to syslog");
    }
    for (key, default) in [("application", "statsd"), ("level", "LOG_INFO")] {
        let Some(member) = section.set(key) else { continue };
        let name = section.name(key);
        match &member.value.value {
            Value::Text(text) if text == default => {}
            _ if is_syslog => drop(import.no_counterpart(&name, member, ": there is no syslog")),
            _ => drop(import.no_effect(&name, member, ": it is for `log.backend: \"syslog\"`")),
        }
    }
    section.finish(import);
}

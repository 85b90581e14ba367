//! Options of the originals without effect here: each is reported when it is set.

use super::values::{Import, Section};
use crate::javascript::Value;
use config::diagnostic::Code;

/// Reports `debug`, `dumpMessages`, `log`, `title` and Perl's own options when they are set to something unsupported.
pub(super) fn without_effect(import: &mut Import<'_>, root: &mut Section<'_>) {
    for (key, hint) in [
        ("debug", "how much is logged is told on the command line"),
        (
            "dumpMessages",
            "the log quotes the first bad line of each kind, and `/api/v1/series` shows what is counted",
        ),
    ] {
        if import.switch(root, key) == Some(true) {
            let place = root.get(key).map_or(root.node().place, |member| member.key_place);
            import.warn_hint(Code::NotCarriedOver, place, format!("`{key}` has no counterpart"), hint);
        }
    }
    log(import, root);
    if let Some(member) = root.set("title") {
        let message = "`title` has no counterpart: the process keeps its name".into();
        import.warn(Code::NotCarriedOver, member.key_place, message);
    }
    if !import.perl() {
        return;
    }
    if let Some(member) = root.set("debugInterval") {
        let message = "`debugInterval` has no counterpart: there is no debug report".into();
        import.warn(Code::NotCarriedOver, member.key_place, message);
    }
    for key in ["test", "rrdtool"] {
        if let Some(member) = root.set(key) {
            let message = format!("`{key}` has no counterpart: there is no such backend here");
            import.warn(Code::NotCarriedOver, member.key_place, message);
        }
    }
}

/// `log`: syslog is not supported; the other two options only matter for syslog.
pub(crate) fn log(import: &mut Import<'_>, root: &mut Section<'_>) {
    let Some(mut section) = import.section(root, "log") else { return };
    let mut syslog = false;
    if let Some(member) = section.set("backend") {
        match &member.value.value {
            Value::Text(text) if text == "stdout" => {}
            Value::Text(text) if text == "syslog" => {
                syslog = true;
                let message = "`log.backend` has no counterpart: the log goes to stderr".into();
                let hint = "under systemd it is in the journal, which can forward to syslog";
                import.warn_hint(Code::NotCarriedOver, member.value.place, message, hint);
            }
            _ => import.bad_value("log.backend", &member.value, "`stdout` or `syslog`"),
        }
    }
    for (key, default) in [("application", "statsd"), ("level", "LOG_INFO")] {
        let Some(member) = section.set(key) else { continue };
        if matches!(&member.value.value, Value::Text(text) if text == default) {
            continue;
        }
        if syslog {
            let message = format!("`log.{key}` has no counterpart: there is no syslog");
            import.warn(Code::NotCarriedOver, member.key_place, message);
        } else {
            let message = format!("`log.{key}` has no effect: it is for `log.backend: \"syslog\"`");
            import.warn(Code::ImportNoEffect, member.key_place, message);
        }
    }
    section.finish(import);
}

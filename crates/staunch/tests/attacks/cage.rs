//! Half a core for all attackers together: a control group with a quota, or, where none can be made, attackers that
//! pause as long as they have worked.

use std::io::Write;
use std::path::{Path, PathBuf};

/// Share of one core, in percent.
const SHARE_PERCENT: u64 = 50;

/// Time in which the share is given, in microseconds: short, so that an attack has no pauses to speak of.
const PERIOD_US: u64 = 20_000;

/// See the module's header.
#[derive(Debug)]
pub(crate) enum Cage {
    /// Its folder, and the file that takes process ids.
    Group(PathBuf),
    /// Attackers pause by themselves.
    Pauses,
}

impl Cage {
    /// A group of our own, of version 1 or 2 of the kernel's interface.
    pub(crate) fn new() -> Cage {
        let name = format!("staunch-attacks-{}", std::process::id());
        let quota = PERIOD_US * SHARE_PERCENT / 100;
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        for line in mounts.lines() {
            let mut words = line.split(' ').skip(1);
            let (Some(at), Some(kind), Some(options)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            let group = Path::new(at).join(&name);
            let limits = match kind {
                "cgroup" if options.split(',').any(|option| option == "cpu") => {
                    vec![
                        ("cpu.cfs_period_us", PERIOD_US.to_string()),
                        ("cpu.cfs_quota_us", quota.to_string()),
                    ]
                }
                "cgroup2" => vec![("cpu.max", format!("{quota} {PERIOD_US}"))],
                _ => continue,
            };
            if std::fs::create_dir(&group).is_err() {
                continue;
            }
            if limits.iter().all(|(file, text)| write(&group.join(file), text)) {
                return Cage::Group(group);
            }
            let _gone = std::fs::remove_dir(&group);
        }
        Cage::Pauses
    }

    /// Puts a process in. False when it has to pause by itself.
    pub(crate) fn take(&self, pid: u32) -> bool {
        match self {
            Cage::Group(group) => write(&group.join("cgroup.procs"), &pid.to_string()),
            Cage::Pauses => false,
        }
    }

    /// For the report.
    pub(crate) fn words(&self) -> &'static str {
        match self {
            Cage::Group(_) => "attackers share half a core (a control group)",
            Cage::Pauses => "attackers pause as long as they work: no control group can be made here",
        }
    }
}

impl Drop for Cage {
    fn drop(&mut self) {
        if let Cage::Group(group) = self {
            // It is empty: each child was waited for.
            let _gone = std::fs::remove_dir(group);
        }
    }
}

/// Files of a control group exist already and are written at once; one that does not exist is no limit.
fn write(file: &Path, text: &str) -> bool {
    let opened = std::fs::OpenOptions::new().write(true).open(file);
    opened.and_then(|mut file| file.write_all(text.as_bytes())).is_ok()
}

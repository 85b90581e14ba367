//! The machine of a measurement: figures have no meaning without it.

use std::fs;

use serde::Serialize;

/// The machine, its system and how busy it was before the first run.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// Processor, as it names itself.
    pub processor: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// Operating system and kernel release.
    pub kernel: String,
    /// True inside a virtual machine.
    pub is_virtual: bool,
    /// Average number of runnable threads over the last minute.
    pub load: f64,
}

impl Machine {
    /// Describes this machine. Unknown values are empty or 0.
    pub fn look() -> Machine {
        let cpuinfo = read("/proc/cpuinfo");
        Machine {
            processor: field(&cpuinfo, "model name").unwrap_or_else(|| std::env::consts::ARCH.into()),
            cores: sys::cores(),
            memory_bytes: field(&read("/proc/meminfo"), "MemTotal")
                .and_then(|text| text.strip_suffix("kB")?.trim().parse::<u64>().ok())
                .map_or(0, |kilobytes| kilobytes * 1024),
            kernel: format!(
                "{} {}",
                read("/proc/sys/kernel/ostype").trim(),
                read("/proc/sys/kernel/osrelease").trim()
            ),
            is_virtual: field(&cpuinfo, "flags")
                .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            load: read("/proc/loadavg").split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0),
        }
    }
}

/// Nanoseconds that `core` has worked since the system's start, for all processes; `None` where the system does not
/// count them. The resolution is a clock tick, one hundredth of a second.
pub(crate) fn core_busy_ns(core: usize) -> Option<u64> {
    busy_ns(&read("/proc/stat"), core)
}

/// Columns of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal, …
fn busy_ns(stat: &str, core: usize) -> Option<u64> {
    const TICK_NS: u64 = 10_000_000;
    const AT_WORK: [usize; 6] = [0, 1, 2, 5, 6, 7];
    let name = format!("cpu{core} ");
    let ticks = stat.lines().find_map(|line| line.strip_prefix(&name))?;
    let ticks = ticks.split_whitespace().map(str::parse).collect::<Result<Vec<u64>, _>>().ok()?;
    AT_WORK.iter().map(|column| ticks.get(*column)).sum::<Option<u64>>().map(|ticks| ticks * TICK_NS)
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The first `name: value` of a file of such lines.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

#[test]
fn busy_time_excludes_idle_and_iowait() {
    let stat = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 4 900 900 8 16 32 5 5\ncpu10 1 0 0 0 0 0 0 0 0 0\n";
    assert_eq!(busy_ns(stat, 0), Some(630_000_000));
    assert_eq!(busy_ns(stat, 1), None, "not that of core 10");
    assert_eq!(busy_ns("cpu0 1 x", 0), None);
}

#[test]
fn fields_are_found_by_their_whole_name() {
    let text = "model\t\t: 2\nmodel name\t: AMD EPYC\nflags\t\t: fpu hypervisor\n\nmodel name\t: second\n";
    assert_eq!(field(text, "model name").as_deref(), Some("AMD EPYC"));
    assert_eq!(field(text, "name"), None);
    assert!(Machine::look().cores >= 1);
}

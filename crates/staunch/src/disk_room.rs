//! Whether the disk has enough space for the limits of all queues on it.

use std::path::{Path, PathBuf};

use config::diagnostic::{Code, Diagnostic};
use config::plan::{OutputPlan, Plan};

use client::stdio::bytes;
use sys::data_dir;

/// Most outputs that the warning names.
const NAMES_SHOWN: usize = 3;

/// A warning when the queues of a plan may become larger than the free space of their disk. Their current size counts
/// as free.
pub(crate) fn warning(plan: &Plan) -> Option<Diagnostic> {
    let queues: Vec<&OutputPlan> = plan.outputs.iter().filter(|output| output.queue_kind.is_disk()).collect();
    if queues.is_empty() {
        return None;
    }
    let free = free_space_at(&existing(&plan.data_dir))?;
    let folder = data_dir::queues_dir(&plan.data_dir);
    let held = queues.iter().map(|output| size_of(&folder.join(data_dir::queue_folder(&output.name)))).sum();
    of(&queues, &plan.data_dir, free, held)
}

fn of(queues: &[&OutputPlan], data_dir: &Path, free: u64, held: u64) -> Option<Diagnostic> {
    let most = queues.iter().fold(0_u64, |sum, output| sum.saturating_add(output.queue.bytes_max));
    if most <= free.saturating_add(held) {
        return None;
    }
    let names: Vec<String> =
        queues.iter().take(NAMES_SHOWN).map(|output| format!("`{}`", output.name)).collect();
    let more = if queues.len() > NAMES_SHOWN { ", …" } else { "" };
    let holds = if held > 0 { format!(", beside {} that they hold", bytes(held)) } else { String::new() };
    let message = format!(
        "queues on disk may take {} (`queue.max_bytes` of {}{more}), and the disk of {} has {} free{holds}",
        bytes(most),
        names.join(", "),
        data_dir.display(),
        bytes(free)
    );
    let hint =
        "lower `queue.max_bytes`, or give `data_dir` a larger disk; what a full one means: docs/queues.md";
    Some(Diagnostic::warning(Code::DiskTooSmall, message).hint(hint))
}

/// The path, or its nearest existing parent: the start creates the data directory.
fn existing(path: &Path) -> PathBuf {
    let found = path.ancestors().find(|path| path.exists());
    found.filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
}

#[cfg(unix)]
fn free_space_at(path: &Path) -> Option<u64> {
    sys::free_space_at(path).ok()
}

#[cfg(not(unix))]
fn free_space_at(_path: &Path) -> Option<u64> {
    None
}

/// Bytes of the files in a folder.
fn size_of(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
}

#[test]
fn limits_of_queues_are_compared_with_the_free_space() {
    let text = "[sources.in]\ntype = \"graphite\"\n[outputs.o]\ntype = \"graphite\"\nfrom = [\"in\"]\n\
                to = [\"tcp://10.0.0.1:2003\", \"tcp://10.0.0.2:2003\"]\n\
                queue = { kind = \"disk\", max_bytes = \"4GiB\" }\n";
    let source = config::diagnostic::Source { name: "test", text };
    let plan = config::check(source, config::Format::Toml).0.expect("a good file");
    let queues: Vec<&OutputPlan> = plan.outputs.iter().collect();
    let said = |free, held| of(&queues, Path::new("/data"), free, held).map(|warning| warning.message);
    assert_eq!((said(8 << 30, 0), said(7 << 30, 1 << 30)), (None, None));
    let want = "queues on disk may take 8 GiB (`queue.max_bytes` of `o/10.0.0.1:2003`, `o/10.0.0.2:2003`), and the disk of \
                /data has 5 GiB free, beside 1 GiB that they hold";
    assert_eq!(said(5 << 30, 1 << 30).as_deref(), Some(want));
    assert!(
        existing(Path::new("/nowhere/at/all")) == Path::new("/")
            && existing(Path::new("x/y")) == Path::new(".")
    );
}

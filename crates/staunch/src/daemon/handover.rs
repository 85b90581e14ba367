//! What one instance leaves for the next: the label of each aggregation's last window.
//!
//! SIGTERM closes a window before its time, and the point carries the label of its slot. An instance that starts
//! within the same slot must not tell that label again, or Graphite would keep only one of the two points.

use std::fs;
use std::io;
use std::path::Path;

use config::plan::Plan;
use model::Now;
use pipeline::Shard;

/// The file in the data folder: a line `LABEL NAME` for each aggregation.
const FILE: &str = "last-flush";

/// Longest file that is believed.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Takes up what the instance before has left, and removes it.
pub fn take_up(plan: &Plan, shard: &mut Shard, now: Now) {
    let path = plan.data_dir.join(FILE);
    let Ok(found) = fs::metadata(&path) else { return };
    if found.len() > FILE_BYTES_MAX {
        tracing::warn!("{} is no file of ours: left alone", path.display());
        return;
    }
    match fs::read_to_string(&path) {
        Ok(text) => labels(&text).for_each(|(name, label_s)| shard.resume_after(name, label_s, now)),
        Err(error) => tracing::warn!("cannot read {}: {error}", path.display()),
    }
    // It holds for one start only. When it cannot be removed its labels will be in the past by the next start.
    let _left = fs::remove_file(&path);
}

fn labels(text: &str) -> impl Iterator<Item = (&str, u64)> {
    text.lines().filter_map(|line| {
        let (label, name) = line.split_once(' ')?;
        Some((name, label.parse().ok()?))
    })
}

/// Leaves the labels for the next instance.
///
/// # Errors
/// When the file cannot be written; the worst that follows is a point that is told twice.
pub fn leave(data_dir: &Path, labels: &[(String, u64)]) -> io::Result<()> {
    if labels.is_empty() {
        return Ok(());
    }
    fs::create_dir_all(data_dir)?;
    let text: String = labels.iter().map(|(name, label_s)| format!("{label_s} {name}\n")).collect();
    let half = data_dir.join(format!("{FILE}.new"));
    fs::write(&half, text)?;
    fs::rename(&half, data_dir.join(FILE))
}

#[test]
fn what_is_left_is_taken_up() {
    let folder = tempfile::tempdir().expect("a folder");
    leave(folder.path(), &[("stats".into(), 1070), ("a b".into(), 5)]).expect("written");
    let text = fs::read_to_string(folder.path().join(FILE)).expect("read");
    assert_eq!(labels(&text).collect::<Vec<_>>(), [("stats", 1070), ("a b", 5)]);
    assert_eq!(labels("no number\n\n12\n7 x\n").collect::<Vec<_>>(), [("x", 7)]);
}

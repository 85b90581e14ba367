//! A small disk for one case: a tmpfs in a mount namespace.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::finding::{Bench, End, Finding};

/// Where the second start finds the disk.
const DISK: &str = "STAUNCH_FAULTS_DISK";

/// Runs a case on a disk of its own: the program starts itself once more, where a file system can be mounted.
pub(crate) fn run(bench: &Bench, case: &str, mebibytes: u64, on_disk: impl FnOnce(&Path) -> Finding) -> End {
    if let Some(disk) = std::env::var_os(DISK) {
        return End::Ran(on_disk(Path::new(&disk)));
    }
    let folder = tempfile::tempdir().expect("a folder for the disk");
    let own = std::env::current_exe().expect("we have a name");
    // Root in a namespace of its own is enough, where the system lets anybody be that.
    for more in [&[][..], &["--map-root-user"][..]] {
        let mount = format!("mount -t tmpfs -o size={mebibytes}m staunch-faults \"$0\" && exec \"$@\"");
        let mut command = Command::new("unshare");
        command.arg("--mount").args(more).args(["sh", "-c", &mount]).arg(folder.path());
        command.arg(&own).args([case, "--json", "--seed", &bench.seed.to_string()]);
        if bench.full {
            command.arg("--full");
        }
        let ran = command.env(DISK, folder.path()).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
        let Ok(output) = ran else { continue };
        if let Ok(document) = serde_json::from_slice::<Value>(&output.stdout) {
            return End::Ran(finding_of(&document["cases"][0]));
        }
    }
    End::Skipped(
        "no file system can be mounted here: it takes root, or user namespaces (`unshare --mount`)".into(),
    )
}

fn finding_of(case: &Value) -> Finding {
    let number = |name: &str| case[name].as_u64().unwrap_or(0);
    let texts = |name: &str| {
        let texts = case[name].as_array().into_iter().flatten();
        texts.filter_map(|text| text.as_str().map(str::to_owned)).collect()
    };
    Finding {
        done: case["done"].as_str().unwrap_or_default().to_owned(),
        sent: number("sent"),
        arrived: number("arrived"),
        named: number("named"),
        twice: number("twice"),
        figures: texts("figures"),
        broken: texts("broken"),
    }
}

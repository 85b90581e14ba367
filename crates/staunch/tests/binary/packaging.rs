//! What `packaging/` says about the program is so: verbs, flags, configs, paths of probes, sizes, the toolchain.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::Builder;
use crate::support::daemon::STAUNCH;

/// Where the units and the image have the program.
const INSTALLED: &str = "/usr/local/bin/staunch";

const UNITS: [&str; 2] = ["staunch.service", "staunch@.service"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn packaging(file: &str) -> String {
    let path = repository().join("packaging").join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn unit(name: &str) -> String {
    packaging(&format!("systemd/{name}"))
}

/// The value of a setting such as `ExecStart=`; empty when it is not there.
fn setting<'a>(text: &'a str, name: &str) -> &'a str {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=')).unwrap_or_default()
}

fn staunch(args: &[&str]) -> Output {
    Command::new(STAUNCH).args(args).env_remove("STAUNCH_LOG").output().expect("the binary starts")
}

/// The verb is one, and takes every flag among its words.
#[track_caller]
fn assert_understood(words: &[&str]) {
    let help = staunch(&[words[0], "--help"]);
    assert!(help.status.success(), "no verb `{}`", words[0]);
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let flags = words.iter().filter_map(|word| word.split('=').next().filter(|word| word.starts_with("--")));
    for flag in flags {
        let known = help.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
        assert!(known.into_iter().any(|word| word == flag), "`{}` has no flag {flag}", words[0]);
    }
}

/// The program finds no mistake in a config.
#[track_caller]
fn assert_good(name: &str, text: &str) {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = folder.path().join("staunch.toml");
    std::fs::write(&file, text).expect("it can be written");
    let checked = staunch(&["check", &file.display().to_string()]);
    let logged =
        String::from_utf8_lossy(&checked.stdout).into_owned() + &String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success() && logged.contains(": good"), "{name}: {logged}");
}

#[test]
fn units_start_what_the_program_understands() {
    for name in UNITS {
        let unit = unit(name);
        let words: Vec<&str> = setting(&unit, "ExecStart").split_whitespace().collect();
        assert_eq!(words[0], INSTALLED, "{name}");
        assert_understood(&words[1..]);
        assert_eq!(setting(&unit, "Type"), "notify", "{name}: READY=1 is sent");
        assert!(setting(&unit, "ExecReload").contains("-HUP $MAINPID"), "{name}: a reload is SIGHUP");
    }
}

#[test]
fn a_hot_restart_by_the_service_manager_is_one_that_the_program_understands() {
    let text = unit("hot-restart.conf");
    let unit = unit(UNITS[0]);
    let config = setting(&unit, "ExecStart").split_whitespace().last().expect("a config");
    let commands: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("ExecReload=")).collect();
    let [reset, check, run] = commands.as_slice() else { panic!("three lines: {commands:?}") };
    assert_eq!(*reset, "", "what the unit says is replaced");
    for command in [check, run] {
        let (_, words) = command.split_once(INSTALLED).expect("it starts the program");
        let words: Vec<&str> = words.trim_end_matches(" &'").split_whitespace().collect();
        assert_understood(&words);
        assert_eq!(words.last(), Some(&config), "{command}");
    }
    assert!(run.contains("--hot-restart"));
}

#[test]
fn the_template_is_the_unit_but_for_its_names() {
    let settings = |name| -> Vec<String> {
        let text = unit(name);
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.starts_with("Description="));
        lines.map(|line| line.replace("-%i", "").replace("%i", "staunch")).collect()
    };
    assert_eq!(settings(UNITS[0]), settings(UNITS[1]));
}

/// What systemd-analyze says of a unit; what it says of the machine's own units is left out. None without it.
fn systemd_on(folder: &Path, name: &str, text: &str) -> Option<Vec<String>> {
    let path = folder.join(name);
    std::fs::write(&path, text.replace(INSTALLED, STAUNCH)).expect("it can be written");
    let verified = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&path).output().ok()?;
    let logged = String::from_utf8_lossy(&verified.stderr).into_owned();
    Some(logged.lines().filter(|line| line.contains(name)).map(str::to_owned).collect())
}

#[test]
fn systemd_finds_nothing_to_say_about_the_units() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    for name in UNITS {
        let text = unit(name);
        let wrong = text.replace("WatchdogSec=", "WatchdogMiles=");
        if systemd_on(folder.path(), name, &wrong).is_none_or(|logged| logged.is_empty()) {
            return crate::support::skip("packaging", "no systemd-analyze that finds mistakes");
        }
        assert_eq!(systemd_on(folder.path(), name, &text), Some(Vec::new()));
    }
}

#[test]
fn configs_have_no_mistake_and_are_where_the_units_look() {
    for (file, unit_name, instance) in
        [("staunch.toml", UNITS[0], "staunch"), ("fanout.toml", UNITS[1], "fanout")]
    {
        let text = packaging(&format!("etc/{file}"));
        assert_good(file, &text);
        assert!(text.contains(&format!("# /etc/staunch/{file}")), "{file} says where it goes");
        let start = setting(&unit(unit_name), "ExecStart").replace("%i", instance);
        assert!(start.ends_with(&format!("/etc/staunch/{file}")), "{start}");
        assert_stops_before(&text, setting(&unit(unit_name), "TimeoutStopSec").trim_end_matches('s'));
    }
}

/// A service manager that waits `seconds` for the end waits longer than the config's `stop_timeout`.
#[track_caller]
fn assert_stops_before(config: &str, seconds: &str) {
    let stop =
        config.lines().find_map(|line| line.trim().strip_prefix("stop_timeout = \"")?.strip_suffix("s\""));
    let stop: u64 = stop.and_then(|text| text.parse().ok()).expect("the config sets it in seconds");
    let waits: u64 = seconds.trim().parse().expect("a number of seconds");
    assert!(stop < waits, "killed after {waits} s, in the midst of a stop of up to {stop} s");
}

#[test]
fn the_sysctl_is_as_large_as_the_buffer_that_is_asked_for() {
    let text = packaging("sysctl.d/60-staunch.conf");
    let granted: u64 =
        setting(&text.replace(" = ", "="), "net.core.rmem_max").parse().expect("a number of bytes");
    let reference = staunch(&["manual", "reference"]);
    let reference = String::from_utf8(reference.stdout).expect("it is text");
    let (_, option) = reference.split_once("**`receive_buffer`**").expect("the option is documented");
    let (_, default) = option.split_once("default `\"").expect("it has a default");
    let (mebibytes, _) = default.split_once("MiB\"`").expect("in MiB");
    assert_eq!(granted, mebibytes.parse::<u64>().expect("a number") << 20);
}

#[test]
fn the_image_is_built_by_our_toolchain_and_starts_what_the_program_understands() {
    let text = packaging("Dockerfile");
    let toolchain = std::fs::read_to_string(repository().join("rust-toolchain.toml")).expect("it is there");
    let channel = setting(&toolchain.replace(" = ", "="), "channel").trim_matches('"').to_owned();
    assert!(text.contains(&format!("FROM rust:{channel}-")), "{channel}");
    assert!(text.contains(&format!("RUSTUP_TOOLCHAIN={channel}\n")), "{channel}");
    // The commit of a build comes from outside, since the image is built without git, and is set before the build.
    let (arg, build) = (text.find("ARG STAUNCH_COMMIT"), text.find("RUN cargo build"));
    assert!(arg.is_some() && arg < build && text.contains("--build-arg STAUNCH_COMMIT="), "{text}");
    let kept = packaging("Dockerfile.dockerignore");
    assert!(kept.contains("!docs/metrics.md\n"), "the program has the page of its metrics in it");
    let line = |begin: &str| -> Vec<String> {
        let rest = text.lines().find_map(|line| line.strip_prefix(begin)).expect("the instruction is there");
        serde_json::from_str(rest).expect("in the form of JSON")
    };
    assert_eq!(line("ENTRYPOINT "), [INSTALLED]);
    assert_understood(&line("CMD ").iter().map(String::as_str).collect::<Vec<_>>());
    let user = text.lines().rfind(|line| line.starts_with("USER ")).expect("a user is set");
    assert!(!user.contains("root") && !user.contains(" 0"), "{user}");
}

#[test]
fn the_manifest_asks_what_the_daemon_answers_and_holds_a_good_config() {
    let manifest = packaging("kubernetes/staunch.yaml");
    let (_, rest) = manifest.split_once("  staunch.toml: |\n").expect("the config is in it");
    let inside = rest.lines().take_while(|line| line.is_empty() || line.starts_with("    "));
    let config: String = inside.map(|line| line.trim_start_matches("    ").to_owned() + "\n").collect();
    assert_good("staunch.yaml", &config);
    assert!(
        config.contains("listen = \"0.0.0.0:8680\"") && manifest.contains("name: http, containerPort: 8680")
    );
    let grace = manifest.lines().find_map(|line| line.trim().strip_prefix("terminationGracePeriodSeconds:"));
    assert_stops_before(&config, grace.expect("it is set"));

    let daemon = Builder::native(
        "[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\"]\n\
        [outputs.copy]\ntype = \"udp\"\nfrom = [\"app\"]\nto = [\"udp://127.0.0.1:9\"]\n",
    )
    .start();
    let probes: Vec<&str> =
        manifest.lines().filter_map(|line| line.trim().strip_prefix("httpGet: {path: ")).collect();
    assert_eq!(probes.len(), 2, "{probes:?}");
    let scraped = manifest.lines().find_map(|line| line.trim().strip_prefix("prometheus.io/path: "));
    for path in probes.into_iter().chain(scraped) {
        let path = path.split(',').next().expect("there is a first part");
        assert_eq!(daemon.get(path).status, 200, "{path}");
    }
}

//! Tests of the language: failures, their lines and messages; and every file of `tests/flow`.

use super::*;

const CONFIG: &str = r#"
config   sources.s    = { type = "statsd" }
config   transforms.t = { type = "aggregate", from = ["s"] }
config   outputs.o    = { type = "graphite", from = ["t"], to = ["tcp://127.0.0.1:2003"] }
"#;

fn no_files(name: &str) -> Result<String, String> {
    Err(format!("there is no file {name}"))
}

fn failures(steps: &str) -> Vec<Failure> {
    run(&format!("{CONFIG}{steps}"), &no_files).err().unwrap_or_default()
}

#[test]
fn the_example_of_the_design_runs() {
    let flow = "send s hits:1|c\nsend s hits:2|c|@0.5\nadvance 10s\nexpect o stats.hits 0.5\noutcomes s received 2 aggregated 2";
    assert_eq!(failures(flow), []);
}

#[test]
fn a_failure_shows_the_expected_and_the_actual_state() {
    let table = [
        ("expect o stats.hits 1", "`stats.hits` should be 1, and is 0.2 at 1000080010 (+10s)"),
        ("expect o stats.hist 0.2", "no `stats.hist` arrived; did you mean `stats.hits`?"),
        ("expect o hits 0.2", "did you mean `stats.hits`, `stats_counts.hits`?"),
        (
            "expect o stats.hits 0.2 at +20s",
            "no further `stats.hits` at 1000080020 (+20s) arrived; there was: 0.2",
        ),
        ("expect p stats.hits 0.2", "no output `p`; there are: `o`"),
        ("send t hits:1|c", "no source `t`; there are: `s`"),
        ("absent o stats.h*", "nothing that fits `stats.h*`"),
        ("only o", "`stats.hits 0.2 1000080010`"),
        ("count o 1 stats.*its", "1 that fit"),
        (
            "count o 5 *hits",
            "5 that fit `*hits` should have arrived, and 2 did: stats.hits; stats_counts.hits",
        ),
        ("outcomes s received 2", "received should be 2, and is 1\n  the account: received 1  aggregated 1"),
        ("outcomes s dropped some", "dropped should be above 0, and is 0"),
        ("outcomes s exactly", "aggregated should be 0, and is 1"),
        ("copies o delivered 0", "delivered should be 0, and is"),
        ("series hits counter 5", "`hits` should be 5, and is 0"),
        ("series hits gauge 5", "no such series fits `hits`; there are:"),
        ("series hits none", "0 series should fit `hits`, and 1 do: counter hits 0"),
        ("delete gauge hits", "there is no gauge `hits`"),
        ("close s c1", "no connection `c1`; open are: none"),
        ("frames s c1 a:1|c", "has no `unix-frames://`"),
        ("expect o packet a", "no packet `a` arrived; there arrived:"),
        ("stop\nsend s a:1|c", "only checks can follow `stop`"),
        ("seed 5", "`seed` stands before"),
        ("reload refused\nconfig sources.s = { type = \"statsd\" }", "should be refused, and is good"),
        ("reload refused C999\nconfig sources.s = 1", "refused, but not with C999"),
    ];
    for (step, want) in table {
        let failures = failures(&format!("send s hits:2|c\nadvance 10s\n{step}"));
        let found = failures.iter().any(|failure| failure.message.contains(want));
        // `count o 1 stats.*its` is right.
        assert!(found || (want == "1 that fit" && failures.is_empty()), "{step}: {failures:#?}");
    }
}

#[test]
fn failures_have_their_lines_and_the_flow_continues() {
    let lines: Vec<usize> =
        failures("send s a:1|c\nadvance 10s\nexpect o stats.a 9\nexpect o stats.a 0.1\nexpect o stats.b 1")
            .iter()
            .map(|failure| failure.line)
            .collect();
    assert_eq!(lines, [7, 8, 9], "the first point of a name is used up by the first expectation");
}

#[test]
fn mistakes_of_the_configuration_point_into_the_flow() {
    let flow = CONFIG.replace("from = [\"t\"]", "from = [\"tt\"]");
    let failures = run(&format!("{flow}send s a:1|c"), &no_files).expect_err("there is no `tt`");
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0].line, 4);
    assert!(failures[0].message.contains("--> the flow:4:"), "{}", failures[0].message);
    let failures = run("config file none.toml\nsend s a:1|c", &no_files).expect_err("there is no file");
    assert_eq!(failures[0].message, "cannot read `none.toml`: there is no file none.toml");
    let failures = run("send s a:1|c", &no_files).expect_err("no configuration");
    assert!(failures[0].message.contains("no `config`"));
    assert!(run("# nothing", &no_files).is_err());
}

#[test]
fn config_lines_with_full_paths_may_follow_a_table() {
    let flow = r#"
config   sources.s = { type = "statsd" }
config
  [transforms.t]
  type = "aggregate"
  from = ["s"]
config   outputs.o = { type = "graphite", from = ["t"], to = ["tcp://127.0.0.1:2003"] }
send s hits:1|c
advance 10s
expect o stats_counts.hits 1
"#;
    assert_eq!(run(flow, &no_files), Ok(()));
    let failures =
        run(&flow.replace("from = [\"s\"]", "from = [\"x\"]"), &no_files).expect_err("there is no `x`");
    assert_eq!(failures[0].line, 6, "{}", failures[0].message);
    assert!(failures[0].message.contains("--> the flow:6:11"), "{}", failures[0].message);
    assert!(failures[0].message.contains("6 |   from = [\"x\"]"), "{}", failures[0].message);
}

#[test]
fn configurations_are_read_from_files() {
    let read = |name: &str| match name {
        "pipeline.toml" => Ok(CONFIG.replace("config ", "")),
        "config.js" => Ok("{ graphiteHost: process.env.CARBON, graphitePort: 2003 }".into()),
        _ => no_files(name),
    };
    let steps = "advance 10s\nexpect o stats_counts.statsd.packets_received 0";
    assert_eq!(run(&format!("config file pipeline.toml\n{steps}"), &read), Ok(()));
    let steps = steps.replace("expect o", "expect graphite");
    assert_eq!(run(&format!("env CARBON carbon\nconfig statsd config.js\n{steps}"), &read), Ok(()));
}

#[test]
fn the_same_flow_gives_the_same_bytes_and_another_seed_the_same_points() {
    let text = |seed: u64| {
        format!(
            "{CONFIG}seed {seed}\nrepeat 200 send s a.{{n}}:{{n}}|c\nendpoint o down\nadvance 20s\nendpoint o up\nadvance 1m\n"
        )
    };
    let of = |seed| digest(&text(seed), &no_files).expect("it runs");
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2), "the order of a flush and the pauses depend on the seed");
}

#[test]
fn every_flow_of_the_repository_passes() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/flow");
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .expect("the flows are in the repository")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "flow"))
        .collect();
    files.sort();
    assert!(files.len() >= 32, "{} flows", files.len());
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|error| error.to_string());
    let mut failed = String::new();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file).expect("a flow is text");
        assert!(text.starts_with("# "), "{name} begins with what it shows");
        for Failure { line, message } in run(&text, &read).err().unwrap_or_default() {
            failed += &format!("{name}:{line}: {message}\n");
        }
    }
    assert!(failed.is_empty(), "\n{failed}");
}

#[test]
fn the_reference_has_every_word() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/flow-files.md");
    let reference = std::fs::read_to_string(path).expect("the reference is in the repository");
    for (word, _) in words::WORDS {
        assert!(reference.contains(&format!("| `{word}")), "{word}");
    }
    let plain = |word: &String| !word.contains('.');
    for word in figures::source_words().iter().chain(&figures::output_words()).filter(|word| plain(word)) {
        assert!(reference.contains(&format!("`{word}`")), "{word}");
    }
}

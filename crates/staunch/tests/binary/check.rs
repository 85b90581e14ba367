//! `check`, `import`, and the original's file run as it is.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::daemon::STAUNCH;
use crate::support::{Builder, FakeGraphite, udp};

fn staunch(folder: &Path, args: &[&str]) -> Output {
    Command::new(STAUNCH).args(args).current_dir(folder).output().expect("the binary starts")
}

fn folder_with(name: &str, text: &str) -> TempDir {
    let folder = TempDir::new().expect("a folder for the test");
    std::fs::write(folder.path().join(name), text).expect("it can be written");
    folder
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Ten mistakes: each of these words stands in a line that has one.
const MISTAKES: [&str; 10] = [
    "stop_timeot",
    "\"statds\"",
    "udp:/127",
    "max_connections = 0",
    "window = \"10 parsecs\"",
    "percentiles = [101]",
    "from = [\"nobody\"]",
    "to = [\"carbon:2003\"]",
    "when_full = \"panic\"",
    "listen = \"localhost:80\"",
];

const TEN_MISTAKES: &str = r#"
stop_timeot = "5s"

[sources.web]
type = "statds"

[sources.app]
type = "statsd"
listen = ["udp:/127.0.0.1:8125"]
max_connections = 0

[transforms.stats]
type = "aggregate"
from = ["app"]
window = "10 parsecs"
percentiles = [101]

[transforms.more]
type = "aggregate"
from = ["nobody"]

[outputs.carbon]
type = "graphite"
from = ["stats"]
to = ["carbon:2003"]
queue = { when_full = "panic" }

[http]
listen = "localhost:80"
"#;

#[test]
fn check_shows_ten_mistakes_at_once() {
    let folder = folder_with("bad.toml", TEN_MISTAKES);
    let output = staunch(folder.path(), &["check", "bad.toml"]);
    let logged = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{logged}");
    assert!(output.stdout.is_empty(), "stdout is for data");
    for (at, line) in TEN_MISTAKES.lines().enumerate() {
        if MISTAKES.iter().any(|mistake| line.contains(mistake)) {
            assert!(
                logged.contains(&format!("--> bad.toml:{}:", at + 1)),
                "line {}: {line}\n{logged}",
                at + 1
            );
        }
    }
    assert_eq!(logged.lines().filter(|line| line.starts_with("error[")).count(), 10, "{logged}");
    assert!(logged.contains("10 errors"), "{logged}");

    let run = staunch(folder.path(), &["run", "bad.toml"]);
    assert_eq!(run.status.code(), Some(1), "run says the same and starts nothing");
    assert_eq!(stderr(&run), logged);
}

#[test]
fn check_speaks_json() {
    let folder = folder_with("bad.toml", TEN_MISTAKES);
    let output = staunch(folder.path(), &["check", "--json", "bad.toml"]);
    assert_eq!(output.status.code(), Some(1));
    let json: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let text = json.to_string();
    assert!(MISTAKES.len() <= text.matches("\"line\"").count(), "{text}");
    assert!(output.stderr.is_empty(), "{}", stderr(&output));
}

#[test]
fn check_has_three_exit_codes() {
    let good = "[sources.app]\ntype = \"statsd\"\n[outputs.copy]\ntype = \"udp\"\nfrom = [\"app\"]\nto = [\"udp://127.0.0.1:9\"]\n";
    let folder = folder_with("good.toml", good);
    let output = staunch(folder.path(), &["check", "good.toml"]);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
    let missing = staunch(folder.path(), &["check", "missing.toml"]);
    assert_eq!(missing.status.code(), Some(2), "it could not check");
    assert!(stderr(&missing).contains("missing.toml"), "{}", stderr(&missing));
    std::fs::create_dir(folder.path().join("empty")).expect("a folder");
    let unreadable = staunch(folder.path(), &["check", "empty"]);
    assert_eq!(unreadable.status.code(), Some(2), "{}", stderr(&unreadable));
    std::fs::write(folder.path().join("bytes.toml"), [0xff, 0xfe]).expect("it can be written");
    assert_eq!(staunch(folder.path(), &["check", "bytes.toml"]).status.code(), Some(2));
}

#[test]
fn the_kind_of_a_file_follows_from_its_content() {
    let native = "[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\"]\n";
    let relay = "cluster a forward 127.0.0.1:1;\nmatch * send to a;\n";
    let folder = folder_with("demo.conf", native);
    let store = |file: &str| {
        format!(
            "sources.g = {{ type = \"graphite\", listen = [\"tcp://127.0.0.1:0\"] }}\n[outputs.store]\nschemas_file = \"{file}\"\n\
             type = \"whisper\"\nfrom = [\"g\"]\n"
        )
    };
    for (name, text) in [
        ("relay", relay),
        ("carbon.conf", "[cache]\nLINE_RECEIVER_INTERFACE = 0.0.0.0\n"),
        ("no-rules.conf", &store("nofile.conf")),
        ("bad-rules.conf", &store("bad-schemas.conf")),
        ("two-mistakes.conf", &(store("nofile.conf") + "[outputs.other]\ntype = \"udq\"\n")),
        ("relay-rules.conf", "# carbon's example has comments only\n"),
        ("bad-schemas.conf", "[all]\npattern = .*\nretentions = 60:never\n"),
        ("storage-schemas.conf", "[all]\npattern = .*\nretentions = 60:90d\n"),
        ("local.js", "{ port: 8125 }"),
        ("http.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
    ] {
        std::fs::write(folder.path().join(name), text).expect("it can be written");
    }
    std::fs::write(folder.path().join("packed"), b"\x1f\x8b\x08\x00").expect("it can be written");
    for (args, code, logged) in [
        (&["check", "demo.conf"][..], 0, ""),
        (&["check", "relay"], 0, ""),
        (&["check", "carbon.conf"], 2, "staunch import carbon carbon.conf --section cache"),
        (
            &["run", "relay"],
            2,
            "relay is a configuration of carbon-c-relay: run it with `staunch relay -f relay`",
        ),
        (&["queue", "ls", "--config", "relay"], 2, "no data directory"),
        (&["check", "storage-schemas.conf"], 2, "`staunch import carbon carbon.conf --section cache`"),
        (&["check", "http.pem"], 2, "tls = { cert = \"http.pem\" }"),
        (&["check", "."], 2, "there is no file *.toml"),
        (&["check", "packed"], 2, "it is packed with gzip"),
        (&["import", "statsd", "relay"], 1, "`staunch import relay relay`"),
        (&["import", "relay", "local.js"], 1, "`staunch import statsd local.js`"),
        (&["import", "carbon", "relay"], 1, "`staunch import relay relay`"),
        (&["import", "carbon", "relay"], 1, "expected a carbon.conf"),
        (&["import", "carbon", "demo.conf"], 1, "demo.conf does not look like one"),
        (&["check", "no-rules.conf"], 1, "--> no-rules.conf:3:"),
        (&["check", "no-rules.conf"], 1, "`schemas_file` of output `store`: cannot read nofile.conf"),
        (&["check", "bad-rules.conf"], 1, "bad-schemas.conf:3: "),
        (&["check", "two-mistakes.conf"], 1, "`schemas_file` of output `store`: cannot read nofile.conf"),
        (&["check", "two-mistakes.conf"], 1, "--> two-mistakes.conf:7:"),
        (&["check", "relay-rules.conf"], 2, "`staunch import carbon carbon.conf --section relay`"),
        (&["check", "demo.conf", "relay"], 0, ""),
        (&["check", "demo.conf", "nosuch", "relay"], 2, "cannot read nosuch"),
    ] {
        let output = staunch(folder.path(), args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(logged), "{args:?}: {}", stderr(&output));
    }
}

/// Files of carbon in a folder.
fn carbons_files() -> TempDir {
    let folder = folder_with("carbon.conf", "[cache]\nLINE_RECEIVER_INTERFACE = 0.0.0.0\n");
    for (name, text) in [
        ("several.conf", "[cache]\nUSER =\n[cache:b]\nUSER =\n[relay]\nUSER =\n"),
        ("user.conf", "[cache]\nUSER = carbon\nMIN_TIMESTAMP_RESOLUTION = 1\n"),
        ("lost.conf", "[cache]\nMIN_TIMESTAMP_RESOLUTION = 10\n"),
        ("typo.conf", "[cache]\nLINE_RECIEVER_PORT = 1\n"),
        ("rules/carbon.conf", "[cache]\nUSER =\n"),
        ("rules/storage-schemas.conf", "[a]\npattern = a\nretentions = 10s:6h,15s:7d\n"),
        ("none/carbon.conf", "[cache]\nUSER =\n"),
        ("aggregation-rules.conf", "all (60) = sum *.hits\n"),
        ("storage-schemas.conf", "[all]\npattern = .*\nretentions = 60:90d\n"),
    ] {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        std::fs::write(path, text).expect("it can be written");
    }
    folder
}

#[test]
fn imports_of_carbon_name_other_daemons_and_what_is_missing() {
    let folder = carbons_files();
    for (args, code, logged) in [
        (
            &["import", "carbon", "carbon.conf", "--section", "cache"][..],
            0,
            "[cache] listens on every interface, 0.0.0.0: PICKLE_RECEIVER_INTERFACE and CACHE_QUERY_INTERFACE are not set",
        ),
        (&["import", "carbon", "carbon.conf"], 0, "listens on every interface"),
        (
            &["import", "carbon", "several.conf"],
            2,
            "several.conf has several daemons: choose one with `--section cache`, `--section cache:b` or `--section relay`",
        ),
        (
            &["import", "carbon", "several.conf", "--section", "cache:b"],
            0,
            "warning[I019]: [cache:b] and [cache] write to the same files, in /opt/graphite/storage/whisper, without locks",
        ),
        (
            &["import", "carbon", "several.conf", "--section", "cache"],
            0,
            "\nnote: only [cache] was imported; [cache:b] and [relay] are other daemons",
        ),
        (&["import", "carbon", "user.conf"], 0, "warning[I007]: USER has no effect here"),
        (&["import", "carbon", "lost.conf"], 1, "some settings or rules of the original are not in it"),
        (&["import", "carbon", "typo.conf"], 1, "some settings or rules of the original are not in it"),
        (
            &["import", "carbon", "rules/carbon.conf"],
            1,
            "some settings or rules of the original are not in it",
        ),
        (
            &["import", "carbon", "rules/carbon.conf"],
            1,
            "warning[I018]: section `a` is skipped: 15s is not a multiple of 10s (archives `10s:6h` and `15s:7d`)",
        ),
        (
            &["import", "carbon", "none/carbon.conf"],
            1,
            "error[I013]: cannot read none/storage-schemas.conf: No such file or directory (os error 2)",
        ),
        (&["import", "carbon", "rules/"], 2, "write rules/FILE"),
        (&["check", "aggregation-rules.conf"], 2, "`staunch import carbon carbon.conf --section aggregator`"),
        (&["check", "several.conf"], 2, "its sections are cache, cache:b, relay"),
    ] {
        let output = staunch(folder.path(), args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(logged), "{args:?}: {}", stderr(&output));
    }
}

/// Runs `check` with a text on standard input.
fn checked_stdin(text: &str) -> Output {
    use std::io::Write;
    use std::process::Stdio;
    let mut child = Command::new(STAUNCH)
        .args(["check", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it is read");
    child.wait_with_output().expect("it ends")
}

#[test]
fn standard_input_is_checked_as_what_its_text_is() {
    for (text, want) in [
        ("sources.app = { type = \"statsd\" }", "<stdin>: good (native config)"),
        ("sources:\n  app: { type: statsd }\n", "<stdin>: good (native config)"),
        ("cluster c forward 127.0.0.1:2003;\nmatch * send to c;\n", "-: good (relay.conf of carbon-c-relay)"),
        ("{ port: 8125 }", "<stdin>: good (config of a StatsD)"),
    ] {
        let output = checked_stdin(text);
        let shown = String::from_utf8_lossy(&output.stdout);
        assert!(shown.starts_with(want), "{text}: {shown}{}", stderr(&output));
    }
    let output = checked_stdin("sources.app = { type = \"statds\" }");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("<stdin>:1:24") && stderr(&output).contains("read as: native config"));
}

#[test]
fn files_and_folders_are_one_config_with_variables() {
    let base =
        "include = \"more.yaml\"\n[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:${PORT}\"]\n";
    let folder = folder_with("base.toml", base);
    let write =
        |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("it can be written");
    write("more.yaml", "transforms:\n  stats: { type: aggregate, from: [app] }\n");
    std::fs::create_dir(folder.path().join("conf.d")).expect("a folder");
    write(
        "conf.d/out.toml",
        "[outputs.o]\ntype = \"graphite\"\nfrom = [\"stats\"]\nto = [\"tcp://10.0.0.5:2003\"]\nglobal_prefix = \"${file:word}\"\n",
    );
    write("word", "hunter2\n");
    let with_port = |args: &[&str], port: Option<&str>| {
        let mut command = Command::new(STAUNCH);
        command.args(args).current_dir(folder.path()).env_remove("PORT");
        port.map(|port| command.env("PORT", port));
        command.output().expect("the binary starts")
    };
    let parts = ["-c", "base.toml", "-c", "conf.d"];
    for verb in ["check", "run"] {
        let printed = with_port(&[&[verb, "--print"], &parts[..]].concat(), Some("18125"));
        let text = String::from_utf8_lossy(&printed.stdout);
        assert!(printed.status.success(), "{}", stderr(&printed));
        for part in ["udp://127.0.0.1:18125", "[outputs.o]", "[transforms.stats]", "global_prefix = \"***\""]
        {
            assert!(text.contains(part), "{verb} {part}: {text}");
        }
    }
    let missing = with_port(&[&["check"], &parts[..]].concat(), None);
    assert_eq!(missing.status.code(), Some(1));
    assert!(
        stderr(&missing).contains("error[C039]: the variable `PORT` has no value\n --> base.toml:4:11"),
        "{}",
        stderr(&missing)
    );
    let wrong = with_port(&[&["check", "--json"], &parts[..]].concat(), Some("no-such-port"));
    assert!(!String::from_utf8_lossy(&wrong.stdout).contains("no-such-port"), "values are not shown");
    write("conf.d/twice.yaml", "\noutputs:\n  o: { type: console, from: [app] }\n");
    let twice = with_port(&[&["check"], &parts[..]].concat(), Some("18125"));
    let text = stderr(&twice);
    assert!(text.contains("twice.yaml:3:3") && text.contains("out.toml:1"), "{text}");
}

#[test]
fn a_check_lists_what_would_be_opened_by_each_of_several_files() {
    let good = "[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:8125\"]\n[outputs.copy]\ntype = \"udp\"\n\
                from = [\"app\"]\nto = [\"udp://10.0.0.5:8125\"]\n[http]\nlisten = \"127.0.0.1:8681\"\n";
    let folder = folder_with("good.toml", good);
    let bad = "[sources.app]\ntype = \"statsd\"\nx = 1\n";
    std::fs::write(folder.path().join("bad.toml"), bad).expect("it can be written");
    let output = staunch(folder.path(), &["check", "good.toml", "bad.toml"]);
    let logged = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{logged}");
    assert!(logged.contains("good.toml: good") && !logged.contains("bad.toml: good"), "{logged}");
    for part in ["udp://127.0.0.1:8125", "http://127.0.0.1:8681", "udp://10.0.0.5:8125"] {
        assert!(logged.contains(part), "{part}: {logged}");
    }
    let output = staunch(folder.path(), &["check", "--json", "good.toml", "bad.toml"]);
    let json: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!((&json[0]["good"], &json[1]["good"]), (&true.into(), &false.into()), "{json}");
    assert_eq!(json[0]["opens"]["sends"][0]["at"], "udp://10.0.0.5:8125");
}

#[test]
fn a_check_warns_of_queues_that_are_larger_than_the_disk() {
    let to: Vec<String> = (1..=100).map(|at| format!("\"tcp://10.0.0.{at}:2003\"")).collect();
    let text = format!(
        "[sources.in]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:2003\"]\n[outputs.o]\ntype = \"graphite\"\n\
         from = [\"in\"]\nto = [{}]\nqueue = {{ kind = \"disk\", max_bytes = \"1TiB\" }}\n",
        to.join(", ")
    );
    let folder = folder_with("c.toml", &text);
    let output = staunch(folder.path(), &["check", "c.toml"]);
    let logged = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{logged}");
    for part in ["warning[C037]", "may take 100 TiB", "`o/10.0.0.1:2003`", "the disk of ./staunch-data has"] {
        assert!(logged.contains(part), "{part}: {logged}");
    }
}

/// A file as they are found in the field; port 0 would mean 8125 there, so a free one is named.
fn node_config(port: u16, graphite: u16) -> String {
    format!(
        "// our statsd\n{{\n  graphiteHost: '127.0.0.1'\n, graphitePort: {graphite}\n, port: {port}\n\
         , address: '127.0.0.1'\n, mgmt_address: '127.0.0.1'\n, flushInterval: 1000\n\
         , percentThreshold: [50, 90]\n, backends: [ \"./backends/graphite\" ]\n}}\n"
    )
}

/// A port of neither the ephemeral range nor a test beside this one.
fn free_udp_port() -> u16 {
    let begin = 20_000 + (std::process::id() % 10_000) as u16;
    let free = |port: &u16| std::net::UdpSocket::bind(("127.0.0.1", *port)).is_ok();
    (begin..begin + 1000).find(free).expect("one of a thousand ports is free")
}

#[test]
fn a_node_config_is_imported_and_what_comes_out_passes_check() {
    let folder = folder_with("config.js", &node_config(8125, 2003));
    let imported = staunch(folder.path(), &["import", "statsd", "config.js"]);
    assert_eq!(imported.status.code(), Some(0), "{}", stderr(&imported));
    std::fs::write(folder.path().join("native.toml"), &imported.stdout).expect("it can be written");
    let checked = staunch(folder.path(), &["check", "native.toml"]);
    assert_eq!(checked.status.code(), Some(0), "{}", stderr(&checked));
    assert_eq!(stderr(&checked), "");

    // A warning that loses nothing.
    std::fs::write(
        folder.path().join("old.js"),
        "{ port: 8125, graphite: { legacyNamespace: true }, legacyNamespace: false }",
    )
    .expect("it can be written");
    let old = staunch(folder.path(), &["import", "statsd", "old.js"]);
    assert!(stderr(&old).contains("I007"), "{}", stderr(&old));
    assert_eq!(old.status.code(), Some(0), "{}", stderr(&old));

    std::fs::write(folder.path().join("odd.js"), "{ port: 8125, flushInteger: 5 }")
        .expect("it can be written");
    let odd = staunch(folder.path(), &["import", "statsd", "odd.js"]);
    assert_eq!(odd.status.code(), Some(0), "the original does not know it either: {}", stderr(&odd));
    assert!(
        stderr(&odd).contains("flushInteger") && stderr(&odd).contains("flushInterval"),
        "{}",
        stderr(&odd)
    );
    assert!(!odd.stdout.is_empty(), "the rest is there");

    std::fs::write(folder.path().join("title.js"), "{ title: 'x' }").expect("it can be written");
    let title = staunch(folder.path(), &["import", "statsd", "title.js"]);
    assert_eq!(title.status.code(), Some(1), "a setting was not carried over: {}", stderr(&title));
    let printed = String::from_utf8_lossy(&title.stdout);
    assert!(printed.contains("changing it changes no behaviour.\n[management.config]\n"), "{printed}");
}

#[test]
fn statsd_runs_a_node_config_as_it_is() {
    let graphite = FakeGraphite::new();
    let port = free_udp_port();
    let mut daemon = Builder::node(&node_config(port, graphite.at().port())).start();
    let socket = udp(([127, 0, 0, 1], port).into());
    socket
        .send(b"gorets:1|c\ngorets:2|c|@0.5\nglork:320|ms\nglork:100|ms\ngaugor:333|g\nuniques:765|s\nbad")
        .expect("it is there");
    let source = daemon.json("/api/v1/accounts")["sources"][0]["name"].as_str().expect("a name").to_owned();
    daemon.wait_source(&source, "received", 7);
    daemon.stop();
    assert_eq!(graphite.total("stats_counts.gorets"), 5.0);
    assert_eq!(graphite.total("stats_counts.statsd.bad_lines_seen"), 1.0);
    assert_eq!(graphite.total("stats_counts.statsd.packets_received"), 1.0);
    assert_eq!(graphite.total("stats_counts.statsd.metrics_received"), 7.0);
    let last = |name: &str| graphite.of(name).last().map(|point| point.value);
    assert_eq!(last("stats.gauges.gaugor"), Some(333.0));
    assert_eq!(graphite.total("stats.sets.uniques.count"), 1.0);
    assert_eq!(graphite.total("stats.timers.glork.sum"), 420.0);
    assert_eq!(graphite.total("stats.timers.glork.upper_50"), 100.0);
}

const CLUSTER: &str = r#"
[sources.app]
type = "statsd"
listen = ["udp://127.0.0.1:0"]

[outputs.copy]
type = "udp"
from = ["app"]
to = ["udp://10.0.0.9:8125"]

[outputs.nodes]
type = "udp"
from = ["app"]
to = ["udp://10.0.0.1:8125", "udp://10.0.0.2:8125", "udp://10.0.0.3:8125"]
sharding = "statsd-node"
"#;

#[cfg(unix)]
#[test]
fn a_path_that_cannot_be_a_folder_is_an_error_at_its_place() {
    let folder = folder_with("file", "");
    let path = folder.path().display();
    let config = |data_dir: &str, store: &str| {
        format!(
            "data_dir = \"{data_dir}\"\n[sources.g]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
             [outputs.store]\ntype = \"whisper\"\nfrom = [\"g\"]\npath = \"{store}\"\n"
        )
    };
    for (data_dir, store, want) in [
        (format!("{path}/new/data"), format!("{path}/new/store"), None),
        (format!("{path}/file"), format!("{path}/new"), Some("--> c.toml:1:12")),
        (format!("{path}/file/data"), format!("{path}/new"), Some("--> c.toml:1:12")),
        (format!("{path}/new"), format!("{path}/file"), Some("--> c.toml:8:8")),
    ] {
        std::fs::write(folder.path().join("c.toml"), config(&data_dir, &store)).expect("the folder is there");
        let output = staunch(folder.path(), &["check", "c.toml"]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(i32::from(want.is_some())), "{said}");
        let is_said = want.is_none_or(|want| said.contains(want) && said.contains("error[C043]"));
        assert!(is_said, "{data_dir} {store}: {said}");
    }
}

#[test]
fn check_shows_copies_and_owners_of_keys() {
    let folder = folder_with("cluster.toml", CLUSTER);
    std::fs::write(folder.path().join("keys"), "foo\nusers.online:1|c\n").expect("it can be written");
    let output = staunch(folder.path(), &["check", "cluster.toml"]);
    let logged = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(logged.starts_with("cluster.toml: good (native config)\nlistens at\n"), "{logged}");
    assert!(logged.contains("\nsource app: 2 copies of each packet\n"), "{logged}");
    assert!(logged.contains("each line to one of 3 endpoints (statsd-node)"), "{logged}");
    // Spec of the ring: its table for three nodes.
    let output = staunch(folder.path(), &["check", "cluster.toml", "--keys", "keys"]);
    let logged = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(logged, "foo\tnodes/10.0.0.2:8125\nusers.online:1|c\tnodes/10.0.0.1:8125\n");
    let output = staunch(folder.path(), &["check", "cluster.toml", "--json", "--keys", "keys"]);
    let json: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(json["good"], true);
    assert_eq!(json["sources"][0]["copies"], 2);
    assert_eq!(json["keys"][0]["owners"]["nodes"], "nodes/10.0.0.2:8125");
    let none = staunch(folder.path(), &["check", "cluster.toml", "--keys", "missing"]);
    assert_eq!(none.status.code(), Some(2), "{}", stderr(&none));
}

#[test]
fn a_command_line_prints_as_a_file_that_passes_check() {
    let folder = TempDir::new().expect("a folder for the test");
    let line = |more: &[&str]| {
        let source = ["fanout", "--source", "127.0.0.1:18125"];
        staunch(folder.path(), &[&source, more].concat())
    };
    let output =
        line(&["--target", "10.0.0.1:8125,tcp://10.0.0.2:8125", "--target", "unixgram:///s", "--print"]);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
    std::fs::write(folder.path().join("printed.toml"), &output.stdout).expect("it can be written");
    let checked = staunch(folder.path(), &["check", "printed.toml"]);
    let logged = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(logged.contains("3 copies of each packet"), "{logged}{}", stderr(&checked));
    let to_itself = line(&["--target", "localhost:18125"]);
    assert_eq!(to_itself.status.code(), Some(1));
    assert!(stderr(&to_itself).contains("C015"), "{}", stderr(&to_itself));
}

#[test]
fn a_proxys_config_is_imported_and_what_comes_out_passes_check() {
    let node = "{host: '127.0.0.1', port: 18127, adminport: 18128}";
    let folder =
        folder_with("proxyConfig.js", &format!("{{nodes: [{node}], port: 18125, mgmt_port: 18126}}"));
    let imported = staunch(folder.path(), &["import", "statsd-proxy", "proxyConfig.js"]);
    assert_eq!((imported.status.code(), stderr(&imported)), (Some(0), String::new()));
    std::fs::write(folder.path().join("printed.toml"), &imported.stdout).expect("it can be written");
    for file in ["printed.toml", "proxyConfig.js"] {
        let checked = staunch(folder.path(), &["check", file]);
        let logged = String::from_utf8_lossy(&checked.stdout).into_owned();
        assert!(logged.contains("each line to one of 1 endpoint"), "{file}: {logged}{}", stderr(&checked));
    }
}

#[test]
fn of_very_many_mistakes_the_first_are_shown() {
    let mut text = String::from("[sources.a]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\"]\n");
    (0..1_003).for_each(|number| text.push_str(&format!("no_option_{number} = 1\n")));
    let folder = folder_with("many.toml", &text);
    let output = staunch(folder.path(), &["check", "many.toml"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(said.matches("staunch explain").count(), 1_000);
    let output = staunch(folder.path(), &["check", "many.toml", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let json: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(json["diagnostics"].as_array().map(Vec::len), Some(1_000));
    let (errors, warnings) = (json["errors"].as_u64(), json["warnings"].as_u64());
    let all = errors.zip(warnings).map(|(errors, warnings)| errors + warnings).expect("both are printed");
    assert!(all >= 1_003, "{all}");
    assert!(said.contains(&format!("note: {} more are not shown", all - 1_000)), "{}", said.len());
    assert!(said.contains(&format!("error: {} errors", errors.unwrap_or(0))), "{}", said.len());
}

#[test]
fn check_says_what_is_open_to_a_network_and_refuses_none_of_it() {
    // The original listens on all addresses; so does what is imported.
    let folder = folder_with("config.js", "{ port: 8125, backends: [] }");
    let path = folder.path();
    let checked = staunch(path, &["check", "config.js"]);
    let said = stderr(&checked);
    assert_eq!(checked.status.code(), Some(0), "{said}");
    assert!(said.contains("warning[C034]: the management port is open to a network"), "{said}");
    assert!(said.contains("mgmt_address: '127.0.0.1'"), "{said}");
    let output = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(output.contains("\nopen to a network and not encrypted (docs/security.md):\n"), "{output}");
    assert!(output.contains("udp://0.0.0.0:8125"), "{output}");
    let imported = staunch(path, &["import", "statsd", "config.js"]);
    assert_eq!((imported.status.code(), stderr(&imported)), (Some(0), String::new()), "all lines are there");
    std::fs::write(path.join("native.toml"), &imported.stdout).expect("it can be written");
    let native = staunch(path, &["check", "native.toml"]);
    assert_eq!(native.status.code(), Some(0));
    assert!(stderr(&native).contains("native.toml:"), "{}", stderr(&native));
    let json: Value = serde_json::from_slice(&staunch(path, &["check", "--json", "native.toml"]).stdout)
        .expect("it is JSON");
    let codes: Vec<_> =
        json["diagnostics"].as_array().expect("a list").iter().map(|each| &each["code"]).collect();
    assert_eq!(codes, ["C017", "C034"], "{json}");
    assert_eq!(json["open_and_not_encrypted"][0]["at"], "udp://0.0.0.0:8125", "{json}");
}

#[cfg(unix)]
#[test]
fn a_token_that_cannot_be_used_is_named_with_its_option_and_why() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder_with(
        "staunch.toml",
        "[sources.app]\ntype = \"statsd\"\n[outputs.copy]\ntype = \"udp\"\nfrom = [\"app\"]\nto = [\"udp://127.0.0.1:9\"]\n\
         [http]\ntoken_file = \"token\"\n",
    );
    let token = folder.path().join("token");
    let checked = |text: Option<&str>, mode: u32| {
        if let Some(text) = text {
            std::fs::write(&token, text).expect("it can be written");
            std::fs::set_permissions(&token, std::fs::Permissions::from_mode(mode)).expect("it is ours");
        }
        let output = staunch(folder.path(), &["check", "staunch.toml"]);
        (output.status.code(), stderr(&output))
    };
    let table = [
        (None, 0, Some(1), "check the path"),
        (Some(""), 0o600, Some(1), "the file is empty"),
        (Some("short"), 0o600, Some(1), "the token is too short: 16 to 512 characters"),
        (Some("0123456789abcdef"), 0o600, Some(0), ""),
        (Some("0123456789abcdef"), 0o640, Some(0), "warning[C035]: "),
    ];
    for (text, mode, code, part) in table {
        let (found, said) = checked(text, mode);
        assert_eq!(found, code, "{text:?}: {said}");
        assert!(said.contains(part), "{text:?}: {said}");
        assert_eq!(said.contains("`http.token_file` cannot be used"), code == Some(1), "{text:?}: {said}");
        assert_eq!(said.contains("--> staunch.toml:8"), !part.is_empty(), "{text:?}: {said}");
    }
}

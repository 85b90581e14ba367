//! `staunch relay` on the command line: carbon-c-relay's names, flags, exit codes and test mode, and `--explain`.
//!
//! Not here: what statements do with names (`process`, `compat/relay.py`); the whole output beside the original's
//! (`compat/relay_test_mode.py`).

use std::io::Write;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::daemon::STAUNCH;
use crate::support::{Builder, wait_for};

const CONF: &str = "\
cluster ring fnv1a_ch replication 2 10.0.0.1:2003=a 10.0.0.2:2003=b 10.0.0.3:2003=c;
cluster spare failover 10.0.1.1 10.0.1.2;
include parts/*.conf;
match ^app\\. send to ring stop;
aggregate ^web\\.([a-z]+) every 10 seconds expire after 30 seconds compute sum write to sums.\\1 send to spare;
";

struct Answer {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Runs a program of that name: `staunch`, or one of the originals'.
fn run(folder: &Path, name: &str, args: &[&str], stdin: &str) -> Answer {
    let program = folder.join(name);
    if !program.exists() {
        std::os::unix::fs::symlink(STAUNCH, &program).expect("a link to the binary");
    }
    let mut child = Command::new(program)
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    // One that reads no names closes it: no matter.
    let _unread = child.stdin.take().expect("a pipe").write_all(stdin.as_bytes());
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Answer { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

fn folder() -> TempDir {
    let folder = TempDir::new().expect("a folder for the test");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("it is in the folder")).expect("a folder");
        std::fs::write(path, text).expect("it can be written");
    };
    write("relay.conf", CONF);
    write("parts/b.conf", "match second send to spare;");
    write("parts/a.conf", "match first send to spare;");
    write("parts/.hidden.conf", "this is no statement");
    write("parts/a.txt", "nor is this");
    folder
}

#[test]
fn called_by_each_name_with_any_flags_it_is_carbon_c_relays_command_line() {
    let folder = folder();
    let table: [(&str, &[&str], i32); 12] = [
        ("staunch", &["relay", "-tt", "-f", "relay.conf"], 0),
        ("staunch", &["c-relay", "-ttfrelay.conf"], 0),
        ("carbon-c-relay", &["-p2003", "-tt", "-f", "relay.conf", "-O", "-1", "-Hweb1"], 0),
        ("relay", &["-t", "-t", "-frelay.conf", "-c", "-_:"], 0),
        ("relay", &["-tt", "-f", "parts/[ab].conf", "-f", "relay.conf"], 0),
        ("relay", &["-v"], 0),
        ("relay", &["-h"], 0),
        ("relay", &["-Z"], 1),
        ("relay", &[], 1),
        ("relay", &["-f"], 1),
        ("relay", &["-tt", "-f", "nowhere.conf"], 1),
        ("relay", &["-tt", "-f", "relay.conf", "-p", "0"], 1),
    ];
    for (name, args, code) in table {
        let answer = run(folder.path(), name, args, "");
        assert_eq!(answer.code, Some(code), "{name} {args:?}: {}{}", answer.stdout, answer.stderr);
        let usage = answer.stdout.contains("Usage: staunch relay -f FILE");
        let wrong_words = !args.contains(&"-tt") || args.contains(&"-p");
        let wants = args == ["-h"] || (code == 1 && wrong_words);
        assert_eq!(usage, wants, "{name} {args:?}: {}", answer.stdout);
    }
    let version = run(folder.path(), "relay", &["-v"], "").stdout;
    for word in ["carbon-c-relay v", "gzip", "lz4", "snappy", "ssl", "regular expressions library"] {
        assert!(version.contains(word), "{version}");
    }
    let wrong = run(folder.path(), "relay", &["-p", "x", "-w", "0", "-f", "relay.conf"], "").stderr;
    assert!(wrong.contains("error: port needs to be a number >0\n  hint: -p takes"), "{wrong}");
    assert!(wrong.contains("error: workers needs to be a number >0"), "{wrong}");
}

#[test]
fn test_mode_prints_what_the_original_prints() {
    let folder = folder();
    let names = "app.one 1 2\r\n\nweb.load 3 4\nfirst.of.all\nother;tag=x 5 6\n";
    let answer = run(folder.path(), "relay", &["-t", "-H", "web1.example", "-f", "relay.conf"], names);
    assert_eq!((answer.code, answer.stderr.as_str()), (Some(0), ""));
    let (first, rest) = answer.stdout.split_once('\n').expect("lines");
    assert!(first.contains("] starting carbon-c-relay v") && first.contains(", pid="), "{first}");
    let want = "\
cluster spare
    failover
        10.0.1.1:2003
        10.0.1.2:2003
    ;

match first
    send to spare
    ;
match second
    send to spare
    ;
match ^app\\.
    send to ring
    stop
    ;
aggregate ^web\\.([a-z]+)
    every 10 seconds
    expire after 30 seconds
    timestamp at end of bucket
    compute sum write to
        sums.\\1
    send to spare
    ;

match
    ^app\\. [strncmp: app.]
    -> app.one
    fnv1a_ch(ring)
        10.0.0.2:2003
        10.0.0.3:2003
    stop
aggregation
    ^web\\.([a-z]+) (regex) -> web.load
    sum(sums.\\1) -> sums.load 3 4
    failover(spare)
match
    first [strstr: first]
    -> first.of.all
    failover(spare)
        10.0.1.1:2003
nothing matched other;tag=x
";
    let at = rest.find("cluster spare").expect("the configuration");
    assert_eq!(&rest[at..], want);
    for row in [
        "    relay hostname = web1.example\n",
        "    configuration = relay.conf\n\nparsed configuration follows:\n",
    ] {
        assert!(rest.contains(row), "{rest}");
    }
    let debug = run(folder.path(), "relay", &["-td", "-f", "relay.conf"], "app.one\n").stdout;
    for part in [
        "# hash ring for ring follows\n",
        "@10.0.0.1:2003=a",
        "\nmatch ^_aggregator_stub_0x",
        "        hash_pos(",
    ] {
        assert!(debug.contains(part), "{part}: {debug}");
    }
}

#[test]
fn mistakes_are_reported_in_the_originals_words_and_in_ours() {
    let folder = folder();
    let text = "match first\n\tsend to nowhere;\ncluster a forward 10.0.0.1:x;\n";
    std::fs::write(folder.path().join("bad.conf"), text).expect("it can be written");
    let original = "\
bad.conf:2:9: unknown cluster
\tsend to nowhere;
\t        ^^^^^^^
failed to read configuration 'bad.conf'
";
    let unstamped = |stderr: &str| {
        let lines = stderr.lines().map(|line| line.split_once("] ").map_or(line, |(_, line)| line));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    let answer = run(folder.path(), "relay", &["-t", "-f", "bad.conf"], "first\n");
    assert_eq!((answer.code, unstamped(&answer.stderr).as_str()), (Some(1), original));
    assert!(answer.stdout.ends_with("    configuration = bad.conf\n\n"), "{}", answer.stdout);
    let all = run(folder.path(), "relay", &["-tt", "-f", "bad.conf"], "");
    assert_eq!((all.code, all.stdout.as_str()), (Some(1), ""));
    assert!(all.stderr.contains("bad.conf:3:") && all.stderr.contains("2 errors"), "{}", all.stderr);
    assert!(unstamped(&all.stderr).ends_with(original), "{}", all.stderr);
}

#[test]
fn the_way_of_a_name_is_explained_before_anything_runs() {
    let folder = folder();
    let args = ["-f", "relay.conf", "--explain", "web.load 1 2", "--explain", "app.one"];
    let answer = run(folder.path(), "relay", &args, "");
    let want = "\
web.load 1 2
relay.conf:5: aggregate ^web\\.([a-z]+)
    counts in sums.load
      sum of 10 s, emitted after 30 s, to spare
= counts in 1 result

app.one
relay.conf:4: match ^app\\.  (begins)
    to ring (fnv1a_ch)
      key app.one at 29819
      -> 10.0.0.2:2003  owns it
      -> 10.0.0.3:2003  owns it
    stop: no later rule is looked at
= 2 copies
";
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(0), want));
    let json = run(folder.path(), "relay", &["-f", "relay.conf", "--json", "--explain", "first"], "").stdout;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json[0]["rules"][0]["at"], "parts/a.conf:1");
    assert_eq!(json[0]["rules"][0]["sent"][0]["to"][0]["endpoint"], "10.0.1.1:2003");
}

#[test]
fn a_running_relay_explains_names_too() {
    let conf = "cluster pair any_of 127.0.0.1:1 127.0.0.1:2;\nmatch ^a\\. send to pair stop;\nlisten type linemode relay.sock proto unix;\n";
    let daemon = Builder::relay(conf).start();
    let page = daemon.json("/api/v1/relay/explain?name=a.b%201%202");
    assert_eq!((&page["name"], &page["rest"], &page["copies"]), (&"a.b".into(), &"1 2".into(), &1.into()));
    assert_eq!(page["rules"][0]["at"], "rule 1");
    assert_eq!(page["rules"][0]["sent"][0]["cluster"], "pair");
    for (query, status) in [
        ("", 400),
        ("?name=", 400),
        ("?name=a&relay=none", 404),
        ("?name=a&x=1", 400),
        ("?name=a&relay=relay", 200),
    ] {
        assert_eq!(daemon.get(&format!("/api/v1/relay/explain{query}")).status, status, "{query}");
    }
}

#[test]
fn questions_whose_client_has_gone_leave_no_work_behind() {
    let rule =
        |most: usize| format!("match [a-z]{{1,{most}}}[0-9]{{2}}[a-y]\\.[0-9] send to blackhole stop;\n");
    let conf = (1..=40).map(rule).collect::<String>()
        + "cluster spare forward 127.0.0.1:1;\nmatch ^a send to spare;\n\
           listen type linemode relay.sock proto unix;\n";
    let daemon = Builder::relay(&conf).start();
    let threads = || std::fs::read_dir(format!("/proc/{}/task", daemon.pid())).expect("it lives").count();
    let before = threads();
    let name = ["abcdefgh1"; 400].join(".");
    let get = format!("GET /api/v1/relay/explain?name={name} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    let mut most = before;
    for _ in 0..150 {
        let mut client = TcpStream::connect(daemon.http()).expect("it listens");
        client.write_all(get.as_bytes()).expect("it reads");
        std::thread::sleep(Duration::from_millis(2));
        most = most.max(threads());
    }
    // One is at work, and some have been.
    assert!(most <= before + 8, "{before} threads before, {most} beside questions that nobody waits for");
    let page = daemon.json("/api/v1/relay/explain?name=a.b");
    assert_eq!(page["copies"], 1, "{page}");
    let long = "a".repeat(4_097);
    assert_eq!(daemon.get(&format!("/api/v1/relay/explain?name={long}")).status, 400);
}

#[test]
fn test_mode_looks_up_what_use_all_stands_for_and_shows_local_time() {
    let folder = folder();
    let text = "cluster a forward useall localhost:2003;\ncluster b any_of useall nowhere.invalid:7;\nmatch x send to a;\n";
    std::fs::write(folder.path().join("all.conf"), text).expect("it can be written");
    let answer = run(folder.path(), "relay", &["-t", "-f", "all.conf"], "x\n");
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
    assert!(answer.stdout.contains("cluster a\n    forward\n        127.0.0.1:2003\n"), "{}", answer.stdout);
    assert!(
        answer.stdout.contains("cluster b\n    any_of useall\n        nowhere.invalid:7\n"),
        "{}",
        answer.stdout
    );
    let warning = "] warning: `useall` of cluster `b`: `nowhere.invalid` has no addresses: ";
    assert!(answer.stderr.contains(warning), "{}", answer.stderr);
    // Two places a day apart never have the same date.
    let date = |zone: &str| {
        let program = folder.path().join("relay");
        let mut command = Command::new(program);
        command
            .args(["-t", "-f", "relay.conf"])
            .env("TZ", zone)
            .current_dir(folder.path())
            .stdin(Stdio::null());
        let stdout = command.output().expect("it runs").stdout;
        String::from_utf8_lossy(&stdout[1..11]).into_owned()
    };
    assert_ne!(date("WEST12"), date("EAST-12"));
}

#[test]
fn check_shows_the_rules_and_as_explain_does_where_keys_go() {
    let folder = folder();
    let answer = run(folder.path(), "staunch", &["check", "relay.conf"], "");
    let want = "\
relay relay: 2 clusters, 4 rules
  cluster  share        members
  ring     fnv1a_ch x2  10.0.0.1:2003=a 10.0.0.2:2003=b 10.0.0.3:2003=c
  spare    failover     10.0.1.1:2003 10.0.1.2:2003
  rule            names                     does
  parts/a.conf:1  first                     to spare
  parts/b.conf:1  second                    to spare
  relay.conf:4    ^app\\.                    to ring; stop
  relay.conf:5    aggregate ^web\\.([a-z]+)  sum of 10 s: sums.\\1; to spare
";
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
    assert!(
        answer.stdout.starts_with("relay.conf: good (relay.conf of carbon-c-relay)\n"),
        "{}",
        answer.stdout
    );
    assert!(
        answer.stdout.contains("http://127.0.0.1:8680\n"),
        "as `staunch relay` listens: {}",
        answer.stdout
    );
    let table = answer.stdout.find("relay relay:").map(|at| &answer.stdout[at..]);
    assert_eq!(table, Some(want));
    assert!(answer.stdout.lines().all(|line| line.chars().count() <= 80), "{}", answer.stdout);
    let names = ["web.load 1 2", "app.one", "first", "nobody"];
    let keys = names.join("\n");
    let logged = run(folder.path(), "staunch", &["check", "relay.conf", "--keys", "-"], &keys).stdout;
    let want = "\
web.load 1 2\tcounts in sums.load\trelay.conf:5
app.one\tring/10.0.0.2:2003\trelay.conf:4
app.one\tring/10.0.0.3:2003\trelay.conf:4
first\tspare/10.0.1.1:2003\tparts/a.conf:1
nobody\t-\t-
";
    assert_eq!(logged, want);
    let logged =
        run(folder.path(), "staunch", &["check", "relay.conf", "--json", "--keys", "-"], &keys).stdout;
    let logged: Value = serde_json::from_str(&logged).expect("JSON");
    assert_eq!(logged["relays"][0]["rules"][2]["stops"], true);
    let explain = names.iter().flat_map(|name| ["--explain", name]);
    let args: Vec<&str> = ["-f", "relay.conf", "--json"].into_iter().chain(explain).collect();
    let explained: Value =
        serde_json::from_str(&run(folder.path(), "relay", &args, "").stdout).expect("JSON");
    for at in 0..names.len() {
        // The same, and what is known only of a whole config.
        let of_key = logged["keys"][at]["relays"]["relay"].as_object().expect("a document");
        for (member, value) in explained[at].as_object().expect("a document") {
            assert_eq!(&of_key[member], value, "{member} of {}", names[at]);
        }
        assert_eq!(of_key["from"], serde_json::json!(["lines", "statistics"]), "{}", names[at]);
    }
}

/// Two relays in a row behind a source.
const ROW: &str = "[sources.lines]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
    [transforms.entry]\ntype = \"relay\"\nfrom = [\"lines\"]\n\
    clusters = { next = { type = \"forward\", to = [\"storage\"] } }\n\
    rules = [{ match = '^old\\.', into = 'new.' }, { match = '^new', to = \"next\" }]\n\
    [transforms.storage]\ntype = \"relay\"\nfrom = [\"entry\"]\n\
    clusters = { pair = { type = \"any_of\", to = [\"carbon\"] } }\n\
    rules = [{ match = '^new\\.', to = \"pair\" }]\n\
    [outputs.carbon]\ntype = \"graphite\"\nfrom = [\"storage\"]\n\
    to = [\"tcp://127.0.0.1:1\", \"tcp://127.0.0.1:2\"]\n";

#[test]
fn relays_in_a_row_are_explained_from_the_source_to_the_endpoint() {
    let folder = folder();
    std::fs::write(folder.path().join("row.toml"), ROW).expect("it can be written");
    let rows = run(folder.path(), "staunch", &["check", "row.toml", "--keys", "-"], "old.x 1 2\n").stdout;
    let cells: Vec<&str> = rows.trim_end().split('\t').collect();
    assert_eq!(
        (cells[0], &cells[2..]),
        ("old.x 1 2", &["lines > entry rule 2 > storage rule 1", "new.x"][..])
    );
    assert!(cells[1].starts_with("carbon/127.0.0.1:"), "{rows}");
    let args = ["check", "row.toml", "--json", "--keys", "-"];
    let json = run(folder.path(), "staunch", &args, "old.x 1 2\n").stdout;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let of_check = &json["keys"][0]["relays"]["entry"];
    assert_eq!(of_check["endpoints"][0]["relays"], serde_json::json!(["entry", "storage"]));
    // The running relay says the same, and knows by itself where names enter. Both endpoints are down there, or not yet.
    let daemon = Builder::native(ROW).start();
    let page = daemon.json("/api/v1/relay/explain?name=old.x%201%202");
    for member in ["relay", "from", "name", "rest", "rules", "copies", "end"] {
        assert_eq!(page[member], of_check[member], "{member}: {page}");
    }
    for (list, member) in
        [("further", "relay"), ("further", "by"), ("endpoints", "name"), ("endpoints", "relays")]
    {
        assert_eq!(page[list][0][member], of_check[list][0][member], "{list} {member}: {page}");
    }
    let page = daemon.json("/api/v1/relay/explain?name=new.x&relay=storage");
    assert_eq!(
        (&page["relay"], &page["from"], &page["copies"]),
        (&"storage".into(), &serde_json::json!([]), &1.into())
    );
}

#[test]
fn members_on_one_host_without_instances_are_warned_about_in_either_file() {
    let folder = folder();
    let conf = "cluster ring carbon_ch 127.0.0.1:2004 127.0.0.1:2005;\nmatch * send to ring stop;\n";
    std::fs::write(folder.path().join("one-host.conf"), conf).expect("it can be written");
    let answer = run(folder.path(), "staunch", &["import", "relay", "one-host.conf"], "");
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
    assert!(
        answer.stderr.contains("warning[I007]: two members on one host without instances"),
        "{}",
        answer.stderr
    );
    // Instances would move names to other members than the original's: the file keeps the sharding, and its check warns.
    assert!(answer.stdout.contains("type = \"carbon_ch\"\nto = [\"ring\"]\n"), "{}", answer.stdout);
    std::fs::write(folder.path().join("one-host.toml"), &answer.stdout).expect("it can be written");
    let checked = run(folder.path(), "staunch", &["check", "one-host.toml"], "");
    assert_eq!(checked.code, Some(0), "{}", checked.stderr);
    assert!(checked.stderr.contains("warning[C038]"), "{}", checked.stderr);
    assert!(checked.stderr.contains("127.0.0.1:2005 gets nothing"), "{}", checked.stderr);
}

#[test]
fn a_search_that_gives_up_is_logged_and_counted() {
    let builder = Builder::relay("");
    let socket = builder.folder().join("in.sock");
    let conf = format!(
        "cluster pair failover 127.0.0.1:1 127.0.0.1:2;\nmatch (x+x+)+\\1z send to pair stop;\n\
         listen type linemode {} proto unix;\n",
        socket.display()
    );
    std::fs::write(builder.folder().join("relay.conf"), conf).expect("the config can be written");
    let slow = format!("{}cz", "x".repeat(60));
    let args = ["relay", "-t", "-f", "relay.conf"];
    let Answer { code, stdout, stderr } = run(builder.folder(), "asked", &args, &slow);
    assert!(code == Some(0) && stdout.ends_with(&format!("\nnothing matched {slow}\n")), "{stdout}");
    assert!(stderr.contains(&format!(": relay.conf:2: match (x+x+)+\\1z gave up on {slow}, ")), "{stderr}");
    let daemon = builder.start();
    let page = daemon.json(&format!("/api/v1/relay/explain?name={slow}"));
    assert_eq!((&page["gave_up"][0]["at"], &page["gave_up"][0]["kind"]), (&"rule 1".into(), &"match".into()));
    let mut client = UnixStream::connect(&socket).expect("it listens");
    client.write_all(format!("{slow} 1 1700000000\n").as_bytes()).expect("it reads");
    let page = wait_for("the line", || {
        let page = daemon.json("/api/v1/relay");
        (page["relays"][0]["points"] != 0).then_some(page)
    });
    let relay = &page["relays"][0];
    assert_eq!((&relay["gave_up"], &relay["names_refused"]), (&1.into(), &0.into()), "{page}");
    let cluster = &relay["clusters"][0];
    assert_eq!((&cluster["name"], &cluster["sharing"]), (&"pair".into(), &"failover".into()));
    assert_eq!(cluster["members"][1]["output"], "pair/127.0.0.1:2", "{page}");
}

#[test]
fn the_tip_of_a_relay_asks_where_a_name_goes() {
    let builder = Builder::relay("");
    let (socket, file) = (builder.folder().join("in.sock"), builder.folder().join("out"));
    let conf = format!(
        "cluster all file {};\nmatch * send to all;\nlisten type linemode {} proto unix;\n",
        file.display(),
        socket.display()
    );
    std::fs::write(builder.folder().join("relay.conf"), conf).expect("the config can be written");
    let daemon = builder.start();
    let logged = daemon.stderr();
    let tip = logged.lines().find_map(|line| line.split_once("curl ")).expect("a tip").1;
    let url = tip.trim_matches('\'');
    assert_ne!(url, tip, "a shell would look for files: {tip}");
    let path = url.split_once("/api/").expect("the HTTP API").1;
    let answer = daemon.json(&format!("/api/{path}"));
    assert!(answer.to_string().contains(&file.display().to_string()), "{answer}");
}

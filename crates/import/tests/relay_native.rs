//! A relay.conf printed as a native file reads back to the same plan.

use std::fs;
use std::path::PathBuf;

use config::diagnostic::{Source, render};
use config::plan::Plan;
use config::{Format, check, print};
use import::relay::flags::{Flags, Machine, Settings, settings};
use import::relay::plan::{Relay, relay};
use import::relay::{self, Files};

fn flags(flags: &Flags) -> Settings {
    let machine = Machine { hostname: "host".into(), cores: 2 };
    let flags = Flags { config: Some("relay.conf".into()), ..flags.clone() };
    {
        let (settings, mistakes) = settings(&flags, &machine);
        settings.unwrap_or_else(|| panic!("{mistakes:?}"))
    }
}

/// The plan of a configuration; none when something in it is not supported.
fn plan(name: &str, text: &str, given: &Flags) -> Option<Plan> {
    let folder = PathBuf::from("../../tests/corpus/relay/good");
    let of = |path: &str| {
        if path == name { Some(text.as_bytes().to_vec()) } else { fs::read(folder.join(path)).ok() }
    };
    let read = |path: &str| of(path).ok_or_else(|| "not there".to_owned());
    let matching = |pattern: &str| {
        let Some(start) = pattern.strip_suffix('*') else { return vec![pattern.to_owned()] };
        let names = fs::read_dir(&folder)
            .expect("the folder is there")
            .map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        names.retain(|name| name.starts_with(start));
        names.sort();
        names
    };
    let reading = relay::read(name, &Files { read: &read, matching: &matching });
    let shown = relay::render_mistakes(&reading.files, &reading.mistakes, false);
    let conf = reading.conf.unwrap_or_else(|| panic!("{shown}"));
    let settings = flags(given);
    relay(&Relay {
        conf: &conf,
        settings: &settings,
        queue_given: given.queue.is_some(),
        queue_dir: None,
        http: None,
    })
    .0
}

#[track_caller]
fn assert_same(name: &str, plan: &Plan) {
    let text = print(plan);
    let (read, wrong) = check(Source { name, text: &text }, Format::Toml);
    let shown = render(Source { name, text: &text }, &wrong, false);
    assert_eq!(read.as_ref(), Some(plan), "{shown}\n{text}");
}

#[test]
fn corpus_files_round_trip_through_native_files() {
    let mut same = 0;
    for entry in fs::read_dir("../../tests/corpus/relay/good").unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "conf") {
            continue;
        }
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let Some(plan) = plan(&name, &text, &Flags::default()) else { continue };
        assert_same(&name, &plan);
        same += 1;
    }
    assert!(same >= 4, "{same} files");
}

#[test]
fn clusters_rules_and_flags_round_trip_through_a_native_file() {
    let conf = "cluster a b forward 10.0.0.1 10.0.0.2:2013 proto udp;\n".replace("a b", "\"a b\"")
        + "cluster a_b any_of 10.0.0.3 10.0.0.4;\n\
        cluster hashed fnv1a_ch replication 2 dynamic 10.0.0.11=x 10.0.0.5:2003=y [fe80::1]:2003=z;\n\
        cluster files file /tmp/a /tmp/b;\ncluster files-file forward 10.0.0.8 10.0.0.9;\n\
        cluster _ lb 10.0.0.6;\ncluster f failover 10.0.0.7 10.0.0.8:1 10.0.0.9:1;\n\
        match ^a \"it's\\\\.\" validate \"^[0-9]+ \" else drop route using \\1x send to \"a b\" hashed stop;\n\
        rewrite ^(.*)\\.([a-z]+)$ into \\2.\\_1;\n\
        match * send to files files-file _;\n\
        aggregate ^sys\\.(.*) ^x every 10 seconds expire after 30 seconds timestamp at start of bucket\n\
          compute sum write to s.\\1 compute sum write to t compute percentile95 write to p send to f stop;\n\
        statistics submit every 30 seconds send to a_b stop;\nmatch b send to blackhole;\n\
        listen type linemode 2003 proto tcp 127.0.0.1:2004 proto udp;\n";
    for (queue, more) in [(None, ""), (Some("3000"), "-_")] {
        let given = Flags {
            queue: queue.map(str::to_owned),
            allowed: Some(more.to_owned()),
            name_bytes_max: Some("100".into()),
            line_bytes_max: Some("8192".into()),
            buffer: Some("262144".into()),
            keep_idle: queue.is_some(),
            ..Flags::default()
        };
        let plan = plan("relay.conf", &conf, &given).expect("a valid configuration");
        assert_eq!(plan.outputs.len(), 15);
        assert_same("relay.conf", &plan);
    }
}

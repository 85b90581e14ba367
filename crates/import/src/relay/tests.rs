//! Golden tests of users' files; mistakes by table; random text.
//!
//! `tests/corpus/relay/good/NAME.conf` with `NAME.want`: the canonical form and the warnings as a user sees them;
//! `bad/NAME.conf` with `NAME.want`: the mistakes, and the original's first message. After an intended change
//! `UPDATE=1 cargo test -p import relay` rewrites the `.want` files: read the diff.

use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::corpus;
use config::diagnostic::Severity;

fn printed(conf: &RelayConf) -> String {
    print(conf, &Surroundings { port: 2003, prefix: None, form: Form::Readable })
}

/// Reads the canonical form back. It has the default listeners, which the file may have left out.
fn read_printed(conf: &RelayConf, text: &str) -> Result<RelayConf, String> {
    let reading = read_text("printed", text);
    let mut again = reading.conf.ok_or_else(|| render_mistakes(&reading.files, &reading.mistakes, false))?;
    if conf.listen.is_empty() {
        again.listen.clear();
    }
    Ok(again)
}

/// Reads a file of the corpus; its includes are relative to its own directory.
fn read_corpus(path: &Path) -> Reading {
    let folder = path.parent().unwrap();
    let read = |name: &str| std::fs::read(folder.join(name)).map_err(|_| "No such file or directory".into());
    let matching = |pattern: &str| {
        let (start, end) = pattern.split_once('*').unwrap_or((pattern, ""));
        let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.retain(|name| name.starts_with(start) && name.ends_with(end));
        names.sort();
        names
    };
    super::read(&path.file_name().unwrap().to_string_lossy(), &Files { read: &read, matching: &matching })
}

#[test]
fn good_files_give_the_expected_form_and_round_trip() {
    let files = corpus::files("corpus/relay/good", "conf");
    assert!(files.len() >= 10, "{files:?}");
    for path in files {
        let reading = read_corpus(&path);
        let shown = render_mistakes(&reading.files, &reading.mistakes, false);
        let conf = reading.conf.unwrap_or_else(|| panic!("{}: {shown}", path.display()));
        let original = Surroundings { port: 2003, prefix: Some("carbon.relays.web1"), form: Form::Original };
        corpus::assert_wanted(&path, &format!("{}\n{shown}", print(&conf, &original)));
        let text = printed(&conf);
        assert_eq!(read_printed(&conf, &text), Ok(conf), "{}: {text}", path.display());
    }
}

#[test]
fn useall_is_printed_until_its_names_are_resolved() {
    let surroundings = |form| Surroundings { port: 2003, prefix: None, form };
    for (members, original) in [("10.0.0.1 [::1]:5", false), ("10.0.0.1 name:5", true)] {
        let conf = read_text("t", &format!("cluster a forward useall {members};"))
            .conf
            .expect("the configuration is valid");
        let prints = |form| print(&conf, &surroundings(form)).contains("forward useall");
        assert!(prints(Form::Original) == original && prints(Form::Readable), "{members}");
    }
}

#[test]
fn bad_files_report_all_their_mistakes() {
    let files = corpus::files("corpus/relay/bad", "conf");
    assert!(files.len() >= 10, "{files:?}");
    for path in files {
        let reading = read_corpus(&path);
        assert!(reading.conf.is_none(), "{}", path.display());
        let shown = render_mistakes(&reading.files, &reading.mistakes, false);
        corpus::assert_wanted(
            &path,
            &format!("{shown}\n{}", upstream_lines(&reading.files, &reading.mistakes)),
        );
    }
}

/// The errors of a text: code and hint.
fn errors(text: &str) -> Vec<String> {
    let reading = read_text("relay.conf", text);
    let errors = reading.mistakes.iter().filter(|each| each.diagnostic.severity == Severity::Error);
    errors.map(|each| format!("{} {}", each.diagnostic.code.word(), each.diagnostic.message)).collect()
}

const CLUSTER: &str = "cluster c forward 10.0.0.1;";

#[test]
fn statements_accepted_by_the_original_are_accepted() {
    let good = [
        "",
        "# only a comment",
        "cluster cluster forward 1.2.3.4;",
        "cluster a forward forward;",
        "cluster a forward \"tcp\";",
        "cluster a file ip /x /y;",
        "cluster a forward 1.2.3.4 =a;",
        "cluster a forward 1.2.3.4 transport plain mtls /c /k;",
        "match match send to c;",
        "match every into proto log 10 send.foo \"send\" send to c;",
        "match a validate x else log;",
        "match a;",
        "cluster \"10\" forward h=10; match 10 route using 10 send to \"10\"; rewrite 10 into 10;",
        "rewrite into into into;",
        "aggregate * every 10 seconds expire after 20 seconds compute sum write to x;",
        "aggregate a every 10 seconds expire after 20 seconds compute percentile99 write to x send to blackhole;",
        "statistics;",
        "statistics submit every 10 seconds; statistics submit every 20 seconds;",
        "send statistics to c;",
        "listen type linemode 2003 proto tcp 2003 proto udp [::1]:2020 proto tcp x proto unix;",
        "listen type linemode [::]:2003 proto tcp 127.0.0.1:2003 proto tcp;",
        "cluster a failover 1.2.3.4; cluster b forward 1.2.3.4;",
        "cluster a carbon_ch dynamic 1.2.3.4 1.2.3.5; cluster b forward 1.2.3.4;",
    ];
    for text in good {
        assert_eq!(errors(&format!("{CLUSTER}\n{text}")), [""; 0], "{text}");
    }
}

#[test]
fn statements_rejected_by_the_original_are_rejected() {
    let bad = [
        "cluster stop forward 1.2.3.4;",
        "cluster blackhole forward 1.2.3.4;",
        "cluster a forward stop;",
        "cluster a forward useall useall;",
        "cluster a forward 1.2.3.4 proto;",
        "cluster a file /x proto udp;",
        "cluster a carbon_ch dynamic replication 2 1.2.3.4;",
        "cluster a Forward 1.2.3.4;",
        "Cluster a forward 1.2.3.4;",
        "match send send to c;",
        "match * * send to c;",
        "match a * send to c;",
        "match *a send to c;",
        "match a send to c stop stop;",
        "match a send to c blackhole;",
        "match a send to blackhole c;",
        "match a route using b validate x else drop send to c;",
        "match a validate x drop send to c;",
        "match a send c;",
        ";",
        "match a=b send to c;",
        "cluster 10 forward 1.2.3.4;",
        "cluster a forward 10;",
        "cluster a forward h 10;",
        "cluster \"10\" forward h; match x send to 10;",
        "rewrite * into c;",
        "rewrite a into b stop;",
        "rewrite send into b;",
        "rewrite a into validate;",
        "rewrite a into *;",
        "match a validate route else drop;",
        "match a route using send send to c;",
        "aggregate a every 10 seconds expire after 10 seconds compute sum write to x;",
        "aggregate a every 0 seconds expire after 10 seconds compute sum write to x;",
        "aggregate a every 10 seconds expire after 20 seconds;",
        "aggregate a every 10 seconds expire after 20 seconds compute percentile0 write to x;",
        "aggregate a every ten seconds expire after 20 seconds compute sum write to x;",
        "statistics submit every 0 seconds;",
        "statistics send to c; statistics send to c;",
        "statistics prefix with x submit every 10 seconds;",
        "listen type linemode 2003 proto tcp; listen type linemode 127.0.0.1:2003 proto tcp;",
        "listen type linemode 0 proto tcp;",
        "listen type linemode transport plain ssl /x.pem 2003 proto udp;",
        "cluster a forward 1.2.3.4:0;",
        "cluster a forward :2003;",
        "cluster a any_of 1.2.3.4; cluster b any_of 1.2.3.4;",
        "cluster a any_of 1.2.3.4 1.2.3.4;",
        "cluster a forward 1.2.3.4; cluster b forward 1.2.3.4=x;",
        "cluster a forward 1.2.3.4; cluster b forward 1.2.3.4 type syslog;",
        "cluster a carbon_ch replication 3 1.2.3.4 1.2.3.5;",
        "cluster a carbon_ch replication 256 1.2.3.4 1.2.3.5;",
        "match a send to late; cluster late forward 1.2.3.4;",
        "cluster c forward 1.2.3.4;",
    ];
    for text in bad {
        assert_eq!(errors(&format!("{CLUSTER}\n{text}")).len(), 1, "{text}: {:?}", errors(text));
    }
}

#[test]
fn a_mistake_ends_only_its_statement() {
    let text = "clustre a forward 1.2.3.4;\ncluster b forward 1.2.3.4:x;\nmatch a send to b\nmatch (x send to b;\n\
        match y send two b;\ncluster d any_off 1.2.3.4;\nmatch \"z send to b;\nmatch q~r send to d;\nmatch p send to d;\nmatch x send to b";
    let found = errors(text);
    assert_eq!(found.len(), 9, "{found:#?}");
}

#[test]
fn instances_of_digits_are_numbers() {
    // Output of carbon-c-relay 3.7.3.
    let text = "cluster a carbon_ch a=007 b=\"08\" c=0 d=00 e=10 f=0x g=2147483647 h=2147483648 i=4294967297 \
        j=99999999999999999999;";
    let reading = read_text("relay.conf", text);
    let instances = reading.conf.unwrap().servers.into_iter().map(|server| server.instance.unwrap());
    let want = ["7", "08", "0", "0", "10", "0x", "2147483647", "-2147483648", "1", "-1"];
    assert_eq!(instances.collect::<Vec<_>>(), want);
    assert_eq!(reading.mistakes.len(), 5);
}

#[test]
fn a_file_that_includes_itself_is_an_error() {
    let read = |name: &str| match name {
        "a" => Ok(b"include b; match x send to blackhole;".to_vec()),
        "b" => Ok(b"include c*;".to_vec()),
        "c1" => Ok(b"include a;".to_vec()),
        "deep" => Ok(b"include deeper;".to_vec()),
        name if name.starts_with("deeper") => Ok(format!("include {name}r;").into_bytes()),
        _ => Err("No such file".to_owned()),
    };
    let files = Files { read: &read, matching: &|_| vec!["c1".into()] };
    for (name, message) in
        [("a", "includes itself: a -> b -> c1 -> a"), ("deep", "more than 32 deep"), ("z", "No such")]
    {
        let reading = super::read(name, &files);
        assert!(reading.conf.is_none());
        assert!(reading.mistakes[0].diagnostic.message.contains(message), "{:?}", reading.mistakes);
    }
}

#[test]
fn an_error_is_reported_after_any_number_of_warnings() {
    let text = format!("{}match a send to nowhere;", "match a;\n".repeat(MISTAKES_MAX + 10));
    assert_eq!(errors(&text).len(), 1);
    assert_eq!(errors(&"match a send to nowhere;\n".repeat(MISTAKES_MAX + 10)).len(), MISTAKES_MAX);
}

proptest! {
    #[test]
    fn no_text_panics(text in "(?s)([a-z*;=\"\\\\ \n(){}\\[\\]|^$.+?0-9#é]|cluster |match |send to |forward |;\n|.){0,60}") {
        let reading = read_text("relay.conf", &text);
        let _ = render_mistakes(&reading.files, &reading.mistakes, false);
        let _ = upstream_lines(&reading.files, &reading.mistakes);
        if let Some(conf) = reading.conf {
            let text = printed(&conf);
            prop_assert_eq!(read_printed(&conf, &text), Ok(conf), "{}", text);
        }
    }
}

//! The tables of spec statsd §11.1 and §11.2, and commands that arrive in pieces.

use model::Kind;
use proptest::prelude::*;

use super::*;

fn assemble(commands: &mut Commands, bytes: &[u8]) -> Vec<String> {
    let mut all = Vec::new();
    commands.push(bytes, |command| all.push(String::from_utf8_lossy(command).into_owned()));
    all
}

#[test]
fn commands_are_assembled_from_pieces_of_any_size() {
    let mut commands = Commands::new(COMMAND_BYTES_MAX);
    assert_eq!(assemble(&mut commands, b"hea"), [""; 0]);
    assert!(commands.has_unterminated());
    assert_eq!(assemble(&mut commands, b"lth\r\nstats\n\nqu"), ["health", "stats", ""]);
    assert_eq!(assemble(&mut commands, b"it"), [""; 0]);
    assert_eq!(assemble(&mut commands, b"\n"), ["quit"]);
    assert!(!commands.has_unterminated());
    assert_eq!(commands.take_unterminated(), None);
    assert_eq!(assemble(&mut commands, b""), [""; 0]);
}

#[test]
fn a_late_line_end_after_take_unterminated_is_no_command() {
    for late in [b"\n".as_slice(), b"\r\n"] {
        let mut commands = Commands::new(COMMAND_BYTES_MAX);
        assemble(&mut commands, b"health");
        assert_eq!(commands.take_unterminated().as_deref(), Some(b"health".as_slice()));
        assert_eq!(commands.take_unterminated(), None);
        assert_eq!(assemble(&mut commands, late), [""; 0]);
        assert_eq!(assemble(&mut commands, b"\n"), [""], "only one end was owed");
    }
    let mut commands = Commands::new(COMMAND_BYTES_MAX);
    assemble(&mut commands, b"health");
    commands.take_unterminated();
    assemble(&mut commands, b"\r");
    assert_eq!(commands.take_unterminated(), None);
    assert_eq!(assemble(&mut commands, b"\nstats\n"), ["stats"]);
    assemble(&mut commands, b"health");
    commands.take_unterminated();
    assert_eq!(assemble(&mut commands, b"health\n\n"), ["health", ""]);
}

#[test]
fn a_command_over_the_limit_is_emitted_as_an_empty_one() {
    let mut commands = Commands::new(8);
    assert_eq!(assemble(&mut commands, b"12345678\nstats\n"), ["12345678", "stats"]);
    assert_eq!(assemble(&mut commands, b"123456789\nstats\n"), ["", "stats"]);
    for piece in [b"1234".as_slice(), b"5678", b"9", b"1234567890"] {
        assert_eq!(assemble(&mut commands, piece), [""; 0]);
    }
    assert!(!commands.has_unterminated());
    assert_eq!(commands.take_unterminated(), None, "its LF has not arrived");
    assert_eq!(assemble(&mut commands, b"tail\nstats\n"), ["", "stats"]);
    assert_eq!(assemble(&mut commands, b"12345678"), [""; 0]);
    assert_eq!(assemble(&mut commands, b"\n"), ["12345678"]);
}

#[test]
fn commands_are_parsed_in_node_mode() {
    let dump = |kind| Command::Dump { kind, json: false };
    let table: &[(&str, Command<'_>)] = &[
        ("help", Command::Help),
        ("  stats \r", Command::Stats),
        ("counters", dump(Kind::Counter)),
        ("timers", dump(Kind::Timer)),
        ("gauges", dump(Kind::Gauge)),
        ("sets", dump(Kind::Set)),
        ("counters json", Command::Dump { kind: Kind::Counter, json: true }),
        ("counters JSON", dump(Kind::Counter)),
        ("counters all json", dump(Kind::Counter)),
        ("health", Command::Health { set: None }),
        ("health up", Command::Health { set: Some(true) }),
        ("health DOWN", Command::Health { set: Some(false) }),
        ("health sideways", Command::Health { set: None }),
        ("health  up", Command::Health { set: None }),
        ("config", Command::Config),
        ("quit", Command::Quit),
        ("targets", Command::Targets),
        ("drops", Command::Drops),
        ("Help", Command::Unknown),
        ("stats\tx", Command::Unknown),
        ("", Command::Unknown),
        ("   ", Command::Unknown),
        ("\u{a0}quit\u{feff}", Command::Quit),
        ("delete x", Command::Unknown),
    ];
    for (text, want) in table {
        assert_eq!(Command::parse(Form::Node, text.as_bytes()), *want, "{text:?}");
    }
}

#[test]
fn commands_are_parsed_in_perl_mode() {
    let dump = |kind| Command::Dump { kind, json: true };
    let table: &[(&str, Command<'_>)] = &[
        ("help\r", Command::Help),
        ("stats", Command::Stats),
        ("counters", dump(Kind::Counter)),
        ("timers", dump(Kind::Timer)),
        ("gauges", dump(Kind::Gauge)),
        ("sets", dump(Kind::Set)),
        ("quit", Command::Quit),
        ("health", Command::Unknown),
        ("config", Command::Unknown),
        ("", Command::Unknown),
    ];
    for (text, want) in table {
        assert_eq!(Command::parse(Form::Perl, text.as_bytes()), *want, "{text:?}");
    }
}

#[test]
fn names_of_a_delete_command_are_parsed() {
    let table: &[(Form, &str, Kind, &[&str])] = &[
        (Form::Node, "delcounters", Kind::Counter, &[]),
        (Form::Node, "delcounters a", Kind::Counter, &["a"]),
        (Form::Node, "deltimers a  b;k=v ", Kind::Timer, &["a", "", "b;k=v"]),
        (Form::Node, "delgauges a\tb", Kind::Gauge, &["a\tb"]),
        (Form::Node, "delsets a.*", Kind::Set, &["a.*"]),
        (Form::Perl, "delcounters a  b\tc", Kind::Counter, &["a", "b", "c"]),
        (Form::Perl, "deltimers", Kind::Timer, &[]),
    ];
    for (form, text, want_kind, want) in table {
        let Command::Delete { kind, names } = Command::parse(*form, text.as_bytes()) else {
            panic!("{text:?} is a delete command");
        };
        let names: Vec<_> = names.iter().map(|name| std::str::from_utf8(name).unwrap()).collect();
        assert_eq!((kind, names.as_slice()), (*want_kind, *want), "{text:?}");
    }
}

#[test]
fn only_a_final_dot_star_is_a_pattern() {
    let table: &[(&[u8], Pattern<'_>)] = &[
        (b"a.*", Pattern::Prefix(b"a.")),
        (b".*", Pattern::Prefix(b".")),
        (b"a.b.*", Pattern::Prefix(b"a.b.")),
        (b"a.*.*", Pattern::Prefix(b"a.*.")),
        (b"*", Pattern::Exact(b"*")),
        (b"a*", Pattern::Exact(b"a*")),
        (b"a.*.b", Pattern::Exact(b"a.*.b")),
        (b"", Pattern::Exact(b"")),
    ];
    for (name, want) in table {
        assert_eq!(Pattern::of(Form::Node, name), *want);
        assert_eq!(Pattern::of(Form::Perl, name), Pattern::Exact(name));
    }
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn replies_in_node_mode() {
    let replies = Replies::new(Form::Node);
    assert_eq!(
        written(|out| replies.help(false, out)),
        "Commands: stats, counters, timers, gauges, delcounters, deltimers, delgauges, health, config, quit\n\n"
    );
    assert_eq!(
        written(|out| replies.help_with_extensions(false, out)),
        "Commands: stats, counters, timers, gauges, sets, delcounters, deltimers, delgauges, delsets, health, config, \
         targets, drops, quit\n\n"
    );
    assert_eq!(
        written(|out| replies.help_with_extensions(true, out)),
        "Commands: stats, counters, timers, gauges, sets, health, config, targets, drops, quit\n\n"
    );
    assert_eq!(
        written(|out| Replies::new(Form::Perl).help_with_extensions(true, out)),
        "Commands: stats, counters, timers, gauges, sets, targets, drops, quit\r\n\r\n"
    );
    let stats = written(|out| {
        replies.stats_begin(12, 3, 1, out);
        replies.stat_ago("graphite", "last_flush", 1_700_000_000, 1_700_000_004, out);
        replies.stat_ago("graphite", "last_exception", 0, 1_700_000_004, out);
        replies.stat("graphite", "flush_time", 2, out);
        replies.stat("graphite", "flush_length", 480, out);
        replies.end(out);
    });
    assert_eq!(
        stats,
        "uptime: 12\nmessages.last_msg_seen: 3\nmessages.bad_lines_seen: 1\ngraphite.last_flush: 4\n\
         graphite.last_exception: 1700000004\ngraphite.flush_time: 2\ngraphite.flush_length: 480\nEND\n\n"
    );
    let deleted = written(|out| {
        replies.deleted(b"a.b", out);
        replies.not_found(b"c", out);
        replies.not_found(b"", out);
        replies.delete_end(out);
    });
    assert_eq!(deleted, "deleted: a.b\nmetric c not found\nmetric  not found\nEND\n\n");
    assert_eq!(written(|out| replies.health(true, out)), "health: up\n");
    assert_eq!(written(|out| replies.health(false, out)), "health: down\n");
    assert_eq!(written(|out| replies.error(out)), "ERROR\n");
    assert_eq!(written(|out| replies.refused_read_only(out)), "ERROR: read only\n");
    let read_only = written(|out| replies.help(true, out));
    assert_eq!(read_only, "Commands: stats, counters, timers, gauges, health, config, quit\n\n");
    let config = [("port", "8125"), ("graphite > legacyNamespace", "false"), ("x > y", "[object Object]")];
    assert_eq!(
        written(|out| replies.config(config, out)),
        "\nport: 8125\ngraphite > legacyNamespace: false\nx > y: [object Object]\n"
    );
}

#[test]
fn replies_in_perl_mode() {
    let replies = Replies::new(Form::Perl);
    assert_eq!(
        written(|out| replies.help(false, out)),
        "Commands: stats, counters, timers, gauges, delcounters, deltimers, delgauges, quit\r\n\r\n"
    );
    let deleted = written(|out| {
        replies.deleted(b"a", out);
        replies.not_found(b"b", out);
        replies.delete_end(out);
    });
    assert_eq!(deleted, "deleted: a\ndeleted: b\n\nEND\n\n");
    assert_eq!(written(|out| replies.error(out)), "ERROR\n");
}

#[test]
fn dumps_have_one_entry_per_line_and_truncate_nothing() {
    for (json, empty) in [(false, "{}\nEND\n\n"), (true, "{}\nEND\n\n")] {
        assert_eq!(written(|out| Dump::begin(json, out).end(out)), empty);
    }
    let numbers = |json| {
        written(|out| {
            let mut dump = Dump::begin(json, out);
            dump.number(b"a", 1.0, out);
            dump.number(b"b.c", 2.5, out);
            dump.number(b"it's \\", -0.0, out);
            dump.end(out);
        })
    };
    assert_eq!(numbers(false), "{ 'a': 1,\n  'b.c': 2.5,\n  'it\\'s \\\\': 0 }\nEND\n\n");
    assert_eq!(numbers(true), "{\"a\": 1, \"b.c\": 2.5, \"it's \\\\\": 0}\nEND\n\n");
    let lists = |json| {
        written(|out| {
            let mut dump = Dump::begin(json, out);
            dump.list_begin(b"lat", out);
            [1.0, 2.0].iter().for_each(|value| dump.list_number(*value, out));
            dump.list_end(out);
            dump.list_begin(b"idle", out);
            dump.list_end(out);
            dump.list_begin(b"uid", out);
            [b"7".as_slice(), b"it's"].iter().for_each(|member| dump.list_text(member, out));
            dump.list_end(out);
            dump.end(out);
        })
    };
    assert_eq!(lists(false), "{ 'lat': [ 1, 2 ],\n  'idle': [],\n  'uid': [ '7', 'it\\'s' ] }\nEND\n\n");
    assert_eq!(lists(true), "{\"lat\": [1, 2], \"idle\": [], \"uid\": [\"7\", \"it's\"]}\nEND\n\n");
    let long = written(|out| {
        let mut dump = Dump::begin(false, out);
        dump.list_begin(b"t", out);
        (0..1000).for_each(|_| dump.list_number(5.0, out));
        dump.list_end(out);
        dump.end(out);
    });
    assert_eq!(long, format!("{{ 't': [ 5{} ] }}\nEND\n\n", ", 5".repeat(999)));
}

#[test]
fn replies_to_targets_and_drops() {
    let replies = Replies::new(Form::Node);
    let target = TargetFigures {
        name: "carbon/10.0.0.5:2003",
        state: "down",
        since_s: 60,
        delivered: 5,
        lost: 1,
        waiting: 7,
        queued_bytes: 300,
        last_error: "connection\nrefused",
    };
    let text = written(|out| {
        replies.target(&target, out);
        replies.target(&TargetFigures { name: "b", state: "up", last_error: "", ..target }, out);
        replies.end(out);
    });
    assert_eq!(
        text,
        "carbon/10.0.0.5:2003.state: down\ncarbon/10.0.0.5:2003.since: 60\n\
         carbon/10.0.0.5:2003.delivered: 5\ncarbon/10.0.0.5:2003.lost: 1\n\
         carbon/10.0.0.5:2003.waiting: 7\ncarbon/10.0.0.5:2003.queued_bytes: 300\n\
         carbon/10.0.0.5:2003.last_error: connection refused\nb.state: up\nb.since: 60\nb.delivered: 5\n\
         b.lost: 1\nb.waiting: 7\nb.queued_bytes: 300\nEND\n\n"
    );
    assert_eq!(
        written(|out| replies.drop("app", "rejected", "bad_value", 3, out)),
        "app.rejected.bad_value: 3\n"
    );
}

proptest! {
    #[test]
    fn any_bytes_in_any_pieces_give_the_same_commands(
        bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b' '), any::<u8>()], 0..80),
        piece in 1..10_usize,
    ) {
        let mut whole = Commands::new(12);
        let mut pieces = Commands::new(12);
        let want = assemble(&mut whole, &bytes);
        let got: Vec<_> = bytes.chunks(piece).flat_map(|piece| assemble(&mut pieces, piece)).collect();
        for command in &want {
            Command::parse(Form::Node, command.as_bytes());
            Command::parse(Form::Perl, command.as_bytes());
        }
        prop_assert_eq!(got, want);
    }
}

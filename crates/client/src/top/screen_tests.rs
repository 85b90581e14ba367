//! Frames as a terminal of 80 by 24 shows them.

use ratatui_core::backend::TestBackend;
use ratatui_core::terminal::Terminal;
use ratatui_crossterm::crossterm::event::KeyCode;

use super::super::sample::DiskSample;
use super::super::view::View;
use super::*;

fn source(name: &str) -> SourceSample {
    SourceSample {
        name: name.into(),
        kind: "statsd".into(),
        packets_per_s: Some(200_000.0),
        records_per_s: Some(1_234_567.0),
        kernel_dropped: 12_345,
        kernel_dropped_per_s: Some(0.0),
        rejected: 7,
        rejected_per_s: Some(0.5),
        dropped_per_s: Some(0.0),
        receive_queue_fill: Some(0.031),
        sums: Some(Sums::Hold),
        listen: vec!["udp://127.0.0.1:8125".into(), "tcp://127.0.0.1:8125".into()],
        reasons: vec![("bad_value".into(), 5), ("no_type".into(), 2)],
        ..SourceSample::default()
    }
}

fn output(name: &str) -> OutputSample {
    OutputSample {
        name: name.into(),
        kind: "udp".into(),
        state: "up".into(),
        state_for_s: 4000,
        copies_per_s: Some(200_000.0),
        delivered_per_s: Some(199_987.0),
        lost_per_s: Some(0.0),
        queued: 13,
        queued_bytes: 5000,
        queue_bytes_max: 64 << 20,
        queue_fill: 5000.0 / f64::from(64 << 20),
        oldest_s: 0.2,
        sums: Some(Sums::Hold),
        ..OutputSample::default()
    }
}

fn down(name: &str) -> OutputSample {
    OutputSample {
        state: "down".into(),
        state_for_s: 125,
        last_error: "refused".into(),
        delivered_per_s: Some(0.0),
        lost: 1_000_000,
        lost_per_s: Some(199_000.0),
        lost_reason: Some("queue_full".into()),
        queued: 131_072,
        queued_bytes: 64 << 20,
        queue_fill: 1.0,
        oldest_s: 61.0,
        reasons: vec![("queue_full".into(), 999_990), ("too_old".into(), 10)],
        ..output(name)
    }
}

fn shown(sources: Vec<SourceSample>, outputs: Vec<OutputSample>) -> Shown {
    let mut shown = Shown::new("127.0.0.1:8680", View { colour: true, chosen: true, ..View::default() });
    shown.take(Sample {
        time_ms: 1_795_214_205_226,
        api: shown.api.clone(),
        reachable: true,
        away_since_ms: None,
        error: None,
        interval_s: Some(1.0),
        sums: Some(Sums::Hold),
        totals: None,
        sources,
        outputs,
        relays: Vec::new(),
        edges: Vec::new(),
    });
    shown
}

fn away(shown: &Shown) -> Sample {
    Sample {
        time_ms: 1_795_214_217_000,
        reachable: false,
        away_since_ms: Some(1_795_214_206_000),
        error: Some("cannot connect: Connection refused".into()),
        ..shown.sample.clone().expect("there was one")
    }
}

fn frame(shown: &Shown, columns: u16, rows: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).expect("a buffer is no terminal");
    let drawn = terminal.draw(|frame| {
        let area = frame.area();
        draw(frame.buffer_mut(), area, shown);
    });
    drawn.expect("nothing can fail").buffer.clone()
}

/// The rows without the spaces at their ends.
fn rows(buffer: &Buffer) -> Vec<String> {
    let row = |y| (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..buffer.area.height).map(|y| row(y).trim_end().to_owned()).collect()
}

#[test]
fn a_frame_of_80_by_24() {
    let shown = shown(vec![source("app")], vec![output("live/10.0.0.1:8125"), down("dead")]);
    let golden = "\
staunch top  127.0.0.1:8680                                             balanced
22:36:45 UTC, every second
 SOURCES  1               pkt/s  rec/s kdrop/s kdrops queue  rej/s reject drop/s
 app                       200k  1.23M       0  12.3k    3%    0.5      7      0
[OUTPUTS] 2      state    copy/s dlvd/s lost/s reason     queue  disk  fill  old
>live/10~.1:8125 up         200k   200k      0               13     -   <1%   0s
 dead            down       200k      0   199k queue_full  131k     - 100%!   1m














live/10.0.0.1:8125  udp  up for 1h, 4.88 KiB in memory
nothing lost
quit   sources   outputs   pause   ? help";
    let rows = rows(&frame(&shown, 80, 24));
    assert_eq!(rows.join("\n"), golden);
}

fn relay() -> RelaySample {
    let cluster = |name: &str, down: &[&str], waiting| ClusterSample {
        name: name.into(),
        sharing: "fnv1a_ch".into(),
        members: 3,
        down: down.iter().map(|name| (*name).to_owned()).collect(),
        out: down.iter().map(|name| (*name).to_owned()).take(1).collect(),
        queued: waiting,
        queued_bytes: 48 * waiting,
        queue_fill: if waiting > 0 { 0.85 } else { 0.0 },
        oldest_s: 2.5,
    };
    RelaySample {
        name: "relay".into(),
        points_per_s: Some(120_034.0),
        routed_per_s: Some(120_019.0),
        unmatched_per_s: Some(3.0),
        blackholed_per_s: Some(12.0),
        invalid_per_s: Some(0.0),
        names: 10_000,
        clusters: vec![cluster("ring", &["ring/10.0.0.2:2003", "b"], 131_072), cluster("spare", &[], 0)],
    }
}

#[test]
fn a_relay_has_tables_of_its_own() {
    let mut shown = shown(vec![source("app")], vec![output("live"), down("dead")]);
    shown.sample.as_mut().expect("there is one").relays = vec![relay()];
    let golden = [
        " RELAYS  1                           pts/s  rtd/s unmat/s black/s inval/s  names",
        " relay                                120k   120k       3      12       0  10.0k",
        " CLUSTERS  2                    share              up down  out queue  fill  old",
        " ring                           fnv1a_ch            1    2    1  131k  85%!   2s",
        " spare                          fnv1a_ch            3    0    0     0    0%    -",
        "[OUTPUTS] 2      state    copy/s dlvd/s lost/s reason     queue  disk  fill  old",
        ">live            up         200k   200k      0               13     -   <1%   0s",
    ];
    let with = rows(&frame(&shown, 80, 24));
    assert_eq!(with[4..11], golden);
    assert_eq!(with[23], "quit   sources   clusters   outputs   pause   ? help");
    shown.press(Some(KeyCode::Char('c').into()));
    let with = rows(&frame(&shown, 80, 24));
    assert!(with[6].starts_with("[CLUSTERS] 2") && with[7].starts_with(">ring"), "{with:?}");
    assert_eq!(with[21], "down: ring/10.0.0.2:2003, b");
    assert_eq!(with[22], "failed over: ring/10.0.0.2:2003");
    assert_eq!(with[20], "ring  fnv1a_ch of relay relay, 6.00 MiB queued");
    shown.press(Some(KeyCode::Down.into()));
    assert_eq!(rows(&frame(&shown, 80, 24))[22], "all are up");
    // Many of everything: each table has some rows, and every cluster can be reached.
    let mut clusters = vec![relay().clusters[1].clone(); 20];
    clusters[19].name = "last".into();
    let sample = shown.sample.as_mut().expect("there is one");
    (sample.sources, sample.outputs) = (vec![source("app"); 30], vec![output("live"); 30]);
    sample.relays[0].clusters = clusters;
    shown.press(Some(KeyCode::End.into()));
    let with = rows(&frame(&shown, 80, 24));
    assert!(with.iter().any(|row| row.starts_with(">last")), "{with:?}");
    for heading in [" SOURCES", " RELAYS", "[CLUSTERS]", " OUTPUTS"] {
        let at = with.iter().position(|row| row.starts_with(heading)).expect("its heading is there");
        assert!(!with[at + 1].is_empty() && at < 20, "{with:?}");
    }
    assert!(with[20].starts_with("vlive"), "{with:?}");
}

#[test]
fn the_selected_row_is_shown_in_full() {
    let mut shown = shown(vec![source("app")], vec![output("live"), down("dead")]);
    shown.press(Some(KeyCode::Down.into()));
    let with = rows(&frame(&shown, 80, 24));
    assert_eq!(with[20], "dead  udp  down for 2m, 64.0 MiB in memory");
    assert_eq!(with[21], "last error: refused");
    assert_eq!(with[22], "lost: queue_full 999990, too_old 10");
    shown.press(Some(KeyCode::Char('s').into()));
    let with = rows(&frame(&shown, 80, 24));
    assert!(with[2].starts_with("[SOURCES] 1") && with[4].starts_with(" OUTPUTS  2"), "{with:?}");
    assert!(with[3].starts_with(">app"));
    assert_eq!(with[22], "app  statsd  udp://127.0.0.1:8125  tcp://127.0.0.1:8125");
    assert_eq!(with[21], "lost: datagrams dropped by the kernel 12345, bad_value 5, no_type 2");
}

#[test]
fn what_one_needs_is_never_cut() {
    let text = "The endpoint could not be reached (Connection refused (os error 111))";
    let trouble = "writes fail: no space left on device";
    let failing = OutputSample {
        kind: "graphite".into(),
        last_error: "connect_failed".into(),
        last_error_text: text.into(),
        last_error_time_ms: 1_795_214_205_226 - 7_000,
        stalled_for_s: 4,
        disk: Some(DiskSample {
            state: DiskState::Failing,
            trouble: Some(trouble.into()),
            ..DiskSample::default()
        }),
        ..down(&format!("{}/127.0.0.1:2003", "carbon".repeat(20)))
    };
    let state = "  graphite  down for 2m, 64.0 MiB on disk";
    let error = [
        "last error 7s ago: connect_failed: The endpoint could not be reached (Connection",
        "  refused (os error 111))",
    ];
    let mut with = shown(vec![source("app")], vec![failing.clone()]);
    let seen = rows(&frame(&with, 80, 24));
    assert!(seen[14].ends_with(state) && seen[14].len() == 80, "{seen:?}");
    assert_eq!(seen[15..17], error);
    assert_eq!(seen[17], format!("disk: {trouble}"));
    assert_eq!(seen[18], "sources wait for room: 4s");
    assert_eq!(seen[19], "lost: queue_full 999990, too_old 10");
    assert_eq!(seen[20..23].concat().replace("  ", ""), format!("name:{}", failing.name), "{seen:?}");
    // Fewer rows have the same lines, as many as fit.
    with.sample.as_mut().expect("there is one").outputs = vec![failing; 50];
    let full = rows(&frame(&with, 80, 24));
    assert_eq!(full[17..23], seen[14..20]);
    let small = rows(&frame(&with, 80, 10));
    assert_eq!(small[7..9], seen[14..16]);
    // An error that is over has its time, and comes last.
    let mut over = with.sample.as_ref().expect("there is one").outputs[0].clone();
    (over.state, over.name, over.disk, over.stalled_for_s) = ("up".into(), "carbon".into(), None, 0);
    over.last_error_time_ms -= 600_000;
    with.sample.as_mut().expect("there is one").outputs = vec![over];
    let seen = rows(&frame(&with, 80, 24));
    assert_eq!(seen[19], "carbon  graphite  up for 2m, 64.0 MiB in memory");
    assert_eq!(seen[20], "lost: queue_full 999990, too_old 10");
    assert!(seen[21].starts_with("last error 10m ago: connect_failed: The endpoint"), "{seen:?}");
}

#[test]
fn a_queue_on_disk_says_how_safe_it_is() {
    let safe = DiskSample { segments: 3, ..DiskSample::default() };
    let unsynced = DiskSample { state: DiskState::Unsynced, blocks_unsynced: 12_345, ..safe.clone() };
    let failing =
        DiskSample { state: DiskState::Failing, blocks_in_doubt: 2, sync_errors: 1, ..unsynced.clone() };
    let more = "disk: blocks in doubt 2, sync errors 1";
    let trouble = Some("writes fail: no space".to_owned());
    let full = DiskSample { state: DiskState::Failing, trouble, ..safe.clone() };
    let why = "disk: writes fail: no space";
    let outputs = [&safe, &unsynced, &failing, &full]
        .map(|disk| OutputSample { disk: Some(disk.clone()), ..down("d") });
    let mut shown = shown(Vec::new(), outputs.into());
    for (at, (cell, more)) in
        [(" safe", ""), ("12.3k", ""), ("FAIL!", more), ("FAIL!", why)].into_iter().enumerate()
    {
        let buffer = frame(&shown, 80, 24);
        let with = rows(&buffer);
        assert_eq!(&with[4 + at][64..69], cell, "{with:?}");
        let first = "d  udp  down for 2m, 64.0 MiB on disk";
        let mut about = vec![first, "last error: refused", "lost: queue_full 999990, too_old 10", more];
        if more == why {
            about.swap(2, 3);
        }
        about.retain(|line| !line.is_empty());
        assert_eq!(with[23 - about.len()..23], about[..]);
        assert_eq!(buffer[(65, 4 + at as u16)].fg == Color::Red, cell == "FAIL!");
        shown.press(Some(KeyCode::Down.into()));
    }
}

#[test]
fn long_names_keep_their_ends_and_the_columns_their_places() {
    let long = format!("{}/collector.example.org:8125", "fan".repeat(40));
    let wide = "統計統計統計統計統計統計統計統計".to_owned();
    let odd = "a\u{1b}[31mb\nc".to_owned();
    let names = [long.clone(), wide, odd];
    let shown = shown(
        names.iter().map(|name| source(name)).collect(),
        names.iter().map(|name| output(name)).collect(),
    );
    for columns in [80, 120] {
        let rows = rows(&frame(&shown, columns, 24));
        assert!(rows[3].starts_with(" fanfan") && rows[3].contains("~"), "{}", rows[3]);
        assert!(rows[7].starts_with(">fanfa") && rows[7].contains("g:8125 up"), "{}", rows[7]);
        assert!(rows[9].starts_with(" a?[31mb?c"), "{}", rows[9]);
        let buffer = frame(&shown, columns, 24);
        for y in [3, 4, 5, 7, 8, 9] {
            let last: String = (columns - 2..columns).map(|x| buffer[(x, y)].symbol()).collect();
            assert_eq!(last.trim(), if y < 6 { "0" } else { "0s" }, "row {y} at {columns}");
        }
    }
}

#[test]
fn fifty_outputs_scroll() {
    let names: Vec<String> = (0..50).map(|at| format!("out{at:02}")).collect();
    let mut shown = shown(vec![source("a"), source("b")], names.iter().map(|name| output(name)).collect());
    let visible = |shown: &Shown| -> Vec<String> {
        let rows = rows(&frame(shown, 80, 24));
        assert!(rows[5].starts_with("[OUTPUTS] 50"), "{rows:?}");
        rows[6..21].iter().map(|row| row.chars().take(6).collect()).collect()
    };
    let begin = visible(&shown);
    assert_eq!((begin[0].as_str(), begin[1].as_str(), begin[14].as_str()), (">out00", " out01", "vout14"));
    for _ in 0..10 {
        shown.press(Some(KeyCode::Down.into()));
    }
    let middle = visible(&shown);
    assert_eq!((middle[0].as_str(), middle[7].as_str(), middle[14].as_str()), ("^out03", ">out10", "vout17"));
    shown.press(Some(KeyCode::End.into()));
    let end = visible(&shown);
    assert_eq!((end[0].as_str(), end[14].as_str()), ("^out35", ">out49"));
    // Every output can be reached.
    shown.press(Some(KeyCode::Home.into()));
    for name in &names {
        assert!(visible(&shown).contains(&format!(">{name}")), "{name}");
        shown.press(Some(KeyCode::Down.into()));
    }
}

#[test]
fn many_sources_leave_room_for_outputs() {
    let names: Vec<String> = (0..30).map(|at| format!("in{at:02}")).collect();
    let shown = shown(names.iter().map(|name| source(name)).collect(), vec![output("x"); 30]);
    let rows = rows(&frame(&shown, 80, 24));
    assert!(rows[7].starts_with("vin04") && rows[8].starts_with("[OUTPUTS] 30"), "{rows:?}");
    assert!(rows[20].starts_with("vx"), "{rows:?}");
}

#[test]
fn nothing_there_is_a_frame_too() {
    let empty = shown(Vec::new(), Vec::new());
    let with = rows(&frame(&empty, 80, 24));
    assert!(with[2].starts_with(" SOURCES  0") && with[3].starts_with("[OUTPUTS] 0"), "{with:?}");
    assert_eq!((with[4].as_str(), with[23].as_str()), ("", "quit   sources   outputs   pause   ? help"));
    let unseen = Shown::new("127.0.0.1:8680", View::default());
    let with = rows(&frame(&unseen, 80, 24));
    assert_eq!((with[0].as_str(), with[1].as_str()), ("staunch top  127.0.0.1:8680", "no answer yet"));
}

#[test]
fn away_is_said_and_greyed() {
    let mut shown = shown(vec![source("app")], vec![output("live"), down("dead")]);
    let before = rows(&frame(&shown, 80, 24));
    shown.take(away(&shown));
    let buffer = frame(&shown, 80, 24);
    let with = rows(&buffer);
    assert_eq!(with[0], "staunch top  127.0.0.1:8680");
    assert_eq!(with[1], "AWAY since 22:36:46 UTC (11s): cannot connect: Connection refused");
    assert_eq!(with[2..], before[2..], "the last figures stay");
    for y in 2..23 {
        for x in 0..80 {
            let cell = &buffer[(x, y)];
            assert!(cell.modifier.contains(Modifier::DIM) && cell.fg == Color::Reset, "{x}, {y}");
        }
    }
    assert!(!buffer[(0, 23)].modifier.contains(Modifier::DIM), "keys still work");
}

#[test]
fn a_pause_says_so() {
    let mut shown = shown(vec![source("app")], Vec::new());
    shown.press(Some(KeyCode::Char('p').into()));
    assert_eq!(rows(&frame(&shown, 80, 24))[1], "PAUSED at 22:36:45 UTC; p resumes");
}

#[test]
fn sums_are_words() {
    let mut shown = shown(Vec::new(), Vec::new());
    for (sums, want) in
        [(Sums::Hold, "balanced"), (Sums::Moving, "records moving"), (Sums::Broken, "NOT BALANCED")]
    {
        shown.sample.as_mut().expect("there is one").sums = Some(sums);
        assert!(rows(&frame(&shown, 80, 24))[0].ends_with(&format!("  {want}")), "{want}");
    }
}

#[test]
fn help_fits_and_names_every_column() {
    let mut shown = shown(vec![source("app")], vec![output("live")]);
    shown.press(Some(KeyCode::Char('?').into()));
    let with = rows(&frame(&shown, 80, 24));
    assert!(HELP.iter().all(|line| with.iter().any(|row| row.trim() == line.trim())), "{with:?}");
    let text = HELP.join("\n");
    for (heading, _, _) in
        SOURCE_COLUMNS.iter().chain(&OUTPUT_COLUMNS).filter(|(name, _, _)| *name != "state")
    {
        assert!(text.contains(heading), "{heading}");
    }
}

#[test]
fn keys_are_marked_without_colour() {
    let mut shown = shown(vec![source("app")], vec![down("dead")]);
    for colour in [true, false] {
        shown.view.colour = colour;
        let buffer = frame(&shown, 80, 24);
        let marked: String = (0..80)
            .map(|x| &buffer[(x, 23)])
            .filter(|cell| cell.modifier.contains(Modifier::BOLD | Modifier::UNDERLINED))
            .map(|cell| cell.symbol())
            .collect();
        assert_eq!(marked, "qsop?");
        let coloured = buffer.content.iter().any(|cell| cell.fg != Color::Reset);
        assert_eq!(coloured, colour);
    }
}

#[test]
fn only_the_sixteen_colours_are_used() {
    let shown = shown(vec![source("app")], vec![output("live"), down("dead")]);
    for cell in &frame(&shown, 80, 24).content {
        assert!(
            !matches!(cell.fg, Color::Rgb(..) | Color::Indexed(_)) && cell.bg == Color::Reset,
            "{cell:?}"
        );
    }
}

#[test]
fn any_size_is_drawn() {
    let mut shown = shown(vec![source("app"); 5], vec![down("dead"); 9]);
    for turn in 0..4 {
        shown.sample.as_mut().expect("there is one").relays =
            if turn == 0 { Vec::new() } else { vec![relay(); 2] };
        for columns in [1, 2, 5, 20, 66, 79, 81, 300] {
            for rows in [1, 2, 3, 4, 7, 8, 9, 10, 23, 60] {
                let buffer = frame(&shown, columns, rows);
                assert_eq!((buffer.area.width, buffer.area.height), (columns, rows), "turn {turn}");
            }
        }
        shown.press(Some(KeyCode::Char(['c', 's', '?', 'p'][turn]).into()));
    }
}

#[test]
fn as_text_it_has_no_keys_and_no_blank_end() {
    let shown = shown(vec![source("app")], vec![output("live")]);
    let text = text(&shown, (80, 24));
    assert!(text.starts_with("staunch top  127.0.0.1:8680 "), "{text}");
    assert!(text.ends_with("\nlive  udp  up for 1h, 4.88 KiB in memory\nnothing lost\n"), "{text}");
}

//! A2: small messages and frames that unfold to much: many of them in one read, and connections that are idle afterwards.
//! And large messages that are begun and never finished.

use std::time::Duration;

use crate::attacker::Manner;
use crate::finding::End;
use crate::payloads::{self, Small};
use crate::scene::{Attack, Scene};
use crate::support::bench::Bench;

/// All connections together.
const GROWS_MAX: u64 = 192 << 20;

/// Bytes of a frame: as many as still come with others in one read.
const FRAME_BYTES: usize = 8 << 10;

const FRAMES: usize = 8;

/// `max_unfinished_bytes` of this case, and what else unfinished messages may make the daemon grow by: the largest one once
/// more, which was read before it was refused, and what the allocator keeps.
const UNFINISHED_MIB: u64 = 64;
const BESIDE_UNFINISHED: u64 = 64 << 20;

/// What comes of a message of 16 MiB.
const BEGUN_BYTES: usize = 15 << 20;

/// A source, a frame of it that unfolds to much, and what a connection sends before it is idle.
struct Kind {
    word: &'static str,
    option: String,
    frame: Vec<u8>,
    last: Vec<u8>,
}

fn kinds(bench: &Bench) -> Vec<Kind> {
    // Half of the frame is a good name, half of it references to it.
    let pickle = |bytes: usize, name: usize| payloads::pickle_references(&vec![b'a'; name], bytes);
    let mut kinds = vec![Kind {
        word: "pickle",
        option: "encoding = \"pickle\"".into(),
        frame: pickle(bench.pick(FRAME_BYTES / 2, FRAME_BYTES), bench.pick(FRAME_BYTES / 4, FRAME_BYTES / 2)),
        last: pickle(bench.pick(128 << 10, 1 << 20), 32),
    }];
    for small in bench.pick(&[][..], &Small::ALL) {
        kinds.push(Kind {
            word: small.word(),
            option: format!("transport = \"{}\"", small.word()),
            frame: small.frame_of(FRAME_BYTES),
            last: small.frame(&payloads::short_points(1 << 20)),
        });
    }
    kinds
}

pub(crate) fn run(bench: &Bench) -> End {
    let kinds = kinds(bench);
    let mut toml = format!("max_unfinished_bytes = \"{UNFINISHED_MIB}MiB\"\n");
    for Kind { word, option, .. } in &kinds {
        toml +=
            &format!("[sources.{word}]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\n{option}\n");
    }
    let words: Vec<&str> = kinds.iter().map(|kind| kind.word).collect();
    // What arrives goes nowhere: its way through the disk is another case.
    toml += &format!(
        "[transforms.hole]\ntype = \"relay\"\nfrom = {words:?}\nrules = [{{ to = \"blackhole\" }}]\n"
    );
    let mut scene = Scene::start(bench, &toml, GROWS_MAX);
    let mut sent = 0;
    for Kind { word, frame, .. } in &kinds {
        let burst = Attack::new(scene.tcp(word), Manner::Hold(1), frame.repeat(FRAMES)).on(bench.pick(4, 12));
        sent += scene.attack(vec![burst], bench.pick(2.0, 6.0)).end().bytes_sent;
    }
    scene.finding.figure(format!("{FRAMES} frames on each connection, {} KB in all", sent / 1000));
    // Idle ones, whose last read was much: what they hold is there until they go.
    for Kind { word, last, .. } in &kinds {
        let idle = bench.pick(10, 30);
        let attack = Attack::new(scene.tcp(word), Manner::Hold(1), last.clone()).on(idle);
        let held = scene.attack(vec![attack], bench.pick(1.0, 4.0));
        let resident = sys::memory_of(scene.daemon.pid()).map_or(0, |memory| memory.resident);
        scene.finding.figure(format!("{word}: {} MB with {idle} idle connections", resident / 1_000_000));
        held.end();
    }
    unfinished(bench, &mut scene);
    End::Ran(scene.end(words.join(", ")))
}

/// Connections of ten peers, each with the beginning of a message.
fn unfinished(bench: &Bench, scene: &mut Scene<'_>) {
    let resident = |scene: &Scene<'_>| sys::memory_of(scene.daemon.pid()).map_or(0, |now| now.resident);
    let before = resident(scene);
    let begun = [&(16_u32 << 20).to_be_bytes()[..], &vec![b'x'; BEGUN_BYTES]].concat();
    let attack = Attack::new(scene.tcp("pickle"), Manner::Hold(1), begun).on(bench.pick(20, 200)).by(10);
    let held = scene.attack(vec![attack], bench.pick(3.0, 8.0));
    // The allocator gives memory back a second after it was freed, and when it is next asked for some.
    let held_now = (0..30).map(|_| {
        std::thread::sleep(Duration::from_millis(100));
        let _asked = scene.accounts();
        resident(scene)
    });
    let grown = held_now.min().unwrap_or(u64::MAX).saturating_sub(before);
    let counted = held.end();
    scene.finding.figure(format!(
        "unfinished: {} MB sent, {} MB held, {} of {} connections closed",
        counted.bytes_sent / 1_000_000,
        grown / 1_000_000,
        counted.closed,
        counted.connected
    ));
    let most = (UNFINISHED_MIB << 20) + BESIDE_UNFINISHED;
    scene.finding.promise(grown <= most, || {
        format!("unfinished messages hold {} MB; the bound is {} MB", grown / 1_000_000, most / 1_000_000)
    });
}

//! A2: small frames that unfold to much: many of them in one read, and connections that are idle afterwards.

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

pub(crate) fn run(bench: &Bench) -> End {
    let mut toml = String::new();
    for small in Small::ALL {
        let word = small.word();
        toml += &format!(
            "[sources.{word}]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\ntransport = \"{word}\"\n"
        );
    }
    // What arrives goes nowhere: its way through the disk is another case.
    toml += "[transforms.hole]\ntype = \"relay\"\nfrom = [\"gzip\", \"lz4\", \"snappy\"]\nrules = [{ to = \"blackhole\" }]\n";
    let mut scene = Scene::start(bench, &toml, GROWS_MAX);
    let kinds: &[Small] = bench.pick(&[Small::Gzip], &Small::ALL);
    let (mut sent, mut unfolded) = (0, 0);
    for small in kinds {
        let (frame, plain) = small.frame_of(bench.pick(FRAME_BYTES / 2, FRAME_BYTES));
        let connections = bench.pick(4, 12);
        let burst =
            Attack::new(scene.tcp(small.word()), Manner::Hold(1), frame.repeat(FRAMES)).on(connections);
        sent += frame.len() * FRAMES * connections as usize;
        unfolded += plain * FRAMES * connections as usize;
        let held = scene.attack(vec![burst], bench.pick(3.0, 6.0));
        held.end();
    }
    // Idle ones, whose last read was much.
    let idle = bench.pick(10, 30);
    for small in kinds {
        let frame = small.frame(&payloads::short_points(bench.pick(256 << 10, 1 << 20)));
        let attack = Attack::new(scene.tcp(small.word()), Manner::Hold(1), frame).on(idle);
        let held = scene.attack(vec![attack], bench.pick(1.0, 3.0));
        held.end();
    }
    scene.finding.figure(format!("{} KB on the wire are {} MB", sent / 1000, unfolded / 1_000_000));
    let words: Vec<&str> = kinds.iter().map(|small| small.word()).collect();
    End::Ran(scene.end(format!("frames of {}", words.join(", "))))
}

//! A1: a small pickle or protobuf message with many references to one long name, which turns out bad.

use crate::attacker::Manner;
use crate::finding::End;
use crate::payloads;
use crate::scene::{Attack, Scene};
use crate::support::bench::Bench;

/// What the messages, and what they are unfolded to, may cost.
const GROWS_MAX: u64 = 128 << 20;

pub(crate) fn run(bench: &Bench) -> End {
    let sizes: &[usize] = bench.pick(&[256 << 10], &[64 << 10, 256 << 10, 1 << 20, (16 << 20) - 64]);
    let toml = "[sources.pickle]\ntype = \"graphite\"\nencoding = \"pickle\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [sources.protobuf]\ntype = \"graphite\"\nencoding = \"protobuf\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [outputs.points]\ntype = \"graphite_file\"\nfrom = [\"pickle\", \"protobuf\"]\nmax_files = 1\n";
    let mut scene = Scene::start(bench, toml, GROWS_MAX);
    for size in sizes {
        let pickle = Attack::new(
            scene.tcp("pickle"),
            Manner::Hold(1),
            payloads::pickle_references(&payloads::bad_name(size / 2), *size),
        );
        let protobuf = Attack::new(
            scene.tcp("protobuf"),
            Manner::Hold(1),
            payloads::protobuf_points(&payloads::bad_name(size / 2), *size),
        );
        scene.attack(vec![pickle, protobuf], bench.pick(3.0, 5.0)).end();
        // Each reference is a record: most of them are bytes of the message.
        let most = sizes.iter().map(|size| *size as u64).sum();
        if scene.accounts().is_none() {
            scene
                .finding
                .promise(false, || format!("nothing answers after two messages of {} KiB", size >> 10));
            break;
        }
        scene.promise_at_most("pickle", most);
        scene.promise_at_most("protobuf", most);
    }
    let rejected = |name: &str| {
        let row = scene.source(name)?;
        row["rejected"].as_u64()
    };
    let refused = [rejected("pickle"), rejected("protobuf")];
    if let [Some(pickle), Some(protobuf)] = refused {
        scene.finding.figure(format!("{pickle} and {protobuf} records rejected"));
        scene.finding.promise(pickle > 0 && protobuf > 0, || {
            "the messages were not looked at: this run shows nothing".into()
        });
    }
    let largest = sizes.last().expect("there are some") >> 10;
    End::Ran(scene.end(format!("2 messages up to {largest} KiB")))
}

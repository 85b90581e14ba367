//! What one read becomes, and what is left of it: batches that are bounded, and connections that keep an unfinished line.

use config::Format;
use config::plan::Plan;
use model::{Now, Outcome, Reject, SourceId};
use pipeline::{Accounts, Broken, Intake, Scratch, Shard, UnfinishedFull};

const NOW: Now = Now { wall_ns: 1_700_000_000_000_000_000, mono_ns: 1_000_000_000 };

/// `max_line_bytes` as it is by default.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// A config of a source with these options.
fn config_of(options: &str) -> String {
    let (from, transform) = if options.contains("statsd") {
        ("t", "[transforms.t]\ntype = \"aggregate\"\nfrom = [\"s\"]\n")
    } else {
        ("s", "")
    };
    format!(
        "data_dir = \"data\"\n[sources.s]\n{options}\n\
         [outputs.o]\ntype = \"graphite\"\nfrom = [\"{from}\"]\nto = [\"tcp://127.0.0.1:2003\"]\n{transform}"
    )
}

fn plan_of(text: &str) -> (Plan, Accounts) {
    let (plan, wrong) = config::check(config::diagnostic::Source { name: "t", text }, Format::Toml);
    let plan = plan.unwrap_or_else(|| panic!("{wrong:?}"));
    let accounts = Accounts::default().carried_to(&plan);
    (plan, accounts)
}

/// What a connection of a source with these options is read with.
fn intake(options: &str) -> (Accounts, Intake) {
    let (plan, accounts) = plan_of(&config_of(options));
    let shard = Shard::new(&plan, &accounts, 1, NOW);
    let intake = shard.intakes(&plan, SourceId(0), &accounts).make();
    (accounts, intake)
}

/// All batches of one read: memory and records of each.
fn batches(intake: &mut Intake, bytes: &[u8], scratch: &mut Scratch) -> Vec<(usize, u64)> {
    let mut sizes = Vec::new();
    let mut batch = intake.stream(bytes, NOW, scratch).into_owned();
    intake.settle_too_long();
    loop {
        sizes.push((batch.memory_bytes(), batch.records()));
        batch.settle(Outcome::Filtered);
        if !intake.has_more() {
            return sizes;
        }
        batch = intake.more(NOW, scratch).into_owned();
    }
}

fn statsd() -> &'static str {
    "type = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]"
}

fn graphite() -> &'static str {
    "type = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]"
}

/// A frame with a pickle of one name, and so many points that are the same.
fn repeated(name_len: usize, points: usize) -> Vec<u8> {
    let mut message = b"\x80\x02](X".to_vec();
    message.extend_from_slice(&(name_len as u32).to_le_bytes());
    message.resize(message.len() + name_len, b'n');
    message.extend_from_slice(b"K\x07K\x08\x86\x86");
    message.resize(message.len() + points - 1, b'2');
    message.extend_from_slice(b"e.");
    [&(message.len() as u32).to_be_bytes(), &message[..]].concat()
}

#[test]
fn an_idle_connection_keeps_its_unfinished_line_and_nothing_else() {
    let packed = format!("a:{}1|c\n", "1:".repeat(32_000));
    let table: &[(&str, Vec<u8>)] = &[
        (statsd(), b"api.requests.web01:12|c\n".repeat(2_700)),
        (statsd(), b"a:1|c\n".repeat(10_900)),
        (statsd(), packed.into_bytes()),
        (statsd(), b"_e{1,1}:a|b\n".repeat(5_000)),
        (graphite(), b"servers.web01.cpu.user 12.5 1700000000\n".repeat(1_600)),
        (graphite(), b"a;b=c 1 2\n".repeat(6_500)),
    ];
    let mut scratch = Scratch::default();
    for (options, bytes) in table {
        let (_, mut intake) = intake(options);
        for (read, most) in [
            (&bytes[..], 512),
            (b"unfinished", 512),
            (bytes, 512),
            (&vec![b'x'; LINE_BYTES_MAX], LINE_BYTES_MAX),
            (b"\n", 512),
            (&vec![b'x'; LINE_BYTES_MAX + 1], 512),
        ] {
            batches(&mut intake, read, &mut scratch);
            assert!(intake.memory_bytes() <= most, "{} > {most}: {options}", intake.memory_bytes());
        }
    }
    let (_, mut intake) = intake(&format!("{}\nencoding = \"pickle\"", graphite()));
    let frames = repeated(100, 8_000).repeat(7);
    for (read, most) in [(&frames[..], 0), (b"\0\0\x01\0part", 4), (&[b'x'; 252][..], 0)] {
        batches(&mut intake, read, &mut scratch);
        assert!(intake.memory_bytes() <= most, "{} > {most}", intake.memory_bytes());
    }
}

#[test]
fn what_one_read_unfolds_to_is_handed_on_in_pieces() {
    let mut scratch = Scratch::default();
    let (accounts, mut intake) = intake(&format!("{}\nencoding = \"pickle\"", graphite()));
    let good = repeated(100, 7_000);
    let bad = [&5_u32.to_be_bytes(), &b"hello"[..]].concat();
    let read = [&good[..], &bad, &good, &good, &bad, &good[..good.len() - 1]].concat();
    let sizes = batches(&mut intake, &read, &mut scratch);
    let records: u64 = sizes.iter().map(|(_, records)| records).sum();
    assert_eq!(records, 21_000);
    let largest = sizes.iter().map(|(bytes, _)| *bytes).max();
    assert!(
        sizes.len() > 30 && largest < Some(160 * 1024),
        "{} batches, the largest {largest:?}",
        sizes.len()
    );
    let last = batches(&mut intake, b".", &mut scratch);
    assert_eq!(last.iter().map(|(_, records)| records).sum::<u64>(), 7_000, "the frame that came in pieces");
    let account = accounts.source(SourceId(0));
    assert_eq!(account.rejected(Reject::BadMessage), 2);
    assert!(account.sum(0).holds() && account.packets.load(std::sync::atomic::Ordering::Relaxed) == 6);
    // A frame that cannot be followed ends it, wherever in the pieces it stands.
    let read = [&good[..], &u32::MAX.to_be_bytes(), b"rest"].concat();
    let sizes = batches(&mut intake, &read, &mut scratch);
    assert_eq!(sizes.iter().map(|(_, records)| records).sum::<u64>(), 7_000);
    assert!(intake.is_broken() && !intake.has_more());
    assert_eq!(account.rejected(Reject::BadFrame), 1);
}

#[test]
fn a_long_message_gives_way_before_it_is_known_to_be_good() {
    let (accounts, mut intake) = intake(&format!("{}\nencoding = \"pickle\"", graphite()));
    let one = [&b"]("[..], &b"N".repeat(500_000), b"e."].concat();
    let frame = [&(one.len() as u32).to_be_bytes()[..], &one].concat();
    let sizes = batches(&mut intake, &frame, &mut Scratch::default());
    // Others have their turn between two steps of 32 KiB.
    assert!(sizes.len() > 15, "{} batches", sizes.len());
    let account = accounts.source(SourceId(0));
    assert_eq!(account.rejected(Reject::BadElement), 500_000);
    assert!(account.sum(0).holds() && account.packets.load(std::sync::atomic::Ordering::Relaxed) == 1);
}

#[test]
fn what_is_unfinished_has_one_bound_and_its_room_comes_back() {
    const KIB: usize = 1024;
    let frames = format!("{}\nencoding = \"pickle\"", graphite());
    let lines = format!("{}\nmax_line_bytes = \"4MiB\"", statsd());
    for (options, head) in [(frames, &[0, 0x10, 0, 0][..]), (lines, &b"a"[..])] {
        let (plan, accounts) = plan_of(&format!("max_unfinished_bytes = \"1MiB\"\n{}", config_of(&options)));
        let shard = Shard::new(&plan, &accounts, 1, NOW);
        let maker = shard.intakes(&plan, SourceId(0), &accounts);
        let mut scratch = Scratch::default();
        // One client's half of it, above 64 KiB.
        let most = 512 * KIB + 64 * KIB;
        let begun = |bytes: usize| [head, &vec![b'x'; bytes - head.len()]].concat();
        let read = |intake: &mut Intake, bytes: &[u8], scratch: &mut Scratch| {
            bytes.chunks(64 * KIB).for_each(|read| drop(batches(intake, read, scratch)));
        };
        let (mut first, mut second, mut small) = (maker.make(), maker.make(), maker.make());
        read(&mut first, &begun(most / 2 + KIB), &mut scratch);
        assert!(!first.is_broken(), "{options}");
        read(&mut second, &begun(most), &mut scratch);
        assert_eq!(second.broken(), Some(Broken::NoRoom(UnfinishedFull::PerPeer)), "{options}");
        assert_eq!((second.memory_bytes(), second.unfinished()), (0, None), "{options}");
        read(&mut small, &begun(64 * KIB), &mut scratch);
        assert!(!small.is_broken(), "small messages pass: {options}");
        second.close(false, NOW, &mut scratch).settle(Outcome::Filtered);
        let account = accounts.source(SourceId(0));
        assert_eq!(account.rejected(Reject::UnfinishedFull), 1, "{options}");
        assert!(account.sum(0).holds(), "{options}");
        // It goes on elsewhere, and ends there.
        let unfinished = first.unfinished().expect("it can be gone on with");
        drop(first);
        let went_on = maker.make().going_on(&unfinished, None);
        let mut third = maker.make();
        read(&mut third, &begun(most), &mut scratch);
        assert!(third.is_broken(), "handed over bytes count: {options}");
        drop(went_on);
        let mut fourth = maker.make();
        read(&mut fourth, &begun(most / 2), &mut scratch);
        fourth.close(false, NOW, &mut scratch).settle(Outcome::Filtered);
        let mut fifth = maker.make();
        read(&mut fifth, &begun(most / 2), &mut scratch);
        assert!(!fifth.is_broken(), "a connection that has ended holds nothing: {options}");
    }
}

//! Packets at their limits of bytes and of time.

use model::PacketBatch;

use super::super::Packer;

fn texts(packets: &mut PacketBatch) -> Vec<String> {
    let texts = packets.iter().map(|packet| String::from_utf8_lossy(packet).to_string()).collect();
    packets.clear();
    texts
}

#[test]
fn a_packet_is_full_at_its_limit_and_not_before() {
    for (lines, packet_bytes_max, want) in [
        ("aa\nbb\ncc", 5, &["aa\nbb", "cc"][..]),
        ("aa\nbb\ncc", 4, &["aa", "bb", "cc"]),
        ("aa\nbb\ncc", 8, &["aa\nbb\ncc"]),
        // A line at the limit, and one over it: alone in its packet, and never split.
        ("a\nbbbbb\nc", 5, &["a", "bbbbb", "c"]),
        ("a\nbbbbbb\nc\nd", 5, &["a", "bbbbbb", "c\nd"]),
        ("\n\na\n\n\nb\n", 5, &["a\nb"]),
        ("\n", 5, &[]),
        ("a\nb", 1, &["a", "b"]),
    ] {
        let (mut packer, mut packets) = (Packer::new(packet_bytes_max, 1), PacketBatch::default());
        packer.push(lines.as_bytes(), 0, &mut packets);
        packer.close(&mut packets);
        assert_eq!(texts(&mut packets), want, "{lines:?} in {packet_bytes_max}");
    }
}

#[test]
fn lines_are_queued_no_longer_than_the_delay() {
    let (mut packer, mut packets) = (Packer::new(100, 10), PacketBatch::default());
    assert_eq!(packer.due_ns(), None);
    packer.push(b"a", 5, &mut packets);
    packer.push(b"b", 14, &mut packets);
    assert_eq!((packer.due_ns(), packer.lines_held(), packer.bytes_held()), (Some(15), 2, 3));
    packer.close_due(14, &mut packets);
    assert_eq!(texts(&mut packets), [""; 0]);
    packer.close_due(15, &mut packets);
    assert_eq!((texts(&mut packets), packer.due_ns()), (vec!["a\nb".to_owned()], None));
    // Also when only new lines arrive and no due time is polled: the new lines begin a packet.
    packer.push(b"c", 20, &mut packets);
    packer.push(b"d\ne", 30, &mut packets);
    assert_eq!(
        (texts(&mut packets), packer.due_ns(), packer.lines_held()),
        (vec!["c".to_owned()], Some(40), 2)
    );
    packer.close(&mut packets);
    packer.close(&mut packets);
    assert_eq!(texts(&mut packets), ["d\ne"]);
    // A full packet is returned at once, and the delay of the next one begins with its own first line.
    let mut packer = Packer::new(3, 10);
    packer.push(b"a\nb", 0, &mut packets);
    packer.push(b"c", 7, &mut packets);
    assert_eq!((texts(&mut packets), packer.due_ns()), (vec!["a\nb".to_owned()], Some(17)));
}

#[test]
fn without_a_delay_each_call_returns_its_packets() {
    let (mut packer, mut packets) = (Packer::new(5, 0), PacketBatch::default());
    packer.push(b"aa\nbb\ncc\n", 3, &mut packets);
    assert_eq!((texts(&mut packets), packer.due_ns()), (vec!["aa\nbb".to_owned(), "cc".to_owned()], None));
}

#[test]
#[should_panic(expected = "a packet holds at least a byte")]
fn a_packet_limit_of_zero_panics() {
    let _ = Packer::new(0, 1);
}

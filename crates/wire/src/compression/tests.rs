//! Round trips with any cuts, corrupt input, decompression bombs, and the formats of other encoders.

use std::io::Write;

use flate2::write::GzEncoder;
use flate2::{Compression as Level, GzBuilder};
use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
use proptest::prelude::*;

use super::properties::{COMPRESSED, check_one, compressed, decompressed};
use super::*;

fn lines(number: usize) -> Vec<u8> {
    (0..number)
        .flat_map(|n| format!("servers.web{}.cpu.{} {} 17{n:08}\n", n % 7, n % 97, n * 31).into_bytes())
        .collect()
}

#[test]
fn flushed_data_can_be_decompressed_and_finish_ends_the_stream() {
    let plain = lines(3_000);
    for compression in COMPRESSED {
        let mut compressor = Compressor::new(compression).expect("the format compresses");
        let mut decompressor = Decompressor::new(compression).expect("the format compresses");
        let mut got = Vec::new();
        let mut rest = &plain[..];
        for cut in (1..).map(|n| n * n * 7) {
            let mut wire = Vec::new();
            let taken = compressor.push(&rest[..cut.min(rest.len())], &mut wire);
            compressor.flush(&mut wire);
            let len = wire.len();
            compressor.flush(&mut wire);
            assert_eq!(wire.len(), len, "nothing to flush");
            rest = &rest[taken..];
            decompressor.push(&wire);
            while decompressor.has_more() {
                decompressor.decompress(&mut got).expect("the stream is valid");
            }
            assert_eq!(got.len() + rest.len(), plain.len(), "{compression:?}: all that was flushed is there");
            if rest.is_empty() {
                break;
            }
        }
        let mut wire = Vec::new();
        compressor.finish(&mut wire);
        decompressor.push(&wire);
        decompressor.decompress(&mut got).expect("the stream is valid");
        assert!(got == plain && decompressor.end().is_ok(), "{compression:?}");
    }
}

#[test]
fn an_idle_decompressor_keeps_only_the_state_of_the_stream() {
    let plain = lines(100_000);
    // The window and the bytes kept before it; part of a header.
    for (compression, most) in
        [(Compression::Gzip, 0), (Compression::Lz4, 80 * 1024 + 64), (Compression::Snappy, 64)]
    {
        let wire = compressed(compression, &plain, std::iter::repeat(64 * 1024));
        let mut decompressor = Decompressor::new(compression).expect("the format compresses");
        let mut out = Vec::new();
        for read in wire.chunks(64 * 1024) {
            decompressor.push(read);
            while decompressor.has_more() {
                out.clear();
                decompressor.decompress(&mut out).expect("the stream is valid");
            }
        }
        assert!(decompressor.end().is_ok());
        assert!(decompressor.memory_bytes() <= most, "{compression:?}: {}", decompressor.memory_bytes());
    }
}

#[test]
fn small_linked_blocks_do_not_move_the_window_each_time() {
    let info = FrameInfo::new().block_size(BlockSize::Max64KB).block_mode(BlockMode::Linked);
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
    let plain = lines(5_000);
    for line in plain.split_inclusive(|byte| *byte == b'\n') {
        encoder.write_all(line).expect("memory");
        encoder.flush().expect("memory");
    }
    let wire = encoder.finish().expect("memory");
    assert_eq!(decompressed(Compression::Lz4, &wire, wire.len()), (plain, Ok(())));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn compression_round_trips_with_any_cuts(
        which in 0_usize..3,
        plain in proptest::collection::vec(any::<u8>(), 0..300),
        copies in 1_usize..600,
        cuts in proptest::collection::vec(1_usize..50_000, 0..8),
        step in 1_usize..5_000,
    ) {
        let compression = COMPRESSED[which];
        let plain = plain.repeat(copies);
        let wire = compressed(compression, &plain, cuts.into_iter());
        let (got, end) = decompressed(compression, &wire, step);
        prop_assert!(got == plain, "{} of {} bytes", got.len(), plain.len());
        prop_assert_eq!(end, Ok(()));
    }

    #[test]
    fn no_input_makes_it_panic(
        which in 0_usize..3,
        begins in any::<bool>(),
        noise in proptest::collection::vec(any::<u8>(), 0..600),
        step in 1_usize..200,
    ) {
        let compression = COMPRESSED[which];
        let mut wire = if begins { compressed(compression, &lines(20), std::iter::empty()) } else { Vec::new() };
        wire.extend_from_slice(&noise);
        let (got, _) = decompressed(compression, &wire, step);
        // The result does not depend on the cuts.
        prop_assert_eq!(got, decompressed(compression, &wire, 1).0);
        check_one(&noise);
    }

    #[test]
    fn a_corrupt_byte_never_makes_it_panic(
        which in 0_usize..3,
        at in any::<prop::sample::Index>(),
        bit in 0_u8..8,
        step in 1_usize..200,
    ) {
        let compression = COMPRESSED[which];
        let mut wire = compressed(compression, &lines(50), [100, 700].into_iter());
        let at = at.index(wire.len());
        wire[at] ^= 1 << bit;
        let _ = decompressed(compression, &wire, step);
    }
}

#[test]
fn data_before_a_corrupt_byte_is_returned() {
    let plain = lines(500);
    for compression in COMPRESSED {
        let mut wire = compressed(compression, &plain, [9_000, 300].into_iter());
        wire.extend_from_slice(b"lines.that.are.not.compressed 1 2\n\xff\xff\xff\xff\xff\xff\xff\xff\xff");
        for step in [1, 100, wire.len()] {
            let (got, end) = decompressed(compression, &wire, step);
            assert!(got == plain && end.is_err(), "{compression:?} {step}: {end:?}, {} bytes", got.len());
        }
    }
}

#[test]
fn plain_lines_in_a_compressed_stream_are_detected_at_once() {
    for compression in [Compression::Gzip, Compression::Lz4] {
        assert_eq!(
            decompressed(compression, b"a 1 2\n", 1),
            (Vec::new(), Err(CompressionError::WrongFormat(compression)))
        );
    }
    // A snappy block may begin with any byte. `a` announces 97 bytes.
    assert_eq!(decompressed(Compression::Snappy, b"a 1 2\n", 6).1, Err(CompressionError::Truncated));
    assert_eq!(
        decompressed(Compression::Snappy, &b"\xff".repeat(20), 6).1,
        Err(CompressionError::WrongFormat(Compression::Snappy))
    );
}

#[test]
fn a_truncated_stream_is_an_error_when_data_is_lost() {
    let plain = lines(50);
    for compression in COMPRESSED {
        let wire = compressed(compression, &plain, [1_000].into_iter());
        for cut in 1..wire.len() {
            let (got, end) = decompressed(compression, &wire[..cut], 4_096);
            assert!(plain.starts_with(&got));
            // For gzip all data was returned.
            assert!(
                end.is_ok() || (compression != Compression::Gzip && end == Err(CompressionError::Truncated)),
                "{compression:?} {end:?}"
            );
        }
    }
}

#[test]
fn empty_blocks_count_as_work() {
    // Ten bits each: not the last block, fixed tables, end of block; four of them are five bytes.
    let mut wire = b"\x1f\x8b\x08\0\0\0\0\0\0\xff".to_vec();
    wire.extend_from_slice(&[0x02, 0x08, 0x20, 0x80, 0x00].repeat(13_107));
    let mut decompressor = Decompressor::new(Compression::Gzip).expect("the format compresses");
    decompressor.push(&wire);
    let (mut calls, mut out) = (0, Vec::new());
    while decompressor.has_more() {
        let used = decompressor.used;
        decompressor.decompress(&mut out).expect("the stream is valid");
        assert!(
            decompressor.held.is_empty() || decompressor.used - used <= 3 * 1024,
            "{} bytes",
            decompressor.used - used
        );
        calls += 1;
    }
    assert!(out.is_empty() && calls >= 20, "{calls}");
}

#[test]
fn decompression_bombs_return_bounded_pieces() {
    let mut bomb = GzEncoder::new(Vec::new(), Level::best());
    for _ in 0..64 {
        bomb.write_all(&[b'x'; 1 << 20]).expect("memory");
    }
    let bomb = bomb.finish().expect("memory");
    assert!(bomb.len() < 100_000);
    let mut decompressor = Decompressor::new(Compression::Gzip).expect("the format compresses");
    decompressor.push(&bomb);
    let (mut total, mut out) = (0, Vec::new());
    while decompressor.has_more() {
        out.clear();
        decompressor.decompress(&mut out).expect("the stream is valid");
        assert!(out.len() <= DECOMPRESSED_BYTES_MAX && out.capacity() <= 4 * DECOMPRESSED_BYTES_MAX);
        total += out.len();
    }
    assert_eq!(total, 64 << 20);
    // A snappy block that announces 4 GiB, and an LZ4 block with one match that is longer than its frame's block size.
    assert_eq!(
        decompressed(Compression::Snappy, b"\xff\xff\xff\xff\x0f\x00a", 3).1,
        Err(CompressionError::BlockTooLong)
    );
    let mut block = vec![0x1f, b'x', 1, 0];
    block.extend(std::iter::repeat_n(255, 300));
    block.push(0);
    let mut frame = b"\x04\x22\x4d\x18\x60\x40\x82".to_vec();
    frame.extend_from_slice(&(block.len() as u32).to_le_bytes());
    frame.extend_from_slice(&block);
    assert_eq!(decompressed(Compression::Lz4, &frame, 9).1, Err(CompressionError::BlockTooLong));
}

#[test]
fn gzip_members_with_every_header_field_are_read() {
    let plain = lines(40);
    let mut wire = Vec::new();
    for (at, piece) in plain.chunks(300).enumerate() {
        let mut builder = GzBuilder::new();
        for (bit, has) in [at & 1 != 0, at & 2 != 0, at & 4 != 0].into_iter().enumerate() {
            builder = match (has, bit) {
                (false, _) => builder,
                (true, 0) => builder.filename("lines.txt"),
                (true, 1) => builder.comment("none"),
                (true, _) => builder.extra(b"extra".to_vec()),
            };
        }
        let mut member = builder.write(Vec::new(), Level::new(6));
        member.write_all(piece).expect("memory");
        wire.extend(member.finish().expect("memory"));
        // Padding between members.
        wire.extend(std::iter::repeat_n(0, at % 3));
    }
    // With a header checksum, which the library does not write.
    let mut checked = b"\x1f\x8b\x08\x02\0\0\0\0\0\xff\xaa\xbb".to_vec();
    checked.extend_from_slice(&compressed(Compression::Gzip, b"last 1 2\n", std::iter::empty())[10..]);
    wire.extend_from_slice(&checked);
    for step in [1, 7, wire.len()] {
        let (got, end) = decompressed(Compression::Gzip, &wire, step);
        assert!(got == [&plain[..], b"last 1 2\n"].concat() && end.is_ok(), "{step} {end:?}");
    }
    let mut wrong = compressed(Compression::Gzip, &plain, std::iter::empty());
    let at = wrong.len() - 6;
    wrong[at] ^= 1;
    assert_eq!(decompressed(Compression::Gzip, &wrong, 50), (plain.clone(), Err(CompressionError::Checksum)));
    let mut endless = b"\x1f\x8b\x08\x08\0\0\0\0\0\xff".to_vec();
    endless.extend(std::iter::repeat_n(b'x', 128 * 1024));
    assert_eq!(decompressed(Compression::Gzip, &endless, 1000).1, Err(CompressionError::BlockTooLong));
}

#[test]
fn lz4_frames_with_all_options_are_read() {
    let plain = lines(6_000);
    let mut wire = Vec::new();
    let sizes = [BlockSize::Max64KB, BlockSize::Max256KB, BlockSize::Max1MB, BlockSize::Max4MB];
    let mut want = Vec::new();
    for (at, size) in sizes.into_iter().cycle().take(16).enumerate() {
        let mode = if at & 4 == 0 { BlockMode::Linked } else { BlockMode::Independent };
        let mut info = FrameInfo::new().block_size(size).block_mode(mode);
        info.block_checksums = at & 1 != 0;
        info.content_checksum = at & 2 != 0;
        info.content_size = (at & 8 != 0).then_some(plain.len() as u64);
        let mut frame = FrameEncoder::with_frame_info(info, Vec::new());
        frame.write_all(&plain).expect("memory");
        wire.extend(frame.finish().expect("memory"));
        want.extend_from_slice(&plain);
        if at % 5 == 0 {
            // A skippable frame.
            wire.extend_from_slice(b"\x53\x2a\x4d\x18\x04\0\0\0none");
        }
    }
    for step in [1_000, 65_536] {
        let (got, end) = decompressed(Compression::Lz4, &wire, step);
        assert!(got == want && end.is_ok(), "{step} {end:?}: {} of {} bytes", got.len(), want.len());
    }
}

#[test]
fn the_snappy_framing_format_is_detected() {
    let plain = lines(6_000);
    let mut frames = snap::write::FrameEncoder::new(Vec::new());
    frames.write_all(&plain).expect("memory");
    let mut wire = frames.into_inner().expect("memory");
    // Padding, a skippable chunk, and another stream after it.
    wire.extend_from_slice(b"\xfe\x03\0\0...\x80\x01\0\0.");
    let again = wire.clone();
    wire.extend_from_slice(&again);
    for step in [1, 1_000, 65_536] {
        let (got, end) = decompressed(Compression::Snappy, &wire, step);
        assert!(got == plain.repeat(2) && end.is_ok(), "{step} {end:?}");
    }
    wire[20] ^= 1;
    assert!(decompressed(Compression::Snappy, &wire, 1_000).1.is_err());
}

#[test]
fn concatenated_small_snappy_blocks_are_split() {
    let plain = lines(300);
    let mut wire = Vec::new();
    let mut encoder = snap::raw::Encoder::new();
    let sizes = [1, 0, 3, 70, 900, 2, 5_000];
    let mut rest = &plain[..];
    for size in sizes.into_iter().cycle() {
        let (piece, behind) = rest.split_at(rest.len().min(size));
        wire.extend(encoder.compress_vec(piece).expect("memory"));
        rest = behind;
        if rest.is_empty() {
            break;
        }
    }
    for step in 1..200 {
        let (got, end) = decompressed(Compression::Snappy, &wire, step);
        assert!(got == plain && end.is_ok(), "{step} {end:?}");
    }
}

#[test]
fn empty_members_and_frames_are_read_in_bounded_pieces() {
    let member = GzEncoder::new(Vec::new(), Level::best()).finish().expect("memory");
    let frame = FrameEncoder::new(Vec::new()).finish().expect("memory");
    let skipped = b"\x50\x2a\x4d\x18\0\0\0\0".to_vec();
    let chunks = [&b"\xff\x06\0\0sNaPpY"[..], &b"\x80\0\0\0".repeat(100)].concat();
    let mut framed = snap::write::FrameEncoder::new(Vec::new());
    framed.write_all(b"good 1 2\n").expect("memory");
    let framed = framed.into_inner().expect("memory");
    // The repeated input, and how much of it one call may read.
    let table = [
        (Compression::Gzip, member, 1024),
        (Compression::Lz4, frame, 32 * 1024),
        (Compression::Lz4, skipped, 32 * 1024),
        (Compression::Snappy, b"\0".to_vec(), 1024),
        (Compression::Snappy, chunks, 8 * 1024),
    ];
    for (compression, one, most) in table {
        let mut wire = one.repeat(60_000 / one.len());
        let good = compressed(compression, b"good 1 2\n", std::iter::empty());
        // In the framing format no raw block may follow.
        wire.extend_from_slice(if wire.starts_with(b"\xff") { &framed } else { &good });
        let mut decompressor = Decompressor::new(compression).expect("the format compresses");
        decompressor.push(&wire);
        let (mut out, mut calls, mut left) = (Vec::new(), 0, wire.len());
        while decompressor.has_more() {
            decompressor.decompress(&mut out).expect("the stream is valid");
            let now = decompressor.held.len() - decompressor.used;
            assert!(left - now <= most, "{compression:?}: {} bytes in one call", left - now);
            (left, calls) = (now, calls + 1);
        }
        assert!(calls > 1 && left == 0, "{compression:?}: {calls} calls");
        assert!(out == b"good 1 2\n" && decompressor.end().is_ok(), "{compression:?}");
    }
}

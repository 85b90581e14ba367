//! Compresses the stream of a connection, with flush points up to which the peer can decompress.

use std::io::Write;

use flate2::{Compress, Compression as Level, Crc, FlushCompress};
use lz4_flex::frame::{FrameEncoder, FrameInfo};
use snap::raw::{Encoder, max_compress_len};

use super::format::Compression;

/// Callers flush after at most this many bytes: it is the most that an LZ4 frame and a snappy block contain (spec
/// graphite §2.8).
pub const FLUSH_BYTES: usize = 32 * 1024;

/// Level of gzip. It reduces lines of points to a sixth; level 6, zlib's default, takes four times as long for 20%
/// less.
const LEVEL: u32 = 2;

/// Header of a member: no name, no time, unknown operating system.
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

/// Compresses the bytes of one connection.
pub struct Compressor {
    kind: Kind,
    /// Bytes since the last flush.
    since_flush: usize,
}

enum Kind {
    Gzip(Box<Deflater>),
    Lz4(Vec<u8>),
    Snappy(Vec<u8>, Box<Encoder>),
}

struct Deflater {
    compress: Compress,
    crc: Crc,
    begun: bool,
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor").field("since_flush", &self.since_flush).finish_non_exhaustive()
    }
}

impl Compressor {
    /// A compressor for a new connection; `None` when it is not compressed.
    pub fn new(compression: Compression) -> Option<Compressor> {
        let kind = match compression {
            Compression::Plain => return None,
            Compression::Gzip => Kind::Gzip(Box::new(Deflater {
                compress: Compress::new(Level::new(LEVEL), false),
                crc: Crc::new(),
                begun: false,
            })),
            Compression::Lz4 => Kind::Lz4(Vec::new()),
            Compression::Snappy => Kind::Snappy(Vec::new(), Box::new(Encoder::new())),
        };
        Some(Compressor { kind, since_flush: 0 })
    }

    /// Bytes that [`Self::push`] may take before the next flush.
    pub fn room(&self) -> usize {
        FLUSH_BYTES - self.since_flush
    }

    /// Compresses the first [`Self::room`] bytes of `plain`, and appends the output that is ready to `out`. Returns
    /// how many bytes were taken.
    pub fn push(&mut self, plain: &[u8], out: &mut Vec<u8>) -> usize {
        let plain = &plain[..plain.len().min(self.room())];
        match &mut self.kind {
            Kind::Gzip(deflater) => deflater.run(plain, FlushCompress::None, out),
            Kind::Lz4(waiting) | Kind::Snappy(waiting, _) => waiting.extend_from_slice(plain),
        }
        self.since_flush += plain.len();
        plain.len()
    }

    /// Appends the bytes that make all input so far readable. Appends nothing when there is no input since the last
    /// flush.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        if self.since_flush == 0 {
            return;
        }
        match &mut self.kind {
            Kind::Gzip(deflater) => deflater.run(&[], FlushCompress::Sync, out),
            Kind::Lz4(waiting) => {
                let mut frame = FrameEncoder::with_frame_info(FrameInfo::new(), out);
                frame.write_all(waiting).expect("writing to memory cannot fail");
                frame.finish().expect("writing to memory cannot fail");
                waiting.clear();
            }
            Kind::Snappy(waiting, encoder) => {
                let start = out.len();
                out.resize(start + max_compress_len(waiting.len()), 0);
                let compressed = encoder.compress(waiting, &mut out[start..]);
                out.truncate(
                    start + compressed.expect("there is room for the longest block, and it is below 4 GiB"),
                );
                waiting.clear();
            }
        }
        self.since_flush = 0;
    }

    /// Flushes, and appends the end of the stream. Nothing can be pushed afterwards.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.flush(out);
        if let Kind::Gzip(deflater) = &mut self.kind
            && deflater.begun
        {
            deflater.run(&[], FlushCompress::Finish, out);
            out.extend_from_slice(&deflater.crc.sum().to_le_bytes());
            out.extend_from_slice(&deflater.crc.amount().to_le_bytes());
        }
    }
}

impl Deflater {
    fn run(&mut self, mut plain: &[u8], flush: FlushCompress, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.begun, true) {
            out.extend_from_slice(&GZIP_HEADER);
        }
        self.crc.update(plain);
        loop {
            // Deflate has written everything when a flush leaves room in the output.
            out.reserve(plain.len() / 4 + 512);
            let before = self.compress.total_in();
            self.compress.compress_vec(plain, out, flush).expect("no parameter of deflate is wrong");
            plain = &plain[(self.compress.total_in() - before) as usize..];
            if plain.is_empty() && out.len() < out.capacity() {
                return;
            }
        }
    }
}

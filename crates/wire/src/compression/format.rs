//! The compression formats of streams, and what can be wrong with one.

/// Compression format of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compression {
    /// No compression.
    #[default]
    Plain,
    /// Concatenated gzip members.
    Gzip,
    /// Concatenated LZ4 frames.
    Lz4,
    /// Concatenated snappy blocks, or snappy's framing format.
    Snappy,
}

impl Compression {
    /// All formats.
    pub const ALL: [Compression; 4] =
        [Compression::Plain, Compression::Gzip, Compression::Lz4, Compression::Snappy];

    /// The value of the config option.
    pub fn word(self) -> &'static str {
        match self {
            Compression::Plain => "plain",
            Compression::Gzip => "gzip",
            Compression::Lz4 => "lz4",
            Compression::Snappy => "snappy",
        }
    }
}

/// Why a stream cannot be decompressed any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompressionError {
    /// The bytes are not in this format.
    WrongFormat(Compression),
    /// The compressed data is corrupt.
    Corrupt,
    /// A checksum does not match.
    Checksum,
    /// A block is longer than the limit.
    BlockTooLong,
    /// An unsupported feature: a dictionary, or a later version of the format.
    Unsupported,
    /// The stream ended within a block.
    Truncated,
}

impl CompressionError {
    /// The error as text.
    pub fn why(self) -> &'static str {
        match self {
            CompressionError::WrongFormat(Compression::Gzip) => "this is not gzip",
            CompressionError::WrongFormat(Compression::Lz4) => "this is not an LZ4 frame",
            CompressionError::WrongFormat(_) => "this is not snappy",
            CompressionError::Corrupt => "the compressed data is corrupt",
            CompressionError::Checksum => "a checksum does not match",
            CompressionError::BlockTooLong => "a block is longer than 4 MiB",
            CompressionError::Unsupported => "it uses a compression feature that is not supported",
            CompressionError::Truncated => "it ended within a block",
        }
    }
}

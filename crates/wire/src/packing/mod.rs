//! Streams of lines made smaller on the wire, and back (spec graphite §2.8, §2.9).

/// How the bytes of a stream are packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Packing {
    /// Not at all.
    #[default]
    Plain,
    /// gzip members behind each other.
    Gzip,
    /// LZ4 frames behind each other.
    Lz4,
    /// Blocks of snappy behind each other, or its frames.
    Snappy,
}

impl Packing {
    /// All of them.
    pub const ALL: [Packing; 4] = [Packing::Plain, Packing::Gzip, Packing::Lz4, Packing::Snappy];

    /// Its word in configs.
    pub fn word(self) -> &'static str {
        match self {
            Packing::Plain => "plain",
            Packing::Gzip => "gzip",
            Packing::Lz4 => "lz4",
            Packing::Snappy => "snappy",
        }
    }
}

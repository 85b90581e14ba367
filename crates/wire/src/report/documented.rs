//! How much of a flush a document has.

/// How many of the added series are in the document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Documented {
    /// Series in the document. Series that the format omits on purpose are not counted.
    pub series: u64,
    /// Series that did not fit.
    pub left_out: u64,
}

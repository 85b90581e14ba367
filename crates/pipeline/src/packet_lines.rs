//! The lines of a packet.

use model::Span;

/// Where the lines of `bytes` lie, without their LF; the last may have none. Empty lines are skipped.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = Span> {
    let mut from = 0;
    memchr::memchr_iter(b'\n', bytes).chain([bytes.len()]).filter_map(move |end| {
        let line = Span::new(from, end - from);
        from = end + 1;
        (!line.is_empty()).then_some(line)
    })
}

#[test]
fn lines_end_in_lf_or_with_the_bytes() {
    let table = [
        (&b""[..], vec![]),
        (b"\n\n", vec![]),
        (b"a", vec![(0, 1)]),
        (b"a\nbb\n", vec![(0, 1), (2, 2)]),
        (b"\na\n\nb", vec![(1, 1), (4, 1)]),
    ];
    for (bytes, want) in table {
        let want: Vec<Span> = want.iter().map(|(at, len)| Span::new(*at, *len)).collect();
        assert_eq!(lines(bytes).collect::<Vec<_>>(), want, "{:?}", bytes.escape_ascii());
    }
}

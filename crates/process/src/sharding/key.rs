//! The sharding key of a StatsD line.

use memchr::{memchr, memchr_iter, memchr2};

/// The key of node's cluster proxy: the text before the first `:`, or the whole line without one (spec statsd §13).
/// Tags in the name (`name;env=prod:1|c`) are part of it, those after the value (`|#env:prod`) are not.
pub fn node_key(line: &[u8]) -> &[u8] {
    &line[..memchr(b':', line).unwrap_or(line.len())]
}

/// Which part of a line is its key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyForm {
    /// As in node's cluster proxy: see [`node_key`].
    #[default]
    Node,
    /// The name without tags of any format: all series of a name stay together.
    Name,
    /// The name and all tags, in any order: the series of one name are spread.
    Series,
}

/// Extracts the keys of lines; reuses its buffers.
#[derive(Clone, Debug, Default)]
pub struct KeyReader {
    form: KeyForm,
    /// Name and sorted tags of the current line.
    held: Vec<u8>,
    /// Start and end of its tags in the line.
    tags: Vec<(usize, usize)>,
}

impl KeyReader {
    /// A reader for keys of one kind.
    pub fn new(form: KeyForm) -> KeyReader {
        KeyReader { form, ..KeyReader::default() }
    }

    /// The key of a line without its line end. Nothing is validated: any bytes have a key.
    pub fn key<'a>(&'a mut self, line: &'a [u8]) -> &'a [u8] {
        let name = node_key(line);
        match self.form {
            KeyForm::Node => name,
            KeyForm::Name => &name[..tags_begin(name)],
            KeyForm::Series => self.series(line, name.len()),
        }
    }

    /// `name;tag;tag`, with the tags sorted and empty ones left out. DogStatsD tags come after the value, with `:`
    /// where tags in a name have `=`. Both formats give the same key.
    fn series<'a>(&'a mut self, line: &'a [u8], name_end: usize) -> &'a [u8] {
        let begin = tags_begin(&line[..name_end]);
        self.tags.clear();
        self.record_tags(line, begin, name_end);
        if let Some((begin, end)) = tag_part(line, name_end) {
            self.record_tags(line, begin, end);
        }
        if self.tags.is_empty() {
            return &line[..begin];
        }
        // So that neither the order nor the key depends on the format.
        let one_form = |byte: &u8| if *byte == b':' { b'=' } else { *byte };
        let in_one_form = |tag: &(usize, usize)| line[tag.0..tag.1].iter().map(one_form);
        self.tags.sort_by(|left, right| in_one_form(left).cmp(in_one_form(right)));
        self.held.clear();
        self.held.extend_from_slice(&line[..begin]);
        for tag in &self.tags {
            self.held.push(b';');
            self.held.extend(in_one_form(tag));
        }
        &self.held
    }

    /// Records the tags between two positions of the line.
    fn record_tags(&mut self, line: &[u8], begin: usize, end: usize) {
        let mut from = begin;
        while from < end {
            let to = memchr2(b';', b',', &line[from..end]).map_or(end, |length| from + length);
            if to > from {
                self.tags.push((from, to));
            }
            from = to + 1;
        }
    }
}

/// Start of the tags in a name: at Graphite's `;` or InfluxDB's `,`.
fn tags_begin(name: &[u8]) -> usize {
    memchr2(b';', b',', name).unwrap_or(name.len())
}

/// Start and end of the part after `|#`.
fn tag_part(line: &[u8], name_end: usize) -> Option<(usize, usize)> {
    let bar = memchr_iter(b'|', &line[name_end..]).find(|at| line.get(name_end + at + 1) == Some(&b'#'))?;
    let begin = name_end + bar + 2;
    let end = memchr(b'|', &line[begin..]).map_or(line.len(), |length| begin + length);
    Some((begin, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_each_kind_are_extracted() {
        // (line, node, name, series)
        let table: &[(&str, &str, &str, &str)] = &[
            ("hits:1|c", "hits", "hits", "hits"),
            ("hits:1:2:3|c", "hits", "hits", "hits"),
            ("hits", "hits", "hits", "hits"),
            ("", "", "", ""),
            (":1|c", "", "", ""),
            ("a b/c:1|c", "a b/c", "a b/c", "a b/c"),
            ("x;env=prod:1|c", "x;env=prod", "x", "x;env=prod"),
            ("x;b=2;a=1:1|c", "x;b=2;a=1", "x", "x;a=1;b=2"),
            ("x;:1|c", "x;", "x", "x"),
            ("x,b=2,a=1:1|c", "x,b=2,a=1", "x", "x;a=1;b=2"),
            ("x:1|c|#b:2,a:1", "x", "x", "x;a=1;b=2"),
            ("x:1|c|@0.5|#b:2,a:1|T16", "x", "x", "x;a=1;b=2"),
            ("x:1|c|#", "x", "x", "x"),
            ("x:1|c|#,,a", "x", "x", "x;a"),
            ("x;b=2:1|c|#a:1", "x;b=2", "x", "x;a=1;b=2"),
            ("x:1|#|#a", "x", "x", "x"),
            ("x#y|#a:1|c", "x#y|#a", "x#y|#a", "x#y|#a"),
            ("x|#;a:1|c", "x|#;a", "x|#", "x|#;a"),
        ];
        let mut readers = [KeyForm::Node, KeyForm::Name, KeyForm::Series].map(KeyReader::new);
        for (line, node, name, series) in table {
            for (reader, want) in readers.iter_mut().zip([node, name, series]) {
                let form = reader.form;
                assert_eq!(
                    String::from_utf8_lossy(reader.key(line.as_bytes())),
                    **want,
                    "{line:?} as {form:?}"
                );
            }
            assert_eq!(node_key(line.as_bytes()), node.as_bytes());
        }
    }

    #[test]
    fn the_series_key_ignores_order_and_format_of_tags() {
        let mut reader = KeyReader::new(KeyForm::Series);
        let want = reader.key(b"x:1|c|#a:1,a-b:2,c").to_vec();
        for same in [
            b"x:1|c|#a-b:2,c,a:1".as_slice(),
            b"x:7|ms|#c,a:1,a-b:2|c:abc",
            b"x;a=1;c;a-b=2:1|c",
            b"x,c,a-b=2,a=1:1|c",
        ] {
            assert_eq!(reader.key(same), want, "{}", String::from_utf8_lossy(same));
        }
        assert_ne!(reader.key(b"x:1|c|#a:1,a-b:3,c"), want);
        assert_ne!(reader.key(b"xx:1|c|#a:1,a-b:2,c"), want);
    }
}

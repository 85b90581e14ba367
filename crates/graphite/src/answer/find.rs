//! What a search found, as `/metrics/find`, `/metrics/expand`, `/metrics/index.json` and `/tags` answer it (spec graphite §6.6 to §6.9).

use crate::catalog::{Counted, Found};
use crate::whisper::Header;

use super::json::{push_text, push_texts};

/// Rows for trees of names, as Grafana and the browser of graphite-web ask for them.
pub fn tree(found: &Found, query: &[u8], wildcards: bool) -> Vec<u8> {
    let mut out = vec![b'['];
    for (number, row) in found.tree_rows(query, wildcards).iter().enumerate() {
        if number > 0 {
            out.extend_from_slice(b", ");
        }
        out.extend_from_slice(b"{\"text\": ");
        push_text(&row.text, &mut out);
        out.extend_from_slice(b", \"id\": ");
        push_text(&row.id, &mut out);
        let (branch, leaf) = if row.branch { (1, 0) } else { (0, 1) };
        let rest = format!(", \"allowChildren\": {branch}, \"expandable\": {branch}, \"leaf\": {leaf}}}");
        out.extend_from_slice(rest.as_bytes());
    }
    out.push(b']');
    out
}

/// Rows for completion in the composer.
pub fn completer(found: &Found, wildcards: bool) -> Vec<u8> {
    let mut out = b"{\"metrics\": [".to_vec();
    for (number, row) in found.completer_rows(wildcards).iter().enumerate() {
        if number > 0 {
            out.extend_from_slice(b", ");
        }
        out.push(b'{');
        if let Some(path) = &row.path {
            out.extend_from_slice(b"\"path\": ");
            push_text(path, &mut out);
            out.extend_from_slice(b", ");
        }
        out.extend_from_slice(b"\"name\": ");
        push_text(&row.name, &mut out);
        if row.path.is_some() {
            out.extend_from_slice(if row.leaf { b", \"is_leaf\": \"1\"" } else { b", \"is_leaf\": \"0\"" });
        }
        out.push(b'}');
    }
    out.extend_from_slice(b"]}");
    out
}

/// The components at one position of the paths, each once.
pub fn nodes(found: &Found, position: Option<usize>) -> Vec<u8> {
    let mut out = b"{\"nodes\": [".to_vec();
    push_texts(found.components_at(position), &mut out);
    out.extend_from_slice(b"]}");
    out
}

/// Paths with the time that they cover: `[oldest, now]`.
pub fn paths(found: &Found, interval: (i64, i64)) -> Vec<u8> {
    let mut out = vec![b'['];
    for (number, (node, leaf)) in found.rows_by_path().enumerate() {
        if number > 0 {
            out.extend_from_slice(b", ");
        }
        out.extend_from_slice(b"{\"path\": ");
        push_text(node.path, &mut out);
        if leaf {
            let (start, end) = interval;
            let rest =
                format!(", \"is_leaf\": true, \"intervals\": [{{\"start\": {start}, \"end\": {end}}}]}}");
            out.extend_from_slice(rest.as_bytes());
        } else {
            out.extend_from_slice(b", \"is_leaf\": false}");
        }
    }
    out.push(b']');
    out
}

/// The answer of expand: one list for all queries, or one for each.
pub fn expanded(queries: &[(String, Found)], leaves_only: bool, by_query: bool) -> Vec<u8> {
    let mut out = b"{\"results\": ".to_vec();
    if by_query {
        out.push(b'{');
        for (number, (query, found)) in queries.iter().enumerate() {
            if number > 0 {
                out.extend_from_slice(b", ");
            }
            push_text(query.as_bytes(), &mut out);
            out.extend_from_slice(b": [");
            push_texts(found.paths(leaves_only), &mut out);
            out.push(b']');
        }
        out.push(b'}');
    } else {
        let mut paths: Vec<&[u8]> = queries.iter().flat_map(|(_, found)| found.paths(leaves_only)).collect();
        paths.sort_unstable();
        paths.dedup();
        out.push(b'[');
        push_texts(paths, &mut out);
        out.push(b']');
    }
    out.push(b'}');
    out
}

/// The header of the file of a series, as go-carbon answers it.
pub fn info(name: &[u8], header: &Header) -> Vec<u8> {
    let mut out = b"{\"name\": ".to_vec();
    push_text(name, &mut out);
    out.extend_from_slice(b", \"aggregationMethod\": ");
    push_text(header.method.name().as_bytes(), &mut out);
    let (retention, factor) = (header.retention(), header.x_files_factor);
    out.extend_from_slice(
        format!(", \"maxRetention\": {retention}, \"xFilesFactor\": {factor}, \"retentions\": [").as_bytes(),
    );
    for (number, archive) in header.archives().iter().enumerate() {
        let comma = if number > 0 { ", " } else { "" };
        let (step, points) = (archive.step, archive.points);
        let row = format!("{comma}{{\"secondsPerPoint\": {step}, \"numberOfPoints\": {points}}}");
        out.extend_from_slice(row.as_bytes());
    }
    out.extend_from_slice(b"]}");
    out
}

/// The names of tags.
pub fn tags(all: &[Counted]) -> Vec<u8> {
    let mut out = vec![b'['];
    for (number, one) in all.iter().enumerate() {
        if number > 0 {
            out.extend_from_slice(b", ");
        }
        out.extend_from_slice(format!("{{\"id\": {}, \"tag\": ", one.id).as_bytes());
        push_text(&one.text, &mut out);
        out.push(b'}');
    }
    out.push(b']');
    out
}

/// The values of a tag.
pub fn values(id: u32, tag: &[u8], all: &[Counted]) -> Vec<u8> {
    let mut out = format!("{{\"id\": {id}, \"tag\": ").into_bytes();
    push_text(tag, &mut out);
    out.extend_from_slice(b", \"values\": [");
    for (number, one) in all.iter().enumerate() {
        if number > 0 {
            out.extend_from_slice(b", ");
        }
        out.extend_from_slice(format!("{{\"id\": {}, \"value\": ", one.id).as_bytes());
        push_text(&one.text, &mut out);
        out.extend_from_slice(format!(", \"count\": {}}}", one.count).as_bytes());
    }
    out.extend_from_slice(b"]}");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Catalog, CatalogLimits, NameGlob, SearchLimits, Wanted};

    fn found(glob: &str) -> Found {
        let mut catalog = Catalog::new(CatalogLimits { names_max: 100, bytes_max: 1 << 20 }, 1);
        for name in ["a.b", "a.b.c", "a.x", "z"] {
            catalog.insert(name.as_bytes()).expect("a valid name");
        }
        let limits = SearchLimits { results_max: 100, steps_max: 10_000 };
        catalog.search(NameGlob::new(glob.as_bytes()).expect("short"), Wanted::All, limits).expect("few")
    }

    fn text(bytes: Vec<u8>) -> String {
        serde_json::from_slice::<serde_json::Value>(&bytes).expect("JSON");
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn a_name_that_is_both_is_a_branch_of_the_tree_and_two_paths() {
        let want = r#"[{"text": "b", "id": "a.b", "allowChildren": 1, "expandable": 1, "leaf": 0}, {"text": "x", "id": "a.x", "allowChildren": 0, "expandable": 0, "leaf": 1}]"#;
        assert_eq!(text(tree(&found("a.*"), b"a.*", false)), want);
        let want = r#"[{"path": "a.b", "is_leaf": false}, {"path": "a.b", "is_leaf": true, "intervals": [{"start": 1, "end": 2}]}, {"path": "a.x", "is_leaf": true, "intervals": [{"start": 1, "end": 2}]}]"#;
        assert_eq!(text(paths(&found("a.*"), (1, 2))), want);
        let want = r#"{"metrics": [{"path": "a.b.", "name": "b", "is_leaf": "0"}, {"path": "a.b", "name": "b", "is_leaf": "1"}, {"path": "a.x", "name": "x", "is_leaf": "1"}]}"#;
        assert_eq!(text(completer(&found("a.*"), false)), want);
        assert_eq!(text(nodes(&found("a.*"), Some(0))), r#"{"nodes": ["a"]}"#);
        // A branch and a leaf of one name are more than one.
        assert!(text(tree(&found("a.b"), b"a.b", true)).starts_with(r#"[{"text": "*", "id": "a.*""#));
        assert!(!text(tree(&found("a.x"), b"a.x", true)).contains('*'));
    }

    #[test]
    fn expanded_paths_are_one_list_or_one_for_each_query() {
        let queries = || vec![("a.*".to_owned(), found("a.*")), ("*".to_owned(), found("*"))];
        assert_eq!(text(expanded(&queries(), false, false)), r#"{"results": ["a", "a.b", "a.x", "z"]}"#);
        let want = r#"{"results": {"a.*": ["a.b", "a.x"], "*": ["z"]}}"#;
        assert_eq!(text(expanded(&queries(), true, true)), want);
    }
}

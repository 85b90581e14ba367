//! Repetitions of parts that may match nothing: detects those where the linear engine and PCRE2 find different
//! matches.
//!
//! PCRE2 leaves a loop as soon as a round has matched nothing. The linear engine discards that round and tries one
//! that matches something. It makes a difference when a round prefers to match nothing, as in `(a??)+` and `(|a)+`.

use regex_syntax::hir::{Hir, HirKind};

/// True for expressions for which the two may find different matches. False also when the engine rejects the
/// expression.
pub(super) fn may_differ(linear: &str) -> bool {
    let parser = regex_syntax::ParserBuilder::new().unicode(false).utf8(false).to_owned();
    parser.build().parse(linear).is_ok_and(|parsed| has_such_a_loop(&parsed))
}

fn has_such_a_loop(hir: &Hir) -> bool {
    if let HirKind::Repetition(repeated) = hir.kind()
        && repeated.max.is_none_or(|max| max > 1)
        && may_be_empty(&repeated.sub)
        && prefers_nothing(&repeated.sub)
    {
        return true;
    }
    hir.kind().subs().iter().any(has_such_a_loop)
}

fn may_be_empty(hir: &Hir) -> bool {
    hir.properties().minimum_len() == Some(0)
}

/// True when some part of it tries less before more.
fn prefers_nothing(hir: &Hir) -> bool {
    let here = match hir.kind() {
        HirKind::Repetition(repeated) => !repeated.greedy,
        HirKind::Alternation(branches) => {
            branches.split_last().is_some_and(|(_, first)| first.iter().any(may_be_empty))
        }
        HirKind::Empty
        | HirKind::Literal(_)
        | HirKind::Class(_)
        | HirKind::Look(_)
        | HirKind::Capture(_)
        | HirKind::Concat(_) => false,
    };
    here || hir.kind().subs().iter().any(prefers_nothing)
}

#[test]
fn loops_that_prefer_to_match_nothing_are_detected() {
    for (expression, differs) in [
        ("(a??)+", true),
        ("(?:[ab]??){1,}", true),
        ("x(?:(|a)b?)*y", true),
        ("(?:(?:a*?)*b)?", true),
        ("(a?)+", false),
        ("(?:a|)+", false),
        ("(?:a??)?", false),
        ("a*?b*", false),
        ("(?:a+?)+", false),
        ("(", false),
    ] {
        assert_eq!(may_differ(expression), differs, "{expression}");
    }
}

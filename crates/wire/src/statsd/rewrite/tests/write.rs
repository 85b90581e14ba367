//! Every edit and every conversion, line by line.

use super::super::super::{LINE_WRITTEN_BYTES_MAX, WRITTEN_BYTES_ALWAYS, WRITTEN_PER_BYTE_MAX};
use super::super::{
    Distributions, Form, Gauges, Rewrite, RewriteError, RewritePlan, Strip, TagFormat, Written, parts,
};

fn rewritten(plan: &RewritePlan, rate_factor: Option<f64>, line: &str) -> (String, Written) {
    let mut out = Vec::new();
    let rewrite = Rewrite::new(plan).expect("a plan");
    let written = rewrite.write(&parts(line.as_bytes()).expect(line), rate_factor, &mut out);
    let text = String::from_utf8(out).expect("the lines are ASCII");
    assert_eq!(text.lines().count(), written.lines as usize, "{line}");
    assert!(text.is_empty() || text.ends_with('\n'), "{line}");
    (text.trim_end_matches('\n').to_owned(), written)
}

fn check(plan: &RewritePlan, rows: &[(&str, &str)]) {
    for (line, want) in rows {
        assert_eq!(rewritten(plan, None, line).0, *want, "{line:?} by {plan:?}");
    }
}

fn to(to: Form) -> RewritePlan {
    RewritePlan { to, ..RewritePlan::default() }
}

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn prefix_and_suffix_change_names_only() {
    let plan = RewritePlan { prefix: "edge.".into(), suffix: ".raw".into(), ..RewritePlan::default() };
    check(
        &plan,
        &[
            ("a:1|c", "edge.a.raw:1|c"),
            ("a;k=v:1|c|#x:y", "edge.a.raw;k=v:1|c|#x:y"),
            ("a:1:2|ms|@0.10|zz||#b,,a|#c\r", "edge.a.raw:1:2|ms|@0.10|zz||#b,,a|#c\r"),
            ("a:1|c:2|g|@x:3", "edge.a.raw:1|c:2|g|@x:3"),
            (":1|c", "edge..raw:1|c"),
            ("_e{1,1}:a|b|#x", "_e{1,1}:a|b|#x"),
            ("_sc|a|0", "_sc|a|0"),
        ],
    );
    assert!(!Rewrite::new(&plan).expect("a plan").is_identity());
    assert!(Rewrite::new(&RewritePlan::default()).expect("a plan").is_identity());
    assert!(!Rewrite::new(&to(Form::ETSY)).expect("a plan").is_identity());
}

#[test]
fn tags_are_dropped_then_renamed_then_added() {
    let plan = RewritePlan {
        tags_drop: texts(&["secret", "tmp_*", "env"]),
        tags_rename: vec![("dc".into(), "site".into()), ("secret".into(), "never".into())],
        tags_add: texts(&["env:prod", "site:default", "edge"]),
        ..RewritePlan::default()
    };
    check(
        &plan,
        &[
            ("a:1|c", "a:1|c|#env:prod,site:default,edge"),
            ("a:1|c|@0.5", "a:1|c|@0.5|#env:prod,site:default,edge"),
            ("a:1|c|@0.5|c:x", "a:1|c|@0.5|#env:prod,site:default,edge|c:x"),
            ("a:1|c|c:x\r", "a:1|c|#env:prod,site:default,edge|c:x\r"),
            ("a:1|c|#x:1,secret:2,tmp_a,tmp_:3,tmp:4", "a:1|c|#x:1,tmp:4,env:prod,site:default,edge"),
            ("a:1|c|#dc:fra,env:dev", "a:1|c|#site:fra,env:prod,edge"),
            ("a:1|c|#dc,edge:9", "a:1|c|#site,edge:9,env:prod"),
            ("a:1|c|#,x,,y,|@0.5", "a:1|c|#x,y,env:prod,site:default,edge|@0.5"),
            // Where only the name has tags, the new ones are added there; `=` ends a key as `:` does.
            ("a;dc=fra;secret=x:1|c", "a;site=fra;env=prod;edge:1|c"),
            ("a;dc=fra:1|c|#y", "a;site=fra:1|c|#y,env:prod,edge"),
            // Of two fields the last counts.
            ("a:1|c|#x|@0.5|#y", "a:1|c|@0.5|#y,env:prod,site:default,edge"),
            // Node's several types: tags before all other fields, and one line each where that is impossible.
            ("a:1|c:2|g", "a:1|c:2|g|#env:prod,site:default,edge"),
            ("a:1|c:2|g|#x", "a:1|c:2|g|#x,env:prod,site:default,edge"),
            // Events and checks have tags, too.
            ("_e{1,1}:a|b|d:1", "_e{1,1}:a|b|#env:prod,site:default,edge|d:1"),
            ("_sc|a|0|#dc:x|m:text", "_sc|a|0|#site:x,env:prod,edge|m:text"),
        ],
    );
    let drop_all = RewritePlan { tags_drop: texts(&["*"]), ..RewritePlan::default() };
    check(
        &drop_all,
        &[
            ("a;k=v:1|c|#x:y,z|@0.5", "a:1|c|@0.5"),
            ("a:1|c|@0.5", "a:1|c|@0.5"),
            ("a:1|c:2|c|#x|@0.5", "a:1|c|@0.5\na:2|c|@0.5"),
            ("a:1|c:2|c|#x", "a:1|c:2|c"),
        ],
    );
}

#[test]
fn tags_are_moved_into_names_in_carbon_syntax() {
    let form = Form { tags: TagFormat::Graphite, ..Form::KEEP };
    check(
        &to(form),
        &[
            ("a:1|c|#env:prod", "a;env=prod:1|c"),
            ("a:1|c|#b:2,a:1|@0.5", "a;a=1;b=2:1|c|@0.5"),
            ("a;z=1;b=2:1|c|#c:3", "a;b=2;c=3;z=1:1|c"),
            ("a:1|c|#x", "a;x=true:1|c"),
            ("a:1|c|#k=v", "a;k=v:1|c"),
            ("a:1|c|#k:v,k:v,k:w", "a;k=v;k=w:1|c"),
            ("a:1|c|#url:http://x/y", "a;url=http_//x/y:1|c"),
            ("a:1|c|#k:a b;c\t d,~x:~y", "a;k=a_b_c_d;~x=_y:1|c"),
            ("a:1|c|#a!b^c=d:e=f", "a;a_b_c_d=e=f:1|c"),
            ("a:1|c", "a:1|c"),
            ("a:1|c|#", "a:1|c"),
            ("a:1:2|ms|#t:u|c:x", "a;t=u:1:2|ms|c:x"),
            ("a:1|c:2|c|#t:u|@0.5", "a;t=u:1|c|@0.5\na;t=u:2|c|@0.5"),
            // Events have no name for tags.
            ("_e{1,1}:a|b|#x:y", "_e{1,1}:a|b|#x:y"),
        ],
    );
    let (line, written) = rewritten(&to(form), None, "a:1|c|#k:,:v,ok:1,=w");
    assert_eq!(
        (line.as_str(), written.tags_left_out),
        ("a;ok=1:1|c", 3),
        "neither key nor value may be empty"
    );
    let bare = |value: &str| RewritePlan { bare_tag_value: value.into(), ..to(form) };
    check(&bare("yes"), &[("a:1|c|#x,y:1", "a;x=yes;y=1:1|c")]);
    check(&bare(""), &[("a:1|c|#x,y:1", "a;y=1:1|c")]);
    let plan = RewritePlan {
        tags_add: texts(&["up:a:b", "bare"]),
        prefix: "p.".into(),
        suffix: ".s".into(),
        ..to(form)
    };
    check(&plan, &[("a:1|c|#z:1", "p.a.s;bare=true;up=a_b;z=1:1|c")]);
}

#[test]
fn tags_are_moved_from_names_to_the_dogstatsd_field() {
    let form = Form { tags: TagFormat::Dogstatsd, ..Form::KEEP };
    check(
        &to(form),
        &[
            ("a;k=v:1|c", "a:1|c|#k:v"),
            ("a;k=v;bare:1|c|@0.5|#x:y", "a:1|c|@0.5|#k:v,bare,x:y"),
            ("a;k=a,b|c=d:1|c", "a:1|c|#k:a_b_c=d"),
            ("a;;k=v:1|c|#", "a:1|c|#k:v"),
            ("a:1|c", "a:1|c"),
        ],
    );
    check(&to(Form { tags: TagFormat::Drop, ..Form::KEEP }), &[("a;k=v:1|c|#x|@0.5", "a:1|c|@0.5")]);
}

#[test]
fn each_conversion_works_alone() {
    check(
        &to(Form { one_value_per_line: true, ..Form::KEEP }),
        &[
            ("a:1:2|ms", "a:1|ms\na:2|ms"),
            ("a;k=v:1::2|d|#t|@0.1|c:x", "a;k=v:1|d|@0.1|#t|c:x\na;k=v:2|d|@0.1|#t|c:x"),
            ("a:1|c|@0.5:2|g:3|ms|#t|@0.1", "a:1|c|@0.5|#t\na:2|g|@0.1|#t\na:3|ms|@0.1|#t"),
            ("u:a:b|s", "u:a_b|s"),
            (":1|c", ":1|c"),
        ],
    );
    let strip = Strip { unknown: true, ..Strip::NONE };
    check(
        &to(Form { one_value_per_line: true, strip, ..Form::KEEP }),
        &[
            ("a:1:2|c|c:x\r|zz", "a:1|c|c:x\na:2|c|c:x"),
            ("a:1:2|c|@1\r|zz", "a:1|c|@1\na:2|c|@1"),
            ("a:1:2|#\r\r|zz", "a:1|#\na:2|#"),
        ],
    );
    for (distributions, histograms_as_timers, d, h) in [
        (Distributions::Keep, false, "d", "h"),
        (Distributions::Histograms, false, "h", "h"),
        (Distributions::Timers, false, "ms", "h"),
        (Distributions::Keep, true, "d", "ms"),
        (Distributions::Histograms, true, "ms", "ms"),
        (Distributions::Timers, true, "ms", "ms"),
    ] {
        let plan = to(Form { distributions, histograms_as_timers, ..Form::KEEP });
        check(&plan, &[("a:1:2|d", &format!("a:1:2|{d}")), ("a:1|h|@0.5", &format!("a:1|{h}|@0.5"))]);
        check(&plan, &[("a:1|ms", "a:1|ms"), ("a:1|dd", "a:1|dd"), ("a:1|c:2|d", &format!("a:1|c:2|{d}"))]);
    }
    check(&to(Form { histograms_as_timers: true, ..Form::KEEP }), &[("a:1| h |@0.5 ", "a:1|ms|@0.5 ")]);
    let line = "a:1|c|@0.5|c:x|e:y|card:low|T9|zz|#t";
    for (strip, want) in [
        (Strip { container: true, ..Strip::NONE }, "a:1|c|@0.5|e:y|card:low|T9|zz|#t"),
        (Strip { external: true, ..Strip::NONE }, "a:1|c|@0.5|c:x|card:low|T9|zz|#t"),
        (Strip { cardinality: true, ..Strip::NONE }, "a:1|c|@0.5|c:x|e:y|T9|zz|#t"),
        (Strip { time: true, ..Strip::NONE }, "a:1|c|@0.5|c:x|e:y|card:low|zz|#t"),
        (Strip { unknown: true, ..Strip::NONE }, "a:1|c|@0.5|c:x|e:y|card:low|T9|#t"),
        (Strip::ALL, "a:1|c|@0.5|#t"),
    ] {
        check(&to(Form { strip, ..Form::KEEP }), &[(line, want)]);
    }
    check(
        &to(Form { strip: Strip::ALL, ..Form::KEEP }),
        &[
            ("a:1|c|#s|@0.1|#t|@0.5", "a:1|c|#t|@0.5"),
            ("_e{1,1}:a|b|d:1|c:x|e:y|h:z|card:low|#t", "_e{1,1}:a|b|d:1|h:z|#t"),
            ("_sc|a|0|T9|m:x", "_sc|a|0|T9|m:x"),
        ],
    );
    for (line, kept) in [("_e{1,1}:a|b", true), ("_sc|a|0|#x", true), ("a:1|c", false)] {
        let (text, written) = rewritten(&to(Form { events: false, ..Form::KEEP }), None, line);
        assert_eq!((text.is_empty(), written.lines == 0), (kept, kept), "{line}");
    }
}

#[test]
fn gauges_keep_their_value_where_signs_mean_changes() {
    let form = |gauges| to(Form { gauges, ..Form::KEEP });
    let table = [
        // line, result when the sender's signs are changes, result when they are parts of numbers
        ("g:5|g", "g:5|g", "g:5|g"),
        ("g:-5|g", "g:-5|g", "g:0|g\ng:-5|g"),
        ("g:+5|g", "g:+5|g", "g:5|g"),
        ("g:=5|g", "g:5|g", "g:5|g"),
        ("g:=-5|g|#a:b", "g:0|g|#a:b\ng:-5|g|#a:b", "g:0|g|#a:b\ng:-5|g|#a:b"),
        ("g:=+5|g", "g:5|g", "g:5|g"),
        ("g:-.5|g", "g:-.5|g", "g:0|g\ng:-.5|g"),
        // A value with its own time is absolute in every dialect.
        ("g:-5|g|T9", "g:0|g|T9\ng:-5|g|T9", "g:0|g|T9\ng:-5|g|T9"),
        ("g:1:-2:+3|g", "g:1:-2:+3|g", "g:1|g\ng:0|g\ng:-2|g\ng:3|g"),
        // Not numbers, not gauges.
        ("g:-|g", "g:-|g", "g:-|g"),
        ("g:=x|g", "g:=x|g", "g:=x|g"),
        ("c:-5|c", "c:-5|c", "c:-5|c"),
        ("c:-5|c:-6|g", "c:-5|c:-6|g", "c:-5|c\nc:0|g\nc:-6|g"),
    ];
    for (line, changes, parts) in table {
        check(&form(Gauges::SignsAreChanges), &[(line, changes)]);
        check(&form(Gauges::SignsAreParts), &[(line, parts)]);
        check(&form(Gauges::Keep), &[(line, line)]);
    }
}

#[test]
fn predefined_conversions_match_their_receivers() {
    let line = "m:1:2|d|#b:2,a|@0.5|c:x|e:y|T9|card:low|zz";
    for (name, want) in [
        ("keep", line),
        ("etsy", "m:1|ms|@0.5\nm:2|ms|@0.5"),
        ("etsy_tags", "m;a=true;b=2:1|ms|@0.5\nm;a=true;b=2:2|ms|@0.5"),
        ("graphite_tags", "m;a=true;b=2:1:2|d|@0.5|c:x|e:y|T9|card:low|zz"),
        ("dogstatsd_1_0", "m:1|d|@0.5|#b:2,a\nm:2|d|@0.5|#b:2,a"),
    ] {
        check(&to(Form::named(name).expect(name)), &[(line, want)]);
    }
    assert_eq!(Form::named("node"), None);
    assert_eq!(rewritten(&to(Form::ETSY), None, "m:1|c\r").0, "m:1|c");
    assert_eq!(rewritten(&to(Form::ETSY), None, "m:x:|ms").0, "m:x|ms");
    let (none, written) = rewritten(&to(Form::ETSY), None, "m:::|ms");
    assert_eq!((none.as_str(), written), ("", Written::default()), "no value, no line");
}

#[test]
fn bits_that_every_dialect_rejects_are_omitted_and_counted() {
    for (line, want, left_out) in
        [("a:1|c:2", "a:1|c", 1), ("a:x:1|c|@0.1:2|c|zz", "a:1|c|@0.1", 2), ("a:1|c|#t|@0.5:3|c", "", 1)]
    {
        let (text, written) = rewritten(&to(Form::ETSY), None, line);
        assert_eq!((text.as_str(), written.values_left_out), (want, left_out), "{line}");
    }
}

#[test]
fn the_rate_of_sampled_lines_is_multiplied() {
    let table = [
        ("a:1|c", 0.1, "a:1|c|@0.1"),
        ("a:1:2|ms", 0.5, "a:1:2|ms|@0.5"),
        ("a:1|h|@0.5", 0.5, "a:1|h|@0.25"),
        ("a:1|d|#t|@.5|c:x", 0.5, "a:1|d|#t|@0.25|c:x"),
        ("a:1|c|#t", 0.1, "a:1|c|@0.1|#t"),
        ("a:1|c\r", 0.5, "a:1|c|@0.5\r"),
        ("a:1|c|@1e-3", 0.5, "a:1|c|@0.0005"),
        // No exponent: node would read `1`.
        ("a:1|c|@0.00001", 0.01, "a:1|c|@0.0000001"),
        ("a:1|c|@0.1", 0.1, "a:1|c|@0.01"),
        ("a:1|c|@0.3", 0.7, "a:1|c|@0.21"),
        ("a:1|c|@0.5", 0.3333333333333333, "a:1|c|@0.16666666666666666"),
        ("a:1|c|@0.1|@0.5", 0.5, "a:1|c|@0.25"),
        ("a:1|c|@0.5:2|g:3|ms", 0.5, "a:1|c|@0.25:2|g:3|ms|@0.5"),
        ("a:1|c|@0.5:2|c|#t|@0.1", 0.5, "a:1|c|@0.25:2|c|#t|@0.05"),
        ("a:1|c:2|c|#t", 0.5, "a:1|c|@0.5:2|c|@0.5|#t"),
        // Types without a rate, and invalid rates.
        ("a:1|g|@0.5", 0.5, "a:1|g|@0.5"),
        ("a:x|s", 0.5, "a:x|s"),
        ("a:1|kv", 0.5, "a:1|kv"),
        ("a:1|c|@x", 0.5, "a:1|c|@x"),
        ("a:1|c|@0", 0.5, "a:1|c|@0"),
        ("_sc|a|0", 0.5, "_sc|a|0"),
        // Factors that are not a probability change nothing.
        ("a:1|c", 1.0, "a:1|c"),
        ("a:1|c", 0.0, "a:1|c"),
        ("a:1|c", f64::NAN, "a:1|c"),
    ];
    for (line, factor, want) in table {
        assert_eq!(rewritten(&RewritePlan::default(), Some(factor), line).0, want, "{line} times {factor}");
    }
    let etsy = rewritten(&to(Form::ETSY), Some(0.5), "a:1:2|h|#t|@0.1").0;
    assert_eq!(etsy, "a:1|ms|@0.05\na:2|ms|@0.05");
    assert_eq!(rewritten(&to(Form::ETSY), Some(0.5), "a:1|c|@+0.5").0, "a:1|c|@0.25");
    assert_eq!(rewritten(&to(Form::ETSY), None, "a:1|c|@+0.5").0, "a:1|c|@0.5");
}

#[test]
fn plans_that_would_break_lines_are_rejected() {
    let tag = |text: &str| Some(RewriteError::BadTag(text.to_owned()));
    let affix = |text: &str| Some(RewriteError::BadAffix(text.to_owned()));
    let plan = RewritePlan::default;
    let table = [
        (RewritePlan { prefix: "a:b".into(), ..plan() }, affix("a:b")),
        (RewritePlan { suffix: "|".into(), ..plan() }, affix("|")),
        (RewritePlan { prefix: ";k=v".into(), ..plan() }, affix(";k=v")),
        (RewritePlan { prefix: "a\n".into(), ..plan() }, affix("a\n")),
        (RewritePlan { tags_add: texts(&["a:b", ""]), ..plan() }, tag("")),
        (RewritePlan { tags_add: texts(&[":b"]), ..plan() }, tag(":b")),
        (RewritePlan { tags_add: texts(&["a,b"]), ..plan() }, tag("a,b")),
        (RewritePlan { tags_add: texts(&["a:b;c"]), ..plan() }, tag("a:b;c")),
        (RewritePlan { tags_add: texts(&["a:b|c"]), ..plan() }, tag("a:b|c")),
        (RewritePlan { tags_add: texts(&["a:b\r"]), ..plan() }, tag("a:b\r")),
        (RewritePlan { tags_drop: texts(&["a:b"]), ..plan() }, tag("a:b")),
        (RewritePlan { tags_drop: texts(&[""]), ..plan() }, tag("")),
        (RewritePlan { tags_rename: vec![("a".into(), "b=c".into())], ..plan() }, tag("b=c")),
        (RewritePlan { bare_tag_value: "a:b".into(), ..plan() }, tag("a:b")),
        (RewritePlan { bare_tag_value: String::new(), ..plan() }, None),
        (
            RewritePlan {
                tags_add: texts(&["url:http://x", "a=b"]),
                tags_drop: texts(&["*", "a*"]),
                ..plan()
            },
            None,
        ),
    ];
    for (plan, want) in table {
        let why = Rewrite::new(&plan).err();
        assert_eq!(why, want, "{plan:?}");
        if let Some(why) = why {
            assert!(why.to_string().contains('`'), "{why} names the text");
        }
    }
}

#[test]
fn packets_are_rewritten_line_by_line() {
    let rewrite = Rewrite::new(&to(Form::ETSY)).expect("a plan");
    let (mut out, mut bad) = (b"x:1|c\n".to_vec(), Vec::new());
    let written = rewrite.write_lines(b"a:1:2|ms\n\njunk\n_sc|a|0\nb:1|c|#t\r\n", &mut out, |why, line| {
        bad.push((why, line.to_vec()));
    });
    assert_eq!(out, b"x:1|c\na:1|ms\na:2|ms\nb:1|c\n");
    assert_eq!(bad, [(model::Reject::NoType, b"junk".to_vec())]);
    assert_eq!(written.lines, 3);
}

#[test]
fn many_tags_are_rewritten_as_few_are() {
    let tags: Vec<String> = (0..300).rev().map(|at| format!("t{at:03}:{at}")).collect();
    let sorted: Vec<String> = (0..300).map(|at| format!(";t{at:03}={at}")).collect();
    let form = Form { tags: TagFormat::Graphite, ..Form::KEEP };
    check(&to(form), &[(&format!("a:1|c|#{}", tags.join(",")), &format!("a{}:1|c", sorted.concat()))]);
}

#[test]
fn the_output_of_a_line_is_bounded() {
    let tags = "t".repeat(1 << 15);
    let values = |count: usize| vec!["1"; count].join(":");
    let of =
        |count: usize| rewritten(&to(Form::DOGSTATSD_1_0), None, &format!("a:{}|c|#{tags}", values(count)));
    // `a:1|c|#`, the tags, LF.
    let line_len = 8 + tags.len();
    let fit = LINE_WRITTEN_BYTES_MAX.div_ceil(line_len);
    for (count, dropped) in [(fit, 0), (fit + 1, 1), (16_000, 16_000 - fit)] {
        let (text, written) = of(count);
        assert_eq!((written.lines as usize, written.values_dropped as usize), (count - dropped, dropped));
        assert!(text.len() < LINE_WRITTEN_BYTES_MAX + line_len);
    }
}

#[test]
fn the_output_per_byte_of_a_line_is_bounded() {
    let of = |name_bytes: usize, values: usize| {
        let line = format!("{}:{}|c", "n".repeat(name_bytes), vec!["1"; values].join(":"));
        let (text, written) = rewritten(&to(Form::ETSY), None, &line);
        (line.len(), text.len(), written)
    };
    // 512 bytes with the type and the LF.
    for (name_bytes, values) in [(507, 2_000), (1_000, 500), (20, 30_000)] {
        let (_, _, written) = of(name_bytes, values);
        assert_eq!((written.lines as usize, written.values_dropped), (values, 0));
    }
    let (came, went, written) = of(2_900, 1_450);
    let bytes_max = WRITTEN_BYTES_ALWAYS + WRITTEN_PER_BYTE_MAX * came;
    assert!((bytes_max..bytes_max + 2_906).contains(&went), "{went} of {bytes_max}");
    // `rewritten` removes the last LF.
    assert_eq!((written.lines + written.values_dropped, went + 1), (1_450, 2_905 * written.lines as usize));
}

#[test]
fn the_rate_of_a_line_is_written_for_each_value_and_each_bit_without_its_own() {
    let plan = to(Form::ETSY);
    let (text, _) = rewritten(&plan, Some(0.5), "a:1:2:3|c|@0.5");
    assert_eq!(text, "a:1|c|@0.25\na:2|c|@0.25\na:3|c|@0.25");
    let (text, _) = rewritten(&plan, Some(0.5), "a:1|c:2|g|@0.1:3|ms:4|g:5|g:6|c|@0.2|#t|@0.5");
    assert_eq!(text, "a:1|c|@0.25\na:2|g|@0.1\na:3|ms|@0.25\na:4|g|@0.5\na:5|g|@0.5\na:6|c|@0.1");
}

#[test]
fn a_line_of_many_values_and_fields_takes_linear_time() {
    // Checking each field for each value would take 10^8 steps and be noticed.
    let line = format!("a:{}|g{}|T9", vec!["-1"; 10_000].join(":"), "|zz".repeat(10_000));
    let (text, written) = rewritten(&to(Form::ETSY), None, &line);
    assert_eq!((written.lines, written.values_dropped), (20_000, 0));
    assert!(text.starts_with("a:0|g\na:-1|g\na:0|g\n"));
}

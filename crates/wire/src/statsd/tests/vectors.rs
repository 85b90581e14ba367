//! The spec's tables of vectors, row by row: §3 (etsy), §2.9 (inputs that crash node), §4 (perl), §5.6 (dogstatsd),
//! §1 (differences between dialects).
//!
//! Each datagram is parsed, and its samples go through a naive aggregation. Its state is written in the spec's
//! notation: `c[k]=v` counter, `g[k]=v` gauge, `t[k]=[v,v]/n` timer with its scaled count, `s[k]={m,m}` set. Each
//! result is also compared with the reference parser.

use std::collections::{BTreeMap, BTreeSet};

use model::{GaugeOp, Kind, RawKey, Reject, Sample, Span, Value};

use super::super::reference::{self, ReadEvent};
use super::super::rewrite::properties;
use super::super::{Dialect, GaugeSign, Options, Parsed, Parser};

const NOW_S: u64 = 1_700_000_000;

/// datagram, state, rejected bits, lines counted
type Row = (&'static [u8], &'static str, u64, u64);

#[derive(Default)]
struct State {
    counters: BTreeMap<String, f64>,
    gauges: BTreeMap<String, f64>,
    timers: BTreeMap<String, (Vec<f64>, f64)>,
    sets: BTreeMap<String, BTreeSet<String>>,
    timed: Vec<String>,
}

impl State {
    fn add(&mut self, key: String, sample: &Sample, timestamp_s: Option<u64>, arena: &[u8]) {
        match (sample.kind, sample.value) {
            (kind, Value::Number(number)) if timestamp_s.is_some() => {
                let (letter, time) = (&kind.word()[..1], timestamp_s.unwrap_or_default());
                self.timed.push(format!("{letter}[{key}]@{time}={}", number * sample.weight));
            }
            (Kind::Counter, Value::Number(number)) => {
                *self.counters.entry(key).or_default() += number * sample.weight;
            }
            (Kind::Gauge, Value::Number(number)) => {
                let stored = self.gauges.entry(key).or_default();
                let delta = sample.gauge_op == GaugeOp::Delta && *stored != 0.0;
                *stored = if delta { *stored + number } else { number };
            }
            (Kind::Timer, Value::Number(number)) => {
                let (values, count) = self.timers.entry(key).or_default();
                values.push(number);
                *count += sample.weight;
            }
            (Kind::Set, Value::Text(text)) => {
                let member = String::from_utf8_lossy(text.of(arena)).to_string();
                let member = if member.is_empty() { "0".to_string() } else { member };
                self.sets.entry(key).or_default().insert(member);
            }
            (kind, value) => panic!("a {kind:?} with {value:?}"),
        }
    }

    fn text(&self) -> String {
        let join = |values: &[f64]| values.iter().map(f64::to_string).collect::<Vec<_>>().join(",");
        let mut parts: Vec<String> = Vec::new();
        parts.extend(self.counters.iter().map(|(key, value)| format!("c[{key}]={value}")));
        parts.extend(self.gauges.iter().map(|(key, value)| format!("g[{key}]={value}")));
        parts.extend(self.timers.iter().map(|(key, (values, n))| format!("t[{key}]=[{}]/{n}", join(values))));
        parts.extend(self.sets.iter().map(|(key, members)| {
            format!("s[{key}]={{{}}}", members.iter().cloned().collect::<Vec<_>>().join(","))
        }));
        parts.extend(self.timed.iter().cloned());
        parts.join(" ")
    }
}

/// State after the datagram, and the parser's result. Tags are shown as `{a,b}` after the name.
fn state_of(options: Options, datagram: &[u8]) -> (String, Parsed) {
    reference::compare(options, datagram);
    properties::check(datagram);
    let parser = Parser::new(options, 7);
    let mut parsed = Parsed::default();
    parser.packet(datagram, Span::new(0, datagram.len()), NOW_S, &mut parsed);
    let mut state = State::default();
    let mut canonical = Vec::new();
    for sample in &parsed.samples {
        let raw = RawKey { name: sample.name.of(datagram), tags: sample.tags.of(datagram) };
        let form = parser.canonical(sample.kind, raw, &mut canonical);
        let (name, tags) = canonical.split_at(form.name_len);
        let mut key = String::from_utf8_lossy(name).to_string();
        if !tags.is_empty() {
            key.push_str(&format!("{{{}}}", String::from_utf8_lossy(tags)));
        }
        let timestamp_s = match sample.extra {
            0 => None,
            place => parsed.extras[usize::from(place) - 1].timestamp_s,
        };
        state.add(key, sample, timestamp_s, datagram);
    }
    (state.text(), parsed)
}

fn check(options: Options, rows: &[Row]) {
    for &(datagram, want, bad, lines) in rows {
        let (state, parsed) = state_of(options, datagram);
        let shown = String::from_utf8_lossy(datagram);
        assert_eq!(state, want, "state after {shown:?} in {:?}", options.dialect);
        assert_eq!(parsed.rejected(), bad, "bad of {shown:?}: {:?}", parsed.first_reject);
        assert_eq!(parsed.lines, lines, "lines of {shown:?}");
        assert_eq!(parsed.first_reject.is_some(), bad > 0, "first reject of {shown:?}");
    }
}

/// The dialect's defaults; for the classic dialects the settings of node and Perl.
fn of(dialect: Dialect) -> Options {
    Options::of(dialect)
}

fn quirks() -> Options {
    Options { compat_quirks: true, ..of(Dialect::Etsy) }
}

#[test]
fn etsy_values() {
    check(
        of(Dialect::Etsy),
        &[
            (b"gorets:1|c", "c[gorets]=1", 0, 1),
            (b"gorets:-3|c", "c[gorets]=-3", 0, 1),
            (b"gorets:+3|c", "c[gorets]=3", 0, 1),
            (b"gorets:1.5|c", "c[gorets]=1.5", 0, 1),
            (b"gorets:.5|c", "c[gorets]=0.5", 0, 1),
            (b"gorets:5.|c", "c[gorets]=5", 0, 1),
            (b"gorets:1e3|c", "c[gorets]=1000", 0, 1),
            (b"gorets:1E-2|c", "c[gorets]=0.01", 0, 1),
            (b"gorets:007|c", "c[gorets]=7", 0, 1),
            (b"gorets:-0|c", "c[gorets]=0", 0, 1),
            (b"gorets:0|c", "c[gorets]=0", 0, 1),
            (b"gorets: 5 |c", "c[gorets]=5", 0, 1),
            (b"gorets:\t5|c", "c[gorets]=5", 0, 1),
            (b"gorets: |c", "c[gorets]=0", 0, 1),
            (b"gorets:9007199254740993|c", "c[gorets]=9007199254740992", 0, 1),
            (b"gorets:0x10|c", "c[gorets]=16", 0, 1),
            (b"gorets:0b11|c", "c[gorets]=3", 0, 1),
            (b"gorets:0o17|c", "c[gorets]=15", 0, 1),
            (b"gorets:-0x10|c", "", 1, 1),
            (b"gorets:Infinity|c", "", 1, 1),
            (b"gorets:1e400|c", "", 1, 1),
            (b"gorets:|c", "", 1, 1),
            (b"gorets:-|c", "", 1, 1),
            (b"gorets:+|c", "", 1, 1),
            (b"gorets:--1|c", "", 1, 1),
            (b"gorets:1e|c", "", 1, 1),
            (b"gorets:4f|c", "", 1, 1),
            (b"gorets:infinity|c", "", 1, 1),
            (b"gorets:inf|c", "", 1, 1),
            (b"gorets:NaN|c", "", 1, 1),
            (b"gorets:1,5|c", "", 1, 1),
            (b"gorets:1_000|c", "", 1, 1),
            (b"gorets:1;2|c", "", 1, 1),
        ],
    );
}

#[test]
fn etsy_values_with_quirks() {
    check(
        quirks(),
        &[
            (b"gorets:Infinity|c", "c[gorets]=inf", 0, 1),
            (b"gorets:1e400|c", "c[gorets]=inf", 0, 1),
            (b"gorets:-5|ms\r", "t[gorets]=[-5]/1", 0, 1),
            (b"gorets:-5|ms", "", 1, 1),
            (b"gorets:1|c|@2", "c[gorets]=0.5", 0, 1),
            (b"gorets:1|c|@0", "c[gorets]=inf", 0, 1),
            (b"gorets:1|c|@0x1", "c[gorets]=inf", 0, 1),
            (b"gorets:1|c|@1e-1", "c[gorets]=1", 0, 1),
            (b"gorets:1|c|@0.1", "c[gorets]=10", 0, 1),
            (b"gorets:1|c|@-1", "", 1, 1),
            (b"gorets:1|c|@1.2.3", "", 1, 1),
            (b"gorets:1|c|@+0.5", "", 1, 1),
            (b"gorets:1|c|@Infinity", "", 1, 1),
            (b"gorets:1|c|@ 0.5", "", 1, 1),
        ],
    );
}

#[test]
fn etsy_types() {
    check(
        of(Dialect::Etsy),
        &[
            (b"gorets:1|C", "c[gorets]=1", 0, 1),
            (b"gorets:1|zz", "c[gorets]=1", 0, 1),
            (b"gorets:1|h", "c[gorets]=1", 0, 1),
            (b"gorets:1|d", "c[gorets]=1", 0, 1),
            (b"gorets:1|m", "c[gorets]=1", 0, 1),
            (b"gorets:1|MS", "c[gorets]=1", 0, 1),
            (b"gorets:1|G", "c[gorets]=1", 0, 1),
            (b"gorets:1|S", "c[gorets]=1", 0, 1),
            (b"gorets:1|", "c[gorets]=1", 0, 1),
            (b"gorets:1|ms", "t[gorets]=[1]/1", 0, 1),
            (b"gorets:1|g", "g[gorets]=1", 0, 1),
            (b"gorets:1|s", "s[gorets]={1}", 0, 1),
            (b"gorets:1|c ", "c[gorets]=1", 0, 1),
            (b"gorets:1|c\r", "c[gorets]=1", 0, 1),
            (b"gorets:1| ms", "t[gorets]=[1]/1", 0, 1),
            (b"gorets:1|ms\r", "t[gorets]=[1]/1", 0, 1),
            (b"gorets:1|g\r", "g[gorets]=1", 0, 1),
            (b"gorets:1|s\r", "s[gorets]={1}", 0, 1),
            (b"gorets:b|s\r", "", 1, 1),
            (b"gorets:-5|ms", "", 1, 1),
            (b"gorets:-5|ms\r", "", 1, 1),
            (b"gorets:-0|ms", "t[gorets]=[-0]/1", 0, 1),
            (b"gorets:+320|ms", "t[gorets]=[320]/1", 0, 1),
            (b"gorets:320.25|ms", "t[gorets]=[320.25]/1", 0, 1),
            (b"gorets:320|ms|@0.1", "t[gorets]=[320]/10", 0, 1),
            (b"gorets:320|h|@0.1", "c[gorets]=3200", 0, 1),
            (b"gorets:-5|h", "c[gorets]=-5", 0, 1),
            (b"gorets:abc|ms", "", 1, 1),
            (b"gorets:abc|g", "", 1, 1),
            (b"gorets:|g", "", 1, 1),
            (b"gorets:|s", "s[gorets]={0}", 0, 1),
            (b"gorets:abc|s", "s[gorets]={abc}", 0, 1),
            (b"gorets:a b|s", "s[gorets]={a b}", 0, 1),
        ],
    );
}

#[test]
fn etsy_structure() {
    check(
        of(Dialect::Etsy),
        &[
            (b"", "", 0, 0),
            (b"\n", "", 0, 0),
            (b"\n\n", "", 0, 0),
            (b"gorets", "", 1, 1),
            (b"gorets:", "", 1, 1),
            (b"gorets|c", "", 1, 1),
            (b"gorets:1", "", 1, 1),
            (b":1|c", "c[]=1", 0, 1),
            (b"gorets::1|c", "c[gorets]=1", 1, 1),
            (b"gorets:1||c", "", 1, 1),
            (b"gorets:1|c|", "", 1, 1),
            (b"gorets:1|c||", "", 1, 1),
            (b"gorets:1:2:3|c", "c[gorets]=3", 2, 1),
            (b"gorets:1|c:2|c:3|ms", "c[gorets]=3 t[gorets]=[3]/1", 0, 1),
            (b"gorets:1|ms:2|ms:3|ms", "t[gorets]=[1,2,3]/3", 0, 1),
            (b"gorets:1|c:2", "c[gorets]=1", 1, 1),
            (b"a:1|c\nb:2|c\n", "c[a]=1 c[b]=2", 0, 2),
            (b"a:1|c\n\nb:2|c", "c[a]=1 c[b]=2", 0, 2),
            (b"a:1|c\r\nb:2|c\r\n", "c[a]=1 c[b]=2", 0, 2),
            (b"a:1|c\njunk\nb:2|c", "c[a]=1 c[b]=2", 1, 3),
            (b"a:1|c b:2|c", "c[a]=3", 0, 1),
            (b"a|b:1|c", "c[ab]=1", 0, 1),
        ],
    );
}

#[test]
fn etsy_rates() {
    check(
        of(Dialect::Etsy),
        &[
            (b"gorets:1|c|@0.1", "c[gorets]=10", 0, 1),
            (b"gorets:3|c|@0.1", "c[gorets]=30", 0, 1),
            (b"gorets:1|c|@0.3", "c[gorets]=3.3333333333333335", 0, 1),
            (b"gorets:1|c|@.25", "c[gorets]=4", 0, 1),
            (b"gorets:1|c|@1", "c[gorets]=1", 0, 1),
            (b"gorets:1|c|@1.", "c[gorets]=1", 0, 1),
            (b"gorets:1|c|@00.5", "c[gorets]=2", 0, 1),
            (b"gorets:1|c|@0.1 ", "c[gorets]=10", 0, 1),
            (b"gorets:1|c|@0.1\r", "c[gorets]=10", 0, 1),
            (b"gorets:1|c|@0.1|x", "c[gorets]=10", 0, 1),
            (b"gorets:1|c|@2", "", 1, 1),
            (b"gorets:1|c|@0", "", 1, 1),
            (b"gorets:1|c|@0x1", "", 1, 1),
            (b"gorets:1|c|@1e-1", "c[gorets]=10", 0, 1),
            (b"gorets:1|c|@", "", 1, 1),
            (b"gorets:1|c|@-1", "", 1, 1),
            (b"gorets:1|c|@abc", "", 1, 1),
            (b"gorets:1|c|@NaN", "", 1, 1),
            (b"gorets:1|c|@1.2.3", "", 1, 1),
            (b"gorets:1|c|0.1", "", 1, 1),
            (b"gorets:10|g|@0.5", "g[gorets]=10", 0, 1),
            (b"gorets:10|s|@0.5", "s[gorets]={10}", 0, 1),
            (b"gorets:10|g|@x", "", 1, 1),
            (b"gorets:10|s|@x", "", 1, 1),
        ],
    );
}

#[test]
fn etsy_gauges_and_sets() {
    check(
        of(Dialect::Etsy),
        &[
            (b"g:333|g\ng:-10|g\ng:+4|g", "g[g]=327", 0, 3),
            (b"g:0|g\ng:-5|g", "g[g]=-5", 0, 2),
            (b"g:-5|g", "g[g]=-5", 0, 1),
            (b"g:+5|g", "g[g]=5", 0, 1),
            (b"g:-5|g\ng:-5|g", "g[g]=-10", 0, 2),
            (b"g:5|g\ng:-5|g\ng:-5|g", "g[g]=-5", 0, 3),
            (b"g:5|g\ng:+5|g\ng:-1|g", "g[g]=9", 0, 3),
            (b"g:10|g\ng:0|g\ng:-10|g", "g[g]=-10", 0, 3),
            (b"g:10|g:+2|g", "g[g]=12", 0, 1),
            (b"g:10|g\ng: -2|g", "g[g]=-2", 0, 2),
            (b"uid:765|s\nuid:765|s\nuid:9|s", "s[uid]={765,9}", 0, 3),
            (b"uid:765|s:9|s", "s[uid]={765,9}", 0, 1),
            (b"uid:1:2|s", "s[uid]={2}", 1, 1),
        ],
    );
}

#[test]
fn etsy_tags() {
    check(
        of(Dialect::Etsy),
        &[
            (b"gorets:1|c|#env:prod", "c[gorets;env=prod]=1", 0, 1),
            (b"gorets:1|c|@0.5|#env:prod,dc:x", "c[gorets;env=prod;dc=x]=2", 0, 1),
            (b"gorets:1|c|#b:2,a:1", "c[gorets;b=2;a=1]=1", 0, 1),
            (b"gorets:1|c|#", "c[gorets]=1", 0, 1),
            (b"gorets:1|c|#a,b", "c[gorets;a;b]=1", 0, 1),
            (b"gorets:1|c|#a,,b", "c[gorets;a;;b]=1", 0, 1),
            (b"gorets:1|c|#,", "c[gorets;;]=1", 0, 1),
            (b"gorets:1|c|#:v", "c[gorets;=v]=1", 0, 1),
            (b"gorets:1|c|#k:", "c[gorets;k=]=1", 0, 1),
            (b"gorets:1|c|#k=v", "c[gorets;k=v]=1", 0, 1),
            (b"gorets:1|c|#k:v w", "c[gorets;k=v_w]=1", 0, 1),
            (b"gorets:1|c|#k:a/b", "c[gorets;k=a-b]=1", 0, 1),
            (b"gorets:1|c|#url:http://x/y", "c[gorets;url=http--x-y]=1", 0, 1),
            (b"gorets:1|c|#a:b:c;d;e", "c[gorets;a=bc_d;e]=1", 0, 1),
            (b"gorets;env=prod:1|c", "c[gorets;env=prod]=1", 0, 1),
            (b"gorets;env=prod:1|c|#dc:x", "c[gorets;env=prod;dc=x]=1", 0, 1),
            (b"gorets,env=prod:1|c", "c[goretsenv=prod]=1", 0, 1),
            (b"gorets:1|c|#env:prod|#dc:x", "c[gorets;env=prod]=1", 0, 1),
            (b"gorets:1|c|#env:prod|@0.5", "c[gorets;env=prod0.5]=1", 0, 1),
            (b"gorets:1|c|#env:prod|c:83c0a9", "c[gorets;env=prodc83c0a9]=1", 0, 1),
            (b"gorets:1|c|#env:prod|T1656581400", "c[gorets;env=prodT1656581400]=1", 0, 1),
            (b"gorets:1|c|T1656581400", "", 1, 1),
            (b"gorets:1|g|T1656581400", "", 1, 1),
            (b"gorets:1|c|c:83c0a9", "", 2, 1),
            (b"gorets:1|c|@0.5#a:b", "", 2, 1),
            (b"gorets|#env:prod:1|c", "", 1, 1),
            (b"gorets#a:b:1|c", "c[goretsa]=1", 1, 1),
            (b"gorets:1|c#a:b", "c[gorets]=1", 1, 1),
            (b"m:1:2:3|ms|#a:b", "t[m;a=b]=[3]/1", 2, 1),
            (b"_e{5,4}:title|text", "", 1, 1),
            (b"_sc|name|0", "", 1, 1),
        ],
    );
    let glued = |line: &[u8]| state_of(of(Dialect::Etsy), line).1.glued_tag_fields;
    assert_eq!(glued(b"gorets:1|c|#env:prod|@0.5\nb:1|c|#x|c:y\nc:1|c|#x|#y"), 2);
    assert_eq!(glued(b"gorets:1|c|@0.5|#env:prod"), 0);
}

#[test]
fn etsy_keys() {
    let table: &[(&[u8], &str)] = &[
        (b"go rets\t\tx", "go_rets_x"),
        (b"a  b", "a_b"),
        (b"a / b", "a_-_b"),
        (b"a/b/c", "a-b-c"),
        (b"a@b#c$d", "abcd"),
        (b"a*b{c}", "abc"),
        (b"a%20b", "a20b"),
        (b"a\\b\"c'd", "abcd"),
        (b"caf\xc3\xa9", "caf"),
        (b"a\xc2\xa0b", "a_b"),
        ("\u{6f22}\u{5b57}".as_bytes(), ""),
        (b"a\x00b", "ab"),
        (b"a\xffb", "ab"),
        (b" gorets ", "_gorets_"),
        (b"a..b.", "a..b."),
        (b".a", ".a"),
        (b"-_.;=", "-_.;="),
        (b"A.b", "A.b"),
        (b"a.B", "a.B"),
        ("x\u{1f600}y\u{2003}\u{feff} z".as_bytes(), "xy_z"),
        (b"a \xc3\xa9 b", "a__b"),
    ];
    for (name, want) in table {
        let datagram = [name, &b":1|c"[..]].concat();
        let (state, _) = state_of(of(Dialect::Etsy), &datagram);
        assert_eq!(state, format!("c[{want}]=1"), "{}", String::from_utf8_lossy(name));
    }
    check(
        of(Dialect::Etsy),
        &[(b"a/b:1|c\na-b:2|c", "c[a-b]=3", 0, 2), (b"A.b:1|c\na.B:1|c", "c[A.b]=1 c[a.B]=1", 0, 2)],
    );
    let raw = Options { sanitize: false, ..of(Dialect::Etsy) };
    check(
        raw,
        &[
            (b"a / b:1|c|#k:v w,x;y:z;q:r", "c[a / b;k=v w;x_y=z;q:r]=1", 0, 1),
            (b"a\xffb\xe2\x82:1|c", "c[a\u{fffd}b\u{fffd}]=1", 0, 1),
        ],
    );
}

#[test]
fn inputs_that_crash_node_are_harmless() {
    check(
        of(Dialect::Etsy),
        &[
            (b"x:1|c|@+0.5", "", 1, 1),
            (b"x:1|c|@Infinity", "", 1, 1),
            (b"x:1|c|@ 0.5", "", 1, 1),
            (b"constructor:1|ms", "t[constructor]=[1]/1", 0, 1),
            (b"hasOwnProperty:1|ms", "t[hasOwnProperty]=[1]/1", 0, 1),
            (b"__proto__:1|ms", "t[__proto__]=[1]/1", 0, 1),
            (b"toString:1|s", "s[toString]={1}", 0, 1),
            (b"constructor:1|c", "c[constructor]=1", 0, 1),
            (b"x:__proto__|s", "s[x]={__proto__}", 0, 1),
        ],
    );
}

#[test]
fn perl_table() {
    check(
        of(Dialect::Perl),
        &[
            // Splitting.
            (b"a:1|c\n\nb:2|c", "c[a]=1 c[b]=2", 1, 3),
            (b"a:1|c\nb:2|c\n\n\n", "c[a]=1 c[b]=2", 0, 2),
            (b"\na:1|c", "c[a]=1", 1, 2),
            (b"\n\n", "", 0, 0),
            (b"", "", 0, 0),
            (b"a:1|c|", "c[a]=1", 0, 1),
            (b"a:1|c||", "c[a]=1", 0, 1),
            (b"a:1|c:", "c[a]=1", 0, 1),
            (b"a", "", 1, 1),
            (b"a:", "", 1, 1),
            (b":", "", 1, 1),
            (b":1|c", "c[]=1", 0, 1),
            (b"a::1|c", "c[a]=1", 1, 1),
            (b"a:1:2:3|c", "c[a]=3", 2, 1),
            (b"a:1|c:2|c:3|ms", "c[a]=3 t[a]=[3]/1", 0, 1),
            // Names.
            (b"a b/c  d//e:1|c", "c[a-b_c-d_e]=1", 0, 1),
            (b"a\tb:1|c", "c[ab]=1", 0, 1),
            (b"k,env=prod;x:1|c", "c[k,env=prodx]=1", 0, 1),
            // Bad lines.
            (b"a:1", "", 1, 1),
            (b"a:1|", "", 1, 1),
            (b"a:1||c", "", 1, 1),
            (b"a:1|c|0.1", "", 1, 1),
            (b"a:1|c|@x", "", 1, 1),
            (b"a:1|c|@0.1", "c[a]=10", 0, 1),
            (b"a:1|c|@0.5x", "c[a]=2", 0, 1),
            (b"a:1|c|@2", "c[a]=0.5", 0, 1),
            (b"a:1|c|@0\nb:1|c", "c[b]=1", 1, 2),
            (b"a:1|c|@.", "", 1, 1),
            // Values.
            (b"a:x|c", "c[a]=0", 0, 1),
            (b"a:|c", "c[a]=1", 0, 1),
            (b"a:0|c", "c[a]=0", 0, 1),
            (b"a:0.0|c", "c[a]=0", 0, 1),
            (b"a:3apples|c", "c[a]=3", 0, 1),
            (b"a:1e400|c", "", 1, 1),
            (b"a:5|g\na:+3|g", "g[a]=3", 0, 2),
            (b"a:5|g\na:-3|g", "g[a]=-3", 0, 2),
            (b"a:x|g", "g[a]=0", 0, 1),
            (b"a:1|g|x", "g[a]=1", 0, 1),
            (b"a:-5|ms|@0.1", "t[a]=[-5]/1", 0, 1),
            (b"a:1|ms|x", "t[a]=[1]/1", 0, 1),
            (b"a:|s", "s[a]={0}", 0, 1),
            (b"a:x|s", "s[a]={x}", 0, 1),
            (b"a:1|h", "c[a]=1", 0, 1),
            (b"a:1|zz", "c[a]=1", 0, 1),
            (b"a:1|ms\r", "t[a]=[1]/1", 0, 1),
            // Tags.
            (b"a:1|c|#k", "", 1, 1),
            (b"a:1|c|#k:v", "", 2, 1),
        ],
    );
    assert_eq!(state_of(of(Dialect::Perl), b"a:1|c\n\nb:1|c").1.rejects[Reject::EmptyLine.index()], 1);
}

#[test]
fn dogstatsd_metrics() {
    let long = b"m:1|c|@0.5|#a:b,c|c:83c0a99c0a54c0c187f461c7980e9b57f3f6a8b0c918c8d93df19a9de6f3fe1d";
    check(
        of(Dialect::Dogstatsd),
        &[
            (b"page.views:1|c", "c[page.views]=1", 0, 1),
            (b"fuel.level:0.5|g", "g[fuel.level]=0.5", 0, 1),
            (b"song.length:240|h|@0.5", "t[song.length]=[240]/2", 0, 1),
            (b"users.uniques:1234|s", "s[users.uniques]={1234}", 0, 1),
            (b"u:a:b|s", "s[u]={a:b}", 0, 1),
            (b"users.online:1|c|#country:china", "c[users.online{country:china}]=1", 0, 1),
            (b"users.online:1|c|@0.5|#country:china", "c[users.online{country:china}]=2", 0, 1),
            (b"users.online:1|c|#country:china|@0.5", "c[users.online{country:china}]=2", 0, 1),
            (b"page.views:1:2:32|d", "t[page.views]=[1,2,32]/3", 0, 1),
            (b"m:1::2|ms", "t[m]=[1,2]/2", 0, 1),
            (b"m:::|ms", "", 1, 1),
            (long, "c[m{a:b,c}]=2", 0, 1),
            (b"m:1|c|#a:b|c:in-4026531836", "c[m{a:b}]=1", 0, 1),
            (b"m:1|g|#a:b|e:it-false,cn-nginx,pu-75a2b6d5", "g[m{a:b}]=1", 0, 1),
            (b"m:15|c|#env:dev|T1656581409", "c[m{env:dev}]@1656581409=15", 0, 1),
            (b"m:15|g|T0", "", 1, 1),
            (b"m:15|g|Tx", "", 1, 1),
            (b"m:15|h|T1656581409", "", 1, 1),
            (b"m:10|g\nm:-5|g", "g[m]=-5", 0, 2),
            (b"m:1|c|zz:future", "c[m]=1", 0, 1),
            (b"m:1|C", "", 1, 1),
            (b"m:1|c ", "", 1, 1),
            (b"m:1", "", 1, 1),
            (b"m|c", "", 1, 1),
            (b":1|c", "", 1, 1),
            (b"m:|c", "", 1, 1),
            (b"m:x|c", "", 1, 1),
            (b"m:1|c|@x", "", 1, 1),
            // Beyond the spec's table.
            (b"m:1|c\r\nn:1|c\r\n\r\n", "c[m]=1 c[n]=1", 0, 2),
            (b"m:1|c|@2", "", 1, 1),
            (b"m:1|c|@1e-300", "", 1, 1),
            (b"m:inf|g", "", 1, 1),
            (b"m:1:x|c", "", 1, 1),
            (b"m:-5|ms", "t[m]=[-5]/1", 0, 1),
            (b"m:1|c|#b,a,,b", "c[m{a,b}]=1", 0, 1),
            (b"m:1|c|#b|#a", "c[m{a}]=1", 0, 1),
            (b"caf\xc3\xa9/x:1|c", "c[caf\u{e9}/x]=1", 0, 1),
            (b"_score:1|c", "c[_score]=1", 0, 1),
        ],
    );
    let reason = |line: &[u8]| state_of(of(Dialect::Dogstatsd), line).1.first_reject.map(|(why, _)| why);
    assert_eq!(reason(b"m:15|h|T1656581409"), Some(Reject::TimestampUnsupported));
    assert_eq!(reason(b"m:15|g|T0"), Some(Reject::BadTimestamp));
    let (_, parsed) = state_of(of(Dialect::Dogstatsd), long);
    assert_eq!(
        parsed.extras[0].container.of(long),
        b"83c0a99c0a54c0c187f461c7980e9b57f3f6a8b0c918c8d93df19a9de6f3fe1d"
    );
    let cgroup = b"m:1|c|#a:b|c:in-4026531836";
    assert_eq!(state_of(of(Dialect::Dogstatsd), cgroup).1.extras[0].container.of(cgroup), b"in-4026531836");
    let external = b"m:1|g|#a:b|e:it-false,cn-nginx,pu-75a2b6d5";
    let (_, parsed) = state_of(of(Dialect::Dogstatsd), external);
    assert_eq!(parsed.extras[0].external.of(external), b"it-false,cn-nginx,pu-75a2b6d5");
}

/// (input, etsy, perl, dogstatsd, union), each as state and bad bits.
type Difference = (&'static [u8], [(&'static str, u64); 4]);

#[test]
fn differences_between_the_dialects() {
    let table: &[Difference] = &[
        (b"m:1|h", [("c[m]=1", 0), ("c[m]=1", 0), ("t[m]=[1]/1", 0), ("t[m]=[1]/1", 0)]),
        (b"m:1|d", [("c[m]=1", 0), ("c[m]=1", 0), ("t[m]=[1]/1", 0), ("t[m]=[1]/1", 0)]),
        (b"m:1|kv", [("c[m]=1", 0), ("c[m]=1", 0), ("", 1), ("", 1)]),
        (b"m:1|", [("c[m]=1", 0), ("", 1), ("", 1), ("", 1)]),
        (b"m:8|g\nm:+2|g", [("g[m]=10", 0), ("g[m]=2", 0), ("g[m]=2", 0), ("g[m]=10", 0)]),
        (b"m:8|g\nm:-2|g", [("g[m]=6", 0), ("g[m]=-2", 0), ("g[m]=-2", 0), ("g[m]=6", 0)]),
        (b"m:1|c|#b,a,b", [("c[m;b;a;b]=1", 0), ("", 1), ("c[m{a,b}]=1", 0), ("c[m{a,b}]=1", 0)]),
        (b"m:1|c|#a|@0.5", [("c[m;a0.5]=1", 0), ("", 1), ("c[m{a}]=2", 0), ("c[m{a}]=2", 0)]),
        (b"m:1:2:3|c", [("c[m]=3", 2), ("c[m]=3", 2), ("c[m]=6", 0), ("c[m]=6", 0)]),
        (b"m:1|c:2|c", [("c[m]=3", 0), ("c[m]=3", 0), ("", 1), ("c[m]=3", 0)]),
        (b"m:1|c|T99", [("", 1), ("", 1), ("c[m]@99=1", 0), ("c[m]@99=1", 0)]),
        (b"m:1|g|T99", [("", 1), ("g[m]=1", 0), ("g[m]@99=1", 0), ("g[m]@99=1", 0)]),
        (b"m:1|g|@0.5", [("g[m]=1", 0), ("g[m]=1", 0), ("g[m]=1", 0), ("g[m]=1", 0)]),
        (b"m:1|g|@x", [("", 1), ("g[m]=1", 0), ("", 1), ("", 1)]),
        (b"m:1|s|@x", [("", 1), ("s[m]={1}", 0), ("", 1), ("", 1)]),
        (b"m:-1|ms", [("", 1), ("t[m]=[-1]/1", 0), ("t[m]=[-1]/1", 0), ("", 1)]),
        (b"m:-1|h", [("c[m]=-1", 0), ("c[m]=-1", 0), ("t[m]=[-1]/1", 0), ("t[m]=[-1]/1", 0)]),
    ];
    let dialects = [Dialect::Etsy, Dialect::Perl, Dialect::Dogstatsd, Dialect::Union];
    for (datagram, wants) in table {
        for (dialect, (want, bad)) in dialects.into_iter().zip(wants) {
            let (state, parsed) = state_of(of(dialect), datagram);
            let shown = String::from_utf8_lossy(datagram);
            assert_eq!((state.as_str(), parsed.rejected()), (*want, *bad), "{shown:?} in {dialect:?}");
        }
    }
    for dialect in dialects {
        let events = state_of(of(dialect), b"_e{5,4}:title|text\n_sc|name|0").1;
        let known = matches!(dialect, Dialect::Dogstatsd | Dialect::Union);
        assert_eq!(events.events.len(), if known { 2 } else { 0 }, "{dialect:?}");
        assert_eq!(events.rejected(), if known { 0 } else { 2 }, "{dialect:?}");
    }
}

#[test]
fn union_options() {
    let absolute = Options { gauge_sign: GaugeSign::Absolute, ..of(Dialect::Union) };
    check(absolute, &[(b"m:8|g\nm:-2|g", "g[m]=-2", 0, 2), (b"m:=-5|g", "g[m]=-5", 0, 1)]);
    let negative = Options { allow_negative_timers: true, ..of(Dialect::Union) };
    check(negative, &[(b"m:-1|ms", "t[m]=[-1]/1", 0, 1), (b"m:-1:2|ms", "t[m]=[-1,2]/2", 0, 1)]);
    let lax = Options { strict_numbers: false, ..of(Dialect::Union) };
    check(lax, &[(b"m:0x10|c", "c[m]=16", 0, 1), (b"m:0b11|c", "c[m]=3", 0, 1), (b"m: |c", "c[m]=0", 0, 1)]);
    let raw = Options { sanitize: false, ..of(Dialect::Union) };
    check(raw, &[(b"a / b:1|c", "c[a / b]=1", 0, 1)]);
    check(
        of(Dialect::Union),
        &[
            // `=` sets a gauge, which no other dialect supports.
            (b"g:10|g\ng:=-5|g", "g[g]=-5", 0, 2),
            (b"g:=-5:+2|g", "g[g]=-3", 0, 1),
            (b"g:==5|g", "", 1, 1),
            (b"c:=5|c", "", 1, 1),
            // With a time there is no stored value to change.
            (b"g:-5|g|T99", "g[g]@99=-5", 0, 1),
            // Strict numbers.
            (b"m:0x10|c", "", 1, 1),
            (b"m: |c", "", 1, 1),
            // Parsed as in node where DogStatsD rejects the line.
            (b"m: 5 |c", "c[m]=5", 0, 1),
            (b"m:b|s\r", "s[m]={b}", 0, 1),
            (b"m:1|c ", "c[m]=1", 0, 1),
            (b"m:1| ms", "t[m]=[1]/1", 0, 1),
            (b"m:1|c|@0.1 ", "c[m]=10", 0, 1),
            (b":1|c", "c[]=1", 0, 1),
            (b"m:|s", "s[m]={0}", 0, 1),
            (b"m:1|c:2", "c[m]=1", 1, 1),
            (b"m:x:1|c", "c[m]=1", 1, 1),
            (b"a:1|c b:2|c", "c[a]=2", 1, 1),
            (b"m:x:y|c", "", 1, 1),
            // Fields after the tags apply to every bit that does not override them.
            (b"m:1|c:2|c|#a:b|@0.5", "c[m{a:b}]=6", 0, 1),
            (b"m:1|c|@0.1:2|c|#a:b|@0.5", "c[m{a:b}]=14", 0, 1),
            (b"m:1|c:2|ms|#a:b|T99", "c[m{a:b}]@99=1", 1, 1),
            (b"m:1|c:2|c|#a:b|Tx", "", 1, 1),
            // Lines that our own rules reject are not parsed another way.
            (b"m:1|h|@0.5|T99", "", 1, 1),
            (b"m:-1:2|ms", "", 1, 1),
            (b"a b/c\xc3\xa9:1|c|#b:x y,a", "c[a_b-c{a,b:x y}]=1", 0, 1),
            (b"m:1|c|", "c[m]=1", 0, 1),
            (b"_e{1,1}:a|", "", 1, 1),
        ],
    );
}

/// The event of a line, and how many of its fields were ignored.
fn event_of(line: &[u8]) -> (ReadEvent, u64) {
    let (_, parsed) = state_of(of(Dialect::Dogstatsd), line);
    assert_eq!(
        state_of(of(Dialect::Union), line).1.events,
        parsed.events,
        "union gives the same result for {line:?}"
    );
    assert_eq!((parsed.rejected(), parsed.events.len(), parsed.lines), (0, 1, 1), "{line:?}");
    (parsed.events.view().iter().map(ReadEvent::of).next().unwrap(), parsed.event_fields_ignored)
}

fn attributes<const N: usize>(attributes: [(&str, &str); N]) -> BTreeMap<String, String> {
    attributes.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

#[test]
fn dogstatsd_events() {
    let plain = ReadEvent {
        service: "title".into(),
        description: Some("text".into()),
        time_s: NOW_S as i64,
        attributes: attributes([("kind", "event"), ("priority", "normal"), ("alert_type", "info")]),
        ..ReadEvent::default()
    };
    assert_eq!(event_of(b"_e{5,4}:title|text"), (plain.clone(), 0));
    let full = ReadEvent {
        service: "test title".into(),
        description: Some("test\ntext".into()),
        state: None,
        host: Some("some.host".into()),
        time_s: 12345,
        tags: Some(vec!["tag1".into(), "tag2:test".into()]),
        attributes: attributes([
            ("kind", "event"),
            ("priority", "low"),
            ("alert_type", "warning"),
            ("aggregation_key", "aggKey"),
            ("source_type_name", "test"),
        ]),
    };
    let line = b"_e{10,10}:test title|test\\ntext|t:warning|d:12345|p:low|h:some.host|k:aggKey|s:test|#tag1,tag2:test";
    assert_eq!(event_of(line), (full, 0));
    let accent = ReadEvent { service: "\u{e9}".into(), description: Some("a|b".into()), ..plain.clone() };
    assert_eq!(event_of(b"_e{2,3}:\xc3\xa9|a|b"), (accent, 0));
    let mut odd = ReadEvent { tags: Some(vec!["b".into(), "a".into()]), ..plain.clone() };
    odd.attributes.insert("container_id".into(), "abc".into());
    let line = b"_e{5,4}:title|text|d:x|p:high|t:bad|zz:1||card:many|card:low|e:it-false|c:abc|#b,a,,b";
    assert_eq!(event_of(line), (odd, 6));
    assert_eq!(event_of(b"_e{5,0}:title|").0.description.as_deref(), Some(""));
    // Absent differs from empty, and of a field that repeats the last one counts.
    let empty = ReadEvent { host: Some(String::new()), tags: Some(Vec::new()), ..plain.clone() };
    assert_eq!(event_of(b"_e{5,4}:title|text|h:a|h:|#a|#"), (empty, 0));
    // Invalid UTF-8; tags are compared as they were sent.
    let replaced = ReadEvent {
        service: "a\u{fffd}\n\u{fffd}\\".into(),
        tags: Some(vec!["\u{fffd}".into(), "\u{fffd}".into()]),
        ..plain
    };
    assert_eq!(event_of(b"_e{6,4}:a\xff\\n\xc3\\|text|#\xff,\xfe,\xff"), (replaced, 0));
    for line in [
        &b"_e{0,4}:|text"[..],
        b"_e{5,40}:title|text",
        b"_e{a,4}:x|text",
        b"_e{5,4}:title|textual",
        b"_e{5,4}:titles|ext",
        b"_e{5}:title|text",
        b"_e{,}:|",
        b"_e{18446744073709551616,4}:title|text",
        b"_e{18446744073709551615,4}:title|text",
        b"_e{",
    ] {
        for dialect in [Dialect::Dogstatsd, Dialect::Union] {
            let (_, parsed) = state_of(of(dialect), line);
            let first = parsed.first_reject.map(|(why, _)| why);
            assert_eq!(
                (first, parsed.records()),
                (Some(Reject::BadEvent), 1),
                "{}",
                String::from_utf8_lossy(line)
            );
        }
    }
}

#[test]
fn dogstatsd_checks() {
    let check = event_of(b"_sc|agent.up|0|d:12345|h:localhost|#tag1,tag2:test|m:this is fine");
    let want = ReadEvent {
        service: "agent.up".into(),
        description: Some("this is fine".into()),
        state: Some("ok".into()),
        host: Some("localhost".into()),
        time_s: 12345,
        tags: Some(vec!["tag1".into(), "tag2:test".into()]),
        attributes: attributes([("kind", "check")]),
    };
    assert_eq!(check, (want, 0));
    let want = ReadEvent {
        service: "a".into(),
        description: Some("msg".into()),
        state: Some("critical".into()),
        time_s: NOW_S as i64,
        attributes: attributes([("kind", "check"), ("container_id", "abc")]),
        ..ReadEvent::default()
    };
    assert_eq!(event_of(b"_sc|a|2|m:msg|c:abc"), (want, 0));
    assert_eq!(event_of(b"_sc|a|2").0.description, None);
    for (message, want) in [
        (&b"one\\ntwo m\\:three"[..], "one\ntwo m:three"),
        (b"\\:m\\\\:mm\\:m\\", "\\:m\\\\:mm:m\\"),
        (b"m\\n:\\\\n\\", "m\n:\\\n\\"),
    ] {
        let line = [b"_sc|a|1|m:", message].concat();
        assert_eq!(event_of(&line).0.description.as_deref(), Some(want), "{message:?}");
    }
    assert_eq!(event_of(b"_sc|a|3|k:no|p:low").1, 2);
    for line in [&b"_sc|agent.up|4"[..], b"_sc|agent.up", b"_sc||0", b"_sc|", b"_sc|a|", b"_sc|a|00"] {
        for dialect in [Dialect::Dogstatsd, Dialect::Union] {
            let (_, parsed) = state_of(of(dialect), line);
            let first = parsed.first_reject.map(|(why, _)| why);
            assert_eq!(
                (first, parsed.records()),
                (Some(Reject::BadCheck), 1),
                "{}",
                String::from_utf8_lossy(line)
            );
        }
    }
}

#[test]
fn limits_are_enforced_at_the_limit_and_past_it() {
    for dialect in [Dialect::Etsy, Dialect::Perl, Dialect::Dogstatsd, Dialect::Union] {
        let options = Options { key_bytes_max: 8, tags_max: 2, ..of(dialect) };
        let first = |line: &[u8]| state_of(options, line).1.first_reject.map(|(why, _)| why);
        assert_eq!(first(b"12345678:1|c"), None, "{dialect:?}");
        assert_eq!(first(b"123456789:1|c"), Some(Reject::KeyTooLong), "{dialect:?}");
        if dialect != Dialect::Perl {
            assert_eq!(first(b"12345:1|c|#a,b"), None, "{dialect:?}");
            assert_eq!(first(b"123456:1|c|#a,b"), Some(Reject::KeyTooLong), "{dialect:?}");
            assert_eq!(first(b"1:1|c|#a,b,c"), Some(Reject::TooManyTags), "{dialect:?}");
            assert_eq!(first(b"1:1|c|#,,"), Some(Reject::TooManyTags), "empty tags count in {dialect:?}");
        }
    }
    let options = Options { tags_max: 2, ..of(Dialect::Union) };
    assert_eq!(state_of(options, b"_e{1,1}:a|b|#a,b").1.events.len(), 1);
    assert_eq!(state_of(options, b"_e{1,1}:a|b|#a,b,c").1.rejects[Reject::TooManyTags.index()], 1);
    assert_eq!(state_of(of(Dialect::Etsy), &[&[b'x'; 9000][..], b":1|c"].concat()).1.rejected(), 0);
    let least = Options { rate_min: 0.125, ..of(Dialect::Dogstatsd) };
    assert_eq!(state_of(least, b"m:1|c|@0.125\nm:1|c|@0.12").1.rejects[Reject::BadRate.index()], 1);
}

#[test]
fn extras_are_shared_and_bounded() {
    let parser = Parser::new(of(Dialect::Dogstatsd), 7);
    let parse = |datagram: &str| {
        let mut parsed = Parsed::default();
        parser.packet(datagram.as_bytes(), Span::new(0, datagram.len()), NOW_S, &mut parsed);
        parsed
    };
    let shared = parse("a:1:2|c|T9\nb:1|c|T9\nc:1|c|T9|c:x\nd:1|c|c:x|T9\ne:1|c");
    assert_eq!(shared.extras.len(), 2);
    assert_eq!(shared.samples.iter().map(|sample| sample.extra).collect::<Vec<_>>(), [1, 1, 1, 2, 2, 0]);

    let mut many: String =
        (1..=super::super::sink::EXTRAS_MAX).map(|time| format!("a:1|c|T{time}\n")).collect();
    many.push_str("b:1|c|c:x\n");
    let full = parse(&many);
    assert_eq!((full.rejected(), full.extras.len()), (0, super::super::sink::EXTRAS_MAX));
    assert_eq!(full.samples.last().map(|sample| sample.extra), Some(0), "an id past the limit is skipped");
    many.push_str("b:1|c|T1\n");
    assert_eq!(
        parse(&many).rejects[Reject::TimestampUnsupported.index()],
        1,
        "a time past the limit is rejected"
    );
}

#[test]
fn values_with_a_time_are_bounded_by_the_expansion_limit() {
    for dialect in [Dialect::Dogstatsd, Dialect::Union] {
        let (packed, bits) = ("1:".repeat(2_000), "1|g:".repeat(2_000));
        let name = |bytes: usize| "n".repeat(bytes);
        let timed = |line: &str| state_of(of(dialect), line.as_bytes()).1;
        let unsupported = Reject::TimestampUnsupported.index();
        // Never where the name has 512 bytes, nor where values are not written one by one.
        for line in [
            format!("{}:{packed}1|c|T9", name(512)),
            format!("{}:{packed}1|c", name(4_000)),
            format!("{}:1:2:3|c|T9", name(4_000)),
        ] {
            assert_eq!(timed(&line).rejected(), 0, "{dialect:?} {} bytes", line.len());
        }
        let parsed = timed(&format!("{}:{packed}1|c|T9", name(4_000)));
        assert_eq!((parsed.rejects[unsupported], parsed.samples.len(), parsed.extras.len()), (1, 0, 0));
        // A line of 60,000 bytes may become no more than one of 16 KiB.
        let long = timed(&format!("{}:{}1|c|T9", name(200), "1:".repeat(30_000)));
        assert_eq!((long.rejects[unsupported], long.samples.len()), (1, 0), "{dialect:?}");
        if dialect == Dialect::Union {
            let line = format!("{}:{bits}1|c|#t|T9", name(4_000));
            let parsed = timed(&line);
            // As many as fit, and one more; a tag of one byte.
            let fit = (65_536 + 256 * line.len()) / 4_001 + 1;
            assert_eq!((parsed.samples.len(), parsed.rejects[unsupported]), (fit, 2_001 - fit as u64));
        }
    }
}

#[test]
fn names_are_collected_once_per_line() {
    for (dialect, want) in [
        (Dialect::Etsy, &["a", "b", "junk", "_e{1,1}"][..]),
        (Dialect::Perl, &["a", "b", "junk"]),
        (Dialect::Dogstatsd, &["a", "b", "junk"]),
        (Dialect::Union, &["a", "b", "junk"]),
    ] {
        let datagram = b"a:1|c\nb:1|c:2|c|#x\njunk\n_e{1,1}:a|b";
        let options = Options { count_names: true, ..of(dialect) };
        let (_, parsed) = state_of(options, datagram);
        let names: Vec<_> =
            parsed.names.iter().map(|name| String::from_utf8_lossy(name.of(datagram))).collect();
        assert_eq!(names, want, "{dialect:?}");
        assert!(state_of(of(dialect), datagram).1.names.is_empty());
    }
}

#[test]
fn events_are_parsed_without_allocation_into_memory_that_has_grown() {
    let line = b"_e{4,5}:a\\nb|\xff\xfftxt|t:error|p:low|h:host|k:key|s:test|c:id|#t,u,t,\xff\n_sc|n|0|m:m\\:|#b,a\n";
    let datagram = line.repeat(50);
    let parser = Parser::new(of(Dialect::Dogstatsd), 7);
    let mut parsed = Parsed::default();
    let mut parse = || {
        parsed.clear();
        parser.packet(&datagram, Span::new(0, datagram.len()), NOW_S, &mut parsed);
        parsed.events.len()
    };
    assert_eq!(parse(), 100);
    let allocated = allocation_counter::measure(|| assert_eq!(parse(), 100));
    assert_eq!(allocated.count_total, 0);
}

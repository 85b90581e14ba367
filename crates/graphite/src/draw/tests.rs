//! Whole images of given and of random series.

use proptest::prelude::*;

use super::options::tests::options;
use super::*;
use crate::query::{Consolidation, Drawing, Stop, TimeZone};

/// A series of minutes.
pub(super) fn series(name: &str, values: &[f64]) -> Series {
    let start = 1_710_000_000;
    Series::new(name.to_owned(), (start, start + 60 * values.len() as i64, 60), values.to_vec())
}

static ZONE: TimeZone = TimeZone::UTC;

fn view() -> View<'static> {
    View { from: 1_710_000_000, until: 1_710_003_600, zone: &ZONE }
}

fn svg(all: &[Series], query: &str) -> String {
    let options = options(query).expect("right options");
    draw(all, &options, &view(), Faces::All, &mut || Ok(())).expect("few series").svg()
}

/// The drawing without its data, which repeats names and values.
fn shapes(all: &[Series], query: &str) -> String {
    let svg = svg(all, query);
    svg.split("<script").next().unwrap_or_default().to_owned()
}

/// The document is well-formed, and no coordinate is wrong.
fn check(svg: &str) -> usvg::Tree {
    for wrong in ["NaN", "inf\"", "inf "] {
        let drawn = svg.split("<script").next().unwrap_or_default();
        let elements = drawn.lines().filter(|line| !line.starts_with("<text"));
        assert!(elements.clone().all(|line| !line.contains(wrong)), "{wrong} in {drawn}");
    }
    usvg::Tree::from_str(svg, &usvg::Options::default()).unwrap_or_else(|error| panic!("{error}: {svg}"))
}

fn waves() -> Vec<Series> {
    let wave = |number: usize| -> Vec<f64> {
        (0..60).map(|at| 50.0 + 40.0 * ((at * (number + 1)) as f64 / 10.0).sin()).collect()
    };
    (0..3).map(|number| series(&format!("servers.web{number}.cpu"), &wave(number))).collect()
}

/// Options that change the graph of [`every_option_changes_the_image`].
const CHANGES: &str = "\
    width=400 height=300 margin=20 bgcolor=grey fgcolor=red template=noc fontName=Mono fontSize=12 \
    fontBold=true fontItalic=true colorList=red,green title=A vtitle=B vtitleRight=C lineMode=staircase \
    lineMode=connected lineWidth=3 thickness=3 areaMode=first areaMode=all areaMode=stacked \
    drawNullAsZero=true yMin=-100 min=-100 yMax=200 max=200 yLimit=60 yStep=7 yDivisors=9 yMinLeft=-100 \
    yMaxLeft=200 yLimitLeft=60 yStepLeft=7 yMinRight=-100 yMaxRight=200 yLimitRight=60 yStepRight=7 \
    leftWidth=4 rightWidth=4 leftColor=gold rightColor=gold leftDashed=true rightDashed=3 yUnitSystem=sec \
    logBase=10 hideLegend=true hideAxes=true hideXAxis=true hideYAxis=true hideGrid=true graphOnly=true \
    minXStep=20 majorGridLineColor=blue minorGridLineColor=blue minorY=3 xFormat=%Y graphType=pie \
    yMax=max";

#[test]
fn every_option_changes_the_image() {
    let mut all = waves();
    all[2].drawing.is_on_second_axis = true;
    all[1].values[10..13].fill(f64::NAN);
    let pie = "graphType=pie&";
    let log = "logBase=10&";
    let clear = "areaMode=stacked&";
    for query in CHANGES.split_whitespace() {
        assert_ne!(shapes(&all, query), shapes(&all, ""), "{query}");
    }
    for (base, query) in [
        (pie, "pieMode=maximum"),
        (pie, "pieMode=minimum"),
        (pie, "valueLabels=number"),
        (pie, "valueLabels=none"),
        (pie, "valueLabelsMin=50"),
        (pie, "valueLabelsColor=white"),
        (pie, "pieLabels=rotated"),
        (pie, "areaAlpha=0.5"),
        (pie, "hideLegend=true"),
        (clear, "areaAlpha=0.5"),
        (log, "logBase=2"),
        ("lineMode=connected&", "connectedLimit=1"),
    ] {
        let both = format!("{base}{query}");
        assert_ne!(shapes(&all, &both), shapes(&all, base.trim_end_matches('&')), "{both}");
    }
    all.truncate(1);
    assert_ne!(shapes(&all, "yAxisSide=right"), shapes(&all, ""));
    let twice = [all[0].clone(), all[0].clone(), series("null", &[f64::NAN; 60])];
    assert_eq!(shapes(&twice, "").matches(">servers.web0.cpu<").count(), 2);
    assert_eq!(shapes(&twice, "uniqueLegend=true").matches(">servers.web0.cpu<").count(), 1);
    assert_eq!(shapes(&twice, "").matches(">null<").count(), 1);
    assert_eq!(shapes(&twice, "hideNullFromLegend=true").matches(">null<").count(), 0);
}

#[test]
fn every_drawing_function_changes_the_image() {
    let plain = shapes(&waves(), "");
    let changes: [fn(&mut Drawing); 8] = [
        |drawing| drawing.color = Some("ff00ff".to_owned()),
        |drawing| drawing.alpha = Some(0.3),
        |drawing| drawing.line_width = Some(5.0),
        |drawing| drawing.dashed = Some(4.0),
        |drawing| drawing.is_stacked = true,
        |drawing| drawing.is_invisible = true,
        |drawing| drawing.is_on_second_axis = true,
        |drawing| drawing.is_infinite = true,
    ];
    for (number, change) in changes.iter().enumerate() {
        let mut all = waves();
        change(&mut all[1].drawing);
        let changed = svg(&all, "");
        check(&changed);
        assert_ne!(changed.split("<script").next().unwrap_or_default(), plain, "change {number}");
    }
}

#[test]
fn hostile_names_are_escaped_and_shortened() {
    for (name, want, not) in [
        ("a<script>alert(1)</script>", "a&lt;script&gt;", "<script>alert"),
        ("a&b\"'c", "a&amp;b&quot;&#39;c", "a&b"),
        ("]]></script><script>x", "]]&gt;&lt;/script&gt;", "]]></script><"),
        ("nul\u{0}esc\u{1b}[0m", "nul\u{fffd}esc\u{fffd}[0m", "\u{0}"),
        ("\u{202e}gnp.exe", "\u{fffd}gnp.exe", "\u{202e}"),
        ("שלום.مرحبا", "שלום.مرحبا", "\u{0}"),
        ("bad\u{fffd}\u{ffff}utf", "bad\u{fffd}\u{fffd}utf", "\u{ffff}"),
    ] {
        let query = "width=800&title=T";
        let text = svg(&[series(name, &[1.0, 2.0, 3.0])], query);
        check(&text);
        assert!(text.contains(want) && !text.contains(not), "{name:?}: {text}");
        let titled = svg(&waves(), &format!("title={}", name.replace('&', "+")));
        check(&titled);
    }
    let long = "x".repeat(10_000);
    let text = svg(&[series(&long, &[1.0, 2.0])], "");
    check(&text);
    assert!(text.len() < 8_000 && text.contains('…'), "{}", text.len());
}

#[test]
fn nothing_to_draw_says_so() {
    for all in
        [vec![], vec![series("a", &[])], vec![series("a", &[f64::NAN; 5]), series("b", &[f64::INFINITY])]]
    {
        for query in ["", "graphType=pie", "width=10&height=10", "title=T&logBase=10"] {
            let text = svg(&all, query);
            check(&text);
            assert!(text.contains(">No Data<") && text.contains("#c80032"), "{text}");
        }
    }
    assert!(svg(&[series("a", &[-1.0, 0.0])], "graphType=pie").contains("No Data"), "no share of a pie");
}

#[test]
fn the_data_of_the_graph_is_a_script() {
    let text = svg(&[series("a", &[1.0, f64::NAN, 3.0])], "");
    let json =
        text.split("metadata = ").nth(1).and_then(|rest| rest.split("\n]]>").next()).expect("a script");
    let read: serde_json::Value = serde_json::from_str(json).expect("JSON");
    assert_eq!(read["x"], serde_json::json!({"start": 1_710_000_000, "end": 1_710_000_180, "step": 60}));
    assert_eq!(read["series"][0]["name"], "a");
    assert_eq!(read["series"][0]["data"], serde_json::json!([1.0, null, 3.0]));
    assert!(read["area"]["xmax"].as_f64().is_some_and(|x| (300.0..=320.0).contains(&x)), "{read}");
}

#[test]
fn layers_are_documents_that_together_have_everything() {
    let all: Vec<Series> = (0..300).map(|number| series(&format!("s{number}"), &[1.0, 2.0, 3.0])).collect();
    let options = options("hideLegend=false").expect("right");
    let picture = draw(&all, &options, &view(), Faces::Regular, &mut || Ok(())).expect("few");
    let layers: Vec<String> = picture.layers().collect();
    assert!(layers.len() >= 3, "{}", layers.len());
    layers.iter().for_each(|layer| drop(check(layer)));
    let whole = picture.svg();
    let paths = |text: &str| text.matches("<path").count();
    assert_eq!(paths(&whole), layers.iter().map(|layer| paths(layer)).sum::<usize>());
    assert!(!whole.contains("<script"), "no data in what is not for viewers");
    check(&whole);
}

#[test]
fn drawing_ends_with_the_request_and_at_its_limit() {
    let all = vec![series("a", &[1.0, 2.0]); 10];
    let plain = options("").expect("right");
    let mut left = 4;
    let mut stop = || {
        left -= 1;
        if left == 0 { Err(Stop::Deadline) } else { Ok(()) }
    };
    let stopped = draw(&all, &plain, &view(), Faces::All, &mut stop);
    assert_eq!(stopped.err(), Some(DrawError::Stopped(Stop::Deadline)));
    let many = vec![series("a", &[]); SERIES_MAX + 1];
    let error = draw(&many, &plain, &view(), Faces::All, &mut || Ok(())).err();
    assert_eq!(error, Some(DrawError::TooManySeries(SERIES_MAX + 1)));
    assert!(draw(&many[1..], &plain, &view(), Faces::All, &mut || Ok(())).is_ok());
}

fn any_value() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => -1e3..1e3_f64,
        2 => Just(f64::NAN),
        1 => prop::sample::select(vec![
            0.0, -0.0, 1e308, -1e308, f64::INFINITY, f64::NEG_INFINITY, 5e-324, 1e-300, 1e15,
        ]),
        1 => any::<f64>(),
    ]
}

prop_compose! {
    fn any_series()(
        name in ".{0,40}",
        values in prop::collection::vec(any_value(), 0..80),
        start in prop_oneof![Just(1_710_000_000_i64), 0..2_000_000_000_i64, -10_000_000_000_i64..0],
        step in prop::sample::select(vec![1_i64, 10, 60, 86_400, 100_000_000]),
        flags in any::<[bool; 4]>(),
        color in prop::option::of(".{0,9}"),
        numbers in prop::collection::vec(prop::option::of(any_value()), 3),
        function in prop::sample::select(Consolidation::NAMES.to_vec()),
        stack in 0..3_usize,
    ) -> Series {
        let end = start + step * values.len() as i64;
        let mut one = Series::new(name, (start, end, step), values);
        one.consolidation = Consolidation::from_name(function).unwrap_or(Consolidation::Average);
        one.drawing = Drawing {
            color,
            alpha: numbers[0],
            line_width: numbers[1],
            dashed: numbers[2],
            is_stacked: flags[0],
            is_invisible: flags[0] && flags[1],
            is_on_second_axis: flags[2],
            is_infinite: flags[3],
            stack,
        };
        one
    }
}

/// Names of options for random requests.
const NAMES: &str = "\
    width height margin bgcolor template fontSize fontName fontBold fontItalic colorList title vtitle \
    vtitleRight lineMode connectedLimit lineWidth areaMode areaAlpha drawNullAsZero yMin yMax yLimit \
    yStep yDivisors yMinRight yMaxRight yStepRight leftDashed yUnitSystem yAxisSide logBase hideLegend \
    uniqueLegend hideAxes hideGrid graphOnly minXStep minorY xFormat graphType pieMode valueLabels \
    pieLabels";

/// Values that some of them know.
const VALUES: &str = "\
    true false 0 1 -1 10 120 500 2000 1e308 -1e308 5e-324 nan inf e 2 1.01 max all first stacked \
    staircase connected pie right rotated binary sec number minimum %H%M%S%Q%! 4,5,0,99 red,#00ff00,x \
    a\\nb";

/// A query string of some options.
fn any_query() -> impl Strategy<Value = String> {
    let values = prop_oneof![
        prop::sample::select(VALUES.split_whitespace().collect::<Vec<_>>()).prop_map(str::to_owned),
        "[^&=]{0,20}",
        any_value().prop_map(|value| value.to_string()),
    ];
    let pair = (prop::sample::select(NAMES.split_whitespace().collect::<Vec<_>>()), values);
    prop::collection::vec(pair, 0..12).prop_map(|pairs| {
        pairs.into_iter().map(|(name, value)| format!("{name}={value}&")).collect::<String>()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn any_series_with_any_options_are_a_valid_image_of_limited_size(
        all in prop::collection::vec(any_series(), 0..15), query in any_query(), is_png in any::<bool>(),
    ) {
        let Ok(options) = options(&query) else { return Ok(()) };
        let faces = if is_png { Faces::Regular } else { Faces::All };
        let picture = draw(&all, &options, &view(), faces, &mut || Ok(())).expect("few series");
        let text = picture.svg();
        let points: usize = all.iter().map(|one| one.values.len()).sum();
        // Grid and labels, names, and for each value its coordinates twice for an area, four times as stairs, and its data.
        prop_assert!(text.len() < 600_000 + all.len() * 3_000 + points * 150, "{} bytes", text.len());
        prop_assert_eq!((picture.width(), picture.height()), (options.width, options.height));
        let tree = check(&text);
        prop_assert!((tree.size().width() - options.width as f32).abs() < 0.5);
        picture.layers().for_each(|layer| drop(check(&layer)));
    }
}

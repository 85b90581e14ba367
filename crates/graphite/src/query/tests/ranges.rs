//! Functions that look back or elsewhere, on files of the specification: 60 s, value `i` at 1710000000 + 60·i.

use super::*;

fn files() -> Store {
    let text = |of: &dyn Fn(i64) -> String| (0..=60).map(of).collect::<Vec<_>>().join(",");
    let start = 1_710_000_000;
    Store::default()
        .with("vec.lin", start, 60, &text(&|i| i.to_string()))
        .with(
            "vec.gap",
            start,
            60,
            &text(&|i| if (30..33).contains(&i) { "-".to_owned() } else { (2 * i).to_string() }),
        )
        .with("vec.saw", start, 60, &text(&|i| (i % 7).to_string()))
        .with("vec.ctr", start, 60, &text(&|i| (5 * i % 40).to_string()))
}

fn http(target: &str) -> Vec<Series> {
    let request = request(1_710_001_800, 1_710_002_400);
    render(&[target], &request, &mut files()).unwrap_or_else(|mistake| panic!("{target}: {mistake}"))
}

#[test]
fn windows_shifts_and_forecasts_have_the_values_of_graphite_web() {
    let table = [
        ("movingAverage(vec.lin,5)", 1860, "29,30,31,32,33,34,35,36,37,38"),
        ("movingAverage(vec.gap,5)", 1860, "56,57,62,67,68,69,70,72,74,76"),
        ("movingAverage(vec.gap,5,0.5)", 1860, "56,-,-,-,68,69,70,72,74,76"),
        ("movingAverage(vec.lin,'3min')", 1860, "30,31,32,33,34,35,36,37,38,39"),
        ("movingMedian(vec.saw,3)", 1860, "2,3,4,5,5,1,1,2,3,4"),
        ("movingMax(vec.saw,4)", 1860, "3,4,5,6,6,6,6,3,4,5"),
        ("movingMin(vec.saw,4)", 1860, "0,1,2,3,0,0,0,0,1,2"),
        ("movingSum(vec.lin,3)", 1860, "90,93,96,99,102,105,108,111,114,117"),
        ("movingWindow(vec.lin,3,'sum')", 1860, "90,93,96,99,102,105,108,111,114,117"),
        ("exponentialMovingAverage(vec.saw,3)", 1860, "1,2,3,4,5,2.5,1.75,1.875,2.4375,3.21875,4.109375"),
        (
            "exponentialMovingAverage(vec.gap,'2min')",
            1860,
            "58,-,-,58.132231,58.295335,58.488801,58.712126,58.964818,59.246392,59.556369,59.89428",
        ),
        ("timeShift(vec.lin,'5min')", 1860, "26,27,28,29,30,31,32,33,34,35"),
        ("timeShift(vec.lin,'+5min')", 1860, "36,37,38,39,40,41,42,43,44,45"),
        ("summarize(vec.lin,'5min')", 1800, "130,185,40"),
        ("smartSummarize(vec.lin,'5min','sum')", 1860, "165,190"),
        ("smartSummarize(vec.lin,'5min','sum','hours')", 60, "15,40,65,90,115,140,165,190"),
        ("hitcount(vec.lin,'5min')", 1860, "9900,11400"),
        ("hitcount(vec.lin,'5min',true)", 1860, "9900,11400,-"),
        ("integralByInterval(vec.lin,'5min')", 1860, "31,63,96,130,35,71,108,146,185,40"),
        ("perSecond(vec.ctr)", 1860, "-,-,0.083333,0.083333,0.083333,0.083333,0.083333,0.083333,0.083333,-"),
        ("constantLine(7)", 1800, "7,7,7"),
        ("sum(vec.*)", 1860, "69,36,109,118,120,129,138,147,156,125"),
        ("timeSlice(vec.lin,'1710001920','1710001980')", 1860, "-,32,33,-,-,-,-,-,-,-"),
        ("linearRegression(vec.lin,'1710000000','1710000300')", 1860, "31,32,33,34,35,36,37,38,39,40"),
        (
            "holtWintersAberration(vec.saw,2,'10min','7min')",
            1860,
            "0.4450136031953029,0.9638239571023677,1.4357381449518258,1.864764854525089,-1.5814231909284162,\
             -0.780415548001234,0,0,0.12759016521801847,0.4787155593325547",
        ),
    ];
    for (target, start, want) in table {
        let results = http(target);
        assert_eq!(results.len(), 1, "{target}");
        assert_values(&results[0].values, want, target);
        assert_eq!(results[0].start, 1_710_000_000 + start, "{target}");
    }
    let beginnings = [
        (
            "holtWintersForecast(vec.saw,'10min','7min')",
            0,
            "1.8342822184433711,2.022156009025437,2.285281906298531",
        ),
        ("holtWintersConfidenceBands(vec.saw,2,'10min','7min')", 0, "1.1135780400820452"),
        ("holtWintersConfidenceBands(vec.saw,2,'10min','7min')", 1, "2.554986396804697"),
        ("holtWintersConfidenceArea(vec.saw,2,'10min','7min')", 1, "2.554986396804697"),
    ];
    for (target, at, want) in beginnings {
        let results = http(target);
        assert_values(&results[at].values[..numbers(want).len()], want, target);
        assert_eq!(results[at].values.len(), 10, "{target}");
    }
}

#[test]
fn points_for_a_graph_are_consolidated() {
    let reduced = |target: &str, max: usize| {
        let mut results = http(target);
        limit_points(&mut results, max);
        results.remove(0).points().map(|(time, value)| (time - 1_710_000_000, value)).collect::<Vec<_>>()
    };
    assert_eq!(reduced("vec.lin", 4), [(1980, 33.0), (2160, 36.0), (2340, 39.0)]);
    let largest = reduced("consolidateBy(vec.lin,'max')", 4);
    assert_eq!(largest, [(1980, 34.0), (2160, 37.0), (2340, 40.0)]);
    assert_eq!(reduced("cumulative(vec.lin)", 4)[0], (1980, 99.0));
}

#[test]
fn one_fetch_has_all_paths_and_ranges() {
    let targets = [
        "sumSeries(vec.lin,movingAverage(vec.gap,'5min'))",
        "timeStack(vec.lin,'1min',1,3)",
        "timeShift(vec.lin,'1h',alignDst=true)",
        "smartSummarize(vec.saw,'5min','sum','hours')|hitcount('1h',alignToInterval=true)",
        "holtWintersForecast(seriesList=vec.saw,bootstrapInterval='10min',seasonality='7min')",
    ];
    let mut store = files();
    let results = render(&targets, &request(1_710_001_800, 1_710_002_400), &mut store).expect("targets");
    assert_eq!(store.fetches.len(), 1, "{:?}", store.fetches);
    let asks = &store.fetches[0];
    let distinct: std::collections::BTreeSet<&Ask> = asks.iter().collect();
    assert_eq!(distinct.len(), asks.len(), "nothing is fetched twice");
    assert_eq!(results.len(), 6);
    assert_values(&results[1].values, "30,31,32,33,34,35,36,37,38,39", "one minute earlier");
    assert_eq!(results[1].name, "timeShift(vec.lin, -1min, 1)");
}

#[test]
fn a_window_in_points_is_fetched_when_the_step_is_known() {
    let mut store = files();
    let target = "movingAverage(movingAverage(vec.lin,5),2)";
    let results = render(&[target], &request(1_710_001_800, 1_710_002_400), &mut store).expect("a target");
    assert_values(&results[0].values[..2], "28.5,29.5", target);
    assert_eq!(results[0].name, "movingAverage(movingAverage(vec.lin,5),2)");
}

#[test]
fn templates_take_values_from_the_request() {
    let template = [("name".to_owned(), "lin".to_owned())];
    let request = Request { template: &template, ..request(1_710_001_800, 1_710_002_400) };
    let target = "template(scale(vec.$name,$factor),name='gap',factor=2)";
    let results = render(&[target], &request, &mut files()).expect("a target");
    assert_values(&results[0].values[..2], "62,64", target);
    assert_eq!(results[0].name, "scale(vec.lin,2)");
}

#[test]
fn shifts_keep_the_time_of_day_when_clocks_change() {
    let zone = TimeZone::get("Europe/Berlin").expect("the tests have their zones");
    // Noon of 2 April 2024, and a week before: on 31 March the clocks went forward.
    let range = Range { from: 1_712_052_000, until: 1_712_055_600 };
    let request = Request { range, zone: &zone, ..request(0, 0) };
    for (align, moved) in [("false", 604_800), ("true", 604_800 - 3_600)] {
        let mut store = files();
        let target = format!("timeShift(vec.lin,'7d',true,{align})");
        render(&[&target], &request, &mut store).expect("a target");
        let froms: Vec<i64> = store.fetches[0].iter().map(|ask| ask.range.from).collect();
        assert_eq!(froms, [range.from, range.from - moved], "{align}");
    }
}

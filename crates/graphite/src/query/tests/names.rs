//! Names, tags and paths of results.

use super::*;

fn store() -> Store {
    let store = Store::default().with("s.a.x", 60, 60, "1,2,-,4,5").with("s.b.x", 60, 60, "10,-,-,40,50");
    let store = store.with("m", 60, 60, "1,2,-,4,5").with("big", 60, 60, "1500,2500000,-,-,-");
    store.with("w;dc=eu;host=a", 60, 60, "1,2,3,4,5").with("nulls", 60, 60, "-,-,-,-,-")
}

fn names(target: &str) -> Vec<String> {
    let results = render(&[target], &request(0, 300), &mut store());
    let results = results.unwrap_or_else(|mistake| panic!("{target}: {mistake}"));
    results.into_iter().map(|one| one.name).collect()
}

/// A target, and the name of its first result.
const NAMES: &[(&str, &str)] = &[
    ("sumSeries(s.*.x)", "sumSeries(s.*.x)"),
    ("sum(s.a.x,s.b.x,s.a.x)", "sumSeries(s.a.x,s.b.x)"),
    ("sumSeries(scale(s.a.x,2),s.b.x)", "sumSeries(scale(s.a.x,2),s.b.x)"),
    ("avg(s.*.x)", "averageSeries(s.*.x)"),
    ("aggregate(s.*.x,'total')", "totalSeries(s.*.x)"),
    ("aggregate(s.*.x,'sumSeries')", "sumSeries(s.*.x)"),
    ("rangeOfSeries(s.*.x)", "rangeOfSeries(s.*.x)"),
    ("sumSeriesLists(s.a.x,s.b.x)", "sumSeries(s.a.x,s.b.x)"),
    ("percentileOfSeries(s.*.x,99.5)", "percentileOfSeries(s.*.x,99.5)"),
    ("weightedAverage(s.a.x,s.b.x,0,2)", "weightedAverage(s.a.x, s.b.x, 0,2)"),
    ("divideSeries(s.a.x,gone)", "divideSeries(s.a.x,MISSING)"),
    ("asPercent(m,20)", "asPercent(m,20)"),
    ("asPercent(m,2.5)", "asPercent(m,2.5)"),
    ("scale(m,0.00001)", "scale(m,1e-05)"),
    ("offset(m,-3)", "offset(m,-3)"),
    ("add(m,2.7)", "add(m,2)"),
    ("scaleToSeconds(m,1)", "scaleToSeconds(m,1)"),
    ("log(m)", "log(m, 10)"),
    ("round(m)", "round(m)"),
    ("round(m,2)", "round(m,2)"),
    ("delay(m,2)", "delay(m,2)"),
    ("integralByInterval(m,'1d')", "integralByInterval(m,'1d')"),
    ("transformNull(m,1)", "transformNull(m,1)"),
    ("transformNull(m,1,m)", "transformNull(m,1,referenceSeries)"),
    ("summarize(m,'3min')", "summarize(m, \"3min\", \"sum\")"),
    ("summarize(m,'3min','avg',true)", "summarize(m, \"3min\", \"avg\", true)"),
    ("smartSummarize(m,'3min')", "smartSummarize(m, \"3min\", \"sum\")"),
    ("hitcount(m,'3min')", "hitcount(m, \"3min\")"),
    ("timeShift(m,'1d')", "timeShift(m, \"-1d\")"),
    ("movingAverage(m,5)", "movingAverage(m,5)"),
    ("movingWindow(m,'5min','rangeOf')", "movingRangeof(m,\"5min\")"),
    ("exponentialMovingAverage(m,5)", "exponentialMovingAverage(m,5)"),
    ("stdev(m,3)", "stdev(m,3)"),
    ("nPercentile(m,90)", "nPercentile(m, 90)"),
    ("aggregateLine(m,'max')", "aggregateLine(m, 5)"),
    ("aggregateLine(nulls)", "aggregateLine(nulls, None)"),
    ("linearRegression(m)", "linearRegression(m, 0, 300)"),
    ("constantLine(7)", "7.0"),
    ("threshold(7)", "7.0"),
    ("threshold(7,label='limit')", "limit"),
    ("stacked(m,'x')", "m"),
    ("areaBetween(s.*.x)", "areaBetween(s.*.x)"),
    ("removeAboveValue(m,2)", "removeAboveValue(m, 2)"),
    ("removeBelowPercentile(m,50)", "removeBelowPercentile(m, 50)"),
    ("consolidateBy(m,'max')", "consolidateBy(m,\"max\")"),
    ("cumulative(m)", "consolidateBy(m,\"sum\")"),
    ("events('a','b')", "events(\"a\", \"b\")"),
    ("applyByNode(s.a.x,1,'sumSeries(%.*)','%.total')", "s.a.total"),
    ("reduceSeries(mapSeries(s.*.x,2),'diffSeries',1,'b','a')", "s.reduce.diffSeries"),
    ("alias(m,'any name')", "any name"),
    ("aliasByNode(s.a.x,1,2)", "a.x"),
    ("aliasByNode(scale(s.a.x,2),-1)", "x"),
    ("aliasByNode(w,'dc')", ""),
    ("aliasByTags(seriesByTag('name=w'),'host','dc',0)", "a.eu.w"),
    ("aliasByMetric(s.a.x)", "x"),
    ("aliasSub(s.a.x,'^s\\.(\\w)\\.(\\w)$','\\2-\\1')", "x-a"),
    ("aliasQuery(m,'m','s.a.x','last is %d')", "last is 5"),
    ("substr(scale(s.a.x,2),1,2)", "a"),
    ("upper(s.a.x)", "S.A.X"),
    ("upper(s.a.x,0,-1,9)", "S.a.X"),
    ("lower(alias(m,'ABC'),1)", "AbC"),
    ("legendValue(m,'avg','last','nothing')", "m (avg: 3.0) (last: 5.0) (nothing: (?))"),
    ("legendValue(changed(m),'last')", "changed(m) (last: 1)"),
    ("legendValue(nulls,'last')", "nulls (last: None)"),
    ("legendValue(big,'max','si')", "big                 max  2.50M     "),
    ("cactiStyle(m)", "m Current:5.00    Max:5.00    Min:1.00    "),
    ("cactiStyle(big,'si','b')", "big Current:2.50 Mb    Max:2.50 Mb    Min:1.50 kb    "),
    ("cactiStyle(nulls)", "nulls Current:nan     Max:nan     Min:nan     "),
];

#[test]
fn results_are_named_after_their_calls() {
    for (target, want) in NAMES {
        let got = names(target);
        if want.is_empty() {
            assert!(got.is_empty() || got == [""], "{target}");
        } else {
            assert_eq!(got.first().map(String::as_str), Some(*want), "{target}");
        }
    }
}

#[test]
fn tags_are_those_of_the_name_and_of_the_functions() {
    let tags = |target: &str| {
        let results = render(&[target], &request(0, 300), &mut store()).expect(target);
        results[0].tags.iter().map(|(tag, value)| format!("{tag}={value}")).collect::<Vec<_>>().join(" ")
    };
    let table = [
        ("m", "name=m"),
        ("seriesByTag('name=w')", "dc=eu host=a name=w"),
        ("scale(m,2)", "name=m scale=2.0"),
        ("sumSeries(s.*.x)", "aggregatedBy=sum name=sumSeries(s.*.x)"),
        ("sumSeries(m,m)", "aggregatedBy=sum name=m"),
        ("movingAverage(m,5)", "movingAverage=5 name=m"),
        ("perSecond(m)", "name=m perSecond=1"),
        ("aggregateLine(nulls)", "name=None"),
        ("aggregateLine(m,'count')", "name=4"),
        ("timeStack(m,'1d',0,1)", "name=m timeShift=0 timeShiftUnit=-1d"),
        ("groupByTags(seriesByTag('name=w'),'sum','dc')", "dc=eu name=w"),
        ("setXFilesFactor(m,0.5)", "name=m xFilesFactor=0.5"),
    ];
    for (target, want) in table {
        assert_eq!(tags(target), want, "{target}");
    }
}

#[test]
fn malformed_tags_leave_the_name() {
    for name in ["a;b", "a;=c", ";a=b", "~;a=b", "f(a;b=c)"] {
        assert_eq!(Tags::of_series(name), Tags::of_name(name), "{name}");
    }
    assert_eq!(Tags::of_series("~a;b=c").value("name"), Some("a"));
}

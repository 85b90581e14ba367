//! The values of functions: the tables of the specification.

use super::*;

/// A, B and C: `s.a.x`, `s.b.x`, `s.c.y`, 60 s, of the same start.
fn three() -> Store {
    let store = Store::default().with("s.a.x", 60, 60, "1,2,-,4,5").with("s.b.x", 60, 60, "10,-,-,40,50");
    let store = store.with("s.c.y", 60, 60, "7,3,9,1,-").with("d.d.d", 60, 60, "2,0,5,-,10");
    let store = store.with("p.x", 30, 30, "1,2,3,4").with("p.y", 60, 60, "10,20");
    let store = store.with("h10", 60, 60, "1").with("h9", 60, 60, "1").with("h1", 60, 60, "1");
    store.with("w;t=1;u=a", 60, 60, "1,2,-,4,5").with("w;t=2;u=a", 60, 60, "1,1,1,1,1")
}

fn all(target: &str) -> Vec<Series> {
    render(&[target], &request(0, 300), &mut three()).unwrap_or_else(|mistake| panic!("{target}: {mistake}"))
}

/// The one series named `s` with these values from a start, by a target in which it is `s`.
fn single(values: &str, start: i64, target: &str) -> Vec<Series> {
    let count = numbers(values).len() as i64;
    let mut store = Store::default().with("s", start, 60, values);
    let request = request(start - 60, start + 60 * (count - 1));
    render(&[target], &request, &mut store).unwrap_or_else(|mistake| panic!("{target}: {mistake}"))
}

#[test]
fn rows_are_combined() {
    let table = [
        ("sumSeries(s.*.*)", "18,5,9,45,55"),
        ("averageSeries(s.*.*)", "6,2.5,9,15,27.5"),
        ("minSeries(s.*.*)", "1,2,9,1,5"),
        ("maxSeries(s.*.*)", "10,3,9,40,50"),
        ("diffSeries(s.*.*)", "-16,-1,9,-37,-45"),
        ("rangeOfSeries(s.*.*)", "9,1,0,39,45"),
        ("stddevSeries(s.*.*)", "3.741657,0.5,0,17.720045,22.5"),
        ("multiplySeries(s.*.*)", "70,-,-,160,-"),
        ("multiplySeries(s.a.x)", "1,2,-,4,5"),
        ("countSeries(s.*.*)", "3,3,3,3,3"),
        ("countSeries()", "0,0,0"),
        ("aggregate(s.*.*,'count')", "3,2,1,3,2"),
        ("aggregate(s.*.*,'avg_zero')", "6,1.666667,3,15,18.333333"),
        ("aggregate(s.*.*,'median')", "7,2.5,9,4,27.5"),
        ("aggregate(s.*.*,'last')", "7,3,9,1,50"),
        ("aggregate(s.*.*,'sum',0.7)", "18,-,-,45,-"),
        ("aggregate(s.*.*,'sum',xFilesFactor=0.5)", "18,5,-,45,55"),
        ("aggregate(setXFilesFactor(s.*.*,0.5),'sumSeries')", "18,5,-,45,55"),
        ("percentileOfSeries(s.*.*,50)", "7,3,9,4,50"),
        ("percentileOfSeries(s.*.*,50,true)", "7,2.5,9,4,27.5"),
        ("percentileOfSeries(s.*.*,95)", "10,3,9,40,50"),
        ("powSeries(s.*.*)", "1,-,-,1.2089258196146292e+24,-"),
        ("asPercent(s.*.*)|limit(1)", "5.555556,40,-,8.888889,9.090909"),
        ("asPercent(s.*.*,20)|substr(0)|grep('s.c')", "35,15,45,5,-"),
        ("asPercent(s.a.x,s.b.x)", "10,-,-,10,10"),
        ("divideSeries(s.a.x,d.d.d)", "0.5,-,-,-,0.5"),
        ("divideSeries(s.b.x,d.d.d)", "5,-,-,-,5"),
        ("divideSeries(s.c.y,d.d.d)", "3.5,-,1.8,-,-"),
        ("divideSeries(s.c.y,none.at.all)", "-,-,-,-,-"),
        ("divideSeriesLists(s.c.y,d.d.d)", "3.5,-,1.8,-,-"),
        ("sumSeriesLists(s.a.x,s.b.x)", "11,2,-,44,55"),
        ("diffSeriesLists(s.b.x,s.a.x)", "9,2,-,36,45"),
        ("multiplySeriesLists(s.b.x,s.a.x)", "10,-,-,160,250"),
        ("aggregateSeriesLists(s.b.x,s.a.x,'max')", "10,2,-,40,50"),
        ("weightedAverage(s.a.x,s.b.x,0)", "1,-,-,4,5"),
        ("isNonNull(s.a.x)", "1,1,0,1,1"),
        ("sumSeries(p.*)", "11.5,23.5,-"),
        ("median(s.*.*)", "7,2.5,9,4,27.5"),
        ("min(s.*.*)", "1,2,9,1,5"),
        ("range(s.*.*)", "9,1,0,39,45"),
        ("last(s.*.*)", "7,3,9,1,50"),
        ("reduceSeries(mapSeries(s.{a,b}.x,2),'sumSeries',1,'a','b')", "11,2,-,44,55"),
        ("applyByNode(s.a.x,1,'sumSeries(%.*)')", "1,2,-,4,5"),
    ];
    for (target, want) in table {
        let results = all(target);
        assert_eq!(results.len(), 1, "{target}");
        let values = &results[0].values;
        assert_values(&values[..values.len().min(numbers(want).len())], want, target);
    }
}

#[test]
fn series_are_grouped() {
    let by_node = [("x", "11,2,-,44,55"), ("y", "7,3,9,1,-")];
    let wild = [("s.x", "11,2,-,44,55"), ("s.y", "7,3,9,1,-")];
    let tags = [("w;t=1", "1,2,-,4,5"), ("w;t=2", "1,1,1,1,1")];
    let stacked = [
        ("stacked(s.a.x)", "1,2,-,4,5"),
        ("stacked(s.b.x)", "11,-,-,44,55"),
        ("stacked(s.c.y)", "18,5,9,45,-"),
    ];
    let shares = [
        ("asPercent(s.a.x,sumSeries(s.*.*))", "9.090909,100,-,9.090909,9.090909"),
        ("asPercent(s.b.x,sumSeries(s.*.*))", "90.909091,-,-,90.909091,90.909091"),
        ("asPercent(s.c.y,s.c.y)", "100,100,100,100,-"),
    ];
    let missing = [("asPercent(s.a.x,MISSING)", "-,-,-,-,-"), ("asPercent(MISSING,s.c.y)", "-,-,-,-,-")];
    let table: [(&str, &[(&str, &str)]); 12] = [
        ("groupByNode(s.*.*,2,'sum')", &by_node),
        ("groupByNode(s.*.*,-1,'sumSeries')", &by_node),
        ("groupByNodes(s.*.*,'sum',0,2)", &wild),
        ("sumSeriesWithWildcards(s.*.*,1)", &wild),
        ("aggregateWithWildcards(s.*.*,'sum',1)", &wild),
        ("groupByTags(seriesByTag('name=w'),'sum','t')", &tags),
        ("groupByTags(seriesByTag('name=w'),'sum','t','name')", &tags),
        ("groupByTags(seriesByTag('name=w'),'max','u')", &[("w;u=a", "1,2,1,4,5")]),
        ("groupByNode(seriesByTag('name=w'),'u','max')", &[("a", "1,2,1,4,5")]),
        ("stacked(s.*.*)", &stacked),
        ("asPercent(s.*.*,none,2)", &shares),
        ("asPercent(s.a.x,s.c.y,2)", &missing),
    ];
    for (target, want) in table {
        let results = all(target);
        let names: Vec<&str> = results.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, want.iter().map(|(name, _)| *name).collect::<Vec<_>>(), "{target}");
        for (one, (_, values)) in results.iter().zip(want) {
            assert_values(&one.values, values, target);
        }
    }
}

#[test]
fn series_are_chosen_and_sorted() {
    let table = [
        ("highestMax(s.*.*,2)", "b,c"),
        ("highestCurrent(s.*.*,2)", "b,a"),
        ("highestAverage(s.*.*,2)", "b,c"),
        ("highest(s.*.*)", "b"),
        ("highest(s.*.*,2,'max')", "b,c"),
        ("lowestCurrent(s.*.*,2)", "c,a"),
        ("lowestAverage(s.*.*,2)", "a,c"),
        ("lowest(s.*.*,n=1,func='min')", "a"),
        ("averageAbove(s.*.*,5)", "b"),
        ("averageBelow(s.*.*,5)", "a,c"),
        ("currentAbove(s.*.*,4)", "a,b"),
        ("currentBelow(s.*.*,5)", "a,c"),
        ("maximumAbove(s.*.*,9)", "b"),
        ("maximumBelow(s.*.*,9)", "a,c"),
        ("minimumAbove(s.*.*,1)", "b"),
        ("minimumBelow(s.*.*,1)", "a,c"),
        ("filterSeries(s.*.*,'max','>=',9)", "b,c"),
        ("filterSeries(s.*.*,'last','=',5)", "a"),
        ("filterSeries(s.*.*,'last','!=',5)", "b,c"),
        ("sortByTotal(s.*.*)", "b,c,a"),
        ("sortByMaxima(s.*.*)", "b,c,a"),
        ("sortByMinima(s.*.*)", "a,c,b"),
        ("sortBy(s.*.*,'min',true)", "b,a,c"),
        ("sortByName(s.*.*,reverse=true)", "c,b,a"),
        ("mostDeviant(s.*.*,2)", "b,c"),
        ("limit(s.*.*,2)", "a,b"),
        ("limit(s.*.*,-1)", "a,b"),
        ("grep(s.*.*,'x$')", "a,b"),
        ("exclude(s.*.*,'x$')", "c"),
        ("removeEmptySeries(s.*.*,0.7)", "a,c"),
        ("unique(s.*.*,s.a.x)", "a,b,c"),
        ("group(s.b.x,s.a.x)", "b,a"),
        ("fallbackSeries(none.at.all,s.a.x)", "a"),
        ("fallbackSeries(s.b.x,s.a.x)", "b"),
        ("averageOutsidePercentile(s.*.*,60)", "a,b,c"),
        ("removeBetweenPercentile(s.*.*,60)", "a,b,c"),
        ("useSeriesAbove(s.*.*,8,'x$','x')", "b,c"),
    ];
    for (target, want) in table {
        let results = all(target);
        let names: Vec<&str> = results.iter().map(|one| &one.name[2..3]).collect();
        assert_eq!(names.join(","), want, "{target}");
    }
    let names = |target: &str| all(target).into_iter().map(|one| one.name).collect::<Vec<_>>();
    assert_eq!(names("sortByName(group(h10,h9,h1),natural=true)"), ["h1", "h9", "h10"]);
}

/// Values, a target of them, and its values.
type Case = (&'static str, &'static str, &'static str);

/// Functions of each value, or of those before it.
const TRANSFORMS: &[Case] = &[
    ("1,3,-,7,8,4", "derivative(s)", "-,2,-,-,1,-4"),
    ("1,3,-,7,8,4,6", "nonNegativeDerivative(s)", "-,2,-,-,1,-,2"),
    ("1,3,9,2,11,4", "nonNegativeDerivative(s,10)", "-,2,6,4,-,-"),
    ("1,3,9,2,0,4", "nonNegativeDerivative(s,None,1)", "-,2,6,1,-,-"),
    ("0,60,-,180,240,10,70", "perSecond(s)", "-,1,-,-,1,-,1"),
    ("0,250,5", "perSecond(s,255)", "-,4.166667,0.183333"),
    ("1,-,2,3", "integral(s)", "1,-,3,6"),
    ("1,-,2,3,4", "integralByInterval(s,'2min')", "1,0,2,3,7"),
    ("-,1,-,-,4,-", "keepLastValue(s)", "-,1,1,1,4,4"),
    ("-,1,-,-,4,-", "keepLastValue(s,1)", "-,1,-,-,4,4"),
    ("-,1,-,-,4,-", "interpolate(s)", "-,1,2,3,4,-"),
    ("1,-,3,-,-,6", "interpolate(s,1)", "1,2,3,-,-,6"),
    ("-,1,1,-,2,2,1", "changed(s)", "0,0,0,0,1,0,1"),
    ("60,-,30", "scaleToSeconds(s,1)", "1,-,0.5"),
    ("0,2,-,-4", "invert(s)", "-,0.5,-,-0.25"),
    ("0,1,10,100,-1,-", "log(s)", "-,0,1,2,-,-"),
    ("1,4,8", "log(s,2)", "0,2,3"),
    ("0.5,1.5,2.5", "round(s)", "0,2,2"),
    ("1.25,2.35,-1.25,-", "round(s,1)", "1.2,2.4,-1.2,-"),
    ("1,3,-,2", "minMax(s)", "0,1,-,0.5"),
    ("2,2", "minMax(s)", "0,0"),
    ("1,2,3,4", "delay(s,2)", "-,-,1,2"),
    ("1,2,3,4", "delay(s,-1)", "2,3,4,-"),
    ("1,2", "delay(s,9)", "-,-"),
    ("-2,-,4", "absolute(s)", "2,-,4"),
    ("-2,-,4", "squareRoot(s)", "-,-,2"),
    ("1,-,1000", "exp(s)", "2.7182818,-,-"),
    ("0,-", "sigmoid(s)", "0.5,-"),
    ("0.5,0,1,2", "logit(s)", "0,-,-,-"),
    ("2,-1,0", "pow(s,0.5)", "1.4142136,-,0"),
    ("2,-,5", "offsetToZero(s)", "0,-,3"),
    ("2,-,5", "offset(s,-1)", "1,-,4"),
    ("2,-,5", "add(s,1.5)", "3.5,-,6.5"),
    ("2,-,5", "transformNull(s)", "2,0,5"),
    ("2,-,5", "transformNull(s,-1,isNonNull(s))", "2,-1,5"),
    ("2,-,-", "transformNull(s,-1,s)", "2,-,-"),
];

/// Functions of whole series, or of several values at once.
const CALCULATIONS: &[Case] = &[
    ("1,2,3,4,5", "removeAbovePercentile(s,50)", "1,2,3,-,-"),
    ("1,2,3,4,5", "removeBelowPercentile(s,50)", "-,-,3,4,5"),
    ("1,2,3", "removeAboveValue(s,2)", "1,2,-"),
    ("1,2,3", "removeBelowValue(s,2)", "-,2,3"),
    ("1,2,3,4,5,6,7,8,9,10", "nPercentile(s,90)", "10,10,10,10,10,10,10,10,10,10"),
    ("4,-,1,3", "nPercentile(s,50)", "3,3,3,3"),
    ("1,2,3,4,-,6", "stdev(s,3)", "0,0.5,0.816497,0.816497,0.5,1"),
    ("4,-,1", "aggregateLine(s,'max',true)", "4,4,4"),
    ("4,-,1", "aggregateLine(s,'max')", "4,4,4"),
    ("1,2,3", "linearRegression(s)", "1,2,3"),
    ("1,-,3", "linearRegression(s)", "1,2,3"),
    ("1,2,3,4,-,6,7", "summarize(s,'3min')", "1,9,13,-"),
    ("1,2,3,4,-,6,7", "summarize(s,'3min','avg')", "1,3,6.5,-"),
    ("1,2,3,4,-,6,7", "summarize(s,'3min','max')", "1,4,7,-"),
    ("1,2,3,4,-,6,7", "summarize(s,'3min','last')", "1,4,7,-"),
    ("1,2,3,4,-,6,7", "summarize(s,'3min','count')", "1,3,2,-"),
    ("1,2,3,4,-,6,7", "summarize(s,'3min','median')", "1,3,6.5,-"),
    ("1,2,3,4,-,6,7", "summarize(s,'3min','sum',true)", "6,10,7"),
    ("1,2,3,4,-,6,7", "smartSummarize(s,'3min')", "6,10,7"),
    ("1,-,3", "hitcount(s,'2min')", "60,180"),
    ("1,2", "hitcount(s,'90s')", "30,150"),
    ("-,1,-,-,2,-,-,3,-,-", "compressPeriodicGaps(s)", "1,2,3"),
    ("1,2,3", "compressPeriodicGaps(s)", "1,2,3"),
    ("1,2,3,4", "timeSlice(s,'00:00_19700114-1min','now')", "1,2,3,4"),
];

#[test]
fn values_are_computed() {
    for (values, target, want) in TRANSFORMS.iter().chain(CALCULATIONS) {
        let results = single(values, 1_200_000, target);
        assert_eq!(results.len(), 1, "{target}");
        assert_values(&results[0].values, want, &format!("{target} of {values}"));
    }
    let start = |values: &str, target: &str| {
        let one = &single(values, 1_200_000, target)[0];
        (one.start - 1_200_000, one.step)
    };
    assert_eq!(start("1,2,3,4,-,6,7", "summarize(s,'3min')"), (-120, 180));
    assert_eq!(start("1,2,3,4,-,6,7", "smartSummarize(s,'3min')"), (0, 180));
    assert_eq!(start("1,-,3", "hitcount(s,'2min')"), (-60, 120));
    assert_eq!(start("1,2", "hitcount(s,'90s')"), (-60, 90));
    assert_eq!(start("-,1,-,-,2,-,-,3,-,-", "compressPeriodicGaps(s)"), (60, 180));
}

/// A store whose one series begins with the range.
struct Exact;

impl Fetch for Exact {
    fn keep_going(&mut self) -> Result<(), Stop> {
        Ok(())
    }

    fn fetch(&mut self, asks: &[Ask], _: Room) -> Result<Vec<Vec<Fetched>>, FetchError> {
        let one = |ask: &Ask| {
            let start = ask.range.from;
            let values = numbers("1,-,2,3,4");
            vec![Fetched { name: ask.selector.to_string(), start, end: start + 300, step: 60, values }]
        };
        Ok(asks.iter().map(one).collect())
    }
}

#[test]
fn intervals_of_integrals_begin_with_the_request() {
    let results = render(&["integralByInterval(s,'2min')"], &request(1_200_000, 1_200_300), &mut Exact);
    assert_values(&results.expect("a target")[0].values, "1,1,2,5,4", "from the start");
}

#[test]
fn rows_are_indexes_in_graphite_webs_way() {
    let request =
        Request { compat: Compat { combine_by_index: true, ..Compat::default() }, ..request(0, 300) };
    let mut store = Store::default().with("a", 60, 60, "1,2,3,4,5").with("b", 60, 60, "10,20,30,40,50");
    let sum = |request: &Request<'_>, store: &mut Store| {
        let target = "sumSeries(a,summarize(b,'3min','max'))";
        render(&[target], request, store).expect("a target")[0].values.clone()
    };
    assert_values(&sum(&request, &mut store), "22,54.5,-", "by index");
    let by_time = Request { compat: Compat::default(), ..request };
    assert_values(&sum(&by_time, &mut store), "21.5,54,-", "by time");
}

#[test]
fn recent_values_that_some_lack_are_left_out() {
    let request = Request { compat: Compat { trim_recent: true, ..Compat::default() }, ..request(0, 180) };
    let mut store = Store::default().with("a", 60, 60, "1,2,3").with("b", 60, 60, "1,2,-");
    let sums = render(&["sumSeries(a,b)"], &request, &mut store).expect("a target");
    assert_values(&sums[0].values, "2,4,-", "trimmed");
}

#[test]
fn lines_and_test_data_need_no_store() {
    let table = [
        ("constantLine(7)", "7,7,7"),
        ("threshold(7.5,'limit','red')", "7.5,7.5,7.5"),
        ("identity('x')", "1710001800,1710001860"),
        ("timeFunction('x',90)", "1710001800,1710001890"),
        ("sin('x',2,60)", "-0.74037,1.23654"),
        ("events('*')", ""),
        ("verticalLine('1710001830')", "1,1"),
    ];
    for (target, want) in table {
        let events = vec![1_710_001_805, 1_710_001_805, 1_710_001_900];
        let mut store = Store { events, ..Store::default() };
        let results = render(&[target], &request(1_710_001_800, 1_710_001_920), &mut store).expect(target);
        if target.starts_with("events") {
            assert_eq!(results[0].values.len(), 120);
            assert_eq!((results[0].values[5], results[0].values[100]), (2.0, 1.0));
        } else if target.starts_with("sin") {
            let sine = |time: f64| time.sin() * 2.0;
            assert_eq!(results[0].values, [sine(1_710_001_800.0), sine(1_710_001_860.0)]);
        } else {
            assert_values(&results[0].values, want, target);
        }
    }
    let walk = |seed| {
        let request = Request { seed, ..request(0, 6_000) };
        render(&["randomWalk('x')"], &request, &mut Store::default()).expect("a walk")[0].values.clone()
    };
    assert_eq!(walk(1), walk(1));
    assert_ne!(walk(1), walk(2));
    assert!(walk(1).windows(2).all(|pair| (pair[1] - pair[0]).abs() <= 0.5) && walk(1).len() == 100);
}

#[test]
fn drawing_options_stay_with_the_series() {
    let target = "s.a.x|color('red')|alpha(0.5)|lineWidth(2)|dashed()|drawAsInfinite()|secondYAxis()";
    let one = &all(target)[0];
    assert_eq!(one.name, "secondYAxis(drawAsInfinite(dashed(s.a.x, 5)))");
    let want = Drawing {
        color: Some("red".to_owned()),
        alpha: Some(0.5),
        line_width: Some(2.0),
        dashed: Some(5.0),
        is_on_second_axis: true,
        is_infinite: true,
        ..Drawing::default()
    };
    assert_eq!(one.drawing, want);
    let between = all("areaBetween(s.{a,b}.x)");
    assert!(
        between[0].drawing.is_invisible && between[1].drawing.is_stacked && !between[1].drawing.is_invisible
    );
    assert!(all("stacked(s.a.x)")[0].drawing.is_stacked);
    assert_eq!(table::pie(&all("s.a.x")[0], "maximum"), Some(5.0));
}

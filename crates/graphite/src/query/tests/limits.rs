//! What a request may not do, and how it is reported.

use proptest::prelude::*;

use super::*;

fn store() -> Store {
    Store::default().with("a.b", 60, 60, "1,2,3").with("a.c", 60, 60, "1,2,3")
}

fn refused(targets: &[&str], request: &Request<'_>) -> QueryError {
    render(targets, request, &mut store()).expect_err(targets.first().unwrap_or(&""))
}

#[test]
fn mistakes_are_found_before_anything_is_fetched() {
    let table = [
        ("sumSerie(a.b)", 0, "unknown function `sumSerie`", "`sumSeries`"),
        ("scale(a.b)", 0, "the argument `factor` is missing", "scale(seriesList, factor)"),
        ("scale(a.b,2,3)", 12, "at most 2 arguments", "scale(seriesList, factor)"),
        ("scale(a.b,facto=2)", 10, "unknown argument `facto`", "`factor`"),
        ("scale(a.b,2,factor=2)", 12, "given twice", ""),
        ("scale(a.b,factor=1,factor=2)", 19, "given twice", ""),
        ("scale(a.b,'x')", 10, "`factor` is a number, not 'x'", ""),
        ("scale(2,a.b)", 6, "`seriesList` is a list of series", ""),
        ("alias(a.b,name)", 10, "text in quotes, not a list of series", "in quotes"),
        ("limit(a.b,1.5)", 10, "a whole number, not 1.5", ""),
        ("summarize(a.b,'5')", 14, "an interval such as `5min`, not `5`", ""),
        ("summarize(a.b,5)", 14, "an interval in quotes", ""),
        ("aggregate(a.b,'summ')", 14, "no aggregation function: `summ`", "`sum`"),
        ("groupByNode(a.b,0,'sumSerie')", 18, "no aggregation function", "`sumSeries`"),
        ("filterSeries(a.b,'sum','=>',1)", 23, "one of !=, <, <=", ""),
        ("consolidateBy(a.b,'mean')", 18, "one of sum, average", ""),
        ("sortByName(a.b,'maybe')", 15, "true or false", ""),
        ("reduceSeries(a.b,'sumSeries',0,'a')", 13, "the lists of mapSeries", ""),
        ("sumSeries()", 0, "the argument `seriesLists` is missing", "sumSeries(*seriesLists)"),
        ("movingAverage(a.b,2.5)", 18, "a whole number, or an interval", ""),
        ("f(a.b", 5, "expected `,` or `)`", ""),
    ];
    for (target, at, message, hint) in table {
        let mut store = store();
        let mistake = render(&["a.b", target], &request(0, 180), &mut store).expect_err(target);
        assert_eq!(mistake.at, Some(at), "{target}: {mistake}");
        assert!(mistake.to_string().contains(message), "{target}: {mistake}");
        assert!(mistake.hint.clone().unwrap_or_default().contains(hint), "{target}: {mistake}");
        assert_eq!(mistake.target.as_deref(), Some(target));
        assert!(store.fetches.is_empty(), "{target}");
    }
}

#[test]
fn mistakes_of_the_data_name_the_function() {
    let table = [
        ("divideSeries(a.b,a.*)", 0, "has to be one series, not 2"),
        ("scale(areaBetween(a.b),2)", 6, "exactly 2 series"),
        ("summarize(a.b,'-5min')", 0, "longer than nothing"),
        ("summarize(a.b,'0s')", 0, "longer than nothing"),
        ("percentileOfSeries(a.b,0)", 0, "greater than 0"),
        ("nPercentile(a.b,0)", 0, "greater than 0"),
        ("movingAverage(a.b,0)", 0, "a window has 1 to"),
        ("grep(a.b,'(')", 0, "the `(` has no `)` at column 1"),
        ("aliasSub(a.b,'(?=b)','')", 0, "a look-ahead at column 1 is not supported"),
        ("asPercent(a.*,group(a.b,a.b,a.b))", 0, "3 totals for 2 series"),
        ("sumSeriesLists(a.b,a.*)", 0, "the same number of series"),
        ("verticalLine('1h')", 0, "is not a time"),
        ("verticalLine(9999)", 0, "after the range"),
        ("randomWalk('x',0)", 0, "greater than 0"),
        ("randomWalk('x',4294967297)", 0, "at most 4294967296"),
        ("log(a.b,1)", 0, "not 1"),
        ("stdev(a.b,0)", 0, "greater than 0"),
        ("smartSummarize(a.b,'1h','sum','fortnight')", 0, "not a unit of time"),
        ("holtWintersForecast(a.b,'1h','1min')", 0, "fewer than two steps"),
        ("timeStack(a.b,'1d',0,1001)", 0, "at most 1000"),
        ("applyByNode(a.b,0,'gone(')", 0, "in the target `gone(`"),
        ("aliasQuery(a.b,'b','gone','%d')", 0, "no series found for `a.gone`"),
        ("reduceSeries(mapSeries(a.*,0),'diffSeries',1,'b','z')", 0, "no series whose node 1 is `z`"),
        ("reduceSeries(mapSeries(a.*,0),'alias',1,'b')", 0, "with series only"),
    ];
    for (target, at, message) in table {
        let mistake = refused(&[target], &request(0, 180));
        assert_eq!(mistake.at, Some(at), "{target}: {mistake}");
        assert!(mistake.to_string().contains(message), "{target}: {mistake}");
        assert!(mistake.function.is_some(), "{target}: {mistake}");
    }
}

#[test]
fn each_budget_of_a_request_is_kept() {
    let limited = |limits: Limits| Request { limits, ..request(0, 180) };
    let all = Limits::default();
    let table = [
        (Limits { series_max: 2, ..all }, Limits { series_max: 1, ..all }, "more than 1 series"),
        (Limits { points_max: 6, ..all }, Limits { points_max: 5, ..all }, "more than 5 points"),
        (Limits { steps_max: 16, ..all }, Limits { steps_max: 3, ..all }, "more than 3 steps"),
    ];
    for (enough, too_few, message) in table {
        assert!(render(&["a.*"], &limited(enough), &mut store()).is_ok(), "{message}");
        let mistake = refused(&["a.*"], &limited(too_few));
        assert_eq!(mistake.code, Code::Limit);
        assert!(mistake.message.contains(message) && mistake.hint.is_some(), "{mistake}");
    }
}

#[test]
fn hostile_targets_end_at_a_limit() {
    let nested =
        |depth: usize, start: &str, end: &str| format!("{}a.b{}", start.repeat(depth), end.repeat(depth));
    let long_names = nested(150, "aliasSub(", ",'.*','\\0\\0')").replace("\\0", "\\g<0>");
    let hostile = [
        nested(10_000, "scale(", ",2)"),
        nested(60, "movingAverage(", ",1)"),
        nested(60, "timeStack(", ",'1d',0,1000)"),
        nested(150, "transformNull(", ",1,a.b)") + &"|sumSeries(a.b)".repeat(100),
        long_names,
        "randomWalk('x',1)".to_owned(),
        "summarize(constantLine(1),'1s')".to_owned(),
        "movingMin(identity('x'),1000000)".to_owned(),
        "sumSeries(a.b,summarize(a.b,'2147483647s'),summarize(a.b,'2147483629s'))".to_owned(),
        "timeShift(a.b,'7000y')".to_owned(),
        "movingAverage(a.b,'9000y')".to_owned(),
        format!("grep(a.b,'{}')", "(a*)*".repeat(500)),
        format!("group({})", vec![r"grep(a.b,'(?i)[\\Wa]')"; 5_000].join(",")),
    ];
    let limits = Limits { series_max: 1_000, points_max: 300_000, steps_max: 3_000_000 };
    for target in hostile {
        // Whatever the answer is, it comes soon, and no thread's stack overflows.
        let request = Request { limits, ..request(0, 1 << 31) };
        let _ = render(&[&target], &request, &mut Small);
    }
    let request = Request { limits, ..request(0, 1 << 31) };
    let many = format!("group({})", vec!["grep(a.b,'(?i)[b-\u{10ffff}]')"; 100].join(","));
    assert_eq!(refused(&[&many], &request).code, Code::Limit, "expressions are paid for");
    for target in ["randomWalk('x',1)", "identity('x')", "events('*')", "summarize(constantLine(1),'1s')"] {
        assert_eq!(refused(&[target], &request).code, Code::Limit, "{target}");
    }
}

/// A store with one value for every range.
struct Small;

impl Fetch for Small {
    fn keep_going(&mut self) -> Result<(), Stop> {
        Ok(())
    }

    fn fetch(&mut self, asks: &[Ask], _: Room) -> Result<Vec<Vec<Fetched>>, FetchError> {
        let one = |ask: &Ask| {
            let start = ask.range.from;
            vec![Fetched {
                name: ask.selector.to_string(),
                start,
                end: start + 60,
                step: 60,
                values: vec![1.0],
            }]
        };
        Ok(asks.iter().map(one).collect())
    }
}

/// Series of one long range, and a store that ends the request when it is asked for the last time.
struct Ending {
    series: usize,
    points: usize,
    polls_left: usize,
    polls: usize,
}

impl Fetch for Ending {
    fn fetch(&mut self, asks: &[Ask], _: Room) -> Result<Vec<Vec<Fetched>>, FetchError> {
        let values: Vec<f64> = (0..self.points).map(|at| (at % 7) as f64).collect();
        let end = self.points as i64;
        let one =
            |at: usize| Fetched { name: format!("a.{at}"), start: 0, end, step: 1, values: values.clone() };
        Ok(asks.iter().map(|_| (0..self.series).map(one).collect()).collect())
    }

    fn keep_going(&mut self) -> Result<(), Stop> {
        self.polls += 1;
        self.polls_left = self.polls_left.checked_sub(1).ok_or(Stop::Cancelled)?;
        Ok(())
    }
}

#[test]
fn a_request_ends_within_its_functions() {
    // (target, series, points, least polls while the function runs)
    let table = [
        ("scale(a.*,2)", 30, 20_000, 5),
        ("derivative(a.*)", 30, 20_000, 5),
        ("sumSeries(a.*)", 30, 20_000, 10),
        ("medianSeries(a.*)", 30, 20_000, 10),
        ("percentileOfSeries(a.*,50)", 30, 20_000, 10),
        ("powSeries(a.*)", 30, 20_000, 5),
        ("removeBetweenPercentile(a.*,90)", 30, 20_000, 10),
        ("highestMax(a.*,2)", 30, 20_000, 5),
        ("grep(a.*,'a')", 30, 20_000, 5),
        ("asPercent(a.*)", 30, 20_000, 5),
        ("movingMin(a.*,100)", 1, 30_000, 20),
        ("movingMedian(a.*,100)", 1, 30_000, 10),
        ("movingAverage(a.*,400)", 1, 30_000, 10),
        ("transformNull(a.*,0,a.*)", 2, 100_000, 3),
        ("summarize(a.*,'10s')", 2, 200_000, 3),
        ("holtWintersForecast(a.*,'1s','10s')", 20, 20_000, 5),
    ];
    for (target, series, points, polls_min) in table {
        let request = request(0, 60);
        let mut all = Ending { series, points, polls_left: usize::MAX, polls: 0 };
        render(&[target], &request, &mut all).expect(target);
        let mut plain = Ending { series, points, polls_left: usize::MAX, polls: 0 };
        render(&["a.*"], &request, &mut plain).expect("a path");
        assert!(
            all.polls >= plain.polls + polls_min,
            "{target}: {} polls, {} without",
            all.polls,
            plain.polls
        );
        for polls_left in [0, 1, plain.polls + 1, all.polls - 1] {
            let mut store = Ending { series, points, polls_left, polls: 0 };
            let mistake = render(&[target], &request, &mut store).expect_err(target);
            assert_eq!((mistake.code, store.polls), (Code::Cancelled, polls_left + 1), "{target}");
        }
    }
}

#[test]
fn the_deepest_nesting_is_evaluated() {
    let depth = target::NESTING_MAX - 1;
    let target = format!("{}a.b{}", "sumSeries(".repeat(depth), ")".repeat(depth));
    let results = render(&[&target], &request(0, 180), &mut store()).expect("it is within the limit");
    assert_values(&results[0].values, "1,2,3", "sums of one series");
    let lazy = format!("{}a.b{}", "timeShift(".repeat(12), ",'1min')".repeat(12));
    assert!(render(&[&lazy], &request(0, 180), &mut store()).is_ok());
}

#[test]
fn what_the_store_reports_reaches_the_caller() {
    struct Broken(FetchError);
    impl Fetch for Broken {
        fn keep_going(&mut self) -> Result<(), Stop> {
            Ok(())
        }

        fn fetch(&mut self, _: &[Ask], _: Room) -> Result<Vec<Vec<Fetched>>, FetchError> {
            Err(self.0.clone())
        }
    }
    let table = [
        (FetchError::Limit("too much".to_owned()), Code::Limit, "too much"),
        (FetchError::Failed("the disk is away".to_owned()), Code::Fetch, "the disk is away"),
        (FetchError::Stopped(Stop::Deadline), Code::Deadline, "the time for this request is over"),
        (FetchError::Stopped(Stop::Cancelled), Code::Cancelled, "the client has gone away"),
    ];
    for (error, code, message) in table {
        let mistake = render(&["a"], &request(0, 60), &mut Broken(error)).expect_err("it is broken");
        assert_eq!((mistake.code, mistake.message.as_str()), (code, message));
    }
}

#[test]
fn a_store_with_another_number_of_answers_is_an_error() {
    struct Answers(usize);
    impl Fetch for Answers {
        fn keep_going(&mut self) -> Result<(), Stop> {
            Ok(())
        }

        fn fetch(&mut self, _: &[Ask], _: Room) -> Result<Vec<Vec<Fetched>>, FetchError> {
            Ok(vec![Vec::new(); self.0])
        }
    }
    for answers in [0, 1, 3] {
        let mistake = render(&["a", "b"], &request(0, 60), &mut Answers(answers)).expect_err("not two");
        assert_eq!(mistake.code, Code::Fetch, "{mistake}");
    }
    assert_eq!(render(&["a", "b"], &request(0, 60), &mut Answers(2)), Ok(Vec::new()));
}

#[test]
fn the_store_gets_tag_expressions_apart_from_globs() {
    let mut store = store();
    let targets = ["seriesByTag('name=a',  \"b=~c\")", "a.*", "seriesByTag('name=a','b=~c')"];
    render(&targets, &request(0, 180), &mut store).expect("valid targets");
    let range = Range { from: 0, until: 180 };
    let tags = Selector::Tags(vec!["name=a".to_owned(), "b=~c".to_owned()]);
    let glob = Selector::Glob("a.*".to_owned());
    assert_eq!(store.fetches, [[Ask { selector: tags, range }, Ask { selector: glob, range }]]);
}

#[test]
fn targets_without_series_are_empty() {
    let table = [
        "",
        " ",
        "gone",
        "sumSeries(gone)",
        "movingAverage(gone,5)",
        "asPercent(gone)",
        "divideSeries(gone,gone)",
        "groupByNode(gone,0)",
        "timeShift(gone,'1d')",
        "countSeries(gone)",
        "holtWintersForecast(gone)",
        "cactiStyle(gone)",
        "weightedAverage(gone,gone,0)",
        "removeBetweenPercentile(gone,90)",
        "averageOutsidePercentile(gone,90)",
        "timeStack(gone)",
        "powSeries(gone)",
        "percentileOfSeries(gone,50)",
    ];
    for target in table {
        assert_eq!(render(&[target], &request(0, 180), &mut store()), Ok(Vec::new()), "{target}");
    }
}

#[test]
fn the_beginning_of_a_target_is_enough_in_graphite_webs_way() {
    let compat = Compat { graphite_web_prefix_parse: true, ..Compat::default() };
    let request = Request { compat, ..request(0, 180) };
    assert_eq!(render(&["sumSeries(a.b"], &request, &mut store()), Ok(Vec::new()));
    assert_eq!(render(&["a.b) and more"], &request, &mut store()).map(|results| results.len()), Ok(1));
}

/// An argument of some kind: paths, numbers at their limits, text of every parameter.
fn argument() -> impl Strategy<Value = String> {
    let fixed = [
        "a.b",
        "a.*",
        "s.c",
        "0",
        "1",
        "-1",
        "3",
        "2.5",
        "-1e300",
        "1e300",
        "inf",
        "9223372036854775807",
        "-9223372036854775808",
        "none",
        "true",
        "'5min'",
        "'-1h'",
        "'9999y'",
        "'1s'",
        "'sum'",
        "'median'",
        "'sumSeries'",
        "'count'",
        "'>'",
        "'max'",
        "'a'",
        "'.*'",
        "'\\g<0>x'",
        "'%'",
        "'%d'",
        "'sumSeries(%.*)'",
        "'hours'",
        "'w3'",
        "'si'",
        "'1710001900'",
        "'noon'",
        "mapSeries(a.*,0)",
        "constantLine(3)",
        "randomWalk('x',7)",
        "identity('y')",
    ];
    prop::sample::select(fixed.to_vec()).prop_map(str::to_owned)
}

/// A call of any function, with arguments that are often right.
fn any_call() -> impl Strategy<Value = String> {
    let names: Vec<&str> = table::functions().map(|function| function.name).collect();
    let call = |inner: BoxedStrategy<String>, names: Vec<&'static str>| {
        let rest = prop::collection::vec(argument(), 0..4);
        (prop::sample::select(names), inner, rest).prop_map(|(name, first, rest)| {
            let args: Vec<String> = std::iter::once(first).chain(rest).collect();
            format!("{name}({})", args.join(","))
        })
    };
    let one = call(argument().boxed(), names.clone());
    let two = call(one.boxed(), names.clone());
    call(prop_oneof![argument(), two].boxed(), names)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]
    #[test]
    fn any_call_has_an_answer_or_a_mistake(target in any_call(), from in prop::sample::select(vec![0, 1_710_001_800])) {
        let limits = Limits { series_max: 1_000, points_max: 20_000, steps_max: 200_000 };
        let request = Request { limits, ..request(from, from + 600) };
        let mut store = store().with("s.c", 1_710_001_740, 60, "1,-,3,4,5,-,-,8,0,2,2,2");
        match render(&[&target], &request, &mut store) {
            Ok(mut results) => {
                limit_points(&mut results, 3);
                prop_assert!(results.iter().all(|one| one.step > 0 && one.points().count() <= one.values.len()));
            }
            Err(mistake) => prop_assert!(mistake.at.is_none_or(|at| at <= target.len()), "{}", mistake),
        }
    }
}

use std::collections::HashSet;

use super::*;

#[test]
fn names_are_unique_and_found() {
    let mut seen = HashSet::new();
    for function in functions() {
        for name in std::iter::once(&function.name).chain(function.aliases) {
            assert!(seen.insert(*name), "{name} twice");
            assert_eq!(find(name).map(|found| found.name), Some(function.name));
        }
    }
    assert!(find("nothing").is_none());
}

#[test]
fn all_functions_of_the_specification_are_there() {
    let names = "sumSeries sum averageSeries avg maxSeries minSeries diffSeries multiplySeries stddevSeries \
        rangeOfSeries countSeries aggregate aggregateWithWildcards sumSeriesWithWildcards averageSeriesWithWildcards \
        multiplySeriesWithWildcards sumSeriesLists diffSeriesLists multiplySeriesLists aggregateSeriesLists \
        divideSeries divideSeriesLists asPercent pct group groupByNode groupByNodes groupByTags seriesByTag \
        percentileOfSeries weightedAverage powSeries isNonNull applyByNode mapSeries map reduceSeries reduce scale \
        offset add absolute invert squareRoot exp sigmoid logit pow log round minMax offsetToZero scaleToSeconds \
        derivative nonNegativeDerivative perSecond delay integral integralByInterval interpolate keepLastValue \
        transformNull compressPeriodicGaps summarize smartSummarize hitcount timeShift timeStack timeSlice \
        movingAverage movingMedian movingSum movingMin movingMax movingWindow exponentialMovingAverage stdev \
        nPercentile aggregateLine linearRegression holtWintersForecast holtWintersConfidenceBands \
        holtWintersConfidenceArea holtWintersAberration identity filterSeries averageAbove averageBelow currentAbove \
        currentBelow maximumAbove maximumBelow minimumAbove minimumBelow highest lowest highestAverage \
        highestCurrent highestMax lowestAverage lowestCurrent limit exclude grep mostDeviant \
        averageOutsidePercentile removeBetweenPercentile removeEmptySeries useSeriesAbove unique removeAboveValue \
        removeBelowValue removeAbovePercentile removeBelowPercentile sortBy sortByTotal sortByMaxima sortByMinima \
        sortByName fallbackSeries alias aliasByNode aliasByTags aliasByMetric aliasSub aliasQuery legendValue \
        cactiStyle substr upper lower consolidateBy cumulative setXFilesFactor xFilesFactor changed constantLine \
        threshold color alpha lineWidth dashed drawAsInfinite secondYAxis stacked areaBetween verticalLine events \
        randomWalk randomWalkFunction sin sinFunction time timeFunction min max median stddev count last multiply \
        diff range";
    for name in names.split_whitespace() {
        assert!(find(name).is_some(), "{name}");
    }
}

#[test]
fn the_table_describes_what_it_checks() {
    for function in functions() {
        let name = function.name;
        assert!(function.description.ends_with('.'), "{name}");
        let (last, others) = function.params.split_last().expect("each function has parameters");
        assert!(others.iter().all(|param| !param.is_multiple), "{name}: only the last one takes several");
        assert!(!last.is_required || last.default.is_none(), "{name}");
        let order: Vec<bool> = function.params.iter().map(|param| param.is_required).collect();
        assert!(order.is_sorted_by(|a, b| a >= b), "{name}: required parameters come first");
        assert!(!function.params.iter().any(|param| param.name.is_empty()), "{name}");
    }
    let shown = |name: &str| find(name).map(|function| function.signature(name)).unwrap_or_default();
    assert_eq!(shown("avg"), "avg(*seriesLists)");
    assert_eq!(shown("keepLastValue"), "keepLastValue(seriesList, limit=inf)");
    assert_eq!(shown("stdev"), "stdev(seriesList, points, windowTolerance=0.1)");
    assert_eq!(shown("aggregate"), "aggregate(seriesList, func, xFilesFactor=None)");
}

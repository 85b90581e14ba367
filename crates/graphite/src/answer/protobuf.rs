//! Series and names as protobuf, in the second and third protocol of carbonapi and go-carbon (spec graphite §6.3).
//!
//! Invariant: numbers that do not fit a field of the second protocol, which has 32 bits for times, are cut off at its limits.

use prost::Message;

use crate::catalog::Found;
use crate::query::Series;

/// `carbonapi_v3_pb.MultiFetchResponse`
#[derive(Clone, PartialEq, Message)]
struct Fetched3 {
    #[prost(message, repeated, tag = "1")]
    metrics: Vec<Series3>,
}

/// `carbonapi_v3_pb.FetchResponse`: values that are not known are NaN.
#[derive(Clone, PartialEq, Message)]
struct Series3 {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    path_expression: String,
    #[prost(string, tag = "3")]
    consolidation_func: String,
    #[prost(int64, tag = "4")]
    start_time: i64,
    #[prost(int64, tag = "5")]
    stop_time: i64,
    #[prost(int64, tag = "6")]
    step_time: i64,
    #[prost(float, tag = "7")]
    x_files_factor: f32,
    #[prost(double, repeated, tag = "9")]
    values: Vec<f64>,
    #[prost(int64, tag = "11")]
    request_start_time: i64,
    #[prost(int64, tag = "12")]
    request_stop_time: i64,
}

/// `carbonapi_v2_pb.MultiFetchResponse`
#[derive(Clone, PartialEq, Message)]
struct Fetched2 {
    #[prost(message, repeated, tag = "1")]
    metrics: Vec<Series2>,
}

/// `carbonapi_v2_pb.FetchResponse`: values that are not known are 0 and absent.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Series2 {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(int32, tag = "2")]
    pub(crate) start_time: i32,
    #[prost(int32, tag = "3")]
    pub(crate) stop_time: i32,
    #[prost(int32, tag = "4")]
    pub(crate) step_time: i32,
    #[prost(double, repeated, tag = "5")]
    pub(crate) values: Vec<f64>,
    #[prost(bool, repeated, tag = "6")]
    pub(crate) is_absent: Vec<bool>,
}

/// `carbonapi_v3_pb.MultiGlobResponse`
#[derive(Clone, PartialEq, Message)]
struct Globs3 {
    #[prost(message, repeated, tag = "1")]
    metrics: Vec<Glob>,
}

/// `GlobResponse` of both protocols.
#[derive(Clone, PartialEq, Message)]
struct Glob {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    matches: Vec<GlobMatch>,
}

/// `GlobMatch` of both protocols.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct GlobMatch {
    #[prost(string, tag = "1")]
    pub(crate) path: String,
    #[prost(bool, tag = "2")]
    pub(crate) is_leaf: bool,
}

/// The series, in the third protocol. `range` is that of the request.
pub fn series_v3(all: &[Series], range: (i64, i64)) -> Vec<u8> {
    let of = |one: &Series| Series3 {
        name: one.name.clone(),
        path_expression: one.path.clone(),
        consolidation_func: one.consolidation.name().to_owned(),
        start_time: one.start,
        stop_time: one.end,
        step_time: one.step,
        x_files_factor: one.x_files_factor as f32,
        values: one.values.clone(),
        request_start_time: range.0,
        request_stop_time: range.1,
    };
    Fetched3 { metrics: all.iter().map(of).collect() }.encode_to_vec()
}

/// The series, in the second protocol.
pub fn series_v2(all: &[Series]) -> Vec<u8> {
    let known = |value: &f64| if value.is_nan() { 0.0 } else { *value };
    let of = |one: &Series| Series2 {
        name: one.name.clone(),
        start_time: short(one.start),
        stop_time: short(one.end),
        step_time: short(one.step),
        values: one.values.iter().map(known).collect(),
        is_absent: one.values.iter().map(|value| value.is_nan()).collect(),
    };
    Fetched2 { metrics: all.iter().map(of).collect() }.encode_to_vec()
}

fn short(time: i64) -> i32 {
    i32::try_from(time).unwrap_or(if time < 0 { i32::MIN } else { i32::MAX })
}

/// Paths, in the third protocol.
pub fn paths_v3(found: &Found, query: &str) -> Vec<u8> {
    Globs3 { metrics: vec![glob(found, query)] }.encode_to_vec()
}

/// Paths, in the second protocol.
pub fn paths_v2(found: &Found, query: &str) -> Vec<u8> {
    glob(found, query).encode_to_vec()
}

fn glob(found: &Found, query: &str) -> Glob {
    let matches = found
        .rows_by_path()
        .map(|(node, is_leaf)| GlobMatch { path: String::from_utf8_lossy(node.path).into_owned(), is_leaf });
    Glob { name: query.to_owned(), matches: matches.collect() }
}

#[test]
fn series_have_the_fields_of_both_protocols() {
    let all = super::json::tests::vector("vec.lin", &[31.0, f64::NAN]);
    let third = series_v3(&all, (7, 9));
    let head = b"\n\x07vec.lin\x12\x07vec.lin\x1a\x07average\x20";
    // One message of the list: its tag, its length, and its fields.
    assert_eq!((third[0], usize::from(third[1])), (0x0a, third.len() - 2));
    assert_eq!(third[2..2 + head.len()], head[..]);
    let read = Fetched3::decode(&third[..]).expect("it is one");
    let one = &read.metrics[0];
    assert_eq!((one.start_time, one.stop_time, one.step_time), (1_710_001_860, 1_710_001_980, 60));
    assert_eq!((one.request_start_time, one.request_stop_time), (7, 9));
    assert!(one.values[0] == 31.0 && one.values[1].is_nan());
    let read = Fetched2::decode(&series_v2(&all)[..]).expect("it is one");
    let one = &read.metrics[0];
    assert_eq!((&one.values[..], &one.is_absent[..]), (&[31.0, 0.0][..], &[false, true][..]));
    assert_eq!(short(i64::MAX), i32::MAX);
    assert_eq!((series_v3(&[], (0, 0)), series_v2(&[])), (Vec::new(), Vec::new()));
}

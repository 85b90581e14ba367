//! graphite-web's API over the store, as Grafana uses it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::support::{Builder, Daemon};

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() as i64 / 10 * 10
}

/// A daemon with seven points of each of five servers, and one tagged series.
fn daemon(folder: &std::path::Path, at: i64) -> Daemon {
    let config = format!(
        "[sources.lines]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [outputs.store]\ntype = \"whisper\"\nfrom = [\"lines\"]\npath = \"{}\"\n",
        folder.join("whisper").display()
    );
    let daemon = Builder::native(&config).start();
    let mut stream = TcpStream::connect(daemon.at("lines", "tcp")).expect("it listens");
    let mut lines = String::new();
    for age in (0..7).rev() {
        for web in 1..=5 {
            lines += &format!("servers.web{web}.cpu {web}.5 {}\n", at - 10 * age);
        }
    }
    lines += &format!("disk.used;host=a;dc=x 7 {at}\n");
    stream.write_all(lines.as_bytes()).expect("it reads");
    daemon.wait_output("store", "copies", 36);
    crate::support::wait_for("the points to be in memory", || {
        let found = daemon.get("/tags/findSeries?expr=host=a").body;
        (found == "[\"disk.used;dc=x;host=a\"]").then_some(())
    });
    daemon
}

#[test]
fn series_in_memory_and_in_files_are_rendered_found_and_completed() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = now() - 20;
    let mut daemon = daemon(folder.path(), at);
    let range = format!("from={}&until={}&now={}&format=json", at - 30, at, at + 10);
    let render = format!("/render?target=sumSeries(servers.*.cpu)&{range}");
    let want = json!([{
        "target": "sumSeries(servers.*.cpu)",
        "tags": {"name": "sumSeries(servers.*.cpu)", "aggregatedBy": "sum"},
        "datapoints": [[17.5, at - 20], [17.5, at - 10], [17.5, at]],
    }]);
    assert_eq!(daemon.json(&render), want);
    for (path, want) in [
        (
            "/metrics/find?query=servers.web1.*",
            json!([{"text": "cpu", "id": "servers.web1.cpu", "allowChildren": 0, "expandable": 0, "leaf": 1}]),
        ),
        (
            "/metrics?query=*",
            json!([{"text": "servers", "id": "servers", "allowChildren": 1, "expandable": 1, "leaf": 0}]),
        ),
        (
            "/metrics/expand?query=servers.*.cpu&query=z",
            json!({"results": (1..=5).map(|web| format!("servers.web{web}.cpu")).collect::<Vec<_>>()}),
        ),
        (
            "/metrics/index.json?jsonp=",
            json!((1..=5).map(|web| format!("servers.web{web}.cpu")).collect::<Vec<_>>()),
        ),
        ("/tags/autoComplete/values?tag=dc", json!(["x"])),
        ("/tags/autoComplete/tags?expr=host=a", json!(["dc", "name"])),
        ("/tags/nothing", Value::Null),
        ("/version", json!("1.1.10")),
    ] {
        assert_eq!(daemon.json(path), want, "{path}");
    }
    assert_eq!(daemon.json("/tags/host")["values"][0]["value"], "a");
    assert_eq!(daemon.json("/functions/sumSeries")["group"], "Combine");
    // The daemon's own metrics have the same path.
    assert!(daemon.get("/metrics").body.contains("staunch_info"));
    // After a stop and a start everything comes from the files.
    daemon.stop();
    daemon.start_again();
    daemon.wait_logged("5 whisper files");
    assert_eq!(daemon.json(&render), want);
    daemon.stop();
}

#[test]
fn mistakes_name_their_place_and_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut daemon = daemon(folder.path(), now());
    for (path, status, want) in [
        ("/render?target=sumSeries(a.b&format=json", 400, "  sumSeries(a.b\n               ^"),
        ("/render?target=sumSerie(a)&format=json", 400, "hint: did you mean `sumSeries`?"),
        ("/render?target=a&from=nonsense&format=json", 400, "`from` is not a time"),
        ("/render?target=a&from=now&format=json", 400, "Invalid empty time range"),
        ("/render?target=a&format=xml", 400, "`format` is"),
        ("/render?target=a&width=4001", 400, "`width` is a whole number of pixels from 10 to 4000"),
        ("/render?target=a&width=2001&height=2000", 400, "at most 4000000 pixels"),
        ("/render?target=a&format=svg&areaMode=some", 400, "`areaMode` is one of none, first, all, stacked"),
        (
            "/render?target=a&format=svg&jsonp=alert",
            403,
            "`jsonp` is for web pages of `http.allowed_origins`",
        ),
        ("/metrics/find", 400, "Missing required parameter 'query'"),
        ("/metrics/find?query=a&format=xml", 400, "Invalid value for 'format' parameter"),
        ("/tags/findSeries", 400, "{\"error\": \"no tag expressions specified\"}"),
        ("/functions/nothing", 404, "there is no function `nothing`"),
        ("/render?target=randomWalk('a')&from=-100y&format=json", 422, "points"),
        ("/render?target=randomWalk('a')&from=-100y&format=png", 422, "points"),
    ] {
        let answer = daemon.get(path);
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
        assert!(answer.body.contains(want), "{path}: {}", answer.body);
    }
    // A form is as good as a query.
    let mut stream = TcpStream::connect(daemon.http()).expect("it listens");
    let form = "target=servers.web2.cpu&from=-1min&format=raw";
    let request = format!(
        "POST /render HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{form}",
        form.len()
    );
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    assert!(answer.contains("servers.web2.cpu,") && answer.contains("|"), "{answer}");
    daemon.stop();
}

/// The head and the bytes of an answer.
fn bytes_of(daemon: &Daemon, path: &str) -> (String, Vec<u8>) {
    bytes_with(daemon, "", path)
}

/// The same with further headers, each with its end.
fn bytes_with(daemon: &Daemon, headers: &str, path: &str) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(daemon.http()).expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it answers");
    let end = answer.windows(4).position(|part| part == b"\r\n\r\n").expect("a head");
    let (head, body) = (String::from_utf8_lossy(&answer[..end]).into_owned(), answer[end + 4..].to_vec());
    assert!(head.contains(&format!("content-length: {}", body.len())), "{head}: {} bytes", body.len());
    (head, body)
}

#[test]
fn every_format_has_its_type_and_its_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = now() - 20;
    let mut daemon = daemon(folder.path(), at);
    let range = format!("from={}&until={}&now={}", at - 30, at, at + 10);
    for (format, kind, begins, has) in [
        ("pickle", "application/pickle", &b"\x80\x02]("[..], &b"servers.web1.cpu"[..]),
        ("msgpack", "application/x-msgpack", b"\x95\x89\xa4name", b"\xb1consolidationFunc"),
        ("protobuf", "application/x-protobuf", b"\n", b"servers.web5.cpu"),
        ("carbonapi_v2_pb", "application/x-protobuf", b"\n", b"servers.web5.cpu"),
        ("carbonapi_v3_pb", "application/x-protobuf", b"\n", b"\x1a\x07average"),
        ("dygraph", "application/json", b"{\"labels\" : [\"Time\", \"servers.web1.cpu\"", b"000, 1.5, 2.5"),
        ("rickshaw", "application/json", b"[{\"target\": \"servers.web1.cpu\"", b"\"y\": 1.5}"),
    ] {
        let (head, body) =
            bytes_of(&daemon, &format!("/render?target=servers.*.cpu&{range}&format={format}"));
        assert!(head.contains(" 200 ") && head.contains(kind), "{format}: {head}");
        let shown = String::from_utf8_lossy(&body);
        assert!(body.starts_with(begins), "{format}: {shown}");
        assert!(body.windows(has.len()).any(|part| part == has), "{format}: {shown}");
    }
    // Zones are known on a machine without a database of them, too.
    let hour = |zone| {
        let (_, body) =
            bytes_of(&daemon, &format!("/render?target=servers.web1.cpu&{range}&format=csv&tz={zone}"));
        String::from_utf8_lossy(&body).split([' ', ':']).nth(1).and_then(|hour| hour.parse::<i64>().ok())
    };
    let (utc, kolkata) = (hour("UTC").expect("an hour"), hour("Asia/Kolkata").expect("an hour"));
    assert!([5, 6].contains(&(kolkata - utc).rem_euclid(24)), "{utc} {kolkata}");
    for (format, kind, begins) in [
        ("pickle", "application/pickle", &b"\x80\x02](}(X\x04\0\0\0path"[..]),
        ("msgpack", "application/x-msgpack", b"\x95\x82\xa4path\xacservers.web1\xa7is_leaf\xc2"),
        ("protobuf", "application/x-protobuf", b"\n\x09servers.*\x12"),
        ("carbonapi_v3_pb", "application/x-protobuf", b"\n"),
    ] {
        let (head, body) = bytes_of(&daemon, &format!("/metrics/find?query=servers.*&format={format}"));
        assert!(head.contains(kind) && body.starts_with(begins), "{format}: {head} {body:?}");
    }
    let all: Vec<String> = (1..=5).map(|web| format!("servers.web{web}.cpu")).collect();
    let listed = daemon.json("/metrics/list");
    assert_eq!(listed["Metrics"].as_array().map(Vec::len), Some(6), "{listed}");
    assert!(all.iter().all(|name| listed["Metrics"].to_string().contains(name)));
    let want = json!({
        "name": "servers.web1.cpu", "aggregationMethod": "average", "maxRetention": 604_800, "xFilesFactor": 0,
        "retentions": [
            {"secondsPerPoint": 10, "numberOfPoints": 8640}, {"secondsPerPoint": 60, "numberOfPoints": 10_080},
        ],
    });
    assert_eq!(daemon.json("/info?target=servers.web1.cpu"), want);
    let answer = daemon.get("/info?target=servers.none");
    assert!(answer.status == 404 && answer.body.contains("there is no series"), "{}", answer.body);
    daemon.stop();
}

/// Width and height of a PNG, by its header.
fn size_of_png(bytes: &[u8]) -> (u32, u32) {
    assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"), "{:?}", &bytes[..bytes.len().min(40)]);
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    (number(16), number(20))
}

#[test]
fn images_are_png_unless_svg_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = now() - 20;
    let mut daemon = daemon(folder.path(), at);
    let range = format!("from={}&until={}&now={}", at - 30, at, at + 10);
    let cpu = format!("/render?target=servers.*.cpu&{range}");
    for (rest, want) in [
        ("", (330, 250)),
        ("&format=png&width=586&height=308&areaMode=stacked", (586, 308)),
        ("&format=&width=120&height=60&graphType=pie", (120, 60)),
        ("&width=2000&height=1000&fontName=Mono&fontBold=1&fontItalic=1&title=%00%3Cb%3E", (2000, 1000)),
    ] {
        let (head, body) = bytes_of(&daemon, &format!("{cpu}{rest}"));
        assert!(head.contains(" 200 ") && head.contains("image/png"), "{rest}: {head}");
        assert_eq!(size_of_png(&body), want, "{rest}");
        // An image of one colour would have some hundred bytes.
        assert!(body.len() > 1_200, "{rest}: {} bytes", body.len());
    }
    let (head, body) = bytes_of(&daemon, &format!("{cpu}&format=svg&title=A%26B"));
    let svg = String::from_utf8(body).expect("SVG is text");
    assert!(head.contains("image/svg+xml") && svg.starts_with("<svg "), "{head}");
    for web in 1..=5 {
        assert!(svg.contains(&format!(">servers.web{web}.cpu</text>")), "{svg}");
    }
    assert!(svg.contains(">A&amp;B</text>") && svg.contains("metadata = {"), "{svg}");
    let page = "Referer: http://localhost/page\r\n";
    let (head, body) = bytes_with(&daemon, page, &format!("{cpu}&format=svg&jsonp=show"));
    assert!(head.contains("text/javascript") && body.starts_with(b"show(\"<svg "), "{head}");
    let (_, none) = bytes_of(&daemon, "/render?target=nothing&format=svg");
    assert!(String::from_utf8_lossy(&none).contains(">No Data</text>"));
    let (_, empty) = bytes_of(&daemon, "/render");
    assert_eq!(size_of_png(&empty), (330, 250), "no target");
    daemon.stop();
}

#[test]
fn only_pages_of_allowed_origins_get_data_as_a_script() {
    let config = "[http]\nlisten = \"127.0.0.1:0\"\nallowed_origins = [\"https://wiki.example.org\"]\n\
        [sources.lines]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
        [outputs.store]\ntype = \"whisper\"\nfrom = [\"lines\"]\n";
    let mut daemon = Builder::native(config).start();
    daemon.wait_logged("whisper files");
    for (referer, function, status) in [
        ("https://wiki.example.org/page?x", "show", "200"),
        ("https://wiki.example.org", "show", "200"),
        ("http://localhost/", "show", "200"),
        ("https://evil.example.org/https://wiki.example.org/", "show", "403"),
        ("https://wiki.example.org.evil/", "show", "403"),
        ("", "show", "403"),
        ("https://evil.example.org/", "", "200"),
        ("https://wiki.example.org/", "alert(1)", "400"),
    ] {
        let header = if referer.is_empty() { String::new() } else { format!("Referer: {referer}\r\n") };
        let path = format!("/metrics/find?query=*&jsonp={function}");
        let (head, body) = bytes_with(&daemon, &header, &path);
        let body = String::from_utf8_lossy(&body);
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{referer} {function}: {head}");
        assert_eq!(body.starts_with("show("), status == "200" && function == "show", "{referer}: {body}");
    }
    daemon.stop();
}

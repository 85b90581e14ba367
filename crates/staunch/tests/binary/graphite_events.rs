//! What clients of graphite-web's API change, and who may use it: events, the index of tags, kept answers, tokens, other origins.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::http::{post, with_headers};
use crate::support::{Builder, Daemon, wait_for};

fn config(folder: &Path, more: &str) -> String {
    format!(
        "data_dir = \"{}\"\n[sources.lines]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [outputs.store]\ntype = \"whisper\"\nfrom = [\"lines\"]\npath = \"{}\"\n{more}",
        folder.join("data").display(),
        folder.join("whisper").display()
    )
}

fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_secs()
}

fn send(daemon: &Daemon, name: &str, value: u32, time: u64) {
    let mut stream = TcpStream::connect(daemon.at("lines", "tcp")).expect("it listens");
    let had = Daemon::number(&daemon.output("store"), "copies");
    stream.write_all(format!("{name} {value} {time}\n").as_bytes()).expect("it reads");
    daemon.wait_output("store", "copies", had + 1);
}

fn form(daemon: &Daemon, path: &str, body: &str) -> (u16, String) {
    let kind = "application/x-www-form-urlencoded";
    let answer = post(daemon.http(), path, kind, body).expect("it answers");
    (answer.status, answer.body)
}

#[test]
fn events_are_posted_found_by_tags_and_kept_over_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut daemon = Builder::native(&config(folder.path(), "")).start();
    for (body, status) in [
        (r#"{"what": "release <1>", "tags": ["web", "release"], "when": 1710000005}"#, 200),
        (r#"{"what": "reboot", "tags": "web db", "when": 1710000002.9, "data": "kernel"}"#, 200),
        (r#"{"what": "alert", "tags": ["db"], "when": 1710000005}"#, 200),
        (r#"{"what": "now"}"#, 200),
        (r#"{"tags": ["web"]}"#, 400),
        (r#"{"what": "x", "tags": 5}"#, 400),
        ("what=x", 400),
    ] {
        assert_eq!(form(&daemon, "/events/", body).0, status, "{body}");
    }
    let oversize = format!(r#"{{"what": "{}"}}"#, "x".repeat(5_000));
    assert_eq!(form(&daemon, "/events", &oversize).0, 400);
    let first = json!([
        {"when": 1_710_000_002, "what": "reboot", "data": "kernel", "tags": ["web", "db"], "id": 2},
        {"when": 1_710_000_005, "what": "release <1>", "data": "", "tags": ["web", "release"], "id": 1},
    ]);
    let range = "from=1710000000&until=1710000010";
    daemon.stop();
    daemon.start_again();
    assert_eq!(daemon.json(&format!("/events/get_data?{range}&tags=web")), first);
    let what = |query: &str| {
        let found = daemon.json(&format!("/events/get_data?{range}&{query}"));
        let texts = found
            .as_array()
            .expect("a list")
            .iter()
            .map(|event| event["what"].as_str().expect("text").to_owned());
        texts.collect::<Vec<_>>().join(",")
    };
    assert_eq!(what("tags=web%20db"), "reboot");
    assert_eq!(what("tags=release+db&set=union"), "reboot,release <1>,alert");
    assert_eq!(what(""), "reboot,release <1>,alert");
    assert_eq!(daemon.json("/events/get_data?from=-1h")[0]["what"], "now");
    assert_eq!(daemon.json("/events/3")["what"], "alert");
    assert_eq!(daemon.get("/events/77").status, 404);
    assert!(daemon.get("/events/").body.contains("release &lt;1&gt;"));
    let render = format!("/render?target=events('web')&{range}&format=raw&now=1710000020");
    assert_eq!(daemon.get(&render).body.matches("1,").count(), 2, "{}", daemon.get(&render).body);
    // A page of another site cannot post one.
    let headers = "Origin: http://evil.example\r\nContent-Type: text/plain\r\n";
    let refused = with_headers(daemon.http(), "POST /events/", headers, r#"{"what": "x"}"#);
    assert_eq!(refused.expect("it answers").status, 403);
    daemon.stop();
}

#[test]
fn tagged_names_are_added_to_the_index_and_taken_out_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut daemon = Builder::native(&config(folder.path(), "")).start();
    daemon.wait_logged("whisper files");
    let found = |daemon: &Daemon| daemon.get("/tags/findSeries?expr=dc=x").body;
    assert_eq!(form(&daemon, "/tags/tagSeries", "path=b;dc=x;a=1"), (200, "\"b;a=1;dc=x\"".to_owned()));
    let many = form(&daemon, "/tags/tagMultiSeries", "path=c;dc=x&path=d;dc=x");
    assert_eq!(many, (200, "[\"c;dc=x\", \"d;dc=x\"]".to_owned()));
    assert_eq!(found(&daemon), "[\"b;a=1;dc=x\", \"c;dc=x\", \"d;dc=x\"]");
    assert_eq!(form(&daemon, "/tags/delSeries", "path=c;dc=x&path=b;a=1;dc=x"), (200, "true".to_owned()));
    assert_eq!(found(&daemon), "[\"d;dc=x\"]");
    send(&daemon, "c;dc=x", 1, now());
    wait_for("its point brings a series back", || {
        (found(&daemon) == "[\"c;dc=x\", \"d;dc=x\"]").then_some(())
    });
    assert_eq!(
        form(&daemon, "/tags/tagSeries", ""),
        (400, "{\"error\": \"no path specified\"}\n".to_owned())
    );
    assert_eq!(form(&daemon, "/tags/delSeries", "").1, "{\"error\": \"no paths specified\"}\n");
    assert_eq!(daemon.get("/tags/tagSeries?path=a;b=c").status, 405);
    daemon.stop();
}

#[test]
fn an_answer_is_given_again_only_as_long_as_the_request_or_the_config_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut daemon = Builder::native(&config(folder.path(), "[graphite_api]\ncache = \"5m\"\n")).start();
    let at = now() / 10 * 10 - 60;
    send(&daemon, "a", 1, at);
    let path = format!("/render?target=a&format=raw&from={}&until={}&now={at}", at - 1, at + 9);
    wait_for("the point", || daemon.get(&format!("{path}&noCache=1")).body.contains("|1.0").then_some(()));
    let first = daemon.get(&path);
    assert!(first.head.contains("max-age=300") && first.head.contains("last-modified: "), "{}", first.head);
    send(&daemon, "a", 2, at);
    wait_for("the point", || daemon.get(&format!("{path}&noCache=1")).body.contains("|2.0").then_some(()));
    assert!(
        daemon.get(&path).body.contains("|1.0") && daemon.get(&format!("{path}&_t=5")).body.contains("|1.0")
    );
    let fresh = daemon.get(&format!("{path}&cacheTimeout=0"));
    assert!(fresh.body.contains("|2.0") && fresh.head.contains("no-store"), "{fresh:?}");
    assert!(daemon.get(&format!("{path}&tz=UTC")).body.contains("|2.0"), "another request");
    daemon.stop();
}

#[test]
fn graphs_can_be_open_while_the_rest_needs_a_token() {
    let folder = tempfile::tempdir().expect("a folder");
    let token = folder.path().join("token");
    fs::write(&token, "0123456789abcdef").expect("the folder is there");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).expect("it is ours");
    let http = format!(
        "[http]\nlisten = \"127.0.0.1:0\"\ntoken_file = \"{}\"\nallowed_origins = [\"https://wiki.example\"]\n",
        token.display()
    );
    let mut daemon =
        Builder::native(&config(folder.path(), &format!("{http}[graphite_api]\nauth = \"none\"\n"))).spawn();
    daemon.wait_logged("try it");
    daemon.wait_logged("whisper files");
    let ask = |what: &str, headers: &str| with_headers(daemon.http(), what, headers, "").expect("it answers");
    wait_for("it to listen", || (ask("GET /healthz", "").status == 200).then_some(()));
    for (what, status) in [
        ("GET /render?target=a&format=json", 200),
        ("GET /metrics/find?query=*", 200),
        ("GET /metrics?query=*", 200),
        ("GET /functions/", 200),
        ("GET /events/get_data", 200),
        ("GET /tags/findSeries?expr=a=b", 200),
        ("GET /metrics", 401),
        ("GET /api/v1/config", 401),
        ("GET /", 401),
        ("POST /events/", 401),
        ("POST /tags/delSeries", 401),
        ("POST /tags/tagSeries/", 401),
        ("POST /api/v1/stores/store/delete", 401),
    ] {
        assert_eq!(ask(what, "").status, status, "{what}");
    }
    let origin = "Origin: https://wiki.example\r\n";
    let answer = ask("GET /render?target=a&format=json", origin);
    assert!(answer.head.contains("access-control-allow-origin: https://wiki.example"), "{}", answer.head);
    let answer = ask("GET /render?target=a&format=json", "Origin: https://evil.example\r\n");
    assert!(answer.status == 200 && !answer.head.contains("access-control"), "{}", answer.head);
    let preflight = format!("{origin}Access-Control-Request-Method: GET\r\n");
    let answer = ask("OPTIONS /api/v1/accounts", &preflight);
    assert!(
        answer.status == 204 && answer.head.contains("access-control-allow-headers: authorization"),
        "{answer:?}"
    );
    let other = "Origin: https://evil.example\r\nAccess-Control-Request-Method: GET\r\n";
    assert_eq!(ask("OPTIONS /api/v1/accounts", other).status, 401);
    // An allowed origin reads, and changes nothing.
    let bearer =
        format!("{origin}Authorization: Bearer 0123456789abcdef\r\nContent-Type: application/json\r\n");
    assert_eq!(ask("GET /api/v1/accounts", &bearer).status, 200);
    assert_eq!(ask("POST /api/v1/reload", &bearer).status, 403);
    assert_eq!(ask("POST /events/", &bearer).status, 403);
    let _value: Value = serde_json::from_str(&ask("GET /events/get_data", "").body).expect("JSON");
    daemon.stop();
}

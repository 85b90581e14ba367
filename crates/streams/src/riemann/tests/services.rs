//! Streams to services beside those of `posts`: what a request contains.

use super::{Running, mistakes};
use crate::riemann::declared::{Output, Post};
use crate::riemann::posts::{BODY, PATH};
use crate::riemann::surroundings::Effect;

/// The outputs of a config, and the requests that it sends of events: the path, if there is one, and the body.
fn sent(config: &str, events: &str) -> (Vec<Post>, Vec<String>) {
    let mut running = Running::new(&format!("(streams {config})"));
    let outputs = running.engine.declared().outputs.iter().map(|placed| match &placed.what {
        Output::Post(post) => (**post).clone(),
        other => panic!("{other:?} is no output of requests"),
    });
    let outputs = outputs.collect();
    let shown = |effect| {
        let Effect::Event { event, .. } = effect else { panic!("it sends events") };
        let path = event.attribute(&PATH).map(|path| format!("{} ", crate::print::to_str(path)));
        path.unwrap_or_default() + &crate::print::to_str(event.named(&BODY))
    };
    let requests = running.run(events).engine.effects().map(shown).collect();
    (outputs, requests)
}

/// A stream that gives a vector of two events with fields of their own to another one.
fn of_two(stream: &str) -> String {
    format!(
        "(smap (fn [e] [(assoc e :host \"a b\" :state \"ok\" :metric 1/2)
                        (assoc e :host \"c\" :state \"bad\" :metric 3)]) {stream})"
    )
}

#[test]
fn stores_get_the_lines_and_documents_of_a_vector_in_one_request() {
    for (config, url, requests) in [
        (
            "(influxdb2 {:organization \"o p\" :bucket \"b\" :token \"t\" :precision :milliseconds})",
            "http://localhost:8086/api/v2/write?org=o%20p&bucket=b&precision=ms",
            vec![" s,host=a\\ b value=0.5 2000\ns,host=c value=3i 2000\n"],
        ),
        (
            "(influxdb {:version :new-stream :db \"d\" :tags {:dc \"x\"}})",
            "http://localhost:8086/write?{{staunch.path|encoded}}",
            vec!["precision=s&db=d s,dc=x value=0.5 2\ns,dc=x value=3i 2\n"],
        ),
        (
            "(elasticsearch-bulk {:es-index \"i\" :username \"u\" :password \"p\"})",
            "http://127.0.0.1:9200/_bulk",
            vec![
                "{\"index\":{\"_index\":\"i-1970.01.01\",\"_type\":\"event\"}}\n{\"host\":\"a b\",\"service\":\"s\",\"metric\":0.5,\"state\":\"ok\",\"tags\":null,\"@timestamp\":\"1970-01-01T00:00:02.000Z\"}\n\
                 {\"index\":{\"_index\":\"i-1970.01.01\",\"_type\":\"event\"}}\n{\"host\":\"c\",\"service\":\"s\",\"metric\":3,\"state\":\"bad\",\"tags\":null,\"@timestamp\":\"1970-01-01T00:00:02.000Z\"}\n",
            ],
        ),
        (
            "(prometheus {:job \"j\"})",
            "http://localhost:9091/metrics/job/j{{staunch.path|encoded}}",
            vec!["/host/a%20b/state/ok s 0.5\n", "/host/c/state/bad s 3\n"],
        ),
        (
            "(prometheus-batch {:exclude-fields #{:host :state :time :ttl}})",
            "http://localhost:9091/metrics/job/riemann{{staunch.path|encoded}}",
            vec![" s 0.5\ns 3\n"],
        ),
        (
            "(:gauge (librato-metrics \"u\" \"k\"))",
            "https://metrics-api.librato.com/v1/metrics",
            vec![
                "{\"gauges\":[{\"name\":\"s\",\"source\":\"a.b\",\"value\":0.5,\"measure_time\":2},{\"name\":\"s\",\"source\":\"c\",\"value\":3,\"measure_time\":2}]}",
            ],
        ),
    ] {
        let (outputs, sent) = sent(&of_two(config), "s,m1t2");
        let mut sent: Vec<String> = sent.iter().map(|request| sorted(request)).collect();
        let mut want: Vec<String> = requests.iter().map(|request| sorted(request)).collect();
        sent.sort();
        want.sort();
        assert_eq!((&*outputs[0].url, sent), (url, want), "{config}");
        assert!(!outputs[0].is_notification, "{config}");
    }
}

/// With the members of each line in one order: those of a map have none.
fn sorted(request: &str) -> String {
    let of_line = |line: &str| match line.strip_prefix('{') {
        None => line.to_owned(),
        Some(rest) => {
            let mut members: Vec<&str> = rest.split([',', '{', '}', '[', ']']).collect();
            members.sort_unstable();
            members.join(",")
        }
    };
    request.lines().map(of_line).collect::<Vec<_>>().join("\n")
}

#[test]
fn new_streams_of_influxdb_take_what_events_say() {
    let config = "(smap (fn [e] (assoc e :measurement \"m 1\" :db \"d2\" :precision :microseconds :influxdb-tags {:t \"a,b\"}
            :influxdb-fields {:text \"x\\\"y\"})) (influxdb {:version :new-stream :retention \"week\"}))";
    let (_, requests) = sent(config, "s,m1t2");
    assert_eq!(requests, ["precision=u&db=d2&rp=week m\\ 1,t=a\\,b text=\"x\\\"y\" 2000000\n"]);
    let (_, requests) = sent("(influxdb {:version :new-stream})", "s,t2");
    assert!(requests.is_empty(), "an event without any field: {requests:?}");
}

#[test]
fn names_that_a_service_does_not_know_are_changed() {
    let rename = |name: &str, stream: &str| format!("(with {{:service \"{name}\" :host \"a/b\"}} {stream})");
    let (_, requests) = sent(&rename("9 cpu-load", "(prometheus)"), "s,m1t2");
    assert_eq!(requests, ["/host/a_b _9_cpu_load 1\n"]);
    let (_, requests) =
        sent(&rename("disk / used é", "(:counter (librato-metrics \"u\" \"k\"))"), "s,m1.5t2");
    assert_eq!(
        requests,
        ["{\"counters\":[{\"name\":\"disk..used.\",\"source\":\"ab\",\"value\":1,\"measure_time\":2}]}"]
    );
    let (_, requests) = sent("(:annotation (librato-metrics \"u\" \"k\"))", "s,m1t2");
    assert_eq!(requests, ["s {\"title\":\"s\",\"start_time\":2}"]);
}

#[test]
fn formatters_of_bulk_requests_decide_place_and_document() {
    let config = "(elasticsearch-bulk {:formatter (fn [e] (when (:metric e)
            {:es-action \"delete\" :es-metadata {:_index \"i\"} :es-source {:a 1}}))})";
    let (_, requests) = sent(config, "s,m1t2 s,t3");
    assert_eq!(requests, ["{\"delete\":{\"_index\":\"i\"}}\n"]);
    let config = "(elasticsearch-bulk {:formatter (default-bulk-formatter {:es-index \"logs\" :index-suffix \"\" :es-action \"create\"})})";
    let (_, requests) = sent(config, "s,m1t2");
    assert!(requests[0].starts_with("{\"create\":{") && requests[0].contains("\"logs\""), "{requests:?}");
}

#[test]
fn each_alerting_service_has_its_url_and_its_body() {
    for (config, url, requests) in [
        (
            "(:critical (victorops \"k\" \"r\"))",
            "https://alert.victorops.com/integrations/generic/20131114/alert/k/r",
            vec![
                "{\"message_type\":\"CRITICAL\",\"entity_id\":\"/s\",\"timestamp\":2,\"state_message\":\" s is  (1)\",\"monitoring_tool\":\"riemann\"}",
            ],
        ),
        (
            "(telegram {:token \"1:t\" :telegram-options {:chat_id \"42\"}})",
            "https://api.telegram.org/bot1:t/sendMessage",
            vec!["{\"text\":\" s is  (1)\",\"chat_id\":\"42\"}"],
        ),
        (
            "(telegram {:token \"t\" :telegram-options {:chat_id 42} :message-formatter (fn [e] (str \"!\" (:service e)))})",
            "https://api.telegram.org/bott/sendMessage",
            vec!["{\"text\":\"!s\",\"chat_id\":42}"],
        ),
        (
            "(pushover \"t\" \"u\" {:formatter (fn [e] {:message \"a b\"})})",
            "https://api.pushover.net/1/messages.json",
            vec!["token=t&user=u&title=%20s&message=a%20b"],
        ),
        (
            "(msteams {:url \"https://h/x\"})",
            "https://h/x",
            vec![
                "{\"@type\":\"MessageCard\",\"@context\":\"https://schema.org/extensions\",\"title\":\" s\",\"text\":\" s is  (1)\"}",
            ],
        ),
        (
            "(msteams {:url \"https://h/x\" :formatter (fn [e] {:text (:service e)})})",
            "https://h/x",
            vec!["{\"text\":\"s\"}"],
        ),
        (
            "((twilio {:account \"A\" :service-key \"k\"} {:from \"+1\" :body (fn [events] (str (count events)))}) \"+2\" \"+3\")",
            "https://api.twilio.com/2010-04-01/Accounts/A/Messages.json",
            vec!["From=%2B1&To=%2B2&Body=1", "From=%2B1&To=%2B3&Body=1"],
        ),
        (
            "((mailgun {:sender \"r@h.org\" :service-key \"k\" :body (fn [events] \"b\")}) [\"a@b\" \"c@d\"])",
            "https://api.mailgun.net/v3/h.org/messages",
            vec!["from=r%40h.org&to=a%40b%2Cc%40d&subject=s&text=b"],
        ),
    ] {
        let (outputs, mut sent) = sent(config, "s,m1t2");
        let mut requests: Vec<String> = requests.iter().map(|request| sorted(request)).collect();
        sent.iter_mut().for_each(|request| *request = sorted(request));
        requests.sort();
        sent.sort();
        assert_eq!((&*outputs[0].url, sent), (url, requests), "{config}");
        assert!(outputs.iter().all(|output| output.is_notification), "{config}");
    }
}

#[test]
fn users_and_tokens_are_headers() {
    for (config, header) in [
        ("(elasticsearch {:username \"u\" :password \"p\"})", "Authorization: Basic dTpw"),
        ("(elasticsearch-bulk {:username \"u\" :password \"p\"})", "Authorization: Basic dTpw"),
        ("(influxdb2 {:token \"t\"})", "Authorization: Token t"),
        ("(:gauge (librato-metrics \"u\" \"p\"))", "Authorization: Basic dTpw"),
        ("((twilio {:account \"u\" :key \"p\"}) \"+1\")", "Authorization: Basic dTpw"),
        ("((mailgun {:sender \"a@b\" :key \"p\"}) \"a@b\")", "Authorization: Basic YXBpOnA="),
    ] {
        let (outputs, _) = sent(config, "s,m1t2");
        let headers: Vec<String> =
            outputs[0].headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        assert!(headers.iter().any(|one| one == header), "{config}: {headers:?}");
    }
}

#[test]
fn missing_options_are_errors_at_load() {
    for (call, want) in [
        ("(victorops \"k\" 1)", "both must be texts"),
        ("(telegram {:token \"t\"})", "needs a :chat_id"),
        ("(telegram {:telegram-options {:chat_id 1}})", ":token is missing"),
        ("(pushover 1 2)", "both must be texts"),
        ("(msteams {})", ":url is missing"),
        ("((twilio {:account \"a\"}) \"+1\")", ":key is missing"),
        ("((twilio {:account \"a\" :key \"k\"}))", "needs recipients"),
        ("((mailgun {:sender \"a\" :key \"k\"}) \"a@b\")", ":sender must be an address"),
        ("(librato-metrics \"u\" 1)", "both must be texts"),
        ("(influxdb2 {:precision :days})", ":precision must be"),
        ("(elasticsearch-bulk {:index-suffix \"-ww\"})", ":index-suffix"),
        ("(influxdb {:version :newest})", ":deprecated or :new-stream"),
    ] {
        let said = mistakes(&format!("(streams {call})"));
        assert!(said.contains(want), "{call}: {said}");
    }
}

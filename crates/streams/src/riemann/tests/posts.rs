//! Streams that post: what a request contains, and which outputs they declare.

use super::{Running, mistakes};
use crate::riemann::declared::{Output, PostForm};
use crate::riemann::posts::{BODY, PATH};
use crate::riemann::surroundings::Effect;

/// The URLs of the outputs of a config, and the bodies and paths that it sends of events.
fn sent(config: &str, events: &str) -> (Vec<String>, Vec<String>) {
    let mut running = Running::new(config);
    let urls = running.engine.declared().outputs.iter().map(|placed| match &placed.what {
        Output::Post(post) => post.url.to_string(),
        other => panic!("{other:?} is no output of requests"),
    });
    let urls = urls.collect();
    let shown = |effect| {
        let Effect::Event { event, .. } = effect else { panic!("it sends events") };
        let path = event.attribute(&PATH).map(|path| format!(" {}", crate::print::to_str(path)));
        crate::print::to_str(event.named(&BODY)) + &path.unwrap_or_default()
    };
    let bodies = running.run(events).engine.effects().map(shown).collect();
    (urls, bodies)
}

#[test]
fn each_service_has_its_url_and_its_body() {
    for (config, url, body) in [
        (
            "(slack {:webhook_uri \"https://h/x\"} {:channel \"#a\" :formatter (fn [events] {:text (:service (first events))})})",
            "https://h/x",
            "payload=%7B%22channel%22%3A%22%23a%22%2C%22icon_emoji%22%3A%22%3Awarning%3A%22%2C%22text%22%3A%22s%22%7D",
        ),
        (
            "(:trigger (pagerduty {:service-key \"k\" :formatter (fn [e] {:description (:service e)})}))",
            "https://events.pagerduty.com/generic/2010-04-15/create_event.json",
            "{\"service_key\":\"k\",\"event_type\":\"trigger\",\"incident_key\":\" s\",\"details\":{\"host\":null,\"service\":\"s\",\"state\":null,\"description\":null,\"metric\":1,\"tags\":null,\"time\":2,\"ttl\":null},\"description\":\"s\"}",
        ),
        (
            "(:resolve (pagerduty {:service-key \"k\" :version :v2 :formatter (fn [e] {:summary \"x\"})}))",
            "https://events.pagerduty.com/v2/enqueue",
            "{\"routing_key\":\"k\",\"event_action\":\"resolve\",\"payload\":{\"summary\":\"x\"}}",
        ),
        (
            "(datadog {:api-key \"k\"})",
            "https://app.datadoghq.com/api/v1/series?api_key=k",
            "{\"series\":[{\"points\":[[2,1]],\"metric\":\"s\",\"type\":\"gauge\"}]}",
        ),
        (
            "(elasticsearch {:es-index \"i\"} (fn [e] {:more 1}))",
            "http://127.0.0.1:9200/i{{staunch.path}}/event",
            "{\"service\":\"s\",\"metric\":1,\"@timestamp\":\"1970-01-01T00:00:02.000Z\",\"more\":1} -1970.01.01",
        ),
    ] {
        let (urls, sent) = sent(&format!("(streams {config})"), "s,m1t2");
        assert_eq!((urls, sent), (vec![url.to_owned()], vec![body.to_owned()]), "{config}");
    }
}

#[test]
fn numbers_have_the_digits_of_their_precision() {
    let config = "(streams (datadog {:api-key \"k\"}))";
    for (metric, want) in
        [("(float 0.1)", "0.1"), ("1e300", "1.0E300"), ("1/4", "0.25"), ("Double/NaN", "\"NaN\"")]
    {
        let config =
            config.replace("(streams ", &format!("(streams (smap (fn [e] (assoc e :metric {metric})) "));
        let (_, sent) = sent(&(config + ")"), "s,m1t2");
        let is_sent = sent.first().is_some_and(|body| body.contains(&format!("[[2,{want}]]")));
        assert!(is_sent, "{metric}: {sent:?}");
    }
}

#[test]
fn a_body_that_shares_its_parts_ends_at_the_budget() {
    let config = "(streams (slack {:webhook_uri \"https://h/x\"} {:formatter (fn [es] {:x (reduce (fn [a _] [a a]) 1 (range 60))})}))";
    let mut running = Running::new(config);
    let out = running.run("s").out();
    assert!(out.contains("too much memory"), "{out}");
    assert_eq!((running.effects(), running.engine.figures().threw), (Vec::<String>::new(), 1));
    let config = "(streams (datadog {:api-key \"k\"}) (slack {:webhook_uri \"https://h/x\"} {:formatter (fn [es] {:x inc})}))";
    let out = Running::new(config).run("s,m1").out();
    assert!(out.contains("Cannot JSON encode object of class"), "{out}");
}

#[test]
fn opsgenie_opens_and_closes_alerts_through_one_output() {
    let config = "(let [o (opsgenie {:api-key \"k\"})] (streams (where (state \"ok\") (:resolve o) (else (:trigger o)))))";
    let (urls, sent) = sent(config, "s,:bad s,:ok");
    assert_eq!(urls, ["https://api.opsgenie.com/v2/alerts{{staunch.path|encoded}}"]);
    let alias = "818092fcc091cc7cb51643b1a00fae12";
    assert!(sent[0].starts_with("{\"message\":\" s is bad ()\"") && sent[0].contains(alias), "{sent:?}");
    assert_eq!(sent[1], format!("{{}} /{alias}/close?identifierType=alias"));
}

#[test]
fn influxdb_sends_events_with_the_tags_of_its_options() {
    let config = "(streams (influxdb {:db \"a b\" :tag-fields #{:host} :tags {:dc \"x\"} :precision :milliseconds :username \"u\"}))";
    let mut running = Running::new(config);
    let Output::Post(post) = &running.engine.declared().outputs[0].what else { panic!("it posts") };
    assert_eq!(post.url, "http://localhost:8086/write?db=a%20b&precision=ms&u=u");
    let PostForm::InfluxDb { tags, .. } = &post.form else { panic!("lines") };
    assert_eq!(tags, &["host", "dc"]);
    let effects = running.run("s,m1t2").effects();
    assert!(effects[0].contains("dc"), "{effects:?}");
}

#[test]
fn a_mailer_sends_one_mail_for_each_push_with_the_functions_of_the_config() {
    let config = "(def email (mailer {:host \"mail\" :ssl true :user \"u\" :pass \"p\"} {:from \"r@h\" :body (fn [events] (str (count events)))}))
        (streams (email \"a@b\" \"c@d\") (email [\"e@f\"]))";
    let mut running = Running::new(config);
    let outputs = &running.engine.declared().outputs;
    let Output::Mail(mailer) = &outputs[0].what else { panic!("it sends mails") };
    assert_eq!((outputs.len(), &*mailer.smtp, mailer.starttls), (1, "smtps://mail:465", false));
    let mails: Vec<String> = running
        .run("s,m1t2")
        .engine
        .effects()
        .map(|effect| {
            let Effect::Event { event, .. } = effect else { panic!("it sends events") };
            let of = |name: &str| crate::print::to_str(event.named(name));
            ["from", "to", "subject", "body"].map(of).join("|")
        })
        .collect();
    assert_eq!(mails, ["r@h|a@b,c@d|s|1", "r@h|e@f|s|1"]);
}

#[test]
fn a_mail_has_copies_and_other_senders_and_a_limit_of_recipients() {
    let config = "(def email (mailer {:host \"m\" :sender \"bounce@h\"} {:cc [\"c@d\" \"e@f\"] :bcc \"g@h\" :reply-to \"ops\"})) (streams (email \"a@b\"))";
    let mut running = Running::new(config);
    let notes: Vec<String> = running.engine.declared().notes.iter().map(|note| note.text.clone()).collect();
    assert_eq!(notes, ["the address `ops` has no domain: it is completed with the name of the machine"]);
    let Some(Effect::Event { event, .. }) = running.run("s").engine.effects().next() else {
        panic!("a mail")
    };
    let all =
        ["from", "to", "cc", "bcc", "sender", "reply-to"].map(|name| crate::print::to_str(event.named(name)));
    assert_eq!(all, ["riemann", "a@b", "c@d,e@f", "g@h", "bounce@h", "ops"]);
    let most = |count: usize| {
        format!(
            "(streams ((mailer {{:host \"m\" :cc \"c@d\"}}) (map (fn [n] (str n \"@b\")) (range {count}))))"
        )
    };
    Running::new(&most(99));
    let said = mistakes(&most(100));
    assert!(said.contains("a mail has at most 100 recipients"), "{said}");
    let said = mistakes("(streams ((mailer {:host \"m\" :reply-to [\"a@b\" \"c@d\"]}) \"e@f\"))");
    assert!(said.contains(":reply-to must be one address"), "{said}");
}

#[test]
fn what_is_not_built_or_missing_is_an_error_at_load() {
    for (call, want) in [
        ("(influxdb {:insecure true})", ":insecure is refused"),
        ("(datadog {})", ":api-key is missing"),
        ("(slack {:account \"a\"} {})", ":token is missing"),
        ("(elasticsearch {:index-suffix \"-ww\"})", ":index-suffix"),
        ("(pagerduty {:service-key \"k\" :version :v3})", ":v1 or :v2"),
    ] {
        let said = mistakes(&format!("(streams {call})"));
        assert!(said.contains(want), "{call}: {said}");
    }
}

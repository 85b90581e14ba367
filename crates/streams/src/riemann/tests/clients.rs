//! Clients of other Riemanns: which outputs they declare, and which events they send to them.

use super::{Running, mistakes};
use crate::riemann::declared::{Output, Transport};
use crate::riemann::surroundings::Effect;

fn outputs(config: &str) -> Vec<String> {
    let running = Running::new(config);
    let shown = |output: &Output| match output {
        Output::Riemann { host, port, transport, tls, skip_hostname_check } => {
            let transport = match transport {
                Transport::Tcp => "tcp",
                Transport::Udp => "udp",
            };
            let tls = tls
                .as_ref()
                .map_or(String::new(), |tls| format!(" {} {} {}", tls.key, tls.cert, tls.ca_cert));
            let skips = if *skip_hostname_check { " any name" } else { "" };
            format!("{transport} {host}:{port}{tls}{skips}")
        }
        other => panic!("{other:?} is no output to Riemann"),
    };
    running.engine.declared().outputs.iter().map(|placed| shown(&placed.what)).collect()
}

/// The numbers of the outputs that get events, with the services of these.
fn sent(config: &str, events: &str) -> Vec<(u16, String)> {
    let mut running = Running::new(config);
    let shown = |effect| {
        let Effect::Event { output, event } = effect else { panic!("it sends events") };
        (output.0, crate::print::to_str(event.named("service")))
    };
    running.run(events).engine.effects().map(shown).collect()
}

#[test]
fn clients_have_the_standard_addresses_unless_options_say_otherwise() {
    for (client, want) in [
        ("(tcp-client)", "tcp localhost:5555"),
        ("(riemann.client/tcp-client :host \"h\" :port 5)", "tcp h:5"),
        ("(client/tcp-client {:remote-host \"h\" :remote-port 6})", "tcp h:6"),
        ("(udp-client {:host \"h\" :max-size 10})", "udp h:5555"),
        ("(tcp-client :tls? true :key \"k\" :cert \"c\" :ca-cert \"a\")", "tcp localhost:5554 k c a"),
        (
            "(tcp-client :tls? true :key \"k\" :cert \"c\" :ca-cert \"a\" :skip-hostname-check true)",
            "tcp localhost:5554 k c a any name",
        ),
    ] {
        assert_eq!(outputs(&format!("(streams (forward {client}))")), [want], "{client}");
    }
    let two =
        "(def c (tcp-client {:host \"h\"})) (streams (forward c) (forward (client/batch-client c 100)))";
    assert_eq!(outputs(two), ["tcp h:5555"], "a client is one output");
}

#[test]
fn forward_sends_events_and_vectors_of_them() {
    let config = "(def c (tcp-client :host \"h\"))
        (streams (where (service \"a\") (batch 2 60 (async-queue! :f {:queue-size 10} (forward c)))))";
    assert_eq!(sent(config, "a,t1 b,t1 a,t2"), [(0, "a".into()), (0, "a".into())]);
    assert_eq!(sent("(streams (forward (udp-client)))", "a,t1"), [(0, "a".into())]);
}

#[test]
fn several_clients_share_out_events() {
    let config = "(streams (forward (multi-client [(tcp-client :host \"g\") (tcp-client :host \"h\")])))";
    assert_eq!(outputs(config), ["tcp g:5555", "tcp h:5555"]);
    let numbers: Vec<u16> = sent(config, "a,t1 a,t2 a,t3").into_iter().map(|(output, _)| output).collect();
    assert_eq!(numbers, [0, 1, 0]);
}

#[test]
fn functions_send_events_and_get_a_promise_that_has_its_value() {
    let config = "(def c (tcp-client))
        (streams (fn [e] (let [p (riemann.client/send-event c (assoc e :service \"x\"))]
            (print (:ok @p) (deref p 5 :late) (realized? p) (riemann.client/connected? c))
            (riemann.client/send-events c [e {:service \"y\"}]))))";
    assert_eq!(sent(config, "a,t1"), [(0, "x".into()), (0, "a".into()), (0, "y".into())]);
    let out = Running::new(config).run("a,t1").out();
    assert!(out.contains("true {:ok true} true true"), "{out}");
}

#[test]
fn what_is_no_client_is_an_error() {
    for (call, want) in [
        ("(streams (forward {:host \"h\"}))", "cannot use as a client of Riemann"),
        ("(streams (forward (tcp-client :port 70000)))", ":port must be from 0 to 65535"),
        ("(streams (forward (tcp-client :remote-port \"5\")))", ":remote-port must be a whole number"),
        ("(tcp-client :tls? true :key \"k\")", ":cert is missing"),
        ("(udp-client :tls? true :key \"k\" :cert \"c\" :ca-cert \"a\")", "datagrams are not encrypted"),
        ("(multi-client [])", "1 to 100 clients"),
        ("(riemann.client/query (tcp-client) \"true\")", "would have to wait"),
        ("((tcp-client) 1)", "a client is no function"),
    ] {
        let said = mistakes(call);
        assert!(said.contains(want), "{call}: {said}");
    }
}

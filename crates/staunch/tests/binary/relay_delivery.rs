//! Delivery of the relay: failover of an endpoint that is down, and the records queued for it.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::support::{Builder, Daemon, FakeGraphite, Manner, wait_for};

/// A relay with one cluster of these endpoints, that listens at a socket in its folder.
fn relay(cluster: &str, endpoints: &[&FakeGraphite], more: &[&str]) -> Daemon {
    let mut builder = Builder::relay("");
    let socket = builder.folder().join("in.sock");
    let members: Vec<String> = endpoints.iter().map(|endpoint| endpoint.at().to_string()).collect();
    let conf = format!(
        "cluster c {cluster} {};\nmatch * send to c stop;\nlisten type linemode {} proto unix;\n",
        members.join(" "),
        socket.display()
    );
    std::fs::write(builder.folder().join("relay.conf"), conf).expect("the config can be written");
    builder = builder.args(more);
    builder.start()
}

fn connect(daemon: &Daemon) -> UnixStream {
    UnixStream::connect(daemon.folder.path().join("in.sock")).expect("it listens")
}

/// Lines of 200 series with this value.
fn lines(value: u64) -> String {
    (0..200).map(|number| format!("app.n{number}.hits {value} 1700000000\n")).collect()
}

/// The account of an endpoint's output.
fn account(daemon: &Daemon, endpoint: &FakeGraphite) -> serde_json::Value {
    daemon.output(&format!("c/{}", endpoint.at()))
}

fn number(daemon: &Daemon, endpoint: &FakeGraphite, path: &str) -> u64 {
    Daemon::number(&account(daemon, endpoint), path)
}

fn wait_state(daemon: &Daemon, endpoint: &FakeGraphite, state: &str) {
    wait_for(state, || (account(daemon, endpoint)["state"] == state).then_some(()));
}

/// Where each series with this value came, once all have.
fn places(endpoints: &[&FakeGraphite], value: u64) -> BTreeMap<String, usize> {
    wait_for("every line to arrive", || {
        let mut places = BTreeMap::new();
        for (place, endpoint) in endpoints.iter().enumerate() {
            let of_value = endpoint.points().into_iter().filter(|point| point.value == value as f64);
            places.extend(of_value.map(|point| (point.name, place)));
        }
        (places.len() == 200).then_some(places)
    })
}

fn assert_nothing_is_lost(daemon: &Daemon, endpoints: &[&FakeGraphite]) {
    daemon.assert_sums_hold();
    for endpoint in endpoints {
        let row = account(daemon, endpoint);
        assert_eq!(
            (Daemon::number(&row, "dropped"), Daemon::number(&row, "rejected_by_peer")),
            (0, 0),
            "{row}"
        );
    }
}

#[test]
fn what_waits_for_one_that_went_down_moves_on_and_new_lines_return_with_it() {
    for (cluster, on_disk) in [("failover", false), ("any_of", true)] {
        let (first, mut second, third) = (FakeGraphite::new(), FakeGraphite::new(), FakeGraphite::new());
        let queue: &[&str] = if on_disk { &["--queue-dir", "queues"] } else { &[] };
        // The second of them goes, which is the first of a `failover` cluster.
        let order =
            |second| if cluster == "failover" { [second, &first, &third] } else { [&first, second, &third] };
        let daemon = relay(cluster, &order(&second), queue);
        let mut client = connect(&daemon);
        client.write_all(lines(1).as_bytes()).expect("it reads");
        let owners = places(&[&first, &second, &third], 1);
        let of_second = owners.values().filter(|place| **place == 1).count() as u64;
        assert!(of_second > 0, "{cluster}: {owners:?}");
        second.refuse();
        client.write_all(lines(2).as_bytes()).expect("it reads");
        let elsewhere = places(&[&first, &second, &third], 2);
        for (name, owner) in &owners {
            assert!(elsewhere[name] != 1 && (*owner == 1 || *owner == elsewhere[name]), "{cluster}: {name}");
        }
        // Its lines came to its queue before anybody knew, and moved from there.
        wait_for("what has moved to be counted", || {
            (number(&daemon, &second, "moved") == of_second).then_some(())
        });
        assert_eq!(account(&daemon, &second)["state"], "down");
        client.write_all(lines(3).as_bytes()).expect("it reads");
        assert_eq!(places(&[&first, &second, &third], 3), elsewhere, "{cluster}");
        second.come_back();
        wait_state(&daemon, &second, "up");
        // The sender's thread says so, and the shard notices before it takes another batch.
        client.write_all(lines(4).as_bytes()).expect("it reads");
        assert_eq!(places(&[&first, &second, &third], 4), owners, "{cluster}");
        assert_eq!(number(&daemon, &second, "moved"), of_second, "{cluster}");
        assert_nothing_is_lost(&daemon, &[&first, &second, &third]);
    }
}

/// Lines of a kilobyte each, numbered: more than kernels and queues on the way hold of them.
const LONG_LINES: usize = 20_000;

fn long_lines() -> Vec<u8> {
    let name = "x".repeat(1_000);
    (0..LONG_LINES).flat_map(|number| format!("{name} {number} 1700000000\n").into_bytes()).collect()
}

#[test]
fn clients_wait_for_an_endpoint_that_does_not_read_and_every_line_arrives_in_order() {
    let slow = FakeGraphite::new();
    slow.behave(Manner::Hang);
    let daemon = relay("forward", &[&slow], &["-q", "1000", "-b", "1000", "-U", "65536"]);
    let mut client = connect(&daemon);
    let sender = std::thread::spawn(move || client.write_all(&long_lines()).expect("it reads in the end"));
    wait_for("clients to be stalled", || (number(&daemon, &slow, "stalls") > 0).then_some(()));
    // Nothing moves any more: what was taken stays what it is, with the client in the middle of a write.
    let taken = || Daemon::number(&daemon.source("lines"), "lines");
    wait_for("a rest", || {
        let before = taken();
        std::thread::sleep(Duration::from_millis(50));
        (taken() == before).then_some(())
    });
    assert!(taken() < LONG_LINES as u64 && !sender.is_finished(), "{} lines taken", taken());
    slow.behave(Manner::Accept);
    sender.join().expect("the sender does not panic");
    daemon.wait_output(&format!("c/{}", slow.at()), "delivered", LONG_LINES as u64);
    wait_for("every line to arrive", || (slow.points().len() == LONG_LINES).then_some(()));
    let wrong = slow.points().into_iter().zip(0..).find(|(point, number)| point.value != f64::from(*number));
    assert!(wrong.is_none(), "out of order: {wrong:?}");
    assert_nothing_is_lost(&daemon, &[&slow]);
}

#[test]
fn an_endpoint_that_is_down_stalls_nobody() {
    let (live, mut dead) = (FakeGraphite::new(), FakeGraphite::new());
    dead.refuse();
    let daemon = relay("forward", &[&dead, &live], &["-q", "1000", "-b", "1000"]);
    let mut client = connect(&daemon);
    client.write_all(lines(1).as_bytes()).expect("it reads");
    wait_state(&daemon, &dead, "down");
    for value in 2..52 {
        client.write_all(lines(value).as_bytes()).expect("it reads");
    }
    daemon.wait_output(&format!("c/{}", live.at()), "delivered", 51 * 200);
    let row = account(&daemon, &dead);
    let (lost, waiting) = (Daemon::number(&row, "losses/dropped/queue_full"), Daemon::number(&row, "queued"));
    assert!(lost > 0 && lost + waiting == 51 * 200 && Daemon::number(&row, "stalls") == 0, "{row}");
    assert_nothing_is_lost(&daemon, &[&live]);
}

#[test]
fn records_of_an_owner_without_failover_stay_queued_and_siblings_go_on() {
    let queue = &["--queue-dir", "queues"];
    let (first, mut second) = (FakeGraphite::new(), FakeGraphite::new());
    let daemon = relay("fnv1a_ch", &[&first, &second], queue);
    let mut client = connect(&daemon);
    client.write_all(lines(1).as_bytes()).expect("it reads");
    let owners = places(&[&first, &second], 1);
    let of_first = owners.values().filter(|place| **place == 0).count() as u64;
    second.refuse();
    for value in 2..12 {
        client.write_all(lines(value).as_bytes()).expect("it reads");
    }
    daemon.wait_output(&format!("c/{}", first.at()), "delivered", 11 * of_first);
    wait_state(&daemon, &second, "down");
    daemon.wait_output(&format!("c/{}", second.at()), "queued", 10 * (200 - of_first));
    second.come_back();
    for value in 2..12 {
        assert_eq!(places(&[&first, &second], value), owners);
    }
    for name in owners.iter().filter(|(_, place)| **place == 1).map(|(name, _)| name) {
        let values: Vec<f64> = second.of(name).iter().map(|point| point.value).collect();
        assert!(values.is_sorted(), "{name}: {values:?}");
    }
    assert_eq!(number(&daemon, &second, "moved"), 0);
    assert_nothing_is_lost(&daemon, &[&first, &second]);
}

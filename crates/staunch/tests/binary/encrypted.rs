//! Connections that are encrypted: between two daemons, with python's ssl at either end, with clients and endpoints that
//! are not who they should be, and over a reload that finds other certificates.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

use crate::support::sections::{output, source};
use crate::support::{Builder, FakeGraphite, wait_for};

/// Authorities and certificates as files: `ca.pem`; `both.pem` with chain and key; `client.pem` and `client.key`.
pub(crate) fn certificates(folder: &Path) {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // Whose subject is also its issuer is taken for one that signed itself.
    params.distinguished_name.push(DnType::CommonName, format!("authorities of {}", folder.display()));
    let ca =
        CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("it signs itself");
    let signed = |names: &[&str]| {
        let key = KeyPair::generate().expect("a key");
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let params = CertificateParams::new(names).expect("good names");
        (params.signed_by(&key, &ca).expect("it signs").pem(), key.serialize_pem())
    };
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("it can be written");
    write("ca.pem", &ca.pem());
    let (cert, key) = signed(&["127.0.0.1", "carbon.test"]);
    write("both.pem", &(key + &cert));
    let (cert, key) = signed(&["client.test"]);
    write("client.pem", &cert);
    write("client.key", &key);
}

/// Sends lines to a plain source.
fn send(to: SocketAddr, text: &str) {
    TcpStream::connect(to).and_then(|mut stream| stream.write_all(text.as_bytes())).expect("it reads");
}

/// Runs python, if there is one, with arguments; none when there is not.
fn python(program: &str, folder: &Path, args: &[&str]) -> Option<Child> {
    let mut python = Command::new("python3");
    let started = python.arg("-c").arg(program).args(args).current_dir(folder).stdout(Stdio::piped()).spawn();
    if started.is_err() {
        crate::support::skip("encrypted", "there is no python3 to be the other end");
    }
    started.ok()
}

#[test]
fn lines_go_encrypted_and_packed_from_one_daemon_to_another() {
    let folder = tempfile::TempDir::new().expect("a folder");
    certificates(folder.path());
    let file = |name: &str| folder.path().join(name).display().to_string();
    let ends = [FakeGraphite::new(), FakeGraphite::new(), FakeGraphite::new()];
    let tls = format!("tls = {{ cert = \"{}\" }}", file("both.pem"));
    let mutual = format!(
        "tls = {{ cert = \"{}\", client_ca = \"{}\", min = \"1.3\" }}\ntransport = \"lz4\"",
        file("both.pem"),
        file("ca.pem")
    );
    let old = format!("tls = {{ cert = \"{}\", max = \"1.2\" }}\ntransport = \"gzip\"", file("both.pem"));
    let far = source("bare", &tls) + &source("mutual", &mutual) + &source("old", &old);
    let far = ["bare", "mutual", "old"]
        .iter()
        .zip(&ends)
        .fold(far, |text, (name, end)| text + &output(&format!("to-{name}"), name, &end.to(), ""));
    let mut far = Builder::native(&far).start();
    let to = |name: &str| format!("tcp://{}", far.at(name, "tcp"));
    let known = format!("tls = {{ ca = \"{}\" }}", file("ca.pem"));
    let shows = format!(
        "tls = {{ ca = \"{}\", cert = \"{}\", key = \"{}\", server_name = \"carbon.test\" }}\ntransport = \"lz4\"",
        file("ca.pem"),
        file("client.pem"),
        file("client.key")
    );
    let near = source("in", "")
        + &output("bare", "in", &to("bare"), &known)
        + &output("mutual", "in", &to("mutual"), &shows)
        + &output("old", "in", &to("old"), &format!("{known}\ntransport = \"gzip\""));
    let mut near = Builder::native(&near).start();
    let text: String = (0..20_000).map(|n| format!("a.b{}.c {n} 1700000000\n", n % 89)).collect();
    send(near.at("in", "tcp"), &text);
    for (name, end) in ["bare", "mutual", "old"].iter().zip(&ends) {
        near.wait_output(name, "delivered", 20_000);
        far.wait_output(&format!("to-{name}"), "delivered", 20_000);
        assert!(end.bytes() == text.as_bytes(), "{name}");
    }
    near.assert_sums_hold();
    near.stop();
    for name in ["bare", "mutual", "old"] {
        far.wait_source(name, "connections_open", 0);
        assert_eq!(crate::support::Daemon::number(&far.source(name), "connections_broken"), 0, "{name}");
    }
    far.assert_sums_hold();
    far.stop();
}

#[test]
fn a_peer_with_a_wrong_certificate_gets_nothing_and_is_logged() {
    let folder = tempfile::TempDir::new().expect("a folder");
    certificates(folder.path());
    let other = tempfile::TempDir::new().expect("a folder");
    certificates(other.path());
    let file = |name: &str| folder.path().join(name).display().to_string();
    let tls = format!("tls = {{ cert = \"{}\", client_ca = \"{}\" }}", file("both.pem"), file("ca.pem"));
    let end = FakeGraphite::new();
    let mut far = Builder::native(&(source("in", &tls) + &output("o", "in", &end.to(), ""))).start();
    let to = format!("tcp://{}", far.at("in", "tcp"));
    let identity = format!("cert = \"{}\", key = \"{}\"", file("client.pem"), file("client.key"));
    // Nobody ever takes what waits.
    let near = "stop_timeout = \"100ms\"\n".to_owned()
        + &source("in", "")
        + &output(
            "other-ca",
            "in",
            &to,
            &format!("tls = {{ ca = \"{}\", {identity} }}", other.path().join("ca.pem").display()),
        )
        + &output(
            "other-name",
            "in",
            &to,
            &format!("tls = {{ ca = \"{}\", {identity}, server_name = \"else.test\" }}", file("ca.pem")),
        )
        + &output("clear", "in", &to, "");
    let mut near = Builder::native(&near).start();
    send(near.at("in", "tcp"), "secret 1 1700000000\n");
    for (name, word) in [
        ("other-ca", "signed by no CA that is trusted here: look at `tls.ca`"),
        ("other-name", "is not for `else.test`"),
    ] {
        wait_for("a word of what is wrong", || near.stderr().contains(word).then_some(()));
        near.wait_output(name, "queued", 1);
    }
    wait_for("why plain lines arrive nowhere", || {
        near.stderr().contains("(it answers plain lines with a TLS alert: set `tls`)").then_some(())
    });
    for (name, word) in [("other-ca", "tls_failed"), ("other-name", "tls_failed"), ("clear", "tls_wanted")] {
        let output = near.output(name);
        assert_eq!((&output["state"], &output["last_error"]), (&"down".into(), &word.into()), "{name}");
    }
    // A client in the clear; the endpoints above have refused their handshakes.
    let mut clear = TcpStream::connect(far.at("in", "tcp")).expect("it listens");
    clear.write_all(b"in.the.clear 1 1700000000\n").expect("it reads");
    drop(clear);
    wait_for("failed handshakes", || {
        (crate::support::Daemon::number(&far.source("in"), "handshakes_failed") >= 3).then_some(())
    });
    wait_for("one of them in the log", || {
        far.stderr().contains("a TLS handshake with 127.0.0.1:").then_some(())
    });
    assert_eq!(crate::support::Daemon::number(&far.source("in"), "received"), 0);
    assert!(end.bytes().is_empty());
    near.stop();
    far.assert_sums_hold();
    far.stop();
}

#[test]
fn an_outage_whose_reason_changes_is_logged_once_more() {
    let folder = tempfile::TempDir::new().expect("a folder");
    certificates(folder.path());
    // Ours, and nobody listens there yet.
    let port = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
    let any: SocketAddr = ([127, 0, 0, 1], 0).into();
    port.bind(&any.into()).expect("a free port");
    let to = port.local_addr().expect("it is bound").as_socket().expect("an address of IP");
    let tls = format!("tls = {{ ca = \"{}\" }}", folder.path().join("ca.pem").display());
    let near = "stop_timeout = \"100ms\"\n".to_owned()
        + &source("in", "")
        + &output("o", "in", &format!("tcp://{to}"), &tls);
    let mut near = Builder::native(&near).start();
    send(near.at("in", "tcp"), "a.b 1 1700000000\n");
    wait_for("nobody to be there", || near.stderr().contains("is down (Connection refused").then_some(()));
    port.listen(64).expect("the port is ours");
    let listener = std::net::TcpListener::from(port);
    // Ends with the test.
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let _gone = stream.write_all(b"ERROR\n");
        }
    });
    let logged = "is still down, for another reason (the peer does not speak TLS)";
    wait_for("somebody without TLS to be there", || near.stderr().contains(logged).then_some(()));
    let attempts = || crate::support::Daemon::number(&near.output("o"), "errors_by/tls_failed");
    wait_for("more attempts", || (attempts() >= 5).then_some(()));
    assert_eq!(near.output("o")["last_error"], "tls_failed");
    near.stop();
    let logged = near.stderr();
    assert_eq!(logged.matches("output `o`: tcp://").count(), 2, "one line for each reason:\n{logged}");
}

#[test]
fn who_answers_no_handshake_is_asked_whether_he_speaks_tls() {
    let folder = tempfile::TempDir::new().expect("a folder");
    certificates(folder.path());
    let tls = format!(
        "tls = {{ ca = \"{}\" }}\nconnect_timeout = \"300ms\"",
        folder.path().join("ca.pem").display()
    );
    let closer = TcpListener::bind("127.0.0.1:0").expect("a free port");
    // The kernel takes its connections, and nobody answers.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let to = |listener: &TcpListener| format!("tcp://{}", listener.local_addr().expect("it is bound"));
    let near = "stop_timeout = \"100ms\"\n".to_owned()
        + &source("in", "")
        + &output("closer", "in", &to(&closer), &tls)
        + &output("silent", "in", &to(&silent), &tls);
    // Ends with the test.
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = closer.accept() {
            let _len = stream.read(&mut [0; 4096]);
        }
    });
    let mut near = Builder::native(&near).start();
    send(near.at("in", "tcp"), "a.b 1 1700000000\n");
    for (name, words) in [
        ("closer", "the peer closed the connection during the TLS handshake: does it speak TLS?"),
        ("silent", "the TLS handshake was not answered within `connect_timeout`"),
    ] {
        wait_for("a word of the handshake", || near.stderr().contains(words).then_some(()));
        let output = near.output(name);
        assert_eq!(
            (&output["state"], &output["last_error"]),
            (&"down".into(), &"tls_failed".into()),
            "{name}"
        );
        assert!(crate::support::Daemon::number(&output, "errors_by/tls_failed") > 0, "{output}");
    }
    near.stop();
}

#[test]
fn a_reload_reads_certificates_anew_and_leaves_connections_alone() {
    let folder = tempfile::TempDir::new().expect("a folder");
    certificates(folder.path());
    let file = |name: &str| folder.path().join(name).display().to_string();
    let end = FakeGraphite::new();
    let far = source("in", &format!("tls = {{ cert = \"{}\" }}", file("both.pem")))
        + &output("o", "in", &end.to(), "");
    let mut far = Builder::native(&far).start();
    let to = format!("tcp://{}", far.at("in", "tcp"));
    let near = |name: &str| {
        let tls = format!("tls = {{ ca = \"{}\" }}", file("ca.pem"));
        Builder::native(&(source("in", "") + &output(name, "in", &to, &tls))).start()
    };
    let mut first = near("first");
    send(first.at("in", "tcp"), "first 1 1700000000\n");
    far.wait_source("in", "routed", 1);
    // Other authorities, and a certificate of theirs: the client that is there knows only the first.
    certificates(folder.path());
    far.signal("HUP");
    wait_for("the reload", || far.stderr().contains("reloaded").then_some(()));
    let mut second = near("second");
    send(second.at("in", "tcp"), "second 1 1700000000\n");
    far.wait_source("in", "routed", 2);
    send(first.at("in", "tcp"), "first 2 1700000000\n");
    far.wait_source("in", "routed", 3);
    // One that is not good is refused, and nothing changes.
    std::fs::write(folder.path().join("both.pem"), "nothing").expect("it can be written");
    far.signal("HUP");
    wait_for("the refusal", || far.stderr().contains("there is no certificate in it").then_some(()));
    let mut third = near("third");
    send(third.at("in", "tcp"), "third 1 1700000000\n");
    far.wait_source("in", "routed", 4);
    assert_eq!(crate::support::Daemon::number(&far.source("in"), "handshakes_failed"), 0);
    for daemon in [&mut first, &mut second, &mut third] {
        daemon.assert_sums_hold();
        daemon.stop();
    }
    far.stop();
}

#[test]
fn a_check_shows_files_that_cannot_be_used_where_they_are_named() {
    let folder = tempfile::TempDir::new().expect("a folder");
    certificates(folder.path());
    std::fs::write(folder.path().join("empty.pem"), "").expect("it can be written");
    let check = |tls: &str| {
        let file = folder.path().join("c.toml");
        let end = "[outputs.o]\ntype = \"graphite_file\"\nfrom = [\"in\"]\n";
        std::fs::write(&file, source("in", tls) + end).expect("it can be written");
        let mut staunch = Command::new(env!("CARGO_BIN_EXE_staunch"));
        let out = staunch.arg("check").arg("c.toml").current_dir(folder.path()).output().expect("it runs");
        let text = [out.stdout, out.stderr].concat();
        (out.status.code(), String::from_utf8_lossy(&text).into_owned())
    };
    assert_eq!(check("tls = { cert = \"both.pem\", client_ca = \"ca.pem\" }").0, Some(0));
    for (tls, word) in [
        ("tls = { cert = \"nowhere.pem\" }", "No such file"),
        ("tls = { cert = \"empty.pem\" }", "there is no certificate in it"),
        ("tls = { cert = \"client.pem\" }", "there is no key in it"),
        ("tls = { cert = \"both.pem\", key = \"client.key\" }", "the key is not that of the certificate"),
        ("tls = { cert = \"both.pem\", client_ca = \"empty.pem\" }", "there is no certificate in it"),
    ] {
        let (code, text) = check(tls);
        assert!(code == Some(1) && text.contains(word) && text.contains("c.toml:4:"), "{tls}: {text}");
    }
}

/// Writes `past.pem` and `future.pem`, chain and key, and `client.pem` and `client.key` whose time is over.
fn out_of_date(folder: &Path) {
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("it can be written");
    let made = |from, until| {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("good names");
        params.not_before = rcgen::date_time_ymd(from, 1, 1);
        params.not_after = rcgen::date_time_ymd(until, 1, 1);
        (params.self_signed(&key).expect("it signs itself").pem(), key.serialize_pem())
    };
    let (cert, key) = made(2000, 2001);
    write("past.pem", &(cert + &key));
    let (cert, key) = made(3000, 3001);
    write("future.pem", &(cert + &key));
    let (cert, key) = made(2000, 2002);
    write("old.pem", &cert);
    write("old.key", &key);
}

#[test]
fn a_check_and_a_start_warn_of_certificates_that_are_out_of_date() {
    let folder = tempfile::TempDir::new().expect("a folder");
    certificates(folder.path());
    out_of_date(folder.path());
    let config = source("in", "tls = { cert = \"past.pem\" }")
        + &source("late", "tls = { cert = \"both.pem\" }")
        + "[http]\nlisten = \"127.0.0.1:0\"\ntls = { cert = \"future.pem\" }\n"
        + &output(
            "o",
            "in\", \"late",
            "tcp://127.0.0.1:9",
            "tls = { ca = \"ca.pem\", cert = \"old.pem\", key = \"old.key\" }",
        );
    std::fs::write(folder.path().join("c.toml"), config).expect("it can be written");
    let mut staunch = Command::new(env!("CARGO_BIN_EXE_staunch"));
    let out = staunch.arg("check").arg("c.toml").current_dir(folder.path()).output().expect("it runs");
    let logged = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{logged}");
    for want in [
        "the certificate of source `in` has expired",
        "past.pem: expired on 2001-01-01 00:00:00 UTC",
        "the certificate of output `o` has expired",
        "old.pem: expired on 2002-01-01 00:00:00 UTC",
        "the certificate of `http` is not valid yet",
        "future.pem: valid from 3000-01-01 00:00:00 UTC",
    ] {
        assert!(logged.contains(want), "{want}: {logged}");
    }
    assert_eq!(logged.matches("warning[C036]").count(), 3, "{logged}");
}

#[test]
fn a_relay_warns_of_a_certificate_that_is_out_of_date_and_starts() {
    let folder = tempfile::TempDir::new().expect("a folder");
    out_of_date(folder.path());
    let text = "listen type linemode transport plain ssl past.pem 127.0.0.1:1 proto tcp;\n\
                cluster a forward 127.0.0.1:2;\nmatch * send to a;\n";
    std::fs::write(folder.path().join("relay.conf"), text).expect("it can be written");
    let mut staunch = Command::new(env!("CARGO_BIN_EXE_staunch"));
    let out = staunch.args(["relay", "-f", "relay.conf", "-tt"]).current_dir(folder.path()).output();
    let out = out.expect("it runs");
    let logged = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
    assert!(out.status.code() == Some(0) && logged.contains("past.pem: expired on 2001-01-01"), "{logged}");
    assert!(logged.contains("relay.conf:1:"), "{logged}");
}

#[test]
fn metrics_tell_when_certificates_expire() {
    let folder = tempfile::TempDir::new().expect("a folder");
    out_of_date(folder.path());
    let cert = folder.path().join("past.pem");
    let config = source("in", &format!("tls = {{ cert = {cert:?} }}"))
        + "[outputs.o]\ntype = \"graphite_file\"\nfrom = [\"in\"]\n";
    let mut daemon = Builder::native(&config).start();
    let metrics = daemon.get("/metrics").body;
    let row = "staunch_source_certificate_expires_in_seconds{source=\"in\"} -";
    assert!(metrics.contains(row), "{metrics}");
    assert!(daemon.stderr().contains("past.pem: expired on 2001-01-01"), "{}", daemon.stderr());
    daemon.stop();
}

#[test]
fn a_protected_daemon_is_reached_by_its_config_alone() {
    let folder = tempfile::TempDir::new().expect("a folder");
    certificates(folder.path());
    std::fs::write(folder.path().join("token"), "0123456789abcdef0123456789abcdef\n").expect("written");
    let file = |name: &str| folder.path().join(name).display().to_string();
    let config = source("in", "")
        + &output("o", "in", "tcp://127.0.0.1:9", "queue = { kind = \"disk\" }")
        + &format!(
            "[http]\nlisten = \"127.0.0.1:0\"\ntoken_file = {:?}\ntls = {{ cert = {:?} }}\n",
            file("token"),
            file("both.pem")
        );
    let builder = Builder::native(&config);
    let place = builder.folder().to_owned();
    let mut daemon = builder.spawn();
    wait_for("the banner", || daemon.stderr().contains("try it").then_some(()));
    let asked = |args: &[&str]| {
        let mut staunch = Command::new(env!("CARGO_BIN_EXE_staunch"));
        let out = staunch.args(args).current_dir(&place).output().expect("it runs");
        let text = [out.stdout, out.stderr].concat();
        (out.status.code(), String::from_utf8_lossy(&text).into_owned())
    };
    let (code, logged) = asked(&["top", "--once", "--json", "--config", "staunch.toml"]);
    assert!(code == Some(0) && logged.contains("\"reachable\":true"), "{logged}");
    let (code, logged) = asked(&["queue", "drop", "o", "--yes", "--config", "staunch.toml"]);
    assert_eq!(code, Some(0), "only the daemon may drop: {logged}");
    // A flag wins over the config.
    std::fs::write(folder.path().join("other"), "ffffffffffffffffffffffffffffffff\n").expect("written");
    let other = file("other");
    let (code, logged) =
        asked(&["queue", "drop", "o", "--yes", "--config", "staunch.toml", "--token-file", &other]);
    assert!(code == Some(2) && logged.contains("is not the daemon's"), "{logged}");
    daemon.stop();
}

#[test]
fn a_relay_shows_files_that_cannot_be_used_where_its_configuration_names_them() {
    let folder = tempfile::TempDir::new().expect("a folder");
    certificates(folder.path());
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("it can be written");
    };
    let both = std::fs::read_to_string(folder.path().join("both.pem")).expect("it is there");
    let cert = &both[both.find("-----BEGIN CERT").expect("it has one")..];
    write(
        "locked.pem",
        &format!("{cert}-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"),
    );
    let old = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,6F\n\nAAAA\n";
    write("oldlocked.pem", &format!("{cert}{old}-----END RSA PRIVATE KEY-----\n"));
    write("half.pem", &both[..both.len() - 40]);
    write("empty.pem", "");
    let relay = |listen: &str, server: &str, flags: &[&str]| {
        write(
            "more.conf",
            &format!("\n  listen type linemode transport gzip {listen} 127.0.0.1:1 proto tcp;\n"),
        );
        write(
            "relay.conf",
            &format!(
                "include more.conf;\ncluster a forward 127.0.0.1:2 transport plain {server};\nmatch * send to a;\n"
            ),
        );
        let mut staunch = Command::new(env!("CARGO_BIN_EXE_staunch"));
        let ran = staunch.args(["relay", "-f", "relay.conf"]).args(flags).current_dir(folder.path()).output();
        let out = ran.expect("it runs");
        let text = [out.stdout, out.stderr].concat();
        (out.status.code(), String::from_utf8_lossy(&text).into_owned())
    };
    let good = "mtls client.pem client.key";
    assert_eq!(relay("ssl both.pem", good, &["-tt", "-C", "ca.pem"]), (Some(0), String::new()));
    let (listener, server) = ("more.conf:2:43", "relay.conf:2:");
    for (listen, to, place, word) in [
        ("ssl nowhere.pem", good, listener, "No such file"),
        ("ssl empty.pem", good, listener, "there is no certificate in it"),
        ("ssl ca.pem", good, listener, "there is no key in it"),
        ("ssl locked.pem", good, listener, "its key is encrypted with a password"),
        ("ssl oldlocked.pem", good, listener, "its key is encrypted with a password"),
        ("ssl half.pem", good, listener, "it is not PEM"),
        ("mtls nowhere.pem", good, "more.conf:2:44", "No such file"),
        ("ssl both.pem", "mtls nowhere.pem client.key", server, "No such file"),
        ("ssl both.pem", "mtls client.pem both.pem", server, "the key is not that of the certificate"),
        ("ssl both.pem", "mtls client.pem ca.pem", server, "there is no key in it"),
    ] {
        // The whole start, and the check before it.
        for mode in [&["-C", "ca.pem"][..], &["-tt", "-C", "ca.pem"]] {
            let (code, text) = relay(listen, to, mode);
            let all = [place, word, "^^^^", "hint: "].iter().all(|wanted| text.contains(wanted));
            assert!(code == Some(1) && all, "{listen} | {to} {mode:?}: {code:?} {text}");
        }
    }
    let (code, text) = relay("mtls both.pem", good, &["-tt"]);
    assert!(code == Some(1) && text.contains("more.conf:2:44") && text.contains("-C FILE"), "{text}");
    let (code, text) = relay("ssl both.pem", good, &["-C", "empty.pem"]);
    assert!(code == Some(1) && text.contains("empty.pem: there is no certificate in it"), "{text}");
    // All of them at once, each where it is named.
    let (_, text) = relay("ssl nowhere.pem", "mtls empty.pem client.key", &["-tt", "-C", "ca.pem"]);
    assert!(text.contains(listener) && text.contains(server) && text.contains("2 errors"), "{text}");
}

#[test]
fn pythons_ssl_is_understood_and_understands() {
    let folder = tempfile::TempDir::new().expect("a folder");
    certificates(folder.path());
    let file = |name: &str| folder.path().join(name).display().to_string();
    let end = FakeGraphite::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let at = listener.local_addr().expect("it is bound");
    drop(listener);
    let config = source("in", &format!("tls = {{ cert = \"{}\" }}\ntransport = \"gzip\"", file("both.pem")))
        + &output("plain", "in", &end.to(), "")
        + &output("tls", "in", &format!("tcp://{at}"), &format!("tls = {{ ca = \"{}\" }}", file("ca.pem")));
    let mut daemon = Builder::native(&config).start();
    let server = "import socket, ssl, sys; socket.setdefaulttimeout(60)\n\
        x = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); x.load_cert_chain('both.pem')\n\
        s = x.wrap_socket(socket.create_server(('127.0.0.1', int(sys.argv[1]))), server_side=True)\n\
        c = s.accept()[0]; t = b''\n\
        while not t.endswith(b'last 1 1700000000\\n') and (b := c.recv(999)): t += b\n\
        sys.stdout.buffer.write(t)";
    let Some(mut server) = python(server, folder.path(), &[&at.port().to_string()]) else { return };
    let client = "import gzip, socket, ssl, sys; socket.setdefaulttimeout(60)\n\
        x = ssl.create_default_context(cafile='ca.pem')\n\
        s = x.wrap_socket(socket.create_connection(('127.0.0.1', int(sys.argv[1]))), server_hostname='carbon.test')\n\
        s.sendall(gzip.compress(b'a 1 1700000000\\n')); s.sendall(gzip.compress(b'last 1 1700000000\\n'))\n\
        s.unwrap()";
    let port = daemon.at("in", "tcp").port().to_string();
    let mut client = python(client, folder.path(), &[&port]).expect("it was there");
    daemon.wait_source("in", "routed", 2);
    // It may not wait for our end: what counts is that all it sent came.
    let _ended = client.wait().expect("it ends");
    let mut printed = String::new();
    server.stdout.take().expect("a pipe").read_to_string(&mut printed).expect("text");
    assert!(server.wait().expect("it ends").success());
    assert_eq!(printed, "a 1 1700000000\nlast 1 1700000000\n");
    daemon.wait_output("plain", "delivered", 2);
    daemon.assert_sums_hold();
    daemon.stop();
}

#[test]
fn replies_to_riemanns_messages_are_encrypted() {
    let folder = tempfile::TempDir::new().expect("a folder");
    certificates(folder.path());
    let file = |name: &str| folder.path().join(name).display().to_string();
    let config = format!(
        "[sources.in]\ntype = \"riemann\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         tls = {{ cert = \"{}\", client_ca = \"{}\" }}\n\
         [outputs.events]\ntype = \"event_file\"\nfrom = [\"in\"]\npath = \"events\"\n",
        file("both.pem"),
        file("ca.pem")
    );
    let mut daemon = Builder::native(&config).start();
    // Messages with an event each, of which the client sends a thousand before it reads; then one that cannot be decoded.
    let client = "import socket, ssl, sys; socket.setdefaulttimeout(60)\n\
        x = ssl.create_default_context(cafile='ca.pem'); x.load_cert_chain('client.pem', 'client.key')\n\
        s = x.wrap_socket(socket.create_connection(('127.0.0.1', int(sys.argv[1]))), server_hostname='carbon.test')\n\
        s.sendall(b'\\0\\0\\0\\x05\\x32\\x03\\x1a\\x01a' * 1000)\n\
        t = b''\n\
        while len(t) < 6000 and (b := s.recv(9999)): t += b\n\
        s.sendall(b'\\0\\0\\0\\0\\0\\0\\0\\3\\x32\\x05x'); t += s.recv(9)\n\
        sys.exit(t != b'\\0\\0\\0\\2\\x10\\1' * 1001)";
    let port = daemon.at("in", "tcp").port().to_string();
    let Some(mut client) = python(client, folder.path(), &[&port]) else { return };
    assert!(client.wait().expect("it ends").success());
    daemon.wait_source("in", "routed", 1000);
    daemon.wait_source("in", "losses/rejected/bad_message", 1);
    daemon.assert_sums_hold();
    daemon.stop();
}

/// All places of one peer (`HANDSHAKES_PER_PEER_MAX`).
const SILENT: u64 = 256;

#[test]
#[cfg(target_os = "linux")]
fn handshakes_that_one_address_never_ends_keep_no_other_waiting() {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, ServerName};

    let folder = tempfile::TempDir::new().expect("a folder");
    certificates(folder.path());
    let tls = format!(
        "max_connections = 1000\nmax_connections_per_peer = 900\ntls = {{ cert = \"{}\" }}",
        folder.path().join("both.pem").display()
    );
    let end = FakeGraphite::new();
    let mut daemon = Builder::native(&(source("in", &tls) + &output("o", "in", &end.to(), ""))).start();
    let at = daemon.at("in", "tcp");
    let silent: Vec<TcpStream> = (0..SILENT)
        .map(|_| {
            let mut stream = TcpStream::connect(at).expect("it listens");
            stream.write_all(&[0x16]).expect("it is open");
            stream
        })
        .collect();
    daemon.wait_source("in", "connections_open", SILENT);
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
    socket.bind(&SocketAddr::from(([127, 0, 0, 2], 0)).into()).expect("it is this machine's");
    socket.connect(&at.into()).expect("it listens");
    let mut roots = rustls::RootCertStore::empty();
    let ca = CertificateDer::from_pem_file(folder.path().join("ca.pem")).expect("a certificate");
    roots.add(ca).expect("an authority");
    let config = rustls::ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .expect("known versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("127.0.0.1").expect("an address");
    let client = rustls::ClientConnection::new(config.into(), name).expect("a good config");
    let mut client = rustls::StreamOwned::new(client, TcpStream::from(socket));
    client.write_all(b"web.load 1 1700000000\n").expect("its handshake is served");
    client.flush().expect("it is open");
    daemon.wait_source("in", "received", 1);
    // Nobody had to end for it, as they do after ten seconds.
    assert_eq!(crate::support::Daemon::number(&daemon.source("in"), "handshakes_failed"), 0);
    drop(silent);
    daemon.wait_source("in", "handshakes_failed", SILENT);
    daemon.stop();
}

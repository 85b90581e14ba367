//! Health checks of endpoints (spec statsd §13, §14 R8).
//!
//! Each output with a check has one task: it checks at once and then every `every_ms`, publishes the result in the
//! outlet, and reports it to the transform that shards lines among the endpoints of a cluster. Not here: how many
//! results change the state (`process::sharding::Health`), the meaning of a reply (`wire::management`).

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use config::plan::{CheckKind, CheckPlan, Endpoint};
use http_body_util::Empty;
use hyper::Request;
use hyper::body::Bytes;
use hyper::header::{HOST, USER_AGENT};
use hyper_util::rt::TokioIo;
use model::OutputId;
use process::sharding::{Health, HealthChange};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use wire::management::{HEALTH_REPLY_BYTES_MAX, HEALTH_REQUEST, health_reply};

use crate::daemon::outlet::{CheckState, Outlet, is_retired};
use crate::daemon::shared::Shared;
use crate::outputs::addresses::names::{Following, Names};
use crate::outputs::socket::tcp;
use sys::clock::Clock;

/// Why a check failed.
#[derive(Debug)]
enum Trouble {
    /// The host name has no address.
    Unresolved(String),
    /// The connection failed or broke.
    Connection(io::Error),
    /// No reply within the interval.
    Timeout,
    /// A negative or invalid reply.
    Answer(String),
}

impl Trouble {
    /// The name in the API.
    fn word(&self) -> &'static str {
        match self {
            Trouble::Unresolved(_) => "check_unresolved",
            Trouble::Connection(_) => "check_failed",
            Trouble::Timeout => "check_timeout",
            Trouble::Answer(_) => "check_answer",
        }
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trouble::Unresolved(words) => f.write_str(words),
            Trouble::Connection(error) => error.fmt(f),
            Trouble::Timeout => f.write_str("no answer in time"),
            Trouble::Answer(answer) => write!(f, "it answered {answer:?}"),
        }
    }
}

/// Starts the checks of every output that has one and is not checked yet: at the start, and after a reload.
pub fn spawn(tasks: &mut JoinSet<()>, shared: &Arc<Shared>) {
    let wiring = shared.wiring.load();
    for (at, plan) in wiring.plan.outputs.iter().enumerate() {
        let outlet = &wiring.outlets[at];
        if plan.check.is_none() || is_retired(plan) || !outlet.begin_checks() {
            continue;
        }
        let id = OutputId(at as u16);
        let (plans, shard, sender) = (Arc::clone(shared), shared.shard.clone(), Arc::clone(outlet));
        let plan = move || {
            let wiring = plans.wiring.load();
            let plan = &wiring.plan.outputs[id.index()];
            plan.check.clone().filter(|_| !is_retired(plan))
        };
        let on_health = move |live| {
            if sender.is_watched() {
                // The output reports the combined result of its check and its sender.
                return;
            }
            // The result is not needed: it would only say whether the sharding changed.
            drop(shard.call(move |worker| worker.turn.shard.set_member_live(id, live)));
        };
        tasks.spawn(run(plan, Arc::clone(outlet), Arc::clone(&shared.directory.names), on_health));
    }
}

/// Checks one endpoint as long as `plan` returns a plan. After each check, calls `on_health` with whether it is up.
async fn run(
    plan: impl Fn() -> Option<CheckPlan>,
    outlet: Arc<Outlet>,
    names: Arc<Names>,
    on_health: impl Fn(bool),
) {
    let mut target: Option<(Endpoint, Following)> = None;
    let mut health = None;
    let mut every: Option<(u64, tokio::time::Interval)> = None;
    while let Some(plan) = plan() {
        let ticks = match &mut every {
            Some((ms, ticks)) if *ms == plan.every_ms => ticks,
            other => &mut other.insert((plan.every_ms, ticks(plan.every_ms))).1,
        };
        // The first tick is immediate.
        ticks.tick().await;
        let following = match &mut target {
            Some((at, following)) if *at == plan.at => following,
            other => {
                let following = names.follow(&plan.at.host, plan.at.port);
                &mut other.insert((plan.at.clone(), following)).1
            }
        };
        let checked =
            tokio::time::timeout(Duration::from_millis(plan.every_ms), check(&plan.kind, following));
        let result = checked.await.unwrap_or(Err(Trouble::Timeout));
        let health = health.get_or_insert_with(|| Health::new(plan.health));
        health.replan(plan.health);
        tell(&outlet, &plan.at, health.checked(result.is_ok()), result.as_ref().err());
        let failure = result.err().map(|trouble| {
            outlet.set_error_words(trouble.word(), Some(&trouble.to_string()));
            trouble.word()
        });
        outlet.set_checked(CheckState { up: health.is_up(), failure }, Clock::now());
        on_health(health.is_up());
    }
    outlet.end_checks();
    // Without checks, an endpoint counts as up.
    on_health(true);
}

fn ticks(every_ms: u64) -> tokio::time::Interval {
    let mut ticks = tokio::time::interval(Duration::from_millis(every_ms.max(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// One log line for a change.
fn tell(outlet: &Outlet, at: &Endpoint, change: Option<HealthChange>, trouble: Option<&Trouble>) {
    let (name, host, port) = (&outlet.name, &at.host, at.port);
    match (change, trouble) {
        (Some(HealthChange::Down), Some(trouble)) => {
            tracing::warn!("output `{name}`: health check at {host}:{port} failed ({trouble})");
        }
        (Some(HealthChange::Up), _) => {
            tracing::info!("output `{name}`: health check at {host}:{port} succeeds again");
        }
        _ => {}
    }
}

async fn check(kind: &CheckKind, following: &mut Following) -> Result<(), Trouble> {
    let addresses = loop {
        let answer = following.answer();
        match answer.trouble {
            _ if !answer.addresses.is_empty() => break answer.addresses,
            Some(words) => return Err(Trouble::Unresolved(words)),
            None => following.changed().await,
        }
    };
    let mut stream = tcp(&*addresses).await.map_err(Trouble::Connection)?;
    match kind {
        CheckKind::Connect => Ok(()),
        CheckKind::Management => ask_management(&mut stream).await,
        CheckKind::Http(path) => ask_http(stream, path, addresses[0]).await,
    }
}

/// `health`, as sent by node's cluster proxy.
async fn ask_management(stream: &mut TcpStream) -> Result<(), Trouble> {
    stream.write_all(HEALTH_REQUEST).await.map_err(Trouble::Connection)?;
    let answer = read_until(stream, HEALTH_REPLY_BYTES_MAX, |answer| health_reply(answer).is_some()).await?;
    match health_reply(&answer) {
        Some(true) => Ok(()),
        _ => Err(said(&answer)),
    }
}

/// A GET; only the status of the response counts.
async fn ask_http(stream: TcpStream, path: &str, host: SocketAddr) -> Result<(), Trouble> {
    let broken = |error: hyper::Error| match error.is_parse() {
        true => Trouble::Answer("no HTTP".into()),
        false => Trouble::Connection(io::Error::other(error)),
    };
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    // It ends with this check, also when the check is cancelled.
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let request = Request::get(path).header(HOST, host.to_string()).header(USER_AGENT, "staunch");
    let request = request.body(Empty::<Bytes>::new()).map_err(|error| Trouble::Answer(error.to_string()))?;
    let status = sender.send_request(request).await.map_err(broken)?.status();
    if status.is_success() { Ok(()) } else { Err(Trouble::Answer(status.to_string())) }
}

/// Reads until `done`, `bytes_max` or the end.
async fn read_until(
    stream: &mut TcpStream,
    bytes_max: usize,
    done: impl Fn(&[u8]) -> bool,
) -> Result<Vec<u8>, Trouble> {
    let mut answer = Vec::new();
    let mut part = [0; 512];
    while answer.len() < bytes_max && !done(&answer) {
        match stream.read(&mut part).await.map_err(Trouble::Connection)? {
            0 => break,
            len => answer.extend_from_slice(&part[..len]),
        }
    }
    answer.truncate(bytes_max);
    Ok(answer)
}

/// The first line of a reply, cut for a log line.
fn said(answer: &[u8]) -> Trouble {
    const SHOWN_BYTES_MAX: usize = 80;
    let line = answer.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
    Trouble::Answer(String::from_utf8_lossy(&line[..line.len().min(SHOWN_BYTES_MAX)]).into_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use deliver::plan::QueueLimits;
    use model::OutputAccount;
    use process::sharding::HealthPlan;
    use tokio::net::TcpListener;
    use tokio::sync::mpsc;

    use super::*;

    /// Replies to every connection: reads a little, then replies; `None` for silence.
    async fn server(answer: Arc<Mutex<Option<&'static [u8]>>>) -> Endpoint {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        tokio::spawn(async move {
            let mut silent = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let answer = *answer.lock().expect("nobody panics with it");
                let Some(answer) = answer else {
                    silent.push(stream);
                    continue;
                };
                let mut request = [0; 300];
                let _len = stream.read(&mut request).await;
                let _gone = stream.write_all(answer).await;
            }
        });
        Endpoint { host: "127.0.0.1".into(), port }
    }

    #[tokio::test]
    async fn each_kind_of_check_distinguishes_success_from_failure() {
        let http = CheckKind::Http("/healthz".into());
        type Row<'a> = (&'a CheckKind, Option<&'static [u8]>, Result<(), &'a str>);
        let table: &[Row<'_>] = &[
            (&CheckKind::Connect, None, Ok(())),
            (&CheckKind::Management, Some(b"health: up\n"), Ok(())),
            (&CheckKind::Management, Some(b"health: down\n"), Err("check_answer")),
            (&CheckKind::Management, Some(b""), Err("check_answer")),
            (&CheckKind::Management, None, Err("check_timeout")),
            (&http, Some(b"HTTP/1.1 200 OK\r\n\r\nok"), Ok(())),
            (&http, Some(b"HTTP/1.1 204 No Content\r\n\r\n"), Ok(())),
            (&http, Some(b"HTTP/1.1 503 Service Unavailable\r\n\r\n"), Err("check_answer")),
            (&http, Some(b"HTTP/1.1 301 Moved\r\nLocation: /\r\n\r\n"), Err("check_answer")),
            (&http, Some(b"SSH-2.0-OpenSSH\r\n"), Err("check_answer")),
        ];
        let names = Arc::new(Names::of_system());
        for (kind, answer, want) in table {
            let at = server(Arc::new(Mutex::new(*answer))).await;
            let mut following = names.follow(&at.host, at.port);
            // Silence needs the timeout; for a reply, the timeout is far longer than needed.
            let patience = Duration::from_millis(if answer.is_none() { 200 } else { 30_000 });
            let checked = tokio::time::timeout(patience, check(kind, &mut following)).await;
            let result = checked.unwrap_or(Err(Trouble::Timeout)).map_err(|trouble| trouble.word());
            assert_eq!(result, *want, "{kind:?} {answer:?}");
        }
        let closed = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let mut following = names.follow("127.0.0.1", closed.expect("a free port").port());
        let refused = check(&CheckKind::Connect, &mut following).await.map_err(|trouble| trouble.word());
        assert_eq!(refused, Err("check_failed"));
    }

    #[tokio::test]
    async fn an_endpoint_goes_down_comes_up_and_is_no_longer_checked() {
        let answer = Arc::new(Mutex::new(Some(&b"health: up\n"[..])));
        let at = server(Arc::clone(&answer)).await;
        let health = HealthPlan::new(2, 2, 2).expect("a valid plan");
        let plan = CheckPlan { kind: CheckKind::Management, at, every_ms: 200, health };
        let plan = Arc::new(Mutex::new(Some(plan)));
        let outlet = Arc::new(Outlet::new("o", QueueLimits::default(), &Arc::new(OutputAccount::default())));
        let (sender, mut receiver) = mpsc::channel(100);
        let plans = Arc::clone(&plan);
        let plan_now = move || plans.lock().expect("nobody panics with it").clone();
        let on_health = move |live| {
            // A full channel means that the test does not read it any more.
            let _full = sender.try_send(live);
        };
        let names = Arc::new(Names::of_system());
        assert!(outlet.begin_checks() && !outlet.begin_checks(), "one task at a time");
        let running = tokio::spawn(run(plan_now, Arc::clone(&outlet), names, on_health));
        let mut until = async |want| {
            let seen = async { while receiver.recv().await.expect("it runs") != want {} };
            tokio::time::timeout(Duration::from_secs(30), seen).await.expect("in time");
        };
        until(true).await;
        *answer.lock().expect("nobody panics with it") = Some(b"health: down\n");
        until(false).await;
        let shown = outlet.shown(Clock::now());
        // On a very slow machine, even a valid reply may be too late.
        assert!(
            shown.word == "down" && ["check_answer", "check_timeout"].contains(&shown.last_error),
            "{shown:?}"
        );
        *answer.lock().expect("nobody panics with it") = Some(b"health: up\n");
        until(true).await;
        *answer.lock().expect("nobody panics with it") = Some(b"health: down\n");
        until(false).await;
        *plan.lock().expect("nobody panics with it") = None;
        until(true).await;
        tokio::time::timeout(Duration::from_secs(30), running).await.expect("in time").expect("no panic");
        assert_eq!(outlet.shown(Clock::now()).word, "new", "without checks there is nothing known");
        assert!(outlet.begin_checks());
    }
}

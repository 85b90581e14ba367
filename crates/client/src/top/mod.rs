//! `staunch top`: a running daemon in a terminal, once a second, by its HTTP API and nothing else.
//!
//! Path of a figure: [`api_client::look`] (`/api/v1/accounts`, `/api/v1/relay`) -> [`sample::Tracker`] (two documents give rates)
//! -> one line of JSON, or [`screen::draw`] on the terminal of [`terminal`]. All but the first and the last are pure.
//! Not here: any other way into the daemon, and anything that changes it.
//! Invariant: however it ends, the terminal is as it was.

mod about;
pub(crate) mod api_client;
pub(crate) mod document;
pub mod figure;
pub(crate) mod relays;
pub(crate) mod sample;
pub(crate) mod screen;
pub(crate) mod terminal;
pub(crate) mod totals;
pub(crate) mod view;

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use self::sample::{Sample, Tracker};
use self::terminal::{Keys, Screen};
use self::totals::Totals;
use self::view::{Shown, View};
use crate::api_client::Server;
use crate::args::TopArgs;
use crate::{ReadPlan, stdio};
use sys::clock::Clock;

/// Pause between two looks.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Looks that wait to be shown: the one after that waits for the screen.
const LOOKS_WAITING_MAX: usize = 1;

/// `staunch top`. On a terminal it runs until a key or `stop` ends it.
///
/// # Errors
/// When the config cannot be used, the terminal or stdout cannot be written to, or with `once` when the daemon does not answer.
pub fn run<S: Future<Output = ()>>(
    args: TopArgs,
    read_plan: ReadPlan<'_>,
    stop: impl FnOnce() -> io::Result<S>,
) -> anyhow::Result<ExitCode> {
    let (json, once_only) = (args.json, args.once);
    let hint = args.daemon.hint("top");
    let server = args.daemon.server(read_plan)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime for HTTP")?;
    runtime.block_on(async {
        match (once_only, json) {
            (true, json) => once(&server, json, &hint).await,
            // A pipe has no screen to draw on.
            (false, json) if json || !io::stdout().is_terminal() => lines(&server).await,
            (false, _) => watch(&server, stop).await,
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Two looks, because one has no rates.
async fn once(server: &Server, json: bool, hint: &str) -> anyhow::Result<()> {
    let mut tracker = Tracker::new(&server.at);
    tracker.take(Ok(asked(server, hint).await?), Clock::now());
    tokio::time::sleep(LOOK_EVERY).await;
    let sample = tracker.take(Ok(asked(server, hint).await?), Clock::now());
    if json {
        stdio::data(&line(&sample)?)?;
    } else {
        let mut shown = Shown::new(&server.at, View::default());
        shown.take(sample);
        let ((columns, rows), last) = (terminal::size(), last_words(&shown));
        // All of it is to be seen.
        let rows = rows.saturating_sub(last.lines().count() as u16);
        stdio::data((screen::text(&shown, (columns, rows)) + &last).as_bytes())?;
    }
    Ok(())
}

async fn asked(server: &Server, hint: &str) -> anyhow::Result<document::Document> {
    api_client::look(server).await.map_err(|why| no_daemon(server, &why, hint))
}

/// Nobody answers at an address: what happened, and what to try.
pub(crate) fn no_daemon(server: &Server, why: &str, hint: &str) -> anyhow::Error {
    anyhow::anyhow!("no daemon answers at {}: {why}\n{}", stdio::shown(&server.at), hint.trim_end())
}

/// A line of JSON for each look, until nobody reads them any more.
async fn lines(server: &Server) -> anyhow::Result<()> {
    let (mut looks, _asking) = start_asking(server);
    while let Some(sample) = looks.recv().await {
        if !stdio::data(&line(&sample)?)? {
            break;
        }
    }
    Ok(())
}

fn line(sample: &Sample) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(sample)?;
    line.push(b'\n');
    Ok(line)
}

async fn watch<S: Future<Output = ()>>(
    server: &Server,
    stop: impl FnOnce() -> io::Result<S>,
) -> anyhow::Result<()> {
    let mut stop = std::pin::pin!(stop()?);
    let mut shown = Shown::new(&server.at, View { colour: stdio::wants_colour(true), ..View::default() });
    let (mut looks, _asking) = start_asking(server);
    let mut screen = Screen::open().context("cannot use the terminal")?;
    let mut keys = Keys::listen();
    loop {
        screen.show(&shown).context("cannot draw on the terminal")?;
        // All branches are cancel-safe: what is not taken now is taken in the next turn.
        tokio::select! {
            biased;
            () = &mut stop => break,
            key = keys.next() => if !shown.press(key) { break },
            Some(sample) = looks.recv() => shown.take(sample),
        }
    }
    // The terminal is as it was before something is written that stays. It may be gone.
    drop(screen);
    let _gone = stdio::data(last_words(&shown).as_bytes());
    Ok(())
}

/// What was counted and lost, as far as it was seen.
fn last_words(shown: &Shown) -> String {
    let totals = shown.sample.as_ref().and_then(|sample| sample.totals.as_ref());
    totals.map(Totals::text).unwrap_or_default()
}

/// Looks at the daemon once a second, for as long as the set lives. An answer that takes longer delays the next look.
fn start_asking(server: &Server) -> (mpsc::Receiver<Sample>, JoinSet<()>) {
    let (samples, looks) = mpsc::channel(LOOKS_WAITING_MAX);
    let mut asking = JoinSet::new();
    let mut tracker = Tracker::new(&server.at);
    let server = server.clone();
    asking.spawn(async move {
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let seen = api_client::look(&server).await;
            if samples.send(tracker.take(seen, Clock::now())).await.is_err() {
                return;
            }
        }
    });
    (looks, asking)
}

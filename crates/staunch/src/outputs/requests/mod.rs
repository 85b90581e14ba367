//! Outputs that send requests and wait for the answers: drives the sender of one endpoint.
//!
//! Path of a packet: `Outlet` -> `RequestSender::poll` -> **[`run`]** -> [`Peer::send`] -> `RequestSender::on_answer`. Not here:
//! batches, retries and outcomes (`deliver::request`), the protocols (`http`, `mail`, `riemann`).
//! Invariant: the queue's lock is taken for polls only, and never while a request runs.

mod connecting;
pub mod http;
pub mod mail;
pub mod riemann;
mod sent;

use std::sync::Arc;
use std::time::Duration;

use config::plan::RequestForm;
use deliver::plan::{BatchPlan, SenderPlan};
use deliver::request::{Answer, RequestAction, RequestSender};
use model::{OutputId, SECOND_NS};

use self::http::HttpPeer;
use self::mail::MailPeer;
use self::riemann::RiemannPeer;
use self::sent::Sent;
use crate::daemon::outlet::Outlet;
use crate::daemon::shared::Shared;
use crate::outputs::addresses::locator::Locator;
use crate::outputs::progress::{end, publish, worked};
use crate::outputs::telling::Teller;
use sys::clock::Clock;

/// Longest sleep; an event wakes the task before.
const NAP: Duration = Duration::from_secs(60);

/// A line about rejected records is logged at most once in this time.
const REJECTIONS_NS: u64 = 60 * SECOND_NS;

/// The client of an endpoint, by protocol.
pub enum Peer {
    /// Of HTTP.
    Http(Box<HttpPeer>),
    /// Of SMTP.
    Mail(Box<MailPeer>),
    /// Of another Riemann.
    Riemann(Box<RiemannPeer>),
}

impl Peer {
    /// Not connected yet.
    pub fn new(form: RequestForm<'_>, of: (Arc<Shared>, OutputId)) -> Peer {
        match form {
            RequestForm::Http(plan) => Peer::Http(Box::new(HttpPeer::new(plan, of))),
            RequestForm::Mail(plan) => Peer::Mail(Box::new(MailPeer::new(plan, of))),
            RequestForm::Riemann(plan) => Peer::Riemann(Box::new(RiemannPeer::new(plan, of))),
        }
    }

    /// Sends the first of `lines`, which are at least one. A dropped future leaves no connection behind that would be used again.
    async fn send(&mut self, lines: &[&[u8]], locator: &mut Locator) -> Sent {
        match self {
            Peer::Http(http) => http.send(lines, locator).await,
            Peer::Mail(mail) => mail.send(lines, locator).await,
            Peer::Riemann(riemann) => riemann.send(lines, locator).await,
        }
    }

    /// The endpoint's name in logs.
    fn place(&self) -> String {
        match self {
            Peer::Http(http) => http.place(),
            Peer::Mail(mail) => mail.place(),
            Peer::Riemann(riemann) => riemann.place(),
        }
    }
}

/// Logs what an endpoint rejected, but not each time.
#[derive(Default)]
struct Rejections {
    records: u64,
    logged_ns: Option<u64>,
}

impl Rejections {
    fn note(&mut self, sent: &Sent, outlet: &Outlet) {
        self.records += u64::from(sent.records);
        let now_ns = Clock::mono_ns();
        if self.logged_ns.is_some_and(|logged_ns| now_ns < logged_ns + REJECTIONS_NS) {
            return;
        }
        self.logged_ns = Some(now_ns);
        let records = client::stdio::records(std::mem::take(&mut self.records));
        let words = sent.words.as_deref().unwrap_or("without a reason");
        tracing::warn!("output `{}`: the endpoint rejected {records}: {words}", outlet.name);
    }
}

/// Drives the sender of one endpoint until its outlet stops.
pub async fn run(
    mut locator: Locator,
    (plan, batch): (SenderPlan, BatchPlan),
    peer: &mut Peer,
    outlet: Arc<Outlet>,
    seed: u64,
) {
    let mut sender = RequestSender::new(plan, batch, Arc::clone(&outlet.account), seed);
    let mut teller = Teller::new(peer.place());
    let mut rejections = Rejections::default();
    while !sender.stopped() {
        if let Some(deadline_ns) = deadline_ns(&outlet) {
            sender.begin_stop(deadline_ns);
        }
        let action = sender.poll(&mut *outlet.queue(), Clock::now());
        publish(&outlet, 0, sender.waiting_copies(), sender.queued_bytes(), sender.state());
        let mut words = None;
        match action {
            RequestAction::Send => {
                let since_ns = Clock::mono_ns();
                // A request that is cut off may have arrived: its records go back to the queue.
                let lines = sender.lines();
                let sent = tokio::select! {
                    sent = peer.send(&lines, &mut locator) => Some(sent),
                    () = cut_off(&outlet) => None,
                };
                drop(lines);
                worked(&outlet, since_ns);
                if let Some(sent) = sent {
                    if sent.is_doubled {
                        sender.in_doubt(sent.records);
                    }
                    sender.on_answer(sent.records, sent.answer, Clock::now());
                    if sent.answer == Answer::Rejected {
                        rejections.note(&sent, &outlet);
                    }
                    words = sent.words;
                }
            }
            RequestAction::WaitUntil(at_ns) => {
                let pause = Duration::from_nanos(at_ns.saturating_sub(Clock::mono_ns()));
                rest(&outlet, pause.min(NAP)).await;
            }
            RequestAction::Idle if sender.stopped() => {}
            RequestAction::Idle => rest(&outlet, NAP).await,
        }
        teller.look(&outlet, sender.state(), |_failure| words.take());
        while let Some(change) = sender.take_state_change() {
            teller.tell(&outlet, change);
        }
        publish(&outlet, 0, sender.waiting_copies(), sender.queued_bytes(), sender.state());
    }
    sender.finish_stop(&mut *outlet.queue(), Clock::now());
    end(&outlet, 0, sender.state());
}

async fn rest(outlet: &Outlet, at_most: Duration) {
    // Both branches are cancel-safe: they only wait.
    tokio::select! {
        () = outlet.woken(0) => {}
        () = tokio::time::sleep(at_most) => {}
    }
}

/// When the output has to end; none while it goes on.
fn deadline_ns(outlet: &Outlet) -> Option<u64> {
    outlet.is_stopping().then(|| outlet.leaves_by_ns().unwrap_or_else(|| outlet.deadline_ns(0)))
}

/// Resolves when a request may take no longer, because the output has to end. Cancel-safe.
async fn cut_off(outlet: &Outlet) {
    loop {
        let Some(deadline_ns) = deadline_ns(outlet) else {
            outlet.woken(0).await;
            continue;
        };
        let left_ns = deadline_ns.saturating_sub(Clock::mono_ns());
        if left_ns == 0 {
            return;
        }
        rest(outlet, Duration::from_nanos(left_ns).min(NAP)).await;
    }
}

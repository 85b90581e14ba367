//! The StatsD management port (spec statsd §11): health checks and scripts that exist work as they are.
//!
//! Path of a command: [`serve`] -> `wire::management` -> a call into the shard -> the reply.
//! Dumps are made page by page, so that a large one does not make receiving wait.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use config::plan::{ManagementPlan, ManagementReplies, OutputKind};
use model::Kind;
use pipeline::OutputFigures;
use process::aggregate::Current;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use wire::management::{
    COMMAND_BYTES_MAX, Command, Commands, Dump, Form, Names, Pattern, ProxyCommand, ProxyReplies, Replies,
    TargetFigures,
};

use crate::admin::accounts;
use crate::clock::Clock;
use crate::daemon::descriptors;
use crate::daemon::shared::Shared;

/// Silence after which a command without LF counts: health checkers that send none exist.
const SILENCE: Duration = Duration::from_millis(50);

/// Most clients at once.
const CLIENTS_MAX: usize = 256;

/// A client that sends nothing for so long is closed.
const IDLE: Duration = Duration::from_secs(600);

/// Series of one page of a dump.
const PAGE_SERIES: usize = 2_000;

/// Serves until `stop` turns true.
pub async fn serve(
    listener: TcpListener,
    plan: ManagementPlan,
    shared: Arc<Shared>,
    mut stop: watch::Receiver<bool>,
) {
    let mut clients = JoinSet::new();
    loop {
        // All branches are cancel-safe.
        let accepted = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            Some(_ended) = clients.join_next(), if !clients.is_empty() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) if clients.len() < CLIENTS_MAX => {
                let Some(permit) = descriptors::try_take(descriptors::Kind::Management) else {
                    tracing::debug!("no descriptor for another management client: it was turned away");
                    continue;
                };
                let client = Client { plan: in_force(&plan, &shared), shared: Arc::clone(&shared) };
                clients.spawn(async move {
                    let _permit = permit;
                    if let Err(error) = client.run(stream).await {
                        tracing::debug!("management client: {error}");
                    }
                });
            }
            Ok(_) => tracing::debug!("more than {CLIENTS_MAX} management clients: one was turned away"),
            Err(error) => {
                tracing::debug!("management: accept: {error}");
                tokio::time::sleep(SILENCE).await;
            }
        }
    }
}

/// What the plan in force says of the port that was opened as `opened` says: a reload may have changed the rest.
fn in_force(opened: &ManagementPlan, shared: &Shared) -> ManagementPlan {
    let wiring = shared.wiring.load();
    let same = wiring.plan.management.iter().find(|port| port.listen == opened.listen);
    same.unwrap_or(opened).clone()
}

struct Client {
    plan: ManagementPlan,
    shared: Arc<Shared>,
}

/// Whether the client stays.
#[derive(PartialEq, Eq)]
enum Next {
    Stay,
    Close,
}

impl Client {
    async fn run(self, mut stream: TcpStream) -> io::Result<()> {
        let mut commands = Commands::new(COMMAND_BYTES_MAX);
        let mut buffer = [0; 4096];
        loop {
            let patience = if commands.has_unterminated() { SILENCE } else { IDLE };
            let mut whole: Vec<Vec<u8>> = Vec::new();
            let mut ended = false;
            match tokio::time::timeout(patience, stream.read(&mut buffer)).await {
                Err(_silence) if commands.has_unterminated() => whole.extend(commands.take_unterminated()),
                Err(_idle) => return Ok(()),
                Ok(read) => {
                    let len = read?;
                    ended = len == 0;
                    commands.push(&buffer[..len], |command| whole.push(command.to_vec()));
                    if ended {
                        whole.extend(commands.take_unterminated());
                    }
                }
            }
            for command in whole {
                let mut reply = Vec::new();
                let next = self.answer(&command, &mut reply).await;
                stream.write_all(&reply).await?;
                if next == Next::Close {
                    return Ok(());
                }
            }
            if ended {
                return Ok(());
            }
        }
    }

    fn form(&self) -> Form {
        match self.plan.replies {
            ManagementReplies::Node | ManagementReplies::Proxy { .. } => Form::Node,
            ManagementReplies::Perl => Form::Perl,
        }
    }

    async fn answer(&self, command: &[u8], out: &mut Vec<u8>) -> Next {
        if let ManagementReplies::Proxy { cluster } = self.plan.replies {
            return self.answer_as_proxy(cluster, command, out).await;
        }
        let form = self.form();
        let replies = Replies::new(form);
        match Command::parse(form, command) {
            Command::Help => replies.help(out),
            Command::Stats => self.stats(replies, out).await,
            Command::Dump { kind, json } => self.dump(kind, json, out).await,
            Command::Delete { .. } if self.plan.read_only => replies.error(out),
            Command::Delete { kind, names } => self.delete(kind, names, out).await,
            Command::Health { set } => self.health(set, replies, out),
            Command::Config => self.config(replies, out),
            Command::Targets => self.targets(replies, out),
            Command::Drops => self.drops(replies, out),
            Command::Quit => return Next::Close,
            Command::Unknown => replies.error(out),
        }
        Next::Stay
    }

    /// The commands of node's cluster proxy (spec statsd §13).
    async fn answer_as_proxy(&self, cluster: usize, command: &[u8], out: &mut Vec<u8>) -> Next {
        let replies = ProxyReplies.node();
        match ProxyCommand::parse(command) {
            ProxyCommand::Help => ProxyReplies.help(out),
            ProxyCommand::Health { set } => self.health(set, replies, out),
            ProxyCommand::Status => {
                let live = self.shared.live_labels(cluster).await;
                ProxyReplies.status(self.shared.uptime_s(), live.iter().map(String::as_str), out);
            }
            ProxyCommand::Config => self.config(replies, out),
            ProxyCommand::Targets => self.targets(replies, out),
            ProxyCommand::Drops => self.drops(replies, out),
            ProxyCommand::Quit => return Next::Close,
            ProxyCommand::Unknown => replies.error(out),
        }
        Next::Stay
    }

    fn health(&self, set: Option<bool>, replies: Replies, out: &mut Vec<u8>) {
        if let Some(up) = set {
            self.shared.healthy.store(up, Relaxed);
        }
        replies.health(self.shared.healthy.load(Relaxed), out);
    }

    fn config(&self, replies: Replies, out: &mut Vec<u8>) {
        replies.config(self.plan.config.iter().map(|(key, value)| (key.as_str(), value.as_str())), out);
    }

    async fn stats(&self, replies: Replies, out: &mut Vec<u8>) {
        let now = Clock::now();
        let started_s = now.wall_seconds() - self.shared.uptime_s().min(now.wall_seconds());
        let wiring = self.shared.wiring.load_full();
        let accounts: Vec<_> = wiring.accounts.sources().map(|(_, _, account)| account).collect();
        let last_s = accounts.iter().map(|account| account.last_packet_s.load(Relaxed)).max().unwrap_or(0);
        let bad = accounts.iter().map(|account| account.sum(0).rejected).sum();
        replies.stats_begin(
            self.shared.uptime_s(),
            now.wall_seconds().saturating_sub(last_s.max(started_s)),
            bad,
            out,
        );
        // Gone only while stopping: then there are no figures of outputs.
        let figures =
            self.shared.shard.call(|worker| worker.shard.output_figures()).await.unwrap_or_default();
        for figures in figures {
            let plan = &wiring.plan.outputs[figures.output.index()];
            if plan.from.is_empty() {
                continue;
            }
            let last_exception_s = wiring.outlets[figures.output.index()].account.last_error_s.load(Relaxed);
            let moments = Moments { started_s, last_exception_s, now_s: now.wall_seconds() };
            backend_stats(replies, self.form(), &plan.kind, figures, moments, out);
        }
        replies.end(out);
    }

    async fn dump(&self, kind: Kind, json: bool, out: &mut Vec<u8>) {
        let mut dump = Dump::begin(json, out);
        let mut cursor = Some((0, 0));
        while let Some(from) = cursor {
            // Values are copied out on the shard's thread, a page at a time, and written here.
            let page = self.shared.shard.call(move |worker| {
                let mut rows: Vec<(Vec<u8>, Held)> = Vec::new();
                let next = worker.shard.visit(kind, from, PAGE_SERIES, |series, current| {
                    let mut name = series.name.to_vec();
                    if !series.tags.is_empty() {
                        name.push(b';');
                        name.extend_from_slice(series.tags);
                    }
                    rows.push((name, Held::of(&current)));
                });
                (rows, next)
            });
            let Ok((rows, next)) = page.await else { break };
            for (name, held) in rows {
                match held {
                    Held::Number(value) => dump.number(&name, value, out),
                    Held::Numbers(values) => dump.numbers(&name, &values, out),
                    Held::Texts(members) => dump.texts(&name, members.iter().map(Vec::as_slice), out),
                }
            }
            cursor = next;
        }
        dump.end(out);
    }

    async fn delete(&self, kind: Kind, names: Names<'_>, out: &mut Vec<u8>) {
        let form = self.form();
        let replies = Replies::new(form);
        for name in names.iter() {
            let owned = name.to_vec();
            let deleted = self.shared.shard.call(move |worker| {
                let mut deleted: Vec<Vec<u8>> = Vec::new();
                match Pattern::of(form, &owned) {
                    Pattern::Exact(name) => {
                        if worker.shard.delete(kind, name) {
                            deleted.push(name.to_vec());
                        }
                    }
                    Pattern::Prefix(prefix) => {
                        worker.shard.delete_prefix(kind, prefix, |name| deleted.push(name.to_vec()));
                    }
                }
                deleted
            });
            let deleted = deleted.await.unwrap_or_default();
            if deleted.is_empty() {
                replies.not_found(name, out);
            }
            deleted.iter().for_each(|name| replies.deleted(name, out));
        }
        replies.delete_end(out);
    }

    fn targets(&self, replies: Replies, out: &mut Vec<u8>) {
        for row in accounts::page(&self.shared, Clock::now()).outputs {
            replies.target(
                &TargetFigures {
                    name: &row.name,
                    state: row.state,
                    since_s: row.state_for_s,
                    delivered: row.sum.delivered,
                    lost: row.sum.lost(),
                    waiting: row.sum.waiting,
                    waiting_bytes: row.bytes_waiting,
                    last_error: row.last_error,
                },
                out,
            );
        }
        replies.end(out);
    }

    fn drops(&self, replies: Replies, out: &mut Vec<u8>) {
        let page = accounts::page(&self.shared, Clock::now());
        for row in &page.sources {
            for (family, reasons) in &row.losses {
                reasons
                    .iter()
                    .for_each(|(reason, count)| replies.drop(&row.name, family, reason, *count, out));
            }
            replies.drop(&row.name, "kernel", "dropped", row.kernel_dropped, out);
        }
        for row in &page.outputs {
            for (family, reasons) in &row.losses {
                reasons
                    .iter()
                    .for_each(|(reason, count)| replies.drop(&row.name, family, reason, *count, out));
            }
        }
        replies.end(out);
    }
}

/// Unix seconds that `stats` tells about an output.
#[derive(Clone, Copy)]
struct Moments {
    started_s: u64,
    /// 0 for never.
    last_exception_s: u64,
    now_s: u64,
}

/// The figures of one output under the names of the original's backend; those without a counterpart there under the
/// word of their type.
fn backend_stats(
    replies: Replies,
    form: Form,
    kind: &OutputKind,
    figures: OutputFigures,
    moments: Moments,
    out: &mut Vec<u8>,
) {
    let Moments { started_s, last_exception_s, now_s } = moments;
    let word = match (kind, form) {
        // Repeaters say nothing there, and nothing is flushed to files of events.
        (OutputKind::Packets(_) | OutputKind::EventFile { .. }, _) => return,
        (OutputKind::Console { .. }, Form::Node) => {
            // No `last_` in the names: so node prints the moments themselves.
            let or_start = |moment: u64| if moment == 0 { started_s } else { moment };
            replies.stat("console", "lastFlush", or_start(figures.last_flush_s), out);
            return replies.stat("console", "lastException", or_start(last_exception_s), out);
        }
        (OutputKind::PerlFile { .. }, Form::Perl) => "file",
        _ => accounts::output_word(kind),
    };
    replies.stat_ago(word, "last_flush", figures.last_flush_s, now_s, out);
    replies.stat_ago(word, "last_exception", last_exception_s, now_s, out);
    replies.stat(word, "flush_time", figures.flush_ms, out);
    replies.stat(word, "flush_length", figures.flush_length, out);
}

/// What a series holds, copied off the shard.
enum Held {
    Number(f64),
    Numbers(Vec<f64>),
    Texts(Vec<Vec<u8>>),
}

impl Held {
    fn of(current: &Current<'_>) -> Held {
        match current {
            Current::Counter(value) | Current::Gauge(value) => Held::Number(*value),
            Current::Timer { values, .. } => Held::Numbers(values.to_vec()),
            Current::Set { members, .. } => {
                Held::Texts(members.iter().map(|member| member.to_vec()).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use config::plan::ConsoleForm;
    use model::OutputId;

    use super::*;

    #[test]
    fn figures_have_the_names_of_the_originals_backends() {
        let console = OutputKind::Console { form: ConsoleForm::Node, pretty: false };
        let events = OutputKind::EventFile { path: "e".into(), file_bytes_max: 1, files_max: 1 };
        let file = OutputKind::PerlFile { path: "f".into(), stats_prefix: "statsd".into() };
        let table: &[(&OutputKind, Form, u64, &str)] = &[
            (&console, Form::Node, 0, "console.lastFlush: 90\nconsole.lastException: 50\n"),
            (&console, Form::Node, 70, "console.lastFlush: 90\nconsole.lastException: 70\n"),
            (
                &console,
                Form::Perl,
                70,
                "console.last_flush: 10\nconsole.last_exception: 30\nconsole.flush_time: 3\nconsole.flush_length: 4\n",
            ),
            (
                &file,
                Form::Perl,
                0,
                "file.last_flush: 10\nfile.last_exception: 100\nfile.flush_time: 3\nfile.flush_length: 4\n",
            ),
            (&events, Form::Node, 0, ""),
        ];
        for (kind, form, last_exception_s, want) in table {
            let mut out = Vec::new();
            let figures =
                OutputFigures { output: OutputId(0), last_flush_s: 90, flush_ms: 3, flush_length: 4 };
            let moments = Moments { started_s: 50, last_exception_s: *last_exception_s, now_s: 100 };
            backend_stats(Replies::new(*form), *form, kind, figures, moments, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), *want);
        }
    }
}

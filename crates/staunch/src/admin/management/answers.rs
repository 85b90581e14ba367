//! What the commands of a management port do: a question to the shard or a look at accounts, and the reply in words.
//!
//! They run on the thread of all connections, so what grows with the configuration is made in slices, by few clients at once.
//! Not here: the words themselves (`wire::management`), dumps (`dump`), the names of a `del…` (`delete`), who is a client (`super`).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use config::kinds::RecordKind;
use config::plan::{ManagementPlan, ManagementReplies, OutputKind};
use model::{Kind, PeerKey};
use pipeline::{DumpCursor, OutputFigures};
use tokio::io::AsyncWrite;
use wire::management::{Command, Form, Names, Pattern, ProxyCommand, ProxyReplies, Replies, TargetFigures};

use super::delete::Wanted;
use super::reply::Reply;
use super::{ClientEnd, Next, dump};
use crate::admin::accounts::{self, LossTable, OutputOrder, OutputRow};
use crate::daemon::shared::Shared;
use crate::daemon::worker::ShardHandle;
use sys::clock::Clock;

/// Outputs whose figures are read in one slice of the shard's thread.
const SLICE_FIGURES: usize = 256;

/// Rows of outputs that an answer is made of at a time.
const SLICE_ROWS: usize = 32;

/// Who asks, and of whom.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) plan: &'a ManagementPlan,
    pub(super) shared: &'a Arc<Shared>,
    pub(super) peer: PeerKey,
}

impl Asked<'_> {
    fn form(self) -> Form {
        match self.plan.replies {
            ManagementReplies::Node | ManagementReplies::Proxy { .. } => Form::Node,
            ManagementReplies::Perl => Form::Perl,
        }
    }

    /// Answers a command. What is made of the answer at the end is the caller's to write.
    ///
    /// # Errors
    /// When the client is gone, or does not read.
    pub(super) async fn answer<W: AsyncWrite + Unpin>(
        self,
        command: &[u8],
        reply: &mut Reply<'_, W>,
    ) -> Result<Next, ClientEnd> {
        if let ManagementReplies::Proxy { cluster } = self.plan.replies {
            return self.answer_as_proxy(cluster, command, reply).await;
        }
        let form = self.form();
        let replies = Replies::new(form);
        match Command::parse(form, command) {
            Command::Help => replies.help(self.plan.read_only, &mut reply.made),
            Command::Stats => self.stats(replies, reply).await?,
            Command::Dump { kind, json } => dump::write(self.shared, self.peer, kind, json, reply).await?,
            Command::Delete { .. } if self.plan.read_only => replies.refused_read_only(&mut reply.made),
            Command::Delete { kind, names } => self.delete(kind, names, reply).await?,
            Command::Health { set } => self.health(set, replies, &mut reply.made),
            Command::Config => self.config(replies, &mut reply.made),
            Command::Targets => self.targets(replies, reply).await?,
            Command::Drops => self.drops(replies, reply).await?,
            Command::Quit => return Ok(Next::Close),
            Command::Unknown => replies.error(&mut reply.made),
        }
        Ok(Next::Stay)
    }

    /// The commands of node's cluster proxy (spec statsd §13).
    async fn answer_as_proxy<W: AsyncWrite + Unpin>(
        self,
        cluster: usize,
        command: &[u8],
        reply: &mut Reply<'_, W>,
    ) -> Result<Next, ClientEnd> {
        let replies = ProxyReplies.node();
        let out = &mut reply.made;
        match ProxyCommand::parse(command) {
            ProxyCommand::Help => ProxyReplies.help(out),
            ProxyCommand::Health { set } => self.health(set, replies, out),
            ProxyCommand::Status => {
                let live = self.shared.live_labels(cluster, self.peer).await;
                ProxyReplies.status(self.shared.uptime_s(), live.iter().map(String::as_str), out);
            }
            ProxyCommand::Config => self.config(replies, out),
            ProxyCommand::Targets => self.targets(replies, reply).await?,
            ProxyCommand::Drops => self.drops(replies, reply).await?,
            ProxyCommand::Quit => return Ok(Next::Close),
            ProxyCommand::Unknown => replies.error(out),
        }
        Ok(Next::Stay)
    }

    fn health(self, set: Option<bool>, replies: Replies, out: &mut Vec<u8>) {
        match set {
            Some(_) if self.plan.read_only => return replies.refused_read_only(out),
            Some(up) => self.shared.healthy.store(up, Relaxed),
            None => {}
        }
        replies.health(self.shared.healthy.load(Relaxed), out);
    }

    fn config(self, replies: Replies, out: &mut Vec<u8>) {
        replies.config(self.plan.config.iter().map(|(key, value)| (key.as_str(), value.as_str())), out);
    }

    async fn stats<W: AsyncWrite + Unpin>(
        self,
        replies: Replies,
        reply: &mut Reply<'_, W>,
    ) -> Result<(), ClientEnd> {
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
            &mut reply.made,
        );
        drop(accounts);
        drop(wiring);
        for figures in output_figures(&self.shared.shard, self.peer).await {
            {
                // Not kept while the client reads: a reload may replace it.
                let wiring = self.shared.wiring.load();
                let plan = &wiring.plan.outputs[figures.output.index()];
                if plan.from.is_empty() {
                    continue;
                }
                let account = &wiring.outlets[figures.output.index()].account;
                let last_exception_s = account.last_error_s.load(Relaxed);
                let moments = Moments { started_s, last_exception_s, now_s: now.wall_seconds() };
                backend_stats(replies, self.form(), &plan.kind, figures, moments, &mut reply.made);
            }
            reply.go_on().await?;
        }
        replies.end(&mut reply.made);
        Ok(())
    }

    async fn delete<W: AsyncWrite + Unpin>(
        self,
        kind: Kind,
        names: Names<'_>,
        reply: &mut Reply<'_, W>,
    ) -> Result<(), ClientEnd> {
        let form = self.form();
        let replies = Replies::new(form);
        let wanted = Arc::new(Wanted::new(form, names));
        let mut found = wanted.nothing_found();
        let mut cursor = Some(DumpCursor::default());
        while let Some(from) = cursor {
            // Asked for anew for each slice: a client that does not read takes nobody's place.
            let mut asking = self.shared.shard.ask_in_line(self.peer).await;
            let of_shard = Arc::clone(&wanted);
            let slice = asking.call(move |worker| {
                let mut deleted: Vec<Vec<u8>> = Vec::new();
                let is = |written: &[u8]| of_shard.is(written);
                let next =
                    worker.turn.shard.delete_some(kind, from, is, |written| deleted.push(written.to_vec()));
                (deleted, next)
            });
            let Ok((deleted, next)) = slice.await else { break };
            drop(asking);
            reply.begin_slice();
            for name in deleted.iter().filter(|name| wanted.deleted(name, &mut found)) {
                replies.deleted(name, &mut reply.made);
                reply.go_on().await?;
            }
            // A client that has gone is noticed by what is written to it: no slice more for that one.
            reply.finish().await?;
            cursor = next;
        }
        for name in names.iter() {
            let pattern = Pattern::of(form, name);
            match (wanted.was_found(pattern, &mut found), pattern) {
                (true, Pattern::Exact(name)) => replies.deleted(name, &mut reply.made),
                (true, Pattern::Prefix(_)) => {}
                (false, _) => replies.not_found(name, &mut reply.made),
            }
            reply.go_on().await?;
        }
        replies.delete_end(&mut reply.made);
        Ok(())
    }

    async fn targets<W: AsyncWrite + Unpin>(
        self,
        replies: Replies,
        reply: &mut Reply<'_, W>,
    ) -> Result<(), ClientEnd> {
        let mut write = |row: OutputRow, out: &mut Vec<u8>| {
            let figures = TargetFigures {
                name: &row.name,
                state: row.state,
                since_s: row.state_for_s,
                delivered: row.sum.delivered,
                lost: row.sum.lost(),
                waiting: row.sum.queued,
                queued_bytes: row.queued_bytes,
                last_error: row.last_error,
            };
            replies.target(&figures, out);
        };
        self.outputs(&mut write, reply).await?;
        replies.end(&mut reply.made);
        Ok(())
    }

    /// Writes something of each output. What was asked for is a few rows at a time: a client that does not read holds no
    /// more, and no wiring that a reload has replaced.
    async fn outputs<W: AsyncWrite + Unpin>(
        self,
        write: &mut (dyn FnMut(OutputRow, &mut Vec<u8>) + Send),
        reply: &mut Reply<'_, W>,
    ) -> Result<(), ClientEnd> {
        let order = OutputOrder::of(&self.shared.wiring.load());
        for from in (0..).step_by(SLICE_ROWS) {
            let rows = {
                // The shard is not asked, but it costs as much.
                let _turn = self.shared.shard.ask_in_line(self.peer).await;
                let wiring = self.shared.wiring.load_full();
                accounts::some_outputs(&wiring, &order, from..from + SLICE_ROWS, Clock::now()).await
            };
            if rows.is_empty() {
                break;
            }
            for row in rows {
                write(row, &mut reply.made);
                reply.go_on().await?;
            }
        }
        Ok(())
    }

    async fn drops<W: AsyncWrite + Unpin>(
        self,
        replies: Replies,
        reply: &mut Reply<'_, W>,
    ) -> Result<(), ClientEnd> {
        let of = |name: &str, losses: &LossTable, out: &mut Vec<u8>| {
            for (family, reasons) in losses {
                reasons.iter().for_each(|(reason, count)| replies.drop(name, family, reason, *count, out));
            }
        };
        let mut sources = 0;
        loop {
            let rows = {
                let mut asking = self.shared.shard.ask_in_line(self.peer).await;
                let wiring = self.shared.wiring.load_full();
                accounts::some_sources(self.shared, &wiring, &mut asking, sources).await
            };
            if rows.is_empty() {
                break;
            }
            sources += rows.len();
            for row in rows {
                of(&row.name, &row.losses, &mut reply.made);
                replies.drop(&row.name, "kernel", "dropped", row.kernel_dropped, &mut reply.made);
                reply.go_on().await?;
            }
        }
        self.outputs(&mut |row, out| of(&row.name, &row.losses, out), reply).await?;
        replies.end(&mut reply.made);
        Ok(())
    }
}

/// Figures of the last flushes of all outputs, as far as the shard gave them before it ended.
async fn output_figures(shard: &ShardHandle, peer: PeerKey) -> Vec<OutputFigures> {
    let mut asking = shard.ask_in_line(peer).await;
    let mut all: Vec<OutputFigures> = Vec::new();
    loop {
        let from = all.len();
        let slice =
            asking.call(move |worker| worker.turn.shard.output_figures_from(from, SLICE_FIGURES)).await;
        let slice = slice.unwrap_or_default();
        let is_last = slice.len() < SLICE_FIGURES;
        all.extend(slice);
        if is_last {
            return all;
        }
    }
}

/// Unix seconds that `stats` shows of an output.
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
    let takes = kind.takes();
    if takes.contains(&RecordKind::Packets) || !takes.contains(&RecordKind::Aggregates) {
        // Repeaters say nothing there, and nothing is flushed to files of events.
        return;
    }
    if let (OutputKind::Console { .. }, Form::Node) = (kind, form) {
        // No `last_` in the names: so node prints the moments themselves.
        let or_start = |moment: u64| if moment == 0 { started_s } else { moment };
        replies.stat("console", "lastFlush", or_start(figures.last_flush_s), out);
        return replies.stat("console", "lastException", or_start(last_exception_s), out);
    }
    let word = match (kind, form) {
        (OutputKind::PerlFile { .. }, Form::Perl) => "file",
        (kind, Form::Node | Form::Perl) => accounts::output_word(kind),
    };
    replies.stat_ago(word, "last_flush", figures.last_flush_s, now_s, out);
    replies.stat_ago(word, "last_exception", last_exception_s, now_s, out);
    replies.stat(word, "flush_time", figures.flush_ms, out);
    replies.stat(word, "flush_length", figures.flush_length, out);
}

#[cfg(test)]
mod tests {
    use config::plan::ConsoleEncoding;
    use model::OutputId;

    use super::*;

    #[tokio::test]
    async fn stats_ask_the_shard_in_line() {
        let shard = ShardHandle::new().expect("a descriptor is free");
        let peer = crate::admission::peer_key(Some([127, 0, 0, 1].into()));
        let mut open = Vec::new();
        while let Ok(asking) =
            tokio::time::timeout(std::time::Duration::from_millis(1), shard.ask_in_line(peer)).await
        {
            open.push(asking);
        }
        let soon = std::time::Duration::from_millis(5);
        let mut figures = Box::pin(output_figures(&shard, peer));
        assert!(tokio::time::timeout(soon, figures.as_mut()).await.is_err());
        assert_eq!(shard.waiting(), 0, "all places are taken");
        drop(open);
        assert!(tokio::time::timeout(soon, figures.as_mut()).await.is_err());
        assert_eq!(shard.waiting(), 1);
        shard.end();
        assert!(figures.await.is_empty(), "there are none while it stops");
    }

    #[test]
    fn figures_have_the_names_of_the_originals_backends() {
        let console = OutputKind::Console { form: ConsoleEncoding::Node, pretty: false };
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

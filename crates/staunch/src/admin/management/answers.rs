//! The commands of a management port: a call to the shard or a read of accounts, and the reply.
//!
//! They run on the thread of all connections, so replies that grow with the configuration are built in slices, for few
//! clients at once. Not here: the reply texts (`wire::management`), dumps (`dump`), the names of a `del…` (`delete`),
//! clients (`super`).

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

/// Rows of outputs that are formatted at a time.
const SLICE_ROWS: usize = 32;

/// The client, and the daemon's state.
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

    /// Replies to a command. The caller writes the remaining part of the reply.
    ///
    /// # Errors
    /// When the client has closed the connection, or does not read.
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
            // That of the original, byte for byte, where a config of the original is in force.
            Command::Help if self.is_native() => {
                replies.help_with_extensions(self.plan.read_only, &mut reply.made);
            }
            Command::Help => replies.help(self.plan.read_only, &mut reply.made),
            Command::Stats => self.stats(replies, reply).await?,
            Command::Dump { kind, json } => dump::write(self.shared, self.peer, kind, json, reply).await?,
            Command::Delete { .. } if self.plan.read_only => replies.refused_read_only(&mut reply.made),
            Command::Delete { kind, names } => self.delete(kind, names, reply).await?,
            Command::Health { set } => self.health(set, replies, &mut reply.made),
            Command::Config if self.is_native() => self.native_config(reply).await?,
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

    /// The config in force is a native one: the originals' has keys and values of its own.
    fn is_native(self) -> bool {
        self.plan.config.is_empty()
    }

    /// The native config in force, without its secrets: what `/api/v1/config` replies.
    async fn native_config<W: AsyncWrite + Unpin>(self, reply: &mut Reply<'_, W>) -> Result<(), ClientEnd> {
        reply.made.push(b'\n');
        for line in self.shared.reloads.config().lines() {
            reply.made.extend_from_slice(line.as_bytes());
            reply.made.push(b'\n');
            reply.go_on().await?;
        }
        Ok(())
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
        let mut backends = Backends::default();
        for figures in output_figures(&self.shared.shard, self.peer).await {
            let wiring = self.shared.wiring.load();
            let plan = &wiring.plan.outputs[figures.output.index()];
            if !plan.from.is_empty() {
                let account = &wiring.outlets[figures.output.index()].account;
                backends.add(self.form(), &plan.kind, figures, account.last_error_s.load(Relaxed));
            }
        }
        backends.write(replies, self.form(), (started_s, now.wall_seconds()), &mut reply.made);
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
            // Requested again for each slice, so that a client that does not read blocks nobody.
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
            // A write shows whether the client has closed the connection; then no further slice is read.
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

    /// Writes a text for each output. Rows are built a few at a time, so that a client that does not read holds no more
    /// memory, and no wiring replaced by a reload.
    async fn outputs<W: AsyncWrite + Unpin>(
        self,
        write: &mut (dyn FnMut(OutputRow, &mut Vec<u8>) + Send),
        reply: &mut Reply<'_, W>,
    ) -> Result<(), ClientEnd> {
        let order = OutputOrder::of(&self.shared.wiring.load());
        for from in (0..).step_by(SLICE_ROWS) {
            let rows = {
                // The shard is not called, but the work is as expensive.
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

/// Figures of the last flushes of all outputs, as far as the shard returned them before it ended.
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

/// Figures of outputs under the name of the original's backend; several outputs of one name are one backend, as in the original.
#[derive(Debug, Default)]
struct Backends(Vec<Backend>);

#[derive(Debug)]
struct Backend {
    word: &'static str,
    /// Unix seconds of the last flush; 0 for none.
    last_flush_s: u64,
    /// 0 for never.
    last_exception_s: u64,
    /// The longest.
    flush_ms: u64,
    /// Of all of them.
    flush_length: u64,
}

impl Backends {
    fn add(&mut self, form: Form, kind: &OutputKind, figures: OutputFigures, last_exception_s: u64) {
        let Some(word) = backend_word(kind, form) else { return };
        let OutputFigures { output: _, last_flush_s, flush_ms, flush_length } = figures;
        let Some(backend) = self.0.iter_mut().find(|backend| backend.word == word) else {
            self.0.push(Backend { word, last_flush_s, last_exception_s, flush_ms, flush_length });
            return;
        };
        backend.last_flush_s = backend.last_flush_s.max(last_flush_s);
        backend.last_exception_s = backend.last_exception_s.max(last_exception_s);
        backend.flush_ms = backend.flush_ms.max(flush_ms);
        backend.flush_length += flush_length;
    }

    /// What `stats` shows: `started_s` in place of moments that have not been, and ages as of `now_s`.
    fn write(&self, replies: Replies, form: Form, (started_s, now_s): (u64, u64), out: &mut Vec<u8>) {
        for Backend { word, last_flush_s, last_exception_s, flush_ms, flush_length } in &self.0 {
            if (*word, form) == ("console", Form::Node) {
                // No `last_` in the names: so node prints the moments themselves.
                let or_start = |moment: u64| if moment == 0 { started_s } else { moment };
                replies.stat(word, "lastFlush", or_start(*last_flush_s), out);
                replies.stat(word, "lastException", or_start(*last_exception_s), out);
                continue;
            }
            replies.stat_ago(word, "last_flush", *last_flush_s, now_s, out);
            replies.stat_ago(word, "last_exception", *last_exception_s, now_s, out);
            replies.stat(word, "flush_time", *flush_ms, out);
            replies.stat(word, "flush_length", *flush_length, out);
        }
    }
}

/// The name of the original's backend; of an output without a counterpart there, the word of its type.
fn backend_word(kind: &OutputKind, form: Form) -> Option<&'static str> {
    let takes = kind.takes();
    if takes.contains(&RecordKind::Packets) || !takes.contains(&RecordKind::Aggregates) {
        // Repeaters say nothing there, and nothing is flushed to files of events.
        return None;
    }
    Some(match (kind, form) {
        (OutputKind::PerlFile { .. }, Form::Perl) => "file",
        (kind, Form::Node | Form::Perl) => accounts::output_word(kind),
    })
}

#[cfg(test)]
mod tests {
    use config::plan::ConsoleEncoding;
    use model::OutputId;

    use super::*;

    #[tokio::test]
    async fn stats_wait_for_their_turn_at_the_shard() {
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
            let mut backends = Backends::default();
            backends.add(*form, kind, figures(90, 3, 4), *last_exception_s);
            assert_eq!(written(&backends, *form), *want);
        }
    }

    fn figures(last_flush_s: u64, flush_ms: u64, flush_length: u64) -> OutputFigures {
        OutputFigures { output: OutputId(0), last_flush_s, flush_ms, flush_length }
    }

    fn written(backends: &Backends, form: Form) -> String {
        let mut out = Vec::new();
        backends.write(Replies::new(form), form, (50, 100), &mut out);
        String::from_utf8(out).expect("it is text")
    }

    #[test]
    fn several_endpoints_are_one_backend_with_each_key_once() {
        let file = |path: &str| OutputKind::PerlFile { path: path.into(), stats_prefix: "statsd".into() };
        let console = OutputKind::Console { form: ConsoleEncoding::Perl, pretty: false };
        let mut backends = Backends::default();
        backends.add(Form::Perl, &file("a"), figures(90, 3, 40), 0);
        backends.add(Form::Perl, &console, figures(80, 1, 1), 0);
        backends.add(Form::Perl, &file("b"), figures(95, 2, 50), 60);
        assert_eq!(
            written(&backends, Form::Perl),
            "file.last_flush: 5\nfile.last_exception: 40\nfile.flush_time: 3\nfile.flush_length: 90\n\
             console.last_flush: 20\nconsole.last_exception: 100\nconsole.flush_time: 1\nconsole.flush_length: 1\n"
        );
    }
}

//! `staunch queue replay`: appends exported records, or those that can be read from the quarantine, to a queue.
//!
//! Records are appended in whole batches. A full queue takes no more; the output says how many records it took.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use deliver::disk_queue::inspect::Inspection;
use deliver::disk_queue::salvage::{quarantined, salvage};
use deliver::queue::{Appended, Block, Queue as _};

use super::api;
use super::change::Opened;
use super::counts::copies;
use super::document::Replayed;
use super::place::{Place, Queue};
use crate::api_client::Access;
use crate::args::QueueReplayArgs;
use crate::blocks::{About, Form, LineBlocks, from_json, takes, to_json};
use crate::exit_code::MISTAKES;
use crate::owner::Owner;
use crate::stdio::{self, shown};
use sys::clock::Clock;

/// Bytes of blocks that are sent to a daemon at a time.
const BATCH_BYTES: usize = 1 << 20;

/// Longest line of JSON: a block of binary frames takes two digits for each byte.
const JSON_LINE_BYTES_MAX: u64 = 16 << 20;

/// Where blocks go.
enum Target {
    Daemon { owner: Owner, access: Access, name: String, open: Vec<u8> },
    Alone(Box<Opened>),
}

/// Blocks on their way, with counts.
struct Replay {
    target: Target,
    /// The forms that the output takes, when they are known.
    wanted: Option<&'static [Form]>,
    done: Replayed,
}

/// The queue is full: no more is taken.
struct Full;

/// `staunch queue replay`
pub(super) fn replay(
    (place, access): (&Place, &Access),
    args: &QueueReplayArgs,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    let queue = place.one_to_fill(&args.name)?;
    let target = match place.owner {
        Some(owner) => {
            Target::Daemon { owner, access: access.clone(), name: queue.name.clone(), open: Vec::new() }
        }
        None => Target::Alone(Box::new(Opened::open(place, &queue)?)),
    };
    let wanted = place.output(&queue.name).map(|output| takes(&output.kind));
    let mut replay = Replay { target, wanted, done: Replayed::default() };
    let read = match &args.from {
        Some(file) => from_file(file, as_json, &mut replay),
        None => from_quarantine(&queue, &mut replay),
    };
    // What was appended before a mistake stays: it is synced and reported all the same.
    let (done, read) = replay.finish(read)?;
    if as_json && args.quarantine {
        stdio::data(format!("{}\n", serde_json::to_string(&done)?).as_bytes())?;
    }
    stdio::say(&summary(&queue.name, &done, args));
    read?;
    Ok(if done.full { ExitCode::from(MISTAKES) } else { ExitCode::SUCCESS })
}

fn from_file(file: &Path, as_json: bool, replay: &mut Replay) -> anyhow::Result<()> {
    let name = file.display().to_string();
    if file == Path::new("-") {
        return from_lines(&mut std::io::stdin().lock(), "stdin", as_json, replay);
    }
    let opened = File::open(file).with_context(|| format!("cannot read {name}"))?;
    from_lines(&mut BufReader::new(opened), &name, as_json, replay)
}

fn from_lines(input: &mut dyn BufRead, name: &str, as_json: bool, replay: &mut Replay) -> anyhow::Result<()> {
    let (mut number, mut line, mut blocks) = (0_u64, Vec::new(), LineBlocks::default());
    loop {
        line.clear();
        number += 1;
        let len = std::io::Read::take(&mut *input, JSON_LINE_BYTES_MAX).read_until(b'\n', &mut line);
        if len.with_context(|| format!("cannot read {name}"))? == 0 {
            break;
        }
        let wrong = |why: String| anyhow!("{name}, line {number}: {why}");
        let now_ns = Clock::mono_ns();
        let block = match as_json {
            true if line.iter().all(u8::is_ascii_whitespace) => None,
            true => Some(from_json(&line, now_ns).map_err(wrong)?),
            // An output of lines would send them as they are.
            false if line.starts_with(b"{") && from_json(&line, now_ns).is_ok() => {
                return Err(wrong("it is a block as JSON\n  hint: add --json".into()));
            }
            false => blocks.push(&line, now_ns).map_err(wrong)?,
        };
        if let Some(block) = block
            && replay.put(block).map_err(|error| wrong(format!("{error:#}")))?.is_err()
        {
            return Ok(());
        }
    }
    match blocks.take(Clock::mono_ns()) {
        Some(block) => replay.put(block).map(|_full| ()),
        None => Ok(()),
    }
}

fn from_quarantine(queue: &Queue, replay: &mut Replay) -> anyhow::Result<()> {
    let disk = queue.folder()?;
    let inspection = Inspection::of(&disk, true)
        .map_err(|error| anyhow!("cannot read {}: {error}", queue.path.display()))?;
    let files = quarantined(&inspection, &disk);
    let done = salvage(&inspection, &disk, &files, &mut |found| {
        if !found.whole {
            return Ok(());
        }
        let block = Block { at_ns: Clock::mono_ns(), ..found.block };
        match replay.put(block) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(Full)) => Err(None),
            Err(error) => Err(Some(error)),
        }
    });
    match done {
        Err(Some(error)) => Err(error),
        Ok(()) | Err(None) => Ok(()),
    }
}

impl Replay {
    fn put(&mut self, block: Block) -> anyhow::Result<Result<(), Full>> {
        if let Some(wanted) = self.wanted {
            Form::check(&block, wanted).map_err(|why| anyhow!(why))?;
        }
        match &mut self.target {
            Target::Daemon { open, .. } => {
                open.extend(to_json(&About::default(), &block));
                if open.len() >= BATCH_BYTES { self.send() } else { Ok(Ok(())) }
            }
            Target::Alone(opened) => {
                let copies = u64::from(block.copies);
                match opened.queue.append(block, Clock::now()) {
                    Appended::Kept => {
                        self.done.blocks += 1;
                        self.done.copies += copies;
                        Ok(Ok(()))
                    }
                    Appended::Full(_) | Appended::Dropped => {
                        self.done.full = true;
                        Ok(Err(Full))
                    }
                }
            }
        }
    }

    fn send(&mut self) -> anyhow::Result<Result<(), Full>> {
        let Target::Daemon { owner, access, name, open } = &mut self.target else { return Ok(Ok(())) };
        if open.is_empty() {
            return Ok(Ok(()));
        }
        let done = api::replay((*owner, access), name, ("application/x-ndjson", std::mem::take(open)))?;
        self.done.blocks += done.blocks;
        self.done.copies += done.copies;
        self.done.full = done.full;
        Ok(if done.full { Err(Full) } else { Ok(()) })
    }

    /// Sends or syncs what is left.
    fn finish(mut self, read: anyhow::Result<()>) -> anyhow::Result<(Replayed, anyhow::Result<()>)> {
        if !self.done.full {
            // Full: the counts say so.
            let _full = self.send()?;
        }
        if let Target::Alone(opened) = self.target {
            opened.close()?;
        }
        Ok((self.done, read))
    }
}

fn summary(name: &str, done: &Replayed, args: &QueueReplayArgs) -> String {
    let name = shown(name);
    let mut text = format!("staunch: {} appended to the queue of `{name}`\n", copies(done.copies));
    if done.full {
        text.push_str(
            "  the queue is full, and the rest was not appended: raise its max_bytes, or let it drain first\n",
        );
        if args.from.is_some() {
            text.push_str(&format!(
                "  the rest of the input begins after its first {}\n",
                copies(done.copies)
            ));
        }
    }
    if args.quarantine && done.blocks > 0 {
        text.push_str(&format!(
            "  the files stay in quarantine: remove them with `staunch queue drop {name} --quarantine`\n"
        ));
    }
    text
}

#[test]
fn control_characters_in_queue_names_are_replaced() {
    let done = Replayed { blocks: 1, copies: 1, full: true, safe: true };
    let args = QueueReplayArgs { name: String::new(), from: None, quarantine: true };
    let text = summary("a\x1bb", &done, &args);
    assert!(text.contains("`a\u{fffd}b`") && !text.contains('\x1b'), "{text:?}");
}

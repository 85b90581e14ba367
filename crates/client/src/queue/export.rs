//! `staunch queue export`: writes the queued records to stdout, as they would be sent or as JSON lines.

use std::process::ExitCode;

use deliver::disk_queue::inspect::{Begin, Inspection, Step};
use deliver::disk_queue::salvage::{quarantined, salvage};
use deliver::queue::Block;

use super::counts::{copies, count_of};
use super::place::{Place, Queue};
use crate::args::QueueExportArgs;
use crate::blocks::{About, Form, to_json};
use crate::exit_code::FAILED;
use crate::stdio::{self, shown};

/// Bytes that are written at a time.
const WRITE_BYTES: usize = 256 * 1024;

/// Why an export ended before its end.
enum Stop {
    /// Nobody reads any more, which is no error.
    Closed,
    Failed(anyhow::Error),
}

/// stdout, in large pieces, with counts.
struct Out<'a> {
    queue: &'a str,
    as_json: bool,
    open: Vec<u8>,
    blocks: u64,
    copies: u64,
    damaged: u64,
}

impl Out<'_> {
    fn put(&mut self, about: About, block: &Block) -> Result<(), Stop> {
        if self.as_json {
            self.open.extend(to_json(&About { queue: Some(self.queue.to_owned()), ..about }, block));
        } else {
            let form = Form::of(block);
            if form != Form::Lines {
                return Err(Stop::Failed(anyhow::anyhow!(
                    "`{}` contains {}, whose boundaries are lost in plain lines\n  hint: `--json` keeps them, and `staunch \
                     queue replay --json` puts them back",
                    shown(self.queue),
                    form.word()
                )));
            }
            self.open.extend_from_slice(&block.bytes);
        }
        self.blocks += 1;
        self.copies += u64::from(block.copies);
        if self.open.len() >= WRITE_BYTES { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<(), Stop> {
        let bytes = std::mem::take(&mut self.open);
        match stdio::data(&bytes) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Stop::Closed),
            Err(error) => Err(Stop::Failed(error.into())),
        }
    }
}

/// `staunch queue export`
pub(super) fn export(place: &Place, args: &QueueExportArgs, as_json: bool) -> anyhow::Result<ExitCode> {
    let queue = place.one(&args.name)?;
    let out = &mut Out { queue: &queue.name, as_json, open: Vec::new(), blocks: 0, copies: 0, damaged: 0 };
    let done = if args.quarantine {
        quarantine(&queue, args.damaged, out)
    } else {
        waiting(place, &queue, args.all, out)
    };
    match done.and_then(|()| out.write()) {
        Ok(()) => {
            stdio::say(&summary(place, args, out));
            Ok(ExitCode::SUCCESS)
        }
        Err(Stop::Closed) => Ok(ExitCode::SUCCESS),
        Err(Stop::Failed(error)) => {
            stdio::say(&format!("staunch: {error:#}\n"));
            Ok(ExitCode::from(FAILED))
        }
    }
}

fn inspected(queue: &Queue, live: bool) -> Result<(sys::disk::Folder, Inspection), Stop> {
    let disk = queue.folder().map_err(Stop::Failed)?;
    let failed = |error| Stop::Failed(anyhow::anyhow!("cannot read {}: {error}", queue.path.display()));
    let inspection = Inspection::of(&disk, live).map_err(failed)?;
    Ok((disk, inspection))
}

fn waiting(place: &Place, queue: &Queue, all: bool, out: &mut Out<'_>) -> Result<(), Stop> {
    let (disk, inspection) = inspected(queue, place.owner.is_some())?;
    let begin = if all { Begin::First } else { Begin::Cursor };
    inspection.walk(&disk, begin, &mut |step: Step<'_>| match step {
        Step::Record(record) => {
            let about = About {
                block: Some(record.number),
                made_ms: Some(record.made_wall_ns / 1_000_000),
                waits: Some(record.waits),
                ..About::default()
            };
            out.put(about, record.block)
        }
        Step::Damage(stretch) => {
            out.damaged += stretch.lost.copies;
            Ok(())
        }
        Step::BeingWritten(_) => Ok(()),
        Step::NotRead { segment, error } => {
            let path = queue.path.display();
            Err(Stop::Failed(anyhow::anyhow!("cannot read segment {segment:016x} in {path}: {error}")))
        }
    })
}

/// What is in quarantine. Of blocks whose checksum does not hold, the lines, when `damaged` asks for them.
fn quarantine(queue: &Queue, damaged: bool, out: &mut Out<'_>) -> Result<(), Stop> {
    let (disk, inspection) = inspected(queue, true)?;
    let files = quarantined(&inspection, &disk);
    salvage(&inspection, &disk, &files, &mut |found| {
        if !found.whole && !damaged {
            out.damaged += u64::from(found.block.copies);
            return Ok(());
        }
        let about = About {
            block: found.record.map(|record| record.0),
            made_ms: found.record.map(|record| record.1 / 1_000_000),
            file: Some(found.file),
            whole: Some(found.whole),
            ..About::default()
        };
        out.put(about, &found.block)
    })
}

fn summary(place: &Place, args: &QueueExportArgs, out: &Out<'_>) -> String {
    let mut text = format!(
        "staunch: {} exported from `{}`, in {}\n",
        copies(out.copies),
        shown(out.queue),
        count_of(out.blocks, "block", "blocks")
    );
    if out.damaged > 0 && args.quarantine {
        text.push_str(&format!(
            "  {} with a wrong checksum omitted: --damaged exports their lines too, some of which are damaged\n",
            copies(out.damaged)
        ));
    } else if out.damaged > 0 {
        let damaged = copies(out.damaged);
        text.push_str(&format!(
            "  {damaged} cannot be read: `staunch queue check {}` says where\n",
            shown(out.queue)
        ));
    }
    if place.owner.is_some() && !args.quarantine && out.copies > 0 {
        text.push_str("  a daemon delivers from this queue: exported records may be delivered too\n");
    }
    text
}

#[test]
fn control_characters_in_queue_names_are_replaced() {
    let mut out = Out { queue: "a\x1bb", as_json: false, open: Vec::new(), blocks: 0, copies: 0, damaged: 1 };
    let place = Place { data_dir: "d".into(), plan: None, owner: None };
    let args = QueueExportArgs { name: String::new(), quarantine: false, damaged: false, all: false };
    let text = summary(&place, &args, &out);
    assert!(text.matches("a\u{fffd}b").count() == 2 && !text.contains('\x1b'), "{text:?}");
    let frames = Block::frames(b"ab".to_vec(), vec![(2, 1)], 0);
    let Err(Stop::Failed(error)) = out.put(About::default(), &frames) else {
        panic!("plain lines lose frames")
    };
    assert!(error.to_string().contains("`a\u{fffd}b`"), "{error}");
}

//! `cargo xtask readme`: runs the README's commands as written, so that they stay correct.
//!
//! A fenced `sh` block is run when the line above its fence is one of these comments (invisible to readers):
//!
//! - `<!-- run -->`: with `bash -eu -o pipefail` in the repository's root; it must succeed;
//! - `<!-- run in the background until URL -->`: started, and the next block waits until URL answers 200. All
//!   background blocks are stopped after the last block.
//!
//! `<!-- prints: TEXT -->` below a block's closing fence requires that the block's output contains TEXT. The folders
//! of the release and the debug build are both in the PATH, so a block finds the `staunch` of either.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};

/// Includes a clean release build, which is part of the README's first command.
const BACKGROUND_SECONDS_MAX: u64 = 1_200;

/// A block of the README that is marked for running.
#[derive(Debug, PartialEq, Eq)]
struct Block {
    /// Line of its opening fence.
    line: usize,
    script: String,
    /// For a background block: the URL that must answer before the next block starts.
    until: Option<String>,
    prints: Vec<String>,
}

/// Runs the marked blocks of `file`. True when all of them succeeded and printed the required texts.
pub(crate) fn run(root: &Path, file: &Path) -> anyhow::Result<bool> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let blocks = blocks(&text)?;
    if blocks.is_empty() {
        bail!("{} has no block that is marked `<!-- run -->`", file.display());
    }
    let mut background = Background(Vec::new());
    for (done, block) in blocks.iter().enumerate() {
        println!("readme: line {}", block.line);
        if let Err(error) = run_block(root, block, &mut background) {
            eprintln!("{}:{}: {error:#}", file.display(), block.line);
            println!("readme: {done} passed, 1 failed");
            return Ok(false);
        }
    }
    println!("readme: {} passed, 0 failed", blocks.len());
    Ok(true)
}

/// The marked blocks in their order.
fn blocks(text: &str) -> anyhow::Result<Vec<Block>> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut mark: Option<Option<String>> = None;
    let mut lines = text.lines().enumerate();
    let mut just_closed = false;
    while let Some((index, line)) = lines.next() {
        let comment =
            line.trim().strip_prefix("<!--").and_then(|rest| rest.strip_suffix("-->")).map(str::trim);
        if let Some(comment) = comment {
            if let Some(wanted) = comment.strip_prefix("prints:") {
                let block = blocks.last_mut().filter(|_| just_closed);
                let block =
                    block.with_context(|| format!("line {}: `prints` is not below a block", index + 1))?;
                block.prints.push(wanted.trim().to_owned());
            } else if comment == "run" {
                mark = Some(None);
            } else if let Some(url) = comment.strip_prefix("run in the background until ") {
                mark = Some(Some(url.trim().to_owned()));
            }
            continue;
        }
        just_closed = false;
        let Some(until) = mark.take() else { continue };
        if line.trim() != "```sh" {
            bail!("line {}: a `run` comment is not above a ```sh block", index + 1);
        }
        let body = lines.by_ref().map(|(_, line)| line).take_while(|line| line.trim() != "```");
        let script = body.collect::<Vec<_>>().join("\n");
        blocks.push(Block { line: index + 1, script, until, prints: Vec::new() });
        just_closed = true;
    }
    Ok(blocks)
}

fn run_block(root: &Path, block: &Block, background: &mut Background) -> anyhow::Result<()> {
    let mut bash = Command::new("bash");
    bash.args(["-eu", "-o", "pipefail", "-c", &block.script]).current_dir(root).env("PATH", path(root));
    let Some(url) = &block.until else {
        let output = bash.stdin(Stdio::null()).output().context("cannot start bash")?;
        let printed = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        print!("{printed}");
        if !output.status.success() {
            bail!("the block ended with {}", output.status);
        }
        return match block.prints.iter().find(|wanted| !printed.contains(wanted.as_str())) {
            Some(wanted) => bail!("the block did not print `{wanted}`"),
            None => Ok(()),
        };
    };
    if answers(url)? {
        bail!("{url} answers already: stop the process that listens there");
    }
    // A process group of its own, so that `make` or `cargo run` and their children can be stopped together.
    let child = bash.stdin(Stdio::null()).process_group(0).spawn().context("cannot start bash")?;
    background.0.push(child);
    let started = background.0.last_mut().context("just pushed")?;
    for _ in 0..BACKGROUND_SECONDS_MAX * 5 {
        if answers(url)? {
            return Ok(());
        }
        if let Some(status) = started.try_wait().context("cannot get the status of the background block")? {
            bail!("the background block ended with {status} before {url} answered");
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    bail!("{url} did not answer within {BACKGROUND_SECONDS_MAX} s")
}

/// Whether `url` (`http://host:port/path`) answers 200.
fn answers(url: &str) -> anyhow::Result<bool> {
    let rest = url.strip_prefix("http://").with_context(|| format!("`{url}` does not begin with http://"))?;
    let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
    let Ok(mut stream) = TcpStream::connect(address) else { return Ok(false) };
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let mut answer = [0; 12];
    let exchanged = stream
        .set_read_timeout(Some(Duration::from_secs(2)))
        .and_then(|()| stream.write_all(request.as_bytes()))
        .and_then(|()| stream.read_exact(&mut answer));
    Ok(exchanged.is_ok() && answer.ends_with(b" 200"))
}

/// The PATH with this repository's builds in front.
fn path(root: &Path) -> String {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let rest = std::env::var("PATH").unwrap_or_default();
    format!("{0}/release:{0}/debug:{rest}", target.display())
}

/// Background processes; stopped when dropped, also after a failure.
struct Background(Vec<Child>);

impl Drop for Background {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let group = format!("-{}", child.id());
            let _ = Command::new("kill").args(["-TERM", "--", &group]).stderr(Stdio::null()).status();
            let _ = child.wait();
        }
    }
}

#[test]
fn only_marked_blocks_are_run() {
    let text = "\
text
```sh
not this
```
<!-- run in the background until http://127.0.0.1:1/ready -->
```sh
make run
```
<!-- run -->
```sh
echo hello
echo again
```
<!-- prints: hello -->
<!-- prints: again -->
";
    let block = |line, script: &str, until: Option<&str>, prints: &[&str]| Block {
        line,
        script: script.to_owned(),
        until: until.map(str::to_owned),
        prints: prints.iter().map(|&text| text.to_owned()).collect(),
    };
    let want = [
        block(6, "make run", Some("http://127.0.0.1:1/ready"), &[]),
        block(10, "echo hello\necho again", None, &["hello", "again"]),
    ];
    assert_eq!(blocks(text).expect("well-formed"), want);
}

#[test]
fn misplaced_marks_are_errors() {
    for text in ["<!-- run -->\n```toml\n```\n", "<!-- prints: x -->\n", "```sh\n```\n<!-- prints: x -->\n"] {
        assert!(blocks(text).is_err(), "{text:?}");
    }
}

#[test]
fn a_block_must_succeed_and_print_the_required_text() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (script, prints, want) in
        [("echo yes", "yes", true), ("echo yes", "no", false), ("false; echo yes", "yes", false)]
    {
        let block = Block { line: 1, script: script.into(), until: None, prints: vec![prints.into()] };
        assert_eq!(run_block(root, &block, &mut Background(Vec::new())).is_ok(), want, "{script}");
    }
}

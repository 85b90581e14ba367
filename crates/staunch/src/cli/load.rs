//! From a file's name to a checked plan and its diagnostics. Used by run, check, import and reload.

mod config_files;
mod folders;
mod riemann_files;
mod rule_files;

use std::io::{IsTerminal, Read};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};

use ::streams::riemann::files::Files;
use ::streams::riemann::parts::Part;
use anyhow::Context;
use config::diagnostic::{Code, Diagnostic, Place, Source, has_errors, render_files};
use config::plan::{ManagementPlan, Plan};
use config::streams::{self, Evaluated};
use config::{File, Format};
use import::carbon::Invocation;
use import::{self, javascript};

use self::config_files::{Gathered, OfProcess, Text, gather};
use self::riemann_files::{address_of, evaluate, evaluate_tests};
use super::args::{Compat, FanoutArgs, FanoutMode, Original, Port, Ports};
use super::kind::FileKind;
use crate::daemon::reload::change::WatchedFile;
use client::stdio::wants_colour;

/// Largest config file.
pub(crate) const CONFIG_BYTES_MAX: u64 = 16 << 20;

/// A config file with its plan.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// The name given by the user; the first file of several.
    pub(crate) name: String,
    /// Its text.
    pub(crate) text: String,
    /// The other files of a native config.
    pub(crate) more: Vec<Text>,
    /// Files and folders whose changes affect it; empty for only the first file.
    pub(crate) watched: Vec<WatchedFile>,
    /// The plan, if there was no error.
    pub(crate) plan: Option<Plan>,
    /// Errors and warnings.
    pub(crate) diagnostics: Vec<Diagnostic>,
}

impl Loaded {
    /// Errors and warnings of each file.
    pub(crate) fn by_file(&self, diagnostics: &[Diagnostic]) -> Vec<(Source<'_>, Vec<Diagnostic>)> {
        config::by_file(&self.files(), diagnostics)
    }

    fn files(&self) -> Vec<File<'_>> {
        // The format does not matter here.
        let first = File { source: Source { name: &self.name, text: &self.text }, format: Format::Toml };
        std::iter::once(first).chain(self.more.iter().map(Text::file)).collect()
    }

    fn shown(&self, diagnostics: &[Diagnostic]) -> String {
        let split = self.by_file(diagnostics);
        let split: Vec<_> = split.iter().map(|(source, diagnostics)| (*source, &**diagnostics)).collect();
        render_files(&split, wants_colour(std::io::stderr().is_terminal()))
    }

    /// The diagnostics for people on stderr.
    pub(crate) fn rendered(&self) -> String {
        self.shown(&self.diagnostics)
    }

    /// The same without those that were shown before.
    pub(crate) fn rendered_new(&self, shown: &[Diagnostic]) -> String {
        // A line above them moves them, and changes nothing.
        let is_same = |one: &Diagnostic, said: &Diagnostic| {
            (one.code, &one.message, &one.label) == (said.code, &said.message, &said.label)
        };
        let is_new = |said: &Diagnostic| !shown.iter().any(|one| is_same(one, said));
        let new: Vec<_> = self.diagnostics.iter().filter(|said| is_new(said)).cloned().collect();
        self.shown(&new)
    }

    /// The same for a daemon that starts: open ports are omitted, because it logs them.
    pub(crate) fn rendered_at_start(&self) -> String {
        let is_logged = |said: &Diagnostic| matches!(said.code, Code::HttpOpen | Code::ManagementOpen);
        let rest: Vec<_> = self.diagnostics.iter().filter(|said| !is_logged(said)).cloned().collect();
        self.shown(&rest)
    }

    /// Adds loops that the file cannot show: endpoints at addresses of this machine that lead back to the daemon.
    fn without_loops(mut self) -> Loaded {
        let loops = self.plan.as_ref().map(|plan| config::own_loops(plan, is_own)).unwrap_or_default();
        self.diagnostics.extend(loops);
        self
    }

    /// Adds errors in the files named in the config: also when the config has errors, so that one check shows all.
    fn with_named_files_read(mut self) -> Loaded {
        let wrong = self.plan.as_ref().map(tls::mistakes).unwrap_or_default();
        self.diagnostics.extend(wrong.into_iter().map(|(_only, wrong)| wrong));
        let rules = self.plan.as_ref().map(|plan| rule_files::mistakes(plan, &self.text, &read));
        self.diagnostics.extend(rules.unwrap_or_default());
        self
    }

    /// Without the plan if the config has errors: it is a draft, which nothing may run.
    fn without_draft(mut self) -> Loaded {
        if has_errors(&self.diagnostics) {
            self.plan = None;
        }
        self.diagnostics.extend(self.plan.as_ref().and_then(crate::disk_room::warning));
        self
    }

    /// Adds errors about paths that cannot be folders. For `check`: a daemon starts with them, and tries again.
    pub(crate) fn with_folders_checked(mut self) -> Loaded {
        let folders = self.plan.as_ref().map(|plan| folders::mistakes(plan, &self.files()));
        self.diagnostics.extend(folders.unwrap_or_default());
        self
    }

    /// Evaluates the Riemann configs of the plan, and adds their outputs and mistakes.
    fn with_streams(mut self) -> Loaded {
        let Some(mut plan) = self.plan.take() else { return self };
        let unloaded: Vec<_> =
            streams::unloaded(&plan).into_iter().map(|(id, file)| (id, file.to_owned())).collect();
        for (id, file) in unloaded {
            let evaluated = evaluate(&file, read_text, hostname());
            let mut said = evaluated.said.clone();
            said.extend(streams::attach(&mut plan, id, &evaluated));
            self.add_riemann(&file, &evaluated, said, false);
        }
        self.plan = Some(plan);
        self
    }

    /// Adds the files of a Riemann config to those that diagnostics show, and its diagnostics. `is_first`: its main file is the first
    /// already.
    fn add_riemann(
        &mut self,
        file: &Path,
        evaluated: &Evaluated,
        said: Vec<(String, Diagnostic)>,
        is_first: bool,
    ) {
        let folder = file.parent().unwrap_or(Path::new(""));
        let mut at: Vec<(&str, usize)> = Vec::new();
        for (name, text) in &evaluated.files.texts {
            let Ok(text) = text else { continue };
            if is_first && *name == evaluated.files.main {
                at.push((name, 0));
                continue;
            }
            at.push((name, self.more.len() + 1));
            let path = folder.join(name);
            self.watched.push(WatchedFile::now(path.clone()));
            // The format does not matter: it is not read as a native file.
            let name = path.display().to_string();
            self.more.push(Text { name, text: text.clone(), format: Format::Toml });
        }
        let files = self.files();
        let bases: Vec<usize> = (0..files.len()).map(|index| config::base(&files, index)).collect();
        let moved = said.into_iter().map(|(name, diagnostic)| {
            let index = at.iter().find(|(known, _)| *known == name).map_or(0, |(_, index)| *index);
            let begin = bases.get(index).copied().unwrap_or_default();
            let place = diagnostic.place.unwrap_or(Place::new(0, 0));
            diagnostic.at(place.start + begin..place.end + begin)
        });
        let moved: Vec<Diagnostic> = moved.collect();
        self.diagnostics.extend(moved);
    }

    /// Warns about a management port that other machines can reach. For configs of the originals, where this is the
    /// default; the check of a native file has warned already.
    pub(crate) fn with_open_ports(mut self) -> Loaded {
        let open: Vec<_> =
            self.plan.as_ref().map(|plan| config::open_management(plan).collect()).unwrap_or_default();
        let hint = "write mgmt_address: '127.0.0.1', or start with --management 127.0.0.1:8126";
        self.diagnostics.extend(open.into_iter().map(|warning: Diagnostic| warning.hint(hint)));
        self
    }

    /// Applies the addresses of the command line to the plan, and removes diagnostics about replaced addresses.
    pub(crate) fn with_ports(mut self, ports: &Ports) -> Loaded {
        let Some(plan) = &mut self.plan else { return self };
        set_ports(plan, ports);
        let (http, management) = (ports.http.is_some(), ports.management.is_some());
        self.diagnostics.retain(|said| match said.code {
            Code::HttpOpen => !http,
            Code::ManagementOpen => !management,
            _ => true,
        });
        self.diagnostics.extend(config::open_http(plan).filter(|_| http));
        self.diagnostics.extend(config::open_management(plan).filter(|_| management));
        self
    }

    pub(crate) fn has_errors(&self) -> bool {
        has_errors(&self.diagnostics) || self.plan.is_none()
    }
}

/// Whether this machine has an address, so that it can be bound. On systems that allow binding other addresses, this is
/// unknown.
fn is_own(ip: IpAddr) -> bool {
    let family = if ip.is_ipv4() { "ipv4" } else { "ipv6" };
    let setting = format!("/proc/sys/net/{family}/ip_nonlocal_bind");
    let binds_any = std::fs::read_to_string(setting).is_ok_and(|set| set.trim() != "0");
    !binds_any && !ip.is_multicast() && UdpSocket::bind((ip, 0)).is_ok()
}

#[test]
fn the_machines_addresses_are_known() {
    let ip = |text: &str| text.parse().expect("an address");
    assert!(!is_own(ip("192.0.2.1")), "kept for documentation");
    assert!(!is_own(ip("239.1.2.3")), "a group, not a machine");
    let nonlocal = std::fs::read_to_string("/proc/sys/net/ipv4/ip_nonlocal_bind");
    let nonlocal = nonlocal.is_ok_and(|set| set.trim() != "0");
    assert_eq!(is_own(ip("127.0.0.1")), !nonlocal);
}

/// The name of standard input, as on many command lines.
pub(crate) const STDIN: &str = "-";

/// The contents of standard input. It can be read once, but is used several times.
pub(crate) fn read_stdin() -> std::io::Result<Vec<u8>> {
    static BYTES: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    if let Some(bytes) = BYTES.get() {
        return Ok(bytes.clone());
    }
    let mut bytes = Vec::new();
    std::io::stdin().take(CONFIG_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(BYTES.get_or_init(|| bytes).clone())
}

/// A file's name for people, and its text.
pub(crate) fn read(file: &Path) -> anyhow::Result<(String, String)> {
    let name = file.display().to_string();
    if name == STDIN {
        let bytes = read_stdin().context("cannot read standard input")?;
        return text_of("<stdin>".to_owned(), &bytes[..]);
    }
    let opened = std::fs::File::open(file).with_context(|| format!("cannot read {name}"))?;
    let about = opened.metadata().with_context(|| format!("cannot read {name}"))?;
    anyhow::ensure!(
        !about.is_dir(),
        "{name} is a directory, and a config is a file: write {}/FILE",
        name.trim_end_matches('/')
    );
    let size = about.len();
    anyhow::ensure!(
        size <= CONFIG_BYTES_MAX,
        "{name} has {size} bytes, and a config has at most {CONFIG_BYTES_MAX}"
    );
    text_of(name, opened)
}

/// The text of a file that may be endless: a pipe or a device.
fn text_of(name: String, opened: impl Read) -> anyhow::Result<(String, String)> {
    let mut bytes = Vec::new();
    opened
        .take(CONFIG_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {name}"))?;
    anyhow::ensure!(
        bytes.len() as u64 <= CONFIG_BYTES_MAX,
        "{name} has no end within {CONFIG_BYTES_MAX} bytes, the most that a config has"
    );
    match String::from_utf8(bytes) {
        Ok(text) => Ok((name, text)),
        Err(error) => anyhow::bail!("{name} is not UTF-8 text{}", looks_like(error.as_bytes())),
    }
}

/// The probable kind of bytes that are not text, by their beginning.
fn looks_like(bytes: &[u8]) -> &'static str {
    const BEGINNINGS: [(&[u8], &str); 8] = [
        (b"\x7fELF", ": it is a program"),
        (b"MZ", ": it is a program"),
        (b"\x1f\x8b", ": it is packed with gzip; unpack it first"),
        (b"\x28\xb5\x2f\xfd", ": it is packed with zstd; unpack it first"),
        (b"PK\x03\x04", ": it is a zip archive; unpack it first"),
        (b"\xff\xfe", ", but UTF-16: save it as UTF-8"),
        (b"\xfe\xff", ", but UTF-16: save it as UTF-8"),
        (b"\x30\x82", ": it may be a certificate or key (DER), which a config names as PEM"),
    ];
    BEGINNINGS.iter().find(|(begin, _)| bytes.starts_with(begin)).map_or("", |(_, what)| what)
}

/// Whether a running daemon may read its config from `file` again: opening a pipe without a writer would block forever.
///
/// # Errors
/// When it is not a regular file. A missing file, or a folder, has a better message when it is read.
pub(crate) fn may_be_reread(file: &Path) -> Result<(), String> {
    if file == Path::new("<stdin>") {
        return Err("standard input is read at the start only".to_owned());
    }
    if is_special(file) {
        return Err(format!("{} is a pipe or a device, which is read at the start only", file.display()));
    }
    Ok(())
}

/// True for a pipe, a device or a socket: opening or reading it may block forever.
pub(crate) fn is_special(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|about| !about.is_file() && !about.is_dir())
}

#[cfg(unix)]
#[test]
fn endless_files_are_rejected_as_configs() {
    let zero = Path::new("/dev/zero");
    let error = read(zero).expect_err("it has no end").to_string();
    assert!(error.contains("no end within 16777216 bytes"), "{error}");
    assert!(may_be_reread(zero).is_err());
    let folder = tempfile::tempdir().expect("a folder");
    for (bytes, good) in [(CONFIG_BYTES_MAX, true), (CONFIG_BYTES_MAX + 1, false)] {
        let file = folder.path().join("config");
        std::fs::File::create(&file).and_then(|file| file.set_len(bytes)).expect("a file");
        assert_eq!(read(&file).is_ok(), good, "{bytes}");
        assert!(may_be_reread(&file).is_ok());
    }
    assert!(may_be_reread(folder.path()).is_ok() && may_be_reread(Path::new("none")).is_ok());
}

/// The program of a config file. Only native configs may be folders.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn kind(file: &Path) -> anyhow::Result<FileKind> {
    if file.is_dir() {
        return Ok(FileKind::Native);
    }
    Ok(FileKind::of(file, &read(file)?.1))
}

/// Reads a native config: its files, folders, and what they include.
///
/// # Errors
/// When a file cannot be read, or is another program's.
pub(crate) fn native(files: &[PathBuf]) -> anyhow::Result<Loaded> {
    let Gathered { mut texts, mistakes, watched } = gather(files, &OfProcess)?;
    let (plan, mut diagnostics) = {
        let files: Vec<File<'_>> = texts.iter().map(Text::file).collect();
        let (plan, mut diagnostics) = config::draft_of_files(&files, &OfProcess);
        for (file, mistake) in mistakes {
            let base = config::base(&files, file);
            let place = mistake.place.map(|place| Place::new(place.start + base, place.end + base));
            diagnostics.push(Diagnostic { place, ..mistake });
        }
        (plan, diagnostics)
    };
    diagnostics.sort_by_key(|diagnostic| diagnostic.place.map_or(usize::MAX, |place| place.start));
    let more = texts.split_off(1.min(texts.len()));
    let Some(Text { name, text, .. }) = texts.pop() else { anyhow::bail!("no config file is given") };
    let draft = Loaded { plan, diagnostics, name, text, more, watched };
    Ok(draft.with_named_files_read().without_draft().without_loops().with_streams())
}

/// Reads a config of node's statsd or Net::Statsd::Server.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn statsd(original: &Original) -> anyhow::Result<Loaded> {
    let (name, text) = read(&original.file)?;
    let native = |ending| ["toml", "yaml", "yml"].iter().any(|native| ending == *native);
    anyhow::ensure!(
        !original.file.extension().is_some_and(native),
        "{name} is a native config by its name: run it with `staunch run {name}`"
    );
    let vars = |name: &str| std::env::var(name).ok();
    let environment = environment(&vars);
    let compat = match original.compat {
        Some(Compat::Node) => import::Compat::Node,
        Some(Compat::Perl) => import::Compat::Perl,
        None => import::detect(&text),
    };
    let (plan, diagnostics) = import::statsd(&text, &environment, compat, original.ignore_unknown_backends);
    Ok(Loaded { plan, diagnostics, name, text, more: Vec::new(), watched: Vec::new() }.without_loops())
}

/// Reads a Riemann config as a daemon of its own.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn riemann(file: &Path) -> anyhow::Result<Loaded> {
    let (name, text) = read(file)?;
    let evaluated = evaluate(file, read_text, hostname());
    let (plan, said) = import::riemann::riemann(file.to_owned(), &evaluated, &address_of);
    let watched = vec![WatchedFile::now(file.to_owned())];
    let mut loaded = Loaded { name, text, more: Vec::new(), watched, plan, diagnostics: Vec::new() };
    loaded.add_riemann(file, &evaluated, said, true);
    Ok(loaded.without_loops())
}

/// Reads a Riemann config for its tests: its files, and what is to be said about it. There is no plan.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn riemann_tests(file: &Path) -> anyhow::Result<(Evaluated, Loaded)> {
    without_plan(file, evaluate_tests)
}

/// The same for a config that is run alone.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn riemann_alone(file: &Path) -> anyhow::Result<(Evaluated, Loaded)> {
    without_plan(file, evaluate)
}

fn without_plan(
    file: &Path,
    evaluate: fn(&Path, riemann_files::ReadText, String) -> Evaluated,
) -> anyhow::Result<(Evaluated, Loaded)> {
    let (name, text) = read(file)?;
    let evaluated = evaluate(file, read_text, hostname());
    let mut loaded =
        Loaded { name, text, more: Vec::new(), watched: Vec::new(), plan: None, diagnostics: Vec::new() };
    let said = evaluated.said.clone();
    loaded.add_riemann(file, &evaluated, said, true);
    Ok((evaluated, loaded))
}

/// The streams of a Riemann config that was evaluated, with their places.
pub(crate) fn riemann_parts(files: &Files) -> Vec<Part> {
    streams::parts(files, riemann_files::now_us())
}

/// The text of a file that a Riemann config loads.
fn read_text(file: &Path) -> Result<String, String> {
    if is_special(file) {
        return Err("it is a pipe or a device".to_owned());
    }
    read(file).map(|(_, text)| text).map_err(|error| error.root_cause().to_string())
}

/// Reads a config of node's cluster proxy.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn statsd_proxy(file: &Path) -> anyhow::Result<Loaded> {
    let (name, text) = read(file)?;
    let vars = |name: &str| std::env::var(name).ok();
    let (config, mut diagnostics) = import::statsd_proxy(&text, &environment(&vars));
    let plan = config.and_then(|config| {
        let (plan, more) = import::proxy_plan(&config);
        diagnostics.extend(more);
        plan
    });
    Ok(Loaded { plan, diagnostics, name, text, more: Vec::new(), watched: Vec::new() }.without_loops())
}

/// Reads carbon.conf like a daemon of carbon, with the rule files that it names. Returns the plan, if there is one, and the
/// diagnostics. `reads` is called before each rule file is read.
///
/// # Errors
/// When carbon.conf cannot be read.
pub(crate) fn carbon(
    file: &Path,
    invocation: &Invocation,
    reads: &dyn Fn(&Path),
) -> anyhow::Result<Imported> {
    let (name, text) = read(file)?;
    Ok(carbon_text(file, (&name, &text), invocation, reads))
}

/// The same for an import: without a section, that of the only daemon in the file.
///
/// # Errors
/// When carbon.conf cannot be read, or when it has several daemons.
pub(crate) fn carbon_section(
    file: &Path,
    section: Option<&str>,
    instance: Option<&str>,
) -> anyhow::Result<Imported> {
    let (name, text) = read(file)?;
    let section = match (section, instance) {
        (Some(section), Some(instance)) => format!("{section}:{instance}"),
        (Some(section), None) => section.to_owned(),
        (None, instance) => import::carbon::only_section(&text, instance).map_err(|several| {
            let words: Vec<String> = several.iter().map(|one| format!("`--section {one}`")).collect();
            let (last, before) = words.split_last().expect("several daemons are at least two");
            anyhow::anyhow!("{name} has several daemons: choose one with {} or {last}", before.join(", "))
        })?,
    };
    let invocation = Invocation { hostname: hostname(), ..Invocation::of_section(&section) };
    let mut imported = carbon_text(file, (&name, &text), &invocation, &|_rule_file| {});
    if imported.plan.is_some()
        && let Some(note) = import::carbon::other_daemons(&text, &section)
    {
        imported.said.push_str(&format!("note: {note}\n"));
    }
    Ok(imported)
}

fn carbon_text(
    file: &Path,
    (name, text): (&str, &str),
    invocation: &Invocation,
    reads: &dyn Fn(&Path),
) -> Imported {
    let folder = file.parent().unwrap_or(Path::new("")).to_owned();
    // Rule files are in the folder of carbon.conf, unless they have absolute paths.
    let beside = |name: &str| {
        let file = folder.join(name);
        reads(&file);
        read(&file).map(|(_, text)| text).map_err(|error| format!("{error:#}"))
    };
    let (plan, files) = import::carbon::carbon((name, text), invocation, &beside);
    let colour = wants_colour(std::io::stderr().is_terminal());
    let ordered = import::carbon::harmless_last(&files);
    let each: Vec<_> = ordered.iter().map(|(source, diagnostics)| (*source, &**diagnostics)).collect();
    let said = render_files(&each, colour);
    let loses_a_line = files.iter().flat_map(|file| &file.diagnostics).any(import::carbon::is_incomplete);
    Imported { plan, said, loses_a_line }
}

/// Whether a diagnostic means that a setting of the original is missing in the plan. An option that the original
/// ignores does not count.
pub(crate) fn loses_a_line(code: Code) -> bool {
    code.loses_a_line() && code != Code::ImportUnknownKey
}

/// An imported file of an original.
#[derive(Debug)]
pub(crate) struct Imported {
    /// `None` after an error in it.
    pub(crate) plan: Option<Plan>,
    /// The diagnostics for people.
    pub(crate) said: String,
    /// A setting of it is not in the plan.
    pub(crate) loses_a_line: bool,
}

/// Reads a config of node's statsd, of its cluster proxy, or of Net::Statsd::Server, by its contents.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn any_original(original: &Original) -> anyhow::Result<Loaded> {
    let vars = |name: &str| std::env::var(name).ok();
    if original.compat.is_none() && import::is_proxy(&read(&original.file)?.1, &environment(&vars)) {
        return Ok(statsd_proxy(&original.file)?.with_open_ports());
    }
    Ok(statsd(original)?.with_open_ports())
}

fn environment<'a>(vars: &'a dyn Fn(&str) -> Option<String>) -> javascript::Environment<'a> {
    javascript::Environment { vars, hostname: hostname() }
}

/// The command line of a fan-out as an equivalent file.
pub(crate) fn fanout(args: &FanoutArgs) -> Loaded {
    let default = SocketAddr::from(([127, 0, 0, 1], 8680));
    let asked = import::Fanout {
        sources: args.sources.clone(),
        targets: args.targets.clone(),
        repack: args.mode == FanoutMode::Repack,
        required: args.required,
        records_max: args.channel_size,
        receive_buffer_bytes: args.readbuffer,
        http: match args.health {
            None => Some(default),
            Some(Port::Off) => None,
            Some(Port::At(address)) => Some(address),
        },
        data_dir: args.data_dir.clone(),
        own_prefix: args.metrics_prefix.clone().filter(|_| !args.no_metrics),
    };
    let import::Written { text, plan, diagnostics } = import::fanout(&asked);
    let name = "the config that --print shows".into();
    Loaded { name, text, plan, diagnostics, more: Vec::new(), watched: Vec::new() }.without_loops()
}

pub(crate) fn hostname() -> String {
    sys::host_name()
}

/// Applies the addresses of the command line to a plan.
pub(crate) fn set_ports(plan: &mut Plan, ports: &Ports) {
    match ports.http {
        None => {}
        Some(Port::Off) => plan.http = None,
        Some(Port::At(address)) => plan.http = Some(address),
    }
    match (ports.management, plan.management.first_mut()) {
        (None, _) => {}
        (Some(Port::Off), _) => plan.management.clear(),
        (Some(Port::At(address)), Some(management)) => management.listen = address,
        (Some(Port::At(listen)), None) => plan.management.push(ManagementPlan::at(listen)),
    }
}

#[cfg(test)]
mod riemann_tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
            std::fs::write(path, text).expect("a file");
        }
        folder
    }

    #[test]
    fn mistakes_are_shown_in_the_file_that_has_them() {
        let folder = folder(&[
            ("riemann.config", "(tcp-server)\n(include \"rules\")\n"),
            ("rules/a.clj", "(streams\n  (wher (service \"x\") prn))\n"),
            ("rules/deep/b.config", "(streams prn)\n"),
            ("rules/readme.md", "not code"),
        ]);
        let loaded = riemann(&folder.path().join("riemann.config")).expect("it is read");
        assert!(loaded.has_errors());
        let said = loaded.rendered();
        assert!(said.contains("rules/a.clj:2:4"), "{said}");
        assert!(said.contains("did you mean") && said.contains("where"), "{said}");
        assert_eq!(loaded.files().len(), 3);
    }

    #[test]
    fn a_native_plan_gets_the_outputs_of_its_riemann_config() {
        let folder = folder(&[
            (
                "staunch.toml",
                "[sources.riemann]\ntype = \"riemann\"\n[transforms.rules]\ntype = \"streams\"\nfrom = [\"riemann\"]\n\
                 file = \"FOLDER/riemann.config\"\n[outputs.events]\ntype = \"event_file\"\nfrom = [\"rules\"]\n",
            ),
            (
                "riemann.config",
                "(def g (graphite {:host \"10.0.0.5\" :path :service}))\n(streams g (staunch/output \"events\") (staunch/output \"evnets\"))",
            ),
        ]);
        let path = folder.path().join("staunch.toml");
        let text = std::fs::read_to_string(&path).expect("a file");
        std::fs::write(&path, text.replace("FOLDER", &folder.path().display().to_string())).expect("a file");
        let loaded = native(std::slice::from_ref(&path)).expect("it is read");
        let said = loaded.rendered();
        assert!(said.contains("R003") && said.contains("did you mean \"events\"?"), "{said}");
        let plan = loaded.plan.expect("its text is a plan");
        let names: Vec<&str> = plan.outputs.iter().map(|output| &*output.name).collect();
        assert_eq!(names, ["events", "rules/10.0.0.5:2003"]);
        let printed = config::print(&plan);
        assert!(printed.contains("riemann.config") && !printed.contains("10.0.0.5"), "{printed}");
    }
}

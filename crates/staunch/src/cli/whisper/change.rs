//! `create`, `update`, `set-aggregation` and `set-xff`.

use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use graphite::query::numbers::repr;
use graphite::whisper::format::{POINT_BYTES, is_factor, parse_retention};
use graphite::whisper::{AggregationMethod, Header, Layout, Point, Scratch, Space, UpdateOptions, create_in};
use model::TreeFile as _;
use sys::tree::Tree;

use super::args::{Create, SetAggregation, SetXff, Update};
use super::files::{Deed, Outcome, each, now, refuse_if_written, split, to_change};
use client::stdio;

/// Most bytes of points on stdin.
const STDIN_BYTES_MAX: u64 = 1 << 30;

/// The archives of a list of words; one word may have several with commas between them.
pub(super) fn layout(words: &[String]) -> anyhow::Result<Layout> {
    let mut archives = Vec::new();
    for word in words.iter().flat_map(|word| word.split(',')) {
        let archive = parse_retention(word)
            .map_err(|error| anyhow::anyhow!("Invalid retention definition '{word}': {error}"))?;
        archives.push(archive);
    }
    Ok(Layout::new(&archives)?)
}

/// The method of a name.
pub(super) fn method(name: &str) -> anyhow::Result<AggregationMethod> {
    let names: Vec<&str> = AggregationMethod::ALL.iter().map(|method| method.name()).collect();
    AggregationMethod::of_name(name).with_context(|| {
        format!("Unrecognized aggregation method: {name}: it is one of {}", names.join(", "))
    })
}

/// `staunch whisper create`
pub(super) fn create(args: &Create) -> anyhow::Result<ExitCode> {
    if args.estimate {
        return estimate(&args.words);
    }
    let [path, archives @ ..] = &args.words[..] else { bail!("a path and archives are missing") };
    if archives.is_empty() {
        bail!("the archives are missing: STEP:LENGTH, such as 60:1440 or 1h:7d");
    }
    let path = Path::new(path);
    let header = Arc::new(Header::new(&layout(archives)?, method(&args.method)?, args.x_files_factor)?);
    let space = match (args.sparse, args.fallocate) {
        (true, _) => Space::Sparse,
        (false, true) => Space::Allocate,
        (false, false) => Space::Zeros,
    };
    let (folder, name) = split(path)?;
    if !folder.is_dir() {
        bail!("there is no folder {}", folder.display());
    }
    refuse_if_written(path)?;
    let tree = Tree::open(folder.to_owned())?;
    if path.exists() {
        if !args.overwrite {
            bail!("File {} already exists!", path.display());
        }
        stdio::data(format!("Overwriting existing file: {}\n", path.display()).as_bytes())?;
        std::fs::remove_file(path).with_context(|| path.display().to_string())?;
    }
    create_in(&tree, name, &header, space).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
    stdio::data(format!("Created: {} ({} bytes)\n", path.display(), header.file_bytes()).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Sizes of files with these archives, which are not checked against each other.
fn estimate(words: &[String]) -> anyhow::Result<ExitCode> {
    let mut out = String::new();
    let (mut archives, mut points) = (0_u64, 0_u64);
    for word in words.iter().flat_map(|word| word.split(',')) {
        let archive = parse_retention(word)
            .map_err(|error| anyhow::anyhow!("Invalid retention definition '{word}': {error}"))?;
        out += &format!("Archive {archives}: {} points of {}s precision\n", archive.points, archive.step);
        archives += 1;
        points = points.saturating_add(u64::from(archive.points));
    }
    let size = points.saturating_mul(POINT_BYTES).saturating_add(16 + archives * 12);
    let disk = size.div_ceil(4096).saturating_mul(4096);
    out += &format!(
        "\nEstimated Whisper DB Size: {} ({disk} bytes on disk with 4k blocks)\n\n",
        bytes(size as f64)
    );
    for thousands in [1_u64, 5, 10, 50, 100, 500] {
        let all = thousands as f64 * 1000.0 * disk as f64;
        out += &format!("Estimated storage requirement for {thousands}k metrics: {}\n", bytes(all));
    }
    stdio::data(out.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn bytes(mut number: f64) -> String {
    for unit in ["bytes", "KB", "MB"] {
        if number < 1024.0 {
            return format!("{number:.3}{unit}");
        }
        number /= 1024.0;
    }
    format!("{number:.3}GB")
}

/// `staunch whisper update`
pub(super) fn update(args: &Update) -> anyhow::Result<ExitCode> {
    let now = now();
    let mut points: Vec<Point> = if args.points.is_empty() {
        let mut text = String::new();
        std::io::stdin()
            .take(STDIN_BYTES_MAX)
            .read_to_string(&mut text)
            .context("cannot read standard input")?;
        text.lines()
            .filter(|line| !line.trim().is_empty())
            .map(|line| point(line, now))
            .collect::<Result<_, _>>()?
    } else {
        args.points.iter().map(|text| point(text, now)).collect::<Result<_, _>>()?
    };
    let mut file = to_change(&args.path)?;
    let (mut scratch, path) = (Scratch::default(), args.path.display());
    let options = UpdateOptions { first_duplicate: true, accept_future: true, ..UpdateOptions::default() };
    if let [point] = points[..] {
        file.update(point, now, &mut scratch).map_err(|error| anyhow::anyhow!("{path}: {error}"))?;
    } else {
        let written = file.update_many(&mut points, now, &options, &mut scratch);
        let written = written.map_err(|error| anyhow::anyhow!("{path}: {error}"))?;
        if written.too_old > 0 {
            stdio::say(&format!("{path}: {} points are older than the file covers\n", written.too_old));
        }
    }
    file.file().sync().map_err(|error| anyhow::anyhow!("{path}: {error}"))?;
    Ok(ExitCode::SUCCESS)
}

/// `TIME:VALUE`, or `N:VALUE` for now.
fn point(text: &str, now: i64) -> anyhow::Result<Point> {
    let mistake = || format!("`{}` is not a point: write TIME:VALUE, such as N:1.5", text.trim());
    let (time, value) = text.trim().split_once(':').with_context(mistake)?;
    let time = if time == "N" { now } else { time.trim().parse().with_context(mistake)? };
    Ok(Point { time, value: value.trim().parse().with_context(mistake)? })
}

/// `staunch whisper set-aggregation`
pub(super) fn set_aggregation(args: &SetAggregation) -> anyhow::Result<ExitCode> {
    let method = method(&args.method)?;
    if args.x_files_factor.is_some_and(|factor| !is_factor(factor)) {
        bail!("Invalid xFilesFactor, not between 0 and 1");
    }
    let set = |path: &Path| {
        let mut file = to_change(path)?;
        let changed = || -> Result<_, model::DiskError> {
            let old = file.set_method(method)?;
            if let Some(factor) = args.x_files_factor {
                file.set_x_files_factor(factor)?;
            }
            file.file().sync()?;
            Ok(old)
        };
        let mut changed = changed;
        changed().map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))
    };
    if args.path.is_dir() {
        refuse_if_written(&args.path)?;
        return each(&args.path, Deed::Changes("changed"), |file| {
            let old = set(&args.path.join(file))?;
            Ok(if old == method && args.x_files_factor.is_none() { Outcome::Left } else { Outcome::Done })
        });
    }
    let old = set(&args.path)?;
    let (path, old, new) = (args.path.display(), old.name(), method.name());
    stdio::data(format!("Updated aggregation method: {path} ({old} -> {new})\n").as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// `staunch whisper set-xff`
pub(super) fn set_xff(args: &SetXff) -> anyhow::Result<ExitCode> {
    let factor = args.x_files_factor;
    let set = |path: &Path| -> anyhow::Result<f32> {
        let mut file = to_change(path)?;
        let old = file
            .set_x_files_factor(factor)
            .map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
        let old = old.with_context(|| format!("Invalid xFilesFactor {factor}, not between 0 and 1"))?;
        file.file().sync().map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
        Ok(old)
    };
    if args.path.is_dir() {
        refuse_if_written(&args.path)?;
        return each(&args.path, Deed::Changes("changed"), |file| {
            Ok(if set(&args.path.join(file))? == factor { Outcome::Left } else { Outcome::Done })
        });
    }
    let old = set(&args.path)?;
    // The double nearest to the shortest text, as Python prints what was given.
    let given: f64 = factor.to_string().parse().unwrap_or_else(|_| f64::from(factor));
    let (path, old, new) = (args.path.display(), repr(f64::from(old)), repr(given));
    stdio::data(format!("Updated xFilesFactor: {path} ({old} -> {new})\n").as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

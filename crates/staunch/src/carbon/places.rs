//! The files and folders of one daemon: from the command line, then carbon.conf, then the environment (spec graphite §4.1).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use import::carbon::{Directories, Invocation, directories};

use super::args::CarbonArgs;
use crate::cli::load;

/// GRAPHITE_ROOT without the variable and without a link in its `bin`.
const ROOT: &str = "/opt/graphite";

/// See the module's header.
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// Such as `carbon-cache`.
    pub(super) program: String,
    pub(super) instance: String,
    pub(super) config: PathBuf,
    pub(super) pid_file: PathBuf,
    /// Where the log of a daemon in the background goes.
    pub(super) log_file: PathBuf,
    pub(super) data_dir: PathBuf,
    pub(super) invocation: Invocation,
}

impl Places {
    /// The places of the daemon that these options mean.
    ///
    /// # Errors
    /// When carbon.conf cannot be read.
    pub(super) fn of(args: &CarbonArgs) -> anyhow::Result<Places> {
        let root = root(std::env::var_os("GRAPHITE_ROOT"), std::env::args_os().next());
        Places::with(args, &root, |name| std::env::var_os(name).filter(|value| !value.is_empty()))
    }

    fn with(
        args: &CarbonArgs,
        root: &Path,
        environment: impl Fn(&str) -> Option<OsString>,
    ) -> anyhow::Result<Places> {
        let folder =
            |name: &str, below: &str| environment(name).map_or_else(|| root.join(below), PathBuf::from);
        let conf_dir = folder("GRAPHITE_CONF_DIR", "conf");
        let config = args.config.clone().unwrap_or_else(|| conf_dir.join("carbon.conf"));
        let storage = folder("GRAPHITE_STORAGE_DIR", "storage");
        let program = args.program.word();
        let given = |file: &Option<PathBuf>| file.as_deref().map(absolute);
        let invocation = Invocation {
            section: format!("{program}:{}", args.instance),
            hostname: load::hostname(),
            storage_dir: Some(storage.display().to_string()),
            rules: given(&args.rules),
            rewrite_rules: given(&args.rewrite_rules),
            blacklist: given(&args.blacklist),
            whitelist: given(&args.whitelist),
            storage_rules: Some(config.parent().unwrap_or(Path::new("")).to_owned()),
        };
        let Directories { storage, pid, log } = directories(&load::read(&config)?.1, &invocation);
        let name = format!("carbon-{program}-{}", args.instance);
        let log_dir = args.logdir.clone().unwrap_or_else(|| PathBuf::from(log));
        Ok(Places {
            program: format!("carbon-{program}"),
            instance: args.instance.clone(),
            pid_file: args.pidfile.clone().unwrap_or_else(|| Path::new(&pid).join(format!("{name}.pid"))),
            log_file: args.logfile.clone().unwrap_or_else(|| log_dir.join("console.log")),
            data_dir: args.data_dir.clone().unwrap_or_else(|| {
                Path::new(&storage).join("staunch").join(format!("{program}-{}", args.instance))
            }),
            config,
            invocation,
        })
    }
}

/// Relative to the working folder, as carbon reads it, and not to that of carbon.conf.
fn absolute(file: &Path) -> String {
    std::path::absolute(file).unwrap_or_else(|_| file.to_owned()).display().to_string()
}

/// The folder above the one of a link such as `/srv/graphite/bin/carbon-cache.py`.
fn root(variable: Option<OsString>, program: Option<OsString>) -> PathBuf {
    if let Some(root) = variable.filter(|root| !root.is_empty()) {
        return PathBuf::from(root);
    }
    let program = program.map(PathBuf::from).unwrap_or_default();
    let is_link = program.file_name().is_some_and(|name| name.to_string_lossy().starts_with("carbon-"));
    // A name without a folder was found in PATH. Others may be relative: `./carbon-cache.py`.
    let has_folder = program.parent().is_some_and(|folder| !folder.as_os_str().is_empty());
    let program = std::path::absolute(&program).unwrap_or(program);
    let root = program.parent().and_then(Path::parent).filter(|_| is_link && has_folder);
    root.map_or_else(|| PathBuf::from(ROOT), Path::to_owned)
}

#[test]
fn the_root_is_that_of_the_variable_or_of_a_link() {
    let of = |variable: Option<&str>, program: &str| {
        root(variable.map(OsString::from), Some(program.into())).display().to_string()
    };
    assert_eq!(of(Some("/g"), "/srv/graphite/bin/carbon-cache.py"), "/g");
    assert_eq!(of(None, "/srv/graphite/bin/carbon-cache.py"), "/srv/graphite");
    let here = std::env::current_dir().expect("it is there");
    assert_eq!(of(None, "bin/carbon-cache.py"), here.display().to_string());
    assert_eq!(Some(&*of(None, "./carbon-cache.py")), here.parent().and_then(Path::to_str));
    for program in ["/usr/bin/staunch", "carbon-cache.py", ""] {
        assert_eq!(of(Some(""), program), ROOT, "{program}");
    }
}

#[test]
fn options_come_before_carbon_conf_and_carbon_conf_before_the_environment() {
    use clap::Parser;
    #[derive(Debug, Parser)]
    struct Alone {
        #[command(flatten)]
        carbon: CarbonArgs,
    }
    let folder = tempfile::tempdir().expect("a folder");
    let conf = folder.path().join("carbon.conf");
    std::fs::write(&conf, "[cache:b]\nPID_DIR = /run/carbon\n").expect("a file");
    let of = |words: &str| {
        let words = format!("carbon cache start {words}");
        let args = Alone::try_parse_from(words.split_whitespace()).expect("options").carbon;
        let folder = folder.path().as_os_str().to_owned();
        let environment = |name: &str| match name {
            "GRAPHITE_CONF_DIR" => Some(folder.clone()),
            "GRAPHITE_STORAGE_DIR" => Some("/store".into()),
            _ => None,
        };
        Places::with(&args, Path::new("/root"), environment).expect("the file is there")
    };
    let [a, b, given] =
        [of(""), of("--instance b"), of("--pidfile /p --logfile /l --data-dir /d --rules /r")];
    assert_eq!(a.config, conf);
    assert_eq!(a.pid_file, Path::new("/store/carbon-cache-a.pid"));
    assert_eq!(a.log_file, Path::new("/store/log/carbon-cache/carbon-cache-a/console.log"));
    assert_eq!(a.data_dir, Path::new("/store/staunch/cache-a"));
    assert_eq!(b.pid_file, Path::new("/run/carbon/carbon-cache-b.pid"));
    assert_eq!((given.pid_file, given.log_file, given.data_dir), ("/p".into(), "/l".into(), "/d".into()));
    assert_eq!(given.invocation.rules.as_deref(), Some("/r"));
}

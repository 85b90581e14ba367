//! carbon-cache.py and graphite-web as child processes.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::node::{RETENTIONS, ask};
use crate::contestant::process::Process;
use crate::contestant::server::{Stand, free_tcp_port};
use crate::rival::Rival;
use crate::{BenchError, failed};

/// Where `.ci/tools` installs the originals, relative to the repository.
const CARBON: &str = "compat/.carbon";
const GRAPHITE_WEB: &str = "compat/.graphite-web";

/// carbon-cache has written everything when it uses less of a core than this, for so long.
const IDLE_SHARE: f64 = 0.02;
const IDLE_LOOKS: u32 = 3;
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The originals that are installed.
#[derive(Clone, Debug, clap::Args)]
pub struct GraphiteStack {
    /// Leave carbon-cache and graphite-web out
    #[arg(long)]
    pub without_original: bool,
}

/// Their folders.
#[derive(Clone, Debug, Default)]
pub(super) struct Originals {
    pub(super) carbon: Option<PathBuf>,
    pub(super) graphite_web: Option<PathBuf>,
}

impl GraphiteStack {
    /// What is there, and the words of the report.
    pub(super) fn find(&self) -> (Originals, Rival) {
        if self.without_original {
            return (Originals::default(), Rival::default());
        }
        let there = |folder: &str, file: &str| {
            let folder = fs::canonicalize(folder).ok()?;
            folder.join(file).exists().then_some(folder)
        };
        let originals = Originals {
            carbon: there(CARBON, "bin/carbon-cache.py"),
            graphite_web: there(GRAPHITE_WEB, "bin/python"),
        };
        let missing: Vec<&str> =
            [("carbon-cache", &originals.carbon), ("graphite-web", &originals.graphite_web)]
                .into_iter()
                .filter_map(|(name, found)| found.is_none().then_some(name))
                .collect();
        let words = match missing.len() {
            2 => "",
            _ => "carbon and graphite-web 1.1.10 (PyPI)",
        };
        let why = format!("left out: {} (`.ci/tools` installs both)", missing.join(", "));
        let missing = (!missing.is_empty()).then_some(why);
        (originals, Rival { program: None, words: words.to_owned(), missing })
    }
}

/// A carbon-cache.py that runs. Killed when dropped.
#[derive(Debug)]
pub(super) struct CarbonCache {
    process: Process,
    pub(super) lines: SocketAddr,
}

impl CarbonCache {
    /// Starts one without limits on updates, new files and its cache.
    ///
    /// # Errors
    /// When it does not start.
    pub(super) fn start(stand: &Stand, carbon: &Path, folder: &Path) -> Result<CarbonCache, BenchError> {
        let free = || free_tcp_port().map_err(failed("find a free port"));
        let (lines, queries) = (free()?, free()?);
        let conf = folder.join("conf");
        fs::create_dir_all(&conf).map_err(failed("make a folder for carbon"))?;
        let text = format!(
            "[cache]\nSTORAGE_DIR = {}\nLINE_RECEIVER_INTERFACE = 127.0.0.1\nLINE_RECEIVER_PORT = {}\n\
             PICKLE_RECEIVER_PORT = 0\nCACHE_QUERY_INTERFACE = 127.0.0.1\nCACHE_QUERY_PORT = {}\n\
             MAX_UPDATES_PER_SECOND = inf\nMAX_CREATES_PER_MINUTE = inf\nMAX_CACHE_SIZE = inf\n\
             WHISPER_SPARSE_CREATE = True\nLOG_UPDATES = False\nLOG_CREATES = False\nCARBON_METRIC_INTERVAL = 0\n\
             ENABLE_TAGS = False\n",
            folder.join("storage").display(),
            lines.port(),
            queries.port()
        );
        let schemas = format!("[all]\npattern = .*\nretentions = {RETENTIONS}\n");
        for (name, text) in [("carbon.conf", text), ("storage-schemas.conf", schemas)] {
            fs::write(conf.join(name), text).map_err(failed("write a config file"))?;
        }
        let mut command = Command::new(carbon.join("bin/python"));
        command.arg(carbon.join("bin/carbon-cache.py")).arg("--config").arg(conf.join("carbon.conf"));
        command.args(["--debug", "start"]).env("GRAPHITE_ROOT", folder).current_dir(folder);
        let process =
            Process::start("carbon-cache", command, stand.core, stand.dir.join("carbon.log"), || {
                TcpStream::connect(lines).map(drop)
            })?;
        Ok(CarbonCache { process, lines })
    }

    /// CPU time so far, in nanoseconds.
    ///
    /// # Errors
    /// When it has ended.
    pub(super) fn cpu_ns(&self) -> Result<u64, BenchError> {
        self.process.cpu_ns()
    }

    /// Waits until it does nothing any more.
    ///
    /// # Errors
    /// When it has ended.
    pub(super) fn until_idle(&self) -> Result<(), BenchError> {
        let mut idle = 0;
        while idle < IDLE_LOOKS {
            let before_ns = self.process.cpu_ns()?;
            thread::sleep(LOOK_EVERY);
            let used = (self.process.cpu_ns()? - before_ns) as f64 / LOOK_EVERY.as_nanos() as f64;
            idle = if used < IDLE_SHARE { idle + 1 } else { 0 };
        }
        Ok(())
    }
}

/// A graphite-web that runs, with the server of Python's library and without its cache of answers. Killed when dropped.
#[derive(Debug)]
pub(super) struct GraphiteWeb {
    process: Process,
    http: SocketAddr,
}

/// Serves graphite-web's application on the port of its argument.
const SERVER: &str = "\
import os, sys
sys.path = [path for path in sys.path if path]
os.environ['DJANGO_SETTINGS_MODULE'] = 'graphite.settings'
import django
django.setup()
from django.conf import settings
settings.ALLOWED_HOSTS = ['*']
from django.core.wsgi import get_wsgi_application
from wsgiref.simple_server import WSGIRequestHandler, make_server
class Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        pass
make_server('127.0.0.1', int(sys.argv[1]), get_wsgi_application(), handler_class=Quiet).serve_forever()
";

impl GraphiteWeb {
    /// Starts one on a tree of whisper files, as `whisper` in `storage`.
    ///
    /// # Errors
    /// When it does not start.
    pub(super) fn start(
        stand: &Stand,
        graphite_web: &Path,
        storage: &Path,
    ) -> Result<GraphiteWeb, BenchError> {
        let http = free_tcp_port().map_err(failed("find a free port"))?;
        fs::create_dir_all(storage.join("log/webapp")).map_err(failed("make a folder for graphite-web"))?;
        let mut command = Command::new(graphite_web.join("bin/python"));
        command.args(["-c", SERVER, &http.port().to_string()]).current_dir(storage);
        command.env("GRAPHITE_STORAGE_DIR", storage);
        let log = stand.dir.join("graphite-web.log");
        let process = Process::start("graphite-web", command, stand.core, log, || {
            match ask(http, "GET /version", "")? {
                (200, _) => Ok(()),
                _ => Err(io::ErrorKind::NotConnected.into()),
            }
        })?;
        Ok(GraphiteWeb { process, http })
    }

    /// CPU time so far, in nanoseconds.
    ///
    /// # Errors
    /// When it has ended.
    pub(super) fn cpu_ns(&self) -> Result<u64, BenchError> {
        self.process.cpu_ns()
    }

    /// The answer to a GET.
    ///
    /// # Errors
    /// When it is another answer than 200.
    pub(super) fn get(&self, path: &str) -> Result<Vec<u8>, BenchError> {
        match ask(self.http, &format!("GET {path}"), "") {
            Ok((200, body)) => Ok(body),
            Ok((status, _)) => Err(self.process.not_ready(format!("{path}: status {status}"))),
            Err(error) => Err(self.process.not_ready(format!("{path}: {error}"))),
        }
    }
}

//! A Staunch with a store of whisper files, and what is asked of it.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::contestant::process::Process;
use crate::contestant::server::{Stand, free_tcp_port};
use crate::{BenchError, failed};
use sys::Memory;
use sys::clock::Clock;

const NAME: &str = "staunch";

/// Name of its output.
const STORE: &str = "store";

/// Longest wait for one answer.
const ANSWER_WAIT: Duration = Duration::from_secs(120);

/// Longest wait for points to arrive, and for all of them to be in their files.
const SETTLE_WAIT_NS: u64 = 900_000_000_000;

/// The archives of all files. They aggregate as carbon does without a storage-aggregation.conf: `average` and 0.5.
pub(super) const RETENTIONS: &str = "10s:6h,1m:7d";

/// One daemon with its folder. Killed when dropped.
#[derive(Debug)]
pub(super) struct Node {
    process: Process,
    http: SocketAddr,
    /// Where it takes lines.
    pub(super) lines: SocketAddr,
}

impl Node {
    /// Starts one on `folder`, which may have the data of another that has ended. `more` are options of the output.
    ///
    /// # Errors
    /// When it does not start.
    pub(super) fn start(
        stand: &Stand,
        folder: &Path,
        core: Option<usize>,
        more: &str,
    ) -> Result<Node, BenchError> {
        let free = || free_tcp_port().map_err(failed("find a free port"));
        let (lines, http) = (free()?, free()?);
        fs::create_dir_all(folder).map_err(failed("make a folder for a store"))?;
        let config = format!(
            "data_dir = {:?}\n[http]\nlisten = \"{http}\"\n[sources.lines]\ntype = \"graphite\"\nlisten = [\"tcp://{lines}\"]\n\
             [outputs.{STORE}]\ntype = \"whisper\"\nfrom = [\"lines\"]\npath = {:?}\n{more}\n\
             schemas = [{{ pattern = \"\", retentions = \"{RETENTIONS}\" }}]\n\
             aggregations = [{{ pattern = \"\", method = \"average\", x_files_factor = 0.5 }}]\n",
            folder.join("data"),
            files_in(folder)
        );
        let path = folder.join("staunch.toml");
        fs::write(&path, config).map_err(failed("write a config file"))?;
        let mut command = Command::new(&stand.binary);
        command.arg("run").arg(&path).current_dir(folder);
        let log = stand.dir.join("store.log");
        let ready = || match ask(http, "GET /ready", "")? {
            (200, _) => Ok(()),
            _ => Err(io::ErrorKind::NotConnected.into()),
        };
        let process = Process::start(NAME, command, core, log, ready)?;
        Ok(Node { process, http, lines })
    }

    /// CPU time so far, in nanoseconds.
    ///
    /// # Errors
    /// When it has ended.
    pub(super) fn cpu_ns(&self) -> Result<u64, BenchError> {
        self.process.cpu_ns()
    }

    /// Its memory.
    ///
    /// # Errors
    /// When it has ended.
    pub(super) fn memory(&self) -> Result<Memory, BenchError> {
        self.process.memory()
    }

    /// The answer to a GET; 503 is asked again, as a store that is being opened answers it.
    ///
    /// # Errors
    /// When it is another answer than 200.
    pub(super) fn get(&self, path: &str) -> Result<Vec<u8>, BenchError> {
        let deadline_ns = Clock::mono_ns() + SETTLE_WAIT_NS;
        loop {
            match ask(self.http, &format!("GET {path}"), "") {
                Ok((200, body)) => return Ok(body),
                Ok((503, _)) if Clock::mono_ns() < deadline_ns => thread::sleep(Duration::from_millis(10)),
                Ok((status, body)) => {
                    let text = String::from_utf8_lossy(&body);
                    return Err(self.process.not_ready(format!("{path}: status {status}: {text}")));
                }
                Err(error) => return Err(self.process.not_ready(format!("{path}: {error}"))),
            }
        }
    }

    fn json(&self, path: &str) -> Result<Value, BenchError> {
        serde_json::from_slice(&self.get(path)?).map_err(|error| counts(error.to_string()))
    }

    /// Points that the output has had, and those that it has lost.
    ///
    /// # Errors
    /// When it does not say.
    pub(super) fn copies(&self) -> Result<(u64, u64), BenchError> {
        let page = self.json("/api/v1/accounts")?;
        let mut outputs = page["outputs"].as_array().into_iter().flatten();
        let row = outputs.find(|row| row["name"] == STORE).ok_or_else(|| counts("no output".into()))?;
        let count = |name: &str| row[name].as_u64().ok_or_else(|| counts(format!("no `{name}`")));
        Ok((count("copies")?, count("dropped")? + count("expired")?))
    }

    /// A figure of the store.
    ///
    /// # Errors
    /// When it does not say.
    pub(super) fn figure(&self, name: &str) -> Result<u64, BenchError> {
        let page = self.json("/api/v1/stores")?;
        page["stores"][0][name].as_u64().ok_or_else(|| counts(format!("no `{name}` of the store")))
    }

    /// Waits until the output has had so many points.
    ///
    /// # Errors
    /// When they do not come.
    pub(super) fn until_copies(&self, want: u64) -> Result<(), BenchError> {
        let deadline_ns = Clock::mono_ns() + SETTLE_WAIT_NS;
        while self.copies()?.0 < want {
            if Clock::mono_ns() > deadline_ns {
                return Err(self.process.not_ready(format!("it has not received {want} points")));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Waits until all points are in synced files.
    ///
    /// # Errors
    /// When that takes too long.
    pub(super) fn drain(&self) -> Result<(), BenchError> {
        let deadline_ns = Clock::mono_ns() + SETTLE_WAIT_NS;
        let mut order = json!({});
        while Clock::mono_ns() < deadline_ns {
            let request = format!("POST /api/v1/stores/{STORE}/drain");
            let answer = ask(self.http, &request, &order.to_string());
            let (status, body) = answer.map_err(|error| self.process.not_ready(error.to_string()))?;
            let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
            if status != 200 {
                return Err(self.process.not_ready(format!("drain: status {status}: {answer}")));
            }
            if answer["done"] == true {
                return Ok(());
            }
            order = json!({ "copies": answer["left"] });
        }
        Err(self.process.not_ready("its points do not come into their files".into()))
    }

    /// Bytes that it has written to the disk.
    ///
    /// # Errors
    /// When the system does not count them.
    pub(super) fn bytes_written(&self) -> Result<u64, BenchError> {
        let text = fs::read_to_string(format!("/proc/{}/io", self.process.id()));
        let text = text.map_err(failed("read the I/O of a process"))?;
        let bytes = text.lines().find_map(|line| line.strip_prefix("write_bytes: "));
        bytes.and_then(|bytes| bytes.parse().ok()).ok_or_else(|| counts("no `write_bytes`".into()))
    }

    /// Asks it to end, which writes all points.
    ///
    /// # Errors
    /// When it does not end.
    pub(super) fn stop(self) -> Result<(), BenchError> {
        self.process.stop().map(|_status| ())
    }
}

/// The whisper files of a folder's node.
pub(super) fn files_in(folder: &Path) -> PathBuf {
    folder.join("whisper")
}

fn counts(why: String) -> BenchError {
    BenchError::Counts { server: NAME, why }
}

/// Sends a request with a body of JSON, if there is one. The status and the body of the answer.
///
/// # Errors
/// Those of the connection.
pub(super) fn ask(at: SocketAddr, what: &str, body: &str) -> io::Result<(u16, Vec<u8>)> {
    let mut connection = TcpStream::connect_timeout(&at, ANSWER_WAIT)?;
    connection.set_read_timeout(Some(ANSWER_WAIT))?;
    // HTTP/1.0: the answer ends with the connection, and comes in one piece.
    let head = format!("{what} HTTP/1.0\r\nHost: {at}\r\nContent-Length: {}\r\n", body.len());
    let kind = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
    connection.write_all(format!("{head}{kind}\r\n{body}").as_bytes())?;
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer)?;
    let wrong = || io::Error::new(io::ErrorKind::InvalidData, "no HTTP answer");
    let end = memchr::memmem::find(&answer, b"\r\n\r\n").ok_or_else(wrong)?;
    let status = String::from_utf8_lossy(&answer[..end]).split(' ').nth(1).and_then(|word| word.parse().ok());
    answer.drain(..end + 4);
    Ok((status.ok_or_else(wrong)?, answer))
}

//! The control socket `<data_dir>/control.sock`: a new process of the same user requests a hot restart here.
//!
//! Processes of other users are rejected. A process that sends nothing, or something else, gets an error and is
//! disconnected. Not here: the hot restart after a valid request (`old`).

use std::io;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use config::plan::Listen;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{JoinHandle, JoinSet, spawn_blocking};

use super::link::{CONTROL_FILE, Link, LinkError};
use super::message::{Message, VERSION};
use crate::daemon::hot_restart::Inheritance;
use crate::daemon::shared::bind::{self, Bound};
use sys::clock::Clock;
use sys::pass::{self, Peer};

/// Only the daemon's own user may connect.
const MODE: u32 = 0o600;

/// Timeout for the first message.
const HELLO_WITHIN_NS: u64 = 2 * model::SECOND_NS;

/// Most peers whose first message is awaited at the same time.
const HEARD_MAX: usize = 32;

/// Pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The control socket, open.
#[derive(Debug)]
pub struct Control {
    /// For the task, and for another process.
    pub listener: UnixListener,
    path: PathBuf,
    /// Accepts connections, once it is served.
    task: Option<JoinHandle<()>>,
}

/// A request for a hot restart in a known version.
#[derive(Debug)]
pub struct Asked {
    /// The connection.
    pub link: Link,
    /// Its version, for people.
    pub program: String,
}

impl Control {
    /// Opens the control socket of a data directory, or takes over that of the old process. `None` with a log message
    /// where that is impossible: the daemon then works, but cannot be hot restarted.
    pub fn open(data_dir: &Path, from: Option<&mut Inheritance>) -> Option<Control> {
        let path = data_dir.join(CONTROL_FILE);
        let opened = match from.and_then(Inheritance::take_control) {
            Some(listener) => Ok(listener),
            None => bind_new(data_dir, &path),
        };
        match opened {
            Ok(listener) => Some(Control { listener, path, task: None }),
            Err(why) => {
                tracing::info!(
                    "a hot restart of this process will not be possible: {}: {why}",
                    path.display()
                );
                None
            }
        }
    }

    /// Accepts requests until the daemon ends. Each valid one is sent to `asked`.
    ///
    /// # Errors
    /// When the runtime cannot register the socket.
    pub fn serve(&mut self, asked: mpsc::Sender<Asked>) -> io::Result<()> {
        let listener = self.listener.try_clone()?;
        listener.set_nonblocking(true)?;
        let listener = tokio::net::UnixListener::from_std(listener)?;
        self.task = Some(tokio::spawn(listen(listener, asked)));
        Ok(())
    }

    /// Stops accepting: later requests go to the other process with the socket.
    pub fn leave(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }

    /// Removes the socket file.
    pub fn remove(&self) {
        // It may already be removed.
        let _gone = std::fs::remove_file(&self.path);
    }
}

fn bind_new(data_dir: &Path, path: &Path) -> Result<UnixListener, String> {
    std::fs::create_dir_all(data_dir).map_err(|error| error.to_string())?;
    let listen = Listen::UnixStream { path: path.to_owned(), mode: Some(MODE) };
    match bind::bind(&listen, 0) {
        Ok((Bound::Unix(listener), _)) => Ok(listener),
        Ok(_) => Err("a socket of another kind".to_owned()),
        Err(error) if error.taken => {
            Err("another process uses it; set another data directory for this one".to_owned())
        }
        Err(error) => Err(error.to_string()),
    }
}

async fn listen(listener: tokio::net::UnixListener, asked: mpsc::Sender<Asked>) {
    let free = Arc::new(Semaphore::new(HEARD_MAX));
    let mut hearings = JoinSet::new();
    loop {
        // The semaphore is never closed.
        let Ok(place) = Arc::clone(&free).acquire_owned().await else { return };
        while hearings.try_join_next().is_some() {}
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream.into_std(),
            Err(error) => {
                tracing::debug!("control socket: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let asked = asked.clone();
        // They end with this task.
        hearings.spawn(async move {
            // On another thread, because a silent peer must not block others.
            let heard = spawn_blocking(move || hear(Link::new(stream?)?)).await;
            drop(place);
            match heard {
                // If the daemon has ended, nobody receives it; the other process notices that.
                Ok(Ok(question)) => drop(asked.send(question).await),
                Ok(Err(error)) => tracing::debug!("control socket: {error}"),
                Err(error) => tracing::error!("control socket: {error}"),
            }
        });
    }
}

/// Receives the first message.
fn hear(mut link: Link) -> Result<Asked, LinkError> {
    let deadline_ns = Clock::mono_ns() + HELLO_WITHIN_NS;
    if !may_ask(link.peer(), pass::own_uid()) {
        let why = "it is a process of another user".to_owned();
        link.send(&Message::Refused { why }, deadline_ns)?;
        return Err(LinkError::OutOfTurn);
    }
    match link.receive(deadline_ns)? {
        Message::Hello { version: VERSION, program } => Ok(Asked { link, program }),
        Message::Hello { version, program } => {
            let own = env!("CARGO_PKG_VERSION");
            let why = format!(
                "staunch {program} has version {version} of the hot restart protocol, and the running staunch {own} has \
                 version {VERSION}: stop the running one, then start the new one"
            );
            link.send(&Message::Refused { why }, deadline_ns)?;
            Err(LinkError::OutOfTurn)
        }
        _ => Err(LinkError::OutOfTurn),
    }
}

/// Whether a process may replace us: one of the same user, or of root, which may do anything.
fn may_ask(peer: Peer, own_uid: u32) -> bool {
    peer.uid == own_uid || peer.uid == 0
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;

    use super::*;

    /// One silent peer more than the limit: the next one would have to wait for [`HELLO_WITHIN_NS`].
    #[test]
    fn silent_peers_do_not_block_requests() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut control = Control::open(folder.path(), None).expect("it can be made");
        let connect = || UnixStream::connect(folder.path().join(CONTROL_FILE)).expect("it listens");
        let _silent: Vec<UnixStream> = (1..HEARD_MAX).map(|_| connect()).collect();
        let mut asks = connect();
        let hello = Message::Hello { version: VERSION, program: "9.9.9".to_owned() };
        asks.write_all(&hello.encode().expect("it is short")).expect("it has room");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let (to, mut asked) = mpsc::channel(1);
            control.serve(to).expect("the runtime takes it");
            let first = asked.recv().await.expect("somebody asks");
            assert_eq!(first.program, "9.9.9");
        });
        runtime.shutdown_background();
    }

    #[test]
    fn requests_of_other_users_are_rejected() {
        let peer = |uid| Peer { pid: 1, uid };
        for (uid, own, may) in [(7, 7, true), (8, 7, false), (0, 7, true), (7, 0, false)] {
            assert_eq!(may_ask(peer(uid), own), may, "{uid} asks {own}");
        }
    }

    #[test]
    fn the_socket_is_private_and_a_live_one_is_not_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let data_dir = folder.path().join("not/there/yet");
        let control = Control::open(&data_dir, None).expect("it can be made");
        let mode = std::fs::metadata(&control.path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(Control::open(&data_dir, None).is_none(), "somebody has it");
        drop(control);
        let again = Control::open(&data_dir, None).expect("nobody has it any more");
        again.remove();
        assert!(!data_dir.join(CONTROL_FILE).exists());
    }

    #[test]
    fn only_requests_in_our_version_are_accepted() {
        let frame = |message: Message| message.encode().expect("it is short");
        let hello = |version| frame(Message::Hello { version, program: "9.9.9".to_owned() });
        let cut = hello(VERSION)[..7].to_vec();
        let table: [(&str, Vec<u8>, bool, bool); 7] = [
            ("ours", hello(VERSION), true, false),
            ("another version", hello(VERSION + 1), false, true),
            ("version 0.1.0", b"\x01\x0b\0\0\0\x03\0\x05\0\0\x000.1.0".to_vec(), false, true),
            ("another message", frame(Message::Taken), false, false),
            ("a browser", b"GET / HTTP/1.1\r\n\r\n".to_vec(), false, false),
            ("half a message", cut, false, false),
            ("nothing", Vec::new(), false, false),
        ];
        for (what, bytes, good, answered) in table {
            let (mut here, there) = UnixStream::pair().expect("a pair of our own");
            here.write_all(&bytes).expect("it has room");
            here.shutdown(std::net::Shutdown::Write).expect("it is connected");
            let heard = hear(Link::new(there).expect("it is connected"));
            assert_eq!(heard.is_ok(), good, "{what}: {heard:?}");
            drop(heard);
            let mut answer = Vec::new();
            // Unread data at the other end makes its end a reset.
            let _ended = here.read_to_end(&mut answer);
            assert_eq!(!answer.is_empty(), answered, "{what}");
            // Version 0.1.0 shows the text as it is.
            let text = String::from_utf8_lossy(&answer);
            assert_eq!(
                text.contains("stop the running one, then start the new one"),
                answered,
                "{what}: {text}"
            );
        }
    }
}

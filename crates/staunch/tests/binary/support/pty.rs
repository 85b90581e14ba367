//! A program on a terminal of its own, as a person sees it: a pseudo-terminal, and the screen that its bytes make.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use super::daemon::STAUNCH;
use super::wait_for;

/// A program on a terminal.
pub(crate) struct Terminal {
    child: Child,
    /// The person's side.
    person: File,
    /// The program's side, held so that its modes can be looked at after the end.
    program: OwnedFd,
    screen: Arc<Mutex<vt100::Parser>>,
    reader: Option<JoinHandle<()>>,
}

/// A pseudo-terminal of 80 by 24: the person's side, and the program's.
fn pair() -> (OwnedFd, OwnedFd) {
    // Nobody else is to keep it open.
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let person = openpt(flags).expect("the system has pseudo-terminals");
    grantpt(&person).expect("it is ours");
    unlockpt(&person).expect("it is ours");
    let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&person, size).expect("a terminal has a size");
    let name = ptsname(&person, Vec::new()).expect("it has a name");
    let program = rustix::fs::open(&*name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty());
    (person, program.expect("it is unlocked"))
}

impl Terminal {
    /// Starts `staunch ARGS` on a terminal of 80 by 24, with these variables set.
    pub(crate) fn start(args: &[&str], variables: &[(&str, &str)]) -> Terminal {
        let (person, program) = pair();
        let keys = program.try_clone().expect("a descriptor is free");
        Terminal::start_on(person, program, keys, args, variables)
    }

    /// The same with keys from a second terminal, which is gone once what comes with it is dropped.
    pub(crate) fn start_with_keys_of_another(args: &[&str]) -> (Terminal, OwnedFd) {
        let ((person, program), (keyboard, keys)) = (pair(), pair());
        (Terminal::start_on(person, program, keys, args, &[]), keyboard)
    }

    fn start_on(
        person: OwnedFd,
        program: OwnedFd,
        keys: OwnedFd,
        args: &[&str],
        variables: &[(&str, &str)],
    ) -> Terminal {
        let side = || Stdio::from(program.try_clone().expect("a descriptor is free"));
        // In a session of its own: the terminal that the tests were started from, if any, is not the program's.
        let child = Command::new("setsid")
            .args(["--ctty", STAUNCH])
            .args(args)
            .env("TERM", "xterm")
            .env_remove("NO_COLOR")
            .envs(variables.iter().copied())
            .stdin(keys)
            .stdout(side())
            .stderr(side())
            .spawn()
            .expect("util-linux is installed");
        let person = File::from(person);
        let screen = Arc::new(Mutex::new(vt100::Parser::new(24, 80, 0)));
        let mut from = person.try_clone().expect("a descriptor is free");
        let into = Arc::clone(&screen);
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The last byte is behind us when nobody has the program's side any more.
            while let Ok(len @ 1..) = from.read(&mut bytes) {
                into.lock().expect("no reader panics").process(&bytes[..len]);
            }
        });
        Terminal { child, person, program, screen, reader: Some(reader) }
    }

    /// What a look at the screen gives.
    pub(crate) fn look<T>(&self, see: impl FnOnce(&vt100::Screen) -> T) -> T {
        see(self.screen.lock().expect("no reader panics").screen())
    }

    /// The rows of the screen, without the spaces at their ends.
    pub(crate) fn rows(&self) -> Vec<String> {
        self.look(|screen| screen.rows(0, screen.size().1).map(|row| row.trim_end().to_owned()).collect())
    }

    /// Waits until the rows are as wanted.
    #[track_caller]
    pub(crate) fn wait_rows(&mut self, what: &str, want: impl Fn(&[String]) -> bool) -> Vec<String> {
        wait_for(what, || {
            let rows = self.rows();
            if want(&rows) {
                return Some(rows);
            }
            let ended = self.child.try_wait().expect("it is our child");
            assert!(ended.is_none(), "it ended ({ended:?}) before {what}: {rows:#?}");
            None
        })
    }

    /// Gives the terminal another size, as a person does with the mouse: the kernel signals the program.
    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        self.screen.lock().expect("no reader panics").screen_mut().set_size(rows, columns);
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.person, size).expect("a terminal has a size");
    }

    /// Types.
    pub(crate) fn press(&mut self, keys: &str) {
        self.person.write_all(keys.as_bytes()).expect("the terminal is there");
    }

    /// Waits for the end, whatever becomes of the terminal.
    pub(crate) fn wait_end(&mut self) -> ExitStatus {
        wait_for("the end", || self.child.try_wait().expect("it is our child"))
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("/bin/kill").args([format!("-{name}"), self.child.id().to_string()]).status();
        assert!(sent.expect("kill can be run").success(), "SIG{name} could not be sent");
    }

    /// Waits for the end, and for the last byte. The terminal must then be as it was at the start.
    #[track_caller]
    pub(crate) fn wait_restored(mut self) -> (ExitStatus, Vec<String>) {
        let status = wait_for("the program to end", || self.child.try_wait().expect("it is our child"));
        let modes = tcgetattr(&self.program).expect("a terminal has modes").local_modes;
        assert!(modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG), "{modes:?}");
        // The person's side reads an end only when the other is closed.
        let (nothing, _) = std::io::pipe().expect("a descriptor is free");
        drop(std::mem::replace(&mut self.program, nothing.into()));
        self.reader.take().expect("it was not waited for").join().expect("no reader panics");
        self.look(|screen| {
            assert!(!screen.alternate_screen(), "the first screen is back");
            assert!(!screen.hide_cursor(), "the cursor is back");
        });
        let rows = self.rows();
        (status, rows)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended already.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

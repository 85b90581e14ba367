//! The terminal: taken over, drawn on, read from, and given back however it ends.

use std::io::{self, Stdout, Write};
use std::mem::ManuallyDrop;
use std::thread::JoinHandle;
use std::time::Duration;

use ratatui_core::terminal::Terminal;
use ratatui_crossterm::CrosstermBackend;
use ratatui_crossterm::crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use ratatui_crossterm::crossterm::{cursor, execute, terminal};
use tokio::sync::mpsc;

use super::screen;
use super::view::Shown;

/// Columns and rows where the terminal does not say.
const SIZE_DEFAULT: (u16, u16) = (80, 24);

/// Key presses that wait; a program that is this far behind may lose the next.
const KEYS_WAITING_MAX: usize = 64;

/// Longest time that the reading thread does not look whether it is still wanted.
const KEY_WAIT: Duration = Duration::from_millis(100);

/// Columns and rows of the terminal.
pub(super) fn size() -> (u16, u16) {
    terminal::size().ok().filter(|(columns, rows)| *columns > 0 && *rows > 0).unwrap_or(SIZE_DEFAULT)
}

/// A terminal in raw mode, on its second screen. Dropping it gives the first one back.
pub(super) struct Screen {
    /// Never dropped: that shows the cursor, which [`give_back`] does, and panics where there is no terminal any more.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
}

impl Screen {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// When it is none, or cannot be written to.
    pub(super) fn open() -> io::Result<Screen> {
        terminal::enable_raw_mode()?;
        // From here on something is to be given back. A panic's message would be lost on the second screen.
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            hook(panic);
        }));
        let opened = execute!(io::stdout(), terminal::EnterAlternateScreen, cursor::Hide)
            .and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        match opened {
            Ok(terminal) => Ok(Screen { terminal: ManuallyDrop::new(terminal) }),
            Err(error) => {
                give_back();
                Err(error)
            }
        }
    }

    /// Draws what has changed.
    ///
    /// # Errors
    /// When the terminal has gone away.
    pub(super) fn show(&mut self, shown: &Shown) -> io::Result<()> {
        self.terminal.draw(|frame| {
            let area = frame.area();
            screen::draw(frame.buffer_mut(), area, shown);
        })?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

fn give_back() {
    // A terminal that has gone away needs nothing back.
    let _gone = execute!(io::stdout(), terminal::LeaveAlternateScreen, cursor::Show);
    let _flushed = io::stdout().flush();
    let _cooked = terminal::disable_raw_mode();
}

/// Key presses, read on a thread of their own because reading a terminal waits.
pub(super) struct Keys {
    presses: mpsc::Receiver<Option<KeyEvent>>,
    reader: Option<JoinHandle<()>>,
}

impl Keys {
    /// Starts to read.
    pub(super) fn listen() -> Keys {
        let (sender, presses) = mpsc::channel(KEYS_WAITING_MAX);
        let reader = std::thread::Builder::new().name("keys".into()).spawn(move || read(&sender));
        Keys { presses, reader: reader.ok() }
    }

    /// The next key, or None when the size has changed. Never resolves when there are no more keys. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<KeyEvent> {
        match self.presses.recv().await {
            Some(press) => press,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.presses.close();
        // Within one look at the keys, so that it takes none that are meant for the shell. Where the terminal is gone it reads
        // the end of input for ever: it is left to the end of the process.
        const LOOKS: u32 = 10;
        for _ in 0..2 * LOOKS {
            if self.reader.as_ref().is_none_or(JoinHandle::is_finished) {
                break;
            }
            std::thread::sleep(KEY_WAIT / LOOKS);
        }
    }
}

fn read(sender: &mpsc::Sender<Option<KeyEvent>>) {
    while !sender.is_closed() {
        let event = match event::poll(KEY_WAIT) {
            Ok(false) => continue,
            Ok(true) => event::read(),
            Err(error) => Err(error),
        };
        let press = match event {
            Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => Some(key),
            Ok(Event::Resize(..)) => None,
            Ok(_) => continue,
            // No terminal to read from: signals still end the program.
            Err(_) => return,
        };
        // A full channel: keys typed faster than frames are drawn may be lost.
        let _full = sender.try_send(press);
    }
}

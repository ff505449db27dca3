//! What the user types, sent to a command that listens (`-i`, `-t`).
//!
//! A command is typed to from when it has started. All that goes to it goes in order, through one thread: the size of the
//! terminal, the keys, the end.

use crate::client::Client;
use crate::failure::{Failure, Result};
use mw_http::types::{Done, RunEvent, RunState};
use rustix::termios::{OptionalActions, Termios};
use std::io::{IsTerminal, Read};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use tokio::signal::unix::{SignalKind, signal};

/// How much is read from standard input at once.
const PIECE: usize = 32 << 10;

/// The keyboard of a run.
pub struct Keyboard {
    client: Arc<Client>,
    path: String,
    tty: bool,
    /// The modes of the user's terminal, to be set again.
    modes: Option<Termios>,
    started: bool,
}

enum Key {
    Bytes(Vec<u8>),
    End,
    /// The terminal has another size.
    Size,
}

impl Keyboard {
    /// Makes the keyboard of run `id`; with `tty` each key is sent as it is pressed, ^C too.
    ///
    /// # Errors
    /// A terminal is wanted, and standard input is none.
    pub fn new(client: &Arc<Client>, id: &str, tty: bool) -> Result<Self> {
        if tty && !std::io::stdin().is_terminal() {
            return Err(Failure::usage("-t needs a terminal, and standard input is none; use -i alone to send a file"));
        }
        let path = format!("runs/{}/input", mw_http::uri::encode(id.as_bytes(), false));
        Ok(Self { client: client.clone(), path, tty, modes: None, started: false })
    }

    /// Begins when the command has started, and leaves the user's terminal as it was when the command has ended.
    pub fn hear(&mut self, event: &RunEvent) {
        match event {
            RunEvent::State { state: RunState::Started, attempt: Some(_) } => self.begin(),
            RunEvent::State { .. } | RunEvent::Result(_) => self.end(),
            RunEvent::Beat | RunEvent::Output { .. } | RunEvent::Verdict { .. } => {}
        }
    }

    fn begin(&mut self) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        let (keys, typed) = channel();
        if self.tty {
            self.modes = raw();
            self.watch_size(keys.clone());
        }
        std::thread::spawn(move || read(&keys));
        let (client, path) = (self.client.clone(), self.path.clone());
        std::thread::spawn(move || send(&client, &path, &typed));
    }

    fn watch_size(&self, keys: Sender<Key>) {
        // The command's terminal is made before its size is known.
        let _ = keys.send(Key::Size);
        self.client.runtime().spawn(async move {
            let Ok(mut changes) = signal(SignalKind::window_change()) else { return };
            while changes.recv().await.is_some() && keys.send(Key::Size).is_ok() {}
        });
    }

    fn end(&mut self) {
        if let Some(modes) = self.modes.take() {
            // The terminal may be gone; then it needs no modes.
            let _ = rustix::termios::tcsetattr(std::io::stdin(), OptionalActions::Drain, &modes);
        }
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.end();
    }
}

/// Hands every key on as it is pressed; returns the modes from before.
fn raw() -> Option<Termios> {
    let before = rustix::termios::tcgetattr(std::io::stdin()).ok()?;
    let mut modes = before.clone();
    modes.make_raw();
    rustix::termios::tcsetattr(std::io::stdin(), OptionalActions::Drain, &modes).ok()?;
    Some(before)
}

fn read(keys: &Sender<Key>) {
    let mut piece = vec![0; PIECE];
    loop {
        let key = match std::io::stdin().lock().read(&mut piece) {
            Ok(0) | Err(_) => Key::End,
            Ok(n) => Key::Bytes(piece[..n].to_vec()),
        };
        let end = matches!(key, Key::End);
        if keys.send(key).is_err() || end {
            return;
        }
    }
}

/// Sends until the command listens no more.
fn send(client: &Client, path: &str, typed: &Receiver<Key>) {
    while let Ok(key) = typed.recv() {
        let sent: Result<Done> = match key {
            Key::Bytes(bytes) => client.post_bytes(path, &[], bytes),
            Key::End => client.post_bytes(path, &[("end", b"true".to_vec())], Vec::new()),
            Key::Size => {
                let Ok(size) = rustix::termios::tcgetwinsize(std::io::stdin()) else { continue };
                let side = |n: u16| n.to_string().into_bytes();
                client.post_bytes(path, &[("rows", side(size.ws_row)), ("columns", side(size.ws_col))], Vec::new())
            }
        };
        if sent.is_err() {
            return;
        }
    }
}

//! `quoin top` in a terminal of the test's own.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

use crate::server::{Server, wait_until};

/// The sequences for the alternate screen and back.
const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";

/// A terminal with `quoin top` in it.
struct Terminal {
    child: Child,
    keyboard: File,
    /// Keeps the terminal open, and has its modes.
    line: File,
    modes: String,
    written: Arc<Mutex<Vec<u8>>>,
}

/// Everything that `quoin top` may change in the terminal's modes.
fn modes(line: &File) -> String {
    let modes = tcgetattr(line).unwrap();
    format!(
        "{:?} {:?} {:?} {:?}",
        modes.input_modes, modes.output_modes, modes.control_modes, modes.local_modes
    )
}

impl Terminal {
    fn start(words: &[&str]) -> Self {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keyboard).unwrap();
        unlockpt(&keyboard).unwrap();
        let name = ptsname(&keyboard, Vec::new()).unwrap();
        let size = Winsize {
            ws_row: 24,
            ws_col: 120,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&keyboard, size).unwrap();
        let path = Path::new(name.to_str().unwrap());
        let line = File::options().read(true).write(true).open(path).unwrap();
        let before = modes(&line);
        let end = || Stdio::from(line.try_clone().unwrap());
        let child = Command::new(env!("CARGO_BIN_EXE_quoin"))
            .arg("top")
            .args(words)
            .env("NO_COLOR", "1")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        let keyboard = File::from(keyboard);
        let written = Arc::new(Mutex::new(Vec::new()));
        let (mut screen, of_reader) = (keyboard.try_clone().unwrap(), Arc::clone(&written));
        // Ends when the terminal is closed.
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(length @ 1..) = screen.read(&mut bytes) {
                of_reader.lock().unwrap().extend(&bytes[..length]);
            }
        });
        Self {
            child,
            keyboard,
            line,
            modes: before,
            written,
        }
    }

    fn written(&self) -> String {
        String::from_utf8_lossy(&self.written.lock().unwrap()).into_owned()
    }

    fn shows(&self, text: &str) {
        wait_until(text, || self.written().contains(text));
    }

    fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    fn ended(&mut self) -> ExitStatus {
        wait_until("its end", || self.child.try_wait().unwrap().is_some());
        self.child.wait().unwrap()
    }

    /// Checks that the terminal is as it was, and that its cursor is shown.
    fn is_restored(&self) {
        assert_eq!(modes(&self.line), self.modes);
        self.shows(LEAVE);
        let written = self.written();
        assert!(written.rfind(ENTER) < written.rfind(LEAVE), "{written:?}");
        assert!(
            written.rfind("\x1b[?25l") < written.rfind("\x1b[?25h"),
            "{written:?}"
        );
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn server_with_a_queue() -> (Server, String) {
    let server = Server::start();
    let pushed: i64 = redis::cmd("RPUSH")
        .arg(&["mailjobs", "a", "b", "c"])
        .query(&mut server.redis(2))
        .unwrap();
    assert_eq!(pushed, 3);
    let url = format!("redis://{}", server.address());
    (server, url)
}

#[test]
fn the_screen_shows_queues_follows_them_and_the_terminal_is_restored() {
    let (server, url) = server_with_a_queue();
    let mut terminal = Terminal::start(&[&url, "--interval", "1"]);
    terminal.shows("mailjobs");
    assert_ne!(modes(&terminal.line), terminal.modes);
    let _: i64 = redis::cmd("RPUSH")
        .arg(&["latecomer", "a"])
        .query(&mut server.redis(2))
        .unwrap();
    terminal.shows("latecomer");
    terminal.press("?");
    // A single word, because spaces that were already there are not drawn again.
    terminal.shows("reverse");
    terminal.press("xq");
    assert!(terminal.ended().success());
    terminal.is_restored();
}

#[test]
fn a_signal_ends_it_well() {
    let (_server, url) = server_with_a_queue();
    let mut terminal = Terminal::start(&[&url]);
    terminal.shows("mailjobs");
    let killed = Command::new("kill")
        .arg(terminal.child.id().to_string())
        .status();
    assert!(killed.unwrap().success());
    assert!(terminal.ended().success());
    terminal.is_restored();
}

#[test]
fn a_lost_server_is_told_and_keys_still_work() {
    let (mut server, url) = server_with_a_queue();
    let mut terminal = Terminal::start(&[&url, "--interval", "1"]);
    terminal.shows("mailjobs");
    server.signal("KILL");
    server.wait();
    terminal.shows("cannot connect");
    terminal.press("q");
    assert!(terminal.ended().success());
    terminal.is_restored();
}

#[test]
fn without_a_terminal_or_a_server_it_says_so_and_changes_nothing() {
    let (server, url) = server_with_a_queue();
    let done = Command::new(env!("CARGO_BIN_EXE_quoin"))
        .args(["top", &url])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(1));
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(said.contains("needs a terminal"), "{said}");
    drop(server);
    let mut terminal = Terminal::start(&[&url]);
    assert_eq!(terminal.ended().code(), Some(1));
    terminal.shows("cannot connect");
    assert!(!terminal.written().contains(ENTER));
    assert_eq!(modes(&terminal.line), terminal.modes);
}

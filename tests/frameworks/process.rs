//! Programs that end with the test, in bounded time.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A program and all its children, killed when dropped.
pub struct Group {
    pub child: Child,
}

impl Group {
    /// Starts a program in a process group of its own.
    pub fn spawn(command: &mut Command) -> std::io::Result<Self> {
        let child = command.process_group(0).spawn()?;
        Ok(Self { child })
    }

    /// Waits for the program to end, up to a timeout.
    pub fn wait(&mut self, timeout: Duration) -> Option<ExitStatus> {
        let started = Instant::now();
        while started.elapsed() < timeout {
            if let Some(status) = self.child.try_wait().unwrap() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        None
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Processes that the program left running are still in its group.
        let _ = Command::new("kill")
            .args(["-KILL", "--", &format!("-{}", self.child.id())])
            .stderr(Stdio::null())
            .status();
        let _ = self.child.wait();
    }
}

/// Runs a program completely. The error is its output, or why it did not run.
pub fn run(command: &mut Command, timeout: Duration) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let (mut reader, writer) = std::io::pipe().unwrap();
    command
        .stdin(Stdio::null())
        .stdout(writer.try_clone().unwrap())
        .stderr(writer);
    let mut group = Group::spawn(command).map_err(|error| format!("{name}: {error}"))?;
    // Closes this process's writing ends. Otherwise reading would not end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let said = std::thread::spawn(move || {
        let mut said = Vec::new();
        let _ = reader.read_to_end(&mut said);
        String::from_utf8_lossy(&said).into_owned()
    });
    let status = group.wait(timeout);
    drop(group);
    let said = said.join().unwrap();
    match status {
        Some(status) if status.success() => Ok(()),
        Some(_) => Err(said),
        None => Err(format!("{name} does not end: {said}")),
    }
}

//! The operator's command that ships files of the archive elsewhere.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::ArchiveError;

/// Interval at which a running command is polled.
const WAIT: Duration = Duration::from_millis(20);

/// Why the command did not take a file.
#[derive(Debug, thiserror::Error)]
pub(super) enum CommandError {
    /// The archive cannot be read or changed.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// There is no shell, or the system is out of a resource.
    #[error("cannot run it: {0}")]
    Run(#[from] io::Error),
    /// It has failed.
    #[error("{0}")]
    Failed(ExitStatus),
    /// It ran for too long and was killed.
    #[error("it was killed after {} s", .0.as_secs())]
    Late(Duration),
}

/// The command of an archive, with the placeholders `%p` and `%f`.
#[derive(Debug)]
pub(super) struct ArchiveCommand {
    pub(super) text: String,
}

impl ArchiveCommand {
    /// Runs the command for a file and waits for it to end. `name` is the file's name within the
    /// archive. `is_late` decides whether to kill a command that has run for this long.
    pub(super) fn run(
        &self,
        path: &Path,
        name: &str,
        is_late: &dyn Fn(Duration) -> bool,
    ) -> Result<(), CommandError> {
        let line = filled(&self.text, path, name);
        let mut child = Command::new("/bin/sh")
            .arg("-c")
            .arg(line)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            // In its own process group, so that a Ctrl-C goes to the server only, and killing the
            // command also kills its children.
            .process_group(0)
            .spawn()?;
        let begun_at = Instant::now();
        loop {
            if let Some(status) = child.try_wait()? {
                return match status.success() {
                    true => Ok(()),
                    false => Err(CommandError::Failed(status)),
                };
            }
            let time = begun_at.elapsed();
            if is_late(time) {
                kill_group(&mut child)?;
                return Err(CommandError::Late(time));
            }
            std::thread::sleep(WAIT);
        }
    }
}

/// Kills a process and its children.
fn kill_group(child: &mut Child) -> io::Result<()> {
    if let Ok(group) = i32::try_from(child.id()) {
        // SAFETY: it sends a signal. The child has not been waited for, so its id has not been
        // reused.
        #[allow(unsafe_code)]
        unsafe {
            libc::kill(-group, libc::SIGKILL);
        }
    }
    child.wait().map(drop)
}

/// The command with `%p` replaced by the file's path, `%f` by its name, and `%%` by `%`.
fn filled(text: &str, path: &Path, name: &str) -> OsString {
    let mut line = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        line.extend_from_slice(before.as_bytes());
        let (with, length) = match after.as_bytes().first() {
            Some(b'p') => (path.as_os_str().as_bytes(), 1),
            Some(b'f') => (name.as_bytes(), 1),
            Some(b'%') => (b"%".as_slice(), 1),
            _ => (b"%".as_slice(), 0),
        };
        line.extend_from_slice(with);
        rest = after.get(length..).unwrap_or_default();
    }
    line.extend_from_slice(rest.as_bytes());
    OsString::from_vec(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> String {
        let path = Path::new("/archive/a/1.journal");
        filled(text, path, "a/1.journal").into_string().unwrap()
    }

    #[test]
    fn a_command_gets_the_path_and_the_name_of_the_file() {
        assert_eq!(
            line("install -D %p /mnt/%f && date +%%s"),
            "install -D /archive/a/1.journal /mnt/a/1.journal && date +%s"
        );
        assert_eq!(line("%"), "%");
        assert_eq!(line("%é%x%"), "%é%x%");
    }

    #[test]
    fn a_command_that_runs_for_too_long_is_killed_with_what_it_has_started() {
        let folder = tempfile::tempdir().unwrap();
        let command = ArchiveCommand {
            text: "(sleep 1; touch %p) & sleep 600".to_owned(),
        };
        let path = folder.path().join("late");
        let error = command.run(&path, "", &|time| time.as_millis() > 100);
        assert!(matches!(error, Err(CommandError::Late(_))));
        std::thread::sleep(Duration::from_millis(1_200));
        assert!(!path.exists());
    }
}

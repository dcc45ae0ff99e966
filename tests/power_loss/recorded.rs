//! Servers whose file operations are recorded.

use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use super::entry::Entry;
use crate::server::Server;

/// How a server is started.
#[derive(Debug, Clone)]
pub(crate) struct Start {
    /// The number of the machine's boot. `None` if the system does not say.
    pub(crate) boot: Option<u64>,
    pub(crate) fsync: &'static str,
    pub(crate) sync_us_max: u64,
    /// It dies after this many writes to LMDB's file, once [`armed_file`] exists.
    pub(crate) kill_at: Option<u64>,
}

/// The recorder, which is an example of this package. `cargo test` builds it. If only this test is
/// built, it is built here.
pub(crate) fn recorder() -> &'static Path {
    static RECORDER: OnceLock<PathBuf> = OnceLock::new();
    RECORDER.get_or_init(|| {
        let test = std::env::current_exe().unwrap();
        let profile = test.ancestors().nth(2).unwrap();
        let library = profile.join("examples/libdisk_recorder.so");
        if is_older(&library).unwrap_or(true) {
            build(profile);
        }
        library
    })
}

fn is_older(library: &Path) -> io::Result<bool> {
    let built = library.metadata()?.modified()?;
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/power_loss/recorder");
    for source in sources.read_dir()? {
        if source?.metadata()?.modified()? > built {
            return Ok(true);
        }
    }
    Ok(false)
}

fn build(profile: &Path) {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["build", "--example", "disk_recorder"])
        .arg("--manifest-path")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"))
        .arg("--target-dir")
        .arg(profile.parent().unwrap());
    match profile.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => &mut cargo,
        Some(name) => cargo.args(["--profile", name]),
    };
    if cfg!(feature = "fdb") {
        // Other features would rebuild everything.
        cargo.args(["--features", "fdb"]);
    }
    assert!(cargo.status().unwrap().success(), "no recorder");
}

/// Starts a server on `root`/data that appends its operations to the log. The error is the server's
/// output.
pub(crate) fn start(root: &Path, log: &Path, how: &Start) -> Result<Server, String> {
    let boot_id = boot_id_file(log);
    if let Some(boot) = how.boot {
        std::fs::write(
            &boot_id,
            format!("{boot:08x}-0000-4000-8000-000000000000\n"),
        )
        .unwrap();
    } else {
        let _ = std::fs::remove_file(&boot_id);
    }
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(log)
        .unwrap();
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let variables = [
        ("LD_PRELOAD", text(recorder())),
        ("QUOIN_TEST_DISK_FOLDER", text(root)),
        ("QUOIN_TEST_DISK_LOG", text(log)),
        ("QUOIN_TEST_DISK_SYNC_US", how.sync_us_max.to_string()),
        ("QUOIN_TEST_DISK_BOOT_ID", text(&boot_id)),
        ("QUOIN_TEST_DISK_FULL", text(&full_file(root))),
        ("QUOIN_TEST_DISK_ARMED", text(&armed_file(log))),
        (
            "QUOIN_TEST_DISK_KILL_AT",
            how.kill_at
                .map_or(String::new(), |writes| writes.to_string()),
        ),
    ];
    let variables = variables
        .iter()
        .map(|(name, value)| (*name, value.as_str()));
    // Disks are created as copies of what was recorded.
    let accepts_copy = ["--accept-copied-data-dir", "yes"];
    let flags = ["--fsync", how.fsync, "--data-dir"].map(str::to_owned);
    let flags = [flags.to_vec(), vec![text(&root.join("data"))]].concat();
    let flags = [flags, accepts_copy.map(str::to_owned).to_vec()].concat();
    Server::start_on_store(root, &flags, &variables.collect::<Vec<_>>())
}

/// The file that a process with this log reads as Linux's boot id.
pub(crate) fn boot_id_file(log: &Path) -> PathBuf {
    log.with_extension("boot-id")
}

/// See [`Start::kill_at`].
pub(crate) fn armed_file(log: &Path) -> PathBuf {
    log.with_extension("armed")
}

/// While this file exists, the disk is full.
pub(crate) fn full_file(root: &Path) -> PathBuf {
    root.with_extension("full")
}

/// The log of one process.
pub(crate) struct Log {
    pub(crate) bytes: Vec<u8>,
}

impl Log {
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let bytes = std::fs::read(path)?;
        Ok(Self { bytes })
    }

    /// The entries, with the offsets where each begins and ends.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (std::ops::Range<usize>, Entry<'_>)> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let (entry, length) = Entry::read(self.bytes.get(at..)?)?;
            let begin = at;
            at += length;
            Some((begin..at, entry))
        })
    }
}

/// Ends the server with SIGKILL, or cleanly.
pub(crate) fn end(server: &mut Server, kills: bool) -> Result<(), String> {
    server.signal(if kills { "KILL" } else { "TERM" });
    let status = server.wait();
    if !kills && !status.success() {
        return Err(format!("ended with {status}: {}", server.log()));
    }
    // The last lines of its log have yet to arrive.
    std::thread::sleep(Duration::from_millis(1));
    Ok(())
}

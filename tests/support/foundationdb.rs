//! A FoundationDB cluster for tests: the one that `FDB_CLUSTER_FILE` names. Otherwise a separate
//! one on a free loopback port, if `fdbserver` and `fdbcli` are on the PATH. Tests that find none
//! are counted, or fail if `QUOIN_TEST_REQUIRE_FDB=1` is set.
//!
//! Included by `#[path]` from the test crates that need it.

use std::fs;
use std::io::{self, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

const START_TIMEOUT: Duration = Duration::from_secs(30);

/// If it is set, a test that needs FoundationDB and finds none fails.
pub const REQUIRE_VARIABLE: &str = "QUOIN_TEST_REQUIRE_FDB";
/// A file that gets a line for each test that has done nothing. tests/run counts them.
pub const SKIPPED_VARIABLE: &str = "QUOIN_TEST_SKIPPED_FILE";

/// The file of a cluster that responds. `None` if there is none. The calling test, which must then
/// do nothing, is counted.
pub fn cluster_file() -> Option<&'static Path> {
    find().map_err(skip).ok()
}

/// The file of a cluster that responds, or why there is none.
pub fn find() -> Result<&'static Path, &'static str> {
    static FILE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let file = FILE.get_or_init(find_or_start).as_ref();
    file.map(PathBuf::as_path).map_err(String::as_str)
}

/// Whether FoundationDB must be there.
#[allow(dead_code)] // not every crate needs it
pub fn is_required() -> bool {
    std::env::var_os(REQUIRE_VARIABLE).is_some_and(|value| !value.is_empty() && value != "0")
}

/// Counts a test that does nothing, because it needs FoundationDB and there is none. The number is
/// printed when the test process exits.
///
/// # Panics
/// If FoundationDB is required.
pub fn skip(reason: &str) {
    assert!(
        !is_required(),
        "{REQUIRE_VARIABLE} is set, but there is no FoundationDB: {reason}"
    );
    let mut skipped = SKIPPED.lock().unwrap_or_else(PoisonError::into_inner);
    if skipped.is_empty() {
        // SAFETY: the function takes no arguments and lives as long as the program.
        #[allow(unsafe_code)]
        unsafe {
            libc::atexit(tell_skipped);
        }
    }
    skipped.push(reason.to_owned());
    if let Some(file) = std::env::var_os(SKIPPED_VARIABLE) {
        let mut file = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(file)
            .unwrap();
        file.write_all(format!("{reason}\n").as_bytes()).unwrap();
    }
}

/// Why each test that was skipped was.
static SKIPPED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Prints how many tests have done nothing, and why. At the exit nothing captures the output.
extern "C" fn tell_skipped() {
    let mut reasons = SKIPPED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    let count = reasons.len();
    reasons.sort();
    reasons.dedup();
    let tests = if count == 1 { "test" } else { "tests" };
    let _ = writeln!(
        io::stderr(),
        "{count} {tests} did nothing for want of FoundationDB: {} (name a cluster by \
         FDB_CLUSTER_FILE, or put fdbserver and fdbcli on the PATH)",
        reasons.join("; ")
    );
}

fn find_or_start() -> Result<PathBuf, String> {
    if let Some(file) = std::env::var_os("FDB_CLUSTER_FILE") {
        return Ok(file.into());
    }
    let cluster = OwnCluster::start()?;
    let file = cluster.file();
    *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) = Some(cluster);
    // SAFETY: the function takes no arguments and lives as long as the program.
    #[allow(unsafe_code)]
    unsafe {
        libc::atexit(stop);
    }
    Ok(file)
}

static RUNNING: Mutex<Option<OwnCluster>> = Mutex::new(None);

/// Ends and removes the cluster when the test process exits.
extern "C" fn stop() {
    let running = RUNNING
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    drop(running);
}

/// A cluster of one process on the loopback, which ends when this value is dropped.
pub struct OwnCluster {
    server: Child,
    folder: PathBuf,
    port: u16,
    /// How to speak with it, for all programs of FoundationDB; empty without TLS.
    tls_flags: Vec<String>,
}

impl OwnCluster {
    /// Starts a cluster with an empty database in memory. The error says why there is none.
    pub fn start() -> Result<Self, String> {
        Self::start_on("memory")
    }

    /// Starts a cluster with an empty database on a storage engine. `memory` holds at most 1 GiB.
    pub fn start_on(engine: &str) -> Result<Self, String> {
        Self::find_tools()?;
        let told = |error| format!("fdbserver does not start: {error}");
        let cluster = Self::try_start(Vec::new()).map_err(told)?;
        configure(&cluster.file(), engine, &[]).map_err(told)?;
        Ok(cluster)
    }

    /// Starts a cluster with an empty database in memory that speaks TLS only.
    #[allow(dead_code)] // not every crate needs it
    pub fn start_with_tls(certificate: &Path, key: &Path, ca: &Path) -> Result<Self, String> {
        Self::find_tools()?;
        let told = |error| format!("fdbserver does not start: {error}");
        let flags = [
            ("--tls-certificate-file", certificate),
            ("--tls-key-file", key),
            ("--tls-ca-file", ca),
        ]
        .into_iter()
        .flat_map(|(flag, file)| [flag.to_owned(), file.display().to_string()])
        .collect();
        let cluster = Self::try_start(flags).map_err(told)?;
        configure(&cluster.file(), "memory", &cluster.tls_flags).map_err(told)?;
        Ok(cluster)
    }

    /// Starts a cluster in which no database has been created.
    #[allow(dead_code)] // not every crate needs it
    pub fn start_without_database() -> Result<Self, String> {
        Self::find_tools()?;
        Self::try_start(Vec::new()).map_err(|error| format!("fdbserver does not start: {error}"))
    }

    fn find_tools() -> Result<(), String> {
        for tool in ["fdbserver", "fdbcli"] {
            let found = Command::new(tool)
                .arg("--version")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            if found.is_err() {
                return Err(format!("{tool} is not installed"));
            }
        }
        Ok(())
    }

    fn try_start(tls_flags: Vec<String>) -> io::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("quoin-fdb-")
            .tempdir()?
            .keep();
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let file = folder.join("fdb.cluster");
        let address = address(port, &tls_flags);
        fs::write(&file, format!("test:test@{address}\n"))?;
        let server = spawn(&folder, port, &tls_flags)?;
        Ok(Self {
            server,
            folder,
            port,
            tls_flags,
        })
    }

    /// The cluster file.
    pub fn file(&self) -> PathBuf {
        self.folder.join("fdb.cluster")
    }

    /// Kills the process. What was committed stays on its disk.
    #[allow(dead_code)] // not every crate needs it
    pub fn kill(&mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
    }

    /// Stops the process in place (SIGSTOP). Its connections stay open.
    #[allow(dead_code)] // not every crate needs it
    pub fn pause(&self) {
        self.signal("STOP");
    }

    /// Lets a paused process go on.
    #[allow(dead_code)] // not every crate needs it
    pub fn resume(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .arg(format!("-{name}"))
            .arg(self.server.id().to_string())
            .status()
            .unwrap();
        assert!(status.success());
    }

    /// Starts the process again.
    #[allow(dead_code)] // not every crate needs it
    pub fn revive(&mut self) {
        self.server = spawn(&self.folder, self.port, &self.tls_flags).unwrap();
    }
}

impl Drop for OwnCluster {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn address(port: u16, tls_flags: &[String]) -> String {
    let suffix = if tls_flags.is_empty() { "" } else { ":tls" };
    format!("127.0.0.1:{port}{suffix}")
}

fn spawn(folder: &Path, port: u16, tls_flags: &[String]) -> io::Result<Child> {
    let log = fs::File::create(folder.join("fdbserver.out"))?;
    Command::new("fdbserver")
        .arg("-p")
        .arg(address(port, tls_flags))
        .args(tls_flags)
        .arg("-C")
        .arg(folder.join("fdb.cluster"))
        .arg("-d")
        .arg(folder.join("data"))
        .arg("-L")
        .arg(folder)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
}

/// Creates the database.
fn configure(file: &Path, engine: &str, tls_flags: &[String]) -> io::Result<()> {
    let deadline = Instant::now() + START_TIMEOUT;
    let command = format!("configure new single {engine}");
    loop {
        let output = Command::new("fdbcli")
            .arg("-C")
            .arg(file)
            .args(tls_flags)
            .args(["--exec", &command, "--timeout", "10"])
            .stdin(Stdio::null())
            .output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if text.contains("Database created") || text.contains("Database already exists") {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(io::Error::other(format!("fdbcli says: {}", text.trim())));
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

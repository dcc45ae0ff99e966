//! A FoundationDB cluster for tests: the one that `FDB_CLUSTER_FILE` names, else one of our own
//! that is started on a free port of the loopback where `fdbserver` and `fdbcli` are on the PATH.
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

/// The file of a cluster that answers, or `None` where there is none; then one line says why.
pub fn cluster_file() -> Option<&'static Path> {
    static FILE: OnceLock<Option<PathBuf>> = OnceLock::new();
    FILE.get_or_init(|| match find_or_start() {
        Ok(file) => Some(file),
        Err(reason) => {
            // Written past the capture of a passing test's output.
            let _ = writeln!(
                io::stderr(),
                "FoundationDB tests do nothing: {reason} (name a cluster by FDB_CLUSTER_FILE, \
                 or put fdbserver and fdbcli on the PATH)"
            );
            None
        }
    })
    .as_deref()
}

fn find_or_start() -> Result<PathBuf, String> {
    if let Some(file) = std::env::var_os("FDB_CLUSTER_FILE") {
        return Ok(file.into());
    }
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
    start().map_err(|error| format!("fdbserver does not start: {error}"))
}

/// Ended and removed when the test process exits.
struct Running {
    server: Child,
    folder: PathBuf,
}

static RUNNING: Mutex<Option<Running>> = Mutex::new(None);

extern "C" fn stop() {
    let running = RUNNING
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    if let Some(mut running) = running {
        let _ = running.server.kill();
        let _ = running.server.wait();
        let _ = fs::remove_dir_all(&running.folder);
    }
}

fn start() -> io::Result<PathBuf> {
    let folder = tempfile::Builder::new()
        .prefix("quoin-fdb-")
        .tempdir()?
        .keep();
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let file = folder.join("fdb.cluster");
    fs::write(&file, format!("test:test@127.0.0.1:{port}\n"))?;
    let log = fs::File::create(folder.join("fdbserver.out"))?;
    let server = Command::new("fdbserver")
        .arg("-p")
        .arg(format!("127.0.0.1:{port}"))
        .arg("-C")
        .arg(&file)
        .arg("-d")
        .arg(folder.join("data"))
        .arg("-L")
        .arg(&folder)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()?;
    *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) = Some(Running { server, folder });
    // SAFETY: the function takes no arguments and lives as long as the program.
    #[allow(unsafe_code)]
    unsafe {
        libc::atexit(stop);
    }
    configure(&file)?;
    Ok(file)
}

/// Makes the database, which exists only once this is done.
fn configure(file: &Path) -> io::Result<()> {
    let deadline = Instant::now() + START_TIMEOUT;
    loop {
        let output = Command::new("fdbcli")
            .arg("-C")
            .arg(file)
            .args(["--exec", "configure new single memory", "--timeout", "10"])
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

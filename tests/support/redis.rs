//! A Redis server to compare with.
//!
//! Included by `#[path]` from the test crates that need it.
#![allow(dead_code, unreachable_pub)] // no crate needs all of it

use std::ffi::{OsStr, OsString};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long it may take until it listens.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// The `redis-server` that `REDIS_ORACLE` names, otherwise the one on the PATH.
fn binary() -> OsString {
    std::env::var_os("REDIS_ORACLE").unwrap_or_else(|| "redis-server".into())
}

/// A `redis-server` in a folder of its own; killed when dropped.
pub struct Redis {
    child: Child,
    socket: PathBuf,
    address: Option<SocketAddr>,
    version: String,
    _folder: tempfile::TempDir,
}

impl Redis {
    /// Starts it on a Unix socket only.
    pub fn start() -> io::Result<Self> {
        Self::launch(tempfile::tempdir()?, None, &[])
    }

    /// Starts it on a port too, with every write synced before it is answered, in a folder of
    /// its own within `folder`.
    pub fn start_durable(folder: &Path) -> io::Result<Self> {
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let flags = ["--appendonly", "yes", "--appendfsync", "always"];
        Self::launch(tempfile::tempdir_in(folder)?, Some(address), &flags)
    }

    /// Starts it on a port too, with more flags.
    pub fn start_with_port(folder: &Path, flags: &[&str]) -> io::Result<Self> {
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        Self::launch(tempfile::tempdir_in(folder)?, Some(address), flags)
    }

    /// Starts another `redis-server` on a port.
    pub fn start_other(binary: &OsStr, folder: &Path, flags: &[&str]) -> io::Result<Self> {
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let folder = tempfile::tempdir_in(folder)?;
        Self::launch_other(binary, folder, Some(address), None, flags)
    }

    /// Starts a Sentinel that watches the server at an address, under this name.
    pub fn start_sentinel(master: SocketAddr, name: &str) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("sentinel.conf");
        let (ip, port) = (master.ip(), master.port());
        std::fs::write(&file, format!("sentinel monitor {name} {ip} {port} 1\n"))?;
        Self::launch_other(&binary(), folder, None, Some(&file), &["--sentinel"])
    }

    fn launch(
        folder: tempfile::TempDir,
        address: Option<SocketAddr>,
        flags: &[&str],
    ) -> io::Result<Self> {
        Self::launch_other(&binary(), folder, address, None, flags)
    }

    fn launch_other(
        binary: &OsStr,
        folder: tempfile::TempDir,
        address: Option<SocketAddr>,
        settings_file: Option<&Path>,
        flags: &[&str],
    ) -> io::Result<Self> {
        let output = Command::new(binary).arg("--version").output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text
            .split_whitespace()
            .find_map(|word| word.strip_prefix("v="))
            .unwrap_or_default()
            .to_owned();
        let socket = folder.path().join("redis.sock");
        let port = address.map_or(0, |address| address.port()).to_string();
        let child = Command::new(binary)
            .args(settings_file)
            .args([
                "--bind",
                "127.0.0.1",
                "--port",
                &port,
                "--save",
                "",
                "--unixsocket",
            ])
            .arg(&socket)
            .arg("--dir")
            .arg(folder.path())
            .args(flags)
            // SORT ALPHA compares in the order of the locale.
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let server = Self {
            child,
            socket,
            address,
            version,
            _folder: folder,
        };
        let deadline = Instant::now() + START_TIMEOUT;
        while std::os::unix::net::UnixStream::connect(&server.socket).is_err() {
            if Instant::now() > deadline {
                return Err(io::Error::other("redis-server does not start"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
    }

    /// Its Unix socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Its port, if it has one.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Major and minor version.
    pub fn version(&self) -> (u32, u32) {
        let mut parts = self
            .version
            .split('.')
            .map(|part| part.parse().unwrap_or(0));
        (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! A server for one test: the built program on a free port, in a folder that is removed with it,
//! and a socket that sends and reads what the test says, byte for byte.
//!
//! Included by `#[path]` from the test crates that need it.
#![allow(dead_code, unreachable_pub)] // no crate needs all of it

use std::hash::{Hash, Hasher};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tempfile::TempDir;

#[cfg(feature = "fdb")]
#[path = "foundationdb.rs"]
pub mod foundationdb;

/// Longer than anything here takes on a slow machine. A hanging test fails after this time.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A running server, which ends when this value is dropped.
pub struct Server {
    child: Child,
    address: SocketAddr,
    folder: Folder,
    log: Arc<Mutex<Vec<String>>>,
}

enum Folder {
    Own(TempDir),
    Given(PathBuf),
}

impl Server {
    /// A server with its defaults, on the embedded store.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// A server with more flags, such as `["--requirepass", "secret"]`.
    pub fn start_with(flags: &[&str]) -> Self {
        let folder = Folder::Own(tempfile::tempdir().unwrap());
        Self::try_start(folder, flags).unwrap_or_else(|log| panic!("no server: {log}"))
    }

    /// A server on a folder that outlives it. The error is its log.
    pub fn start_in(folder: &Path, flags: &[&str]) -> Result<Self, String> {
        Self::try_start(Folder::Given(folder.to_owned()), flags)
    }

    /// A server on the store that `flags` name, with `variables` in its environment, on a folder
    /// that outlives it. The error is its log.
    pub fn start_on_store(
        folder: &Path,
        flags: &[String],
        variables: &[(&str, &str)],
    ) -> Result<Self, String> {
        Self::launch(Folder::Given(folder.to_owned()), flags, variables)
    }

    /// A server with a limit of open files.
    pub fn start_with_open_files(files_max: u64, flags: &[&str]) -> Self {
        Self::start_with_limit(&format!("-n {files_max}"), flags)
    }

    /// A server with a shell limit, such as `-n 100`.
    pub fn start_with_limit(limit: &str, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut all_flags = store_flags(folder.path());
        all_flags.extend(flags.iter().map(Into::into));
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit {limit}; exec \"$0\" \"$@\"")]);
        shell.arg(env!("CARGO_BIN_EXE_quoin"));
        Self::launch_by(shell, Folder::Own(folder), &all_flags, &[])
            .unwrap_or_else(|log| panic!("no server: {log}"))
    }

    /// A server of a user who has no other processes. `None` if this user may not start one.
    pub fn start_as_another_user(folder: TempDir, flags: &[&str]) -> Option<Self> {
        let may_start = as_another_user().arg("true").output();
        let may_start = may_start.is_ok_and(|output| output.status.success());
        let mut owners = Command::new("chown");
        let owners = owners.args(["-R", &another_user()]).arg(folder.path());
        if !may_start || !owners.status().is_ok_and(|status| status.success()) {
            return None;
        }
        let mut program = as_another_user();
        program.arg(env!("CARGO_BIN_EXE_quoin"));
        let mut all_flags = store_flags(folder.path());
        all_flags.extend(flags.iter().map(Into::into));
        let server = Self::launch_by(program, Folder::Own(folder), &all_flags, &[]);
        Some(server.unwrap_or_else(|log| panic!("no server: {log}")))
    }

    fn try_start(folder: Folder, flags: &[&str]) -> Result<Self, String> {
        let path = match &folder {
            Folder::Own(own) => own.path(),
            Folder::Given(given) => given,
        };
        let mut all_flags = store_flags(path);
        all_flags.extend(flags.iter().map(Into::into));
        Self::launch(folder, &all_flags, &[])
    }

    fn launch(
        folder: Folder,
        flags: &[impl AsRef<std::ffi::OsStr>],
        variables: &[(&str, &str)],
    ) -> Result<Self, String> {
        let program = Command::new(env!("CARGO_BIN_EXE_quoin"));
        Self::launch_by(program, folder, flags, variables)
    }

    fn launch_by(
        mut program: Command,
        folder: Folder,
        flags: &[impl AsRef<std::ffi::OsStr>],
        variables: &[(&str, &str)],
    ) -> Result<Self, String> {
        let path = match &folder {
            Folder::Own(own) => own.path(),
            Folder::Given(given) => given,
        };
        if !flags.iter().any(|flag| flag.as_ref() == "--bind") {
            program.args(["--bind", "127.0.0.1"]);
        }
        if !flags.iter().any(|flag| flag.as_ref() == "--port") {
            program.args(["--port", "0"]);
        }
        if !flags
            .iter()
            .any(|flag| flag.as_ref() == "--dashboard-address")
        {
            program.args(["--dashboard-address", ""]);
        }
        let mut child = program
            .env("NO_COLOR", "1")
            .envs(variables.iter().copied())
            .args(flags)
            .current_dir(path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut log = Vec::new();
        // Waits for the line with the server's address, or for its end.
        let address = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let address = announced_address(&line);
            log.push(line);
            address
        });
        let Some(address) = address else {
            let _ = child.wait();
            return Err(log.join("\n"));
        };
        let log = Arc::new(Mutex::new(log));
        let log_of_reader = Arc::clone(&log);
        // Reads to the end. Otherwise the server would block on its output.
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                log_of_reader.lock().unwrap().push(line);
            }
        });
        Ok(Self {
            child,
            address,
            folder,
            log,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The folder in which it runs. Its data is in `data`.
    pub fn folder(&self) -> &Path {
        match &self.folder {
            Folder::Own(own) => own.path(),
            Folder::Given(given) => given,
        }
    }

    /// The process's number.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }

    /// A new connection.
    pub fn connect(&self) -> Socket {
        Socket::connect(self.address)
    }

    /// A client of the redis crate, which speaks RESP2 or (3) RESP3.
    pub fn redis(&self, protocol: u8) -> redis::Connection {
        let protocol = if protocol == 3 { "resp3" } else { "resp2" };
        let url = format!("redis://{}/?protocol={protocol}", self.address);
        redis::Client::open(url).unwrap().get_connection().unwrap()
    }

    /// Sends the process a signal, by name.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .arg(format!("-{name}"))
            .arg(self.child.id().to_string())
            .status()
            .unwrap();
        assert!(status.success());
    }

    /// Whether the process has ended, and how.
    pub fn ending(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Waits until the process has ended.
    pub fn wait(&mut self) -> ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(started.elapsed() < PATIENCE, "the server does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Memory that the process has allocated and touched, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find(|line| line.starts_with("RssAnon:"));
        let kibibytes = line.unwrap().split_whitespace().nth(1).unwrap();
        kibibytes.parse::<u64>().unwrap() * 1024
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A user without processes except those that the tests start with [`as_another_user`].
fn another_user() -> String {
    (60_000 + std::process::id() % 5_000).to_string()
}

/// Runs the program that is its first argument as that user, which requires the superuser.
pub fn as_another_user() -> Command {
    let user = another_user();
    let mut command = Command::new("setpriv");
    command.args([format!("--reuid={user}"), format!("--regid={user}")]);
    command.arg("--clear-groups");
    command
}

/// An unused port, outside of the range that the system assigns by itself.
pub fn free_port() -> u16 {
    let mut port = 20_000 + (std::process::id() % 10_000) as u16;
    loop {
        let salt = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), port);
        port = 20_000 + (salt % 12_000) as u16;
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Whether servers run on FoundationDB: the tests are built with it, there is a cluster, and
/// `QUOIN_TEST_STORE=fdb` requests it.
pub fn is_on_foundationdb() -> bool {
    cluster_file().is_some()
}

#[cfg(feature = "fdb")]
fn cluster_file() -> Option<&'static Path> {
    if std::env::var_os("QUOIN_TEST_STORE").is_some_and(|store| store == "fdb") {
        // Requested explicitly, so the embedded store would test something else.
        Some(foundationdb::find().unwrap_or_else(|reason| panic!("no FoundationDB: {reason}")))
    } else {
        None
    }
}

#[cfg(not(feature = "fdb"))]
fn cluster_file() -> Option<&'static Path> {
    None
}

/// On FoundationDB, servers of one folder share a root prefix, as they would share its data.
fn store_flags(folder: &Path) -> Vec<std::ffi::OsString> {
    let Some(cluster_file) = cluster_file() else {
        return vec!["--data-dir".into(), folder.join("data").into()];
    };
    let mut hasher = std::hash::DefaultHasher::new();
    folder.hash(&mut hasher);
    let root_prefix = format!("test-{:016x}", hasher.finish());
    vec![
        "--store".into(),
        "fdb".into(),
        "--cluster-file".into(),
        cluster_file.into(),
        "--root-prefix".into(),
        root_prefix.into(),
    ]
}

fn announced_address(line: &str) -> Option<SocketAddr> {
    let (_, behind) = line.split_once(" listens on ")?;
    let address = behind.split([',', ' ']).next()?;
    address.parse().ok()
}

/// A connection that knows nothing of the protocol except where a reply ends.
pub struct Socket {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Socket {
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            received: Vec::new(),
        }
    }

    /// A connection with small system buffers: about this many bytes each way.
    pub fn connect_with_buffers(address: SocketAddr, bytes: usize) -> Self {
        let domain = socket2::Domain::for_address(address);
        let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None).unwrap();
        socket.set_send_buffer_size(bytes).unwrap();
        socket.set_recv_buffer_size(bytes).unwrap();
        socket.connect(&address.into()).unwrap();
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self {
            stream,
            received: Vec::new(),
        }
    }

    /// Where this end is.
    pub fn local_address(&self) -> SocketAddr {
        self.stream.local_addr().unwrap()
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    /// Sends data that the other end may have stopped reading. Returns whether all of it was sent.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>, timeout: Duration) -> bool {
        self.stream.set_write_timeout(Some(timeout)).unwrap();
        let sent = self.stream.write_all(bytes.as_ref()).is_ok();
        self.stream.set_write_timeout(None).unwrap();
        sent
    }

    /// Signals that nothing more is sent from here.
    pub fn end_sending(&mut self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }

    /// Sends a command, each word as an argument, and returns its whole reply as received.
    pub fn command(&mut self, words: &[&str]) -> String {
        self.send(request(words));
        self.reply()
    }

    /// Like [`Self::command`], with the words of a line.
    pub fn run(&mut self, line: &str) -> String {
        self.command(&line.split(' ').collect::<Vec<_>>())
    }

    /// The next whole reply as received.
    pub fn reply(&mut self) -> String {
        String::from_utf8_lossy(&self.reply_bytes()).into_owned()
    }

    /// The next whole reply as received.
    pub fn reply_bytes(&mut self) -> Vec<u8> {
        loop {
            if let Some(end) = reply_end(&self.received, 0) {
                return self.received.drain(..end).collect();
            }
            if !self.receive().unwrap() {
                panic!("closed amid {:?}", String::from_utf8_lossy(&self.received));
            }
        }
    }

    /// The next whole reply as received, or nothing if the server closes the connection.
    pub fn reply_or_end(&mut self) -> String {
        while reply_end(&self.received, 0).is_none() && self.receive().unwrap_or(false) {}
        match self.received.is_empty() {
            true => String::new(),
            false => self.reply(),
        }
    }

    /// Everything until the server closes the connection.
    pub fn rest(&mut self) -> String {
        while self.receive().unwrap_or(false) {}
        String::from_utf8_lossy(&std::mem::take(&mut self.received)).into_owned()
    }

    /// Whether the server sends nothing for a while.
    pub fn is_silent_for(&mut self, duration: Duration) -> bool {
        self.stream.set_read_timeout(Some(duration)).unwrap();
        let received = self.receive();
        self.stream.set_read_timeout(Some(PATIENCE)).unwrap();
        self.received.is_empty() && received.is_err()
    }

    fn receive(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 64 * 1024];
        let count = self.stream.read(&mut buffer)?;
        self.received.extend_from_slice(&buffer[..count]);
        Ok(count > 0)
    }
}

/// A command as an array of bulk strings.
pub fn request(words: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        let word = word.as_ref();
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// The end of the reply that begins at `start`, if it is complete.
pub fn reply_end(bytes: &[u8], start: usize) -> Option<usize> {
    let rest = bytes.get(start..)?;
    let line_length = rest.windows(2).position(|pair| pair == b"\r\n")?;
    let line = std::str::from_utf8(&rest[..line_length]).unwrap_or("");
    let end = start + line_length + 2;
    let count = || line.get(1..).and_then(|number| number.parse::<i64>().ok());
    match rest.first()? {
        b'$' | b'=' => match usize::try_from(count()?) {
            Ok(length) => Some(end + length + 2).filter(|end| *end <= bytes.len()),
            Err(_) => Some(end),
        },
        kind @ (b'*' | b'~' | b'>' | b'%') => {
            let elements = count()?.max(0) * if *kind == b'%' { 2 } else { 1 };
            (0..elements).try_fold(end, |at, _| reply_end(bytes, at))
        }
        _ => Some(end),
    }
}

/// Retries until it holds. Fails if it never does.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

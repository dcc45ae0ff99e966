//! A FoundationDB cluster of several processes that can be killed, paused and restarted.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Two processes store each row, and two log each transaction.
const PROCESSES: usize = 5;
const COORDINATORS: usize = 3;
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Its processes end when this value is dropped.
pub struct Cluster {
    processes: Vec<Process>,
    folder: tempfile::TempDir,
}

struct Process {
    number: usize,
    port: u16,
    child: Mutex<Option<Child>>,
}

impl Cluster {
    /// Starts a cluster with an empty database. The error says why there is none.
    pub fn start() -> Result<Self, String> {
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
        Self::try_start().map_err(|error| format!("fdbserver does not start: {error}"))
    }

    fn try_start() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("quoin-chaos-").tempdir()?;
        // Held until all are known, so that they differ.
        let listeners: Vec<TcpListener> = (0..PROCESSES)
            .map(|_| TcpListener::bind("127.0.0.1:0"))
            .collect::<io::Result<_>>()?;
        let mut processes = Vec::new();
        for (number, listener) in listeners.into_iter().enumerate() {
            processes.push(Process {
                number,
                port: listener.local_addr()?.port(),
                child: Mutex::new(None),
            });
        }
        let coordinators: Vec<String> = processes
            .iter()
            .take(COORDINATORS)
            .map(|process| format!("127.0.0.1:{}", process.port))
            .collect();
        let contents = format!("chaos:chaos@{}\n", coordinators.join(","));
        let cluster = Self { processes, folder };
        fs::write(cluster.file(), contents)?;
        for number in 0..PROCESSES {
            cluster.revive(number);
        }
        cluster.configure()?;
        Ok(cluster)
    }

    /// The cluster file.
    pub fn file(&self) -> PathBuf {
        self.folder.path().join("fdb.cluster")
    }

    /// The number of processes.
    pub fn len(&self) -> usize {
        self.processes.len()
    }

    /// Kills a process. What it has synced stays on its disk.
    pub fn kill(&self, number: usize) {
        let mut child = self.processes[number].child.lock().unwrap();
        if let Some(mut child) = child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Starts a process that does not run.
    pub fn revive(&self, number: usize) {
        let process = &self.processes[number];
        let mut child = process.child.lock().unwrap();
        if child.is_none() {
            *child = Some(process.spawn(self.folder.path()).unwrap());
        }
    }

    /// Stops or continues a process.
    pub fn signal(&self, number: usize, name: &str) {
        let child = self.processes[number].child.lock().unwrap();
        if let Some(child) = child.as_ref() {
            let mut command = Command::new("kill");
            command.arg(format!("-{name}")).arg(child.id().to_string());
            assert!(command.status().unwrap().success());
        }
    }

    /// Sees to it that all processes run.
    pub fn heal(&self) {
        for number in 0..PROCESSES {
            self.signal(number, "CONT");
            self.revive(number);
        }
    }

    /// Creates the database.
    fn configure(&self) -> io::Result<()> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            let text = self.fdbcli("configure new double ssd")?;
            if text.contains("Database created") || text.contains("Database already exists") {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(io::Error::other(format!("fdbcli says: {}", text.trim())));
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn fdbcli(&self, command: &str) -> io::Result<String> {
        let output = Command::new("fdbcli")
            .arg("-C")
            .arg(self.file())
            .args(["--exec", command, "--timeout", "10"])
            .stdin(Stdio::null())
            .output()?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Process {
    fn spawn(&self, folder: &Path) -> io::Result<Child> {
        let Self { number, port, .. } = self;
        let own_folder = folder.join(format!("fdbserver{number}"));
        fs::create_dir_all(&own_folder)?;
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(own_folder.join("out"))?;
        Command::new("fdbserver")
            .arg("-p")
            .arg(format!("127.0.0.1:{port}"))
            .arg("-C")
            .arg(folder.join("fdb.cluster"))
            .arg("-d")
            .arg(own_folder.join("data"))
            .arg("-L")
            .arg(&own_folder)
            // Replicas go to different machines, so this machine plays several.
            .arg(format!("--locality-zoneid=zone{number}"))
            .arg(format!("--locality-machineid=machine{number}"))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for number in 0..PROCESSES {
            let process = &self.processes[number];
            // A test that has failed in between drops it too.
            let mut child = match process.child.lock() {
                Ok(child) => child,
                Err(poisoned) => poisoned.into_inner(),
            };
            if let Some(mut child) = child.take() {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

//! A trial of the TLS files in a separate process.
//!
//! FoundationDB's client (7.3) does not report that it cannot use a certificate, key or password. It continues
//! without them, and the process may crash when it connects. Only its trace says why. So a child process loads the
//! files, connects to nothing, and writes a trace.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use foundationdb::Database;
use foundationdb::options::{NetworkOption, TransactionOption};

use super::error::OpenError;
use super::network;
use super::wait::wait;
use quoin_base::random::{Random, SystemRandom};

/// Timeout of the request to a cluster that does not exist.
const TIMEOUT_MS: i32 = 100;
/// Maximum duration of a trial.
const TRIAL_MAX_S: u32 = 5;

/// A cluster without TLS that does not exist (the discard port).
const NO_CLUSTER: &str = "trial:trial@127.0.0.1:9\n";
/// Trace events that say why files cannot be used: type, field with the reason, and text to put before the reason.
const COMPLAINTS: [(&str, &str, &str); 3] = [
    ("TLSContextConfigureError", "What", ""),
    (
        "FDBLibTLSVerifyPeersParseError",
        "Config",
        "cannot read the conditions for peers: ",
    ),
    ("Net2TLSInitError", "Error", ""),
];

/// Checks whether the client library can use the files. Other errors appear when the store is opened.
///
/// Does nothing if this process has more than one thread, because a child would not have the others.
pub(super) fn check(options: Vec<NetworkOption>) -> Result<(), OpenError> {
    if !is_single_threaded() {
        tracing::debug!("TLS files are not checked: this process has several threads");
        return Ok(());
    }
    let folder = match make_folder() {
        Ok(folder) => folder,
        Err(error) => {
            tracing::warn!(%error, "TLS files are not checked");
            return Ok(());
        }
    };
    let crash = run_child(options, &folder);
    let complaint = complaint(&folder);
    // A leftover folder does no harm.
    let _ = fs::remove_dir_all(&folder);
    match complaint.or(crash) {
        Some(reason) => Err(OpenError::TlsUnusable { reason }),
        None => Ok(()),
    }
}

fn is_single_threaded() -> bool {
    fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1)
}

/// Makes a folder for a cluster file and a trace that only this user can open.
fn make_folder() -> std::io::Result<PathBuf> {
    let number = SystemRandom.next_u64();
    let folder = std::env::temp_dir().join(format!("quoin-tls-{number:016x}"));
    fs::DirBuilder::new().mode(0o700).create(&folder)?;
    fs::write(cluster_file(&folder), NO_CLUSTER)?;
    Ok(folder)
}

fn cluster_file(folder: &Path) -> PathBuf {
    folder.join("fdb.cluster")
}

/// Loads the files in a child. Returns a reason if the child crashed.
fn run_child(options: Vec<NetworkOption>, folder: &Path) -> Option<String> {
    // SAFETY: there is no other thread whose locks would stay taken in the child. The child ends with `_exit`, so
    // nothing of this process is closed or written twice.
    #[allow(unsafe_code)]
    let child = unsafe { libc::fork() };
    match child {
        -1 => {
            let error = std::io::Error::last_os_error();
            tracing::warn!(%error, "TLS files are not checked");
            None
        }
        0 => {
            limit();
            load(options, folder);
            // SAFETY: ends the process; takes a plain number.
            #[allow(unsafe_code)]
            unsafe {
                libc::_exit(0)
            }
        }
        child => match signal_that_ended(child) {
            Some(libc::SIGSEGV | libc::SIGABRT | libc::SIGBUS) => Some("it crashes".to_owned()),
            _ => None,
        },
    }
}

/// In the child: disables core files and limits the time.
fn limit() {
    let none = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the structure lives as long as the call; `alarm` takes a plain number.
    #[allow(unsafe_code)]
    unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::alarm(TRIAL_MAX_S);
    }
}

/// In the child: makes the client load the files, which it does when it opens its first database. The trace is
/// complete when the network has stopped.
fn load(mut options: Vec<NetworkOption>, folder: &Path) {
    options.push(NetworkOption::TraceEnable(folder.display().to_string()));
    options.push(NetworkOption::TraceFormat("json".to_owned()));
    let asked = async {
        network::start(options)?;
        let database = Database::new(cluster_file(folder).to_str())?;
        let transaction = database.create_trx()?;
        transaction.set_option(TransactionOption::Timeout(TIMEOUT_MS))?;
        // It fails, but the database is open after the timeout.
        transaction.get_read_version().await
    };
    let _ = wait(asked);
    network::stop();
}

/// The signal that ended a child, or `None` if it ended otherwise.
fn signal_that_ended(child: libc::pid_t) -> Option<libc::c_int> {
    let mut status = 0;
    loop {
        // SAFETY: `status` lives as long as the call.
        #[allow(unsafe_code)]
        let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
        if ended == child {
            return libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status));
        }
        let is_interrupted =
            std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted;
        if !is_interrupted {
            return None;
        }
    }
}

/// The reason found in the trace. The most specific event comes first.
fn complaint(folder: &Path) -> Option<String> {
    let files = fs::read_dir(folder).ok()?.filter_map(Result::ok);
    let texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
    let trace: String = texts.collect();
    COMPLAINTS.iter().find_map(|(event, field, before)| {
        let found = field_of(&trace, event, field)?;
        Some(format!("{before}{found}"))
    })
}

/// A field of the first event of a type: `"Type": "event", … "field": "value"` on one line.
fn field_of(trace: &str, event: &str, field: &str) -> Option<String> {
    let kind = format!("\"Type\": \"{event}\"");
    let line = trace.lines().find(|line| line.contains(&kind))?;
    let (_, rest) = line.split_once(&format!("\"{field}\": \""))?;
    let (value, _) = rest.split_once('"')?;
    Some(value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_is_found_in_the_trace() {
        let folder = make_folder().unwrap();
        assert_eq!(complaint(&folder), None);
        let trace = "{  \"Severity\": \"10\", \"Type\": \"Other\", \"What\": \"no\" }\n\
                     {  \"Severity\": \"10\", \"Type\": \"Net2TLSInitError\", \"Error\": \"tls_error\" }\n\
                     {  \"Severity\": \"10\", \"Type\": \"TLSContextConfigureError\", \
                     \"What\": \"use_private_key: bad decrypt\", \"Value\": \"1\" }\n";
        fs::write(folder.join("trace.1.json"), trace).unwrap();
        let found = complaint(&folder);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found.as_deref(), Some("use_private_key: bad decrypt"));
    }
}

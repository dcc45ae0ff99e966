//! Servers that speak TLS with their cluster.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::server::Server;
use crate::server::foundationdb::{self, OwnCluster};

/// A server that cannot reach its cluster says so in this time.
const BOUND: Duration = Duration::from_secs(15);

const PASSWORD: &str = "open sesame";

/// A cluster with certificates, which ends with the test.
struct Bench {
    cluster: OwnCluster,
    folder: tempfile::TempDir,
}

/// One folder of certificates: `ca`, `cluster` and `server` of one authority, `stranger` of
/// another. `locked.key` is `server.key` with a password.
fn certificates() -> Result<tempfile::TempDir, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let openssl = |line: &str| {
        let status = Command::new("openssl")
            .args(line.split(' '))
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .map_err(|error| format!("openssl: {error}"))?;
        match status.success() {
            true => Ok(()),
            false => Err(format!("openssl {line}: {status}")),
        }
    };
    for authority in ["ca", "other"] {
        openssl(&format!(
            "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={authority} \
             -keyout {authority}.key -out {authority}.pem"
        ))?;
    }
    for (name, authority) in [("cluster", "ca"), ("server", "ca"), ("stranger", "other")] {
        openssl(&format!(
            "req -newkey rsa:2048 -nodes -subj /O={name}/CN={name} -keyout {name}.key \
             -out {name}.csr"
        ))?;
        openssl(&format!(
            "x509 -req -in {name}.csr -CA {authority}.pem -CAkey {authority}.key \
             -CAcreateserial -days 2 -out {name}.pem"
        ))?;
    }
    std::fs::write(folder.path().join("password"), PASSWORD).map_err(|error| error.to_string())?;
    openssl("rsa -aes256 -passout file:password -in server.key -out locked.key")?;
    std::fs::write(folder.path().join("nonsense.pem"), "nonsense\n")
        .map_err(|error| error.to_string())?;
    Ok(folder)
}

/// A cluster that speaks only TLS. `None` if there can be none.
fn bench() -> Option<Bench> {
    let started = certificates().and_then(|folder| {
        let at = |name: &str| folder.path().join(name);
        let cluster =
            OwnCluster::start_with_tls(&at("cluster.pem"), &at("cluster.key"), &at("ca.pem"))?;
        Ok(Bench { cluster, folder })
    });
    started.map_err(|reason| foundationdb::skip(&reason)).ok()
}

impl Bench {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The path of one of the certificates if a setting or variable names a file.
    fn value(&self, name: &str, value: &str) -> String {
        match name.to_ascii_lowercase().ends_with("file") {
            true => self.path(value).to_str().unwrap().to_owned(),
            false => value.to_owned(),
        }
    }

    /// Flags for this cluster and for TLS. `settings` leave out the prefix `fdb-tls-`.
    fn flags(&self, settings: &[(&str, &str)]) -> Vec<String> {
        let mut flags = vec![
            "--store".to_owned(),
            "fdb".to_owned(),
            "--cluster-file".to_owned(),
            self.cluster.file().to_str().unwrap().to_owned(),
        ];
        for (name, given) in settings {
            flags.push(format!("--fdb-tls-{name}"));
            flags.push(self.value(name, given));
        }
        flags
    }

    /// Starts a server with settings for TLS and with variables of FoundationDB.
    fn start(
        &self,
        settings: &[(&str, &str)],
        variables: &[(&str, &str)],
    ) -> Result<Server, String> {
        let variables: Vec<(String, String)> = variables
            .iter()
            .map(|(name, given)| (format!("FDB_TLS_{name}"), self.value(name, given)))
            .collect();
        let variables: Vec<(&str, &str)> = variables
            .iter()
            .map(|(name, given)| (name.as_str(), given.as_str()))
            .collect();
        let folder = tempfile::tempdir().unwrap();
        Server::start_on_store(folder.path(), &self.flags(settings), &variables)
    }

    /// The output of `quoin doctor`.
    fn doctor(&self, settings: &[(&str, &str)]) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_quoin"))
            .arg("doctor")
            .args(self.flags(settings))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    #[track_caller]
    fn works(&self, settings: &[(&str, &str)], variables: &[(&str, &str)]) {
        let server = match self.start(settings, variables) {
            Ok(server) => server,
            Err(log) => panic!("{settings:?} {variables:?}: {log}"),
        };
        let mut socket = server.connect();
        assert_eq!(socket.run("RPUSH list a"), ":1\r\n");
        assert_eq!(socket.run("LPOP list"), "$1\r\na\r\n");
    }

    #[track_caller]
    fn is_refused(&self, settings: &[(&str, &str)], variables: &[(&str, &str)]) -> String {
        let started = Instant::now();
        let Err(log) = self.start(settings, variables) else {
            panic!("{settings:?} {variables:?}: is served");
        };
        let elapsed = started.elapsed();
        assert!(elapsed < BOUND, "{settings:?} {variables:?}: {elapsed:?}");
        assert!(!log.contains(PASSWORD), "{log}");
        log
    }
}

const RIGHT: &[(&str, &str)] = &[
    ("certificate-file", "server.pem"),
    ("key-file", "server.key"),
    ("ca-file", "ca.pem"),
];

const RIGHT_VARIABLES: &[(&str, &str)] = &[
    ("CERTIFICATE_FILE", "server.pem"),
    ("KEY_FILE", "server.key"),
    ("CA_FILE", "ca.pem"),
];

/// The correct settings with some changes and additions.
fn but<'a>(changes: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let is_kept = |(name, _): &&(&str, &str)| changes.iter().all(|(changed, _)| changed != name);
    let kept = RIGHT.iter().filter(is_kept);
    kept.chain(changes).copied().collect()
}

#[test]
fn certificates_that_fit_are_taken_from_settings_and_from_foundationdbs_variables() {
    let Some(bench) = bench() else { return };
    bench.works(RIGHT, &[]);
    bench.works(&[], RIGHT_VARIABLES);
    bench.works(&RIGHT[1..], &RIGHT_VARIABLES[..1]);
    bench.works(&but(&[("verify-peers", "Check.Valid=1,S.O=cluster")]), &[]);
    bench.works(
        &but(&[("key-file", "locked.key"), ("password", PASSWORD)]),
        &[],
    );
    // Settings win.
    let wrong = [
        ("CERTIFICATE_FILE", "stranger.pem"),
        ("KEY_FILE", "stranger.key"),
        ("CA_FILE", "other.pem"),
    ];
    bench.works(RIGHT, &wrong);
}

#[test]
fn certificates_that_do_not_fit_are_told_at_the_start() {
    let Some(bench) = bench() else { return };
    let unreachable = "quoin: the FoundationDB cluster at ";
    let not_trusted = "does not trust this server";
    let unusable = "quoin: FoundationDB's client library cannot use the files for TLS";
    let stranger = [
        ("certificate-file", "stranger.pem"),
        ("key-file", "stranger.key"),
    ];
    for (settings, expected) in [
        (vec![], unreachable),
        (but(&stranger), unreachable),
        (but(&[("ca-file", "other.pem")]), unreachable),
        (
            but(&[("verify-peers", "Check.Valid=1,S.O=somebody")]),
            unreachable,
        ),
        (vec![RIGHT[2]], not_trusted),
        (but(&[("key-file", "stranger.key")]), not_trusted),
        (
            but(&[("key-file", "locked.key"), ("password", "wrong")]),
            unusable,
        ),
        (but(&[("certificate-file", "nonsense.pem")]), unusable),
        (but(&[("key-file", "nonsense.pem")]), unusable),
        (but(&[("ca-file", "nonsense.pem")]), unusable),
        (but(&[("verify-peers", "nonsense")]), unusable),
    ] {
        let log = bench.is_refused(&settings, &[]);
        assert!(log.contains(expected), "{settings:?}: {log}");
        assert!(
            log.contains("fdb-tls-certificate-file"),
            "{settings:?}: {log}"
        );
    }
    for nonsense in ["nonsense.pem", "none.pem"] {
        let variable = [("CERTIFICATE_FILE", nonsense)];
        let log = bench.is_refused(&RIGHT[1..], &variable);
        assert!(log.contains(unusable), "{nonsense}: {log}");
    }
}

#[test]
fn a_file_that_is_missing_is_named_with_its_setting() {
    let Some(bench) = bench() else { return };
    for setting in ["certificate-file", "key-file", "ca-file"] {
        let log = bench.is_refused(&but(&[(setting, "none.pem")]), &[]);
        let path = bench.path("none.pem");
        let expected = format!(
            "quoin: fdb-tls-{setting}: the file {} cannot be read: ",
            Path::display(&path)
        );
        assert!(log.contains(&expected), "{log}");
    }
}

#[test]
fn settings_that_nothing_asks_for_are_told() {
    let Some(bench) = bench() else { return };
    let Some(cluster_file) = crate::server::foundationdb::cluster_file() else {
        return;
    };
    let certificate = bench.path("server.pem");
    let server = Server::start_with(&[
        "--store",
        "fdb",
        "--cluster-file",
        cluster_file.to_str().unwrap(),
        "--fdb-tls-certificate-file",
        certificate.to_str().unwrap(),
    ]);
    assert!(
        server.log().contains("are not encrypted"),
        "{}",
        server.log()
    );
}

#[test]
fn the_doctor_connects_as_the_server_does() {
    let Some(bench) = bench() else { return };
    let said = bench.doctor(RIGHT);
    assert!(said.contains("reachable"), "{said}");
    let wrong = but(&[("key-file", "locked.key"), ("password", "wrong")]);
    let said = bench.doctor(&wrong);
    assert!(said.contains("cannot use the files for TLS"), "{said}");
}

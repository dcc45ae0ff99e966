//! `quoin export`: writes the keys of a running Quoin to a file that `redis-server` and
//! `quoin import` load. Values of types that Redis does not have are written as values of modules.
//!
//! It is only a client of the server. Each key has its value and expiry as of one moment. The file
//! gets its name when it is complete.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::{File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::{Arg, ArgAction, Command};

use quoin_base::size::counted;
use quoin_client::{
    ADDRESS_HELP, Address, Client, ClientError, Databases, End, Progress, Transaction,
    databases_argument, match_argument, tls_flags,
};
use quoin_rdb::{
    Checksum, DumpError, HEADER, LibrariesError, OPCODE_END, OPCODE_EXPIRE_AT_MS, OPCODE_SELECT,
};
use quoin_resp::wire::reply_reader::Value;
use quoin_store_embedded::sync_folder;

/// Keys that are asked for at a time.
const KEYS_AT_ONCE: usize = 64;

/// The file contains all data of a server, so only its owner may read it.
const FILE_MODE: u32 = 0o600;

/// The file's suffix until it is complete.
const PARTIAL_SUFFIX: &str = ".partial";

/// The types that a file of Redis can hold.
const TYPES_OF_REDIS: [&[u8]; 6] = [b"string", b"list", b"set", b"zset", b"hash", b"stream"];

/// Writes the file, and shows on the standard error how far it is.
///
/// # Errors
/// If the server cannot be reached or gives an unexpected reply, or if the file cannot be written. Errors of
/// single keys are in the result.
pub fn run(options: &Options) -> Result<Report, ExportError> {
    if options.to.exists() {
        return Err(ExportError::Exists(options.to.clone()));
    }
    let mut client = Client::connect(&options.from)?;
    if !client.info("server")?.contains("\nquoin_version:") {
        return Err(ExportError::NoQuoin(options.from.clone()));
    }
    let partial = partial_of(&options.to);
    let written = write(options, &mut client, &partial).and_then(|report| {
        publish(&partial, &options.to).map_err(|source| failed(&options.to, source))?;
        Ok(report)
    });
    if written.is_err() {
        // Nothing is lost if this fails. The earlier error is the important one.
        let _ = std::fs::remove_file(&partial);
    }
    written
}

fn partial_of(to: &Path) -> PathBuf {
    let mut name = to.as_os_str().to_owned();
    name.push(PARTIAL_SUFFIX);
    PathBuf::from(name)
}

fn failed(path: &Path, source: std::io::Error) -> ExportError {
    ExportError::File {
        path: path.to_owned(),
        source,
    }
}

/// Creates the file, or empties one left by a killed export.
fn create(partial: &Path) -> std::io::Result<File> {
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(FILE_MODE)
        .open(partial)?;
    file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    Ok(file)
}

/// Gives the file its name, durably. If a file with that name exists by now, it stays.
fn publish(partial: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::hard_link(partial, to)?;
    std::fs::remove_file(partial)?;
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
    sync_folder(folder.unwrap_or(Path::new(".")))
}

fn write(options: &Options, client: &mut Client, partial: &Path) -> Result<Report, ExportError> {
    let file_error = |source| failed(partial, source);
    let file = create(partial).map_err(file_error)?;
    let mut file = RdbFile::begin(BufWriter::new(file)).map_err(file_error)?;
    let databases = match &options.databases {
        Databases::All => client.databases()?,
        Databases::Some(numbers) => numbers.clone(),
    };
    let mut report = Report::default();
    let reply = client.call(&["FUNCTION", "DUMP"])?;
    match reply.bytes() {
        Some(payload) => {
            let payload = Bytes::copy_from_slice(payload);
            match file.libraries(&payload).map_err(file_error)? {
                Ok(count) => report.libraries = count,
                Err(error) => return Err(client.refused(error.to_string()).into()),
            }
        }
        None => return Err(client.unexpected(&reply).into()),
    }
    let mut progress = Progress::start();
    progress.begin("exporting:");
    for database in databases {
        client.select_existing(database)?;
        file.select(database).map_err(file_error)?;
        let mut cursor = Some(b"0".to_vec());
        while let Some(at) = cursor {
            // The cursors of a Quoin return each key once.
            let (next, names) = client.scan(&at, KEYS_AT_ONCE, options.pattern.as_deref())?;
            cursor = next;
            let names = match options.for_redis {
                true => without_own(client, names, &mut report)?,
                false => names,
            };
            for name in &names {
                client.queue_transaction(&[
                    &[b"TYPE", name],
                    &[b"PEXPIRETIME", name],
                    &[b"DUMP", name],
                ]);
            }
            client.send()?;
            for name in &names {
                let replies = client.read_transaction(3)?;
                match found(replies, options.for_redis) {
                    Found::Nothing => {}
                    Found::LeftOut(kind) => report.skip(name, kind),
                    Found::Refused(why) => report.fail(name, &why),
                    Found::Value {
                        kind,
                        is_own,
                        expire_at_ms,
                        payload,
                    } => match file.key(name, expire_at_ms, payload).map_err(file_error)? {
                        Ok(()) if is_own => report.exported_own(kind),
                        Ok(()) => report.exported_keys += 1,
                        Err(why) => report.fail(name, &why.to_string()),
                    },
                }
                progress.keys += 1;
            }
            progress.show(format_args!("{} exported", report.exported_keys));
        }
    }
    progress.end();
    report.bytes = file.finish().map_err(file_error)?;
    Ok(report)
}

/// The keys of types that Redis has. The others are not dumped, because such a queue may be large.
fn without_own(
    client: &mut Client,
    names: Vec<Vec<u8>>,
    report: &mut Report,
) -> Result<Vec<Vec<u8>>, ExportError> {
    for name in &names {
        client.queue(&[b"TYPE", name.as_slice()]);
    }
    client.send()?;
    let mut others = Vec::new();
    for name in names {
        let reply = client.read()?;
        let kind = reply.status().unwrap_or_default();
        // Deleted keys, and keys whose type is unknown, are asked for again with the rest.
        if kind.is_empty() || kind == b"none" || TYPES_OF_REDIS.contains(&kind) {
            others.push(name);
        } else {
            report.skip(&name, String::from_utf8_lossy(kind).into_owned());
        }
    }
    Ok(others)
}

/// What a key held.
enum Found {
    /// It is gone.
    Nothing,
    /// A value of this type, which Redis does not have, in an export for Redis.
    LeftOut(String),
    /// The server's error.
    Refused(String),
    /// A value.
    Value {
        kind: String,
        /// Whether Redis does not have the type.
        is_own: bool,
        expire_at_ms: Option<i64>,
        payload: Vec<u8>,
    },
}

fn found(replies: Transaction, for_redis: bool) -> Found {
    let replies = match replies {
        Transaction::Done(replies) => replies,
        Transaction::Changed => return Found::Nothing,
        Transaction::Refused(reply) => return refused(&reply),
    };
    let [kind, expiry, dump] = replies.as_slice() else {
        return Found::Nothing;
    };
    let kind = kind.status().unwrap_or_default();
    if kind == b"none" {
        return Found::Nothing;
    }
    let is_own = !TYPES_OF_REDIS.contains(&kind);
    let kind = String::from_utf8_lossy(kind).into_owned();
    // Whether or not DUMP could answer: a value may be too large for it.
    if is_own && for_redis {
        return Found::LeftOut(kind);
    }
    match dump.bytes() {
        Some(payload) => Found::Value {
            kind,
            is_own,
            expire_at_ms: expiry.integer().filter(|expire_at_ms| *expire_at_ms >= 0),
            payload: payload.to_vec(),
        },
        None => refused(dump),
    }
}

fn refused(reply: &Value) -> Found {
    let text = reply.error_text().map(|text| text.into_owned());
    Found::Refused(text.unwrap_or_else(|| "a reply of an unexpected kind".to_owned()))
}

const FROM: End = End {
    variables: &["QUOIN_EXPORT_FROM_", "QUOIN_CLIENT_"],
    ..End::QUOIN
};

const FROM_DEFAULT: &str = "redis://127.0.0.1:6379";

/// What `quoin export` should do.
#[derive(Debug, Clone)]
pub struct Options {
    /// The Quoin to read.
    pub from: Address,
    /// The file to write.
    pub to: PathBuf,
    /// Which databases to export.
    pub databases: Databases,
    /// A pattern for the names of keys.
    pub pattern: Option<String>,
    /// Whether types that Redis does not have are left out.
    pub for_redis: bool,
}

/// The command line's grammar.
pub fn command() -> Command {
    Command::new("export")
        .bin_name("quoin export")
        .about(
            "Write the data of a running Quoin to a file that redis-server 7.0 and later load, and \
             quoin import",
        )
        .after_help(format!(
            "{ADDRESS_HELP}\n\n\
             Each key is as it was at one moment. Keys that change meanwhile may be from different \
             moments.\n\
             redis-server refuses a file with priority queues or task queues; quoin import reads \
             it.\n\
             --for-redis leaves them out, counts them and lists them.\n\
             Exits with 0 when all else is in the file, with 1 when not, with 2 for a wrong \
             command line."
        ))
        .arg(
            Arg::new("from")
                .long("from")
                .value_name("ADDRESS")
                .default_value(FROM_DEFAULT)
                .help("The Quoin to read"),
        )
        .arg(
            Arg::new("to")
                .long("to")
                .value_name("FILE")
                .required(true)
                .value_parser(clap::value_parser!(PathBuf))
                .help("The file to write, such as dump.rdb; it must not exist"),
        )
        .arg(databases_argument(
            "Databases to export [default: all, or that of --from]",
        ))
        .arg(match_argument(
            "Export only the keys that match, as in KEYS",
        ))
        .args(FROM.flags())
        .arg(
            Arg::new("for-redis")
                .long("for-redis")
                .action(ArgAction::SetTrue)
                .help("Leave out priority queues and task queues, which Redis does not have"),
        )
        .args(tls_flags())
}

/// Parses the command line after `quoin export`.
///
/// # Errors
/// clap's, which may also be a text to print.
pub fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Options, clap::Error> {
    let mut command = command();
    let arguments = std::iter::once(OsString::from("quoin export")).chain(arguments);
    let matches = command.try_get_matches_from_mut(arguments)?;
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let read = || -> Result<Options, String> {
        let from = Address::parse(text("from").unwrap_or_default());
        let from = from.map_err(|reason| format!("--from: {reason}"))?;
        let variables: Vec<_> = variables.into_iter().collect();
        let from = from.with(&FROM.access(&matches, &variables)?);
        let databases = match (text("databases"), from.database) {
            (None, None) => Databases::All,
            (named, _) => {
                Databases::parse(named, &from).map_err(|reason| format!("--databases: {reason}"))?
            }
        };
        let to = matches.get_one::<PathBuf>("to").cloned();
        Ok(Options {
            from,
            to: to.unwrap_or_default(),
            databases,
            pattern: text("match").map(str::to_owned),
            for_redis: matches.get_flag("for-redis"),
        })
    };
    read().map_err(|reason| command.error(clap::error::ErrorKind::ValueValidation, reason))
}

/// A file in the making.
struct RdbFile {
    out: BufWriter<File>,
    checksum: Checksum,
    bytes: u64,
}

impl RdbFile {
    pub(crate) fn begin(out: BufWriter<File>) -> io::Result<Self> {
        let mut file = Self {
            out,
            checksum: Checksum::begin(),
            bytes: 0,
        };
        file.write(HEADER)?;
        // Servers of later versions can also read what this version does not know: hashes with
        // fields that expire.
        file.write(format!("{:04}", quoin_rdb::VERSION_WRITTEN).as_bytes())?;
        Ok(file)
    }

    /// Writes libraries of functions, of a payload of FUNCTION DUMP.
    pub(crate) fn libraries(&mut self, payload: &Bytes) -> io::Result<Result<u64, LibrariesError>> {
        let codes = match quoin_rdb::read_libraries(payload) {
            Ok(codes) => codes,
            Err(error) => return Ok(Err(error)),
        };
        for code in &codes {
            let mut bytes = vec![quoin_rdb::LIBRARY];
            quoin_rdb::put_string(&mut bytes, code);
            self.write(&bytes)?;
        }
        Ok(Ok(codes.len() as u64))
    }

    /// The keys after this are of that database.
    pub(crate) fn select(&mut self, database: u32) -> io::Result<()> {
        let mut bytes = vec![OPCODE_SELECT];
        quoin_rdb::put_length(&mut bytes, database.into());
        self.write(&bytes)
    }

    /// Writes a key, unless its payload was damaged in transit.
    pub(crate) fn key(
        &mut self,
        name: &[u8],
        expire_at_ms: Option<i64>,
        payload: Vec<u8>,
    ) -> io::Result<Result<(), DumpError>> {
        let value = match quoin_rdb::open(&Bytes::from(payload)) {
            Ok(value) if value.version() <= quoin_rdb::VERSION_WRITTEN_MAX => value,
            Ok(_) => return Ok(Err(DumpError::VersionOrChecksum)),
            Err(error) => return Ok(Err(error)),
        };
        let mut bytes = Vec::with_capacity(name.len() + 16);
        if let Some(expire_at_ms) = expire_at_ms {
            bytes.push(OPCODE_EXPIRE_AT_MS);
            bytes.extend(expire_at_ms.to_le_bytes());
        }
        bytes.push(value.rdb_type());
        quoin_rdb::put_string(&mut bytes, name);
        self.write(&bytes)?;
        self.write(&value.bytes())?;
        Ok(Ok(()))
    }

    /// Ends the file, syncs it, and returns its length.
    pub(crate) fn finish(mut self) -> io::Result<u64> {
        self.write(&[OPCODE_END])?;
        let sum = self.checksum.value().to_le_bytes();
        self.out.write_all(&sum)?;
        self.out.flush()?;
        self.out.get_ref().sync_all()?;
        Ok(self.bytes + sum.len() as u64)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.checksum.add(bytes);
        self.bytes += bytes.len() as u64;
        self.out.write_all(bytes)
    }
}

/// Keys that could not be exported and are named.
const COMPLAINTS_MAX: usize = 20;

/// Keys that are skipped and are named.
const SKIPPED_NAMES_MAX: usize = 20;

/// The result of an export.
#[derive(Debug, Default)]
pub struct Report {
    /// Keys in the file.
    pub exported_keys: u64,
    /// Libraries of functions in the file.
    pub libraries: u64,
    /// Length of the file.
    pub bytes: u64,
    /// Those among them that make redis-server refuse the file, by type.
    own: BTreeMap<String, u64>,
    /// Keys of types that Redis does not have and that were left out, by type.
    pub skipped: BTreeMap<String, u64>,
    /// Names of the first skipped keys.
    skipped_names: Vec<String>,
    /// Keys that could not be exported.
    pub failed_keys: u64,
    complaints: Vec<String>,
}

impl Report {
    /// Whether the file has everything that was requested.
    pub fn is_complete(&self) -> bool {
        self.failed_keys == 0
    }

    /// A key of a type that Redis does not have is in the file.
    fn exported_own(&mut self, kind: String) {
        self.exported_keys += 1;
        *self.own.entry(kind).or_default() += 1;
    }

    pub(crate) fn skip(&mut self, key: &[u8], kind: String) {
        if self.skipped_names.len() < SKIPPED_NAMES_MAX {
            self.skipped_names
                .push(format!("\"{}\"", key.escape_ascii()));
        }
        *self.skipped.entry(kind).or_default() += 1;
    }

    pub(crate) fn fail(&mut self, key: &[u8], why: &str) {
        self.failed_keys += 1;
        if self.complaints.len() < COMPLAINTS_MAX {
            self.complaints
                .push(format!("\"{}\": not exported: {why}", key.escape_ascii()));
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.complaints {
            writeln!(out, "{line}")?;
        }
        if self.failed_keys > 0 {
            writeln!(out, "{} could not be exported", self.failed_keys)?;
        }
        for (kind, count) in &self.skipped {
            writeln!(out, "{count} skipped: Redis has no type {kind}")?;
        }
        if !self.skipped_names.is_empty() {
            let skipped: u64 = self.skipped.values().sum();
            write!(out, "skipped: {}", self.skipped_names.join(", "))?;
            match skipped.saturating_sub(self.skipped_names.len() as u64) {
                0 => writeln!(out)?,
                more => writeln!(out, " and {more} more")?,
            }
        }
        for (kind, count) in &self.own {
            writeln!(out, "{count} of type {kind}, which Redis does not have")?;
        }
        if !self.own.is_empty() {
            writeln!(
                out,
                "quoin import reads this file; redis-server refuses it, unless --for-redis leaves \
                 these out"
            )?;
        }
        if self.libraries > 0 {
            let libraries = counted(
                self.libraries,
                "library of functions",
                "libraries of functions",
            );
            writeln!(out, "{libraries} exported")?;
        }
        let keys = counted(self.exported_keys, "key", "keys");
        write!(out, "{keys} exported, {} bytes", self.bytes)
    }
}

/// Why an export failed. It leaves no file.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The server cannot be reached, breaks the connection, or refuses something that is needed.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server is not Quoin. A Redis writes such a file itself.
    #[error("{0} is not a Quoin; a Redis writes such a file with SAVE")]
    NoQuoin(Address),
    /// A file with that name exists.
    #[error("{} already exists; choose another name, or remove it", .0.display())]
    Exists(PathBuf),
    /// The file cannot be written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_redis_does_not_have_is_left_out_also_where_it_is_too_large() {
        let replies = |kind: &str| {
            let line = |form, text: &str| Value::Line(form, text.into());
            let error = line(b'-', "ERR too large");
            Transaction::Done(vec![line(b'+', kind), line(b':', "-1"), error])
        };
        for (kind, for_redis, expected) in [
            ("pqueue", true, "left out"),
            ("pqueue", false, "refused"),
            ("list", true, "refused"),
        ] {
            let found = match found(replies(kind), for_redis) {
                Found::LeftOut(_) => "left out",
                Found::Refused(_) => "refused",
                Found::Nothing | Found::Value { .. } => "else",
            };
            assert_eq!(found, expected, "{kind} {for_redis}");
        }
    }

    fn run(line: &str, variables: &[(&str, &str)]) -> Result<Options, String> {
        let variables: Vec<(OsString, OsString)> = variables
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        parse(line.split_whitespace().map(OsString::from), variables)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_file_is_all_that_must_be_said() {
        let options = run("--to dump.rdb", &[]).unwrap();
        assert_eq!(options.from.to_string(), "redis://127.0.0.1:6379");
        assert_eq!(options.databases, Databases::All);
        assert!(run("", &[]).unwrap_err().contains("--to"));
    }

    #[test]
    fn an_address_with_a_database_means_that_one() {
        let options = run("--from redis://quoin/3 --to f", &[]).unwrap();
        assert_eq!(options.databases, Databases::Some(vec![3]));
        let options = run("--databases 2,1 --to f", &[]).unwrap();
        assert_eq!(options.databases, Databases::Some(vec![1, 2]));
    }

    #[test]
    fn the_password_can_come_from_a_variable() {
        const FROM_PASSWORD: &str = "QUOIN_EXPORT_FROM_PASSWORD";
        let options = run("--to f", &[(FROM_PASSWORD, "one")]).unwrap();
        assert_eq!(options.from.password.as_deref(), Some("one"));
        let options = run(
            "--from redis://:own@quoin --to f",
            &[(FROM_PASSWORD, "one")],
        )
        .unwrap();
        assert_eq!(options.from.password.as_deref(), Some("own"));
        let options = run("--to f --user me", &[("QUOIN_CLIENT_PASSWORD", "two")]).unwrap();
        assert_eq!(options.from.user.as_deref(), Some("me"));
        assert_eq!(options.from.password.as_deref(), Some("two"));
    }
}

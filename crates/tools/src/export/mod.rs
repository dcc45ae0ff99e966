//! `quoin export`: writes the keys of a running Quoin to a file that `redis-server` loads, and
//! `quoin import`. Values of types that Redis does not have lie in it as those of modules do.
//!
//! A client of the server, and of nothing else of this program. Each key is as it was at one moment,
//! with its expiry. The file takes its name once it is complete.

mod error;
mod options;
mod rdb;
mod report;

pub use error::ExportError;
pub use options::{Options, command, parse};
pub use report::Report;

use std::fs::{File, Permissions};
use std::io::BufWriter;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use rdb::RdbFile;

use quoin_client::{Client, Databases, Progress, Transaction};
use quoin_resp::wire::reply_reader::Value;
use quoin_store_embedded::sync_folder;

/// Keys that are asked for at a time.
const KEYS_AT_ONCE: usize = 64;
/// The file contains all data of a server, so only its owner may read it.
const FILE_MODE: u32 = 0o600;
/// What the file is called until it is complete.
const PARTIAL_SUFFIX: &str = ".partial";
/// The types that a file of Redis can hold.
const TYPES_OF_REDIS: [&[u8]; 6] = [b"string", b"list", b"set", b"zset", b"hash", b"stream"];

/// Writes the file, and shows on the standard error how far it is.
///
/// # Errors
/// When the server cannot be reached or does not understand, and when the file cannot be written. What
/// concerns single keys only is in the answer.
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
        // Nothing is lost with it. The error that counts is the one before.
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

/// Creates the file, or empties one that a killed export has left.
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

/// Gives the file its name, durably. A file that came to have that name meanwhile stays.
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
            let Page { next, names } = scan(client, &at, options.pattern.as_deref())?;
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

/// The keys of types that Redis has. The others are not dumped in vain: such a queue may be large.
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
        // What is gone, or cannot be told, is asked for again with the rest.
        if kind.is_empty() || kind == b"none" || TYPES_OF_REDIS.contains(&kind) {
            others.push(name);
        } else {
            report.skip(&name, String::from_utf8_lossy(kind).into_owned());
        }
    }
    Ok(others)
}

/// What one call of SCAN brings.
struct Page {
    /// The next cursor; `None` after the last page.
    next: Option<Vec<u8>>,
    names: Vec<Vec<u8>>,
}

/// The next page. A key that stays comes once: the cursors of this server see to that.
fn scan(client: &mut Client, cursor: &[u8], pattern: Option<&str>) -> Result<Page, ExportError> {
    let count = KEYS_AT_ONCE.to_string();
    let mut words: Vec<&[u8]> = vec![b"SCAN", cursor, b"COUNT", count.as_bytes()];
    if let Some(pattern) = pattern {
        words.extend([b"MATCH", pattern.as_bytes()]);
    }
    let reply = client.call(&words)?;
    let (cursor, names) = match reply.items() {
        Some([cursor, names]) => (cursor.bytes(), names.clone().into_strings()),
        _ => (None, None),
    };
    let (Some(cursor), Some(names)) = (cursor.map(<[u8]>::to_vec), names) else {
        return Err(client.unexpected(&reply).into());
    };
    let next = Some(cursor).filter(|cursor| cursor != b"0");
    Ok(Page { next, names })
}

/// What there was at a key.
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
    Found::Refused(text.unwrap_or_else(|| "a reply of another kind than expected".to_owned()))
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
}

//! `quoin restore`.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command};
use jiff::Timestamp;

use super::file::{BackupError, BackupFile, Header};
use super::make::verify;
use crate::progress::Bar;
use quoin_base::size::counted;
use quoin_store_embedded::{ArchiveError, Limit, Reached, Restoration, RestoreError, read_archive};

/// The options of `quoin restore`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreOptions {
    /// The backup. Only a standby needs none.
    pub from: Option<PathBuf>,
    /// The folder to create.
    pub data_dir: PathBuf,
    /// The archive whose commits follow the backup.
    pub journal_archive: Option<PathBuf>,
    /// The last commit to take from it.
    pub limit: Limit,
    /// Whether to continue with what is archived later ([`super::follow`]).
    pub follows: bool,
}

/// The grammar of `quoin restore`.
pub fn restore_command() -> Command {
    let path = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name(value)
            .value_parser(clap::value_parser!(PathBuf))
            .help(help)
    };
    Command::new("restore")
        .bin_name("quoin restore")
        .about("Restore a backup, and the commits archived after it, into a new data folder.")
        .after_help(
            "The whole backup is verified before anything is written. The result is a different \
             store with the\n\
             same data. It goes on from its last commit, which without --journal-archive is that \
             of the backup.\n\
             Exits with 0 if the folder is a store; otherwise with 1, and no server starts on the \
             folder.\n\
             If --follow cannot go on, it exits with 1, and the folder is a store up to the last \
             commit.\n\
             See docs/operate/backup.md.",
        )
        .arg(
            path(
                "from",
                "BACKUP",
                "The backup; with --follow, a folder that already follows needs \
                                    none",
            )
            .required_unless_present("follow"),
        )
        .arg(
            path(
                "data-dir",
                "FOLDER",
                "The folder to create; it must be empty or not exist",
            )
            .required(true),
        )
        .arg(path(
            "journal-archive",
            "FOLDER",
            "The archive (the server's journal-archive-dir) whose commits follow the backup",
        ))
        .arg(
            Arg::new("until-commit")
                .long("until-commit")
                .value_name("NUMBER")
                .value_parser(clap::value_parser!(u64))
                .requires("journal-archive")
                .conflicts_with("until-time")
                .help("The last commit to take from the archive [default: all]"),
        )
        .arg(
            Arg::new("until-time")
                .long("until-time")
                .value_name("TIME")
                .requires("journal-archive")
                .help(
                    "Take commits up to this time, such as 2026-11-22T06:16:13Z, or with an offset \
                     such as +01:00",
                ),
        )
        .arg(
            Arg::new("follow")
                .long("follow")
                .action(ArgAction::SetTrue)
                .requires("journal-archive")
                .conflicts_with_all(["until-commit", "until-time"])
                .help(
                    "Also apply commits that are archived later, until SIGINT or SIGTERM; \
                     continues if started again on the same folder",
                ),
        )
}

/// Reads the options of `quoin restore`.
///
/// # Errors
/// clap's, which may also be the help text.
pub fn parse_restore(
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<RestoreOptions, clap::Error> {
    let mut command = restore_command();
    let arguments = std::iter::once(OsString::from("quoin restore")).chain(arguments);
    let matches = command.try_get_matches_from_mut(arguments)?;
    let limit =
        limit(&matches).map_err(|reason| command.error(ErrorKind::ValueValidation, reason))?;
    let path = |name: &str| matches.get_one::<PathBuf>(name).cloned();
    Ok(RestoreOptions {
        from: path("from"),
        data_dir: path("data-dir").unwrap_or_default(),
        journal_archive: path("journal-archive"),
        limit,
        follows: matches.get_flag("follow"),
    })
}

fn limit(matches: &ArgMatches) -> Result<Limit, String> {
    if let Some(commit) = matches.get_one::<u64>("until-commit") {
        return Ok(Limit::Commit(*commit));
    }
    let Some(text) = matches.get_one::<String>("until-time") else {
        return Ok(Limit::End);
    };
    let time: Timestamp = text
        .parse()
        .map_err(|_| format!("--until-time: not a time such as 2026-11-22T06:16:13Z: {text}"))?;
    u64::try_from(time.as_millisecond())
        .map(Limit::Time)
        .map_err(|_| format!("--until-time: before 1970: {text}"))
}

/// Why a store was not restored. No server starts on an incomplete one.
#[derive(Debug, thiserror::Error)]
pub enum RestoreFailure {
    /// The backup cannot be read, or is damaged. Nothing was written.
    #[error("{0}; nothing was written")]
    Backup(BackupError),
    /// The archive lacks commits. Nothing was written.
    #[error("{0}; nothing was written")]
    Archive(#[from] ArchiveError),
    /// The limit is before the backup. Nothing was written.
    #[error(
        "the backup is from {of}, which is later than that: use an earlier one; nothing was written"
    )]
    TooEarly {
        /// The last commit of the backup.
        of: Reached,
    },
    /// The folder could not be written.
    #[error(transparent)]
    Restore(#[from] RestoreError),
}

/// A restored store.
#[derive(Debug)]
pub struct Restored {
    /// Its folder.
    pub folder: PathBuf,
    /// Rows of the backup.
    pub rows: u64,
    /// Commits of the archive after it.
    pub replayed: u64,
    /// The last commit.
    pub reached: Reached,
}

impl fmt::Display for Restored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = counted(self.rows, "row", "rows");
        write!(f, "{}: {rows}", self.folder.display())?;
        if self.replayed > 0 {
            let commits = counted(self.replayed, "archived commit", "archived commits");
            write!(f, " and {commits}")?;
        }
        write!(f, ", up to {}", self.reached)
    }
}

/// Creates a data folder from a backup. A folder that will follow the archive has only the backup
/// at first.
///
/// # Errors
/// See [`RestoreFailure`].
pub fn restore(options: &RestoreOptions) -> Result<Restored, RestoreFailure> {
    let mut bar = Bar::new();
    let from = options.from.as_deref().unwrap_or(Path::new(""));
    let (header, totals) = verify(from, &mut bar).map_err(RestoreFailure::Backup)?;
    let at_backup = Reached {
        commit: header.commit,
        time_ms: u64::try_from(header.time_ms).ok(),
    };
    let is_too_early = match options.limit {
        Limit::End => false,
        Limit::Commit(commit) => commit < header.commit,
        Limit::Time(time_ms) => at_backup.time_ms.is_some_and(|of| time_ms < of),
    };
    if is_too_early {
        return Err(RestoreFailure::TooEarly { of: at_backup });
    }
    // The whole archive is read first, because a gap must be found before anything is written. A
    // standby gets its commits later, so that it can continue wherever it ends.
    let archive = options.journal_archive.as_deref();
    let archive = archive.filter(|_| !options.follows);
    let reached = match archive {
        Some(archive) => {
            bar.begin("reading the archive");
            let mut commits = 0;
            read_archive(archive, &header.store, at_backup, options.limit, |_| {
                commits += 1;
                bar.count("commits", commits, commits);
                Ok::<_, ArchiveError>(())
            })?
        }
        None => at_backup,
    };
    let restoration = Restoration::begin(&options.data_dir)?;
    bar.begin("restoring");
    let mut rows = BackupRows::open(from).map_err(RestoreFailure::Backup)?;
    rows.check_same(header).map_err(RestoreFailure::Backup)?;
    restoration.write(header.commit, rows, &mut |written| {
        bar.bytes(written.bytes, totals.row_bytes);
    })?;
    let replaying = restoration.open(header.commit)?;
    let commits = reached.commit - header.commit;
    if let Some(archive) = archive {
        bar.begin("applying the archive");
        let mut done = 0;
        let until = Limit::Commit(reached.commit);
        read_archive(archive, &header.store, at_backup, until, |archived| {
            replaying.apply(archived)?;
            done += 1;
            bar.count("commits", done, commits);
            Ok::<_, RestoreError>(())
        })?;
    }
    let followed = options.follows.then_some(header.store);
    restoration.finish(replaying, reached.commit, followed)?;
    Ok(Restored {
        folder: options.data_dir.clone(),
        rows: totals.rows,
        replayed: commits,
        reached,
    })
}

/// The rows of a backup. They are checked again, because the file may have changed since.
struct BackupRows {
    file: BackupFile,
    block: std::vec::IntoIter<(bytes::Bytes, bytes::Bytes)>,
}

impl BackupRows {
    fn open(from: &Path) -> Result<Self, BackupError> {
        Ok(Self {
            file: BackupFile::open(from)?,
            block: Vec::new().into_iter(),
        })
    }

    fn check_same(&mut self, header: Header) -> Result<(), BackupError> {
        if self.file.header() == header {
            return Ok(());
        }
        Err(self.file.changed())
    }
}

impl Iterator for BackupRows {
    type Item = Result<(bytes::Bytes, bytes::Bytes), BackupError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(row) = self.block.next() {
                return Some(Ok(row));
            }
            match self.file.next_rows() {
                Ok(Some(rows)) => self.block = rows.into_iter(),
                Ok(None) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<RestoreOptions, String> {
        let words = line.split_whitespace().map(OsString::from);
        parse_restore(words).map_err(|error| error.to_string())
    }

    #[test]
    fn a_backup_and_a_folder_are_all_that_must_be_said() {
        let options = parse("--from b --data-dir d").unwrap();
        assert_eq!(options.from, Some(PathBuf::from("b")));
        assert!(!options.follows);
        assert_eq!(options.data_dir, PathBuf::from("d"));
        assert_eq!((options.journal_archive, options.limit), (None, Limit::End));
        assert!(parse("--from b").unwrap_err().contains("--data-dir"));
        assert!(parse("--data-dir d").unwrap_err().contains("--from"));
    }

    #[test]
    fn what_follows_needs_an_archive_and_has_no_limit() {
        let options = parse("--data-dir d --journal-archive a --follow").unwrap();
        assert!(options.follows && options.from.is_none());
        assert!(parse("--from b --data-dir d --follow").is_err());
        assert!(parse("--data-dir d --journal-archive a").is_err());
        assert!(parse("--data-dir d --journal-archive a --follow --until-commit 7").is_err());
    }

    #[test]
    fn a_limit_is_a_commit_or_a_time_of_an_archive() {
        let limit = |rest: &str| {
            let line = format!("--from b --data-dir d {rest}");
            parse(&line).map(|options| options.limit)
        };
        let archive = "--journal-archive a";
        assert_eq!(
            limit(&format!("{archive} --until-commit 7")),
            Ok(Limit::Commit(7))
        );
        for time in ["2026-11-22T06:16:13.5Z", "2026-11-22T07:16:13.5+01:00"] {
            assert_eq!(
                limit(&format!("{archive} --until-time {time}")),
                Ok(Limit::Time(1_795_328_173_500))
            );
        }
        assert!(limit("--until-commit 7").is_err());
        assert!(limit(&format!("{archive} --until-time yesterday")).is_err());
        assert!(
            limit(&format!(
                "{archive} --until-commit 7 --until-time 2026-11-22T00:00Z"
            ))
            .is_err()
        );
    }
}

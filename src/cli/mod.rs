//! The command line: what `quoin` is asked to do, and with which settings.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::backup;
use crate::config::error::suggest;
use crate::config::hints;
use crate::config::load::{FILE_VARIABLE, load};
use crate::config::table::{SETTINGS, SettingRow};
use crate::config::{ConfigError, LoadedSettings};
use crate::doctor;
use crate::export;
use crate::import;

const CHECK_CONFIG: &str = "check-config";
const RESTORE: &str = "restore";
const IMPORT: &str = "import";
const EXPORT: &str = "export";
const DOCTOR: &str = "doctor";
const BACKUP: &str = "backup";
const TO_FLAG: &str = "to";
const COMPACT: &str = "compact";
const REPAIR_FLAG: &str = "repair";
const DEEP_FLAG: &str = "deep";
const OFFLINE_FLAG: &str = "offline";
const FILE_FLAG: &str = "config";
const HELP: &str = "help";
const VERSION: &str = "version";

/// Flags that people know from elsewhere, and what they are called here.
const FLAGS_OF_OTHERS: [(&str, &str); 7] = [
    ("-a", "requirepass"),
    ("-c", FILE_FLAG),
    ("-d", "data-dir"),
    ("-p", "port"),
    ("--appendfsync", "fsync"),
    ("--dir", "data-dir"),
    ("--host", "bind"),
];

/// What the program is asked to do.
#[derive(Debug)]
pub enum Invocation {
    /// Run the server.
    Run(LoadedSettings),
    /// Show the settings in effect and where each came from.
    CheckConfig(LoadedSettings),
    /// Look whether the store is as it should be.
    Doctor(LoadedSettings, doctor::Options),
    /// Make a backup of the embedded store.
    Backup(LoadedSettings, backup::Options),
    /// Make a store of a backup.
    Restore(Box<backup::RestoreOptions>),
    /// Give the free space in a stopped store's data file back to the disk.
    Compact(LoadedSettings),
    /// Copy another server's data into a running one.
    Import(Box<import::Options>),
    /// Write a running server's data to a file of Redis.
    Export(Box<export::Options>),
    /// Print a text (help, version), then end well.
    Print(String),
}

/// The version, the commit, and which stores this build has.
pub fn version() -> &'static str {
    if cfg!(feature = "fdb") {
        concat!(
            env!("CARGO_PKG_VERSION"),
            " (commit ",
            env!("QUOIN_SHORT_COMMIT"),
            ", with FoundationDB)"
        )
    } else {
        concat!(
            env!("CARGO_PKG_VERSION"),
            " (commit ",
            env!("QUOIN_SHORT_COMMIT"),
            ", without FoundationDB)"
        )
    }
}

/// Reads the command line (`arguments`, the program's name first) and loads the settings from
/// it, the environment (`variables`) and the file that either names.
pub fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Invocation, ConfigError> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    // These are not among those that clap's own `help` would know all of.
    if let [_, first, second] = arguments.as_mut_slice()
        && first == HELP
        && (second == IMPORT || second == EXPORT || second == RESTORE)
    {
        (*first, *second) = (std::mem::take(second), "--help".into());
    }
    // With a command line of its own: the settings are not about it.
    if let [_, name, behind @ ..] = arguments.as_slice()
        && name == IMPORT
    {
        return match import::parse(behind.iter().cloned(), variables) {
            Ok(options) => Ok(Invocation::Import(Box::new(options))),
            Err(error) => text_or_error(&error, plain_error),
        };
    }
    if let [_, name, behind @ ..] = arguments.as_slice()
        && name == EXPORT
    {
        return match export::parse(behind.iter().cloned(), variables) {
            Ok(options) => Ok(Invocation::Export(Box::new(options))),
            Err(error) => text_or_error(&error, plain_error),
        };
    }
    if let [_, name, behind @ ..] = arguments.as_slice()
        && name == RESTORE
    {
        return match backup::parse_restore(behind.iter().cloned()) {
            Ok(options) => Ok(Invocation::Restore(Box::new(options))),
            Err(error) => text_or_error(&error, plain_error),
        };
    }
    let matches = match command().try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) => return text_or_error(&error, usage_error),
    };
    if matches.subcommand_name() == Some(IMPORT) {
        return Err(ConfigError::Usage(
            "import takes no settings: quoin import --from ADDRESS …".to_owned(),
        ));
    }
    if matches.subcommand_name() == Some(EXPORT) {
        return Err(ConfigError::Usage(
            "export takes no settings: quoin export --to FILE …".to_owned(),
        ));
    }
    if matches.subcommand_name() == Some(RESTORE) {
        return Err(ConfigError::Usage(
            "restore takes no settings: quoin restore --from BACKUP --data-dir FOLDER …".to_owned(),
        ));
    }
    if matches.subcommand_name() == Some(VERSION) {
        return Ok(Invocation::Print(format!("quoin {}\n", version())));
    }
    let file = matches.get_one::<PathBuf>(FILE_FLAG).cloned();
    let loaded = load(file, variables, flags(&matches))?;
    Ok(match matches.subcommand_name() {
        Some(CHECK_CONFIG) => Invocation::CheckConfig(loaded),
        Some(DOCTOR) => Invocation::Doctor(loaded, doctor_options(&matches)),
        Some(BACKUP) => Invocation::Backup(loaded, backup_options(&matches)),
        Some(COMPACT) => Invocation::Compact(loaded),
        _ => Invocation::Run(loaded),
    })
}

fn doctor_options(matches: &ArgMatches) -> doctor::Options {
    let is_set = |name: &str| {
        let doctor = matches.subcommand_matches(DOCTOR);
        doctor.is_some_and(|doctor| doctor.get_flag(name))
    };
    doctor::Options {
        repairs: is_set(REPAIR_FLAG),
        is_deep: is_set(DEEP_FLAG),
        is_offline: is_set(OFFLINE_FLAG),
    }
}

fn backup_options(matches: &ArgMatches) -> backup::Options {
    let backup = matches.subcommand_matches(BACKUP);
    backup::Options {
        to: backup.and_then(|backup| backup.get_one(TO_FLAG).cloned()),
    }
}

fn backup_command() -> Command {
    Command::new(BACKUP)
        .about("Make a backup of the embedded store, beside a running server or without one")
        .after_help(
            "Takes the options of the server. Where a server has --data-dir open it is \
             asked, by --bind, --port and\n--requirepass, for a backup in the folder `backups` of \
             it (BGSAVE), which serves clients meanwhile; else\nthe backup is made here. It is \
             read again, and compared with its checksums. Exits with 0 where it is good,\nelse \
             with 1. docs/operate/backup.md tells more.",
        )
        .arg(
            Arg::new(TO_FLAG)
                .long(TO_FLAG)
                .value_name("FOLDER")
                .value_parser(clap::value_parser!(PathBuf))
                .display_order(0)
                .help("Folder, on another disk say, that gets a copy of the backup"),
        )
        .args(SETTINGS.iter().map(|row| {
            flag(row)
                .help_heading("Which store")
                .hide(!BACKUP_SETTINGS.contains(&row.name))
        }))
}

/// The settings that say which store is backed up, and how its server is asked.
const BACKUP_SETTINGS: [&str; 5] = [
    "data-dir",
    "bind",
    "port",
    "requirepass",
    "journal-archive-dir",
];

fn doctor_command() -> Command {
    let switch = |name: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .action(ArgAction::SetTrue)
            // Together, before the options of the server.
            .display_order(0)
            .help(help)
    };
    Command::new(DOCTOR)
        .about("Look whether the store is as it should be, and repair what can be")
        .after_help(
            "Takes the options of the server, and looks at the store that they name: can it be \
             reached, how fast\nis it, does this version understand it, is there anything left \
             over, do counters agree. Says one\nline for each check: ok, warn or fail, what it \
             found, and what to do. On a \
             cluster servers may run meanwhile; an embedded store's server must\nbe stopped. \
             Without --repair nothing that belongs to keys is changed.\n\n\
             Exits with 0 where all is ok (or repaired), 1 where something should be looked at, 2 \
             where\nsomething is wrong or the store cannot be used. docs/operate/doctor.md tells more.",
        )
        .arg(switch(
            REPAIR_FLAG,
            "Repair what is wrong, as far as that is safe while servers run",
        ))
        .arg(switch(
            DEEP_FLAG,
            "Compare counters and indexes with every element: reads all data",
        ))
        .arg(switch(
            OFFLINE_FLAG,
            "No server uses the store: then --repair also removes what a running one might need",
        ))
        .args(SETTINGS.iter().map(|row| {
            flag(row)
                .help_heading("Which store")
                .hide(!STORE_SETTINGS.contains(&row.name))
        }))
}

/// The settings that say which store it is; the help of what works on a store shows those alone.
const STORE_SETTINGS: [&str; 9] = [
    "store",
    "data-dir",
    "cluster-file",
    "root-prefix",
    "fdb-tls-certificate-file",
    "fdb-tls-key-file",
    "fdb-tls-ca-file",
    "fdb-tls-verify-peers",
    "fdb-tls-password",
];

/// Help and version come as errors too.
fn text_or_error(
    error: &clap::Error,
    describe: fn(&clap::Error) -> String,
) -> Result<Invocation, ConfigError> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            Ok(Invocation::Print(error.to_string()))
        }
        _ => Err(ConfigError::Usage(describe(error))),
    }
}

fn flags(matches: &ArgMatches) -> Vec<(&'static SettingRow, String)> {
    SETTINGS
        .iter()
        .filter_map(|row| Some((row, matches.get_one::<String>(row.name)?.clone())))
        .collect()
}

fn command() -> Command {
    let file = Arg::new(FILE_FLAG)
        .long(FILE_FLAG)
        .value_name("PATH")
        .value_parser(clap::value_parser!(PathBuf))
        .global(true)
        .help(format!(
            "Settings file (TOML); config/quoin.toml shows every setting [env: {FILE_VARIABLE}]"
        ));
    Command::new("quoin")
        .version(version())
        .about(
            "A server that speaks the Redis protocol and keeps queues durably: lists, sorted sets, \
             priority queues (PQ.*) and task queues (TASK.*).",
        )
        .after_help(
            "The later wins: default, settings file, environment variable, flag.\n\
             `quoin check-config` with the same options shows what comes out.\n\
             `quoin help COMMAND` tells about one of the commands above.",
        )
        .disable_version_flag(true)
        .arg(
            Arg::new(VERSION)
                .short('v')
                .visible_short_alias('V')
                .long(VERSION)
                .action(ArgAction::Version)
                .help("Print version"),
        )
        .arg(file)
        .args(SETTINGS.iter().map(flag))
        .subcommand(
            Command::new(CHECK_CONFIG)
                .about("Show the settings in effect and where each came from, or what is wrong")
                .after_help("Takes every option of the server (quoin --help).")
                .args(SETTINGS.iter().map(|row| flag(row).hide(true))),
        )
        .subcommand(doctor_command())
        .subcommand(backup_command())
        .subcommand(Command::new(RESTORE).about("Make a data folder of a backup"))
        .subcommand(
            Command::new(COMPACT)
                .about("Give the free space in a stopped server's data folder back to the disk")
                .after_help(
                    "Writes the data file of the embedded store (--data-dir) anew, without what is \
                     free in it,\nand says how much that gave back. The server must be stopped. \
                     Until it is done both files\nneed room on the disk. Whenever it is ended the \
                     store is whole.",
                )
                .args(SETTINGS.iter().map(|row| {
                    flag(row)
                        .help_heading("Which store")
                        .hide(row.name != "data-dir")
                })),
        )
        .subcommand(
            Command::new(IMPORT)
                .about("Copy the strings, lists and sorted sets of a running Redis"),
        )
        .subcommand(
            Command::new(EXPORT)
                .about("Write the data of a running server to a file that redis-server loads"),
        )
        .subcommand(Command::new(VERSION).about("Print version"))
}

fn flag(row: &'static SettingRow) -> Arg {
    let default = match row.default {
        "" => "none",
        default => default,
    };
    Arg::new(row.name)
        .long(row.name)
        .value_name(row.kind.placeholder())
        // -1 is a value, not a flag.
        .allow_negative_numbers(true)
        .global(true)
        .help(format!(
            "{} [default: {default}] [env: {}]",
            row.help,
            row.environment()
        ))
}

/// What clap says.
fn plain_error(error: &clap::Error) -> String {
    let text = error.to_string();
    let text = text.trim_end();
    text.strip_prefix("error: ").unwrap_or(text).to_owned()
}

/// What clap says, and what was probably meant.
fn usage_error(error: &clap::Error) -> String {
    let text = plain_error(error);
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(given)) => given.as_str(),
        _ => "",
    };
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let first = match error.kind() {
        ErrorKind::UnknownArgument => {
            format!("{first}{}", meant_flag(context(ContextKind::InvalidArg)))
        }
        ErrorKind::InvalidSubcommand => unknown_command(context(ContextKind::InvalidSubcommand)),
        _ => return text,
    };
    format!("{first}\n{rest}")
}

/// The flag that was probably meant, in words, or nothing.
fn meant_flag(given: &str) -> String {
    if let Some((_, name)) = FLAGS_OF_OTHERS.iter().find(|(other, _)| *other == given) {
        return format!("; did you mean '--{name}'?");
    }
    let known: Vec<String> = SETTINGS
        .iter()
        .map(|row| row.name)
        .chain([FILE_FLAG, HELP, VERSION])
        .map(|name| format!("--{name}"))
        .collect();
    hints::of_redis(given.trim_start_matches('-'))
        .unwrap_or_else(|| suggest(given, known.iter().map(String::as_str)))
}

/// A word that is no command: Redis takes the name of a settings file there.
fn unknown_command(given: &str) -> String {
    if given.contains(['.', '/']) {
        return format!(
            "no such command: '{given}'; a settings file is named by --config, and is TOML, unlike a \
             redis.conf: quoin --config quoin.toml"
        );
    }
    let command = command();
    let known = command.get_subcommands().map(Command::get_name);
    let suggestion = suggest(given, known.chain([HELP]));
    format!("no such command: '{given}'{suggestion}")
}

#[cfg(test)]
mod tests;

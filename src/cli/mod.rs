//! The command line: what `quoin` is asked to do, and with which settings.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command};

use crate::backup;
use crate::config::error::suggest;
use crate::config::hints;
use crate::config::load::load;
use crate::config::table::{SETTINGS, SettingRow};
use crate::config::{ConfigError, LoadedSettings};
use crate::doctor;
use crate::export;
use crate::import;

mod documents;
mod grammar;

pub use grammar::version;
use grammar::{
    BACKUP, CHECK_CONFIG, COMPACT, COMPLETIONS, DEEP_FLAG, DOCTOR, EXPORT, FILE_FLAG, HELP, IMPORT,
    KEEP_FLAG, MAN, OFFLINE_FLAG, REPAIR_FLAG, RESTORE, TO_FLAG, VERSION, command,
};

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
    refuse_settings(&matches)?;
    if matches.subcommand_name() == Some(VERSION) {
        return Ok(Invocation::Print(format!("quoin {}\n", version())));
    }
    match matches.subcommand() {
        Some((COMPLETIONS, own)) => return Ok(Invocation::Print(documents::completions(own))),
        Some((MAN, own)) => return documents::man(own).map(Invocation::Print),
        _ => {}
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

/// Refuses settings for a command that takes none. Those with a command line of their own get here only
/// where settings stand before their name.
fn refuse_settings(matches: &ArgMatches) -> Result<(), ConfigError> {
    let (name, usage) = match matches.subcommand_name() {
        Some(IMPORT) => (IMPORT, "import --from ADDRESS …"),
        Some(EXPORT) => (EXPORT, "export --to FILE …"),
        Some(RESTORE) => (RESTORE, "restore --from BACKUP --data-dir FOLDER …"),
        Some(COMPLETIONS) => (COMPLETIONS, "completions SHELL"),
        Some(MAN) => (MAN, "man [COMMAND]"),
        Some(VERSION) => (VERSION, "version"),
        _ => return Ok(()),
    };
    let has_own_line = [IMPORT, EXPORT, RESTORE].contains(&name);
    let has_settings = matches.contains_id(FILE_FLAG) || !flags(matches).is_empty();
    match has_own_line || has_settings {
        true => Err(ConfigError::Usage(format!(
            "{name} takes no settings: quoin {usage}"
        ))),
        false => Ok(()),
    }
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
        keep: backup.and_then(|backup| backup.get_one(KEEP_FLAG).copied()),
    }
}

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

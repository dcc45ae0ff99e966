//! The command line: what `quoin` should do, and with which settings.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgMatches, Command};

use quoin_client::Beside;
use quoin_config::error::suggest;
use quoin_config::hints;
use quoin_config::load::load;
use quoin_config::table::{SETTINGS, SettingRow};
use quoin_config::{ConfigError, LoadedSettings};
use quoin_tools::backup;
use quoin_tools::doctor;
use quoin_tools::export;
use quoin_tools::import;
use quoin_tools::queues;
use quoin_tools::top;

mod documents;
mod grammar;

use grammar::{
    BACKUP, CHECK_CONFIG, COMPACT, COMPLETIONS, DEEP_FLAG, DOCTOR, EXPORT, FILE_FLAG, HELP, IMPORT,
    KEEP_FLAG, MAN, OFFLINE_FLAG, PING, QUEUES, REPAIR_FLAG, RESTORE, TO_FLAG, TOP, VERSION,
    command,
};

/// Flags that people know from other programs, and their names here.
const FLAGS_OF_OTHERS: [(&str, &str); 7] = [
    ("-a", "requirepass"),
    ("-c", FILE_FLAG),
    ("-d", "data-dir"),
    ("-p", "port"),
    ("--appendfsync", "fsync"),
    ("--dir", "data-dir"),
    ("--host", "bind"),
];

/// Words with which other programs start their servers.
const NAMES_OF_THE_SERVER: [&str; 5] = ["daemon", "run", "serve", "server", "start"];

/// Commands with a line of their own: the settings are not about them.
const OWN_LINES: [&str; 5] = [IMPORT, EXPORT, RESTORE, QUEUES, TOP];

/// What the program should do.
#[derive(Debug)]
pub(crate) enum Invocation {
    /// Run the server.
    Run(LoadedSettings),
    /// Show the settings in effect and where each came from.
    CheckConfig(LoadedSettings),
    /// Show the settings of a redis.conf as a settings file.
    Translate(ConfigError),
    /// Check the store.
    Doctor(LoadedSettings, doctor::Options, Box<Beside>),
    /// Back up the embedded store.
    Backup(LoadedSettings, Box<backup::Options>),
    /// Create a store from a backup.
    Restore(Box<backup::RestoreOptions>),
    /// Give the free space in a stopped store's data file back to the disk.
    Compact(LoadedSettings),
    /// Ask a server whether it answers.
    Ping(LoadedSettings, Box<Beside>),
    /// Copy another server's data into a running one.
    Import(Box<import::Options>),
    /// Write a running server's data to a file of Redis.
    Export(Box<export::Options>),
    /// List the queues of a running server, inspect one, or control it.
    Queues(Box<queues::Options>),
    /// Show the queues of a running server in the terminal, live.
    Top(Box<top::Options>),
    /// Print a text (help, version) and exit successfully.
    Print(String),
}

/// Reads the command line (`arguments`, the program's name first) and loads the settings from
/// it, the environment (`variables`) and the file that either names.
pub(crate) fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Invocation, ConfigError> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    let variables: Vec<(OsString, OsString)> = variables.into_iter().collect();
    // clap's own `help` would not know all of these.
    if let [_, first, second] = arguments.as_mut_slice()
        && first == HELP
        && OWN_LINES.iter().any(|name| second == name)
    {
        (*first, *second) = (std::mem::take(second), "--help".into());
    }
    if let [_, name, behind @ ..] = arguments.as_slice()
        && let Some(asked) = own_line(name, behind, &variables)
    {
        return asked;
    }
    let whole = command();
    let named = arguments
        .iter()
        .skip(1)
        .find_map(|word| whole.find_subcommand(word));
    let asked = named.unwrap_or(&whole).clone();
    let matches = match whole.try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) => return text_or_error(&error, &asked),
    };
    refuse_settings(&matches)?;
    if matches.subcommand_name() == Some(VERSION) {
        return Ok(Invocation::Print(format!(
            "quoin {}\n",
            quoin_server::version::DESCRIPTION
        )));
    }
    match matches.subcommand() {
        Some((COMPLETIONS, own)) => return Ok(Invocation::Print(documents::completions(own))),
        Some((MAN, own)) => return documents::man(own).map(Invocation::Print),
        _ => {}
    }
    let file = matches.get_one::<PathBuf>(FILE_FLAG).cloned();
    let loaded = match load(file, variables.iter().cloned(), flags(&matches)) {
        Err(error @ ConfigError::RedisConf { .. })
            if matches.subcommand_name() == Some(CHECK_CONFIG) =>
        {
            return Ok(Invocation::Translate(error));
        }
        loaded => loaded?,
    };
    Ok(match matches.subcommand() {
        Some((CHECK_CONFIG, _)) => Invocation::CheckConfig(loaded),
        Some((DOCTOR, own)) => {
            let beside = beside(own, &variables)?;
            Invocation::Doctor(loaded, doctor_options(own), Box::new(beside))
        }
        Some((BACKUP, own)) => {
            let options = backup_options(own, &variables)?;
            Invocation::Backup(loaded, Box::new(options))
        }
        Some((COMPACT, _)) => Invocation::Compact(loaded),
        Some((PING, own)) => {
            let beside = beside(own, &variables)?;
            Invocation::Ping(loaded, Box::new(beside))
        }
        _ => Invocation::Run(loaded),
    })
}

/// Handles a command with its own command line.
fn own_line(
    name: &OsStr,
    behind: &[OsString],
    variables: &[(OsString, OsString)],
) -> Option<Result<Invocation, ConfigError>> {
    let words = behind.iter().cloned();
    let variables = variables.iter().cloned();
    let (parsed, command) = match name.to_str()? {
        IMPORT => {
            let parsed = import::parse(words, variables).map(Box::new);
            (parsed.map(Invocation::Import), import::command())
        }
        EXPORT => {
            let parsed = export::parse(words, variables).map(Box::new);
            (parsed.map(Invocation::Export), export::command())
        }
        RESTORE => {
            let parsed = backup::parse_restore(words).map(Box::new);
            (parsed.map(Invocation::Restore), backup::restore_command())
        }
        QUEUES => {
            let parsed = queues::parse(words, variables).map(Box::new);
            (parsed.map(Invocation::Queues), queues::command())
        }
        TOP => {
            let parsed = top::parse(words, variables).map(Box::new);
            (parsed.map(Invocation::Top), top::command())
        }
        _ => return None,
    };
    Some(parsed.or_else(|error| text_or_error(&error, &command)))
}

/// Refuses settings for a command that takes none. A command with its own command line gets here
/// only if settings come before its name.
fn refuse_settings(matches: &ArgMatches) -> Result<(), ConfigError> {
    let (name, usage) = match matches.subcommand_name() {
        Some(IMPORT) => (IMPORT, "import --from ADDRESS …"),
        Some(EXPORT) => (EXPORT, "export --to FILE …"),
        Some(RESTORE) => (RESTORE, "restore --from BACKUP --data-dir FOLDER …"),
        Some(QUEUES) => (QUEUES, "queues [ADDRESS] …"),
        Some(TOP) => (TOP, "top [ADDRESS] …"),
        Some(COMPLETIONS) => (COMPLETIONS, "completions SHELL"),
        Some(MAN) => (MAN, "man [COMMAND]"),
        Some(VERSION) => (VERSION, "version"),
        _ => return Ok(()),
    };
    let has_own_line = OWN_LINES.contains(&name);
    let has_settings = matches.contains_id(FILE_FLAG) || !flags(matches).is_empty();
    match has_own_line || has_settings {
        true => Err(ConfigError::Usage(format!(
            "{name} takes no settings: quoin {usage}"
        ))),
        false => Ok(()),
    }
}

fn beside(own: &ArgMatches, variables: &[(OsString, OsString)]) -> Result<Beside, ConfigError> {
    Beside::parse(own, variables).map_err(ConfigError::Usage)
}

fn doctor_options(own: &ArgMatches) -> doctor::Options {
    doctor::Options {
        repairs: own.get_flag(REPAIR_FLAG),
        is_deep: own.get_flag(DEEP_FLAG),
        is_offline: own.get_flag(OFFLINE_FLAG),
    }
}

fn backup_options(
    own: &ArgMatches,
    variables: &[(OsString, OsString)],
) -> Result<backup::Options, ConfigError> {
    Ok(backup::Options {
        to: own.get_one(TO_FLAG).cloned(),
        keep: own.get_one(KEEP_FLAG).copied(),
        beside: beside(own, variables)?,
    })
}

/// Help and version come as errors too.
fn text_or_error(error: &clap::Error, asked: &Command) -> Result<Invocation, ConfigError> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            Ok(Invocation::Print(error.to_string()))
        }
        _ => Err(ConfigError::Usage(usage_error(error, asked))),
    }
}

fn flags(matches: &ArgMatches) -> Vec<(&'static SettingRow, String)> {
    SETTINGS
        .iter()
        .filter_map(|row| Some((row, matches.get_one::<String>(row.name)?.clone())))
        .collect()
}

/// clap's message, and what was probably meant. `asked` is the command that was given.
fn usage_error(error: &clap::Error, asked: &Command) -> String {
    let text = error.to_string();
    let text = text.trim_end();
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(given)) => given.as_str(),
        _ => "",
    };
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let first = match error.kind() {
        ErrorKind::UnknownArgument => {
            let given = context(ContextKind::InvalidArg);
            format!("{first}{}", meant_flag(given, asked))
        }
        ErrorKind::InvalidSubcommand => unknown_command(context(ContextKind::InvalidSubcommand)),
        _ => return text.to_owned(),
    };
    // The suggestion above replaces clap's.
    let rest = rest.lines().filter(|line| !line.contains("tip: "));
    let rest: Vec<&str> = rest.skip_while(|line| line.is_empty()).collect();
    format!("{first}\n\n{}", rest.join("\n"))
}

/// The flag that was probably meant, in words, or nothing.
fn meant_flag(given: &str, asked: &Command) -> String {
    let takes_settings = asked.get_arguments().any(|one| one.get_id() == "port");
    if takes_settings
        && let Some((_, name)) = FLAGS_OF_OTHERS.iter().find(|(other, _)| *other == given)
    {
        return format!("; did you mean '--{name}'?");
    }
    let own = asked.get_arguments().filter_map(Arg::get_long);
    let known: Vec<String> = own
        .chain([FILE_FLAG].into_iter().filter(|_| takes_settings))
        .chain([HELP])
        .map(|name| format!("--{name}"))
        .collect();
    let of_redis = hints::of_redis(given.trim_start_matches('-')).filter(|_| takes_settings);
    of_redis.unwrap_or_else(|| suggest(given, known.iter().map(String::as_str)))
}

/// A word that is not a command. In Redis it would be the name of a settings file.
fn unknown_command(given: &str) -> String {
    if given.contains(['.', '/']) {
        return format!(
            "no such command: '{given}'; pass a settings file with --config. It is TOML, unlike a \
             redis.conf: quoin --config quoin.toml"
        );
    }
    if NAMES_OF_THE_SERVER.contains(&given) {
        return format!("no such command: '{given}'; quoin without a command starts the server");
    }
    let command = command();
    let known = command.get_subcommands().map(Command::get_name);
    let suggestion = suggest(given, known.chain([HELP]));
    format!("no such command: '{given}'{suggestion}")
}

#[cfg(test)]
mod tests;

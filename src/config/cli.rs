//! The command line: what `quoin` is asked to do, and with which settings.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::error::{ConfigError, suggest};
use super::load::{FILE_VARIABLE, LoadedSettings, load};
use super::table::{SETTINGS, SettingRow};
use crate::import;

const CHECK_CONFIG: &str = "check-config";
const IMPORT: &str = "import";
const DOCTOR: &str = "doctor";
const COMPACT: &str = "compact";
const REPAIR_FLAG: &str = "repair";
const DEEP_FLAG: &str = "deep";
const OFFLINE_FLAG: &str = "offline";
const FILE_FLAG: &str = "config";

/// What the program is asked to do.
#[derive(Debug)]
pub enum Invocation {
    /// Run the server.
    Run(LoadedSettings),
    /// Show the settings in effect and where each came from.
    CheckConfig(LoadedSettings),
    /// Look whether the store is as it should be.
    Doctor(LoadedSettings, DoctorOptions),
    /// Give the free space in a stopped store's data file back to the disk.
    Compact(LoadedSettings),
    /// Copy another server's data into a running one.
    Import(Box<import::Options>),
    /// Print a text (help, version), then end well.
    Print(String),
}

/// What `quoin doctor` may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DoctorOptions {
    /// Repair what is wrong.
    pub repairs: bool,
    /// Compare counters and indexes with all elements.
    pub is_deep: bool,
    /// Somebody vouches that no server uses the store.
    pub is_offline: bool,
}

/// The version, and which stores this build has.
pub fn version() -> &'static str {
    if cfg!(feature = "fdb") {
        concat!(env!("CARGO_PKG_VERSION"), " (with FoundationDB)")
    } else {
        concat!(env!("CARGO_PKG_VERSION"), " (without FoundationDB)")
    }
}

/// Reads the command line (`arguments`, the program's name first) and loads the settings from
/// it, the environment (`variables`) and the file that either names.
pub fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Invocation, ConfigError> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    // With a command line of its own: the settings are not about it.
    if let [_, name, behind @ ..] = arguments.as_slice()
        && name == IMPORT
    {
        return match import::parse(behind.iter().cloned(), variables) {
            Ok(options) => Ok(Invocation::Import(Box::new(options))),
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
    let file = matches.get_one::<PathBuf>(FILE_FLAG).cloned();
    let loaded = load(file, variables, flags(&matches))?;
    Ok(match matches.subcommand_name() {
        Some(CHECK_CONFIG) => Invocation::CheckConfig(loaded),
        Some(DOCTOR) => Invocation::Doctor(loaded, doctor_options(&matches)),
        Some(COMPACT) => Invocation::Compact(loaded),
        _ => Invocation::Run(loaded),
    })
}

fn doctor_options(matches: &ArgMatches) -> DoctorOptions {
    let is_set = |name: &str| {
        let doctor = matches.subcommand_matches(DOCTOR);
        doctor.is_some_and(|doctor| doctor.get_flag(name))
    };
    DoctorOptions {
        repairs: is_set(REPAIR_FLAG),
        is_deep: is_set(DEEP_FLAG),
        is_offline: is_set(OFFLINE_FLAG),
    }
}

fn doctor_command() -> Command {
    let switch = |name: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .action(ArgAction::SetTrue)
            .help(help)
    };
    Command::new(DOCTOR)
        .about(
            "Look whether the store is as it should be, and repair what can be (see doctor --help)",
        )
        .after_help(
            "Takes the settings that the server takes (--store, --data-dir, --cluster-file, \
             --root-prefix …),\nand looks at that store: can it be reached, how fast is it, does \
             this version understand it, is\nthere anything left over, do counters agree. Says \
             one line for each check: ok, warn or fail, what\nit found, and what to do. On a \
             cluster servers may run meanwhile; an embedded store's server must\nbe stopped. \
             Without --repair nothing that belongs to keys is changed.\n\n\
             Exits with 0 where all is ok (or repaired), 1 where something should be looked at, 2 \
             where\nsomething is wrong or the store cannot be used. docs/operations.md tells more.",
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
            "A TCP server that speaks the Redis protocol and keeps lists and sorted sets durably.",
        )
        .after_help(
            "The later wins: default, settings file, environment variable, flag.\n\
             `quoin check-config` with the same options shows what comes out.",
        )
        .arg(file)
        .args(SETTINGS.iter().map(flag))
        .subcommand(
            Command::new(CHECK_CONFIG)
                .about("Show the settings in effect and where each came from, or what is wrong"),
        )
        .subcommand(doctor_command())
        .subcommand(
            Command::new(COMPACT)
                .about("Give the free space in a stopped server's data folder back to the disk")
                .after_help(
                    "Writes the data file of the embedded store (--data-dir) anew, without what is \
                     free in it,\nand says how much that gave back. The server must be stopped. \
                     Until it is done both files\nneed room on the disk. Whenever it is ended the \
                     store is whole.",
                ),
        )
        .subcommand(
            Command::new(IMPORT)
                .about("Copy the lists and sorted sets of a running Redis (see import --help)"),
        )
        .disable_help_subcommand(true)
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

/// What clap says, and the nearest flag where there is one.
fn usage_error(error: &clap::Error) -> String {
    let text = plain_error(error);
    let given = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(given)) if error.kind() == ErrorKind::UnknownArgument => given,
        _ => return text,
    };
    let known: Vec<String> = SETTINGS
        .iter()
        .map(|row| row.name)
        .chain([FILE_FLAG, "help", "version"])
        .map(|name| format!("--{name}"))
        .collect();
    let suggestion = suggest(given, known.iter().map(String::as_str));
    match text.split_once('\n') {
        Some((first, rest)) => format!("{first}{suggestion}\n{rest}"),
        None => text + &suggestion,
    }
}

#[cfg(test)]
#[path = "cli/tests.rs"]
mod tests;

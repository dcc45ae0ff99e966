//! The command line of `quoin import`.

use std::ffi::OsString;

use clap::{Arg, ArgAction, Command};

use crate::redis_client::{Address, Databases};

/// Variables that hold passwords: the command line can be seen by others.
const FROM_PASSWORD: &str = "QUOIN_IMPORT_FROM_PASSWORD";
const TO_PASSWORD: &str = "QUOIN_IMPORT_TO_PASSWORD";
const TO_DEFAULT: &str = "redis://127.0.0.1:6379";

/// What `quoin import` is to do.
#[derive(Debug, Clone)]
pub struct Options {
    /// The server to read.
    pub from: Address,
    /// The Quoin to write.
    pub to: Address,
    /// Which databases.
    pub databases: Databases,
    /// A pattern for the names of keys.
    pub pattern: Option<String>,
    /// Whether keys that are there already are left as they are.
    pub resume: bool,
}

/// The command line's grammar.
pub fn command() -> Command {
    Command::new("quoin import")
        .about("Copies the strings, lists and sorted sets of a running Redis into a running Quoin")
        .after_help(format!(
            "ADDRESS is redis://[user:password@]host[:port][/database]. Passwords can also be \
             given by\n{FROM_PASSWORD} and {TO_PASSWORD}.\n\n\
             Each key is replaced as a whole, so that a stopped import can be run again; with \
             --resume\nit leaves out the keys that are there already. Nothing should write to \
             the source meanwhile.\nAt the end all keys' numbers of elements are compared. Exits \
             with 0 when all are alike, with 1\nwhen not, with 2 for a wrong command line."
        ))
        .arg(
            Arg::new("from")
                .long("from")
                .value_name("ADDRESS")
                .required(true)
                .help(
                    "The Redis (6.0 or later) or Valkey to read; of a cluster, each master in turn",
                ),
        )
        .arg(
            Arg::new("to")
                .long("to")
                .value_name("ADDRESS")
                .default_value(TO_DEFAULT)
                .help("The Quoin to write"),
        )
        .arg(
            Arg::new("databases")
                .long("databases")
                .value_name("all|N,…")
                .help("Databases to copy [default: that of --from, or 0]"),
        )
        .arg(
            Arg::new("match")
                .long("match")
                .value_name("PATTERN")
                .help("Copy only the keys that match, as in KEYS"),
        )
        .arg(
            Arg::new("resume")
                .long("resume")
                .action(ArgAction::SetTrue)
                .help(
                    "Leave out keys that are there with the same type, number of elements and \
                     expiry",
                ),
        )
}

/// Reads the command line behind `quoin import`.
///
/// # Errors
/// clap's, which may also be a text to print.
pub fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Options, clap::Error> {
    let mut command = command();
    let arguments = std::iter::once(OsString::from("quoin import")).chain(arguments);
    let matches = command.try_get_matches_from_mut(arguments)?;
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let address = |name| {
        Address::parse(text(name).unwrap_or_default())
            .map_err(|reason| format!("--{name}: {reason}"))
    };
    let read = || -> Result<Options, String> {
        let (mut from, mut to) = (address("from")?, address("to")?);
        for (name, value) in variables {
            let end = match name.to_str() {
                Some(FROM_PASSWORD) => &mut from,
                Some(TO_PASSWORD) => &mut to,
                _ => continue,
            };
            // As with settings, an empty variable counts as one that is not there.
            if value.is_empty() {
                continue;
            }
            let value = value.to_str().ok_or("a password is not UTF-8")?.to_owned();
            end.password.get_or_insert(value);
        }
        let databases = Databases::parse(text("databases"), &from)
            .map_err(|reason| format!("--databases: {reason}"))?;
        let is_one = matches!(&databases, Databases::Some(numbers) if numbers.len() == 1);
        if to.database.is_some() && !is_one {
            return Err("--to names a database, but there are several to copy".to_owned());
        }
        Ok(Options {
            from,
            to,
            databases,
            pattern: text("match").map(str::to_owned),
            resume: matches.get_flag("resume"),
        })
    };
    read().map_err(|reason| command.error(clap::error::ErrorKind::ValueValidation, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str, variables: &[(&str, &str)]) -> Result<Options, String> {
        let variables: Vec<(OsString, OsString)> = variables
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        parse(line.split_whitespace().map(OsString::from), variables)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_source_is_all_that_must_be_said() {
        let options = run("--from redis://db:7", &[]).unwrap();
        assert_eq!(options.from.port, 7);
        assert_eq!(options.to.to_string(), "redis://127.0.0.1:6379");
        assert_eq!(options.databases, Databases::Some(vec![0]));
        assert_eq!((options.pattern, options.resume), (None, false));
        assert!(run("", &[]).unwrap_err().contains("--from"));
    }

    #[test]
    fn databases_are_all_or_those_named() {
        let databases = |line: &str| run(line, &[]).map(|options| options.databases);
        assert_eq!(
            databases("--from redis://db/3"),
            Ok(Databases::Some(vec![3]))
        );
        let all = "--from redis://db --databases all";
        assert_eq!(databases(all), Ok(Databases::All));
        let some = "--from redis://db --databases 2,0,2";
        assert_eq!(databases(some), Ok(Databases::Some(vec![0, 2])));
        assert!(
            databases("--from redis://db --databases 16")
                .unwrap_err()
                .contains("16")
        );
        let into_one = "--from redis://db --databases 0,1 --to redis://quoin/5";
        assert!(databases(into_one).unwrap_err().contains("several"));
    }

    #[test]
    fn passwords_can_come_from_variables() {
        let variables = [(FROM_PASSWORD, "one"), (TO_PASSWORD, "two")];
        let options = run("--from redis://db --to redis://:own@quoin", &variables).unwrap();
        assert_eq!(options.from.password.as_deref(), Some("one"));
        assert_eq!(options.to.password.as_deref(), Some("own"));
        let options = run("--from redis://db", &[(FROM_PASSWORD, "")]).unwrap();
        assert_eq!(options.from.password, None);
    }
}

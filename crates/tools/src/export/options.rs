//! The command line of `quoin export`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgAction, Command};

use quoin_client::{
    ADDRESS_HELP, Address, Databases, End, databases_argument, match_argument, tls_flags,
};

const FROM: End = End {
    variables: &["QUOIN_EXPORT_FROM_", "QUOIN_CLIENT_"],
    ..End::QUOIN
};
const FROM_DEFAULT: &str = "redis://127.0.0.1:6379";

/// What `quoin export` is to do.
#[derive(Debug, Clone)]
pub struct Options {
    /// The Quoin to read.
    pub from: Address,
    /// The file to write.
    pub to: PathBuf,
    /// Which databases.
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
             Each key is as it was at one moment. Keys that change meanwhile may be of different \
             moments.\nredis-server refuses a file with priority queues or task queues; quoin import \
             reads it.\nWith --for-redis they are left out, counted and named.\nExits with 0 when all \
             else is in the file, with 1 when not, with 2 for a wrong command line."
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
        .arg(match_argument("Export only the keys that match, as in KEYS"))
        .args(FROM.flags())
        .arg(
            Arg::new("for-redis")
                .long("for-redis")
                .action(ArgAction::SetTrue)
                .help("Leave out priority queues and task queues, which Redis does not have"),
        )
        .args(tls_flags())
}

/// Reads the command line after `quoin export`.
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

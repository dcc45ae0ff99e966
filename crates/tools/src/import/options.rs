//! The command line of `quoin import`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgAction, Command};

use quoin_base::glob::{Case, matches};
use quoin_client::{
    ADDRESS_HELP, Address, Databases, End, Flags, databases_argument, match_argument, tls_flags,
};

const FROM: End = End {
    flags: Flags {
        user: "from-user",
        password: "from-password",
        password_file: "from-password-file",
    },
    variables: &["QUOIN_IMPORT_FROM_"],
};
const TO: End = End {
    flags: Flags {
        user: "to-user",
        password: "to-password",
        password_file: "to-password-file",
    },
    variables: &["QUOIN_IMPORT_TO_", "QUOIN_CLIENT_"],
};
const TO_DEFAULT: &str = "redis://127.0.0.1:6379";

/// The source.
#[derive(Debug, Clone)]
pub enum From {
    /// A running server.
    Server(Address),
    /// An RDB file, an append-only file, or the folder of one.
    File(PathBuf),
}

/// What `quoin import` should do.
#[derive(Debug, Clone)]
pub struct Options {
    /// The source.
    pub from: From,
    /// The Quoin to write.
    pub to: Address,
    /// Which databases to copy.
    pub databases: Databases,
    /// A pattern for the names of keys.
    pub pattern: Option<String>,
    /// Whether keys that the target already has as the source does are left out.
    pub resume: bool,
    /// Whether existing keys are replaced.
    pub replaces: bool,
    /// Whether nothing is written.
    pub is_dry_run: bool,
    /// Whether to write to a target that is not Quoin.
    pub any_target: bool,
    /// Whether values that Quoin cannot keep may be skipped.
    pub may_skip: bool,
}

impl Options {
    /// Whether a key should be copied.
    pub(super) fn wants(&self, database: u32, name: &[u8]) -> bool {
        let is_of_database = match &self.databases {
            Databases::All => true,
            Databases::Some(numbers) => numbers.contains(&database),
        };
        let pattern = self.pattern.as_ref();
        is_of_database
            && pattern.is_none_or(|pattern| matches(pattern.as_bytes(), name, Case::Sensitive))
    }
}

/// The command line's grammar.
pub fn command() -> Command {
    let switch = |name: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .action(ArgAction::SetTrue)
            .help(help)
    };
    Command::new("import")
        .bin_name("quoin import")
        .about("Copy the data of a running Redis, of a dump.rdb or of an append-only file into a running Quoin")
        .after_help(format!(
            "{ADDRESS_HELP}\n\n\
             Strings, lists, hashes, sets, sorted sets, streams and functions are copied.\n\
             Each key is written as a whole, so that a stopped import can be run again, with \
             --resume.\n\
             Nothing should write to the source meanwhile. The numbers of elements of all keys are \
             compared.\n\
             Exits with 0 when all match, with 1 when not, when a key existed already or anything \
             was\n\
             left out (unless --skip is given), with 2 for a wrong command line."
        ))
        .arg(
            Arg::new("from")
                .long("from")
                .value_name("ADDRESS|FILE")
                .required(true)
                .help(
                    "The Redis (6.0 or later) or Valkey to read, for a cluster each master in \
                     turn; or an RDB file, an append-only file, or its folder (appendonlydir)",
                ),
        )
        .arg(
            Arg::new("to")
                .long("to")
                .value_name("ADDRESS")
                .default_value(TO_DEFAULT)
                .help("The Quoin to write"),
        )
        .arg(databases_argument(
            "Databases to copy [default: that of --from, or 0; for a file, all]",
        ))
        .arg(match_argument("Copy only the keys that match, as in KEYS"))
        .arg(switch(
            "replace",
            "Replace keys that exist already; otherwise they stay, and are listed",
        ))
        .arg(switch(
            "resume",
            "Leave out keys that exist with the same type, number of elements and expiry",
        ))
        .arg(switch(
            "dry-run",
            "Write nothing; show what would be copied, and what prevents it",
        ))
        .arg(switch(
            "skip",
            "Leave out what Quoin cannot keep: it is listed and counted, and is not a failure",
        ))
        .arg(switch("any-target", "Write to a server that is not a Quoin"))
        .args(FROM.flags())
        .args(TO.flags())
        .args(tls_flags())
}

/// Parses the command line after `quoin import`.
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
    let variables: Vec<_> = variables.into_iter().collect();
    let address = |name, end: &End| {
        let address = Address::parse(text(name).unwrap_or_default());
        let address = address.map_err(|reason| format!("--{name}: {reason}"))?;
        Ok::<_, String>(address.with(&end.access(&matches, &variables)?))
    };
    let read = || -> Result<Options, String> {
        let given = text("from").unwrap_or_default();
        let from = match given.contains("://") {
            true => From::Server(address("from", &FROM)?),
            false => From::File(PathBuf::from(given)),
        };
        let to = address("to", &TO)?;
        let databases = match (&from, text("databases")) {
            (From::Server(from), named) => Databases::parse(named, from),
            (From::File(_), None) => Ok(Databases::All),
            (From::File(_), named) => Databases::parse(named, &to),
        };
        let databases = databases.map_err(|reason| format!("--databases: {reason}"))?;
        let is_one = matches!(&databases, Databases::Some(numbers) if numbers.len() == 1);
        if to.database.is_some() && !is_one {
            return Err("--to names a database, but there are several to copy".to_owned());
        }
        if matches!(from, From::File(_)) && matches.get_flag("resume") {
            return Err("--resume is for a running server; for a file, use --replace".to_owned());
        }
        Ok(Options {
            from,
            to,
            databases,
            pattern: text("match").map(str::to_owned),
            resume: matches.get_flag("resume"),
            replaces: matches.get_flag("replace"),
            is_dry_run: matches.get_flag("dry-run"),
            any_target: matches.get_flag("any-target"),
            may_skip: matches.get_flag("skip"),
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

    fn server(options: &Options) -> &Address {
        match &options.from {
            From::Server(address) => address,
            From::File(path) => panic!("{}", path.display()),
        }
    }

    #[test]
    fn a_file_is_a_source_too() {
        let options = run("--from dump.rdb --replace --dry-run --any-target", &[]).unwrap();
        assert!(matches!(&options.from, From::File(path) if path.ends_with("dump.rdb")));
        assert_eq!(options.databases, Databases::All);
        assert!(options.replaces && options.is_dry_run && options.any_target);
        let one = run("--from a/dump.rdb --databases 3 --to redis://quoin/5", &[]).unwrap();
        assert_eq!(one.databases, Databases::Some(vec![3]));
        let resumed = run("--from dump.rdb --resume", &[]).unwrap_err();
        assert!(resumed.contains("use --replace"), "{resumed}");
    }

    #[test]
    fn the_source_is_all_that_must_be_said() {
        let options = run("--from redis://db:7", &[]).unwrap();
        assert_eq!(server(&options).port, 7);
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
        let many = "--from redis://db --databases 16";
        assert_eq!(databases(many), Ok(Databases::Some(vec![16])));
        let wrong = "--from redis://db --databases -1";
        assert!(databases(wrong).unwrap_err().contains("-1"));
        let into_one = "--from redis://db --databases 0,1 --to redis://quoin/5";
        assert!(databases(into_one).unwrap_err().contains("several"));
    }

    #[test]
    fn passwords_can_come_from_variables() {
        const FROM_PASSWORD: &str = "QUOIN_IMPORT_FROM_PASSWORD";
        const TO_PASSWORD: &str = "QUOIN_IMPORT_TO_PASSWORD";
        let variables = [(FROM_PASSWORD, "one"), (TO_PASSWORD, "two")];
        let options = run("--from redis://db --to redis://:own@quoin", &variables).unwrap();
        assert_eq!(server(&options).password.as_deref(), Some("one"));
        assert_eq!(options.to.password.as_deref(), Some("own"));
        let flags = "--from redis://db --from-user a --from-password b --to-user c --to-password d";
        let options = run(flags, &variables).unwrap();
        for (address, user, password) in [(server(&options), "a", "b"), (&options.to, "c", "d")] {
            assert_eq!(address.user.as_deref(), Some(user));
            assert_eq!(address.password.as_deref(), Some(password));
        }
        let options = run("--from redis://db", &[(FROM_PASSWORD, "")]).unwrap();
        assert_eq!(server(&options).password, None);
    }
}

//! `quoin queues`: shows the queues of a running server once, looks into one, or acts on it.
//!
//! It is only a client of the server. Each view and each action is a command that any client could
//! run, and the server checks it.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command};

use quoin_base::limits::PEEK_COUNT_MAX;
use quoin_client::{ADDRESS_HELP, Address, Client, End, tls_flags};
use quoin_queues::{Kind, State, Wanted, pattern_of};

mod error;
mod listing;
mod peek;
pub(crate) mod rows;
mod steer;

pub use error::QueuesError;

use peek::Peek;
use rows::{Column, Order};
use steer::Action;

/// Rows that are printed without `--limit`.
const LIMIT_DEFAULT: &str = "1000";
/// Elements that are shown without `--count`.
const COUNT_DEFAULT: &str = "10";
const ADDRESS_DEFAULT: &str = "redis://127.0.0.1:6379";

/// What `quoin queues` should do.
#[derive(Debug, Clone)]
pub struct Options {
    address: Address,
    task: Task,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Task {
    List {
        wanted: Wanted,
        order: Order,
        limit: usize,
        is_json: bool,
    },
    Peek(Vec<u8>, Peek),
    Act(Vec<u8>, Action),
}

/// Does it. Writes the output to `out`.
///
/// # Errors
/// If it was not done, or not all of it.
pub fn run(options: &Options, out: &mut impl Write) -> Result<(), QueuesError> {
    let mut client = Client::connect(&options.address)?;
    let database = options.address.database.unwrap_or(0);
    client.select_existing(database)?;
    let done = match &options.task {
        Task::List {
            wanted,
            order,
            limit,
            is_json,
        } => {
            let listed = listing::list(&mut client, database, wanted, *order, *limit)?;
            listed.write(*is_json, out)?;
            note(listed.rest());
            None
        }
        Task::Peek(key, peek) => {
            let kind = steer::kind_of(&mut client, key)?;
            let next = peek::peek(&mut client, key, kind, peek, out)?;
            note(next.map(|next| format!("there is more: --cursor {next}")));
            None
        }
        Task::Act(key, action) => Some(steer::act(&mut client, key, action)?),
    };
    if let Some(done) = done {
        writeln!(out, "{done}")?;
    }
    Ok(out.flush()?)
}

/// Prints something that is not part of the output.
fn note(line: Option<String>) {
    if let Some(line) = line {
        // The standard error may be closed.
        let _ = writeln!(io::stderr(), "{line}");
    }
}

/// The address of the server, as `quoin queues` and `quoin top` take it.
pub(crate) fn address_argument() -> Arg {
    Arg::new("address")
        .value_name("ADDRESS")
        .help("The server and database")
}

/// The options for which queues to show, and in which order.
pub(crate) fn table_arguments() -> [Arg; 4] {
    [
        Arg::new("pattern")
            .long("pattern")
            .value_name("PATTERN")
            .help(
                "Only queues whose names match, as in KEYS; a word without wildcards may be \
                   anywhere in the name",
            ),
        Arg::new("type")
            .long("type")
            .value_name("TYPE")
            .value_parser(PossibleValuesParser::new(Kind::ALL.map(Kind::type_name)))
            .help("Only queues of this type"),
        Arg::new("sort")
            .long("sort")
            .value_name("COLUMN")
            .default_value(Column::Ready.name())
            .value_parser(PossibleValuesParser::new(Column::ALL.map(Column::name)))
            .help("Sort by this column: names and types ascending, all others largest first"),
        Arg::new("reverse")
            .long("reverse")
            .action(ArgAction::SetTrue)
            .help("Reverse the order"),
    ]
}

/// The values of [`table_arguments`].
pub(crate) fn table_options(matches: &ArgMatches) -> (Wanted, Order) {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let wanted = Wanted {
        kind: text("type").and_then(Kind::of_type),
        pattern: pattern_of(text("pattern").unwrap_or_default().as_bytes()),
    };
    let column = text("sort").and_then(Column::of_name);
    let order = Order {
        column: column.unwrap_or(Column::Ready),
        is_reversed: matches.get_flag("reverse"),
    };
    (wanted, order)
}

/// The values of [`address_argument`], the login and the TLS files.
pub(crate) fn address_of(
    matches: &ArgMatches,
    variables: &[(OsString, OsString)],
) -> Result<Address, String> {
    let address = matches.get_one::<String>("address");
    let address = Address::parse(address.map_or(ADDRESS_DEFAULT, String::as_str))?;
    Ok(address.with(&End::QUOIN.access(matches, variables)?))
}

/// The command line's grammar.
pub fn command() -> Command {
    let one = |name: &'static str, about: &'static str| {
        Command::new(name)
            .about(about)
            .arg(address_argument().required(true))
            .arg(
                Arg::new("queue")
                    .value_name("KEY")
                    .required(true)
                    .value_parser(clap::value_parser!(OsString))
                    .help("The queue"),
            )
            .args(End::QUOIN.flags())
            .args(tls_flags())
    };
    let ids = || {
        Arg::new("id")
            .value_name("ID")
            .num_args(1..)
            .value_parser(clap::value_parser!(OsString))
    };
    let state = |help: &'static str| {
        Arg::new("state")
            .long("state")
            .value_name("STATE")
            .value_parser(PossibleValuesParser::new(State::ALL.map(State::name)))
            .help(help)
    };
    Command::new("queues")
        .bin_name("quoin queues")
        .about("List the queues of a running server, inspect one, and control it")
        .after_help(format!(
            "{ADDRESS_HELP}\n\
             The default is {ADDRESS_DEFAULT}.\n\n\
             Columns are blank if the server does not know them: it counts what comes and goes for \
             the most active queues only.\n\
             Exits with 0 when all was done, with 1 when not, with 2 for a wrong command line. See \
             docs/operate/queues.md."
        ))
        .args_conflicts_with_subcommands(true)
        .disable_help_subcommand(true)
        .arg(address_argument())
        .args(table_arguments())
        .arg(
            Arg::new("limit")
                .long("limit")
                .value_name("N")
                .default_value(LIMIT_DEFAULT)
                .value_parser(clap::value_parser!(u32).range(1..))
                .help("Maximum number of rows"),
        )
        .arg(json_flag())
        .args(End::QUOIN.flags())
        .args(tls_flags())
        .subcommand(
            one("peek", "Show what is in a queue, without taking it")
                .arg(state(
                    "For a task queue, the tasks in this state [default: ready]",
                ))
                .arg(
                    Arg::new("count")
                        .long("count")
                        .value_name("N")
                        .default_value(COUNT_DEFAULT)
                        .value_parser(clap::value_parser!(i64).range(1..=PEEK_COUNT_MAX))
                        .help("Maximum number of elements"),
                )
                .arg(
                    Arg::new("cursor")
                        .long("cursor")
                        .value_name("CURSOR")
                        .help("Where to continue, as the previous page says"),
                )
                .arg(json_flag()),
        )
        .subcommand(
            one(
                "retry",
                "Retry tasks now: dead tasks are revived, leased tasks are given back",
            )
            .arg(ids().required(true).help("The tasks")),
        )
        .subcommand(
            one("revive", "Make dead tasks ready again, with no tries")
                .arg(ids().required_unless_present("all").help("The tasks"))
                .arg(
                    Arg::new("all")
                        .long("all")
                        .action(ArgAction::SetTrue)
                        .conflicts_with("id")
                        .help("All dead tasks"),
                ),
        )
        .subcommand(
            one(
                "purge",
                "Remove everything in a queue, or the tasks in one state",
            )
            .arg(state("For a task queue, the tasks in this state"))
            .arg(
                Arg::new("yes")
                    .long("yes")
                    .action(ArgAction::SetTrue)
                    .help("Do not ask"),
            ),
        )
        .subcommand(one(
            "pause",
            "Pause a task queue, so that consumers get no tasks",
        ))
        .subcommand(one(
            "resume",
            "Resume a task queue, so that consumers get tasks again",
        ))
}

fn json_flag() -> Arg {
    Arg::new("json")
        .long("json")
        .action(ArgAction::SetTrue)
        .help("One JSON object per line")
}

/// Parses the command line after `quoin queues`.
///
/// # Errors
/// clap's, which may also be a text to print.
pub fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Options, clap::Error> {
    let mut command = command();
    let arguments = std::iter::once(OsString::from("queues")).chain(arguments);
    let matches = command.try_get_matches_from_mut(arguments)?;
    let variables: Vec<(OsString, OsString)> = variables.into_iter().collect();
    let (own, task) = match matches.subcommand() {
        None => (&matches, list_of(&matches)),
        Some((name, own)) => (own, task_of(name, own)),
    };
    let address = address_of(own, &variables)
        .map_err(|reason| command.error(clap::error::ErrorKind::ValueValidation, reason))?;
    Ok(Options { address, task })
}

fn list_of(matches: &ArgMatches) -> Task {
    let (wanted, order) = table_options(matches);
    let limit = matches.get_one::<u32>("limit").copied();
    Task::List {
        wanted,
        order,
        limit: limit.map_or(usize::MAX, |limit| limit as usize),
        is_json: matches.get_flag("json"),
    }
}

fn task_of(name: &str, own: &ArgMatches) -> Task {
    let bytes = |word: &OsString| OsStr::as_bytes(word).to_vec();
    let key = own
        .get_one::<OsString>("queue")
        .map(bytes)
        .unwrap_or_default();
    let ids = || {
        let ids = own.get_many::<OsString>("id").unwrap_or_default();
        ids.map(bytes).collect()
    };
    let state = || State::of_name(own.get_one::<String>("state")?);
    let action = match name {
        "retry" => Action::Retry(ids()),
        "revive" => Action::Revive(ids()),
        "purge" => Action::Purge {
            state: state(),
            is_sure: own.get_flag("yes"),
        },
        "pause" => Action::Pause,
        "resume" => Action::Resume,
        _ => {
            let cursor = own.get_one::<String>("cursor").cloned();
            let peek = Peek {
                state: state(),
                cursor: cursor.unwrap_or_default(),
                count: own.get_one::<i64>("count").copied().unwrap_or(1),
                is_json: own.get_flag("json"),
            };
            return Task::Peek(key, peek);
        }
    };
    Task::Act(key, action)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options, String> {
        let words = line.split_whitespace().map(OsString::from);
        parse(words, []).map_err(|error| error.to_string())
    }

    #[test]
    fn the_table_is_of_the_default_server_unless_another_is_named() {
        let options = parsed("").unwrap();
        assert_eq!(options.address.to_string(), ADDRESS_DEFAULT);
        let options =
            parsed("redis://h/3 --pattern mail --type list --sort age --reverse").unwrap();
        assert_eq!(options.address.database, Some(3));
        let expected = Task::List {
            wanted: Wanted {
                kind: Some(Kind::List),
                pattern: b"*mail*".to_vec(),
            },
            order: Order {
                column: Column::Age,
                is_reversed: true,
            },
            limit: 1_000,
            is_json: false,
        };
        assert_eq!(options.task, expected);
    }

    #[test]
    fn actions_name_a_server_and_a_key() {
        let act = |line: &str| match parsed(line).unwrap().task {
            Task::Act(key, action) => (String::from_utf8(key).unwrap(), action),
            other => panic!("{other:?}"),
        };
        let ids = vec![b"1".to_vec(), b"2".to_vec()];
        for (line, action) in [
            ("pause redis://h q", Action::Pause),
            ("resume redis://h q", Action::Resume),
            ("retry redis://h q 1 2", Action::Retry(ids.clone())),
            ("revive redis://h q 1 2", Action::Revive(ids)),
            ("revive redis://h q --all", Action::Revive(Vec::new())),
            (
                "purge redis://h q --state dead --yes",
                Action::Purge {
                    state: Some(State::Dead),
                    is_sure: true,
                },
            ),
        ] {
            assert_eq!(act(line), ("q".to_owned(), action), "{line}");
        }
    }

    #[test]
    fn a_wrong_line_says_what_is_missing() {
        for (line, expected) in [
            ("pause redis://h", "KEY"),
            ("retry redis://h q", "ID"),
            ("revive redis://h q", "ID"),
            ("revive redis://h q 1 --all", "--all"),
            ("peek redis://h q --count 0", "count"),
            ("peek http://h q", "redis://"),
            ("nonsense", "redis://"),
            ("--sort color", "deaths"),
        ] {
            let said = parsed(line).unwrap_err();
            assert!(said.contains(expected), "{line}: {said}");
        }
    }
}

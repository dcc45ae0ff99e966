//! The rows of COMMAND.

use super::keys;
use crate::command::flags::Flags;
use crate::command::grammar::{Argument, oneof, pattern, string};
use crate::command::row::{Group, Handler, PureHandler, Row};
use crate::server_commands::command;

const CONNECTION: &[&str] = &["@connection"];
const ANY_ORDER: &[&str] = &["nondeterministic_output_order"];
const NAMES: Argument = string("command-name").optional().multiple();
const WHOLE_COMMAND: &[Argument] = &[string("command"), string("arg").optional().multiple()];

const fn command(name: &'static str, arity: i32, since: &'static str, handler: PureHandler) -> Row {
    Row::new(name, arity, since, Group::Server, Handler::Pure(handler))
        .flags(Flags::LOADING.and(Flags::STALE))
        .categories(CONNECTION)
}

/// COMMAND.
pub const ROWS: &[Row] = &[command("command", -1, "2.8.13", command::info)
    .summary("Returns detailed information about all commands.")
    .complexity("O(N) where N is the total number of Redis commands")
    .tips(ANY_ORDER)
    .subcommands(SUBCOMMANDS)];

const SUBCOMMANDS: &[Row] = &[
    command("command|count", 2, "2.8.13", super::count).summary("Returns a count of commands."),
    command("command|docs", -2, "7.0.0", command::docs)
        .summary("Returns documentary information about one, multiple or all commands.")
        .complexity("O(N) where N is the number of commands to look up")
        .tips(ANY_ORDER)
        .arguments(&[NAMES]),
    command("command|getkeys", -3, "2.8.13", keys::keys)
        .summary("Extracts the key names from an arbitrary command.")
        .complexity("O(N) where N is the number of arguments to the command")
        .arguments(WHOLE_COMMAND),
    command("command|getkeysandflags", -3, "7.0.0", keys::keys_and_flags)
        .summary("Extracts the key names and access flags for an arbitrary command.")
        .complexity("O(N) where N is the number of arguments to the command")
        .arguments(WHOLE_COMMAND),
    Row::help(
        "command|help",
        "5.0.0",
        Group::Server,
        Handler::Pure(super::command_help),
    )
    .categories(CONNECTION),
    command("command|info", -2, "2.8.13", command::info)
        .summary("Returns information about one, multiple or all commands.")
        .complexity("O(N) where N is the number of commands to look up")
        .tips(ANY_ORDER)
        .history(&[(
            "7.0.0",
            "Allowed to be called with no argument to get info on all commands.",
        )])
        .arguments(&[NAMES]),
    command("command|list", -2, "7.0.0", super::list)
        .summary("Returns a list of command names.")
        .complexity("O(N) where N is the total number of Redis commands")
        .tips(ANY_ORDER)
        .arguments(&[oneof(
            "filterby",
            &[
                string("module-name").token("MODULE"),
                string("category").token("ACLCAT"),
                pattern("pattern").token("PATTERN"),
            ],
        )
        .token("FILTERBY")
        .optional()]),
];

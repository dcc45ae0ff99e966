//! MODULE: there are none, and none can be loaded.

use bytes::Bytes;

use crate::command::flags::Flags;
use crate::command::grammar::{block, string};
use crate::command::help;
use crate::command::row::{Group, Handler, Row};
use crate::error::CommandError;
use crate::unit::context::Environment;
use quoin_resp::reply::Reply;

const HELP_TITLE: &str = "MODULE <subcommand> [<arg> [value] [opt] ...]. Subcommands are:";

const HELP: &[&str] = &[
    "LIST",
    "    Return a list of loaded modules.",
    "LOAD <path> [<arg> ...]",
    "    Load a module library from <path>, passing to it any optional arguments.",
    "LOADEX <path> [[CONFIG NAME VALUE] [CONFIG NAME VALUE]] [ARGS ...]",
    "    Load a module library from <path>, while passing it module configurations and optional arguments.",
    "UNLOAD <name>",
    "    Unload a module.",
];

fn list(_: &Environment, _: &[Bytes]) -> Result<Reply, CommandError> {
    Ok(Reply::Array(Vec::new()))
}

fn help(_: &Environment, _: &[Bytes]) -> Result<Reply, CommandError> {
    Ok(help::help(HELP_TITLE, HELP))
}

/// As Redis by default.
fn refuse(_: &Environment, _: &[Bytes]) -> Result<Reply, CommandError> {
    Err(CommandError::text(
        "ERR MODULE command not allowed. If the enable-module-command option is set to \"local\", \
         you can run it from a local connection, otherwise you need to set this option in the \
         configuration file, and then restart the server.",
    ))
}

const fn loading(name: &'static str, arity: i32, since: &'static str) -> Row {
    Row::new(name, arity, since, Group::Server, Handler::Pure(refuse)).flags(
        Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::NO_ASYNC_LOADING),
    )
}

/// The subcommands of MODULE.
pub(super) const MODULE: &[Row] = &[
    Row::help("module|help", "5.0.0", Group::Server, Handler::Pure(help)),
    Row::new(
        "module|list",
        2,
        "4.0.0",
        Group::Server,
        Handler::Pure(list),
    )
    .summary("Returns all loaded modules.")
    .complexity("O(N) where N is the number of loaded modules.")
    .flags(Flags::ADMIN.and(Flags::NOSCRIPT))
    .tips(&["nondeterministic_output_order"]),
    loading("module|load", -3, "4.0.0")
        .summary("Loads a module.")
        .arguments(&[string("path"), string("arg").optional().multiple()]),
    loading("module|loadex", -3, "7.0.0")
        .summary("Loads a module using extended parameters.")
        .arguments(&[
            string("path"),
            block("configs", &[string("name"), string("value")])
                .token("CONFIG")
                .optional()
                .multiple_with_token(),
            block("args", &[string("arg")])
                .token("ARGS")
                .optional()
                .multiple(),
        ]),
    loading("module|unload", 3, "4.0.0")
        .summary("Unloads a module.")
        .arguments(&[string("name")]),
];

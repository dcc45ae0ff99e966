//! The grammar of the command line.

use std::path::PathBuf;

use clap::{Arg, ArgAction, Command};

use quoin_client::Beside;
use quoin_config::load::FILE_VARIABLE;
use quoin_config::table::{SETTINGS, SettingRow};

pub(super) const CHECK_CONFIG: &str = "check-config";
pub(super) const RESTORE: &str = "restore";
pub(super) const IMPORT: &str = "import";
pub(super) const EXPORT: &str = "export";
pub(super) const DOCTOR: &str = "doctor";
pub(super) const BACKUP: &str = "backup";
pub(super) const TO_FLAG: &str = "to";
pub(super) const KEEP_FLAG: &str = "keep";
pub(super) const COMPACT: &str = "compact";
pub(super) const PING: &str = "ping";
pub(super) const QUEUES: &str = "queues";
pub(super) const TOP: &str = "top";
pub(super) const COMPLETIONS: &str = "completions";
pub(super) const MAN: &str = "man";
pub(super) const SHELL: &str = "shell";
pub(super) const PAGE: &str = "command";
pub(super) const REPAIR_FLAG: &str = "repair";
pub(super) const DEEP_FLAG: &str = "deep";
pub(super) const OFFLINE_FLAG: &str = "offline";
pub(super) const FILE_FLAG: &str = "config";
pub(super) const HELP: &str = "help";
pub(super) const VERSION: &str = "version";

/// The whole grammar for parsing, in which settings may appear anywhere.
pub(super) fn command() -> Command {
    Command::new("quoin")
        .version(quoin_server::version::DESCRIPTION)
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
        .arg(file_flag())
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
                    "Writes the data file of the embedded store (--data-dir) again, without what is \
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
            Command::new(IMPORT).about("Copy the data of a running Redis, or of a dump.rdb"),
        )
        .subcommand(
            Command::new(EXPORT)
                .about("Write the data of a running server to a file that redis-server loads"),
        )
        .subcommand(ping_command())
        .subcommand(
            Command::new(QUEUES)
                .about("Show the queues of a running server, look into one, and steer it"),
        )
        .subcommand(
            Command::new(TOP).about("Show the queues of a running server in the terminal, live"),
        )
        .subcommand(without_settings(completions_command()))
        .subcommand(without_settings(man_command()))
        .subcommand(without_settings(
            Command::new(VERSION).about("Print version"),
        ))
}

fn file_flag() -> Arg {
    Arg::new(FILE_FLAG)
        .long(FILE_FLAG)
        .value_name("PATH")
        .value_parser(clap::value_parser!(PathBuf))
        .global(true)
        .help(format!(
            "Settings file (TOML); config/quoin.toml shows every setting [env: {FILE_VARIABLE}]"
        ))
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

fn backup_command() -> Command {
    Command::new(BACKUP)
        .about("Make a backup of the embedded store, beside a running server or without one")
        .after_help(
            "Takes the options of the server. Where a server has --data-dir open it is \
             asked for a backup in the folder\n`backups` of it (BGSAVE), which serves clients \
             meanwhile; else the backup is made here. It is read again, and\ncompared with its \
             checksums. Exits with 0 where it is good, else with 1. docs/operate/backup.md tells \
             more.",
        )
        .arg(
            Arg::new(TO_FLAG)
                .long(TO_FLAG)
                .value_name("FOLDER")
                .value_parser(clap::value_parser!(PathBuf))
                .display_order(0)
                .help("Folder, on another disk say, that gets a copy of the backup"),
        )
        .arg(
            Arg::new(KEEP_FLAG)
                .long(KEEP_FLAG)
                .value_name("NUMBER")
                .value_parser(clap::value_parser!(u32))
                .requires(TO_FLAG)
                .display_order(0)
                .help(
                    "Backups of this store to keep in that folder; 0 keeps all [default: \
                     backups-keep]",
                ),
        )
        .args(server_flags())
        .args(SETTINGS.iter().map(|row| {
            flag(row)
                .help_heading("Which store")
                .hide(!BACKUP_SETTINGS.contains(&row.name))
        }))
}

/// The flags with which a tool asks the server that has the folder open.
fn server_flags() -> impl Iterator<Item = Arg> {
    let flags = Beside::flags().into_iter();
    flags.map(|flag| flag.help_heading("The server that has the folder open"))
}

fn ping_command() -> Command {
    Command::new(PING)
        .about("Ask a running server whether it answers")
        .after_help(
            "Takes the options of the server, connects to the address that they name, logs in and \
             sends a PING.\nPrints PONG and exits with 0 where that is the answer. Exits with 1 \
             where there is none within 5\nseconds, or another one, such as NOAUTH.",
        )
        .args(server_flags())
        .mut_arg("server", |server| {
            server.help(
                "Its address: redis://host:port, rediss:// for TLS, or unix:///path [default: by \
                 the settings]",
            )
        })
        .mut_args(|flag| flag.help_heading("The server"))
        .args(SETTINGS.iter().map(|row| {
            flag(row)
                .help_heading("Settings that say where it listens")
                .hide(!PING_SETTINGS.contains(&row.name))
        }))
}

/// The settings for the address of a server, and its password.
const PING_SETTINGS: [&str; 5] = ["bind", "port", "tls-port", "unixsocket", "requirepass"];

/// The settings for the store to back up, and how to ask its server.
const BACKUP_SETTINGS: [&str; 8] = [
    "data-dir",
    "bind",
    "port",
    "requirepass",
    "backups-keep",
    "journal-archive-dir",
    "journal-archive-command",
    "journal-archive-days",
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
             cluster servers may\nrun meanwhile. A server that has an embedded store open is \
             asked instead. Without --repair\nnothing that \
             belongs to keys is changed.\n\n\
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
        .args(server_flags())
        .args(SETTINGS.iter().map(|row| {
            flag(row)
                .help_heading("Which store")
                .hide(!STORE_SETTINGS.contains(&row.name))
        }))
}

/// The settings that select the store. The help of commands that work on a store shows only these.
pub(super) const STORE_SETTINGS: [&str; 12] = [
    "store",
    "data-dir",
    "bind",
    "port",
    "requirepass",
    "cluster-file",
    "root-prefix",
    "fdb-tls-certificate-file",
    "fdb-tls-key-file",
    "fdb-tls-ca-file",
    "fdb-tls-verify-peers",
    "fdb-tls-password",
];

/// A command that does not use settings. Its help does not show them.
fn without_settings(command: Command) -> Command {
    command
        .arg(file_flag().hide(true))
        .args(SETTINGS.iter().map(|row| flag(row).hide(true)))
}

/// The grammar of `quoin completions`.
fn completions_command() -> Command {
    Command::new(COMPLETIONS)
        .about("Print completions of this command line for a shell")
        .after_help(
            "bash: quoin completions bash > /etc/bash_completion.d/quoin\n\
             zsh:  quoin completions zsh > a folder of $fpath/_quoin\n\
             fish: quoin completions fish > ~/.config/fish/completions/quoin.fish",
        )
        .arg(
            Arg::new(SHELL)
                .required(true)
                .value_name("SHELL")
                .value_parser(["bash", "zsh", "fish"])
                .help("The shell"),
        )
}

/// The grammar of `quoin man`.
fn man_command() -> Command {
    Command::new(MAN)
        .about("Print a man page")
        .after_help("quoin man > quoin.1; quoin man doctor > quoin-doctor.1")
        .arg(
            Arg::new(PAGE)
                .value_name("COMMAND")
                .help("The command that the page is about [default: the server]"),
        )
}

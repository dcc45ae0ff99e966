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
            "Flags override environment variables; both override the settings file.\n\
             `quoin check-config` with the same options shows the settings in effect.\n\
             `quoin help COMMAND` describes one of the commands above.",
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
        .subcommand(Command::new(RESTORE).about("Restore a backup into a new data folder"))
        .subcommand(
            Command::new(COMPACT)
                .about("Return the free space in a stopped server's data folder to the disk")
                .after_help(
                    "Rewrites the data file of the embedded store (--data-dir) without its free \
                     space, and\n\
                     prints how much was freed. The server must be stopped. Both files need room \
                     on the disk\n\
                     until the command is done. If it is interrupted, the store stays intact.",
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
                .about("Write the data of a running server to a file that redis-server can load"),
        )
        .subcommand(ping_command())
        .subcommand(
            Command::new(QUEUES)
                .about("List the queues of a running server, inspect one, and control it"),
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
        .about("Back up the embedded store, with or without a running server")
        .after_help(
            "Takes the options of the server. If a server has --data-dir open, that server makes \
             the backup in its folder\n\
             `backups` (BGSAVE), and serves clients meanwhile; otherwise this command makes it. \
             The backup is read back and\n\
             compared with its checksums. Exits with 0 if it is good, otherwise with 1. See \
             docs/operate/backup.md.",
        )
        .arg(
            Arg::new(TO_FLAG)
                .long(TO_FLAG)
                .value_name("FOLDER")
                .value_parser(clap::value_parser!(PathBuf))
                .display_order(0)
                .help("Folder for a copy of the backup, for example on another disk"),
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
        .about("Check whether a running server answers")
        .after_help(
            "Takes the options of the server, connects to its address, logs in and sends a PING.\n\
             If the answer is PONG, prints it and exits with 0. Exits with 1 if there is no \
             answer\n\
             within 5 seconds, or a different one, such as NOAUTH.",
        )
        .args(server_flags())
        .mut_arg("server", |server| {
            server.help(
                "Its address: redis://host:port, rediss:// for TLS, or unix:///path [default: from \
                 the settings]",
            )
        })
        .mut_args(|flag| flag.help_heading("The server"))
        .args(SETTINGS.iter().map(|row| {
            flag(row)
                .help_heading("Settings for its address")
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
        .about("Check the store, and repair what can be repaired")
        .after_help(
            "Takes the options of the server and checks its store: whether it can be reached, how \
             fast it is,\n\
             whether this version can read it, whether anything is left over, and whether counters \
             agree.\n\
             Prints one line per check: ok, warn or fail, what it found, and what to do. On a \
             cluster,\n\
             servers may run meanwhile. If a server has an embedded store open, that server is \
             asked instead.\n\
             Without --repair, nothing that belongs to keys is changed.\n\n\
             Exits with 0 if all is ok (or repaired), 1 if something needs attention, 2 if \
             something is\n\
             wrong or the store cannot be used. See docs/operate/doctor.md.",
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
            "Confirm that no server uses the store: --repair then also removes what a running \
             server might need",
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

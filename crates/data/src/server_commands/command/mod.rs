//! COMMAND, which is derived from the commands' rows: INFO (the ten elements of a command), DOCS, and GETKEYS, whose
//! arguments need not be valid.
//!
//! For GETKEYS, Redis first uses the key specifications. If they are insufficient, a function of the command searches
//! again, with weaker checks and in its own order (`getKeysFromCommandWithSpecs` in `db.c`). The keys that a command of
//! Quoin uses are in [`Row::key_indexes`].

use bytes::Bytes;
use quoin_base::glob;
use quoin_base::glob::Case;
use quoin_base::redis_version::RedisVersion;
use quoin_resp::reply::Reply;

use crate::command::arguments::{integer, is_word, rest};
use crate::command::grammar::{Argument, Kind};
use crate::command::help::help;
use crate::command::key_specs::{
    KeyFlags, KeyPlace, KeySpec, READ, TAKE, first_stream, legacy_range, migrated_keys, stored_key,
};
use crate::command::row::{Row, categories};
use crate::error::CommandError;
use crate::table;
use crate::unit::context::Environment;

mod keys;
mod rows;

pub use rows::ROWS;

/// `COMMAND COUNT`.
fn count(_: &Environment, _: &[Bytes]) -> Result<Reply, CommandError> {
    Ok(Reply::count(table::commands().count()))
}

/// `COMMAND LIST [FILTERBY <MODULE name | ACLCAT category | PATTERN pattern>]`.
fn list(_: &Environment, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    let names = |is_listed: &dyn Fn(&Row) -> bool| {
        let listed = table::all().iter().filter(|row| is_listed(row));
        Reply::Array(listed.map(|row| Reply::bulk(row.name)).collect())
    };
    match rest(arguments, 2) {
        [] => Ok(names(&|_| true)),
        [word, kind, value] if is_word(word, "filterby") => {
            if is_word(kind, "module") {
                Ok(names(&|_| false))
            } else if is_word(kind, "aclcat") {
                let is_wanted = |category: &str| is_word(value, category.trim_start_matches('@'));
                Ok(names(&|row| categories(row).any(is_wanted)))
            } else if is_word(kind, "pattern") {
                Ok(names(&|row| {
                    glob::matches(value, row.name.as_bytes(), Case::Insensitive)
                }))
            } else {
                Err(CommandError::Syntax)
            }
        }
        _ => Err(CommandError::Syntax),
    }
}

/// `COMMAND HELP`.
fn command_help(_: &Environment, _: &[Bytes]) -> Result<Reply, CommandError> {
    Ok(help(HELP_TITLE, HELP))
}

const HELP_TITLE: &str = "COMMAND <subcommand> [<arg> [value] [opt] ...]. Subcommands are:";

#[rustfmt::skip]
const HELP: &[&str] = &[
    "(no subcommand)",
    "    Return details about all Redis commands.",
    "COUNT",
    "    Return the total number of commands in this Redis server.",
    "LIST",
    "    Return a list of all commands in this Redis server.",
    "INFO [<command-name> ...]",
    "    Return details about multiple Redis commands.",
    "    If no command names are given, documentation details for all",
    "    commands are returned.",
    "DOCS [<command-name> ...]",
    "    Return documentation details about multiple Redis commands.",
    "    If no command names are given, documentation details for all",
    "    commands are returned.",
    "GETKEYS <full-command>",
    "    Return the keys from a full Redis command.",
    "GETKEYSANDFLAGS <full-command>",
    "    Return the keys and the access flags from a full Redis command.",
];

/// A key among the arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Found {
    /// Its position.
    at: usize,
    /// How the command uses it; empty if Redis does not say.
    flags: KeyFlags,
}

/// The keys of a command; empty if the arguments do not determine them.
fn keys(row: &Row, command: &[Bytes]) -> Vec<Found> {
    by_specifications(row, command).unwrap_or_else(|| by_function(row, command))
}

/// The keys according to the specifications. `None` if one of them does not match.
fn by_specifications(row: &Row, command: &[Bytes]) -> Option<Vec<Found>> {
    let mut all = Vec::new();
    for spec in row.keys.iter().filter(|spec| spec.is_key()) {
        let place = match place_of(spec, command) {
            Place::At(first, last, step) => Some((first, last, step)),
            Place::Nowhere => continue,
            Place::Unknown => None,
        };
        let is_complete = !spec.flags.contains(&"incomplete");
        let fits = |(first, last, _): &(usize, usize, usize)| {
            is_complete && first <= last && *last < command.len()
        };
        let (first, last, step) = place.filter(fits)?;
        let flags = spec.flags_of(command);
        all.extend((first..=last).step_by(step).map(|at| Found { at, flags }));
    }
    Some(all)
}

/// The positions of keys according to a specification.
enum Place {
    /// First position, last position, and step.
    At(usize, usize, usize),
    /// There are none.
    Nowhere,
    /// The specification is insufficient or does not match.
    Unknown,
}

fn place_of(spec: &KeySpec, command: &[Bytes]) -> Place {
    let count = command.len();
    let word_from = |word: &str, from: usize| {
        // The last argument cannot be the word, because nothing follows it.
        let mut candidates = from..count.saturating_sub(1);
        candidates.find(|at| is_word_at(command, *at, word))
    };
    let up_to = |first: usize, last: Option<usize>, step: usize| {
        last.map_or(Place::Unknown, |last| Place::At(first, last, step))
    };
    match spec.place {
        KeyPlace::Range { first, last, step } => {
            let distance = usize::try_from(last.unsigned_abs()).unwrap_or(usize::MAX);
            let last = match last < 0 {
                true => count.checked_sub(distance),
                false => first.checked_add(distance),
            };
            up_to(first, last, step)
        }
        KeyPlace::Counted {
            count: count_at,
            step,
        } => {
            let number = command.get(count_at).and_then(|text| integer(text).ok());
            let number = number.and_then(|number| usize::try_from(number).ok());
            let before_last = number.and_then(|number| number.checked_sub(1)?.checked_mul(step));
            let last = before_last.and_then(|words| (count_at + 1).checked_add(words));
            up_to(count_at + 1, last, step)
        }
        KeyPlace::NamedByElements | KeyPlace::AfterStore => Place::Unknown,
        KeyPlace::AfterWord { word, from } => match word_from(word, from) {
            Some(at) => Place::At(at + 1, at + 1, 1),
            None => Place::Nowhere,
        },
        KeyPlace::AllAfterWord { word, .. } => {
            // Searched backwards, starting from the last but one.
            let last = count.saturating_sub(1);
            let mut candidates = (2..last).rev();
            match candidates.find(|at| is_word_at(command, *at, word)) {
                Some(at) => Place::At(at + 1, last, 1),
                None => Place::Nowhere,
            }
        }
        KeyPlace::Streams { from } => match word_from("STREAMS", from) {
            Some(at) => {
                let first = at + 1;
                up_to(first, (first + (count - first) / 2).checked_sub(1), 1)
            }
            None => Place::Nowhere,
        },
    }
}

/// Finds keys as Redis's functions do for commands whose keys have no fixed positions.
fn by_function(row: &Row, command: &[Bytes]) -> Vec<Found> {
    let mut all = Vec::new();
    let mut put = |at: usize, flags: KeyFlags| all.push(Found { at, flags });
    for spec in row.keys {
        match spec.place {
            KeyPlace::Counted { count, .. } => {
                let number = command.get(count).map_or(0, |text| leading_int(text));
                let first = count + 1;
                let left = command.len().saturating_sub(first);
                let number = usize::try_from(number).unwrap_or(0);
                if number == 0 || number > left {
                    return Vec::new();
                }
                (first..first + number).for_each(|at| put(at, &[]));
                // The destination key comes last.
                let stored = row.keys.iter().find_map(|other| match other.place {
                    KeyPlace::Range { first, .. } => Some(first),
                    _ => None,
                });
                stored.into_iter().for_each(|at| put(at, &[]));
                return all;
            }
            KeyPlace::NamedByElements => {
                put(1, READ);
                for store in row
                    .keys
                    .iter()
                    .filter(|spec| spec.place == KeyPlace::AfterStore)
                {
                    let stored = stored_key(command);
                    stored.into_iter().for_each(|at| put(at, store.flags));
                }
                return all;
            }
            KeyPlace::AllAfterWord { word, from } => {
                match migrated_keys(command, word, from) {
                    None => put(3, TAKE),
                    // With KEYS, the argument for a single key must be empty.
                    Some(_) if command.get(3).is_some_and(|key| !key.is_empty()) => {}
                    Some(first) => (first..command.len()).for_each(|at| put(at, TAKE)),
                }
                return all;
            }
            KeyPlace::Streams { .. } => {
                let first = first_stream(command).unwrap_or(command.len());
                let following = command.len() - first;
                if following.is_multiple_of(2) {
                    (first..first + following / 2).for_each(|at| put(at, &[]));
                }
                return all;
            }
            KeyPlace::Range { .. } | KeyPlace::AfterStore | KeyPlace::AfterWord { .. } => {}
        }
    }
    all
}

fn is_word_at(command: &[Bytes], at: usize, word: &str) -> bool {
    command.get(at).is_some_and(|one| is_word(one, word))
}

/// Parses a text like C's `atoi`: the number at its beginning, or 0. Numbers too large for an `int` may saturate,
/// because no command has that many arguments.
fn leading_int(text: &[u8]) -> i64 {
    let text = text.trim_ascii_start();
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let number = digits.fold(0_i64, |number, digit| {
        number
            .saturating_mul(10)
            .saturating_add(i64::from(digit - b'0'))
    });
    if is_negative { -number } else { number }
}

/// `COMMAND`, `COMMAND INFO [name …]`: describes these commands, or all if no name is given.
fn info(_: &Environment, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    Ok(Reply::Array(match arguments {
        [_, _, names @ ..] if !names.is_empty() => names
            .iter()
            .map(|name| table::find_by_full_name(name).map_or(Reply::Null, description))
            .collect(),
        _ => table::commands().map(description).collect(),
    }))
}

fn description(row: &'static Row) -> Reply {
    let (first, last, step) = legacy_range(row.keys);
    let subcommands = table::subcommands(row).iter().map(description);
    Reply::Array(vec![
        Reply::bulk(row.name),
        Reply::Integer(row.arity.into()),
        Reply::Set(row.flag_names().map(Reply::Simple).collect()),
        Reply::Integer(first),
        Reply::Integer(last),
        Reply::Integer(step),
        Reply::Set(categories(row).map(Reply::Simple).collect()),
        Reply::Set(row.tips.iter().map(|tip| Reply::bulk(*tip)).collect()),
        Reply::Set(row.keys.iter().map(specification).collect()),
        if row.subcommands.is_empty() {
            Reply::Set(Vec::new())
        } else {
            Reply::Array(subcommands.collect())
        },
    ])
}

fn specification(spec: &KeySpec) -> Reply {
    let name = |name: &'static str| Reply::bulk(name);
    let typed = |kind: &'static str, details: &[(&'static str, i64)]| {
        let details = details.iter();
        let details = details.map(|(field, value)| (name(field), Reply::Integer(*value)));
        Reply::Map(vec![
            (name("type"), name(kind)),
            (name("spec"), Reply::Map(details.collect())),
        ])
    };
    let index = |at: usize| typed("index", &[("index", i64::try_from(at).unwrap_or(i64::MAX))]);
    let limited_range = |last: i32, step: usize, limit: i64| {
        let step = i64::try_from(step).unwrap_or(i64::MAX);
        let details = [
            ("lastkey", last.into()),
            ("keystep", step),
            ("limit", limit),
        ];
        typed("range", &details)
    };
    let range = |last: i32, step: usize| limited_range(last, step, 0);
    let unknown = || typed("unknown", &[]);
    let (begin, find) = match spec.place {
        KeyPlace::Range { first, last, step } => (index(first), range(last, step)),
        KeyPlace::Counted { count, step } => {
            let step = i64::try_from(step).unwrap_or(i64::MAX);
            let details = [("keynumidx", 0), ("firstkey", 1), ("keystep", step)];
            (index(count), typed("keynum", &details))
        }
        KeyPlace::NamedByElements | KeyPlace::AfterStore => (unknown(), unknown()),
        KeyPlace::AfterWord { word, from } => {
            let from = i64::try_from(from).unwrap_or(i64::MAX);
            (after_word(word, from), range(0, 1))
        }
        // Searched from the end. At least one key follows the word.
        KeyPlace::AllAfterWord { word, .. } => (after_word(word, -2), range(-1, 1)),
        // The keys are the first half of the arguments after the word.
        KeyPlace::Streams { from } => {
            let from = i64::try_from(from).unwrap_or(i64::MAX);
            (after_word("STREAMS", from), limited_range(-1, 1, 2))
        }
    };
    let mut fields = Vec::new();
    if let Some(notes) = spec.notes {
        fields.push((name("notes"), name(notes)));
    }
    fields.push((name("flags"), flags(spec.flags)));
    fields.push((name("begin_search"), begin));
    fields.push((name("find_keys"), find));
    Reply::Map(fields)
}

fn after_word(word: &'static str, from: i64) -> Reply {
    let details = vec![
        (Reply::bulk("keyword"), Reply::bulk(word)),
        (Reply::bulk("startfrom"), Reply::Integer(from)),
    ];
    Reply::Map(vec![
        (Reply::bulk("type"), Reply::bulk("keyword")),
        (Reply::bulk("spec"), Reply::Map(details)),
    ])
}

/// How a command uses keys.
fn flags(flags: KeyFlags) -> Reply {
    Reply::Set(flags.iter().copied().map(Reply::Simple).collect())
}

/// `COMMAND DOCS [name …]`: documents these commands, or all if no name is given. Unknown names are skipped.
fn docs(environment: &Environment, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    let named = |row| named_document(row, environment.reported_version);
    Ok(Reply::Map(match arguments {
        [_, _, names @ ..] if !names.is_empty() => names
            .iter()
            .filter_map(|name| table::find_by_full_name(name))
            .map(named)
            .collect(),
        _ => table::commands().map(named).collect(),
    }))
}

fn named_document(row: &'static Row, told: RedisVersion) -> (Reply, Reply) {
    (Reply::bulk(row.name), document(row, told))
}

/// A map under construction. The fields are in Redis's order.
#[derive(Default)]
struct Fields(Vec<(Reply, Reply)>);

impl Fields {
    fn put(&mut self, name: &'static str, value: Reply) {
        self.0.push((Reply::bulk(name), value));
    }

    fn put_text(&mut self, name: &'static str, text: Option<&'static str>) {
        if let Some(text) = text {
            self.put(name, Reply::bulk(text));
        }
    }

    fn put_flags(&mut self, name: &'static str, flags: &[(&'static str, bool)]) {
        let set = flags.iter().filter(|(_, is_set)| *is_set);
        let set: Vec<Reply> = set.map(|(flag, _)| Reply::Simple(flag)).collect();
        if !set.is_empty() {
            self.put(name, Reply::Set(set));
        }
    }
}

/// The document of a command as of the version that clients are told: options and changes of later versions are left out.
fn document(row: &'static Row, told: RedisVersion) -> Reply {
    let mut fields = Fields::default();
    fields.put("summary", Reply::bulk(row.summary));
    fields.put("since", Reply::bulk(row.since));
    fields.put("group", Reply::bulk(row.group.name()));
    fields.put("complexity", Reply::bulk(row.complexity));
    let flags = [
        ("deprecated", row.deprecated.is_some()),
        ("syscmd", row.is_system),
    ];
    fields.put_flags("doc_flags", &flags);
    fields.put_text("deprecated_since", row.deprecated.map(|(since, _)| since));
    fields.put_text("replaced_by", row.deprecated.map(|(_, by)| by));
    if !row.history.is_empty() {
        let known = row.history.iter().filter(|(since, _)| told.has(since));
        let changes = known
            .map(|(since, change)| Reply::Array(vec![Reply::bulk(*since), Reply::bulk(*change)]));
        fields.put("history", Reply::Set(changes.collect()));
    }
    if !row.arguments.is_empty() {
        fields.put("arguments", arguments(row.arguments, told));
    }
    if !row.subcommands.is_empty() {
        let subcommands = table::subcommands(row).iter();
        let documents = subcommands.map(|row| named_document(row, told));
        fields.put("subcommands", Reply::Map(documents.collect()));
    }
    Reply::Map(fields.0)
}

fn arguments(all: &'static [Argument], told: RedisVersion) -> Reply {
    let all = all.iter();
    let known = all.filter(|one| one.since.is_none_or(|since| told.has(since)));
    Reply::Array(known.map(|one| argument(one, told)).collect())
}

fn argument(argument: &'static Argument, told: RedisVersion) -> Reply {
    let mut fields = Fields::default();
    fields.put("name", Reply::bulk(argument.name().into_owned()));
    fields.put("type", Reply::bulk(argument.kind.name()));
    if let Some(text) = argument.display_text() {
        fields.put("display_text", Reply::bulk(text.into_owned()));
    }
    if let Some(number) = argument.key_spec {
        fields.put("key_spec_index", Reply::Integer(number));
    }
    fields.put_text("token", argument.token);
    fields.put_text("since", argument.since);
    fields.put_text("deprecated_since", argument.deprecated_since);
    let flags = [
        ("optional", argument.is_optional),
        ("multiple", argument.is_multiple),
        ("multiple_token", argument.repeats_token),
    ];
    fields.put_flags("flags", &flags);
    if matches!(argument.kind, Kind::OneOf | Kind::Block) {
        fields.put("arguments", arguments(argument.parts, told));
    }
    Reply::Map(fields.0)
}

//! LATENCY and SLOWLOG.

use bytes::Bytes;

use crate::connection_commands::shared::{
    lossy_text, not_implemented, number, refusal, unknown_or_wrong_number,
};
use crate::slowlog::SlowlogEntry;
use crate::state::ServerState;
use crate::statistics::{CommandStatistics, LatencySeries};
use quoin_data::command::arguments::{argument, integer_at_least, rest, to_usize};
use quoin_data::command::help::help;
use quoin_data::command::row::Row;
use quoin_data::error::CommandError;
use quoin_resp::reply::Reply;

/// `LATENCY <subcommand> …`.
pub(super) fn execute(
    subcommand: &str,
    arguments: &[Bytes],
    state: &ServerState,
) -> Result<Reply, CommandError> {
    match subcommand {
        "doctor" => Ok(Reply::Verbatim("txt", doctor(state).into())),
        "graph" => graph(argument(arguments, 2)?, state),
        "help" => Ok(help(HELP_TITLE, HELP)),
        "histogram" => Ok(histogram(rest(arguments, 2), state)),
        "history" => Ok(history(argument(arguments, 2)?, state)),
        "latest" => Ok(latest(state)),
        "reset" => {
            let events: Vec<&[u8]> = rest(arguments, 2).iter().map(AsRef::as_ref).collect();
            Ok(Reply::count(state.latency.reset(&events)))
        }
        _ => Err(not_implemented()),
    }
}

fn find(event: &[u8], state: &ServerState) -> Option<LatencySeries> {
    let series = state.latency.series();
    let found = series.iter().find(|(name, _)| name.as_bytes() == event);
    found.map(|(_, series)| series.clone())
}

fn history(event: &[u8], state: &ServerState) -> Reply {
    let samples = find(event, state).unwrap_or_default().samples;
    let shown = samples.iter().map(|sample| {
        Reply::Array(vec![
            Reply::Integer(sample.time_s),
            Reply::Integer(sample.latency_ms),
        ])
    });
    Reply::Array(shown.collect())
}

fn latest(state: &ServerState) -> Reply {
    let series = state.latency.series();
    let shown = series.iter().filter_map(|(event, series)| {
        let last = series.samples.back()?;
        Some(Reply::Array(vec![
            Reply::bulk(*event),
            Reply::Integer(last.time_s),
            Reply::Integer(last.latency_ms),
            Reply::Integer(series.max_ms),
        ]))
    });
    Reply::Array(shown.collect())
}

/// A line for each sample instead of Redis's drawing.
fn graph(event: &[u8], state: &ServerState) -> Result<Reply, CommandError> {
    let Some(series) = find(event, state) else {
        return Err(refusal(format!(
            "ERR No samples available for event '{}'",
            lossy_text(event)
        )));
    };
    let latencies = || series.samples.iter().map(|sample| sample.latency_ms);
    let mut text = format!(
        "{} - high {} ms, low {} ms (all time high {} ms)\n{}\n",
        lossy_text(event),
        latencies().max().unwrap_or(0),
        latencies().min().unwrap_or(0),
        series.max_ms,
        "-".repeat(80)
    );
    let now_s = state.clock.now_ms() / 1000;
    for sample in &series.samples {
        let age_s = (now_s - sample.time_s).max(0);
        text.push_str(&format!("{age_s}s ago: {} ms\n", sample.latency_ms));
    }
    Ok(Reply::Verbatim("txt", text.into()))
}

fn doctor(state: &ServerState) -> String {
    if state.config.live.latency_monitor_threshold_ms() == 0 {
        return "Latency monitoring is disabled. Turn it on with CONFIG SET \
                latency-monitor-threshold <milliseconds>.\n"
            .to_owned();
    }
    let series = state.latency.series();
    if series.is_empty() {
        return "No slow events were seen.\n".to_owned();
    }
    let mut text = String::new();
    for (event, series) in series.iter() {
        let sum: i64 = series.samples.iter().map(|sample| sample.latency_ms).sum();
        let count = i64::try_from(series.samples.len()).unwrap_or(1).max(1);
        text.push_str(&format!(
            "{event}: {count} latency spikes (average {} ms). Worst all time event {} ms.\n",
            sum / count,
            series.max_ms
        ));
    }
    text.push_str("SLOWLOG GET shows which commands were slow.\n");
    text
}

/// `LATENCY HISTOGRAM [command [command …]]`: the distribution of durations of commands that were
/// called.
fn histogram(names: &[Bytes], state: &ServerState) -> Reply {
    let is_wanted = |row: &Row| {
        // The name of a container selects all of its subcommands.
        let container = row.name.split('|').next().unwrap_or_default();
        let is_named = |name: &Bytes| {
            name.eq_ignore_ascii_case(row.name.as_bytes())
                || name.eq_ignore_ascii_case(container.as_bytes())
        };
        names.is_empty() || names.iter().any(is_named)
    };
    let called = state
        .statistics
        .commands()
        .filter(|(row, command)| command.calls.get() > 0 && is_wanted(row));
    Reply::Map(
        called
            .map(|(row, command)| (Reply::bulk(row.name), distribution(command)))
            .collect(),
    )
}

fn distribution(command: &CommandStatistics) -> Reply {
    let mut before = 0;
    let mut buckets = Vec::new();
    for (end_us, calls) in command.durations.cumulative_us() {
        if calls > before {
            buckets.push((number(end_us), number(calls)));
        }
        before = calls;
    }
    Reply::Map(vec![
        (Reply::bulk("calls"), number(before)),
        (Reply::bulk("histogram_usec"), Reply::Map(buckets)),
    ])
}

const HELP_TITLE: &str = "LATENCY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:";

#[rustfmt::skip]
const HELP: &[&str] = &[
    "DOCTOR",
    "    Return a human readable latency analysis report.",
    "GRAPH <event>",
    "    Return an ASCII latency graph for the <event> class.",
    "HISTORY <event>",
    "    Return time-latency samples for the <event> class.",
    "LATEST",
    "    Return the latest latency samples for all events.",
    "RESET [<event> ...]",
    "    Reset latency data of one or more <event> classes.",
    "    (default: reset all data for all event classes)",
    "HISTOGRAM [COMMAND ...]",
    "    Return a cumulative distribution of latencies in the format of a histogram for the specified command names.",
    "    If no commands are specified then all histograms are replied.",
];

/// Entries that SLOWLOG GET returns by default.
const DEFAULT_COUNT: i64 = 10;

/// `SLOWLOG <subcommand> …`.
pub(super) fn slowlog(
    subcommand: &str,
    arguments: &[Bytes],
    state: &ServerState,
) -> Result<Reply, CommandError> {
    match subcommand {
        "get" => slowlog_get(arguments, state),
        "help" => Ok(help(SLOWLOG_HELP_TITLE, SLOWLOG_HELP)),
        "len" => Ok(Reply::count(state.slowlog.count())),
        "reset" => {
            state.slowlog.reset();
            Ok(Reply::OK)
        }
        _ => Err(not_implemented()),
    }
}

fn slowlog_get(arguments: &[Bytes], state: &ServerState) -> Result<Reply, CommandError> {
    let count = match arguments {
        [_, _] => DEFAULT_COUNT,
        [_, _, count] => {
            integer_at_least(count, -1, "ERR count should be greater than or equal to -1")?
        }
        _ => return Err(unknown_or_wrong_number(arguments)),
    };
    let count = if count == -1 {
        usize::MAX
    } else {
        to_usize(count)
    };
    let entries = state.slowlog.newest(count);
    Ok(Reply::Array(entries.into_iter().map(entry_reply).collect()))
}

fn entry_reply(entry: SlowlogEntry) -> Reply {
    Reply::Array(vec![
        Reply::Integer(entry.id),
        Reply::Integer(entry.time_s),
        Reply::Integer(entry.duration_us),
        Reply::Array(entry.arguments.into_iter().map(Reply::Bulk).collect()),
        Reply::bulk(entry.address),
        Reply::bulk(entry.name),
    ])
}

const SLOWLOG_HELP_TITLE: &str = "SLOWLOG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:";

#[rustfmt::skip]
const SLOWLOG_HELP: &[&str] = &[
    "GET [<count>]",
    "    Return top <count> entries from the slowlog (default: 10, -1 mean all).",
    "    Entries are made of:",
    "    id, timestamp, time in microseconds, arguments array, client IP and port,",
    "    client name",
    "LEN",
    "    Return the length of the slowlog.",
    "RESET",
    "    Reset the slowlog.",
];

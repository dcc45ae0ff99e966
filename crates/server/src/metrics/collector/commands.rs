//! Metrics of commands.

use std::fmt;

use crate::metrics::writer::{Histogram, Writer};
use crate::state::ServerState;
use crate::statistics::CommandStatistics;

/// Writes the metrics of commands.
pub(super) fn write(state: &ServerState, writer: &mut Writer<'_>) -> fmt::Result {
    let statistics = &state.statistics;
    writer.counter(
        "commands_processed",
        "Commands that were carried out",
        statistics.commands_processed.get(),
    )?;
    let used: Vec<(&str, &CommandStatistics)> = statistics
        .commands()
        .map(|(row, command)| (row.name, command))
        .filter(|(_, one)| one.calls.get() + one.rejected_calls.get() + one.failed_calls.get() > 0)
        .collect();
    let of_each = |value: fn(&CommandStatistics) -> u64| {
        let used = used.iter();
        used.map(move |&(name, command)| (name, value(command)))
    };
    writer.counters(
        "command_calls",
        "How often each command was carried out",
        "command",
        of_each(|command| command.calls.get()),
    )?;
    writer.counters(
        "command_seconds",
        "Time that each command took altogether, commits included",
        "command",
        used.iter()
            .map(|&(name, command)| (name, command.durations.sum_us() as f64 / 1e6)),
    )?;
    writer.counters(
        "command_failures",
        "How often each command was carried out and answered with an error",
        "command",
        of_each(|command| command.failed_calls.get()),
    )?;
    writer.counters(
        "command_rejections",
        "How often each command was refused before it was carried out",
        "command",
        of_each(|command| command.rejected_calls.get()),
    )?;
    writer.histograms(
        "command_duration_seconds",
        "How long commands took, commits included, by the group of the command",
        "group",
        by_group(state).into_iter(),
    )?;
    // A copy: commands that fail want the same lock.
    let errors = statistics.errors().clone();
    writer.counters(
        "error_replies",
        "Replies that were errors, by their code",
        "code",
        errors.iter().map(|(code, count)| (code.as_str(), *count)),
    )
}

/// Durations by the group of the command, in the order in which groups come first.
fn by_group(state: &ServerState) -> Vec<(&'static str, Histogram)> {
    let mut groups: Vec<(&'static str, Histogram)> = Vec::new();
    for (row, command) in state.statistics.commands() {
        let name = row.group.name();
        match groups.iter_mut().find(|(group, _)| *group == name) {
            Some((_, histogram)) => histogram.add(&command.durations),
            None => {
                let mut histogram = Histogram::default();
                histogram.add(&command.durations);
                groups.push((name, histogram));
            }
        }
    }
    groups.retain(|(_, histogram)| histogram.count() > 0);
    groups
}

//! What a running server reports about itself, for a store whose folder it has open.

use std::path::Path;
use std::time::{Duration, Instant};

use super::report::{Level, Line};
use super::target::LATENCY_TRIES;
use quoin_base::size::{counted, size};
use quoin_client::{
    Address, Beside, BesideError, Client, ClientError, InfoFields, Places, connect_beside,
};
use quoin_config::{LoadedSettings, server_places};

/// Longest time for each answer of the server. A health check should not wait longer.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// At this many tenths of `maxclients`, an operator should check.
const CLIENTS_TENTHS_MAX: u64 = 9;
/// A key that no client has: reading it asks the store.
const KEY_READ: &str = "quoin:doctor";

/// Asks the server that has the settings' data folder open, and shows a line for each fact.
pub(super) fn check(loaded: &LoadedSettings, beside: &Beside, show: &mut dyn FnMut(&Line)) {
    let places = server_places(loaded, beside);
    if let Err(line) = ask(&places, &loaded.settings.data_dir, show) {
        show(&line);
    }
}

fn ask(places: &Places, folder: &Path, show: &mut dyn FnMut(&Line)) -> Result<(), Line> {
    let unanswered = |error| no_answer(&error);
    let (mut client, address) = match connect_beside(places, folder, Some(ANSWER_MAX)) {
        Ok(connected) => connected,
        Err(BesideError::Client(error)) => return Err(no_answer(&error)),
        Err(BesideError::OtherServer { address, theirs }) => {
            let text = format!(
                "a server has {} open, but the one at {address} has {theirs} open: give the \
                 address of the right one with --server",
                folder.display()
            );
            return Err(Line::new(Level::Warn, SERVER, text));
        }
    };
    let sections = ["server", "clients", "persistence", "stats", "quoin"];
    let facts = client.info_fields(&sections).map_err(unanswered)?;
    show(&server(&address, &facts));
    show(&reads(&mut client).map_err(unanswered)?);
    for line in [
        room(&facts),
        store(&facts),
        backups(&facts),
        clients(&facts),
    ] {
        show(&line);
    }
    Ok(())
}

const SERVER: &str = "server";

fn no_answer(error: &ClientError) -> Line {
    let (level, advice) = match error {
        ClientError::Connect { .. } => (
            Level::Warn,
            "a server has the folder open, but it was not found: give its address with --server",
        ),
        ClientError::Lost { .. } => (Level::Fail, "it does not answer: its log may say why"),
        ClientError::Refused { .. } => (Level::Warn, "it could not be asked"),
    };
    Line::new(level, SERVER, format!("{error}; {advice}"))
}

fn server(address: &Address, facts: &InfoFields) -> Line {
    let (version, process) = (facts.text("quoin_version"), facts.text("process_id"));
    let uptime_s = facts.number("uptime_in_seconds");
    let mut text = format!(
        "process {process} at {address} has the folder open, runs version {version}, for \
         {uptime_s} s"
    );
    let own = env!("CARGO_PKG_VERSION");
    if version != own {
        text.push_str(&format!("; this program is version {own}"));
    }
    Line::ok(SERVER, text)
}

/// How long reads take for a client.
fn reads(client: &mut Client) -> Result<Line, ClientError> {
    let mut times = Vec::with_capacity(LATENCY_TRIES);
    for _ in 0..LATENCY_TRIES {
        let begun = Instant::now();
        let reply = client.call(&["EXISTS", KEY_READ])?;
        if reply.integer().is_none() {
            return Ok(Line::new(
                Level::Fail,
                "reads",
                client.unexpected(&reply).to_string(),
            ));
        }
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    let milliseconds = |at: usize| times.get(at).map_or(0.0, |time| time.as_secs_f64() * 1e3);
    let text = format!(
        "a read takes {:.2}, {:.2} ms (median, longest of {LATENCY_TRIES})",
        milliseconds(LATENCY_TRIES / 2),
        milliseconds(LATENCY_TRIES - 1)
    );
    Ok(Line::ok("reads", text))
}

fn room(facts: &InfoFields) -> Line {
    const NAME: &str = "disk";
    let free_bytes = facts.number("store_disk_free_bytes");
    let text = format!(
        "data file {}, of which {} are in use; {} are free on the disk",
        size(facts.number("store_disk_bytes")),
        size(facts.number("store_disk_used_bytes")),
        size(free_bytes)
    );
    if facts.text("store_takes_growth") == "0" {
        let text =
            format!("{text}; commands that add data are refused - make room, or raise maxmemory");
        return Line::new(Level::Fail, NAME, text);
    }
    // 0 if the system does not say.
    let nearly_full_bytes = facts.number("store_disk_nearly_full_bytes");
    if (1..nearly_full_bytes).contains(&free_bytes) {
        return Line::new(Level::Warn, NAME, format!("{text} - make room"));
    }
    Line::ok(NAME, text)
}

fn store(facts: &InfoFields) -> Line {
    let text = format!(
        "{} since the start; {} got an error from the store",
        counted(facts.number("commits"), "commit", "commits"),
        counted(facts.number("store_errors"), "batch", "batches")
    );
    Line::ok("store", text)
}

fn backups(facts: &InfoFields) -> Line {
    const NAME: &str = "backups";
    let archive_error = facts.text("journal_archive_error");
    if !archive_error.is_empty() {
        let text = format!("the journal's archive cannot be written: {archive_error}");
        return Line::new(Level::Warn, NAME, text);
    }
    let command_error = facts.text("journal_archive_command_error");
    if !command_error.is_empty() {
        let text = format!("journal-archive-command failed: {command_error}");
        return Line::new(Level::Warn, NAME, text);
    }
    let error = facts.text("backup_last_error");
    if !error.is_empty() {
        let text = format!("the last one failed: {error}");
        return Line::new(Level::Warn, NAME, text);
    }
    match facts.text("backup_last_file") {
        "" => Line::ok(NAME, "none"),
        file => Line::ok(NAME, format!("the last good one is {file}")),
    }
}

fn clients(facts: &InfoFields) -> Line {
    const NAME: &str = "clients";
    let (clients, max) = (
        facts.number("connected_clients"),
        facts.number("maxclients"),
    );
    let text = format!("{clients} of at most {max}");
    if clients.saturating_mul(10) >= max.saturating_mul(CLIENTS_TENTHS_MAX) {
        let text = format!("{text} - raise maxclients, or find clients that do not disconnect");
        return Line::new(Level::Warn, NAME, text);
    }
    Line::ok(NAME, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(fields: &[(&str, &str)]) -> InfoFields {
        fields.iter().copied().collect()
    }

    #[test]
    fn a_full_disk_is_a_failure_and_a_nearly_full_one_a_warning() {
        let level = |takes, free| {
            let facts = facts(&[
                ("store_takes_growth", takes),
                ("store_disk_free_bytes", free),
                ("store_disk_nearly_full_bytes", "5000"),
            ]);
            room(&facts).level
        };
        assert_eq!(level("0", "1000000000000"), Level::Fail);
        assert_eq!(level("1", "1000"), Level::Warn);
        assert_eq!(level("1", "1000000000000"), Level::Ok);
        assert_eq!(level("1", "0"), Level::Ok);
    }

    #[test]
    fn failed_backups_and_too_many_clients_are_warnings() {
        assert_eq!(backups(&facts(&[])).level, Level::Ok);
        for field in [
            "backup_last_error",
            "journal_archive_error",
            "journal_archive_command_error",
        ] {
            let line = backups(&facts(&[(field, "no room")]));
            assert_eq!(line.level, Level::Warn);
            assert!(line.text.contains("no room"), "{}", line.text);
        }
        let level = |connected| {
            clients(&facts(&[
                ("connected_clients", connected),
                ("maxclients", "100"),
            ]))
            .level
        };
        assert_eq!((level("89"), level("90")), (Level::Ok, Level::Warn));
    }
}

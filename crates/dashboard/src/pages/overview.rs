//! The overview: problems, the most important figures, and the last hour.

use maud::{Markup, html};

use crate::activity;
use crate::chart::{Line, chart};
use crate::figures::{about, bytes, count, duration, relative};
use crate::frame::figure;
use crate::history::{Sample, means, rates, values};
use crate::view::{Info, NoPage, Page, View};

/// A last backup of this age raises an alert.
const BACKUP_AGE_MAX_MS: i64 = 26 * 3_600_000;
/// Above this fraction of `maxmemory` or `maxclients`, an alert is raised.
const NEARLY: f64 = 0.9;

const SECTIONS: [&str; 6] = [
    "server",
    "clients",
    "memory",
    "stats",
    "persistence",
    "quoin",
];

pub(crate) fn page(view: &mut View<'_>) -> Result<Page, NoPage> {
    let body = match view.info(&SECTIONS)? {
        Err(line) => html! {
            h1 { "Overview" }
            p.empty { "This user may not run INFO: " (line) }
        },
        Ok(info) => {
            let keyspace = view.info(&["keyspace"])?.ok();
            let most_active = activity::most_active(view)?;
            html! {
                h1.visually-hidden { "Overview" }
                (alerts(&info, view.now_ms))
                (figures(&info, keyspace.as_ref(), view.now_ms))
                (most_active)
                (charts(view.history, view.now_ms))
            }
        }
    };
    Ok(Page {
        title: "Overview".to_owned(),
        place: "overview",
        refresh_s: 5,
        body,
    })
}

/// Something that needs an operator's attention.
struct Alert {
    is_urgent: bool,
    text: String,
}

fn alerts(info: &Info, now_ms: i64) -> Markup {
    let alerts = alerts_of(info, now_ms);
    html! {
        section.alerts aria-label="Alerts" {
            @if alerts.is_empty() { p.fine { "No problems." } }
            @for alert in &alerts {
                p.alert.urgent[alert.is_urgent] { (alert.text) }
            }
        }
    }
}

fn alerts_of(info: &Info, now_ms: i64) -> Vec<Alert> {
    let mut alerts = Vec::new();
    let mut add = |is_true: bool, is_urgent: bool, text: String| {
        if is_true {
            alerts.push(Alert { is_urgent, text });
        }
    };
    add(
        info.text("store_reachable") == "0",
        true,
        "The store does not answer. Commands that use data wait or fail.".to_owned(),
    );
    add(
        info.text("store_takes_growth") == "0",
        true,
        "Commands that add data are refused: the disk is full, or maxmemory is reached.".to_owned(),
    );
    let free = info.bytes("store_disk_free_bytes");
    let nearly_full = info.bytes("store_disk_nearly_full_bytes");
    add(
        free > 0.0 && free < nearly_full,
        true,
        format!("The disk is nearly full: {} free.", bytes(free)),
    );
    let archive_error = info.text("journal_archive_error");
    add(
        !archive_error.is_empty(),
        true,
        format!("The journal cannot be archived: {archive_error}"),
    );
    let command_error = info.text("journal_archive_command_error");
    add(
        !command_error.is_empty(),
        true,
        format!("journal-archive-command failed: {command_error}"),
    );
    add(
        info.text("rdb_last_bgsave_status") == "err",
        true,
        format!("The last backup failed: {}", info.text("backup_last_error")),
    );
    let saved_ms = info.number("rdb_last_save_time") * 1_000;
    add(
        info.number("rdb_saves") > 0 && now_ms - saved_ms > BACKUP_AGE_MAX_MS,
        false,
        format!("The last backup was {}.", relative(saved_ms, now_ms)),
    );
    let lost = info.number("unknown_results_unresolved");
    add(
        lost > 0,
        false,
        format!(
            "Commands answered with UNKNOWN since the start: {}.",
            count(lost)
        ),
    );
    let (data, data_max) = (info.bytes("store_data_bytes"), info.bytes("maxmemory"));
    add(
        data_max > 0.0 && data > data_max * NEARLY,
        false,
        format!(
            "The data takes {} of maxmemory ({}).",
            bytes(data),
            bytes(data_max)
        ),
    );
    let (clients, clients_max) = (info.bytes("connected_clients"), info.bytes("maxclients"));
    add(
        clients_max > 0.0 && clients > clients_max * NEARLY,
        false,
        format!("{clients} of at most {clients_max} clients are connected."),
    );
    let rejected = info.number("rejected_connections");
    add(
        rejected > 0,
        false,
        format!("Refused connections since the start: {}.", count(rejected)),
    );
    let denied = info.number("acl_access_denied_auth");
    add(
        denied > 0,
        false,
        format!("Failed logins since the start: {}.", count(denied)),
    );
    alerts
}

fn figures(info: &Info, keyspace: Option<&Info>, now_ms: i64) -> Markup {
    let is_embedded = info.text("store") != "fdb";
    let keys: i64 = keyspace.map_or(0, |keyspace| {
        let databases = keyspace.beginning("db");
        databases.iter().map(|(_, fields)| keys_of(fields)).sum()
    });
    html! {
        dl.figures {
            (figure("Commands per second", &about(info.bytes("instantaneous_ops_per_sec")),
                &format!("{} since the start", about(info.bytes("total_commands_processed")))))
            (figure("Clients", &count(info.number("connected_clients")),
                &format!("{} waiting", count(info.number("blocked_clients")))))
            @if keyspace.is_some() { (figure("Keys", &count(keys), "")) }
            (figure("Memory", &bytes(info.bytes("used_memory")),
                &format!("peak {}", bytes(info.bytes("used_memory_peak")))))
            @if is_embedded {
                (figure("Data", &bytes(info.bytes("store_data_bytes")), &match info.bytes("maxmemory") {
                    0.0 => String::new(),
                    limit => format!("of {}", bytes(limit)),
                }))
                (figure("Disk", &bytes(info.bytes("store_disk_bytes")),
                    &format!("{} free", bytes(info.bytes("store_disk_free_bytes")))))
                (figure("Journal", &bytes(info.bytes("journal_backlog_bytes")),
                    &format!("since the checkpoint, fsync {}", info.text("fsync"))))
                (figure("Last backup", &match info.number("rdb_saves") {
                    0 => "none".to_owned(),
                    _ => relative(info.number("rdb_last_save_time") * 1_000, now_ms),
                }, &match info.bytes("backup_last_bytes") {
                    0.0 => "since the start".to_owned(),
                    size => bytes(size),
                }))
            } @else {
                (figure("Cluster", if info.text("store_reachable") == "0" { "unreachable" } else { "reachable" },
                    &format!("{} servers", info.text("living_servers"))))
                (figure("Conflicts", &about(info.bytes("conflicts")),
                    &format!("in {} commits", about(info.bytes("commits")))))
            }
            (figure("Uptime", &duration(info.number("uptime_in_seconds") * 1_000),
                &format!("process {}", info.text("process_id"))))
        }
    }
}

/// The number in `keys=…,expires=…`.
fn keys_of(fields: &str) -> i64 {
    let mut fields = fields.split(',');
    let keys = fields.find_map(|field| field.strip_prefix("keys="));
    keys.and_then(|keys| keys.parse().ok()).unwrap_or(0)
}

fn charts(samples: &[Sample], now_ms: i64) -> Markup {
    let line = |name, points| Line { name, points };
    html! {
        section.charts aria-label="The last hour" {
            (chart("Commands per second", &[line("", rates(samples, |one| one.commands))], about, now_ms))
            (chart("Mean commit time", &[
                line("", means(samples, |one| one.commits_us, |one| one.commits_timed)),
            ], |us| format!("{:.2} ms", us / 1_000.0), now_ms))
            (chart("Network per second", &[
                line("in", rates(samples, |one| one.input_bytes)),
                line("out", rates(samples, |one| one.output_bytes)),
            ], bytes, now_ms))
            (chart("Memory", &[line("", values(samples, |one| one.memory_bytes))], bytes, now_ms))
            (chart("Clients", &[line("", values(samples, |one| one.clients))], about, now_ms))
            (chart("Errors per second", &[line("", rates(samples, |one| one.errors))], about, now_ms))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(fields: &[(&str, &str)]) -> Vec<String> {
        let info: Info = fields.iter().copied().collect();
        let now_ms = 100 * 3_600_000;
        alerts_of(&info, now_ms)
            .into_iter()
            .map(|alert| alert.text)
            .collect()
    }

    #[test]
    fn a_healthy_server_has_no_alerts() {
        let healthy = [
            ("store_reachable", "1"),
            ("store_takes_growth", "1"),
            ("store_disk_free_bytes", "1000"),
            ("store_disk_nearly_full_bytes", "100"),
            ("rdb_last_bgsave_status", "ok"),
            ("maxclients", "10"),
            ("connected_clients", "9"),
        ];
        assert_eq!(texts(&healthy), [""; 0]);
    }

    #[test]
    fn each_trouble_is_told() {
        for (fields, told) in [
            (&[("store_reachable", "0")][..], "does not answer"),
            (&[("store_takes_growth", "0")], "are refused"),
            (
                &[
                    ("store_disk_free_bytes", "10"),
                    ("store_disk_nearly_full_bytes", "100"),
                ],
                "nearly full: 10 B",
            ),
            (
                &[("journal_archive_error", "no space")],
                "archived: no space",
            ),
            (
                &[("journal_archive_command_error", "exit status: 1")],
                "command failed: exit status: 1",
            ),
            (
                &[
                    ("rdb_last_bgsave_status", "err"),
                    ("backup_last_error", "x"),
                ],
                "failed: x",
            ),
            (
                &[("rdb_saves", "1"), ("rdb_last_save_time", "3600")],
                "backup was 4 days ago",
            ),
            (
                &[("maxclients", "10"), ("connected_clients", "10")],
                "10 of at most 10",
            ),
            (&[("acl_access_denied_auth", "3")], "since the start: 3"),
        ] {
            let texts = texts(fields);
            assert!(
                matches!(texts.as_slice(), [text] if text.contains(told)),
                "{texts:?}"
            );
        }
    }

    #[test]
    fn keys_are_counted_over_databases() {
        assert_eq!(keys_of("keys=12,expires=3,avg_ttl=0"), 12);
        assert_eq!(keys_of("other"), 0);
    }
}

//! Hints about settings that Redis has and Quoin does not.

use crate::parameters::PARAMETERS;

/// What to use instead of Redis settings that Quoin does not have, by the beginning of their names.
const INSTEAD: [(&str, &str); 16] = [
    (
        "appendonly",
        "every write is kept; fsync says when it is on the disk",
    ),
    ("appendfsync", "its place takes fsync"),
    ("dir", "its place takes data-dir"),
    (
        "save",
        "every write is kept as it comes; fsync says when it is on the disk",
    ),
    ("daemonize", "let a service manager start it"),
    ("supervised", "let a service manager start it"),
    ("pidfile", "let a service manager start it"),
    (
        "syslog-",
        "the log goes to the standard error, or to logfile",
    ),
    ("tls-", "there is no such choice"),
    ("cluster-announce-ip", "its place takes announce-ip"),
    (
        "cluster-announce-hostname",
        "its place takes announce-hostname",
    ),
    (
        "cluster-",
        "servers on one FoundationDB cluster share their data",
    ),
    ("replica-announce-ip", "its place takes announce-ip"),
    ("replica-announce-port", "its place takes announce-port"),
    (
        "replicaof",
        "servers on one FoundationDB cluster share their data",
    ),
    (
        "slaveof",
        "servers on one FoundationDB cluster share their data",
    ),
];

/// The hint for a setting that Redis has and Quoin does not. `None` for other names.
pub fn of_redis(name: &str) -> Option<String> {
    let name = name.to_ascii_lowercase();
    let is_redis = PARAMETERS
        .iter()
        .any(|row| row.name == name || row.alias == name);
    if !is_redis || name.is_empty() {
        return None;
    }
    let instead = INSTEAD.iter().find(|(begin, _)| name.starts_with(begin));
    let instead = instead.map_or(String::new(), |(_, text)| format!(" ({text})"));
    Some(format!("; Redis has it, Quoin does not{instead}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table;

    #[test]
    fn a_setting_of_redis_is_known_as_such() {
        assert_eq!(
            of_redis("DaemonIze").as_deref(),
            Some("; Redis has it, Quoin does not (let a service manager start it)")
        );
        assert_eq!(
            of_redis("hz").as_deref(),
            Some("; Redis has it, Quoin does not")
        );
        assert_eq!(of_redis("prot"), None);
        assert_eq!(of_redis(""), None);
    }

    #[test]
    fn every_hint_is_of_a_setting_that_redis_has_and_quoin_has_not() {
        for (begin, _) in INSTEAD {
            assert!(
                PARAMETERS
                    .iter()
                    .any(|row| row.name.starts_with(begin) || row.alias.starts_with(begin)),
                "{begin}"
            );
            assert!(table::find(begin).is_none(), "{begin}");
        }
    }
}

//! Hints about settings that Redis has and Quoin does not.

use crate::parameters::PARAMETERS;

/// What to use instead of Redis settings that Quoin does not have, by the beginning of their names.
const INSTEAD: [(&str, &str); 16] = [
    (
        "appendonly",
        "every write is kept; fsync sets when it reaches the disk",
    ),
    ("appendfsync", "use fsync instead"),
    ("dir", "use data-dir instead"),
    (
        "save",
        "every write is kept at once; fsync sets when it reaches the disk",
    ),
    ("daemonize", "use a service manager instead"),
    ("supervised", "use a service manager instead"),
    ("pidfile", "use a service manager instead"),
    ("syslog-", "the log goes to standard error, or to logfile"),
    ("tls-", "this cannot be configured"),
    ("cluster-announce-ip", "use announce-ip instead"),
    ("cluster-announce-hostname", "use announce-hostname instead"),
    (
        "cluster-",
        "servers on one FoundationDB cluster share their data",
    ),
    ("replica-announce-ip", "use announce-ip instead"),
    ("replica-announce-port", "use announce-port instead"),
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
            Some("; Redis has it, Quoin does not (use a service manager instead)")
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

//! Values with special rules: lists of addresses, and Redis's `save`, `client-output-buffer-limit`,
//! `notify-keyspace-events` and similar ones. The texts of the refusals are those of Redis 7.2
//! (`config.c`).

use std::net::{IpAddr, SocketAddr};

use crate::settings::{
    DashboardAddress, EvictionPolicy, KeysPattern, OutputLimit, OutputLimits, Permissions,
};
use crate::value::{Kind, Special, Value, parse_bytes};
use quoin_base::events::EventClasses;
use quoin_base::limits::{
    BIND_ADDRESSES_MAX, DATABASES_MAX, HOST_NAME_BYTES_MAX, MASTER_NAME_BYTES_MAX,
    MASTER_NAMES_MAX, METRICS_KEYS_PATTERNS_MAX, ROOT_PREFIX_BYTES_MAX,
};
use quoin_base::redis_version::RedisVersion;
use quoin_tls::{AuthClients, Password, Version};

const fn special(
    accepted: &'static str,
    normalise: fn(&str, &str) -> Result<String, String>,
) -> Special {
    Special {
        normalise,
        accepted,
        placeholder: "TEXT",
        is_list: false,
    }
}

/// IP addresses.
pub(super) const ADDRESSES: Special = Special {
    normalise: addresses,
    accepted: "at most 16 IP addresses, such as 127.0.0.1, ::1, or 0.0.0.0 for all IPv4 addresses",
    placeholder: "ADDRESSES",
    is_list: true,
};
/// An IP address with a port, or nothing.
pub(super) const SOCKET_ADDRESS: Special = Special {
    normalise: socket_address,
    accepted: "an IP address with a port, such as 127.0.0.1:9121 or [::1]:9121; empty for none",
    placeholder: "ADDRESS:PORT",
    is_list: false,
};
/// The URL of a collector of traces, or nothing.
pub(super) const TRACE_ENDPOINT: Special = Special {
    normalise: trace_endpoint,
    accepted: "an http or https URL with a host and a path, such as \
               http://127.0.0.1:4318/v1/traces; empty for none",
    placeholder: "URL",
    is_list: false,
};
/// An IP address with a port, the word `auto`, or nothing.
pub(super) const DASHBOARD_ADDRESS: Special = Special {
    normalise: dashboard_address,
    accepted: "an IP address with a port, such as 127.0.0.1:8379; auto; empty for none",
    placeholder: "ADDRESS:PORT",
    is_list: false,
};
/// An IP address, or nothing.
pub(super) const IP_ADDRESS: Special = Special {
    normalise: ip_address,
    accepted: "an IP address, such as 10.0.0.1 or fd00::1; empty for none",
    placeholder: "ADDRESS",
    is_list: false,
};
/// A host name, or nothing.
pub(super) const HOST_NAME: Special = Special {
    normalise: host_name,
    accepted: "a host name of at most 253 letters, digits, hyphens and dots; empty for none",
    placeholder: "NAME",
    is_list: false,
};
/// Names of masters.
pub(super) const MASTER_NAMES: Special = Special {
    normalise: master_names,
    accepted: "at most 64 names of up to 128 letters, digits, dots, hyphens and underscores",
    placeholder: "NAMES",
    is_list: true,
};
/// Patterns of names of keys, each perhaps with the number of a database.
pub(super) const KEYS_PATTERNS: Special = Special {
    normalise: keys_patterns,
    accepted: "at most 64 patterns as in KEYS, such as jobs:*; 3/jobs:* means database 3",
    placeholder: "PATTERNS",
    is_list: true,
};
/// The prefix under which a store holds everything of Quoin.
pub(super) const ROOT_PREFIX: Special = special("text of 1 to 128 bytes", root_prefix);
/// A folder. Its path must not be empty.
pub(super) const FOLDER: Special = Special {
    normalise: folder,
    accepted: "the path of a folder",
    placeholder: "PATH",
    is_list: false,
};
/// Redis's points of saving: seconds and changes.
pub(super) const SAVE_POINTS: Special = special("pairs of seconds and changes", save_points);
/// Redis's limits of output buffers for each class of clients.
pub(super) const OUTPUT_LIMITS: Special = special(
    "a class (normal, slave or pubsub), hard limit, soft limit and soft seconds, for one or more \
     classes",
    output_limits,
);
/// Redis's adjustments of the out-of-memory score.
pub(super) const OOM_SCORES: Special = special("three numbers from -2000 to 2000", oom_scores);
/// Redis's classes of keyspace events.
pub(super) const KEYSPACE_EVENTS: Special =
    special("letters from Ag$lshzxeKEtmdn", keyspace_events);
/// Versions of TLS.
pub(super) const TLS_PROTOCOLS: Special = special(
    "TLSv1.2, TLSv1.3, or both separated by a space; empty for both",
    tls_protocols,
);
/// Redis's policies of eviction. Quoin accepts only the one that evicts nothing.
pub(super) const EVICTION_POLICY: Special = Special {
    normalise: eviction_policy,
    accepted: "noeviction: nothing is evicted, because queues must not lose elements",
    placeholder: "NAME",
    is_list: false,
};
/// Permissions of a file.
pub(super) const PERMISSIONS: Special = Special {
    normalise: permissions,
    accepted: "octal digits from 0 to 777",
    placeholder: "DIGITS",
    is_list: false,
};
/// Percentiles between 0 and 100.
pub(super) const PERCENTILES: Special = special("numbers from 0 to 100", percentiles);

fn addresses(given: &str, _: &str) -> Result<String, String> {
    // Commas separate them too.
    let addresses = Vec::<IpAddr>::parse(&given.replace(',', " "))
        .ok_or("argument must be a list of IP addresses")?;
    if addresses.is_empty() {
        return Err("argument must name at least one address".to_owned());
    }
    if addresses.len() > BIND_ADDRESSES_MAX {
        return Err("Too many bind addresses specified.".to_owned());
    }
    Ok(addresses.render())
}

fn socket_address(given: &str, _: &str) -> Result<String, String> {
    match Option::<SocketAddr>::parse(given) {
        Some(address) => Ok(address.render()),
        None => Err("argument must be an IP address with a port".to_owned()),
    }
}

fn dashboard_address(given: &str, _: &str) -> Result<String, String> {
    match DashboardAddress::parse(&given.to_ascii_lowercase()) {
        Some(address) => Ok(address.render()),
        None => Err("argument must be an IP address with a port, or auto".to_owned()),
    }
}

fn ip_address(given: &str, _: &str) -> Result<String, String> {
    if given.is_empty() {
        return Ok(String::new());
    }
    let address = given.parse::<IpAddr>();
    let address = address.map_err(|_| "argument must be an IP address".to_owned())?;
    if address.is_unspecified() {
        return Err("argument must be an address that clients can connect to".to_owned());
    }
    Ok(address.to_string())
}

/// The URL of a collector. It needs a path, because a collector's port takes traces at
/// `/v1/traces`.
fn trace_endpoint(given: &str, _: &str) -> Result<String, String> {
    let schemes = ["http://", "https://"];
    let rest = schemes.iter().find_map(|scheme| given.strip_prefix(scheme));
    let parts = rest.and_then(|rest| rest.split_once('/'));
    let is_url = given.bytes().all(|byte| byte.is_ascii_graphic())
        && parts.is_some_and(|(host, path)| {
            !host.is_empty() && !host.contains('@') && !path.is_empty() && !path.contains('#')
        });
    match is_url || given.is_empty() {
        true => Ok(given.to_owned()),
        false => Err(format!("argument must be {}", TRACE_ENDPOINT.accepted)),
    }
}

/// Redis's rules for `cluster-announce-hostname`.
fn host_name(given: &str, _: &str) -> Result<String, String> {
    if given.len() > HOST_NAME_BYTES_MAX {
        return Err(format!(
            "Hostnames must be at most {HOST_NAME_BYTES_MAX} characters"
        ));
    }
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    match given.bytes().all(is_allowed) {
        true => Ok(given.to_owned()),
        false => {
            Err("Hostnames may only contain alphanumeric characters, hyphens or dots".to_owned())
        }
    }
}

/// Redis's rules for `sentinel monitor`. Separators may be spaces or commas.
fn master_names(given: &str, _: &str) -> Result<String, String> {
    let mut names: Vec<&str> = Vec::new();
    for name in given.split([' ', ',']).filter(|name| !name.is_empty()) {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        if name.len() > MASTER_NAME_BYTES_MAX || !name.bytes().all(is_allowed) {
            return Err(format!("'{name}' cannot be the name of a master"));
        }
        if names.contains(&name) {
            return Err(format!("the name '{name}' appears twice"));
        }
        names.push(name);
    }
    match names.len() {
        1..=MASTER_NAMES_MAX => Ok(names.join(" ")),
        _ => Err(format!("argument must be 1 to {MASTER_NAMES_MAX} names")),
    }
}

impl Value for KeysPattern {
    /// Digits and a slash in front name a database.
    fn parse(word: &str) -> Option<Self> {
        let (database, pattern) = match number_in_front(word) {
            Some((digits, pattern)) => (digits.parse().ok()?, pattern),
            None => (0, word),
        };
        (database < DATABASES_MAX && !pattern.is_empty()).then(|| KeysPattern {
            database,
            pattern: pattern.to_owned(),
        })
    }

    fn render(&self) -> String {
        match self.database {
            0 if number_in_front(&self.pattern).is_none() => self.pattern.clone(),
            database => format!("{database}/{}", self.pattern),
        }
    }
}

/// The digits in front of a slash, and what follows it.
fn number_in_front(word: &str) -> Option<(&str, &str)> {
    let (digits, rest) = word.split_once('/')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some((digits, rest))
}

fn keys_patterns(given: &str, _: &str) -> Result<String, String> {
    let patterns = Vec::<KeysPattern>::parse(given).ok_or(
        "argument must be name patterns, each optionally with a database such as 3/ in front",
    )?;
    if patterns.len() > METRICS_KEYS_PATTERNS_MAX {
        return Err(format!(
            "argument must be at most {METRICS_KEYS_PATTERNS_MAX} patterns"
        ));
    }
    Ok(patterns.render())
}

fn root_prefix(given: &str, _: &str) -> Result<String, String> {
    if (1..=ROOT_PREFIX_BYTES_MAX).contains(&given.len()) {
        return Ok(given.to_owned());
    }
    Err(format!(
        "argument must have 1 to {ROOT_PREFIX_BYTES_MAX} bytes"
    ))
}

fn folder(given: &str, _: &str) -> Result<String, String> {
    match given {
        "" => Err("argument must not be empty".to_owned()),
        path => Ok(path.to_owned()),
    }
}

fn eviction_policy(given: &str, present: &str) -> Result<String, String> {
    const POLICIES: Kind = Kind::OneOf(&[
        "volatile-lru",
        "volatile-lfu",
        "volatile-random",
        "volatile-ttl",
        "allkeys-lru",
        "allkeys-lfu",
        "allkeys-random",
        "noeviction",
    ]);
    let policy = POLICIES.normalise(given, present)?;
    match EvictionPolicy::NAMES.contains(&policy.as_str()) {
        true => Ok(policy),
        false => Err(format!(
            "Quoin evicts nothing, because queues must not lose elements: only {} is accepted",
            EvictionPolicy::NAMES.join(", ")
        )),
    }
}

fn save_points(given: &str, _: &str) -> Result<String, String> {
    if given.is_empty() {
        return Ok(String::new());
    }
    let wrong = || "Invalid save parameters".to_owned();
    // As in `strtoll`, an empty word is 0.
    let number = |word: &str| match word {
        "" => Some(0),
        word => word.parse::<i64>().ok(),
    };
    let numbers: Option<Vec<i64>> = given.split(' ').map(number).collect();
    let numbers = numbers.ok_or_else(wrong)?;
    let (pairs, rest) = numbers.as_chunks::<2>();
    let fits = |&[seconds, changes]: &[i64; 2]| seconds >= 1 && changes >= 0;
    if !rest.is_empty() || !pairs.iter().all(fits) {
        return Err(wrong());
    }
    let words: Vec<String> = numbers.iter().map(i64::to_string).collect();
    Ok(words.join(" "))
}

fn output_limits(given: &str, present: &str) -> Result<String, String> {
    let words: Vec<&str> = given.split(' ').collect();
    let (groups, rest) = words.as_chunks::<4>();
    if given.is_empty() {
        return Ok(present.to_owned());
    }
    if !rest.is_empty() {
        return Err("Wrong number of arguments in buffer limit configuration.".to_owned());
    }
    let mut limits = OutputLimits::parse(present).unwrap_or_default();
    for &[class, hard, soft, seconds] in groups {
        let limit = match class.to_ascii_lowercase().as_str() {
            "normal" => &mut limits.normal,
            "slave" | "replica" => &mut limits.replica,
            "pubsub" => &mut limits.subscriber,
            _ => {
                return Err(
                    "Invalid client class specified in buffer limit configuration.".to_owned(),
                );
            }
        };
        let (Some(hard_bytes), Some(soft_bytes), Ok(soft_s)) =
            (parse_size(hard), parse_size(soft), seconds.parse())
        else {
            return Err(
                "Error in hard, soft or soft_seconds setting in buffer limit configuration."
                    .to_owned(),
            );
        };
        *limit = OutputLimit {
            hard_bytes,
            soft_bytes,
            soft_s,
        };
    }
    Ok(limits.render())
}

fn parse_size(word: &str) -> Option<u64> {
    parse_bytes(word).and_then(|bytes| u64::try_from(bytes).ok())
}

impl Value for OutputLimits {
    fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split(' ').collect();
        let limit = |at: usize| {
            let [_, hard, soft, seconds] = *words.as_chunks::<4>().0.get(at)?;
            Some(OutputLimit {
                hard_bytes: hard.parse().ok()?,
                soft_bytes: soft.parse().ok()?,
                soft_s: seconds.parse().ok()?,
            })
        };
        Some(OutputLimits {
            normal: limit(0)?,
            replica: limit(1)?,
            subscriber: limit(2)?,
        })
    }

    fn render(&self) -> String {
        let words = [
            ("normal", &self.normal),
            ("slave", &self.replica),
            ("pubsub", &self.subscriber),
        ]
        .map(|(class, limit)| {
            let OutputLimit {
                hard_bytes,
                soft_bytes,
                soft_s,
            } = limit;
            format!("{class} {hard_bytes} {soft_bytes} {soft_s}")
        });
        words.join(" ")
    }
}

fn oom_scores(given: &str, _: &str) -> Result<String, String> {
    let words: Vec<&str> = given.split(' ').collect();
    if words.len() != 3 {
        return Err("wrong number of arguments".to_owned());
    }
    let fits = |word: &&str| {
        word.parse::<i64>()
            .is_ok_and(|score| (-2000..=2000).contains(&score))
    };
    if !words.iter().all(fits) {
        return Err(
            "Invalid oom-score-adj-values, elements must be between -2000 and 2000.".to_owned(),
        );
    }
    Ok(given.to_owned())
}

impl Value for EventClasses {
    fn parse(text: &str) -> Option<Self> {
        EventClasses::parse(text)
    }

    fn render(&self) -> String {
        self.letters()
    }
}

fn keyspace_events(given: &str, _: &str) -> Result<String, String> {
    match EventClasses::parse(given) {
        // CONFIG GET hides `n` after `A`, but the setting keeps it.
        Some(classes) if classes.contains(EventClasses::ALL.and(EventClasses::NEW)) => {
            Ok(format!("{}n", classes.letters()))
        }
        Some(classes) => Ok(classes.letters()),
        None => Err("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.".to_owned()),
    }
}

impl Value for Permissions {
    /// Octal digits.
    fn parse(text: &str) -> Option<Self> {
        let number = u32::from_str_radix(text, 8).ok()?;
        (number <= 0o777).then_some(Permissions(number))
    }

    fn render(&self) -> String {
        format!("{:o}", self.0)
    }
}

fn permissions(given: &str, _: &str) -> Result<String, String> {
    match Permissions::parse(given) {
        Some(permissions) => Ok(permissions.render()),
        None => Err("argument couldn't be parsed as an octal number".to_owned()),
    }
}

impl Value for Version {
    fn parse(text: &str) -> Option<Self> {
        Version::from_name(text)
    }

    fn render(&self) -> String {
        self.name().to_owned()
    }
}

impl Value for AuthClients {
    fn parse(text: &str) -> Option<Self> {
        AuthClients::from_name(text)
    }

    fn render(&self) -> String {
        self.name().to_owned()
    }
}

impl Value for RedisVersion {
    fn parse(text: &str) -> Option<Self> {
        RedisVersion::from_name(text)
    }

    fn render(&self) -> String {
        self.name().to_owned()
    }
}

impl Value for Password {
    fn parse(text: &str) -> Option<Self> {
        Some(Password(text.to_owned()))
    }

    fn render(&self) -> String {
        self.0.clone()
    }
}

fn tls_protocols(given: &str, _: &str) -> Result<String, String> {
    match Vec::<Version>::parse(given) {
        Some(versions) => Ok(versions.render()),
        None => Err("argument must be a combination of 'TLSv1.2' and 'TLSv1.3'".to_owned()),
    }
}

fn percentiles(given: &str, _: &str) -> Result<String, String> {
    if given.is_empty() {
        return Ok(String::new());
    }
    let mut words = Vec::new();
    for word in given.split(' ') {
        let parsed = word.parse::<f64>().ok().filter(|number| !number.is_nan());
        let Some(percentile) = parsed else {
            return Err("Invalid latency-tracking-info-percentiles parameters".to_owned());
        };
        if !(0.0..=100.0).contains(&percentile) {
            return Err(
                "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]"
                    .to_owned(),
            );
        }
        words.push(percentile.to_string());
    }
    Ok(words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_may_be_separated_by_spaces_or_commas() {
        assert_eq!(addresses("127.0.0.1, ::1", ""), Ok("127.0.0.1 ::1".into()));
        assert!(addresses("", "").is_err());
        assert!(addresses("localhost", "").is_err());
        assert!(addresses(&"127.0.0.1 ".repeat(17), "").is_err());
    }

    #[test]
    fn a_socket_address_has_a_port() {
        let address = |given| socket_address(given, "");
        assert_eq!(address("127.0.0.1:9121"), Ok("127.0.0.1:9121".into()));
        assert_eq!(address("[::1]:0"), Ok("[::1]:0".into()));
        assert_eq!(address(""), Ok(String::new()));
        for wrong in ["127.0.0.1", ":9121", "localhost:9121", "9121", "::1:x"] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_announced_address_is_one_to_connect_to() {
        assert_eq!(ip_address("10.0.0.1", "").unwrap(), "10.0.0.1");
        assert_eq!(ip_address("fd00:0::1", "").unwrap(), "fd00::1");
        assert_eq!(ip_address("", "").unwrap(), "");
        for wrong in ["0.0.0.0", "::", "localhost", "10.0.0.1:6379"] {
            assert!(ip_address(wrong, "").is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_of_masters_are_those_that_redis_takes() {
        let names = |given: &str| master_names(given, "");
        assert_eq!(names("a.b, c-d  e_f").unwrap(), "a.b c-d e_f");
        for wrong in ["", "a/b", "a a", "ä", &"a".repeat(129)] {
            assert!(names(wrong).is_err(), "{wrong}");
        }
        let many: Vec<String> = (0..65).map(|number| number.to_string()).collect();
        assert!(names(&many.join(" ")).is_err());
        assert!(names(&many[1..].join(" ")).is_ok());
    }

    #[test]
    fn a_host_name_has_no_other_letters() {
        assert_eq!(host_name("a-1.example", "").unwrap(), "a-1.example");
        assert_eq!(host_name("", "").unwrap(), "");
        for wrong in ["a b", "a_b", "a:1", "bücher.example"] {
            assert!(host_name(wrong, "").is_err(), "{wrong}");
        }
        assert!(host_name(&"a".repeat(254), "").is_err());
    }

    #[test]
    fn a_pattern_of_names_may_have_a_database() {
        let usual = |given| keys_patterns(given, "");
        assert_eq!(
            usual("jobs:*  0/mail 3/a/b"),
            Ok("jobs:* mail 3/a/b".into())
        );
        assert_eq!(usual("a/1 0/3/x"), Ok("a/1 0/3/x".into()));
        assert_eq!(usual(""), Ok(String::new()));
        for wrong in ["1024/a", "3/", "99999999999/a", &"a ".repeat(65)] {
            assert!(usual(wrong).is_err(), "{wrong}");
        }
        let pattern = KeysPattern::parse("3/a/b").unwrap();
        assert_eq!((pattern.database, pattern.is_name()), (3, true));
        assert!(!KeysPattern::parse("a?").unwrap().is_name());
    }

    #[test]
    fn save_points_come_in_pairs() {
        assert_eq!(save_points("900 1 10 2", ""), Ok("900 1 10 2".into()));
        assert_eq!(save_points("", "900 1"), Ok(String::new()));
        assert_eq!(save_points("900 ", ""), Ok("900 0".into()));
        for wrong in ["a", " ", "1", "0 1", "1 -1"] {
            let refusal = save_points(wrong, "").unwrap_err();
            assert_eq!(refusal, "Invalid save parameters", "{wrong:?}");
        }
    }

    #[test]
    fn output_limits_change_one_class_and_keep_the_others() {
        let before = "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60";
        assert_eq!(
            output_limits("normal 1mb 2 3", before).as_deref(),
            Ok("normal 1048576 2 3 slave 268435456 67108864 60 pubsub 33554432 8388608 60")
        );
        assert_eq!(
            output_limits("replica 1 1 1", before).as_deref(),
            Ok("normal 0 0 0 slave 1 1 1 pubsub 33554432 8388608 60")
        );
        assert!(output_limits("normal 1", before).is_err());
        assert!(output_limits("master 1 1 1", before).is_err());
        assert!(output_limits("normal 1 1 -1", before).is_err());
    }

    #[test]
    fn keyspace_events_are_put_in_order() {
        let events = |given| keyspace_events(given, "");
        assert_eq!(events("KEA").as_deref(), Ok("AKE"));
        assert_eq!(events("KEAn").as_deref(), Ok("AKEn"));
        assert!(events("q").is_err());
    }

    #[test]
    fn permissions_are_octal() {
        let normal = |given| permissions(given, "");
        assert_eq!(normal("0770").as_deref(), Ok("770"));
        for wrong in ["", "778", "1000", "rwx", "-1"] {
            assert!(normal(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn versions_of_tls_are_those_of_rustls() {
        let protocols = |given| tls_protocols(given, "");
        assert_eq!(
            protocols("tlsv1.2 TLSv1.3").as_deref(),
            Ok("TLSv1.2 TLSv1.3")
        );
        assert_eq!(protocols("").as_deref(), Ok(""));
        for wrong in ["TLSv1", "TLSv1.1 TLSv1.2", "x"] {
            assert!(protocols(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn percentiles_lie_between_0_and_100() {
        let normal = |given| percentiles(given, "");
        assert_eq!(normal("50.5 99.99 100.0").as_deref(), Ok("50.5 99.99 100"));
        assert!(normal("101").is_err());
        for wrong in ["x", "nan"] {
            let refusal = normal(wrong).unwrap_err();
            assert!(refusal.starts_with("Invalid"), "{refusal}");
        }
    }
}

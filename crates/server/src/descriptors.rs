//! The limit of open files, and the number of clients that it allows.
//!
//! A socket takes a file descriptor. A process without a free one cannot tell a client that there are too
//! many clients, and cannot open files of the store. So the limit is raised to what `maxclients` needs,
//! or `maxclients` is lowered to what the limit allows. Some descriptors are reserved for the server
//! itself (Redis: `adjustOpenFilesLimit`).

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::ServerError;
use quoin_base::limits::{
    DESCRIPTORS_PER_FURTHER_ADDRESS, DESCRIPTORS_RESERVED, DESCRIPTORS_RESERVED_DASHBOARD,
    DESCRIPTORS_RESERVED_FDB, DESCRIPTORS_RESERVED_METRICS, DESCRIPTORS_RESERVED_TRACES,
};
use quoin_config::{RuntimeConfig, Settings, StoreKind};

/// The limit of a process: the current one, and the highest one that it may set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Limit {
    soft: u64,
    hard: u64,
}

/// Reads and sets the limit.
trait OpenFiles {
    fn limit(&self) -> Limit;
    fn set_limit(&self, limit: Limit) -> io::Result<()>;
}

/// The limit of this process.
struct ThisProcess;

impl OpenFiles for ThisProcess {
    fn limit(&self) -> Limit {
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        Limit {
            soft: current.unwrap_or(u64::MAX),
            hard: maximum.unwrap_or(u64::MAX),
        }
    }

    fn set_limit(&self, limit: Limit) -> io::Result<()> {
        let finite = |number| (number != u64::MAX).then_some(number);
        let limit = Rlimit {
            current: finite(limit.soft),
            maximum: finite(limit.hard),
        };
        Ok(setrlimit(Resource::Nofile, limit)?)
    }
}

/// The result of asking for a limit.
#[derive(Debug)]
enum Room {
    /// The limit was high enough.
    Enough,
    /// It was raised from this value.
    Raised { from: u64 },
    /// The highest limit that the system allows is too low.
    Short { soft: u64, refused: io::Error },
}

/// Raises the limit to `wanted`, or as close to it as the system allows.
fn make_room(files: &impl OpenFiles, wanted: u64) -> Room {
    let Limit { soft, hard } = files.limit();
    if soft >= wanted {
        return Room::Enough;
    }
    // Only a privileged process may exceed the hard limit. No process may exceed the machine's.
    let raise = |to: u64| {
        let hard = hard.max(to);
        files.set_limit(Limit { soft: to, hard })
    };
    let Err(refused) = raise(wanted) else {
        return Room::Raised { from: soft };
    };
    let (mut allowed, mut beyond) = (soft, wanted);
    if hard > soft && hard < wanted && raise(hard).is_ok() {
        allowed = hard;
    }
    while beyond - allowed > 1 {
        let middle = allowed + (beyond - allowed) / 2;
        match raise(middle) {
            Ok(()) => allowed = middle,
            Err(_) => beyond = middle,
        }
    }
    Room::Short {
        soft: allowed,
        refused,
    }
}

/// Descriptors that are reserved for the server itself.
fn reserved(settings: &Settings) -> u64 {
    let has_plain_port = settings.tcp_port().is_some();
    let others = [
        settings.tls_port,
        settings.sentinel_port,
        settings.sentinel_tls_port,
        settings.cluster_port,
        settings.cluster_tls_port,
    ];
    let others = others.into_iter().filter(|port| *port != 0).count() as u64;
    let tcp_ports = u64::from(has_plain_port) + others;
    let unix_sockets = u64::from(settings.unixsocket.is_some());
    let addresses = settings.bind.len() as u64 * tcp_ports + unix_sockets;
    let further_addresses = addresses.saturating_sub(1);
    let metrics = settings
        .metrics_address
        .map(|_| DESCRIPTORS_RESERVED_METRICS);
    let dashboard = settings
        .dashboard_place()
        .map(|_| DESCRIPTORS_RESERVED_DASHBOARD);
    let traces = match settings.trace_endpoint.is_empty() {
        true => 0,
        false => DESCRIPTORS_RESERVED_TRACES,
    };
    let cluster = match settings.store {
        StoreKind::Embedded => 0,
        StoreKind::Fdb => DESCRIPTORS_RESERVED_FDB,
    };
    DESCRIPTORS_RESERVED
        + further_addresses * DESCRIPTORS_PER_FURTHER_ADDRESS
        + metrics.unwrap_or(0)
        + dashboard.unwrap_or(0)
        + traces
        + cluster
}

/// Makes room for `maxclients` clients, or lowers `maxclients` with a warning. CONFIG SET maxclients
/// makes room, too, or is refused.
///
/// # Errors
/// If there is no room for a single client.
pub(super) fn fit(config: &RuntimeConfig) -> Result<(), ServerError> {
    let reserved = reserved(&config.settings());
    let asked = config.live.maxclients();
    let wanted = u64::from(asked) + reserved;
    match make_room(&ThisProcess, wanted) {
        Room::Enough => {}
        Room::Raised { from } => tracing::info!(
            "increased maximum number of open files to {wanted} (it was originally set to {from})"
        ),
        Room::Short { soft, .. } if soft <= reserved => {
            return Err(ServerError::TooFewDescriptors { soft, wanted });
        }
        Room::Short { soft, refused } => {
            let clients = clients_within(soft, reserved);
            config.lower_maxclients(clients);
            tracing::warn!(
                "maxclients of {asked} requires at least {wanted} open files, which the operating \
                 system refuses ({refused}). Current maximum open files is {soft}. maxclients has \
                 been reduced to {clients} to compensate for low ulimit. If you need higher \
                 maxclients increase 'ulimit -n'"
            );
        }
    }
    config.on_maxclients(move |asked| check(&ThisProcess, reserved, asked));
    Ok(())
}

/// Raises the limit for this number of clients. The error is Redis's.
fn check(files: &impl OpenFiles, reserved: u64, asked: u32) -> Result<(), String> {
    match make_room(files, u64::from(asked) + reserved) {
        Room::Enough | Room::Raised { .. } => Ok(()),
        Room::Short { soft, .. } => Err(format!(
            "The operating system is not able to handle the specified number of clients, try with \
             {}",
            clients_within(soft, reserved)
        )),
    }
}

fn clients_within(soft: u64, reserved: u64) -> u32 {
    u32::try_from(soft.saturating_sub(reserved)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use quoin_config::{DashboardAddress, LoadedSettings};

    /// A system with a limit of its own, which a privileged process may reach.
    struct System {
        limit: Cell<Limit>,
        of_machine: u64,
        is_privileged: bool,
    }

    impl System {
        fn new(soft: u64, hard: u64) -> Self {
            Self {
                limit: Cell::new(Limit { soft, hard }),
                of_machine: 1_048_576,
                is_privileged: false,
            }
        }
    }

    impl OpenFiles for System {
        fn limit(&self) -> Limit {
            self.limit.get()
        }

        fn set_limit(&self, limit: Limit) -> io::Result<()> {
            let raises_hard = limit.hard > self.limit.get().hard;
            if raises_hard && (!self.is_privileged || limit.hard > self.of_machine) {
                return Err(io::Error::from_raw_os_error(libc::EPERM));
            }
            assert!(limit.soft <= limit.hard);
            self.limit.set(limit);
            Ok(())
        }
    }

    #[test]
    fn a_limit_that_is_high_enough_is_left_alone() {
        let system = System::new(20_000, 30_000);
        assert!(matches!(make_room(&system, 10_032), Room::Enough));
        assert_eq!(system.limit().soft, 20_000);
    }

    #[test]
    fn the_soft_limit_is_raised_to_what_is_wanted_and_the_hard_one_stays() {
        let system = System::new(1_024, 20_000);
        let room = make_room(&system, 10_032);
        assert!(matches!(room, Room::Raised { from: 1_024 }), "{room:?}");
        let raised = Limit {
            soft: 10_032,
            hard: 20_000,
        };
        assert_eq!(system.limit(), raised);
    }

    #[test]
    fn what_the_hard_limit_allows_is_taken_where_it_is_not_enough() {
        for soft in [100, 1_024, 4_096] {
            let system = System::new(soft, 4_096);
            let room = make_room(&system, 10_032);
            assert!(
                matches!(room, Room::Short { soft: 4_096, .. }),
                "{soft}: {room:?}"
            );
            assert_eq!(system.limit().soft, 4_096);
        }
    }

    #[test]
    fn a_privileged_process_gets_as_many_as_the_machine_has() {
        let mut system = System::new(1_024, 4_096);
        system.is_privileged = true;
        let room = make_room(&system, u64::from(u32::MAX));
        assert!(
            matches!(
                room,
                Room::Short {
                    soft: 1_048_576,
                    ..
                }
            ),
            "{room:?}"
        );
    }

    #[test]
    fn config_set_is_refused_with_the_number_that_there_is_room_for() {
        let system = System::new(100, 100);
        assert_eq!(check(&system, 32, 68), Ok(()));
        assert_eq!(
            check(&system, 32, 69),
            Err(
                "The operating system is not able to handle the specified number of clients, \
                 try with 68"
                    .to_owned()
            )
        );
    }

    #[test]
    fn more_is_kept_where_the_server_opens_more() {
        let mut settings = LoadedSettings::defaults().settings;
        let with_dashboard = reserved(&settings);
        settings.dashboard_address = DashboardAddress::Off;
        assert_eq!(reserved(&settings), 32);
        assert!(with_dashboard > 32 + quoin_base::limits::DASHBOARD_SESSIONS_MAX as u64);
        settings.metrics_address = "127.0.0.1:0".parse().ok();
        let with_metrics = reserved(&settings);
        assert!(with_metrics > 32 + quoin_base::limits::METRICS_CONNECTIONS_MAX as u64);
        settings.trace_endpoint = "http://127.0.0.1/v1/traces".into();
        assert!(reserved(&settings) > with_metrics);
        settings.trace_endpoint.clear();
        settings.bind.push([127, 0, 0, 2].into());
        assert!(reserved(&settings) > with_metrics);
        let with_addresses = reserved(&settings);
        settings.store = StoreKind::Fdb;
        assert!(reserved(&settings) > with_addresses + 100);
    }
}

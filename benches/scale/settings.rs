//! What to measure, from the command line.

use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, value_parser};

use crate::ledger::TICKET_BYTES;

/// What clients do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// RPUSH only.
    Push,
    /// LPOP only, of queues that were filled before.
    Pop,
    /// Half of the clients RPUSH, half LPOP, with a bounded backlog.
    Steady,
    /// Half of the clients RPUSH, half wait in BLPOP.
    Blocking,
    /// ZADD only.
    Zadd,
    /// ZPOPMIN only, of sets that were filled before.
    Zpopmin,
    /// Half of the clients ZADD, half ZPOPMIN, with a bounded backlog.
    Zsteady,
    /// MULTI, five commands on a queue and its two other keys, EXEC.
    Multi,
    /// XADD only.
    Xadd,
    /// XREADGROUP of one entry and XACK, in groups of streams that were filled first.
    Xreadgroup,
    /// One request at a time on an idle server, compared with a bare transaction.
    Idle,
}

/// The type of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    List,
    SortedSet,
    /// With one group.
    Stream,
}

impl Load {
    const NAMES: [(&'static str, Load); 11] = [
        ("push", Load::Push),
        ("pop", Load::Pop),
        ("steady", Load::Steady),
        ("blocking", Load::Blocking),
        ("zadd", Load::Zadd),
        ("zpopmin", Load::Zpopmin),
        ("zsteady", Load::Zsteady),
        ("multi", Load::Multi),
        ("xadd", Load::Xadd),
        ("xreadgroup", Load::Xreadgroup),
        ("idle", Load::Idle),
    ];

    pub fn name(self) -> &'static str {
        let found = Self::NAMES.iter().find(|(_, load)| *load == self);
        found.map_or("", |(name, _)| name)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let found = Self::NAMES.iter().find(|(name, _)| *name == text);
        let names = Self::NAMES.map(|(name, _)| name).join(", ");
        found
            .map(|(_, load)| *load)
            .ok_or(format!("one of {names}"))
    }

    /// The type of the queues.
    pub fn kind(self) -> Kind {
        match self {
            Load::Zadd | Load::Zpopmin | Load::Zsteady => Kind::SortedSet,
            Load::Xadd | Load::Xreadgroup => Kind::Stream,
            _ => Kind::List,
        }
    }

    /// Whether clients only push. What is in the queues at the end is counted.
    pub fn only_pushes(self) -> bool {
        matches!(self, Load::Push | Load::Zadd | Load::Xadd)
    }

    /// Whether some clients push and others pop.
    pub fn has_two_sides(self) -> bool {
        matches!(self, Load::Steady | Load::Blocking | Load::Zsteady)
    }

    /// Whether everything is in the queues before the measurement begins.
    pub fn is_filled(self) -> bool {
        matches!(self, Load::Pop | Load::Zpopmin | Load::Xreadgroup)
    }
}

/// The whole run.
pub struct Settings {
    pub loads: Vec<Load>,
    pub servers: Vec<usize>,
    pub queues: Vec<usize>,
    pub clients: usize,
    /// So many clients for each server rather than for all together.
    pub has_clients_of_each: bool,
    /// Whether all clients use the first server.
    pub has_leader: bool,
    pub pipeline: usize,
    pub payload_bytes: usize,
    pub duration: Duration,
    pub warm_up: Duration,
    /// Time between filling queues and popping, in which the cluster processes what was written.
    pub settle: Duration,
    pub rounds: usize,
    /// Elements that are in the queues before pops are measured.
    pub fill: usize,
    /// Pushes and pops of the comparison of idle latencies.
    pub idle_turns: usize,
    pub has_bare: bool,
}

impl Settings {
    pub fn parse() -> Self {
        let matches = command().get_matches();
        let is_quick = matches.get_flag("quick");
        let seconds = matches.get_one::<f64>("seconds").copied();
        let seconds = seconds.unwrap_or(if is_quick { 1.5 } else { 5.0 });
        let fill = matches.get_one::<usize>("fill").copied();
        let idle_turns = matches.get_one::<usize>("idle-turns").copied();
        Self {
            loads: all(&matches, "load"),
            servers: all(&matches, "servers"),
            queues: all(&matches, "queues"),
            clients: one(&matches, "clients").max(2),
            has_clients_of_each: matches.get_flag("clients-of-each"),
            has_leader: matches.get_flag("leader"),
            pipeline: one(&matches, "pipeline").max(1),
            payload_bytes: one(&matches, "payload-bytes").max(TICKET_BYTES),
            duration: Duration::from_secs_f64(seconds),
            warm_up: Duration::from_secs_f64(if is_quick { 0.3 } else { 1.0 }),
            settle: Duration::from_secs_f64(if is_quick { 0.5 } else { 3.0 }),
            rounds: one(&matches, "rounds").max(1),
            fill: fill.unwrap_or((seconds * 100_000.0) as usize),
            idle_turns: idle_turns.unwrap_or(if is_quick { 200 } else { 1000 }),
            has_bare: !matches.get_flag("no-bare"),
        }
    }
}

impl Settings {
    /// Number of clients for this number of servers.
    pub fn clients_of(&self, servers: usize) -> usize {
        match self.has_clients_of_each {
            true => self.clients * servers,
            false => self.clients,
        }
    }
}

fn all<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, name: &str) -> Vec<T> {
    matches.get_many::<T>(name).unwrap().cloned().collect()
}

fn one(matches: &ArgMatches, name: &str) -> usize {
    *matches.get_one(name).unwrap()
}

fn command() -> clap::Command {
    let number = |name: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .help(help)
            .value_parser(value_parser!(usize))
    };
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .help(help)
            .action(ArgAction::SetTrue)
    };
    clap::Command::new("scale")
        .about("Quoin servers on one FoundationDB cluster, beside a bare client")
        .arg(
            Arg::new("load")
                .long("load")
                .help(
                    "push, pop, steady, blocking, zadd, zpopmin, zsteady, multi, xadd, \
                     xreadgroup, idle",
                )
                .value_delimiter(',')
                .default_value(
                    "idle,push,pop,steady,blocking,zadd,zpopmin,zsteady,multi,xadd,xreadgroup",
                )
                .value_parser(Load::parse),
        )
        .arg(
            number("servers", "Servers in each case, such as 1,8")
                .value_delimiter(',')
                .default_value("1,2,4,8"),
        )
        .arg(
            number("queues", "Queues in each case, such as 1,1000")
                .value_delimiter(',')
                .default_value("1,1000"),
        )
        .arg(number("clients", "Clients of all servers together").default_value("64"))
        .arg(flag(
            "clients-of-each",
            "That many clients for each server: more servers have more to do",
        ))
        .arg(flag(
            "leader",
            "All clients use the first server, as those do that ask for a leader, or for one queue's owner",
        ))
        .arg(number("pipeline", "Requests that a client sends at once").default_value("16"))
        .arg(number("payload-bytes", "Bytes of an element, at least 32").default_value("100"))
        .arg(
            Arg::new("seconds")
                .long("seconds")
                .help("Time that is measured in each case [default: 5, or 1.5 with --quick]")
                .value_parser(value_parser!(f64)),
        )
        .arg(number("rounds", "Rounds of which the medians are told").default_value("1"))
        .arg(number(
            "fill",
            "Elements to be popped in the loads that only pop [default: 100,000 for each second]",
        ))
        .arg(number(
            "idle-turns",
            "Pushes and pops of the load idle [default: 1000, or 200 with --quick]",
        ))
        .arg(flag("no-bare", "Leave the bare client out"))
        .arg(flag("quick", "A few seconds for each case"))
        .arg(
            Arg::new("bench")
                .long("bench")
                .hide(true)
                .action(ArgAction::SetTrue),
        )
}

//! SENTINEL, ROLE and the section of INFO of the Sentinel port. Replies have the fields of Redis 7's `sentinel.c`, in
//! its order, since clients read them by position too.

use std::sync::Arc;

use bytes::Bytes;

use crate::connection_commands::shared::{lossy_text, not_implemented};
use crate::sentinel::ServerAddress;
use crate::session::Session;
use crate::state::ServerState;
use quoin_base::glob;
use quoin_base::glob::Case;
use quoin_base::limits::SERVER_DEAD_AFTER;
use quoin_data::command::access::KeyLocks;
use quoin_data::command::arguments::{argument, integer_or};
use quoin_data::command::help::help;
use quoin_data::error::CommandError;
use quoin_engine::roster::{LiveServer, Roster};
use quoin_resp::reply::Reply;

/// Redis's default of `failover-timeout`.
const FAILOVER_TIMEOUT_MS: u64 = 180_000;

/// `SENTINEL <subcommand> …`.
pub(super) async fn execute(
    subcommand: &str,
    arguments: &[Bytes],
    session: &Session,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    let view = View::of(session, state);
    match subcommand {
        "ckquorum" => {
            view.master(argument(arguments, 2)?)?;
            let usable = view.sentinels().count();
            let line = format!(
                "OK {usable} usable Sentinels. Quorum and failover authorization can be reached"
            );
            Ok(Reply::Status(line.into()))
        }
        "failover" => fail_over(argument(arguments, 2)?, &view, state).await,
        // The settings are in a file that the server does not write by itself.
        "flushconfig" => Ok(Reply::OK),
        "get-master-addr-by-name" => Ok(match view.master(argument(arguments, 2)?) {
            Ok((_, master)) => {
                let address = ServerAddress::of_data(&master.row, view.speaks_tls);
                Reply::Array(vec![
                    Reply::bulk(address.host),
                    Reply::bulk(address.port.to_string()),
                ])
            }
            Err(_) => Reply::NullArray,
        }),
        "help" => Ok(help(HELP_TITLE, HELP)),
        "is-master-down-by-addr" => {
            for number in [3, 4] {
                integer_or(
                    argument(arguments, number)?,
                    "ERR value is not an integer or out of range",
                )?;
            }
            // This server votes for nobody, because all servers see who is alive.
            Ok(Reply::Array(vec![
                Reply::Integer(0),
                Reply::bulk("*"),
                Reply::Integer(0),
            ]))
        }
        "master" => {
            let (name, master) = view.master(argument(arguments, 2)?)?;
            Ok(view.describe_master(name, master, state))
        }
        "masters" => Ok(Reply::Array(
            view.masters()
                .map(|(name, master)| view.describe_master(name, master, state))
                .collect(),
        )),
        "myid" => Ok(Reply::bulk(state.run_id.clone())),
        // There are neither replicas nor scripts.
        "pending-scripts" => Ok(Reply::Array(Vec::new())),
        "replicas" | "slaves" => {
            view.master(argument(arguments, 2)?)?;
            Ok(Reply::Array(Vec::new()))
        }
        "reset" => {
            let pattern = argument(arguments, 2)?;
            let names = view.masters();
            let is_meant = |name: &str| glob::matches(pattern, name.as_bytes(), Case::Insensitive);
            let count = names.filter(|(name, _)| is_meant(name)).count();
            Ok(Reply::count(count))
        }
        "sentinels" => {
            view.master(argument(arguments, 2)?)?;
            let others = view.sentinels().filter(|(server, _)| !view.is_own(server));
            let described = others.map(|(server, address)| view.describe_sentinel(server, address));
            Ok(Reply::Array(described.collect()))
        }
        _ => Err(not_implemented()),
    }
}

/// `ROLE`: of a server with data, the role, its replication offset and its replicas; of a Sentinel, the role and the
/// names of masters.
pub(super) fn role(session: &Session, state: &ServerState) -> Reply {
    if !session.is_on_sentinel() {
        return Reply::Array(vec![
            Reply::bulk("master"),
            Reply::Integer(0),
            Reply::Array(Vec::new()),
        ]);
    }
    let view = View::of(session, state);
    let names = view.masters().map(|(name, _)| Reply::bulk(name.to_owned()));
    Reply::Array(vec![Reply::bulk("sentinel"), Reply::Array(names.collect())])
}

/// The section `sentinel` of INFO.
pub(super) fn info(session: &Session, state: &ServerState, text: &mut String) {
    let view = View::of(session, state);
    let masters: Vec<_> = view.masters().collect();
    text.push_str(&format!(
        "# Sentinel\r\nsentinel_masters:{}\r\nsentinel_tilt:0\r\nsentinel_tilt_since_seconds:-1\r\n\
         sentinel_running_scripts:0\r\nsentinel_scripts_queue_length:0\r\n\
         sentinel_simulate_failure_flags:0\r\n",
        masters.len()
    ));
    let sentinels = view.sentinels().count();
    for (number, (name, master)) in masters.into_iter().enumerate() {
        let ServerAddress { host, port } = ServerAddress::of_data(&master.row, view.speaks_tls);
        text.push_str(&format!(
            "master{number}:name={name},status=ok,address={host}:{port},slaves=0,\
             sentinels={sentinels}\r\n"
        ));
    }
}

/// Chooses another server as master of a name.
async fn fail_over(
    name: &[u8],
    view: &View<'_>,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    view.master(name)?;
    let successor = view.roster.as_ref();
    let successor = successor.and_then(|roster| roster.successor_of(name));
    let Some(successor) = successor else {
        return Err(CommandError::text(
            "NOGOODSLAVE No suitable replica to promote",
        ));
    };
    let instance = successor.instance;
    let chosen = Bytes::copy_from_slice(name);
    let executor = &state.executor;
    executor
        .transact(0, KeyLocks::Nothing, move |context| {
            let chosen = chosen.clone();
            Box::pin(async move { context.choose_server(&chosen, instance).await })
        })
        .await?;
    tracing::info!(
        "SENTINEL FAILOVER: server {instance} at {} is master of {}",
        successor.row.ip,
        lossy_text(name)
    );
    state.membership.refresh();
    Ok(Reply::OK)
}

/// The servers as a client of the Sentinel port sees them. Empty while this server does not know
/// who is alive.
struct View<'s> {
    names: &'s [String],
    roster: Option<Arc<Roster>>,
    /// How long ago that was confirmed.
    seen_ms: u128,
    speaks_tls: bool,
}

impl<'s> View<'s> {
    fn of(session: &Session, state: &'s ServerState) -> Self {
        Self {
            names: &state.sentinel.names,
            roster: state.membership.roster(),
            seen_ms: state.membership.confirmed_ago().as_millis(),
            speaks_tls: session.speaks_tls(),
        }
    }

    fn masters(&self) -> impl Iterator<Item = (&'s str, &LiveServer)> {
        self.names.iter().filter_map(|name| {
            let master = self.roster.as_ref()?.master_of(name.as_bytes())?;
            Some((name.as_str(), master))
        })
    }

    fn master(&self, name: &[u8]) -> Result<(&'s str, &LiveServer), CommandError> {
        self.masters()
            .find(|(known, _)| known.as_bytes() == name)
            .ok_or(CommandError::text("ERR No such master with that name"))
    }

    /// The servers with a Sentinel port that the client can use, the oldest first.
    fn sentinels(&self) -> impl Iterator<Item = (&LiveServer, ServerAddress)> {
        let servers = self.roster.as_ref().map_or(&[][..], |one| one.servers());
        servers.iter().filter_map(|server| {
            let address = ServerAddress::of_sentinel(&server.row, self.speaks_tls)?;
            Some((server, address))
        })
    }

    fn is_own(&self, server: &LiveServer) -> bool {
        let roster = self.roster.as_ref();
        roster.is_some_and(|roster| roster.is_own(server))
    }

    fn describe_master(&self, name: &str, master: &LiveServer, state: &ServerState) -> Reply {
        let sentinels = self.sentinels().count();
        let others = self.sentinels().filter(|(server, _)| !self.is_own(server));
        let address = ServerAddress::of_data(&master.row, self.speaks_tls);
        let seen_ms = self.seen_ms;
        let uptime_ms = (state.clock.now_ms() - state.started_ms).max(0);
        let mut fields = common_fields(name, &address, &master.row.run_id, "master", seen_ms);
        for (field, value) in [
            ("info-refresh", seen_ms.to_string()),
            ("role-reported", "master".to_owned()),
            ("role-reported-time", uptime_ms.to_string()),
            // Grows whenever a newer server takes the name over, and is the same on all servers.
            ("config-epoch", master.instance.to_string()),
            ("num-slaves", "0".to_owned()),
            ("num-other-sentinels", others.count().to_string()),
            ("quorum", (sentinels / 2 + 1).to_string()),
            ("failover-timeout", FAILOVER_TIMEOUT_MS.to_string()),
            ("parallel-syncs", "1".to_owned()),
        ] {
            fields.push((Reply::bulk(field), Reply::bulk(value)));
        }
        Reply::Map(fields)
    }

    fn describe_sentinel(&self, server: &LiveServer, address: ServerAddress) -> Reply {
        let id = &server.row.run_id;
        let mut fields = common_fields(id, &address, id, "sentinel", self.seen_ms);
        for (field, value) in [
            ("last-hello-message", self.seen_ms.to_string()),
            ("voted-leader", "?".to_owned()),
            ("voted-leader-epoch", "0".to_owned()),
        ] {
            fields.push((Reply::bulk(field), Reply::bulk(value)));
        }
        Reply::Map(fields)
    }
}

/// The fields that masters and sentinels have in common. The order is part of the protocol.
fn common_fields(
    name: &str,
    address: &ServerAddress,
    run_id: &str,
    flags: &str,
    seen_ms: u128,
) -> Vec<(Reply, Reply)> {
    let down_after_ms = SERVER_DEAD_AFTER.as_millis();
    let fields = [
        ("name", name.to_owned()),
        ("ip", address.host.clone()),
        ("port", address.port.to_string()),
        ("runid", run_id.to_owned()),
        ("flags", flags.to_owned()),
        ("link-pending-commands", "0".to_owned()),
        ("link-refcount", "1".to_owned()),
        ("last-ping-sent", "0".to_owned()),
        ("last-ok-ping-reply", seen_ms.to_string()),
        ("last-ping-reply", seen_ms.to_string()),
        ("down-after-milliseconds", down_after_ms.to_string()),
    ];
    let fields = fields.into_iter();
    fields
        .map(|(field, value)| (Reply::bulk(field), Reply::bulk(value)))
        .collect()
}

const HELP_TITLE: &str = "SENTINEL <subcommand> [<arg> [value] [opt] ...]. Subcommands are:";

#[rustfmt::skip]
const HELP: &[&str] = &[
    "CKQUORUM <master-name>",
    "    Check if the current Sentinel configuration is able to reach the quorum",
    "    needed to failover a master and the majority needed to authorize the",
    "    failover.",
    "GET-MASTER-ADDR-BY-NAME <master-name>",
    "    Return the ip and port number of the master with that name.",
    "FAILOVER <master-name>",
    "    Manually failover a master node without asking for agreement from other",
    "    Sentinels",
    "FLUSHCONFIG",
    "    Force Sentinel to rewrite its configuration on disk, including the current",
    "    Sentinel state.",
    "IS-MASTER-DOWN-BY-ADDR <ip> <port> <current-epoch> <runid>",
    "    Check if the master specified by ip:port is down from current Sentinel's",
    "    point of view.",
    "MASTER <master-name>",
    "    Show the state and info of the specified master.",
    "MASTERS",
    "    Show a list of monitored masters and their state.",
    "MYID",
    "    Return the ID of the Sentinel instance.",
    "PENDING-SCRIPTS",
    "    Get pending scripts information.",
    "REPLICAS <master-name>",
    "    Show a list of replicas for this master and their state.",
    "RESET <pattern>",
    "    Reset masters for specific master name matching this pattern.",
    "SENTINELS <master-name>",
    "    Show a list of Sentinel instances for this master and their state.",
];

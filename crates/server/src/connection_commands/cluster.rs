//! CLUSTER, READONLY, READWRITE and ASKING on the cluster port. Replies have the fields of Redis
//! 7's `cluster.c`, in its order. Servers that see the same servers reply with the same bytes,
//! except for what concerns themselves.

use bytes::Bytes;

use crate::cluster::{Node, SLOTS, View, slot_of};
use crate::connection_commands::shared::{number, refusal, unknown_or_wrong_number};
use crate::session::Session;
use crate::state::ServerState;
use quoin_base::number::parse_i64;
use quoin_config::EndpointType;
use quoin_data::command::arguments::{
    argument, integer_at_least, integer_or, is_word, rest, to_usize,
};
use quoin_data::command::help::help;
use quoin_data::command::row::Row;
use quoin_data::error::CommandError;
use quoin_data::keyspace::scanning::{ScanQuery, TypeFilter};
use quoin_resp::reply::Reply;

/// Offset of Redis's cluster bus port from the client port. Quoin has no such bus, but
/// `CLUSTER NODES` has a field for it.
const BUS_PORT_OFFSET: u16 = 10_000;
/// Number of keys scanned at a time.
const SCANNED_KEYS: usize = 1000;

const NOT_AN_INTEGER: &str = "ERR value is not an integer or out of range";
const DOWN: CommandError = CommandError::text("CLUSTERDOWN The cluster is down");

/// `CLUSTER <subcommand> …`, and the commands without subcommands.
pub(super) async fn execute(
    row: &Row,
    arguments: &[Bytes],
    session: &Session,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    // A server that stops is no longer a node, and its clients ask another one.
    let view = state.view_of(session.face);
    let view = view.filter(|view| view.own().is_some());
    let endpoints = state.config.settings().cluster_preferred_endpoint_type;
    match row.own_name() {
        // Every server serves every key.
        "asking" | "readonly" | "readwrite" => Ok(Reply::OK),
        "count-failure-reports" => {
            known(argument(arguments, 2)?, view.as_deref())?;
            Ok(Reply::Integer(0))
        }
        "countkeysinslot" => {
            let slot = integer_or(argument(arguments, 2)?, NOT_AN_INTEGER)?;
            let slot = slot_number(slot).ok_or(CommandError::text("ERR Invalid slot"))?;
            let mut count = 0;
            each_key(state, |name| {
                count += i64::from(slot_of(&name) == slot);
                true
            })
            .await?;
            Ok(Reply::Integer(count))
        }
        "failover" => Err(refusal_of_failover(arguments)),
        "getkeysinslot" => {
            let slot = integer_or(argument(arguments, 2)?, NOT_AN_INTEGER)?;
            let count = integer_or(argument(arguments, 3)?, NOT_AN_INTEGER)?;
            let Some(slot) = slot_number(slot).filter(|_| count >= 0) else {
                return Err(CommandError::text("ERR Invalid slot or number of keys"));
            };
            let (count, mut keys) = (to_usize(count), Vec::new());
            if count > 0 {
                each_key(state, |name| {
                    if slot_of(&name) == slot {
                        keys.push(Reply::Bulk(name));
                    }
                    keys.len() < count
                })
                .await?;
            }
            Ok(Reply::Array(keys))
        }
        "help" => Ok(help(HELP_TITLE, HELP)),
        "info" => Ok(Reply::Verbatim("txt", info(view.as_deref()).into())),
        "keyslot" => Ok(number(slot_of(argument(arguments, 2)?).into())),
        // Servers meet in the store only.
        "links" => Ok(Reply::Array(Vec::new())),
        // A node is its own shard.
        "myid" | "myshardid" => Ok(Reply::bulk(state.run_id.clone())),
        "nodes" => {
            let view = view.ok_or(DOWN)?;
            let seen_ms = i64::try_from(state.membership.confirmed_ago().as_millis());
            let seen_at_ms = state.clock.now_ms() - seen_ms.unwrap_or(0);
            Ok(Reply::Verbatim("txt", nodes(&view, seen_at_ms).into()))
        }
        "replicas" | "slaves" => {
            known(argument(arguments, 2)?, view.as_deref())?;
            Ok(Reply::Array(Vec::new()))
        }
        // The settings are in a file that the server does not write by itself.
        "saveconfig" => Ok(Reply::OK),
        "shards" => Ok(shards(&*view.ok_or(DOWN)?, session, endpoints)),
        "slot-stats" => {
            let statistics = SlotStatistics::parse(arguments)?;
            statistics.reply(&*view.ok_or(DOWN)?, state).await
        }
        "slots" => Ok(slots(&*view.ok_or(DOWN)?, endpoints)),
        other => Err(refusal(format!(
            "ERR CLUSTER {} is not supported: slots belong to the live servers (see \
             docs/start/compatibility.md)",
            other.to_ascii_uppercase()
        ))),
    }
}

/// The error that sends a client to another node with a slot.
pub(crate) fn moved(slot: u16, node: &Node, endpoints: EndpointType) -> String {
    let host = endpoint(node, endpoints).unwrap_or_default();
    format!("MOVED {slot} {host}:{}", node.port)
}

/// The address of a node as clients get it. `None` means the address that they asked at.
fn endpoint(node: &Node, endpoints: EndpointType) -> Option<&str> {
    match endpoints {
        EndpointType::Ip => Some(&node.ip),
        EndpointType::Hostname if node.hostname.is_empty() => Some("?"),
        EndpointType::Hostname => Some(&node.hostname),
        EndpointType::UnknownEndpoint => None,
    }
}

fn slot_number(slot: i64) -> Option<u16> {
    u16::try_from(slot).ok().filter(|slot| *slot < SLOTS)
}

fn known<'v>(id: &[u8], view: Option<&'v View>) -> Result<&'v Node, CommandError> {
    let node = view.and_then(|view| view.find(id));
    node.ok_or_else(|| {
        let id = String::from_utf8_lossy(id);
        refusal(format!("ERR Unknown node {id}"))
    })
}

/// Every node is a master.
fn refusal_of_failover(arguments: &[Bytes]) -> CommandError {
    match rest(arguments, 2) {
        [option] if !is_word(option, "force") && !is_word(option, "takeover") => {
            CommandError::Syntax
        }
        [] | [_] => CommandError::text("ERR You should send CLUSTER FAILOVER to a replica"),
        _ => unknown_or_wrong_number(arguments),
    }
}

/// The arguments of CLUSTER SLOT-STATS.
enum SlotStatistics {
    /// SLOTSRANGE: the first and the last slot.
    Range(u16, u16),
    /// ORDERBY KEY-COUNT: the number of slots, and whether slots with the most keys come first.
    ByKeys { limit: usize, descends: bool },
}

impl SlotStatistics {
    /// # Errors
    /// Those of Redis 8.2, where `cluster-slot-stats-enabled` is off.
    fn parse(arguments: &[Bytes]) -> Result<Self, CommandError> {
        match rest(arguments, 2) {
            [word, first, last] if is_word(word, "slotsrange") => {
                let slot = |word: &Bytes| {
                    let slot = parse_i64(word).and_then(slot_number);
                    slot.ok_or(CommandError::text("ERR Invalid or out of range slot"))
                };
                let (first, last) = (slot(first)?, slot(last)?);
                if first > last {
                    return Err(refusal(format!(
                        "ERR Start slot number {first} is greater than end slot number {last}"
                    )));
                }
                Ok(Self::Range(first, last))
            }
            [word, metric, options @ ..] if is_word(word, "orderby") => {
                if !is_word(metric, "key-count") {
                    return Err(CommandError::text(
                        "ERR Unrecognized sort metric for ORDERBY.",
                    ));
                }
                Self::parse_order(options)
            }
            _ => Err(unknown_or_wrong_number(arguments)),
        }
    }

    fn parse_order(mut options: &[Bytes]) -> Result<Self, CommandError> {
        let (mut limit, mut descends) = (None, None);
        loop {
            let is_repeated = match options {
                [] => break,
                [word, count, after @ ..] if is_word(word, "limit") => {
                    const MESSAGE: &str =
                        "ERR Limit has to lie in between 1 and 16384 (maximum number of slots).";
                    let count = integer_at_least(count, 1, MESSAGE)?;
                    if count > i64::from(SLOTS) {
                        return Err(CommandError::text(MESSAGE));
                    }
                    options = after;
                    limit.replace(to_usize(count)).is_some()
                }
                [word, after @ ..] if is_word(word, "asc") || is_word(word, "desc") => {
                    options = after;
                    descends.replace(is_word(word, "desc")).is_some()
                }
                _ => return Err(CommandError::Syntax),
            };
            if is_repeated {
                return Err(CommandError::text(
                    "ERR Multiple filters of the same type are disallowed.",
                ));
            }
        }
        Ok(Self::ByKeys {
            limit: limit.unwrap_or(usize::from(SLOTS)),
            descends: descends.unwrap_or(true),
        })
    }

    /// The selected slots of this server, each with its number of keys.
    async fn reply(&self, view: &View, state: &ServerState) -> Result<Reply, CommandError> {
        let mut keys = vec![0_i64; usize::from(SLOTS)];
        each_key(state, |name| {
            if let Some(count) = keys.get_mut(usize::from(slot_of(&name))) {
                *count += 1;
            }
            true
        })
        .await?;
        let slots = (0..SLOTS).zip(keys);
        let mut slots: Vec<(u16, i64)> = slots.filter(|(slot, _)| view.owns(*slot)).collect();
        match *self {
            Self::Range(first, last) => {
                slots.retain(|(slot, _)| (first..=last).contains(slot));
            }
            Self::ByKeys { limit, descends } => {
                slots.sort_by_key(|(slot, keys)| (if descends { -keys } else { *keys }, *slot));
                slots.truncate(limit);
            }
        }
        let slots = slots.into_iter().map(|(slot, keys)| {
            let statistics = vec![(Reply::bulk("key-count"), Reply::Integer(keys))];
            Reply::Array(vec![number(slot.into()), Reply::Map(statistics)])
        });
        Ok(Reply::Array(slots.collect()))
    }
}

/// Calls `take` with the names of all keys, until it wants no more.
async fn each_key(
    state: &ServerState,
    mut take: impl FnMut(Bytes) -> bool,
) -> Result<(), CommandError> {
    let mut cursor = 0;
    loop {
        let scanned = state.executor.read(0, move |context| {
            let query = ScanQuery {
                cursor,
                count: SCANNED_KEYS,
                pattern: None,
                types: TypeFilter::Any,
            };
            Box::pin(async move { Ok(context.scan_keys(&query).await?) })
        });
        let (next, names) = scanned.await?;
        if !names.into_iter().all(&mut take) || next == 0 {
            return Ok(());
        }
        cursor = next;
    }
}

fn info(view: Option<&View>) -> String {
    let nodes = view.map_or(0, |view| view.nodes().count());
    let epochs = view.map(|view| view.nodes().map(|(node, _)| node.instance));
    let epoch = epochs.and_then(Iterator::max).unwrap_or(0);
    let own_epoch = view.and_then(View::own).map_or(0, |own| own.instance);
    let (cluster_state, slots) = match view {
        Some(_) => ("ok", SLOTS),
        None => ("fail", 0),
    };
    format!(
        "cluster_state:{cluster_state}\r\ncluster_slots_assigned:{slots}\r\ncluster_slots_ok:{slots}\r\n\
         cluster_slots_pfail:0\r\ncluster_slots_fail:0\r\ncluster_known_nodes:{nodes}\r\n\
         cluster_size:{nodes}\r\ncluster_current_epoch:{epoch}\r\ncluster_my_epoch:{own_epoch}\r\n\
         cluster_stats_messages_sent:0\r\ncluster_stats_messages_received:0\r\n\
         total_cluster_links_buffer_limit_exceeded:0\r\n"
    )
}

fn nodes(view: &View, seen_at_ms: i64) -> String {
    let mut text = String::new();
    let own = view.own().map(|own| own.instance);
    for (node, ranges) in view.nodes() {
        let Node {
            id,
            ip,
            hostname,
            port,
            instance,
        } = node;
        let bus_port = port.checked_add(BUS_PORT_OFFSET).unwrap_or(0);
        let comma = if hostname.is_empty() { "" } else { "," };
        let (myself, seen_at_ms) = match own == Some(*instance) {
            true => ("myself,", 0),
            false => ("", seen_at_ms),
        };
        text.push_str(&format!(
            "{id} {ip}:{port}@{bus_port}{comma}{hostname} {myself}master - 0 {seen_at_ms} {instance} \
             connected"
        ));
        for (first, last) in ranges {
            text.push_str(&format!(" {first}-{last}"));
        }
        text.push('\n');
    }
    text
}

/// Each range of slots, with the address of its node, the node's id, and other information about
/// its location.
fn slots(view: &View, endpoints: EndpointType) -> Reply {
    let ranges = view.slots().map(|(node, first, last)| {
        let host = endpoint(node, endpoints);
        let mut more = Vec::new();
        if endpoints != EndpointType::Ip {
            more.push((Reply::bulk("ip"), Reply::bulk(node.ip.clone())));
        }
        if endpoints != EndpointType::Hostname && !node.hostname.is_empty() {
            more.push((Reply::bulk("hostname"), Reply::bulk(node.hostname.clone())));
        }
        Reply::Array(vec![
            number(first.into()),
            number(last.into()),
            Reply::Array(vec![
                host.map_or(Reply::Null, |host| Reply::bulk(host.to_owned())),
                number(node.port.into()),
                Reply::bulk(node.id.clone()),
                Reply::Map(more),
            ]),
        ])
    });
    Reply::Array(ranges.collect())
}

fn shards(view: &View, session: &Session, endpoints: EndpointType) -> Reply {
    let port = match session.speaks_tls() {
        false => "port",
        true => "tls-port",
    };
    let shards = view.nodes().map(|(node, ranges)| {
        let ranges = ranges.into_iter().flat_map(|(first, last)| [first, last]);
        let host = endpoint(node, endpoints).unwrap_or_default();
        let mut fields = vec![
            (Reply::bulk("id"), Reply::bulk(node.id.clone())),
            (Reply::bulk(port), number(node.port.into())),
            (Reply::bulk("ip"), Reply::bulk(node.ip.clone())),
            (Reply::bulk("endpoint"), Reply::bulk(host.to_owned())),
        ];
        if !node.hostname.is_empty() {
            let hostname = Reply::bulk(node.hostname.clone());
            fields.push((Reply::bulk("hostname"), hostname));
        }
        fields.extend([
            (Reply::bulk("role"), Reply::bulk("master")),
            (Reply::bulk("replication-offset"), Reply::Integer(0)),
            (Reply::bulk("health"), Reply::bulk("online")),
        ]);
        let ranges = ranges.map(|slot| number(slot.into())).collect();
        Reply::Map(vec![
            (Reply::bulk("slots"), Reply::Array(ranges)),
            (Reply::bulk("nodes"), Reply::Array(vec![Reply::Map(fields)])),
        ])
    });
    Reply::Array(shards.collect())
}

const HELP_TITLE: &str = "CLUSTER <subcommand> [<arg> [value] [opt] ...]. Subcommands are:";

#[rustfmt::skip]
const HELP: &[&str] = &[
    "COUNT-FAILURE-REPORTS <node-id>",
    "    Return number of failure reports for <node-id>.",
    "COUNTKEYSINSLOT <slot>",
    "    Return the number of keys in <slot>.",
    "GETKEYSINSLOT <slot> <count>",
    "    Return key names stored by current node in a slot.",
    "INFO",
    "    Return information about the cluster.",
    "KEYSLOT <key>",
    "    Return the hash slot for a key.",
    "MYID",
    "    Return the node id.",
    "MYSHARDID",
    "    Return the node's shard id.",
    "NODES",
    "    Return cluster configuration seen by node. Output format:",
    "    <id> <ip:port@bus-port[,hostname]> <flags> <master> <pings> <pongs> <epoch> <link> <slot> ...",
    "REPLICAS <node-id>",
    "    Return <node-id> replicas.",
    "SAVECONFIG",
    "    Force saving cluster configuration on disk.",
    "SLOT-STATS <SLOTSRANGE start-slot end-slot | ORDERBY KEY-COUNT [LIMIT limit] [ASC | DESC]>",
    "    Return the number of keys in the slots of this node.",
    "SLOTS",
    "    Return information about slots range mappings. Each range is made of:",
    "    start, end, master and replicas IP addresses, ports and ids",
    "SHARDS",
    "    Return information about slot range mappings and the nodes associated with them.",
    "LINKS",
    "    Return information about all network links between this node and its peers.",
    "    Output format is an array where each array element is a map containing attributes of a link",
];

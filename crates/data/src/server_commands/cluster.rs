//! The rows of CLUSTER's subcommands. Their handler is that of a server that is not part of a cluster. On the cluster
//! port the server executes them.

use crate::command::flags::Flags;
use crate::command::grammar::{Argument, block, integer, oneof, string, token};
use crate::command::row::{Group, Handler, Row};
use crate::server_commands::replication::no_cluster;

const NO_CLUSTER: Handler = Handler::Pure(no_cluster);
const STALE_ADMIN: Flags = Flags::STALE.and(Flags::ADMIN);
const EACH_NODE: &str = "O(N) where N is the total number of Cluster nodes";
const EACH_REPLICA: &str = "O(N) where N is the number of replicas.";
const EACH_SLOT: &str = "O(N) where N is the total number of hash slot arguments";
const EACH_SLOT_OF_RANGES: &str =
    "O(N) where N is the total number of the slots between the start slot and end slot arguments.";
const EACH_KEY: &str = "O(N) where N is the total number of keys";
const CHANGING: &[&str] = &["nondeterministic_output"];
const NODE_ID: &[Argument] = &[string("node-id")];
const SLOTS: &[Argument] = &[integer("slot").multiple()];
const RANGES: &[Argument] =
    &[block("range", &[integer("start-slot"), integer("end-slot")]).multiple()];

const fn cluster(name: &'static str, arity: i32, since: &'static str) -> Row {
    Row::new(name, arity, since, Group::Cluster, NO_CLUSTER).flags(Flags::STALE)
}

/// A subcommand that changes the slots and nodes of a cluster.
const fn changing(name: &'static str, arity: i32, since: &'static str) -> Row {
    cluster(name, arity, since).flags(STALE_ADMIN.and(Flags::NO_ASYNC_LOADING))
}

/// The subcommands of CLUSTER.
pub(super) const CLUSTER: &[Row] = &[
    changing("cluster|addslots", -3, "3.0.0")
        .summary("Assigns new hash slots to a node.")
        .complexity(EACH_SLOT)
        .arguments(SLOTS),
    changing("cluster|addslotsrange", -4, "7.0.0")
        .summary("Assigns new hash slot ranges to a node.")
        .complexity(EACH_SLOT_OF_RANGES)
        .arguments(RANGES),
    changing("cluster|bumpepoch", 2, "3.0.0")
        .summary("Advances the cluster config epoch.")
        .tips(CHANGING),
    cluster("cluster|count-failure-reports", 3, "3.0.0")
        .summary("Returns the number of active failure reports active for a node.")
        .complexity("O(N) where N is the number of failure reports")
        .flags(STALE_ADMIN)
        .tips(CHANGING)
        .arguments(NODE_ID),
    cluster("cluster|countkeysinslot", 3, "3.0.0")
        .summary("Returns the number of keys in a hash slot.")
        .complexity(EACH_KEY)
        .arguments(&[integer("slot")]),
    changing("cluster|delslots", -3, "3.0.0")
        .summary("Sets hash slots as unbound for a node.")
        .complexity(EACH_SLOT)
        .arguments(SLOTS),
    changing("cluster|delslotsrange", -4, "7.0.0")
        .summary("Sets hash slot ranges as unbound for a node.")
        .complexity(EACH_SLOT_OF_RANGES)
        .arguments(RANGES),
    changing("cluster|failover", -2, "3.0.0")
        .summary("Forces a replica to perform a manual failover of its master.")
        .arguments(&[oneof("options", &[token("FORCE"), token("TAKEOVER")]).optional()]),
    changing("cluster|flushslots", 2, "3.0.0").summary("Deletes all slots information from a node."),
    changing("cluster|forget", 3, "3.0.0")
        .summary("Removes a node from the nodes table.")
        .arguments(NODE_ID),
    cluster("cluster|getkeysinslot", 4, "3.0.0")
        .summary("Returns the key names in a hash slot.")
        .complexity(EACH_KEY)
        .tips(CHANGING)
        .arguments(&[integer("slot"), integer("count")]),
    Row::help("cluster|help", "5.0.0", Group::Cluster, NO_CLUSTER),
    cluster("cluster|info", 2, "3.0.0")
        .summary("Returns information about the state of a node.")
        .tips(CHANGING),
    cluster("cluster|keyslot", 3, "3.0.0")
        .summary("Returns the hash slot for a key.")
        .complexity("O(N) where N is the number of bytes in the key")
        .arguments(&[string("key")]),
    cluster("cluster|links", 2, "7.0.0")
        .summary("Returns a list of all TCP links to and from peer nodes.")
        .complexity(EACH_NODE)
        .tips(CHANGING),
    changing("cluster|meet", -4, "3.0.0")
        .summary("Forces a node to handshake with another node.")
        .history(&[("4.0.0", "Added the optional `cluster_bus_port` argument.")])
        .arguments(&[
            string("ip"),
            integer("port"),
            integer("cluster-bus-port").since("4.0.0").optional(),
        ]),
    cluster("cluster|myid", 2, "3.0.0").summary("Returns the ID of a node."),
    cluster("cluster|myshardid", 2, "7.2.0")
        .summary("Returns the shard ID of a node.")
        .tips(CHANGING),
    cluster("cluster|nodes", 2, "3.0.0")
        .summary("Returns the cluster configuration for a node.")
        .complexity(EACH_NODE)
        .tips(CHANGING),
    cluster("cluster|replicas", 3, "5.0.0")
        .summary("Lists the replica nodes of a master node.")
        .complexity(EACH_REPLICA)
        .flags(STALE_ADMIN)
        .tips(CHANGING)
        .arguments(NODE_ID),
    changing("cluster|replicate", 3, "3.0.0")
        .summary("Configure a node as replica of a master node.")
        .arguments(NODE_ID),
    cluster("cluster|reset", -2, "3.0.0")
        .summary("Resets a node.")
        .complexity(
            "O(N) where N is the number of known nodes. The command may execute a FLUSHALL as a side \
             effect.",
        )
        .flags(STALE_ADMIN.and(Flags::NOSCRIPT))
        .arguments(&[oneof("reset-type", &[token("HARD"), token("SOFT")]).optional()]),
    changing("cluster|saveconfig", 2, "3.0.0")
        .summary("Forces a node to save the cluster configuration to disk."),
    changing("cluster|set-config-epoch", 3, "3.0.0")
        .summary("Sets the configuration epoch for a new node.")
        .arguments(&[integer("config-epoch")]),
    changing("cluster|setslot", -4, "3.0.0")
        .summary("Binds a hash slot to a node.")
        .arguments(&[
            integer("slot"),
            oneof(
                "subcommand",
                &[
                    string("importing").token("IMPORTING").shown_as("node-id"),
                    string("migrating").token("MIGRATING").shown_as("node-id"),
                    string("node").token("NODE").shown_as("node-id"),
                    token("STABLE"),
                ],
            ),
        ]),
    cluster("cluster|slot-stats", -4, "8.2.0")
        .summary(
            "Return an array of slot usage statistics for slots assigned to the current node.",
        )
        .complexity(EACH_KEY)
        .tips(&["nondeterministic_output", "request_policy:all_shards"])
        .arguments(&[oneof(
            "filter",
            &[
                block("slotsrange", &[integer("start-slot"), integer("end-slot")])
                    .token("SLOTSRANGE"),
                block(
                    "orderby",
                    &[
                        string("metric"),
                        integer("limit").token("LIMIT").optional(),
                        oneof("order", &[token("ASC"), token("DESC")]).optional(),
                    ],
                )
                .token("ORDERBY"),
            ],
        )]),
    cluster("cluster|shards", 2, "7.0.0")
        .summary("Returns the mapping of cluster slots to shards.")
        .complexity("O(N) where N is the total number of cluster nodes")
        .flags(Flags::STALE.and(Flags::LOADING))
        .tips(CHANGING),
    cluster("cluster|slaves", 3, "3.0.0")
        .summary("Lists the replica nodes of a master node.")
        .complexity(EACH_REPLICA)
        .flags(STALE_ADMIN)
        .tips(CHANGING)
        .deprecated("5.0.0", "`CLUSTER REPLICAS`")
        .arguments(NODE_ID),
    cluster("cluster|slots", 2, "3.0.0")
        .summary("Returns the mapping of cluster slots to nodes.")
        .complexity(EACH_NODE)
        .flags(Flags::STALE.and(Flags::LOADING))
        .tips(CHANGING)
        .history(&[
            ("4.0.0", "Added node IDs."),
            ("7.0.0", "Added additional networking metadata field."),
        ])
        .deprecated("7.0.0", "`CLUSTER SHARDS`"),
];

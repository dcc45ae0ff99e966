//! Commands of Redis replication and Redis Cluster, which clients send when they connect. A server is a master without
//! replicas. If anything replicates, it is the store.

use bytes::Bytes;

use crate::command::arguments::{argument, is_word};
use crate::error::CommandError;
use crate::unit::context::Environment;
use quoin_resp::reply::Reply;

/// `REPLICAOF NO ONE` changes nothing. Any other master is refused.
pub(super) fn replicaof(
    environment: &Environment,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let (host, port) = (argument(arguments, 1)?, argument(arguments, 2)?);
    if is_word(host, "no") && is_word(port, "one") {
        return Ok(Reply::OK);
    }
    let port = std::str::from_utf8(port).ok();
    if port.and_then(|port| port.parse::<u16>().ok()).is_none() {
        return Err(CommandError::text("ERR Invalid master port"));
    }
    Err(CommandError::text(
        match environment.capabilities.has_other_writers {
            false => {
                "ERR REPLICAOF is not supported: this server's data is on one machine. Servers on a \
             FoundationDB cluster share replicated data (see docs/start/compatibility.md)"
            }
            true => {
                "ERR REPLICAOF is not supported: the FoundationDB cluster replicates the data (see \
             docs/start/compatibility.md)"
            }
        },
    ))
}

/// SYNC, PSYNC and REPLCONF. There is no stream of changes for a replica or `redis-cli --rdb` to follow.
pub(super) fn no_replication(_: &Environment, _: &[Bytes]) -> Result<Reply, CommandError> {
    Err(CommandError::text(
        "ERR this server has no replication stream. `quoin export` writes a dump file of Redis (RDB) over an \
         ordinary connection, and `quoin backup` makes a backup",
    ))
}

/// CLUSTER, READONLY, READWRITE, ASKING: the error of a Redis that is not part of a cluster. On the cluster port the
/// server executes them.
pub(super) fn no_cluster(_: &Environment, _: &[Bytes]) -> Result<Reply, CommandError> {
    Err(CommandError::text(
        "ERR This instance has cluster support disabled",
    ))
}

//! INFO's sections on what is stored, and on how Quoin stores it.

use super::lines;
use crate::error::CommandError;
use crate::executor::Work;
use crate::layout::LAYOUT_VERSION;
use crate::limits::DATABASES;
use crate::reply::Reply;
use crate::server::ServerState;
use crate::types::ReadContext;

/// Keys of each database that has any. They are counted a page at a time, all of them.
pub(super) async fn keyspace(
    state: &ServerState,
    text: &mut String,
) -> Result<(), CommandError> {
    text.push_str("# Keyspace\r\n");
    let count = Work::Read(|context, _| Box::pin(count_keys(context)));
    for database in 0..DATABASES {
        let counted = state.executor.run(count, database, Vec::new()).await?;
        let (keys, expiring) = match counted {
            Reply::Array(counts) => match counts.as_slice() {
                [Reply::Integer(keys), Reply::Integer(expiring)] => (*keys, *expiring),
                _ => continue,
            },
            Reply::Error(line) => return Err(CommandError::Text(line.into())),
            _ => continue,
        };
        if keys > 0 {
            text.push_str(&format!(
                "db{database}:keys={keys},expires={expiring},avg_ttl=0\r\n"
            ));
        }
    }
    Ok(())
}

async fn count_keys(context: &ReadContext<'_>) -> Result<Reply, CommandError> {
    let (keys, expiring) = context.count_keys().await?;
    Ok(Reply::Array(vec![
        Reply::Integer(keys),
        Reply::Integer(expiring),
    ]))
}

/// What there is of Quoin's own to tell.
pub(super) fn quoin(state: &ServerState, text: &mut String) {
    let settings = state.config.settings();
    let executor = state.executor.statistics();
    let batches = executor.batches.get();
    let commands = executor.batched_commands.get();
    let per_batch = commands as f64 / batches.max(1) as f64;
    text.push_str("# Quoin\r\n");
    lines! { text;
        "quoin_version": env!("CARGO_PKG_VERSION"),
        "store": state.store.capabilities().name,
        "fsync": settings.fsync.name(),
        "layout_version": LAYOUT_VERSION,
        "root_prefix": settings.root_prefix,
        "store_disk_bytes": state.store.disk_bytes().unwrap_or(0),
        "batches": batches,
        "batched_commands": commands,
        "commands_per_batch": format!("{per_batch:.2}"),
        "commits": executor.commits.get(),
        "conflicts": executor.conflicts.get(),
        "retries": executor.retries.get(),
        "unknown_results": executor.unknown_results.get(),
        "commands_rolled_back": executor.commands_rolled_back.get(),
        "expired_keys": executor.expired_keys.get(),
    }
}

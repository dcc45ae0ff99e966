//! QUEUE.TOP.

use std::time::Instant;

use bytes::Bytes;

use crate::connection_commands::shared::number;
use crate::session::Session;
use crate::state::ServerState;
use quoin_data::command::arguments::{integer_at_least, is_word, rest, to_usize};
use quoin_data::command::row::Row;
use quoin_data::error::CommandError;
use quoin_data::keyspace::kind::TypeKind;
use quoin_engine::QueueActivity;
use quoin_resp::reply::Reply;

/// Queues that are shown without COUNT.
const DEFAULT_COUNT: usize = 20;

/// `QUEUE.TOP [COUNT count]` → a map for each queue that the client may read, the most active first.
pub(super) fn top(
    row: &'static Row,
    arguments: &[Bytes],
    session: &Session,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    let count = match rest(arguments, 1) {
        [] => DEFAULT_COUNT,
        [word, count] if is_word(word, "count") => {
            let message = "ERR COUNT is out of range, must be positive";
            to_usize(integer_at_least(count, 1, message)?)
        }
        _ => {
            return Err(CommandError::text(
                "ERR syntax error, expected QUEUE.TOP [COUNT count]",
            ));
        }
    };
    let rights = session.user.definition();
    let mut queues = state.executor.activity().queues(Instant::now());
    queues.retain(|queue| rights.reads_key(row, arguments, &queue.key.key));
    queues.truncate(count);
    let keys = queues.iter().map(|queue| &queue.key);
    let waiting = state.executor.waiters().count_waiting(keys);
    let replies = queues.into_iter().zip(waiting);
    Ok(Reply::Array(
        replies
            .map(|(queue, waiting)| reply(queue, waiting))
            .collect(),
    ))
}

fn reply(queue: QueueActivity, waiting: usize) -> Reply {
    let QueueActivity {
        key,
        value_type,
        counts,
        in_per_second,
        out_per_second,
        ..
    } = queue;
    let fields = [
        ("db", Reply::Integer(i64::from(key.database))),
        ("key", Reply::Bulk(key.key)),
        ("type", Reply::bulk(value_type.kind().name)),
        ("in", number(counts.elements_in)),
        ("out", number(counts.elements_out)),
        ("retries", number(counts.retries)),
        ("deaths", number(counts.deaths)),
        ("in-per-second", Reply::Double(in_per_second)),
        ("out-per-second", Reply::Double(out_per_second)),
        ("waiting", Reply::count(waiting)),
    ];
    Reply::Map(
        fields
            .map(|(name, value)| (Reply::bulk(name), value))
            .into(),
    )
}

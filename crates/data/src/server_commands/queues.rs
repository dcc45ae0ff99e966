//! The rows of commands about queues of all types. The server executes them.

use crate::command::flags::Flags;
use crate::command::grammar::integer;
use crate::command::row::{ConnectionCommand, Group, Handler, Row};

const TOP: Handler = Handler::Connection(ConnectionCommand::QueueTop);

/// The commands about queues of all types.
pub const ROWS: &[Row] = &[Row::new("queue.top", -1, "0.1.0", Group::Queue, TOP)
    .summary(
        "Returns the most active queues of this server, 20 by default, with elements in and out, \
         retries, deaths, rates and waiting clients.",
    )
    .complexity("O(Q log Q), Q being the queues that are counted, at most 1,024")
    .flags(Flags::LOADING.and(Flags::STALE))
    .categories(&["@read"])
    .tips(&[
        "nondeterministic_output",
        "request_policy:all_nodes",
        "response_policy:special",
    ])
    .arguments(&[integer("count").token("COUNT").optional()])];

//! The rows of the task queues' commands.

use super::{options, read, schedules, steering, write};
use crate::command::flags::Flags;
use crate::command::grammar::{Argument, COUNT, block, double, integer, key, oneof, string, token};
use crate::command::key_specs::{CHECK, DELETE, INSERT, READ, TAKE, UPDATE, after_word, at};
use crate::command::row::{Group, Handler, Row};
use crate::taskqueue::dumping;
use crate::{read_handler, write_handler};

const ONE_TASK: &str = "O(log N)";
const EACH_TASK: &str = "O(log N) for each task";

const ID: Argument = string("id");
const MILLISECONDS: Argument = integer("milliseconds");
const WORKER: Argument = string("name").token("WORKER").optional();
const LEASE: Argument = block("lease", &[MILLISECONDS.token("LEASE"), WORKER]).optional();
const CURSOR: Argument = string("cursor").token("CURSOR").optional();
const TOKEN: Argument = string("token").token("TOKEN").optional();
/// The result that TASK.ACK keeps for one task.
const RESULT: Argument = block(
    "result",
    &[string("value").token("RESULT"), MILLISECONDS.token("KEEP")],
)
.optional();
/// Amounts of resources. The word before them says whether a task needs them or a consumer has them.
const AMOUNTS: Argument = block("amounts", &[string("resource"), double("amount")])
    .optional()
    .multiple();
const UNIQUE: Argument =
    block("unique", &[string("token").token("UNIQUE"), MILLISECONDS]).optional();
const TRIES: Argument = integer("tries").token("MAXTRIES").optional();
const DELAY: Argument = MILLISECONDS.token("DELAY").optional();
const TTL: Argument = MILLISECONDS.token("TTL").optional();
const GROUP: Argument = string("name").token("GROUP").optional();
/// The tasks that a task waits for.
const AFTER: Argument =
    block("after", &[integer("numids").token("AFTER"), ID.multiple()]).optional();
const SCHEDULE: Argument = string("name").token("SCHEDULE").optional();
/// When a schedule adds a task.
const TIMING: Argument = oneof(
    "timing",
    &[
        block(
            "cron",
            &[
                string("expression").token("CRON"),
                string("zone").token("TZ").optional(),
            ],
        ),
        MILLISECONDS.token("EVERY"),
    ],
);
const MISSED: Argument = oneof("missed", &[token("ONCE"), token("ALL"), token("SKIP")])
    .token("MISSED")
    .optional();

const STATE: Argument = oneof(
    "state",
    &[
        token("READY"),
        token("LEASED"),
        token("DELAYED"),
        token("DEAD"),
        token("WAITING"),
    ],
);

/// The options of a queue.
const OPTION: Argument = oneof(
    "option",
    &[
        integer("tries").token("MAXTRIES"),
        MILLISECONDS.token("BACKOFF"),
        MILLISECONDS.token("BACKOFFMAX"),
        integer("percent").token("JITTER"),
        MILLISECONDS.token("LEASE"),
        MILLISECONDS.token("TTL"),
        integer("tasks").token("MAXLEN"),
        integer("tasks").token("LEASES"),
        integer("tasks").token("GROUPLEASES"),
        block("rate", &[integer("tasks").token("RATE"), MILLISECONDS]),
        oneof("overflow", &[token("REFUSE"), token("DROP")]).token("OVERFLOW"),
        key(1).token("DEADLETTER"),
    ],
);

/// A row of a command. Redis has no ACL category for task queues.
const fn task(name: &'static str, arity: i32, handler: Handler) -> Row {
    Row::new(name, arity, "0.1.0", Group::TaskQueue, handler).categories(&["@taskqueue"])
}

/// The task queues' commands.
pub const ROWS: &[Row] = &[
    task("task.add", -4, write_handler!(write::add))
        .summary(
            "Adds a task with a priority and resource needs to a task queue. Creates the key if it \
             doesn't exist.",
        )
        .complexity(ONE_TASK)
        .flags(Flags::DENYOOM.and(Flags::FAST))
        .keys(&[at(1, INSERT)])
        .arguments(&[
            key(0),
            double("priority"),
            string("payload"),
            ID.token("ID").optional(),
            AMOUNTS.token("NEEDS"),
            DELAY,
            TRIES,
            TTL,
            UNIQUE,
            GROUP,
            AFTER,
            string("value").token("TRACEPARENT").optional(),
        ]),
    task("task.schedule", -8, write_handler!(schedules::schedule))
        .summary(
            "Sets a schedule, which adds a task to a task queue repeatedly, by a cron expression \
             or at an interval. Creates the key if it doesn't exist.",
        )
        .complexity(ONE_TASK)
        .flags(Flags::DENYOOM.and(Flags::FAST))
        .keys(&[at(1, INSERT)])
        .arguments(&[
            key(0),
            string("name"),
            TIMING,
            MISSED,
            double("priority").token("TASK"),
            string("payload"),
            AMOUNTS.token("NEEDS"),
            DELAY,
            TRIES,
            TTL,
            UNIQUE,
            GROUP,
        ]),
    task("task.unschedule", -3, write_handler!(schedules::unschedule))
        .summary("Removes schedules of a task queue. Deletes the key if it holds nothing else.")
        .complexity("O(log N) for each schedule")
        .flags(Flags::FAST)
        .keys(&[at(1, DELETE)])
        .arguments(&[key(0), string("name").multiple()]),
    task("task.schedules", -2, read_handler!(schedules::list))
        .summary("Returns some schedules of a task queue, and the cursor to continue from.")
        .complexity("O(log N + M), M being the schedules returned")
        .keys(&[at(1, READ)])
        .arguments(&[key(0), CURSOR, COUNT]),
    task("task.take", -2, write_handler!(write::take))
        .summary(
            "Takes the first tasks whose needs fit the consumer's resources, for good or with a \
             lease. Optionally blocks until there is one.",
        )
        .complexity(
            "O(log N) for each task, unless what single tasks need is hidden by others' needs \
             (docs/start/task-queues.md)",
        )
        .flags(Flags::BLOCKING)
        .flags(Flags::CONTENDS)
        .keys(&[at(1, TAKE)])
        .arguments(&[
            key(0),
            COUNT,
            AMOUNTS.token("HAVING"),
            LEASE,
            MILLISECONDS.token("BLOCK").optional(),
        ])
        .waits(write::wait_for_task),
    task("task.ack", -3, write_handler!(write::ack))
        .summary(
            "Removes leased tasks that are done, and optionally keeps the result of one for a \
             time. Deletes the task queue if no task is left and nothing is kept.",
        )
        .complexity(EACH_TASK)
        .flags(Flags::FAST)
        .flags(Flags::CONTENDS)
        .keys(&[at(1, TAKE)])
        .arguments(&[key(0), ID.multiple(), RESULT, TOKEN]),
    task("task.nack", -3, write_handler!(write::nack))
        .summary("Returns a leased task to its queue, at once or after a delay.")
        .complexity(ONE_TASK)
        .flags(Flags::FAST)
        .flags(Flags::CONTENDS)
        .keys(&[at(1, UPDATE)])
        .arguments(&[
            key(0),
            ID,
            DELAY,
            string("text").token("REASON").optional(),
            TOKEN,
        ]),
    task("task.extend", -4, write_handler!(write::extend))
        .summary("Sets the remaining time of a task's lease.")
        .complexity(ONE_TASK)
        .flags(Flags::FAST)
        .keys(&[at(1, UPDATE)])
        .arguments(&[key(0), ID, MILLISECONDS, TOKEN]),
    task("task.mextend", -4, write_handler!(write::extend_many))
        .summary("Sets the remaining time of the leases of one or more tasks.")
        .complexity(EACH_TASK)
        .flags(Flags::FAST)
        .keys(&[at(1, UPDATE)])
        .arguments(&[key(0), MILLISECONDS, ID.multiple(), TOKEN]),
    task("task.progress", -4, write_handler!(write::progress))
        .summary("Records the progress of a leased task.")
        .complexity(ONE_TASK)
        .flags(Flags::FAST)
        .keys(&[at(1, UPDATE)])
        .arguments(&[key(0), ID, string("value"), TOKEN]),
    task("task.cancel", -3, write_handler!(steering::cancel))
        .summary("Removes one or more tasks in any state.")
        .complexity(EACH_TASK)
        .flags(Flags::FAST)
        .keys(&[at(1, DELETE)])
        .arguments(&[key(0), ID.multiple()]),
    task("task.revive", -3, write_handler!(steering::revive))
        .summary(
            "Makes dead tasks ready again: those with the given ids, or with ALL up to a thousand, \
             longest dead first. By id, also makes waiting tasks ready.",
        )
        .complexity(EACH_TASK)
        .keys(&[at(1, UPDATE)])
        .arguments(&[key(0), oneof("tasks", &[token("ALL"), ID.multiple()])]),
    task("task.purge", -3, write_handler!(steering::purge))
        .summary(
            "Removes up to a thousand tasks in a state, and returns the cursor to continue from \
             and the number removed. Deletes the task queue if the last task was removed.",
        )
        .complexity("O(log N + M), M being the tasks examined")
        .keys(&[at(1, DELETE)])
        .arguments(&[key(0), STATE, CURSOR]),
    task("task.move", -4, write_handler!(steering::move_tasks))
        .summary(
            "Moves tasks that are not leased to another task queue, where they keep their states. \
             Deletes the task queue if the last task was moved.",
        )
        .complexity(EACH_TASK)
        .flags(Flags::DENYOOM)
        .keys(&[at(1, TAKE), at(2, INSERT)])
        .arguments(&[
            key(0).named("source"),
            key(1).named("destination"),
            ID.multiple(),
        ]),
    task("task.pause", -2, write_handler!(steering::pause))
        .summary(
            "Stops a task queue from handing out tasks, or a schedule from adding them. Creates \
             the task queue if it doesn't exist.",
        )
        .complexity(ONE_TASK)
        // Not DENYOOM: a full disk is a reason to pause, and a pause is one small row.
        .flags(Flags::FAST)
        .keys(&[at(1, INSERT)])
        .arguments(&[key(0), SCHEDULE]),
    task("task.resume", -2, write_handler!(steering::resume))
        .summary("Resumes a paused task queue or schedule. Deletes the key if it holds nothing.")
        .complexity("O(log N) and the takes of clients that wait")
        .keys(&[at(1, UPDATE)])
        .arguments(&[key(0), SCHEDULE]),
    task("task.setoptions", -4, write_handler!(options::set))
        .summary(
            "Sets options of a task queue. They apply to tasks added, taken or returned from then \
             on. Creates the key if it doesn't exist.",
        )
        .complexity(ONE_TASK)
        .flags(Flags::DENYOOM.and(Flags::FAST))
        .keys(&[at(1, INSERT), after_word("DEADLETTER", 2, INSERT)])
        .arguments(&[key(0), OPTION.multiple()]),
    task("task.getoptions", 2, read_handler!(options::get))
        .summary("Returns the options of a task queue, as TASK.SETOPTIONS takes them.")
        .complexity(ONE_TASK)
        .flags(Flags::FAST)
        .keys(&[at(1, CHECK)])
        .arguments(&[key(0)]),
    task("task.get", 3, read_handler!(read::get))
        .summary("Returns information about a task.")
        .complexity(ONE_TASK)
        .flags(Flags::FAST)
        .keys(&[at(1, READ)])
        .arguments(&[key(0), ID]),
    task("task.result", -3, read_handler!(read::result))
        .summary(
            "Returns the result of an acknowledged task. Optionally blocks until there is one.",
        )
        .complexity(ONE_TASK)
        .flags(Flags::BLOCKING)
        .keys(&[at(1, READ)])
        .arguments(&[key(0), ID, MILLISECONDS.token("BLOCK").optional()])
        .waits(read::wait_for_result),
    task("task.list", -3, read_handler!(read::list))
        .summary(
            "Returns some tasks in a state, without payloads, and the cursor to continue from.",
        )
        .complexity("O(log N + M), M being the tasks examined")
        .keys(&[at(1, READ)])
        .arguments(&[key(0), STATE, CURSOR, COUNT]),
    task("task.peek", -2, read_handler!(read::peek))
        .summary("Returns the tasks that TASK.TAKE would take, without taking them.")
        .complexity("As TASK.TAKE")
        .keys(&[at(1, READ)])
        .arguments(&[key(0), COUNT, AMOUNTS.token("HAVING")]),
    task("task.len", -2, read_handler!(read::len))
        .summary("Returns the number of tasks in a task queue, in all states or in one.")
        .complexity(ONE_TASK)
        .flags(Flags::FAST)
        .keys(&[at(1, CHECK)])
        .arguments(&[key(0), STATE.optional()]),
    task("task.dead", -2, read_handler!(read::dead))
        .summary(
            "Returns dead tasks, which have used up their tries, with the reason given by the last \
             TASK.NACK.",
        )
        .complexity("O(log N + M), M being the tasks returned")
        .keys(&[at(1, READ)])
        .arguments(&[key(0), COUNT]),
    task("task.info", 2, read_handler!(read::info))
        .summary("Returns information about a task queue.")
        .complexity(ONE_TASK)
        .flags(Flags::FAST)
        .keys(&[at(1, CHECK)])
        .arguments(&[key(0)]),
    task("task.scandump", -3, read_handler!(dumping::scan_dump))
        .summary(
            "Returns some tasks in any state in the format of DUMP, and the cursor to continue \
             from.",
        )
        .complexity(EACH_TASK)
        .keys(&[at(1, READ)])
        .arguments(&[key(0), string("cursor"), COUNT]),
    task("task.loadchunk", 3, write_handler!(dumping::load_chunk))
        .summary("Adds tasks that TASK.SCANDUMP returned. Creates the key if it doesn't exist.")
        .complexity(EACH_TASK)
        .flags(Flags::DENYOOM)
        .keys(&[at(1, INSERT)])
        .categories(&["@taskqueue", "@dangerous"])
        .arguments(&[key(0), string("chunk")]),
];

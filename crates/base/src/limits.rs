//! Every limit of Quoin, in one place. docs/operate/limits.md explains those that a user can meet.

/// Arguments in one request (Redis: `proto-max-multibulk-len`, 1024 * 1024).
pub const REQUEST_ARGUMENTS_MAX: usize = 1_048_576;
/// Bytes of one bulk argument (Redis: `proto-max-bulk-len`).
pub const REQUEST_BULK_BYTES_MAX: usize = 512 * 1024 * 1024;
/// Bytes of one inline request, and of one length line (Redis: `PROTO_INLINE_MAX_SIZE`).
pub const REQUEST_INLINE_BYTES_MAX: usize = 64 * 1024;
/// Bytes of one whole request.
pub const REQUEST_BYTES_MAX: usize = 1024 * 1024 * 1024;
/// Longest argument that shares an allocation with other arguments of its request.
pub const REQUEST_SHARED_ARGUMENT_BYTES_MAX: usize = 1024;
/// Bytes of such a shared allocation: one argument can keep all of it in memory.
pub const REQUEST_SHARED_CHUNK_BYTES_MAX: usize = 16 * 1024;
/// Arguments in such a shared allocation.
pub const REQUEST_SHARED_CHUNK_ARGUMENTS_MAX: usize = 1024;
/// A bulk of at least this length is received into its own buffer and never copied (Redis:
/// `PROTO_MBULK_BIG_ARG`).
pub const REQUEST_OWN_BUFFER_BYTES_MIN: usize = 32 * 1024;
/// Maximum bytes reserved for the announced length of a bulk before they arrive. After that, the
/// buffer doubles with what has arrived.
pub const REQUEST_RESERVE_BYTES_MAX: usize = 1024 * 1024;
/// Maximum number of arguments for which space is reserved when a request announces its count
/// (Redis: 1024).
pub const REQUEST_RESERVE_ARGUMENTS_MAX: usize = 1024;
/// Arguments that an unauthenticated client may send (Redis 7: 10).
pub const UNAUTHENTICATED_ARGUMENTS_MAX: usize = 10;
/// Bytes of a bulk that an unauthenticated client may send (Redis 7: 16384).
pub const UNAUTHENTICATED_BULK_BYTES_MAX: usize = 16_384;

/// Unread requests that an unauthenticated client may leave in its query buffer (Redis since 7.4: 1 MiB). For
/// other clients it is `client-query-buffer-limit`.
pub const UNAUTHENTICATED_INPUT_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of replies that do not count against `client-output-buffer-limit` (Redis:
/// `PROTO_REPLY_CHUNK_BYTES`).
pub const UNCOUNTED_OUTPUT_BYTES: usize = 16 * 1024;
/// Longest time that one client's output may delay a shutdown, over all its waits.
pub const SHUTDOWN_OUTPUT_WAIT_MAX: std::time::Duration = std::time::Duration::from_secs(1);
/// The least that `maxmemory-clients` may mean (Redis: 128 KiB): clients must be able to undo a
/// mistake.
pub const CLIENT_EVICTION_LIMIT_BYTES_MIN: u64 = 128 * 1024;
/// Connections that may wait to be accepted (Redis: `tcp-backlog`).
pub const LISTEN_BACKLOG: u32 = 511;
/// File descriptors that are not for clients (Redis: `CONFIG_MIN_RESERVED_FDS`): the store's files,
/// one address, the runtime's, and temporary ones.
pub const DESCRIPTORS_RESERVED: u64 = 32;
/// Additional ones for each address after the first: the address, its spare, and a refused client.
pub const DESCRIPTORS_PER_FURTHER_ADDRESS: u64 = 3;
/// Additional ones if metrics are served.
pub const DESCRIPTORS_RESERVED_METRICS: u64 = METRICS_CONNECTIONS_MAX as u64 + 8;
/// Additional ones if the dashboard is served: connections of browsers, and its own ends of
/// sessions' connections. The other ends count as clients.
pub const DESCRIPTORS_RESERVED_DASHBOARD: u64 =
    DASHBOARD_CONNECTIONS_MAX as u64 + DASHBOARD_SESSIONS_MAX as u64 + 8;
/// Additional ones for the thread that sends traces: its own, its connection, and those of a name
/// lookup.
pub const DESCRIPTORS_RESERVED_TRACES: u64 = 12;
/// Additional ones for FoundationDB's client, which connects to many processes of a cluster.
pub const DESCRIPTORS_RESERVED_FDB: u64 = 256;

/// Maximum number of queues whose elements are counted: the most active ones.
pub const COUNTED_QUEUES_MAX: usize = 1_024;
/// Bytes of the name of such a queue. A queue with a longer name is not counted.
pub const COUNTED_QUEUE_NAME_BYTES_MAX: usize = 512;
/// Most queues that the setting `metrics-queues` allows.
pub const METRICS_QUEUES_MAX: u32 = 256;
/// How long a queue stays among the metrics after others have become more active.
pub const METRICS_QUEUES_STAY: std::time::Duration = std::time::Duration::from_secs(600);
/// Patterns in the setting `metrics-keys`.
pub const METRICS_KEYS_PATTERNS_MAX: usize = 64;
/// Keys whose lengths are among the metrics. Further keys are only counted.
pub const METRICS_KEYS_MAX: usize = 256;
/// Bytes of the name of such a key. A key with a longer name is only counted.
pub const METRICS_KEY_NAME_BYTES_MAX: usize = 512;
/// Names compared with the patterns of `metrics-keys` in one round.
pub const METRICS_NAMES_PER_ROUND_MAX: usize = 10_000;
/// Time between two lookups of the keys in `metrics-keys`.
pub const METRICS_KEYS_INTERVAL: std::time::Duration = std::time::Duration::from_secs(5);
/// Bytes by which a command that a full disk does not refuse may enlarge the data: a consumer's
/// records about what it takes.
pub const FULL_DISK_COMMAND_BYTES_MAX: i64 = 64 * 1024;
/// A disk counts as nearly full if less than one part in this number is free, and less than
/// [`DISK_NEARLY_FULL_BYTES_MAX`].
pub const DISK_NEARLY_FULL_DIVISOR: u64 = 10;
/// The most that may be left on a disk that counts as nearly full, in bytes.
pub const DISK_NEARLY_FULL_BYTES_MAX: u64 = 32 << 30;
/// Longest time for an answer of the store for `/readyz` to return 200.
pub const READY_ANSWER_MAX: std::time::Duration = std::time::Duration::from_secs(1);
/// Concurrent connections that read metrics. More connections wait to be accepted.
pub const METRICS_CONNECTIONS_MAX: usize = 16;
/// Bytes of a request for metrics (the least that the HTTP library takes).
pub const METRICS_REQUEST_BYTES_MAX: usize = 8 * 1024;
/// Maximum duration of a connection that reads metrics.
pub const METRICS_CONNECTION_MAX: std::time::Duration = std::time::Duration::from_secs(5);

/// Spans that wait to be sent to the collector of `trace-endpoint`, and spans of one batch of
/// commands. Excess spans are dropped.
pub const TRACE_SPANS_MAX: usize = 8_192;
/// Spans in one request to the collector.
pub const TRACE_REQUEST_SPANS_MAX: usize = 512;
/// Bytes of a text in a span: a queue's name, a task's id, a worker, a reason. The rest is cut off.
pub const TRACE_TEXT_BYTES_MAX: usize = 256;
/// Maximum duration of a request to the collector.
pub const TRACE_REQUEST_MAX: std::time::Duration = std::time::Duration::from_secs(5);
/// Bytes of a collector's answer.
pub const TRACE_ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Concurrent connections of browsers to the dashboard. More connections wait to be accepted.
pub const DASHBOARD_CONNECTIONS_MAX: usize = 8;
/// Maximum duration of such a connection.
pub const DASHBOARD_CONNECTION_MAX: std::time::Duration = std::time::Duration::from_secs(30);
/// Bytes of the head of a request to the dashboard, and of a form.
pub const DASHBOARD_REQUEST_BYTES_MAX: usize = 64 * 1024;
/// Sessions of the dashboard. A further login ends the one that has been idle longest.
pub const DASHBOARD_SESSIONS_MAX: usize = 32;
/// Maximum idle time of a dashboard session.
pub const DASHBOARD_IDLE_MAX: std::time::Duration = std::time::Duration::from_secs(30 * 60);
/// Maximum duration of a dashboard session.
pub const DASHBOARD_SESSION_MAX: std::time::Duration = std::time::Duration::from_secs(12 * 3600);
/// Logins that may fail within a minute from one address, and from all together.
pub const DASHBOARD_FAILURES_MAX: (u32, u32) = (5, 60);
/// Names that a page of queues examines.
pub const DASHBOARD_NAMES_MAX: usize = 2_000;
/// Names that the dashboard's page of frameworks examines.
pub const DASHBOARD_FRAMEWORK_NAMES_MAX: usize = 10_000;
/// Queues that it shows.
pub const DASHBOARD_FRAMEWORK_QUEUES_MAX: usize = 200;
/// Elements on a page of the dashboard.
pub const DASHBOARD_ROWS_MAX: usize = 50;
/// Clients that the dashboard shows.
pub const DASHBOARD_CLIENTS_MAX: usize = 200;
/// Number of keys that the dashboard shows for a waiting client.
pub const DASHBOARD_WAIT_KEYS_MAX: usize = 3;
/// Bytes of an element that the dashboard shows.
pub const DASHBOARD_SHOWN_BYTES_MAX: usize = 16 * 1024;
/// Steps of a thousand tasks that a button of the dashboard removes or revives in one request.
pub const DASHBOARD_STEPS_MAX: usize = 100;
/// Names that `quoin top` examines in a refresh.
pub const TOP_NAMES_MAX: usize = 5_000;
/// Queues that `quoin top` keeps.
pub const TOP_QUEUES_MAX: usize = 10_000;
/// Elements that `quoin queues peek` shows at most.
pub const PEEK_COUNT_MAX: i64 = 1_000;
/// Samples in a chart, which together cover an hour.
pub const HISTORY_SAMPLES_MAX: usize = 720;
/// Time between two samples of the charts.
pub const HISTORY_INTERVAL: std::time::Duration = std::time::Duration::from_secs(5);

/// Longest handshake of a client of `tls-port`.
pub const TLS_HANDSHAKE_MAX: std::time::Duration = std::time::Duration::from_secs(10);
/// Concurrent handshakes. More clients wait within their time. A client that has not yet sent its
/// whole first message does not count.
pub const TLS_HANDSHAKES_MAX: usize = 256;
/// Of these, for clients of one IP address or, with IPv6, of one /64 network.
pub const TLS_HANDSHAKES_PER_ADDRESS_MAX: usize = 64;
/// Bytes of a file of certificates or of a key.
pub const TLS_FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Files in a folder of certificates of authorities (`tls-ca-cert-dir`).
pub const TLS_CA_FILES_MAX: usize = 10_000;
/// Most iterations for deriving a key from the password of a key file (OpenSSL: 2,048).
pub const TLS_KEY_ITERATIONS_MAX: u32 = 10_000_000;
/// Bytes that scrypt works through for the same, all its passes together (OpenSSL: 16 MiB).
pub const TLS_KEY_SCRYPT_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Error codes that INFO errorstats counts; others are not counted.
pub const ERROR_CODES_MAX: usize = 128;
/// Arguments of a command that the slow log keeps (Redis: `SLOWLOG_ENTRY_MAX_ARGC`).
pub const SLOWLOG_ARGUMENTS_MAX: usize = 32;
/// Bytes of an argument that the slow log keeps (Redis: `SLOWLOG_ENTRY_MAX_STRING`).
pub const SLOWLOG_ARGUMENT_BYTES_MAX: usize = 128;
/// Bytes of a key, a channel or a user's name in the ACL log. Redis does not truncate them.
pub const ACL_LOG_NAME_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a user's name in the store of a cluster.
pub const USER_NAME_BYTES_MAX: usize = 1024;
/// Bytes of a user's rules in the store of a cluster. They are one row.
pub const USER_RULES_BYTES_MAX: usize = 64 * 1024;
/// Bits of a password of ACL GENPASS (Redis: `GENPASS_MAX_BITS`).
pub const GENERATED_PASSWORD_BITS_MAX: i64 = 4096;
/// Samples that the latency monitor keeps of each event (Redis: `LATENCY_TS_LEN`).
pub const LATENCY_SAMPLES_MAX: usize = 160;
/// Rows of other servers' messages that are read at a time.
pub const RELAY_ROWS_PER_READ: usize = 64;
/// Rows of other servers' messages that a batch reads to know which keys are still empty.
pub const RELAY_ROWS_PER_BATCH: usize = 256;
/// Interval at which other servers' messages are read even if none were announced.
pub const RELAY_POLL: std::time::Duration = std::time::Duration::from_secs(2);
/// Pause after other servers' messages could not be read.
pub const RELAY_RETRY: std::time::Duration = std::time::Duration::from_millis(200);
/// Time that SUBSCRIBE waits for a store that does not answer before it confirms.
pub const RELAY_START_MAX: std::time::Duration = std::time::Duration::from_secs(1);
/// Keys that MIGRATE sends at a time.
pub const MIGRATED_KEYS_AT_ONCE: usize = 1_000;
/// Bytes of names and values that MIGRATE holds at a time, plus one key.
pub const MIGRATED_BYTES_AT_ONCE: usize = 8 * 1024 * 1024;
/// Concurrent lookups of host names for MIGRATE and `trace-endpoint`. Each uses a thread, and
/// others wait.
pub const NAME_LOOKUPS_MAX: usize = 4;
/// Number of marks of servers to which others report changed keys, read at a time.
pub const CHANGE_MARKS_PER_READ: usize = 1_000;
/// Time without a sign of life after which other servers remove such a mark.
pub const CHANGE_MARK_DEAD_AFTER: std::time::Duration = std::time::Duration::from_secs(60);
/// Bytes of names of changed keys that a batch sends to other servers. If there are more, it
/// reports that all keys have changed.
pub const TRACKED_NAMES_BYTES_MAX: usize = 256 * 1024;
/// Bytes of key names remembered for clients that track them. Beyond it, random keys are forgotten,
/// as if they had changed.
pub const TRACKED_KEYS_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Changed keys remembered while tracking clients read. If there are more, everything that they
/// read counts as changed.
pub const TRACKED_RECENT_CHANGES_MAX: usize = 100_000;
/// Names of masters that clients with Sentinel may ask for.
pub const MASTER_NAMES_MAX: usize = 64;
/// Bytes of such a name.
pub const MASTER_NAME_BYTES_MAX: usize = 128;
/// Bytes of a host name (RFC 1035).
pub const HOST_NAME_BYTES_MAX: usize = 253;
/// Servers that share a store. The others do not see further ones.
pub const SERVERS_MAX: usize = 256;
/// Names for which an operator may have chosen a server.
pub const CHOICES_MAX: usize = 256;
/// Time between two signs of life of a server that shares its store with others.
pub const SERVER_BEAT_INTERVAL: std::time::Duration = std::time::Duration::from_secs(1);
/// Time without a sign of life after which the others consider a server dead.
pub const SERVER_DEAD_AFTER: std::time::Duration = std::time::Duration::from_secs(3);
/// Time after which the others remove the row of a dead server.
pub const SERVER_REMOVED_AFTER: std::time::Duration = std::time::Duration::from_secs(60);
/// Maximum duration of a beat, and of removing this server's row at a shutdown.
pub const SERVER_BEAT_MAX: std::time::Duration = std::time::Duration::from_secs(1);
/// Prefixes that one client tracks with CLIENT TRACKING … BCAST.
pub const TRACKED_PREFIXES_PER_CLIENT_MAX: usize = 10_000;
/// Messages for other servers stay in the store for one to two times as long.
pub const RELAY_CLEAR_INTERVAL: std::time::Duration = std::time::Duration::from_secs(5);
/// Channels and patterns that one client may be subscribed to (Redis has no limit but memory).
pub const SUBSCRIPTIONS_PER_CLIENT_MAX: usize = 1_000_000;
/// The same for a client of the Sentinel port, which has few channels and needs no password.
pub const SENTINEL_SUBSCRIPTIONS_MAX: usize = 64;
/// A table is never shrunk below this many places.
pub const IDLE_TABLE_ENTRIES_MAX: usize = 1_024;

/// Databases that SELECT reaches, unless the setting `databases` says otherwise (Redis's default).
pub const DATABASES: u32 = 16;
/// Upper bound of the setting. Background work checks each database.
pub const DATABASES_MAX: u32 = 1_024;

/// Once one submission's replies have this many bytes, the rest waits until they have been sent.
/// Less if there are many clients, because all of them share an eighth of `maxmemory-clients`.
pub const SUBMISSION_REPLY_BYTES_MAX: usize = 256 * 1024;
/// The lower bound for that.
pub const SUBMISSION_REPLY_BYTES_MIN: usize = 4 * 1024;
/// A batch ends once its replies have this many bytes. The rest of its commands waits.
pub const BATCH_REPLY_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes of replies in transit from the executor to connections. Above it, the lanes wait.
pub const REPLIES_IN_FLIGHT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bytes of the messages that one command, script or EXEC publishes, in addition to its first
/// message.
pub const PUBLISHED_BYTES_MAX: usize = 256 * 1024 * 1024;
/// A batch ends once its published messages have this many bytes.
pub const BATCH_MESSAGE_BYTES_SOFT_MAX: usize = 16 * 1024 * 1024;
/// Bytes of a script's line in the log, and of a client's data in the log (Redis: `LOG_MAX_LEN`).
pub const LOG_TEXT_BYTES_MAX: usize = 1_024;
/// How long a connection stays open so that a client that is still sending receives the last reply:
/// after the client's last bytes, and in total. Also the bytes that are read meanwhile.
pub const LINGER_IDLE_MAX: std::time::Duration = std::time::Duration::from_secs(1);
/// See [`LINGER_IDLE_MAX`].
pub const LINGER_MAX: std::time::Duration = std::time::Duration::from_secs(30);
/// See [`LINGER_IDLE_MAX`].
pub const LINGER_BYTES_MAX: usize = REQUEST_BYTES_MAX;
/// Number of refused clients of one listener whose connections stay open that long at the same
/// time. They do not use slots of other clients. Further refused clients may see the end before the
/// reason.
pub const LINGERING_REFUSED_MAX: usize = 8;
/// Submissions that wait for a lane of the executor. More wait in their connections.
pub const LANE_QUEUE_MAX: usize = 16_384;

/// Commands that a client may queue between MULTI and EXEC.
pub const TRANSACTION_COMMANDS_MAX: usize = 1024 * 1024;
/// Bytes of their arguments, including overhead.
pub const TRANSACTION_QUEUE_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Bytes of their replies, all of which EXEC holds at once.
pub const TRANSACTION_REPLY_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Keys that a client may watch at once.
pub const WATCHED_KEYS_MAX: usize = 100_000;
/// Watched keys of a database that FLUSHDB, FLUSHALL and SWAPDB check for existence. If there are more, all
/// count as changed.
pub const EXCHANGED_WATCHED_KEYS_MAX: usize = 10_000;

/// Bytes of memory that a script may use (Redis has no limit).
pub const SCRIPT_MEMORY_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Largest memory of an idle script machine that is kept for other scripts.
pub const SCRIPT_MEMORY_KEPT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of address space for the stack of a script.
pub const SCRIPT_STACK_BYTES: usize = 8 * 1024 * 1024;
/// Nesting depth of tables that a script may return (Redis: about 8,000).
pub const SCRIPT_REPLY_DEPTH_MAX: usize = 256;
/// Compiled scripts that a machine keeps.
pub const SCRIPTS_COMPILED_MAX: usize = 512;
/// Machines for scripts that a thread keeps.
pub const SCRIPT_MACHINES_KEPT_MAX: usize = 16;
/// Scripts from the store that a server keeps in memory.
pub const SCRIPTS_KNOWN_MAX: usize = 10_000;
/// Bytes of their texts.
pub const SCRIPTS_KNOWN_BYTES_MAX: usize = 64 * 1024 * 1024;
/// EVAL scripts that stay in the store (Redis 7.4: 500).
pub const SCRIPTS_OF_EVAL_MAX: usize = 1_000;
/// Interval at which scripts replaced by newer ones are removed.
pub const SCRIPT_SWEEP_INTERVAL_MS: u64 = 30_000;
/// Maximum duration of a script on a cluster, whose transactions can read for five seconds.
pub const SCRIPT_CLUSTER_TIME_MAX: std::time::Duration = std::time::Duration::from_secs(4);

/// Libraries of functions (Redis has no limit).
pub const LIBRARIES_MAX: usize = 1_000;
/// Bytes of the code of all libraries. Every server keeps it in memory.
pub const LIBRARIES_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Libraries that a machine keeps loaded.
pub const LIBRARIES_LOADED_MAX: usize = 64;
/// Time that FUNCTION LOAD gives a library to register its functions (Redis: `LOAD_TIMEOUT_MS`).
pub const LIBRARY_LOAD_TIME_MAX: std::time::Duration = std::time::Duration::from_millis(500);

/// Bytes of the arguments of forwarded commands. Sending larger ones costs more than it saves.
pub const FORWARDED_BYTES_MAX: usize = 256 * 1024;
/// Bytes of a frame that asks another server to run commands.
pub const FORWARDED_FRAME_BYTES_MAX: usize = 4 * FORWARDED_BYTES_MAX;
/// Bytes of a frame with their replies.
pub const FORWARDED_REPLY_FRAME_BYTES_MAX: usize = 1024 * 1024 * 1024;
/// Concurrent submissions forwarded by this server. It runs further ones itself.
pub const FORWARDED_MAX: usize = 4096;
/// Bytes of those submissions. This server runs further ones itself.
pub const FORWARDED_BYTES_AT_ONCE_MAX: usize = 16 * 1024 * 1024;

/// Commands that share one store transaction.
pub const BATCH_COMMANDS_MAX: usize = 4096;
/// Number of submissions for different keys that one batch takes before others are left to parallel
/// batches. Their reads wait for each other, but a commit costs as much as several.
pub const BATCH_KEYS_SHARE_MIN: usize = 8;
/// Longest pause in which the embedded store's write lane waits for the clients of the last batch.
pub const GATHER_MAX: std::time::Duration = std::time::Duration::from_millis(2);
/// After a shorter commit there is no such pause. Measured with 50 clients without rounds: at 0.3
/// ms the pause costs up to a fifth of the rate, at 1 ms it gains a tenth, at 6 ms half.
pub const GATHER_DURATION_MIN: std::time::Duration = std::time::Duration::from_millis(1);
/// Longest such pause between batches of one key on a cluster.
pub const GATHER_CLUSTER_MAX: std::time::Duration = std::time::Duration::from_millis(8);
/// A shorter pause is skipped, because timers are too coarse for it.
pub const GATHER_CLUSTER_MIN: std::time::Duration = std::time::Duration::from_micros(500);
/// On a cluster, a batch of at least this many commands is not followed by a pause. So many
/// commands share the cost of a transaction well enough, and the clients work while the store does.
pub const GATHER_CLUSTER_COMMANDS_MAX: usize = 480;
/// Interval at which the pause checks whether the clients have returned.
pub const GATHER_STEP: std::time::Duration = std::time::Duration::from_micros(50);
/// Submissions that share one read snapshot.
pub const READ_BATCH_COMMANDS_MAX: usize = 256;
/// Concurrent read snapshots of a lane, on a store whose reads are round trips.
pub const READ_BATCHES_MAX: usize = 64;
/// How long a batch may run commands before it commits what it has.
pub const BATCH_AGE_MAX_MS: u64 = 100;
/// A batch reads ahead for a command that takes at most this many elements from a queue.
pub const TAKEN_AHEAD_MAX: usize = 1_024;
/// On a cluster, an awaited key is checked again after this time even if nothing was reported about
/// it. Longer if more keys are awaited than [`WAITERS_RECHECKED_PER_POLL`] allows.
pub const WAITERS_RECHECKED_AFTER: std::time::Duration = std::time::Duration::from_secs(20);
/// Maximum number of awaited keys that are checked again in each [`RELAY_POLL`].
pub const WAITERS_RECHECKED_PER_POLL: usize = 50;
/// Attempts at committing one batch before its commands are answered with an error.
pub const COMMIT_ATTEMPTS_MAX: u32 = 64;
/// Time after which a repeatedly failing batch is given up.
pub const COMMIT_RETRY_MAX_MS: u64 = 5_000;

/// Longest key or member that is stored unchanged within a store key. With every byte escaped this
/// stays below LMDB's limit of 1,982 bytes. Longer ones are stored as prefix and label or digest
/// (docs/understand/layout.md).
pub const INLINE_NAME_BYTES_MAX: usize = 900;
/// Bytes of the key of a list element or score; below LMDB's limit for keys.
pub const ELEMENT_KEY_BYTES_MAX: usize = 1_900;
/// Bytes of one chunk of a split value (FoundationDB: 100,000 for a value, including our header).
pub const VALUE_CHUNK_BYTES_MAX: usize = 90_000;
/// Rows that a long range read fetches at a time.
pub const RANGE_PAGE_ROWS: usize = 1024;
/// Bytes of such a page, unless one row has more. On a cluster a page may exceed them by the largest
/// rows, of 100 kB.
pub const RANGE_PAGE_BYTES: usize = 2 * 1024 * 1024;

/// Largest transaction that a batch may become on the FoundationDB store.
pub const FDB_BATCH_BYTES_SOFT_MAX: usize = 900_000;
/// Above this transaction size, the FoundationDB store refuses a command (FoundationDB: 10 MB
/// including its overhead).
pub const FDB_TRANSACTION_BYTES_MAX: usize = 9_000_000;
/// Bytes of one value on FoundationDB.
pub const FDB_VALUE_BYTES_MAX: usize = 100_000;
/// Bytes of a client's key name on FoundationDB. It is part of a value that has other fields too,
/// and its zero bytes are doubled there.
pub const FDB_KEY_NAME_BYTES_MAX: usize = 48 * 1024;
const _: () = assert!(2 * FDB_KEY_NAME_BYTES_MAX + 1_000 <= FDB_VALUE_BYTES_MAX);
/// Time that a FoundationDB transaction may take in total, including its commit. It is more than the 5
/// seconds that a transaction can read for, and enough for a recovery of a cluster.
pub const FDB_TRANSACTION_TIMEOUT_MS: i32 = 10_000;
/// Longest time for an answer of a FoundationDB cluster when the store is opened.
pub const FDB_CONNECT_TIMEOUT_MS: i32 = 5_000;
/// Watches that may be open at once on FoundationDB (its own default is 10,000).
pub const FDB_WATCHES_MAX: i32 = 1_000_000;
/// Largest transaction that a batch may become on the embedded store.
pub const EMBEDDED_BATCH_BYTES_SOFT_MAX: usize = 16 * 1024 * 1024;
/// Above this transaction size, the embedded store refuses a command.
pub const EMBEDDED_TRANSACTION_BYTES_MAX: usize = 1024 * 1024 * 1024;
/// Virtual address space that the embedded store reserves: the largest that its file can become.
pub const EMBEDDED_MAP_BYTES: usize = 1 << 40;
/// Read transactions that may be open at once on the embedded store.
pub const EMBEDDED_READERS_MAX: u32 = 1024;
/// Watches that may be open at once on the embedded store.
pub const EMBEDDED_WATCHES_MAX: usize = 1_000_000;
/// With `fsync = everysec`, writes wait for a sync if the oldest unsynced write has this age. Redis
/// waits as long.
pub const EMBEDDED_SYNC_LAG_MS_MAX: u64 = 2_000;

/// Approximate number of rows that one trash pass clears.
pub const REAPER_ROWS_PER_PASS: usize = 2_000;
/// Keys that one background pass expires. Each costs several scattered writes, and clients wait
/// meanwhile.
pub const REAPER_KEYS_PER_PASS: usize = 500;
/// Bytes of values that one trash pass reads.
pub const REAPER_BYTES_PER_PASS: usize = 8 * 1024 * 1024;
/// Rows that a trash pass fetches at a time; each may hold a chunk of a split value.
pub const TRASH_PAGE_ROWS: usize = 128;
/// Reads of a background pass in flight at once.
pub const REAPER_READS_AT_ONCE: usize = 100;
/// Interval at which background work is checked for.
pub const REAPER_INTERVAL_MS: u64 = 100;
/// Pause between two passes while there is more to do.
pub const REAPER_PAUSE_MS: u64 = 5;
/// Pause after a pass that failed.
pub const REAPER_FAILURE_PAUSE_MS: u64 = 1_000;
/// Time between two passes that sweep retained metadata, on a store with many writers.
pub const RETAINED_SWEEP_INTERVAL_MS: u64 = 1_000;
/// Retained metadata is swept after being unused for at least this long.
pub const RETAINED_REST_MS: i64 = 10_000;
/// Number of passes whose findings are kept. There are more only if the clock was set back.
pub const RETAINED_PASSES_KEPT_MAX: usize = 64;
/// Keys of one such pass.
pub const RETAINED_SWEEP_KEYS_PER_PASS: usize = 500;

/// Members or fields that ZRANDMEMBER, SRANDMEMBER and HRANDFIELD draw with repetition (Redis has no
/// limit but memory).
pub const RANDOM_MEMBERS_MAX: usize = 1_000_000;
/// Bytes of what they draw with repetition.
pub const RANDOM_BYTES_MAX: usize = 512 * 1024 * 1024;

/// Bytes of one string (Redis: `proto-max-bulk-len`, which also bounds requests).
pub const STRING_BYTES_MAX: usize = REQUEST_BULK_BYTES_MAX;
/// Bytes of the values in one reply of MGET or HMGET.
pub const MGET_ANSWER_BYTES_MAX: usize = 512 * 1024 * 1024;
/// Bytes of the table that LCS uses to compare two strings (Redis: `proto-max-bulk-len`).
pub const LCS_TABLE_BYTES_MAX: usize = 512 * 1024 * 1024;

/// Values that SORT builds with several GETs. One GET per element is always allowed.
pub const SORT_VALUES_MAX: usize = 1_000_000;
/// Bytes of those values in a reply, unless the elements themselves have more.
pub const SORT_ANSWER_BYTES_MAX: usize = 512 * 1024 * 1024;

/// One XREADGROUP, XAUTOCLAIM, TASK.TAKE, TASK.PEEK, TASK.DEAD, TASK.LIST or PQ.LIST returns no
/// more once its values have this many bytes, whatever its COUNT.
pub const DELIVERED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Values of any size that one command reads concurrently.
pub const LARGE_READS_AT_ONCE: usize = 16;
/// Keys that one command looks up concurrently.
pub const KEY_READS_AT_ONCE: usize = 100;
/// Elements that MEMORY USAGE samples unless SAMPLES is given.
pub const MEMORY_USAGE_SAMPLES_DEFAULT: usize = 1_000;

/// A glob pattern with more separate `*` matches nothing (Redis: nesting of 1,000).
pub const GLOB_STARS_MAX: usize = 1_000;
/// Maximum number of elements between two `*` of a glob pattern, if they include a `?` or a class.
/// Longer parts are found only if that is quick (Redis takes any time).
pub const GLOB_ELEMENTS_MAX: usize = 1_024;
/// Bytes of the prefix under which Quoin keeps everything in a store.
pub const ROOT_PREFIX_BYTES_MAX: usize = 128;
/// Addresses that a server listens on (Redis: `CONFIG_BINDADDR_MAX`).
pub const BIND_ADDRESSES_MAX: usize = 16;
/// Bytes of a settings file.
pub const SETTINGS_FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Bytes that a tool reads of a file with a password.
pub const PASSWORD_FILE_BYTES_MAX: u64 = 64 * 1024;
/// Writes wait for the drain while what the embedded store's data file lacks uses more than this
/// memory, in bytes.
pub const EMBEDDED_DIRTY_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Writes wait for a checkpoint while the journal has more than this many bytes.
pub const EMBEDDED_JOURNAL_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Age at which a file of the archive is given to `journal-archive-command`, in milliseconds.
pub const ARCHIVE_FILE_AGE_MS_MAX: u64 = 10_000;
/// How long `journal-archive-command` may run for one file, in milliseconds.
pub const ARCHIVE_COMMAND_MS_MAX: u64 = 600_000;

/// Bytes of a reply of DUMP; also a bound on its memory.
pub const DUMP_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Elements of one chunk of PQ.SCANDUMP and TASK.SCANDUMP, which has about [`IMPORT_CHUNK_BYTES`].
pub const DUMP_CHUNK_ELEMENTS_MAX: usize = 10_000;

/// Bytes of a value of an RDB file that an import reads. Larger values are reported and skipped.
pub const IMPORT_VALUE_BYTES_MAX: usize = 1024 * 1024 * 1024;
/// Bytes of elements in one command of an import, unless a single element has more.
pub const IMPORT_CHUNK_BYTES: usize = 1024 * 1024;

/// Resources that a task queue knows.
pub const TASK_RESOURCES_MAX: usize = 8;
/// Resources that a consumer names in HAVING, whether the queue knows them or not.
pub const TASK_HAVING_RESOURCES_MAX: usize = 256;
/// Bytes of a resource's name.
pub const TASK_RESOURCE_NAME_BYTES_MAX: usize = 64;
/// The options of TASK.TAKE. It cannot name resources with these names, in any case.
pub const TASK_TAKE_KEYWORDS: &[&str] = &["count", "having", "lease", "block"];

/// Whether a task may need a resource of this name.
pub fn is_task_resource_name(name: &[u8]) -> bool {
    let is_keyword = |word: &&str| name.eq_ignore_ascii_case(word.as_bytes());
    (1..=TASK_RESOURCE_NAME_BYTES_MAX).contains(&name.len())
        && !TASK_TAKE_KEYWORDS.iter().any(is_keyword)
}

/// Words of options that follow ids. They cannot be ids of tasks, in any case.
pub const TASK_ID_KEYWORDS: &[&str] = &["token", "all", "result"];
/// Bytes of a task's id; with every byte escaped its key stays below LMDB's limit.
pub const TASK_ID_BYTES_MAX: usize = 512;
/// Bytes of the name of a consumer that takes a task.
pub const TASK_WORKER_BYTES_MAX: usize = 256;
/// Tasks that one task may wait for.
pub const TASK_AFTER_MAX: usize = 1_000;
/// Ids of such tasks that TASK.LIST shows for each task.
pub const TASK_AFTER_SHOWN: usize = 10;
/// Bytes of a task's `traceparent`.
pub const TASK_TRACEPARENT_BYTES: usize = 55;

/// Whether a task may carry this `traceparent`. It must follow W3C Trace Context: a version, a
/// trace id, a span id, and flags, without anything that later versions may append.
pub fn is_task_traceparent(text: &[u8]) -> bool {
    let is_hex =
        |part: &[u8]| { part.iter() }.all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    // An id of zeros is invalid.
    let is_id = |part: &[u8]| part.iter().any(|byte| *byte != b'0');
    let mut parts = text.split(|byte| *byte == b'-');
    let mut next = |bytes| {
        parts
            .next()
            .filter(|part| part.len() == bytes && is_hex(part))
    };
    let (version, trace, span, flags) = (next(2), next(32), next(16), next(2));
    // The version ff is forbidden.
    version.is_some_and(|version| version != b"ff")
        && trace.is_some_and(is_id)
        && span.is_some_and(is_id)
        && flags.is_some()
        && text.len() == TASK_TRACEPARENT_BYTES
}

/// Bytes of the name of a group of tasks.
pub const TASK_GROUP_BYTES_MAX: usize = 256;
/// Largest value of GROUPLEASES. A take may read this many rows for a group.
pub const TASK_GROUP_LEASES_MAX: i64 = 1_000;
/// Groups at their limit that one take skips. The next take continues after them.
pub const TASK_GROUPS_PASSED_MAX: usize = 128;
/// Bytes of the reason stored with a task. The rest of a longer one is cut off.
pub const TASK_REASON_BYTES_MAX: usize = 1_024;
/// Bytes of a token of TASK.ADD … UNIQUE.
pub const TASK_UNIQUE_BYTES_MAX: usize = 512;
/// Bytes of a result of a task.
pub const TASK_RESULT_BYTES_MAX: usize = 65_536;
/// Bytes of the text of TASK.PROGRESS.
pub const TASK_PROGRESS_BYTES_MAX: usize = 1_024;
/// Bytes of the name of a queue for dead tasks.
pub const TASK_DEAD_LETTER_BYTES_MAX: usize = 1_024;
/// Bytes of the name of a schedule of a task queue. The ids of its tasks contain the name and the
/// time.
pub const TASK_SCHEDULE_NAME_BYTES_MAX: usize = 256;
/// Bytes of a cron expression.
pub const TASK_CRON_BYTES_MAX: usize = 256;
/// Bytes of the payload of a schedule's tasks, so that a schedule fits into one row.
pub const TASK_SCHEDULE_PAYLOAD_BYTES_MAX: usize = 65_536;
/// Bytes of a schedule, more than it can have.
pub const TASK_SCHEDULE_BYTES_MAX: usize = 70_000;
/// Bytes of the reason why a schedule could not add a task.
pub const TASK_SCHEDULE_ERROR_BYTES_MAX: usize = 256;
/// The shortest interval at which a schedule adds tasks.
pub const TASK_EVERY_MS_MIN: i64 = 1_000;
/// Missed moments for which a schedule with MISSED ALL adds tasks: the latest ones.
pub const TASK_MISSED_MAX: usize = 1_000;
/// With MISSED SKIP, a moment counts as missed if it is longer ago than this.
pub const TASK_LATE_MS: i64 = 60_000;
/// Leased or delayed tasks that one TASK.LIST examines, whatever its COUNT.
pub const TASK_LIST_CHECKED_MAX: usize = 1_000;
/// Tasks that one TASK.PURGE, or TASK.REVIVE with ALL, changes.
pub const TASK_STEERED_MAX: usize = 1_000;
/// Elements in one reply of PQ.LIST or TASK.LIST.
pub const LIST_COUNT_MAX: usize = 10_000;
/// Tasks in one reply of TASK.TAKE, TASK.PEEK or TASK.DEAD.
pub const TASK_COUNT_MAX: usize = 10_000;
/// The longest delay, lease or wait for a task: a thousand years.
pub const TASK_TIME_MS_MAX: i64 = 31_557_600_000_000;
/// How much the clocks of servers of one store may differ without a lease ending early.
pub const TASK_CLOCK_TOLERANCE_MS: i64 = 500;
/// Tasks of a queue that one background pass makes ready again.
pub const TASK_DUE_PER_PASS: usize = 500;
/// Task queues of one background pass.
pub const TASK_QUEUES_PER_PASS: usize = 512;
/// Of those, queues that the pass changes. The requests of their clients wait meanwhile.
pub const TASK_BUSY_QUEUES_PER_PASS: usize = 128;
/// A task queue that cannot be read completely is checked again after a multiple of this.
pub const TASK_UNREADABLE_STEP_MS: i64 = 60_000;
/// Maximum bytes of a HyperLogLog in the sparse encoding, unless `hll-sparse-max-bytes` says
/// otherwise.
pub const HLL_SPARSE_BYTES_MAX: u64 = 3_000;
/// Maximum number of entries of a stream that an approximate trim removes together, unless
/// `stream-node-max-entries` says otherwise.
pub const STREAM_NODE_ENTRIES_MAX: u64 = 100;
/// Maximum bytes of those entries, unless one entry has more or `stream-node-max-bytes` says
/// otherwise.
pub const STREAM_NODE_BYTES_MAX: u64 = 4_096;
/// Bytes of the name of a consumer group or a consumer (limited only by memory in Redis). It is
/// part of one value, in which its zero bytes are doubled.
pub const STREAM_NAME_BYTES_MAX: usize = FDB_KEY_NAME_BYTES_MAX;
/// Default number of seconds for which a stream remembers producers' entries, as in Redis.
pub const STREAM_PRODUCED_DURATION_S: u64 = 100;
/// Default number of entries of a producer that a stream remembers, as in Redis.
pub const STREAM_PRODUCED: u64 = 100;
/// Maximum number of seconds for which a stream remembers producers' entries, as in Redis.
pub const STREAM_PRODUCED_DURATION_S_MAX: i64 = 86_400;
/// Maximum number of entries of a producer that a stream remembers, as in Redis.
pub const STREAM_PRODUCED_MAX: i64 = 10_000;
/// Entries of a producer that one XADD forgets.
pub const PRODUCED_FORGOTTEN_AT_ONCE: usize = 16;
/// Producers of a stream that background work examines at a time.
pub const PRODUCERS_PER_PASS: usize = 500;
/// Maximum number of pending entries that XGROUP DELCONSUMER and XGROUP SETPOLICY change on
/// FoundationDB, whose transactions hold 10 MB.
pub const STREAM_PENDING_CHANGED_MAX: i64 = 10_000;
/// Maximum number of entries that one XREADGROUP delivers again under a group's policy. Each
/// changes several rows.
pub const STREAM_IDLE_DELIVERED_MAX: usize = 5_000;
/// Maximum number of entries that one XREADGROUP moves to a dead letter stream. Each is written
/// again. After the first, it also stops if the transaction is as large as a batch should become.
pub const STREAM_DEAD_LETTERS_MAX: usize = 100;
/// The longest MINIDLE of XGROUP SETPOLICY: a year.
pub const STREAM_MIN_IDLE_MS_MAX: i64 = 366 * 24 * 3_600_000;
/// Maximum number of entries of one stream that one XREADGROUP delivers, whatever its COUNT (Redis
/// has no limit). Each is written too.
pub const STREAM_DELIVERED_MAX: usize = 10_000;

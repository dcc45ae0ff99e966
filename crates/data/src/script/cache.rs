//! SCRIPT, and scripts in the store. Scripts of SCRIPT LOAD stay; scripts of EVAL are replaced by newer ones.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use quoin_base::limits::{SCRIPTS_OF_EVAL_MAX, VALUE_CHUNK_BYTES_MAX};
use quoin_layout::{ScriptOrigin, StoredScript, decode_counter};
use quoin_lua::{KillError, Script};
use quoin_resp::reply::Reply;
use quoin_store::{Growth, Isolation, RangeQuery, StoreError};

use crate::command::arguments::{argument, is_word, rest};
use crate::command::help;
use crate::error::CommandError;
use crate::rows::pages::Pages;
use crate::script::calls::write;
use crate::script::eval;
use crate::script::eval::check_enabled;
use crate::unit::AnyUnit;
use crate::unit::context::{Environment, ReadContext, WriteContext};

/// Most scripts that one pass removes.
const REMOVED_PER_PASS_MAX: usize = 500;

impl ReadContext<'_> {
    /// How often scripts were flushed. Cached scripts are valid until this changes.
    pub async fn script_flushes(&self) -> Result<u64, StoreError> {
        if let Some(flushes) = self.namespaces.script_flushes() {
            return Ok(flushes);
        }
        let key = self.layout().script_flushes_key();
        let row = self.transaction.get(&key, Isolation::Serializable).await?;
        let flushes = decode_counter(row.as_ref())?.cast_unsigned();
        self.namespaces.set_script_flushes(flushes);
        Ok(flushes)
    }

    /// What the store knows about a script.
    pub async fn stored_script(&self, sha: &str) -> Result<Option<StoredScript>, StoreError> {
        let key = self.layout().script_key(sha);
        let row = self.transaction.get(&key, Isolation::Serializable).await?;
        Ok(row.map(|row| StoredScript::decode(&row)).transpose()?)
    }

    /// A stored script with its text.
    ///
    /// # Errors
    /// If pieces of the text are missing.
    pub async fn load_script(
        &self,
        sha: &str,
    ) -> Result<Option<(StoredScript, Bytes)>, StoreError> {
        let mut pages = Pages::new(self, self.layout().script_rows(sha), false, 0);
        let mut stored = None;
        let mut text = BytesMut::new();
        while let Some(rows) = pages.next().await? {
            for row in &rows {
                match stored {
                    None => stored = Some(StoredScript::decode(&row.value)?),
                    Some(_) => text.extend_from_slice(&row.value),
                }
            }
        }
        match stored {
            None => Ok(None),
            Some(stored) if stored.length == text.len() as u64 => Ok(Some((stored, text.freeze()))),
            Some(_) => Err(StoreError::Corrupt("pieces of a script are missing")),
        }
    }
}

impl WriteContext<'_> {
    /// Stores a script. `known` is what the store has of it.
    ///
    /// # Errors
    /// `NoRoomToGrow` for a new script while the disk is full.
    pub fn store_script(
        &self,
        script: &Script,
        origin: ScriptOrigin,
        known: Option<StoredScript>,
    ) -> Result<(), CommandError> {
        let layout = self.layout();
        match known {
            Some(known) if known.origin == origin || origin == ScriptOrigin::Eval => return Ok(()),
            None if self.transaction.growth() == Growth::DiskFull => {
                return Err(CommandError::NoRoomToGrow);
            }
            Some(known) => {
                let entry = layout.script_by_time_key(known.at_ms, &script.sha);
                self.transaction.clear(&entry);
            }
            None => {
                let pieces = script.text.chunks(VALUE_CHUNK_BYTES_MAX);
                for (number, piece) in (0..).zip(pieces) {
                    let key = layout.script_piece_key(&script.sha, number);
                    self.transaction.set(&key, piece);
                }
            }
        }
        let stored = StoredScript {
            origin,
            at_ms: self.now_ms,
            length: script.text.len() as u64,
        };
        let key = layout.script_key(&script.sha);
        self.transaction.set(&key, &stored.encode());
        if origin == ScriptOrigin::Eval {
            let entry = layout.script_by_time_key(self.now_ms, &script.sha);
            self.transaction.set(&entry, b"");
        }
        Ok(())
    }

    /// SCRIPT FLUSH.
    pub fn flush_scripts(&self) {
        for rows in [self.layout().all_scripts(), self.layout().scripts_by_time()] {
            self.transaction.clear_range(&rows.begin, &rows.end);
        }
        let flushes = self.layout().script_flushes_key();
        self.transaction.atomic_add(&flushes, 1);
        self.namespaces.forget_script_flushes();
    }

    /// Removes the oldest scripts of EVAL that exceed the limit. Returns how many.
    pub async fn sweep_scripts(&self) -> Result<usize, StoreError> {
        let range = self.layout().scripts_by_time();
        let rows = self
            .transaction
            .get_range(RangeQuery {
                begin: &range.begin,
                end: &range.end,
                limit: SCRIPTS_OF_EVAL_MAX + REMOVED_PER_PASS_MAX,
                reverse: true,
                isolation: Isolation::Snapshot,
            })
            .await?;
        let mut removed = 0;
        for row in rows.iter().skip(SCRIPTS_OF_EVAL_MAX) {
            let sha = self.layout().read_script_by_time(&row.key)?;
            // A concurrent SCRIPT LOAD may be keeping it.
            if let Some(stored) = self.stored_script(&sha).await?
                && stored.origin == ScriptOrigin::Eval
            {
                let rows = self.layout().script_rows(&sha);
                self.transaction.clear_range(&rows.begin, &rows.end);
            }
            self.transaction.clear(&row.key);
            removed += 1;
        }
        Ok(removed)
    }
}

/// `SCRIPT LOAD script`.
pub(super) async fn load(
    unit: AnyUnit<'_>,
    database: u32,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    check_enabled(unit)?;
    let refused = |line: String| CommandError::Text(line.into());
    let script = Script::parse(argument(arguments, 2)?.clone()).map_err(refused)?;
    let script = Arc::new(script);
    let mut machine = eval::take(unit.environment().reported_version).map_err(refused)?;
    let compiled = machine.compile(&script);
    eval::give_back(machine);
    compiled.map_err(refused)?;
    let context = unit.read_context(database);
    let stored = context.stored_script(&script.sha).await?;
    let flushes = context.script_flushes().await?;
    unit.environment().scripts.note_met(flushes, &script.sha);
    write(unit, database, |context| {
        context.store_script(&script, ScriptOrigin::Load, stored)
    })?;
    Ok(Reply::bulk(script.sha.clone()))
}

/// `SCRIPT EXISTS sha1 [sha1 ...]`.
pub(super) async fn exists(
    unit: AnyUnit<'_>,
    database: u32,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let context = unit.read_context(database);
    let scripts = &unit.environment().scripts;
    let flushes = context.script_flushes().await?;
    let mut found = Vec::new();
    for sha in rest(arguments, 2) {
        let sha = std::str::from_utf8(sha).unwrap_or_default();
        let sha = sha.to_ascii_lowercase();
        let is_there =
            scripts.known(flushes, &sha).is_some() || context.stored_script(&sha).await?.is_some();
        found.push(Reply::Integer(i64::from(is_there)));
    }
    Ok(Reply::Array(found))
}

/// `SCRIPT FLUSH [ASYNC | SYNC]`.
pub(super) async fn flush(
    unit: AnyUnit<'_>,
    database: u32,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    match rest(arguments, 2) {
        [] => {}
        [mode] if is_word(mode, "sync") || is_word(mode, "async") => {}
        _ => {
            return Err(CommandError::text(
                "ERR SCRIPT FLUSH only support SYNC|ASYNC option",
            ));
        }
    }
    if let AnyUnit::Write(writable) = unit {
        writable.write_context(database).flush_scripts();
        unit.environment().scripts.forget_met();
    }
    Ok(Reply::OK)
}

/// The error while a script or function is running for too long.
pub fn busy(is_function: bool) -> CommandError {
    CommandError::text(match is_function {
        true => {
            "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN \
             NOSAVE."
        }
        false => {
            "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
        }
    })
}

/// `SCRIPT KILL`.
pub(super) fn kill(environment: &Environment, _: &[Bytes]) -> Result<Reply, CommandError> {
    kill_running(environment, false)
}

/// Kills the running scripts or functions.
pub(super) fn kill_running(
    environment: &Environment,
    functions: bool,
) -> Result<Reply, CommandError> {
    match environment.scripts.kill(functions) {
        Ok(()) => Ok(Reply::OK),
        Err(KillError::OtherKind) => Err(busy(!functions)),
        Err(KillError::NotBusy) => Err(CommandError::text(
            "NOTBUSY No scripts in execution right now.",
        )),
        Err(KillError::Unkillable) => Err(CommandError::text(
            "UNKILLABLE Sorry the script already executed write commands against the dataset. You \
             can either wait the script termination or kill the server in a hard way using the \
             SHUTDOWN NOSAVE command.",
        )),
    }
}

/// `SCRIPT DEBUG <YES | SYNC | NO>`. There is no debugger to turn on.
pub(super) fn debug(_: &Environment, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    let mode = argument(arguments, 2)?;
    if is_word(mode, "no") {
        return Ok(Reply::OK);
    }
    let is_known = is_word(mode, "yes") || is_word(mode, "sync");
    Err(CommandError::text(match is_known {
        true => "ERR There is no debugger of scripts",
        false => "ERR Use SCRIPT DEBUG YES/SYNC/NO",
    }))
}

/// `SCRIPT HELP`.
pub(super) fn script_help(_: &Environment, _: &[Bytes]) -> Result<Reply, CommandError> {
    Ok(help::help(
        "SCRIPT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        &[
            "DEBUG (YES|SYNC|NO)",
            "    Set the debug mode for subsequent scripts executed.",
            "EXISTS <sha1> [<sha1> ...]",
            "    Return information about the existence of the scripts in the script cache.",
            "FLUSH [ASYNC|SYNC]",
            "    Flush the Lua scripts cache. Very dangerous on replicas.",
            "    When called without the optional mode argument, the behavior is determined by the",
            "    lazyfree-lazy-user-flush configuration directive. Valid modes are:",
            "    * ASYNC: Asynchronously flush the scripts cache.",
            "    * SYNC: Synchronously flush the scripts cache.",
            "KILL",
            "    Kill the currently executing Lua script.",
            "LOAD <script>",
            "    Load a script into the scripts cache without executing it.",
        ],
    ))
}

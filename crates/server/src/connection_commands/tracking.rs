//! CLIENT TRACKING, CACHING, GETREDIR and TRACKINGINFO.

use bytes::Bytes;

use crate::clients::TrackingMode;
use crate::connection_commands::shared::{lossy_text, refusal};
use crate::session::Session;
use crate::state::ServerState;
use quoin_base::limits::TRACKED_PREFIXES_PER_CLIENT_MAX;
use quoin_data::command::arguments::{argument, integer, is_word, rest};
use quoin_data::error::CommandError;
use quoin_resp::reply::Reply;

const ANOTHER_BROADCAST: CommandError = CommandError::text(
    "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then \
     re-enabling it with a different mode.",
);
const ANOTHER_OPTION: CommandError = CommandError::text(
    "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then \
     re-enabling it with a different mode.",
);

/// Approximate memory of a prefix beyond its bytes.
const PREFIX_BYTES: usize = 200;

/// `CLIENT TRACKING <ON | OFF> [REDIRECT client-id] [PREFIX prefix [PREFIX prefix …]] [BCAST] [OPTIN]
/// [OPTOUT] [NOLOOP]`.
pub(super) async fn tracking(
    arguments: &[Bytes],
    session: &mut Session,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    let (mode, mut prefixes) = parse(rest(arguments, 3), state)?;
    let switch = argument(arguments, 2)?;
    if is_word(switch, "off") {
        state.tracking.disable(&session.client);
        session.tracking = None;
        session.is_caching = false;
        return Ok(Reply::OK);
    }
    if !is_word(switch, "on") {
        return Err(CommandError::Syntax);
    }
    check(mode, session.tracking, &prefixes)?;
    if mode.is_broadcast {
        let known = state.tracking.prefixes(&session.client);
        check_prefixes(&prefixes, &known)?;
        if prefixes.is_empty() {
            prefixes.push(Bytes::new());
        }
    }
    state.tracking.enable(&session.client, mode, &prefixes);
    let known = state.tracking.prefixes(&session.client);
    session.prefix_bytes = known.iter().map(|prefix| prefix.len() + PREFIX_BYTES).sum();
    // After the reply the client is notified of changes by all servers.
    if let Err(error) = state.executor.begin_tracking().await {
        state.tracking.disable(&session.client);
        session.tracking = None;
        return Err(error.into());
    }
    session.tracking = Some(mode);
    Ok(Reply::OK)
}

fn parse(
    mut options: &[Bytes],
    state: &ServerState,
) -> Result<(TrackingMode, Vec<Bytes>), CommandError> {
    let mut mode = TrackingMode::default();
    let mut prefixes = Vec::new();
    loop {
        options = match options {
            [] => return Ok((mode, prefixes)),
            [word, id, others @ ..] if is_word(word, "redirect") => {
                if mode.redirect != 0 {
                    return Err(CommandError::text(
                        "ERR A client can only redirect to a single other client",
                    ));
                }
                let client = u64::try_from(integer(id)?).ok();
                let client = client.and_then(|id| state.clients.find(id));
                let client = client.ok_or(CommandError::text(
                    "ERR The client ID you want redirect to does not exist",
                ))?;
                mode.redirect = client.id;
                others
            }
            [word, prefix, others @ ..] if is_word(word, "prefix") => {
                prefixes.push(prefix.clone());
                others
            }
            [word, others @ ..] => {
                let option = if is_word(word, "bcast") {
                    &mut mode.is_broadcast
                } else if is_word(word, "optin") {
                    &mut mode.is_opt_in
                } else if is_word(word, "optout") {
                    &mut mode.is_opt_out
                } else if is_word(word, "noloop") {
                    &mut mode.is_noloop
                } else {
                    return Err(CommandError::Syntax);
                };
                *option = true;
                others
            }
        };
    }
}

/// Whether the options fit together, and fit the current ones.
fn check(
    mode: TrackingMode,
    current: Option<TrackingMode>,
    prefixes: &[Bytes],
) -> Result<(), CommandError> {
    if !mode.is_broadcast && !prefixes.is_empty() {
        return Err(CommandError::text(
            "ERR PREFIX option requires BCAST mode to be enabled",
        ));
    }
    if current.is_some_and(|current| current.is_broadcast != mode.is_broadcast) {
        return Err(ANOTHER_BROADCAST);
    }
    if mode.is_broadcast && (mode.is_opt_in || mode.is_opt_out) {
        return Err(CommandError::text(
            "ERR OPTIN and OPTOUT are not compatible with BCAST",
        ));
    }
    if mode.is_opt_in && mode.is_opt_out {
        return Err(CommandError::text(
            "ERR You can't specify both OPTIN mode and OPTOUT mode",
        ));
    }
    let is_switched = |current: TrackingMode| {
        (mode.is_opt_in && current.is_opt_out) || (mode.is_opt_out && current.is_opt_in)
    };
    match current.is_some_and(is_switched) {
        true => Err(ANOTHER_OPTION),
        false => Ok(()),
    }
}

/// Refuses prefixes that overlap: a key could match two of them.
fn check_prefixes(prefixes: &[Bytes], known: &[Bytes]) -> Result<(), CommandError> {
    if prefixes.len() + known.len() > TRACKED_PREFIXES_PER_CLIENT_MAX {
        return Err(CommandError::text("ERR too many prefixes"));
    }
    for (at, prefix) in prefixes.iter().enumerate() {
        let others = known.iter().map(|other| ("an existing", other));
        let behind = prefixes.get(at + 1..).unwrap_or_default();
        let others = others.chain(behind.iter().map(|other| ("another provided", other)));
        for (which, other) in others {
            if prefix.starts_with(other) || other.starts_with(prefix) {
                return Err(refusal(format!(
                    "ERR Prefix '{}' overlaps with {which} prefix '{}'. Prefixes for a single \
                     client must not overlap.",
                    lossy_text(prefix),
                    lossy_text(other)
                )));
            }
        }
    }
    Ok(())
}

/// `CLIENT CACHING <YES | NO>`.
pub(super) fn caching(word: &[u8], session: &mut Session) -> Result<Reply, CommandError> {
    let Some(mode) = session.tracking else {
        return Err(CommandError::text(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN \
             or OPTOUT mode enabled",
        ));
    };
    let (is_mode, refusal) = if is_word(word, "yes") {
        (
            mode.is_opt_in,
            "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.",
        )
    } else if is_word(word, "no") {
        (
            mode.is_opt_out,
            "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.",
        )
    } else {
        return Err(CommandError::Syntax);
    };
    if !is_mode {
        return Err(CommandError::text(refusal));
    }
    session.is_caching = true;
    Ok(Reply::OK)
}

/// `CLIENT GETREDIR`.
pub(super) fn redirect(session: &Session) -> Reply {
    let redirect = session.tracking.map(|mode| mode.redirect);
    Reply::Integer(redirect.map_or(-1, |id| i64::try_from(id).unwrap_or(i64::MAX)))
}

/// `CLIENT TRACKINGINFO`.
pub(super) fn info(session: &Session, state: &ServerState) -> Reply {
    let mode = session.tracking.unwrap_or_default();
    let has_broken_redirect = session.client.details().has_broken_redirect;
    let flags = [
        (session.tracking.is_some(), "on"),
        (session.tracking.is_none(), "off"),
        (mode.is_broadcast, "bcast"),
        (mode.is_opt_in, "optin"),
        (mode.is_opt_in && session.is_caching, "caching-yes"),
        (mode.is_opt_out, "optout"),
        (mode.is_opt_out && session.is_caching, "caching-no"),
        (mode.is_noloop, "noloop"),
        (has_broken_redirect, "broken_redirect"),
    ];
    let flags = flags.into_iter().filter(|(is_set, _)| *is_set);
    let flags = flags.map(|(_, flag)| Reply::bulk(flag)).collect();
    let prefixes = state.tracking.prefixes(&session.client);
    let prefixes = prefixes.into_iter().map(Reply::Bulk).collect();
    Reply::Map(vec![
        (Reply::bulk("flags"), Reply::Set(flags)),
        (Reply::bulk("redirect"), redirect(session)),
        (Reply::bulk("prefixes"), Reply::Array(prefixes)),
    ])
}

//! Rules, as Redis reads them (`ACLSetSelector`): their words, their effect on a selector, and why one is
//! refused.

use bytes::Bytes;

use crate::selector::{KeyPattern, Selector};
use quoin_data::command::row::{CATEGORIES, categories};
use quoin_data::table;
use quoin_resp::wire::inline::split_arguments;

/// Why a rule is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// There is no such rule, or its pattern has spaces.
    #[error("Syntax error")]
    Syntax,
    /// There is no such command or category.
    #[error("Unknown command or category name in ACL")]
    UnknownCommand,
    /// All keys are allowed already.
    #[error(
        "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have \
         any effect. Try 'resetkeys' to start with an empty list of patterns"
    )]
    AllKeys,
    /// All channels are allowed already.
    #[error(
        "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not \
         have any effect. Try 'resetchannels' to start with an empty list of channels"
    )]
    AllChannels,
    /// The user does not have the password that was to be removed.
    #[error("The password you are trying to remove from the user does not exist")]
    NoSuchPassword,
    /// The text after `#` or `!` is not a SHA-256.
    #[error(
        "The password hash must be exactly 64 characters and contain only lowercase hexadecimal \
         characters"
    )]
    PasswordHash,
    /// A first argument of a subcommand.
    #[error("Allowing first-arg of a subcommand is not supported")]
    FirstArgumentOfSubcommand,
}

/// Defaults of a new user and a new selector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Defaults {
    /// The setting `acl-pubsub-default` is `allchannels`.
    pub all_channels: bool,
}

/// A selector from a rule in parentheses.
///
/// # Errors
/// That of a rule within the parentheses.
pub(super) fn parse_selector(rule: &[u8], defaults: Defaults) -> Result<Selector, RuleError> {
    let mut selector = Selector::new(defaults.all_channels);
    let inner = rule.get(1..rule.len().saturating_sub(1));
    // As in Redis, text with unbalanced quotes counts as empty.
    let words = split_arguments(inner.unwrap_or_default()).unwrap_or_default();
    for word in &words {
        // Such a word would end the selector when the user's rules are written and read again.
        if word.last() == Some(&b')') {
            return Err(RuleError::Syntax);
        }
        apply(&mut selector, word)?;
    }
    Ok(selector)
}

/// Applies a rule on commands, keys or channels.
///
/// # Errors
/// See [`RuleError`].
pub(super) fn apply(selector: &mut Selector, rule: &[u8]) -> Result<(), RuleError> {
    if is_rule(rule, "allkeys") || is_rule(rule, "~*") {
        selector.all_keys = true;
        selector.keys.clear();
    } else if is_rule(rule, "resetkeys") {
        selector.all_keys = false;
        selector.keys.clear();
    } else if is_rule(rule, "allchannels") || is_rule(rule, "&*") {
        selector.all_channels = true;
        selector.channels.clear();
    } else if is_rule(rule, "resetchannels") {
        selector.all_channels = false;
        selector.channels.clear();
    } else if is_rule(rule, "allcommands") || is_rule(rule, "+@all") {
        selector.allow_all_commands();
    } else if is_rule(rule, "nocommands") || is_rule(rule, "-@all") {
        selector.forbid_all_commands();
    } else {
        return match rule {
            [b'~' | b'%', ..] => add_keys(selector, rule),
            [b'&', pattern @ ..] => add_channels(selector, pattern),
            [sign @ (b'+' | b'-'), b'@', ..] => {
                let category = rule.get(1..).unwrap_or_default();
                change_category(selector, c_text(category), *sign == b'+')
            }
            [b'+', command @ ..] => allow(selector, c_text(command)),
            [b'-', command @ ..] => forbid(selector, c_text(command)),
            _ => Err(RuleError::Syntax),
        };
    }
    Ok(())
}

fn add_keys(selector: &mut Selector, rule: &[u8]) -> Result<(), RuleError> {
    if selector.all_keys {
        return Err(RuleError::AllKeys);
    }
    let KeyPattern {
        pattern,
        reads,
        writes,
    } = parse_keys(rule)?;
    if has_spaces(&pattern) {
        return Err(RuleError::Syntax);
    }
    match selector.keys.iter_mut().find(|one| one.pattern == pattern) {
        Some(known) => {
            known.reads |= reads;
            known.writes |= writes;
        }
        None => selector.keys.push(KeyPattern {
            pattern,
            reads,
            writes,
        }),
    }
    Ok(())
}

/// `~pattern` or `%RW~pattern`.
fn parse_keys(rule: &[u8]) -> Result<KeyPattern, RuleError> {
    let (mut reads, mut writes) = (false, false);
    let mut rest = match rule {
        [b'~', pattern @ ..] => {
            return Ok(KeyPattern {
                pattern: Bytes::copy_from_slice(pattern),
                reads: true,
                writes: true,
            });
        }
        rule => rule.get(1..).unwrap_or_default(),
    };
    loop {
        rest = match rest {
            [b'r' | b'R', after @ ..] if !reads => {
                reads = true;
                after
            }
            [b'w' | b'W', after @ ..] if !writes => {
                writes = true;
                after
            }
            [b'~', pattern @ ..] if reads || writes => {
                return Ok(KeyPattern {
                    pattern: Bytes::copy_from_slice(pattern),
                    reads,
                    writes,
                });
            }
            // As in Redis, letters without a pattern mean an empty pattern.
            [] if reads || writes => {
                return Ok(KeyPattern {
                    pattern: Bytes::new(),
                    reads,
                    writes,
                });
            }
            _ => return Err(RuleError::Syntax),
        };
    }
}

fn add_channels(selector: &mut Selector, pattern: &[u8]) -> Result<(), RuleError> {
    if selector.all_channels {
        return Err(RuleError::AllChannels);
    }
    if has_spaces(pattern) {
        return Err(RuleError::Syntax);
    }
    if !selector.channels.iter().any(|known| known == pattern) {
        selector.channels.push(Bytes::copy_from_slice(pattern));
    }
    Ok(())
}

/// `category` begins with `@`.
fn change_category(
    selector: &mut Selector,
    category: &[u8],
    allows: bool,
) -> Result<(), RuleError> {
    let known = CATEGORIES.iter();
    let category = known
        .copied()
        .find(|known| known.as_bytes().eq_ignore_ascii_case(category))
        .ok_or(RuleError::UnknownCommand)?;
    selector.note_command_rule(category, allows);
    let is_meant = |row: &&_| categories(row).any(|one| one == category);
    for row in table::of_all_ports().iter().filter(is_meant) {
        selector.change(row, allows);
    }
    Ok(())
}

fn allow(selector: &mut Selector, name: &[u8]) -> Result<(), RuleError> {
    let Some(bar) = name.iter().rposition(|byte| *byte == b'|') else {
        let row = table::find(name).ok_or(RuleError::UnknownCommand)?;
        selector.change(row, true);
        selector.note_command_rule(row.name, true);
        return Ok(());
    };
    let command = name.get(..bar).unwrap_or_default();
    let argument = name.get(bar + 1..).unwrap_or_default();
    let row = table::find_by_full_name(command).ok_or(RuleError::UnknownCommand)?;
    if row.is_subcommand() {
        return Err(RuleError::FirstArgumentOfSubcommand);
    }
    // A rule with a space could not be read again.
    if argument.is_empty() || has_spaces(argument) {
        return Err(RuleError::Syntax);
    }
    let rule = std::str::from_utf8(name).map_err(|_| RuleError::Syntax)?;
    if row.subcommands.is_empty() {
        selector.allow_first_argument(row.id, argument);
    } else {
        let row = table::find_by_full_name(name).ok_or(RuleError::UnknownCommand)?;
        selector.change(row, true);
    }
    selector.note_command_rule(rule, true);
    Ok(())
}

fn forbid(selector: &mut Selector, name: &[u8]) -> Result<(), RuleError> {
    let row = table::find_by_full_name(name).ok_or(RuleError::UnknownCommand)?;
    selector.change(row, false);
    selector.note_command_rule(row.name, false);
    Ok(())
}

/// The text before the first zero byte.
pub(super) fn c_text(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Whether a rule is this word, in any case.
pub(super) fn is_rule(rule: &[u8], word: &str) -> bool {
    c_text(rule).eq_ignore_ascii_case(word.as_bytes())
}

/// Whether there are spaces or zero bytes, which names of users and patterns must not have (Redis:
/// `ACLStringHasSpaces`).
pub fn has_spaces(text: &[u8]) -> bool {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r' | 0);
    text.iter().any(is_space)
}

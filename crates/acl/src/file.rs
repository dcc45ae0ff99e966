//! Files of users (`aclfile`), with a line for each user: `user <name> <rule> …`.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::definition::{Definition, merge_selectors};
use crate::rules::{Defaults, RuleError, has_spaces};
use crate::users::User;

/// Reads one user, given by its name and its rules.
///
/// # Errors
/// Redis's error texts for a file.
pub fn parse_user(text: &str, defaults: Defaults) -> Result<(Bytes, Definition), String> {
    let mut words = text.split_ascii_whitespace();
    let name = words.next().ok_or("a user without a name")?;
    let rules: Vec<&[u8]> = words.map(str::as_bytes).collect();
    let mut errors = String::new();
    let user = parse_rules(&format!("user '{name}'"), &rules, defaults, &mut errors);
    match errors.is_empty() {
        true => Ok((Bytes::copy_from_slice(name.as_bytes()), user)),
        false => Err(errors.trim_end().to_owned()),
    }
}

/// Reads the users of a file whose path is `path`.
///
/// # Errors
/// All errors, in one line of Redis's texts (`ACLLoadFromFile`).
pub fn parse(
    path: &str,
    text: &[u8],
    defaults: Defaults,
) -> Result<BTreeMap<Bytes, Definition>, String> {
    let mut users = BTreeMap::new();
    let mut errors = String::new();
    for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
        let line = trim(line, b" \t\r\n");
        if line.is_empty() {
            continue;
        }
        let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
        let [b"user", name, rules @ ..] = words.as_slice() else {
            errors.push_str(&format!(
                "{path}:{number} should start with user keyword followed by the username. "
            ));
            continue;
        };
        let shown = String::from_utf8_lossy(name);
        if has_spaces(name) {
            errors.push_str(&format!(
                "'{path}:{number}: username '{shown}' contains invalid characters. "
            ));
            continue;
        }
        let name = Bytes::copy_from_slice(name);
        if users.contains_key(&name) {
            errors.push_str(&format!(
                "WARNING: Duplicate user '{shown}' found on line {number}. "
            ));
            continue;
        }
        let at = format!("{path}:{number}");
        let user = parse_rules(&at, rules, defaults, &mut errors);
        users.insert(name, user);
    }
    if errors.is_empty() {
        return Ok(users);
    }
    errors.push_str(
        "WARNING: ACL errors detected, no change to the previously active ACL rules was performed",
    );
    Err(errors)
}

fn parse_rules(at: &str, rules: &[&[u8]], defaults: Defaults, errors: &mut String) -> Definition {
    let mut user = Definition::new(defaults);
    let Ok(rules) = merge_selectors(rules) else {
        errors.push_str(&format!(
            "{at}: Unmatched parenthesis in selector definition."
        ));
        return user;
    };
    let mut has_syntax_error = false;
    for rule in &rules {
        let rule = trim(rule, b"\t\r\n");
        match user.apply(rule, defaults) {
            Ok(()) => {}
            Err(error @ RuleError::UnknownCommand) => {
                let rule = String::from_utf8_lossy(rule);
                errors.push_str(&format!(
                    "{at}: Error in applying operation '{rule}': {error}. "
                ));
            }
            // Later errors may follow from this one, and rules may be passwords.
            Err(error) if !has_syntax_error => {
                errors.push_str(&format!("{at}: {error}. "));
                has_syntax_error = true;
            }
            Err(_) => {}
        }
    }
    user
}

fn trim<'t>(mut text: &'t [u8], ends: &[u8]) -> &'t [u8] {
    while let [first, rest @ ..] = text
        && ends.contains(first)
    {
        text = rest;
    }
    while let [rest @ .., last] = text
        && ends.contains(last)
    {
        text = rest;
    }
    text
}

/// A user's line, as ACL LIST shows it.
pub fn line(user: &User) -> Vec<u8> {
    let rules = user.definition().describe();
    [b"user ", user.name().as_ref(), b" ", &rules].concat()
}

/// The text of a file with these users.
pub fn format<'u>(users: impl IntoIterator<Item = &'u User>) -> Vec<u8> {
    let mut text = Vec::new();
    for user in users {
        text.extend(line(user));
        text.push(b'\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use quoin_data::command::resolve;

    proptest! {
        #[test]
        fn what_describes_a_user_makes_it_again(
            rules in proptest::collection::vec(
                proptest::sample::select(vec![
                    "on", "off", "nopass", ">p", ">q", "skip-sanitize-payload", "~a", "%R~b", "%W~b", "~*",
                    "resetkeys", "&c", "&*", "resetchannels", "+get", "-get", "+@read", "-@write", "+@all",
                    "-@all", "+config|get", "-config|set", "+config", "-config", "+select|0", "(~x +set)",
                    "(&* +@all -set %R~y)", "clearselectors", "reset",
                ]),
                0..12,
            ),
        ) {
            let mut user = Definition::new(Defaults::default());
            for rule in rules {
                // A refused rule changes nothing.
                let _ = user.apply(rule.as_bytes(), Defaults::default());
            }
            let text = user.describe();
            let (again, refused) = Definition::from_description(&text);
            prop_assert_eq!(refused, None);
            prop_assert_eq!(again.describe(), text.clone());
            let line = [b"user u ", text.as_slice()].concat();
            let users = parse("f", &line, Defaults::default()).unwrap();
            prop_assert_eq!(users.get(&b"u"[..]), Some(&again));
            for line in ["GET a", "SET b 1", "CONFIG GET x", "CONFIG SET x y", "SELECT 0", "PUBLISH c m"] {
                let arguments: Vec<Bytes> = line.split(' ').map(Bytes::from).collect();
                let row = resolve(&arguments).ok().unwrap();
                prop_assert_eq!(user.check(row, &arguments), again.check(row, &arguments));
            }
            prop_assert_eq!(user.is_open(), again.is_open());
        }
    }
}

//! A user as defined by rules (Redis: `ACLSetUser`, `ACLDescribeUser`): flags, password hashes, and
//! selectors.

use quoin_base::secret::{hex, is_secret};
use sha2::{Digest, Sha256};

use crate::rules;
use crate::rules::{Defaults, RuleError, c_text, is_rule};
use crate::selector::Selector;

/// A flag of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flag {
    /// Clients may authenticate as this user.
    On,
    /// Clients may not authenticate as this user.
    Off,
    /// Any password is accepted.
    NoPassword,
    /// RESTORE does not check payloads. Quoin always checks them.
    SkipSanitizePayload,
    /// RESTORE checks payloads.
    SanitizePayload,
}

impl Flag {
    /// The rule that sets it.
    pub fn name(self) -> &'static str {
        match self {
            Flag::On => "on",
            Flag::Off => "off",
            Flag::NoPassword => "nopass",
            Flag::SkipSanitizePayload => "skip-sanitize-payload",
            Flag::SanitizePayload => "sanitize-payload",
        }
    }
}

/// A user as defined by rules: flags, passwords and selectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    is_on: bool,
    needs_no_password: bool,
    skips_sanitizing: bool,
    passwords: Vec<PasswordHash>,
    /// The selector of rules outside of parentheses.
    root: Selector,
    /// The selectors of rules in parentheses.
    others: Vec<Selector>,
}

impl Definition {
    /// A user without rules: it is off and may do nothing.
    pub fn new(defaults: Defaults) -> Self {
        Self {
            is_on: false,
            needs_no_password: false,
            skips_sanitizing: false,
            passwords: Vec::new(),
            root: Selector::new(defaults.all_channels),
            others: Vec::new(),
        }
    }

    /// The user `default` without settings or rules: it may do everything without a password.
    pub fn unrestricted() -> Self {
        let mut root = Selector::new(true);
        root.all_keys = true;
        root.allow_all_commands();
        Self {
            is_on: true,
            needs_no_password: true,
            root,
            ..Self::new(Defaults::default())
        }
    }

    /// Makes this the only password. `None` accepts any password.
    pub fn set_only_password(&mut self, password: Option<&[u8]>) {
        self.passwords = Vec::from_iter(password.map(PasswordHash::of));
        self.needs_no_password = password.is_none();
    }

    /// Whether clients may authenticate as this user.
    #[cfg(test)]
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Whether any password is accepted.
    pub fn needs_no_password(&self) -> bool {
        self.needs_no_password
    }

    /// Whether clients are this user without authentication, if it is `default`.
    pub fn admits_all(&self) -> bool {
        self.is_on && self.needs_no_password
    }

    /// Whether a client that gives this password is this user (Redis: `ACLCheckUserCredentials`).
    pub fn accepts(&self, password: &[u8]) -> bool {
        // Always compares with all passwords, so that the time reveals nothing.
        let given = PasswordHash::of(password);
        let known = self.passwords.iter();
        let is_known = known.filter(|known| known.matches(&given)).count() > 0;
        self.is_on && (self.needs_no_password || is_known)
    }

    /// Its flags, in the order in which they are shown.
    pub fn flags(&self) -> impl Iterator<Item = Flag> {
        let state = if self.is_on { Flag::On } else { Flag::Off };
        let sanitizing = match self.skips_sanitizing {
            true => Flag::SkipSanitizePayload,
            false => Flag::SanitizePayload,
        };
        let password = self.needs_no_password.then_some(Flag::NoPassword);
        [Some(state), password, Some(sanitizing)]
            .into_iter()
            .flatten()
    }

    /// The hashes of its passwords.
    pub fn passwords(&self) -> impl Iterator<Item = &str> {
        self.passwords.iter().map(PasswordHash::as_str)
    }

    /// The selector of rules outside of parentheses.
    pub fn root(&self) -> &Selector {
        &self.root
    }

    /// The selectors of rules in parentheses.
    pub fn others(&self) -> &[Selector] {
        &self.others
    }

    /// All selectors.
    pub(super) fn selectors(&self) -> impl Iterator<Item = &Selector> {
        std::iter::once(&self.root).chain(&self.others)
    }

    /// Applies all rules, or none if one is refused.
    ///
    /// # Errors
    /// Redis's text, without its code.
    pub fn with_rules<R: AsRef<[u8]>>(
        &self,
        rules: &[R],
        defaults: Defaults,
    ) -> Result<Self, String> {
        let rules = merge_selectors(rules).map_err(|rule| {
            let rule = shown(rule);
            format!("Unmatched parenthesis in acl selector starting at '{rule}'.")
        })?;
        let mut changed = self.clone();
        for rule in &rules {
            changed.apply(rule, defaults).map_err(|error| {
                let rule = shown(rule);
                format!("Error in ACL SETUSER modifier '{rule}': {error}")
            })?;
        }
        Ok(changed)
    }

    /// The rules of the user, as in ACL LIST and in files of users.
    pub fn describe(&self) -> Vec<u8> {
        let mut text = Vec::new();
        for flag in self.flags() {
            text.extend_from_slice(flag.name().as_bytes());
            text.push(b' ');
        }
        for password in self.passwords() {
            text.push(b'#');
            text.extend_from_slice(password.as_bytes());
            text.push(b' ');
        }
        text.extend(self.root.describe());
        for selector in &self.others {
            text.extend_from_slice(b" (");
            text.extend(selector.describe());
            text.push(b')');
        }
        text
    }

    /// Reads the output of [`Self::describe`]. Unknown rules are ignored, except that an unknown rule
    /// with `-` forbids all commands. So a user never gets more. Also returns the error of the last
    /// unknown rule.
    pub fn from_description(rules: &[u8]) -> (Self, Option<RuleError>) {
        let defaults = Defaults::default();
        let words: Vec<&[u8]> = rules.split(|byte| *byte == b' ').collect();
        let mut user = Self::new(defaults);
        let Ok(rules) = merge_selectors(&words) else {
            return (user, Some(RuleError::Syntax));
        };
        let mut refused = None;
        for rule in &rules {
            if let Err(error) = user.apply(rule, defaults) {
                // It forbids something unknown.
                if rule.first() == Some(&b'-') {
                    user.root.forbid_all_commands();
                }
                refused = Some(error);
            }
        }
        (user, refused)
    }

    /// Applies a rule.
    ///
    /// # Errors
    /// See [`RuleError`]. Then nothing has changed.
    pub(super) fn apply(&mut self, rule: &[u8], defaults: Defaults) -> Result<(), RuleError> {
        if rule.is_empty() {
            return Ok(());
        }
        if is_rule(rule, "on") {
            self.is_on = true;
        } else if is_rule(rule, "off") {
            self.is_on = false;
        } else if is_rule(rule, "skip-sanitize-payload") {
            self.skips_sanitizing = true;
        } else if is_rule(rule, "sanitize-payload") {
            self.skips_sanitizing = false;
        } else if is_rule(rule, "nopass") {
            self.set_only_password(None);
        } else if is_rule(rule, "resetpass") {
            self.forget_passwords();
        } else if is_rule(rule, "clearselectors") {
            self.others.clear();
        } else if is_rule(rule, "reset") {
            *self = Self::new(defaults);
        } else {
            return match rule {
                [b'>', password @ ..] => {
                    self.add_password(PasswordHash::of(password));
                    Ok(())
                }
                [b'#', hash @ ..] => {
                    let hash = PasswordHash::parse(hash).ok_or(RuleError::PasswordHash)?;
                    self.add_password(hash);
                    Ok(())
                }
                [b'<', password @ ..] => self.remove_password(&PasswordHash::of(password)),
                [b'!', hash @ ..] => {
                    let hash = PasswordHash::parse(hash).ok_or(RuleError::PasswordHash)?;
                    self.remove_password(&hash)
                }
                [b'(', .., b')'] => {
                    self.others.push(rules::parse_selector(rule, defaults)?);
                    Ok(())
                }
                _ => rules::apply(&mut self.root, rule),
            };
        }
        Ok(())
    }

    fn forget_passwords(&mut self) {
        self.needs_no_password = false;
        self.passwords.clear();
    }

    fn add_password(&mut self, hash: PasswordHash) {
        if !self.passwords.contains(&hash) {
            self.passwords.push(hash);
        }
        self.needs_no_password = false;
    }

    fn remove_password(&mut self, hash: &PasswordHash) -> Result<(), RuleError> {
        let known = self.passwords.iter().position(|known| known == hash);
        self.passwords
            .remove(known.ok_or(RuleError::NoSuchPassword)?);
        Ok(())
    }
}

/// A rule as an error shows it.
fn shown(rule: &[u8]) -> String {
    String::from_utf8_lossy(c_text(rule)).into_owned()
}

/// Joins the words between parentheses, which may be several arguments. The error is the word with
/// an unclosed parenthesis (Redis: `ACLMergeSelectorArguments`).
pub(super) fn merge_selectors<R: AsRef<[u8]>>(rules: &[R]) -> Result<Vec<Vec<u8>>, &[u8]> {
    let mut merged = Vec::with_capacity(rules.len());
    let mut open: Option<(&[u8], Vec<u8>)> = None;
    for rule in rules.iter().map(AsRef::as_ref) {
        let closes = rule.last() == Some(&b')');
        open = match open {
            None if rule.first() == Some(&b'(') && !closes => Some((rule, rule.to_vec())),
            None => {
                merged.push(rule.to_vec());
                None
            }
            Some((first, mut whole)) => {
                whole.push(b' ');
                whole.extend_from_slice(c_text(rule));
                if closes {
                    merged.push(whole);
                    None
                } else {
                    Some((first, whole))
                }
            }
        };
    }
    match open {
        None => Ok(merged),
        Some((first, _)) => Err(first),
    }
}

#[cfg(test)]
impl Definition {
    /// A user with these rules.
    pub(super) fn of(rules: &str) -> Self {
        let rules: Vec<&[u8]> = rules.split(' ').map(str::as_bytes).collect();
        let new = Self::new(Defaults::default());
        new.with_rules(&rules, Defaults::default()).unwrap()
    }
}

/// Hexadecimal digits of a SHA-256.
const DIGITS: usize = 64;

/// The SHA-256 of a password, as 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PasswordHash(String);

impl PasswordHash {
    /// The hash of a password.
    pub(super) fn of(password: &[u8]) -> Self {
        Self(hex(Sha256::digest(password)))
    }

    /// Parses a hash. `None` if the text is not one.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let text = std::str::from_utf8(text).ok()?;
        let is_hash = text.len() == DIGITS && text.as_bytes().iter().all(is_digit);
        is_hash.then(|| Self(text.to_owned()))
    }

    /// Constant-time equality.
    pub(super) fn matches(&self, other: &Self) -> bool {
        is_secret(self.0.as_bytes(), other.0.as_bytes())
    }

    /// The digits.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Rules of a user, with the SHA-256 of each password in place of the password.
pub fn without_passwords(rules: &[String]) -> Vec<String> {
    let hashed = |rule: &String| match rule.split_at_checked(1) {
        Some((">", password)) => format!("#{}", PasswordHash::of(password.as_bytes()).as_str()),
        Some(("<", password)) => format!("!{}", PasswordHash::of(password.as_bytes()).as_str()),
        _ => rule.clone(),
    };
    rules.iter().map(hashed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_open_only_with_everything() {
        assert!(Definition::of("+@all ~* &*").is_open());
        for rules in ["+@all ~*", "+@all &*", "~* &*", "+@all ~* &* -get"] {
            assert!(!Definition::of(rules).is_open(), "{rules}");
        }
        assert!(Definition::of("(+@all ~* &*)").is_open());
        // ACL LIST does not show a rule that was taken back, so the user is the same after a restart.
        assert!(Definition::of("+@all -get +get ~* &*").is_open());
        assert!(Definition::of("+@all -config|set +config ~* &*").is_open());
    }

    #[test]
    fn a_rule_replaces_what_it_makes_needless() {
        let rules = |rules: &str| Definition::of(rules).root().command_rules();
        assert_eq!(rules("+get -get"), "-@all -get");
        assert_eq!(rules("+config|get +config"), "-@all +config");
        assert_eq!(rules("+config +config|get"), "-@all +config +config|get");
        assert_eq!(rules("+get +@all -set"), "+@all -set");
        assert_eq!(rules("+GET +@READ"), "-@all +get +@read");
    }

    #[test]
    fn passwords_are_right_only_as_they_are() {
        let user = Definition::of("on >secret >other <other");
        assert!(user.accepts(b"secret"));
        for wrong in ["", "secre", "secret1", "Secret", "secret\0", "other"] {
            assert!(!user.accepts(wrong.as_bytes()), "{wrong}");
        }
        assert!(!Definition::of("off >secret").accepts(b"secret"));
        assert!(Definition::of("on nopass").accepts(b"anything"));
        assert!(!Definition::of("on nopass >p resetpass").accepts(b"p"));
    }
}

//! What rules say of a user (Redis: `ACLSetUser`).

use super::password::PasswordHash;
use super::rule_error::RuleError;
use super::rules::{self, Defaults};
use super::selector::Selector;
use super::text::is_rule;

/// A flag of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flag {
    /// Clients may authenticate as this user.
    On,
    /// They may not.
    Off,
    /// Every password is right.
    NoPassword,
    /// RESTORE does not look into what it is given. Quoin always does.
    SkipSanitizePayload,
    /// RESTORE looks into what it is given.
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

/// What rules say of a user: its flags, passwords and selectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    is_on: bool,
    needs_no_password: bool,
    skips_sanitizing: bool,
    pub(super) passwords: Vec<PasswordHash>,
    /// What rules outside of parentheses allow.
    pub(super) root: Selector,
    /// What rules in parentheses allow, each for itself.
    pub(super) others: Vec<Selector>,
}

impl Definition {
    /// A user that no rule was applied to: it is off and may do nothing.
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

    /// The user `default` of a server that says nothing about it: it may do everything without a
    /// password.
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

    /// Makes this the only password, or any password right.
    pub fn set_only_password(&mut self, password: Option<&[u8]>) {
        self.passwords = Vec::from_iter(password.map(PasswordHash::of));
        self.needs_no_password = password.is_none();
    }

    /// Whether clients may authenticate as this user.
    #[cfg(test)]
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Whether every password is right.
    pub fn needs_no_password(&self) -> bool {
        self.needs_no_password
    }

    /// Whether clients are this user without having said so, if it is `default`.
    pub fn admits_all(&self) -> bool {
        self.is_on && self.needs_no_password
    }

    /// Whether a client that gives this password is this user (Redis: `ACLCheckUserCredentials`).
    pub fn accepts(&self, password: &[u8]) -> bool {
        // In any case, and with all: the time tells neither what is wrong nor which one is right.
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

    /// What rules outside of parentheses allow.
    pub fn root(&self) -> &Selector {
        &self.root
    }

    /// What rules in parentheses allow, each for itself.
    pub fn others(&self) -> &[Selector] {
        &self.others
    }

    /// All selectors.
    pub(super) fn selectors(&self) -> impl Iterator<Item = &Selector> {
        std::iter::once(&self.root).chain(&self.others)
    }

    /// Applies all rules or, where one is refused, none.
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

    /// Reads what [`Self::describe`] has written. Rules that are none are left out. A rule that takes
    /// away what this server does not know takes away all commands. So a user gets less. The second
    /// value is the error of the last of them.
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
                // What it takes away is not known.
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
    /// See [`RuleError`]. Nothing has changed then.
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
    String::from_utf8_lossy(super::text::c_text(rule)).into_owned()
}

/// Puts the words between parentheses together, which may have come as several arguments. The error
/// is the word with a parenthesis that nothing closes (Redis: `ACLMergeSelectorArguments`).
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
                whole.extend_from_slice(super::text::c_text(rule));
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

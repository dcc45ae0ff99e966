//! The users of a running server, by name.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;

use crate::definition::Definition;

/// The user of clients that have not authenticated.
pub const DEFAULT_USER: &str = "default";

/// The users of a server. There is always one that is called `default`.
#[derive(Debug)]
pub struct Users {
    all: RwLock<BTreeMap<Bytes, Arc<User>>>,
    default: Arc<User>,
    /// Clients must authenticate: `default` is off or has a password.
    requires_authentication: AtomicBool,
    /// Whether there has ever been a user that may not do everything.
    has_restricted: AtomicBool,
}

/// The effect of replacing all users.
#[derive(Debug, Default)]
pub struct Replaced {
    /// Users that were deleted.
    pub deleted: Vec<Arc<User>>,
    /// Redefined users, each with the previous definition.
    pub redefined: Vec<(Arc<User>, Arc<Definition>)>,
}

impl Users {
    /// The user `default`, with this definition.
    pub fn new(default: Definition) -> Self {
        let admits_all = default.admits_all();
        let is_open = default.is_open();
        let name = Bytes::from_static(DEFAULT_USER.as_bytes());
        let default = Arc::new(User::new(name.clone(), default));
        Self {
            all: RwLock::new(BTreeMap::from([(name, Arc::clone(&default))])),
            default,
            requires_authentication: AtomicBool::new(!admits_all),
            has_restricted: AtomicBool::new(!is_open),
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<Bytes, Arc<User>>> {
        self.all.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<Bytes, Arc<User>>> {
        self.all.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The user `default`.
    pub fn default_user(&self) -> &Arc<User> {
        &self.default
    }

    /// Whether clients must authenticate: `default` is off or has a password.
    pub fn requires_authentication(&self) -> bool {
        self.requires_authentication.load(Ordering::Acquire)
    }

    /// Whether there has ever been a user that may not do everything.
    pub fn has_restricted(&self) -> bool {
        self.has_restricted.load(Ordering::Acquire)
    }

    /// The user of this name.
    pub fn find(&self, name: &[u8]) -> Option<Arc<User>> {
        self.read().get(name).cloned()
    }

    /// All users, by name.
    pub fn all(&self) -> Vec<Arc<User>> {
        self.read().values().cloned().collect()
    }

    /// Creates or changes a user. `change` gets its definition, or `None` if the user does not
    /// exist. Returns the user and its previous definition.
    ///
    /// # Errors
    /// That of `change`. Then nothing has changed.
    pub fn change<E>(
        &self,
        name: &[u8],
        change: impl FnOnce(Option<&Definition>) -> Result<Definition, E>,
    ) -> Result<(Arc<User>, Option<Arc<Definition>>), E> {
        let mut all = self.write();
        let known = all.get(name).cloned();
        let before = known.as_ref().map(|user| user.definition());
        let definition = change(before.as_deref())?;
        Ok(match known {
            Some(user) => {
                let before = self.redefine(&user, definition);
                (user, Some(before))
            }
            None => (self.add(&mut all, name, definition), None),
        })
    }

    fn add(
        &self,
        all: &mut BTreeMap<Bytes, Arc<User>>,
        name: &[u8],
        definition: Definition,
    ) -> Arc<User> {
        if !definition.is_open() {
            self.has_restricted.store(true, Ordering::Release);
        }
        // Copied, because the argument may keep a whole request in memory.
        let name = Bytes::copy_from_slice(name);
        let user = Arc::new(User::new(name.clone(), definition));
        all.insert(name, Arc::clone(&user));
        user
    }

    fn redefine(&self, user: &Arc<User>, definition: Definition) -> Arc<Definition> {
        if !definition.is_open() {
            self.has_restricted.store(true, Ordering::Release);
        }
        if Arc::ptr_eq(user, &self.default) {
            let admits_all = definition.admits_all();
            self.requires_authentication
                .store(!admits_all, Ordering::Release);
        }
        user.redefine(definition)
    }

    /// Deletes a user, if it exists. `default` stays.
    pub fn delete(&self, name: &[u8]) -> Option<Arc<User>> {
        if name == DEFAULT_USER.as_bytes() {
            return None;
        }
        let user = self.write().remove(name)?;
        user.delete();
        Some(user)
    }

    /// Replaces all users. If `definitions` does not name `default`, it gets the definition
    /// `default`. Without `keeps`, users that remain are deleted and created again, except
    /// `default`.
    pub fn replace(
        &self,
        mut definitions: BTreeMap<Bytes, Definition>,
        default: Definition,
        keeps: bool,
    ) -> Replaced {
        let name = Bytes::from_static(DEFAULT_USER.as_bytes());
        definitions.entry(name).or_insert(default);
        let mut all = self.write();
        let mut replaced = Replaced::default();
        all.retain(|name, user| {
            let is_default = Arc::ptr_eq(user, &self.default);
            let stays = is_default || (keeps && definitions.contains_key(name));
            if !stays {
                user.delete();
                replaced.deleted.push(Arc::clone(user));
            }
            stays
        });
        for (name, definition) in definitions {
            match all.get(&name).cloned() {
                None => {
                    self.add(&mut all, &name, definition);
                }
                Some(user) if *user.definition() == definition => {}
                Some(user) => {
                    let before = self.redefine(&user, definition);
                    replaced.redefined.push((user, before));
                }
            }
        }
        replaced
    }
}

/// A user of the running server, which its clients hold.
///
/// A command of a user that may do everything costs one read of a flag.
#[derive(Debug)]
pub struct User {
    name: Bytes,
    is_open: AtomicBool,
    is_deleted: AtomicBool,
    definition: RwLock<Arc<Definition>>,
}

impl User {
    pub(super) fn new(name: Bytes, definition: Definition) -> Self {
        Self {
            name,
            is_open: AtomicBool::new(definition.is_open()),
            is_deleted: AtomicBool::new(false),
            definition: RwLock::new(Arc::new(definition)),
        }
    }

    /// A user that no client can have, for testing code that holds one.
    #[cfg(feature = "testing")]
    pub fn for_test() -> Arc<Self> {
        let name = Bytes::from_static(b"default");
        Arc::new(Self::new(name, Definition::unrestricted()))
    }

    /// Its name.
    pub fn name(&self) -> &Bytes {
        &self.name
    }

    /// Whether it may do everything.
    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Whether it was deleted. Its clients are disconnected.
    pub fn is_deleted(&self) -> bool {
        self.is_deleted.load(Ordering::Acquire)
    }

    /// Its current definition.
    pub fn definition(&self) -> Arc<Definition> {
        let definition = self.definition.read();
        Arc::clone(&definition.unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces its definition. Returns the previous one.
    fn redefine(&self, definition: Definition) -> Arc<Definition> {
        let is_open = definition.is_open();
        let mut current = self
            .definition
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *current, Arc::new(definition));
        self.is_open.store(is_open, Ordering::Release);
        before
    }

    /// Deletes it. From then on it may do nothing.
    pub(super) fn delete(&self) {
        self.is_deleted.store(true, Ordering::Release);
        self.redefine(Definition::new(Default::default()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_stay_the_same_for_their_clients() {
        let users = Users::new(Definition::unrestricted());
        assert!(!users.has_restricted() && !users.requires_authentication());
        let set = |rules: &str| {
            users
                .change(b"u", |_| Ok::<_, ()>(Definition::of(rules)))
                .unwrap()
        };
        let (user, before) = set("on +get ~*");
        assert!(before.is_none() && users.has_restricted() && !user.is_open());
        let (same, _) = set("on +@all ~* &*");
        assert!(std::sync::Arc::ptr_eq(&user, &same) && user.is_open());
        assert!(users.delete(b"default").is_none());
        assert!(users.delete(b"u").is_some());
        assert!(user.is_deleted() && !user.is_open());
        let change = |_: Option<&Definition>| Ok::<_, ()>(Definition::of("on >p"));
        users.change(b"default", change).unwrap();
        assert!(users.requires_authentication());
    }

    #[test]
    fn others_take_the_place_of_users() {
        let users = Users::new(Definition::unrestricted());
        let given = |names: &[(&'static str, &str)]| {
            let users = names
                .iter()
                .map(|(name, rules)| (Bytes::from(*name), Definition::of(rules)));
            users.collect::<std::collections::BTreeMap<_, _>>()
        };
        let default = Definition::unrestricted;
        users.replace(given(&[("a", "on"), ("b", "on")]), default(), true);
        let kept = users.find(b"a").unwrap();
        let replaced = users.replace(given(&[("a", "off"), ("c", "on")]), default(), true);
        assert_eq!((replaced.deleted.len(), replaced.redefined.len()), (1, 1));
        assert!(!kept.is_deleted() && !kept.definition().is_on());
        users.replace(given(&[("a", "off")]), default(), false);
        assert!(kept.is_deleted() && users.find(b"a").is_some());
    }
}

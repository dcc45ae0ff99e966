//! The users of a server, by name.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;

use super::definition::Definition;
use super::user::User;

/// The user that every client is until it says otherwise.
pub const DEFAULT_USER: &str = "default";

/// The users of a server. There is always one that is called `default`.
#[derive(Debug)]
pub struct Users {
    all: RwLock<BTreeMap<Bytes, Arc<User>>>,
    default: Arc<User>,
    /// Clients have to authenticate: `default` is off or has a password.
    requires_authentication: AtomicBool,
    /// There has been a user that may not do everything.
    has_restricted: AtomicBool,
}

/// What became of the users when others took their place.
#[derive(Debug, Default)]
pub struct Replaced {
    /// Users that are no more.
    pub deleted: Vec<Arc<User>>,
    /// Users with another definition, each with the one before.
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

    /// Whether clients have to authenticate, as `default` is off or has a password.
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

    /// Makes a user or changes it, by what `change` makes of its definition; it is given `None` where
    /// there is no such user. Returns the user, and the definition that it had.
    ///
    /// # Errors
    /// That of `change`. Nothing has changed then.
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
        // A copy: the argument may keep a whole request in memory.
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

    /// Deletes a user, if there is one. `default` stays.
    pub fn delete(&self, name: &[u8]) -> Option<Arc<User>> {
        if name == DEFAULT_USER.as_bytes() {
            return None;
        }
        let user = self.write().remove(name)?;
        user.delete();
        Some(user)
    }

    /// Has exactly these users from now on, and `default` with this definition where it is none of
    /// them. Without `keeps`, users that stay are deleted and made again, except `default`.
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

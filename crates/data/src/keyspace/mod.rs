//! Finding, creating and removing keys, their expiry and their length.
//!
//! A key exists for clients if it has metadata, has not expired, and is not empty, unless its type exists when empty
//! ([`presence`](crate::keyspace::presence)). A list or set that becomes empty ceases to exist at once. On a store with
//! a single writer, its metadata is removed with the last element. If several servers write, that would make the last
//! pop conflict with every push. There the metadata may be kept (*retained metadata*: no expiry, length 0). It is
//! invisible to clients and is reused or swept later.

pub mod counting;
pub mod dumping;
pub mod encoding;
pub mod figures;
pub mod fingerprint;
pub mod flush;
pub mod handle;
pub mod import;
pub mod key;
pub mod kind;
pub mod presence;
pub mod retained;
pub mod scanning;

use bytes::Bytes;

use crate::error::CommandError;
use crate::keyspace::kind::{TypeKind, ValueKind};
use quoin_base::events::EventClasses;
use quoin_base::limits::KEY_READS_AT_ONCE;
use quoin_layout::{
    Id, InlineValue, KeyName, KeyRange, Meta, MetaCopy, TrashKind, ValueType, decode_length,
    encode_length, length_delta,
};
use quoin_store::{Isolation, StoreError};

use crate::keyspace::key::{ClientKey, OpenKey};
use crate::keyspace::presence::Presence;
use crate::unit::context::{ReadContext, WriteContext};
use crate::unit::host::Change;
use crate::unit::known::KeyLocation;
use crate::unit::signals::Ready;

impl ReadContext<'_> {
    async fn locate(&self, key: &Bytes) -> Result<KeyLocation, StoreError> {
        match self.namespaces.located.take_ahead(self.database, key) {
            Some(location) => Ok(location),
            None => self.locate_again(key).await,
        }
    }

    /// Locates a key for a command that will look it up soon. Returns the key of its metadata.
    pub(crate) async fn locate_ahead(&self, key: &Bytes) -> Result<Vec<u8>, StoreError> {
        let location = self.locate_again(key).await?;
        let meta_key = location.meta_key.clone();
        self.namespaces.located.keep_ahead(key, location);
        Ok(meta_key)
    }

    /// The key that a command will look up soon, with its current metadata.
    pub(crate) async fn find_ahead(&self, key: &Bytes) -> Result<Option<OpenKey>, StoreError> {
        let location = self.locate_again(key).await?;
        let meta = self.read_meta(&location).await?;
        Ok(meta.map(|meta| open(location, meta)))
    }

    /// Forgets what was located ahead.
    pub(crate) fn forget_ahead(&self) {
        self.namespaces.located.forget_ahead();
    }

    async fn locate_again(&self, key: &Bytes) -> Result<KeyLocation, StoreError> {
        let located = &self.namespaces.located;
        if let Some(location) = located.find(self.database, key) {
            return Ok(location);
        }
        let namespace = self.namespace().await?;
        let name = KeyName::new(key);
        let meta_key = self.layout().meta_key(namespace, &name);
        let location = KeyLocation {
            database: self.database,
            namespace,
            name,
            meta_key,
        };
        located.remember(key, &location);
        Ok(location)
    }

    async fn read_meta(&self, location: &KeyLocation) -> Result<Option<Meta>, StoreError> {
        match self
            .transaction
            .get(&location.meta_key, self.isolation)
            .await?
        {
            Some(row) => Ok(Some(self.namespaces.located.decode(row)?)),
            None => Ok(None),
        }
    }

    /// The key of a key's metadata row, and that row.
    pub(crate) async fn meta_row(
        &self,
        key: &Bytes,
    ) -> Result<(Vec<u8>, Option<Bytes>), StoreError> {
        let location = self.locate(key).await?;
        let row = self
            .transaction
            .get(&location.meta_key, self.isolation)
            .await?;
        Ok((location.meta_key, row))
    }

    /// Whether a key with this metadata has expired.
    pub fn is_expired(&self, meta: &Meta) -> bool {
        meta.expire_at_ms.is_some_and(|at_ms| at_ms <= self.now_ms)
    }

    /// The key's number of elements.
    ///
    /// A serializable read conflicts with every push and pop of the key. Commands that only report the length of what
    /// they change use `Snapshot`.
    pub async fn length(&self, key: &OpenKey, isolation: Isolation) -> Result<i64, StoreError> {
        match &key.meta.inline {
            Some(inline) => Ok(key.meta.value_type.kind().inline_length(inline)?),
            None => self.length_at(&key.meta_key, isolation).await,
        }
    }

    pub(crate) async fn length_at(
        &self,
        meta_key: &[u8],
        isolation: Isolation,
    ) -> Result<i64, StoreError> {
        let length_key = self.layout().length_key(meta_key);
        let value = self.transaction.get(&length_key, isolation).await?;
        Ok(decode_length(value.as_ref())?)
    }

    /// Whether a key that was found by its type exists for clients; see the module's comment.
    pub async fn has_elements(&self, key: &OpenKey) -> Result<bool, StoreError> {
        Ok(!self
            .is_retained(&key.meta_key, &key.meta, self.isolation)
            .await?)
    }

    /// Whether a key is empty, for code that monitors keys that clients wait for. Conflicts with nothing and does not
    /// count as a client's lookup.
    pub async fn is_empty(&self, key: &Bytes) -> Result<bool, StoreError> {
        let view = self.relaxed_view();
        Ok(match view.look_up(key).await? {
            Some(found) => !view.has_elements(&found).await?,
            None => true,
        })
    }

    /// The key, if it exists for clients, whatever its type. With retained metadata, this conflicts with concurrent
    /// pushes and pops, so it is for commands on keys, not on elements.
    pub async fn find_any(&self, key: &Bytes) -> Result<Option<OpenKey>, StoreError> {
        let found = self.look_up(key).await?;
        let found = match found {
            Some(found) if self.has_elements(&found).await? => Some(found),
            _ => None,
        };
        self.count_lookup(found.is_some());
        Ok(found)
    }

    /// [`Self::find_any`] for each name. The reads are concurrent, because each is a round trip on a cluster.
    pub async fn find_each(&self, keys: &[Bytes]) -> Result<Vec<Option<OpenKey>>, StoreError> {
        self.each(keys, KEY_READS_AT_ONCE, async |key| {
            self.find_any(key).await
        })
        .await
    }

    /// The key, if it has this type. Its data may turn out to be empty, which means that the key does not exist. Does
    /// not conflict with pushes and pops.
    ///
    /// # Errors
    /// `WrongType` if the key has another type.
    pub async fn find(
        &self,
        key: &Bytes,
        value_type: ValueType,
    ) -> Result<Option<OpenKey>, CommandError> {
        self.find_of(key, &[value_type]).await
    }

    /// [`Self::find`] for several keys and types. The reads are concurrent.
    ///
    /// # Errors
    /// `WrongType` if a key has another type.
    pub async fn find_each_of(
        &self,
        keys: &[Bytes],
        value_types: &[ValueType],
    ) -> Result<Vec<Option<OpenKey>>, CommandError> {
        self.each(keys, KEY_READS_AT_ONCE, async |key| {
            self.find_of(key, value_types).await
        })
        .await
    }

    async fn find_of(
        &self,
        key: &Bytes,
        value_types: &[ValueType],
    ) -> Result<Option<OpenKey>, CommandError> {
        let mut found = self.look_up(key).await?;
        if let Some(other) = &found
            && !value_types.contains(&other.meta.value_type)
        {
            if self.has_elements(other).await? {
                self.count_lookup(true);
                return Err(CommandError::WrongType);
            }
            found = None;
        }
        self.count_lookup(found.is_some());
        Ok(found)
    }

    /// The key, unless it is missing or expired. It may have no elements.
    pub(crate) async fn look_up(&self, key: &Bytes) -> Result<Option<OpenKey>, StoreError> {
        let location = self.locate(key).await?;
        match self.read_meta(&location).await? {
            Some(meta) if !self.is_expired(&meta) => Ok(Some(open(location, meta))),
            _ => Ok(None),
        }
    }
}

fn open(location: KeyLocation, meta: Meta) -> OpenKey {
    OpenKey {
        database: Some(location.database),
        namespace: location.namespace,
        name: location.name,
        meta_key: location.meta_key,
        meta,
    }
}

impl WriteContext<'_> {
    /// The key, if it has this type. A missing key is created empty. The caller must add something to it in the same
    /// command.
    ///
    /// # Errors
    /// `WrongType` if the key has another type.
    pub async fn find_or_create(
        &self,
        key: &Bytes,
        value_type: ValueType,
    ) -> Result<OpenKey, CommandError> {
        match self.find(key, value_type).await? {
            Some(found) => {
                self.notify_if_reborn(&found, key).await?;
                Ok(found)
            }
            None => self.create(key, value_type, None).await,
        }
    }

    /// Replaces whatever is at `key` (an expired key, retained metadata, or a value that the caller wants to overwrite)
    /// with a new, empty key.
    ///
    /// # Errors
    /// `KeyNameTooLong`.
    pub async fn create(
        &self,
        key: &Bytes,
        value_type: ValueType,
        expire_at_ms: Option<i64>,
    ) -> Result<OpenKey, CommandError> {
        self.create_with(key, value_type, expire_at_ms, None).await
    }

    /// [`Self::create`] for a key whose whole value is `inline`, if given.
    ///
    /// # Errors
    /// `KeyNameTooLong`.
    pub async fn create_with(
        &self,
        key: &Bytes,
        value_type: ValueType,
        expire_at_ms: Option<i64>,
        inline: Option<Bytes>,
    ) -> Result<OpenKey, CommandError> {
        let meta = Meta {
            value_type,
            data: self.environment.ids.allocate(),
            expire_at_ms,
            long_name: None,
            inline: inline.map(InlineValue::new),
            rank_levels: 0,
            fields_expire: false,
            is_kept: false,
        };
        self.create_as(key, meta, 0).await
    }

    /// [`Self::create`] for a key with this metadata. The caller has already written its data.
    ///
    /// # Errors
    /// `KeyNameTooLong`.
    pub(crate) async fn create_as(
        &self,
        key: &Bytes,
        meta: Meta,
        length: i64,
    ) -> Result<OpenKey, CommandError> {
        self.check_name(key)?;
        // As in Redis, overwriting a value does not create a new key.
        self.notify_of_creation(key, true).await?;
        self.put_row(key, meta, length).await
    }

    /// Puts a key with existing data and length at `key`, and replaces whatever is there: the second half of RENAME and
    /// MOVE.
    ///
    /// # Errors
    /// `KeyNameTooLong`.
    pub async fn put(&self, key: &Bytes, meta: Meta, length: i64) -> Result<OpenKey, CommandError> {
        self.check_name(key)?;
        self.notify_of_creation(key, false).await?;
        let key = self.put_row(key, meta, length).await?;
        if let Some(on_put) = key.meta.value_type.kind().on_put {
            on_put(self, &key);
        }
        Ok(key)
    }

    /// Lookups accept names of any length, but a key can only be created if its name fits.
    fn check_name(&self, key: &Bytes) -> Result<(), CommandError> {
        let bytes_max = self.environment.capabilities.key_name_bytes_max;
        if key.len() > bytes_max {
            return Err(CommandError::KeyNameTooLong(bytes_max));
        }
        Ok(())
    }

    /// Notifies that a key is created, unless it already exists and `spares_existing`. First notifies that an old key
    /// has expired if it was not removed yet.
    async fn notify_of_creation(
        &self,
        key: &Bytes,
        spares_existing: bool,
    ) -> Result<(), StoreError> {
        if !self.tells_of(EventClasses::NEW) && !self.tells_of(EventClasses::EXPIRED) {
            return Ok(());
        }
        let location = self.locate(key).await?;
        let exists = match self.read_meta(&location).await? {
            None => false,
            Some(meta) if self.is_expired(&meta) => {
                self.notify(EventClasses::EXPIRED, "expired", key);
                false
            }
            Some(meta) => {
                !self
                    .is_retained(&location.meta_key, &meta, self.relaxed())
                    .await?
            }
        };
        if !(exists && spares_existing) {
            self.notify(EventClasses::NEW, "new", key);
        }
        Ok(())
    }

    async fn put_row(
        &self,
        key: &Bytes,
        mut meta: Meta,
        length: i64,
    ) -> Result<OpenKey, CommandError> {
        let location = self.locate(key).await?;
        if let Some(old) = self.read_meta(&location).await? {
            let old = OpenKey {
                database: None,
                namespace: location.namespace,
                name: location.name.clone(),
                meta_key: location.meta_key.clone(),
                meta: old,
            };
            self.before_replacing(key, &old).await?;
            match old.meta.inline {
                // All its rows are about to be overwritten.
                Some(_) => self.clear_expiry_index(&old),
                None => self.remove(&old),
            }
            self.signal_gone(&OpenKey {
                database: Some(location.database),
                ..old
            });
        }
        meta.long_name = location.name.inline().is_none().then(|| key.clone());
        self.write_meta(&location.meta_key, &meta);
        if meta.inline.is_none() {
            self.write_first_length(&location.meta_key, length);
        }
        if let Some(at_ms) = meta.expire_at_ms {
            let expiry_key = self
                .layout()
                .expiry_key(at_ms, location.namespace, &location.name);
            self.transaction.set(&expiry_key, b"");
        }
        self.signals.touch(ClientKey {
            database: location.database,
            key: key.clone(),
        });
        let key = open(location, meta);
        if length != 0 {
            self.signal_ready(&key);
        }
        Ok(key)
    }

    /// Writes the first length counter of a key.
    fn write_first_length(&self, meta_key: &[u8], length: i64) {
        // WATCH must be able to tell a new key from its predecessor.
        let changes = if !self.environment.capabilities.has_other_writers {
            0
        } else {
            self.environment.random.next_u64()
        };
        if length != 0 || changes != 0 {
            self.transaction.set(
                &self.layout().length_key(meta_key),
                &encode_length(length, changes),
            );
        }
    }

    /// Changes a value that is stored in metadata.
    pub fn write_inline(&self, key: &mut OpenKey, bytes: Bytes) {
        key.meta.inline = Some(match &key.meta.inline {
            Some(inline) => inline.changed_to(bytes),
            None => InlineValue::new(bytes),
        });
        self.write_meta(&key.meta_key, &key.meta);
        self.signal_touched(key);
    }

    /// Converts a value in metadata to one in rows. The caller writes the rows; `length` is the new value of the length
    /// counter. Values are never converted back.
    pub fn drop_inline(&self, key: &mut OpenKey, length: i64) {
        key.meta.inline = None;
        self.write_meta(&key.meta_key, &key.meta);
        self.write_first_length(&key.meta_key, length);
        self.signal_touched(key);
    }

    /// Notifies WATCH of a changed key, after the commit.
    fn signal_touched(&self, key: &OpenKey) {
        if let Some(key) = key.client_key() {
            self.signals.touch(key);
        }
    }

    /// Notifies clients that track a key, but not WATCH, that it has changed.
    pub(crate) fn invalidate(&self, key: &OpenKey) {
        if let Ok(name) = key.meta.full_name(&key.name) {
            self.signals.change(Change::Unwatched(name.clone()));
        }
    }

    /// Wakes clients that wait for elements of a key.
    fn signal_ready(&self, key: &OpenKey) {
        if key.meta.value_type.kind().is_waited_for
            && let Some(client_key) = key.client_key()
        {
            let ready = Ready::Key(client_key, key.meta.value_type);
            self.signals.ready(ready);
        }
    }

    /// Wakes clients that wait for elements of a key to which some return.
    pub(crate) fn signal_returned(&self, key: &OpenKey) {
        match key.client_key() {
            Some(_) => self.signal_ready(key),
            None => self.signals.ready(Ready::Anywhere),
        }
    }

    /// Notifies clients whose commands need a key that it is gone or was replaced.
    pub(crate) fn signal_gone(&self, key: &OpenKey) {
        if key.meta.value_type.kind().is_missed()
            && let Some(client_key) = key.client_key()
        {
            let gone = Ready::Gone(client_key, key.meta.value_type);
            self.signals.ready(gone);
        }
    }

    /// Executes the commands of clients that wait for a key again, although nothing was added to it.
    pub(crate) fn wake_waiting(&self, key: &OpenKey) {
        self.signal_ready(key);
    }

    /// Removes a key with its data.
    pub fn remove(&self, key: &OpenKey) {
        self.detach(key);
        if key.meta.inline.is_none() {
            self.discard_data(key.meta.data);
        }
    }

    /// Removes a key but not its data, which the caller puts under another key.
    pub fn detach(&self, key: &OpenKey) {
        self.transaction.clear(&key.meta_key);
        if key.meta.inline.is_none() {
            self.transaction
                .clear(&self.layout().length_key(&key.meta_key));
        }
        if self.has_meta_copies() {
            let value_type = key.meta.value_type;
            let copies = value_type.meta_copy_keys(self.layout(), key.data());
            copies.for_each(|copy| self.transaction.clear(&copy));
        }
        self.clear_expiry_index(key);
        self.signal_touched(key);
        self.signal_gone(key);
    }

    /// Writes a key's metadata and the metadata copies.
    fn write_meta(&self, meta_key: &[u8], meta: &Meta) {
        let value = meta.encode();
        self.transaction.set(meta_key, &value);
        // A copy with a long name might exceed the size limit of a value.
        if self.has_meta_copies() && meta.long_name.is_none() {
            let copy = MetaCopy {
                meta_key: Bytes::copy_from_slice(meta_key),
                meta: value.into(),
            };
            let copy = copy.encode();
            for key in meta.value_type.meta_copy_keys(self.layout(), meta.data) {
                self.transaction.set(&key, &copy);
            }
        }
    }

    /// Changes the number of block levels that are counted. Clients do not see a change.
    pub(crate) fn set_rank_levels(&self, key: &mut OpenKey, levels: u8) {
        key.meta.rank_levels = levels;
        self.write_meta(&key.meta_key, &key.meta);
    }

    /// Marks a hash whose fields may expire from now on. Clients do not see a change.
    pub(crate) fn mark_fields_expire(&self, key: &mut OpenKey) {
        key.meta.fields_expire = true;
        self.write_meta(&key.meta_key, &key.meta);
    }

    /// Sets whether a key exists without elements. Transactions that have read its metadata conflict, also if that does
    /// not change.
    pub(crate) fn set_kept(&self, key: &mut OpenKey, is_kept: bool) {
        key.meta.is_kept = is_kept;
        self.write_meta(&key.meta_key, &key.meta);
        self.mark_changed(key);
    }

    /// Whether queues get metadata copies. They do if a read is a round trip. Clearing a whole queue also clears its
    /// copies.
    fn has_meta_copies(&self) -> bool {
        self.environment.capabilities.reads_wait
    }

    /// Removes a key without elements, and any other rows of its type.
    pub(crate) fn remove_empty(&self, key: &OpenKey) {
        self.detach(key);
        if ValueKind::keeps_rows_when_empty(&key.meta) {
            self.discard_data(key.meta.data);
        }
    }

    fn clear_expiry_index(&self, key: &OpenKey) {
        if let Some(at_ms) = key.meta.expire_at_ms {
            let expiry_key = self.layout().expiry_key(at_ms, key.namespace, &key.name);
            self.transaction.clear(&expiry_key);
        }
    }

    /// Clears data that no key refers to any more. If the store clears ranges in constant time, this happens at once;
    /// otherwise through the trash, so that DEL of ten million elements does not block everyone.
    pub fn discard_data(&self, data: Id) {
        if self.environment.capabilities.clears_ranges_at_once {
            let range = KeyRange::children(&self.layout().data_prefix(data));
            self.transaction.clear_range(&range.begin, &range.end);
        } else {
            let trash_key = self.layout().trash_key(TrashKind::Data, data);
            self.transaction.set(&trash_key, b"");
        }
    }

    /// Sets or removes a key's expiry.
    pub fn set_expiry(&self, key: &mut OpenKey, expire_at_ms: Option<i64>) {
        self.clear_expiry_index(key);
        key.meta.expire_at_ms = expire_at_ms;
        self.write_meta(&key.meta_key, &key.meta);
        if let Some(at_ms) = expire_at_ms {
            let expiry_key = self.layout().expiry_key(at_ms, key.namespace, &key.name);
            self.transaction.set(&expiry_key, b"");
        }
        self.signal_touched(key);
    }

    /// Counts elements that were added (positive) or removed (negative). This is an atomic addition in the transaction
    /// of the elements, so it cannot drift and never conflicts.
    pub fn add_length(&self, key: &OpenKey, delta: i64) {
        if delta != 0 {
            self.count_change(key, delta);
        }
        if delta > 0 {
            self.signal_ready(key);
        }
    }

    /// Must be called if elements were changed but their number was not, so that WATCH notices.
    pub fn mark_changed(&self, key: &OpenKey) {
        self.count_change(key, 0);
    }

    /// Counts without waking waiting clients.
    pub(crate) fn count_change(&self, key: &OpenKey, delta: i64) {
        let length_key = self.layout().length_key(&key.meta_key);
        self.transaction
            .atomic_add(&length_key, length_delta(delta));
        if let Some(name) = key.client_key() {
            self.count_length(&name, key.meta.value_type, delta);
            self.signals.touch(name);
        }
    }

    /// Must be called after elements were removed, counted and notified. Removes the key if it is empty and its type
    /// does not exist when empty, and notifies that too.
    pub async fn remove_if_empty(&self, key: &OpenKey) -> Result<(), StoreError> {
        if let Some(inline) = &key.meta.inline {
            if inline.bytes.is_empty() && !key.meta.value_type.kind().exists_when_empty {
                self.remove(key);
                self.notify_of(EventClasses::GENERIC, "del", key);
            }
            return Ok(());
        }
        let isolation = match self.presence(&key.meta, 0) {
            Presence::Exists => return Ok(()),
            // Invisible to clients from now on; see the module's comment. The length is read only if someone is to be
            // notified.
            Presence::Retained if !self.tells_of(EventClasses::GENERIC) => return Ok(()),
            Presence::Retained => self.relaxed(),
            Presence::Emptied => Isolation::Serializable,
        };
        let length = self.length(key, isolation).await?;
        let presence = self.presence(&key.meta, length);
        if presence == Presence::Emptied {
            self.remove_empty(key);
        }
        if presence != Presence::Exists {
            self.notify_of(EventClasses::GENERIC, "del", key);
        }
        Ok(())
    }
}

//! Keyspace events: commands tell of what they did to keys, as `notifyKeyspaceEvent` of Redis
//! does, in messages that are published after the commit.

use bytes::Bytes;

use quoin_base::events::EventClasses;
use quoin_store::StoreError;

use crate::keyspace::key::ClientKey;
use crate::keyspace::key::OpenKey;
use crate::unit::context::WriteContext;
use crate::unit::signals::ChannelKind;

impl WriteContext<'_> {
    /// Whether anybody may hear of events of this class.
    pub fn tells_of(&self, class: EventClasses) -> bool {
        self.environment.events().contains(class)
    }

    /// Tells of what happened to a key of the client's database, where events of this class are
    /// wanted: in the channel named after the key, then in the one named after the event.
    pub fn notify(&self, class: EventClasses, event: &'static str, key: &Bytes) {
        if self.tells_of(class) {
            self.publish_event(event, self.database, key);
        }
    }

    /// [`Self::notify`] of a key that was found.
    pub(crate) fn notify_of(&self, class: EventClasses, event: &'static str, key: &OpenKey) {
        if self.tells_of(class)
            && let Some(ClientKey { database, key }) = key.client_key()
        {
            self.publish_event(event, database, &key);
        }
    }

    fn publish_event(&self, event: &'static str, database: u32, key: &Bytes) {
        let classes = self.environment.events();
        if classes.contains(EventClasses::KEYSPACE) {
            let mut channel = format!("__keyspace@{database}__:").into_bytes();
            channel.extend_from_slice(key);
            let event = Bytes::from_static(event.as_bytes());
            self.publish(ChannelKind::Global, channel.into(), event);
        }
        if classes.contains(EventClasses::KEYEVENT) {
            let channel = format!("__keyevent@{database}__:{event}");
            self.publish(ChannelKind::Global, channel.into(), key.clone());
        }
    }

    /// Tells that something is put into a key that was found empty: on a store with many writers
    /// such a key may be there without existing for clients (see [`crate::keyspace`]). To be
    /// called before anything is put into it.
    pub async fn notify_if_reborn(&self, key: &OpenKey, name: &Bytes) -> Result<(), StoreError> {
        if self.tells_of(EventClasses::NEW)
            && self
                .is_retained(&key.meta_key, &key.meta, self.relaxed())
                .await?
        {
            self.notify(EventClasses::NEW, "new", name);
        }
        Ok(())
    }
}

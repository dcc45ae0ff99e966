//! A client's place among all clients.

use std::sync::Arc;

use super::record::ClientRecord;
use super::registry::ClientRegistry;

/// A client's place in `maxclients`. It is given back when this is dropped, in whatever way the
/// client's task ends: also by a panic.
pub(crate) struct Place {
    client: Arc<ClientRecord>,
    clients: Arc<ClientRegistry>,
}

impl Place {
    /// The place of a client that is registered.
    pub(crate) fn new(client: Arc<ClientRecord>, clients: &Arc<ClientRegistry>) -> Self {
        Self {
            client,
            clients: Arc::clone(clients),
        }
    }

    /// The client.
    pub(crate) fn client(&self) -> &Arc<ClientRecord> {
        &self.client
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.clients.remove(self.client.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::Endpoint;
    use quoin_acl::User;

    #[tokio::test]
    async fn a_client_whose_task_panics_gives_its_place_back() {
        let clients = Arc::<ClientRegistry>::default();
        let address = Endpoint::Tcp(([127, 0, 0, 1], 1).into());
        let user = User::for_test();
        let client = clients.register(address.clone(), address, 0, 0, 1, &user);
        let place = Place::new(client.unwrap(), &clients);
        assert_eq!(clients.count(), 1);
        let serving = tokio::spawn(async move {
            let _place = place;
            panic!("on purpose");
        });
        assert!(serving.await.unwrap_err().is_panic());
        assert_eq!(clients.count(), 0);
    }
}

//! Where commands of the cluster port's clients run
//! (docs/understand/decisions/044-cluster-port.md).

use bytes::Bytes;

use crate::cluster::slot_of_all;
use crate::connection::state::Connection;
use crate::connection_commands::moved;
use quoin_data::command::row::{Group, Row};

/// Commands that clients send to every node to add up the replies.
const ADDED_UP: [&str; 3] = ["dbsize", "keys", "scan"];
/// No client can select it.
const EMPTY_DATABASE: u32 = u32::MAX;

impl Connection {
    /// The error that redirects the client to another node with this command, if it should go
    /// there.
    pub(super) fn moved_line(&mut self, row: &Row, arguments: &[Bytes]) -> Option<String> {
        let session = &self.session;
        let is_fixed = session.transaction.is_some() || session.watch.len() > 0;
        if !session.is_on_cluster() || is_fixed || !row.has_keys() {
            return None;
        }
        let view = self.state.view_of(session.face)?;
        if !view.has_others() {
            return None;
        }
        let keys = row.key_indexes(arguments);
        let keys = keys.into_iter().filter_map(|place| arguments.get(place));
        let slot = slot_of_all(keys)?;
        let node = view.better_node(slot)?;
        let endpoints = self.state.config.settings().cluster_preferred_endpoint_type;
        let is_told = self.redirects.may_tell(slot);
        is_told.then(|| moved(slot, node, endpoints))
    }

    /// The database in which a command runs.
    pub(super) fn database_for(&self, row: &Row) -> u32 {
        let is_added_up = self.session.is_on_cluster() && ADDED_UP.contains(&row.name);
        let view = || self.state.view_of(self.session.face);
        match is_added_up && view().is_some_and(|view| view.is_answered_elsewhere()) {
            true => EMPTY_DATABASE,
            false => self.session.database,
        }
    }

    /// Whether the client may send a command to every node. That matters if the command fails when
    /// repeated.
    pub(super) fn repeats(&self, row: &Row) -> bool {
        self.session.is_on_cluster()
            && row.group == Group::Scripting
            && self
                .state
                .view_of(self.session.face)
                .is_some_and(|view| view.has_others())
    }
}

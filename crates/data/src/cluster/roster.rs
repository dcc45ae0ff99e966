//! The rows of servers that share a store (docs/understand/decisions/040-servers.md). Each server
//! writes its own row every second and reads all of them. The reader decides which servers are
//! alive.

use quoin_base::limits::{CHOICES_MAX, SERVERS_MAX};
use quoin_layout::{DecodeError, Layout, ServerRow, ServersKey, decode_choice, encode_choice};
use quoin_store::{Isolation, RangeQuery, ReadTransaction, StoreError, Transaction};

use crate::error::CommandError;
use crate::unit::context::WriteContext;

/// Rows of servers that were read together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RosterRows {
    /// Server starts with their rows, the oldest first.
    pub servers: Vec<(u64, ServerRow)>,
    /// Names with the server start that was chosen for each.
    pub choices: Vec<(Vec<u8>, u64)>,
    /// Number of rows that this version cannot read: a newer server's, or damaged ones.
    pub unreadable: usize,
}

/// Reads at most [`SERVERS_MAX`] and [`CHOICES_MAX`] rows together. Conflicts with nothing.
pub async fn read_rows(
    transaction: &dyn ReadTransaction,
    layout: &Layout,
) -> Result<RosterRows, StoreError> {
    let range = layout.servers();
    let query = RangeQuery {
        begin: &range.begin,
        end: &range.end,
        limit: SERVERS_MAX + CHOICES_MAX,
        reverse: false,
        isolation: Isolation::Snapshot,
    };
    let mut read = RosterRows::default();
    for row in transaction.get_range(query).await? {
        let taken: Result<(), DecodeError> = (|| {
            match layout.read_servers_key(&row.key)? {
                ServersKey::Server(_) if read.servers.len() >= SERVERS_MAX => {}
                ServersKey::Server(instance) => {
                    read.servers
                        .push((instance, ServerRow::decode(&row.value)?));
                }
                ServersKey::Choice(name) => {
                    read.choices.push((name, decode_choice(&row.value)?));
                }
            }
            Ok(())
        })();
        read.unreadable += usize::from(taken.is_err());
    }
    Ok(read)
}

/// Whether a server start has a row. Conflicts with the row's removal.
pub async fn has_server(
    transaction: &dyn ReadTransaction,
    layout: &Layout,
    instance: u64,
) -> Result<bool, StoreError> {
    let key = layout.server_key(instance);
    let found = transaction.get(&key, Isolation::Serializable).await?;
    Ok(found.is_some())
}

/// Writes the row of this server start. Conflicts with nothing.
pub fn write_own(transaction: &dyn Transaction, layout: &Layout, instance: u64, row: &ServerRow) {
    transaction.set(&layout.server_key(instance), &row.encode());
}

/// Removes the row of a server start.
pub fn remove(transaction: &dyn Transaction, layout: &Layout, instance: u64) {
    transaction.clear(&layout.server_key(instance));
}

/// Removes a row if it has not changed since it was read.
pub async fn remove_if_silent(
    transaction: &dyn Transaction,
    layout: &Layout,
    instance: u64,
    row: &ServerRow,
) -> Result<(), StoreError> {
    let key = layout.server_key(instance);
    let found = transaction.get(&key, Isolation::Serializable).await?;
    let Some(found) = found else {
        return Ok(());
    };
    if ServerRow::decode(&found)? == *row {
        transaction.clear(&key);
    }
    Ok(())
}

/// Removes choices of server starts that are gone for good, unless they have changed.
pub async fn remove_choices(
    transaction: &dyn Transaction,
    layout: &Layout,
    choices: &[(Vec<u8>, u64)],
) -> Result<(), StoreError> {
    for (name, instance) in choices {
        let key = layout.choice_key(name);
        let found = transaction.get(&key, Isolation::Serializable).await?;
        if found.is_some_and(|found| found == encode_choice(*instance)) {
            transaction.clear(&key);
        }
    }
    Ok(())
}

impl WriteContext<'_> {
    /// Chooses the server start that is the master of a name while it is alive.
    ///
    /// # Errors
    /// If servers were chosen for too many names.
    pub async fn choose_server(&self, name: &[u8], instance: u64) -> Result<(), CommandError> {
        let rows = read_rows(self.transaction, self.layout()).await?;
        let is_new = !rows.choices.iter().any(|(other, _)| other == name);
        if is_new && rows.choices.len() >= CHOICES_MAX {
            let line =
                format!("ERR servers were chosen for {CHOICES_MAX} names: no more are possible");
            return Err(CommandError::Text(line.into()));
        }
        let key = self.layout().choice_key(name);
        self.transaction.set(&key, &encode_choice(instance));
        Ok(())
    }
}

//! Servers that share a store: the address of each and that it is alive, and which of them was
//! chosen for a name (docs/understand/decisions/040-servers.md).

use std::hash::Hasher;

use bytes::{Buf, BufMut};
use foundationdb_tuple::Bytes as TupleBytes;
use siphasher::sip::SipHasher13;

use super::{DecodeError, KeyRange, Layout, Space, corrupt, take};

const FORMAT: u8 = 1;

/// The second tuple element of the space.
#[repr(u8)]
enum Kind {
    /// `(13, 0, instance)`: a server.
    Servers = 0,
    /// `(13, 1, name) = instance`: the server that an operator has chosen for a name.
    Choices = 1,
}

/// A row of [`Space::Servers`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServersKey {
    /// The server of this start.
    Server(u64),
    /// The server that was chosen for this name.
    Choice(Vec<u8>),
}

/// A server that shares the store with others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerRow {
    /// Changes every second while the server is alive.
    pub beat: u64,
    /// The port of clients without TLS, or 0.
    pub port: u16,
    /// The port of clients with TLS, or 0.
    pub tls_port: u16,
    /// The port of Redis Sentinel's commands without TLS, or 0.
    pub sentinel_port: u16,
    /// The port of Redis Sentinel's commands with TLS, or 0.
    pub sentinel_tls_port: u16,
    /// 40 hexadecimal digits that identify the start.
    pub run_id: String,
    /// The version of Quoin.
    pub version: String,
    /// The address that clients should use.
    pub ip: String,
    /// The host name that clients should use. May be empty.
    pub hostname: String,
    /// The port of Redis Cluster's clients without TLS, or 0.
    pub cluster_port: u16,
    /// The port of Redis Cluster's clients with TLS, or 0.
    pub cluster_tls_port: u16,
}

impl ServerRow {
    /// The row's value. Texts are cut off after 255 bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut value = vec![FORMAT];
        value.put_u64(self.beat);
        for port in [
            self.port,
            self.tls_port,
            self.sentinel_port,
            self.sentinel_tls_port,
        ] {
            value.put_u16(port);
        }
        for text in [&self.run_id, &self.version, &self.ip, &self.hostname] {
            let length = u8::try_from(text.len()).unwrap_or(u8::MAX);
            value.put_u8(length);
            value.extend(text.bytes().take(length.into()));
        }
        value.put_u16(self.cluster_port);
        value.put_u16(self.cluster_tls_port);
        value
    }

    /// Reads a row's value. Ignores what follows the known fields, because a newer server wrote it.
    ///
    /// # Errors
    /// If it is not such a value.
    pub fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        const SHORT: DecodeError = DecodeError("length of a server");
        let Some((&FORMAT, mut rest)) = value.split_first() else {
            return corrupt("format of a server");
        };
        let beat = rest.try_get_u64().map_err(|_| SHORT)?;
        let mut port = || rest.try_get_u16().map_err(|_| SHORT);
        let [port, tls_port, sentinel_port, sentinel_tls_port] =
            [port()?, port()?, port()?, port()?];
        let mut text = || {
            let length = rest.try_get_u8().map_err(|_| SHORT)?;
            let (text, others) = rest.split_at_checked(length.into()).ok_or(SHORT)?;
            rest = others;
            String::from_utf8(text.to_vec()).map_err(|_| DecodeError("text of a server"))
        };
        let [run_id, version, ip, hostname] = [text()?, text()?, text()?, text()?];
        // Rows of older servers end here.
        let mut later_port = || match rest {
            [] => Ok(0),
            _ => rest.try_get_u16().map_err(|_| SHORT),
        };
        let [cluster_port, cluster_tls_port] = [later_port()?, later_port()?];
        Ok(Self {
            beat,
            port,
            tls_port,
            sentinel_port,
            sentinel_tls_port,
            run_id,
            version,
            ip,
            hostname,
            cluster_port,
            cluster_tls_port,
        })
    }

    /// The server's score for a name. The live server with the greatest score is the master of
    /// the name (rendezvous hashing). Depends only on the server's address, so that a restart
    /// changes nothing. All versions of Quoin must compute the same.
    pub fn score(&self, name: &[u8]) -> u64 {
        let mut hasher = SipHasher13::new();
        for part in [name, self.ip.as_bytes()] {
            hasher.write(&(part.len() as u64).to_be_bytes());
            hasher.write(part);
        }
        hasher.write(&self.port.to_be_bytes());
        hasher.write(&self.tls_port.to_be_bytes());
        hasher.finish()
    }

    /// Whether both have the same address. Then one is an earlier start of the other.
    pub fn has_address_of(&self, other: &Self) -> bool {
        (&self.ip, self.port, self.tls_port) == (&other.ip, other.port, other.tls_port)
    }
}

/// The value of the row of a choice.
pub fn encode_choice(instance: u64) -> Vec<u8> {
    foundationdb_tuple::pack(&(instance,))
}

/// Reads [`encode_choice`].
///
/// # Errors
/// If the value is not a choice.
pub fn decode_choice(mut value: &[u8]) -> Result<u64, DecodeError> {
    take(&mut value, "choice of a server")
}

impl Layout {
    /// The row of a server start.
    pub fn server_key(&self, instance: u64) -> Vec<u8> {
        self.pack(Space::Servers, &(Kind::Servers as u64, instance))
    }

    /// The row of the server that was chosen for a name.
    pub fn choice_key(&self, name: &[u8]) -> Vec<u8> {
        let name = TupleBytes::from(name);
        self.pack(Space::Servers, &(Kind::Choices as u64, name))
    }

    /// All servers in the order of their starts, then all choices by name.
    pub fn servers(&self) -> KeyRange {
        KeyRange::children(&self.pack(Space::Servers, &()))
    }

    /// Reads a key of [`Layout::servers`].
    ///
    /// # Errors
    /// If the key is neither a server's nor a choice's.
    pub fn read_servers_key(&self, key: &[u8]) -> Result<ServersKey, DecodeError> {
        let mut rest = self.strip(Space::Servers, key)?;
        let kind: u64 = take(&mut rest, "kind of a server's row")?;
        if kind == Kind::Servers as u64 {
            return Ok(ServersKey::Server(take(&mut rest, "start of a server")?));
        }
        if kind == Kind::Choices as u64 {
            let name: TupleBytes<'_> = take(&mut rest, "name with a server")?;
            return Ok(ServersKey::Choice(name.into_owned()));
        }
        corrupt("kind of a server's row")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn server(ip: &str, port: u16) -> ServerRow {
        ServerRow {
            ip: ip.to_owned(),
            port,
            ..ServerRow::default()
        }
    }

    #[test]
    fn a_value_that_ends_early_is_corrupt_and_one_with_more_fields_is_read() {
        let row = ServerRow {
            hostname: "a.example".to_owned(),
            cluster_port: 7000,
            ..server("10.0.0.1", 6379)
        };
        let mut value = row.encode();
        let older = value.len() - 4;
        for length in (0..value.len()).filter(|length| ![older, older + 2].contains(length)) {
            assert!(ServerRow::decode(&value[..length]).is_err(), "{length}");
        }
        let of_older = ServerRow::decode(&value[..older]).unwrap();
        assert_eq!(of_older.hostname, row.hostname);
        assert_eq!(of_older.cluster_port, 0);
        value.extend_from_slice(b"newer");
        assert_eq!(ServerRow::decode(&value).unwrap(), row);
    }

    #[test]
    fn a_score_depends_on_the_name_and_the_address_only() {
        let row = server("10.0.0.1", 6379);
        let restarted = ServerRow {
            beat: 7,
            run_id: "f".repeat(40),
            ..row.clone()
        };
        assert_eq!(restarted.score(b"mymaster"), row.score(b"mymaster"));
        assert!(restarted.has_address_of(&row));
        let other = server("10.0.0.1", 6380);
        assert_ne!(other.score(b"mymaster"), row.score(b"mymaster"));
        assert!(!other.has_address_of(&row));
        assert_ne!(row.score(b"other"), row.score(b"mymaster"));
    }

    #[test]
    fn names_spread_over_servers_and_stay_where_their_server_lives() {
        let servers: Vec<ServerRow> = (1..=4)
            .map(|n| server(&format!("10.0.0.{n}"), 6379))
            .collect();
        let best = |among: &[ServerRow], name: &str| {
            let best = among.iter().max_by_key(|row| row.score(name.as_bytes()));
            best.unwrap().ip.clone()
        };
        let mut names = [0; 4];
        for number in 0..1000 {
            let name = format!("name{number}");
            let chosen = best(&servers, &name);
            let place = servers.iter().position(|row| row.ip == chosen).unwrap();
            names[place] += 1;
            let survivor = best(&servers[..3], &name);
            assert!(place == 3 || survivor == chosen, "{name}");
        }
        assert!(
            names.iter().all(|count| (150..350).contains(count)),
            "{names:?}"
        );
    }

    proptest! {
        #[test]
        fn rows_are_read_back(
            beat in any::<u64>(),
            ports in any::<[u16; 6]>(),
            texts in proptest::array::uniform4("[a-z0-9.:]{0,60}"),
        ) {
            let [run_id, version, ip, hostname] = texts;
            let [port, tls_port, sentinel_port, sentinel_tls_port, cluster_port, cluster_tls_port] =
                ports;
            let row = ServerRow {
                beat, port, tls_port, sentinel_port, sentinel_tls_port,
                run_id, version, ip, hostname, cluster_port, cluster_tls_port,
            };
            prop_assert_eq!(ServerRow::decode(&row.encode()).unwrap(), row);
        }

        #[test]
        fn keys_are_read_back(instance in any::<u64>(), name in any::<Vec<u8>>()) {
            let layout = Layout::new("test");
            let server = layout.server_key(instance);
            let choice = layout.choice_key(&name);
            let range = layout.servers();
            prop_assert!(range.begin <= server && server < choice && choice < range.end);
            prop_assert_eq!(layout.read_servers_key(&server).unwrap(), ServersKey::Server(instance));
            prop_assert_eq!(layout.read_servers_key(&choice).unwrap(), ServersKey::Choice(name));
            prop_assert_eq!(decode_choice(&encode_choice(instance)).unwrap(), instance);
        }
    }
}

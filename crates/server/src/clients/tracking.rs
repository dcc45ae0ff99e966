//! How a client tracks keys (CLIENT TRACKING).

/// The options of CLIENT TRACKING ON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TrackingMode {
    /// BCAST: the client is told of all keys with its prefixes, whatever it reads.
    pub(crate) is_broadcast: bool,
    /// OPTIN: only what it reads right after CLIENT CACHING YES.
    pub(crate) is_opt_in: bool,
    /// OPTOUT: not what it reads right after CLIENT CACHING NO.
    pub(crate) is_opt_out: bool,
    /// NOLOOP: not what it changes itself.
    pub(crate) is_noloop: bool,
    /// REDIRECT: the client that is told in its place; 0 is none.
    pub(crate) redirect: u64,
}

impl TrackingMode {
    /// Whether the keys that a command reads are remembered. `is_caching`: CLIENT CACHING came right
    /// before it.
    pub(crate) fn remembers(self, is_caching: bool) -> bool {
        let is_left_out = match is_caching {
            true => self.is_opt_out,
            false => self.is_opt_in,
        };
        !self.is_broadcast && !is_left_out
    }
}

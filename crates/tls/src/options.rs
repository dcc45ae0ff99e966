//! What the settings say about TLS of clients.

use std::fmt;
use std::path::PathBuf;

/// Whether clients must have certificates (Redis: `tls-auth-clients`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuthClients {
    /// Only clients with a certificate are served.
    #[default]
    Yes,
    /// Clients are not asked for one.
    No,
    /// A client may have none, but not a wrong one.
    Optional,
}

impl AuthClients {
    /// The names, in Redis's order.
    pub const NAMES: &'static [&'static str] = &["no", "yes", "optional"];

    /// Its name in the settings.
    pub fn name(self) -> &'static str {
        match self {
            AuthClients::Yes => "yes",
            AuthClients::No => "no",
            AuthClients::Optional => "optional",
        }
    }

    /// The one of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [AuthClients::Yes, AuthClients::No, AuthClients::Optional]
            .into_iter()
            .find(|one| one.name() == name)
    }
}

/// A version of the protocol. rustls has no older ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// TLS 1.2.
    Tls12,
    /// TLS 1.3.
    Tls13,
}

impl Version {
    /// Both.
    pub const ALL: [Version; 2] = [Version::Tls12, Version::Tls13];

    /// Its name in the settings.
    pub fn name(self) -> &'static str {
        match self {
            Version::Tls12 => "TLSv1.2",
            Version::Tls13 => "TLSv1.3",
        }
    }

    /// The one of that name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        Version::ALL
            .into_iter()
            .find(|one| one.name().eq_ignore_ascii_case(name))
    }
}

/// The password of a key. It is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(pub String);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

/// What the server shows to clients and asks of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerOptions {
    /// Its certificate, with its chain.
    pub certificate_file: Option<PathBuf>,
    /// The key that belongs to it.
    pub key_file: Option<PathBuf>,
    /// The password of that key.
    pub key_password: Option<Password>,
    /// Certificates by which those of clients are judged.
    pub ca_file: Option<PathBuf>,
    /// A folder with more of them.
    pub ca_dir: Option<PathBuf>,
    /// Whether clients must have certificates.
    pub auth_clients: AuthClients,
    /// The versions that are spoken; none means all.
    pub versions: Vec<Version>,
}

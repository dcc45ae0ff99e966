//! The options of TLS that settings name, and why certificates cannot be used.

use std::path::PathBuf;
use std::{fmt, io};

/// Whether clients must have certificates (Redis: `tls-auth-clients`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuthClients {
    /// Only clients with a certificate are served.
    #[default]
    Yes,
    /// Clients are not asked for one.
    No,
    /// A client may have none, but not an invalid one.
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

/// What the server presents to clients and requires of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerOptions {
    /// Its certificate, with its chain.
    pub certificate_file: Option<PathBuf>,
    /// The key that belongs to it.
    pub key_file: Option<PathBuf>,
    /// The password of that key.
    pub key_password: Option<Password>,
    /// CA certificates for certificates of clients.
    pub ca_file: Option<PathBuf>,
    /// A folder with further ones.
    pub ca_dir: Option<PathBuf>,
    /// Whether clients must have certificates.
    pub auth_clients: AuthClients,
    /// The versions that are spoken; none means all.
    pub versions: Vec<Version>,
}

/// Why certificates cannot be used, and how to correct it.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A required file is not set.
    #[error("{0} is not set")]
    Missing(&'static str),
    /// Clients must present certificates, but no setting says which ones are accepted.
    #[error("tls-auth-clients needs tls-ca-cert-file or tls-ca-cert-dir, or must be no")]
    NoAuthority,
    /// A file or folder cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file is larger than certificates are.
    #[error("{}: larger than {max} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
        max: u64,
    },
    /// A folder has more files than a folder of certificates.
    #[error("{}: more than {max} files", path.display())]
    TooManyFiles {
        /// The folder.
        path: PathBuf,
        /// The limit.
        max: usize,
    },
    /// A file that is not PEM.
    #[error("{}: not valid PEM: {reason}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A file without a certificate.
    #[error("{}: no certificate in it (PEM, BEGIN CERTIFICATE)", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// A file without a key.
    #[error("{}: no private key in it (PEM, BEGIN PRIVATE KEY)", path.display())]
    NoKey {
        /// The file.
        path: PathBuf,
    },
    /// An encrypted key whose password is not set.
    #[error(
        "{}: the key has a password. Set tls-key-file-pass, or decrypt the key: `openssl pkey -in \
         KEY -out PLAIN`; only the server's user should be able to read the result",
        path.display()
    )]
    EncryptedKey {
        /// The file.
        path: PathBuf,
    },
    /// A key with another password.
    #[error("{}: the password in tls-key-file-pass is not that of the key", path.display())]
    WrongPassword {
        /// The file.
        path: PathBuf,
    },
    /// A key in OpenSSL's encrypted format from before PKCS#8.
    #[error(
        "{}: the key is encrypted in an old form of OpenSSL, which is not supported. `openssl pkcs8 -topk8 -in \
         KEY -out NEW` writes it in the form that is (BEGIN ENCRYPTED PRIVATE KEY)",
        path.display()
    )]
    OldEncryption {
        /// The file.
        path: PathBuf,
    },
    /// A key encrypted with an algorithm that is not supported, or that takes too much work to
    /// decrypt.
    #[error(
        "{}: the key cannot be decrypted ({reason}). `openssl pkcs8 -topk8 -v2 aes-256-cbc -in KEY -out NEW` \
         encrypts it in a form that is supported",
        path.display()
    )]
    Undecryptable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A key of a kind that is not supported.
    #[error(
        "{}: the key cannot be used ({source}). RSA of 2,048 to 8,192 bits, ECDSA P-256 and P-384, and Ed25519 \
         can",
        path.display()
    )]
    UnusableKey {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rustls::Error,
    },
    /// The key is not that of the certificate.
    #[error(
        "{}: this is not the key of the first certificate in {}. The server's own certificate \
         comes first in its file, before those of its authorities. `openssl x509 -noout -pubkey \
         -in CERT` and `openssl pkey -pubout -in KEY` print the same if they belong together",
        key.display(),
        certificate.display()
    )]
    OtherKey {
        /// The file with the certificate.
        certificate: PathBuf,
        /// The file with the key.
        key: PathBuf,
    },
    /// A certificate of a version of X.509 that is not supported.
    #[error(
        "{}: a certificate in it is of X.509 version 2; versions 3 and 1 are supported. `openssl x509 -req \
         -extfile` signs one of version 3",
        path.display()
    )]
    CertificateVersion {
        /// The file.
        path: PathBuf,
    },
    /// rustls refuses a certificate.
    #[error(
        "{}: a certificate in it cannot be used ({source}). `openssl x509 -noout -text -in FILE` shows what it \
         is",
        path.display()
    )]
    Refused {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rustls::Error,
    },
    /// rustls refuses the CA certificates for clients.
    #[error("CA certificates: {0}")]
    Authorities(#[from] rustls::server::VerifierBuilderError),
    /// rustls refuses the choice of protocols.
    #[error("tls-protocols: {0}")]
    Protocols(rustls::Error),
    /// A host's name that no certificate can name.
    #[error("'{0}' is not a name or address that a certificate can have")]
    HostName(String),
    /// The system has no certificates.
    #[error("this system has no CA certificates: name a file with --cacert")]
    NoSystemAuthorities,
}

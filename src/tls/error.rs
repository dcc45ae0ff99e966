//! Why certificates cannot be used.

use std::io;
use std::path::PathBuf;

/// Why certificates cannot be used, in words that let a person put it right.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file that is needed is not named.
    #[error("{0} is not set")]
    Missing(&'static str),
    /// Clients shall be asked for certificates, and nothing says which ones are accepted.
    #[error("tls-auth-clients needs tls-ca-cert-file or tls-ca-cert-dir, or must be no")]
    NoAuthority,
    /// A file or folder cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// What the system says.
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
    /// A key with a password.
    #[error(
        "{}: the key is encrypted, which is not supported. `openssl pkey -in KEY -out PLAIN` \
         decrypts it; only the server's user should be able to read the result",
        path.display()
    )]
    EncryptedKey {
        /// The file.
        path: PathBuf,
    },
    /// rustls refuses a certificate or key.
    #[error("{}: {source}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rustls::Error,
    },
    /// rustls refuses the certificates by which clients are judged.
    #[error("certificates of authorities: {0}")]
    Authorities(#[from] rustls::server::VerifierBuilderError),
    /// rustls refuses the choice of protocols.
    #[error("tls-protocols: {0}")]
    Protocols(rustls::Error),
    /// A host's name that no certificate can name.
    #[error("'{0}' is no name or address that a certificate can have")]
    HostName(String),
    /// The system has no certificates.
    #[error("this system has no certificates of authorities: name a file with --cacert")]
    NoSystemAuthorities,
}

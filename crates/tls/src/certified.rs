//! A certificate with its key.

use std::path::Path;

use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys};

use super::error::TlsError;
use super::files;
use super::options::Password;
use super::provider::provider;
use super::version_1::{Version1, is_of_unknown_version};

/// Reads a certificate, with its chain, and its key.
///
/// # Errors
/// If a file is missing or damaged, or the key is not that of the certificate.
pub(super) fn certified_key(
    certificate_file: &Path,
    key_file: &Path,
    password: Option<&Password>,
) -> Result<CertifiedKey, TlsError> {
    let chain = files::certificates(certificate_file)?;
    let key = files::key(key_file, password)?;
    let loaded = provider().key_provider.load_private_key(key);
    let key = loaded.map_err(|source| TlsError::UnusableKey {
        path: key_file.to_owned(),
        source,
    })?;
    let certified = CertifiedKey::new(chain, key);
    let Ok(own) = certified.end_entity_cert() else {
        return Err(TlsError::NoCertificate {
            path: certificate_file.to_owned(),
        });
    };
    let compared = match Version1::read(own) {
        Some(old) => match certified.key.public_key() {
            Some(key) if key != old.key() => Err(InconsistentKeys::KeyMismatch.into()),
            _ => Ok(()),
        },
        None if is_of_unknown_version(own) => {
            return Err(TlsError::CertificateVersion {
                path: certificate_file.to_owned(),
            });
        }
        None => certified.keys_match(),
    };
    match compared {
        // rustls does not know the public key of every kind of key.
        Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(certified),
        Err(Error::InconsistentKeys(_)) => Err(TlsError::OtherKey {
            certificate: certificate_file.to_owned(),
            key: key_file.to_owned(),
        }),
        Err(source) => Err(TlsError::Refused {
            path: certificate_file.to_owned(),
            source,
        }),
    }
}

//! Keys with a password, in PKCS#8's form.

use std::path::Path;

use pkcs8::EncryptedPrivateKeyInfoRef;
use pkcs8::der::{Decode, SecretDocument};
use pkcs8::pkcs5::EncryptionScheme;
use pkcs8::pkcs5::pbes2::Kdf;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use super::error::TlsError;
use super::options::Password;
use quoin_base::limits::{TLS_KEY_ITERATIONS_MAX, TLS_KEY_SCRYPT_BYTES_MAX};

const BEGIN: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----";
const END: &str = "-----END ENCRYPTED PRIVATE KEY-----";

/// The first encrypted key of a file; `None` if there is none.
///
/// # Errors
/// If it cannot be decrypted.
pub(super) fn encrypted_key(
    text: &str,
    path: &Path,
    password: Option<&Password>,
) -> Result<Option<PrivateKeyDer<'static>>, TlsError> {
    if text.contains("Proc-Type: 4,ENCRYPTED") {
        return Err(TlsError::OldEncryption {
            path: path.to_owned(),
        });
    }
    let Some(begin) = text.find(BEGIN) else {
        return Ok(None);
    };
    let Some(password) = password else {
        return Err(TlsError::EncryptedKey {
            path: path.to_owned(),
        });
    };
    let rest = text.get(begin..).unwrap_or_default();
    let end = rest.find(END).map_or(rest.len(), |end| end + END.len());
    let section = rest.get(..end).unwrap_or_default();
    let undecryptable = |reason: String| TlsError::Undecryptable {
        path: path.to_owned(),
        reason,
    };
    let (_, document) = SecretDocument::from_pem(section).map_err(|error| TlsError::Pem {
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    let encrypted = EncryptedPrivateKeyInfoRef::from_der(document.as_bytes())
        .map_err(|error| undecryptable(error.to_string()))?;
    if let Some(reason) = too_costly(&encrypted.encryption_algorithm) {
        return Err(undecryptable(reason));
    }
    let decrypted = encrypted.decrypt(&password.0).map_err(|error| {
        use pkcs8::pkcs5::Error as Pkcs5;
        match error {
            pkcs8::Error::EncryptedPrivateKey(Pkcs5::DecryptFailed) | pkcs8::Error::Asn1(_) => {
                TlsError::WrongPassword {
                    path: path.to_owned(),
                }
            }
            error => undecryptable(error.to_string()),
        }
    })?;
    let key = PrivatePkcs8KeyDer::from(decrypted.as_bytes().to_vec());
    Ok(Some(key.into()))
}

/// Why a key's password takes more work to use than the server does.
fn too_costly(scheme: &EncryptionScheme) -> Option<String> {
    let EncryptionScheme::Pbes2(parameters) = scheme else {
        return None;
    };
    match &parameters.kdf {
        Kdf::Pbkdf2(parameters) if parameters.iteration_count > TLS_KEY_ITERATIONS_MAX => {
            Some(format!("more than {TLS_KEY_ITERATIONS_MAX} iterations"))
        }
        Kdf::Scrypt(parameters) => {
            let [size, parallel] =
                [parameters.block_size, parameters.parallelization].map(u64::from);
            let bytes = [128, size, parallel]
                .iter()
                .fold(parameters.cost_parameter, |bytes, factor| {
                    bytes.saturating_mul(*factor)
                });
            let is_too_much = bytes > TLS_KEY_SCRYPT_BYTES_MAX;
            is_too_much.then(|| format!("scrypt of more than {TLS_KEY_SCRYPT_BYTES_MAX} bytes"))
        }
        _ => None,
    }
}

//! Certificates and keys in files (PEM), and keys that are encrypted with a password (PKCS#8).

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use pkcs8::EncryptedPrivateKeyInfoRef;
use pkcs8::der::{Decode, SecretDocument};
use pkcs8::pkcs5::EncryptionScheme;
use pkcs8::pkcs5::pbes2::Kdf;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys, RootCertStore};

use super::options::{Password, TlsError};
use super::version_1::{Version1, is_of_unknown_version, provider};
use quoin_base::limits::{
    TLS_CA_FILES_MAX, TLS_FILE_BYTES_MAX, TLS_KEY_ITERATIONS_MAX, TLS_KEY_SCRYPT_BYTES_MAX,
};

/// The certificates of a file, at least one.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found = certificates_in(path)?;
    match found.is_empty() {
        true => Err(TlsError::NoCertificate {
            path: path.to_owned(),
        }),
        false => Ok(found),
    }
}

/// The first key of a file. `password` decrypts it if it is encrypted.
pub(super) fn key(
    path: &Path,
    password: Option<&Password>,
) -> Result<PrivateKeyDer<'static>, TlsError> {
    use rustls::pki_types::pem::Error;
    let bytes = read(path)?;
    if let Some(key) = encrypted_key(&String::from_utf8_lossy(&bytes), path, password)? {
        return Ok(key);
    }
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| {
        let path = path.to_owned();
        match error {
            Error::NoItemsFound => TlsError::NoKey { path },
            error => TlsError::Pem {
                path,
                reason: error.to_string(),
            },
        }
    })
}

/// The certificates of authorities in a file and in the files of a folder.
pub(super) fn authorities(
    file: Option<&Path>,
    folder: Option<&Path>,
) -> Result<RootCertStore, TlsError> {
    let mut store = RootCertStore::empty();
    if let Some(path) = file {
        for certificate in certificates(path)? {
            add(&mut store, certificate, path)?;
        }
    }
    if let Some(folder) = folder {
        add_folder(&mut store, folder)?;
    }
    Ok(store)
}

/// Adds the certificates of an OpenSSL folder: files of certificates, and links to them. Ignores
/// other files.
fn add_folder(store: &mut RootCertStore, folder: &Path) -> Result<(), TlsError> {
    let fail = |source| TlsError::Read {
        path: folder.to_owned(),
        source,
    };
    for (number, entry) in std::fs::read_dir(folder).map_err(fail)?.enumerate() {
        if number >= TLS_CA_FILES_MAX {
            return Err(TlsError::TooManyFiles {
                path: folder.to_owned(),
                max: TLS_CA_FILES_MAX,
            });
        }
        let path = entry.map_err(fail)?.path();
        if !path.is_file() {
            continue;
        }
        for certificate in certificates_in(&path)? {
            add(store, certificate, &path)?;
        }
    }
    match store.is_empty() {
        true => Err(TlsError::NoCertificate {
            path: folder.to_owned(),
        }),
        false => Ok(()),
    }
}

fn add(
    store: &mut RootCertStore,
    certificate: CertificateDer<'static>,
    path: &Path,
) -> Result<(), TlsError> {
    let is_of_unknown_version = is_of_unknown_version(&certificate);
    store.add(certificate).map_err(|source| {
        let path = path.to_owned();
        match is_of_unknown_version {
            true => TlsError::CertificateVersion { path },
            false => TlsError::Refused { path, source },
        }
    })
}

fn certificates_in(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read(path)?;
    CertificateDer::pem_slice_iter(&text)
        .collect::<Result<_, _>>()
        .map_err(|error| TlsError::Pem {
            path: path.to_owned(),
            reason: error.to_string(),
        })
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let fail = |source| TlsError::Read {
        path: path.to_owned(),
        source,
    };
    let mut bytes = Vec::new();
    // A named pipe without a writer would hold the open call.
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NONBLOCK);
    let file = options.open(path).map_err(fail)?;
    if !file.metadata().map_err(fail)?.is_file() {
        let reason = "it is not a regular file";
        return Err(fail(io::Error::new(io::ErrorKind::InvalidInput, reason)));
    }
    file.take(TLS_FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(fail)?;
    if bytes.len() as u64 > TLS_FILE_BYTES_MAX {
        return Err(TlsError::TooLarge {
            path: path.to_owned(),
            max: TLS_FILE_BYTES_MAX,
        });
    }
    Ok(bytes)
}

const BEGIN: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----";
const END: &str = "-----END ENCRYPTED PRIVATE KEY-----";

/// The first encrypted key of a file. `None` if no key is encrypted.
///
/// # Errors
/// If it cannot be decrypted.
fn encrypted_key(
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

/// Reads a certificate, with its chain, and its key.
///
/// # Errors
/// If a file is missing or damaged, or the key is not that of the certificate.
pub(super) fn certified_key(
    certificate_file: &Path,
    key_file: &Path,
    password: Option<&Password>,
) -> Result<CertifiedKey, TlsError> {
    let chain = certificates(certificate_file)?;
    let key = key(key_file, password)?;
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

//! Certificates and keys in files (PEM).

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::encrypted::encrypted_key;
use super::error::TlsError;
use super::options::Password;
use super::version_1::is_of_unknown_version;
use quoin_base::limits::{TLS_CA_FILES_MAX, TLS_FILE_BYTES_MAX};

/// The certificates of a file, of which there is at least one.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found = certificates_in(path)?;
    match found.is_empty() {
        true => Err(TlsError::NoCertificate {
            path: path.to_owned(),
        }),
        false => Ok(found),
    }
}

/// The first key of a file, which `password` decrypts if it is encrypted.
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

/// Adds what a folder of OpenSSL has: files of certificates, and links to them. Other files are left
/// out.
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

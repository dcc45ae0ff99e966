//! TLS between this process and a cluster, with FoundationDB's own options.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use foundationdb::options::NetworkOption;

use super::cluster_file::{TLS_SUFFIX, uses_tls};
use super::error::OpenError;
use super::tls_trial;

/// Options for TLS (<https://apple.github.io/foundationdb/tls.html>). FoundationDB takes missing
/// ones from its environment variables, such as `FDB_TLS_CERTIFICATE_FILE`, or uses its defaults.
///
/// The options of the first store apply to the whole process.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// This process's certificate, with its chain.
    pub certificate_file: Option<PathBuf>,
    /// The certificate's private key.
    pub key_file: Option<PathBuf>,
    /// Certificates of the authorities that must have signed the cluster's certificates.
    pub ca_file: Option<PathBuf>,
    /// Conditions on the cluster's certificates, in FoundationDB's notation.
    pub verify_peers: Option<String>,
    /// The password of an encrypted key.
    pub password: Option<String>,
}

impl fmt::Debug for TlsOptions {
    /// Omits the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsOptions")
            .field("certificate_file", &self.certificate_file)
            .field("key_file", &self.key_file)
            .field("ca_file", &self.ca_file)
            .field("verify_peers", &self.verify_peers)
            .finish_non_exhaustive()
    }
}

impl TlsOptions {
    /// The files, with the settings that name them.
    fn files(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        [
            ("fdb-tls-certificate-file", &self.certificate_file),
            ("fdb-tls-key-file", &self.key_file),
            ("fdb-tls-ca-file", &self.ca_file),
        ]
        .into_iter()
        .filter_map(|(setting, file)| Some((setting, file.as_deref()?)))
    }

    /// Checks the files, because FoundationDB itself does not report problems with them.
    pub(super) fn check(&self, cluster_file: &Path) -> Result<(), OpenError> {
        self.check_files()?;
        if uses_tls(cluster_file) {
            return tls_trial::check(self.network_options());
        }
        if *self != Self::default() {
            tracing::warn!(
                "settings fdb-tls-… have no effect: no address in {} ends with {TLS_SUFFIX}, so \
                 connections to the cluster are not encrypted",
                cluster_file.display()
            );
        }
        Ok(())
    }

    fn check_files(&self) -> Result<(), OpenError> {
        for (setting, file) in self.files() {
            File::open(file).map_err(|source| OpenError::TlsFile {
                setting,
                file: file.to_owned(),
                source: Arc::new(source),
            })?;
        }
        Ok(())
    }

    /// The options in the order that FoundationDB needs: the password before the key.
    pub(super) fn network_options(&self) -> Vec<NetworkOption> {
        let text = |path: &PathBuf| path.to_string_lossy().into_owned();
        let options = [
            self.password.clone().map(NetworkOption::TLSPassword),
            self.certificate_file
                .as_ref()
                .map(|path| NetworkOption::TLSCertPath(text(path))),
            self.key_file
                .as_ref()
                .map(|path| NetworkOption::TLSKeyPath(text(path))),
            self.ca_file
                .as_ref()
                .map(|path| NetworkOption::TLSCaPath(text(path))),
            self.verify_peers
                .as_ref()
                .map(|pattern| NetworkOption::TLSVerifyPeers(pattern.clone().into_bytes())),
        ];
        options.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_missing_is_named_with_its_setting() {
        let options = TlsOptions {
            key_file: Some(PathBuf::from("/nowhere/key.pem")),
            ..TlsOptions::default()
        };
        let error = options.check_files().unwrap_err().to_string();
        assert!(
            error.starts_with("fdb-tls-key-file: the file /nowhere/key.pem cannot be read: "),
            "{error}"
        );
        assert!(TlsOptions::default().check_files().is_ok());
    }

    #[test]
    fn what_is_not_given_is_left_to_foundationdb() {
        assert!(TlsOptions::default().network_options().is_empty());
    }

    #[test]
    fn the_password_comes_before_the_key_and_is_not_shown() {
        let options = TlsOptions {
            key_file: Some(PathBuf::from("key.pem")),
            password: Some("secret".to_owned()),
            ..TlsOptions::default()
        };
        let passed = options.network_options();
        assert!(matches!(
            passed.as_slice(),
            [NetworkOption::TLSPassword(_), NetworkOption::TLSKeyPath(_)]
        ));
        assert!(!format!("{options:?}").contains("secret"));
    }
}

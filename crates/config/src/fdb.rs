//! The settings as the FoundationDB store takes them.

use super::table::Settings;
use quoin_store_fdb::{FdbOptions, TlsOptions};

impl From<&Settings> for FdbOptions {
    fn from(settings: &Settings) -> Self {
        let tls = &settings.fdb_tls;
        FdbOptions {
            cluster_file: settings.cluster_file.clone(),
            tls: TlsOptions {
                certificate_file: tls.certificate_file.clone(),
                key_file: tls.key_file.clone(),
                ca_file: tls.ca_file.clone(),
                verify_peers: tls.verify_peers.clone(),
                password: tls.password.clone(),
            },
            ..FdbOptions::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::find;

    #[test]
    fn every_setting_of_the_store_reaches_it() {
        let mut settings = Settings::default();
        for name in [
            "cluster-file",
            "fdb-tls-certificate-file",
            "fdb-tls-key-file",
            "fdb-tls-ca-file",
            "fdb-tls-verify-peers",
            "fdb-tls-password",
        ] {
            find(name).unwrap().set(&mut settings, name).unwrap();
        }
        let options = FdbOptions::from(&settings);
        let text = |path: Option<std::path::PathBuf>| path.unwrap().display().to_string();
        assert_eq!(text(options.cluster_file), "cluster-file");
        assert_eq!(
            text(options.tls.certificate_file),
            "fdb-tls-certificate-file"
        );
        assert_eq!(text(options.tls.key_file), "fdb-tls-key-file");
        assert_eq!(text(options.tls.ca_file), "fdb-tls-ca-file");
        assert_eq!(
            options.tls.verify_peers.as_deref(),
            Some("fdb-tls-verify-peers")
        );
        assert_eq!(options.tls.password.as_deref(), Some("fdb-tls-password"));
    }
}

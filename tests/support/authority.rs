//! Certificates of an authority of the test's own, in files.

#![allow(unreachable_pub)]

use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

/// An authority, and what it has signed, in a folder.
pub struct Authority {
    folder: tempfile::TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // OpenSSL considers a certificate with its issuer's name self-signed.
        params
            .distinguished_name
            .push(DnType::CommonName, "authority");
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let folder = tempfile::tempdir().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        std::fs::write(folder.path().join("ca.pem"), certificate.pem()).unwrap();
        let issuer = Issuer::new(params, key);
        Self { folder, issuer }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Creates NAME.pem and NAME.key for this machine.
    pub fn sign(&self, name: &str) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(self.path(&format!("{name}.pem")), certificate.pem()).unwrap();
        std::fs::write(self.path(&format!("{name}.key")), key.serialize_pem()).unwrap();
    }

    /// Flags of a server that speaks TLS with the certificate of that name.
    pub fn flags(&self, port: u16, name: &str, auth_clients: &str) -> Vec<String> {
        [
            "--tls-port",
            &port.to_string(),
            "--tls-cert-file",
            &self.text(&format!("{name}.pem")),
            "--tls-key-file",
            &self.text(&format!("{name}.key")),
            "--tls-ca-cert-file",
            &self.text("ca.pem"),
            "--tls-auth-clients",
            auth_clients,
        ]
        .map(str::to_owned)
        .to_vec()
    }
}

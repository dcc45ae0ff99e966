//! The configuration of a client, for the tools that connect to servers, and for servers that send traces.
//!
//! A tool next to a server accepts the certificate of that server without a CA: it reads the certificate from
//! the file that the server's settings name.

use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::sign::SingleCertAndKey;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme, StreamOwned,
};

use super::files::{self, certified_key};
use super::options::{Password, ServerOptions, TlsError};
use super::version_1::{NamedServers, provider, verify_tls12, verify_tls13};

/// An encrypted connection.
pub type ClientStream = StreamOwned<ClientConnection, TcpStream>;

/// What a tool presents to servers, and how it verifies them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientOptions {
    /// CA certificates for verifying servers. `None` means those of the system.
    pub ca_file: Option<PathBuf>,
    /// The tool's own certificate, with its chain.
    pub certificate_file: Option<PathBuf>,
    /// The key that belongs to it.
    pub key_file: Option<PathBuf>,
    /// The password of that key.
    pub key_password: Option<Password>,
    /// The certificate that the server must present. Nothing else is checked then.
    pub server_file: Option<PathBuf>,
}

impl ClientOptions {
    /// Options for a tool next to a server with these options: the tool expects the server's certificate, and
    /// presents the same one if clients need one.
    pub fn beside(server: &ServerOptions) -> Self {
        Self {
            ca_file: None,
            certificate_file: server.certificate_file.clone(),
            key_file: server.key_file.clone(),
            key_password: server.key_password.clone(),
            server_file: server.certificate_file.clone(),
        }
    }

    /// Options for a server that connects to another one with its own options: it presents its
    /// certificate, and expects one from the authorities of its clients.
    pub fn of_server(server: &ServerOptions) -> Self {
        Self {
            ca_file: server.ca_file.clone(),
            certificate_file: server.certificate_file.clone(),
            key_file: server.key_file.clone(),
            key_password: server.key_password.clone(),
            server_file: None,
        }
    }

    /// Encrypts a connection to `host`, whose certificate must name it. The handshake happens with
    /// the first bytes.
    ///
    /// # Errors
    /// If a file is missing or damaged.
    pub fn wrap(&self, host: &str, stream: TcpStream) -> Result<ClientStream, TlsError> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| TlsError::HostName(host.to_owned()))?;
        let connection =
            ClientConnection::new(Arc::new(self.config()?), name).map_err(TlsError::Protocols)?;
        Ok(StreamOwned::new(connection, stream))
    }

    /// The configuration of connections.
    ///
    /// # Errors
    /// If a file is missing or damaged.
    pub fn config(&self) -> Result<ClientConfig, TlsError> {
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Protocols)?;
        let builder = match self.own_server()? {
            Some(own) => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(own)),
            None => {
                let authorities = Arc::new(self.authorities()?);
                let named =
                    WebPkiServerVerifier::builder_with_provider(authorities, provider()).build()?;
                builder
                    .dangerous()
                    .with_custom_certificate_verifier(Arc::new(NamedServers(named)))
            }
        };
        let (Some(certificate_file), Some(key_file)) = (&self.certificate_file, &self.key_file)
        else {
            return match (&self.certificate_file, &self.key_file) {
                (Some(_), _) => Err(TlsError::Missing("--key")),
                (_, Some(_)) => Err(TlsError::Missing("--cert")),
                _ => Ok(builder.with_no_client_auth()),
            };
        };
        let password = self.key_password.as_ref();
        let certified = certified_key(certificate_file, key_file, password)?;
        let resolver = SingleCertAndKey::from(certified);
        Ok(builder.with_client_cert_resolver(Arc::new(resolver)))
    }

    fn own_server(&self) -> Result<Option<OwnServer>, TlsError> {
        let Some(path) = &self.server_file else {
            return Ok(None);
        };
        let certificate = files::certificates(path)?.into_iter().next();
        Ok(certificate.map(|certificate| OwnServer {
            certificate,
            provider: provider(),
        }))
    }

    fn authorities(&self) -> Result<RootCertStore, TlsError> {
        if let Some(path) = &self.ca_file {
            return files::authorities(Some(path), None);
        }
        let mut store = RootCertStore::empty();
        // A system may have some that rustls does not take.
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        match store.is_empty() {
            true => Err(TlsError::NoSystemAuthorities),
            false => Ok(store),
        }
    }
}

/// Judges a server by the certificate that it has to show.
#[derive(Debug)]
pub(super) struct OwnServer {
    pub(super) certificate: CertificateDer<'static>,
    pub(super) provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for OwnServer {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match *shown == self.certificate {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12(message, certificate, signed, &self.provider)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13(message, certificate, signed, &self.provider)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

//! Judges certificates of X.509 version 1 as OpenSSL does, and leaves all others to webpki.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, verify_tls12_signature, verify_tls13_signature,
    verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore,
    SignatureScheme,
};

use super::version_1::Version1;

/// Whether the key of a certificate has signed a handshake of TLS 1.2.
pub(super) fn verify_tls12(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
    provider: &CryptoProvider,
) -> Result<HandshakeSignatureValid, Error> {
    let algorithms = &provider.signature_verification_algorithms;
    let Some(old) = Version1::read(certificate) else {
        return verify_tls12_signature(message, certificate, signed, algorithms);
    };
    let mut schemes = algorithms.mapping.iter();
    let possible = schemes.find(|(scheme, _)| *scheme == signed.scheme);
    match possible {
        Some((_, possible)) if old.has_signed(possible, message, signed.signature()) => {
            Ok(HandshakeSignatureValid::assertion())
        }
        _ => Err(CertificateError::BadSignature.into()),
    }
}

/// Whether the key of a certificate has signed a handshake of TLS 1.3.
pub(super) fn verify_tls13(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
    provider: &CryptoProvider,
) -> Result<HandshakeSignatureValid, Error> {
    let algorithms = &provider.signature_verification_algorithms;
    match Version1::read(certificate) {
        Some(old) => verify_tls13_signature_with_raw_key(message, &old.key(), signed, algorithms),
        None => verify_tls13_signature(message, certificate, signed, algorithms),
    }
}

/// Judges clients. A certificate of version 1 must be signed by an authority itself.
#[derive(Debug)]
pub(super) struct Clients {
    pub(super) others: Arc<dyn ClientCertVerifier>,
    pub(super) authorities: Arc<RootCertStore>,
    pub(super) provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for Clients {
    fn client_auth_mandatory(&self) -> bool {
        self.others.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.others.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let Some(old) = Version1::read(certificate) else {
            return self.others.verify_client_cert(certificate, chain, now);
        };
        let algorithms = self.provider.signature_verification_algorithms.all;
        old.verify(&self.authorities.roots, now, algorithms)?;
        Ok(ClientCertVerified::assertion())
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
        self.others.supported_verify_schemes()
    }
}

/// Judges servers by authorities and by the host's name. A certificate of version 1 has no such name.
#[derive(Debug)]
pub(super) struct NamedServers(pub(super) Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for NamedServers {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if Version1::read(certificate).is_some() {
            return Err(Error::General(
                "the server's certificate is of X.509 version 1, which has no subjectAltName to compare the \
                 host with: sign one with `openssl x509 -req -extfile`"
                    .to_owned(),
            ));
        }
        self.0
            .verify_server_cert(certificate, chain, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

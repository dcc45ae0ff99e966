//! Certificates of X.509 version 1, which have no extensions. OpenSSL accepts them, and its `x509 -req` makes
//! them unless extensions are requested. webpki, which checks certificates for rustls, refuses them.

use std::sync::Arc;
use std::time::Duration;

use pkcs8::der::asn1::{AnyRef, BitStringRef, GeneralizedTime, UtcTime};
use pkcs8::der::{Decode, Error as DerError, Reader, SliceReader, Tag, TagNumber, Tagged};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, verify_tls12_signature, verify_tls13_signature,
    verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{
    CertificateDer, ServerName, SignatureVerificationAlgorithm, SubjectPublicKeyInfoDer,
    TrustAnchor, UnixTime,
};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore,
    SignatureScheme,
};

/// A certificate of version 1.
pub(super) struct Version1<'c> {
    /// The part that its issuer has signed.
    signed: &'c [u8],
    /// The issuer's name, and the signature's algorithm, without the headers of their sequences.
    issuer: &'c [u8],
    algorithm: &'c [u8],
    signature: &'c [u8],
    not_before: Duration,
    not_after: Duration,
    key: &'c [u8],
}

impl<'c> Version1<'c> {
    /// Reads a certificate. `None` if it has another version, or is not a certificate.
    pub(super) fn read(certificate: &'c CertificateDer<'_>) -> Option<Self> {
        let mut reader = SliceReader::new(certificate).ok()?;
        let (signed, algorithm, signature) = reader
            .sequence(|parts| {
                let signed = parts.tlv_bytes()?;
                let algorithm = contents(parts)?;
                Ok::<_, DerError>((signed, algorithm, BitStringRef::decode(parts)?))
            })
            .ok()?;
        reader.finish().ok()?;
        let mut reader = SliceReader::new(signed).ok()?;
        // Version 1 has no explicit version, and nothing after the key.
        let read = reader.sequence(|parts| {
            parts.tlv_bytes()?;
            let algorithm = contents(parts)?;
            let issuer = contents(parts)?;
            let validity =
                parts.sequence(|times| Ok::<_, DerError>((time(times)?, time(times)?)))?;
            parts.tlv_bytes()?;
            Ok::<_, DerError>((algorithm, issuer, validity, parts.tlv_bytes()?))
        });
        let (inner_algorithm, issuer, (not_before, not_after), key) = read.ok()?;
        (inner_algorithm == algorithm).then_some(Self {
            signed,
            issuer,
            algorithm,
            signature: signature.as_bytes()?,
            not_before,
            not_after,
            key,
        })
    }

    /// The public key.
    pub(super) fn key(&self) -> SubjectPublicKeyInfoDer<'c> {
        SubjectPublicKeyInfoDer::from(self.key)
    }

    /// Verifies that one of these authorities has signed it, and that it is valid now.
    ///
    /// # Errors
    /// Why it is not accepted.
    pub(super) fn verify(
        &self,
        authorities: &[TrustAnchor<'_>],
        now: UnixTime,
        algorithms: &[&dyn SignatureVerificationAlgorithm],
    ) -> Result<(), CertificateError> {
        let now = Duration::from_secs(now.as_secs());
        if now < self.not_before {
            return Err(CertificateError::NotValidYet);
        }
        if now > self.not_after {
            return Err(CertificateError::Expired);
        }
        let mut refusal = CertificateError::UnknownIssuer;
        for authority in authorities {
            // Constraints refer to names that such a certificate does not have.
            if authority.name_constraints.is_some() || *authority.subject != *self.issuer {
                continue;
            }
            let algorithms = algorithms.iter().copied();
            let mut fitting = algorithms.filter(|one| *one.signature_alg_id() == *self.algorithm);
            let key = &authority.subject_public_key_info;
            if fitting.any(|one| is_signed(one, key, self.signed, self.signature)) {
                return Ok(());
            }
            refusal = CertificateError::BadSignature;
        }
        Err(refusal)
    }

    /// Whether its key has signed a message with one of these algorithms.
    fn has_signed(
        &self,
        algorithms: &[&dyn SignatureVerificationAlgorithm],
        message: &[u8],
        signature: &[u8],
    ) -> bool {
        let key = SliceReader::new(self.key).and_then(|mut reader| contents(&mut reader));
        key.is_ok_and(|key| {
            let mut algorithms = algorithms.iter();
            algorithms.any(|one| is_signed(*one, key, message, signature))
        })
    }
}

/// Whether a key has signed a message by this algorithm. `key` is without the header of its sequence.
fn is_signed(
    algorithm: &dyn SignatureVerificationAlgorithm,
    key: &[u8],
    message: &[u8],
    signature: &[u8],
) -> bool {
    let read = SliceReader::new(key).and_then(|mut parts| {
        let kind = contents(&mut parts)?;
        Ok((kind, BitStringRef::decode(&mut parts)?))
    });
    let Ok((kind, key)) = read else {
        return false;
    };
    *algorithm.public_key_alg_id() == *kind
        && key.as_bytes().is_some_and(|key| {
            let verified = algorithm.verify_signature(key, message, signature);
            verified.is_ok()
        })
}

/// What a sequence contains.
fn contents<'r>(reader: &mut SliceReader<'r>) -> Result<&'r [u8], DerError> {
    let any = AnyRef::decode(reader)?;
    any.tag().assert_eq(Tag::Sequence)?;
    Ok(any.value())
}

/// A time since the Unix epoch.
fn time<'r>(reader: &mut SliceReader<'r>) -> Result<Duration, DerError> {
    match Tag::peek(reader)? {
        Tag::UtcTime => Ok(UtcTime::decode(reader)?.to_unix_duration()),
        _ => Ok(GeneralizedTime::decode(reader)?.to_unix_duration()),
    }
}

/// Whether a certificate is of a version that is neither 1 nor 3.
pub(super) fn is_of_unknown_version(certificate: &CertificateDer<'_>) -> bool {
    let version = SliceReader::new(certificate).and_then(|mut reader| {
        let signed = reader.sequence(|parts| {
            let signed = parts.tlv_bytes()?;
            parts.tlv_bytes()?;
            parts.tlv_bytes()?;
            Ok::<_, DerError>(signed)
        })?;
        let mut reader = SliceReader::new(signed)?;
        let header = pkcs8::der::Header::decode(&mut reader)?;
        header.tag().assert_eq(Tag::Sequence)?;
        reader.context_specific::<u8>(TagNumber(0), pkcs8::der::TagMode::Explicit)
    });
    // Version 3 is written as 2.
    matches!(version, Ok(Some(number)) if number != 2 && number != 0)
}

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

/// Verifies servers by authorities and by the host's name. A certificate of version 1 has no such
/// name.
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

/// ring.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

//! The configuration of a server, for its listeners.

use std::sync::Arc;

use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::sign::SingleCertAndKey;
use rustls::{ServerConfig, SupportedProtocolVersion};

use super::files::{self, certified_key};
use super::options::{AuthClients, ServerOptions, TlsError, Version};
use super::version_1::{Clients, provider};

/// Reads the files that the options name.
///
/// # Errors
/// If a file is missing or damaged, or the key is not that of the certificate.
pub fn server_config(options: &ServerOptions) -> Result<Arc<ServerConfig>, TlsError> {
    let certificate_file = options.certificate_file.as_deref();
    let certificate_file = certificate_file.ok_or(TlsError::Missing("tls-cert-file"))?;
    let key_file = options.key_file.as_deref();
    let key_file = key_file.ok_or(TlsError::Missing("tls-key-file"))?;
    let certified = certified_key(certificate_file, key_file, options.key_password.as_ref())?;
    let builder = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&versions(&options.versions))
        .map_err(TlsError::Protocols)?;
    let builder = match client_verifier(options)? {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let resolver = SingleCertAndKey::from(certified);
    Ok(Arc::new(builder.with_cert_resolver(Arc::new(resolver))))
}

fn versions(chosen: &[Version]) -> Vec<&'static SupportedProtocolVersion> {
    let chosen = match chosen.is_empty() {
        true => &Version::ALL[..],
        false => chosen,
    };
    let of_rustls = |version: &Version| match version {
        Version::Tls12 => &rustls::version::TLS12,
        Version::Tls13 => &rustls::version::TLS13,
    };
    chosen.iter().map(of_rustls).collect()
}

/// Verifies clients. `None` if they are not asked for certificates.
fn client_verifier(
    options: &ServerOptions,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, TlsError> {
    if options.auth_clients == AuthClients::No {
        return Ok(None);
    }
    if options.ca_file.is_none() && options.ca_dir.is_none() {
        return Err(TlsError::NoAuthority);
    }
    let store = files::authorities(options.ca_file.as_deref(), options.ca_dir.as_deref())?;
    let authorities = Arc::new(store);
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::clone(&authorities), provider());
    let others = match options.auth_clients {
        AuthClients::Optional => builder.allow_unauthenticated().build()?,
        AuthClients::Yes | AuthClients::No => builder.build()?,
    };
    Ok(Some(Arc::new(Clients {
        others,
        authorities,
        provider: provider(),
    })))
}

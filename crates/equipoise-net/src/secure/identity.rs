use std::fmt;
use std::str::FromStr;

use dimpl::crypto::rust_crypto::default_provider;
use dimpl::crypto::{Buf, cert_named_group};
use dimpl::{DtlsCertificate, HashAlgorithm, NamedGroup, SignatureAlgorithm};
use rcgen::{CertificateParams, DistinguishedName, KeyPair, PKCS_ECDSA_P256_SHA256};
use ring::digest::{SHA256, digest};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use thiserror::Error;
use zeroize::Zeroize as _;

/// The SHA-256 hash of a certificate. Its text form is that of SDP: `sha-256 12:AB:...`, with 32 bytes (RFC 8122, Sec.
/// 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(pub(super) [u8; 32]);

impl Fingerprint {
    /// The value for sessions without encryption, which have no certificate.
    pub(super) const NONE: Self = Self([0; 32]);

    /// The fingerprint of a certificate in DER format.
    pub(super) fn of(certificate: &[u8]) -> Self {
        let mut out = [0; 32];
        out.copy_from_slice(digest(&SHA256, certificate).as_ref());
        Self(out)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha-256 ")?;
        self.0.iter().enumerate().try_for_each(|(at, byte)| write!(f, "{}{byte:02X}", if at == 0 { "" } else { ":" }))
    }
}

/// Why a text is not a valid fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FingerprintError {
    /// The fingerprint uses another hash function than SHA-256.
    #[error("the fingerprint uses {function}; use sha-256")]
    Function {
        /// The name of the hash function.
        function: String,
    },
    /// The bytes of the fingerprint are missing or invalid.
    #[error("{found:?} is not a fingerprint; a fingerprint looks like `sha-256 12:AB:...`, with 32 bytes in all")]
    Bytes {
        /// The text that is not a fingerprint.
        found: String,
    },
}

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    fn from_str(text: &str) -> Result<Self, FingerprintError> {
        let wrong = || FingerprintError::Bytes { found: text.to_owned() };
        let (function, bytes) = text.trim().split_once(' ').ok_or_else(wrong)?;
        if !function.eq_ignore_ascii_case("sha-256") {
            return Err(FingerprintError::Function { function: function.to_owned() });
        }
        let is_byte = |byte: &str| byte.len() == 2 && byte.bytes().all(|digit| digit.is_ascii_hexdigit());
        let bytes = bytes.trim().split(':').map(|byte| u8::from_str_radix(byte, 16).ok().filter(|_| is_byte(byte)));
        let bytes: Option<Vec<u8>> = bytes.collect();
        bytes.and_then(|bytes| bytes.try_into().ok()).map(Self).ok_or_else(wrong)
    }
}

/// The identity of an endpoint: a certificate and its private key, ECDSA over P-256. Every WebRTC implementation
/// accepts such certificates.
#[derive(Clone, Debug)]
pub struct Identity {
    certificate: DtlsCertificate,
    fingerprint: Fingerprint,
}

/// Why a text does not contain a usable identity.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum IdentityError {
    /// The text contains no certificate.
    #[error("there is no certificate in PEM; the file needs a certificate and its key")]
    NoCertificate,
    /// The text contains no private key.
    #[error("there is no private key in PEM; the file needs a certificate and its key")]
    NoKey,
    /// The key of the certificate is not on the curve P-256.
    #[error("the certificate's key is not over P-256; make one with `openssl ecparam -name prime256v1 -genkey`")]
    Curve,
    /// The private key does not belong to the certificate.
    #[error("the private key does not belong to the certificate")]
    OtherKey,
}

impl Identity {
    /// Creates a new, unique identity.
    ///
    /// # Panics
    /// If the system cannot provide random numbers, because then nothing would be secure.
    pub fn generate() -> Self {
        let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("Linux always has random numbers");
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        let signed = params.self_signed(&pair).expect("a name is not needed, and its own key signs");
        Self::new(signed.der().to_vec(), pair.serialize_der())
    }

    /// Parses a certificate and its private key, in any order, in PEM (RFC 7468). If there are several certificates,
    /// the first one is used.
    ///
    /// # Errors
    /// [`IdentityError`] if the certificate or the key is missing, if the key is not on the curve P-256, or if the key
    /// does not belong to the certificate.
    pub fn from_pem(text: &str) -> Result<Self, IdentityError> {
        let certificate = CertificateDer::from_pem_slice(text.as_bytes()).map_err(|_| IdentityError::NoCertificate)?;
        let key = PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|_| IdentityError::NoKey)?;
        if cert_named_group(&certificate) != Ok(NamedGroup::Secp256r1) {
            return Err(IdentityError::Curve);
        }
        // The key belongs to the certificate if the certificate verifies a signature that was made with the key.
        let (provider, hash, mut signature) = (default_provider(), HashAlgorithm::SHA256, Buf::new());
        let signs = provider.key_provider.load_private_key(key.secret_der());
        let is_right = signs.and_then(|mut signer| {
            signer.sign(&certificate, hash, &mut signature)?;
            let verifier = provider.signature_verification;
            verifier.verify_signature(&certificate, &certificate, &signature, hash, SignatureAlgorithm::ECDSA)
        });
        is_right.map_err(|_| IdentityError::OtherKey)?;
        Ok(Self::new(certificate.to_vec(), key.secret_der().to_vec()))
    }

    fn new(certificate: Vec<u8>, private_key: Vec<u8>) -> Self {
        let fingerprint = Fingerprint::of(&certificate);
        Self { certificate: DtlsCertificate { certificate, private_key }, fingerprint }
    }

    /// The fingerprint of the certificate. It must be passed to the peer over a trusted channel.
    pub const fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    pub(super) fn certificate(&self) -> DtlsCertificate {
        self.certificate.clone()
    }
}

impl Drop for Identity {
    fn drop(&mut self) {
        self.certificate.private_key.zeroize();
    }
}

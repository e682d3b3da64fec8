use dimpl::DtlsCertificate;
use rcgen::{CertificateParams, DistinguishedName, KeyPair, PKCS_ECDSA_P256_SHA256};
use ring::digest::{SHA256, digest};

/// SHA-256 of a certificate (RFC 8122, Sec. 5).
pub(crate) type Fingerprint = [u8; 32];

/// Who an end is: a certificate that it signed itself, and the key to it. A session belongs to who opened it.
#[derive(Clone)]
pub(crate) struct Identity {
    certificate: DtlsCertificate,
    fingerprint: Fingerprint,
}

impl Identity {
    /// One that nobody else has: ECDSA over P-256.
    ///
    /// # Panics
    /// Where the system has no random numbers to give, without which there is no security at all.
    pub(crate) fn generate() -> Self {
        let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("Linux always has random numbers");
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        let signed = params.self_signed(&pair).expect("a name is not needed, and its own key signs");
        let certificate = signed.der().to_vec();
        let fingerprint = fingerprint(&certificate);
        Self { certificate: DtlsCertificate { certificate, private_key: pair.serialize_der() }, fingerprint }
    }

    pub(crate) const fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    pub(super) fn certificate(&self) -> DtlsCertificate {
        self.certificate.clone()
    }
}

/// The fingerprint of a certificate in DER.
pub(super) fn fingerprint(certificate: &[u8]) -> Fingerprint {
    let mut out = [0; 32];
    out.copy_from_slice(digest(&SHA256, certificate).as_ref());
    out
}

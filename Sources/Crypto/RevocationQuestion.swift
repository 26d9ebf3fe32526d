internal import COpenSSL

/// What an issuer is asked about a certificate of its own, and how its answer is read (OCSP,
/// RFC 6960).
///
/// The question has no nonce, since Apple's responders answer from a cache.
public struct RevocationQuestion: Sendable {
    /// How far the clocks of the two may differ, in seconds.
    public static let clockSkewSeconds: Int64 = 60

    /// What an answer comes to.
    public enum Answer: Hashable, Sendable {
        /// The certificate stands; the answer may be kept until that second since 1970, nil where
        /// it does not say.
        case good(untilSeconds: Int64?)
        /// The issuer has taken it back.
        case revoked
        /// Nothing can be told from it, with what is wrong.
        case useless(String)
    }

    /// Where the issuer answers, an http or https URL.
    public let url: String
    /// The question, DER, to be posted as `application/ocsp-request`.
    public let request: [UInt8]

    private let certificate: Certificate
    private let issuer: Certificate

    /// Makes the question; nil where the certificate names no place to ask at.
    public init?(of certificate: Certificate, issuer: Certificate) {
        guard let url = unsafe shim_OCSP_url(certificate.handle) else { return nil }
        defer { unsafe shim_free(url) }
        var der: UnsafeMutablePointer<UInt8>?
        let count = unsafe shim_OCSP_question(certificate.handle, issuer.handle, &der)
        defer { unsafe shim_free(der) }
        ErrorQueue.clear()
        guard count > 0, let der = unsafe der else { return nil }
        unsafe self.url = String(cString: url)
        unsafe request = Array(UnsafeBufferPointer(start: der, count: Int(count)))
        self.certificate = certificate
        self.issuer = issuer
    }

    /// Reads an answer as of an instant, in seconds since 1970.
    ///
    /// The issuer must have signed it, or somebody whom the issuer certified to answer for it.
    public func answer(_ der: [UInt8], nowSeconds: Int64) -> Answer {
        var until = Int64.max
        let verdict = unsafe der.withUnsafeBufferPointer { bytes in
            unsafe shim_OCSP_read(
                certificate.handle,
                issuer.handle,
                bytes.baseAddress,
                bytes.count,
                nowSeconds,
                Self.clockSkewSeconds,
                &until
            )
        }
        ErrorQueue.clear()
        switch verdict {
        case shim_OCSP_good: return .good(untilSeconds: until == .max ? nil : until)
        case shim_OCSP_revoked: return .revoked
        case shim_OCSP_unknown: return .useless("it does not know the certificate")
        case shim_OCSP_refused: return .useless("it cannot answer now")
        case shim_OCSP_unsigned: return .useless("the issuer did not sign the answer")
        case shim_OCSP_stale: return .useless("the answer is not from now")
        default: return .useless("it is no answer to the question")
        }
    }
}

internal import COpenSSL

/// An X.509 certificate, read once; nothing of it changes afterwards.
@safe public final class Certificate: @unchecked Sendable {
    // Safety: after `init` the handle is only read, by `X509_verify` and look-ups of extensions.
    let handle: OpaquePointer

    /// The certificate as it was given.
    public let der: [UInt8]
    /// SHA-256 of `der`.
    public let fingerprint: [UInt8]
    /// The first second at which it is valid, since 1970.
    public let notBeforeSeconds: Int64
    /// The last second at which it is valid, since 1970.
    public let notAfterSeconds: Int64
    /// The DER of the subject's name.
    public let subject: [UInt8]
    /// The DER of the issuer's name.
    public let issuer: [UInt8]
    /// The subject as a person reads it.
    public let subjectText: String
    /// Its key.
    public let publicKey: PublicKey
    /// Whether it says that it is a certificate authority.
    public let isAuthority: Bool
    /// How many further authorities may stand between it and a leaf, nil for any number.
    public let pathLength: Int?
    /// Whether its key may sign certificates; true where it has no key usage.
    public let maySignCertificates: Bool
    /// Whether its key may sign data; true where it has no key usage.
    public let maySignData: Bool
    /// Whether it has a critical extension that is not understood here.
    public let hasUnknownCriticalExtension: Bool

    /// Reads a certificate from DER.
    ///
    /// Throws where the bytes are anything else, also where something follows the certificate.
    public init(der: [UInt8]) throws(CryptoError) {
        var end: UnsafePointer<UInt8>?
        var isWhole = false
        let parsed = unsafe der.withUnsafeBufferPointer { buffer in
            unsafe end = buffer.baseAddress
            let parsed = unsafe d2i_X509(nil, &end, buffer.count)
            if let start = buffer.baseAddress, let end = unsafe end {
                isWhole = unsafe end - start == buffer.count
            }
            return unsafe parsed
        }
        guard let handle = unsafe parsed else {
            throw CryptoError(code: .badCertificate, message: ErrorQueue.takeReason())
        }
        unsafe self.handle = handle
        self.der = der
        fingerprint = SHA256.digest(der)
        unsafe notBeforeSeconds = shim_ASN1_TIME_seconds(X509_get0_notBefore(handle))
        unsafe notAfterSeconds = shim_ASN1_TIME_seconds(X509_get0_notAfter(handle))
        unsafe subject = Self.nameDER(X509_get_subject_name(handle))
        unsafe issuer = Self.nameDER(X509_get_issuer_name(handle))
        unsafe subjectText = Self.nameText(X509_get_subject_name(handle))
        // This fills OpenSSL's own memory of the extensions, so that no later look-up writes.
        let flags = unsafe X509_get_extension_flags(handle)
        isAuthority = flags & UInt32(EXFLAG_CA) != 0 && flags & UInt32(EXFLAG_BCONS) != 0
        let length = unsafe X509_get_pathlen(handle)
        pathLength = length < 0 ? nil : Int(length)
        let usage = unsafe X509_get_key_usage(handle)
        maySignCertificates = usage & UInt32(KU_KEY_CERT_SIGN) != 0
        maySignData = usage & UInt32(KU_DIGITAL_SIGNATURE) != 0
        hasUnknownCriticalExtension = unsafe shim_X509_unknown_critical_count(handle) > 0
        let key = unsafe shim_PKEY_retain(X509_get0_pubkey(handle))
        let isInvalid = flags & UInt32(EXFLAG_INVALID) != 0
        ErrorQueue.clear()
        guard let key = unsafe key else {
            unsafe X509_free(handle)
            throw CryptoError(code: .badCertificate, message: "the public key is not readable")
        }
        unsafe publicKey = PublicKey(adopting: key)
        guard isWhole else {
            throw CryptoError(code: .badCertificate, message: "bytes follow the certificate")
        }
        guard !isInvalid, notBeforeSeconds > Int64.min, notAfterSeconds > Int64.min else {
            throw CryptoError(
                code: .badCertificate,
                message: "an extension or a date is not readable"
            )
        }
    }

    deinit { unsafe X509_free(handle) }

    /// Whether the instant lies within the certificate's validity, both ends included.
    public func isValid(atSeconds instant: Int64) -> Bool {
        notBeforeSeconds <= instant && instant <= notAfterSeconds
    }

    /// Whether it has an extension of that kind, whatever its value.
    public func hasExtension(_ identifier: ObjectIdentifier) -> Bool {
        unsafe X509_get_ext_by_OBJ(handle, identifier.handle, -1) >= 0
    }

    /// Whether the issuer's key signed this certificate, with ECDSA and SHA-2.
    ///
    /// Names, dates and whether the issuer may sign at all are not looked at.
    public func isSigned(by issuer: Certificate) -> Bool {
        guard Self.allowedAlgorithms.contains(unsafe shim_X509_signature_nid(handle)) else {
            return false
        }
        let isSigned = unsafe X509_verify(handle, issuer.publicKey.handle) == 1
        if !isSigned { ErrorQueue.clear() }
        return isSigned
    }

    /// What may sign a certificate: all that Apple's chains use, and nothing older.
    private static let allowedAlgorithms: Set<Int32> = [
        NID_ecdsa_with_SHA256, NID_ecdsa_with_SHA384, NID_ecdsa_with_SHA512,
    ]

    private static func nameDER(_ name: OpaquePointer?) -> [UInt8] {
        var bytes: UnsafePointer<UInt8>?
        var count = 0
        guard unsafe X509_NAME_get0_der(name, &bytes, &count) == 1, let bytes = unsafe bytes else {
            return []
        }
        return unsafe Array(UnsafeBufferPointer(start: bytes, count: count))
    }

    private static func nameText(_ name: OpaquePointer?) -> String {
        var text = [CChar](repeating: 0, count: 256)
        _ = unsafe text.withUnsafeMutableBufferPointer { buffer in
            unsafe X509_NAME_oneline(name, buffer.baseAddress, Int32(buffer.count))
        }
        let end = text.firstIndex(of: 0) ?? text.count
        return String(decoding: text[..<end].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

/// The number of a kind of certificate extension, such as 1.2.840.113635.100.6.11.1.
@safe public final class ObjectIdentifier: @unchecked Sendable {
    // Safety: set once and only read.
    let handle: OpaquePointer

    /// Reads dotted numbers; nil for anything else.
    public init?(_ dotted: String) {
        guard let handle = unsafe OBJ_txt2obj(dotted, 1) else {
            ErrorQueue.clear()
            return nil
        }
        unsafe self.handle = handle
    }

    deinit { unsafe ASN1_OBJECT_free(handle) }
}

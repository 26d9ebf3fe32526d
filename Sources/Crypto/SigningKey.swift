internal import COpenSSL

/// An elliptic-curve key that signs: for JWS (ES256) and for issuing test certificates.
///
/// A key that was generated or read signs with OpenSSL's random nonces. One that was made from a
/// seed is for tests: it derives its nonces from the message, so equal seeds and messages give
/// equal bytes, and it takes no care of timing.
@safe public final class SigningKey: @unchecked Sendable {
    // Safety: both handles are set once, only read by OpenSSL afterwards, and freed in `deinit`.
    private let group: OpaquePointer
    private let handle: OpaquePointer
    private let scalar: [UInt8]
    private let isDeterministic: Bool

    /// The curve that the key lies on.
    public let curve: Curve
    /// The uncompressed public point: 0x04, x, y.
    public let publicPoint: [UInt8]

    /// The curves that Apple's certificates use.
    public enum Curve: Hashable, Sendable {
        /// NIST P-256, for leaf certificates and ES256.
        case p256
        /// NIST P-384, for roots and intermediates.
        case p384

        /// The length of a coordinate in bytes.
        public var width: Int { self == .p256 ? 32 : 48 }
        fileprivate var nid: Int32 { self == .p256 ? NID_X9_62_prime256v1 : NID_secp384r1 }
        fileprivate var oid: String { self == .p256 ? "1.2.840.10045.3.1.7" : "1.3.132.0.34" }
    }

    /// A new random P-256 key.
    public static func generateP256() -> SigningKey { SigningKey(random: .p256) }

    /// A new random P-384 key.
    public static func generateP384() -> SigningKey { SigningKey(random: .p384) }

    /// The key that a seed names, for tests; equal seeds give equal keys and equal signatures.
    public convenience init(seed: [UInt8], curve: Curve = .p256) {
        let label = Array("subledger test key".utf8)
        self.init(scalar: sha512(label + seed), curve: curve, isDeterministic: true)
    }

    /// Reads a PEM private key (PKCS#8, as Apple's `.p8`, or SEC 1); nil when it is none.
    public convenience init?(pem: String) {
        var scalar = [UInt8](repeating: 0, count: 48)
        let width = unsafe shim_issue_read_pem(pem, Int32(pem.utf8.count), &scalar, 48)
        ErrorQueue.clear()
        guard width == 32 || width == 48 else { return nil }
        let stored = Array(scalar.prefix(Int(width)))
        self.init(
            scalar: Self.decremented(stored),
            curve: width == 32 ? .p256 : .p384,
            isDeterministic: false
        )
    }

    private convenience init(random curve: Curve) {
        var seed = [UInt8](repeating: 0, count: 64)
        let isFilled = unsafe RAND_priv_bytes(&seed, 64)
        precondition(isFilled == 1, "the system has no randomness")
        self.init(scalar: seed, curve: curve, isDeterministic: false)
    }

    /// Takes `scalar` mod (n − 1) + 1, so that any bytes name a valid key.
    private init(scalar: [UInt8], curve: Curve, isDeterministic: Bool) {
        guard let group = unsafe EC_GROUP_new_by_curve_name(curve.nid) else {
            preconditionFailure("libcrypto lacks a NIST curve")
        }
        unsafe self.group = group
        var reduced = [UInt8](repeating: 0, count: curve.width)
        var point = [UInt8](repeating: 0, count: 1 + 2 * curve.width)
        let pointCount = Int32(point.count)
        let isMade = unsafe shim_issue_key(
            group,
            scalar,
            Int32(scalar.count),
            &reduced,
            Int32(curve.width),
            &point,
            pointCount
        )
        precondition(isMade == 1, "libcrypto could not make a key")
        self.scalar = reduced
        self.publicPoint = point
        self.curve = curve
        self.isDeterministic = isDeterministic
        let encoded = pkcs8(scalar: reduced, point: point, curve: curve)
        let handle = unsafe encoded.withUnsafeBufferPointer { bytes in
            var cursor = bytes.baseAddress
            return unsafe d2i_AutoPrivateKey(nil, &cursor, bytes.count)
        }
        guard let handle = unsafe handle else {
            preconditionFailure("libcrypto does not read a key that was just made")
        }
        unsafe self.handle = handle
    }

    deinit {
        unsafe EVP_PKEY_free(handle)
        unsafe EC_GROUP_free(group)
    }

    /// An ES256 signature: 64 bytes, r and s.
    public func signES256(_ message: [UInt8]) -> [UInt8] {
        precondition(curve == .p256, "ES256 is P-256 with SHA-256")
        return sign(message)
    }

    /// A compact JWS (ES256): the header as it is to stand there, already base64url and with its
    /// dot, the payload, the signature.
    public func signCompactJWS(headerAndDot: [UInt8], payload: [UInt8]) -> [UInt8] {
        let payloadMax = (payload.count + 2) / 3 * 4
        var jws = headerAndDot
        jws.reserveCapacity(headerAndDot.count + payloadMax + 88)
        appendBase64URL(payload, to: &jws)
        let signature = signES256(jws)
        jws.append(UInt8(ascii: "."))
        appendBase64URL(signature, to: &jws)
        return jws
    }

    private func appendBase64URL(_ bytes: [UInt8], to text: inout [UInt8]) {
        let capacity = (bytes.count + 2) / 3 * 4
        text += unsafe [UInt8](unsafeUninitializedCapacity: capacity) { buffer, count in
            // A nil base address means that there is no byte to write.
            guard let start = buffer.baseAddress else { return }
            unsafe count = shim_issue_base64url(bytes, bytes.count, start)
        }
    }

    /// A signature as X.509 has it: DER, with SHA-256 on P-256 and SHA-384 on P-384.
    public func signDER(_ message: [UInt8]) -> [UInt8] {
        let parts = sign(message)
        return DER.sequence(
            DER.integer(Array(parts.prefix(curve.width))),
            DER.integer(Array(parts.suffix(curve.width)))
        )
    }

    private func sign(_ message: [UInt8]) -> [UInt8] {
        var signature = [UInt8](repeating: 0, count: 2 * curve.width)
        let width = Int32(curve.width)
        if isDeterministic {
            let digest = curve == .p256 ? SHA256.digest(message) : sha384(message)
            let nonce = sha512(scalar + digest)
            let isSigned = unsafe shim_issue_sign(
                group,
                scalar,
                width,
                digest,
                Int32(digest.count),
                nonce,
                Int32(nonce.count),
                &signature
            )
            precondition(isSigned == 1, "libcrypto could not sign")
        } else {
            let hash = unsafe curve == .p256 ? EVP_sha256() : EVP_sha384()
            let isSigned = unsafe shim_issue_sign_random(
                handle,
                hash,
                message,
                message.count,
                &signature,
                width
            )
            precondition(isSigned == 1, "libcrypto could not sign")
        }
        return signature
    }

    /// The public key as certificates carry it (`SubjectPublicKeyInfo`, DER).
    public var publicKeyInfo: [UInt8] {
        DER.sequence(
            DER.sequence(
                DER.objectIdentifier("1.2.840.10045.2.1"),
                DER.objectIdentifier(curve.oid)
            ),
            DER.bitString(publicPoint)
        )
    }

    /// The private key as PEM (PKCS#8), the form of Apple's `.p8` files.
    public var pem: String {
        var text = "-----BEGIN PRIVATE KEY-----\n"
        var rest = Base64.encode(pkcs8(scalar: scalar, point: publicPoint, curve: curve))[...]
        while !rest.isEmpty {
            text += rest.prefix(64) + "\n"
            rest = rest.dropFirst(64)
        }
        return text + "-----END PRIVATE KEY-----\n"
    }

    /// One less, to undo what the designated initializer adds.
    private static func decremented(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes
        for index in bytes.indices.reversed() {
            let (value, borrow) = bytes[index].subtractingReportingOverflow(1)
            bytes[index] = value
            if !borrow { break }
        }
        return bytes
    }
}

/// A private key as PKCS#8 around SEC 1 (RFC 5208, RFC 5915).
private func pkcs8(scalar: [UInt8], point: [UInt8], curve: SigningKey.Curve) -> [UInt8] {
    let inner = DER.sequence(
        DER.integer(1),
        DER.octetString(scalar),
        DER.tagged(0xa1, DER.bitString(point))
    )
    return DER.sequence(
        DER.integer(0),
        DER.sequence(
            DER.objectIdentifier("1.2.840.10045.2.1"),
            DER.objectIdentifier(curve.oid)
        ),
        DER.octetString(inner)
    )
}

private func sha384(_ bytes: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 48)
    _ = unsafe SHA384(bytes, bytes.count, &digest)
    return digest
}

private func sha512(_ bytes: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 64)
    _ = unsafe SHA512(bytes, bytes.count, &digest)
    return digest
}

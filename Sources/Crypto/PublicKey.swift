internal import COpenSSL
internal import Synchronization

/// A public key that checks signatures; any number of threads may use it at once.
///
/// A key that many signatures were valid for gets a table of multiples (``KeyMultiples``).
@safe public final class PublicKey: @unchecked Sendable {
    // Safety: the key is never changed after `init`; contexts are lent to one thread at a time.
    let handle: OpaquePointer
    private let tools = Mutex(Tools())

    /// How many valid signatures a key is worth a table for: about what making one costs.
    static let usesBeforeTable = 500

    /// How long an ES256 signature is: r and s, 32 bytes each.
    public static let signatureLengthBytes = 64

    /// Takes over one reference to the key.
    init(adopting handle: OpaquePointer) { unsafe self.handle = handle }

    deinit { unsafe EVP_PKEY_free(handle) }

    /// Reads a key as certificates carry it (`SubjectPublicKeyInfo`, DER); nil for anything else.
    public convenience init?(publicKeyInfo: [UInt8]) {
        var end: UnsafePointer<UInt8>?
        var isWhole = false
        let parsed = unsafe publicKeyInfo.withUnsafeBufferPointer { buffer in
            unsafe end = buffer.baseAddress
            let parsed = unsafe d2i_PUBKEY(nil, &end, buffer.count)
            if let start = buffer.baseAddress, let end = unsafe end {
                isWhole = unsafe end - start == buffer.count
            }
            return unsafe parsed
        }
        ErrorQueue.clear()
        guard let key = unsafe parsed else { return nil }
        unsafe self.init(adopting: key)
        guard isWhole else { return nil }
    }

    /// Whether the key lies on P-256, the only curve of ES256.
    public var isP256: Bool { curveName == "prime256v1" }

    /// OpenSSL's name of the key's curve, nil for a key on no curve.
    public var curveName: String? {
        var name = [CChar](repeating: 0, count: 64)
        var length = 0
        let isCurve = unsafe name.withUnsafeMutableBufferPointer { buffer in
            unsafe EVP_PKEY_get_group_name(handle, buffer.baseAddress, buffer.count, &length) == 1
        }
        guard isCurve else {
            ErrorQueue.clear()
            return nil
        }
        return String(decoding: name.prefix(length).map(UInt8.init), as: UTF8.self)
    }

    /// Whether `signature` (r and s, 64 bytes) is the key's ES256 signature of the message.
    public func isValidES256(signature: [UInt8], message: ArraySlice<UInt8>) -> Bool {
        isValidES256(signature: signature, digest: SHA256.digest(message))
    }

    /// Whether `signature` (r and s, 64 bytes) is the key's signature of a SHA-256 digest.
    ///
    /// - Parameters:
    ///   - signature: r and s, 64 bytes.
    ///   - digest: the digest, 32 bytes.
    ///   - inverses: what was calculated beforehand; it only saves time.
    /// - Returns: false also for what has another length.
    public func isValidES256(
        signature: [UInt8],
        digest: [UInt8],
        inverses: SignatureInverses = SignatureInverses()
    ) -> Bool {
        guard signature.count == Self.signatureLengthBytes, digest.count == SHA256.lengthBytes
        else { return false }
        let multiplier = tools.withLock { $0.takeMultiplier() }
        if let multiplier {
            let isValid = multiplier.isValid(
                signature: signature,
                digest: digest,
                inverse: inverses.inverse(of: signature)
            )
            tools.withLock { $0.giveBack(multiplier) }
            if isValid { return true }
        }
        guard isValidByEVP(signature: signature, digest: digest) else { return false }
        if multiplier != nil {
            tools.withLock { $0.dropTable() }
        } else if tools.withLock({ $0.isWorthTable() }) {
            let multiples = KeyMultiples(of: self, agreeingOn: signature, digest: digest)
            use(multiples)
        }
        return true
    }

    /// Verifies with a table from now on.
    func use(_ multiples: KeyMultiples?) { tools.withLock { $0.multiples = multiples } }

    /// Asks OpenSSL's own ES256, which has the last word.
    func isValidByEVP(signature: [UInt8], digest: [UInt8]) -> Bool {
        let context =
            tools.withLock { $0.contexts.popLast() }
            ?? (unsafe VerificationContext(key: handle))
        guard let context else { return false }
        let isValid = context.isValid(
            signature: ECDSASignature.der(rawSignature: signature),
            digest: digest
        )
        tools.withLock { $0.giveBack(context) }
        return isValid
    }

    /// Whether a table of multiples is in use, so that inverses are worth calculating.
    public var hasTable: Bool { tools.withLock { $0.multiples != nil } }
}

/// What threads that verify with one key share.
private struct Tools {
    /// What is kept of each kind; more than that many threads verify at once only rarely.
    private static let idleMax = 32

    /// Contexts at rest: making one costs about a tenth of a verification.
    var contexts: [VerificationContext] = []
    var multiples: KeyMultiples?
    private var multipliers: [Multiplier] = []
    private var usesLeft = PublicKey.usesBeforeTable

    mutating func giveBack(_ context: VerificationContext) {
        if contexts.count < Self.idleMax { contexts.append(context) }
    }

    /// What verifies with the table, nil as long as there is none.
    mutating func takeMultiplier() -> Multiplier? {
        guard let multiples else { return nil }
        return multipliers.popLast() ?? Multiplier(multiples)
    }

    mutating func giveBack(_ multiplier: Multiplier) {
        if multiples != nil, multipliers.count < Self.idleMax { multipliers.append(multiplier) }
    }

    /// Ends the use of a table that refused what OpenSSL's ES256 found valid.
    mutating func dropTable() {
        multiples = nil
        multipliers = []
    }

    /// Counts a valid signature; true once, for the thread that is to make the table.
    mutating func isWorthTable() -> Bool {
        guard usesLeft > 0 else { return false }
        usesLeft -= 1
        return usesLeft == 0
    }
}

/// One `EVP_PKEY_CTX`, set up for verifying, used by one thread at a time.
@safe private final class VerificationContext: @unchecked Sendable {
    // Safety: a `PublicKey` lends it to one thread at a time.
    private let handle: OpaquePointer

    /// Makes a context for the key, which it keeps alive; nil where OpenSSL refuses the key.
    init?(key: OpaquePointer) {
        guard let handle = unsafe EVP_PKEY_CTX_new_from_pkey(nil, key, nil) else {
            ErrorQueue.clear()
            return nil
        }
        guard unsafe EVP_PKEY_verify_init(handle) == 1 else {
            unsafe EVP_PKEY_CTX_free(handle)
            ErrorQueue.clear()
            return nil
        }
        unsafe self.handle = handle
    }

    deinit { unsafe EVP_PKEY_CTX_free(handle) }

    func isValid(signature: [UInt8], digest: [UInt8]) -> Bool {
        let result = unsafe EVP_PKEY_verify(
            handle,
            signature,
            signature.count,
            digest,
            digest.count
        )
        // A negative result (r or s out of range) leaves entries in the thread's queue.
        if result != 1 { ErrorQueue.clear() }
        return result == 1
    }
}

/// The two forms of an ECDSA signature.
enum ECDSASignature {
    /// Writes r‖s, as a JWS has it, as the DER that OpenSSL wants.
    ///
    /// Two integers of 32 bytes are at most 72 bytes of DER, so every length is one byte.
    static func der(rawSignature: [UInt8]) -> [UInt8] {
        precondition(rawSignature.count == PublicKey.signatureLengthBytes)
        var der: [UInt8] = []
        der.reserveCapacity(72)
        der.append(0x30)
        der.append(0)
        appendInteger(rawSignature[0..<32], to: &der)
        appendInteger(rawSignature[32..<64], to: &der)
        der[1] = UInt8(der.count - 2)
        return der
    }

    private static func appendInteger(_ bytes: ArraySlice<UInt8>, to der: inout [UInt8]) {
        var start = bytes.startIndex
        while start < bytes.endIndex - 1, bytes[start] == 0 { start += 1 }
        // A first bit of 1 would make the integer negative.
        let needsZero = bytes[start] >= 0x80
        der.append(0x02)
        der.append(UInt8(bytes.endIndex - start + (needsZero ? 1 : 0)))
        if needsZero { der.append(0) }
        der.append(contentsOf: bytes[start...])
    }
}

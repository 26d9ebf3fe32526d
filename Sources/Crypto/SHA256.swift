internal import COpenSSL
internal import Synchronization

/// SHA-256 digests.
public enum SHA256 {
    /// How long a digest is.
    public static let lengthBytes = 32

    /// The digest of some bytes.
    public static func digest(_ bytes: [UInt8]) -> [UInt8] {
        unsafe bytes.withUnsafeBytes { unsafe digest(of: $0) }
    }

    /// The digest of a part of some bytes.
    public static func digest(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        unsafe bytes.withUnsafeBytes { unsafe digest(of: $0) }
    }

    /// The digest of a text's UTF-8.
    public static func digest(_ text: String) -> [UInt8] { digest(Array(text.utf8)) }

    /// The digest of a buffer.
    private static func digest(of buffer: UnsafeRawBufferPointer) -> [UInt8] {
        let context = DigestPool.take()
        defer { DigestPool.giveBack(context) }
        context.start()
        unsafe context.update(buffer)
        return context.finish()
    }

    /// A digest of bytes that come in pieces.
    public struct Hasher: ~Copyable {
        private let context: DigestContext

        /// Starts a digest of no bytes.
        public init() {
            context = DigestPool.take()
            context.start()
        }

        deinit { DigestPool.giveBack(context) }

        /// Adds bytes.
        public func update(_ bytes: [UInt8]) {
            unsafe bytes.withUnsafeBytes { unsafe context.update($0) }
        }

        /// Adds a part of some bytes.
        public func update(_ bytes: ArraySlice<UInt8>) {
            unsafe bytes.withUnsafeBytes { unsafe context.update($0) }
        }

        /// The digest of all that was added; it ends the hasher.
        public consuming func finish() -> [UInt8] { context.finish() }
    }
}

/// One `EVP_MD_CTX`, used by one thread at a time.
@safe final class DigestContext: @unchecked Sendable {
    // Safety: the pool lends a context to one borrower at a time.
    private let handle: OpaquePointer

    /// SHA-256, looked up once: `EVP_sha256()` would be fetched again at each start, under a lock.
    private static let algorithm = DigestAlgorithm(named: "SHA256")

    init() {
        guard let handle = unsafe EVP_MD_CTX_new() else { preconditionFailure("out of memory") }
        unsafe self.handle = handle
    }

    deinit { unsafe EVP_MD_CTX_free(handle) }

    func start() {
        let isStarted = unsafe EVP_DigestInit_ex2(handle, Self.algorithm.handle, nil) == 1
        precondition(isStarted, "SHA-256 is not available")
    }

    func update(_ buffer: UnsafeRawBufferPointer) {
        guard unsafe !buffer.isEmpty else { return }
        let isAdded = unsafe EVP_DigestUpdate(handle, buffer.baseAddress, buffer.count) == 1
        precondition(isAdded, "SHA-256 failed")
    }

    func finish() -> [UInt8] {
        unsafe [UInt8](unsafeUninitializedCapacity: SHA256.lengthBytes) { buffer, count in
            let isDone = unsafe EVP_DigestFinal_ex(handle, buffer.baseAddress, nil) == 1
            precondition(isDone, "SHA-256 failed")
            count = SHA256.lengthBytes
        }
    }
}

/// A fetched `EVP_MD`, kept for the life of the process.
@safe final class DigestAlgorithm: @unchecked Sendable {
    // Safety: an EVP_MD never changes once it is fetched.
    let handle: OpaquePointer

    init(named name: String) {
        guard let handle = unsafe EVP_MD_fetch(nil, name, nil) else {
            preconditionFailure("OpenSSL has no \(name)")
        }
        unsafe self.handle = handle
    }

    deinit { unsafe EVP_MD_free(handle) }
}

/// Digest contexts at rest; making one costs more than hashing a short text.
enum DigestPool {
    /// How many contexts are kept; more than that many threads hash at once only rarely.
    private static let idleMax = 32
    private static let idle = Mutex<[DigestContext]>([])

    static func take() -> DigestContext {
        idle.withLock { $0.popLast() } ?? DigestContext()
    }

    static func giveBack(_ context: DigestContext) {
        idle.withLock { if $0.count < idleMax { $0.append(context) } }
    }
}

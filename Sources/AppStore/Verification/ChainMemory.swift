internal import Crypto
internal import Glibc
internal import Ledger
internal import Synchronization

/// Chains that were built before, by the exact bytes of their header.
///
/// Apple signs for months with one leaf, so nearly every text has a header seen before. What was
/// refused is remembered as well, apart from the good ones, so that a stranger who repeats himself
/// pays for one look-up and cannot push Apple's chains out.
final class ChainMemory: Sendable {
    /// How many good chains are remembered; Apple has a handful at a time.
    static let goodMax = 64
    /// How many refused headers are remembered.
    static let refusedMax = 256

    private let state = Mutex(RememberedChains())
    private let builder: ChainBuilder
    private let revocation: RevocationCheck?

    init(anchors: TrustAnchors, rate: ChainRate?, revocation: RevocationCheck? = nil) {
        builder = ChainBuilder(anchors: anchors, rate: rate)
        self.revocation = revocation
    }

    /// The chain of a header in base64url, built if it was never seen.
    ///
    /// Where OCSP is on, its issuers are asked then, and again when their answers have run out.
    func chain(
        header: ArraySlice<UInt8>,
        now: Timestamp
    ) throws(Rejection) -> VerifiedChain {
        if let chain = state.withLock({ $0.latestChain(header, now.seconds) }) { return chain }
        let digest = SHA256.digest(header)
        if let known = state.withLock({ $0.chain(digest, header, now.seconds) }) {
            return try known.get()
        }
        do throws(Rejection) {
            let chain = try builder.chain(header: header, digest: digest)
            let until = try revocation?.check(chain, now: now) ?? .max
            state.withLock { $0.remember(chain, digest: digest, header: header, until: until) }
            return chain
        } catch {
            // What only came at a bad time is judged when it comes again.
            if !error.reason.isTemporary { state.withLock { $0.remember(error, digest: digest) } }
            throw error
        }
    }

    /// How many good and how many refused headers are remembered.
    var counts: (good: Int, refused: Int) {
        state.withLock { ($0.good.count, $0.refused.count) }
    }
}

/// What a ``ChainMemory`` holds.
private struct RememberedChains {
    struct Good {
        var header: [UInt8]
        var chain: VerifiedChain
        var lastUse: UInt64
        /// The second from which on it must be looked at anew.
        var untilSeconds: Int64
    }

    private(set) var good: [[UInt8]: Good] = [:]
    private(set) var refused: [[UInt8]: Rejection] = [:]
    /// The digests of refused headers, oldest first.
    private var refusedOrder: [[UInt8]] = []
    /// The chain used last: comparing 4.6 kB is cheaper than hashing them.
    private var latest: Good?
    private var uses: UInt64 = 0

    func latestChain(_ header: ArraySlice<UInt8>, _ nowSeconds: Int64) -> VerifiedChain? {
        guard let latest, nowSeconds < latest.untilSeconds, Self.areEqual(latest.header, header)
        else { return nil }
        return latest.chain
    }

    mutating func chain(
        _ digest: [UInt8],
        _ header: ArraySlice<UInt8>,
        _ nowSeconds: Int64
    ) -> Result<VerifiedChain, Rejection>? {
        if let refused = refused[digest] { return .failure(refused) }
        guard var known = good[digest], nowSeconds < known.untilSeconds,
            Self.areEqual(known.header, header)
        else { return nil }
        uses += 1
        known.lastUse = uses
        good[digest] = known
        latest = known
        return .success(known.chain)
    }

    mutating func remember(
        _ chain: VerifiedChain,
        digest: [UInt8],
        header: ArraySlice<UInt8>,
        until: Int64
    ) {
        uses += 1
        if good[digest] == nil, good.count >= ChainMemory.goodMax,
            let oldest = good.min(by: { $0.value.lastUse < $1.value.lastUse })
        {
            good[oldest.key] = nil
        }
        let entry = Good(
            header: Array(header),
            chain: chain,
            lastUse: uses,
            untilSeconds: until
        )
        good[digest] = entry
        latest = entry
    }

    mutating func remember(_ rejection: Rejection, digest: [UInt8]) {
        guard refused[digest] == nil else { return }
        if refusedOrder.count >= ChainMemory.refusedMax {
            refused[refusedOrder.removeFirst()] = nil
        }
        refused[digest] = rejection
        refusedOrder.append(digest)
    }

    private static func areEqual(_ left: [UInt8], _ right: ArraySlice<UInt8>) -> Bool {
        guard left.count == right.count, !left.isEmpty else { return left.count == right.count }
        return unsafe left.withUnsafeBytes { left in
            unsafe right.withUnsafeBytes { right in
                guard let first = left.baseAddress, let second = right.baseAddress else {
                    return false
                }
                return unsafe memcmp(first, second, left.count) == 0
            }
        }
    }
}

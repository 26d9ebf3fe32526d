internal import Ledger
package import Postgres
internal import Synchronization

/// Knows who may ask, without asking the database at every request.
///
/// Tokens are read again every few seconds, so a revoked one opens nothing for longer than that.
/// Wrong tokens are limited by address; a good one is never turned away for them.
package final class Gatekeeper: Sendable {
    /// What a presented token is worth.
    package enum Verdict: Hashable, Sendable {
        /// It is good.
        case admitted(id: String, role: APIToken.Role)
        /// There was none, or none that is good.
        case unknown
        /// Too many wrong ones came from there; seconds until the next may be tried.
        case tooMany(retryAfterSeconds: Int)
        /// The tokens could not be read.
        case unavailable
    }

    /// For how long the tokens that were read are good.
    static let ageMax = Duration.seconds(5)
    /// For how long they are used when the database cannot be reached.
    package static let ageMaxAway = Duration.seconds(300)
    /// How many wrong tokens an address may present in a window.
    static let failuresMax = 20
    /// The window.
    static let window = Duration.seconds(60)
    /// How many addresses are remembered.
    static let addressesMax = 10_000

    fileprivate struct Failures {
        var count = 0
        var since: ContinuousClock.Instant
    }

    fileprivate struct State {
        var tokens: [APIToken] = []
        var readAt: ContinuousClock.Instant?
        var failures: [String: Failures] = [:]
    }

    private let connect: @Sendable () throws -> Connection
    private let state = Mutex(State())
    private let reading = Mutex(())
    /// How many wrong tokens were presented.
    package let refused = Counter()

    /// Makes a gatekeeper.
    ///
    /// - Parameter connect: opens a session that may read the tokens.
    package init(connect: @escaping @Sendable () throws -> Connection) { self.connect = connect }

    /// Judges the `Authorization` header of a request from an address.
    ///
    /// A good token is good from everywhere at any time: who shares an address, a proxy's or an
    /// office's, with somebody who guesses must not be locked out by him. So the limit is not what
    /// keeps a token safe, and need not be: it has 256 random bits, so a billion guesses a second
    /// for a billion years find none with a chance worth a name. An answer to a guess made while
    /// the address waits says no more than it would have said before: good, or not. The limit is
    /// for the load and the noise of guessing. Looking at a token costs a hash and a comparison
    /// with each that is known, and never asks the database for a wrong one.
    ///
    /// - Parameters:
    ///   - authorization: the header, nil where there is none.
    ///   - address: where the request came from.
    ///   - ageMaxAway: for how long tokens that were read count while the database is away.
    /// - Returns: what the token is worth.
    package func judge(
        authorization: String?,
        address: String,
        ageMaxAway: Duration = Gatekeeper.ageMaxAway
    ) -> Verdict {
        let now = ContinuousClock.now
        let wait = state.withLock { $0.wait(address, now) }
        let otherwise = wait.map { Verdict.tooMany(retryAfterSeconds: $0) } ?? .unknown
        guard let authorization, let token = Self.bearer(authorization) else { return otherwise }
        guard let tokens = current(now, ageMaxAway) else { return .unavailable }
        let digest = APITokens.digest(of: token)
        var found: APIToken?
        // All are compared, so that the time does not tell which one it was.
        for known in tokens where known.matches(digest) { found = known }
        guard let found, found.revokedAt == nil else {
            refused.add(1)
            if wait == nil { state.withLock { $0.count(address, now) } }
            return otherwise
        }
        return .admitted(id: found.id, role: found.role)
    }

    /// What a token that was read is for, which is whom its holder acts as.
    func name(ofToken id: String) -> String? {
        state.withLock { state in state.tokens.first { $0.id == id }?.name }
    }

    /// Has the tokens read again at the next request.
    package func forget() { state.withLock { $0.readAt = nil } }

    /// The tokens, read again where they are old; nil when they cannot be had.
    private func current(
        _ now: ContinuousClock.Instant,
        _ ageMaxAway: Duration
    ) -> [APIToken]? {
        if let fresh = state.withLock({ $0.tokens(now, ageMax: Self.ageMax) }) { return fresh }
        return reading.withLock { _ in
            // Another request may have read them meanwhile.
            if let fresh = state.withLock({ $0.tokens(now, ageMax: Self.ageMax) }) { return fresh }
            if let tokens = try? APITokens(connect()).all() {
                state.withLock { state in
                    state.tokens = tokens
                    state.readAt = .now
                }
                return tokens
            }
            return state.withLock { $0.tokens(now, ageMax: ageMaxAway) }
        }
    }

    /// The token of `Authorization: Bearer TOKEN`.
    private static func bearer(_ header: String) -> String? {
        let words = header.split(separator: " ", omittingEmptySubsequences: true)
        guard words.count == 2, words[0].lowercased() == "bearer" else { return nil }
        return String(words[1])
    }
}

extension Gatekeeper.State {
    func tokens(
        _ now: ContinuousClock.Instant,
        ageMax: Duration
    ) -> [APIToken]? {
        guard let readAt, now - readAt <= ageMax else { return nil }
        return tokens
    }

    /// For how many seconds an address must wait; nil where it need not.
    func wait(_ address: String, _ now: ContinuousClock.Instant) -> Int? {
        guard let known = failures[address], known.count >= Gatekeeper.failuresMax else {
            return nil
        }
        let rest = Gatekeeper.window - (now - known.since)
        return rest > .zero ? Int(rest.components.seconds) + 1 : nil
    }

    mutating func count(_ address: String, _ now: ContinuousClock.Instant) {
        if failures.count >= Gatekeeper.addressesMax {
            failures = failures.filter { now - $0.value.since < Gatekeeper.window }
            if failures.count >= Gatekeeper.addressesMax { failures = [:] }
        }
        var known = failures[address] ?? Gatekeeper.Failures(since: now)
        if now - known.since >= Gatekeeper.window { known = Gatekeeper.Failures(since: now) }
        known.count += 1
        failures[address] = known
    }
}

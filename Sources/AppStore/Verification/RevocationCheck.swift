internal import Crypto
internal import Ledger
internal import Synchronization

/// Carries questions to the responders of certificate issuers.
public protocol RevocationTransport: Sendable {
    /// Posts an `application/ocsp-request` and gives the body of the answer.
    ///
    /// - Throws: `RevocationUnreachable` where there was no answer with the status 200.
    func post(_ question: [UInt8], to url: String) throws(RevocationUnreachable) -> [UInt8]
}

/// A responder could not be asked.
public struct RevocationUnreachable: Error, Hashable, Sendable {
    /// Why, safe to log.
    public var detail: String

    /// Makes one.
    public init(_ detail: String) { self.detail = detail }
}

/// Asks whether the certificates of a chain that was never seen were taken back.
///
/// What cannot be told now is temporary and never means that a text is forged. A responder that
/// failed is left alone for ten seconds, so that one that hangs does not hold up every delivery.
final class RevocationCheck: Sendable {
    /// How long a responder is left alone after a failure.
    static let pause = Duration.seconds(10)
    /// How long a good answer counts at most, in seconds, however long it says that it holds.
    static let goodMaxSeconds: Int64 = 86_400
    /// How long it counts at least, where the responder's answers run out at once.
    static let goodMinSeconds: Int64 = 300

    private let transport: any RevocationTransport
    private let failures = Mutex<[String: (until: ContinuousClock.Instant, detail: String)]>([:])

    init(_ transport: any RevocationTransport) { self.transport = transport }

    /// Throws where a certificate was taken back, or where that cannot be told now.
    ///
    /// - Returns: the second since 1970 from which on the chain must be asked about again.
    func check(_ chain: VerifiedChain, now: Timestamp) throws(Rejection) -> Int64 {
        var until = now.seconds + Self.goodMaxSeconds
        for (name, certificate, issuer) in chain.issuedCertificates {
            // Apple's certificates all say where; one that does not cannot have been taken back.
            guard let question = RevocationQuestion(of: certificate, issuer: issuer) else {
                continue
            }
            switch question.answer(try ask(question, name), nowSeconds: now.seconds) {
            case .good(let end):
                until = min(until, end ?? until)
            case .revoked:
                throw Rejection(
                    reason: .revoked,
                    detail: "the issuer has revoked the \(name) certificate"
                )
            case .useless(let detail):
                throw Self.unknown(name, detail)
            }
        }
        return max(until, now.seconds + Self.goodMinSeconds)
    }

    private func ask(
        _ question: RevocationQuestion,
        _ name: String
    ) throws(Rejection) -> [UInt8] {
        let url = question.url
        if let failure = failures.withLock({ $0[url] }), ContinuousClock.now < failure.until {
            throw Self.unknown(name, failure.detail)
        }
        do throws(RevocationUnreachable) {
            let answer = try transport.post(question.request, to: url)
            failures.withLock { $0[url] = nil }
            return answer
        } catch {
            failures.withLock { $0[url] = (.now + Self.pause, error.detail) }
            throw Self.unknown(name, error.detail)
        }
    }

    private static func unknown(_ name: String, _ detail: String) -> Rejection {
        Rejection(
            reason: .revocationUnknown,
            detail: "the OCSP responder of the \(name) certificate: \(detail); try later"
        )
    }
}

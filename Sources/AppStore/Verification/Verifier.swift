internal import Crypto
public import Ledger

/// Tells whether a signed text was signed by Apple, whole and unchanged, for one of our apps.
///
/// All layers are verified: the text itself and every signed text nested in it, each up to an
/// anchor, and they must agree with each other. See ``Reason`` for the order of the checks. The
/// verifier reads no file, and a clock only to limit unknown chains and failing responders; any number of threads may use
/// it at once.
public final class Verifier: Sendable {
    /// How far in the future a text may claim to be signed: clocks differ by that much.
    public static let clockSkewMax = Milliseconds.minutes(5)

    /// The roots that vouch.
    public let anchors: TrustAnchors
    /// Whether bundle id and app Apple id are checked.
    public var checksIdentity: Bool { identity.apps != nil }

    private let identity: IdentityCheck
    private let memory: ChainMemory

    /// Makes a verifier.
    ///
    /// - Parameters:
    ///   - anchors: The roots in which chains may end.
    ///   - apps: The apps whose texts are accepted; nil accepts every app's, an empty list none.
    ///   - environment: The only environment that is accepted; nil leaves it to the apps.
    ///   - unknownChains: How many chains that were never seen may be built; nil for any number.
    ///     A service that strangers can reach needs a limit.
    ///   - revocation: Asks the issuers of a chain that was never seen whether they took it back
    ///     (OCSP); nil asks nobody.
    public init(
        anchors: TrustAnchors,
        apps: [AcceptedApp]?,
        environment: Environment? = nil,
        unknownChains: ChainRate? = nil,
        revocation: (any RevocationTransport)? = nil
    ) {
        self.anchors = anchors
        identity = IdentityCheck(apps: apps, environment: environment)
        memory = ChainMemory(
            anchors: anchors,
            rate: unknownChains,
            revocation: revocation.map(RevocationCheck.init)
        )
    }

    /// How many certificate chains are remembered, good ones and refused ones.
    public var rememberedChains: (good: Int, refused: Int) { memory.counts }

    /// Verifies a notification, a transaction, a renewal info or an app transaction.
    ///
    /// `now` only decides whether the text claims to come from the future; whether certificates
    /// were valid is asked of the time at which it was signed.
    public func verify(_ jws: [UInt8], now: Timestamp) -> Verdict<VerifiedDocument> {
        do throws(Rejection) {
            return .trusted(try document(jws, now: now))
        } catch {
            return error.reason.isTemporary ? .undecided(error) : .rejected(error)
        }
    }

    private func document(_ text: [UInt8], now: Timestamp) throws(Rejection) -> VerifiedDocument {
        let outer: SignedLayer
        do throws(Rejection) {
            outer = try SignedLayer(text, memory: memory, now: now)
        } catch {
            throw judged(error, text: text)
        }
        do throws(Rejection) {
            let environment = try identity.check(outer.claims)
            try checkAnchor(of: outer, for: environment)
            let nested = try nestedLayers(of: outer, environment: environment, now: now)
            let latest = nested.map(\.layer.signedDate).reduce(outer.signedDate, max)
            guard latest <= now.adding(Self.clockSkewMax) else {
                throw Rejection(
                    reason: .signedDateFuture,
                    detail: "signedDate \(latest.milliseconds) is later than our clock "
                        + "\(now.milliseconds) allows; check this machine's clock"
                )
            }
            return VerifiedDocument(outer: outer, nested: nested, environment: environment)
        } catch {
            var error = error
            error.isSignatureValid = true
            throw judged(error, text: text)
        }
    }

    /// Takes a rejection's claim to quarantine away where the text speaks for someone else's app.
    private func judged(_ rejection: Rejection, text: [UInt8]) -> Rejection {
        guard rejection.belongsInQuarantine else { return rejection }
        var rejection = rejection
        rejection.belongsInQuarantine =
            (try? CompactJWS(text)).map { identity.mayBeOurs($0.payload) } ?? false
        return rejection
    }

    private func checkAnchor(
        of layer: SignedLayer,
        for environment: Environment
    ) throws(Rejection) {
        guard layer.chain.anchor.vouches(for: environment) else {
            throw Rejection(
                reason: .untrustedRoot,
                detail: "a root that was configured vouches for Sandbox only, never for Production"
            )
        }
    }

    private func nestedLayers(
        of outer: SignedLayer,
        environment: Environment,
        now: Timestamp
    ) throws(Rejection) -> [NestedLayer] {
        guard outer.claims.kind == .notification else { return [] }
        var layers: [NestedLayer] = []
        for form in EnvelopeForm.allCases {
            guard let object = outer.payload[form.rawValue] else { continue }
            for (field, kind) in DocumentKind.nestedFields {
                guard let value = object[field], !value.isNull else { continue }
                do throws(Rejection) {
                    let layer = try nestedLayer(value, now: now, outer.inverses)
                    try checkAnchor(of: layer, for: environment)
                    layers.append(
                        NestedLayer(field: field, kind: kind, node: value.index, layer: layer)
                    )
                } catch {
                    throw Self.nested(error, field: field)
                }
            }
        }
        try NestedAgreement(outer: outer.claims, environment: environment).check(layers)
        return layers
    }

    private func nestedLayer(
        _ value: JSONValue,
        now: Timestamp,
        _ inverses: SignatureInverses
    ) throws(Rejection) -> SignedLayer {
        guard let text = value.textBytes else {
            throw IdentityCheck.unreadable(
                Rejection(reason: .malformedJWS, detail: "it is no text")
            )
        }
        return try SignedLayer(text, memory: memory, now: now, inverses: inverses)
    }

    /// A rejection of a nested text as one of the whole.
    private static func nested(_ rejection: Rejection, field: String) -> Rejection {
        var whole = Rejection(
            reason: .nested,
            detail: "\(field): \(rejection.reason.rawValue): \(rejection.detail)"
        )
        if rejection.reason == .localTestData { whole.reason = .localTestData }
        whole.nestedReason = rejection.reason
        whole.belongsInQuarantine = rejection.belongsInQuarantine
        return whole
    }
}

/// A nested signed text, with where it stands.
struct NestedLayer {
    let field: String
    let kind: DocumentKind
    /// The node of its text in the outer payload.
    let node: Int
    let layer: SignedLayer
}

/// Whether nested texts belong to the notification around them and to each other.
struct NestedAgreement {
    let outer: Claims
    let environment: Environment

    /// Throws where two of them name different apps, environments or subscriptions.
    ///
    /// A field that is absent contradicts nothing.
    func check(_ nested: [NestedLayer]) throws(Rejection) {
        var subscription: String?
        for text in nested {
            let claims = text.layer.claims
            if let bundleID = Lenient.text(text.layer.payload["bundleId"]),
                bundleID != outer.bundleID
            {
                throw Self.disagreement(text.field, "bundleId")
            }
            if let claimed = claims.environment, claimed != environment {
                throw Self.disagreement(text.field, "environment")
            }
            if let id = claims.appAppleID, environment == .production, id != outer.appAppleID {
                throw Self.disagreement(text.field, "appAppleId")
            }
            guard let id = Lenient.text(text.layer.payload["originalTransactionId"]) else {
                continue
            }
            if let subscription, subscription != id {
                throw Self.disagreement(text.field, "originalTransactionId")
            }
            subscription = id
        }
    }

    private static func disagreement(_ field: String, _ name: String) -> Rejection {
        IdentityCheck.unreadable(
            Rejection(
                reason: .nested,
                detail: "\(field): its \(name) is another one than that of what stands around it"
            )
        )
    }
}

import AppStore
import AppStoreSimulator
import Crypto
import Ledger
import Testing

/// Signed texts of a test authority, and verifiers that trust it.
enum Sample {
    /// 2025-01-01.
    static let start: Int64 = 1_735_689_600_000
    static let now = Timestamp(milliseconds: start + 86_400_000)
    static let bundleID = "com.example.subledger"
    static let authority = TestCertificateAuthority(
        seed: 11,
        from: start - 86_400_000,
        until: start + 60 * 86_400_000
    )
    static let chain = Chain(
        originalTransactionID: "2000000900000001",
        originalPurchaseDate: start,
        bundleID: bundleID
    )
    static let notice = Notice.initialBuy(of: chain)
    static let app = AcceptedApp(
        bundleID: bundleID,
        appAppleID: 1_234_567_890,
        environments: [.sandbox, .production]
    )

    static func anchors() -> TrustAnchors {
        var anchors = TrustAnchors()
        do { try anchors.add(authority.rootDER, name: "test root") } catch {
            Issue.record("the test root is no anchor: \(error)")
        }
        return anchors
    }

    static func verifier(
        apps: [AcceptedApp]? = [app],
        environment: Environment? = nil,
        unknownChains: ChainRate? = nil
    ) -> Verifier {
        Verifier(
            anchors: anchors(),
            apps: apps,
            environment: environment,
            unknownChains: unknownChains
        )
    }

    /// A signed first purchase, changed before it is signed.
    static func notification(
        transaction: (inout WireValue) -> Void = { _ in },
        renewal: (inout WireValue) -> Void = { _ in },
        envelope: (inout WireValue) -> Void = { _ in }
    ) -> [UInt8] {
        NoticeSigner(authority: authority).sign(
            notice,
            of: chain,
            changingTransaction: transaction,
            changingRenewal: renewal,
            changingEnvelope: envelope
        )
    }

    /// Any payload, signed with the leaf in use at `start`.
    static func signed(_ payload: WireValue) -> [UInt8] { signer.sign(payload) }

    /// Any bytes as a payload, signed with the leaf in use at `start`.
    static func signed(bytes: [UInt8]) -> [UInt8] { signer.sign(bytes: bytes) }

    static let signer = authority.signer(at: start)

    /// A signed transaction on its own, changed before it is signed.
    static func transaction(_ change: (inout WireValue) -> Void = { _ in }) throws -> [UInt8] {
        var payload = chain.payload(try #require(notice.transaction))
        change(&payload)
        return signed(payload)
    }

    /// A notification around an object of any form.
    static func envelope(
        type: String,
        subtype: String? = nil,
        form: String,
        _ object: WireValue
    ) -> WireValue {
        var payload: WireValue = [
            "notificationType": .string(type),
            "notificationUUID": "5e09dcfc-205e-4ea1-9883-96676f394992",
            "version": "2.0",
            "signedDate": .integer(start),
        ]
        if let subtype { payload["subtype"] = .string(subtype) }
        payload[form] = object
        return payload
    }

    /// The object of a test notification.
    static let testData: WireValue = [
        "bundleId": .string(bundleID), "environment": "Sandbox",
    ]
}

extension Verdict where Payload == VerifiedDocument {
    var document: VerifiedDocument? {
        if case .trusted(let document) = self { document } else { nil }
    }

    var rejection: Rejection? {
        switch self {
        case .trusted: nil
        case .rejected(let rejection), .undecided(let rejection): rejection
        }
    }

    var isUndecided: Bool {
        if case .undecided = self { true } else { false }
    }
}

/// Random numbers from a seed (SplitMix64).
struct TestRandom: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

@testable import Ledger

/// Writes the facts of one subscription down as tests tell them.
struct Life {
    /// The instant that the cases call T0.
    static let t0 = Timestamp(milliseconds: 1_760_000_000_000)

    private(set) var events: [Event] = []
    var rules = AppRules(environment: .production)

    /// T0 plus so many days.
    static func day(_ days: Double) -> Timestamp {
        Timestamp(milliseconds: t0.milliseconds + Int64(days * 86_400_000))
    }

    /// A notification with what it carries.
    mutating func notify(
        _ type: NotificationType,
        _ subtype: Subtype? = nil,
        at: Timestamp,
        status: Int32? = nil,
        _ transaction: TransactionFact? = nil,
        _ renewal: RenewalFact? = nil
    ) {
        var fact = Fact(kind: .notification, provenance: .jws, factAt: at)
        fact.notificationType = type
        fact.subtype = subtype
        fact.signedAt = at
        fact.status = status
        fact.transaction = transaction
        fact.transaction?.signedDate = at
        fact.renewal = renewal
        fact.renewal?.signedDate = at
        add(fact)
    }

    /// What Apple's server answers when it is asked, beside every notification.
    mutating func read(
        at: Timestamp,
        status: Int32? = nil,
        _ transaction: TransactionFact? = nil,
        _ renewal: RenewalFact? = nil,
        provenance: Provenance = .jws
    ) {
        var fact = Fact(kind: .subscriptionStatus, provenance: provenance, factAt: at)
        fact.status = status
        fact.transaction = transaction
        fact.transaction?.signedDate = at
        fact.renewal = renewal
        fact.renewal?.signedDate = at
        add(fact)
    }

    /// A fact as it is.
    mutating func add(_ fact: Fact) {
        events.append(Event(position: Int64(events.count + 1), fact: fact))
    }

    /// A transaction of a month, unless said otherwise.
    static func transaction(
        _ id: UInt64,
        from: Timestamp,
        until: Timestamp,
        product: Symbol = "gold.month",
        reason: TransactionReason = .purchase,
        change: (inout TransactionFact) -> Void = { _ in }
    ) -> TransactionFact {
        var fact = TransactionFact(transactionID: AppleID(id), signedDate: from, digest: 0)
        fact.productType = .autoRenewable
        fact.purchaseDate = from
        fact.originalPurchaseDate = t0
        fact.expiresDate = until
        fact.productID = product
        fact.reason = reason
        fact.ownership = .purchased
        change(&fact)
        fact.digest = digest(of: fact)
        return fact
    }

    /// Renewal info with auto-renew on, unless said otherwise.
    static func renewal(change: (inout RenewalFact) -> Void = { _ in }) -> RenewalFact {
        var fact = RenewalFact(signedDate: t0, digest: 0)
        fact.autoRenewStatus = 1
        change(&fact)
        fact.digest = digest(of: fact)
        return fact
    }

    /// A digest of the content without `signedDate`, equal in every run.
    static func digest(of value: some Any) -> UInt64 {
        var hash: UInt64 = 14_695_981_039_346_656_037
        for child in Mirror(reflecting: value).children
        where child.label != "signedDate" && child.label != "digest" {
            for byte in "\(child.label ?? "")=\(child.value);".utf8 {
                hash = (hash ^ UInt64(byte)) &* 1_099_511_628_211
            }
        }
        return hash
    }

    /// The history of the facts told so far.
    var history: History {
        var fold = SubscriptionFold(rules: rules)
        return fold.history(of: events)
    }

    /// The interval at an instant.
    func at(_ instant: Timestamp) -> Interval? {
        history.timeline.first { $0.contains(instant) }
    }
}

/// A source of numbers that gives the same ones for the same seed (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}

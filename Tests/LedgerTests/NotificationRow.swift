import Testing

@testable import Ledger

/// One row of the lifecycle reference, section 2: a notification, what was the case, and what it
/// does to access by Apple's line.
struct NotificationRow: Sendable, CustomTestStringConvertible {
    /// What was the case before.
    enum Given: String, Sendable {
        case nothing
        case paid = "a paid month"
        case cancelled = "a paid month, auto-renew off"
        case downgrading = "a paid month, a cheaper plan pending"
        case asked = "a paid month, a higher price announced"
        case grace = "a failed charge with grace"
        case retry = "a failed charge without grace"
        case expired = "an expired month"
        case refunded = "a month refunded on day 10"
        case renewed = "two paid months"
        case shared = "a month of a family member"
    }

    /// What becomes of access.
    enum Effect: Sendable {
        /// There was none on that day; now there is, until the day.
        case grants(until: Double)
        /// There was and is, until the day, with no gap.
        case lengthens(until: Double)
        /// There was and is, until the day, with another transaction of that product.
        case switches(to: Symbol, until: Double)
        /// It ends on the notification's day.
        case ends
        /// It lasts as long as before.
        case keeps
        /// There was none on that day, and there is none.
        case keepsNone
        /// Nothing at all changes.
        case changesNothing
    }

    var type: NotificationType
    var subtype: Subtype?
    var given: Given
    var day: Double
    var effect: Effect
    var transaction: TransactionFact?
    var renewal: RenewalFact?
    /// What else it does, in words, and whether it did.
    var also: (words: String, holds: @Sendable (Life) -> Bool)?

    init(
        _ type: NotificationType,
        _ subtype: Subtype? = nil,
        given: Given,
        day: Double,
        _ effect: Effect,
        _ transaction: TransactionFact? = nil,
        _ renewal: RenewalFact? = nil,
        also words: String? = nil,
        _ holds: @escaping @Sendable (Life) -> Bool = { _ in true }
    ) {
        self.type = type
        self.subtype = subtype
        self.given = given
        self.day = day
        self.effect = effect
        self.transaction = transaction
        self.renewal = renewal
        also = words.map { ($0, holds) }
    }

    /// Apple's words for it.
    var name: String { "`\(type)`" + (subtype.map { " / `\($0)`" } ?? "") }

    /// What it does, as a sentence.
    var sentence: String {
        let access =
            switch effect {
            case .grants(let until): "access from day \(Self.number(day)) to \(Self.number(until))"
            case .lengthens(let until): "access goes on to day \(Self.number(until))"
            case .switches(let product, let until):
                "`\(product)` at once, access to day \(Self.number(until))"
            case .ends: "access ends on day \(Self.number(day))"
            case .keeps: "access stays as it is"
            case .keepsNone: "no access that day, as before"
            case .changesNothing: "nothing changes"
            }
        return access + (also.map { "; \($0.words)" } ?? "")
    }

    var testDescription: String { "\(name), given \(given.rawValue): \(sentence)" }

    private static func number(_ day: Double) -> String {
        day == day.rounded() ? "\(Int(day))" : "\(day)"
    }

    // MARK: - Lives

    /// The month that everything is about.
    static func month(
        _ id: UInt64 = 1,
        _ from: Double = 0,
        _ until: Double = 30,
        _ product: Symbol = "gold.month",
        reason: TransactionReason = .purchase,
        change: (inout TransactionFact) -> Void = { _ in }
    ) -> TransactionFact {
        Life.transaction(
            id,
            from: Life.day(from),
            until: Life.day(until),
            product: product,
            reason: reason,
            change: change
        )
    }

    static func failing(graceUntil: Double? = nil) -> RenewalFact {
        Life.renewal {
            $0.isInBillingRetryPeriod = true
            $0.expirationIntent = 2
            $0.gracePeriodExpiresDate = graceUntil.map(Life.day)
        }
    }

    static let off = Life.renewal { $0.autoRenewStatus = 0 }
    static let cheaper = Life.renewal { $0.autoRenewProductID = "silver.month" }

    /// The life before the notification.
    var before: Life {
        var life = Life()
        if given == .nothing { return life }
        let month = Self.month { if given == .shared { $0.ownership = .familyShared } }
        life.notify(.subscribed, .initialBuy, at: Life.t0, month, Life.renewal())
        switch given {
        case .nothing, .paid, .shared: break
        case .cancelled, .expired:
            life.notify(
                .didChangeRenewalStatus,
                .autoRenewDisabled,
                at: Life.day(3),
                month,
                Self.off
            )
            guard given == .expired else { break }
            life.notify(.expired, .voluntary, at: Life.day(30), month, Self.off)
        case .downgrading:
            life.notify(.didChangeRenewalPref, .downgrade, at: Life.day(5), month, Self.cheaper)
        case .asked:
            life.notify(
                .priceIncrease,
                .pending,
                at: Life.day(10),
                month,
                Life.renewal { $0.priceIncreaseStatus = 0 }
            )
        case .grace:
            life.notify(
                .didFailToRenew,
                .gracePeriod,
                at: Life.day(30),
                month,
                Self.failing(graceUntil: 46)
            )
        case .retry:
            life.notify(.didFailToRenew, at: Life.day(30), month, Self.failing())
        case .refunded:
            life.notify(
                .refund,
                at: Life.day(10),
                Self.month { $0.revocationDate = Life.day(10) },
                Life.renewal()
            )
        case .renewed:
            life.notify(
                .didRenew,
                at: Life.day(30),
                Self.month(2, 30, 60, reason: .renewal),
                Life.renewal()
            )
        }
        return life
    }

    /// The life with it.
    var after: Life {
        var life = before
        life.notify(type, subtype, at: Life.day(day), transaction, renewal)
        return life
    }
}

extension Life {
    /// Whether Apple's line grants access on a day.
    func isEntitled(_ day: Double) -> Bool { at(Life.day(day))?.entitledApple == true }

    /// Where the access of a day ends; nil where there is none.
    func accessEnd(_ day: Double) -> Timestamp? {
        var end: Timestamp?
        for interval in history.timeline where interval.entitledApple {
            if interval.contains(Life.day(day)) || interval.from == end { end = interval.until }
        }
        return end
    }
}

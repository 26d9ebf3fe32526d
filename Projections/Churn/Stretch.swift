import Ledger

/// A stretch of time in which a subscriber pays, tries, or neither.
///
/// A subscriber pays while the state is active, grace period or renewal pending (the leeway in
/// which a renewal may still be under way), by a purchase of the subscriber's own, with no trial.
struct Stretch {
    enum Standing: Hashable {
        case paid(Holding)
        case trial(Holding)
        case out
    }

    var from: Timestamp
    /// Nil where it never ends.
    var until: Timestamp?
    var standing: Standing
    var state: SubscriptionState
    var confidence: Confidence
    /// The covering or else the last charge, by its place.
    var charge: Int?
    /// Whether a price increase was put to the customer.
    var askedConsent: Bool
    /// Why a subscriber may leave; nil where nothing points to it.
    var risk: Risk?
    var deciding: DecidingPositions

    /// How soon after a refund another charge must follow for the subscriber to have stayed.
    static let refundBridge = Milliseconds.days(7)

    /// The stretches of a history, in order, without holes from the first purchase on.
    ///
    /// A refund that Apple undid later is told as it was then: out from its date until it was
    /// undone.
    static func stretches(of history: History, _ rules: AppRules) -> [Stretch] {
        var index = HoldingIndex(history, rules)
        let seatChanges = index.hasSeats ? index.seatChanges : []
        var stretches: [Stretch] = []
        stretches.reserveCapacity(history.timeline.count + history.reversals.count * 2)
        for interval in history.timeline where interval.until.map({ $0 > interval.from }) ?? true {
            let place = index.place(of: interval.transactionID)
            var stretch = Stretch(
                from: interval.from,
                until: interval.until,
                standing: .out,
                state: interval.state,
                confidence: interval.confidence,
                charge: place,
                askedConsent: interval.priceConsent != .none,
                risk: Risk(interval),
                deciding: interval.deciding
            )
            guard interval.state.isHeld, interval.ownership == .purchased else {
                stretches.append(stretch)
                continue
            }
            let isTrial = interval.offer == .trial
            func standing(at instant: Timestamp) -> Standing {
                let holding = index.holding(interval, place, at: instant)
                return isTrial ? .trial(holding) : .paid(holding)
            }
            let first = stretches.count
            if let last = stretches.last, last.charge == place, last.standing != .out, place != nil,
                seatChanges.isEmpty
            {
                stretch.standing = last.standing
            } else {
                stretch.standing = standing(at: interval.from)
            }
            stretches.append(stretch)
            for instant in seatChanges where interval.contains(instant) {
                stretches.cut(at: instant, from: first)
                stretches[stretches.count - 1].standing = standing(at: instant)
            }
            for reversal in history.reversals where reversal.transactionID == interval.transactionID
            {
                stretches.takeOut(reversal, from: first)
            }
        }
        stretches.bridgeRefunds()
        return stretches
    }
}

extension [Stretch] {
    /// Cuts the stretch that holds the instant in two.
    fileprivate mutating func cut(at instant: Timestamp, from first: Int) {
        for place in first..<count
        where self[place].from < instant && self[place].until.map({ instant < $0 }) ?? true {
            var rest = self[place]
            rest.from = instant
            self[place].until = instant
            insert(rest, at: place + 1)
            return
        }
    }

    /// Takes out the time in which a refund stood that Apple undid.
    fileprivate mutating func takeOut(_ reversal: RefundReversal, from first: Int) {
        cut(at: reversal.revokedAt, from: first)
        cut(at: reversal.reversedAt, from: first)
        for place in first..<count
        where self[place].from >= reversal.revokedAt && self[place].from < reversal.reversedAt {
            self[place].standing = .out
            self[place].state = .revoked(.refund)
            self[place].confidence = .confirmed
            self[place].deciding = DecidingPositions()
            self[place].deciding.transaction = reversal.refundPosition
        }
    }

    /// Keeps a subscriber whose period was refunded but for whom another charge followed soon.
    fileprivate mutating func bridgeRefunds() {
        var place = 1
        while place < count {
            guard self[place].standing == .out, self[place].state.isRefund,
                case .paid = self[place - 1].standing,
                let next = self[place...].firstIndex(where: { $0.standing != .out }),
                case .paid = self[next].standing, self[next].charge != self[place - 1].charge,
                self[next].from <= self[place].from.adding(Stretch.refundBridge)
            else {
                place += 1
                continue
            }
            for gap in place..<next { self[gap].standing = self[place - 1].standing }
            place = next + 1
        }
    }
}

extension SubscriptionState {
    /// Whether the subscriber has it, or may have it for all we know.
    fileprivate var isHeld: Bool {
        switch self {
        case .active, .gracePeriod, .renewalPending: true
        case .billingRetry, .expired, .revoked: false
        }
    }

    /// Whether money was paid back.
    var isRefund: Bool {
        switch self {
        case .revoked(.refund), .revoked(.refundProrated): true
        default: false
        }
    }

    /// Whether it is over.
    var isOver: Bool {
        switch self {
        case .expired, .revoked: true
        default: false
        }
    }
}

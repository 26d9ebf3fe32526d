import Ledger

@testable import Projections

/// Says for single instants who pays, straight from the timeline, with none of the builder's code.
struct ChurnOracle {
    private enum Standing {
        case paid(ChurnLife.Key, AppleID?)
        case free(ChurnLife.Key)
        case out(isRefund: Bool)
    }

    private let history: History
    /// All instants at which anything may change.
    private let edges: [Timestamp]

    init(_ history: History) {
        self.history = history
        var edges = history.timeline.map(\.from)
        edges += history.reversals.flatMap { [$0.revokedAt, $0.reversedAt] }
        self.edges = Set(edges).sorted()
    }

    /// The product and currency that are paid for at an instant; nil where nothing is.
    func key(at instant: Timestamp) -> ChurnLife.Key? {
        switch standing(at: instant) {
        case nil: return nil
        case .paid(let key, _): return key
        case .free(let key):
            // Free months count where the time before them was paid.
            guard let edge = edges.last(where: { $0 <= instant }) else { return nil }
            return self.key(at: before(edge)) == nil ? nil : key
        case .out: return bridged(at: instant)
        }
    }

    /// Why a subscriber who pays may leave; the first of the reasons that hold.
    func risk(at instant: Timestamp) -> String? {
        guard key(at: instant) != nil,
            let interval = history.timeline.first(where: { $0.contains(instant) })
        else { return nil }
        let reasons = [
            ("grace", interval.state == .gracePeriod),
            ("billing", interval.hasBillingTrouble),
            ("price", interval.priceConsent == .pending),
            ("intent", interval.renewalIntent == .off),
        ]
        return reasons.first { $0.1 }?.0
    }

    /// A refunded stretch that another charge follows within a week.
    private func bridged(at instant: Timestamp) -> ChurnLife.Key? {
        var begin = instant
        while let edge = edges.last(where: { $0 <= begin }),
            case .out = standing(at: before(edge)) ?? .free(ChurnLife.Key())
        {
            begin = before(edge)
        }
        guard let edge = edges.last(where: { $0 <= begin }),
            case .out(isRefund: true) = standing(at: edge),
            case .paid(let key, let old) = standing(at: before(edge))
        else { return nil }
        for next in edges where next > instant {
            switch standing(at: next) {
            case .out: continue
            case .paid(_, let new):
                return new != old && next <= edge.adding(.days(7)) ? key : nil
            default: return nil
            }
        }
        return nil
    }

    private func before(_ instant: Timestamp) -> Timestamp {
        Timestamp(milliseconds: instant.milliseconds - 1)
    }

    private func standing(at instant: Timestamp) -> Standing? {
        guard let interval = history.timeline.first(where: { $0.contains(instant) }) else {
            return nil
        }
        let isUndone = history.reversals.contains {
            $0.transactionID == interval.transactionID && $0.revokedAt <= instant
                && instant < $0.reversedAt
        }
        let key = ChurnLife.Key(product: interval.productID, currency: interval.currency)
        switch interval.state {
        case .active, .gracePeriod, .renewalPending:
            guard interval.ownership == .purchased else { return .out(isRefund: false) }
            if isUndone { return .out(isRefund: true) }
            return interval.offer == .trial ? .free(key) : .paid(key, interval.transactionID)
        case .revoked(.refund), .revoked(.refundProrated): return .out(isRefund: true)
        default: return .out(isRefund: false)
        }
    }
}

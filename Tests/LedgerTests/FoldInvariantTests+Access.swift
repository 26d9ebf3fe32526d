import Testing

@testable import Ledger

/// The invariants 7 to 10 of the lifecycle reference, 3.3.
@Suite struct FoldAccessInvariantTests {
    // MARK: 7: bounds

    @Test func accessNeverLastsBeyondWhatWasPaidOrPromised() {
        Property.check(cases: 3000) { stream, _ in
            let facts = stream.events.map(\.fact)
            let ends =
                facts.compactMap(\.transaction?.expiresDate)
                + facts.compactMap(\.transaction?.purchaseDate)
                + facts.compactMap { $0.extensionAnswer?.effectiveDate }
            let last = ends.max() ?? .earliest
            var bound = last.adding(.hours(5))
            bound = max(bound, facts.compactMap(\.renewal?.gracePeriodExpiresDate).max() ?? bound)
            // Grace without a date is bounded by configuration, or by the longest there is.
            if facts.contains(where: \.tellsOfGrace) { bound = max(bound, last.adding(.days(28))) }
            for policy in stream.rules.policies {
                switch policy.billingRetryAccess {
                case .deny: break
                case .untilGraceEnds: bound = max(bound, last.adding(.days(28)))
                case .days, .allow: bound = max(bound, last.adding(.days(90)))
                }
            }
            return stream.history.timeline.allSatisfy { interval in
                !interval.entitled || interval.until.map { $0 <= bound } ?? false
            }
        }
    }

    @Test func applesLineIsActiveAndGraceAndNothingElse() {
        Property.check(cases: 2000) { stream, _ in
            stream.history.timeline.allSatisfy {
                $0.entitledApple == ($0.state == .active || $0.state == .gracePeriod)
            }
        }
    }

    // MARK: 8: the unknown

    @Test func anUnknownNoticeAloneNeitherEndsNorGrantsAccess() {
        Property.check(cases: 2000) { stream, random in
            let before = stream.history
            let at =
                random.isOne(in: 2)
                ? stream.lastSigned.adding(.days(1)) : stream.events[0].fact.factAt
            var fact = Fact.notification(.unknown("STRANGE"), .unknown("STRANGER"), at: at)
            fact.status = 9
            let after = stream.adding(fact).history
            return after.access == before.access && after.states == before.states
        }
    }

    @Test func anUnknownOwnershipOrOfferAloneNeitherEndsNorGrantsAccess() {
        Property.check(cases: 1500) { stream, _ in
            // Where only its end tells of grace it is estimated from the plan, and the length of an
            // offer, known or not, is not its plan's.
            guard
                !stream.events.contains(where: {
                    $0.fact.notificationType == .gracePeriodExpired
                })
            else { return true }
            var strange = stream
            for place in strange.events.indices {
                guard var transaction = strange.events[place].fact.transaction,
                    transaction.ownership == .purchased
                else { continue }
                transaction.ownership = .unknown("STRANGE")
                transaction.offerType = 77
                strange.events[place].fact.transaction = transaction
            }
            return strange.history.access == stream.history.access
        }
    }

    @Test func aRevocationCountsWhateverItsTypeSays() {
        Property.check(cases: 1500) { stream, _ in
            var strange = stream
            for place in strange.events.indices
            where strange.events[place].fact.transaction?.revocationType == .refundFull {
                strange.events[place].fact.transaction?.revocationType = .unknown("STRANGE")
            }
            return strange.history.access == stream.history.access
        }
    }

    // MARK: 9, 10: money

    @Test func aFamilyOrAssignedChainOwesNothing() {
        Property.check(cases: 2000) { stream, _ in
            stream.history.failures.allSatisfy { $0.ownership == .purchased || $0.amount == nil }
        }
    }

    @Test func anExtensionMakesNoPeriodAndNoRenewal() {
        Property.check(cases: 1500) { stream, _ in
            let before = stream.history
            guard var last = before.latestTransaction, let end = last.expiresDate,
                last.purchaseDate.map({ $0 <= end }) ?? true,
                end < Timestamp.latest.adding(.days(-90)), stream.isSigned(last)
            else { return true }
            let at = stream.lastSigned.adding(.days(1))
            last.expiresDate = end.adding(.days(30))
            last.signedDate = at
            last.digest &+= 1
            let after = stream.adding(.notification(.renewalExtended, at: at, last)).history
            return after.charges.map(\.transactionID).sorted()
                == before.charges.map(\.transactionID).sorted()
                && after.charges.map(\.length).sorted() == before.charges.map(\.length).sorted()
                && after.charges.map(\.price.self).count == before.charges.count
        }
    }
}

extension AppleID {
    fileprivate static func < (left: AppleID, right: AppleID) -> Bool {
        left.description < right.description
    }
}

extension [AppleID] {
    fileprivate func sorted() -> [AppleID] { sorted { $0 < $1 } }
}

extension Fact {
    /// A notification that carries what it is given, signed at an instant.
    static func notification(
        _ type: NotificationType,
        _ subtype: Subtype? = nil,
        at: Timestamp,
        _ transaction: TransactionFact? = nil,
        _ renewal: RenewalFact? = nil
    ) -> Fact {
        var fact = Fact(kind: .notification, provenance: .jws, factAt: at)
        fact.notificationType = type
        fact.subtype = subtype
        fact.signedAt = at
        fact.transaction = transaction
        fact.renewal = renewal
        return fact
    }

    /// Whether it tells of a grace period, with a date or without.
    fileprivate var tellsOfGrace: Bool {
        subtype == .gracePeriod || status == 4 || notificationType == .gracePeriodExpired
    }
}

extension RandomStream {
    /// Whether Apple answered an extension: what it promised lasts until anything newer is signed.
    var hasExtensionAnswer: Bool { events.contains { $0.fact.extensionAnswer != nil } }

    /// Whether the newest version of a transaction is one that Apple signed.
    func isSigned(_ transaction: TransactionFact) -> Bool {
        events.contains { $0.fact.provenance == .jws && $0.fact.transaction == transaction }
    }
}

extension History {
    /// The states with the instants at which they begin, equal neighbours made one.
    var states: [String] {
        merged { "\($0.state)" }.map { "\($0.from.milliseconds) \($0.value)" }
    }

    /// Who is served, with the instants at which that changes.
    var access: [String] {
        merged { "\($0.entitled) \($0.entitledApple)" }
            .map { "\($0.from.milliseconds) \($0.value)" }
    }

    /// Whether two histories serve the same product wherever both serve any.
    func agreesOnProducts(with other: History) -> Bool {
        let bounds = timeline.map(\.from) + other.timeline.map(\.from)
        return bounds.allSatisfy { instant in
            guard let mine = timeline.first(where: { $0.contains(instant) }),
                let others = other.timeline.first(where: { $0.contains(instant) }),
                mine.entitled, others.entitled
            else { return true }
            return mine.productID == others.productID
        }
    }

    /// Who is served outside a stretch of time.
    func access(outside range: Range<Timestamp>) -> [String] {
        var result: [String] = []
        for interval in timeline {
            let end = interval.until ?? .latest
            for (from, until) in [
                (interval.from, min(end, range.lowerBound)),
                (max(interval.from, range.upperBound), end),
            ] where from < until {
                let text = "\(interval.entitled) \(interval.entitledApple)"
                let isSame = result.last?.hasSuffix(" \(text)") == true && from != range.upperBound
                if !isSame { result.append("\(from.milliseconds) \(text)") }
            }
        }
        return result
    }

    private func merged(_ value: (Interval) -> String) -> [(from: Timestamp, value: String)] {
        var result: [(from: Timestamp, value: String)] = []
        for interval in timeline where result.last?.value != value(interval) {
            result.append((interval.from, value(interval)))
        }
        return result
    }
}

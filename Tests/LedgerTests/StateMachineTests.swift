import Testing

@testable import Ledger

/// The table of expected steps: each is taken by some facts, and every other step is an anomaly.
@Suite struct StateMachineTests {
    typealias Line = TransitionTable.Line

    /// One subscription in a state, and a fact with a name that shows another.
    ///
    /// Its first month is paid for; a second begins on day 40.
    private struct Situation {
        var life = Life()
        let line: Line

        init(_ line: Line) {
            self.line = line
            begin()
            happen()
        }

        private static func first(
            until: Double = 30,
            change: (inout TransactionFact) -> Void = { _ in }
        ) -> TransactionFact {
            Life.transaction(1, from: Life.t0, until: Life.day(until), change: change)
        }

        /// Brings the subscription into the state before.
        private mutating func begin() {
            guard let from = line.from else { return }
            life.notify(.subscribed, .initialBuy, at: Life.t0, Self.first(), Life.renewal())
            switch from {
            case .active: break
            case .gracePeriod:
                life.notify(
                    .didFailToRenew,
                    .gracePeriod,
                    at: Life.day(30),
                    Self.first(),
                    Self.renewal(.gracePeriod)
                )
            case .billingRetry:
                life.notify(
                    .didFailToRenew,
                    at: Life.day(30),
                    Self.first(),
                    Self.renewal(.billingRetry)
                )
            case .expired:
                life.notify(
                    .expired,
                    .voluntary,
                    at: Life.day(30),
                    Self.first(),
                    Self.renewal(.expired)
                )
            case .revoked:
                life.notify(
                    .refund,
                    at: Life.day(10),
                    Self.first { $0.revocationDate = Life.day(10) }
                )
            }
        }

        /// Tells the fact that is to move it.
        private mutating func happen() {
            let transaction: TransactionFact
            switch line.to {
            case .active where line.trigger == .extended: transaction = Self.first(until: 60)
            case .active where line.trigger == .refundReversed: transaction = Self.first()
            case .active:
                transaction = Life.transaction(2, from: Life.day(40), until: Life.day(70))
            case .revoked: transaction = Self.first { $0.revocationDate = Life.day(35) }
            case .gracePeriod, .billingRetry, .expired: transaction = Self.first()
            }
            let isInTime = line.trigger == .refundReversed && line.to == .active
            let at = isInTime ? Life.day(20) : Life.day(40)
            let renewal = Self.renewal(line.to)
            guard let (type, subtype) = Self.notification(line.trigger) else {
                var fact = Fact(kind: .subscriptionStatus, provenance: .jws, factAt: at)
                fact.transaction = transaction
                fact.transaction?.signedDate = at
                fact.renewal = renewal
                fact.renewal?.signedDate = at
                life.add(fact)
                return
            }
            life.notify(type, subtype, at: at, transaction, renewal)
        }

        /// The renewal info of a subscription in a state.
        private static func renewal(_ state: StateKind) -> RenewalFact {
            Life.renewal {
                switch state {
                case .active, .revoked: break
                case .gracePeriod:
                    $0.isInBillingRetryPeriod = true
                    $0.gracePeriodExpiresDate = Life.day(46)
                case .billingRetry:
                    $0.isInBillingRetryPeriod = true
                    $0.gracePeriodExpiresDate = Life.day(36)
                case .expired:
                    $0.autoRenewStatus = 0
                    $0.expirationIntent = 1
                }
            }
        }

        /// A notification of that name; nil for what is read from Apple without one.
        private static func notification(
            _ trigger: Trigger
        ) -> (NotificationType, Subtype?)? {
            switch trigger {
            case .subscribed: (.subscribed, .resubscribe)
            case .renewed: (.didRenew, nil)
            case .recovered: (.didRenew, .billingRecovery)
            case .planChanged: (.didChangeRenewalPref, .upgrade)
            case .intentChanged: (.didChangeRenewalPref, nil)
            case .failed: (.didFailToRenew, nil)
            case .failedWithGrace: (.didFailToRenew, .gracePeriod)
            case .graceEnded: (.gracePeriodExpired, nil)
            case .expired: (.expired, .voluntary)
            case .refunded: (.refund, nil)
            case .seatsRefunded: (.refund, .seats)
            case .refundReversed: (.refundReversed, nil)
            case .revoked: (.revoke, nil)
            case .extended: (.renewalExtended, nil)
            case .other: (.consumptionRequest, nil)
            case .observed: nil
            }
        }

        /// The step that the last fact caused.
        var step: Line? {
            guard let last = life.history.transitions.last,
                last.position == life.events.last?.position
            else { return nil }
            return Line(
                last.from.map(StateKind.init),
                EventHead(life.events, life.events.count - 1).trigger,
                StateKind(last.to)
            )
        }

        /// The events whose step surprised.
        var surprises: [Int64] {
            life.history.anomalies.filter { $0.kind == .unexpectedTransition }.map(\.position)
        }
    }

    private static let every: [Line] = ([nil] + StateKind.allCases.map(Optional.some)).flatMap {
        from in
        Trigger.allCases.flatMap { trigger in
            StateKind.allCases.map { Line(from, trigger, $0) }
        }
    }

    @Test func everyLineOfTheTableIsReached() {
        var unreached = Set(TransitionTable.lines)
        for line in TransitionTable.lines {
            let situation = Situation(line)
            guard situation.surprises.isEmpty, let step = situation.step else { continue }
            unreached.remove(step)
        }
        let names = unreached.map(\.name).sorted()
        #expect(names.isEmpty, "no facts take these steps as expected: \(names)")
        #expect(TransitionTable.lines.count > 60)
    }

    @Test func whateverIsNotInTheTableIsOneAnomalyAndNeverACrash() {
        let table = Set(TransitionTable.lines)
        var taken = 0
        for line in Self.every where !table.contains(line) {
            let situation = Situation(line)
            guard let step = situation.step, !table.contains(step) else {
                #expect(situation.surprises.isEmpty, "\(line.name)")
                continue
            }
            taken += 1
            #expect(
                situation.surprises == [situation.life.events.last?.position],
                "\(step.name)"
            )
        }
        #expect(taken > 60, "only \(taken) steps outside the table were taken")
    }

    @Test func theLookUpAgreesWithTheLines() {
        let table = Set(TransitionTable.lines)
        #expect(table.count == TransitionTable.lines.count)
        for line in Self.every {
            let isAllowed = TransitionTable.allows(from: line.from, line.trigger, to: line.to)
            #expect(isAllowed == table.contains(line), "\(line.name)")
        }
    }

    @Test func noStateFollowsItselfAsExpected() {
        #expect(TransitionTable.lines.allSatisfy { $0.from != $0.to })
    }
}

extension TransitionTable.Line {
    /// The step in words.
    var name: String { "\(from.map { "\($0)" } ?? "nothing") –\(trigger)→ \(to)" }
}

import Testing

@testable import Ledger

extension Registers {
    /// Lends what some events add up to, taken in in the order of the fold.
    static func lend(_ events: [Event], to body: (borrowing Registers) -> Void) {
        Events.lend(events) { events in
            var registers = Registers()
            let places = (0..<events.count).sorted { EventOrder.precedes(events, $0, $1) }
            for place in places {
                let head = EventHead(events, place)
                let hasPeriod = Period.exists(in: events, place)
                if hasPeriod { _ = registers.applyTransaction(events, place, head) }
                if events[place].fact.hasRenewal {
                    _ = registers.applyRenewal(events, place, head)
                }
                guard hasPeriod || !events[place].fact.hasTransaction else { continue }
                if let status = head.status {
                    let (at, position) = (head.at, head.position)
                    registers.applyStatus(
                        StatusRecord(status: status, at: at, isSigned: true, position: position)
                    )
                }
                if let kind = Marker.Kind(events, place, head) {
                    registers.apply(Marker(kind: kind, at: head.at, position: head.position))
                }
            }
            registers.finish(events)
            body(registers)
        }
    }
}

/// The comparison of statuses as it reads best: everything is looked at for each of them.
private struct PlainStatusCheck {
    static func disagreements(
        _ registers: borrowing Registers,
        _ timeline: ArraySlice<Interval>
    ) -> [Int64] {
        var positions: [Int64] = []
        for number in registers.statuses.indices where registers.statuses[number].isKnown {
            let status = registers.statuses[number]
            guard let interval = timeline.last(where: { $0.from <= status.at }),
                !agrees(status.status, status.at, interval),
                wasSo(interval, status.at, registers),
                status.status != 1 || !liesAhead(status.at, registers)
            else { continue }
            positions.append(status.position)
        }
        return positions
    }

    private static func agrees(_ status: Int32, _ at: Timestamp, _ interval: Interval) -> Bool {
        switch interval.state {
        // A failed charge may be announced while the paid period still runs.
        case .active:
            return status == 1 || interval.hasBillingTrouble && (status == 3 || status == 4)
        // No news has come; that Apple still calls it active is none.
        case .renewalPending: return status == 1
        case .gracePeriod: return status == 4
        case .billingRetry: return status == 3
        case .expired: return status == 2
        // What was refunded expires as well when its period is over.
        case .revoked:
            return status == 5 || status == 2 && interval.expiresDate.map { $0 <= at } ?? true
        }
    }

    /// Whether the interval is so by what was signed by then, as far as can be told.
    private static func wasSo(
        _ interval: Interval,
        _ at: Timestamp,
        _ registers: borrowing Registers
    ) -> Bool {
        let decider = interval.deciding.marker
        switch interval.state {
        case .renewalPending: return true
        case .active, .revoked:
            guard
                let number = registers.periods.firstIndex(where: {
                    $0.transactionID == interval.transactionID
                })
            else { return false }
            let isExtended = registers.periods[number].firstEnd.map { $0 <= at } ?? false
            if interval.state.isRevoked || isExtended {
                return registers.periods[number].signedDate <= at
            }
            return registers.periods[number].firstAt <= at
                && !registers.reversals.contains { $0.revokedAt <= at && at < $0.reversedAt }
        case .gracePeriod, .billingRetry, .expired:
            if let marker = registers.markers.first(where: { $0.position == decider }) {
                return marker.at <= at
            }
            // Only renewal info says so, or nobody but the clock.
            if decider == 0, interval.confidence == .clock { return true }
            let position = decider == 0 ? interval.deciding.renewal : decider
            return registers.renewals.first { $0.position == position }.map { $0.at <= at } ?? true
        }
    }

    /// Whether a period that was told of by then is yet to begin.
    private static func liesAhead(_ at: Timestamp, _ registers: borrowing Registers) -> Bool {
        registers.periods.contains {
            $0.start > at && $0.firstAt <= at && $0.revocation.map { $0 > at } ?? true
        }
    }
}

@Suite struct StatusCheckOracleTests {
    @Test func eachStatusIsComparedAsIfEverythingWereLookedAt() {
        let seed = UInt64.random(in: 0...UInt64.max)
        var noted = 0
        for number in 0..<3_000 as Range<UInt64> {
            let stream = RandomStream(seed: seed &+ number, events: 1...40)
            var history = stream.history
            let timeline = history.timeline
            history.anomalies = []
            var (plain, quick): ([Int64], [Int64]) = ([], [])
            Registers.lend(stream.events) { registers in
                plain = PlainStatusCheck.disagreements(registers, timeline)
                var check = StatusCheck()
                check.note(registers, in: &history)
                quick = history.anomalies.map(\.position)
            }
            #expect(quick == plain, "seed \(seed &+ number)")
            noted += plain.count
        }
        // Some thousand; none would mean that nothing was compared.
        #expect(noted > 0, "seed \(seed)")
    }
}

import Testing

@testable import Ledger

/// Every notification type and subtype of Apple's does to access what the reference says.
@Suite struct NotificationRowTests {
    @Test(arguments: NotificationRow.all)
    func everyNotificationHasItsStatedEffect(_ row: NotificationRow) {
        let (before, after) = (row.before, row.after)
        let day = row.day
        switch row.effect {
        case .grants(let until):
            #expect(!before.isEntitled(day))
            #expect(after.accessEnd(day) == Life.day(until))
        case .lengthens(let until):
            #expect(before.accessEnd(day - 1) != Life.day(until))
            #expect(after.accessEnd(day - 1) == Life.day(until))
        case .switches(let product, let until):
            #expect(before.at(Life.day(day))?.transactionID != AppleID(2))
            #expect(after.at(Life.day(day - 0.01))?.transactionID == AppleID(1))
            #expect(after.at(Life.day(day))?.transactionID == AppleID(2))
            #expect(after.at(Life.day(day))?.productID == product)
            #expect(after.accessEnd(day) == Life.day(until))
        case .ends:
            #expect(after.isEntitled(day - 0.01))
            #expect(!after.isEntitled(day))
            #expect(
                after.history.timeline.allSatisfy { !$0.entitledApple || $0.from < Life.day(day) }
            )
        case .keeps:
            let ends = before.history.timeline.filter(\.entitledApple).map(\.until)
            #expect(ends.last == after.history.timeline.last { $0.entitledApple }?.until)
            #expect(before.isEntitled(day) == after.isEntitled(day))
        case .keepsNone:
            #expect(!before.isEntitled(day))
            #expect(!after.isEntitled(day))
        case .changesNothing:
            #expect(Self.shown(before) == Self.shown(after))
        }
        if let also = row.also { #expect(also.holds(after), "\(also.words)") }
        let surprises = after.history.anomalies.filter { $0.kind == .unexpectedTransition }
        #expect(surprises.isEmpty, "none of these is a surprise")
    }

    /// The timeline without the events that decided it.
    private static func shown(_ life: Life) -> [Interval] {
        life.history.timeline.map {
            var interval = $0
            interval.deciding = DecidingPositions()
            return interval
        }
    }

    /// The steps and the timeline are computed apart; at the newest signature they agree.
    @Test(arguments: NotificationRow.all)
    func theMachineAndTheTimelineAgreeAtTheNewestSignature(_ row: NotificationRow) throws {
        let life = row.after
        let history = life.history
        guard let last = history.transitions.last?.to else {
            #expect(history.timeline.isEmpty)
            return
        }
        let shown = try #require(history.lastSignedAt.flatMap { life.at($0) })
        // What only the clock knows is no step.
        if shown.state == .renewalPending || shown.confidence == .clock {
            #expect([.active, StateKind(shown.state)].contains(StateKind(last)))
        } else {
            #expect(last == shown.state)
        }
    }

    @Test func everyTypeThatIsKnownHasARow() {
        let types = Set(NotificationRow.all.map(\.type))
        for (text, type) in NotificationType.known { #expect(types.contains(type), "\(text)") }
        let subtypes = Set(NotificationRow.all.compactMap(\.subtype))
        for (text, subtype) in Subtype.known { #expect(subtypes.contains(subtype), "\(text)") }
    }

    /// Scenario 33: each of these lives, told in any order and however often, is the same life.
    @Test func s33_anyOrderAndAnyNumberOfDeliveriesOfEveryRowGiveTheSameHistory() {
        for (number, row) in NotificationRow.all.enumerated() {
            let life = row.after
            var fold = SubscriptionFold(rules: life.rules)
            let expected = fold.history(of: life.events)
            var random = SeededGenerator(seed: UInt64(number))
            for _ in 0..<6 {
                var delivered =
                    life.events + life.events.filter { _ in Bool.random(using: &random) }
                delivered.shuffle(using: &random)
                #expect(
                    fold.history(of: delivered) == expected,
                    "\(row.testDescription), seed \(number)"
                )
            }
        }
    }
}

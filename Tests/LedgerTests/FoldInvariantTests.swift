import Testing

@testable import Ledger

/// The invariants of the lifecycle reference, 3.3, on random streams.
@Suite struct FoldInvariantTests {
    // MARK: 1, 2: order and duplicates

    @Test func anyOrderAndAnyDuplicationGiveTheSameHistory() {
        // One fold for all, as a rebuild has: nothing of one stream may reach the next.
        Property.check(cases: 3000) { stream, random in
            let expected = stream.history
            var fold = SubscriptionFold(rules: stream.rules)
            for _ in 0..<3 {
                var events = stream.events + stream.events.filter { _ in random.isOne(in: 2) }
                random.shuffle(&events)
                if fold.history(of: events) != expected { return false }
            }
            return true
        }
    }

    @Test func aFoldThatFoldedOthersBeforeIsAsGoodAsNew() {
        var folds: [AppRules: SubscriptionFold] = [:]
        for seed in Property.seeds(1500) {
            let stream = RandomStream(seed: seed, events: 1...40)
            let history = folds[stream.rules, default: SubscriptionFold(rules: stream.rules)]
                .history(of: stream.events)
            #expect(history == stream.history, "seed \(seed)")
        }
    }

    /// A history is a slice of the fold's memory, and stays what it was all the same.
    @Test func aHistoryThatIsKeptStaysAsItIsWhenTheFoldGoesOn() {
        Property.check(cases: 1000) { stream, random in
            let expected = stream.history
            var fold = SubscriptionFold(rules: stream.rules)
            var history = fold.history(of: stream.events)
            let kept = history
            for _ in 0..<2 {
                let others = stream.events.filter { _ in random.isOne(in: 2) }
                fold.fold(others, into: &history)
            }
            return kept == expected
        }
    }

    /// The same facts under new positions: only the positions of the first ones show.
    @Test func factsThatComeAgainUnderNewPositionsChangeNothing() {
        Property.check(cases: 1500) { stream, _ in
            let expected = stream.history
            var twice = stream
            for event in stream.events { twice.add(event.fact) }
            var history = twice.history
            history.knownToPosition = expected.knownToPosition
            return history == expected
        }
    }

    /// What a prefix of the log gives is what was known then, whatever came later.
    @Test func whatIsKnownGrowsWithThePrefixAndForgetsNothing() {
        Property.check(cases: 1000) { stream, random in
            let cut = Int64(1 + random.below(stream.events.count))
            var prefix = stream
            prefix.events.removeAll { $0.position > cut }
            let (before, after) = (prefix.history, stream.history)
            let known = Set(after.charges.map(\.transactionID))
            let dated = before.charges.filter { charge in
                // A later version may take a date away again.
                !stream.events.contains {
                    $0.position > cut
                        && $0.fact.transaction?.transactionID == charge.transactionID
                }
            }
            return before.knownToPosition <= after.knownToPosition
                && dated.allSatisfy { known.contains($0.transactionID) }
        }
    }

    // MARK: The timeline

    @Test func theTimelineHasNoHoleAndNoOverlap() {
        Property.check(cases: 3000) { stream, _ in
            let timeline = stream.history.timeline
            for (left, right) in zip(timeline, timeline.dropFirst())
            where left.until != right.from || left.from >= right.from {
                return false
            }
            return timeline.isEmpty || timeline[timeline.count - 1].until == nil
        }
    }

    @Test func activeMeansThatALiveTransactionCovers() {
        Property.check(cases: 2000) { stream, _ in
            let promised = stream.events.compactMap(\.fact.extensionAnswer?.effectiveDate).max()
            return stream.history.timeline.filter { $0.state == .active }.allSatisfy { interval in
                stream.events.compactMap(\.fact.transaction).contains {
                    ($0.purchaseDate ?? .earliest) <= interval.from
                        && max($0.expiresDate ?? .earliest, promised ?? .earliest) > interval.from
                }
            }
        }
    }

    // MARK: 3 to 6

    @Test func aRefundOfAnEarlierPeriodChangesNoAccessOutsideIt() {
        Property.check(cases: 3000) { stream, random in
            // Periods without dates or length, and policies that look back to the end of one, are not
            // meant here.
            var stream = stream
            stream.rules.policies = [AccessPolicy()]
            let before = stream.history
            let earlier = before.charges.dropLast()
                .filter { $0.revokedAt == nil && $0.from < $0.until }
            // A promised extension lasts until anything newer is signed, a refund included.
            guard !earlier.isEmpty, !stream.hasExtensionAnswer,
                stream.events.compactMap(\.fact.transaction).allSatisfy({
                    ($0.purchaseDate ?? .latest) < ($0.expiresDate ?? .earliest)
                })
            else { return true }
            let charge = earlier[earlier.startIndex + random.below(earlier.count)]
            // Where two overlap, the one that began later is the latest of the gap behind both.
            guard
                before.charges.filter({ $0.from < charge.until && charge.from < $0.until }).count
                    == 1,
                var refunded = stream.events.first(where: { $0.position == charge.position })?.fact
                    .transaction, refunded.reason == .renewal, !refunded.isUpgraded
            else { return true }
            let at = stream.lastSigned.adding(.days(1))
            refunded.revocationDate = charge.from
            refunded.signedDate = at
            refunded.digest &+= 1
            let after = stream.adding(.notification(.refund, at: at, refunded)).history
            // The gaps before and behind the period hang on it, up to their other ends.
            let start =
                before.timeline.filter { $0.state == .active }.compactMap(\.until)
                .filter { $0 <= charge.from }.max() ?? .earliest
            let end =
                before.timeline.filter { $0.state == .active && $0.from >= charge.until }
                .map(\.from).min() ?? .latest
            let range = min(start, charge.from)..<max(charge.from, end)
            return before.access(outside: range) == after.access(outside: range)
        }
    }

    @Test func aRefundAndItsReversalLeaveTheStates() {
        Property.check(cases: 1500) { stream, _ in
            let before = stream.history
            guard let last = before.latestTransaction, last.revocationDate == nil,
                last.purchaseDate != nil, stream.isSigned(last), !stream.hasExtensionAnswer
            else { return true }
            let at = stream.lastSigned.adding(.days(1))
            var refunded = last
            refunded.revocationDate = at
            refunded.digest &+= 1
            var (first, second) = (refunded, last)
            first.signedDate = at
            second.signedDate = at.adding(.days(1))
            let after = stream.adding(.notification(.refund, at: first.signedDate, first))
                .adding(.notification(.refundReversed, at: second.signedDate, second)).history
            return after.states == before.states
                && after.reversals.count == before.reversals.count + 1
        }
    }

    @Test func anOlderFactNeverChangesWhatCounts() {
        Property.check(cases: 1500) { stream, random in
            let before = stream.history
            guard let last = before.latestTransaction, stream.isSigned(last) else { return true }
            var old = last
            old.signedDate = last.signedDate.adding(.days(-1 - Int64(random.below(50))))
            old.price = 123
            old.productID = "old.month"
            old.revocationDate = random.isOne(in: 2) ? old.purchaseDate : nil
            old.digest &+= 1
            let after = stream.adding(.notification(.didRenew, at: old.signedDate, old)).history
            return after.latestTransaction == before.latestTransaction
                && after.charges.map(\.price) == before.charges.map(\.price)
                && after.charges.map(\.revokedAt) == before.charges.map(\.revokedAt)
                && after.charges.map(\.until) == before.charges.map(\.until)
        }
    }

    @Test func aDowngradeAloneNeverChangesTheEntitledProduct() {
        Property.check(cases: 1500) { stream, _ in
            let before = stream.history
            guard var info = before.latestRenewal else { return true }
            let at = stream.lastSigned.adding(.days(1))
            info.signedDate = at
            info.autoRenewProductID = "bronze.month"
            info.digest &+= 1
            let fact = Fact.notification(.didChangeRenewalPref, .downgrade, at: at, nil, info)
            return stream.adding(fact).history.agreesOnProducts(with: before)
        }
    }
}

extension FoldInvariantTests {
    /// Case A06 and case C05 for any facts: the newest signature of a transaction decides.
    @Test func noTransactionGrantsAccessOnceItIsTakenBack() {
        Property.check(cases: 2000) { stream, _ in
            var signed = stream
            signed.events.removeAll {
                $0.fact.provenance != .jws || $0.fact.transaction?.webOrderLineItemID != nil
            }
            var newest: [AppleID: TransactionFact] = [:]
            for fact in signed.events.compactMap(\.fact.transaction)
            where fact.productType == .autoRenewable
                || fact.productType == nil && fact.expiresDate != nil
            {
                guard let known = newest[fact.transactionID] else {
                    newest[fact.transactionID] = fact
                    continue
                }
                // Which of two signed at once counts is another rule.
                if known.signedDate == fact.signedDate { return true }
                if known.signedDate < fact.signedDate { newest[fact.transactionID] = fact }
            }
            return signed.history.timeline.allSatisfy { interval in
                guard interval.state == .active, let id = interval.transactionID,
                    let revoked = newest[id]?.revocationDate
                else { return true }
                return interval.until.map { $0 <= max(revoked, interval.from) } ?? false
            }
        }
    }

    @Test func everySurpriseIsAStepThatTheTableLacks() {
        Property.check(cases: 1500) { stream, _ in
            let history = stream.history
            let places = Dictionary(
                uniqueKeysWithValues: stream.events.indices.map {
                    (stream.events[$0].position, $0)
                }
            )
            let outside = history.transitions.filter { step in
                guard let place = places[step.position] else { return true }
                return !TransitionTable.allows(
                    from: step.from.map(StateKind.init),
                    EventHead(stream.events, place).trigger,
                    to: StateKind(step.to)
                )
            }
            let surprises = history.anomalies.filter { $0.kind == .unexpectedTransition }
            return outside.map(\.position) == surprises.map(\.position)
        }
    }
}

internal import Ledger

/// Makes a stream for which a property fails as small and as plain as it will go.
///
/// First events are left out, then what they carry, then instants become one or take the places
/// of plain days, as long as the property still fails.
struct Shrinker {
    /// Whether the property fails for a stream.
    let fails: (RandomStream) -> Bool
    /// How often the property may still be tried.
    private var budget: Int
    private var best: RandomStream

    /// The smallest stream found for which the property fails.
    static func shrink(
        _ stream: RandomStream,
        budget: Int = 5000,
        fails: @escaping (RandomStream) -> Bool
    ) -> RandomStream {
        var shrinker = Shrinker(fails: fails, budget: budget, best: stream)
        var isSmaller = true
        while isSmaller, shrinker.budget > 0 {
            isSmaller = shrinker.dropEvents()
            isSmaller = shrinker.simplifyFacts() || isSmaller
            isSmaller = shrinker.simplifyRules() || isSmaller
            isSmaller = shrinker.mergeInstants() || isSmaller
        }
        shrinker.usePlainDays()
        shrinker.renumber()
        return shrinker.best
    }

    private init(fails: @escaping (RandomStream) -> Bool, budget: Int, best: RandomStream) {
        self.fails = fails
        self.budget = budget
        self.best = best
    }

    /// Keeps a stream if it is another one and the property fails for it too.
    private mutating func keep(_ stream: RandomStream) -> Bool {
        guard budget > 0, stream.events != best.events || stream.rules != best.rules else {
            return false
        }
        budget -= 1
        guard fails(stream) else { return false }
        best = stream
        return true
    }

    private mutating func dropEvents() -> Bool {
        var isSmaller = false
        var size = max(1, best.events.count / 2)
        while size > 0 {
            var from = 0
            while from < best.events.count {
                var stream = best
                stream.events.removeSubrange(from..<min(from + size, best.events.count))
                if keep(stream) { isSmaller = true } else { from += size }
            }
            size /= 2
        }
        return isSmaller
    }

    private mutating func simplifyFacts() -> Bool {
        var isSmaller = false
        for place in best.events.indices {
            for change in Self.changes {
                var stream = best
                change(&stream.events[place].fact)
                if keep(stream) { isSmaller = true }
            }
        }
        // Equal content has an equal digest: what is left out is left out of all versions of it.
        for change in Self.transactionChanges {
            for digest in Set(best.events.compactMap(\.fact.transaction?.digest)).sorted() {
                var stream = best
                for place in stream.events.indices
                where stream.events[place].fact.transaction?.digest == digest {
                    stream.events[place].fact.transaction.map {
                        var fact = $0
                        change(&fact)
                        stream.events[place].fact.transaction = fact
                    }
                }
                if keep(stream) { isSmaller = true }
            }
        }
        for change in Self.renewalChanges {
            for digest in Set(best.events.compactMap(\.fact.renewal?.digest)).sorted() {
                var stream = best
                for place in stream.events.indices
                where stream.events[place].fact.renewal?.digest == digest {
                    stream.events[place].fact.renewal.map {
                        var fact = $0
                        change(&fact)
                        stream.events[place].fact.renewal = fact
                    }
                }
                if keep(stream) { isSmaller = true }
            }
        }
        return isSmaller
    }

    private mutating func simplifyRules() -> Bool {
        var isSmaller = false
        for change in Self.ruleChanges {
            var stream = best
            change(&stream.rules)
            if keep(stream) { isSmaller = true }
        }
        return isSmaller
    }

    private static let ruleChanges: [@Sendable (inout AppRules) -> Void] = [
        { $0 = AppRules(environment: .production) },
        { $0.environment = .production },
        { $0.gracePeriodDays = nil },
        { $0.graceScope = .allRenewals },
        { $0.products = [:] },
        { $0.policies = [AccessPolicy()] },
        { $0.clockProfile = nil },
    ]

    private static let changes: [@Sendable (inout Fact) -> Void] = [
        { $0.transaction = nil },
        { $0.renewal = nil },
        { $0.status = nil },
        { $0.extensionAnswer = nil },
        { $0.linkedOwner = nil },
        { $0.subtype = nil },
        { $0.notificationType = nil },
        { $0.kind = .notification },
        { $0.provenance = .jws },
        { $0.signedAt = $0.factAt },
        { fact in
            let at = fact.factAt
            fact.transaction?.signedDate = at
        },
        { fact in
            let at = fact.factAt
            fact.renewal?.signedDate = at
        },
    ]

    private static let transactionChanges: [@Sendable (inout TransactionFact) -> Void] = [
        { $0.transactionID = AppleID(1) },
        { $0.productID = nil },
        { $0.productType = .autoRenewable },
        { $0.quantity = nil },
        { $0.webOrderLineItemID = nil },
        { $0.ownership = nil },
        { $0.reason = nil },
        { $0.additionalReason = nil },
        { $0.isUpgraded = false },
        { $0.revocationDate = nil },
        { $0.revocationType = nil },
        { $0.revocationPercentage = nil },
        { $0.revokedSeatQuantity = nil },
        { $0.offerType = nil },
        { $0.offerDiscountType = nil },
        { $0.price = nil },
        { $0.currency = nil },
        { $0.appAccountToken = nil },
        { $0.billingPlanType = nil },
        { $0.commitmentExpiresDate = nil },
        { $0.expiresDate = nil },
        { $0.purchaseDate = nil },
    ]

    private static let renewalChanges: [@Sendable (inout RenewalFact) -> Void] = [
        { $0.autoRenewStatus = nil },
        { $0.autoRenewProductID = nil },
        { $0.isInBillingRetryPeriod = nil },
        { $0.gracePeriodExpiresDate = nil },
        { $0.expirationIntent = nil },
        { $0.priceIncreaseStatus = nil },
        { $0.renewalDate = nil },
        { $0.renewalPrice = nil },
        { $0.renewalQuantity = nil },
        { $0.currency = nil },
    ]

    // MARK: Instants

    private mutating func mergeInstants() -> Bool {
        var isSmaller = false
        var place = 1
        while true {
            let instants = best.instants
            guard place < instants.count else { return isSmaller }
            var stream = best
            let (from, to) = (instants[place], instants[place - 1])
            stream.mapInstants { $0 == from ? to : $0 }
            if keep(stream) { isSmaller = true } else { place += 1 }
        }
    }

    /// Puts the instants on whole days from `Life.t0` on, in their order.
    private mutating func usePlainDays() {
        let days = Dictionary(
            uniqueKeysWithValues: best.instants.enumerated()
                .map { ($0.element, Life.day(Double($0.offset))) }
        )
        var stream = best
        stream.mapInstants { days[$0] ?? $0 }
        _ = keep(stream)
    }

    private mutating func renumber() {
        var stream = best
        for place in stream.events.indices { stream.events[place].position = Int64(place + 1) }
        _ = keep(stream)
    }
}

extension RandomStream {
    /// All instants in the facts, in order, each once.
    var instants: [Timestamp] {
        var found: Set<Timestamp> = []
        var copy = self
        copy.mapInstants {
            found.insert($0)
            return $0
        }
        return found.sorted()
    }

    /// Replaces every instant.
    mutating func mapInstants(_ map: (Timestamp) -> Timestamp) {
        for place in events.indices {
            var fact = events[place].fact
            fact.factAt = map(fact.factAt)
            fact.signedAt = fact.signedAt.map(map)
            if var transaction = fact.transaction {
                transaction.signedDate = map(transaction.signedDate)
                transaction.purchaseDate = transaction.purchaseDate.map(map)
                transaction.expiresDate = transaction.expiresDate.map(map)
                transaction.revocationDate = transaction.revocationDate.map(map)
                transaction.commitmentExpiresDate = transaction.commitmentExpiresDate.map(map)
                fact.transaction = transaction
            }
            if var renewal = fact.renewal {
                renewal.signedDate = map(renewal.signedDate)
                renewal.gracePeriodExpiresDate = renewal.gracePeriodExpiresDate.map(map)
                renewal.renewalDate = renewal.renewalDate.map(map)
                fact.renewal = renewal
            }
            if let date = fact.extensionAnswer?.effectiveDate {
                fact.extensionAnswer?.effectiveDate = map(date)
            }
            events[place].fact = fact
        }
    }
}

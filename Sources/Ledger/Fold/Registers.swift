/// What the facts of one subscription add up to: one register for each transaction, the signed
/// histories of renewal info and status, and markers of what notifications announced.
///
/// Last writer wins by the inner `signedDate`, in each register on its own: a refund carries the
/// refunded transaction, which may be an old one.
struct Registers {
    var periods: [Period] = []
    var renewals: [RenewalRecord] = []
    var statuses: [StatusRecord] = []
    var markers: [Marker] = []
    var answers: [AnswerRecord] = []
    /// The newest `signedDate` of any signed transaction.
    var newestTransactionSigned: Timestamp?

    private var index: [AppleID: Int] = [:]

    /// Past so many transactions a dictionary finds them faster than a search from the end.
    private static let searchMax = 24

    mutating func reset() {
        periods.removeAll(keepingCapacity: true)
        renewals.removeAll(keepingCapacity: true)
        statuses.removeAll(keepingCapacity: true)
        markers.removeAll(keepingCapacity: true)
        answers.removeAll(keepingCapacity: true)
        index.removeAll(keepingCapacity: true)
        newestTransactionSigned = nil
    }

    /// Takes a fact in; returns the oddities that show in it.
    mutating func apply(_ event: Event) -> Anomaly.Kind? {
        let fact = event.fact
        var at = max(fact.factAt, fact.signedAt ?? fact.factAt)
        if let transaction = fact.transaction { at = max(at, transaction.signedDate) }
        if let renewal = fact.renewal { at = max(at, renewal.signedDate) }
        var anomaly: Anomaly.Kind?
        if let transaction = fact.transaction, transaction.isSubscription {
            anomaly = apply(transaction, of: event, at: at)
        }
        if let renewal = fact.renewal {
            let record = RenewalRecord(
                fact: renewal,
                at: at,
                signedAt: fact.signedAt ?? fact.factAt,
                provenance: fact.provenance,
                position: event.position
            )
            if let last = renewals.last, last.fact.signedDate == renewal.signedDate,
                last.fact.digest != renewal.digest
            {
                anomaly = anomaly ?? .orderConflict
            }
            renewals.append(record)
        }
        if let status = fact.status {
            statuses.append(
                StatusRecord(
                    status: status,
                    at: at,
                    isSigned: fact.provenance == .jws,
                    position: event.position
                )
            )
        }
        if let kind = Marker.Kind(fact) {
            markers.append(
                Marker(
                    kind: kind,
                    at: at,
                    transactionID: fact.transaction?.transactionID,
                    position: event.position
                )
            )
        }
        if let answer = fact.extensionAnswer, answer.success, let date = answer.effectiveDate {
            answers.append(
                AnswerRecord(effectiveDate: date, at: fact.factAt, position: event.position)
            )
        }
        return anomaly
    }

    /// Puts everything in order once all facts are in.
    mutating func finish() {
        renewals.sortIfNeeded { $0.at != $1.at ? $0.at < $1.at : $1.wins(over: $0) }
        statuses.sortIfNeeded { $0.at < $1.at }
        markers.sortIfNeeded { $0.at < $1.at }
        periods.sortIfNeeded(Period.precedes)
        applyProvisionalExtension()
    }

    private mutating func apply(
        _ transaction: TransactionFact,
        of event: Event,
        at: Timestamp
    ) -> Anomaly.Kind? {
        let provenance = event.fact.provenance
        let signedAt = event.fact.signedAt ?? transaction.signedDate
        if provenance == .jws {
            newestTransactionSigned = max(
                newestTransactionSigned ?? transaction.signedDate,
                transaction.signedDate
            )
        }
        guard let place = place(of: transaction.transactionID) else {
            if periods.count >= Self.searchMax { index[transaction.transactionID] = periods.count }
            periods.append(
                Period(
                    fact: transaction,
                    signedAt: signedAt,
                    provenance: provenance,
                    at: at,
                    position: event.position
                )
            )
            if periods.count == Self.searchMax { indexAll() }
            return transaction.hasPeriod ? nil : .missingDates
        }
        return periods[place].apply(
            transaction,
            signedAt: signedAt,
            provenance: provenance,
            at: at,
            position: event.position
        )
    }

    private func place(of id: AppleID) -> Int? {
        if periods.count >= Self.searchMax { return index[id] }
        return periods.lastIndex { $0.fact.transactionID == id }
    }

    private mutating func indexAll() {
        for (place, period) in periods.enumerated() { index[period.fact.transactionID] = place }
    }

    /// Moves the end of the last live period to what Apple's unsigned answer promised, until a
    /// transaction signed after the answer is there.
    private mutating func applyProvisionalExtension() {
        guard let answer = answers.max(by: { ($0.at, $0.position) < ($1.at, $1.position) }),
            newestTransactionSigned.map({ $0 <= answer.at }) ?? true,
            let place = periods.lastIndex(where: { $0.fact.revocationDate == nil }),
            let end = periods[place].fact.expiresDate, end < answer.effectiveDate
        else { return }
        periods[place].provisionalEnd = answer.effectiveDate
        periods[place].provisionalPosition = answer.position
    }
}

/// The register of one transaction.
struct Period {
    var fact: TransactionFact
    var signedAt: Timestamp
    var provenance: Provenance
    /// The event that holds the version that counts.
    var position: Int64
    /// When Apple first signed any version of it.
    var firstSigned: Timestamp
    /// When the first event that carries it was signed.
    var firstAt: Timestamp
    /// The end as first signed, before any extension.
    var firstEnd: Timestamp?
    /// When Apple first said that it was upgraded.
    var upgradedAt: Timestamp?
    /// The end that an unsigned answer to an extension promised.
    var provisionalEnd: Timestamp?
    var provisionalPosition: Int64 = 0

    init(
        fact: TransactionFact,
        signedAt: Timestamp,
        provenance: Provenance,
        at: Timestamp,
        position: Int64
    ) {
        self.fact = fact
        self.signedAt = signedAt
        self.provenance = provenance
        self.position = position
        firstSigned = fact.signedDate
        firstAt = at
        firstEnd = fact.expiresDate
        upgradedAt = fact.isUpgraded ? fact.signedDate : nil
    }

    /// Takes another version in.
    mutating func apply(
        _ new: TransactionFact,
        signedAt: Timestamp,
        provenance: Provenance,
        at: Timestamp,
        position: Int64
    ) -> Anomaly.Kind? {
        firstAt = min(firstAt, at)
        if new.signedDate < firstSigned {
            firstSigned = new.signedDate
            firstEnd = new.expiresDate ?? firstEnd
        }
        if new.isUpgraded {
            upgradedAt = upgradedAt.map { min($0, new.signedDate) } ?? new.signedDate
        }
        if new.digest == fact.digest, new.signedDate == fact.signedDate {
            if position < self.position { self.position = position }
            return nil
        }
        let isConflict = new.signedDate == fact.signedDate && provenance == self.provenance
        if EventOrder.wins(
            new,
            signedAt: signedAt,
            provenance: provenance,
            over: fact,
            signedAt: self.signedAt,
            provenance: self.provenance
        ) {
            fact = new
            self.signedAt = signedAt
            self.provenance = provenance
            self.position = position
        }
        return isConflict ? .orderConflict : nil
    }

    /// The start of the period.
    var start: Timestamp { fact.purchaseDate ?? .earliest }

    /// The end of the paid period as it counts; never before the start.
    var end: Timestamp { max(start, provisionalEnd ?? fact.expiresDate ?? start) }

    /// When it was taken back, not before it began.
    var revocation: Timestamp? { fact.revocationDate.map { max($0, start) } }

    /// Whether one of several transactions of one period (seats).
    var isAdditional: Bool { fact.additionalReason != nil }

    var isCommitment: Bool {
        fact.billingPlanType == .monthly || fact.commitmentExpiresDate != nil
    }

    /// The length of the period before any extension.
    var length: Milliseconds {
        Milliseconds(
            rawValue: max(0, (firstEnd ?? start).milliseconds - start.milliseconds)
        )
    }

    static func precedes(_ left: Period, _ right: Period) -> Bool {
        if left.start != right.start { return left.start < right.start }
        if left.end != right.end { return left.end < right.end }
        return left.fact.digest < right.fact.digest
    }
}

/// Renewal info at its place in the signed history.
struct RenewalRecord {
    var fact: RenewalFact
    /// When the whole event was signed: the latest of its dates, so that the parts of one event
    /// never fall on two sides of a cut.
    var at: Timestamp
    var signedAt: Timestamp
    var provenance: Provenance
    var position: Int64

    func wins(over other: RenewalRecord) -> Bool {
        if fact.digest == other.fact.digest, fact.signedDate == other.fact.signedDate {
            return position < other.position
        }
        return EventOrder.wins(
            fact,
            signedAt: signedAt,
            provenance: provenance,
            over: other.fact,
            signedAt: other.signedAt,
            provenance: other.provenance
        )
    }
}

/// Apple's status at its place in the history.
struct StatusRecord {
    var status: Int32
    var at: Timestamp
    var isSigned: Bool
    var position: Int64
}

/// What a notification announced about billing.
struct Marker {
    enum Kind: Hashable {
        case failed(grace: Bool)
        case graceEnded
        case expired(ExpirationCause)
    }

    var kind: Kind
    var at: Timestamp
    /// The transaction that the notification carried.
    var transactionID: AppleID?
    var position: Int64
}

/// A promise in an unsigned answer to an extension request.
struct AnswerRecord {
    var effectiveDate: Timestamp
    var at: Timestamp
    var position: Int64
}

extension Marker.Kind {
    /// The marker that a notification sets, nil for those that set none.
    init?(_ fact: Fact) {
        switch fact.notificationType {
        case .didFailToRenew: self = .failed(grace: fact.subtype == .gracePeriod)
        case .gracePeriodExpired: self = .graceEnded
        case .expired: self = .expired(ExpirationCause(subtype: fact.subtype))
        default: return nil
        }
    }
}

extension ExpirationCause {
    /// The cause that an `EXPIRED` notification's subtype names.
    init(subtype: Subtype?) {
        switch subtype {
        case .voluntary: self = .voluntary
        case .billingRetry: self = .billingRetry
        case .priceIncrease: self = .priceIncrease
        case .productNotForSale: self = .productNotForSale
        default: self = .other
        }
    }

    /// The cause that `expirationIntent` names.
    init(intent: Int32) {
        switch intent {
        case 1: self = .voluntary
        case 2: self = .billingRetry
        case 3: self = .priceIncrease
        case 4: self = .productNotForSale
        default: self = .other
        }
    }
}

extension TransactionFact {
    /// Whether it belongs to an auto-renewable subscription; older payloads lack the type.
    var isSubscription: Bool {
        productType.map { $0 == .autoRenewable } ?? (expiresDate != nil)
    }

    /// Whether the dates of a period are there and in order.
    var hasPeriod: Bool {
        guard let purchaseDate, let expiresDate else { return false }
        return purchaseDate <= expiresDate
    }
}

extension Array {
    /// Sorts unless the elements are in order already, as they nearly always are.
    mutating func sortIfNeeded(_ precedes: (Element, Element) -> Bool) {
        guard count > 1 else { return }
        for place in 1..<count where precedes(self[place], self[place - 1]) {
            sort(by: precedes)
            return
        }
    }
}

// The small records that the fold works on. Facts are wide; each is read once, into these, since
// copying wide values was half of the fold's time.

/// What an event says beside its transaction and renewal info.
struct EventHead {
    var position: Int64
    var factAt: Timestamp
    /// When the envelope was signed, or the fact where there is none.
    var signedAt: Timestamp
    /// When the whole event was signed: the latest of its dates, so that the parts of one event
    /// never fall on two sides of a cut.
    var at: Timestamp
    var provenance: Provenance
    /// What the event counts as in the state machine.
    var trigger: Trigger
    var status: Int32?
    var subtype: Subtype?
    /// Whether it reports a purchase or renewal as it happens.
    var isReport: Bool { trigger.isReport }

    @inline(__always) init(_ events: Events, _ place: Int) {
        position = events[place].position
        provenance = events[place].fact.provenance
        status = events[place].fact.status
        subtype = events[place].fact.subtype
        factAt = events[place].fact.factAt
        signedAt = events[place].fact.signedAt ?? factAt
        // What is not there was signed before anything.
        at = max(
            max(factAt, signedAt),
            max(
                events[place].fact.storedTransaction.signedDate,
                events[place].fact.storedRenewal.signedDate
            )
        )
        trigger = events[place].fact.trigger
    }
}

/// The register of one transaction: the version that counts, and what all versions tell.
///
/// What only an interval or a charge shows is not here but in the event at `place`. While versions
/// come in, only what tells which one counts is kept up; `settle` reads the rest at the end.
struct Period {
    var transactionID: AppleID
    /// The start of the period.
    var start: Timestamp
    /// The end of the paid period as it counts; never before the start.
    var end: Timestamp
    /// When it was taken back, not before it began.
    @Packed var revocation: Timestamp?
    /// When Apple first signed any version of it.
    var firstSigned: Timestamp
    @Packed var expiresDate: Timestamp?
    /// When the first event that carries it was signed.
    var firstAt: Timestamp
    /// When the event that reports the purchase or renewal itself was signed.
    @Packed var reportedAt: Timestamp?
    /// The end as first signed, before any extension.
    @Packed var firstEnd: Timestamp?
    /// When Apple first said that it was upgraded.
    @Packed var upgradedAt: Timestamp?
    /// The event that reports it as the recovery of a failed charge; 0 where none does.
    var recoveredBy: Int64 = 0
    var signedDate: Timestamp
    var signedAt: Timestamp
    var digest: UInt64
    /// The event that holds the version that counts.
    var position: Int64
    /// Where that event stands among those that are folded.
    var place: Int

    @Packed var productID: Symbol?
    var reason: TransactionReason?
    var provenance: Provenance
    /// Whether there is a `purchaseDate`.
    var hasStart: Bool
    var isUpgraded: Bool
    /// Whether one of several transactions of one period (seats).
    var isAdditional: Bool
    /// Whether it was charged before its time, and superseded by a purchase before it began.
    var isSupersededEarly = false
    var isCommitment: Bool
    /// Whether a notification reported that this charge was refunded.
    var isRefundReported = false
    /// What kind of period it is.
    var offer: OfferPhase

    /// A period that holds nothing, to be read into.
    static var sample: Period {
        Period(
            transactionID: AppleID(0),
            start: .earliest,
            end: .earliest,
            firstSigned: .earliest,
            firstAt: .earliest,
            signedDate: .earliest,
            signedAt: .earliest,
            digest: 0,
            position: 0,
            place: 0,
            reason: nil,
            provenance: .jws,
            hasStart: false,
            isUpgraded: false,
            isAdditional: false,
            isCommitment: false,
            offer: .standard
        )
    }

    /// Whether an event carries a transaction of an auto-renewable subscription.
    @inline(__always) static func exists(in events: Events, _ place: Int) -> Bool {
        guard events[place].fact.hasTransaction else { return false }
        // Older payloads lack the type.
        switch events[place].fact.storedTransaction.productType {
        case .autoRenewable: return true
        case nil: return events[place].fact.storedTransaction.expiresDate != nil
        default: return false
        }
    }

    /// Whether the dates of an event's transaction are there and in order.
    @inline(__always) static func hasDates(_ events: Events, _ place: Int) -> Bool {
        guard let start = events[place].fact.storedTransaction.purchaseDate,
            let end = events[place].fact.storedTransaction.expiresDate
        else { return false }
        return start <= end
    }

    /// Reads the transaction of an event that has one of a subscription.
    mutating func read(_ events: Events, _ place: Int, _ head: EventHead) {
        begin(events, place, head)
        settle(events)
    }

    /// Reads of the first version what tells it from others, and what all versions tell.
    @inline(__always) mutating func begin(_ events: Events, _ place: Int, _ head: EventHead) {
        let signedDate = events[place].fact.storedTransaction.signedDate
        self.transactionID = events[place].fact.storedTransaction.transactionID
        self.firstSigned = signedDate
        self.firstAt = head.at
        self.reportedAt = head.isReport ? head.at : nil
        self.firstEnd = events[place].fact.storedTransaction.expiresDate
        self.upgradedAt = events[place].fact.storedTransaction.isUpgraded ? signedDate : nil
        self.signedDate = signedDate
        self.place = place
        self.provenance = head.provenance
        self.recoveredBy = 0
        self.isRefundReported = false
        note(head)
    }

    /// Notes what a notification says of the charge beside the transaction.
    @inline(__always) private mutating func note(_ head: EventHead) {
        switch head.trigger {
        case .recovered where recoveredBy == 0: recoveredBy = head.position
        case .refunded: isRefundReported = true
        default: break
        }
    }

    /// Takes the version in that an event has.
    @inline(__always) mutating func merge(
        _ events: Events,
        _ place: Int,
        _ head: EventHead
    ) -> Anomaly.Kind? {
        // Nearly always it is newer and counts.
        let signedDate = events[place].fact.storedTransaction.signedDate
        guard head.provenance == provenance, signedDate > self.signedDate else {
            settle(events)
            var new = Self.sample
            new.read(events, place, head)
            return merge(new)
        }
        self.signedDate = signedDate
        self.place = place
        firstAt = min(firstAt, head.at)
        if firstEnd == nil { firstEnd = events[place].fact.storedTransaction.expiresDate }
        if head.isReport { reportedAt = Self.earlier(reportedAt, head.at) }
        note(head)
        if events[place].fact.storedTransaction.isUpgraded {
            upgradedAt = Self.earlier(upgradedAt, signedDate)
        }
        return nil
    }

    /// Reads the rest from the version that counts, once it is known.
    @inline(__always) mutating func settle(_ events: Events) {
        let place = self.place
        let purchased = events[place].fact.storedTransaction.purchaseDate
        let start = purchased ?? .earliest
        let expires = events[place].fact.storedTransaction.expiresDate
        let revoked = events[place].fact.storedTransaction.revocationDate
        self.start = start
        self.end = max(start, expires ?? start)
        self.revocation = revoked == nil ? nil : max(revoked ?? start, start)
        self.expiresDate = expires
        self.signedAt = events[place].fact.signedAt ?? events[place].fact.factAt
        self.digest = events[place].fact.storedTransaction.digest
        self.position = events[place].position
        self.productID = events[place].fact.storedTransaction.productID
        self.reason = events[place].fact.storedTransaction.reason
        self.hasStart = purchased != nil
        self.isUpgraded = events[place].fact.storedTransaction.isUpgraded
        self.isAdditional = events[place].fact.storedTransaction.additionalReason != nil
        self.isSupersededEarly = false
        let isMonthly =
            if case .monthly = events[place].fact.storedTransaction.billingPlanType {
                true
            } else {
                false
            }
        self.isCommitment =
            isMonthly
            || events[place].fact.storedTransaction.commitmentExpiresDate != nil
        self.offer = OfferPhase(events, place)
    }

    /// Takes another version in, or the same purchase under another number.
    @inline(never) mutating func merge(_ new: Period) -> Anomaly.Kind? {
        // Once Apple signed a version, nothing unsigned has a say in any part of it.
        if new.isSigned != isSigned {
            if new.isSigned { self = new }
            return nil
        }
        let isConflict =
            new.signedDate == signedDate && new.digest != digest && new.provenance == provenance
        let isFirst = new.firstSigned < self.firstSigned
        let firstSigned = min(self.firstSigned, new.firstSigned)
        let firstAt = min(self.firstAt, new.firstAt)
        let firstEnd =
            isFirst ? new.firstEnd ?? self.firstEnd : self.firstEnd ?? new.firstEnd
        let reportedAt = Self.earlier(self.reportedAt, new.reportedAt)
        let upgradedAt = Self.earlier(self.upgradedAt, new.upgradedAt)
        let recoveredBy = self.recoveredBy == 0 ? new.recoveredBy : self.recoveredBy
        let isRefundReported = self.isRefundReported || new.isRefundReported
        if EventOrder.wins(new, over: self) { self = new }
        self.firstSigned = firstSigned
        self.firstAt = firstAt
        self.firstEnd = firstEnd
        self.reportedAt = reportedAt
        self.upgradedAt = upgradedAt
        self.recoveredBy = recoveredBy
        self.isRefundReported = isRefundReported
        return isConflict ? .orderConflict : nil
    }

    private static func earlier(_ left: Timestamp?, _ right: Timestamp?) -> Timestamp? {
        guard let left, let right else { return left ?? right }
        return min(left, right)
    }

    /// Up to when what renewal info told counts from the period's start on.
    ///
    /// That is so for the event that reports the purchase, signed a little after it. A notice
    /// that came first later on tells nothing of the time before it.
    var knownFromStart: Timestamp {
        guard let reportedAt, reportedAt <= firstAt else { return start }
        return reportedAt
    }

    /// Whether Apple signed the version that counts.
    var isSigned: Bool { provenance == .jws }

    /// Whether the dates of a period are there and in order.
    var hasDates: Bool {
        guard hasStart, let expiresDate else { return false }
        return start <= expiresDate
    }

    /// The length of the period before any extension.
    var length: Milliseconds {
        Milliseconds(
            rawValue: max(0, (firstEnd ?? start).milliseconds - start.milliseconds)
        )
    }

    @inline(__always) static func precedes(_ left: Period, _ right: Period) -> Bool {
        if left.start != right.start { return left.start < right.start }
        if left.end != right.end { return left.end < right.end }
        return left.digest < right.digest
    }
}

/// Renewal info at its place in the signed history; what it says is in the event at `place`.
struct RenewalRecord {
    /// When the whole event was signed.
    var at: Timestamp
    var signedDate: Timestamp
    var position: Int64
    var place: Int
    var provenance: Provenance
    var isInBillingRetryPeriod: Bool

    /// Renewal info that says nothing, to be read into.
    static var sample: RenewalRecord {
        RenewalRecord(
            at: .earliest,
            signedDate: .earliest,
            position: 0,
            place: 0,
            provenance: .jws,
            isInBillingRetryPeriod: false
        )
    }

    /// Reads the renewal info of an event that has one.
    @inline(__always) mutating func read(_ events: Events, _ place: Int, _ head: EventHead) {
        at = head.at
        signedDate = events[place].fact.storedRenewal.signedDate
        position = head.position
        self.place = place
        provenance = head.provenance
        isInBillingRetryPeriod = events[place].fact.storedRenewal.isInBillingRetryPeriod == true
    }

    @inline(__always) func wins(over other: RenewalRecord, _ events: Events) -> Bool {
        EventOrder.wins(self, over: other, events)
    }
}

extension OfferPhase {
    /// What kind of period a transaction is.
    @inline(__always) init(_ events: Events, _ place: Int) {
        // Field by field: handing the transaction over would copy all of it.
        if case .freeTrial = events[place].fact.storedTransaction.offerDiscountType {
            self = .trial
            return
        }
        switch events[place].fact.storedTransaction.offerType {
        case nil: self = .standard
        case 1: self = .intro
        case 2: self = .promotional
        case 3: self = .offerCode
        case 4: self = .winBack
        default: self = .unknown
        }
    }
}

extension PriceConsent {
    /// What Apple's `priceIncreaseStatus` says.
    @inline(__always) init(status: Int32?) {
        switch status {
        case 0: self = .pending
        case 1: self = .accepted
        default: self = .none
        }
    }
}

extension RenewalIntent {
    /// What Apple's `autoRenewStatus` says.
    @inline(__always) init(status: Int32?) {
        switch status {
        case 0: self = .off
        case 1: self = .on
        default: self = .unknown
        }
    }
}

/// What the facts of one subscription add up to: one register for each transaction, the signed
/// histories of renewal info and status, and markers of what notifications announced.
///
/// Last writer wins by the inner `signedDate`, in each register on its own: a refund carries the
/// refunded transaction, which may be an old one.
struct Registers: ~Copyable {
    var periods = Pool(like: Period.sample)
    var renewals = Pool(like: RenewalRecord.sample)
    /// Whether each renewal info came after the one before it and counts more, as nearly always:
    /// then they are in order, and of several the last one counts.
    private(set) var renewalsRise = true
    /// Whether Apple signed any renewal info of those taken in.
    private var hasSignedRenewal = false
    var statuses = Pool<StatusRecord>()
    var markers = Pool<Marker>()
    var answers: [AnswerRecord] = []
    var reversals: [RefundReversal] = []
    var seatRefunds: [SeatRefund] = []
    /// The newest `signedDate` of any signed transaction.
    var newestTransactionSigned: Timestamp?

    /// Whether any failed charge was announced or implied.
    var hasFailures: Bool { !troubles.isEmpty || hasRecoveries }
    /// Whether any charge was reported as the recovery of a failed one.
    private(set) var hasRecoveries = false
    /// When each was, in order.
    private(set) var troubles = Pool<Trouble>()

    /// Whether the stream is plain: periods that follow on one another, none of which failed to renew
    /// or was taken back.
    ///
    /// What others need is left out for it, by the same rules.
    private(set) var isPlain = false

    /// Which period an unsigned answer to an extension moved the end of, by its place.
    private(set) var provisionalPeriod: Int?
    /// The event that holds that answer.
    private(set) var provisionalPosition: Int64 = 0

    private var index: [AppleID: Int] = [:]
    private var refundedSeats: [AppleID: Int32] = [:]

    /// Past so many transactions a dictionary finds them faster than a search from the end.
    private static let searchMax = 24

    mutating func reset() {
        periods.reset()
        renewals.reset()
        renewalsRise = true
        hasSignedRenewal = false
        hasRecoveries = false
        statuses.reset()
        markers.reset()
        if !answers.isEmpty { answers.removeAll(keepingCapacity: true) }
        if !reversals.isEmpty { reversals.removeAll(keepingCapacity: true) }
        if !seatRefunds.isEmpty { seatRefunds.removeAll(keepingCapacity: true) }
        if !refundedSeats.isEmpty { refundedSeats.removeAll(keepingCapacity: true) }
        if !index.isEmpty { index.removeAll(keepingCapacity: true) }
        newestTransactionSigned = nil
        troubles.reset()
        provisionalPeriod = nil
    }

    /// Takes in the version of a transaction that an event carries; returns its oddity.
    @inline(__always) mutating func applyTransaction(
        _ events: Events,
        _ place: Int,
        _ head: EventHead
    ) -> Anomaly.Kind? {
        let signedDate = events[place].fact.storedTransaction.signedDate
        if head.provenance == .jws {
            newestTransactionSigned = max(newestTransactionSigned ?? signedDate, signedDate)
        }
        let id = events[place].fact.storedTransaction.transactionID
        if let seats = events[place].fact.storedTransaction.revokedSeatQuantity {
            note(seats, of: id, at: signedDate, head)
        } else if head.trigger == .refundReversed, !refundedSeats.isEmpty,
            refundedSeats[id] ?? 0 > 0
        {
            note(0, of: id, at: signedDate, head)
        }
        if head.trigger == .recovered { hasRecoveries = true }
        if let known = self.place(of: id) {
            let old = periods[known].place
            let isOfOneKind = periods[known].isSigned == (head.provenance == .jws)
            let oddity = periods.update(known) { $0.merge(events, place, head) }
            if isOfOneKind, let revoked = events[old].fact.storedTransaction.revocationDate,
                events[periods[known].place].fact.storedTransaction.revocationDate == nil
            {
                let start = events[old].fact.storedTransaction.purchaseDate ?? .earliest
                let revocation = max(revoked, start)
                reversals.append(
                    RefundReversal(
                        transactionID: id,
                        revokedAt: revocation,
                        revocationType: events[old].fact.storedTransaction.revocationType,
                        revocationPercentage: events[old].fact.storedTransaction
                            .revocationPercentage,
                        reversedAt: max(revocation, signedDate),
                        refundPosition: events[old].position,
                        position: head.position
                    )
                )
            }
            return oddity
        }
        if periods.count >= Self.searchMax { index[id] = periods.count }
        let place = (event: place, period: periods.extend())
        periods.update(place.period) { $0.begin(events, place.event, head) }
        if periods.count == Self.searchMax { indexAll() }
        return Period.hasDates(events, place.event) ? nil : .missingDates
    }

    /// Takes in the renewal info that an event carries; returns its oddity.
    @inline(__always) mutating func applyRenewal(
        _ events: Events,
        _ place: Int,
        _ head: EventHead
    ) -> Anomaly.Kind? {
        // From the first signed one on, what a receipt says of renewal is no news.
        if head.provenance == .jws {
            hasSignedRenewal = true
        } else if hasSignedRenewal {
            return nil
        }
        let last = renewals.count - 1
        renewals.update(renewals.extend()) { $0.read(events, place, head) }
        if renewals[last + 1].isInBillingRetryPeriod { troubles.append(Trouble(at: head.at)) }
        guard last >= 0 else { return nil }
        if renewalsRise {
            let isNewer =
                renewals[last + 1].signedDate > renewals[last].signedDate
                && renewals[last + 1].provenance == renewals[last].provenance
            renewalsRise =
                renewals[last].at <= head.at
                && (isNewer || renewals[last + 1].wins(over: renewals[last], events))
        }
        guard renewals[last].signedDate == renewals[last + 1].signedDate else { return nil }
        return events[renewals[last].place].fact.storedRenewal.digest
            != events[place].fact.storedRenewal.digest ? .orderConflict : nil
    }

    /// The renewal info that counts of those at some places; -1 where there is none.
    @inline(__always) func newestRenewal(of places: Range<Int>, _ events: Events) -> Int {
        guard renewalsRise else { return searchNewestRenewal(of: places, events) }
        return places.isEmpty ? -1 : places.upperBound - 1
    }

    @inline(never) private func searchNewestRenewal(of places: Range<Int>, _ events: Events) -> Int
    {
        var newest = -1
        for place in places
        where newest < 0 || renewals[place].wins(over: renewals[newest], events) {
            newest = place
        }
        return newest
    }

    /// Takes in Apple's status.
    mutating func applyStatus(_ record: StatusRecord) {
        if record.status == 3 || record.status == 4 { troubles.append(Trouble(at: record.at)) }
        statuses.append(record)
    }

    /// Takes in what a notification announced.
    mutating func apply(_ marker: Marker) {
        switch marker.kind {
        case .failed, .graceEnded, .expired(.billingRetry):
            troubles.append(Trouble(at: marker.at))
        case .expired: break
        }
        markers.append(marker)
    }

    /// Puts everything in order once all facts are in.
    mutating func finish(_ events: Events) {
        if !renewalsRise {
            renewals.sortIfNeeded {
                $0.at != $1.at ? $0.at < $1.at : $1.wins(over: $0, events)
            }
        }
        statuses.sortIfNeeded { $0.at < $1.at }
        markers.sortIfNeeded { $0.at < $1.at }
        troubles.sortIfNeeded { $0.at < $1.at }
        isPlain = renewalsRise && !hasFailures && answers.isEmpty
        for place in periods.indices {
            periods.update(place) { $0.settle(events) }
            if isPlain { isPlain = follows(place) }
        }
        if isPlain { return }
        periods.sortIfNeeded(Period.precedes)
        mergeDoubles(events)
        supersedeEarly()
        if !answers.isEmpty { applyProvisionalExtension() }
    }

    /// Whether a period stands as it was bought, and begins and was first signed after the one
    /// before it, which had ended then.
    @inline(__always) private func follows(_ place: Int) -> Bool {
        let isWhole = periods.read(place) { period in
            period.hasStart && period.expiresDate != nil && period.start < period.end
                && period.revocation == nil && !period.isUpgraded && !period.isAdditional
        }
        guard isWhole else { return false }
        return place == 0
            || periods[place].start >= periods[place - 1].end
                && periods[place].firstSigned > periods[place - 1].firstSigned
    }

    /// Marks the renewals that were charged before their time and whose plan was changed before they
    /// began: the purchase supersedes what was paid for already, though it does not lie within it.
    private mutating func supersedeEarly() {
        for place in periods.indices
        where periods[place].firstSigned < periods[place].start
            && periods[place].start < periods[place].firstSigned.adding(Clock.earlyChargeMax)
            && periods[place].reason == .renewal && !periods[place].isAdditional
        {
            var other = place - 1
            while other >= 0, periods[other].start > periods[place].firstSigned {
                if periods[other].start < periods[place].start,
                    periods[other].reason == .purchase, !periods[other].isAdditional,
                    periods[other].revocation == nil,
                    periods[other].productID != periods[place].productID
                {
                    periods.update(place) { $0.isSupersededEarly = true }
                }
                other -= 1
            }
        }
    }

    /// Makes one period of those that are one purchase under two numbers.
    ///
    /// Apple's client and its server were seen to number one purchase differently; the order line
    /// is the same, and so is the start.
    private mutating func mergeDoubles(_ events: Events) {
        var doubles: [Int] = []
        var last = periods.count - 1
        while last > 0 {
            var first = last
            while first > 0, periods[first - 1].start == periods[last].start { first -= 1 }
            if first < last { mergeDoubles(among: first...last, into: &doubles, events) }
            last = first - 1
        }
        if !doubles.isEmpty { removePeriods(at: doubles.sorted()) }
    }

    /// Merges each purchase of those that begin together into its first place, and notes the rest.
    private mutating func mergeDoubles(
        among places: ClosedRange<Int>,
        into doubles: inout [Int],
        _ events: Events
    ) {
        var later: [AppleID: Int] = [:]
        for place in places.reversed() where !periods[place].isAdditional {
            guard let line = events[periods[place].place].fact.storedTransaction.webOrderLineItemID
            else { continue }
            if let double = later.updateValue(place, forKey: line) {
                _ = periods[place].merge(periods[double])
                doubles.append(double)
            }
        }
    }

    /// Removes the periods at some places, which are in order.
    private mutating func removePeriods(at places: [Int]) {
        var (kept, next) = (places[0], 0)
        for place in places[0]..<periods.count {
            if next < places.count, places[next] == place {
                next += 1
            } else {
                periods[kept] = periods[place]
                kept += 1
            }
        }
        periods.removeLast(periods.count - kept)
    }

    /// Keeps each number of refunded seats that a transaction comes to.
    private mutating func note(
        _ seats: Int32,
        of id: AppleID,
        at signedDate: Timestamp,
        _ head: EventHead
    ) {
        let known = refundedSeats.updateValue(seats, forKey: id) ?? 0
        guard seats != known else { return }
        seatRefunds.append(
            SeatRefund(transactionID: id, at: signedDate, seats: seats, position: head.position)
        )
    }

    /// Whether a failed charge was announced or implied in a stretch of time; without one there is
    /// nothing to find.
    @inline(__always) func hasTrouble(since: Timestamp, before cut: Timestamp?) -> Bool {
        let count = troubles.count
        // They lie close together, mostly before or behind what is asked for.
        guard count > 0, troubles[count - 1].at >= since else { return false }
        guard let cut else { return true }
        guard troubles[0].at < cut else { return false }
        return !troubles.range(since: since, before: cut).isEmpty
    }

    /// What kind of period it is.
    func offer(_ number: Int, _ events: Events) -> OfferPhase {
        periods[number].offer
    }

    /// The length of the plan of a period that configuration does not know: that of the first
    /// period of its product which is no offer's, no added seat's and no payment of a commitment, or
    /// else its own.
    func planLength(_ number: Int, _ events: Events) -> Milliseconds {
        guard let product = periods[number].productID,
            let length = planLength(of: product, events)
        else { return periods[number].length }
        return length
    }

    func planLength(
        of product: Symbol,
        _ events: Events
    ) -> Milliseconds? {
        for place in periods.indices
        where periods[place].productID == product && !periods[place].isAdditional
            && !periods[place].isCommitment && periods[place].hasDates
            && offer(place, events) == .standard
        {
            return periods[place].length
        }
        return nil
    }

    @inline(__always) private func place(of id: AppleID) -> Int? {
        if periods.count >= Self.searchMax { return index[id] }
        // From the last to the first: news are mostly of the last.
        var place = periods.count - 1
        while place >= 0 {
            if periods[place].transactionID == id { return place }
            place -= 1
        }
        return nil
    }

    private mutating func indexAll() {
        for place in periods.indices { index[periods[place].transactionID] = place }
    }

    /// Moves the end of the last live period to what Apple's unsigned answer promised, until a
    /// transaction signed after the answer is there.
    private mutating func applyProvisionalExtension() {
        guard let answer = answers.max(by: { ($0.at, $0.position) < ($1.at, $1.position) }),
            newestTransactionSigned.map({ $0 <= answer.at }) ?? true,
            let place = periods.indices.last(where: { periods[$0].revocation == nil }),
            let end = periods[place].expiresDate, end < answer.effectiveDate
        else { return }
        periods[place].end = max(periods[place].start, answer.effectiveDate)
        provisionalPeriod = place
        provisionalPosition = answer.position
    }
}

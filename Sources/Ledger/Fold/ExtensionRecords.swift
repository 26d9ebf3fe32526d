/// Makes one record of all that belongs to one request to extend, and one of each extension that
/// nobody here asked for.
///
/// Apple's `RENEWAL_EXTENDED` names no request. It is matched by the new end: the one that the
/// answer promised, or, where the answer was lost, the one that was asked for. A mass extension
/// is a stream of its own, which the fold of one subscription does not see: what matches no
/// request of this stream is `external` here, and the views look for a mass request that explains
/// it. So the rows of a subscription stay a function of its own events.
///
/// All is decided by the facts' own instants, never by the order of arrival.
enum ExtensionRecords {
    /// Adds the records to a history whose timeline is there.
    static func append(to history: inout History, _ events: Events) {
        var records = requests(events)
        var versions = SignedVersions(events)
        for place in records.indices { confirm(&records[place], &versions) }
        for place in records.indices { contradict(&records[place], &versions) }
        for place in records.indices { fill(&records[place], history, events, versions) }
        for place in versions.unmatchedNotices() {
            records.append(external(versions.versions[place], history, events, versions))
        }
        for place in versions.failures() {
            records.append(failure(versions.versions[place], history, events, versions))
        }
        records.sort { ($0.at, $0.request?.bits ?? .max) < ($1.at, $1.request?.bits ?? .max) }
        history.extensions.append(contentsOf: records)
    }

    // MARK: - Our own events

    private static func requests(_ events: Events) -> [ExtensionRecord] {
        var places: [UniqueID: Int] = [:]
        var drafts: [Draft] = []
        for place in 0..<events.count {
            guard let step = events[place].fact.extensionStep else { continue }
            let known = places[step.request]
            if known == nil {
                places[step.request] = drafts.count
                drafts.append(Draft(request: step.request))
            }
            drafts[known ?? drafts.count - 1].add(events[place], step)
        }
        var records = drafts.compactMap(\.record)
        records.sort { ($0.at, $0.request?.bits ?? 0) < ($1.at, $1.request?.bits ?? 0) }
        return records
    }

    /// The steps of one request while they are gathered.
    private struct Draft {
        var request: UniqueID
        var isMass = false
        var days: Int32?
        var askedUntil: Timestamp?
        var attempts: Int32 = 0
        var resolution: ExtensionStep.Resolution?
        var requested, refused, approved, rejected: ExtensionRecord.Step?
        var submitted, resolved: ExtensionRecord.Step?
        /// The answers that say what Apple did, and those that do not.
        var answers: [Answer] = []

        struct Answer {
            var step: ExtensionRecord.Step
            var attempt: Int32
            /// Nil where nothing is known.
            var success: Bool?
            var effectiveDate: Timestamp?
        }

        init(request: UniqueID) { self.request = request }

        mutating func add(_ event: Event, _ step: ExtensionStep) {
            let at = ExtensionRecord.Step(position: event.position, at: event.fact.factAt)
            switch event.fact.kind {
            case .extensionRequested, .massExtensionRequested:
                isMass = event.fact.kind == .massExtensionRequested
                days = step.detail
                askedUntil = step.until
                requested = earlier(requested, at)
            case .extensionRefused: refused = earlier(refused, at)
            case .extensionApproved, .massExtensionApproved: approved = earlier(approved, at)
            case .extensionRejected, .massExtensionRejected: rejected = earlier(rejected, at)
            case .extensionSubmitted, .massExtensionSubmitted:
                attempts = max(attempts, step.detail)
                submitted = earlier(submitted, at)
            case .extensionAnswered, .massExtensionAnswered:
                answers.append(
                    Answer(
                        step: at,
                        attempt: step.detail,
                        success: event.fact.extensionAnswer?.success,
                        effectiveDate: event.fact.extensionAnswer?.effectiveDate
                    )
                )
            case .extensionUnanswered, .massExtensionUnanswered:
                answers.append(Answer(step: at, attempt: step.detail))
            case .extensionResolved:
                resolved = earlier(resolved, at)
                resolution = ExtensionStep.Resolution(rawValue: step.detail)
            default: break
            }
        }

        /// The same step told twice counts once.
        private func earlier(
            _ old: ExtensionRecord.Step?,
            _ new: ExtensionRecord.Step
        ) -> ExtensionRecord.Step {
            guard let old, (old.at, old.position) <= (new.at, new.position) else { return new }
            return old
        }

        /// The record; nil where the request itself is not there, which the log does not allow.
        var record: ExtensionRecord? {
            guard let requested else { return nil }
            var record = ExtensionRecord(request: request, at: requested.at, outcome: .requested)
            record.isMass = isMass
            record.daysRequested = days
            record.attempts = attempts
            record.requested = requested
            record.refused = refused
            record.approved = approved
            record.rejected = rejected
            record.submitted = submitted
            record.resolved = resolved
            record.resolution = resolution
            if let askedUntil, let days {
                record.expiresBefore = askedUntil.adding(.days(-Int64(days)))
            }
            // An answer that says what was done outranks one that does not; then the later one.
            let last = answers.max { left, right in
                (left.success == nil ? 0 : 1, left.attempt, left.step.at, left.step.position)
                    < (
                        right.success == nil ? 0 : 1, right.attempt, right.step.at,
                        right.step.position
                    )
            }
            record.answered = last?.step
            record.expiresAcked = last?.success == true ? last?.effectiveDate : nil
            record.outcome = outcome(last)
            return record
        }

        private func outcome(_ last: Answer?) -> ExtensionRecord.Outcome {
            if refused != nil || rejected != nil { return .refusedLocally }
            guard submitted != nil else { return .requested }
            if last?.success == true || resolution == .extended { return .accepted }
            return last?.success == false ? .refusedByApple : .unknown
        }
    }

    // MARK: - What Apple signed

    /// Looks for what Apple signed of a request: its notification, or else any transaction that
    /// has the end that was promised.
    private static func confirm(
        _ record: inout ExtensionRecord,
        _ signed: inout SignedVersions
    ) {
        guard !record.isMass, record.outcome == .accepted || record.outcome == .unknown,
            let wanted = record.promisedEnd
        else { return }
        if let place = signed.firstNotice(until: wanted) {
            signed.isMatched[place] = true
            record.take(signed.versions[place], as: .confirmed)
            return
        }
        // An operator's word that nothing was done does not outweigh Apple's signature, but the
        // clocks must agree that this end came after the request.
        guard let submitted = record.submitted,
            let place = signed.firstVersion(until: wanted, signedAfter: submitted.at)
        else { return }
        record.take(signed.versions[place], as: .confirmed)
    }

    /// An answer that promised an end, after which Apple signed another one for the same
    /// transaction.
    private static func contradict(_ record: inout ExtensionRecord, _ signed: inout SignedVersions)
    {
        guard !record.isMass, record.outcome == .accepted, let answered = record.answered,
            let before = record.expiresBefore,
            let transaction = signed.transaction(endingAt: before)
        else { return }
        if let place = signed.firstNotice(of: transaction, signedAfter: answered.at) {
            signed.isMatched[place] = true
            record.take(signed.versions[place], as: .contradicted)
        } else if let place = signed.firstVersion(of: transaction, signedAfter: answered.at) {
            record.take(signed.versions[place], as: .contradicted)
        }
    }

    private static func external(
        _ version: SignedVersions.Version,
        _ history: borrowing History,
        _ events: Events,
        _ signed: SignedVersions
    ) -> ExtensionRecord {
        var record = ExtensionRecord(request: nil, at: version.signedDate, outcome: .external)
        record.take(version, as: .external)
        if let before = signed.before(version) {
            record.expiresBefore = signed.versions[before].expiresDate
            record.expiresBeforePosition = signed.versions[before].position
        }
        fill(&record, history, events, signed)
        return record
    }

    /// What a mass extension could not do for this subscription.
    private static func failure(
        _ version: SignedVersions.Version,
        _ history: borrowing History,
        _ events: Events,
        _ signed: SignedVersions
    ) -> ExtensionRecord {
        var record = ExtensionRecord(
            request: nil,
            at: version.signedDate,
            outcome: .refusedByApple
        )
        record.answered = .init(position: version.position, at: version.signedDate)
        record.expiresBefore = version.expiresDate
        record.expiresBeforePosition = version.position
        fill(&record, history, events, signed)
        return record
    }

    /// Adds what the whole history says of the time and the transaction.
    private static func fill(
        _ record: inout ExtensionRecord,
        _ history: borrowing History,
        _ events: Events,
        _ signed: SignedVersions
    ) {
        record.owner = history.owner(at: record.at)
        record.stateBefore = history.state(
            at: Timestamp(milliseconds: record.at.milliseconds - 1)
        )
        if let after = record.confirmed ?? (record.outcome == .accepted ? record.answered : nil) {
            record.stateAfter = history.state(at: after.at)
        }
        var place = signed.place(ofEvent: record.confirmed?.position)
        if let before = record.expiresBefore, let known = signed.version(endingAt: before) {
            if record.expiresBeforePosition == 0 {
                record.expiresBeforePosition = signed.versions[known].position
            }
            place = place ?? known
        }
        guard let place else { return }
        let event = signed.versions[place].place
        record.transactionID = events[event].fact.storedTransaction.transactionID
        record.webOrderLineItemID = events[event].fact.storedTransaction.webOrderLineItemID
        record.productID = events[event].fact.storedTransaction.productID
        record.storefront = events[event].fact.storedTransaction.storefront
        record.ownership = events[event].fact.storedTransaction.ownership
    }
}

/// The versions of transactions that Apple signed, in the order of their signatures.
private struct SignedVersions {
    struct Version {
        var transactionID: AppleID
        var signedDate: Timestamp
        var digest: UInt64
        var expiresDate: Timestamp
        var position: Int64
        /// Where its event stands.
        var place: Int
        /// Whether it came with `RENEWAL_EXTENDED`.
        var isNotice: Bool
        /// Whether it came with `RENEWAL_EXTENSION` and `FAILURE`.
        var isFailure: Bool

        /// Notices first, then failures, then what says neither.
        var rank: Int { isNotice ? 0 : isFailure ? 1 : 2 }
    }

    private(set) var versions: [Version] = []
    /// Which notices belong to a request.
    var isMatched: [Bool] = []

    init(_ events: Events) {
        versions.reserveCapacity(events.count)
        // Nearly always each was signed after the one before it.
        var rises = true
        for place in 0..<events.count {
            guard events[place].fact.provenance == .jws, events[place].fact.hasTransaction,
                let expires = events[place].fact.storedTransaction.expiresDate
            else { continue }
            let signedDate = events[place].fact.storedTransaction.signedDate
            if rises, let last = versions.last { rises = last.signedDate < signedDate }
            versions.append(
                Version(
                    transactionID: events[place].fact.storedTransaction.transactionID,
                    signedDate: signedDate,
                    digest: events[place].fact.storedTransaction.digest,
                    expiresDate: expires,
                    position: events[place].position,
                    place: place,
                    isNotice: events[place].fact.notificationType == .renewalExtended,
                    isFailure: events[place].fact.notificationType == .renewalExtension
                        && events[place].fact.subtype == .failure
                )
            )
        }
        if !rises { order() }
        isMatched = [Bool](repeating: false, count: versions.count)
    }

    private mutating func order() {
        versions.sort {
            ($0.signedDate, $0.digest, $0.rank, $0.position)
                < ($1.signedDate, $1.digest, $1.rank, $1.position)
        }
        // What is told twice, or in two forms, is one extension, one failure or one version.
        versions = versions.reduce(into: []) { kept, new in
            if let old = kept.last, old.rank == new.rank, old.signedDate == new.signedDate,
                old.digest == new.digest
            {
                return
            }
            kept.append(new)
        }
    }

    func firstNotice(until end: Timestamp) -> Int? {
        versions.indices.first {
            versions[$0].isNotice && !isMatched[$0] && versions[$0].expiresDate == end
        }
    }

    func firstNotice(of transaction: AppleID, signedAfter instant: Timestamp) -> Int? {
        versions.indices.first {
            versions[$0].isNotice && !isMatched[$0] && versions[$0].signedDate > instant
                && versions[$0].transactionID == transaction
        }
    }

    func firstVersion(until end: Timestamp, signedAfter instant: Timestamp) -> Int? {
        versions.firstIndex { $0.expiresDate == end && $0.signedDate > instant }
    }

    func firstVersion(of transaction: AppleID, signedAfter instant: Timestamp) -> Int? {
        versions.firstIndex { $0.transactionID == transaction && $0.signedDate > instant }
    }

    /// The last version that has an end.
    func version(endingAt end: Timestamp) -> Int? {
        versions.lastIndex { $0.expiresDate == end }
    }

    func transaction(endingAt end: Timestamp) -> AppleID? {
        version(endingAt: end).map { versions[$0].transactionID }
    }

    /// The last version of the same transaction before one that says another end.
    func before(_ version: Version) -> Int? {
        versions.lastIndex {
            $0.transactionID == version.transactionID && $0.signedDate < version.signedDate
                && $0.expiresDate != version.expiresDate
        }
    }

    func place(ofEvent position: Int64?) -> Int? {
        position.flatMap { position in versions.firstIndex { $0.position == position } }
    }

    func failures() -> [Int] { versions.indices.filter { versions[$0].isFailure } }

    func unmatchedNotices() -> [Int] {
        versions.indices.filter { versions[$0].isNotice && !isMatched[$0] }
    }
}

extension ExtensionRecord {
    /// The end that Apple's answer promises; where there is no answer, the one that was asked for.
    fileprivate var promisedEnd: Timestamp? {
        if let expiresAcked { return expiresAcked }
        guard let expiresBefore, let daysRequested else { return nil }
        return expiresBefore.adding(.days(Int64(daysRequested)))
    }

    fileprivate mutating func take(_ version: SignedVersions.Version, as outcome: Outcome) {
        confirmed = Step(position: version.position, at: version.signedDate)
        expiresConfirmed = version.expiresDate
        self.outcome = outcome
    }
}

extension History {
    /// The state at an instant; nil before the first purchase.
    fileprivate func state(at instant: Timestamp) -> SubscriptionState? {
        timeline.last { $0.from <= instant }?.state
    }

    /// The owner at an instant; each follows on the one before, and the last one stays.
    fileprivate func owner(at instant: Timestamp) -> UniqueID? {
        ownership.last { $0.from <= instant }?.owner
    }
}

/// Makes one case of each wish for a refund.
///
/// Requests about one charge are one case until Apple decides; a request after that is the next
/// one. All is decided by the instants at which Apple signed, never by the order of arrival.
enum RefundCases {
    /// What one event says of a case.
    private struct Word {
        var at: Timestamp
        var decision: RefundCase.Decision?
        var transactionID: AppleID?
        var position: Int64
        /// When a version of the charge says that it was taken back; nil for a notification.
        var revokedAt: Timestamp?
        /// Why the customer wishes for it, as Apple spells it.
        var reason: Symbol?

        /// At one instant the request comes first, since nothing is decided that was not asked for;
        /// of two reasons the later one in the alphabet counts.
        static func precedes(_ left: Word, _ right: Word) -> Bool {
            if left.at != right.at { return left.at < right.at }
            if left.rank != right.rank { return left.rank < right.rank }
            if left.reason != right.reason {
                guard let before = left.reason, let after = right.reason else {
                    return left.reason == nil
                }
                return before.text < after.text
            }
            return left.position < right.position
        }

        private var rank: Int {
            switch decision {
            case nil: 0
            case .refunded: 1
            case .declined: 2
            }
        }
    }

    /// Adds the cases in the order in which they were opened.
    static func append(to cases: inout [RefundCase], _ events: Events) {
        var words: [Word] = []
        var asked: Set<AppleID?> = []
        for place in 0..<events.count {
            guard let word = word(events, place) else { continue }
            words.append(word)
            if word.decision == nil { asked.insert(word.transactionID) }
        }
        words.removeAll { !asked.contains($0.transactionID) }
        words.sort(by: Word.precedes)
        var open: [AppleID?: Int] = [:]
        for word in words {
            guard let decision = word.decision else {
                ask(word, &cases, &open)
                continue
            }
            guard let place = open[word.transactionID],
                word.revokedAt.map({ $0 >= cases[place].askedAt }) ?? true
            else { continue }
            open[word.transactionID] = nil
            cases[place].decision = decision
            cases[place].decidedAt = word.at
            cases[place].decisionPosition = word.position
        }
    }

    private static func ask(
        _ word: Word,
        _ cases: inout [RefundCase],
        _ open: inout [AppleID?: Int]
    ) {
        guard let place = open[word.transactionID] else {
            open[word.transactionID] = cases.count
            cases.append(
                RefundCase(
                    transactionID: word.transactionID,
                    askedAt: word.at,
                    lastAskedAt: word.at,
                    reason: word.reason.map { ConsumptionRequestReason($0.text) },
                    position: word.position
                )
            )
            return
        }
        if let reason = word.reason { cases[place].reason = ConsumptionRequestReason(reason.text) }
        // The same request told twice counts once.
        guard cases[place].lastAskedAt < word.at else { return }
        cases[place].lastAskedAt = word.at
        cases[place].requests += 1
    }

    /// What an event says of a case, nil for nothing.
    private static func word(_ events: Events, _ place: Int) -> Word? {
        let head = EventHead(events, place)
        let hasTransaction = events[place].fact.hasTransaction
        var word = Word(
            at: head.at,
            transactionID: hasTransaction
                ? events[place].fact.storedTransaction.transactionID : nil,
            position: head.position
        )
        switch events[place].fact.notificationType {
        case .consumptionRequest: word.reason = events[place].fact.storedConsumptionReason
        case .refundDeclined: word.decision = .declined
        case .refund: word.decision = .refunded
        default:
            // The notice of the refund may be lost; the transaction, read later, still tells of it.
            guard hasTransaction, head.provenance == .jws,
                let revokedAt = events[place].fact.storedTransaction.revocationDate
            else { return nil }
            word.decision = .refunded
            word.revokedAt = revokedAt
        }
        return word
    }
}

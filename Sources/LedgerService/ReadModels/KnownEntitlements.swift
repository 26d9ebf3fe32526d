public import EventLog
internal import Ledger
public import Postgres

/// What was known at an instant or a position of one subscription, or of one owner's.
public struct KnownEntitlements: Hashable, Sendable {
    /// The prefix of the log that was folded.
    public var prefix: LogPrefix
    /// The answers by subscription and app.
    public var answers: [EntitlementAnswer]
}

extension EntitlementQuery {
    /// Answers as if the log ended where somebody asks what was known.
    ///
    /// The read models do not matter: the events up to there are folded anew, under the rules that
    /// were recorded by then.
    ///
    /// - Parameters:
    ///   - knowledge: the instant or position; `at` is the instant that the answers are about.
    ///   - connection: a session that may read the log, without an open transaction.
    /// - Returns: the answers.
    /// - Throws: `.notKnown` for a position that the log has not come to, `.question` where neither
    ///   an owner nor a subscription is named.
    public func known(
        _ knowledge: Knowledge,
        _ connection: Connection
    ) throws(ReadModelError) -> KnownEntitlements {
        try readModels("look up what was known") {
            try connection.transaction("begin isolation level repeatable read read only") {
                connection in
                let prefix = try LogPrefix(knowledge, connection)
                let fold = try PrefixFold(prefix, connection)
                let found = try owner.map { try answers(ofOwner: $0, fold) } ?? answers(fold)
                return KnownEntitlements(
                    prefix: prefix,
                    answers: found.filter { answer in
                        (subscription ?? answer.originalTransactionID)
                            == answer.originalTransactionID
                            && (product == nil || product == answer.productID)
                            && (environment ?? answer.app.environment) == answer.app.environment
                    }
                )
            }
        }
    }

    private func answers(_ fold: PrefixFold) throws -> [EntitlementAnswer] {
        var fold = fold
        guard let subscription else {
            throw ReadModelError(
                .question,
                "what was known is answered for one owner or subscription; for all of them there is "
                    + "`subledger rebuild --known-at … --into NAME`"
            )
        }
        return try fold.reader.keys(ofStream: subscription).compactMap { key in
            try fold.fold(key)?.timeline.first { $0.contains(at) }
        }
    }

    /// The same choice as among the rows of `read_model.owner_timeline`.
    private func answers(ofOwner owner: UniqueID, _ fold: PrefixFold) throws -> [EntitlementAnswer]
    {
        var ownership = PrefixOwnership(owner, fold)
        let holdings = try ownership.holdings().filter { $0.run.contains(at) }
            .sorted { ($0.key, $0.via) < ($1.key, $1.via) }
        var fold = ownership.fold
        var answers: [EntitlementAnswer] = []
        for holding in holdings where answers.last?.key != holding.key {
            let stretch = try fold.fold(holding.key)?.timeline.first { $0.contains(at) }
            guard var answer = stretch else { continue }
            answer.appAccountToken = owner
            answer.via = holding.via
            answer.counts = false
            answers.append(answer)
        }
        var best: [GroupKey: Int] = [:]
        for (place, answer) in answers.enumerated() {
            let group = GroupKey(answer)
            guard let other = best[group] else {
                best[group] = place
                continue
            }
            if answer.countsRather(than: answers[other]) { best[group] = place }
        }
        for place in best.values { answers[place].counts = true }
        return answers
    }
}

/// The subscriptions of which one counts for an owner.
private struct GroupKey: Hashable {
    var app: AppKey
    var id: String

    init(_ answer: EntitlementAnswer) {
        app = answer.app
        // Without a known group each is its own.
        id = answer.subscriptionGroupID ?? answer.originalTransactionID
    }
}

extension EntitlementAnswer {
    /// Entitled, of the highest level, the longest; the order of ids settles the rest.
    fileprivate func countsRather(than other: Self) -> Bool {
        if entitled != other.entitled { return entitled }
        let levels = (level ?? .max, other.level ?? .max)
        if levels.0 != levels.1 { return levels.0 < levels.1 }
        // Without access there is no end, with access none is never.
        let ends = (accessUntil ?? .latest, other.accessUntil ?? .latest)
        if entitled, ends.0 != ends.1 { return ends.0 > ends.1 }
        return originalTransactionID < other.originalTransactionID
    }
}

extension LogPrefix {
    /// The prefix that holds what was known.
    ///
    /// - Throws: `.notKnown` for a position that the log has not come to.
    init(_ knowledge: Knowledge, _ connection: Connection) throws {
        let reader = LogReader(connection)
        guard let prefix = try reader.prefix(of: knowledge) else {
            let head = try reader.head().position
            throw ReadModelError(.notKnown, "the log ends at position \(head)")
        }
        self = prefix
    }

    /// What was known, in words.
    public var sentence: String {
        knownAt.map { "known at \($0), to event \(position)" } ?? "known before the first event"
    }

    /// Writes the members that say what was known; `known_at` is null before everything.
    public func writeMembers(to json: inout JSONWriter) {
        json.member("known_at", knownAt)
        json.member("known_at_position", position)
    }
}

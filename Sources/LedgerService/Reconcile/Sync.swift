package import AppStore
package import EventLog
package import Ledger
internal import Postgres

/// Asks Apple how subscriptions stand: their statuses, and what is new in their history.
///
/// The answers are recorded before anything is made of them. Of a history the `revision` is kept,
/// so that the next reading goes on from there; but not where one of its texts was not taken, which
/// may be our fault (an anchor that is missing, a clock that is wrong) and mended later.
package final class Sync {
    /// What became of one subscription.
    package struct Result: Hashable, Sendable {
        /// Which one, and where it was found.
        package var target: SyncSelection.Target
        /// What was recorded.
        package var recorded = RecordedResponse()
        /// What went wrong; nil where nothing did.
        package var failure: AppStoreAPIError?

        /// Whether there is something that was asked for and is not in the ledger.
        package var isIncomplete: Bool { failure != nil || !recorded.rejected.isEmpty }
    }

    private let clients: AppStoreClients
    private let recorder: ResponseRecorder
    private let now: () -> Timestamp
    private let again: Bool

    /// Makes it.
    ///
    /// - Parameters:
    ///   - clients: who asks.
    ///   - recorder: writes what Apple answers.
    ///   - again: reads whole histories, also what was read before.
    ///   - now: our clock.
    package init(
        _ clients: AppStoreClients,
        _ recorder: ResponseRecorder,
        again: Bool = false,
        now: @escaping () -> Timestamp
    ) {
        self.again = again
        self.clients = clients
        self.recorder = recorder
        self.now = now
    }

    /// Asks about one subscription.
    ///
    /// That Apple does not know it, or does not answer, is part of the result, and noted.
    ///
    /// - Parameter target: which one.
    /// - Returns: what became of it.
    /// - Throws: `EventLogError` or `PostgresError` when the database cannot be used, and
    ///   `AppStoreAPIError` where asking about others would not go better.
    package func run(_ target: SyncSelection.Target) throws -> Result {
        var result = Result(target: target)
        guard let account = clients.account(target.app) else { return result }
        do {
            try ask(account.client, target, &result)
        } catch let error as AppStoreAPIError {
            try recorder.note(error, about: target.id, of: target.app, now: now())
            switch error.kind {
            case .apple(let code) where code.retry == .never: result.failure = error
            case .refusedHere: result.failure = error
            default: throw error
            }
        }
        return result
    }

    /// Finds a transaction that the ledger does not know: where Apple has it.
    ///
    /// Production is asked first. Only its answer that there is no such transaction (4040010) leads
    /// to Sandbox, or for an app that was never released a 401 too: an outage of Production must not
    /// give a Sandbox answer. An app that cannot be asked about keeps no other from being asked.
    ///
    /// - Parameters:
    ///   - id: any transaction id.
    ///   - apps: where to look.
    /// - Returns: where it is; nil where no app has it.
    /// - Throws: `AppStoreAPIError` where it was not found and Apple cannot tell for some app, and
    ///   `EventLogError` or `PostgresError` when the answer cannot be recorded.
    package func find(_ id: String, in apps: [AppKey]) throws -> SyncSelection.Target? {
        var isOpen: Set<String> = []
        var failure: AppStoreAPIError?
        for account in clients.accounts where apps.contains(account.app) {
            let bundleID = account.app.bundleID
            if account.app.environment == .sandbox,
                apps.contains(AppKey(bundleID: bundleID, environment: .production)),
                !isOpen.contains(bundleID)
            {
                continue
            }
            let response: APIResponse
            do throws(AppStoreAPIError) {
                response = try account.client.send(.transactionInfo(id: id))
            } catch {
                let isElsewhere =
                    error.code == .transactionIDNotFound
                    || (error.kind == .unauthorized && account.isUnreleased)
                if isElsewhere {
                    isOpen.insert(bundleID)
                } else {
                    guard error.kind != .stopped else { throw error }
                    failure = failure ?? error
                }
                continue
            }
            _ = try recorder.record(response, about: id)
            return SyncSelection.Target(app: account.app, id: id, reason: .named)
        }
        if let failure { throw failure }
        return nil
    }

    private func ask(
        _ client: AppStoreClient,
        _ target: SyncSelection.Target,
        _ result: inout Result
    ) throws {
        let statuses = try client.send(.subscriptionStatuses(id: target.id))
        result.recorded.add(try recorder.record(statuses, about: target.id))
        let source = APIEndpoint.transactionHistory(id: target.id, .init()).name
        let before = try recorder.withSession { connection, _ in
            try PollBook(connection).entry(target.id, of: target.app, source: source)?.revision
        }
        var recorded = RecordedResponse()
        // What was overtaken may be any of its transactions, not what is new in Apple's list.
        let start = again || target.reason == .overtaken ? nil : before
        let revision = try client.transactionHistory(of: target.id, after: start) { response in
            recorded.add(try recorder.record(response, about: target.id))
        }
        result.recorded.add(recorded)
        guard let revision, revision != before, recorded.rejected.isEmpty else { return }
        try recorder.withSession { connection, _ in
            try PollBook(connection).note(
                target.id,
                of: target.app,
                source: source,
                outcome: "ok",
                revision: revision,
                now: now()
            )
        }
    }
}

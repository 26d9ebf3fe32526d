package import AppStore
internal import Dispatch
internal import EventLog
internal import HTTP
package import Ledger
package import Postgres
internal import Synchronization

/// Gets what was missed while the program serves, on a thread of its own.
///
/// Every some minutes it reads Apple's notification history from where it was read last, an hour
/// back; in between it asks about subscriptions whose news is missing. What is wrong with one app, or
/// with one of Apple's environments, keeps nothing from the others. Of several programs over one
/// database one does so at a time.
package final class ReconcileWorker: Sendable {
    private let options: Options
    private let makeClients: @Sendable (APISurroundings) throws -> AppStoreClients
    private let verifier: Verifier
    private let connect: @Sendable () throws -> Connection
    private let read: @Sendable () throws -> Connection
    private let changed: @Sendable () -> Void
    private let log: ServiceLog
    private let now: @Sendable () -> Timestamp
    private let holder: String
    private let work = MonotonicSemaphore()
    private let isOver = DispatchSemaphore(value: 0)
    private let isStopping = Atomic<Bool>(false)
    private let shouldReload = Atomic<Bool>(false)
    private let state = Mutex(Condition())

    /// Starts it.
    ///
    /// - Parameters:
    ///   - options: how it is set up.
    ///   - verifier: knows the anchors and the accepted apps.
    ///   - clients: makes the clients, with a sleep that ends when it is stopped.
    ///   - connect: opens a session that may append.
    ///   - read: opens a session that may read the read models and the log.
    ///   - changed: told when something was appended.
    ///   - log: where it says what it does.
    ///   - now: our clock.
    package init(
        options: Options = Options(),
        verifier: Verifier,
        clients: @escaping @Sendable (APISurroundings) throws -> AppStoreClients,
        connect: @escaping @Sendable () throws -> Connection,
        read: @escaping @Sendable () throws -> Connection,
        changed: @escaping @Sendable () -> Void,
        log: ServiceLog,
        now: @escaping @Sendable () -> Timestamp
    ) {
        self.options = options
        makeClients = clients
        self.verifier = verifier
        self.connect = connect
        self.read = read
        self.changed = changed
        self.log = log
        self.now = now
        holder =
            UniqueID(
                bits: UInt128(UInt64.random(in: .min ... .max)) << 64
                    | UInt128(UInt64.random(in: .min ... .max))
            ).description
        DispatchQueue(label: "subledger.reconcile").async { [self] in run() }
    }

    /// How it is doing.
    package var condition: Condition { state.withLock { $0 } }

    /// Ends after the request under way.
    package func stop() {
        guard !isStopping.exchange(true, ordering: .acquiringAndReleasing) else { return }
        work.signal()
        isOver.wait()
    }

    /// Has the keys read again before Apple is asked the next time.
    package func reload() {
        shouldReload.store(true, ordering: .releasing)
        work.signal()
    }

    private var shouldStop: Bool { isStopping.load(ordering: .acquiring) }

    private func run() {
        defer { isOver.signal() }
        var clients: AppStoreClients?
        var recorder: ResponseRecorder?
        var settler: ExtensionSettler?
        var agenda = Agenda()
        let turn = Turn(work: "reconcile", holder: holder)
        while !shouldStop {
            var rest = options.restMilliseconds
            do {
                let isReloading = shouldReload.exchange(false, ordering: .acquiringAndReleasing)
                if isReloading || clients == nil {
                    // Where a new key cannot be used the old one stays.
                    let made = try makeClients(surroundings)
                    clients = made
                    settler = self.settler(made)
                    agenda.leaveNobodyAlone()
                }
                if recorder == nil {
                    recorder = ResponseRecorder(run: holder, verifier: verifier, connect: connect)
                }
                if let clients, let recorder {
                    try work(clients, recorder, settler, turn, &agenda)
                    state.withLock { $0.general = nil }
                }
            } catch {
                note(error)
                // An outage of Apple's, or a database that is gone, is not over in a moment.
                rest = max(rest, 60_000)
                if let error = error as? AppStoreAPIError, error.kind == .stopped { break }
            }
            guard !shouldStop else { break }
            _ = work.wait(within: .milliseconds(Int(rest)))
        }
        _ = try? recorder?.withSession { connection, _ in try turn.leave(connection) }
    }

    /// Does what is due, if it is our turn.
    private func work(
        _ clients: AppStoreClients,
        _ recorder: ResponseRecorder,
        _ settler: ExtensionSettler?,
        _ turn: Turn,
        _ agenda: inout Agenda
    ) throws {
        func isOurs() throws -> Bool {
            try recorder.withSession { connection, _ in try turn.take(connection) }
        }
        guard try isOurs() else { return }
        // First what an operator waits for; it is little.
        if let settler { try settle(settler, isOurs) }
        for account in clients.accounts where !shouldStop && isBackfillDue(account.app, agenda) {
            let start = now()
            let reading = try asking(account.app, &agenda) {
                try backfill(account, recorder, isOurs)
            }
            switch reading {
            case .whole:
                agenda.dueAt[account.app] = start.adding(.minutes(options.backfillMinutes))
                settle("notifications", of: account.app, nil)
            case .refused(let what):
                settle("notifications", of: account.app, what)
                let rest = max(Self.refusedRest, .minutes(options.backfillMinutes))
                agenda.dueAt[account.app] = start.adding(rest)
            case .stopped, nil: continue
            }
            agenda.backfilledAt[account.app] = start
        }
        guard !shouldStop else { return }
        let all = clients.accounts.map { agenda.backfilledAt[$0.app] }
        if !all.contains(nil) {
            state.withLock { $0.backfilledAt = all.compactMap(\.self).min() }
        }
        if options.syncs { try sync(clients, recorder, &agenda, isOurs) }
    }

    /// Asks about one app, which is left alone for a while where Apple cannot be asked about it.
    ///
    /// - Returns: what `body` returns; nil where it came to nothing.
    private func asking<Value>(
        _ app: AppKey,
        _ agenda: inout Agenda,
        _ body: () throws -> Value
    ) throws -> Value? {
        do {
            let value = try body()
            agenda.answered(app)
            settle("questions", of: app, nil)
            return value
        } catch let error as AppStoreAPIError where error.kind != .stopped {
            agenda.leaveAlone(app, for: options.troubleRest)
            settle("questions", of: app, "\(error)")
            return nil
        }
    }

    /// What settles extensions, over the same clients and so within the same limits.
    private func settler(_ clients: AppStoreClients) -> ExtensionSettler? {
        guard let settings = options.extensions else { return nil }
        return ExtensionSettler(
            gateway: AppStoreExtensionGateway(
                clients,
                surroundings: surroundings,
                verifier: verifier,
                connect: connect
            ),
            settings: settings,
            serviceIdentity: options.serviceIdentity,
            read: read,
            connect: connect,
            log: log,
            now: now
        )
    }

    private func settle(_ settler: ExtensionSettler, _ isOurs: () throws -> Bool) throws {
        let outcome = try settler.run { try !shouldStop && isOurs() }
        guard outcome != ExtensionSettler.Outcome() else { return }
        state.withLock { state in
            state.settled += outcome.settled
            state.polled += outcome.polled
        }
        changed()
    }

    private func isBackfillDue(_ app: AppKey, _ agenda: Agenda) -> Bool {
        guard options.backfillMinutes > 0, agenda.mayAsk(app) else { return false }
        return agenda.dueAt[app].map { $0 <= now() } ?? true
    }

    /// How a reading of an app's notifications ended.
    private enum Reading {
        case whole
        /// To the end, but something was not taken.
        case refused(String)
        case stopped
    }

    /// Where something was not taken it is all read again, though not as often.
    private static let refusedRest = Milliseconds.hours(1)

    /// Reads an app's notifications.
    private func backfill(
        _ account: AppStoreClients.Account,
        _ recorder: ResponseRecorder,
        _ isOurs: () throws -> Bool
    ) throws -> Reading {
        var isLost = false
        var seen = 0
        let report: Backfill.Report
        do {
            report = try Backfill(account, recorder, now: now).run(
                shouldStop: { shouldStop || isLost },
                progress: { report, _ in
                    if report.recovered > seen { changed() }
                    seen = report.recovered
                    isLost = !((try? isOurs()) ?? false)
                }
            )
        } catch let error as AppStoreAPIError where error.kind == .unauthorized {
            // An app that was never released is none that Production knows.
            guard account.isUnreleased, account.app.environment == .production else { throw error }
            return .whole
        }
        state.withLock { $0.recovered += report.recovered }
        let reading: Reading =
            report.isStopped
            ? .stopped : Self.refusal(report.rejected).map { .refused($0) } ?? .whole
        guard report.recovered > 0 || !report.rejected.isEmpty else { return reading }
        log.write(.warning, "notifications_recovered") { json in
            json.member("bundle_id", account.app.bundleID)
            json.member("environment", "\(account.app.environment)")
            json.member("recovered", report.recovered)
            json.member("rejected", report.rejected.count)
            if let rejection = report.rejected.first {
                json.member("first_reason", rejection.reason.rawValue)
                json.member("first_detail", rejection.detail)
            }
        }
        return reading
    }

    private func sync(
        _ clients: AppStoreClients,
        _ recorder: ResponseRecorder,
        _ agenda: inout Agenda,
        _ isOurs: () throws -> Bool
    ) throws {
        let sync = Sync(clients, recorder, now: now)
        let targets = try targets(clients.accounts.map(\.app).filter(agenda.mayAsk), &agenda)
        var done: Set<SyncSelection.Target> = []
        var isFull: Set<AppKey> = []
        for var target in targets where !shouldStop {
            let reason = target.reason
            target.reason = .all
            guard done.insert(target).inserted else { continue }
            target.reason = reason
            guard let account = clients.account(target.app), agenda.mayAsk(target.app),
                !isFull.contains(target.app)
            else { continue }
            // What cannot wait needs room as well: the rest is left for the next round.
            let endpoint = APIEndpoint.subscriptionStatuses(id: target.id)
            guard account.client.headroom(for: endpoint) > 0.2 else {
                isFull.insert(target.app)
                continue
            }
            guard try isOurs() else { return }
            let result = try asking(target.app, &agenda) { try sync.run(target) }
            guard let result else { continue }
            state.withLock { $0.synced += 1 }
            settle("subscriptions", of: target.app, Self.refusal(result.recorded.rejected))
            guard result.recorded.appended > 0 else { continue }
            changed()
            log.write(.info, "subscription_synced") { json in
                json.member("reason", target.reason.rawValue)
                json.member("environment", "\(target.app.environment)")
                json.member("appended", result.recorded.appended)
            }
        }
    }

    private func targets(
        _ apps: [AppKey],
        _ agenda: inout Agenda
    ) throws -> [SyncSelection.Target] {
        let selection = SyncSelection(try read())
        let now = now()
        func due(
            _ reason: SyncSelection.Reason,
            after rest: Milliseconds
        ) throws -> [SyncSelection.Target] {
            try selection.targets(
                [reason],
                of: apps,
                now: now,
                notSince: now.adding(Milliseconds(rawValue: -rest.rawValue)),
                limit: options.batch
            )
        }
        var overtaken: [SyncSelection.Target] = []
        if agenda.overtakenAt.map({ ContinuousClock.now - $0 >= options.overtakenRest }) ?? true {
            overtaken = try selection.overtaken(of: apps, now: now, limit: options.batch)
            // Where there are more than fit in, they are looked for again at once.
            if overtaken.count < options.batch { agenda.overtakenAt = .now }
        }
        return try overtaken + due(.overdue, after: options.overdueRest)
            + due(.anomalous, after: options.anomalousRest)
    }

    private var surroundings: APISurroundings {
        APISurroundings(
            now: now,
            sleep: { [self] duration in
                var left = duration.rawValue
                while left > 0, !shouldStop {
                    let part = min(left, 200)
                    Sleep.milliseconds(Int(part))
                    left -= part
                }
                return !shouldStop
            }
        )
    }

    private func note(_ error: any Error) {
        let text = "\(error)"
        let isNews = state.withLock { state in
            let isNews = state.general != text
            state.general = text
            state.failures += 1
            return isNews
        }
        guard isNews, !shouldStop else { return }
        log.write(.error, "reconcile_failed") { $0.member("error", text) }
    }

    /// What was not taken of Apple's answers; nil where everything was.
    private static func refusal(_ rejected: [Rejection]) -> String? {
        rejected.first.map {
            "\(rejected.count) of Apple's signed texts were not taken and will be read again: \($0)"
        }
    }

    /// Notes what is wrong with one part of asking about an app, nil for nothing.
    private func settle(_ part: String, of app: AppKey, _ trouble: String?) {
        let name = "\(app.bundleID) \(app.environment) \(part)"
        let isNews = state.withLock { state in
            let before = state.troubles.removeValue(forKey: name)
            state.troubles[name] = trouble
            if trouble != nil { state.failures += 1 }
            return trouble != nil && trouble != before
        }
        guard isNews, let trouble, !shouldStop else { return }
        log.write(.error, "reconcile_failed") { json in
            json.member("bundle_id", app.bundleID)
            json.member("environment", "\(app.environment)")
            json.member("error", trouble)
        }
    }
}

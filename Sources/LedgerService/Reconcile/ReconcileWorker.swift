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
/// back; in between it asks about subscriptions whose news is missing. Of several programs over one
/// database one does so at a time.
package final class ReconcileWorker: Sendable {
    /// How it is set up.
    package struct Options: Sendable {
        /// How often notifications are read, in minutes; 0 for never.
        package var backfillMinutes = AppStoreSettings.backfillMinutesDefault
        /// Whether it asks about subscriptions whose news is missing.
        package var syncs = true
        /// How long it rests between looking for work.
        package var restMilliseconds: Int64 = 5000
        /// A subscription that is overdue is asked about again so long after the last time.
        package var overdueRest = Milliseconds.hours(1)
        /// One that is anomalous only, so long after.
        package var anomalousRest = Milliseconds.days(1)
        /// How many are asked about in one go.
        package var batch: Int64 = 50
        /// How extensions are settled; nil where they are not.
        package var extensions: ExtensionSettings?
        /// Who this program is, for the audit of extensions.
        package var serviceIdentity = "subledger"

        /// Makes the usual ones.
        package init() {}
    }

    /// How it is doing.
    package struct Condition: Hashable, Sendable {
        /// Notifications that it recovered since the start.
        package var recovered = 0
        /// Subscriptions that it asked about since the start.
        package var synced = 0
        /// Requests to extend whose lost answers it settled since the start.
        package var settled = 0
        /// Questions about mass extensions that Apple answered since the start.
        package var polled = 0
        /// When it last read the notifications of every app to their end; nil before.
        package var backfilledAt: Timestamp?
        /// What went wrong last; nil when the last run went well.
        package var failure: String?
        /// How many runs failed since the start.
        package var failures = 0
    }

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
                }
                if recorder == nil {
                    recorder = ResponseRecorder(run: holder, verifier: verifier, connect: connect)
                }
                if let clients, let recorder {
                    try work(clients, recorder, settler, turn)
                    state.withLock { $0.failure = nil }
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
        _ turn: Turn
    ) throws {
        func isOurs() throws -> Bool {
            try recorder.withSession { connection, _ in try turn.take(connection) }
        }
        guard try isOurs() else { return }
        // First what an operator waits for; it is little.
        if let settler { try settle(settler, isOurs) }
        if isBackfillDue {
            for account in clients.accounts where !shouldStop {
                try backfill(account, recorder, isOurs)
            }
            guard !shouldStop else { return }
            state.withLock { $0.backfilledAt = now() }
        }
        if options.syncs { try sync(clients, recorder, isOurs) }
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

    private var isBackfillDue: Bool {
        guard options.backfillMinutes > 0 else { return false }
        guard let last = condition.backfilledAt else { return true }
        return last.adding(.minutes(options.backfillMinutes)) <= now()
    }

    private func backfill(
        _ account: AppStoreClients.Account,
        _ recorder: ResponseRecorder,
        _ isOurs: () throws -> Bool
    ) throws {
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
            return
        }
        state.withLock { $0.recovered += report.recovered }
        guard report.recovered > 0 || !report.rejected.isEmpty else { return }
        log.write(.warning, "notifications_recovered") { json in
            json.member("bundle_id", account.app.bundleID)
            json.member("environment", "\(account.app.environment)")
            json.member("recovered", report.recovered)
            json.member("rejected", report.rejected.count)
        }
    }

    private func sync(
        _ clients: AppStoreClients,
        _ recorder: ResponseRecorder,
        _ isOurs: () throws -> Bool
    ) throws {
        let sync = Sync(clients, recorder, now: now)
        let targets = try targets()
        var done: Set<SyncSelection.Target> = []
        for var target in targets where !shouldStop {
            let reason = target.reason
            target.reason = .all
            guard done.insert(target).inserted else { continue }
            target.reason = reason
            guard let account = clients.account(target.app) else { continue }
            // What cannot wait needs room as well: the rest is left for the next round.
            let endpoint = APIEndpoint.subscriptionStatuses(id: target.id)
            guard account.client.headroom(for: endpoint) > 0.2, try isOurs() else { return }
            let result = try sync.run(target)
            state.withLock { $0.synced += 1 }
            guard result.recorded.appended > 0 else { continue }
            changed()
            log.write(.info, "subscription_synced") { json in
                json.member("reason", target.reason.rawValue)
                json.member("environment", "\(target.app.environment)")
                json.member("appended", result.recorded.appended)
            }
        }
    }

    private func targets() throws -> [SyncSelection.Target] {
        let selection = SyncSelection(try read())
        let now = now()
        func due(
            _ reason: SyncSelection.Reason,
            after rest: Milliseconds
        ) throws -> [SyncSelection.Target] {
            try selection.targets(
                [reason],
                now: now,
                notSince: now.adding(Milliseconds(rawValue: -rest.rawValue)),
                limit: options.batch
            )
        }
        return try due(.overdue, after: options.overdueRest)
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
            let isNews = state.failure != text
            state.failure = text
            state.failures += 1
            return isNews
        }
        guard isNews, !shouldStop else { return }
        log.write(.error, "reconcile_failed") { $0.member("error", text) }
    }
}

internal import EventLog
package import Ledger

extension ReconcileWorker {
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
        /// How often it looks for news that came after Apple's answer though they are older.
        package var overtakenRest = Duration.seconds(600)
        /// How many are asked about in one go.
        package var batch: Int64 = 50
        /// How long an app of which Apple could not be asked in an environment is left alone; twice as
        /// long each time, up to sixteen times, since a question that fails can take minutes.
        package var troubleRest = Duration.seconds(60)
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
        package var failure: String? { general ?? troubles.min { $0.key < $1.key }?.value }
        /// What went wrong before any app's turn, such as a database that is away.
        var general: String?
        /// What is wrong with single apps, by bundle id, environment and what was done.
        package var troubles: [String: String] = [:]
        /// How many runs failed since the start.
        package var failures = 0
    }

    /// Which apps are left alone, and until when; only the worker's own thread knows of it.
    struct Agenda {
        var backfilledAt: [AppKey: Timestamp] = [:]
        var dueAt: [AppKey: Timestamp] = [:]
        /// When it looked last for news that came late.
        var overtakenAt: ContinuousClock.Instant?
        private var aloneUntil: [AppKey: ContinuousClock.Instant] = [:]
        private var failures: [AppKey: Int] = [:]

        func mayAsk(_ app: AppKey) -> Bool {
            aloneUntil[app].map { $0 <= ContinuousClock.now } ?? true
        }

        mutating func leaveAlone(_ app: AppKey, for rest: Duration) {
            let before = failures[app] ?? 0
            aloneUntil[app] = .now + rest * (1 << min(before, 4))
            failures[app] = before + 1
        }

        mutating func answered(_ app: AppKey) { failures[app] = nil }

        mutating func leaveNobodyAlone() {
            aloneUntil = [:]
            failures = [:]
        }
    }
}

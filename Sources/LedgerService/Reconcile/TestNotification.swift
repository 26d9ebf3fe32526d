package import AppStore
internal import EventLog
package import Ledger

/// Has Apple send a test notification, and waits for what became of it.
package struct TestNotification {
    /// What became of it.
    package struct Result: Hashable, Sendable {
        /// Apple's token of the test.
        package var token: String
        /// Its UUID; nil where Apple said nothing of it in time.
        package var notificationUUID: String?
        /// How Apple tried to send it.
        package var attempts: [APIAnswer.SendAttempt] = []
        /// Whether it reached this ledger by the webhook.
        package var hasArrived = false
    }

    /// How often Apple is asked, a little longer apart each time: a minute in all.
    static let waits: [Int64] = [
        500, 1000, 1500, 2000, 3000, 4000, 5000, 8000, 10_000, 12_000, 15_000,
    ]

    private let account: AppStoreClients.Account
    private let recorder: ResponseRecorder
    private let sleep: (Milliseconds) -> Bool

    /// Makes it.
    ///
    /// - Parameters:
    ///   - account: the app and its client.
    ///   - recorder: writes what Apple answers.
    ///   - sleep: waits; false where the program is to stop.
    package init(
        _ account: AppStoreClients.Account,
        _ recorder: ResponseRecorder,
        sleep: @escaping (Milliseconds) -> Bool
    ) {
        self.account = account
        self.recorder = recorder
        self.sleep = sleep
    }

    /// Asks for a test and waits until Apple says how sending it went.
    ///
    /// - Throws: `AppStoreAPIError` where Apple does not do it, and errors of the database.
    package func run() throws -> Result {
        let asked = try account.client.send(.requestTestNotification)
        guard let token = asked.answer?.testNotificationToken else {
            throw AppStoreAPIError(
                .unreadableAnswer,
                "the answer names no testNotificationToken",
                endpoint: .requestTestNotification,
                environment: account.app.environment
            )
        }
        var result = Result(token: token)
        for wait in Self.waits {
            guard sleep(Milliseconds(rawValue: wait)) else { break }
            guard let response = try status(of: token), let answer = response.answer,
                let item = answer.items.first, !item.sendAttempts.isEmpty
            else { continue }
            // Recording it would make it be here: what was here before came by the webhook.
            let recorded = try recorder.record(response, about: "app:\(account.app.bundleID)")
            result.attempts = item.sendAttempts
            result.hasArrived = recorded.unchanged > 0
            let payload = SignedInput.unverifiedPayload(of: item.text)
            result.notificationUUID = payload?["notificationUUID"]?.text
            // Production tries again for days: the first word is what is waited for.
            break
        }
        return result
    }

    /// What Apple says of a test; nil where it is too early.
    private func status(of token: String) throws(AppStoreAPIError) -> APIResponse? {
        do {
            return try account.client.send(.testNotificationStatus(token: token))
        } catch {
            guard error.code == .testNotificationNotFound else { throw error }
            return nil
        }
    }
}

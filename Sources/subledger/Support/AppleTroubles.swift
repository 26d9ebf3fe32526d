internal import AppStore
internal import EventLog
internal import Ledger
internal import LedgerService

/// The apps of which Apple could not be asked: the others are asked about all the same.
struct AppleTroubles {
    private var errors: [(app: AppKey, error: AppStoreAPIError)] = []

    /// Whether Apple could not be asked about it.
    func has(_ app: AppKey) -> Bool { errors.contains { $0.app == app } }

    /// Asks about an app.
    ///
    /// - Parameters:
    ///   - app: which one.
    ///   - body: asks.
    /// - Returns: what `body` returns; nil where Apple cannot be asked, which is noted.
    /// - Throws: what else `body` throws, such as that the program is to stop.
    mutating func asking<Value>(_ app: AppKey, _ body: () throws -> Value) throws -> Value? {
        do {
            return try body()
        } catch let error as AppStoreAPIError where error.kind != .stopped {
            errors.append((app, error))
            return nil
        }
    }

    /// Tells all errors but the last, and throws that one.
    ///
    /// - Throws: `CommandFailure`, nothing where there were none.
    func rethrow() throws {
        func text(_ entry: (app: AppKey, error: AppStoreAPIError)) -> String {
            printable("\(entry.app.bundleID) \(entry.app.environment): \(entry.error)")
        }
        guard let last = errors.last else { return }
        for entry in errors.dropLast() { printError("subledger: \(text(entry))") }
        throw CommandFailure(exitCode: .someRejected, message: text(last))
    }
}

internal import Ledger
internal import LedgerService

/// Days from a first one to the first one after the last.
struct DayRange: Hashable, Sendable {
    /// The first day, `2026-01-31`.
    var since: String
    /// The first day after the last.
    var until: String
}

extension Arguments {
    /// The days between `--from` and `--to`.
    ///
    /// - Parameter what: what needs them, for the message.
    /// - Returns: the days, each one of the calendar.
    /// - Throws: `CommandFailure` where one is missing or no day, or where they are not in order.
    func days(for what: String) throws(CommandFailure) -> DayRange {
        guard let since = value("--from"), let until = value("--to") else {
            throw .usage("\(what) needs --from DAY and --to DAY")
        }
        for (name, day) in [("--from", since), ("--to", until)]
        where day.utf8.count != 10 || Timestamp(parsing: day) == nil {
            throw .usage("\(name) takes a day such as 2026-01-31, not “\(day)”")
        }
        guard since < until else {
            throw .usage("--to is the first day after the last, later than --from")
        }
        return DayRange(since: since, until: until)
    }
}

/// Runs a question that takes days and a zone, and says so where the server knows one of them not.
///
/// - Throws: `CommandFailure` for a day or zone that does not exist; else what `rows` throws.
func askingForDays<Row>(_ rows: () throws(ReadModelError) -> [Row]) throws -> [Row] {
    do {
        return try rows()
    } catch {
        guard error.sqlState?.hasPrefix("22") == true else { throw error }
        throw CommandFailure.usage("a day or the zone does not exist: \(error.message)")
    }
}

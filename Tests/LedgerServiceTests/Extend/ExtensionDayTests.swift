import AppStore
import AppStoreSimulator
import EventLog
import Ledger
import SimulatorServer
import Synchronization
import TestSupport
import Testing

@testable import LedgerService

/// A day of extensions over HTTPS: afterwards the audit has, row for row, what is in the books that
/// the fake App Store kept by itself.
struct ExtensionDayTests {
    @Test func theAuditEqualsTheFakeAppStoresOwnBooks() throws {
        let day = try ExtensionDay()
        try day.askForMany()
        try day.askForAMassExtension()
        try day.extendBesideTheLedger()
        try day.settleAll()
        try day.bench.deliverAll()
        try day.decideTheRest()
        try day.compare()
        let report = try LedgerAudit(day.bench.database.connect()).run()
        #expect(report.difference == nil, "\(String(describing: report.difference))")
    }
}

/// What happens on that day, and the comparison.
private final class ExtensionDay {
    let bench: StoreBench
    /// How many requests of each kind of outcome there were, so that none is missing.
    private var seen: [String: Int] = [:]
    private var crashes = 0
    private var moved = 0

    private struct Crash: Error {}

    init() throws {
        bench = try StoreBench(subscriptions: 110) { $0.rareFactor = 8 }
        for overview in bench.overviews {
            try bench.gateway.refreshStatuses(of: overview.originalTransactionID, in: bench.app)
        }
        try bench.project()
    }

    /// Asks for extensions of all sorts of subscriptions, also of those that cannot have any; some
    /// answers get lost, some are errors before or after it was done, and some programs end.
    func askForMany() throws {
        var plan = FaultPlan()
        for (action, rate) in [
            (FaultPlan.Action.loseAnswer, 0.15), (.errorAfterwards(5_000_000), 0.1),
            (.error(5_000_000), 0.1), (.error(4_290_000), 0.02), (.error(4_040_006), 0.03),
        ] {
            var fault = FaultPlan.RequestFault(action, endpoint: .extend)
            fault.rate = rate
            plan.requests.append(fault)
        }
        bench.store.server.withStore { $0.setFaults(plan) }
        for (number, overview) in bench.overviews.enumerated() {
            for round in 0..<(number % 4 == 0 ? 4 : 1) {
                var wish = StoreBench.wish(
                    overview.originalTransactionID,
                    days: 1 + (number * 7 + round) % 80,
                    ticket: "SUP-\(number)-\(round)"
                )
                wish.attemptIneligible = number % 3 == 0
                try ask(
                    wish,
                    crashingAt: number % 9 == 5 ? .answered : number % 9 == 7 ? .requested : nil
                )
                bench.advance(.minutes(1))
            }
        }
        for outcome in [
            "accepted", "unknown", "expired", "extension_in_progress", "4030004", "4030007",
            "4040006",
        ] {
            #expect(seen[outcome, default: 0] > 0, "no request came to \(outcome): \(seen)")
        }
        #expect(crashes > 5)
        bench.store.server.withStore { $0.setFaults(FaultPlan()) }
    }

    private func ask(_ wish: ExtensionWish, crashingAt step: ExtensionPause?) throws {
        let extensions = try bench.extensions()
        if let step { extensions.pause = { if $0 == step { throw Crash() } } }
        do {
            let result = try extensions.request(wish, by: ExtensionBench.olga)
            let what = result.rule ?? result.appleErrorCode.map { "\($0)" }
            seen[what ?? result.outcome.rawValue, default: 0] += 1
        } catch is Crash {
            crashes += 1
        }
    }

    /// Asks for a whole product, and waits until the fake App Store is done with it.
    func askForAMassExtension() throws {
        let products = bench.overviews.compactMap {
            $0.status == 1 ? $0.transaction?.productID : nil
        }
        let counts = Dictionary(products.map { ($0, 1) }, uniquingKeysWith: +)
        let product = try #require(counts.max { ($0.value, $0.key) < ($1.value, $1.key) }?.key)
        let result = try bench.extensions().requestMass(
            MassExtensionWish(
                bundleID: StoreBench.bundleID,
                environment: .sandbox,
                productID: product,
                storefronts: [],
                // As many days as nothing else of that day asks for.
                wish: StoreBench.wish("", days: 89, ticket: "INC-1")
            ),
            by: ExtensionBench.olga
        )
        #expect(result.outcome == .accepted)
        bench.advance(.hours(3))
        #expect(try bench.extensions().massStatus(result.request).isComplete)
    }

    /// Somebody with the same key extends without the ledger.
    func extendBesideTheLedger() throws {
        let overview = try #require(
            bench.overviews.first { $0.extensionError == nil && $0.extensionsUsed == 0 }
        )
        let request = UniqueID.random()
        _ = try bench.clients.accounts[0].client.send(
            .extendRenewalDate(
                originalTransactionID: overview.originalTransactionID,
                RenewalExtension(
                    days: 90,
                    reason: .undeclared,
                    requestIdentifier: request.description
                )
            )
        )
    }

    /// Settles whatever has no answer: by reading, by sending once more.
    func settleAll() throws {
        try bench.project()
        bench.advance(.minutes(16))
        for request in try bench.extensions().unsettled() {
            do {
                _ = try bench.extensions().resolve(request, by: ExtensionBench.peter)
            } catch ExtensionProblem.movedOtherwise {
                // The mass extension moved the end as well: Apple's notices will tell.
                moved += 1
            }
        }
    }

    /// Whatever no notice of Apple's has told was not done.
    func decideTheRest() throws {
        try bench.project()
        for request in try bench.extensions().unsettled() {
            let result = try bench.extensions().resolve(
                request,
                by: ExtensionBench.peter,
                decision: .notExtended
            )
            #expect(result.resolution == .notExtended)
        }
        try bench.project()
        #expect(try bench.extensions().unsettled().isEmpty)
        #expect(moved > 0, "no end moved otherwise than asked")
    }

    // MARK: - The comparison

    /// One line of either book: what both know.
    private struct Line: Hashable, Comparable, CustomStringConvertible {
        var words: [String]

        init(_ words: [String?]) { self.words = words.map { $0 ?? "–" } }

        var description: String { words.joined(separator: " ") }

        static func < (left: Line, right: Line) -> Bool {
            left.words.lexicographicallyPrecedes(right.words)
        }
    }

    func compare() throws {
        let rows = try bench.audit()
        let ours = rows.filter(isKnownToApple).map { row in
            let isOwn = row["request_identifier"] != nil
            let isRefused = row["outcome"] == "refused_by_apple"
            return Line([
                row["original_transaction_id"], row["outcome"],
                isOwn ? row["request_identifier"] : row["mass_request_id"],
                isOwn || row["mass_request_id"] != nil ? row["days_requested"] : nil,
                isOwn || row["mass_request_id"] != nil ? row["apple_reason_code"] : nil,
                row["product_id"], row["expires_before"],
                isRefused ? nil : row["expires_confirmed"],
                isOwn && isRefused ? row["apple_error_code"] : nil,
                isOwn && isRefused ? nil : row["notification_uuid"],
            ])
        }
        let known = Set(rows.compactMap { $0["request_identifier"] })
        let theirs = lines(bench.books, known)
        for line in Set(theirs).subtracting(ours) { Issue.record("only in Apple's books: \(line)") }
        for line in Set(ours).subtracting(theirs) { Issue.record("only in the audit: \(line)") }
        #expect(ours.sorted() == theirs.sorted())
        #expect(ours.count > 50)
        let outcomes = Set(rows.compactMap { $0["outcome"] })
        #expect(
            outcomes.subtracting(["unknown"])
                == ["confirmed", "refused_by_apple", "refused_locally", "external"]
        )
    }

    /// What our rules refused never reached Apple; what met with a fault before it was looked at is
    /// in no book.
    private func isKnownToApple(_ row: ExtensionAuditRow) -> Bool {
        let isStopped = ["4290000", "4040006"].contains(row["apple_error_code"])
        let isDecided = row["resolution"] == "not_extended"
        return row["outcome"] != "refused_locally" && !isStopped && !isDecided
    }

    private func lines(_ entries: [ExtensionEntry], _ known: Set<String>) -> [Line] {
        func instant(_ milliseconds: Int64?) -> String? {
            milliseconds.map { Timestamp(milliseconds: $0).description }
        }
        var lines: [Line] = []
        let own = Dictionary(
            grouping: entries.filter {
                $0.source == .request && known.contains($0.requestIdentifier ?? "")
            },
            by: { $0.requestIdentifier ?? "" }
        )
        for (_, all) in own {
            // What was done once stays done; else the last word counts.
            guard let entry = all.first(where: { $0.effectiveDate != nil }) ?? all.last else {
                continue
            }
            let isDone = entry.effectiveDate != nil
            lines.append(
                Line([
                    entry.originalTransactionID, isDone ? "confirmed" : "refused_by_apple",
                    entry.requestIdentifier, entry.days.map { "\($0)" },
                    entry.reasonCode.map { "\($0)" }, entry.productID,
                    instant(entry.expiresBefore), instant(entry.effectiveDate),
                    isDone ? nil : entry.errorCode.map { "\($0)" }, entry.notificationUUID,
                ])
            )
        }
        let mass = Set(entries.filter { $0.source == .mass }.compactMap(\.requestIdentifier))
        for entry in entries {
            // Who follows a purchaser that a mass request extends is laid to it too.
            let isMass =
                entry.source == .mass
                || entry.source == .followed && mass.contains(entry.requestIdentifier ?? "")
            if entry.source == .request, known.contains(entry.requestIdentifier ?? "") { continue }
            let isDone = entry.effectiveDate != nil
            lines.append(
                Line([
                    entry.originalTransactionID,
                    isMass ? isDone ? "confirmed" : "refused_by_apple" : "external",
                    isMass ? entry.requestIdentifier : nil,
                    isMass ? entry.days.map { "\($0)" } : nil,
                    isMass ? "3" : nil, entry.productID, instant(entry.expiresBefore),
                    instant(entry.effectiveDate), nil,
                    entry.notificationUUID,
                ])
            )
        }
        return lines
    }
}

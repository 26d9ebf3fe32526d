internal import AppStore
public import EventLog
internal import Ledger
public import Postgres

/// Checks the whole ledger: the hash chain, every signature anew, every column that was decoded
/// from what was signed, and the rows beside the log against the events that recorded them.
///
/// It needs nothing but the database: certificates are judged at the time of each signature, by
/// the anchors that are kept there. Whether those anchors are Apple's is for the reader to compare:
/// `builtInOnly` trusts no other.
public struct LedgerAudit {
    /// The parts of an audit, in order.
    public enum Part: String, Hashable, Sendable, CaseIterable {
        /// Every hash and the chain over them.
        case chain
        /// Every signature, and what was decoded.
        case signatures
        /// The rows beside the log.
        case rows
    }

    /// What an audit found.
    public struct Report: Hashable, Sendable {
        /// The end of the log as it stands.
        public var head: AuditHead
        /// How many events were checked.
        public var events: Int64
        /// How many signed texts were verified anew, nested ones not counted.
        public var signatures = 0
        /// How many of the events carry no signature of Apple's: what receipts and its unsigned
        /// answers told, and what was done here.
        public var unsigned = 0
        /// How many of those stand in receipts.
        public var receipts = 0
        /// How many rows beside the log were compared with the events that recorded them.
        public var rows = 0
        /// How many rows beside the log no event has recorded yet.
        public var unrecordedRows = 0
        /// The first thing that is not as it was written; nil for a ledger that is whole.
        public var difference: LogAudit.Difference?
    }

    /// How many events one query reads: the server plans each over all partitions, which takes as
    /// long as reading some hundreds of them.
    private static let windowCount = 2000
    /// How many events one thread verifies in one go.
    private static let pieceCount = 250
    /// How many such pieces may be under way: for each core one in work and one waiting, and some
    /// that were read ahead.
    private static let depth = 16

    private let connection: Connection

    /// Makes an audit over a session that may read everything.
    public init(_ connection: Connection) { self.connection = connection }

    /// Checks everything.
    ///
    /// - Parameters:
    ///   - kept: a head that was kept elsewhere.
    ///   - sample: how many events' signatures are verified at least, taken from the whole log;
    ///     nil for all of them. The chain is always checked whole.
    ///   - progress: told of the part and the last position checked.
    /// - Returns: what was found.
    /// - Throws: `EventLogError` or `PostgresError` when the database could not be read.
    public func run(
        keeping kept: AuditHead? = nil,
        sample: Int64? = nil,
        progress: (Part, Int64) -> Void = { _, _ in }
    ) throws -> Report {
        let chain: LogAudit.Report
        do {
            chain = try LogAudit(connection).run(keeping: kept) { progress(.chain, $0) }
        } catch {
            // A column that holds no word of its kind is a change too, and has a place.
            guard error.code == .unreadable, let position = error.position else { throw error }
            return Report(
                head: try LogReader(connection).head(),
                events: position,
                difference: LogAudit.Difference(position: position, description: error.message)
            )
        }
        var report = Report(head: chain.head, events: chain.events, difference: chain.difference)
        guard report.difference == nil else { return report }
        try checkSignatures(&report, sample) { progress(.signatures, $0) }
        guard report.difference == nil else { return report }
        try RecordedRows(connection).check(&report)
        return report
    }

    // MARK: - Signatures

    private func checkSignatures(
        _ report: inout Report,
        _ sample: Int64?,
        _ progress: (Int64) -> Void
    ) throws {
        let anchors: TrustAnchors
        switch try storedAnchors() {
        case .success(let found): anchors = found
        case .failure(let defect):
            report.difference = LogAudit.Difference(position: 0, description: defect.description)
            return
        }
        let verifier = Verifier(anchors: anchors, apps: nil)
        let reader = LogReader(connection)
        let apps = try reader.apps()
        let skipped = try reader.skippedPositions()
        let pipeline = OrderedPipeline<[LogReader.AuditedEvent], Judged>(depth: Self.depth) {
            Self.judge($0, verifier, apps, skipped)
        }
        var readTo: Int64 = 0
        var ahead: ArraySlice<LogReader.AuditedEvent> = []
        let (limit, stride) = Self.steps(through: report.head.position, sample)
        while true {
            // The database reads ahead while all cores verify.
            while !pipeline.isFull {
                if ahead.isEmpty, readTo < report.head.position {
                    let start = readTo
                    ahead = try reader.auditedEvents(after: start, limit: limit)[...]
                    let last = ahead.last?.event.position ?? report.head.position
                    readTo = max(last, start + stride)
                }
                guard !ahead.isEmpty else { break }
                pipeline.give(Array(ahead.prefix(Self.pieceCount)))
                ahead = ahead.dropFirst(Self.pieceCount)
            }
            guard let found = pipeline.take() else { break }
            report.signatures += found.signatures
            report.unsigned += found.unsigned
            report.receipts += found.receipts
            if let difference = found.difference {
                report.difference = difference
                return
            }
            progress(min(found.position, report.head.position))
        }
        if sample == nil, let defect = try strayRows() {
            report.difference = defect
            return
        }
        if let defect = try ExtensionRows.defect(connection) { report.difference = defect }
    }

    /// A decoded row, or evidence, that belongs to no event; each event has its own by now.
    private func strayRows() throws -> LogAudit.Difference? {
        for table in ["fact", "evidence"] {
            let rows = try connection.query(
                """
                select position, app_id, stream from ledger.\(table) as stray
                where not exists (
                    select from ledger.event
                    where event.stream = stray.stream and event.app_id = stray.app_id
                        and event.position = stray.position
                )
                order by position limit 1
                """
            )
            guard rows.count > 0 else { continue }
            let position = rows.int(0, 0) ?? 0
            return LogAudit.Difference(
                position: position,
                description: "ledger.\(table) has a row at \(position) of \(rows.int(0, 1) ?? 0)/"
                    + "\(rows.text(0, 2) ?? "") that belongs to no event"
            )
        }
        return nil
    }

    /// How many events are verified at once, and from one such window to the next how many positions.
    private static func steps(through head: Int64, _ sample: Int64?) -> (Int, Int64) {
        guard let sample, sample < head else { return (windowCount, 0) }
        let limit = min(Int64(pieceCount), max(1, sample / 20))
        return (Int(limit), max(1, head * limit / max(1, sample)))
    }

    /// What was found in a piece of the log.
    private struct Judged: Sendable {
        var position: Int64 = 0
        var signatures = 0
        var unsigned = 0
        var receipts = 0
        var difference: LogAudit.Difference?
    }

    /// Judges events up to the first difference.
    private static func judge(
        _ window: [LogReader.AuditedEvent],
        _ verifier: Verifier,
        _ apps: [Int32: AppKey],
        _ skipped: Set<Int64>
    ) -> Judged {
        var judged = Judged()
        for event in window {
            judged.position = event.event.position
            if event.form == .jws { judged.signatures += 1 } else { judged.unsigned += 1 }
            if event.event.kind == .receipt { judged.receipts += 1 }
            guard let what = defect(of: event, verifier, apps, skipped) else { continue }
            judged.difference = LogAudit.Difference(
                position: event.event.position,
                description: "event \(event.event.position) of \(event.event.key): \(what)"
            )
            return judged
        }
        return judged
    }

    /// What is wrong with one event; nil where nothing is.
    private static func defect(
        of audited: LogReader.AuditedEvent,
        _ verifier: Verifier,
        _ apps: [Int32: AppKey],
        _ skipped: Set<Int64>
    ) -> String? {
        if let defect = audited.defect { return defect }
        let evidence: StoredEvidence
        do throws(EventLogError) { evidence = try audited.evidence() } catch {
            return error.message
        }
        let event = audited.event
        var signed: VerifiedDocument?
        if evidence.form == .jws {
            switch verifier.verify(evidence.received, now: .latest) {
            case .undecided(let rejection), .rejected(let rejection):
                return "its signature does not hold: \(rejection.reason.rawValue)"
            case .trusted(let document):
                if let defect = contradiction(event, document, apps[event.key.appID]) {
                    return defect
                }
                if !agrees(evidence, document) {
                    return "another anchor vouches for it than the one that is stored"
                }
                signed = document
            }
        }
        if event.kind == .receipt,
            let defect = contradiction(event, evidence, apps[event.key.appID])
        {
            return defect
        }
        guard audited.hasFactRow else { return "its decoded row in ledger.fact is missing" }
        guard audited.hasOwnFact else { return nil }
        guard audited.fact != nil || signed != nil || hasFact(event.kind) else { return nil }
        do {
            // What was verified is decoded already.
            let holds =
                if let signed {
                    audited.holds(
                        signed.fact,
                        decodeAnomalies: FactSource.anomalies(
                            signed.decodeAnomalies,
                            notificationType: signed.notificationType,
                            subtype: signed.subtype
                        )
                    )
                } else {
                    audited.holds(try FactSource.current.fact(evidence), decodeAnomalies: nil)
                }
            return holds ? nil : "its decoded columns say something else than its evidence"
        } catch {
            // That nobody can read it is known where an operator has it passed over.
            return audited.fact == nil || skipped.contains(event.position)
                ? nil : "its evidence cannot be decoded: \(error)"
        }
    }

    /// Which of an event's columns contradicts what is signed.
    private static func contradiction(
        _ event: StoredEvent,
        _ document: VerifiedDocument,
        _ app: AppKey?
    ) -> String? {
        if let bundleID = document.bundleID, bundleID != app?.bundleID {
            return "it is signed for the app \(bundleID)"
        }
        if document.environment != app?.environment {
            return "it is signed for another environment"
        }
        if let stream = document.originalTransactionID, stream != event.key.stream {
            return "it is signed for the subscription \(stream)"
        }
        if event.kind != document.kind.eventKind { return "its column kind contradicts it" }
        guard document.kind == .notification else { return nil }
        let pairs: [(String, String?, String?)] = [
            ("event_key", event.eventKey, document.notificationUUID.map { "n:\($0)" }),
            ("notification_type", event.notificationType, document.notificationType),
            ("subtype", event.subtype, document.subtype),
        ]
        for (column, stored, signed) in pairs
        where stored != signed && signed?.utf8.contains(0) != true {
            return "its column \(column) contradicts what is signed"
        }
        if event.signedAt != document.signedDate { return "its column signed_at contradicts it" }
        if event.contentDigest != document.contentDigest {
            return "its column content_digest contradicts it"
        }
        return nil
    }

    /// Which of a receipt's columns contradicts what was received; nobody signed that.
    private static func contradiction(
        _ event: StoredEvent,
        _ evidence: StoredEvidence,
        _ app: AppKey?
    ) -> String? {
        guard let reading = try? ReceiptReading(evidence: evidence.received) else {
            return "its evidence names no transaction of a receipt"
        }
        if event.provenance != .receipt { return "it stands in a receipt, which nobody signed" }
        if reading.app != app { return "it was received for another app" }
        if reading.element.originalTransactionID != event.key.stream {
            return "it was received for another subscription"
        }
        return nil
    }

    private static func agrees(_ evidence: StoredEvidence, _ document: VerifiedDocument) -> Bool {
        guard evidence.codec == .decomposed else { return true }
        return zip(evidence.layers, document.layers).allSatisfy { stored, verified in
            stored.headerDigest == verified.headerDigest
                && stored.anchorFingerprint == verified.anchorFingerprint
        }
    }

    private static func hasFact(_ kind: EventKind) -> Bool {
        kind == .ownerLinked || kind == .receipt || ExtensionNote.exists(for: kind)
    }

    private struct AnchorDefect: Error, CustomStringConvertible {
        var description: String
    }

    private func storedAnchors() throws -> Result<TrustAnchors, AnchorDefect> {
        let rows = try connection.query(
            "select certificate from ledger.anchor order by fingerprint"
        )
        var anchors = TrustAnchors()
        for row in 0..<rows.count {
            do { try anchors.add(rows.bytes(row, 0) ?? [], name: "anchor \(row + 1)") } catch {
                return .failure(AnchorDefect(description: "ledger.anchor: \(error.message)"))
            }
        }
        return .success(anchors)
    }
}

/// Compares the typed columns of what was said about extensions with the events' evidence.
enum ExtensionRows {
    static func defect(_ connection: Connection) throws -> LogAudit.Difference? {
        let reader = LogReader(connection)
        var seen: Set<Int64> = []
        for isRequest in [true, false] {
            let rows = try ExtensionNote.rows(
                isRequest: isRequest,
                where: "true order by n.position",
                [],
                connection
            )
            for (position, note) in rows {
                seen.insert(position)
                guard let evidence = try reader.evidence(at: position),
                    var said = try ExtensionNote(evidence: evidence.received)
                else {
                    return LogAudit.Difference(
                        position: position,
                        description: "a row about an extension at \(position) has no event"
                    )
                }
                said[text: "body"] = nil
                said[text: "body_base64"] = nil
                guard said == note else {
                    return LogAudit.Difference(
                        position: position,
                        description: "the columns about the extension at \(position) say "
                            + "something else than its evidence"
                    )
                }
            }
        }
        let rows = try connection.query(
            """
            select position from ledger.event
            where kind like 'extension\\_%' or kind like 'mass\\_extension\\_%'
            order by position
            """
        )
        for row in 0..<rows.count {
            guard let position = rows.int(row, 0), !seen.contains(position) else { continue }
            return LogAudit.Difference(
                position: position,
                description: "the row about the extension at \(position) is missing"
            )
        }
        return nil
    }
}

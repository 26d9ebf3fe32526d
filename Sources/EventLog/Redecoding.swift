internal import AppStore
internal import Ledger
public import Postgres

/// Fills `ledger.fact` anew from the evidence, after a change of the decoder.
///
/// Rows of another decoder are replaced some hundreds at a time, each time in one transaction:
/// whoever reads meanwhile sees a row of the old decoder or of the new one, and knows which it is;
/// an older snapshot keeps the old ones. Ended at any moment it has done some of them, and the next
/// one does the rest.
public struct Redecoding {
    /// What was done.
    public struct Report: Hashable, Sendable {
        /// How many rows were filled anew.
        public var rows: Int64 = 0
        /// How many of them are of events that operators have passed over.
        public var skipped: Int64 = 0

        /// Counts rows.
        public init(rows: Int64 = 0, skipped: Int64 = 0) {
            self.rows = rows
            self.skipped = skipped
        }
    }

    /// How many rows are replaced in one transaction.
    static let batchSize = 500

    private let connection: Connection
    private let source: FactSource
    private let reader: LogReader

    /// Works over a session of the log's owner.
    public init(_ connection: Connection, source: FactSource = .current) {
        self.connection = connection
        self.source = source
        reader = LogReader(connection, source: source)
    }

    /// How many rows another decoder has filled.
    public func pending() throws(EventLogError) -> Int64 {
        try logged("count the rows of other decoders") {
            try connection.query(
                "select count(*) from ledger.fact where decoder <> $1",
                [.int(Int64(source.version))]
            ).int(0, 0) ?? 0
        }
    }

    /// Fills the rows of one slice of `ledger.fact`.
    ///
    /// - Parameters:
    ///   - slice: the slice's place among the parts.
    ///   - skipped: the events that are passed over.
    ///   - shouldStop: asked after each transaction.
    ///   - progress: told how many rows each transaction filled.
    /// - Returns: what was done.
    /// - Throws: `.unreadable`, naming position and stream, at the first event that cannot be
    ///   read and is not passed over; what was filled before stays.
    public func run(
        slice: Int,
        skipping skipped: Set<Int64>,
        shouldStop: () -> Bool = { false },
        progress: (Int) -> Void = { _ in }
    ) throws(EventLogError) -> Report {
        try logged("fill ledger.fact anew") {
            func part(_ table: String) throws -> String {
                guard let part = try reader.slices(of: table).first(where: { $0.index == slice })
                else { throw EventLogError(.invalid, "\(table) has no part \(slice)") }
                return part.relation
            }
            let parts = Parts(
                event: try part("ledger.event"),
                evidence: try part("ledger.evidence"),
                fact: try part("ledger.fact")
            )
            // A few hundred keys are looked up; without statistics a whole part would be read for them.
            try connection.execute("set enable_hashjoin = off; set enable_mergejoin = off")
            var headers = HeaderCache(connection)
            var report = Report()
            var last: (stream: String, appID: Int64, position: Int64) = ("", 0, 0)
            while !shouldStop() {
                let rows = try connection.query(
                    parts.page,
                    [
                        .text(last.stream), .int(last.appID), .int(last.position),
                        .int(Int64(source.version)), .int(Int64(Self.batchSize)),
                    ]
                )
                guard rows.count > 0 else { break }
                var buffer = RowBuffer()
                for row in 0..<rows.count {
                    let event = try StoredEvent(rows, row)
                    let isSkipped = skipped.contains(event.position)
                    do {
                        try write(event, rows, row, &headers, to: &buffer)
                    } catch let error as PostgresError {
                        throw error
                    } catch {
                        guard isSkipped else { throw Self.unreadable(event, error) }
                        write(event, Content(), to: &buffer)
                        report.skipped += 1
                    }
                    last = (event.key.stream, Int64(event.key.appID), event.position)
                }
                try replace(buffer, in: parts)
                report.rows += Int64(rows.count)
                progress(rows.count)
            }
            return report
        }
    }

    /// The same part of each of the three tables, as SQL names them.
    private struct Parts {
        var event: String
        var evidence: String
        var fact: String

        /// The next events whose rows another decoder has filled, with their evidence.
        var page: String {
            """
            select \(StoredEvent.columns), \(StoredParts.columns)
            from (
                select stream, app_id, position from \(fact)
                where (stream, app_id, position) > ($1, $2::integer, $3) and decoder <> $4
                order by stream, app_id, position limit $5
            ) f
            join \(event) event
                on event.stream = f.stream and event.app_id = f.app_id
                and event.position = f.position
            left join \(evidence) evidence
                on evidence.stream = f.stream and evidence.app_id = f.app_id
                and evidence.position = f.position
            order by event.stream, event.app_id, event.position
            """
        }
    }

    /// What a decoder makes of an event.
    private struct Content {
        var fact: Fact?
        var anomalies: [String] = []
        var rescindsConsentOf: AppleID?
    }

    private func write(
        _ event: StoredEvent,
        _ rows: Rows,
        _ row: Int,
        _ headers: inout HeaderCache,
        to buffer: inout RowBuffer
    ) throws {
        let evidence = try reader.evidence(of: event, rows, row, column: 15, &headers)
        var content = Content()
        content.fact = try source.fact(evidence)
        if evidence.form == .jws {
            let details = try FactSource.details(of: evidence)
            content.anomalies = details.anomalies
            content.rescindsConsentOf = details.rescindsConsentOf
        }
        write(event, content, to: &buffer)
    }

    private func write(_ event: StoredEvent, _ content: Content, to buffer: inout RowBuffer) {
        var new = NewEvent(
            app: .none,
            stream: event.key.stream,
            eventKey: event.eventKey,
            kind: event.kind,
            notificationType: event.notificationType,
            subtype: event.subtype,
            provenance: event.provenance,
            signedAt: event.signedAt,
            received: [],
            form: .raw,
            contentDigest: [],
            fact: content.fact,
            decodeAnomalies: content.anomalies
        )
        new.rescindsConsentOf = content.rescindsConsentOf
        let writer = FactWriter(new, appID: event.key.appID, decoder: source.version)
        buffer.beginRow(columns: FactColumns.writtenCount)
        buffer.int64(event.position)
        buffer.fields(of: writer.fields)
    }

    private func replace(_ buffer: RowBuffer, in parts: Parts) throws {
        try connection.transaction { connection in
            try connection.execute(
                """
                set local lock_timeout = '10s';
                create temporary table redecoded (like ledger.fact including defaults)
                    on commit drop
                """
            )
            try connection.copyIn(
                "copy redecoded (\(FactColumns.written)) from stdin (format binary)"
            ) { try $0.write(buffer) }
            try connection.query(
                """
                delete from \(parts.fact) f using redecoded r
                where f.stream = r.stream and f.app_id = r.app_id and f.position = r.position
                """
            )
            try connection.query(
                """
                insert into ledger.fact (\(FactColumns.written))
                select \(FactColumns.written) from redecoded
                """
            )
        }
    }

    private static func unreadable(_ event: StoredEvent, _ error: any Error) -> EventLogError {
        if let error = error as? EventLogError { return error }
        return EventLogError(
            .unreadable,
            "event \(event.position) of \(event.key) cannot be decoded: \(error)",
            position: event.position
        )
    }
}

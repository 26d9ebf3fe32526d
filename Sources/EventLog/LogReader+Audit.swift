public import Ledger
internal import Postgres

extension LogReader {
    /// What an audit looks at of one event.
    public struct AuditedEvent: Sendable {
        /// The event.
        public var event: StoredEvent
        /// What was received, in parts; nil where not even those can be read.
        var parts: StoredParts?
        /// Why the evidence cannot be read.
        public var defect: String?
        /// The row of `ledger.fact`.
        public var fact: Fact?
        /// Whether there is such a row at all.
        public var hasFactRow = false
        /// Whether this program's decoder filled that row, so that it must say the same.
        public var hasOwnFact: Bool
        /// Whether it says something in columns that belong to an answer or a request to extend,
        /// and names neither.
        var hasStrayExtension = false
        /// What the row says that its columns could not hold.
        var anomalies: [String] = []

        /// What the received bytes are; nil where that cannot be read.
        public var form: ReceivedForm? { parts?.parts.codec.form }

        /// What was received, recomposed.
        ///
        /// - Throws: `.unreadable` where that cannot be done.
        public func evidence() throws(EventLogError) -> StoredEvidence {
            guard let parts else {
                throw EventLogError(.unreadable, defect ?? "its evidence cannot be read")
            }
            return try parts.evidence()
        }

        /// Whether the row says what is decoded anew from the evidence, as far as columns can hold
        /// it.
        ///
        /// - Parameters:
        ///   - decoded: what the fold reads.
        ///   - decodeAnomalies: what of a signed document could not be decoded or kept, as
        ///     ``FactSource/anomalies(_:notificationType:subtype:)`` gives it; nil for what is not
        ///     signed, whose row tells of columns alone.
        /// - Returns: whether nothing else stands there.
        public func holds(_ decoded: Fact?, decodeAnomalies: [String]?) -> Bool {
            guard !hasStrayExtension else { return false }
            var event = NewEvent(
                app: .none,
                stream: event.key.stream,
                eventKey: event.eventKey,
                kind: event.kind,
                received: [],
                form: .raw,
                contentDigest: []
            )
            event.fact = decoded
            if let decodeAnomalies {
                event.decodeAnomalies = decodeAnomalies
                let known = FactWriter(event, appID: 0, decoder: 0).anomalies
                guard known.sorted() == anomalies.sorted() else { return false }
                // What PostgreSQL cannot hold is null there, and named.
                return fact == decoded || known.count > event.decodeAnomalies.count
            }
            if fact == decoded { return true }
            return decoded != nil && !FactWriter(event, appID: 0, decoder: 0).anomalies.isEmpty
        }
    }

    /// The events after a position with all that is stored of each, at most `limit`.
    ///
    /// - Throws: `EventLogError`; what cannot be recomposed is a defect, not an error.
    public func auditedEvents(
        after position: Int64,
        limit: Int
    ) throws(EventLogError) -> [AuditedEvent] {
        try logged("read the events after \(position) to audit them") {
            try connection.lookingUp { try auditedEventsInside(after: position, limit: limit) }
        }
    }

    private func auditedEventsInside(after position: Int64, limit: Int) throws -> [AuditedEvent] {
        var headers = HeaderCache(connection)
        let rows = try connection.query(
            """
            select \(StoredEvent.columns), \(StoredParts.columns)
            from ledger.event
            left join ledger.evidence
                on evidence.stream = event.stream and evidence.app_id = event.app_id
                and evidence.position = event.position
            where event.position > $1
            order by event.position limit $2
            """,
            [.int(position), .int(Int64(limit))]
        )
        guard rows.count > 0 else { return [] }
        var result: [AuditedEvent] = []
        var places: [Int64: Int] = [:]
        for row in 0..<rows.count {
            var audited = AuditedEvent(event: try StoredEvent(rows, row), hasOwnFact: false)
            do {
                guard !rows.isNull(row, 15) else {
                    throw EventLogError(.unreadable, "its evidence is missing")
                }
                audited.parts = try parts(
                    of: audited.event,
                    rows,
                    row,
                    column: 15,
                    &headers
                )
                audited.defect = Self.leftover(rows, row)
            } catch let error as EventLogError {
                guard error.code == .unreadable else { throw error }
                audited.defect = error.message
            }
            places[audited.event.position] = result.count
            result.append(audited)
        }
        try readFacts(of: &result, places)
        return result
    }

    /// What stands in columns that evidence of its codec does not use.
    private static func leftover(_ rows: Rows, _ row: Int) -> String? {
        let codec = rows.int(row, 15).flatMap {
            EvidenceCodec(rawValue: Int16(truncatingIfNeeded: $0))
        }
        switch codec {
        // These use all of them, and do not fit together with more.
        case .decomposed, .response: return nil
        case .jws, .raw, nil: break
        }
        let isClean =
            rows.intArray(row, 17)?.isEmpty != false && rows.intArray(row, 18)?.isEmpty != false
            && rows.bytes(row, 20)?.isEmpty != false && rows.bytesArray(row, 19)?.count == 1
        return isClean ? nil : "its evidence has parts that its codec does not use"
    }

    private func readFacts(
        of events: inout [AuditedEvent],
        _ places: [Int64: Int]
    ) throws {
        guard let first = events.first, let last = events.last else { return }
        var reader = FactReader()
        let columns = (["position"] + FactColumns.names).map { "fact.\($0)" }
        let sql = """
            copy (
                select fact.decode_anomalies,
                    fact.extension_request is null and (
                        fact.extension_detail is not null
                        or fact.extension_success is null
                            and fact.extension_effective_date is not null
                    ),
                    \(columns.joined(separator: ", "))
                from ledger.event
                join ledger.fact
                    on fact.stream = event.stream and fact.app_id = event.app_id
                    and fact.position = event.position
                where event.position between \(first.event.position) and \(last.event.position)
            ) to stdout (format binary)
            """
        try connection.copyOut(sql) { row in
            let anomalies = row.textArray() ?? []
            let hasStray = row.bool() ?? false
            let read = reader.row(&row, decoder: source.version)
            guard let place = places[read.position] else { return }
            events[place].hasFactRow = true
            events[place].hasStrayExtension = hasStray
            events[place].anomalies = anomalies
            events[place].fact = read.fact
            events[place].hasOwnFact = read.decoder == source.version
        }
    }
}

public import EventLog
internal import Ledger
public import Postgres
internal import Schema

/// Checks a copy of a ledger that was restored from a backup: that nothing is missing, that all of
/// it is as it was written, and that its read models are what the log gives.
public struct RestoreCheck {
    /// What is checked, in order.
    public enum Step: String, Hashable, Sendable, CaseIterable {
        /// The schema is the one that this program serves.
        case schema
        /// The roles that own and use the ledger are there.
        case roles
        /// Positions are dense, and the head is the last of them.
        case positions
        /// Every event has its evidence, and every header, anchor and codec that it needs.
        case evidence
        /// Every hash, and the chain over them; the kept head is a link of it.
        case chain
        /// Signatures, of a sample or of all.
        case signatures
        /// The read models are there, and equal to what the log gives.
        case readModels = "read_models"
    }

    /// What a step found.
    public struct Finding: Hashable, Sendable {
        /// The step.
        public var step: Step
        /// Whether all is well.
        public var isOK: Bool
        /// What was found.
        public var text: String
    }

    private let connection: Connection
    private let connect: @Sendable () throws -> Connection

    /// Makes a check.
    ///
    /// - Parameter connect: opens a session on the copy that may do everything there.
    /// - Throws: `PostgresError` when it cannot be reached.
    public init(_ connect: @escaping @Sendable () throws -> Connection) throws {
        self.connect = connect
        connection = try connect()
    }

    /// Checks everything; what one step finds does not keep the later ones from looking, but for
    /// the schema, without which nothing can be read.
    ///
    /// - Parameters:
    ///   - kept: a head that was kept elsewhere.
    ///   - sample: how many events' signatures are verified at least; nil for all.
    ///   - heard: told of each finding as it is made.
    /// - Returns: the findings.
    /// - Throws: what `heard` throws; what goes wrong with the copy is a finding.
    public func run(
        keeping kept: AuditHead? = nil,
        sample: Int64? = nil,
        heard: (Finding) throws -> Void = { _ in }
    ) throws -> [Finding] {
        var findings: [Finding] = []
        func note(_ step: Step, _ look: () throws -> (isOK: Bool, text: String)) throws {
            var finding = Finding(step: step, isOK: false, text: "")
            do { (finding.isOK, finding.text) = try look() } catch {
                finding.text = "\(error)"
            }
            findings.append(finding)
            try heard(finding)
        }
        try note(.schema, schema)
        guard findings.allSatisfy(\.isOK) else { return findings }
        try note(.roles, roles)
        try note(.positions, positions)
        try note(.evidence, evidence)
        try note(.chain) { try chain(kept) }
        try note(.signatures) { try signatures(sample) }
        try note(.readModels, readModels)
        return findings
    }

    private func schema() throws -> (isOK: Bool, text: String) {
        try Migrator(connection, extra: ReadModels.migrations).check()
        return (true, "the schema is this program's")
    }

    private func roles() throws -> (isOK: Bool, text: String) {
        let roles = try Migrator.defaultRoles(connection)
        let rows = try connection.query(
            "select rolname::text from pg_roles where rolname like $1",
            [.text(roles.owner.dropLast("owner".count) + "%")]
        )
        let there = Set((0..<rows.count).compactMap { rows.text($0, 0) })
        let missing = roles.all.filter { !there.contains($0) }
        guard missing.isEmpty else {
            return (
                false,
                "missing: \(missing.joined(separator: ", ")); a dump holds no roles, make them "
                    + "with subledger migrate --print-roles before restoring"
            )
        }
        return (true, "\(roles.owner) and the others are there")
    }

    private func positions() throws -> (isOK: Bool, text: String) {
        let rows = try connection.query(
            """
            select count(*), coalesce(min(position), 0), coalesce(max(position), 0),
                (select position from ledger.head),
                (select coalesce(max(last_position), 0) from ledger.batch)
            from ledger.event
            """
        )
        let numbers = (0..<5).map { rows.int(0, $0) ?? -1 }
        let (count, first, last, head, batch) =
            (numbers[0], numbers[1], numbers[2], numbers[3], numbers[4])
        guard count == last, first == min(1, count) else {
            return (false, "there are \(count) events at the positions \(first) to \(last)")
        }
        guard head == last, batch == last else {
            return (
                false,
                "the last event is \(last), the head says \(head), the last batch \(batch)"
            )
        }
        return (true, "\(count) events, dense, and the head is the last")
    }

    private func evidence() throws -> (isOK: Bool, text: String) {
        let rows = try connection.query(
            """
            select
                (select min(e.position) from ledger.event e where not exists (
                    select from ledger.evidence v
                    where v.stream = e.stream and v.app_id = e.app_id
                        and v.position = e.position)),
                (select min(v.position) from ledger.evidence v where not exists (
                    select from ledger.event e
                    where v.stream = e.stream and v.app_id = e.app_id
                        and v.position = e.position)),
                (select min(v.position) from ledger.evidence v
                 where exists (
                    select from unnest(v.headers) h
                    where not exists (
                        select from ledger.jws_header j where j.header_id = h))),
                (select min(v.position) from ledger.evidence v where v.codec not in (0, 1, 2, 3)),
                (select count(*) from ledger.jws_header j where not exists (
                    select from ledger.anchor a where a.fingerprint = j.anchor_fingerprint)),
                (select count(*) from ledger.jws_header), (select count(*) from ledger.anchor)
            """
        )
        let lacks = [
            "its evidence is missing", "its event is missing", "a header of it is missing",
            "its codec is none that this program knows",
        ]
        for (column, what) in lacks.enumerated() {
            if let position = rows.int(0, column) {
                return (false, "position \(position): \(what)")
            }
        }
        let orphans = rows.int(0, 4) ?? 0
        guard orphans == 0 else { return (false, "\(orphans) headers lack their anchor") }
        return (
            true, "whole, with \(rows.int(0, 5) ?? 0) headers and \(rows.int(0, 6) ?? 0) anchors"
        )
    }

    private func chain(_ kept: AuditHead?) throws -> (isOK: Bool, text: String) {
        let report = try LogAudit(connection).run(keeping: kept)
        if let difference = report.difference {
            return (false, "position \(difference.position): \(difference.description)")
        }
        return (
            true,
            "\(report.events) events hashed"
                + (kept == nil ? "; no head from elsewhere was given to compare with" : "")
        )
    }

    private func signatures(_ sample: Int64?) throws -> (isOK: Bool, text: String) {
        let report = try LedgerAudit(connection).run(sample: sample)
        if let difference = report.difference {
            return (false, "position \(difference.position): \(difference.description)")
        }
        return (true, "\(report.signatures) verified anew; \(report.rows) rows beside the log hold")
    }

    private func readModels() throws -> (isOK: Bool, text: String) {
        try ReadModelCheck(connection, connect).run()
    }
}

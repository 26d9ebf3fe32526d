internal import EventLog
internal import Ledger
internal import LedgerService

/// `subledger audit …`.
enum AuditCommands {
    static let head = Command(
        name: "audit head",
        summary: "Print the end of the ledger's hash chain, to be kept elsewhere.",
        options: [.database, .config, .json],
        details: """
            Whoever keeps this line outside the database can later show that nothing before it
            was changed, removed or put in between.
            """,
        run: { arguments in
            _ = try arguments.operands()
            let database = try Database.open(arguments, Configuration.find(arguments))
            let head = try LogReader(database.connect(as: .auditor)).head()
            let output = Output.standard()
            if arguments.has("--json") {
                var json = JSONWriter()
                json.beginObject()
                json.member("position", head.position)
                json.member("root", head.rootText)
                json.member("recorded_at", head.recordedAt)
                json.endObject()
                try output.line(json.text)
            } else {
                try output.line("\(head.position) \(head.rootText) \(head.recordedAt)")
            }
            try output.flush()
            return .done
        }
    )

    static let verify = Command(
        name: "audit verify",
        summary: "Check every hash, every signature and every column of the ledger.",
        options: [
            .database, .config, .json,
            .value("--position", "N", "the position of a head that was kept elsewhere"),
            .value("--root", "HASH", "its hash; the ledger must still contain it"),
        ],
        details: """
            Hashes every event and its evidence again, verifies every signature anew as of the day
            it was made, without asking anybody, compares the decoded columns with what is signed,
            and the rows beside the log with the events that recorded them. With --position and
            --root, as `audit head` printed them, it also proves that the ledger is a continuation
            of the one that was kept. Exit code 5 when something differs; the first is named.
            """,
        run: verify
    )

    static let record = Command(
        name: "audit record",
        summary: "Record changes of apps, policies, tokens and the like as events.",
        options: [.database, .config],
        details: """
            `serve` does it every minute, and the commands that change such things do it at once;
            from then on the chain covers the changed rows.
            """,
        run: { arguments in
            _ = try arguments.operands()
            let database = try Database.open(arguments, Configuration.find(arguments))
            let count = try database.recordRows()
            let output = Output.standard()
            try output.line("\(grouped(Int64(count))) rows recorded")
            try output.flush()
            return .done
        }
    )

    private static func verify(_ arguments: Arguments) throws -> ExitCode {
        _ = try arguments.operands()
        let kept = try kept(arguments)
        let database = try Database.open(arguments, Configuration.find(arguments))
        let connection = try database.connect(as: .auditor)
        let total = try LogReader(connection).head().position
        let bar = ProgressBar("audit", unit: "events")
        let report = try LedgerAudit(connection).run(keeping: kept) { part, position in
            let share = Double(position) / Double(max(1, total))
            bar.update(fraction: (part == .chain ? share : 1 + share) / 2, count: Int(position))
        }
        bar.clear()
        let output = Output.standard()
        if arguments.has("--json") {
            var json = JSONWriter()
            json.beginObject()
            json.member("position", report.head.position)
            json.member("root", report.head.rootText)
            json.member("events", report.events)
            json.member("signatures", Int64(report.signatures))
            json.member("unsigned", Int64(report.unsigned))
            json.member("receipts", Int64(report.receipts))
            json.member("recorded_rows", Int64(report.rows))
            json.member("unrecorded_rows", Int64(report.unrecordedRows))
            json.member("whole", report.difference == nil)
            json.member("difference_position", report.difference?.position)
            json.member("difference", report.difference?.description)
            json.endObject()
            try output.line(json.text)
        } else if report.difference == nil {
            try output.line(
                "\(grouped(report.events)) events and \(grouped(Int64(report.signatures))) "
                    + "signatures checked: whole"
            )
            if report.receipts > 0 {
                try output.line(
                    "\(grouped(Int64(report.receipts))) events stand in receipts: they carry no "
                        + "signature, and only the chain vouches that they are as received"
                )
            }
            if report.unrecordedRows > 0 {
                try output.line(
                    "\(grouped(Int64(report.unrecordedRows))) rows beside the log are newer than "
                        + "the last recording: subledger audit record"
                )
            }
        }
        try output.flush()
        guard let difference = report.difference else { return .done }
        throw CommandFailure(
            exitCode: .integrity,
            message: "the ledger is not as it was written: position \(difference.position): "
                + difference.description
        )
    }

    /// The head that was kept elsewhere, if one is given.
    static func kept(_ arguments: Arguments) throws -> AuditHead? {
        let position = try arguments.integer("--position", in: 0...Int64.max)
        let root = try arguments.value("--root").map { text throws(CommandFailure) in
            guard let bytes = bytes(hexadecimal: text), bytes.count == 32 else {
                throw .usage("--root takes the 64 hexadecimal digits that `audit head` printed")
            }
            return bytes
        }
        guard (position == nil) == (root == nil) else {
            throw CommandFailure.usage("--position and --root go together")
        }
        guard let position, let root else { return nil }
        return AuditHead(position: position, root: root, recordedAt: .earliest)
    }

    private static func bytes(hexadecimal text: String) -> [UInt8]? {
        let digits = text.utf8.map { Character(UnicodeScalar($0)).hexDigitValue }
        guard digits.count.isMultiple(of: 2) else { return nil }
        var bytes: [UInt8] = []
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = digits[index], let low = digits[index + 1] else { return nil }
            bytes.append(UInt8(high * 16 + low))
        }
        return bytes
    }
}

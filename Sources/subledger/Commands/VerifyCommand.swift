internal import AppStore
internal import EventLog
internal import Ledger
internal import LedgerService

/// `subledger verify`.
enum VerifyCommand {
    static let command = Command(
        name: "verify",
        summary: "Check Apple's signatures line by line and print what was signed.",
        operands: "[FILE|-]",
        options: [
            .root,
            .value("--bundle-id", "ID", "the app that the data must belong to"),
            .value("--app-apple-id", "N", "its App Store number, needed for Production"),
            .value(
                "--environment",
                "Sandbox|Production",
                "what the data must belong to; default: as it says itself"
            ),
        ],
        details: """
            A line is {"signedPayload": "…"} or a signed text itself: a notification, a
            transaction, a renewal info or an app transaction. One JSON line comes out for each.
            Exit code 0 means that all are trusted, 1 that some are not. Nothing is stored and
            no database is needed. Without --bundle-id nobody checks whose data it is, and each
            line says so.
            """,
        run: run
    )

    /// How many lines make one piece of work.
    private static let chunkLinesMax = 32
    /// How many pieces are read ahead of what is printed.
    private static let chunksAheadMax = 16

    private static func run(_ arguments: Arguments) throws -> ExitCode {
        if arguments.operands.count > 1 { _ = try arguments.operands(named: "FILE") }
        let report = VerifyReport(verifier: try verifier(arguments))
        let reader = try LineReader(path: arguments.operands.first ?? "-")
        let output = Output.standard()
        let now = Timestamp.now
        let pipeline = OrderedPipeline<[LineReader.Line], [VerifyReport.Line]>(
            depth: chunksAheadMax
        ) { lines in
            lines.compactMap { line in
                switch line {
                case .text(_, let bytes) where SignedInput.isBlank(bytes): nil
                case .text(let number, let bytes): report.line(number, input: bytes, now: now)
                case .tooLong(let number, let sizeBytes):
                    report.line(number, refusing: .lineTooLong(sizeBytes: sizeBytes))
                }
            }
        }
        var areAllTrusted = true
        while true {
            while !pipeline.isFull, pipeline.isEmpty || reader.isReady,
                let chunk = try reader.lines(max: chunkLinesMax)
            {
                pipeline.give(chunk)
            }
            guard let lines = pipeline.take() else { break }
            for line in lines {
                areAllTrusted = areAllTrusted && line.isTrusted
                try output.write(line.json)
                try output.line()
            }
            // A person who types line after line gets an answer to each.
            if !reader.isReady { try output.flush() }
        }
        try output.flush()
        return areAllTrusted ? .done : .someRejected
    }

    private static func verifier(_ arguments: Arguments) throws -> Verifier {
        var acceptance = Acceptance()
        for path in arguments.values(Option.root.name) { try acceptance.addAnchor(path) }
        for warning in acceptance.warnings(now: .now) {
            printError("subledger: warning: \(warning)")
        }
        let environment = try environment(arguments)
        let number = try arguments.integer("--app-apple-id", in: 1...Int64.max)
        guard let bundleID = arguments.value("--bundle-id") else {
            guard number == nil else {
                throw CommandFailure.usage("--app-apple-id goes with --bundle-id")
            }
            printError("subledger: the identity check is skipped; --bundle-id ID turns it on")
            return Verifier(anchors: acceptance.anchors, apps: nil, environment: environment)
        }
        let app = AcceptedApp(
            bundleID: bundleID,
            appAppleID: number,
            environments: [.production, .sandbox]
        )
        return Verifier(anchors: acceptance.anchors, apps: [app], environment: environment)
    }

    private static func environment(_ arguments: Arguments) throws -> Environment? {
        guard let text = arguments.value("--environment") else { return nil }
        let environment = Environment(text)
        guard environment.unknownText == nil else {
            throw CommandFailure.usage("--environment is Sandbox or Production, not “\(text)”")
        }
        return environment
    }
}

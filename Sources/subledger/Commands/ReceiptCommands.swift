internal import AppStore
internal import Ledger
internal import LedgerService

/// `subledger receipt …`: what verifyReceipt told, from files and from Apple.
enum ReceiptCommands {
    private static let common: [Option] = [
        .database, .config, .json, .acceptBundle, .appAppleID,
        .value("--bundle-id", "ID", "the app of responses that name none, as those of iOS 6"),
        .value("--rejects", "FILE", "write what was refused or not read, and why, there"),
        .flag("--no-project", "leave the read models as they are; the streams stay marked"),
        .allowUnsafeServer,
    ]

    static let importing = Command(
        name: "receipt import",
        summary: "Take saved responses of verifyReceipt into the ledger.",
        operands: "FILE|-",
        options: common + [
            .value(
                "--environment",
                "Sandbox|Production",
                "the environment of responses that name none"
            )
        ],
        details: """
            FILE holds one response, or many, one a line. Each transaction and each renewal in them
            becomes an event of its subscription with provenance `receipt`: nobody signed it, so it
            fills what no signed text tells and outranks none. The responses are kept byte for byte.
            Reading a file again is harmless. Notifications of version 1 are refused by name.
            """,
        run: runImport
    )

    static let fetching = Command(
        name: "receipt fetch",
        summary: "Ask Apple's verifyReceipt about receipts, and take the answers in.",
        operands: "FILE|-",
        options: common + [
            .value("--secret", "FILE", "the file with the app's shared secret; needed"),
            .flag("--exclude-old", "ask only for the newest period of each subscription"),
        ],
        details: """
            FILE holds a receipt a line: base64, or an object with it (a request, a response, a
            notification of version 1). Production is asked first, the Sandbox where Production says
            that the receipt belongs there. Apple calls verifyReceipt deprecated; where a receipt's
            transaction is known, `sync` gets the same signed.
            """,
        run: runFetch
    )

    /// What both commands work with.
    private struct Desk {
        let database: Database
        let receipts: ReceiptImport
        let refusals: Refusals
        let configuration: Configuration?

        init(_ arguments: Arguments) throws {
            configuration = try Configuration.find(arguments)
            let acceptance = try Acceptance(arguments, configuration)
            refusals = try Refusals(
                path: arguments.value("--rejects"),
                reading: arguments.operands.first
            )
            let database = try Database.open(arguments, configuration)
            self.database = database
            try database.refuseUnsafeServer(arguments)
            if let configuration {
                try IngestCommand.storeRules(configuration, in: database)
            }
            receipts = ReceiptImport(apps: acceptance.apps) {
                try database.connect(as: .appender)
            }
            receipts.bundleID = arguments.value("--bundle-id")
        }

        func listener(_ bar: ProgressBar, of reader: LineReader) -> ReceiptImport.Listener {
            var listener = ReceiptImport.Listener()
            listener.refused = refusals.add
            listener.shouldStop = { Interruption.isRequested }
            listener.progress = { report in
                let fraction = reader.sizeBytes.map { size in
                    size == 0 ? 1 : Double(reader.readBytes) / Double(size)
                }
                bar.update(fraction: fraction, count: report.bodies)
            }
            return listener
        }

        func end(_ report: ReceiptReport, _ arguments: Arguments) throws {
            try refusals.finish()
            if !arguments.has("--no-project"), !report.isStopped {
                try IngestCommand.project(database)
            }
            let output = Output.standard()
            try output.line(arguments.has("--json") ? report.json : report.text)
            try output.flush()
            if report.isStopped {
                printError("stopped; run the same command again: what is stored is recognised")
            }
        }
    }

    private static func reader(_ arguments: Arguments) throws -> LineReader {
        let path = try arguments.operands(named: "FILE")[0]
        return try LineReader(path: path, limitBytes: ReceiptDocuments.sizeMaxBytes)
    }

    private static func runImport(_ arguments: Arguments) throws -> ExitCode {
        let reader = try reader(arguments)
        let environment = try EntitlementsCommand.environment(arguments)
        let desk = try Desk(arguments)
        desk.receipts.environment = environment
        let bar = ProgressBar("receipts", unit: "responses")
        let report = try Interruption.cooperatively {
            defer { bar.clear() }
            return try desk.receipts.run(
                ReceiptDocuments(reader),
                now: .now,
                listener: desk.listener(bar, of: reader)
            )
        }
        try desk.end(report, arguments)
        return report.rejected > 0 ? .someRejected : .done
    }

    private static func runFetch(_ arguments: Arguments) throws -> ExitCode {
        guard let secretFile = arguments.value("--secret") else {
            throw CommandFailure.usage("--secret FILE is needed: Apple asks for the shared secret")
        }
        let reader = try reader(arguments)
        let settings = AppStoreSettings(environment: { environment($0) })
        let configured = try Configuration.find(arguments)?.appStore ?? AppStoreSettings()
        let client = try ReceiptDesk.client(
            configured.overridden(by: settings),
            secretFile: secretFile,
            excludesOld: arguments.has("--exclude-old"),
            surroundings: AppleDesk.surroundings
        )
        let desk = try Desk(arguments)
        let bar = ProgressBar("receipts", unit: "receipts")
        let listener = desk.listener(bar, of: reader)
        var report = try Interruption.cooperatively {
            defer { bar.clear() }
            while !Interruption.isRequested, let line = try reader.next() {
                guard case .text(let number, let bytes) = line else { continue }
                if SignedInput.isBlank(bytes) { continue }
                guard try fetch(bytes, number, client, desk, listener) else { break }
            }
            return try desk.receipts.finish(listener)
        }
        report.isStopped = Interruption.isRequested
        try desk.end(report, arguments)
        return report.rejected > 0 ? .someRejected : .done
    }

    /// Asks about one receipt; false where it makes no sense to ask about another one.
    private static func fetch(
        _ line: [UInt8],
        _ number: Int,
        _ client: ReceiptClient,
        _ desk: Desk,
        _ listener: ReceiptImport.Listener
    ) throws -> Bool {
        func refuse(_ reason: String, _ detail: String) throws {
            try desk.receipts.refuse(number, reason: reason, detail: detail, listener: listener)
        }
        guard let receipt = ReceiptClient.receipt(ofLine: line) else {
            try refuse("receipt", "the line holds no receipt")
            return true
        }
        let answer: ReceiptClient.Answer
        do { answer = try client.ask(receipt) } catch {
            try refuse(error.kind.rawValue, error.message)
            // Where nobody answers, nobody answers for the next one either.
            return error.kind != .transport && error.kind != .stopped
        }
        try desk.receipts.take(
            answer.body,
            number: number,
            receivedAt: answer.receivedAt,
            environment: answer.environment,
            now: .now,
            listener: listener
        )
        return true
    }
}

extension ReceiptReport {
    /// The counts for people.
    var text: String {
        var text = "\(grouped(bodies)) responses: \(grouped(appended)) facts appended, "
        text += "\(grouped(duplicate)) duplicate, \(grouped(conflict)) in conflict; "
        text += "\(grouped(empty)) responses tell of no purchase, \(grouped(rejected)) rejected"
        if quarantined > 0 { text += ", \(grouped(quarantined)) facts quarantined" }
        if flagged > 0 { text += "; \(grouped(flagged)) objects were not read whole" }
        return text
    }
}

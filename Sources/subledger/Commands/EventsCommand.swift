internal import AppStore
internal import EventLog
internal import Ledger
internal import LedgerService

/// `subledger events`.
enum EventsCommand {
    static let command = Command(
        name: "events",
        summary: "List what the ledger holds of a subscription.",
        operands: "ID",
        options: [.database, .config, .json],
        details: """
            ID is an originalTransactionId, or the name of a stream that belongs to no
            subscription, such as app:com.example.app. Commands that take a POSITION want the
            number in the first column.
            """,
        run: run
    )

    private static func run(_ arguments: Arguments) throws -> ExitCode {
        let id = try arguments.operands(named: "ID")[0]
        let database = try Database.open(arguments, Configuration.find(arguments))
        let streams = try EventQuery(stream: id).streams(database.connect(as: .auditor))
        let output = Output.standard()
        if arguments.has("--json") {
            var json = JSONWriter(pretty: true)
            json.beginArray()
            for stream in streams { stream.write(to: &json) }
            json.endArray()
            try output.line(json.text)
        } else {
            for (index, stream) in streams.enumerated() {
                if index > 0 { try output.line() }
                try output.line(Terminal.bold("\(stream.app.bundleID) (\(stream.app.environment))"))
                try output.table(table(stream))
            }
        }
        try output.flush()
        guard !streams.isEmpty else { throw CommandFailure.unknownSubscription(id) }
        return .done
    }

    private static func table(_ stream: EventQuery.Stream) -> TextTable {
        var table = TextTable("#position", "~event", "trust", "signed", "recorded", "~key")
        for event in stream.events {
            table.add(
                "\(event.position)",
                event.title,
                event.provenance.text,
                event.signedAt.map(second) ?? "–",
                second(event.recordedAt),
                event.eventKey
            )
        }
        return table
    }
}

/// `subledger evidence`.
enum EvidenceCommand {
    static let command = Command(
        name: "evidence",
        summary: "Print what was received for an event, byte for byte, and verify it again.",
        operands: "POSITION",
        options: [.database, .config, .json],
        details: """
            Standard output gets the received bytes and nothing else, so that
            `subledger evidence 17 | subledger verify -` works; the verdict goes to standard error.
            """,
        run: run
    )

    private static func run(_ arguments: Arguments) throws -> ExitCode {
        let position = try Arguments.integer(
            arguments.operands(named: "POSITION")[0],
            of: "POSITION",
            in: 1...Int64.max
        )
        let database = try Database.open(arguments, Configuration.find(arguments))
        let connection = try database.connect(as: .auditor)
        guard let evidence = try EventQuery.evidence(at: position, connection) else {
            throw CommandFailure.notFound("the ledger has no event \(position)")
        }
        let verdict = try verdict(of: evidence)
        let output = Output.standard()
        if arguments.has("--json") {
            try output.line(json(evidence, verdict))
        } else {
            try output.write(evidence.received)
            try output.line()
        }
        try output.flush()
        printError("event \(position), \(evidence.event.title): \(verdict.text)")
        return verdict.isRefuted ? .integrity : .done
    }

    /// What verifying the stored bytes again comes to.
    private struct Finding {
        var text: String
        var name: String
        var reason: String?
        var isRefuted = false
    }

    /// Verifies with the anchors that the ledger kept: nothing outside it is needed but the
    /// fingerprint of Apple's root.
    private static func verdict(of evidence: StoredEvidence) throws -> Finding {
        guard evidence.form == .jws else {
            return Finding(text: "unsigned, as received", name: "unsigned")
        }
        var anchors = TrustAnchors()
        for layer in evidence.layers { try anchors.add(layer.anchorDER, name: "ledger.anchor") }
        switch Verifier(anchors: anchors, apps: nil).verify(evidence.received, now: .now) {
        case .trusted(let document):
            let root = document.layers.first?.anchorFingerprint ?? []
            let isApple = TrustAnchors.builtIn.contains { $0.fingerprint == root }
            let who = isApple ? "Apple's root" : "a configured test root, not Apple's"
            return Finding(text: "trusted, vouched for by \(who)", name: "trusted")
        case .rejected(let rejection), .undecided(let rejection):
            return Finding(
                text: "NOT TRUSTED: \(rejection)",
                name: "rejected",
                reason: rejection.reason.rawValue,
                isRefuted: true
            )
        }
    }

    private static func json(_ evidence: StoredEvidence, _ finding: Finding) -> String {
        var json = JSONWriter(pretty: true)
        json.beginObject()
        json.member("position", evidence.event.position)
        json.member("stream", evidence.event.key.stream)
        json.member("event_key", evidence.event.eventKey)
        json.member("verdict", finding.name)
        json.member("reason", finding.reason)
        json.member("received", String(validating: evidence.received, as: UTF8.self))
        json.key("anchors")
        json.beginArray()
        for layer in evidence.layers {
            json.string(layer.anchorFingerprint.map(hexadecimal).joined())
        }
        json.endArray()
        json.endObject()
        return json.text
    }
}

extension CommandFailure {
    /// No stream of that name is in the ledger.
    static func unknownSubscription(_ id: String) -> CommandFailure {
        .notFound("the ledger knows no subscription \(printable(id)) (an originalTransactionId)")
    }
}

/// An instant to the second, as tables show it.
func second(_ instant: Timestamp) -> String {
    let text = "\(instant)"
    return text.prefix(10) + " " + text.dropFirst(11).prefix(8)
}

/// A byte as two hexadecimal digits.
func hexadecimal(_ byte: UInt8) -> String {
    (byte < 16 ? "0" : "") + String(byte, radix: 16)
}

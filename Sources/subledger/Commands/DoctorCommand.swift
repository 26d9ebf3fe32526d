internal import HTTP
internal import Ledger
internal import LedgerService
internal import Postgres

/// `subledger doctor`.
enum DoctorCommand {
    static let command = Command(
        name: "doctor",
        summary: "Look at everything an installation needs; say what is wrong and what helps.",
        options: [
            .database, .config, .root, .json,
            .value(
                "--url",
                "URL",
                "also ask the running service there, such as http://127.0.0.1:8080"
            ),
            .flag("--only-url", "ask the running service and look at nothing else"),
        ],
        details: """
            Nothing is changed. Exit code 0 when nothing fails, 1 when something does; warnings
            alone are 0. An https:// address is not asked: this program has no TLS client yet, so
            neither the certificate nor what a proxy makes of a delivery is checked.
            """,
        run: run
    )

    private static func run(_ arguments: Arguments) throws -> ExitCode {
        _ = try arguments.operands()
        if arguments.has("--only-url"), !arguments.has("--url") {
            throw CommandFailure.usage("--only-url goes with --url URL")
        }
        var diagnoses: [Diagnosis] = []
        if !arguments.has("--only-url") { diagnoses += try installation(arguments) }
        if let url = arguments.value("--url") { diagnoses += try endpoint(url) }
        let output = Output.standard()
        if arguments.has("--json") {
            var json = JSONWriter(pretty: true)
            json.beginObject()
            json.member("healthy", !diagnoses.contains { $0.level == .fail })
            json.key("checks")
            json.beginArray()
            for diagnosis in diagnoses { diagnosis.write(to: &json) }
            json.endArray()
            json.endObject()
            try output.line(json.text)
        } else {
            let width = diagnoses.reduce(0) { max($0, $1.name.count) }
            for diagnosis in diagnoses {
                let level = diagnosis.level.rawValue
                let name =
                    diagnosis.name + String(repeating: " ", count: width - diagnosis.name.count)
                let start = level + String(repeating: " ", count: 6 - level.count) + name
                try output.line(printable("\(start)  \(diagnosis.finding)"))
                if let remedy = diagnosis.remedy {
                    let indent = String(repeating: " ", count: 8 + width)
                    try output.line(printable("\(indent)→ \(remedy)"))
                }
            }
        }
        try output.flush()
        return diagnoses.contains { $0.level == .fail } ? .someRejected : .done
    }

    /// What is wrong with a configuration or a connection is a finding, not the end.
    private static func installation(_ arguments: Arguments) throws -> [Diagnosis] {
        var diagnoses: [Diagnosis] = []
        var configuration: Configuration?
        var acceptance = Acceptance()
        do {
            configuration = try Configuration.find(arguments)
            if let configuration { acceptance = try Acceptance(configuration) }
            for path in arguments.values(Option.root.name) { try acceptance.addAnchor(path) }
            let settings = try ServiceSettings(arguments, configuration)
            if let contradiction = settings.contradiction {
                throw CommandFailure.input(contradiction)
            }
            let listen = settings.listen ?? ServiceSettings.listenDefault
            diagnoses.append(Diagnosis("configuration", .ok, "serve would listen on \(listen)"))
        } catch {
            diagnoses.append(
                Diagnosis(
                    "configuration",
                    .fail,
                    CommandFailure(error).message,
                    remedy: "subledger config check shows all that is wrong"
                )
            )
        }
        do {
            let database = try Database.openUnchecked(arguments, configuration)
            let doctor = Doctor(
                try database.connect(),
                isEmbedded: database.server != nil,
                acceptance: acceptance,
                now: { .now }
            )
            diagnoses += doctor.examine()
        } catch {
            diagnoses.append(
                Diagnosis(
                    "database",
                    .fail,
                    CommandFailure(error).message,
                    remedy: "is it running, and does DATABASE_URL name it?"
                )
            )
        }
        return diagnoses
    }

    // MARK: - The running service

    private static func endpoint(_ url: String) throws -> [Diagnosis] {
        if url.hasPrefix("https://") {
            return [
                Diagnosis(
                    "endpoint",
                    .warn,
                    "\(url) is not asked: this program has no TLS client yet",
                    remedy: "curl --fail \(url)/healthz shows whether the certificate is good"
                )
            ]
        }
        guard let place = HTTPPlace(url) else {
            throw CommandFailure.usage("--url takes http://HOST:PORT, not “\(url)”")
        }
        return ["/healthz", "/readyz"].map { ask(place, url, path: $0) }
    }

    private static func ask(_ place: HTTPPlace, _ url: String, path: String) -> Diagnosis {
        let name = path == "/healthz" ? "endpoint" : "ready"
        do throws(HTTPPlace.Failure) {
            let status = try place.status(of: path)
            guard status == 200 else {
                return Diagnosis(
                    name,
                    .fail,
                    "\(url)\(path) answers \(status)",
                    remedy: "its log says why"
                )
            }
            return Diagnosis(name, .ok, "\(url)\(path) answers 200")
        } catch {
            return Diagnosis(
                name,
                .fail,
                "\(url)\(path): \(error.message)",
                remedy: "is `subledger serve` running there?"
            )
        }
    }
}

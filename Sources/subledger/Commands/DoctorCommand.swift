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
            .value("--ca", "FILE", "PEM file with the authorities to trust for https addresses"),
        ],
        details: """
            Nothing is changed. Exit code 0 when nothing fails, 1 when something does; warnings
            alone are 0. Where the configuration has public_url, the address that Apple delivers to
            is asked too: its certificate must be good, and the path open. From inside that may go
            another way than from Apple; a test notification shows the whole way.
            """,
        run: run
    )

    private static func run(_ arguments: Arguments) throws -> ExitCode {
        _ = try arguments.operands()
        if arguments.has("--only-url"), !arguments.has("--url") {
            throw CommandFailure.usage("--only-url goes with --url URL")
        }
        var diagnoses: [Diagnosis] = []
        let check = try endpointCheck(arguments)
        if !arguments.has("--only-url") { diagnoses += try installation(arguments, check) }
        if let url = arguments.value("--url") {
            do throws(HTTPClientError) { diagnoses += check.service(try HTTPURL(url)) } catch {
                throw CommandFailure.usage("--url takes http://HOST:PORT or https://HOST: \(error)")
            }
        }
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
    private static func installation(
        _ arguments: Arguments,
        _ check: EndpointCheck
    ) throws -> [Diagnosis] {
        var diagnoses: [Diagnosis] = []
        var configuration: Configuration?
        var acceptance = Acceptance()
        var silence = Silence.Limits()
        var publicURL: HTTPURL?
        do {
            configuration = try Configuration.find(arguments)
            if let configuration { acceptance = try Acceptance(configuration) }
            for path in arguments.values(Option.root.name) { try acceptance.addAnchor(path) }
            let settings = try ServiceSettings(arguments, configuration)
            if let contradiction = settings.contradiction {
                throw CommandFailure.input(contradiction)
            }
            silence = settings.silence ?? silence
            publicURL = settings.publicURL
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
                now: { .now },
                silenceLimits: silence,
                destinations: (configuration?.forward ?? []).map(\.name)
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
        if let publicURL {
            diagnoses += check.publicAddress(publicURL)
        } else {
            diagnoses.append(
                Diagnosis(
                    "public",
                    .warn,
                    "the address that Apple delivers to is not configured, so it was not asked",
                    remedy: "set public_url in the section service: https://HOST"
                )
            )
        }
        return diagnoses
    }

    private static func endpointCheck(_ arguments: Arguments) throws -> EndpointCheck {
        var client = HTTPClientConfiguration()
        if let file = arguments.value("--ca") { client.trustAnchors = .file(file) }
        client.connectTimeout = .seconds(5)
        client.wholeTimeout = .seconds(5)
        return EndpointCheck(client: try HTTPClient(client), now: { .now })
    }
}

internal import Ledger
internal import LedgerService

/// `subledger token create|list|revoke`.
enum TokenCommands {
    static let create = Command(
        name: "token create",
        summary: "Make a bearer token for the HTTP interface and show it, this once.",
        options: [
            .database, .config,
            .value("--role", "reader|operator|auditor", "what its holder may do"),
            .value("--name", "TEXT", "what it is for, such as the service that gets it"),
            .value("--operator", "WHO", "who makes it"),
        ],
        details: """
            A reader asks for read models, an auditor for events and evidence too, an operator for
            what a reader sees, and acts. The token goes to standard output and nothing else does;
            only its SHA-256 is kept. Tokens are never changed, only revoked.
            """,
        run: runCreate
    )

    static let list = Command(
        name: "token list",
        summary: "List the tokens of the HTTP interface, the revoked ones too.",
        options: [.database, .config, .json],
        run: runList
    )

    static let revoke = Command(
        name: "token revoke",
        summary: "Revoke a token for ever; running services know within seconds.",
        operands: "ID",
        options: [.database, .config, .value("--operator", "WHO", "who revokes it")],
        details: "ID is the short name in `subledger token list`, the token's middle part.",
        run: runRevoke
    )

    private static func runCreate(_ arguments: Arguments) throws -> ExitCode {
        _ = try arguments.operands()
        let roles = APIToken.Role.allCases.map(\.rawValue).joined(separator: ", ")
        guard let text = arguments.value("--role") else {
            throw CommandFailure.usage("--role is missing: one of \(roles)")
        }
        guard let role = APIToken.Role(rawValue: text) else {
            throw CommandFailure.usage("--role takes one of \(roles), not “\(text)”")
        }
        guard let name = arguments.value("--name") else {
            throw CommandFailure.usage("--name TEXT is missing: what is the token for?")
        }
        let who = try author(arguments, "makes")
        guard OneLine.isOne(name, countMax: 200) else {
            throw CommandFailure.usage("--name takes \(OneLine.want(200))")
        }
        let database = try Database.open(arguments, Configuration.find(arguments))
        let made = try APITokens(database.connect(as: .appender)).create(role, name: name, by: who)
        printError("token \(made.kept.id), role \(role.rawValue); it cannot be shown again:")
        let output = Output.standard()
        try output.line(made.token)
        try output.flush()
        try database.recordRows()
        return .done
    }

    private static func runList(_ arguments: Arguments) throws -> ExitCode {
        _ = try arguments.operands()
        let database = try Database.open(arguments, Configuration.find(arguments))
        let tokens = try APITokens(database.connect(as: .auditor)).all()
        let output = Output.standard()
        if arguments.has("--json") {
            var json = JSONWriter(pretty: true)
            json.beginArray()
            for token in tokens {
                json.beginObject()
                json.member("id", token.id)
                json.member("role", token.role.rawValue)
                json.member("name", token.name)
                json.member("created_by", token.createdBy)
                json.member("created_at", token.createdAt)
                json.member("revoked_at", token.revokedAt)
                json.endObject()
            }
            json.endArray()
            try output.line(json.text)
        } else {
            var table = TextTable("id", "role", "~name", "made by", "made", "revoked")
            for token in tokens {
                table.add(
                    token.id,
                    token.role.rawValue,
                    printable(token.name),
                    printable(token.createdBy),
                    second(token.createdAt),
                    token.revokedAt.map(second) ?? "–"
                )
            }
            try output.table(table)
        }
        try output.flush()
        return .done
    }

    private static func runRevoke(_ arguments: Arguments) throws -> ExitCode {
        let id = try arguments.operands(named: "ID")[0]
        let who = try author(arguments, "revokes")
        let database = try Database.open(arguments, Configuration.find(arguments))
        let outcome = try APITokens(database.connect(as: .appender)).revoke(id, by: who)
        let output = Output.standard()
        switch outcome {
        case .revoked: try output.line("token \(id) is revoked")
        case .revokedBefore: try output.line("token \(id) was revoked before")
        case .unknown:
            throw CommandFailure.notFound("there is no token \(printable(id)); see: token list")
        }
        try output.flush()
        try database.recordRows()
        return .done
    }

    private static func author(_ arguments: Arguments, _ verb: String) throws -> String {
        guard let who = arguments.value("--operator") else {
            throw CommandFailure.usage("--operator WHO is missing: who \(verb) it?")
        }
        guard OneLine.isOne(who, countMax: 200) else {
            throw CommandFailure.usage("--operator takes \(OneLine.want(200))")
        }
        return who
    }
}

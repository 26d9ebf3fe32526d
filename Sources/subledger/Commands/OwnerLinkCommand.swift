internal import Ledger
internal import LedgerService

/// `subledger owner link`.
enum OwnerLinkCommand {
    static let command = Command(
        name: "owner link",
        summary: "Say whose a subscription without an account token is.",
        operands: "ID",
        options: [
            .database, .config, .json,
            .value("--owner", "TOKEN", "the account, a UUID as in appAccountToken"),
            .value("--operator", "WHO", "who says so"),
            .value("--ticket", "REF", "on which ticket"),
            .value("--bundle-id", "ID", "only this app, where several have the subscription"),
            .value("--environment", "Sandbox|Production", "only this environment"),
            .flag("--no-project", "leave the read models as they are; the stream stays marked"),
            .allowUnsafeServer,
        ],
        details: """
            ID is an originalTransactionId; read_model.unattributed_subscription lists those that
            belong to nobody. The link is an event of the ledger for ever. Saying the same again
            changes nothing. Where Apple's token names an owner, nothing is recorded: the token
            outranks any link, and only Apple's Set App Account Token changes it.
            """,
        run: run
    )

    private static func run(_ arguments: Arguments) throws -> ExitCode {
        let id = try arguments.operands(named: "ID")[0]
        guard let owner = try arguments.uuid("--owner") else {
            throw CommandFailure.usage("--owner TOKEN is missing: whose is the subscription?")
        }
        let (who, ticket) = try arguments.author()
        let database = try Database.open(arguments, Configuration.find(arguments))
        try database.refuseUnsafeServer(arguments)
        let outcome = try OwnerLinking(database.connect(as: .appender)).link(
            id,
            to: owner,
            operator: who,
            ticket: ticket,
            bundleID: arguments.value("--bundle-id"),
            environment: EntitlementsCommand.environment(arguments),
            now: .now
        )
        if !arguments.has("--no-project") { try IngestCommand.project(database) }
        let output = Output.standard()
        try output.line(
            arguments.has("--json") ? json(outcome, id, owner) : text(outcome, id, owner)
        )
        try output.flush()
        return .done
    }

    private static func text(
        _ outcome: OwnerLinking.Outcome,
        _ id: String,
        _ owner: UniqueID
    ) -> String {
        switch outcome {
        case .linked(let position, let before):
            "\(printable(id)) belongs to \(owner) now, by event \(position)"
                + (before.map { $0 == owner ? "" : "; before to \($0)" } ?? "")
        case .repeated(let position):
            "the same was said before, by event \(position); nothing was recorded"
        case .ownedAlready:
            "Apple's account token says so already: \(printable(id)) belongs to \(owner); "
                + "nothing was recorded"
        }
    }

    private static func json(
        _ outcome: OwnerLinking.Outcome,
        _ id: String,
        _ owner: UniqueID
    ) -> String {
        var json = JSONWriter()
        json.beginObject()
        json.member("original_transaction_id", id)
        json.member("app_account_token", owner.description)
        switch outcome {
        case .linked(let position, let before):
            json.member("outcome", "linked")
            json.member("position", position)
            json.member("owner_before", before?.description)
        case .repeated(let position):
            json.member("outcome", "repeated")
            json.member("position", position)
        case .ownedAlready:
            json.member("outcome", "owned_already")
        }
        json.endObject()
        return json.text
    }
}

extension Arguments {
    /// The option's value as a UUID.
    func uuid(_ name: String) throws(CommandFailure) -> UniqueID? {
        guard let text = value(name) else { return nil }
        guard let id = UniqueID(text) else {
            throw .usage("\(name) takes a UUID, not “\(text)”")
        }
        return id
    }

    /// Who acts, and on which ticket: both must be said.
    func author() throws(CommandFailure) -> (operator: String, ticket: String) {
        guard let who = value("--operator") else {
            throw .usage("--operator WHO is missing: who answers for it?")
        }
        guard let ticket = value("--ticket") else {
            throw .usage("--ticket REF is missing: on which ticket?")
        }
        return (who, ticket)
    }
}

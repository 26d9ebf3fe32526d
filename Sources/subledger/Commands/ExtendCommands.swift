internal import EventLog
internal import Ledger
internal import LedgerService

/// `subledger extend …`.
enum ExtendCommands {
    /// What reaching Apple needs, beside its key.
    private static let reaching: [Option] = [
        .database, .config, .json, .acceptBundle, .appAppleID, .root,
    ]

    private static let why: [Option] = [
        .value("--days", "N", "by how many days, 1 to 90"),
        .value(
            "--reason",
            "REASON",
            "customer-satisfaction, other, service-issue or undeclared"
        ),
        .value("--ticket", "REF", "on which ticket"),
        .value("--note", "TEXT", "why, in words; a must for other and undeclared"),
        .value("--internal-reason", "WORD", "our own reason"),
        .value("--ticket-url", "URL", "where the ticket is"),
        .value("--incident", "ID", "the incident behind it"),
        .value("--on-behalf-of", "WHO", "for whom the operator acts"),
        .value("--operator", "WHO", "who asks for it"),
    ]

    static let extend = Command(
        name: "extend",
        summary: "Extend a subscription's renewal date, with a trail.",
        operands: "ID",
        options: reaching + why + [
            .flag("--dry-run", "judge it, write nothing and send nothing"),
            .flag("--again", "a second extension on the same ticket is meant"),
            .flag("--attempt-ineligible", "send it although Apple will refuse, and record that"),
            .flag("--without-fresh-status", "do not ask Apple first how it stands"),
            .value("--bundle-id", "ID", "only this app, where several have the subscription"),
            .value("--environment", "Sandbox|Production", "only this environment"),
            .flag("--no-project", "leave the read models as they are"),
            .allowUnsafeServer,
        ],
        details: """
            ID is an originalTransactionId. Apple is asked how it stands; what Apple would refuse is
            refused here by the rule's name. The request is in the ledger before Apple is asked, and
            Apple's answer after. It cannot be undone, and Apple writes to the customer. Exit code
            1 says that it was refused, or that no answer came and nobody knows: extend status.
            """,
        run: runExtend
    )

    static let mass = Command(
        name: "extend mass",
        summary: "Extend all active subscribers of a product.",
        options: reaching + why + [
            .value("--product", "ID", "the product"),
            .list("--storefront", "CODE", "only this storefront, such as USA; repeats"),
            .value("--bundle-id", "ID", "the app"),
            .value("--environment", "Sandbox|Production", "default Production"),
            .flag("--again", "a second mass extension on the same ticket is meant"),
            .flag("--dry-run", "judge it, write nothing and send nothing"),
            .flag("--no-project", "leave the read models as they are"),
            .allowUnsafeServer,
        ],
        details: """
            Apple works on it for hours. `subledger extend status ID` asks how far it is; the totals
            stand beside those of the notices that came in read_model.mass_extension. Until Apple
            is done no other one for the same subscribers is sent.
            """,
        run: runMass
    )

    static let approve = Command(
        name: "extend approve",
        summary: "Approve what another operator asked for, and have it done.",
        operands: "REQUEST",
        options: decisionOptions,
        details: """
            REQUEST is the identifier that `subledger extend` printed. Who asked cannot approve;
            what has changed since must be asked for anew.
            """,
        run: { try decide($0) { try $0.approve($1, by: $2, note: $3) } }
    )

    static let reject = Command(
        name: "extend reject",
        summary: "Reject what an operator asked for; it is never sent.",
        operands: "REQUEST",
        options: decisionOptions,
        run: { try decide($0) { try $0.reject($1, by: $2, note: $3) } }
    )

    static let status = Command(
        name: "extend status",
        summary: "Show what became of a request to extend.",
        operands: "REQUEST",
        options: reaching,
        details: "Of a mass extension it asks Apple how far it is, and records that.",
        run: runStatus
    )

    static let resolve = Command(
        name: "extend resolve",
        summary: "Settle requests whose answer was lost.",
        operands: "[REQUEST]",
        options: decisionOptions + [
            .value("--decide", "extended|not-extended", "what a person found out")
        ],
        details: """
            Without REQUEST it goes over all of them. The subscription is read first; where its end
            has moved, Apple did it. Otherwise the request is sent once more under the same
            identifier, after a wait; then a person must decide.
            """,
        run: runResolve
    )

    private static let decisionOptions: [Option] =
        reaching + [
            .value("--operator", "WHO", "who decides"),
            .value("--note", "TEXT", "why"),
            .flag("--no-project", "leave the read models as they are"),
            .allowUnsafeServer,
        ]

    // MARK: - One subscription

    private static func runExtend(_ arguments: Arguments) throws -> ExitCode {
        let id = try arguments.operands(named: "ID")[0]
        var wish = try wish(arguments, subscription: id)
        wish.bundleID = arguments.value("--bundle-id")
        wish.environment = try EntitlementsCommand.environment(arguments)
        wish.again = arguments.has("--again")
        wish.attemptIneligible = arguments.has("--attempt-ineligible")
        wish.withoutFreshStatus = arguments.has("--without-fresh-status")
        wish.isDryRun = arguments.has("--dry-run")
        return try withDesk(arguments) { desk in
            try show(desk.extensions.request(wish, by: desk.actor(arguments)), arguments)
        }
    }

    private static func wish(
        _ arguments: Arguments,
        subscription: String
    ) throws -> ExtensionWish {
        guard let days = try arguments.integer("--days", in: 1...90) else {
            throw CommandFailure.usage("--days N is missing: by how many days?")
        }
        let names = ExtensionReason.allCases.map(\.name).joined(separator: ", ")
        guard let word = arguments.value("--reason") else {
            throw CommandFailure.usage("--reason is missing: one of \(names)")
        }
        guard let reason = ExtensionReason(name: word) else {
            throw CommandFailure.usage("--reason is one of \(names), not “\(word)”")
        }
        let (_, ticket) = try arguments.author()
        var wish = ExtensionWish(
            subscription: subscription,
            days: Int(days),
            reason: reason,
            ticket: ticket
        )
        wish.justification = arguments.value("--note")
        wish.internalReason = arguments.value("--internal-reason")
        wish.ticketURL = arguments.value("--ticket-url")
        wish.incident = arguments.value("--incident")
        return wish
    }

    // MARK: - All of a product

    private static func runMass(_ arguments: Arguments) throws -> ExitCode {
        _ = try arguments.operands()
        var wish = try wish(arguments, subscription: "")
        wish.isDryRun = arguments.has("--dry-run")
        wish.again = arguments.has("--again")
        guard let product = arguments.value("--product") else {
            throw CommandFailure.usage("--product ID is missing: which product?")
        }
        guard let bundleID = arguments.value("--bundle-id") else {
            throw CommandFailure.usage("--bundle-id ID is missing: which app?")
        }
        let mass = MassExtensionWish(
            bundleID: bundleID,
            environment: try EntitlementsCommand.environment(arguments) ?? .production,
            productID: product,
            storefronts: arguments.values("--storefront"),
            wish: wish
        )
        return try withDesk(arguments) { desk in
            try show(desk.extensions.requestMass(mass, by: desk.actor(arguments)), arguments)
        }
    }

    // MARK: - Afterwards

    private static func decide(
        _ arguments: Arguments,
        _ body: (Extensions, UniqueID, ExtensionActor, String?) throws -> ExtensionResult
    ) throws -> ExitCode {
        let request = try request(try arguments.operands(named: "REQUEST")[0])
        return try withDesk(arguments) { desk in
            let actor = try desk.actor(arguments)
            let note = arguments.value("--note")
            return try show(body(desk.extensions, request, actor, note), arguments)
        }
    }

    private static func runStatus(_ arguments: Arguments) throws -> ExitCode {
        let request = try request(try arguments.operands(named: "REQUEST")[0])
        return try withDesk(arguments) { desk in
            var result = try desk.extensions.status(of: request)
            if result.subscription.hasPrefix("mass:"),
                [.accepted, .unknown].contains(result.outcome)
            {
                let standing = try desk.extensions.massStatus(request)
                result = try desk.extensions.status(of: request)
                result.detail = text(standing)
            }
            return try show(result, arguments)
        }
    }

    private static func text(_ standing: MassExtensionStanding) -> String {
        guard standing.isKnown else { return standing.failure ?? "Apple knows no such request" }
        guard standing.isComplete else { return "Apple still works on it" }
        return "complete: \(standing.succeeded ?? 0) extended, \(standing.failed ?? 0) not"
    }

    private static func runResolve(_ arguments: Arguments) throws -> ExitCode {
        guard arguments.operands.count <= 1 else {
            throw CommandFailure.usage("unexpected “\(arguments.operands[1])”")
        }
        let decision: ExtensionStep.Resolution? =
            switch arguments.value("--decide") {
            case nil: nil
            case "extended"?: .extended
            case "not-extended"?: .notExtended
            case let word?:
                throw CommandFailure.usage(
                    "--decide is extended or not-extended, not “\(word)”"
                )
            }
        let named = try arguments.operands.first.map { try request($0) }
        guard named != nil || decision == nil else {
            throw CommandFailure.usage("--decide goes with one REQUEST")
        }
        return try withDesk(arguments) { desk in
            let actor = try desk.actor(arguments)
            var code = ExitCode.done
            for request in try named.map({ [$0] }) ?? desk.extensions.unsettled() {
                do {
                    let result = try desk.extensions.resolve(
                        request,
                        by: actor,
                        decision: decision,
                        note: arguments.value("--note")
                    )
                    if try show(result, arguments) != .done { code = .someRejected }
                } catch let problem as ExtensionProblem where named == nil {
                    printError("\(request): \(problem)")
                    code = .someRejected
                }
            }
            return code
        }
    }

    private static func request(_ text: String) throws -> UniqueID {
        guard let id = UniqueID(text) else {
            throw CommandFailure.usage("REQUEST is a UUID, not “\(text)”")
        }
        return id
    }

    // MARK: - The desk

    /// What does extensions, with the database that it works on.
    private struct Desk {
        var extensions: Extensions
        var database: Database

        /// Who acts.
        func actor(_ arguments: Arguments) throws -> ExtensionActor {
            guard let claimed = arguments.value("--operator") else {
                throw CommandFailure.usage("--operator WHO is missing: who answers for it?")
            }
            var actor = try OperatorAccount.actor(claimed: claimed, database.connect())
            actor.onBehalfOf = arguments.value("--on-behalf-of")
            return actor
        }
    }

    private static func withDesk(
        _ arguments: Arguments,
        _ body: (Desk) throws -> ExitCode
    ) throws -> ExitCode {
        let configuration = try Configuration.find(arguments)
        let database = try Database.open(arguments, configuration)
        if arguments.has(Option.allowUnsafeServer.name) == false {
            try database.refuseUnsafeServer(arguments)
        }
        let extensions = try Extensions(
            reading: database.connect(as: .auditor),
            appending: database.connect(as: .appender),
            gateway: gateway(arguments, configuration, database),
            settings: configuration?.extensions ?? ExtensionSettings(),
            now: { .now }
        )
        extensions.serviceIdentity = "subledger \(Program.version)"
        do {
            let code = try body(Desk(extensions: extensions, database: database))
            if !arguments.has("--no-project") { try IngestCommand.project(database) }
            return code
        } catch let problem as ExtensionProblem {
            throw Self.failure(problem)
        }
    }

    /// What reaches Apple; nil where no key is configured, so that what needs none works without.
    private static func gateway(
        _ arguments: Arguments,
        _ configuration: Configuration?,
        _ database: Database
    ) throws -> AppStoreExtensionGateway? {
        guard AppleDesk.isBegun(configuration) else { return nil }
        let acceptance = try Acceptance(arguments, configuration)
        let clients = try AppleDesk.clients(
            acceptance,
            configuration,
            surroundings: AppleDesk.surroundings
        )
        for warning in clients.warnings { printError("subledger: warning: \(warning)") }
        if let configuration { try IngestCommand.storeRules(configuration, in: database) }
        return AppleDesk.gateway(acceptance, clients, database)
    }

    private static func failure(_ problem: ExtensionProblem) -> CommandFailure {
        let text = printable("\(problem)")
        return switch problem {
        case .unusable, .ambiguous, .idempotencyMismatch: .usage(text)
        case .unknownSubscription, .unknownRequest: .notFound(text)
        case .notOpen, .selfApproval, .changed, .noGateway, .tooEarly, .needsDecision,
            .movedOtherwise:
            CommandFailure(exitCode: .someRejected, message: text)
        }
    }
}

internal import LedgerService
internal import Postgres

/// All commands, and what picks one by the words of a command line.
enum Program {
    /// The version that `--version` prints.
    static let version = "0.1.0"

    /// The commands in the order of the overview.
    static let commands: [Command] = [
        DemoCommand.command,
        VerifyCommand.command,
        IngestCommand.command,
        ReceiptCommands.importing,
        ReceiptCommands.fetching,
        ServeCommand.command,
        BackfillCommand.command,
        SyncCommand.command,
        DeliveriesCommand.command,
        TestNotificationCommand.command,
        RebuildCommand.command,
        GenerationsCommands.list,
        GenerationsCommands.drop,
        RedecodeCommand.command,
        EntitlementsCommand.command,
        BillingRecoveryCommand.command,
        OwnerLinkCommand.command,
        PolicyCommands.set,
        PolicyCommands.diff,
        ChurnCommand.command,
        FxImportCommand.command,
        ExplainCommand.command,
        EventsCommand.command,
        EventSkipCommand.command,
        EvidenceCommand.command,
        RefusalsCommand.command,
        QuarantineCommands.list,
        QuarantineCommands.show,
        QuarantineCommands.replay,
        QuarantineCommands.dismiss,
        StreamsCommands.parked,
        StreamsCommands.retry,
        ForwardsCommand.command,
        TokenCommands.create,
        TokenCommands.list,
        TokenCommands.revoke,
        ExtendCommands.extend,
        ExtendCommands.mass,
        ExtendCommands.approve,
        ExtendCommands.reject,
        ExtendCommands.status,
        ExtendCommands.resolve,
        AuditExtensionsCommand.command,
        AuditMonthlyCommand.command,
        AuditCommands.head,
        AuditCommands.verify,
        AuditCommands.record,
        SimulateCommand.command,
        SimulateServeCommand.command,
        DoctorCommand.command,
        MigrateCommand.command,
        ConfigCheckCommand.command,
        DatabaseCommands.start,
        DatabaseCommands.stop,
        DatabaseCommands.status,
        DatabaseCommands.psql,
        RestoreCommands.check,
        RestoredCommand.command,
        BenchCommands.verify,
        BenchCommands.fold,
        BenchCommands.ingest,
        BenchCommands.rebuild,
        BenchCommands.kills,
        BenchCommands.webhook,
        BenchCommands.queries,
        ChaosCommand.command,
    ]

    /// Runs the command that the words name, and says what went wrong if something did.
    static func run(_ words: [String]) -> ExitCode {
        guard let first = words.first else {
            printError(overview)
            return .usage
        }
        switch first {
        case "--version": return printing("subledger \(version)")
        case "--help", "-h": return printing(overview)
        case "help": return help(Array(words.dropFirst()))
        default: break
        }
        guard let command = command(for: words) else {
            let rest = words.dropFirst(group(first).isEmpty ? 0 : 1)
            if rest.isEmpty || rest.first == "--help" { return help([first]) }
            printError("subledger: \(unknownCommand(words))\n\n\(overview)")
            return .usage
        }
        return run(command, Array(words.dropFirst(command.words.count)))
    }

    private static func run(_ command: Command, _ words: [String]) -> ExitCode {
        do {
            if !command.passesEverything || words == ["--help"] {
                let arguments = try Arguments(words, allowing: command.options + [.help])
                if arguments.has("--help") { return printing(command.usage) }
                return try command.run(arguments)
            }
            return try command.run(Arguments(["--"] + words, allowing: []))
        } catch is OutputClosed {
            return .done
        } catch {
            if Interruption.isRequested {
                // After a signal the server may be gone before we are: that is no news.
                guard Interruption.isCooperative else { Interruption.waitForEnd() }
                return .someRejected
            }
            let failure = CommandFailure(error)
            printError("subledger \(command.name): \(failure.message)")
            if failure.showsUsage { printError("\n\(command.usage)") }
            return failure.exitCode
        }
    }

    /// The command with the longest name that the words begin with.
    static func command(for words: [String]) -> Command? {
        commands
            .filter {
                words.count >= $0.words.count && zip(words, $0.words).allSatisfy { $0 == $1 }
            }
            .max { $0.words.count < $1.words.count }
    }

    /// The commands that are called by a word and a second one.
    private static func group(_ word: String) -> [Command] {
        commands.filter { $0.words.count > 1 && $0.words[0] == word }
    }

    private static func help(_ words: [String]) -> ExitCode {
        if words.isEmpty { return printing(overview) }
        if let command = command(for: words) { return printing(command.usage) }
        let group = group(words[0])
        if group.isEmpty || words.count > 1 {
            printError("subledger: \(unknownCommand(words))\n\n\(overview)")
            return .usage
        }
        return printing("Usage: subledger \(words[0]) COMMAND\n\n" + list(group))
    }

    private static func unknownCommand(_ words: [String]) -> String {
        let given = words.prefix(group(words[0]).isEmpty ? 1 : 2).joined(separator: " ")
        let hint = nearest(to: given, among: commands.map(\.name)).map { "; did you mean \($0)?" }
        return "unknown command \(given)\(hint ?? "")"
    }

    private static func list(_ commands: [Command]) -> String {
        commands.map { command in
            let padding = String(repeating: " ", count: max(2, 18 - command.name.count))
            return wrapped(
                "  \(command.name)\(padding)\(command.summary)",
                width: 80,
                hangingBy: 20
            )
        }.joined(separator: "\n")
    }

    /// What `subledger --help` shows.
    static var overview: String {
        """
        Usage: subledger COMMAND [OPTION]…

        An event-sourced ledger of App Store subscriptions in PostgreSQL.

        \(list(commands))

        `subledger COMMAND --help` shows a command's options. Without --database or
        DATABASE_URL an embedded PostgreSQL server in ./.subledger is used.
        Exit codes: 0 done, 1 some rejected, 2 usage, 3 database unavailable, 4 schema,
        5 integrity.
        """
    }

    private static func printing(_ text: String) -> ExitCode {
        let output = Output.standard()
        try? output.line(text)
        try? output.flush()
        return .done
    }
}

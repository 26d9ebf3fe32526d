internal import AppStoreSimulator
internal import Ledger

/// `subledger simulate`.
enum SimulateCommand {
    static let command = Command(
        name: "simulate",
        summary: "Write the notifications of a made-up company, delivered badly.",
        options: [
            .value("--subscriptions", "N", "how many subscriptions (default 2000)"),
            .value("--seed", "S", "equal seeds give equal files (default 1)"),
            .value("--rare", "N", "how many times as often as by nature rare things happen"),
            .value("--until", "INSTANT", "the end of the two years (default 2026-01-01)"),
            .value("--out", "FILE", "the notifications, one a line; - is standard output"),
            .value("--truth", "FILE", "what is true of each subscription, one a line"),
            .value("--root", "FILE", "the root certificate that the data is signed under, PEM"),
        ],
        details: """
            The data is signed by a test authority, so it is Sandbox data: read it with
            `subledger ingest FILE --root ROOT --accept-bundle com.example.subledger`.
            Notifications come twice, late, out of order and not at all. The truth has for each
            subscription what Apple knows and what follows from what was delivered.
            Beside ordinary lives there are families, seats, 12-month commitments, migrations, and
            notifications about other things than subscriptions; --rare 5 shows many of them.
            """,
        run: run
    )

    private static func run(_ arguments: Arguments) throws -> ExitCode {
        _ = try arguments.operands()
        guard let path = arguments.value("--out") else {
            throw CommandFailure.usage("--out FILE is missing")
        }
        let simulation = Simulation(try options(arguments))
        let out = try OutputFile(path: path)
        let truth = try arguments.value("--truth").map { path throws(CommandFailure) in
            try OutputFile(path: path)
        }
        let root = try arguments.value("--root").map { path throws(CommandFailure) in
            try OutputFile(path: path)
        }
        try root?.write(simulation.authority.rootPEM.utf8)
        let bar = ProgressBar("simulate", unit: "notifications")
        let statistics = try simulation.write(
            deliveries: { try out.write($0) },
            truth: { try truth?.write($0) },
            progress: { written, total in
                bar.update(fraction: Double(written) / Double(max(1, total)), count: written)
            }
        )
        bar.clear()
        try out.finish()
        try truth?.finish()
        try root?.finish()
        printError(text(statistics))
        return .done
    }

    private static func options(_ arguments: Arguments) throws -> Simulation.Options {
        var options = Simulation.Options(
            subscriptions: Int(
                try arguments.integer("--subscriptions", in: 1...10_000_000) ?? 2000
            ),
            seed: UInt64(try arguments.integer("--seed", in: 0...Int64.max) ?? 1)
        )
        if let factor = try arguments.integer("--rare", in: 0...20) {
            options.rareFactor = Double(factor)
        }
        if let until = try arguments.instant("--until") { options.until = until.milliseconds }
        return options
    }

    /// What happened, in a sentence.
    static func text(_ statistics: SimulationStatistics) -> String {
        "\(grouped(statistics.subscriptions)) subscriptions, \(grouped(statistics.notices)) "
            + "notifications: \(grouped(statistics.deliveries)) delivered, of these "
            + "\(grouped(statistics.duplicates)) repeats; \(grouped(statistics.lost)) lost, "
            + "\(grouped(statistics.inFlight)) still on their way"
    }
}

internal import Benchmarks
internal import Glibc

/// `subledger bench chaos`.
enum ChaosCommand {
    static let command = Command(
        name: "bench chaos",
        summary: "Kill the service and PostgreSQL under load and check that nothing is lost.",
        options: [
            .value("--scenario", "NAME", "kills, snapshot, clock, sandbox or import"),
            .value("--seconds", "N", "how long the load lasts (default 60)"),
            .value("--seed", "S", "equal seeds draw equal plans (default 1)"),
            .value("--rate", "N", "notifications a second (default 400)"),
            .value("--instances", "N", "how many services share the database (default 2)"),
            .flag("--server-clock", "scenario clock: step PostgreSQL's clock as well"),
            .flag("--keep", "keep the folder with the cluster and the logs"),
        ],
        details: """
            It makes a PostgreSQL cluster of its own below /tmp, with fsync on, and runs `serve` as
            processes of their own. Notifications are sent until they are acknowledged, some twice.
            At the end the log and the read models are held to the sender's books. Exit code 5 and
            the broken promises where one was broken. The scenario clock needs libfaketime.
            """,
        run: run
    )

    private static func run(_ arguments: Arguments) throws -> ExitCode {
        _ = try arguments.operands()
        let name = arguments.value("--scenario") ?? "kills"
        guard let scenario = Chaos.Scenario(rawValue: name) else {
            let names = Chaos.Scenario.allCases.map(\.rawValue).joined(separator: ", ")
            throw CommandFailure.usage("--scenario is one of \(names), not “\(name)”")
        }
        var options = Chaos.Options(
            scenario: scenario,
            seconds: Int(try arguments.integer("--seconds", in: 5...86_400) ?? 60),
            seed: UInt64(try arguments.integer("--seed", in: 0...Int64.max) ?? 1),
            program: program()
        )
        options.perSecond = Int(try arguments.integer("--rate", in: 1...10_000) ?? 400)
        options.instances = Int(try arguments.integer("--instances", in: 1...8) ?? 2)
        options.stepsServerClock = arguments.has("--server-clock")
        options.keepsFolder = arguments.has("--keep")
        let report = try Chaos.run(options) { BenchCommands.say($0) }
        let output = Output.standard()
        for line in report.lines { try output.line(line) }
        for violation in report.violations { try output.line("VIOLATED: \(violation)") }
        let verdict = report.violations.isEmpty ? "every promise was kept" : "a promise was broken"
        try output.line("\(scenario.rawValue), seed \(options.seed): \(verdict)")
        try output.flush()
        return report.violations.isEmpty ? .done : .integrity
    }

    /// The file of this program.
    static func program() -> String {
        var buffer = [CChar](repeating: 0, count: 4096)
        let count = unsafe readlink("/proc/self/exe", &buffer, buffer.count - 1)
        guard count > 0 else { return CommandLine.arguments[0] }
        return String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

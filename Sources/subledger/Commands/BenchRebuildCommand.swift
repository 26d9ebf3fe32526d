internal import Benchmarks
internal import LedgerService

extension BenchCommands {
    static let rebuild = Command(
        name: "bench rebuild",
        summary: "Measure rebuilding against raw COPY, key builds and SQL, part by part.",
        options: [
            .value("--subscriptions", "N", "with ten events each (default 20000)"),
            .value("--shape", "NAME", "how the events lie on the streams (default even)"),
            .value("--runs", "N", "how many rebuilds are made (default 3)"),
            .value("--jobs", "N", "how many slices are folded at a time (default 2)"),
            .flag("--window-fold", "let the database fold the log too (a minute for 20000)"),
            .flag("--redecode", "rebuild once more when every fact was replaced"),
        ],
        details: """
            Shapes: even; by-time is the same as it would come, so that the rows of a stream lie far
            apart; long has one stream of 10,000 events too; endless one of a million, which are too
            many to be folded; unfolded one of a million that nobody folds; one-slice has half of
            the log in one slice.

            It works in a database of its own on the embedded server and drops it.
            """,
        run: { arguments in
            _ = try arguments.operands()
            var options = RebuildBenchmark.Options()
            if let count = try arguments.integer("--subscriptions", in: 10...10_000_000) {
                options.subscriptions = Int(count)
            }
            if let count = try arguments.integer("--runs", in: 1...100) {
                options.runs = Int(count)
            }
            if let count = try arguments.integer("--jobs", in: 1...64) {
                options.workers = Int(count)
            }
            if let name = arguments.value("--shape") {
                guard let shape = SyntheticLog.Shape(rawValue: name) else {
                    let names = SyntheticLog.Shape.allCases.map(\.rawValue)
                    throw CommandFailure.usage(
                        "--shape is one of \(names.joined(separator: ", ")), not \(name)"
                    )
                }
                options.shape = shape
            }
            options.foldsWithWindows = arguments.has("--window-fold")
            options.replacesFacts = arguments.has("--redecode")
            try inScratchDatabase { sessions, output in
                let result = try RebuildBenchmark(options) { try sessions.open() }.run { say($0) }
                try output.write(RebuildBenchmark.text(result))
            }
            return .done
        }
    )
}

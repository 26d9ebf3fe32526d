internal import EventLog
internal import Ledger
internal import LedgerService
internal import Synchronization

extension RebuildCommand {
    static func text(_ report: Rebuild.Report) -> String {
        let rate = report.seconds > 0 ? Double(report.events) / report.seconds : 0
        var lines = [
            "\(grouped(report.events)) events of \(grouped(report.streams)) streams read in "
                + "\(duration(report.seconds)) (\(grouped(Int(rate)))/s)"
        ]
        for model in report.readModels {
            lines.append(
                "\(model.name): generation \(model.generation), "
                    + "\(grouped(model.digest.rows)) rows, digest \(model.digest)"
            )
        }
        for key in report.tooLong {
            lines.append(printable("\(key.stream) is too long to be folded: it has no rows"))
        }
        return lines.joined(separator: "\n")
    }

    static func json(
        _ report: Rebuild.Report,
        of prefix: LogPrefix? = nil,
        in schema: String? = nil
    ) -> String {
        var json = JSONWriter()
        json.beginObject()
        if let schema { json.member("schema", schema) }
        prefix?.writeMembers(to: &json)
        json.member("events", report.events)
        json.member("streams", report.streams)
        json.member("milliseconds", Int(report.seconds * 1000))
        json.key("read_models")
        json.beginArray()
        for model in report.readModels {
            json.beginObject()
            json.member("name", model.name)
            json.member("generation", model.generation)
            json.member("rows", model.digest.rows)
            json.member("digest", "\(model.digest)")
            json.endObject()
        }
        json.endArray()
        json.key("too_long")
        json.beginArray()
        for key in report.tooLong { json.string(key.stream) }
        json.endArray()
        json.endObject()
        return json.text
    }

    static func text(_ difference: Verification.Difference) -> String {
        let app = difference.app.map { "\($0.bundleID) (\($0.environment))" } ?? "an unknown app"
        return printable(
            "\(difference.key.stream) of \(app), \(difference.readModel): "
                + "\(grouped(difference.live.rows)) live rows with digest \(difference.live), "
                + "the events give \(grouped(difference.fresh.rows)) with \(difference.fresh)"
        )
    }

    static func json(_ difference: Verification.Difference) -> String {
        var json = JSONWriter()
        json.beginObject()
        json.member("original_transaction_id", difference.key.stream)
        json.member("environment", difference.app.map { "\($0.environment)" })
        json.member("bundle_id", difference.app?.bundleID)
        json.member("read_model", difference.readModel)
        json.member("live_rows", difference.live.rows)
        json.member("live_digest", "\(difference.live)")
        json.member("fresh_rows", difference.fresh.rows)
        json.member("fresh_digest", "\(difference.fresh)")
        json.endObject()
        return json.text
    }

    static func text(_ report: Verification.Report) -> String {
        var line =
            "\(grouped(report.streams)) subscriptions in \(grouped(report.readModels.count)) read "
            + "models compared in \(duration(report.seconds)): \(grouped(report.different)) differ"
        if report.stale > 0 {
            line += "; \(grouped(report.stale)) have news or cannot be folded and were left out"
        }
        return line
    }

    static func json(_ report: Verification.Report) -> String {
        var json = JSONWriter()
        json.beginObject()
        json.member("events", report.events)
        json.member("streams", report.streams)
        json.member("stale", report.stale)
        json.member("different", report.different)
        json.member("milliseconds", Int(report.seconds * 1000))
        json.endObject()
        return json.text
    }
}

/// How far a rebuild is: a bar on a terminal, JSON lines on standard error elsewhere.
final class RebuildProgress: Sendable {
    private let label: String
    private let bar: ProgressBar
    private let lastNanoseconds = Mutex<UInt64>(0)

    /// How often a line is written at most.
    static let intervalNanoseconds: UInt64 = 1_000_000_000

    /// Makes one; it shows itself with the first step.
    init(_ label: String) {
        self.label = label
        bar = ProgressBar(label, unit: "events")
    }

    /// Takes the bar away.
    func clear() { bar.clear() }

    /// Shows a step when it is time; any thread may call it.
    func show(_ progress: Rebuild.Progress) {
        let total = progress.eventsTotal
        bar.update(
            fraction: total == 0 ? nil : Double(progress.events) / Double(total),
            count: Int(progress.events),
            step: [.fold, .verify, .redecode].contains(progress.phase)
                ? label : "\(label) (\(progress.phase.rawValue))"
        )
        guard !Terminal.isError, isDue else { return }
        var json = JSONWriter()
        json.beginObject()
        json.member("phase", progress.phase.rawValue)
        json.member("events", progress.events)
        json.member("events_total", total)
        json.member("events_per_second", Int(progress.rate))
        json.member("seconds_left", progress.secondsLeft.map { Int($0.rounded(.up)) })
        json.endObject()
        printError(json.text)
    }

    private var isDue: Bool {
        let now = monotonicNanoseconds()
        return lastNanoseconds.withLock { last in
            guard now - last >= Self.intervalNanoseconds else { return false }
            last = now
            return true
        }
    }
}

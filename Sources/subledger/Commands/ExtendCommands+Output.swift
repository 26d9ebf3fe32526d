internal import Ledger
internal import LedgerService

extension ExtendCommands {
    /// Shows a result; what was refused is exit code 1.
    static func show(_ result: ExtensionResult, _ arguments: Arguments) throws -> ExitCode {
        let output = Output.standard()
        if arguments.has("--json") {
            var json = JSONWriter()
            result.write(to: &json)
            try output.line(json.text)
        } else {
            for line in lines(result) { try output.line(printable(line)) }
        }
        try output.flush()
        switch result.outcome {
        // Whoever runs this in a script must not take for done what nobody knows of.
        case .refusedLocally, .refusedByApple, .contradicted, .unknown: return .someRejected
        default: return .done
        }
    }

    private static func lines(_ result: ExtensionResult) -> [String] {
        let what = result.subscription
        var lines: [String]
        switch result.outcome {
        case .accepted, .confirmed, .contradicted, .external:
            let end = result.expiresConfirmed ?? result.expiresAcked
            lines = [
                "\(what): \(result.outcome.rawValue), "
                    + "\(result.expiresBefore?.description ?? "–") → \(end?.description ?? "–")"
            ]
        case .requested where result.isDryRun:
            lines = [
                "\(what): would be extended by \(result.days) days from "
                    + "\(result.expiresBefore?.description ?? "–")"
                    + (result.approvalRule.map { ", once another operator approves (\($0))" } ?? "")
            ]
        case .requested:
            lines = [
                "\(what): waits for another operator (\(result.approvalRule ?? "")): "
                    + "subledger extend approve \(result.request)"
            ]
        case .refusedLocally:
            let rule = result.rule.flatMap { ExtensionRule(rawValue: $0) }
            lines = ["\(what): refused, \(result.rule ?? ""): \(rule?.explanation ?? "")"]
        case .refusedByApple:
            lines = [
                "\(what): refused by Apple, \(result.appleErrorCode.map { "\($0)" } ?? "no number") "
                    + "\(result.appleErrorName ?? ""): "
                    + (result.appleErrorMessage ?? result.detail ?? "")
            ]
        case .unknown:
            lines = [
                "\(what): sent, and the outcome is unknown (\(result.detail ?? "no answer")): "
                    + "subledger extend resolve \(result.request)"
            ]
        }
        lines.append(
            "  counted in 365 days: \(result.usedByChain) of the subscription, "
                + "\(result.usedByOwner) of its owner; Apple allows 2"
        )
        if let detail = result.detail, result.outcome != .unknown { lines.append("  \(detail)") }
        if !result.isDryRun { lines.append("  request \(result.request)") }
        return lines
    }
}

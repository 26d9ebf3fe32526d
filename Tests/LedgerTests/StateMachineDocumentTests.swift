import Foundation
import Testing

@testable import Ledger

/// `docs/state-machine.md` says what the code does and names tests that exist.
@Suite struct StateMachineDocumentTests {
    private static let root = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    private static let file = root.appending(path: "docs/state-machine.md")
    private static let howToWrite =
        "write it anew with: UPDATE_DOCS=1 swift test --disable-xctest"
        + " --filter StateMachineDocumentTests"

    /// What is generated, by the name of its markers.
    private static let parts: [(name: String, text: String)] = [
        ("diagram", diagram), ("steps", steps), ("triggers", triggers),
    ]

    /// The steps as a drawing; what a first fact shows is left to the table.
    private static var diagram: String {
        var lines = ["```mermaid", "stateDiagram-v2"]
        lines += StateKind.allCases.map { "    [*] --> \($0)" }
        for from in StateKind.allCases {
            for to in StateKind.allCases {
                let triggers = TransitionTable.lines.filter { $0.from == from && $0.to == to }
                    .map { "\($0.trigger)" }
                if triggers.isEmpty { continue }
                lines.append("    \(from) --> \(to): \(triggers.joined(separator: ", "))")
            }
        }
        return (lines + ["```"]).joined(separator: "\n")
    }

    /// The steps as a table.
    private static var steps: String {
        var lines = ["| from | trigger | to |", "| --- | --- | --- |"]
        for line in TransitionTable.lines {
            let from = line.from.map { "`\($0)`" } ?? "nothing known"
            lines.append("| \(from) | `\(line.trigger)` | `\(line.to)` |")
        }
        return lines.joined(separator: "\n")
    }

    /// Which of Apple's words each trigger stands for.
    private static var triggers: String {
        var lines = ["| trigger | Apple's notification |", "| --- | --- |"]
        var words: [Trigger: [String]] = [:]
        var seen: Set<NotificationType> = []
        for (type, value) in NotificationType.known where seen.insert(value).inserted {
            let alone = Trigger(value, nil)
            words[alone, default: []].append("`\(type)`")
            for (subtype, of) in Subtype.known where Trigger(value, of) != alone {
                words[Trigger(value, of), default: []].append("`\(type)` / `\(subtype)`")
            }
        }
        words[.observed, default: []].append("none: read from Apple's API, or a receipt")
        words[.other, default: []].append("whatever is not known yet")
        for trigger in Trigger.allCases {
            lines.append(
                "| `\(trigger)` | \((words[trigger] ?? []).joined(separator: ", ")) |"
            )
        }
        return lines.joined(separator: "\n")
    }

    private static func begin(_ name: String) -> String { "<!-- generated: \(name) -->" }
    private static func end(_ name: String) -> String { "<!-- end of \(name) -->" }

    @Test func theDocumentDrawsTheTableOfTheCode() throws {
        var text = try String(contentsOf: Self.file, encoding: .utf8)
        let mayWrite = ProcessInfo.processInfo.environment["UPDATE_DOCS"] != nil
        for part in Self.parts {
            let begin = try #require(text.range(of: Self.begin(part.name)), "no marker")
            let end = try #require(text.range(of: Self.end(part.name)), "no marker")
            let inside = begin.upperBound..<end.lowerBound
            let wanted = "\n\n\(part.text)\n\n"
            if mayWrite {
                text.replaceSubrange(inside, with: wanted)
            } else {
                let isSame = text[inside] == wanted
                #expect(isSame, "the part \"\(part.name)\" is out of date; \(Self.howToWrite)")
            }
        }
        if mayWrite { try text.write(to: Self.file, atomically: true, encoding: .utf8) }
    }
}

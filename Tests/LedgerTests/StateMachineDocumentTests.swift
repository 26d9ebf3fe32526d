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
        ("notifications", notifications),
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

    /// What each notification does to access.
    private static var notifications: String {
        let lines = NotificationRow.all.map {
            "| \($0.name) | \($0.given.rawValue) | \($0.sentence) |"
        }
        return (["| notification | given | effect |", "| --- | --- | --- |"] + lines)
            .joined(separator: "\n")
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

    // MARK: - The tests that are named

    /// The rows of the document's tables of tests, cell by cell.
    private static func rowsOfTests() throws -> [[String]] {
        let text = try String(contentsOf: file, encoding: .utf8)
        return text.split(separator: "<!-- tests -->").dropFirst().flatMap { part in
            let table = part.split(separator: "<!-- end of tests -->").first ?? ""
            return table.split(separator: "\n").filter { $0.hasPrefix("|") }.dropFirst(2).map {
                $0.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            }
        }
    }

    /// The names of all functions in the tests' sources.
    private static func functions() throws -> Set<String> {
        let folder = root.appending(path: "Tests").resolvingSymlinksInPath()
        var names: Set<String> = []
        for path in try FileManager.default.subpathsOfDirectory(atPath: folder.path())
        where path.hasSuffix(".swift") {
            let source = try String(contentsOf: folder.appending(path: path), encoding: .utf8)
            for part in source.split(separator: "func ").dropFirst() {
                names.insert(String(part.prefix { $0.isLetter || $0.isNumber || $0 == "_" }))
            }
        }
        return names
    }

    @Test func everyTestThatTheDocumentNamesExists() throws {
        let functions = try Self.functions()
        var named = 0
        for row in try Self.rowsOfTests() {
            let parts = (row.last ?? "").split(separator: "`", omittingEmptySubsequences: false)
            for (place, word) in parts.enumerated() where place % 2 == 1 {
                named += 1
                let isThere = functions.contains(String(word))
                #expect(isThere, "\(row.first ?? ""): no test is called \(word)")
            }
        }
        #expect(named > 150, "the tables name only \(named) tests")
    }

    @Test func noScenarioNoQuirkAndNoCaseIsLeftOut() throws {
        let first = Set(try Self.rowsOfTests().compactMap(\.first))
        let wanted =
            (1...38).map { "\($0)" } + (1...29).map { "Q\($0)" }
            + (1...11).map { $0 < 10 ? "A0\($0)" : "A\($0)" } + (1...9).map { "C0\($0)" }
        let missing = wanted.filter { !first.contains($0) }
        #expect(missing.isEmpty, "not in the tables: \(missing)")
    }
}

import Testing

@testable import subledger

@Suite struct TextTableTests {
    @Test func columnsAreAlignedAndNumbersStandRight() {
        var table = TextTable("name", "#count")
        table.add("a", "1")
        table.add("longer", "1,000")
        #expect(
            table.lines(width: 80) == [
                "name    count",
                "──────  ─────",
                "a           1",
                "longer  1,000",
            ]
        )
    }

    @Test func onlyShrinkingColumnsGiveWay() {
        var table = TextTable("~text", "id")
        table.add(String(repeating: "x", count: 40), "2000000124910535")
        let lines = table.lines(width: 30)
        #expect(lines.allSatisfy { $0.count <= 30 })
        #expect(lines[2] == "xxxxxxxxxxx…  2000000124910535")
    }

    @Test func whatATerminalWouldActOnIsShownAsAReplacement() {
        var table = TextTable("text")
        table.add("\u{1B}[2Jx\u{9B}")
        #expect(table.lines(width: 80)[2] == "\u{FFFD}[2Jx\u{FFFD}")
    }

    @Test func theBarShowsShareCountRateAndTimeLeft() {
        let text = ProgressBar.text(
            label: "ingest",
            unit: "lines",
            fraction: 0.25,
            count: 5000,
            seconds: 10,
            columns: 100
        )
        #expect(text.contains("25 %"))
        #expect(text.contains("5,000 lines, 500/s, 30 s left"))
        #expect(text.count < 100)
    }

    @Test(arguments: [(0.04, "0.0 s"), (9.94, "9.9 s"), (75, "1 min 15 s"), (7500, "2 h 5 min")])
    func lengthsOfTimeAreForPeople(seconds: Double, text: String) {
        #expect(duration(seconds) == text)
    }

    @Test func linesAreBrokenBetweenWords() {
        #expect(
            wrapped("  --a   one two three", width: 14, hangingBy: 8) == """
                  --a   one
                        two
                        three
                """
        )
    }
}

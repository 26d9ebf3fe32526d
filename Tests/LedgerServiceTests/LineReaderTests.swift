import LedgerService
import Testing

@Suite struct LineReaderTests {
    /// Draws numbers from a seed, so that a failure can be repeated.
    struct Draw: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = state
            mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return mixed ^ (mixed >> 31)
        }
    }

    private func lines(_ bytes: [UInt8], limit: Int = 64) throws -> [LineReader.Line] {
        let folder = try ScratchFolder()
        let reader = try LineReader(path: folder.file("input", bytes), limitBytes: limit)
        var result: [LineReader.Line] = []
        while let line = try reader.next() { result.append(line) }
        #expect(reader.readBytes == bytes.count)
        #expect(reader.sizeBytes == bytes.count)
        return result
    }

    private func text(_ number: Int, _ text: String) -> LineReader.Line {
        .text(number: number, bytes: Array(text.utf8))
    }

    @Test func linesAreNumberedFromOneAndTheLastNeedNotEnd() throws {
        #expect(
            try lines(Array("a\n\nb\r\nc".utf8)) == [
                text(1, "a"), text(2, ""), text(3, "b"), text(4, "c"),
            ]
        )
        #expect(try lines(Array("a\n".utf8)) == [text(1, "a")])
        #expect(try lines([]) == [])
    }

    @Test func aByteOrderMarkIsDroppedAtTheBeginningOnly() throws {
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        let read = try lines(mark + Array("a\n".utf8) + mark + Array("b\n".utf8))
        #expect(read == [text(1, "a"), .text(number: 2, bytes: mark + Array("b".utf8))])
    }

    @Test func aLineOfExactlyTheLimitIsReadAndOneByteMoreIsNot() throws {
        let full = String(repeating: "x", count: 64)
        let read = try lines(Array("\(full)\r\n\(full)y\nz\n".utf8))
        #expect(read == [text(1, full), .tooLong(number: 2, sizeBytes: 65), text(3, "z")])
    }

    @Test(arguments: 1...40 as ClosedRange<UInt64>)
    func everyFileIsReadAsSplittingItWouldReadIt(seed: UInt64) throws {
        var draw = Draw(state: seed)
        var bytes: [UInt8] = [UInt8(ascii: "s")]
        for _ in 0..<Int.random(in: 0...60, using: &draw) {
            // Lengths around the limit, and now and then one above the size of a chunk.
            let isHuge = Int.random(in: 0..<12, using: &draw) == 0
            let count = Int.random(in: isHuge ? 250_000...600_000 : 0...130, using: &draw)
            let filling = UInt8.random(in: UInt8(ascii: "a")...UInt8(ascii: "z"), using: &draw)
            bytes += repeatElement(filling, count: count)
            bytes += Bool.random(using: &draw) ? [0x0A] : [0x0D, 0x0A]
        }
        var expected: [LineReader.Line] = []
        var pieces = bytes.split(separator: 0x0A, omittingEmptySubsequences: false)
        if pieces.last?.isEmpty == true { pieces.removeLast() }
        for (index, piece) in pieces.enumerated() {
            let line = piece.last == 0x0D ? piece.dropLast() : piece
            expected.append(
                line.count > 64
                    ? .tooLong(number: index + 1, sizeBytes: 0)
                    : .text(number: index + 1, bytes: Array(line))
            )
        }
        let read = try lines(bytes).map { line -> LineReader.Line in
            if case .tooLong(let number, _) = line { return .tooLong(number: number, sizeBytes: 0) }
            return line
        }
        #expect(read == expected, "seed \(seed)")
    }

    @Test func whatIsNoFileOfLinesIsRefusedByName() throws {
        let folder = try ScratchFolder()
        func code(_ path: String) -> InputError.Code? {
            #expect(throws: InputError.self) { try LineReader(path: path) }?.code
        }
        #expect(code("\(folder.path)/missing") == .notFound)
        #expect(code(folder.path) == .directory)
        #expect(code(try folder.file("a.gz", [0x1F, 0x8B, 8, 0])) == .binary)
        #expect(code(try folder.file("utf16", [0xFF, 0xFE, 0x7B, 0])) == .binary)
        #expect(code(try folder.file("zeros", [0x7B, 0, 1, 2])) == .binary)
    }
}

import Testing

@testable import LedgerService

@Suite struct ReceiptDocumentsTests {
    private func documents(_ text: String) throws -> [String] {
        let folder = try ScratchFolder()
        let documents = ReceiptDocuments(
            try LineReader(
                path: folder.file("receipts", Array(text.utf8)),
                limitBytes: ReceiptDocuments.sizeMaxBytes
            )
        )
        var result: [String] = []
        while let document = try documents.next() {
            switch document {
            case .text(let number, let bytes):
                result.append("\(number): \(String(decoding: bytes, as: UTF8.self))")
            case .tooLong(let number, _): result.append("\(number) too long")
            }
        }
        return result
    }

    @Test func aResponseMayStandOnOneLineOrOnMany() throws {
        #expect(
            try documents("{\"a\":1}\n\n{\n \"b\": {\"c\":\"}{\\\"}\"}\n}\n{\"d\":2}") == [
                "1: {\"a\":1}", "3: {\n \"b\": {\"c\":\"}{\\\"}\"}\n}", "6: {\"d\":2}",
            ]
        )
    }

    @Test func aTornLineCostsNoMoreThanItself() throws {
        let good = #"{"status":0,"receipt":{}}"#
        #expect(
            try documents("\(good)\n{\"status\":0,\"rec\n\(good)\n\(good)") == [
                "1: \(good)", "2: {\"status\":0,\"rec", "3: \(good)", "4: \(good)",
            ]
        )
    }

    @Test func whatIsNoObjectIsALineOfItsOwn() throws {
        #expect(try documents("}\nabc\n[1,\n]") == ["1: }", "2: abc", "3: [1,", "4: ]"])
        #expect(try documents("  \n\t\n") == [])
    }

    @Test func whatIsLongerThanIsReadIsNamedAndPassedOver() throws {
        let filler = String(repeating: "x", count: 1 << 20)
        let lines = (0..<17).map { "\"k\($0)\":\"\(filler)\"," }.joined(separator: "\n")
        let found = try documents("{\n\(lines)\n\"z\":1}\n{\"status\":0}")
        #expect(found == ["1 too long", "20: {\"status\":0}"])
    }
}
